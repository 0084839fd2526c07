"""What became of the questions: by kind and language, and from the baseline to this run."""

from __future__ import annotations

import pandas as pd

from ragnb import markup
from ragnb.markup.blocks import Block, Code, Mark, Section, Stack, Table
from ragnb.schema import records
from ragnb.sheet.formatter import KINDS, RIGHT, Formatter

_FEW, _MOST = 5, 12
TONES = {"HALLUCINATION": "bad", "OVER_REFUSAL": "watch", "ANS_NO_HIT": "watch"}  # the others are good


def tally(w: Formatter) -> dict[str, int]:
    """Return how often each label occurs; nothing without labels."""
    table = w.sheet.outcomes
    return {} if table is None else {row["label"]: int(row["n"]) for row in records(table) if row["n"]}


def outcomes(w: Formatter) -> Section | None:
    """Return counts of the labels, never weighted; nothing where no answer has a label."""
    found = tally(w)
    if not found:
        return None
    n = sum(found.values())
    wrong = n - sum(found.get(label, 0) for label in RIGHT)
    groups, counts, blocks = dict[str, list[tuple[str, Stack]]](), w.sheet.label_counts, list[Block]()
    for name, rows in () if counts is None else counts.groupby("slice", sort=False):
        if name != w.sheet.scenario.doc:  # the group with most wrong answers first
            stacks = [(str(group), label_stack(w, part)) for group, part in rows.groupby("group", sort=False)]
            groups[str(name)] = sorted(stacks, key=lambda one: (_right(one[1]) / max(one[1].all, 1), one[0]))
    for name, rows in groups.items():
        heads = (name, f">{w.say('outcomes.questions')}", f">{w.say('outcomes.right')}", w.say("section.outcomes"))
        most = [(group, markup.count(stack.all), f"{_right(stack)}", stack) for group, stack in rows[:_MOST]]
        blocks.append(Table(heads, tuple(most), cards=True))
    columns = [w.say(f"column.{key}") for key in ("label", "n", "share")]
    labels = tuple(
        ((Mark(TONES.get(label, "good"), w.say(f"label.{label}")), Code(label)), markup.count(found.get(label, 0)),
         markup.percent(found.get(label, 0) / n)) for label in KINDS
    )  # fmt: skip
    blocks.append(Table((columns[0], f">{columns[1]}", f">{columns[2]}"), labels))
    blocks += _turned(w)
    worst = [(_right(stack) / stack.all, group, stack) for rows in groups.values() for group, stack in rows
             if stack.all >= _FEW]  # fmt: skip
    finding = w.say("sheet.ended_right", n=markup.count(n - wrong), all=markup.count(n))
    if wrong and worst and (low := min(worst, key=lambda one: one[0]))[0] < (n - wrong) / n:
        words = {"k": markup.count(low[2].all - _right(low[2])), "n": markup.count(low[2].all)}
        finding = w.say("outcomes.worst", group=low[1], **words)
    badge = w.say("outcomes.wrong", n=markup.count(wrong)) if wrong else ""
    name, lead = w.say("section.outcomes"), w.say("outcomes.lead")
    return Section("outcomes", name, finding, lead, tuple(blocks), badge, w.lang)


def _right(stack: Stack) -> int:
    good = {KINDS[label] for label in RIGHT}
    return sum(n for kind, _, n in stack.parts if kind in good)


def label_stack(w: Formatter, rows: pd.DataFrame) -> Stack:
    """Return the labels of one group, side by side in one order."""
    counts = dict(zip(rows["label"], rows["n"], strict=True))
    parts = tuple((kind, w.say(f"label.{label}"), int(counts.get(label, 0))) for label, kind in KINDS.items())
    return Stack(parts, sum(n for _, _, n in parts))


def _turned(w: Formatter) -> list[Block]:
    """Return the table from the labels of the baseline to those of this run."""
    changed = w.sheet.changed
    if changed is None or changed["before_label"].isna().all():
        return []
    counts = pd.crosstab(changed["before_label"], changed["now_label"])
    labels = [label for label in KINDS if label in counts.index or label in counts.columns]
    counts = counts.reindex(index=labels, columns=labels, fill_value=0)
    heads = (w.say("outcomes.before_now"), *(f">{w.say(f'label.{label}')}" for label in labels), ">Σ")
    rows = [
        (w.say(f"label.{label}"), *(str(n) if n else "·" for n in row), markup.count(sum(row)))
        for label, row in zip(labels, counts.to_numpy().tolist(), strict=True)
    ]
    baseline = records(w.sheet.comparison)[0]["baseline"] if w.sheet.comparison is not None else ""
    return [Table(heads, tuple(rows), caption=w.say("outcomes.from_to", name=baseline))]
