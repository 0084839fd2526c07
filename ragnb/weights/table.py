"""Estimates → the frame that users see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ragnb.schema import ABOUT_COLUMNS, RESULT_COLUMNS
from ragnb.weights.columns import Array
from ragnb.weights.finish import Estimates, Plan

if TYPE_CHECKING:
    from ragnb.weights.reduced import Moments


def result_table(source: Moments, found: Estimates, plan: Plan, weights: Array, level: float) -> pd.DataFrame:
    """Return the frame of `weighted_means`; all that later functions need is a column."""
    names = [*(m.name for m in source.metrics), "weighted_score"]
    groups, width = found.value.shape
    counted = np.array([m.role == "quality" for m in source.metrics], dtype=bool) | (weights > 0)
    shown = np.append(np.where(counted, weights, np.nan), np.nan)
    n = found.n.astype(np.int64)
    failed, absent = np.pad(source.counts, ((0, 0), (0, 1), (0, 0))).transpose(2, 0, 1)
    named = np.array([*source.clusters, ""], dtype=object)
    # Only a cluster that carries most of the weight is news; rows of their own have codes beyond the names.
    news = (found.top_share > 0.5 + 1e-9) & (found.top_cluster < len(source.clusters))
    top = np.where(news, found.top_cluster, -1)
    columns = {
        "metric": np.tile(np.array(names, dtype=object), groups),
        "weight": np.tile(shown, groups),
        **{name: getattr(found, name) for name in ("value", "low", "high", "se", "n_eff")},
        "n": n,
        "n_missing": source.rows[:, None] - n - failed - absent,
        "n_failed": failed,
        "n_not_applicable": absent,
        "n_clusters": found.n_clusters.astype(np.int64),
        "df": found.g_eff - 1,
        "cluster_unit": np.full(n.size, source.unit, dtype=object),
        "range_low": np.tile([*(m.low for m in source.metrics), plan.low], groups),
        "range_high": np.tile([*(m.high for m in source.metrics), plan.high], groups),
        "level": np.full(n.size, level),
        "top_share": np.where(top >= 0, found.top_share, np.nan),
        "top_cluster": named[top],
    }
    about = {"better": "higher", "kind": "continuous", "role": "total", "reason": plan.reason}
    for name, total in about.items():
        own = [getattr(metric, name, "") for metric in source.metrics]
        columns[name] = np.tile(np.array([*own, total], dtype=object), groups)
    table = pd.DataFrame({name: columns[name].ravel() for name in (*RESULT_COLUMNS, *ABOUT_COLUMNS)})
    if source.by is not None:
        table = table.rename(columns={source.by: f"metric_{source.by}"})
        table.insert(0, source.by, np.repeat(np.array(source.groups, dtype=object), width))
    return table


def plain_sums(found: Moments) -> Array:
    """Return Σx of the scores as they are, groups × metrics, without any weight.

    Examples
    --------
    >>> from ragnb.weights import moments
    >>> plain_sums(moments(pd.DataFrame({"faithfulness": [1.0, 0.25, None]}))).tolist()
    [[1.25]]
    """
    c = found.cells
    own = c.sums + c.n[:, None] * c.present * c.centre
    sums: Array = np.zeros((len(found.rows), own.shape[1]))
    np.add.at(sums, c.group, own)
    return sums
