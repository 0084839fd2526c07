"""The table of means from moments, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.errors import RagnbError
from ragnb.stats import sums_by
from ragnb.weights.cells import Cells, Counts, add_up
from ragnb.weights.columns import Codes
from ragnb.weights.total import (
    Array,
    Total,
    check_weights,
    document_weights,
    total_of,
)

if TYPE_CHECKING:
    from ragnb.weights.moments import Moments

_MANY = 60  # documents: with more, those that could have failed unseen change little


@dataclass(frozen=True)
class Units:
    """Resampling units of bootstrap and jackknife: clusters, and the cells of single rows, by group.

    Attributes
    ----------
    group, cluster : (U,) int
        The cluster −1 of rows that are clusters of their own.
    size : (U, 1) float
        How many a unit represents: 1, or the rows of the cell.
    weight, sum, variance : (U, K + 1) float
        Σv, Σvx and Var(vx) of one of them, of every metric and, last, of the weighted score.
    """

    group: Codes
    cluster: Codes
    size: Array
    weight: Array
    sum: Array
    variance: Array

    @classmethod
    def of(cls, cells: Cells, v: Array, columns: tuple[Array, Array, Array]) -> Units:
        """Return the units of cells, which are sorted by group, then cluster."""
        sums, counts, squares = columns
        alone = cells.cluster < 0
        shared = cells.shared
        changes = (np.diff(cells.group) != 0) | (np.diff(cells.cluster) != 0) | alone[1:]
        starts = np.flatnonzero(np.append(True, changes))[: cells.size]
        size = np.where(alone, cells.n, 1.0)[starts, None]
        weight, total = (
            np.add.reduceat(part, starts, axis=0) / size for part in (v * counts, v * sums)
        )
        variance = np.zeros_like(total)
        n = cells.n[shared, None]
        spread = squares - sums[shared] ** 2 / n
        spread[spread < 1e-13 * squares] = 0.0  # rounding error of identical values
        variance[shared[starts]] = v[shared] ** 2 * spread / n
        return cls(cells.group[starts], cells.cluster[starts], size, weight, total, variance)


def cell_columns(cells: Cells, total: Total) -> tuple[Array, Array, Array]:
    """Return Σx, n and (of shared cells) Σx² of every metric and, last, of the weighted score.

    Examples
    --------
    >>> from ragnb.schema import Metric
    >>> from ragnb.weights.cells import Cells
    >>> from ragnb.weights.total import total_of
    >>> code, one = np.array([0]), np.ones((1, 1))
    >>> cells = Cells(code, code, code, one > 0, np.array([4.0]), one, one[:0, None], np.array([0.5]), one[0])
    >>> [part.tolist() for part in cell_columns(cells, total_of([Metric("a")], None))]
    [[[1.0, 1.0]], [[4.0, 4.0]], []]
    """
    there = cells.present.astype(float)
    n = cells.n
    scale = there @ total.weights
    share = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    score = cells.sums @ (total.weights * total.slopes) * share
    moved = np.zeros(cells.size)
    if total.weights.any() and not total.is_centred(cells.centre):
        own = total.weights * total.mapped(cells.centre)
        moved = (scale > 0) * ((there @ own) * share - total.centre(cells.centre))
        score += n * moved
    several = cells.shared
    inner = there[several] * (total.weights * total.slopes) * share[several, None]
    squares = np.einsum("ci,cij,cj->c", inner, cells.cross, inner)
    squares += moved[several] * (2 * score[several] - n[several] * moved[several])
    counts = np.column_stack([there, scale > 0]) * n[:, None]
    of_metrics = np.einsum("ckk->ck", cells.cross)
    return np.column_stack([cells.sums, score]), counts, np.column_stack([of_metrics, squares])


def _by(group: Codes, groups: int) -> Callable[..., Array]:
    """Return the function that reduces rows to their groups, sums by default; one without rows gives 0."""
    first, end = (
        np.searchsorted(group, np.arange(groups), side=side) for side in ("left", "right")
    )
    there = first < end

    def reduce(x: Array, how: np.ufunc = np.add) -> Array:
        reduced: Array = np.zeros((groups, x.shape[1]))
        reduced[there] = how.reduceat(x, first[there], axis=0)
        return reduced

    return reduce


def means_table(
    source: Moments,
    metric_weights: Mapping[str, float] | None,
    doc_weights: Mapping[str, float] | None,
    level: float,
    **how: bool,
) -> tuple[pd.DataFrame, Units, Total]:
    """Return the frame of `weighted_means` for one set of weights, the units behind its intervals, and the total.

    Raises
    ------
    RagnbError
        As `total_of`, and for weights of 0 that leave out every row.

    Notes
    -----
    With a_g = Σ v over a cluster's scored rows, A = Σ a_g, θ = Σ v s / A and u_g = Σ v (s − θ), the variance is
    (G−1)/G · Σ (u_g / (1 − a_g/A))² / A².
    """
    if not 0 < level < 1:
        raise RagnbError(f"level={level!r} must lie between 0 and 1, such as 0.95")
    complete = source.corpus == "complete"
    groups = len(source.rows)
    doc = source.cells.doc
    total = total_of(source.metrics, metric_weights, **how)
    each = document_weights(check_weights(doc_weights, "doc_weights"), source.docs, doc)
    each[-1] *= (doc < 0).any()  # what no row has is no measure of the others
    doc_weight = stats.relative(each)
    if complete:
        cells = source.by_document().cells
    else:
        cells = source.cells
    columns = cell_columns(cells, total)
    v = (doc_weight[cells.doc] * cells.weight)[:, None]
    counts = columns[1]
    of_cells = _by(cells.group, groups)
    if len(v) and v[v > 0].min(initial=np.inf) <= stats.LOST_IN_ROUNDING * v.max():
        there = np.where(counts > 0, v, 0.0)
        largest = of_cells(there, np.maximum)[cells.group]
        v = np.divide(there, largest, out=np.zeros_like(there), where=largest > 0)
        v[v <= stats.LOST_IN_ROUNDING] = 0.0
    units = Units.of(cells, v, columns)
    by = _by(units.group, groups)
    group = units.group
    size = units.size
    scored = units.weight > 0
    mass = by(size * units.weight)
    summed = by(size * units.sum)
    n_clusters = by(size * scored)
    inverse, theta = (
        np.divide(x, mass, out=np.zeros_like(mass), where=mass > 0) for x in (1.0, summed)
    )
    h = units.weight * inverse[group]
    squared = ((units.sum - theta[group] * units.weight) ** 2 + units.variance) / np.where(
        h < 1, 1 - h, 1.0
    ) ** 2
    se = stats.jackknife_se(mass, n_clusters, by(size * squared))
    h2 = by(size * h**2)
    h4 = by(size * h**4)
    middles = np.append(cells.centre, total.centre(cells.centre))
    value = np.where(mass > 0, theta + middles, np.nan)
    g_eff = np.divide(1.0, h2, out=np.zeros_like(h2), where=h2 > 0)
    n_eff = stats.kish(mass, of_cells(v**2 * counts))
    n = of_cells(counts).astype(np.int64)
    whole = SimpleNamespace(
        name="weighted_score",
        low=total.low,
        high=total.high,
        better="higher",
        kind="continuous",
        role="total",
    )
    about: dict[str, Any] = {
        name: np.array([getattr(column, name) for column in (*source.metrics, whole)], dtype=object)
        for name in vars(whole)
    }
    least, high = (about[end].astype(float) for end in ("low", "high"))
    low = np.append(least[:-1], total.least)
    interval = partial(
        stats.mean_interval, value, g_eff=g_eff, n_kish=n_eff, ranges=(low, high), level=level
    )
    at_ends = _of_columns(source, total)
    elsewhere = n - at_ends.max(axis=2)
    binary = (at_ends.sum(axis=2) >= n) & (n > 0)
    ends = interval(se, binary=binary, sum_h4=h4, elsewhere=(elsewhere, n))
    df = g_eff - 1
    unit, (low_if, unseen) = (
        np.full(value.shape, source.unit, dtype=object),
        np.full((2, *value.shape), np.nan),
    )
    if complete:
        inner_se, inner_df, questions = _within_documents(source, total, doc_weight, mass)
        enough = np.isfinite(inner_se) & np.isfinite(value)
        inside = interval(inner_se, df=inner_df)
        ends = np.where(enough, inside[0], ends[0]), np.where(enough, inside[1], ends[1])
        se = np.where(enough, inner_se, se)
        df = np.where(enough, inner_df, df)
        n_clusters, unit[~enough] = np.where(enough, questions, n_clusters), "document"
    elif source.unit == "document" and (few := g_eff < _MANY - 1e-9).any():
        of_unit = np.divide(units.sum, units.weight, out=np.zeros_like(h), where=scored) + middles
        bad, good = np.where(about["better"] == "lower", (high, low), (low, high))
        with np.errstate(
            invalid="ignore"
        ):  # without a finite range a document cannot fail entirely
            worst = by(np.where(scored, (good - of_unit) / (good - bad), 0.0), np.maximum)
            lowest = np.minimum(*((end - bad) / (good - bad) for end in ends))
            few &= 1 - worst > (value - bad) / (good - bad) / 2 + 1e-9  # no document failed
            of_documents = (units.cluster >= 0) & (units.cluster < len(source.docs))
            few &= np.isfinite(lowest) & (n_clusters == by(of_documents[:, None] & scored))
            floor, share_unseen = stats.unseen_failures(
                lowest, np.maximum(g_eff, 1.0), alpha=1 - level
            )
            shown = few & (n_eff > (3 - 1e-9) * g_eff)
            low_if, unseen = np.where(shown, (bad + (good - bad) * floor, share_unseen), np.nan)
    alike = ~np.isfinite(high - low) & ~(
        se > np.finfo(float).eps * np.abs(value)
    )  # nothing gives a width
    # Only a cluster with most of the weight is worth a note, and none where questions are the units.
    row, column = np.nonzero((h > 0.5 + 1e-9) & (units.cluster >= 0)[:, None] & (not complete))
    top = np.full(value.shape, -1)
    top_share = np.full(value.shape, np.nan)
    top[group[row], column], top_share[group[row], column] = units.cluster[row], h[row, column]
    failed, absent = np.pad(source.counts, ((0, 0), (0, 1), (0, 0))).transpose(2, 0, 1)
    given = np.append(
        np.where((about["role"][:-1] == "quality") | (total.given > 0), total.given, np.nan), np.nan
    )
    made: dict[str, Any] = {
        "metric": about["name"],
        "weight": given,
        "value": value,
        "low": np.where(alike, np.nan, ends[0]),
        "high": np.where(alike, np.nan, ends[1]),
        "se": se,
        "n": n,
        "n_missing": source.rows[:, None] - n - failed - absent,
        "n_failed": failed,
        "n_not_applicable": absent,
        "n_clusters": n_clusters.astype(np.int64),
        "n_eff": n_eff,
        "df": df,
        "cluster_unit": unit,
        "range_low": least,
        "range_high": high,
        "better": about["better"],
        "kind": about["kind"],
        "role": about["role"],
        "level": level,
        "low_if": low_if,
        "share_unseen": unseen,
        "top_share": top_share,
        "top_cluster": np.array([*source.clusters, ""], dtype=object)[top],
        "reason": np.array([""] * len(source.metrics) + [total.reason], dtype=object),
    }
    # What is told of a metric holds in every group.
    table = pd.DataFrame({name: np.broadcast_to(made[name], value.shape).ravel() for name in made})
    if source.by is not None:
        table = table.rename(columns={source.by: f"metric_{source.by}"})
        table.insert(0, source.by, np.repeat(np.array(source.groups, dtype=object), value.shape[1]))
    return table, units, total


def _of_columns(source: Moments, total: Total) -> Counts:
    """Return how many scores of each metric and, last, of the total are at their bad and at their good end.

    Of a total of some metrics at most as many rows as of each of them: with fewer, its interval is no narrower.
    """
    found = source.at_ends.copy()
    used = np.flatnonzero(total.weights)
    quality = [k for k, metric in enumerate(source.metrics) if metric.role == "quality"]
    if len(used) and set(used) != set(quality):
        found[:, -1] = found[:, used].min(axis=1)
    return found


def _within_documents(
    source: Moments, total: Total, doc_weight: Array, mass: Array
) -> tuple[Array, ...]:
    """Return se, degrees of freedom and n for a complete corpus of documents, groups × columns.

    Repeats are averaged by question first. Where they are uneven, a document's variance rises by N Σr²/(Σr)².
    """
    cells = source.cells
    cells = add_up(cells, cells.group * len(doc_weight) + cells.doc + 1, cells.doc, cells.cluster)
    units = Units.of(cells, np.ones((cells.size, 1)), cell_columns(cells, total))
    strata, code = np.unique(units.group, return_inverse=True)
    r = units.weight
    mean = np.divide(units.sum, r, out=np.zeros_like(r), where=r > 0)
    of_questions = (r > 0, mean, mean**2 + units.variance, r, r**2)
    n, first, second, rows, rows2 = (sums_by(code, units.size * part) for part in of_questions)
    ones = np.where(n > 0, n, 1.0)
    left = second - first**2 / ones
    left[left < 1e-13 * second] = 0.0  # rounding error of identical values
    group, document = np.divmod(strata, len(doc_weight))
    ends = np.searchsorted(group, np.arange(len(mass) + 1))
    inverse = np.divide(1.0, mass, out=np.zeros_like(mass), where=mass > 0)
    share = np.roll(doc_weight, 1)[document][:, None] * rows * inverse[group]
    uneven = ones * rows2 / np.where(rows > 0, rows, 1.0) ** 2
    found = []
    for own in map(slice, ends, ends[1:]):
        se, df = stats.stratified_se(share[own], n[own], left[own], uneven[own])
        found.append((se, df, np.where(share[own] > 0, n[own], 0.0).sum(axis=0)))
    return tuple(np.array(part) for part in zip(*found, strict=True))
