"""The gates: what each asks in words, how far it is from its limit, and how firm that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from ragnb import markup
from ragnb.calibration import CalibrationCard, calibrate, judge_columns
from ragnb.calibration.card import TONES, parts
from ragnb.diagnostics import if_documents_fail, input_words
from ragnb.errors import RagnbError, listing
from ragnb.markup import MISSING
from ragnb.markup.blocks import Block, Code, Estimate, Mark, Section, Small, Table, Text
from ragnb.markup.markdown import cell
from ragnb.scenario import Scenario
from ragnb.schema import METRICS, records
from ragnb.sheet.formatter import Formatter, Row
from ragnb.sheet.sections.summary import by_outcome, chance, deciding


def gates(w: Formatter) -> Section | None:
    """Return every gate; nothing where there is none."""
    rows = records(w.gates)
    if not rows:
        return None
    counted = deciding(w.whole.gates)
    marks = by_outcome(w, counted)
    heads = _heads(w)
    table = Table(
        (heads[0], heads[1], f">{heads[2]}", heads[3], f">{heads[4]}", f">{heads[5]}"),
        tuple(_row(w, row) for row in sorted(rows, key=_order)), cards=True,
    )  # fmt: skip
    return Section(
        "gates", w.say("section.gates"), _finding(w, counted), w.say("gates.lead", level=w.level), (table,),
        marks[0] if marks else "", w.lang,
    )  # fmt: skip


def cases(w: Formatter) -> list[tuple[str, str, str, str]]:
    """Return every gate as a case of `ragnb.diagnostics.junit`, with the words of its row in the table."""
    heads, out = _heads(w), []
    for gate in records(w.whole.gates):
        skipped = gate["outcome"] in ("no_data", "undecided") and gate["reason"] == ""
        kind = "failure" if gate["blocks"] else "skipped" if skipped else "system-out"
        system = "" if gate["system"] is None else f" ({gate['system']})"
        title = f"{gate['gate']}{system}: {gate['metric']} {gate['op']} {gate['threshold']:g}"
        *told, _, flip, more = (cell(one, markup.one_line) for one in _row(w, gate))
        told += [f"{head}: {text}" for head, text in zip(heads[4:], (flip, more), strict=True) if text != MISSING]
        words = w.say("list.also").join(text for text in told if text != MISSING)
        out.append((title, kind, gate["outcome"], words))
    return out


def _heads(w: Formatter) -> list[str]:
    return [w.say(f"gates.{key}", level=w.level) for key in ("asks", "outcome", "seen", "limit", "flip", "more")]


def _order(row: Row) -> tuple[int, int, float]:
    """Order gates by outcome, the advisory ones last; within one the least firm first."""
    order = ("fail", "undecided", "no_data", "pass").index(row["outcome"])
    firm = -float(row["p_flip"] or 0) if row["p_flip"] == row["p_flip"] else 0.0
    return int(row["reason"] != ""), 0 if row["blocks"] else order, firm


def _finding(w: Formatter, rows: list[dict[str, object]]) -> str:
    n = {key: sum(row["outcome"] == key for row in rows) for key in ("fail", "undecided", "no_data", "pass")}
    if not rows:
        return w.say("gates.advisory_only")
    key = "open" if n["undecided"] else "passed" if n["pass"] else "no_data"
    key = ("failed_open" if n["undecided"] else "failed") if n["fail"] else key
    return w.say(f"gates.finding_{key}", fail=n["fail"], open=n["undecided"], n=len(rows))


def _row(w: Formatter, gate: Row) -> tuple[object, ...]:
    metric, outcome = gate["metric"], w.outcome(gate)
    key = {"advisory": "gates.advisory", "not the candidate": "gates.other_system"}.get(gate["reason"])
    kind = [Small(w.say(key))] if key else []
    if gate["role"] == "completeness":
        return (w.requirement(gate), (outcome, *kind), input_words(gate, w.lang), "", "", "")
    seen: tuple[object, ...] = ("",)
    if not pd.isna(gate["value"]):
        ends, n = w.ends(metric, gate), w.say("chart.n", n=markup.count(gate["n"]))
        seen = (w.value(metric, gate["value"]), Small(f"{ends}, {n}" if ends else n))
    flip = "" if pd.isna(gate["p_flip"]) else chance(gate["p_flip"])
    asks = (w.requirement(gate), Code(w.code(gate)))
    return asks, (outcome, *kind), seen, (_drawn(w, gate), Small(_distance(w, gate))), flip, _more(w, gate)


def _drawn(w: Formatter, gate: Row) -> Estimate | str:
    metric, at = gate["metric"], float(gate["threshold"])
    span = w.span(metric) if metric in w.ranges and gate["role"] != "difference" else None
    if pd.isna(gate["value"]) or span is None:
        return ""
    shaded = (at, span[1]) if gate["op"] == ">=" else (span[0], at)
    return w.estimate(metric, gate, thresholds=((w.limit(metric, at), at),), shaded=shaded)


def _distance(w: Formatter, gate: Row) -> str:
    """Say by how much the value meets or misses the limit."""
    if pd.isna(gate["value"]):
        return ""
    gap = (gate["value"] - gate["threshold"]) * (1 if gate["op"] == ">=" else -1)
    points = w.is_share(gate["metric"])
    by = w.say("gates.points", n=f"{abs(100 * gap):.1f}") if points else markup.number(abs(gap))
    return w.say("gates.meets" if gap >= 0 else "gates.misses", by=by)


def _more(w: Formatter, gate: Row) -> str | Mark:
    """Say how many more questions would decide a gate; a number beyond reach is said as such."""
    if gate["outcome"] != "undecided" or pd.isna(gate["low"]):
        return ""
    if pd.isna(gate["more_needed"]):
        return w.say("gates.more_documents" if if_documents_fail(gate) else "gates.too_close")
    return w.say("gates.about", n=markup.count(gate["more_needed"]))


def judge(w: Formatter) -> Section | None:
    """Return the verdict of the calibration; without human labels, that nobody can say."""
    card = w.sheet.calibration
    if card is None:
        if not w.quality:
            return None
        known = [METRICS[name].family for name in w.quality if name in METRICS]
        lexical = len(known) == len(w.quality) and set(known) == {"wording"}
        finding = w.say("judge_trust.no_judge" if lexical else "judge_trust.unvalidated")
        text = () if lexical else (Text((w.say("judge_trust.unvalidated_why"),)),)
        badge = w.say("judge_trust.no_labels")
        return Section("judge", w.say("section.judge"), finding, "", text, badge, w.lang)
    first, *rest = card.reasons
    rows = records(card.verdicts)
    heads = [w.say(f"judge_trust.{key}", level=w.level) for key in ("dimension", "verdict", "within", "bias", "n")]
    table = Table(
        (heads[0], heads[1], f">{heads[2]}", w.say("measures.scale"), f">{heads[3]}", f">{heads[4]}"),
        tuple(_judged_row(w, row) for row in rows), cards=True,
    )  # fmt: skip
    blocks: list[Block] = [Text(tuple(rest), "list"), table] if rest else [table]
    if len(rows) > 1:
        why = tuple((f"{row_name(row)}: {row['verdict']}", Small(" ".join(row["reasons"]))) for row in rows)
        blocks.append(Text(why, "list"))
    bands = [(part.name, block) for part in parts(card) if part.key == "bands" for block in part.blocks]
    blocks += [replace(block, folded=name) for name, block in bands if isinstance(block, Table)]
    blocks.append(Text((w.say("judge_trust.rest"),), "note"))
    mark = Mark(TONES[card.verdict], card.verdict)
    return Section("judge", w.say("section.judge"), first, w.say("judge_trust.lead"), tuple(blocks), mark, w.lang)


def _judged_row(w: Formatter, row: Row) -> tuple[Any, ...]:
    card = w.sheet.calibration
    value, low, high = (float(row[key]) for key in ("share", "low", "high"))
    ends = "" if pd.isna(low) else f"{markup.percent(low).removesuffix(' %')}–{markup.percent(high)}"
    target = ((w.say("judge_trust.target"), card.target),)
    drawn = Estimate(markup.percent(value), ends, value, low, high, (0, 1), target, text=row_name(row))
    bias = markup.number(row["bias"])
    beside = f"{markup.number(row['bias_low'])} … {markup.number(row['bias_high'])}"
    mark = Mark(TONES[row["verdict"]], ", ".join([row["verdict"], *row["sides"]]))
    off = (bias, Small("" if pd.isna(row["bias_low"]) else beside))
    return row_name(row), mark, (markup.percent(value), Small(ends)), drawn, off, str(row["n"])


def calibrated(
    scenario: Scenario, ratings: pd.DataFrame | None, *, judge: Sequence[str] = (), scale: Any = None, **asked: Any
) -> CalibrationCard | None:
    """Return the card of a run's ratings; by default on the scale of the metrics that their dimensions are."""
    if ratings is None:
        return None
    judges = judge_columns(ratings, judge)
    if not judges:
        raise RagnbError(
            f"ratings: {scenario.ratings} holds no scores of a judge (columns: {listing(ratings.columns)}); "
            "join them first, and name what ragnb.read_ratings(…, judged=…) gives"
        )
    names: list[str] = ratings["dimension"].unique().tolist() if "dimension" in ratings else []
    known = [scenario.declared.get(name) or METRICS.get(name) for name in names]
    ranges = {(metric.low, metric.high) if metric else None for metric in known}
    scale = scale or (ranges.pop() if len(ranges) == 1 else None)
    cluster = scenario.cluster if scenario.cluster in ratings else "cluster"
    how: dict[str, Any] = {name: getattr(scenario, name) for name in ("labels_planned", "level", "lang")}
    return calibrate(ratings, judge=judges, scale=scale, cluster=cluster, **how, **asked)


def row_name(row: Mapping[Any, Any]) -> str:
    """Return what a row of the verdicts is called; a judge that is only called ``judge`` needs no name."""
    names = [row["judge"]] * (row["judge"] != "judge") + [row["dimension"]] * (row["dimension"] != "all")
    return " · ".join(map(str, names)) or str(row["judge"])
