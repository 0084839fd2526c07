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
from ragnb.weights.cells import Cells, bits, centres
from ragnb.weights.clusters import question_columns, repeated_question
from ragnb.weights.columns import Array, Codes, Labels, coded
from ragnb.weights.engines import (
    BAD,
    doc_there,
    explain,
    grouped,
    key_of,
    means_of,
    opened,
    patterned,
    words_of,
)
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
    questions: str | None


def reduce_query(
    scores: Any, metrics: Sequence[Metric], *, doc: str, cluster: str | None, by: str | None
) -> Reduced:
    """Reduce a frame of another engine to cells, with one query, and small ones where they are needed.

    One more is for rows without a cluster beside rows with one (cross sums exist only there), one for whether
    questions repeat among rows without a document, one for the means of metrics without a finite range.

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
    base = cluster or (None if by == doc else doc_column)
    maybe = question_columns(source.collect_schema().names(), cluster)
    questions = repeated_question(source) if base is None else None
    named = dict.fromkeys(c for c in (by, doc_column, cluster) if c is not None)
    keys = {column: f"__k{i}" for i, column in enumerate(dict.fromkeys([*named, *maybe]))}
    middles = centres(metrics, means_of(source, metrics))
    rows = patterned(source, metrics, {alias: column for column, alias in keys.items()}, middles.tolist())

    def table_by(questions: str | None) -> Table:
        by_keys = [keys[c] for c in dict.fromkeys([*named, *([] if questions is None else [questions])])]
        own = [keys[c] for c in (base, questions) if c is not None]
        return _table(rows, [*by_keys, *words_of(len(metrics))], metrics, own)

    table = table_by(questions)
    if base is not None and cluster is None and maybe and pd.isna(table[keys[base]]).any():
        questions = repeated_question(source.filter(key_of(source, base).is_null()))
        table = table if questions is None else table_by(questions)
    if table[BAD].any():
        explain(scores, metrics)
    columns = (None if c is None else keys[c] for c in (by, doc_column, base, questions))
    return _cells(table, middles, *columns)._replace(questions=questions)


def _table(rows: nw.LazyFrame[Any], by: Sequence[str], metrics: Sequence[Metric], own: Sequence[str]) -> Table:
    """The sums by keys; Σxxᵀ where a row is its own cluster, as all of its `own` keys are null, 0 elsewhere."""
    pairs = list(combinations_with_replacement(range(len(metrics)), 2))
    have = rows.collect_schema().names()
    sums = [BAD, *(name for name in have if name.startswith(("__x", "__f", "__a")))]
    cross = {f"__c{i}_{j}": nw.col(f"__x{i}") * nw.col(f"__x{j}") for i, j in pairs}
    if not own:
        return grouped(rows.with_columns(**cross) if cross else rows, by, [*sums, *cross])
    table = grouped(rows, by, sums)
    alone = np.all([pd.isna(table[key]) for key in own], axis=0)
    if not alone.any():
        return table | {name: np.zeros(len(alone)) for name in cross}
    single = rows.filter(*(nw.col(key).is_null() for key in own))
    more = grouped(single.with_columns(**cross) if cross else single, by, [*sums, *cross])
    if more["__n"].sum() != table["__n"][alone].sum():
        raise RagnbError("the scores changed while they were read; store the query's result first")
    zero = np.zeros(int((~alone).sum()))
    return {c: np.concatenate([table[c][~alone] if c in table else zero, more[c]]) for c in more}


def _cells(
    table: Table, middles: Array, by: str | None, doc: str | None, cluster: str | None, questions: str | None
) -> Reduced:
    size, width = len(table["__n"]), len(middles)
    none = Labels(np.full(size, -1, dtype=np.int64), ())
    docs = coded(table[doc], compose=True) if doc else none
    clusters = none if cluster is None else docs if cluster == doc else coded(table[cluster])
    if questions is not None:
        asked = coded(table[questions])
        own = np.where(asked.codes < 0, -1, asked.codes + len(clusters.names))
        own = np.where(clusters.codes < 0, own, clusters.codes)
        clusters = Labels(own, (*clusters.names, *asked.names))
    group = grouped_by(coded(table[by], compose=by == doc) if by else None, size)
    groups = len(group.names)
    alone = clusters.codes < 0
    cross = np.zeros((int(alone.sum()), width, width))
    for i, j in combinations_with_replacement(range(width), 2):
        cross[:, i, j] = cross[:, j, i] = table[f"__c{i}_{j}"][alone]
    codes = np.column_stack([group.codes, clusters.codes, docs.codes])
    sums = columns_of(table, (f"__x{k}" for k in range(width)), size)
    present = bits(pattern_of(table, width), width)
    found = Cells(group.codes, docs.codes, clusters.codes, present, table["__n"], sums, cross, middles)
    counts = np.zeros((groups, width, 2), dtype=np.int64)
    for name, column in table.items():
        if name.startswith(("__f", "__a")):
            told = np.bincount(group.codes, weights=column, minlength=groups)
            counts[:, int(name[3:]), int(name.startswith("__a"))] = told.astype(np.int64)
    rows = np.bincount(group.codes, weights=table["__n"], minlength=groups).astype(np.int64)
    cells = add_up([(found, codes)])
    return Reduced(cells, group.names if by else (), docs.names, clusters.names, counts, rows, None)


def columns_of(table: Table, names: Iterable[str], size: int) -> Array:
    """Return columns of sums side by side."""
    columns = [table[name] for name in names]
    return np.column_stack(columns) if columns else np.empty((size, 0))


def pattern_of(table: Table, width: int) -> Codes:
    """Return the words that hold the pattern of gaps, side by side."""
    return np.column_stack([table[name] for name in words_of(width)]).astype(np.int64)


def grouped_by(found: Labels | None, rows: int) -> Labels:
    """Return the groups, all rows as one for None, with one more, the last, for rows without a group's name."""
    if found is None:
        return Labels(np.zeros(rows, dtype=np.int64), ("",))
    if not (found.codes < 0).any():
        return found
    return Labels(np.where(found.codes < 0, len(found.names), found.codes), (*found.names, None))
