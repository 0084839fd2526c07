"""Estimates → the frame that users see."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragnb.schema import RESULT_COLUMNS
from ragnb.weights.cells import Flags
from ragnb.weights.columns import Array
from ragnb.weights.finish import Estimates, Plan

if TYPE_CHECKING:
    from ragnb.weights.reduced import Moments


class _Shared:
    """What pandas would copy deeply at every step of work on a table, and nobody changes."""

    def __deepcopy__(self, memo: object) -> Any:
        return self


class _Mapping(_Shared, dict[str, Any]):
    pass


class _List(_Shared, list[Any]):
    pass


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
    table.attrs = _about(source, found, plan)
    return table


def _about(source: Moments, found: Estimates, plan: Plan) -> dict[Hashable | None, Any]:
    """What the columns do not hold: ranges, directions, and how the weight lies on the clusters."""
    names = dict(enumerate(source.clusters))
    tops = zip(found.top_share.ravel().tolist(), found.top_cluster.ravel().tolist(), strict=True)
    ranges = {m.name: (m.low, m.high) for m in source.metrics} | {"weighted_score": (plan.low, plan.high)}
    return {
        "ranges": _Mapping(ranges),
        "better": _Mapping({m.name: m.better for m in source.metrics} | {"weighted_score": "higher"}),
        "rates": _List(m.name for m in source.metrics if m.role == "rate"),
        "why_no_total": plan.why_not,
        "no_total": plan.reason,
        "clusters": source.unit,
        "g_eff": _List(found.g_eff.ravel().tolist()),
        "top": _List({"share": share, "name": names.get(code, "")} for share, code in tops),
    }


def _in_total(source: Moments, weights: Array) -> Flags:
    return np.array([m.role == "quality" for m in source.metrics], dtype=bool) | (weights > 0)


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
