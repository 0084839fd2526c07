"""Rows → cells: one pass that leaves counts and sums by group × document × cluster × pattern of gaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
        Σx, x centred on the middle of the metric's range.
    cross : (C₁, K, K) float
        Σxxᵀ of the cells with cluster −1, in their order.
    """

    group: Codes
    doc: Codes
    cluster: Codes
    present: Flags
    n: Array
    sums: Array
    cross: Array

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.n)


def centres(metrics: Sequence[Metric]) -> Array:
    """Return what each metric is centred on: the middle of its range, 0 where it has none.

    Examples
    --------
    >>> centres([Metric("a"), Metric("b", 1, 5)])
    array([0.5, 3. ])
    """
    return np.array([(m.low + m.high) / 2 if m.bounded else 0.0 for m in metrics], dtype=float)


def reduce_rows(values: Array, metrics: Sequence[Metric], group: Labels, doc: Labels, cluster: Labels) -> Cells:
    """Reduce rows to cells, or keep a cell a row where that saves less than half.

    Examples
    --------
    >>> none = Labels(np.array([-1, -1]), ())
    >>> reduce_rows(np.array([[1.0], [0.0]]), [Metric("a")], none, none, none).n
    array([2.])
    """
    present = ~np.isnan(values)
    rows, width = values.shape
    keys = [group, cluster] if doc is cluster else [group, cluster, doc]
    key, size = _key([*((label.codes + 1, len(label.names) + 1) for label in keys), *_words(present)], rows)
    n = np.bincount(key, minlength=size)
    used = np.flatnonzero(n)
    middles = centres(metrics)
    if len(used) > rows / 2:
        own = np.cumsum(cluster.codes < 0) - 1 + len(cluster.names)
        alone = np.where(cluster.codes < 0, own, cluster.codes).astype(np.int64)
        order = np.lexsort((alone, group.codes))
        codes = (group.codes[order], doc.codes[order], alone[order], present[order])
        x = np.where(present, values - middles, 0.0)[order]
        return Cells(*codes, np.ones(rows), x, np.empty((0, width, width)))
    row = np.empty(size, dtype=np.int64)
    row[key] = np.arange(rows)
    row = row[used]
    there, single = present[row], cluster.codes[row] < 0
    sums, cross = np.zeros(there.shape), np.zeros((int(single.sum()), width, width))
    x = np.empty(rows)
    for k in range(width):  # the gaps are part of the key: in a cell a column is all there, or all nan
        np.subtract(values[:, k], middles[k], out=x)
        sums[:, k] = np.where(there[:, k], np.bincount(key, weights=x, minlength=size)[used], 0.0)
        for j in range(k, width if len(cross) else 0):
            both = np.bincount(key, weights=x * (values[:, j] - middles[j]), minlength=size)
            cross[:, k, j] = cross[:, j, k] = np.where(there[:, k] & there[:, j], both[used], 0.0)[single]
    return Cells(group.codes[row], doc.codes[row], cluster.codes[row], there, n[used].astype(float), sums, cross)


def _key(parts: Iterable[tuple[Codes, int]], rows: int) -> tuple[Codes, int]:
    """One code for each combination of parts (codes and how many there may be), in their order; and its bound."""
    key, size = np.zeros(rows, dtype=np.int64), 1
    for codes, count in parts:
        if size * count > 2**62:
            key, size = _ranked(key)
        key = key * count + codes if size > 1 else codes
        size *= count
    return (key, size) if size <= max(4 * rows, _SMALL) else _ranked(key)


def _ranked(key: Codes) -> tuple[Codes, int]:
    codes, uniques = pd.factorize(key, sort=True)
    return codes, len(uniques)


def _words(present: Flags) -> list[tuple[Codes, int]]:
    """The pattern of gaps as whole numbers, and the bound of each."""
    words = []
    for start in range(0, present.shape[1], WORD):
        part = present[:, start : start + WORD].T
        word = np.zeros(len(present), dtype=np.int64)
        for place, there in enumerate(part):
            word += there.astype(np.int64) << place
        words.append((word, 2 ** len(part)))
    return words


def bits(words: Codes, width: int) -> Flags:
    """Return which of `width` metrics a pattern's words say are there.

    Examples
    --------
    >>> bits(np.array([[5]]), 3)
    array([[ True, False,  True]])
    """
    places = np.arange(width)
    found: Flags = (words[:, places // WORD] >> (places % WORD) & 1).astype(bool)
    return found
