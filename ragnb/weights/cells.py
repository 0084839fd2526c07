"""Rows → cells: counts and sums by group × document × cluster × pattern of gaps; and cells added up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.schema import Metric
from ragnb.weights.columns import Array, Codes, Labels

Flags = npt.NDArray[np.bool_]
WORD = 32
"""How many metrics one whole number holds the gaps of."""
_SMALL = 2**15  # so many sums are laid out at once whatever the rows


@dataclass(frozen=True)
class Cells:
    """The small table that every weighted mean follows from exactly.

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
    cross : (C₁, K, K) float
        Σxxᵀ of the cells with cluster −1, in their order.
    centre : (K,) float
        What each metric is centred on, see `centres`.
    """

    group: Codes
    doc: Codes
    cluster: Codes
    present: Flags
    n: Array
    sums: Array
    cross: Array
    centre: Array

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.n)


def centres(metrics: Sequence[Metric], means: Sequence[float] | None = None) -> Array:
    """Return what each metric is centred on: the middle of its scale, else the mean of its scores.

    Sums of squares about 0 lose the spread of scores that are large beside it.

    Examples
    --------
    >>> centres([Metric("a"), Metric("b", 1, 5), Metric("latency", 0, float("inf"))], [0.9, 2.0, 350.0])
    array([  0.5,   3. , 350. ])
    """
    own = [0.0] * len(metrics) if means is None else [mean if np.isfinite(mean) else 0.0 for mean in means]
    return np.array([sum(m.scale) / 2 if m.bounded else at for m, at in zip(metrics, own, strict=True)])


def _mean(values: Array) -> float:
    there = values[~np.isnan(values)]
    with np.errstate(over="ignore"):
        return float(there.mean()) if len(there) else 0.0


def reduce_rows(
    values: Sequence[Array], metrics: Sequence[Metric], group: Labels, doc: Labels, cluster: Labels
) -> Cells:
    """Reduce rows, a column a metric, to cells, or keep a cell a row where that saves less than half.

    Examples
    --------
    >>> one, none = Labels(np.array([0, 0]), ("",)), Labels(np.array([-1, -1]), ())
    >>> reduce_rows([np.array([1.0, 0.0])], [Metric("a")], one, none, none).n
    array([2.])
    """
    rows, width = len(group.codes), len(values)
    named = [label for label in ([cluster] if doc is cluster else [cluster, doc]) if label.names]
    keys = [(group.codes, len(group.names)), *((label.codes + 1, len(label.names) + 1) for label in named)]
    key = Keys.of(keys, values, rows)
    middles = centres(metrics, [0.0 if m.bounded else _mean(x) for m, x in zip(metrics, values, strict=True)])
    if len(key.used) > rows / 2:
        own = np.cumsum(cluster.codes < 0) - 1 + len(cluster.names)
        alone = np.where(cluster.codes < 0, own, cluster.codes).astype(np.int64)
        order = np.lexsort((alone, group.codes))
        scores = np.stack(values, axis=1)[order] if width else np.empty((rows, 0))
        present = ~np.isnan(scores)
        x = np.where(present, scores - middles, 0.0)
        codes = (group.codes[order], doc.codes[order], alone[order], present)
        return Cells(*codes, np.ones(rows), x, np.empty((0, width, width)), middles)
    row, there = key.row, key.present(values)
    single = cluster.codes[row] < 0
    sums, cross = np.zeros(there.shape), np.zeros((int(single.sum()), width, width))
    x = np.empty(rows)
    for k in range(width):  # the gaps are part of the key: in a cell a column is all there, or all nan
        np.subtract(values[k], middles[k], out=x)
        sums[:, k] = np.where(there[:, k], key.sums(x), 0.0)
        for j in range(k + 1 if len(cross) else 0):
            both = key.sums(x * (values[j] - middles[j]))
            cross[:, k, j] = cross[:, j, k] = np.where(there[:, k] & there[:, j], both, 0.0)[single]
    return Cells(group.codes[row], doc.codes[row], cluster.codes[row], there, key.n, sums, cross, middles)


Part = tuple[npt.NDArray[Any], int]


@dataclass(frozen=True)
class Keys:
    """Which cell each row is of: a combination of codes and a pattern of gaps.

    Attributes
    ----------
    code : (N,) int
    size : int
        The bound of the codes.
    n : (C,) float
        Rows of each cell that occurs.
    used : (C,) int
        Its code.
    """

    code: Codes
    size: int
    n: Array
    used: Codes

    @classmethod
    def of(cls, parts: Iterable[Part], values: Sequence[Array], rows: int) -> Keys:
        """Combine parts (codes from 0 and how many there may be) with the gaps of the values."""
        code, size = _key([*parts, *_words(values, rows)], rows)
        n = np.bincount(code, minlength=size)
        used = np.flatnonzero(n)
        return cls(code, size, n[used].astype(float), used)

    @cached_property
    def row(self) -> Codes:
        """A row of each cell."""
        row = np.empty(self.size, dtype=np.int64)
        row[self.code] = np.arange(len(self.code))
        found: Codes = row[self.used]
        return found

    def present(self, values: Sequence[Array]) -> Flags:
        """Which values each cell has."""
        there = np.empty((len(self.used), len(values)), dtype=bool)
        for k, column in enumerate(values):
            there[:, k] = ~np.isnan(column[self.row])
        return there

    def sums(self, x: Array) -> Array:
        """Σx of each cell."""
        every: npt.NDArray[Any] = np.bincount(self.code, weights=x, minlength=self.size)
        found: Array = every[self.used]
        return found


def _key(parts: Iterable[Part], rows: int) -> tuple[Codes, int]:
    """One code for each combination of parts (codes and how many there may be), in their order; and its bound."""
    key, size = np.zeros(rows, dtype=np.int64), 1
    for codes, count in parts:
        if count <= 1:
            continue
        if size * count > 2**62:
            key, size = _ranked(key)
        key *= count
        key += codes
        size *= count
    return (key, size) if size <= max(4 * rows, _SMALL) else _ranked(key)


def _ranked(key: Codes) -> tuple[Codes, int]:
    codes, uniques = pd.factorize(key, sort=True)
    return codes, len(uniques)


def _words(values: Sequence[Array], rows: int) -> list[Part]:
    """The pattern of gaps as whole numbers, and the bound of each."""
    words = []
    for start in range(0, len(values), WORD):
        part = values[start : start + WORD]
        kind = np.uint8 if len(part) <= 8 else np.int64
        word: npt.NDArray[Any] = np.zeros(rows, dtype=kind)
        for place, column in enumerate(part):
            word |= (column == column).view(np.uint8).astype(kind, copy=False) << kind(place)
        words.append((word, 2 ** len(part)))
    return words


def recentred(cells: Cells, centre: Array) -> Cells:
    """Return the cells about another centre."""
    moved = np.where(cells.present, cells.centre - centre, 0.0)
    if not moved.any():
        return replace(cells, centre=centre)
    alone = cells.cluster < 0 if len(cells.cross) else slice(0)
    d, s, n = moved[alone], cells.sums[alone], cells.n[alone]
    both = np.einsum("ci,cj->cij", d, s)
    cross = cells.cross + both + both.transpose(0, 2, 1) + n[:, None, None] * np.einsum("ci,cj->cij", d, d)
    return replace(cells, sums=cells.sums + cells.n[:, None] * moved, cross=cross, centre=centre)


def add_up(parts: Sequence[tuple[Cells, Codes]]) -> Cells:
    """Add up the cells of equal codes (group, cluster, doc) and pattern, in that order.

    Examples
    --------
    >>> one, none = np.ones((2, 1), dtype=bool), np.empty((0, 1, 1))
    >>> codes = np.zeros((2, 3), dtype=int)
    >>> sums, middle = np.array([[0.5], [0.25]]), np.array([0.5])
    >>> cells = Cells(codes[:, 0], codes[:, 1], codes[:, 2], one, np.ones(2), sums, none, middle)
    >>> add_up([(cells, codes)]).sums
    array([[0.75]])
    """
    present = np.vstack([cells.present for cells, _ in parts])
    keys = np.hstack([np.vstack([codes for _, codes in parts]), np.packbits(present, axis=1)])
    order = np.lexsort(keys.T[::-1])
    keys = keys[order]
    starts = np.flatnonzero(np.append(True, (np.diff(keys, axis=0) != 0).any(axis=1)))[: len(order)]

    def total(columns: Iterable[Array]) -> Array:
        summed: Array = np.add.reduceat(np.concatenate(list(columns))[order], starts, axis=0)
        return summed

    group, cluster, doc = keys[starts, :3].T.astype(np.int64)
    alone, k = cluster < 0, present.shape[1]
    cross = np.empty((int(alone.sum()), k, k))
    for i, j in combinations_with_replacement(range(k if alone.any() else 0), 2):
        cross[:, i, j] = cross[:, j, i] = total(_products(cells, i, j) for cells, _ in parts)[alone]
    n, sums = total(cells.n for cells, _ in parts), total(cells.sums for cells, _ in parts)
    return Cells(group, doc, cluster, present[order[starts]], n, sums, cross, parts[0][0].centre)


def _products(cells: Cells, i: int, j: int) -> Array:
    """Σxᵢxⱼ of cells without a cluster, and of cells that are one row; the others' are not used."""
    products: Array = cells.sums[:, i] * cells.sums[:, j]
    products[cells.cluster < 0] = cells.cross[:, i, j]
    return products
