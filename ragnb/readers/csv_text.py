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
    columns = [
        [str(name), *map(_plain, frame.iloc[:, i].tolist())] for i, name in enumerate(frame.columns)
    ]
    if any(isinstance(cell, str) and _is_formula(cell) for cells in columns for cell in cells):
        columns = [[_guarded(cell) for cell in cells] for cells in columns]
        columns.append([GUARD_COLUMN, *[1] * len(frame)])
    lines = (",".join(map(_quoted, row)) for row in zip(*columns, strict=True))
    return "".join(f"{line}\n" if line else '""\n' for line in lines)


def _plain(value: Any) -> Any:
    """Return a cell as a text, a number or a bool; a missing one as an empty text."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, set | frozenset):
        value = sorted(value)
    if isinstance(value, list | tuple | dict):
        value = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    if absent(value):
        return ""
    if isinstance(value, bool | int | float):
        return value
    return str(value).encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def _guarded(cell: Any) -> Any:
    if isinstance(cell, str) and (cell.startswith("'") or _is_formula(cell)):
        return f"'{cell}"
    return cell


def _quoted(cell: Any) -> str:
    """Write a cell, in quotes where needed: csv.writer leaves a lone carriage return bare."""
    if isinstance(cell, float):
        text = format(cell + 0.0, ".12g")
    else:
        text = str(cell)
    if _NEEDS_QUOTES.search(text):
        return f'"{text.replace(chr(34), chr(34) * 2)}"'
    return text


def _is_formula(text: str) -> bool:
    """Whether a spreadsheet may run the text: its first visible character, folded, starts a formula."""
    visible = (c for c in text if unicodedata.category(c) not in ("Cf", "Zs", "Cc", "Zl", "Zp"))
    first = unicodedata.normalize("NFKC", next(visible, ""))[:1]
    return text[:1] in ("\t", "\r", "\n") or (first != "" and first in _FORMULA)
