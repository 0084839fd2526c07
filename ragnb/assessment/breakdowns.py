"""The parts of a run: by document, by slice, by tenths of each metric, and what has no score at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from ragnb.inputs import streams
from ragnb.scenario import Scenario
from ragnb.traces import count_unanswerable
from ragnb.weights import Moments, Weighing, column_names, need_columns

_SLICES, _FEW_GROUPS = ("kind", "language"), 12


def unscored(frame: Any, reduced: Moments, outcomes: pd.DataFrame | None) -> int:
    """Return how many rows have no score of quality though one applies; of traces without any metric, no label."""
    quality = [k for k, metric in enumerate(reduced.metrics) if metric.role == "quality"]
    if quality:
        alone = ~reduced.cells.present[:, quality].any(axis=1)
        graded = any(reduced.metrics[k].grades_refusals for k in quality)
        return int(reduced.cells.n[alone].sum()) - (0 if graded else count_unanswerable(frame))
    return int(reduced.rows.sum()) - (0 if outcomes is None else int(outcomes["n"].sum()))


def spread(table: pd.DataFrame, means: pd.DataFrame) -> pd.DataFrame:
    """Return how many rows score in each tenth, and how many have no score."""
    return table.merge(means[["metric", "n_missing", "n_failed", "n_not_applicable"]], on="metric")


def by_document(found: Sequence[Moments], weighing: Weighing) -> pd.DataFrame | None:
    """Return the means by document, without the rows that have none."""
    for one in found:
        means = replace(weighing, doc_weights=None).means(one)
        named = means.dropna(subset=[one.by], ignore_index=True)
        named.columns = pd.Index(["document", *named.columns[1:]])
        return named if len(named) else None
    return None


def slices_of(frame: Any, scenario: Scenario) -> Sequence[str]:
    """Return the columns of the slices; those nobody asked for only where their groups are few."""
    have = column_names(frame)
    if scenario.slices is not None:
        need_columns(have, *scenario.slices)
        return scenario.slices
    return [c for c in _SLICES if c in have and 1 < len(streams.distinct_values(frame, c)) <= _FEW_GROUPS]


def by_slice(found: Sequence[Moments], weighing: Weighing) -> pd.DataFrame | None:
    """Return the means by the groups of each slice."""
    tables = []
    for one in found:
        by = str(one.by)
        tables.append(weighing.means(one).rename(columns={by: "group", f"metric_{by}": by}))
        tables[-1].insert(0, "slice", by)
    return pd.concat(tables, ignore_index=True) if tables else None
