"""Small frames → tables, in HTML and in Markdown: n records are n rows, whatever their text holds."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from ragnb.markup.cells import Cell, Column, cells, default_columns
from ragnb.markup.text import Safe, element, join, md_cell


def _headers(columns: Mapping[str, Column]) -> Safe:
    return join(
        element(
            "th",
            column.label,
            scope="col",
            class_=None if column.kind == "text" else "rg-num",
            title=column.title or None,
        )
        for column in columns.values()
    )


def _cell(cell: Cell, column: Column, heads_row: bool) -> Safe:
    content: object = cell.text
    if cell.reason is not None:
        # A reason of the frame's own is shown; the mere word is for those who hear the page or copy it.
        shown = "rg-why" if column.reason else "rg-hidden"
        content = element("span", cell.text, " ", element("span", cell.reason, class_=shown), title=cell.reason)
    return element(
        "th" if heads_row else "td",
        content,
        scope="row" if heads_row else None,
        class_="rg-text" if column.kind == "text" else "rg-num",
        dir="auto" if column.kind == "text" else None,
    )


def html_table(
    frame: pd.DataFrame,
    *,
    columns: Mapping[str, Column] | None = None,
    caption: str | None = None,
    lang: str = "en",
) -> Safe:
    """Return a frame as an HTML table; every cell, header and the caption is escaped.

    Parameters
    ----------
    frame : DataFrame
        One row a row of the table; the index is not shown.
    columns : mapping of column name to Column, optional
        Which columns are shown, in which order and how; by default all, by their types. The first one heads
        its row where it is text. A cell that is `Safe` is put in as it is (in a column of dtype object:
        pandas' own string type makes a plain str of it, which is escaped).
    caption : str, optional
        What the table shows.
    lang : {"en", "zh"}
        The language of the word for a missing cell.

    Returns
    -------
    Safe
        A ``<table>`` in a ``<div>`` that scrolls sideways.

    Raises
    ------
    RagnbError
        For a column that the frame does not have.

    Examples
    --------
    >>> "&lt;b&gt;" in html_table(pd.DataFrame({"answer": ["<b>"], "score": [0.5]}))
    True
    """
    shown = default_columns(frame) if columns is None else dict(columns)
    written = [cells(frame, name, column, lang) for name, column in shown.items()]
    kinds = list(shown.values())
    rows = [
        element(
            "tr",
            *(
                _cell(cell, column, position == 0 and column.kind == "text")
                for position, (cell, column) in enumerate(zip(row, kinds, strict=True))
            ),
        )
        for row in zip(*written, strict=True)
    ]
    title = element("caption", caption) if caption is not None else ""
    table = element(
        "table",
        title,
        element("thead", element("tr", _headers(shown))),
        element("tbody", *rows),
        class_="rg-table",
    )
    return element("div", table, class_="rg-scroll")


def markdown_table(frame: pd.DataFrame, *, columns: Mapping[str, Column] | None = None, lang: str = "en") -> str:
    """Return a frame as a Markdown table: a header, a rule, and one line a record.

    Parameters
    ----------
    frame, columns, lang
        As in `html_table`.

    Returns
    -------
    str
        ``len(frame) + 2`` lines, without a line break at the end.

    Raises
    ------
    RagnbError
        For a column that the frame does not have.

    Examples
    --------
    >>> print(markdown_table(pd.DataFrame({"metric": ["context_recall"], "value": [0.5]})))
    | metric | value |
    | :--- | ---: |
    | context_recall | 0.500 |
    """
    shown = default_columns(frame) if columns is None else dict(columns)
    written = [[_md(cell, column) for cell in cells(frame, name, column, lang)] for name, column in shown.items()]
    head = [md_cell(column.label) for column in shown.values()]
    rule = [":---" if column.kind == "text" else "---:" for column in shown.values()]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *zip(*written, strict=True)])


def _md(cell: Cell, column: Column) -> str:
    if cell.reason is not None and column.reason:
        return f"{cell.text} ({md_cell(cell.reason)})"
    return md_cell(cell.text)
