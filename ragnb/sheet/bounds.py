"""What missing scores leave open: where the mean of each metric can lie, beside what is asked of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd

from ragnb.diagnostics.rules import past
from ragnb.schema import records
from ragnb.sheet.formatter import Formatter, Row, once

_BETTER = {">=": "higher", "<=": "lower"}


class Bound(NamedTuple):
    """The account of one metric of one system, with what is asked of its mean.

    `at` is nan where nothing is asked. `can_meet` and `can_miss` say whether the mean would if all that is lost
    were right, and if all of it were wrong.
    """

    row: Row
    metric: str
    system: Any
    at: float
    can_meet: bool
    can_miss: bool

    @property
    def is_open(self) -> bool:
        """Whether what is missing decides."""
        return self.can_meet and self.can_miss


@once
def bounds_of(w: Formatter) -> list[Bound]:
    """Return the bounds of the metrics of quality, those with most missing first."""
    cells = [row for row in records(w.whole.account) if row["stage"] == "cells"]
    rows = [row for row in cells if row["subject"] in w.quality]
    # Nothing is expected of a metric that applies to no answer.
    rows.sort(key=lambda row: -row["lost"] / max(row["expected"], 1))
    return [_bound(w, row) for row in rows]


def _bound(w: Formatter, row: Row) -> Bound:
    metric = row["subject"]
    system: Any = None if pd.isna(row["system"]) else row["system"]
    at, better = _asked(w, metric, system)
    # A metric without a range has no mean that all that is lost could give.
    if pd.isna(at) or pd.isna(row["worst"]) or pd.isna(row["best"]):
        return Bound(row, metric, system, at, can_meet=False, can_miss=False)
    can_meet = not past(row["best"], at, better)
    can_miss = bool(past(row["worst"], at, better))
    return Bound(row, metric, system, at, can_meet, can_miss)


def _asked(w: Formatter, metric: str, system: Any) -> tuple[float, str]:
    """Return the threshold of the first gate on a metric, else the milder one of its rule, and what is better."""
    gates = w.whole.gates
    of_mean = gates[
        (gates["metric"] == metric) & ~gates["role"].isin(["completeness", "difference"])
    ]
    for gate in records(of_mean):
        if gate["system"] == system:
            return float(gate["threshold"]), _BETTER[gate["op"]]
    known = w.thresholds(metric)
    if not known:
        return float("nan"), w.better[metric]
    _, milder = known[0]
    return milder, w.better[metric]
