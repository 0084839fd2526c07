"""Frames → CSV text that no spreadsheet runs, with the same bytes for the same frame; and the way back.

Texts that a spreadsheet would take for a formula get a ``'`` in front. A last column ``ragnb__guarded`` says that
this was done; a reader of ours sees it, takes the ``'`` away again and drops the column.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

GUARD_COLUMN = "ragnb__guarded"
_QUOTED = re.compile(r'[",\r\n]|^\s|\s$')
_FORMULA = "=+-@\t\r\n"


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
    header = [str(name) for name in frame.columns]
    cells = [[_plain(value) for value in frame.iloc[:, i].tolist()] for i in range(len(header))]
    guarded = any(_is_formula(text) for text in header) or any(
        isinstance(value, str) and _is_formula(value) for column in cells for value in column
    )
    names = [_guard(name) for name in header] if guarded else header
    columns = [[_word(value, guarded) for value in column] for column in cells]
    if guarded:
        names, columns = [*names, GUARD_COLUMN], [*columns, ["1"] * len(frame)]
    return "".join(f"{_line(row)}\n" for row in [names, *zip(*columns, strict=True)])


def undo_guard(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Take the guards off the columns of a file that says it has them.

    Examples
    --------
    >>> undo_guard({"a": ["'=1", "x"], "ragnb__guarded": ["1", "1"]})
    {'a': ['=1', 'x']}
    >>> undo_guard({"a": ["'=1"]})
    {'a': ["'=1"]}
    """
    if GUARD_COLUMN not in columns:
        return columns
    return {
        name.removeprefix("'"): [cell.removeprefix("'") if isinstance(cell, str) else cell for cell in cells]
        for name, cells in columns.items()
        if name != GUARD_COLUMN
    }


def _plain(value: Any) -> Any:
    """Return a cell as a text, a number, a bool or None; everything else as text."""
    if isinstance(value, np.ndarray | set | frozenset):
        value = sorted(value) if isinstance(value, set | frozenset) else value.tolist()
    if isinstance(value, list | tuple | dict):
        value = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool | int | float):
        return value
    return str(value).encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def _word(value: Any, guarded: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return format(value + 0.0, ".12g")
    return _guard(value) if guarded and isinstance(value, str) else str(value)


def _line(cells: Iterable[str]) -> str:
    """Quote where needed: csv.writer leaves a lone carriage return bare."""
    words = [f'"{cell.replace(chr(34), chr(34) * 2)}"' if _QUOTED.search(cell) else cell for cell in cells]
    return ",".join(words) if words != [""] else '""'


def _guard(text: str) -> str:
    return f"'{text}" if text.startswith("'") or _is_formula(text) else text


def _is_formula(text: str) -> bool:
    """Whether a spreadsheet may run the text: its first visible character, folded, starts a formula."""
    visible = (c for c in text if unicodedata.category(c) not in ("Cf", "Zs", "Cc", "Zl", "Zp"))
    first = unicodedata.normalize("NFKC", next(visible, ""))[:1]
    return text[:1] in ("\t", "\r", "\n") or (first != "" and first in _FORMULA)
