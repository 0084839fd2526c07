"""The verdict: the first screen, what to fix first, the gates, and whether the judge can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ragnb import markup, texts
from ragnb.calibration import CalibrationCard, calibrate, judge_columns
from ragnb.calibration.card import TONES, parts
from ragnb.comparison.view import difference, outcome_mark
from ragnb.diagnostics import RULES, if_documents_fail, input_words, rule_texts
from ragnb.diagnostics.rules import past
from ragnb.errors import RagnbError, listing
from ragnb.markup import MISSING, one_line
from ragnb.markup.blocks import (
    Bar,
    Block,
    Code,
    Estimate,
    Link,
    Mark,
    Section,
    Small,
    Step,
    Steps,
    Table,
    Text,
    Verdict,
)
from ragnb.markup.markdown import cell
from ragnb.scenario import Scenario
from ragnb.schema import METRICS, records
from ragnb.sheet.formatter import KINDS, OUTCOME, RIGHT, TOTAL, Formatter, Row
from ragnb.sheet.sections.metrics import metrics_finding
from ragnb.sheet.sections.outcomes import tally

_MOST = 5
_LABEL = {"under_refusal": "HALLUCINATION", "over_refusal": "OVER_REFUSAL"}


def fix_first(w: Formatter) -> Section:
    """Return what to fix in order, each with its evidence, what a fix is worth, and where to look."""
    steps = _steps(w)
    blocks: list[Block] = [Steps(tuple(w.say(f"fix.{key}") for key in ("problem", "evidence", "gain", "worst")),
                                 tuple(steps[:_MOST]))] if steps else []  # fmt: skip
    if len(steps) > _MOST:
        blocks.append(Text((w.say("fix.rest", names=w.list(step.problem for step in steps[_MOST:])),), "note"))
    blocks += _modes(w)
    name = w.say("section.fix")
    measured = any(not pd.isna(row["value"]) and w.thresholds(metric) for metric, row in w.rows.items())
    lead = w.say("fix.lead" if steps else "fix.nothing" if measured or len(w.gates) else "fix.unknown")
    return Section("fix", name, name, lead, tuple(blocks), str(len(steps)) if steps else "", w.lang)


def _steps(w: Formatter) -> list[Step]:
    own = [row for row in deciding(w.whole.gates) if row["system"] in (None, w.shown)]
    found = {row["metric"]: row for row in records(w.sheet.diagnoses.sort_values("cost", ascending=False))}
    failed = sorted((row for row in own if row["outcome"] == "fail" or row["blocks"]), key=lambda r: r["outcome"])
    rows = [row for row in failed if row["outcome"] != "no_data" and row["metric"] in w.rows]
    steps = [(row["metric"], partial(_of_gate, w, row, found.get(row["metric"]), len(failed))) for row in rows]
    steps += [(metric, partial(_of_finding, w, row)) for metric, row in found.items()]
    # A gate that is still open is worth a row where something is wrong, however often.
    still_open = [row for row in own if row["outcome"] == "undecided" and _wrong(w, row["metric"])]
    still_open.sort(key=lambda row: -_wrong(w, row["metric"]))
    steps += [(gate["metric"], partial(_of_gate, w, gate, None, len(failed))) for gate in still_open]
    first = dict(reversed(steps))
    return [first[metric]() for metric in dict.fromkeys(metric for metric, _ in steps)]


def _of_gate(w: Formatter, gate: Row, finding: Row | None, failed: int) -> Step:
    metric = gate["metric"]
    evidence = w.say(
        "fix.limit", value=w.value(metric, gate["value"]), limit=w.limit(metric, gate["threshold"]),
        n=w.say("chart.n", n=markup.count(gate["n"])),
    )  # fmt: skip
    found, wrong = tally(w), _wrong(w, metric)
    right, n = sum(found.get(label, 0) for label in RIGHT), sum(found.values())
    words = {"right": markup.count(right), "then": markup.count(right + wrong), "n": markup.count(n)}
    last = w.say("fix.no_gate" if failed == 1 else "fix.fewer_gates") if gate["outcome"] == "fail" else ""
    gains = [last, w.say("fix.right", **words) if wrong else _gain(w, finding)]
    parts = _parts(w, metric, finding)
    detail = w.say("fix.open", level=w.level, ends=w.ends(metric, gate)) if gate["outcome"] != "fail" else ""
    text = w.say("list.also").join(gain for gain in gains if gain)
    return Step(_problem(w, metric), Mark(w.outcome(gate).tone, evidence), text, _link(w, metric), parts, detail)


def _of_finding(w: Formatter, row: Row) -> Step:
    metric = row["metric"]
    tone = "bad" if row["severity"] == "critical" else "watch"
    rule = next(rule for rule in RULES if rule.name == row["rule"])
    evidence = w.say(
        "fix.threshold", value=w.value(metric, row["value"]), threshold=w.limit(metric, row["threshold"]),
        n=w.say("chart.n", n=markup.count(row["n"])),
    )  # fmt: skip
    problem = _problem(w, metric)
    if rule.also is not None:
        problem = w.say("fix.although", metric=w.title(metric), other=w.name(rule.also.metric))
    words = {"level": w.level, "ends": w.ends(metric, row)}
    detail = w.say("fix.conclusive" if row["certain"] else "fix.not_conclusive", **words) if words["ends"] else ""
    gain, most = _gain(w, row), _reachable(w, metric)
    if most is not None and past(most, row["threshold"], w.better[metric]):  # type: ignore[arg-type]
        detail += w.say("fix.reachable", most=markup.number(most))
        gain = w.say("fix.beyond_reach", most=markup.number(most))
    return Step(problem, Mark(tone, evidence), gain, _link(w, metric), _parts(w, metric, row), detail)


def _problem(w: Formatter, metric: str) -> str:
    known = w.about(metric).get("problem")
    return known or w.say("fix.high" if w.better[metric] == "lower" else "fix.low", metric=w.title(metric))


def _gain(w: Formatter, finding: Row | None) -> str:
    cost = np.nan if finding is None else finding["cost"]
    return "" if pd.isna(cost) or cost <= 0 else w.say("fix.overall", gain=markup.number(cost))


def _wrong(w: Formatter, metric: str) -> int:
    """Return how many answers a rate counts as wrong; 0 where no label says."""
    part = counted(w, metric)
    if part is None:
        return 0
    return part[0] if COUNTED[metric][0][0] not in RIGHT else part[1] - part[0]


def _parts(w: Formatter, metric: str, finding: Row | None) -> dict[str, tuple[Any, ...]]:
    """Return causes, actions and the worst samples."""
    if finding is not None:
        causes, actions = finding["causes"], finding["actions"]
    else:
        known = next((rule for rule in RULES if rule.metric == metric and rule.also is None), None)
        causes, actions = ([], []) if known is None else rule_texts(known, w.lang)
    done = [(one["text"], Code(one["setting"])) if one["setting"] else one["text"] for one in actions]
    worst = [] if finding is None else finding["worst"]
    samples = [_sample(w, metric, one) for one in worst]
    parts = {"causes": tuple(causes), "actions": tuple(done), "worst": tuple(samples)}
    return {w.say(f"fix.{key}"): lines for key, lines in parts.items() if lines}


def _sample(w: Formatter, metric: str, sample: Row) -> tuple[Any, ...]:
    known = w.metrics[metric]
    score = "" if known is not None and known.kind == "binary" else w.value(metric, sample["score"])
    names = [sample.get(key) for key in ("sample_id", "system", "doc_name")]
    name, *more = [one_line(one, 40) for one in names if not markup.is_missing(one) and str(one)] or ["?"]
    asked = "" if markup.is_missing(sample.get("question")) else one_line(sample["question"], 80)
    link = w.link(sample["sample_id"]) if not markup.is_missing(sample.get("sample_id")) else name
    return link, " · ".join(part for part in (score, *more, asked) if part)


def _link(w: Formatter, metric: str) -> Link | None:
    """Return where the questions stand that this is about, with their number."""
    label, part = _LABEL.get(metric), counted(w, metric)
    if label is not None and part is not None and part[0]:
        return Link(w.say("fix.samples", n=markup.count(part[0])), f"#o={label}")
    n = int(below(w, metric).sum())
    return Link(w.say("fix.samples", n=markup.count(n)), f"#m={metric}") if n and w.thresholds(metric) else None


def below(w: Formatter, metric: str) -> pd.Series:
    """Return which rows of the sheet are beyond the milder threshold of a metric."""
    scores, limits = w.sheet.scores, w.thresholds(metric)
    if metric not in scores or not limits:
        return pd.Series(False, index=scores.index)
    values = pd.to_numeric(scores[metric], errors="coerce")
    better: Any = w.better[metric]
    return pd.Series(past(values, limits[0][1], better), index=scores.index)


def _reachable(w: Formatter, metric: str) -> float | None:
    """Return the highest mean share of relevant passages that the number of retrieved ones allows."""
    scores = w.sheet.scores
    if metric != "context_relevance" or not {"gold_ids", "chunks", metric} <= {*scores}:
        return None
    rows = scores[scores[metric].notna()]
    sizes = [(len(gold), len(got)) for gold, got in zip(rows["gold_ids"], rows["chunks"], strict=True)
             if isinstance(gold, list) and isinstance(got, list) and got]  # fmt: skip
    if len(sizes) != len(rows) or not sizes:
        return None
    return float(np.average([min(1.0, gold / got) for gold, got in sizes], weights=rows["sample_weight"]))


def _modes(w: Formatter) -> list[Block]:
    """Return the failure modes, where metrics tell them."""
    some = w.sheet.modes[w.sheet.modes["n"] > 0]
    names = [name for name in some["failure_mode"] if name != "not_enough_scores"]
    if not names or not any(name in w.rules for name in w.quality):
        return []
    rows = []
    for row in records(some):
        mark = "good" if row["failure_mode"] == "fine" else "bad" if row["costliest"] else "watch"
        mark = "none" if row["failure_mode"] == "not_enough_scores" else mark
        share = markup.percent(row["share"])
        ends = f" ({markup.percent(row['low']).removesuffix(' %')}–{markup.percent(row['high'])})"
        rows.append((Mark(mark, w.say(f"mode.{row['failure_mode']}")), markup.count(row["n"]),
                     share + ("" if pd.isna(row["low"]) else ends), markup.number(row["cost"])))  # fmt: skip
    heads = tuple(w.say(f"column.{key}", level=w.level) for key in ("mode", "n", "share", "cost"))
    costliest = next(iter(some.loc[some["costliest"], "failure_mode"]), None)
    title = w.say("fix.modes") if costliest is None else w.say("fix.modes_most", mode=w.say(f"mode.{costliest}"))
    return [Table((heads[0], *(f">{head}" for head in heads[1:])), tuple(rows), folded=title)]


# Notes without which the numbers would be believed too much.
_CAUTIONS = (
    "stopped_early", "not_compared", "judge_changed", "questions_changed", "many_failed", "stage_unused",
    "stage_streamed", "bad_lines", "no_common_questions", "different_questions", "no_total", "streamed",
)  # fmt: skip
# Which labels a rate counts, and of which: all of them raw, so that a sentence can say "6 of 18".
COUNTED = {
    "under_refusal": (("HALLUCINATION",), ("HALLUCINATION", "REFUSAL_OK")),
    "over_refusal": (("OVER_REFUSAL",), ("OVER_REFUSAL", "OK", "ANS_NO_HIT")),
    "citation_hit_rate": (("OK",), ("OVER_REFUSAL", "OK", "ANS_NO_HIT")),
    "answer_precision": (("OK",), ("OK", "ANS_NO_HIT", "HALLUCINATION")),
    "correct_outcome": (RIGHT, tuple(KINDS)),
}
_GROUPS = {"answerable": ("OK", "ANS_NO_HIT", "OVER_REFUSAL"), "unanswerable": ("REFUSAL_OK", "HALLUCINATION")}


def summary(w: Formatter) -> Section:
    """Return the verdict, what to know before believing it, and the outcome bar."""
    notes = w.whole.notes
    cautions = notes.loc[notes["code"].isin(_CAUTIONS), "text"].tolist()
    gates = deciding(w.whole.gates)
    tone, status, title, lead = _words(w, gates)
    score, name, lines = _score(w)
    said, marks = Mark(tone, w.say(f"status.{status}")), by_outcome(w, gates)
    blocks: list[Block] = [Verdict(said, title, lead, marks, w.say("sheet.gates_count"), score, name, lines)]
    blocks += [Text(tuple(cautions), "caution")] if cautions else []
    blocks += [_by_system(w)] if w.shown is not None else []
    blocks += [_bar(w)] if tally(w) else []
    return Section("summary", w.say("section.summary"), blocks=tuple(blocks), lang=w.lang)


def chance(p: float) -> str:
    """Write a probability as a percentage; one that would be written as none is said to be small."""
    return "< 0.1 %" if p < 0.001 else markup.percent(p)


def counted(w: Formatter, metric: str) -> tuple[int, int] | None:
    """Return how many answers a rate counts, and of how many; None where no label says."""
    found, part = tally(w), COUNTED.get(metric)
    if part is None or not (n := sum(found.get(label, 0) for label in part[1])):
        return None
    return sum(found.get(label, 0) for label in part[0]), n


def deciding(gates: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the gates that decide: not those of the input, of advice, and of others than the candidate."""
    return records(gates[(gates["reason"] == "") & (gates["role"] != "completeness")])


def by_outcome(w: Formatter, gates: list[dict[Any, Any]]) -> tuple[Mark, ...]:
    """Return how many gates came out which way, the worst first."""
    tones = {"fail": "bad", "undecided": "watch", "no_data": "none", "pass": "good"}
    counts = {outcome: sum(row["outcome"] == outcome for row in gates) for outcome in tones}
    return tuple(Mark(tones[key], f"{n} {w.say(f'sheet.gate_{key}')}") for key, n in counts.items() if n)


def sentence(w: Formatter) -> str:
    """Return the verdict as text: status, reason, overall score with its n; of several systems each its own."""
    _, status, title, lead = _words(w, deciding(w.whole.gates))
    if w.shown is None:
        scores = [_said(w, w.rows)]
    else:
        scores = []
        for name, part in w.whole.systems.groupby("system", sort=False):
            scores.append(f"{name}: {_said(w, {row['metric']: row for row in records(part)})}")
    words = {"status": w.say(f"status.{status}"), "title": title, "lead": lead, "score": w.list(scores, most=6)}
    return " ".join(w.say("headline.sentence", **words).split())


def _said(w: Formatter, rows: dict[str, Row]) -> str:
    """Write the overall score, else the share of answers that ended right."""
    metric = _headline(rows)
    if metric is None:
        return w.say("headline.no_score")
    row = rows[metric]
    low, high = (f"{row[end]:g}" for end in ("range_low", "range_high"))
    scale = "" if (low, high) == ("0", "1") else w.say("headline.scale", low=low, high=high)
    return f"{w.title(metric)} {w.interval(metric, row)}{scale}, {w.counted(row)}"


def _headline(rows: dict[str, Row]) -> str | None:
    return next((m for m in (TOTAL, OUTCOME) if m in rows and not pd.isna(rows[m]["value"])), None)


def _words(w: Formatter, gates: list[dict[Any, Any]]) -> tuple[str, str, str, str]:
    """Return the tone, the status, the sentence and its reason."""
    of_input = w.whole.gates[w.whole.gates["role"] == "completeness"]
    if lost := [input_words(row, w.lang) for row in records(of_input[of_input["blocks"]])]:
        return "bad", "incomplete", w.list(lost) + w.say("headline.end"), w.say("headline.incomplete")
    blocking = sorted((row for row in gates if row["blocks"]), key=lambda row: row["outcome"] != "fail")
    if not gates:
        return "none", "no_gates", *_without_gates(w)
    if blocking:
        systems = list(dict.fromkeys(row["system"] for row in blocking if row["system"] is not None))
        if len({row["system"] for row in gates}) > 1:
            words = {"n": len(systems), "all": len({row["system"] for row in gates}), "names": w.list(systems)}
            return "bad", "failed", w.say("headline.systems", **words), w.say("headline.shown", name=w.shown)
        return "bad", "failed", *blocked(w, blocking[0])
    open_ = [row for row in gates if row["outcome"] == "undecided"]
    if open_:
        return "watch", "undecided", *_undecided(w, open_, len(gates))
    if all(row["outcome"] == "no_data" for row in gates):
        return "none", "no_data", w.say("headline.no_data"), w.say("headline.no_data_why")
    passed = [row for row in gates if row["outcome"] == "pass"]
    nearest = max(passed, key=lambda row: -1.0 if pd.isna(row["p_flip"]) else row["p_flip"])
    key = "passed" if len(passed) == len(gates) else "passed_some"
    title = texts.counted(w.say, f"headline.{key}", len(passed), all=len(gates))
    lead = w.say("headline.nearest", asks=w.requirement(nearest), value=w.interval(nearest["metric"], nearest))
    if not pd.isna(nearest["p_flip"]):
        lead += w.say("headline.flip", p=chance(nearest["p_flip"]))
    return "good", "passed", title, lead


def blocked(w: Formatter, gate: Row) -> tuple[str, str]:
    """Return which gate blocks and why in two sentences, never stronger than its interval."""
    metric, above = gate["metric"], gate["op"] == "<="
    limit, value = w.limit(metric, gate["threshold"]), w.value(metric, gate["value"])
    side = w.say("headline.above" if above else "headline.below")
    sentence, part = w.about(metric).get("headline"), counted(w, metric) if w.shown == gate["system"] else None
    if gate["outcome"] == "no_data":
        return w.say("headline.no_value", asks=w.requirement(gate)), w.say("headline.no_value_why")
    if sentence and part and gate["role"] == "rate":
        title = sentence.format(k=markup.count(part[0]), n=markup.count(part[1]))
        key = "headline.weighted" if w.sheet.scenario.doc_weights else "headline.rate"
        lead = w.say(key, value=value, limit=limit)
    elif gate["outcome"] == "fail":
        title = w.say("headline.metric", metric=w.title(metric), value=value, side=side, limit=limit)
        lead = w.say("headline.asks", asks=w.requirement(gate))
    else:
        title = w.say("headline.open", asks=w.requirement(gate))
        lead = w.say("headline.seen", value=value)
    ends = w.ends(metric, gate)
    if not ends:
        return title, lead + w.say("headline.no_interval")
    conclusive = gate["outcome"] == "fail"
    near, words = gate["low"] if above else gate["high"], {"ends": ends, "side": side, "level": w.level}
    if conclusive and above and gate["threshold"] > 0 and near / gate["threshold"] >= 2:
        return title, lead + w.say("headline.times", times=f"{10 * near / gate['threshold'] // 1 / 10:g}", **words)
    return title, lead + w.say("headline.conclusive" if conclusive else "headline.inconclusive", **words)


def _undecided(w: Formatter, gates: list[dict[Any, Any]], n: int) -> tuple[str, str]:
    needed = [row for row in gates if not pd.isna(row["more_needed"])]
    title = w.say("headline.undecided", n=len(gates), all=n)
    if not needed:
        return title, w.say("headline.too_close")
    most = max(needed, key=lambda row: row["more_needed"])
    return title, w.say("headline.more", n=markup.count(most["more_needed"]), asks=w.requirement(most))


def _without_gates(w: Formatter) -> tuple[str, str]:
    """Return what the metrics, or the log, say where no gate decides."""
    if any(not pd.isna(w.rows[name]["value"]) for name in w.quality):
        finding = metrics_finding(w)[0] + w.say("headline.end")
        if w.shown is None:
            return finding, w.say("headline.no_gates")
        return f"{w.shown}: {finding}", w.say("headline.no_gates") + w.say("headline.shown", name=w.shown)
    rates = [name for name in w.rates if not pd.isna(w.rows[name]["value"])]
    if not rates:
        return w.say("measures.nothing") + w.say("headline.end"), w.say("headline.nothing_why")
    names = w.list(f"{w.name(name)} {w.value(name, w.rows[name]['value'])}" for name in rates)
    key = "headline.no_gates" if tally(w) else "headline.no_gold"
    return w.say("headline.log", n=markup.count(w.sheet.rows), rates=names), w.say(key)


def _score(w: Formatter) -> tuple[Estimate | None, str, tuple[Any, ...]]:
    """Return the overall score, else the share of answers that ended right; none where neither is there."""
    if (metric := _headline(w.rows)) is None:
        return None, "", ()
    row, notes = w.rows[metric], list[Any]()
    if ends := w.ends(metric, row):
        notes.append(w.say("sheet.ci", level=w.level, ends=ends))
    notes.append(w.counted(row))
    changed, before = w.sheet.comparison, None
    rows = [] if changed is None else records(changed[changed["metric"] == metric])
    if len(rows) == 1 and rows[0]["n_common"]:
        before = float(rows[0]["baseline_mean"])
        mark, than = outcome_mark(rows[0], w.say), Small(w.say("compared.than", name=rows[0]["baseline"]))
        notes.append((replace(mark, text=f"{mark.text} {difference(rows[0], w.say)}"), than))
    estimate = w.estimate(metric, row, before=before)
    name = w.title(metric) if w.shown is None else f"{w.title(metric)} · {markup.one_line(w.shown, 40)}"
    return replace(estimate, interval="", tone=""), name, tuple(notes)


def _by_system(w: Formatter) -> Table:
    """Return one verdict a system; systems are never pooled."""
    means, gates, rows = w.whole.systems, w.whole.gates, []
    totals = means[means["metric"] == TOTAL].set_index("system")
    outcomes = means[means["metric"] == OUTCOME].set_index("system")
    for name in totals.sort_values("value", ascending=False, kind="stable").index:
        own = gates[(gates["system"] == name) & (gates["role"] != "completeness")]
        own = own[own["reason"] != "advisory"]
        marks = by_outcome(w, records(own))
        first = next(iter(records(own[own["blocks"]].sort_values("outcome", key=lambda x: x != "fail"))), None)
        reason = "" if first is None else w.requirement({**first, "system": None})
        seen = "" if first is None else w.interval(first["metric"], first)
        rated = pd.isna(totals.loc[name, "value"]) and len(outcomes)
        metric, table = (OUTCOME, outcomes) if rated else (TOTAL, totals)
        score = w.interval(metric, table.loc[name].to_dict())
        rows.append((name, marks or w.say("status.no_gates"), (reason, Small(seen)), score))
    heads = ("column.system", "section.gates", "sheet.blocked_by", f"metrics.{TOTAL}.name")
    return Table((*map(w.say, heads[:3]), ">" + w.title(TOTAL)), tuple(rows), cards=True)


def _bar(w: Formatter) -> Bar:
    """Return how the answers ended, right and wrong, in one bar."""
    found = tally(w)
    right, n = sum(found.get(label, 0) for label in RIGHT), sum(found.values())
    groups = []
    for name, labels in _GROUPS.items():
        parts = tuple((KINDS[one], w.say(f"label.{one}"), found[one]) for one in labels if found.get(one))
        groups += [(w.say(f"sheet.{name}"), parts)] if parts else []
    title = w.say("sheet.ended_right", n=markup.count(right), all=markup.count(n))
    return Bar(title + w.say("headline.end"), w.say("sheet.bar_note"), tuple(groups))


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
