"""Small frames → tables, in HTML and in Markdown: n records are n rows, whatever their text holds."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from ragnb import texts
from ragnb.markup.cells import GONE, MISSING, Column, cells
from ragnb.markup.text import Safe, element, md_cell


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
