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
        alone = cells.cluster < 0
        shared = cells.shared
        changes = (np.diff(cells.group) != 0) | (np.diff(cells.cluster) != 0) | alone[1:]
        starts = np.flatnonzero(np.append(True, changes))[: cells.size]
        size = np.where(alone, cells.n, 1.0)[starts, None]
        weight = v * counts
        total = v * sums
        if len(starts) < cells.size:
            weight = np.add.reduceat(weight, starts, axis=0)
            total = np.add.reduceat(total, starts, axis=0)
        weight /= size
        total /= size
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
    there = cells.present.astype(float)
    n = cells.n
    scale = there @ total.weights
    share = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    score = cells.sums @ (total.weights * total.slopes) * share
    moved = np.zeros(cells.size)
    if total.weights.any() and not total.is_centred(cells.centre):
        weighed_centre = total.weights * total.mapped(cells.centre)
        moved = (scale > 0) * ((there @ weighed_centre) * share - total.centre(cells.centre))
        score += n * moved
    several = cells.shared
    inner = there[several] * (total.weights * total.slopes) * share[several, None]
    squares = np.einsum("ci,cij,cj->c", inner, cells.cross, inner)
    squares += moved[several] * (2 * score[several] - n[several] * moved[several])
    of_metrics = np.einsum("ckk->ck", cells.cross)
    counts = _beside(there * n[:, None], np.where(scale > 0, n, 0.0))
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
    there = first < end

    def reduce(x: Array, how: np.ufunc = np.add) -> Array:
        if groups == 1:
            return np.asarray(how.reduce(x, axis=0, keepdims=True, initial=0.0))
        reduced: Array = np.zeros((groups, x.shape[1]))
        reduced[there] = how.reduceat(x, first[there], axis=0)
        return reduced

    return reduce
