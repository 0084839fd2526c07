"""Two reductions → one: cells matched by the names of their groups, documents and clusters, and added up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np

from ragnb.errors import RagnbError
from ragnb.weights.cells import Cells
from ragnb.weights.columns import Array, Codes

if TYPE_CHECKING:
    from ragnb.weights.reduced import Moments


def merge(self: Moments, other: Moments) -> Moments:
    """Return the moments of both sets of rows together, as if they had been reduced at once.

    Parameters
    ----------
    other : Moments
        Of other rows, with the same metrics, `by`, `doc` and `cluster`. Documents, clusters and groups of one
        name are one; rows without a cluster stay clusters of their own.

    Raises
    ------
    RagnbError
        For moments that were made in another way.

    Examples
    --------
    >>> import pandas as pd
    >>> from ragnb.weights import moments
    >>> one = moments(pd.DataFrame({"faithfulness": [1.0, 0.5], "doc_name": ["a", "b"]}))
    >>> two = moments(pd.DataFrame({"faithfulness": [0.0, 0.5], "doc_name": ["a", "c"]}))
    >>> one.merge(two)
    Moments(4 rows in 3 cells: 1 metrics, 3 documents, 1 groups)
    """
    for what in ("metrics", "by", "doc", "cluster"):
        mine, theirs = getattr(self, what), getattr(other, what, None)
        if mine != theirs:
            raise RagnbError(
                f"moments of different {what} cannot be merged: {_shown(mine)} and {_shown(theirs)}; "
                f"make both with moments(..., {what}=...) alike"
            )
    parts = (self, other)
    docs, clusters = _union(p.docs for p in parts), _union(p.clusters for p in parts)
    named = _union(tuple(name for name in p.groups if name is not None) for p in parts)
    groups = (*named, *([None] if any(None in p.groups for p in parts) else []))  # rows without one come last
    size = len(groups) if self.by is not None else 1
    counts, rows = np.zeros((size, len(self.metrics), 2), dtype=np.int64), np.zeros(size, dtype=np.int64)
    moved = []
    for part in parts:
        group = _recode(part.groups, groups)[:-1] if self.by is not None else np.zeros(1, dtype=np.int64)
        np.add.at(counts, group, part.counts)
        np.add.at(rows, group, part.rows)
        c = part.cells
        own = np.where(c.cluster < len(part.clusters), c.cluster, -1)
        codes = (group[c.group], _recode(part.clusters, clusters)[own], _recode(part.docs, docs)[c.doc])
        moved.append((c, np.column_stack(codes)))
    cells = add_up(moved)
    return replace(self, cells=cells, groups=groups, docs=docs, clusters=clusters, counts=counts, rows=rows)


def _shown(value: object) -> str:
    return ", ".join(f"{m.name} {m.low:g}..{m.high:g}" for m in value) if isinstance(value, tuple) else repr(value)


def _union(names: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(sorted(set().union(*names)))


def _recode(names: Sequence[str | None], into: Sequence[str | None]) -> Codes:
    """The new code of each old one, last −1, so that −1 stays what it is."""
    position = {name: index for index, name in enumerate(into)}
    return np.array([position[name] for name in names] + [-1], dtype=np.int64)


def add_up(parts: Sequence[tuple[Cells, Codes]]) -> Cells:
    """Add up the cells of equal codes (group, cluster, doc) and pattern, in that order.

    Examples
    --------
    >>> one, none = np.ones((2, 1), dtype=bool), np.empty((0, 1, 1))
    >>> codes = np.zeros((2, 3), dtype=int)
    >>> cells = Cells(codes[:, 0], codes[:, 1], codes[:, 2], one, np.ones(2), np.array([[0.5], [0.25]]), none)
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
    return Cells(group, doc, cluster, present[order[starts]], n, sums, cross)


def _products(cells: Cells, i: int, j: int) -> Array:
    """Σxᵢxⱼ of cells without a cluster, and of cells that are one row; the others' are not used."""
    products: Array = cells.sums[:, i] * cells.sums[:, j]
    products[cells.cluster < 0] = cells.cross[:, i, j]
    return products
