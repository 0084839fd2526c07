"""Runs too large for memory: the single rows that a report shows are found by queries over all rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, did_you_mean, listing
from ragnb.markup import MISSING
from ragnb.polars import pl
from ragnb.readers.executors import on_spark
from ragnb.readers.streams import shown_rows
from ragnb.schema import TOTAL
from ragnb.weights import collected, column_names, opened

MOST_SHOWN = 1000
"""How many rows of a stream its sheet holds, the worst."""

QUESTIONS = ("sample_id", "question")
"""What tells the rows of one question, the surer first."""

BAD_FIRST = ("HALLUCINATION", "OVER_REFUSAL", "ANS_NO_HIT")
"""The labels in the order in which answers of one score are shown; others come after them."""

DIGITS = 12  # beyond which sums differ by the order in which engines add them up
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
    empty = {}
    for name, kind in nw.from_native(frame).collect_schema().items():
        empty[name] = pd.Series(dtype="float64" if kind.is_numeric() else "object")
    return pd.DataFrame(empty)


def distinct_values(frame: Any, column: str) -> list[Any]:
    """Return the values of a column in order, without the missing one.

    Examples
    --------
    >>> distinct_values(pd.DataFrame({"a": ["y", "x", None]}), "a")
    ['x', 'y']
    """
    values: list[Any]
    if isinstance(frame, pd.DataFrame):
        values = frame[column].dropna().unique().tolist()
    else:
        rows = opened(frame).select(column).drop_nulls(column).unique()
        values = collected(rows)[column].to_list()
    return sorted(values, key=str)


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
        named = (
            nw.from_native(frame)
            .with_columns(nw.col("system").cast(nw.String).fill_null(MISSING))
            .to_native()
        )
    return named, distinct_values(named, "system")


def of_system(frame: Any, name: Any) -> Any:
    """Return the rows of one system, all of them for None."""
    if name is None:
        return frame
    return nw.from_native(frame).filter(nw.col("system") == name).to_native()


def common_questions(frame: Any, names: Sequence[Any]) -> tuple[dict[Any, int], int, Any]:
    """Return how many questions each system answered and how many all did, and the rows of the latter.

    Nothing is reported where no column identifies questions. Where the systems share no id, a question is its
    text, as in a comparison. Of a stream only counts leave the engine.
    """
    keys = [name for name in QUESTIONS if name in column_names(frame)]
    common: tuple[dict[Any, int], int, Any] = ({}, 0, frame)
    for key in keys:
        common = _in_common(frame, names, key)
        _, n_common, _ = common
        if n_common:
            return common
    return common


def _in_common(frame: Any, names: Sequence[Any], key: str) -> tuple[dict[Any, int], int, Any]:
    """Return what `common_questions` does, by one column."""
    rows: Any = opened(frame)
    pairs = rows.select(key, "system").drop_nulls([key, "system"]).unique()
    answered = dict(collected(pairs.group_by("system").agg(nw.len())).iter_rows())
    common = (
        pairs.group_by(key)
        .agg(nw.len().alias("systems"))
        .filter(nw.col("systems") == len(names))
        .select(key)
    )
    if isinstance(frame, pd.DataFrame):
        shared = frame[frame[key].isin(common.to_native()[key])]
    else:
        shared = rows.join(common, on=key, how="semi").to_native()
    return {name: answered.get(name, 0) for name in names}, size(common), shared


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
            if not size(narrow):
                known = listing(distinct_values(frame, column))
                raise RagnbError(
                    f"where.{column}={value!r} matches no row of the {role} (have: {known})"
                )
            frame = narrow
        elif role != "traces":
            raise RagnbError(f"where.{column}: no such column; {did_you_mean(column, have)}")
    return frame, size(frame)


def size(frame: Any) -> int:
    """Return the number of rows."""
    return int(collected(opened(frame).select(nw.len())).item())


def narrowed(frame: Any, where: Mapping[str, Any]) -> Any:
    """Return the rows that equal the values of `where`, in the columns of it that are there.

    Examples
    --------
    >>> narrowed(pd.DataFrame({"n": [1, 2]}), {"n": "2", "kind": "x"})["n"].tolist()
    [2]
    """
    for column in [name for name in where if name in column_names(frame)]:
        frame = _equal(frame, column, where[column])
    return frame


def _equal(frame: Any, column: str, value: Any) -> Any:
    if isinstance(frame, pd.DataFrame):
        keep = [cell == value or str(cell) == str(value) for cell in frame[column].astype(object)]
        return frame[np.array(keep, dtype=bool)].reset_index(drop=True)
    rows = nw.from_native(frame)
    cell = nw.col(column)
    kind = rows.collect_schema()[column]
    text = str(value)
    if kind == nw.Boolean:
        text = text.lower()  # as engines write true and false
    is_equal = cell.cast(nw.String) == text
    # As texts, 1 and 1.0 would differ.
    if kind.is_numeric() and isinstance(value, int | float):
        is_equal = cell == value
    return rows.filter(is_equal).to_native()


def worst_rows(rows: Any, weighed: Callable[[Any], Any], diagnoses: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the worst weighted scores, then those of the diagnoses that are not among them.

    Equal scores occur in their order; Spark's rows, which have none, by their ids.
    """
    have = column_names(rows)
    is_numbered = not on_spark(rows)
    if is_numbered:
        order = [_ROW]
        # Rows that are numbered before they are weighed are selected before, too.
        frame = nw.from_native(weighed(rows.with_row_index(_ROW)))
    else:
        order = [name for name in QUESTIONS if name in have]
        frame = nw.from_native(weighed(rows))
    # Engines differ in the last bit of a sum: what is equal to twelve digits is equal.
    score = nw.col(TOTAL).round(DIGITS)
    ranked = frame.with_columns(score.alias("__score"), _label_rank(have).alias("__rank"))
    keys = ["__score", "__rank", *order]
    of_diagnoses = {row["sample_id"] for shown in diagnoses["worst"] for row in shown} - {None}
    is_named = nw.col("sample_id").is_in([*of_diagnoses])
    if is_numbered:  # sorted without their texts, which are fetched of the rows that are shown
        first = collected(ranked.select(keys).sort(keys, nulls_last=True).head(MOST_SHOWN))
        is_first = nw.col(_ROW).is_in(first[_ROW].to_list())
        ranked = collected(ranked.filter(is_first | is_named)).lazy()
    worst = collected(ranked.sort(keys, nulls_last=True).head(MOST_SHOWN)).to_polars()
    if of_diagnoses and "sample_id" in have:
        others = collected(ranked.filter(is_named).sort(order).head(MOST_SHOWN)).to_polars()
        worst = pl.concat([worst, others.join(worst, on=order, how="anti")])
    # Spark's rows are ordered by their own ids, which stay; a row number goes.
    return shown_rows(worst.drop(keys if is_numbered else ["__score", "__rank"]))


def _label_rank(have: Sequence[str]) -> nw.Expr:
    """Return the place of a row's label in `BAD_FIRST`, behind them for any other and for none."""
    rank = nw.lit(len(BAD_FIRST))
    if "label" not in have:
        return rank
    label = nw.col("label").cast(nw.String)
    for place, bad in enumerate(BAD_FIRST):
        rank = nw.when(label == bad).then(nw.lit(place)).otherwise(rank)
    return rank
