"""Cells of sums: documents by metrics, from which every mean follows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.schema import Metric
from ragnb.stats import sums_by
from ragnb.weights.columns import Codes
from ragnb.weights.total import (
    Array,
    Flags,
)

Counts = npt.NDArray[np.int64]
Places = tuple[Codes, Codes, Codes]  # of groups, documents and clusters
_SMALL = 2**15  # codes that need no ranking, however few the rows are


@dataclass(frozen=True)
class Cells:
    """The small table from which every weighted mean is computed exactly, in the order of group, then cluster.

    Attributes
    ----------
    group, doc, cluster : (C,) int
        Codes; doc −1 without a document, cluster −1 where each row is its own cluster.
    present : (C, K) bool
        The pattern of metrics that have a score.
    n : (C,) float
        Rows of the cell.
    sums : (C, K) float
        Σx, x centred.
    cross : (S, K, K) float
        Σxxᵀ of the cells that are `shared`, in their order.
    centre : (K,) float
        What each metric is centred on, see `centres`.
    weight : (C,) float
        Of each row, 1 / the chance with which it was drawn; 1 where none is recorded.
    """

    group: Codes
    doc: Codes
    cluster: Codes
    present: Flags
    n: Array
    sums: Array
    cross: Array
    centre: Array
    weight: Array

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.n)

    @property
    def shared(self) -> Flags:
        """Which cells hold several rows that are clusters of their own: their sums do not tell their spread."""
        return (self.cluster < 0) & (self.n > 1)


# A range so many times as large as its scores: about its middle they would lose all their digits.
_FAR = 1e6


def centres(metrics: Sequence[Metric], columns: Sequence[Array] = ()) -> Array:
    """Return the centre of each metric: the middle of its scale, else the mean of its scores.

    Sums of squares about 0 lose the variance of scores that are large compared with it, and scores of tens about
    the middle of a range of 2⁶³ vanish.

    Examples
    --------
    >>> columns = [np.array([score]) for score in (0.9, 2.0, 350.0)]
    >>> centres([Metric("a"), Metric("b", 1, 5), Metric("latency", 0, float("inf"))], columns)
    array([  0.5,   3. , 350. ])
    """
    with np.errstate(over="ignore"):
        middles = np.array([_middle(metric) for metric in metrics])
    for k, values in enumerate(columns):
        if _on_data(metrics[k], values):
            with np.errstate(over="ignore"):
                middles[k] = np.nanmean(values)
    return np.where(np.isfinite(middles), middles, 0.0)


def _middle(metric: Metric) -> float:
    low, high = metric.scale
    if metric.bounded:
        return low / 2 + high / 2
    return 0.0


def _on_data(metric: Metric, values: Array) -> bool:
    """Whether a metric is centred on its scores: without a range, or with one that is far larger than they are."""
    if np.isnan(values).all():
        return False
    width = metric.high - metric.low
    return not metric.bounded or (width > _FAR and width > _FAR * float(np.nanmax(np.abs(values))))


class Keys(NamedTuple):
    """Which cell each row is of: a combination of codes and a pattern of gaps.

    Attributes
    ----------
    code : (N,) int
        The cell of each row.
    row : (C,) int
        A row of each cell.
    """

    code: Codes
    row: Codes

    @classmethod
    def of(cls, parts: Iterable[tuple[npt.NDArray[Any], int]], present: Flags) -> Keys:
        """Combine parts (codes from 0 and how many there may be), in their order, with the gaps of the rows."""
        # One number a row says all its codes; before it would overflow, those that occur are ranked.
        key = np.zeros(len(present), dtype=np.int64)
        size = 1
        for codes, count in (*parts, *((column, 2) for column in present.T)):
            if size * count > 2**62:
                key, size = _ranked(key)
            if count > 1:
                key *= count
                key += codes
                size *= count
        # A table of all combinations needs no sorting, and is not much longer than the rows.
        if size > max(4 * len(key), _SMALL):
            key, size = _ranked(key)
        row = np.full(size, -1, dtype=np.int64)
        row[key] = np.arange(len(key))
        used = row >= 0
        return cls((np.cumsum(used) - 1)[key], row[used])


def _ranked(key: Codes) -> tuple[Codes, int]:
    codes, uniques = pd.factorize(key, sort=True)
    return codes, len(uniques)


def cells_of(
    values: Sequence[Array], metrics: Sequence[Metric], codes: Places, weight: Array
) -> Cells:
    """Reduce rows, one column per metric, to cells; `codes` are their groups, documents and clusters.

    Examples
    --------
    >>> one, none = np.array([0, 0]), np.array([-1, -1])
    >>> cells_of([np.array([1.0, 0.0])], [Metric("a")], (one, none, none), np.ones(2)).n
    array([2.])
    """
    width = len(values)
    centre = centres(metrics, values)
    # Column by column, as they are added up; each row is a cell of its own at first.
    x = np.empty((len(weight), width), order="F")
    for k in range(width):
        np.subtract(values[k], centre[k], out=x[:, k])
    group, doc, cluster = codes
    rows = Cells(
        group=group,
        doc=doc,
        cluster=cluster,
        present=~np.isnan(x),
        n=np.ones(len(weight)),
        sums=x,
        cross=np.empty((0, width, width)),
        centre=centre,
        weight=weight,
    )
    return add_up(rows, group, doc, cluster)


def add_up(cells: Cells, group: Codes, doc: Codes, cluster: Codes) -> Cells:
    """Add up the cells of equal codes, pattern and weight, in the order of group, cluster, document and pattern.

    Examples
    --------
    >>> zero, one, none = np.zeros(2, dtype=int), np.ones(2), np.empty((0, 1, 1))
    >>> sums = np.array([[0.5], [0.25]])
    >>> cells = Cells(zero, zero, zero, sums > 0, one, sums, none, np.array([0.5]), one)
    >>> add_up(cells, zero, zero, zero).sums
    array([[0.75]])
    """
    if doc is cluster:
        # Documents are the clusters: one code says both.
        labels = [group, cluster + 1]
    else:
        labels = [group, cluster + 1, doc + 1]
    if cells.size and cells.weight.min() < cells.weight.max():
        labels.append(np.unique(cells.weight, return_inverse=True)[1])
    key = Keys.of([(codes, int(codes.max(initial=0)) + 1) for codes in labels], cells.present)
    row = key.row
    width = cells.sums.shape[1]
    present = cells.present[row]
    added = Cells(
        group=group[row],
        doc=doc[row],
        cluster=cluster[row],
        present=present,
        n=np.bincount(key.code, cells.n).astype(float),
        # In a cell a column is all there, or all nan.
        sums=np.where(present, sums_by(key.code, cells.sums), 0.0),
        cross=cells.cross[:0],
        centre=cells.centre,
        weight=cells.weight[row],
    )
    shared = added.shared
    several = np.flatnonzero(cells.shared)
    cross = np.zeros((int(shared.sum()), width, width))
    for i in range(width if len(cross) else 0):
        for j in range(i + 1):
            products = cells.sums[:, i] * cells.sums[:, j]  # right for cells of one row
            products[several] = cells.cross[:, i, j]
            summed = np.bincount(key.code, products)[shared]
            both = present[shared, i] & present[shared, j]
            cross[:, i, j] = cross[:, j, i] = np.where(both, summed, 0.0)
    return replace(added, cross=cross)


def recentred(cells: Cells, centre: Array) -> Cells:
    """Return the cells about another centre."""
    if np.array_equal(cells.centre, centre):
        return cells
    offset = np.where(cells.present, cells.centre - centre, 0.0)  # d, of each score of a cell
    shared = cells.shared
    d = offset[shared]
    n = cells.n[shared]
    # Σ(x + d)(x + d)ᵀ = Σxxᵀ + d(Σx)ᵀ + (Σx)dᵀ + n ddᵀ.
    mixed = np.einsum("ci,cj->cij", d, cells.sums[shared])
    squared = n[:, None, None] * np.einsum("ci,cj->cij", d, d)
    cross = cells.cross + mixed + mixed.transpose(0, 2, 1) + squared
    return replace(cells, sums=cells.sums + cells.n[:, None] * offset, cross=cross, centre=centre)
