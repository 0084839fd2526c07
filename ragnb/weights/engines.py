"""Rows that other engines hold: opened, and laid out as expressions that any of them can reduce."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, did_you_mean
from ragnb.readers.frames import native
from ragnb.schema import CLIP, STATUS_WORDS, Metric
from ragnb.weights.cells import WORD, centres
from ragnb.weights.columns import as_pandas, score_columns

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]
Rows = TypeVar("Rows", nw.DataFrame[Any], nw.LazyFrame[Any], Frame)
BAD = "__bad"
_ROW = "__row"


def opened(frame: Any) -> Frame:
    """Return a frame of any engine for narwhals; an eager Polars frame is made lazy, so that it is optimised.

    Raises
    ------
    RagnbError
        For what is no data frame.

    Examples
    --------
    >>> opened(pd.DataFrame({"a": [1]})).columns
    ['a']
    """
    found: Frame = native(frame)
    eager_polars = isinstance(found, nw.DataFrame) and found.implementation.is_polars()
    return found.lazy() if eager_polars else found


def stays_lazy(frame: Any) -> bool:
    """Return whether the caller's frame is a query that has not run."""
    return isinstance(nw.from_native(frame), nw.LazyFrame)


def column_names(frame: Any) -> list[str]:
    """Return the columns of a frame of any engine.

    Examples
    --------
    >>> column_names(pd.DataFrame({"a": [1]}))
    ['a']
    """
    if isinstance(frame, pd.DataFrame):
        return [str(name) for name in frame.columns]
    return opened(frame).collect_schema().names()


def collected(frame: Frame) -> nw.DataFrame[Any]:
    """Run a query; Polars streams its rows, and DuckDB's result comes as pandas, which needs no Arrow."""
    if isinstance(frame, nw.DataFrame):
        return frame
    if frame.implementation.is_polars():
        found: nw.DataFrame[Any] = nw.from_native(frame.to_native().collect(engine="streaming"))
        return found
    return frame.collect(backend="pandas") if frame.implementation.is_duckdb() else frame.collect()


def swift(frame: Frame) -> nw.LazyFrame[Any]:
    """Return a query over the rows; those of an eager frame go to Polars, which shares Arrow's numbers."""
    return nw.from_native(frame.to_polars()).lazy() if isinstance(frame, nw.DataFrame) else frame


def numbered(frame: Any, columns: Sequence[str]) -> tuple[nw.LazyFrame[Any], str | None]:
    """Return columns with the rows numbered, and the number's column; None where rows have no order."""
    rows = swift(opened(frame).select(*columns))
    if not rows.implementation.is_polars():
        return rows, None
    return nw.from_native(rows.to_native().with_row_index(_ROW)), _ROW


def doc_there(source: Frame, doc: str) -> str | None:
    """Return the document column; a frame without ``doc_name`` has no documents."""
    return None if doc == "doc_name" and doc not in source.collect_schema() else doc


def key_of(frame: Frame, column: str) -> nw.Expr:
    """Return a column as a group key: a gap is null, a whole number its digits.

    Raises
    ------
    RagnbError
        For a column that is not there.
    """
    schema = frame.collect_schema()
    if column not in schema:
        raise RagnbError(f"column={column!r} is not there; {did_you_mean(column, schema.names())}")
    key, kind = nw.col(column), schema[column]
    if kind == nw.Unknown:
        return nw.lit(None, dtype=nw.String)
    if kind.is_float():
        return nw.when(~key.is_nan()).then(key)
    worded = kind in (nw.Categorical, nw.Enum) and not frame.implementation.is_polars()
    return key.cast(nw.String) if kind.is_integer() or kind == nw.Date or worded else key


def _is_number(kind: Any) -> bool:
    return bool(kind.is_numeric() or kind == nw.Boolean)


def score_of(name: str, kind: Any) -> nw.Expr:
    """Return a column of this type as floats, null for every gap."""
    if not _is_number(kind):
        return nw.lit(None, dtype=nw.Float64)
    value = nw.col(name).cast(nw.Float64)
    return nw.when(~value.is_nan()).then(value) if kind.is_float() else value


def _status(name: str, kind: Any) -> nw.Expr:
    if kind == nw.Unknown:
        return nw.lit(None, dtype=nw.String)
    word = nw.col(name)
    if kind.is_float():
        return nw.when(~word.is_nan()).then(word).cast(nw.String)
    return word if kind == nw.String else word.cast(nw.String)


def _faults(metric: Metric, value: nw.Expr, status: nw.Expr | None, number: bool) -> list[tuple[nw.Expr, str]]:
    """What must not be, row by row, and its words."""
    name = metric.name
    if number:
        wrong = (value < metric.low) | (value > metric.high)
        wrong = wrong if metric.bounded else wrong | ~value.is_finite()
        faults = [(~value.is_null() & wrong, f"column {name!r} lies outside {metric.low:g}..{metric.high:g}")]
    else:
        faults = [(~nw.col(name).is_null(), f"column {name!r} holds what is no score")]
    if status is not None:
        odd = ~status.is_null() & ~status.is_in(STATUS_WORDS)
        clash = status.is_in(["failed", "not_applicable"]) & ~value.is_null()
        faults += [(odd, f"column '{name}__status' holds what is no status")]
        faults += [(clash, f"column {name!r} has a number beside a status that has none")]
    return faults


def laid_out(frame: Rows, metrics: Sequence[Metric]) -> tuple[Rows, list[tuple[nw.Expr, str]]]:
    """Return the frame with the scores as ``__v0``, ``__v1`` …, statuses as ``__s0`` …, and what must not be.

    ``__clipped`` says whether a score of the row lay within 1e-6 beyond an end of its range; it is that end.
    """
    schema = frame.collect_schema()
    new: dict[str, nw.Expr] = {"__clipped": nw.lit(False)}
    faults: list[tuple[nw.Expr, str]] = []
    for k, metric in enumerate(metrics):
        kind, status = schema[metric.name], f"{metric.name}__status"
        value = score_of(metric.name, kind)
        below = (value < metric.low) & (value >= metric.low - CLIP)
        above = (value > metric.high) & (value <= metric.high + CLIP)
        least, most = nw.lit(float(metric.low)), nw.lit(float(metric.high))
        new[f"__v{k}"] = nw.when(below).then(least).otherwise(nw.when(above).then(most).otherwise(value))
        new["__clipped"] = new["__clipped"] | ((below | above) & ~value.is_null())
        if status in schema:
            new[f"__s{k}"] = _status(status, schema[status])
        word = nw.col(f"__s{k}") if status in schema else None
        faults += _faults(metric, nw.col(f"__v{k}"), word, _is_number(kind))
    return frame.with_columns(**new), faults


def any_fault(faults: Sequence[tuple[nw.Expr, str]]) -> nw.Expr:
    """Return 1 for a row with a fault, or with a score that was clipped, else 0."""
    wrong = nw.col("__clipped")
    for fault, _ in faults:
        wrong = wrong | fault
    return nw.when(wrong).then(nw.lit(1, dtype=nw.Int64)).otherwise(nw.lit(0, dtype=nw.Int64))


def words_of(count: int) -> list[str]:
    """Return the names of the columns that hold the pattern of gaps."""
    return [f"__p{w}" for w in range(max(-(-count // WORD), 1))]


def means_of(frame: Frame, metrics: Sequence[Metric]) -> list[float]:
    """Return the mean of each metric without a finite range, by one query; 0 for the others."""
    schema = frame.collect_schema()
    asked = {f"m{k}": score_of(m.name, schema[m.name]).mean() for k, m in enumerate(metrics) if not m.bounded}
    if not asked:
        return [0.0] * len(metrics)
    row = collected(swift(frame).select(**asked))
    found = {name: row[name].to_list()[0] for name in asked}
    return [float(found[f"m{k}"]) if pd.notna(found.get(f"m{k}")) else 0.0 for k in range(len(metrics))]


def patterned(
    frame: Frame, metrics: Sequence[Metric], keys: Mapping[str, str], middles: Sequence[float] | None = None
) -> nw.LazyFrame[Any]:
    """Return the columns that are reduced, and nothing else.

    They are the `keys` (new name to column), the pattern ``__p0`` …, scores less `middles` ``__x0`` … (0 in a
    gap), ``__f0`` and ``__a0`` … (failed, not applicable), scores ``__v0`` … and ``__bad``.
    """
    key = {name: key_of(frame, column) for name, column in keys.items()}
    named = [c for m in metrics for c in (m.name, f"{m.name}__status")]
    needed = [c for c in dict.fromkeys([*keys.values(), *named]) if c in frame.collect_schema()]
    narrow = swift(frame.select(*needed) if needed else frame)
    rows, faults = laid_out(narrow, metrics)
    have = rows.collect_schema().names()
    new = {**key, BAD: any_fault(faults)}
    zero, one = nw.lit(0, dtype=nw.Int64), nw.lit(1, dtype=nw.Int64)
    words = dict.fromkeys(words_of(len(metrics)), zero)
    for k, centre in enumerate(centres(metrics).tolist() if middles is None else middles):
        value = nw.col(f"__v{k}")
        bit = nw.lit(2 ** (k % WORD), dtype=nw.Int64)
        words[f"__p{k // WORD}"] += nw.when(value.is_null()).then(zero).otherwise(bit)
        new[f"__x{k}"] = nw.when(value.is_null()).then(nw.lit(0.0)).otherwise(value - centre)
        for letter, word in (("f", "failed"), ("a", "not_applicable")):
            if f"__s{k}" in have:
                new[f"__{letter}{k}"] = nw.when(nw.col(f"__s{k}") == word).then(one).otherwise(zero)
    new |= words
    values = [f"__v{k}" for k in range(len(metrics))]
    return rows.with_columns(**new).select(*new, *values)


def grouped(rows: nw.LazyFrame[Any], by: Sequence[str], sums: Sequence[str]) -> dict[str, np.ndarray[Any, Any]]:
    """Sum columns by keys on the engine; return the small table's columns, and how many rows as ``__n``."""
    table = rows.group_by(*by).agg(nw.len().alias("__n"), *(nw.col(name).sum() for name in sums))
    small = collected(table)
    found: dict[str, np.ndarray[Any, Any]] = {}
    for name in small.columns:
        if name.startswith("__k"):
            found[name] = pd.Series(small[name].to_list(), dtype=object).to_numpy()
        else:
            found[name] = small[name].to_numpy().astype(np.int64 if name.startswith("__p") else float)
    return found


def explain(scores: Any, metrics: Sequence[Metric]) -> None:
    """Refuse a frame that has a fault, or warn of scores that were clipped, in the words that pandas frames get.

    Raises
    ------
    RagnbError
        For a fault, with its row.
    """
    schema = opened(scores).collect_schema()
    for metric in metrics:
        kind = schema[metric.name]
        if not _is_number(kind) and kind not in (nw.String, nw.Categorical, nw.Enum, nw.Unknown):
            raise RagnbError(f"column {metric.name!r} is of type {kind}, not a score; convert it to numbers")
    columns = [c for m in metrics for c in (m.name, f"{m.name}__status") if c in schema]
    if not stays_lazy(scores):
        score_columns(as_pandas(nw.from_native(scores).select(*columns).to_native()), metrics)
        return
    rows, faults = laid_out(opened(scores), metrics)
    chosen = [*columns, "sample_id"] if "sample_id" in schema else columns
    for wrong in [nw.col("__clipped"), *(fault for fault, _ in faults)][::-1]:  # what is refused comes first
        some = rows.filter(wrong).select(*dict.fromkeys(chosen)).head(1000)
        frame = as_pandas(collected(some).to_native())
        frame.index = pd.Index(frame["sample_id"] if "sample_id" in schema else ["?"] * len(frame))
        score_columns(frame, metrics)
