"""Runs too large for memory: the single rows that a report shows are found by queries over all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError, did_you_mean, listing
from ragnb.markup import MISSING
from ragnb.polars import pl
from ragnb.readers.streams import shown_rows
from ragnb.weights import column_names

MOST_SHOWN = 1000
"""How many rows of a stream its sheet holds, the worst."""

QUESTIONS = ("sample_id", "question")
"""What tells the rows of one question, the surer first."""

BAD_FIRST = ("HALLUCINATION", "OVER_REFUSAL", "ANS_NO_HIT")
"""The labels in the order in which answers of one score are shown; others come after them."""

DIGITS = 12
_ROW = "__row"


def head_of(frame: Any) -> pd.DataFrame:
    """Return a frame of pandas as it is; of a query an empty one with its columns, numbers as numbers.

    Examples
    --------
    >>> head_of(pd.DataFrame({"a": [1]})).columns.tolist()
    ['a']
    """
    if isinstance(frame, pd.DataFrame):
        return frame
    kinds = frame.collect_schema().items()
    return pd.DataFrame({n: pd.Series(dtype="float64" if kind.is_numeric() else "object") for n, kind in kinds})


def distinct_values(frame: Any, column: str) -> list[Any]:
    """Return the values of a column in order, without the missing one.

    Examples
    --------
    >>> distinct_values(pd.DataFrame({"a": ["y", "x", None]}), "a")
    ['x', 'y']
    """
    found = nw.from_native(frame).lazy().select(column).drop_nulls().unique().collect(engine="streaming")
    return sorted(found[column].to_list(), key=str)


def systems(frame: Any) -> tuple[Any, list[Any]]:
    """Return the rows, and the names of their systems: only None where there are not several.

    Rows that name no system beside others that do become the system ``—``.

    Examples
    --------
    >>> systems(pd.DataFrame({"system": ["b", "a", None]}))[1], systems(pd.DataFrame({"system": ["a", "a"]}))[1]
    (['a', 'b', '—'], [None])
    """
    if "system" not in column_names(frame) or len(distinct_values(frame, "system")) < 2:
        return frame, [None]
    if isinstance(frame, pd.DataFrame):
        named = frame.assign(system=frame["system"].astype(object).fillna(MISSING))
    else:
        named = frame.with_columns(pl.col("system").cast(pl.String).fill_null(MISSING))
    return named, distinct_values(named, "system")


def of_system(frame: Any, name: Any) -> Any:
    """Return the rows of one system, all of them for None."""
    return frame if name is None else nw.from_native(frame).filter(nw.col("system") == name).to_native()


def common_questions(frame: Any, names: Sequence[Any]) -> tuple[dict[Any, int], int, Any]:
    """Return how many questions each system answered and how many all did, and the rows of the latter.

    Nothing is reported where no column identifies questions. Of a stream only counts leave the engine.
    """
    key = next((name for name in QUESTIONS if name in column_names(frame)), None)
    if key is None or len(names) < 2:
        return {}, 0, frame
    pairs = nw.from_native(frame).lazy().select(key, "system").drop_nulls().unique()
    answered = dict(pairs.group_by("system").agg(nw.len()).collect(engine="streaming").iter_rows())
    wanted = pairs.group_by(key).agg(nw.len().alias("systems")).filter(nw.col("systems") == len(names)).select(key)
    common, pandas = wanted.to_native(), isinstance(frame, pd.DataFrame)
    shared = frame[frame[key].isin(common[key])] if pandas else frame.join(common, on=key, how="semi")
    return {name: answered.get(name, 0) for name in names}, _size(common), shared


def kept(frame: Any, where: Mapping[str, Any], role: str) -> tuple[Any, int]:
    """Return the rows whose columns equal the values of `where`, and how many they are.

    Traces need not hold every column of it, as others may be those of the scores beside them.

    Raises
    ------
    RagnbError
        For a column that is not there, and a value that keeps no row.
    """
    have = column_names(frame)
    for column, value in where.items():
        if column in have:
            narrow = _equal(frame, column, value)
            if not _size(narrow):
                known = listing(distinct_values(frame, column))
                raise RagnbError(f"where.{column}={value!r} matches no row of the {role} (have: {known})")
            frame = narrow
        elif role != "traces":
            raise RagnbError(f"where.{column}: no such column; {did_you_mean(column, have)}")
    return frame, _size(frame)


def _size(frame: Any) -> int:
    return int(nw.from_native(frame).lazy().select(nw.len()).collect(engine="streaming").item())


def _equal(frame: Any, column: str, value: Any) -> Any:
    if isinstance(frame, pd.DataFrame):
        return frame[fits(frame, {column: value})].reset_index(drop=True)
    cell, kind = pl.col(column), frame.collect_schema()[column]
    same = cell.cast(pl.String) == (str(value).lower() if kind == pl.Boolean else str(value))
    if kind.is_numeric() and isinstance(value, int | float):
        same = cell == value
    return frame.filter(same)


def fits(frame: pd.DataFrame, where: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
    """Say which rows equal the values of `where`, in the columns of it that are there."""
    keep = np.ones(len(frame), dtype=bool)
    for column in set(where) & set(frame.columns):
        value, cells = where[column], frame[column].astype(object)
        keep &= np.array([cell == value or str(cell) == str(value) for cell in cells], dtype=bool)
    return keep


def worst_rows(rows: pl.LazyFrame, diagnoses: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the worst weighted scores, then those of the diagnoses that are not among them."""
    numbered, keys, rank = rows.with_row_index(_ROW), ["weighted_score", "__rank", _ROW], pl.lit(0)
    if "label" in rows.collect_schema():
        places = {label: place for place, label in enumerate(BAD_FIRST)}
        rank = pl.col("label").cast(pl.String).replace_strict(places, default=9)
    # Engines differ in the last bit of a sum: what is equal to twelve digits is equal, and occurs in its order.
    ranked = numbered.with_columns(rank.alias("__rank"), pl.col(keys[0]).round(DIGITS)).select(keys)
    worst = ranked.sort(keys, nulls_last=True).head(MOST_SHOWN).collect(engine="streaming")[_ROW]
    named = {one["sample_id"] for found in diagnoses["worst"] for one in found}
    wanted = pl.col(_ROW).is_in(worst.implode()) | pl.col("sample_id").is_in(list(named))
    found = numbered.filter(wanted).head(2 * MOST_SHOWN).collect(engine="streaming")
    order = pl.DataFrame({_ROW: worst}).with_row_index("__order")
    found = found.join(order, on=_ROW, how="left").sort("__order", _ROW, nulls_last=True)
    return shown_rows(found.drop(_ROW, "__order"))


