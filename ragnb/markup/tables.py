"""How a number is written, one way each, with an em dash for what is missing; and small frames as tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, SupportsFloat

import pandas as pd

from ragnb import texts
from ragnb.markup.text import MISSING, Safe, element, is_missing, md_cell

GONE = Safe(MISSING)
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
    digits : int
        Decimals of a number or of an interval of numbers.

    Examples
    --------
    >>> Column("Mean [95 % interval]", "interval").low
    'low'
    """

    label: str
    kind: Kind = "text"
    low: str = "low"
    high: str = "high"
    digits: int = 3


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


def p_value(value: Number) -> str:
    """Write a p-value with three decimals, a smaller one as such.

    Examples
    --------
    >>> p_value(0.0123), p_value(0.0001), p_value(float("nan"))
    ('0.012', '< 0.001', '—')
    """
    return "< 0.001" if not is_missing(value) and float(value) < 0.001 else number(value)  # type: ignore[arg-type]


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
_WRITE = {"percent": percent, "count": count}


def cells(frame: pd.DataFrame, name: str, column: Column) -> list[str]:
    """Write one column of a frame, as many cells as it has rows: `Safe` where ragnb wrote the text."""
    ends = (column.low, column.high) if "interval" in column.kind else (name, name)
    rows = zip(*(frame[key].tolist() for key in (name, *ends)), strict=True)
    return [_cell(value, low, high, column) for value, low, high in rows]


def _cell(value: Any, low: Any, high: Any, column: Column) -> str:
    if isinstance(value, Safe):
        return value
    if is_missing(value):
        return GONE
    if column.kind == "text" or not isinstance(value, Real) or isinstance(value, bool):
        return str(value)
    if "interval" in column.kind:
        return Safe(with_interval(value, low, high, column.kind != "interval", column.digits))
    return Safe(number(value, column.digits) if column.kind == "number" else _WRITE[column.kind](value))


def html_table(
    frame: pd.DataFrame, *, columns: Mapping[str, Column], caption: str | None = None, lang: str = "en"
) -> Safe:
    """Return a frame as an HTML table; every cell, header and the caption is escaped.

    Parameters
    ----------
    frame : DataFrame
        One row a row of the table; the index is not shown.
    columns : mapping of column name to Column
        Which columns are shown, in which order and how. The first one heads its row where it is text. A cell that
        is `Safe` is put in as it is (in a column of dtype object: pandas' own string type makes a plain str of
        it, which is escaped).
    caption : str, optional
        What the table shows.
    lang : {"en", "zh"}
        The language of the word for a missing cell.

    Returns
    -------
    Safe
        A ``<table>`` in a ``<div>`` that scrolls sideways.

    Examples
    --------
    >>> "&lt;b&gt;" in html_table(pd.DataFrame({"answer": ["<b>"]}), columns={"answer": Column("answer")})
    True
    """
    missing = texts.entry(lang, "word.missing")
    # The mere word is for those who hear the page or copy it.
    dash = element("span", MISSING, " ", element("span", missing, class_="rg-hidden"), title=missing)
    heads, body = [], []
    for place, (name, column) in enumerate(columns.items()):
        wide = "rg-num" if column.kind != "text" else None
        heads.append(element("th", column.label, scope="col", class_=wide))
        how = {"class_": wide or "rg-text", "dir": None if wide else "auto"}
        tag, scope = ("th", "row") if place == 0 and not wide else ("td", None)
        # A dash is written for a missing cell alone: text of the frame that is one stays text.
        written = (dash if cell is GONE else cell for cell in cells(frame, name, column))
        body.append([element(tag, cell, scope=scope, **how) for cell in written])
    title = element("caption", caption) if caption is not None else ""
    head = element("thead", element("tr", *heads))
    rows = element("tbody", *(element("tr", *row) for row in zip(*body, strict=True)))
    return element("div", element("table", title, head, rows, class_="rg-table"), class_="rg-scroll")


def markdown_table(frame: pd.DataFrame, *, columns: Mapping[str, Column]) -> str:
    """Return a frame as a Markdown table: a header, a rule, and one line a record.

    Parameters
    ----------
    frame, columns
        As in `html_table`.

    Returns
    -------
    str
        ``len(frame) + 2`` lines, without a line break at the end.

    Examples
    --------
    >>> columns = {"metric": Column("metric"), "value": Column("value", "number")}
    >>> print(markdown_table(pd.DataFrame({"metric": ["context_recall"], "value": [0.5]}), columns=columns))
    | metric | value |
    | :--- | ---: |
    | context_recall | 0.500 |
    """
    written = [map(md_cell, cells(frame, name, column)) for name, column in columns.items()]
    head = [md_cell(column.label) for column in columns.values()]
    rule = [":---" if column.kind == "text" else "---:" for column in columns.values()]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *zip(*written, strict=True)])
