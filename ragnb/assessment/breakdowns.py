"""The parts of a run: by document, by slice, by tenths of each metric, and what has no score at all."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ragnb.assessment import streams
from ragnb.scenario import Scenario
from ragnb.schema import Metric
from ragnb.traces import count_unanswerable
from ragnb.weights import Moments, column_names, histogram, moments

_SLICES, _FEW_GROUPS = ("kind", "language"), 12


def unscored(frame: Any, reduced: Moments, outcomes: pd.DataFrame | None) -> int:
    """Return how many rows have no score of quality though one applies; of traces without any metric, no label."""
    quality = [k for k, metric in enumerate(reduced.metrics) if metric.role == "quality"]
    if quality:
        alone = ~reduced.cells.present[:, quality].any(axis=1)
        graded = any(reduced.metrics[k].grades_refusals for k in quality)
        return int(reduced.cells.n[alone].sum()) - (0 if graded else count_unanswerable(frame))
    return int(reduced.rows.sum()) - (0 if outcomes is None else int(outcomes["n"].sum()))


def spread(frame: Any, metrics: list[Metric], means: pd.DataFrame) -> pd.DataFrame:
    """Return how many rows score in each tenth, and how many have no score, by system where means are."""
    bounded = [metric for metric in metrics if metric.bounded and metric.role == "quality"]
    keys = [name for name in ("system", "metric") if name in means]
    table = histogram(frame, metrics=bounded, by="system" if "system" in means else None)
    return table.merge(means[[*keys, "n_missing", "n_failed", "n_not_applicable"]], on=keys)


def by_document(
    frame: Any, metrics: list[Metric], scenario: Scenario, finish: dict[str, Any]
) -> pd.DataFrame | None:
    """Return the means by document, without the rows that have none."""
    if scenario.doc not in column_names(frame):
        return None
    by = moments(frame, metrics=metrics, by=scenario.doc, doc=scenario.doc, cluster=scenario.cluster)
    means = by.means(**(finish | {"doc_weights": None}))
    named = means.dropna(subset=[scenario.doc], ignore_index=True)
    named.columns = pd.Index(["document", *named.columns[1:]])
    return named if len(named) else None


def by_slice(frame: Any, metrics: list[Metric], scenario: Scenario, finish: dict[str, Any]) -> pd.DataFrame | None:
    """Return the means by the groups of each slice; those nobody asked for only where they are few."""
    have = column_names(frame)
    few = [c for c in _SLICES if c in have and 1 < len(streams.distinct_values(frame, c)) <= _FEW_GROUPS]
    tables = []
    for column in few if scenario.slices is None else scenario.slices:
        by = moments(frame, metrics=metrics, by=column, doc=scenario.doc, cluster=scenario.cluster).means(**finish)
        tables.append(by.rename(columns={column: "group", f"metric_{column}": column}))
        tables[-1].insert(0, "slice", column)
    return pd.concat(tables, ignore_index=True) if tables else None
