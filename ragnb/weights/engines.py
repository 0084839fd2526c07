"""Frames of any engine: opened, and the columns of a query as expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import pandas as pd

from ragnb.errors import need_columns
from ragnb.readers.frames import native
from ragnb.schema import CLIP, STATUS_WORDS, Metric

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]


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


def key_of(frame: Frame, column: str) -> nw.Expr:
    """Return a column as a group key: missing is null, a whole number its digits.

    Raises
    ------
    RagnbError
        For a column that is not there.
    """
    schema = frame.collect_schema()
    need_columns(schema.names(), [column])
    key, kind = nw.col(column), schema[column]
    if kind == nw.Unknown:
        return nw.lit(None, dtype=nw.String)
    if kind.is_float():
        return nw.when(~key.is_nan()).then(key)
    categorical = kind in (nw.Categorical, nw.Enum) and not frame.implementation.is_polars()
    return key.cast(nw.String) if kind.is_integer() or kind == nw.Date or categorical else key


def is_number(kind: Any) -> bool:
    """Return whether a column of this type is numeric or boolean."""
    return bool(kind.is_numeric() or kind == nw.Boolean)


def score_of(name: str, kind: Any) -> nw.Expr:
    """Return a column of this type as floats, null for every gap."""
    if not is_number(kind):
        return nw.lit(None, dtype=nw.Float64)
    value = nw.col(name).cast(nw.Float64)
    return nw.when(~value.is_nan()).then(value) if kind.is_float() else value


def laid_out(frame: Frame, metrics: Sequence[Metric]) -> tuple[Frame, list[tuple[nw.Expr, str]]]:
    """Return a query with the scores as ``__v0``, ``__v1`` …, and the row-wise checks with their messages.

    A score within 1e-6 beyond an end of its range is that end.
    """
    schema = frame.collect_schema()
    values: dict[str, nw.Expr] = {}
    faults: list[tuple[nw.Expr, str]] = []
    for k, metric in enumerate(metrics):
        name, kind, low, high = metric.name, schema[metric.name], float(metric.low), float(metric.high)
        value = score_of(name, kind)
        values[f"__v{k}"] = value.clip(low, high)
        if is_number(kind):
            inside = (value >= low - CLIP) & (value <= high + CLIP) & value.is_finite()
            faults.append((~value.is_null() & ~inside, f"column {name!r} lies outside {low:g}..{high:g}"))
        else:
            faults.append((~nw.col(name).is_null(), f"column {name!r} holds what is no score"))
        if f"{name}__status" in schema:
            word = key_of(frame, f"{name}__status").cast(nw.String)
            odd = ~word.is_null() & ~word.is_in(STATUS_WORDS)
            clash = word.is_in(["failed", "not_applicable"]) & ~value.is_null()
            faults.append((odd, f"column '{name}__status' holds what is no status"))
            faults.append((clash, f"column {name!r} has a number beside a status that has none"))
    return frame.with_columns(**values) if values else frame, faults
