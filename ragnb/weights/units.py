"""The resampling units behind an interval: clusters, and single rows that are clusters of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ragnb.weights.cells import Cells
from ragnb.weights.columns import Codes
from ragnb.weights.total import Array, Total

# Of identical values Σx² − (Σx)²/n is not 0 but a rounding error of this share of Σx².
ROUNDING = 1e-13


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
        # Rows that are clusters of their own: each of their cells is a unit.
        is_alone = cells.cluster < 0
        is_new_group = np.diff(cells.group) != 0
        is_new_cluster = np.diff(cells.cluster) != 0
        is_start = np.append(True, is_new_group | is_new_cluster | is_alone[1:])
        starts = np.flatnonzero(is_start)[: cells.size]  # empty where there are no cells
        size = np.where(is_alone, cells.n, 1.0)[starts, None]
        weight = v * counts
        total = v * sums
        if len(starts) < cells.size:
            weight = np.add.reduceat(weight, starts, axis=0)
            total = np.add.reduceat(total, starts, axis=0)
        weight /= size
        total /= size
        # Of rows that share a cell only sums are known: drawing one of them has the variance of all.
        shared = cells.shared
        variance = np.zeros_like(total)
        n = cells.n[shared, None]
        spread = squares - sums[shared] ** 2 / n
        spread[spread < ROUNDING * squares] = 0.0
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
    has_score = cells.present.astype(float)
    n = cells.n
    weight_there = has_score @ total.weights  # of the metrics that the rows of a cell have
    inverse = np.divide(1.0, weight_there, out=np.zeros_like(weight_there), where=weight_there > 0)
    slopes = total.weights * total.slopes
    score = cells.sums @ slopes * inverse
    # A row that lacks a metric has another centre than the total, unless every metric is centred on its middle.
    offset = np.zeros(cells.size)
    if total.weights.any() and not total.is_centred(cells.centre):
        centre = (has_score @ (total.weights * total.mapped(cells.centre))) * inverse
        offset = (weight_there > 0) * (centre - total.centre(cells.centre))
        score += n * offset
    shared = cells.shared
    part = has_score[shared] * slopes * inverse[shared, None]
    squares = np.einsum("ci,cij,cj->c", part, cells.cross, part)
    # Σ(x + d)² = Σx² + d(2Σ(x + d) − nd).
    squares += offset[shared] * (2 * score[shared] - n[shared] * offset[shared])
    of_metrics = np.einsum("ckk->ck", cells.cross)
    counts = _beside(has_score * n[:, None], np.where(weight_there > 0, n, 0.0))
    return _beside(cells.sums, score), counts, _beside(of_metrics, squares)


def _beside(columns: Array, last: Array) -> Array:
    """Return columns and a last one, each in one piece: those of very many cells are added up faster then."""
    rows = np.empty((columns.shape[1] + 1, len(columns)))
    rows[:-1] = columns.T
    rows[-1] = last
    return rows.T


def by_group(group: Codes, groups: int) -> Callable[..., Array]:
    """Return the function that reduces rows to their groups, sums by default; one without rows gives 0.

    Examples
    --------
    >>> add = by_group(np.array([0, 0, 2]), 3)
    >>> add(np.array([[1.0], [2.0], [4.0]])).ravel().tolist()
    [3.0, 0.0, 4.0]
    """
    every = np.arange(groups)
    first = np.searchsorted(group, every, side="left")
    end = np.searchsorted(group, every, side="right")
    has_rows = first < end  # `reduceat` gives a group without rows the row after it

    def reduce(x: Array, how: np.ufunc = np.add) -> Array:
        if groups == 1:
            return np.asarray(how.reduce(x, axis=0, keepdims=True, initial=0.0))
        reduced: Array = np.zeros((groups, x.shape[1]))
        reduced[has_rows] = how.reduceat(x, first[has_rows], axis=0)
        return reduced

    return reduce
