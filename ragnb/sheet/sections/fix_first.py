"""What to work on first: failed gates, then findings by potential gain, then what is still open."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ragnb import markup
from ragnb.diagnostics import RULES, rule_texts
from ragnb.diagnostics.rules import past
from ragnb.markup import one_line
from ragnb.markup.blocks import Block, Code, Link, Mark, Section, Step, Steps, Table, Text
from ragnb.schema import records
from ragnb.sheet.formatter import RIGHT, Formatter, Row
from ragnb.sheet.sections.summary import COUNTED, counted, deciding, tally

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
