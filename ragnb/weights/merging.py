"""Two reductions → one: cells matched by the names of their groups, documents and clusters, and added up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

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
        For moments that were made in another way, also where questions repeat in one of them only. Parts that
        share questions, such as repeats, need ``moments(..., cluster="sample_id")``: a part alone cannot know.

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
    told = [part.questions for part in parts if part.questions or (_loose(part) and not part.cluster)]
    if len(set(told)) > 1:
        key = next(name for name in told if name)
        raise RagnbError(
            f"rows without a document are clustered by {key!r} in one part and are independent in the other, as "
            f"questions repeat in one only; make both with moments(..., cluster={key!r})"
        )
    docs, clusters = _union(p.docs for p in parts), _union(p.clusters for p in parts)
    named = _union(tuple(name for name in p.groups if name is not None) for p in parts)
    groups = (*named, *([None] if any(None in p.groups for p in parts) else []))  # rows without one come last
    size = len(groups) if self.by is not None else 1
    counts, rows = np.zeros((size, len(self.metrics), 2), dtype=np.int64), np.zeros(size, dtype=np.int64)
    centre = _middle(parts)
    moved = []
    for part in parts:
        group = _recode(part.groups, groups)[:-1] if self.by is not None else np.zeros(1, dtype=np.int64)
        np.add.at(counts, group, part.counts)
        np.add.at(rows, group, part.rows)
        c = part.cells
        own = np.where(c.cluster < len(part.clusters), c.cluster, -1)
        codes = (group[c.group], _recode(part.clusters, clusters)[own], _recode(part.docs, docs)[c.doc])
        moved.append((_recentred(c, centre), np.column_stack(codes)))
    names: dict[str, Any] = {"groups": groups, "docs": docs, "clusters": clusters}
    names["questions"] = told[0] if told else None
    return replace(self, cells=add_up(moved), counts=counts, rows=rows, **names)


def _loose(part: Moments) -> bool:
    """Whether a row is a cluster of its own."""
    cluster = part.cells.cluster
    return bool(((cluster < 0) | (cluster >= len(part.clusters))).any())


def _middle(parts: Sequence[Moments]) -> Array:
    """The centre of all parts together: their own where it is one, else the mean of theirs."""
    one, *rest = (part.cells.centre for part in parts)
    counts = np.array([part.cells.n @ part.cells.present for part in parts])
    total = counts.sum(axis=0)
    mean = (counts * [one, *rest]).sum(axis=0) / np.where(total > 0, total, 1.0)
    alike = np.all([one == other for other in rest], axis=0) | (total == 0)
    return np.where(alike, one, mean)


def _recentred(cells: Cells, centre: Array) -> Cells:
    """Return the cells about another centre."""
    moved = np.where(cells.present, cells.centre - centre, 0.0)
    if not moved.any():
        return replace(cells, centre=centre)
    alone = cells.cluster < 0 if len(cells.cross) else slice(0)
    d, s, n = moved[alone], cells.sums[alone], cells.n[alone]
    both = np.einsum("ci,cj->cij", d, s)
    cross = cells.cross + both + both.transpose(0, 2, 1) + n[:, None, None] * np.einsum("ci,cj->cij", d, d)
    return replace(cells, sums=cells.sums + cells.n[:, None] * moved, cross=cross, centre=centre)


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
