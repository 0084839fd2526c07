"""The one pass over rows that another engine holds: cells leave it, rows do not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError
from ragnb.schema import Metric
from ragnb.weights.cells import Cells, bits
from ragnb.weights.columns import Array, Codes, Labels, coded
from ragnb.weights.engines import BAD, doc_there, explain, grouped, opened, patterned, words_of
from ragnb.weights.merging import add_up

Table = dict[str, npt.NDArray[Any]]


class Reduced(NamedTuple):
    """What the rows leave: as the fields of `Moments`."""

    cells: Cells
    groups: tuple[str | None, ...]
    docs: tuple[str, ...]
    clusters: tuple[str, ...]
    counts: Codes
    rows: Codes


def reduce_query(
    scores: Any, metrics: Sequence[Metric], *, doc: str, cluster: str | None, by: str | None
) -> Reduced:
    """Reduce a frame of another engine to cells, with two queries at most.

    The second one is for rows without a cluster beside rows with one: cross sums exist only there.

    Raises
    ------
    RagnbError
        As `moments`.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"faithfulness": [1.0, 0.5], "doc_name": ["a", "a"]})
    >>> reduce_query(frame, [Metric("faithfulness")], doc="doc_name", cluster=None, by=None).cells.n
    array([2.])
    """
    source = opened(scores)
    doc_column = doc_there(source, doc)
    cluster_column = cluster or (None if by == doc else doc_column)
    named = dict.fromkeys(c for c in (by, doc_column, cluster_column) if c is not None)
    keys = {column: f"__k{i}" for i, column in enumerate(named)}
    rows = patterned(source, metrics, {alias: column for column, alias in keys.items()})
    own = None if cluster_column is None else keys[cluster_column]
    table = _table(rows, [*keys.values(), *words_of(len(metrics))], metrics, own)
    if table[BAD].any():
        explain(scores, metrics)
    return _cells(table, len(metrics), *(None if c is None else keys[c] for c in (by, doc_column, cluster_column)))


def _table(rows: nw.LazyFrame[Any], by: Sequence[str], metrics: Sequence[Metric], own: str | None) -> Table:
    """The sums by keys; Σxxᵀ where a row is its own cluster, 0 elsewhere."""
    pairs = list(combinations_with_replacement(range(len(metrics)), 2))
    have = rows.collect_schema().names()
    sums = [BAD, *(name for name in have if name.startswith(("__x", "__f", "__a")))]
    cross = {f"__c{i}_{j}": nw.col(f"__x{i}") * nw.col(f"__x{j}") for i, j in pairs}
    if own is None:
        return grouped(rows.with_columns(**cross) if cross else rows, by, [*sums, *cross])
    table = grouped(rows, by, sums)
    alone = pd.isna(table[own])
    if not alone.any():
        return table | {name: np.zeros(len(alone)) for name in cross}
    single = rows.filter(nw.col(own).is_null())
    more = grouped(single.with_columns(**cross) if cross else single, by, [*sums, *cross])
    if more["__n"].sum() != table["__n"][alone].sum():
        raise RagnbError("the scores changed while they were read; store the query's result first")
    zero = np.zeros(int((~alone).sum()))
    return {c: np.concatenate([table[c][~alone] if c in table else zero, more[c]]) for c in more}


def _cells(table: Table, width: int, by: str | None, doc: str | None, cluster: str | None) -> Reduced:
    size = len(table["__n"])
    none = Labels(np.full(size, -1, dtype=np.int64), ())
    docs = coded(table[doc], compose=True) if doc else none
    clusters = docs if cluster == doc else coded(table[cluster]) if cluster else none
    group = (
        with_nameless(coded(table[by], compose=by == doc)) if by else Labels(np.zeros(size, dtype=np.int64), ("",))
    )
    groups = len(group.names)
    alone = clusters.codes < 0
    cross = np.zeros((int(alone.sum()), width, width))
    for i, j in combinations_with_replacement(range(width), 2):
        cross[:, i, j] = cross[:, j, i] = table[f"__c{i}_{j}"][alone]
    codes = np.column_stack([group.codes, clusters.codes, docs.codes])
    sums = columns_of(table, (f"__x{k}" for k in range(width)), size)
    present = bits(pattern_of(table, width), width)
    found = Cells(group.codes, docs.codes, clusters.codes, present, table["__n"], sums, cross)
    counts = np.zeros((groups, width, 2), dtype=np.int64)
    for name, column in table.items():
        if name.startswith(("__f", "__a")):
            told = np.bincount(group.codes, weights=column, minlength=groups)
            counts[:, int(name[3:]), int(name.startswith("__a"))] = told.astype(np.int64)
    rows = np.bincount(group.codes, weights=table["__n"], minlength=groups).astype(np.int64)
    return Reduced(add_up([(found, codes)]), group.names if by else (), docs.names, clusters.names, counts, rows)


def columns_of(table: Table, names: Iterable[str], size: int) -> Array:
    """Return columns of sums side by side."""
    columns = [table[name] for name in names]
    return np.column_stack(columns) if columns else np.empty((size, 0))


def pattern_of(table: Table, width: int) -> Codes:
    """Return the words that hold the pattern of gaps, side by side."""
    return np.column_stack([table[name] for name in words_of(width)]).astype(np.int64)


def with_nameless(group: Labels) -> Labels:
    """Return the groups with one more, the last, for the rows without a group's name."""
    if not (group.codes < 0).any():
        return group
    return Labels(np.where(group.codes < 0, len(group.names), group.codes), (*group.names, None))
