"""Tables as CSV text that a spreadsheet opens as it was, and in which no cell is a formula."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

import numpy as np
import pandas as pd

from ragnb.readers.raw import absent

GUARD_COLUMN = "ragnb__guarded"
_FORMULA = "=+-@\t\r\n"
_NEEDS_QUOTES = re.compile(r'[",\r\n]|^\s|\s$')


def to_csv_text(frame: pd.DataFrame) -> str:
    """Write a frame as CSV text: UTF-8 characters, line feeds, 12 significant digits, lists as JSON.

    Parameters
    ----------
    frame : DataFrame
        The index is left out. Missing cells are empty; an empty text reads back as missing. A NUL, which no
        CSV reader agrees about, becomes U+FFFD.

    Returns
    -------
    str
        The same text for the same frame.

    Notes
    -----
    A text whose first visible character is, after NFKC, one of ``= + - @``, or that starts with a tab or a line
    end, gets ``'`` in front, and so does one that starts with ``'``; numbers never do.

    Examples
    --------
    >>> print(to_csv_text(pd.DataFrame({"a": ["=1+1", "x"], "b": [0.1 + 0.2, None]})), end="")
    a,b,ragnb__guarded
    '=1+1,0.3,1
    x,,1
    >>> print(to_csv_text(pd.DataFrame({"a": [["x", "y"]]})), end="")
    a
    "[""x"", ""y""]"
    """
    columns: list[list[Any]] = []  # each with its name in front, which may be a formula, too
    for i, name in enumerate(frame.columns):  # by place, as two may have one name
        cells = frame.iloc[:, i].tolist()
        columns.append([str(name), *map(_plain, cells)])
    if any(isinstance(cell, str) and _is_formula(cell) for cells in columns for cell in cells):
        columns = [[_guarded(cell) for cell in cells] for cells in columns]
        columns.append([GUARD_COLUMN, *[1] * len(frame)])
    lines = []
    for row in zip(*columns, strict=True):
        line = ",".join(map(_quoted, row))
        # Readers skip an empty line, and this one is an empty cell of a single column.
        lines.append(line or '""')
    return "".join(f"{line}\n" for line in lines)


def _plain(value: Any) -> Any:
    """Return a cell as a text, a number or a bool; a missing one as an empty text."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, set | frozenset):
        value = sorted(value)  # the order of a set differs from run to run
    if isinstance(value, list | tuple | dict):
        value = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    if absent(value):
        return ""
    if isinstance(value, bool | int | float):
        return value
    text = str(value).encode("utf-8", "replace").decode("utf-8")  # a lone surrogate becomes "?"
    return text.replace("\0", "\ufffd")


def _guarded(cell: Any) -> Any:
    """Return a text with ``'`` in front where it is a formula, or where it has one that reading would remove."""
    if isinstance(cell, str) and (cell.startswith("'") or _is_formula(cell)):
        return f"'{cell}"
    return cell


def _quoted(cell: Any) -> str:
    """Write a cell, in quotes where needed: csv.writer leaves a lone carriage return bare."""
    if isinstance(cell, float):
        text = format(cell + 0.0, ".12g")  # -0.0 + 0.0 is 0.0
    else:
        text = str(cell)
    if _NEEDS_QUOTES.search(text):
        doubled = text.replace('"', '""')
        return f'"{doubled}"'
    return text


def _is_formula(text: str) -> bool:
    """Whether a spreadsheet may run the text: its first visible character, folded, starts a formula."""
    if text[:1] in ("\t", "\r", "\n"):
        return True
    # Spaces, controls, and characters without a width, such as U+200B.
    invisible = ("Cf", "Zs", "Cc", "Zl", "Zp")
    visible = (character for character in text if unicodedata.category(character) not in invisible)
    # NFKC makes a full-width ＝ a plain one.
    first = unicodedata.normalize("NFKC", next(visible, ""))[:1]
    return first != "" and first in _FORMULA
