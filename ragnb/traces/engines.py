"""Frames of the caller's engine: pandas stays pandas, what others bring is worked on in Polars."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb.readers.frames import native
from ragnb.traces.columns import Lists, Positions, absent, column

if TYPE_CHECKING:
    import polars as pl

GOLD_COLUMNS = ("answerable", "gold_ids", "gold_claim")


def workable(frame: Any) -> Any:
    """Return a pandas frame as it is, and a frame of another engine as a Polars one.

    Examples
    --------
    >>> workable(pd.DataFrame({"a": [1]})).shape
    (1, 1)
    """
    if isinstance(frame, pd.DataFrame):
        return pd.DataFrame(frame)  # without attrs, which pandas copies deeply at every step
    found = native(frame)
    eager = found.collect() if isinstance(found, nw.LazyFrame) else found
    return eager.to_polars()


def as_brought(made: Any, frame: Any) -> Any:
    """Return a frame that was worked on in Polars as the kind of frame it was brought as.

    A query is run for its rows, and comes back as one over them. DuckDB's rows come back by PyArrow, where that
    is installed, on DuckDB's default connection; PySpark's stay Polars, as they have left the cluster.

    Examples
    --------
    >>> import polars as pl
    >>> type(as_brought(pl.DataFrame({"a": [1]}), pl.LazyFrame({"a": [1]}))).__name__
    'LazyFrame'
    """
    if isinstance(made, pd.DataFrame):
        made.attrs = {**frame.attrs, **made.attrs}
        return made
    found = native(frame)
    kind = found.implementation
    if kind.is_polars():
        return made.lazy() if isinstance(found, nw.LazyFrame) else made
    if kind.is_pyarrow():
        return made.to_arrow()
    if kind.is_duckdb() and importlib.util.find_spec("pyarrow"):
        import duckdb

        return duckdb.from_arrow(made.to_arrow())
    return made


def with_gold(traces: Any, gold: Any, row: Positions) -> Any:
    """Return the traces with gold's columns: gold owns its own, and fills the gaps of what both have."""
    if not isinstance(traces, pd.DataFrame):
        return _with_gold_polars(traces, gold, row)
    if not isinstance(gold, pd.DataFrame):
        gold = pd.DataFrame({name: gold[name].to_list() for name in gold.columns})
    frame = traces.drop(columns=[c for c in GOLD_COLUMNS if c in traces])
    theirs = gold.reset_index(drop=True).reindex(row).set_axis(frame.index)
    new = {}
    for name in theirs:
        if name not in frame:
            new[name] = theirs[name]
        elif bool(frame[name].isna().any()):
            frame[name] = frame[name].astype(object).where(frame[name].notna(), theirs[name])
    return frame.assign(**new)


def _with_gold_polars(traces: Any, gold: Any, row: Positions) -> Any:
    import polars as pl

    if isinstance(gold, pd.DataFrame):
        gold = pl.DataFrame([_as_polars(gold, name) for name in gold.columns])
    frame = traces.drop([c for c in GOLD_COLUMNS if c in traces.columns])
    take = pl.Series(np.where(row < 0, 0, row)).set(pl.Series(row < 0), None)
    for name in gold.columns:
        theirs = gold[name].gather(take) if len(gold) else pl.Series(name, [None] * len(row))
        if name not in frame.columns:
            frame = frame.with_columns(theirs)
        elif frame[name].null_count():
            ours = frame[name] if frame[name].dtype == theirs.dtype else frame[name].cast(pl.String)
            frame = frame.with_columns(ours.zip_with(ours.is_not_null(), theirs.cast(ours.dtype)).alias(name))
    return frame


def _as_polars(frame: pd.DataFrame, name: str) -> Any:
    import polars as pl

    values = [None if absent(v) else v for v in column(frame, name)]
    try:
        return pl.Series(name, values)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        return pl.Series(name, [None if v is None else str(v) for v in values])


def assemble(frame: Any, new: Mapping[str, Any], report: dict[str, Any]) -> Any:
    """Return the frame with new columns in the place of those it had.

    A column is an array, a series, lists of ids, or codes and the words that they stand for.
    """
    import polars as pl

    kept = frame[[c for c in frame.columns if c not in new]]
    if not isinstance(frame, pd.DataFrame):
        return kept.with_columns(**{name: _as_series(values) for name, values in new.items()})
    made: dict[str, Any] = {}
    for name, values in new.items():
        if isinstance(values, pl.Series):
            gone = values.is_null().to_numpy()
            made[name] = pd.arrays.BooleanArray(values.fill_null(False).to_numpy(writable=True), gone)
        elif isinstance(values, Lists):
            made[name] = pd.Series(values.nested().to_list(), frame.index, dtype=object)
        elif isinstance(values, tuple):
            words = np.array([*values[1], None], dtype=object)[values[0]]
            made[name] = pd.Series(words, frame.index, dtype=None if name.endswith("__status") else object)
        else:
            made[name] = values
    out = pd.concat([kept, pd.DataFrame(made, frame.index)], axis=1)
    out.attrs = {"join": report}
    return out


def _as_series(values: Any) -> pl.Series:
    import polars as pl

    if isinstance(values, Lists):
        return values.nested()
    if isinstance(values, tuple):
        places = pl.Series(values[0], dtype=pl.Int64)
        return pl.Series(values[1], dtype=pl.Enum(values[1])).gather(places.set(places < 0, None))
    return pl.Series(values, nan_to_null=True)
