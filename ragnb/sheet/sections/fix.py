"""What to fix in order, each with its evidence, what a fix is worth, and where to look."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import numpy as np

from ragnb import markup
from ragnb.diagnostics import RULES, rule_texts
from ragnb.diagnostics.rules import past
from ragnb.markup import blocks, count, is_missing, number, one_line, percent
from ragnb.markup.blocks import Code, Link, Mark, Section, Table, Text
from ragnb.schema import records
from ragnb.sheet.formatter import OUTCOME, RULE_OF, Formatter, Row, Write, below, text_of
from ragnb.sheet.gates import deciding
from ragnb.sheet.labels import counted, n_wrong, wrong_label

_MOST_STEPS = 5


def fix_first(w: Formatter) -> Section | None:
    """Return what to fix in order, each with its evidence, what a fix is worth, and where to look, if anything."""
    steps = _steps(w)
    heads = tuple(w.say(f"fix.{key}") for key in ("problem", "evidence", "gain", "worst"))
    rest = w.list(step.problem for step in steps[_MOST_STEPS:])
    if not steps:
        return None
    shown = [
        blocks.Steps(heads, tuple(steps[:_MOST_STEPS])),
        Text((w.say("fix.rest", names=rest),), "note") if rest else None,
        _modes(w),
    ]
    return w.section("fix", w.say("section.fix"), w.say("fix.lead"), shown, str(len(steps)))


def _steps(w: Formatter) -> list[blocks.Step]:
    rows_shown = [row for row in deciding(w.whole.gates) if row["system"] in (None, w.shown)]
    found = {
        row["metric"]: row
        for row in records(w.sheet.diagnoses.sort_values("cost", ascending=False))
    }
    failed = sorted(
        (row for row in rows_shown if row["outcome"] == "fail" or row["blocks"]),
        key=lambda r: r["outcome"],
    )
    # A gate that is still open is worth a row where something is wrong, however often.
    still_open = [
        row for row in rows_shown if row["outcome"] == "undecided" and n_wrong(w, row["metric"])
    ]
    still_open.sort(key=lambda row: -n_wrong(w, row["metric"]))
    stopping = [row for row in failed if row["outcome"] != "no_data" and row["metric"] in w.rows]
    steps = {metric: _of_finding(w, row) for metric, row in found.items()}
    gates = {row["metric"]: row for row in [*still_open[::-1], *stopping[::-1]]}
    for metric in [metric for metric in gates if metric not in found or gates[metric] in stopping]:
        steps[metric] = _of_gate(w, gates[metric], found.get(metric), len(failed))
    order = [*(row["metric"] for row in stopping), *found, *(row["metric"] for row in still_open)]
    return [steps[metric] for metric in dict.fromkeys(order)]


def _of_gate(w: Formatter, gate: Row, finding: Row | None, failed: int) -> blocks.Step:
    metric = gate["metric"]
    said = w.said(gate)
    fails = gate["outcome"] == "fail"
    wrong, (right, n) = n_wrong(w, metric), counted(w, OUTCOME)
    words = {"right": count(right), "then": count(right + wrong), "n": count(n)}
    if fails:
        last = w.say("fix.no_gate" if failed == 1 else "fix.fewer_gates")
    else:
        last = ""
    gains = [last, w.say("fix.right", **words) if wrong else _gain(w, finding)]
    return blocks.Step(
        _problem(w, metric),
        Mark(w.outcome(gate).tone, w.say("fix.limit", **said)),
        w.say("list.also").join(filter(None, gains)),
        _link(w, metric),
        _parts(w, metric, finding),
        "" if fails else w.say("fix.open", **said),
    )


def _of_finding(w: Formatter, row: Row) -> blocks.Step:
    metric = row["metric"]
    said = w.said(row)
    problem = _problem(w, row["metric"])
    if (also := next(rule.also for rule in RULES if rule.name == row["rule"])) is not None:
        problem = w.say("fix.although", metric=w.title(metric), other=w.name(also.metric))
    if said["ends"]:
        detail = w.say("fix.conclusive" if row["certain"] else "fix.not_conclusive", **said)
    else:
        detail = ""
    gain = _gain(w, row)
    most = _reachable(w, metric)
    if most is not None and past(most, row["threshold"], w.better[metric]):
        detail += w.say("fix.reachable", most=number(most))
        gain = w.say("fix.beyond_reach", most=number(most))
    evidence = Mark(
        "bad" if row["severity"] == "critical" else "watch", w.say("fix.threshold", **said)
    )
    return blocks.Step(problem, evidence, gain, _link(w, metric), _parts(w, metric, row), detail)


def _problem(w: Formatter, metric: str) -> str:
    known = w.about(metric).get("problem")
    return known or w.say(
        "fix.high" if w.better[metric] == "lower" else "fix.low", metric=w.title(metric)
    )


def _gain(w: Formatter, finding: Row | None) -> str:
    cost = 0 if finding is None else finding["cost"]
    if cost > 0:
        return w.say("fix.overall", gain=number(cost))
    return ""


def _parts(w: Formatter, metric: str, finding: Row | None) -> dict[str, tuple[Any, ...]]:
    """Return causes, actions and the worst samples."""
    rule = RULE_OF.get(metric)
    causes, actions = rule_texts(rule, w.lang) if rule else ([], [])
    samples = []
    if finding is not None:
        causes = finding["causes"]
        actions = finding["actions"]
        samples = finding["worst"]
    done = tuple(
        (one["text"], Code(one["setting"])) if one["setting"] else one["text"] for one in actions
    )
    worst = tuple(_sample(w, metric, one) for one in samples)
    parts = {"causes": tuple(causes), "actions": done, "worst": worst}
    return {w.say(f"fix.{key}"): lines for key, lines in parts.items() if lines}


def _sample(w: Formatter, metric: str, sample: Row) -> tuple[Any, ...]:
    if w.rows[metric]["kind"] == "binary":
        score = ""
    else:
        score = w.value(metric, sample["score"])
    names = filter(None, (text_of(sample, key) for key in ("sample_id", "system", "doc_name")))
    name, *more = [one_line(one, 40) for one in names] or ["?"]
    link: str | Link = name
    if not is_missing(sample.get("sample_id")):
        link = w.link(sample["sample_id"])
    return link, " · ".join(filter(None, (score, *more, one_line(text_of(sample, "question"), 80))))


def _link(w: Formatter, metric: str) -> Link | None:
    """Return where the questions stand that this is about, with their number."""
    label = wrong_label(metric)
    n = counted(w, metric)[0] if label else 0
    target = f"#o={label}"
    if not n:
        n = int((below(w, metric) & w.own).sum())
        target = f"#m={metric}"
    if not n:
        return None
    if w.shown is None:
        return Link(w.say("fix.samples", n=count(n)), target)
    said = w.say("fix.samples_of", n=count(n), system=one_line(w.shown, 40))
    return Link(said, f"{target}&s={quote(w.shown, safe='')}")


def _reachable(w: Formatter, metric: str) -> float | None:
    """Return the highest mean share of relevant passages that the number of retrieved ones allows."""
    scores = w.sheet.scores
    if metric != "context_relevance" or not {"gold_ids", "chunks", metric} <= {*scores}:
        return None
    rows = scores[w.own & scores[metric].notna()]
    sizes = [
        (len(gold), len(got))
        for gold, got in zip(rows["gold_ids"], rows["chunks"], strict=True)
        if isinstance(gold, list) and isinstance(got, list) and got
    ]
    if len(sizes) != len(rows) or not sizes:
        return None
    return float(
        np.average([min(1.0, gold / got) for gold, got in sizes], weights=rows["sample_weight"])
    )


def _modes(w: Formatter) -> Table | None:
    """Return the failure modes, where metrics tell them."""
    some = w.sheet.modes[w.sheet.modes["n"] > 0]
    if set(some["failure_mode"]) <= {"not_enough_scores"} or not any(
        name in w.rules for name in w.quality
    ):
        return None
    most = some.loc[some["costliest"], "failure_mode"].tolist()
    tones = {"fine": "good", "not_enough_scores": "none"}

    def share(row: Row) -> str:
        ends = markup.ends(row["low"], row["high"], percent=True)
        return percent(row["share"]) + (f" ({ends})" if ends else "")

    def mode(row: Row) -> Mark:
        tone = tones.get(row["failure_mode"], "bad" if row["costliest"] else "watch")
        return Mark(tone, w.say(f"mode.{row['failure_mode']}"))

    columns: dict[str, Write] = {"column.mode": mode, ">column.n": lambda row: count(row["n"])}
    columns |= {">column.share": share, ">column.cost": lambda row: number(row["cost"])}
    if most:
        title = w.say("fix.modes_most", mode=w.say(f"mode.{most[0]}"))
    else:
        title = w.say("fix.modes")
    return w.table(records(some), columns, folded=title)
