"""The labels of answers: how often each occurs, what a rate counts, and how they are drawn."""

from __future__ import annotations

import pandas as pd

from ragnb.comparison.questions import RIGHT
from ragnb.markup.blocks import Mark, Stack
from ragnb.schema import records
from ragnb.sheet.formatter import DATA, LABELS, Formatter


def tally(w: Formatter) -> dict[str, int]:
    """Return how often each label occurs; nothing without labels."""
    table = w.sheet.outcomes
    if table is None:
        return {}
    return {row["label"]: int(row["n"]) for row in records(table) if row["n"]}


def counted(w: Formatter, metric: str) -> tuple[int, int]:
    """Return how many answers a rate counts, and of how many: of 0 where no label says."""
    if metric not in DATA["counted"]:
        return 0, 0
    counts = tally(w)
    labels_it_counts, of_labels = DATA["counted"][metric]
    k = sum(counts.get(label, 0) for label in labels_it_counts)
    n = sum(counts.get(label, 0) for label in of_labels)
    return k, n


def label_mark(w: Formatter, label: str) -> Mark:
    """Return a label in words."""
    return Mark(LABELS[label]["tone"], w.say(f"label.{label}"))


def label_stack(w: Formatter, rows: pd.DataFrame) -> Stack:
    """Return the labels of one group, side by side in one order."""
    counts = dict(zip(rows["label"], rows["n"], strict=True))
    parts = [
        (row["kind"], w.say(f"label.{label}"), int(counts.get(label, 0)))
        for label, row in LABELS.items()
    ]
    return Stack(tuple(parts), int(rows["n"].sum()))


def n_wrong(w: Formatter, metric: str) -> int:
    """Return how many answers a rate counts as wrong; 0 where no label says."""
    k, n = counted(w, metric)
    if wrong_label(metric):  # a rate such as over_refusal, which counts answers that are wrong
        return k
    return n - k


def wrong_label(metric: str) -> str:
    """Return the label that a rate of wrong answers counts; nothing for any other metric."""
    if metric not in DATA["counted"]:
        return ""
    labels_it_counts, _ = DATA["counted"][metric]
    # A rate counts right labels or wrong ones, never both, and of wrong ones only one.
    first: str = labels_it_counts[0]
    if first in RIGHT:
        return ""
    return first
