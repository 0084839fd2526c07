"""The first screen: the verdict with its reason, the overall score, and how the answers ended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from ragnb import markup, texts
from ragnb.comparison.view import difference, outcome_mark
from ragnb.diagnostics import input_words
from ragnb.markup.blocks import Bar, Block, Estimate, Mark, Section, Small, Table, Text, Verdict
from ragnb.schema import records
from ragnb.sheet.formatter import KINDS, OUTCOME, RIGHT, TOTAL, Formatter, Row
from ragnb.sheet.sections.metrics import metrics_finding

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


def tally(w: Formatter) -> dict[str, int]:
    """Return how often each label occurs; nothing without labels."""
    table = w.sheet.outcomes
    return {} if table is None else {row["label"]: int(row["n"]) for row in records(table) if row["n"]}


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
