"""Cells + weights → estimates: every mean, its clustered standard error and the weighted score, as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.errors import RagnbError
from ragnb.schema import ABOUT_COLUMNS, RESULT_COLUMNS
from ragnb.stats.estimates import sums_by
from ragnb.weights.columns import Array, Codes
from ragnb.weights.total import Total, check_weights, refuse_all_zero, relative, total_of, warn_unused

if TYPE_CHECKING:
    from ragnb.weights.cells import Cells, Moments

_VANISHING, _FEWEST = 1e-140, 100
_MANY = 60  # documents: with more, those that could have failed unseen change little


def checked_weights(
    source: Moments,
    metric_weights: Mapping[str, float] | None,
    doc_weights: Mapping[str, float] | None,
    **how: bool,
) -> tuple[Total, Array]:
    """Return the total, and the weight of each document (in order), last that of rows without one.

    Weights of documents are `relative` to the largest.

    Raises
    ------
    RagnbError
        As `total_of`, and for weights of 0 that leave out every row.
    """
    total, checked = total_of(source.metrics, metric_weights, **how), check_weights(doc_weights, "doc_weights")
    warn_unused(checked, source.docs, "doc_weights")
    weights = np.array([*(checked.get(name, 1.0) for name in source.docs), 1.0])
    used = np.bincount(source.cells.doc + 1, minlength=len(weights)) > 0
    weights[~np.roll(used, -1)] = 0.0
    refuse_all_zero(bool(weights.any()) or not source.cells.size, "doc_weights")
    return total, relative(weights)


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
        changes = (np.diff(cells.group) != 0) | (np.diff(cells.cluster) != 0) | alone[1:]
        starts = np.flatnonzero(np.append(True, changes))[: cells.size]
        size = np.where(alone, cells.n, 1.0)[starts, None]
        weight, total = (np.add.reduceat(part, starts, axis=0) / size for part in (v * counts, v * sums))
        variance = np.zeros_like(total)
        if alone.any():
            n, single = cells.n[alone, None], alone[starts]
            spread = squares - sums[alone] ** 2 / n
            spread[spread < 1e-13 * squares] = 0.0  # rounding error of identical values
            variance[single] = v[alone] ** 2 * spread / n
        return cls(cells.group[starts], cells.cluster[starts], size, weight, total, variance)


def cell_columns(cells: Cells, total: Total) -> tuple[Array, Array, Array]:
    """Return Σx, n and (for rows that are clusters) Σx² of every metric and, last, of the weighted score.

    Examples
    --------
    >>> from ragnb.schema import Metric
    >>> from ragnb.weights.cells import Cells
    >>> from ragnb.weights.total import total_of
    >>> code, one = np.array([0]), np.ones((1, 1))
    >>> cells = Cells(code, code, code, one > 0, np.array([4.0]), one, np.empty((0, 1, 1)), np.array([0.5]))
    >>> [part.tolist() for part in cell_columns(cells, total_of([Metric("a")], None))]
    [[[1.0, 1.0]], [[4.0, 4.0]], []]
    """
    there, n = cells.present.astype(float), cells.n
    scale = there @ total.weights
    share = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    score, moved = cells.sums @ (total.weights * total.slopes) * share, np.zeros(cells.size)
    if total.weights.any() and not np.isfinite(total.high - total.low):  # metrics then have centres of their own
        moved = (scale > 0) * ((there @ (total.weights * cells.centre)) * share - total.centre(cells.centre))
        score += n * moved
    single = cells.cluster < 0 if len(cells.cross) else slice(0)
    inner = there[single] * (total.weights * total.slopes) * share[single, None]
    squares = np.einsum("ci,cij,cj->c", inner, cells.cross, inner)
    squares += moved[single] * (2 * score[single] - n[single] * moved[single])
    counts, of_metrics = np.column_stack([there, scale > 0]) * n[:, None], np.einsum("ckk->ck", cells.cross)
    return np.column_stack([cells.sums, score]), counts, np.column_stack([of_metrics, squares])


def _by(group: Codes, groups: int) -> Callable[..., Array]:
    """Return the function that reduces rows to their groups, sums by default; one without rows gives 0."""
    first = np.searchsorted(group, np.arange(groups))
    empty = np.searchsorted(group, np.arange(groups), side="right") == first

    def reduce(x: Array, how: np.ufunc = np.add) -> Array:
        # Without a row more the end of the last run could not be named.
        reduced: Array = how.reduceat(np.vstack([x, np.zeros((1, x.shape[1]))]), first, axis=0)
        reduced[empty] = 0.0
        return reduced

    return reduce


def means_table(source: Moments, total: Total, doc_weight: Array, level: float) -> tuple[pd.DataFrame, Units]:
    """Return the frame of `weighted_means` for one set of weights, and the units behind its intervals.

    Parameters
    ----------
    doc_weight : (D + 1,) float
        The weight of each document, last the weight of rows without one.

    Notes
    -----
    With a_g = Σ v over a cluster's scored rows, A = Σ a_g, θ = Σ v s / A and u_g = Σ v (s − θ), the variance is
    (G−1)/G · Σ (u_g / (1 − a_g/A))² / A².
    """
    if not 0 < level < 1:
        raise RagnbError(f"level={level!r} must lie between 0 and 1, such as 0.95")
    complete = source.corpus == "complete"
    cells = source.by_document().cells if complete else source.cells
    metrics, groups, width = source.metrics, len(source.rows), len(source.metrics) + 1
    columns = cell_columns(cells, total)
    v, counts, of_cells = doc_weight[cells.doc][:, None], columns[1], _by(cells.group, groups)
    if len(v) and v[v > 0].min(initial=np.inf) <= _VANISHING:  # their squares would vanish
        there = np.where(counts > 0, v, 0.0)
        largest = of_cells(there, np.maximum)[cells.group]
        v = np.divide(there, largest, out=np.zeros_like(there), where=largest > 0)
    units = Units.of(cells, v, columns)
    by, group, size = _by(units.group, groups), units.group, units.size
    mass, summed = of_cells(v * counts), of_cells(v * columns[0])
    inverse, theta = (np.divide(x, mass, out=np.zeros_like(mass), where=mass > 0) for x in (1.0, summed))
    h = units.weight * inverse[group]
    rest = np.where(h < 1, 1 - h, 1.0)
    squared = ((units.sum - theta[group] * units.weight) ** 2 + units.variance) / rest**2
    n_clusters, h2 = by(size * (units.weight > 0)), by(size * h**2)
    se = stats.jackknife_se(mass, n_clusters, by(size * squared))
    middles = np.append(cells.centre, total.centre(cells.centre))
    value = np.where(mass > 0, theta + middles, np.nan)
    g_eff = np.divide(1.0, h2, out=np.zeros_like(h2), where=h2 > 0)
    n_eff = stats.kish(mass, of_cells(v**2 * counts))
    low, high = np.array([[m.low, m.high] for m in metrics] + [[total.least, total.high]]).T
    binary = np.array([m.kind == "binary" for m in metrics] + [False])
    ends = stats.mean_interval(value, se, g_eff, n_eff, (low, high), binary=binary, level=level)
    df, unit = g_eff - 1, np.full(value.shape, source.unit, dtype=object)
    low_if, unseen = np.full((2, *value.shape), np.nan)
    if complete:
        inner_se, inner_df, questions = _within_documents(source, total, doc_weight, mass)
        enough = np.isfinite(inner_se) & np.isfinite(value)
        inside = stats.mean_interval(value, inner_se, g_eff, n_eff, (low, high), level=level, df=inner_df)
        ends = np.where(enough, inside[0], ends[0]), np.where(enough, inside[1], ends[1])
        se, df = np.where(enough, inner_se, se), np.where(enough, inner_df, df)
        n_clusters, unit[~enough] = np.where(enough, questions, n_clusters), "document"
    elif source.unit == "document":
        of_unit = np.divide(units.sum, units.weight, out=np.zeros_like(h), where=units.weight > 0) + middles
        bad, good = np.where([*(m.better == "lower" for m in metrics), False], (high, low), (low, high))
        with np.errstate(invalid="ignore"):  # without a finite range a document cannot fail entirely
            worst = by(np.where(units.weight > 0, (good - of_unit) / (good - bad), 0.0), np.maximum)
            least = np.minimum(*((end - bad) / (good - bad) for end in ends))
            none_failed = 1 - worst > (value - bad) / (good - bad) / 2 + 1e-9
            whole = none_failed & (n_eff > (3 - 1e-9) * g_eff) & (g_eff < _MANY - 1e-9)
            of_documents = (units.cluster >= 0) & (units.cluster < len(source.docs))
            whole &= np.isfinite(least) & (n_clusters == by(of_documents[:, None] * (units.weight > 0.0)))
            floor, share_unseen = stats.unseen_failures(least, np.maximum(g_eff, 1.0), alpha=1 - level)
            low_if, unseen = np.where(whole, (bad + (good - bad) * floor, share_unseen), np.nan)
    alike = ~np.isfinite(high - low) & ~(se > np.finfo(float).eps * np.abs(value))  # nothing gives a width
    known = np.where(units.cluster[:, None] >= 0, h, 0.0)
    share = by(known, np.maximum)
    # Only a dominating cluster is worth a note; single rows have codes beyond the names.
    row, column = np.nonzero((known == share[group]) & (known > 0.5 + 1e-9))
    top = np.full(share.shape, -1)
    top[group[row], column] = units.cluster[row]
    top[top >= len(source.clusters)] = -1
    n = of_cells(counts).astype(np.int64)
    failed, absent = np.pad(source.counts, ((0, 0), (0, 1), (0, 0))).transpose(2, 0, 1)
    quality = np.array([m.role == "quality" for m in metrics], dtype=bool)
    given = np.where(quality | (total.given > 0), total.given, np.nan)
    made: dict[str, Any] = {
        "metric": [*(m.name for m in metrics), "weighted_score"],
        "weight": np.append(given, np.nan),
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
        "range_low": [*(m.low for m in metrics), total.low],
        "range_high": high,
        "level": np.full(width, level),
        "low_if": low_if,
        "share_unseen": unseen,
        "top_share": np.where(top >= 0, share, np.nan),
        "top_cluster": np.array([*source.clusters, ""], dtype=object)[top],
    }
    about = {"better": "higher", "kind": "continuous", "role": "total", "reason": total.reason}
    made |= {name: [*(getattr(m, name, "") for m in metrics), last] for name, last in about.items()}
    for name, column in made.items():  # notes by metric apply to every group
        kind = object if isinstance(column, list) and isinstance(column[0], str) else None
        made[name] = np.broadcast_to(np.asarray(column, dtype=kind), (groups, width)).ravel()
    table = pd.DataFrame({name: made[name] for name in (*RESULT_COLUMNS, *ABOUT_COLUMNS)})
    if source.by is not None:
        table = table.rename(columns={source.by: f"metric_{source.by}"})
        table.insert(0, source.by, np.repeat(np.array(source.groups, dtype=object), width))
    return table, units


def _within_documents(source: Moments, total: Total, doc_weight: Array, mass: Array) -> tuple[Array, ...]:
    """Return se, degrees of freedom and n for a complete corpus of documents, groups × columns.

    Repeats are averaged by question first. Where they are uneven, a document's variance rises by N Σr²/(Σr)².
    """
    cells, single = source.cells, source.cells.cluster < 0
    sums, counts, squares = cell_columns(cells, total)
    stratum = cells.group * len(doc_weight) + cells.doc + 1
    asked, of_cell = np.unique(np.stack([stratum, cells.cluster])[:, ~single], axis=1, return_inverse=True)
    r, added = (sums_by(of_cell.ravel(), part[~single]).astype(float) for part in (counts, sums))
    mean = np.divide(added, r, out=np.zeros_like(r), where=r > 0)
    of_questions = [r > 0, mean, mean**2, r, r**2]
    of_rows = [counts[single], sums[single], squares, counts[single], counts[single]]
    strata, code = np.unique(np.append(asked[0], stratum[single]), return_inverse=True)
    n, first, second, rows, rows2 = (
        sums_by(code, np.concatenate(pair, dtype=float)) for pair in zip(of_questions, of_rows, strict=True)
    )
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


def bootstrap(
    self: Moments,
    *,
    metric_weights: Mapping[str, float] | None = None,
    doc_weights: Mapping[str, float] | None = None,
    resamples: int = 2000,
    seed: int = 0,
    level: float = 0.95,
    orient: bool = True,
    rescale: bool = False,
) -> pd.DataFrame:
    """Return the table of `means` with percentile intervals and standard errors of the cluster bootstrap.

    Parameters
    ----------
    metric_weights, doc_weights : mapping of name to weight, optional
    resamples : int
        At least 100.
    seed : int
        The same seed gives the same numbers; a group's are those of its rows alone.
    level : float
        Of the intervals, in (0, 1).
    orient, rescale : bool
        As in `weighted_means`.

    Raises
    ------
    RagnbError
        As `means`, and for too few resamples.

    Notes
    -----
    Every resample draws as many clusters as the group has, with replacement. Clusters are drawn exactly. Rows
    that are their own clusters and share a cell are drawn by their number exactly and by their values in the
    first two moments, as normal, within the metric's range: cells hold no more. The percentile interval is a check
    of `means`, not a rival: with few clusters it is too narrow, and for values all equal it has no width. Efron
    (1979), Ann. Stat. 7, 1–26.

    Examples
    --------
    >>> from ragnb.weights import moments
    >>> scores = pd.DataFrame({"faithfulness": [1.0, 0.5, 0.0, 0.6] * 9, "doc_name": list("abcdefghijkl") * 3})
    >>> moments(scores).bootstrap()[["metric", "value", "low", "high", "n_clusters"]].round(1)
               metric  value  low  high  n_clusters
    0    faithfulness    0.5  0.3   0.7          12
    1  weighted_score    0.5  0.3   0.7          12
    """
    if self.corpus == "complete":
        raise RagnbError("the bootstrap resamples documents; corpus='complete' says that these are all of them")
    if resamples < _FEWEST:
        raise RagnbError(f"resamples={resamples!r} are too few for an interval; take at least {_FEWEST}")
    total, doc_weight = checked_weights(self, metric_weights, doc_weights, orient=orient, rescale=rescale)
    table, units = means_table(self, total, doc_weight, level)
    middles = np.append(self.cells.centre, total.centre(self.cells.centre))
    spans = np.array([[m.low, m.high] for m in self.metrics] + [[total.least, total.high]])
    usable = table["n_clusters"].to_numpy().reshape(len(self.rows), len(spans)) >= 2
    ends = np.full((*usable.shape, 3), np.nan)
    order = np.argsort(units.cluster < 0, kind="stable")
    for g in range(len(self.rows)):
        chosen = order[units.group[order] == g]
        sizes = units.size[chosen, 0].astype(np.int64)
        parts = (part[chosen] for part in (units.weight, units.sum, units.variance))
        means = stats.resampled_means(sizes, *parts, resamples=resamples, seed=seed)
        for k in np.flatnonzero(usable[g]):
            drawn = np.clip(means[:, k] + middles[k], *spans[k])
            ends[g, k] = [*np.nanquantile(drawn, [0.5 - level / 2, 0.5 + level / 2]), np.nanstd(drawn, ddof=1)]
    # Without a range, identical scores contain no information about their variance.
    ends.reshape(-1, 3)[table["low"].isna().to_numpy(), :2] = np.nan
    table[["low", "high", "se"]] = ends.reshape(-1, 3)
    return table
