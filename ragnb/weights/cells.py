"""Rows → cells: one pass that leaves counts and sums by group × document × cluster × pattern of gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.schema import Metric
from ragnb.weights.columns import Array, Codes, Labels

Flags = npt.NDArray[np.bool_]
WORD = 32
"""How many metrics one whole number holds the gaps of."""


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
    x = np.where(present, values - centres(metrics), 0.0)
    key = _join(_join(_join(group.codes, cluster.codes), doc.codes), _pattern(present))
    rows = len(values)
    cell, first = _number(key)
    if len(first) > rows / 2:
        own = np.cumsum(cluster.codes < 0) - 1 + len(cluster.names)
        alone = np.where(cluster.codes < 0, own, cluster.codes).astype(np.int64)
        order = np.lexsort((alone, group.codes))
        return Cells(
            group.codes[order],
            doc.codes[order],
            alone[order],
            present[order],
            np.ones(rows),
            x[order],
            np.empty((0, values.shape[1], values.shape[1])),
        )
    count = len(first)
    sums = _sum(x, cell, count)
    return Cells(
        group.codes[first],
        doc.codes[first],
        cluster.codes[first],
        present[first],
        np.bincount(cell, minlength=count).astype(float),
        sums,
        _cross(x, cell, count, cluster.codes[first] < 0),
    )


def _join(a: Codes, b: Codes) -> Codes:
    """One code for each pair, small whatever the labels: −1 is a label like others."""
    wide = (a - a.min(initial=0)) * (int(b.max(initial=-1)) + 2) + (b + 1)
    codes, _ = _number(wide)
    return codes


def _number(key: Codes) -> tuple[Codes, Codes]:
    """Number the distinct keys in ascending order; return each row's number and each number's first row."""
    codes, uniques = pd.factorize(key)
    order = np.argsort(uniques, kind="stable")
    rank = np.empty(len(uniques), dtype=np.int64)
    rank[order] = np.arange(len(uniques))
    numbers = rank[codes] if len(key) else np.empty(0, dtype=np.int64)
    first = np.empty(len(uniques), dtype=np.int64)
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)
    return numbers, first


def _pattern(present: Flags) -> Codes:
    codes = np.zeros(len(present), dtype=np.int64)
    for start in range(0, present.shape[1], WORD):
        part = present[:, start : start + WORD]
        word = part @ (1 << np.arange(part.shape[1], dtype=np.int64))
        codes = word if start == 0 else _join(codes, word)
    return codes


def _sum(x: Array, cell: Codes, count: int) -> Array:
    columns = [np.bincount(cell, weights=x[:, k], minlength=count) for k in range(x.shape[1])]
    return np.column_stack(columns) if columns else np.empty((count, 0))


def _cross(x: Array, cell: Codes, count: int, alone: Flags) -> Array:
    """Σxxᵀ of the cells whose rows are their own clusters."""
    k = x.shape[1]
    cross = np.zeros((count, k, k))
    rows = alone[cell] if count else np.empty(0, dtype=bool)
    if rows.any():
        inner, where = x[rows], cell[rows]
        for i in range(k):
            for j in range(i, k):
                cross[:, i, j] = np.bincount(where, weights=inner[:, i] * inner[:, j], minlength=count)
                cross[:, j, i] = cross[:, i, j]
    return cross[alone]


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
