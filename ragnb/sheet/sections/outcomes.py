"""What became of the questions: by kind and language, and from the baseline to this run."""

from __future__ import annotations

import pandas as pd

from ragnb.comparison.questions import RIGHT
from ragnb.markup import count, percent
from ragnb.markup.blocks import Block, Code, Section, Table
from ragnb.sheet.formatter import LABELS, OUTCOME, Formatter, Row
from ragnb.sheet.labels import counted, label_mark, label_stack, tally

_FEW = 5  # questions of a kind: with fewer, the worst rate is chance
_MOST_KINDS = 12


def outcomes(w: Formatter) -> Section | None:
    """Return counts of the labels, never weighted; nothing where no answer has a label."""
    found, (right, n), shown, worst = (
        tally(w),
        counted(w, OUTCOME),
        list[Block | None](),
        list[Row](),
    )
    if not found:
        return None
    for name, counts in w.sheet.label_counts.groupby("slice", sort=False):
        if name != w.sheet.scenario.doc:  # the group with the largest share of wrong answers first
            groups = [
                _of_group(w, str(group), rows)
                for group, rows in counts.groupby("group", sort=False)
            ]
            groups.sort(key=lambda one: (one["share"], one["group"]))
            worst += [one for one in groups if one["n"] >= _FEW]
            heads = (
                str(name),
                *map(w.head, (">outcomes.questions", ">outcomes.right", "section.outcomes")),
            )
            most = [
                (one["group"], count(one["n"]), str(one["right"]), one["stack"]) for one in groups
            ]
            shown.append(Table(heads, tuple(most[:_MOST_KINDS]), cards=True))
    shown.append(
        w.table(
            LABELS,
            {
                "column.label": lambda label: (label_mark(w, label), Code(label)),
                ">column.n": lambda label: count(found.get(label, 0)),
                ">column.share": lambda label: percent(found.get(label, 0) / n),
            },
        )
    )
    finding = w.say("sheet.ended_right", n=count(right), all=count(n))
    low = min(worst, key=lambda one: one["share"], default={"share": 1})
    if low["share"] < right / n:
        words = {"k": count(low["n"] - low["right"]), "n": count(low["n"])}
        finding = w.say("outcomes.worst", group=low["group"], **words)
    if right < n:
        badge = w.say("outcomes.wrong", n=count(n - right))
    else:
        badge = ""
    return w.section("outcomes", finding, w.say("outcomes.lead"), [*shown, _turned(w)], badge)


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
    if w.sheet.comparison is None:
        baseline = ""
    else:
        baseline = w.sheet.comparison["baseline"].iloc[0]
    return Table(heads, tuple(rows), caption=w.say("outcomes.from_to", name=baseline))
