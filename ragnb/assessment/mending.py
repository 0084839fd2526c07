"""What to mend first: diagnoses with causes, actions and samples, failure modes, and how the answers ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from ragnb import markup
from ragnb.assessment.parts import Row, Writer, paragraph
from ragnb.diagnostics import RULES
from ragnb.markup import Safe, bullets, element, is_missing, join, one_line

_MOST_TEXT = 2000
_LABEL_TONES = {"HALLUCINATION": "bad", "OVER_REFUSAL": "watch", "ANS_NO_HIT": "watch"}  # the others are good


def diagnoses(w: Writer) -> Safe:
    """Diagnoses by cost with causes, actions and the worst samples; then the failure modes."""
    found = by_cost(w)
    parts = [_diagnosis(w, row) for row in found] or [paragraph(w.say("sheet.nothing_to_mend"))]
    if w.sheet.diagnoses["weighted"].any():
        parts.insert(0, paragraph(w.say("sheet.diagnoses_weighted"), "rg-note"))
    return w.section("diagnoses", *parts, _modes(w))


def by_cost(w: Writer) -> Sequence[Row]:
    """Return the diagnoses, the costliest first; those outside the total come last."""
    return w.sheet.diagnoses.sort_values("cost", ascending=False, kind="stable").to_dict("records")


def diagnosis_title(w: Writer, row: Row) -> str:
    """Say the finding in a few words."""
    also = next(rule.also for rule in RULES if rule.name == row["rule"])
    if also is not None:
        return w.say("sheet.low_although", metric=row["metric"], other=also.metric)
    return w.say("sheet.high" if w.better[row["metric"]] == "lower" else "sheet.low", metric=row["metric"])


def diagnosis_words(w: Writer, row: Row) -> str:
    """Say how far past its bar a metric is, how surely, on how much, and what that costs."""
    metric, severity = row["metric"], w.say(f"severity.{row['severity']}")
    said = [
        w.say("sheet.seen", value=w.interval(metric, row), counted=w.counted(row)),
        w.say("sheet.past", severity=severity, at=w.value(metric, row["threshold"])),
        w.say("sheet.certain" if row["certain"] else "sheet.not_certain"),
    ]
    said += [] if pd.isna(row["cost"]) else [w.say("sheet.costs", cost=markup.number(row["cost"]))]
    return "".join(said).strip()


def _diagnosis(w: Writer, row: Row) -> Safe:
    tone = "bad" if row["severity"] == "critical" else "watch"
    mark = markup.badge(tone, w.say(f"severity.{row['severity']}"))
    head = join([diagnosis_title(w, row), " ", mark])
    codes = [[" ", element("code", one["setting"])] if one["setting"] else [] for one in row["actions"]]
    actions = [join([one["text"], *code]) for one, code in zip(row["actions"], codes, strict=True)]
    two = [
        element("div", element("h4", w.say(f"sheet.{key}")), bullets(items))
        for key, items in (("causes", row["causes"]), ("actions", actions))
    ]
    heading = w.heading(head, level=3, anchor=f"diagnosis-{row['rule']}")
    picture, said = w.drawn(row["metric"], row, width=480), paragraph(diagnosis_words(w, row))
    worst = [_sample(w, row["metric"], one) for one in row["worst"]]
    samples = [element("h4", w.say("sheet.worst")), *worst] if worst else []
    return join([heading, said, picture, markup.cards(two), *samples])


def _sample(w: Writer, metric: str, sample: Row) -> Safe:
    """One bad sample, which unfolds to all that tells why."""
    parts = [(key, sample.get(key)) for key in ("question", "answer")]
    parts += [("retrieved_contexts", item) for item in _contexts(w.sheet.scores, sample)]
    parts.append(("ground_truth_answer", sample.get("ground_truth_answer")))
    rows = [{"part": w.say(f"column.{key}"), "text": _cut(str(value))} for key, value in parts if _told(value)]
    bold = [element("strong", score) for score in w.score(metric, sample["score"])]
    head = join([*bold, *sample_names(sample)], " · ")
    return markup.details(head, w.table(rows, "part text"))


def _cut(text: str) -> str:
    """Return strangers' text, cut at a length that a page can bear, with how much is left out."""
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]} … (+{len(text) - _MOST_TEXT:,})"


def sample_names(sample: Row) -> list[str]:
    """Return what a sample is known by, each on one line."""
    names = [sample[key] for key in ("sample_id", "system", "doc_name", "question") if _told(sample.get(key))]
    return [one_line(name, 80) for name in names]


def _told(value: Any) -> bool:
    return not is_missing(value) and str(value) != ""


def _contexts(scores: pd.DataFrame, sample: Row) -> list[Any]:
    """Return the passages that a sample retrieved, as far as they are there."""
    if "retrieved_contexts" not in scores:
        return []
    same = scores
    for key in ("sample_id", "system", "question", "answer"):
        if key in same and sample.get(key) is not None:
            same = same[same[key] == sample[key]]
    found = same["retrieved_contexts"].iloc[0] if len(same) else None
    return list(found)[:10] if isinstance(found, list | tuple) else [found] if isinstance(found, str) else []


def _modes(w: Writer) -> Safe:
    """The failure modes as one bar with counts, and what each costs."""
    modes = w.sheet.modes
    some = modes[modes["n"] > 0]
    if not len(some) or not any(name in w.rules for name in w.quality):
        return Safe("")
    found, head = some["failure_mode"].tolist(), w.say("sheet.modes")
    if found == ["not_enough_scores"]:
        return join([w.heading(head, level=3, anchor="modes"), paragraph(w.say("sheet.no_modes"))])
    costliest = next(iter(modes.loc[modes["costliest"], "failure_mode"]), None)
    head = w.say("sheet.modes_costliest", mode=w.say(f"mode.{costliest}")) if costliest else head
    plain = {"fine": "good", "not_enough_scores": "none", costliest: "bad"}
    names, tones = [w.say(f"mode.{mode}") for mode in found], [plain.get(mode, "watch") for mode in found]
    picture = markup.stacked_svg(names, some["n"].tolist(), label=head, tones=tones)
    table = w.table(some.assign(mode=names), "mode n:count share:percent_interval cost:number")
    return join([w.heading(head, level=3, anchor="modes"), picture, table])


def outcomes(w: Writer) -> Safe:
    """How the answers ended, by label."""
    table = w.sheet.outcomes
    if table is None or not int(table["n"].sum()):
        return Safe("")
    some = table[table["n"] > 0]
    tones = [_LABEL_TONES.get(label, "good") for label in some["label"]]
    said = w.say("sheet.outcomes")
    picture = markup.stacked_svg(some["label"].tolist(), some["n"].tolist(), label=said, tones=tones)
    marks = [markup.badge(_LABEL_TONES.get(label, "good"), label) for label in table["label"]]
    marked = table.assign(label=pd.Series(marks, index=table.index, dtype=object))
    return w.section("outcomes", picture, w.table(marked, "label meaning n:count share:percent"))
