"""What became of the questions: by kind and language, and from the baseline to this run."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ragnb.comparison.questions import RIGHT
from ragnb.markup import count, percent
from ragnb.markup.blocks import Block, Code, Section, Table
from ragnb.sheet.formatter import LABELS, OUTCOME, Formatter, Row, Write
from ragnb.sheet.labels import counted, label_mark, label_stack, tally

_FEW = 5  # questions of a kind: with fewer, the worst rate is chance
_MOST_KINDS = 12


def outcomes(w: Formatter) -> Section | None:
    """Return counts of the labels, never weighted; nothing where no answer has a label."""
    counts = tally(w)
    if not counts:
        return None
    right, n = counted(w, OUTCOME)
    shown = list[Block | None]()
    comparable = list[Row]()
    for name, rows in w.sheet.label_counts.groupby("slice", sort=False):
        if name == w.sheet.scenario.doc:  # documents have a section of their own
            continue
        groups = [
            _of_group(w, str(group), part) for group, part in rows.groupby("group", sort=False)
        ]
        # The group with the largest share of wrong answers first.
        groups.sort(key=lambda group: (group["share"], group["group"]))
        comparable += [group for group in groups if group["n"] >= _FEW]
        shown.append(_group_table(w, str(name), groups))
    columns: dict[str, Write] = {
        "column.label": lambda label: (label_mark(w, label), Code(label)),
        ">column.n": lambda label: count(counts.get(label, 0)),
        ">column.share": lambda label: percent(counts.get(label, 0) / n),
    }
    shown.append(w.table(LABELS, columns))
    shown.append(_turned(w))
    badge = ""
    if right < n:
        badge = w.say("outcomes.wrong", n=count(n - right))
    finding = _finding(w, comparable, right, n)
    return w.section("outcomes", finding, w.say("outcomes.lead"), shown, badge)


def _finding(w: Formatter, groups: Sequence[Row], right: int, n: int) -> str:
    """Return which group ended right least often where it is worse than all together, else how all ended."""
    worst = min(groups, key=lambda group: group["share"], default=None)
    if worst is None or worst["share"] >= right / n:
        return w.say("sheet.ended_right", n=count(right), all=count(n))
    wrong = count(worst["n"] - worst["right"])
    return w.say("outcomes.worst", group=worst["group"], k=wrong, n=count(worst["n"]))


def _group_table(w: Formatter, name: str, groups: Sequence[Row]) -> Table:
    """Return the groups of one slice, the first few."""
    keys = (">outcomes.questions", ">outcomes.right", "section.outcomes")
    heads = (name, *(w.head(key) for key in keys))
    rows = [
        (group["group"], count(group["n"]), str(group["right"]), group["stack"])
        for group in groups[:_MOST_KINDS]
    ]
    return Table(heads, tuple(rows), cards=True)


def _of_group(w: Formatter, name: str, rows: pd.DataFrame) -> Row:
    """Return the labels of a group: how many answers it has, and how many and which share of them are right."""
    n = int(rows["n"].sum())
    right = int(rows.loc[rows["label"].isin(RIGHT), "n"].sum())
    return {
        "group": name,
        "n": n,
        "right": right,
        "share": right / n,
        "stack": label_stack(w, rows),
    }


def _turned(w: Formatter) -> Table | None:
    """Return the table from the labels of the baseline to those of this run."""
    changed = w.sheet.changed
    if changed is None or changed["before_label"].isna().all():
        return None
    counts = pd.crosstab(changed["before_label"], changed["now_label"])
    labels = [label for label in LABELS if label in counts.index or label in counts.columns]
    counts = counts.reindex(index=labels, columns=labels, fill_value=0)
    words = [w.say(f"label.{label}") for label in labels]
    rows = [
        (word, *(str(n) if n else "·" for n in row), count(sum(row)))
        for word, row in zip(words, counts.to_numpy().tolist(), strict=True)
    ]
    heads = (w.say("outcomes.before_now"), *(f">{word}" for word in words), ">Σ")
    baseline = ""
    if w.sheet.comparison is not None:
        baseline = w.sheet.comparison["baseline"].iloc[0]
    return Table(heads, tuple(rows), caption=w.say("outcomes.from_to", name=baseline))
