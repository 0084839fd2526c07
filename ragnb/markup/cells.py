"""How a number is written: one way each, with an em dash for what is missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, NamedTuple, SupportsFloat, get_args

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.errors import unknown
from ragnb.markup.text import Safe

MISSING = "—"
Kind = Literal["text", "number", "percent", "count", "interval", "percent_interval"]
Number = SupportsFloat | None


@dataclass(frozen=True)
class Column:
    """How one column of a table is written.

    Parameters
    ----------
    label : str
        The header, with the unit.
    kind : {"text", "number", "percent", "count", "interval", "percent_interval"}
        How its cells are written; all but text are right-aligned. An interval reads two more columns.
    low, high : str
        The columns that hold the ends of the interval.
    reason : str, optional
        The column that says why a cell is missing.
    digits : int
        Decimals of a number or of an interval of numbers.
    title : str
        A sentence on the header, shown on hover.

    Examples
    --------
    >>> Column("Mean [95 % interval]", "interval").low
    'low'
    """

    label: str
    kind: Kind = "text"
    low: str = "low"
    high: str = "high"
    reason: str | None = None
    digits: int = 3
    title: str = ""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise unknown("kind", self.kind, get_args(Kind))


class Cell(NamedTuple):
    """A written cell: its text (`Safe` where ragnb wrote it), and why it is missing."""

    text: str
    reason: str | None


def is_missing(value: Any) -> bool:
    """Say whether a cell is None, NaN, NA or NaT; a list never is.

    Examples
    --------
    >>> is_missing(float("nan")), is_missing([]), is_missing("")
    (True, False, False)
    """
    return value is None or (pd.api.types.is_scalar(value) and bool(pd.isna(value)))


def _fixed(value: float, digits: int) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    # Adding 0.0 after rounding takes the sign off a zero.
    return f"{round(value, digits) + 0.0:.{digits}f}"


def number(value: Number, digits: int = 3) -> str:
    """Write a score with three decimals.

    Examples
    --------
    >>> number(0.8124), number(-0.0001), number(None)
    ('0.812', '0.000', '—')
    """
    return MISSING if is_missing(value) else _fixed(float(value), digits)  # type: ignore[arg-type]


def percent(value: Number) -> str:
    """Write a rate as a percentage with one decimal.

    Examples
    --------
    >>> percent(0.886), percent(float("nan"))
    ('88.6 %', '—')
    """
    return MISSING if is_missing(value) else f"{_fixed(100 * float(value), 1)} %"  # type: ignore[arg-type]


def count(value: Number) -> str:
    """Write a count without decimals, thousands apart.

    Examples
    --------
    >>> count(12345.0), count(None)
    ('12,345', '—')
    """
    return MISSING if is_missing(value) else f"{round(float(value)):,}"  # type: ignore[arg-type]


def with_interval(value: Number, low: Number, high: Number, percent: bool = False, digits: int = 3) -> str:
    """Write an estimate with its interval; an end that is missing is a dash.

    Examples
    --------
    >>> with_interval(0.812, 0.771, 0.843)
    '0.812 [0.771, 0.843]'
    >>> with_interval(0.886, 0.8, 0.95, percent=True)
    '88.6 % [80.0, 95.0]'
    >>> with_interval(None, None, None)
    '—'
    """
    if is_missing(value):
        return MISSING
    if percent:
        ends = [_percent(end).removesuffix(" %") for end in (low, high)]
        return f"{_percent(value)} [{', '.join(ends)}]"
    return f"{number(value, digits)} [{number(low, digits)}, {number(high, digits)}]"


_percent = percent


def _text(value: object) -> str:
    if isinstance(value, list | tuple | np.ndarray):
        return "\n".join(_text(item) for item in value)
    return str(value)


def _one(value: Any, low: Any, high: Any, column: Column) -> str:
    if isinstance(value, Safe):
        return value
    if column.kind == "text" or not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        return _text(value)
    number_like: Any = value
    if column.kind == "number":
        return Safe(number(number_like, column.digits))
    if column.kind == "percent":
        return Safe(percent(number_like))
    if column.kind == "count":
        return Safe(count(number_like))
    return Safe(with_interval(number_like, low, high, column.kind == "percent_interval", column.digits))


def cells(frame: pd.DataFrame, name: object, column: Column, lang: str) -> list[Cell]:
    """Write one column of a frame: as many cells as it has rows."""
    missing = str(texts.entry(lang, "word.missing"))
    wide = "interval" in column.kind
    values = _values(frame, name)
    lows = _values(frame, column.low) if wide else values
    highs = _values(frame, column.high) if wide else values
    reasons = _values(frame, column.reason) if column.reason else [None] * len(values)
    written = []
    for value, low, high, why in zip(values, lows, highs, reasons, strict=True):
        gone = is_missing(value)
        reason = (missing if is_missing(why) or not str(why).strip() else str(why)) if gone else None
        written.append(Cell(Safe(MISSING) if gone else _one(value, low, high, column), reason))
    return written


def _values(frame: pd.DataFrame, name: object) -> Sequence[Any]:
    if name not in frame.columns:
        raise unknown("column", name, [str(column) for column in frame.columns])
    found = frame.loc[:, name]  # type: ignore[index]
    return (found.iloc[:, 0] if isinstance(found, pd.DataFrame) else found).tolist()


def default_columns(frame: pd.DataFrame) -> dict[Any, Column]:
    """Describe the columns of a frame by their types: floats are numbers, integers counts, the rest text."""
    described = {}
    for position, name in enumerate(frame.columns):
        dtype = frame.dtypes.iloc[position]
        kind: Kind = "text"
        if pd.api.types.is_float_dtype(dtype):
            kind = "number"
        elif pd.api.types.is_integer_dtype(dtype):
            kind = "count"
        described[name] = Column(str(name), kind)
    return described
