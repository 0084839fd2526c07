"""What a single cell is: missing, a number, a text, an identifier; and which columns hold what."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ragnb.errors import RagnbError
from ragnb.readers.raw import Raw, Values, absent

MISSING_WORDS = {"", "nan", "none", "null", "na", "n/a", "<na>"}
LONGEST_WORD = max(map(len, MISSING_WORDS))
# What people, spreadsheets and databases write where a number is missing; `MISSING_WORDS` where a text is.
NO_NUMBER = {
    *MISSING_WORDS,
    *"-–—/无無",
    "--",
    "#n/a",
    "#na",
    "n.a.",
    "-nan",
    "(null)",
    r"\n",
    "缺失",
}
# Columns by what their cells become.
CONTEXTS = ("retrieved_contexts", "ground_truth_contexts")
IDS = ("sample_id", "doc_name", "system", "repeat", "persona", "cluster", "item_id")
TEXTS = ("question", "answer", "ground_truth_answer")
LISTS = ("source_units", "generation_params", "chunks", "citations", "gold_ids", "passage_id")
NESTED = (list, tuple, np.ndarray, Mapping)
# Bounded repetitions: a cell may hold a megabyte of digits.
NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d{1,4})?")
# What Polars and Python read alike.
SIMPLE = re.compile(r"-?[0-9]{1,40}(\.[0-9]{0,40})?(e-?[0-9]{2})?")
# 0,87 and 12,5; not 1,234, which may be a thousand.
DECIMAL_COMMA = re.compile(r"[-+]?(0,\d{1,18}|\d{1,9},(?!\d{3}(?:\s{0,3}%)?$)\d{1,18})(\s{0,3}%)?")
PERCENT = re.compile(r"[-+]?(\d{1,9}(\.\d{0,18})?|\.\d{1,18})\s{0,3}%")


def is_number_text(word: str) -> bool:
    """Whether a text is a number, also with a decimal comma or a percent sign.

    Examples
    --------
    >>> [is_number_text(word) for word in ("0.5", "0,5", "87%", "8/10", "")]
    [True, True, True, False, False]
    """
    forms = (NUMBER, DECIMAL_COMMA, PERCENT)
    return any(form.fullmatch(word) for form in forms)


def as_text(value: Any) -> str | None:
    """Return a cell of a text column as text; missing stays missing.

    Examples
    --------
    >>> as_text(42), as_text("NaN"), as_text("None"), as_text("")
    ('42', None, 'None', '')
    """
    if absent(value) or (isinstance(value, str) and value.strip() in ("NaN", "<NA>")):
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return as_id(value)


def as_id(value: Any) -> str | None:
    """Return an identifier as text: leading zeros stay, a whole float loses its ``.0``.

    Examples
    --------
    >>> as_id("007"), as_id(7), as_id(7.0), as_id("")
    ('007', '7', '7', None)
    """
    if absent(value) or value == "":
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def each(raw: Raw, name: str, read: Callable[[Any], Any], expected: str) -> None:
    """Apply a parser to a column; an error names the place, what was found and what is expected."""
    out: Values = []
    for i, value in enumerate(raw.columns[name]):
        try:
            out.append(read(value))
        except (ValueError, TypeError, KeyError) as error:
            shown = repr(value)
            cut = "…" if len(shown) > 80 else ""
            raise RagnbError(
                f"{raw.where(i)}column {name!r}: found {shown[:80]}{cut}, expected {expected}"
            ) from error
    raw.columns[name] = out
