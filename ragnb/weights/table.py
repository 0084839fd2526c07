"""Estimates → the frame that users see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ragnb.schema import RESULT_COLUMNS
from ragnb.weights.cells import Flags
from ragnb.weights.columns import Array
from ragnb.weights.finish import Estimates, Plan

if TYPE_CHECKING:
    from ragnb.weights.moments import Moments


def result_table(source: Moments, found: Estimates, plan: Plan, weights: Array) -> pd.DataFrame:
    """Return the frame of `weighted_means`, its ranges, directions and cluster shares in ``attrs``."""
    names = [*(m.name for m in source.metrics), "weighted_score"]
    groups, width = found.value.shape
    shown = np.append(np.where(weights > 0, weights, np.where(_in_total(source, weights), 0.0, np.nan)), np.nan)
    n = found.n.astype(np.int64)
    zero = np.zeros((groups, 1), dtype=np.int64)
    failed = np.hstack([source.counts[:, :, 0], zero])
    absent = np.hstack([source.counts[:, :, 1], zero])
    columns = {
        "metric": np.tile(np.array(names, dtype=object), groups),
        "weight": np.tile(shown, groups),
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "se": found.se,
        "n": n,
        "n_missing": source.rows[:, None] - n - failed - absent,
        "n_failed": failed,
        "n_not_applicable": absent,
        "n_clusters": found.n_clusters.astype(np.int64),
        "n_eff": found.n_eff,
    }
    table = pd.DataFrame({name: columns[name].ravel() for name in RESULT_COLUMNS})
    if source.by is not None:
        table.insert(0, source.by, np.repeat(np.array(source.groups, dtype=object), width))
    table.attrs = {
        "ranges": {m.name: (m.low, m.high) for m in source.metrics} | {"weighted_score": (plan.low, plan.high)},
        "better": {m.name: m.better for m in source.metrics} | {"weighted_score": "higher"},
        "why_no_total": plan.why_not,
        "clusters": "document"
        if source.doc_clusters and source.clusters
        else "row"
        if not source.clusters
        else "cluster",
        "g_eff": found.g_eff.ravel().tolist(),
        "top": [
            {"share": float(s), "name": source.clusters[c] if 0 <= c < len(source.clusters) else ""}
            for s, c in zip(found.top_share.ravel(), found.top_cluster.ravel(), strict=True)
        ],
    }
    return table


def _in_total(source: Moments, weights: Array) -> Flags:
    return np.array([m.role == "quality" for m in source.metrics], dtype=bool) | (weights > 0)
