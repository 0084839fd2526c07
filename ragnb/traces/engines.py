"""Frames of the caller's engine: pandas stays pandas, what others bring is worked on in Polars."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb.readers.frames import native
from ragnb.traces.columns import Flags, Lists, Positions, absent, column
from ragnb.traces.outcomes import STATUSES, Codes
from ragnb.traces.wanted import Floats

GOLD_COLUMNS = ("answerable", "gold_ids", "gold_claim")


@dataclass(frozen=True)
class Made:
    """The columns that labelling makes, before an engine holds them."""

    facts: Mapping[str, Floats]
    words: Mapping[str, tuple[Codes, tuple[str, ...]]]
    predicted: Lists
    flagged: Flags
    rates: Mapping[str, Floats]
    statuses: Mapping[str, Codes]


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


def assemble(frame: Any, made: Made, report: dict[str, Any]) -> Any:
    """Return the frame with the made columns in the place of those it had."""
    if not isinstance(frame, pd.DataFrame):
        return _assemble_polars(frame, made)
    new: dict[str, Any] = {name: _nullable(fact) for name, fact in made.facts.items()}
    for name, (codes, words) in made.words.items():
        new[name] = pd.Series(_words(codes, words), frame.index, dtype=object)
    new["citations_predicted"] = pd.Series(made.predicted.nested().to_list(), frame.index, dtype=object)
    new |= {"citations_flagged": made.flagged} | dict(made.rates)
    new |= {name: _words(codes, STATUSES) for name, codes in made.statuses.items()}
    kept = frame[[c for c in frame if c not in new]]
    out = pd.concat([kept, pd.DataFrame(new, frame.index)], axis=1)
    out.attrs = {"join": report}
    return out


def _nullable(fact: Floats) -> pd.arrays.BooleanArray:
    gone = np.isnan(fact)
    return pd.arrays.BooleanArray(np.where(gone, 0.0, fact).astype(bool), gone)


def _words(codes: Codes, words: tuple[str, ...]) -> Any:
    return np.array([*words, None], dtype=object)[codes]


def _assemble_polars(frame: Any, made: Made) -> Any:
    import polars as pl

    new = [pl.Series(name, fact, nan_to_null=True).cast(pl.Boolean) for name, fact in made.facts.items()]
    coded = dict(made.words) | {name: (codes, STATUSES) for name, codes in made.statuses.items()}
    words = [_enum(name, codes, words) for name, (codes, words) in coded.items()]
    new += [*words[:2], made.predicted.nested().alias("citations_predicted")]
    new += [pl.Series("citations_flagged", made.flagged)]
    new += [pl.Series(name, rate, nan_to_null=True) for name, rate in made.rates.items()] + words[2:]
    names = {series.name for series in new}
    return frame.select([c for c in frame.columns if c not in names]).with_columns(new)


def _enum(name: str, codes: Codes, words: tuple[str, ...]) -> Any:
    import polars as pl

    places = pl.Series(codes, dtype=pl.Int64)
    return pl.Series(words, dtype=pl.Enum(words)).gather(places.set(places < 0, None)).alias(name)
