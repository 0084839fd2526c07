"""Cells + weights → estimates: every mean, its clustered standard error and the weighted score, as a table."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.errors import RagnbError
from ragnb.schema import ABOUT_COLUMNS, RESULT_COLUMNS, Metric
from ragnb.weights.cells import Cells, Flags
from ragnb.weights.check import refuse_all_zero
from ragnb.weights.columns import Array, Codes

if TYPE_CHECKING:
    from ragnb.weights.reduction import Moments

_LEAST, _VANISHING = 1e-300, 1e-140


@dataclass(frozen=True)
class Plan:
    """How metrics enter the weighted score: Σ coefficient · x over the metrics present, x centred.

    Attributes
    ----------
    weights : (K,) float
        Relative to the largest; 0 for a metric outside the total.
    slopes : (K,) float
        The affine map of a metric into the total: −1 turns a lower-is-better metric round, 1/range rescales.
    centre, low, high : float
        The total's own centre and range; nan low where there is no total.
    least : float
        The least that the total can be: below `low` where a cosine, which enters at its raw value, is negative.
    reason : str
        Why there is no total: a code (``mixed``, ``unbounded``), a colon and its detail; empty where there is one.
    """

    weights: Array
    slopes: Array
    centre: float
    low: float
    high: float
    least: float
    reason: str = ""


def weight_vector(metrics: Sequence[Metric], weights: Mapping[str, float]) -> Array:
    """Return the weight of each metric in the total, 0 for a rate that `weights` does not name.

    Raises
    ------
    RagnbError
        For weights of 0 that leave out every metric that would count.

    Examples
    --------
    >>> weight_vector((Metric("a"), Metric("b", role="rate")), {"a": 2.0})
    array([2., 0.])
    """
    own = [weights.get(m.name, m.weight if m.role == "quality" else 0.0) for m in metrics]
    refuse_all_zero(any(own) or not any(m.weight for m in metrics if m.role == "quality"), "metric_weights")
    return np.array(own, dtype=float)


def relative(weights: Array) -> Array:
    """Return weights over the size of the largest, so that none overflows or vanishes.

    The divisor is the power of two below the largest, which changes no digit.

    Examples
    --------
    >>> relative(np.array([3.0, 0.5, 0.0])).tolist()
    [1.5, 0.25, 0.0]
    """
    largest = float(weights.max(initial=0.0))
    shares: Array = weights / (2.0 ** (np.frexp(largest)[1] - 1) if largest > 0 else 1.0)
    shares[shares < _LEAST] = 0.0  # its inverse would overflow
    return shares


def document_weights(cells: Cells, names: Sequence[str], weights: Mapping[str, float]) -> Array:
    """Return the weight of each document (in order) as `relative` to the largest, last that of rows without one.

    Raises
    ------
    RagnbError
        For weights of 0 that leave out every row.
    """
    own = np.ones(len(names) + 1)
    for name in weights.keys() & set(names if weights else ()):
        own[bisect_left(names, name)] = weights[name]
    used = np.bincount(cells.doc + 1, minlength=len(own)) > 0
    own[~np.roll(used, -1)] = 0.0
    refuse_all_zero(bool(own.any()) or not cells.size, "doc_weights")
    return relative(own)


def plan_total(
    metrics: Sequence[Metric], weights: Array, *, orient: bool, rescale: bool, strict: bool = True
) -> Plan:
    """Lay down how the metrics add up, or say why they do not.

    Raises
    ------
    RagnbError
        With `strict`, for metrics of different ranges (1–10 and 0–1 are never added up), and for a
        lower-is-better metric without a finite range.

    Examples
    --------
    >>> plan_total([Metric("a"), Metric("b")], np.ones(2), orient=True, rescale=False).centre
    0.5
    """
    used = [m for m, w in zip(metrics, weights, strict=True) if w > 0]
    lower = np.array([orient and m.better == "lower" for m in metrics], dtype=bool)
    spans = {(0.0, 1.0) if rescale and m.bounded else m.scale for m in used}
    why, reason = "", ""
    if len(spans) > 1:
        listed = ", ".join(f"{m.name} {m.low:g}..{m.high:g}" for m in used)
        reason = f"mixed: {listed}"
        why = f"metrics of different ranges are never added up ({listed}); select metrics, or pass rescale=True"
    for metric in used:
        if orient and metric.better == "lower" and not metric.bounded:
            reason = f"unbounded: {metric.name}"
            why = f"{metric.name!r} is lower-is-better and has no finite range; declare one, or orient=False"
    if why and strict:
        raise RagnbError(why)
    low, high = next(iter(spans)) if len(spans) == 1 and not why else (np.nan, np.nan)
    least = min([low, *(m.low for m in used if m.scale[0] != m.low)])
    width = np.array([m.scale[1] - m.scale[0] if rescale and m.bounded else 1.0 for m in metrics], dtype=float)
    slopes = np.where(lower, -1.0, 1.0) / width
    centre = (low + high) / 2 if np.isfinite(low) and np.isfinite(high) else 0.0
    shares = np.zeros(len(metrics)) if why else relative(weights)
    return Plan(shares, slopes, centre, low, high, least, reason)


@dataclass(frozen=True)
class Estimates:
    """One array per statistic, groups × (metrics, then the weighted score)."""

    value: Array
    low: Array
    high: Array
    se: Array
    n: Array
    n_clusters: Array
    g_eff: Array
    n_eff: Array
    top_share: Array
    top_cluster: Codes


def finish(
    cells: Cells, groups: int, metrics: Sequence[Metric], plan: Plan, doc_weight: Array, level: float
) -> Estimates:
    """Return the estimates of all groups for one set of weights.

    Parameters
    ----------
    cells : Cells
        Sorted by group, then cluster.
    doc_weight : (D + 1,) float
        The weight of each document, last the weight of rows without one.

    Notes
    -----
    With a_g = Σ v over a cluster's scored rows, A = Σ a_g, θ = Σ v s / A and u_g = Σ v (s − θ), the variance is
    (G−1)/G · Σ (u_g / (1 − a_g/A))² / A².
    """
    sums, counts, squares = cell_columns(cells, plan)
    v = _spread_weights(doc_weight[cells.doc][:, None], counts, cells.group, groups)
    changes = (np.diff(cells.group) != 0) | (np.diff(cells.cluster) != 0)
    starts = np.flatnonzero(np.append(True, changes))[: cells.size]
    weights = v * counts
    a, s, a2, n = (np.add.reduceat(x, starts, axis=0) for x in (weights, v * sums, v * weights, counts))
    group, cluster = cells.group[starts], cells.cluster[starts]
    first, empty = _runs(group, groups)
    total = _by(a, first, empty)
    usable = total > 0
    inverse = np.divide(1.0, total, out=np.zeros_like(total), where=usable)
    theta = np.divide(_by(s, first, empty), total, out=np.zeros_like(total), where=usable)
    n_eff = stats.kish(total, _by(a2, first, empty))
    known, alone = cluster >= 0, cells.cluster < 0
    own, one, rows = cells.group[alone], v[alone], counts[alone]
    (h, rest), (h1, rest1) = (_parts(a[known], inverse[group[known]]), _parts(one, inverse[own]))
    inflated = ((s - theta[group] * a)[known] / rest) ** 2
    squared = one**2 * _spread(sums[alone], rows, squares, theta[own]) / rest1**2
    several, single = _runs(group[known], groups), _runs(own, groups)
    pairs = [(a[known] > 0, rows * (one > 0)), (h**2, rows * h1**2), (inflated, squared)]
    g, h2, inflated = (_by(x.astype(float), *several) + _by(y, *single) for x, y in pairs)
    share = _by(h, *several, np.maximum)
    where = np.full(share.shape, -1)
    row, column = np.nonzero((h == share[group[known]]) & (h > 0))
    where[group[known][row], column] = cluster[known][row]
    se = stats.jackknife_se(total, g, inflated)
    mid = np.append(cells.centre, total_centre(cells, plan))
    value = np.where(usable, theta + mid, np.nan)
    g_eff = np.divide(1.0, h2, out=np.zeros_like(h2), where=h2 > 0)
    ranges = np.array([[m.low, m.high] for m in metrics] + [[plan.least, plan.high]])
    binary = np.array([m.kind == "binary" for m in metrics] + [False])
    low, high = stats.mean_interval(
        value, se, g_eff, n_eff, (ranges[:, 0], ranges[:, 1]), binary=binary, level=level
    )
    endless = ~np.isfinite(ranges).all(axis=1)
    alike = endless & ~(se > np.finfo(float).eps * np.abs(value))  # no range, no spread: nothing gives a width
    low, high = (np.where(alike, np.nan, end) for end in (low, high))
    return Estimates(value, low, high, se, _by(n, first, empty), g, g_eff, n_eff, share, where)


def _spread_weights(v: Array, counts: Array, group: Codes, groups: int) -> Array:
    """Return document weights as shares of the largest in each mean, where squares of theirs would vanish."""
    if not len(v) or v[v > 0].min(initial=np.inf) > _VANISHING:
        return v
    there = np.where(counts > 0, v, 0.0)
    largest = _by(there, *_runs(group, groups), np.maximum)[group]
    return np.divide(there, largest, out=np.zeros_like(there), where=largest > 0)


def cell_columns(cells: Cells, plan: Plan) -> tuple[Array, Array, Array]:
    """Return Σx, n and (for rows that are clusters) Σx² of every metric and, last, of the weighted score.

    Examples
    --------
    >>> code, one = np.array([0]), np.ones((1, 1))
    >>> cells = Cells(code, code, code, one > 0, np.array([4.0]), one, np.empty((0, 1, 1)), np.array([0.5]))
    >>> plan = plan_total([Metric("a")], np.ones(1), orient=True, rescale=False)
    >>> [part.tolist() for part in cell_columns(cells, plan)]
    [[[1.0, 1.0]], [[4.0, 4.0]], []]
    """
    width = len(plan.weights)
    sums, counts = np.empty((2, cells.size, width + 1))
    there = cells.present.astype(float)
    scale = there @ plan.weights
    share = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    sums[:, :width], sums[:, width] = cells.sums, cells.sums @ (plan.weights * plan.slopes) * share
    np.multiply(there, cells.n[:, None], out=counts[:, :width])
    np.multiply(scale > 0, cells.n, out=counts[:, width])
    moved = np.zeros(cells.size)
    if plan.weights.any() and not np.isfinite(plan.high - plan.low):  # metrics then have centres of their own
        moved = (scale > 0) * ((there @ (plan.weights * cells.centre)) * share - total_centre(cells, plan))
        sums[:, width] += cells.n * moved
    single = cells.cluster < 0 if len(cells.cross) else slice(0)
    inner = there[single] * (plan.weights * plan.slopes) * share[single, None]
    own = np.einsum("ckk->ck", cells.cross)
    total = np.einsum("ci,cij,cj->c", inner, cells.cross, inner)
    total += moved[single] * (2 * sums[single, width] - cells.n[single] * moved[single])
    return sums, counts, np.column_stack([own, total])


def total_centre(cells: Cells, plan: Plan) -> float:
    """Return what the weighted score is centred on: the middle of its range, else that of its metrics."""
    if not plan.weights.any() or np.isfinite(plan.high - plan.low):
        return plan.centre
    return float(plan.weights @ cells.centre / plan.weights.sum())


def _by(x: Array, first: Codes, empty: Flags, how: np.ufunc = np.add) -> Array:
    """Reduce runs of rows, sums by default; a run that is empty gives 0."""
    padded = np.vstack([x, np.zeros((1, x.shape[1]))])  # else the end of the last run could not be named
    reduced: Array = how.reduceat(padded, first, axis=0)
    reduced[empty] = 0.0
    return reduced


def _runs(group: Codes, groups: int) -> tuple[Codes, Flags]:
    """Where each group's run begins in sorted codes, and which groups have none."""
    first = np.searchsorted(group, np.arange(groups))
    return first, np.searchsorted(group, np.arange(groups), side="right") == first


def _parts(weight: Array, inverse: Array) -> tuple[Array, Array]:
    """The share h of each cluster, and what is left without it."""
    h = weight * inverse
    return h, np.where(h < 1, 1 - h, 1.0)


def _spread(sums: Array, n: Array, squares: Array, centre: Array) -> Array:
    """Σ(x − centre)² of rows that are clusters of their own, from their Σx and Σx²."""
    found = squares - 2 * centre * sums + centre**2 * n
    found[found < 1e-13 * (squares + centre**2 * n)] = 0.0  # what cancellation leaves of values all alike
    return found


def shares(present: Flags, weights: Array) -> Array:
    """Return each metric's part of the total of rows with these gaps: rows add up to 1, or to 0 without a total.

    Examples
    --------
    >>> shares(np.array([[True, True], [True, False]]), np.array([1.0, 3.0])).tolist()
    [[0.25, 0.75], [1.0, 0.0]]
    """
    weight = present * weights
    scale = weight.sum(axis=1, keepdims=True)
    share: Array = np.divide(weight, scale, out=np.zeros_like(weight), where=scale > 0)
    return share


def intercepts(metrics: Sequence[Metric], slopes: Array, *, rescale: bool) -> Array:
    """Return what turning and rescaling add to each metric on its way into the total.

    Examples
    --------
    >>> intercepts([Metric("a"), Metric("b")], np.array([-1.0, -1.0]), rescale=False).tolist()
    [1.0, 1.0]
    """
    turned = np.array([sum(m.scale) if s < 0 else 0.0 for m, s in zip(metrics, slopes, strict=True)])
    moved = np.array([m.scale[0] if rescale and m.bounded else 0.0 for m in metrics])
    found: Array = np.where(turned != 0, turned * np.abs(slopes) - moved * np.abs(slopes), -moved * slopes)
    return found


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
