"""What to fix in order, each with its evidence, what a fix is worth, and where to look."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import numpy as np

from ragnb import markup
from ragnb.diagnostics import RULES, rule_texts
from ragnb.diagnostics.rules import past
from ragnb.markup import blocks, count, is_missing, number, one_line, percent
from ragnb.markup.blocks import Block, Code, Link, Mark, Section, Table, Text
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
    shown: list[Block | None] = [blocks.Steps(heads, tuple(steps[:_MOST_STEPS]))]
    if rest:
        shown.append(Text((w.say("fix.rest", names=rest),), "note"))
    shown.append(_modes(w))
    return w.section("fix", w.say("section.fix"), w.say("fix.lead"), shown, str(len(steps)))


def _steps(w: Formatter) -> list[blocks.Step]:
    """Return a step a metric: gates that stop the run, findings by their gain, then gates that are still open."""
    gates_shown = [row for row in deciding(w.whole.gates) if row["system"] in (None, w.shown)]
    diagnoses = records(w.sheet.diagnoses.sort_values("cost", ascending=False))
    findings = {row["metric"]: row for row in diagnoses}
    failed = [row for row in gates_shown if row["outcome"] == "fail" or row["blocks"]]
    failed.sort(key=lambda row: row["outcome"])  # by the alphabet: fail, no_data, undecided
    stopping = [row for row in failed if row["outcome"] != "no_data" and row["metric"] in w.rows]
    # A gate that is still open is worth a row where something is wrong, however often.
    still_open = [
        row for row in gates_shown if row["outcome"] == "undecided" and n_wrong(w, row["metric"])
    ]
    still_open.sort(key=lambda row: -n_wrong(w, row["metric"]))
    # Where several gates ask of one metric, the last one here counts: one that stops the run, of these the first.
    gates = {row["metric"]: row for row in [*reversed(still_open), *reversed(stopping)]}
    steps = {metric: _of_finding(w, row) for metric, row in findings.items()}
    for metric, gate in gates.items():
        # A finding says more than a gate that is still open, and less than one that stops the run.
        if metric not in findings or gate in stopping:
            steps[metric] = _of_gate(w, gate, findings.get(metric), len(failed))
    order = [row["metric"] for row in stopping]
    order += findings
    order += [row["metric"] for row in still_open]
    return [steps[metric] for metric in dict.fromkeys(order)]


def _of_gate(w: Formatter, gate: Row, finding: Row | None, n_failed: int) -> blocks.Step:
    """Return a gate as a step, with what is known of its metric from a finding."""
    metric = gate["metric"]
    said = w.said(gate)
    gains = []
    detail = ""
    if gate["outcome"] == "fail":
        gains.append(w.say("fix.no_gate" if n_failed == 1 else "fix.fewer_gates"))
    else:
        detail = w.say("fix.open", **said)
    wrong = n_wrong(w, metric)
    if wrong:
        right, n = counted(w, OUTCOME)
        words = {"right": count(right), "then": count(right + wrong), "n": count(n)}
        gains.append(w.say("fix.right", **words))
    else:
        gains.append(_gain(w, finding))
    return blocks.Step(
        _problem(w, metric),
        Mark(w.outcome(gate).tone, w.say("fix.limit", **said)),
        w.say("list.also").join(gain for gain in gains if gain),
        _link(w, metric),
        _parts(w, metric, finding),
        detail,
    )


def _of_finding(w: Formatter, row: Row) -> blocks.Step:
    """Return a finding of the diagnosis as a step."""
    metric = row["metric"]
    said = w.said(row)
    problem = _problem(w, metric)
    also = next(rule.also for rule in RULES if rule.name == row["rule"])
    if also is not None:
        problem = w.say("fix.although", metric=w.title(metric), other=w.name(also.metric))
    detail = ""
    if said["ends"]:
        detail = w.say("fix.conclusive" if row["certain"] else "fix.not_conclusive", **said)
    gain = _gain(w, row)
    # With few relevant passages and many retrieved ones the threshold may be out of reach for any retriever.
    most = _reachable(w, metric)
    if most is not None and past(most, row["threshold"], w.better[metric]):
        detail += w.say("fix.reachable", most=number(most))
        gain = w.say("fix.beyond_reach", most=number(most))
    tone = "bad" if row["severity"] == "critical" else "watch"
    evidence = Mark(tone, w.say("fix.threshold", **said))
    return blocks.Step(problem, evidence, gain, _link(w, metric), _parts(w, metric, row), detail)


def _problem(w: Formatter, metric: str) -> str:
    """Return what is wrong in the words of the catalogue, else that the metric is low, or high."""
    words = w.about(metric).get("problem")
    if words:
        return words
    key = "fix.high" if w.better[metric] == "lower" else "fix.low"
    return w.say(key, metric=w.title(metric))


def _gain(w: Formatter, finding: Row | None) -> str:
    """Return what a fix adds to the overall score; nothing where it adds nothing, or no one says."""
    if finding is not None and finding["cost"] > 0:
        return w.say("fix.overall", gain=number(finding["cost"]))
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
    lines = list[Any]()
    for action in actions:
        if action["setting"]:
            lines.append((action["text"], Code(action["setting"])))
        else:
            lines.append(action["text"])
    worst = tuple(_sample(w, metric, sample) for sample in samples)
    parts = {"causes": tuple(causes), "actions": tuple(lines), "worst": worst}
    return {w.say(f"fix.{key}"): lines for key, lines in parts.items() if lines}


def _sample(w: Formatter, metric: str, sample: Row) -> tuple[Any, ...]:
    """Return one of the worst samples: its link, then its score, system, document and question."""
    score = ""
    if w.rows[metric]["kind"] != "binary":  # the worst of right and wrong are all wrong
        score = w.value(metric, sample["score"])
    names = [text_of(sample, key) for key in ("sample_id", "system", "doc_name")]
    # Without an id the first name that is there stands for it.
    name, *more = [one_line(known, 40) for known in names if known] or ["?"]
    link: str | Link = name
    if not is_missing(sample.get("sample_id")):
        link = w.link(sample["sample_id"])
    question = one_line(text_of(sample, "question"), 80)
    return link, " · ".join(part for part in (score, *more, question) if part)


def _link(w: Formatter, metric: str) -> Link | None:
    """Return where the questions stand that this is about, with their number."""
    # The letters are those of the filters of the section of questions.
    label = wrong_label(metric)
    n = 0
    target = f"#o={label}"
    if label:
        n, _ = counted(w, metric)
    if not n:
        n = int((below(w, metric) & w.own).sum())
        target = f"#m={metric}"
    if not n:
        return None
    if w.shown is None:
        return Link(w.say("fix.samples", n=count(n)), target)
    words = w.say("fix.samples_of", n=count(n), system=one_line(w.shown, 40))
    return Link(words, f"{target}&s={quote(w.shown, safe='')}")


def _reachable(w: Formatter, metric: str) -> float | None:
    """Return the highest mean share of relevant passages that the number of retrieved ones allows."""
    scores = w.sheet.scores
    if metric != "context_relevance" or not {"gold_ids", "chunks", metric} <= {*scores}:
        return None
    rows = scores[w.own & scores[metric].notna()]
    most = []
    for relevant, retrieved in zip(rows["gold_ids"], rows["chunks"], strict=True):
        # The bound is that of all scored rows, or of none: one without its passages could have any share.
        if not isinstance(relevant, list) or not isinstance(retrieved, list) or not retrieved:
            return None
        most.append(min(1.0, len(relevant) / len(retrieved)))
    if not most:
        return None
    return float(np.average(most, weights=rows["sample_weight"]))


def _modes(w: Formatter) -> Table | None:
    """Return the failure modes, where metrics tell them."""
    some = w.sheet.modes[w.sheet.modes["n"] > 0]
    is_told = not set(some["failure_mode"]) <= {"not_enough_scores"}
    # A mode is told by thresholds of rules, which metrics of somebody's own do not have.
    if not is_told or not any(name in w.rules for name in w.quality):
        return None
    costliest = some.loc[some["costliest"], "failure_mode"].tolist()
    tones = {"fine": "good", "not_enough_scores": "none"}

    def share(row: Row) -> str:
        ends = markup.ends(row["low"], row["high"], percent=True)
        if not ends:
            return percent(row["share"])
        return f"{percent(row['share'])} ({ends})"

    def mode(row: Row) -> Mark:
        usual = "bad" if row["costliest"] else "watch"
        tone = tones.get(row["failure_mode"], usual)
        return Mark(tone, w.say(f"mode.{row['failure_mode']}"))

    columns: dict[str, Write] = {
        "column.mode": mode,
        ">column.n": lambda row: count(row["n"]),
        ">column.share": share,
        ">column.cost": lambda row: number(row["cost"]),
    }
    title = w.say("fix.modes")
    if costliest:
        title = w.say("fix.modes_most", mode=w.say(f"mode.{costliest[0]}"))
    return w.table(records(some), columns, folded=title)
