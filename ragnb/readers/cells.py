"""Cells → lists of texts, texts, identifiers, truth values; what no parser takes stays as text and is counted."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ragnb.errors import RagnbError
from ragnb.readers.lossy import Lossy
from ragnb.readers.raw import Raw, Values, absent

MISSING_WORDS = {"", "nan", "none", "null", "na", "n/a", "<na>"}
NO_NUMBER = {*MISSING_WORDS, *"-–—/无無", "--", "#n/a", "#na", "n.a.", "-nan", "(null)", r"\n", "缺失"}
"""What people, spreadsheets and databases write where a number is missing; `MISSING_WORDS` where a text is."""
_LITERAL = re.compile(r"""\[\s*(?:\]|[uUrRbB]?['"]|[\[{(\d]|None\b)""")
_ODD_ESCAPE = re.compile(r"""\\(?![\n\\'"abfnrtvxuUN])""")
_PRINTED = ("('", '("', "{'", '{"', "array(")
_TEXT_KEYS = ("text", "content", "page_content", "document")


def parse_list(text: str) -> list[Any] | None:
    """Read a JSON list, a Python list or a printed array of texts; None if it is none of them whole.

    Examples
    --------
    >>> parse_list('["a", "b"]'), parse_list("['it\\\\'s', 'b']"), parse_list("['a' 'b']")
    (['a', 'b'], ["it's", 'b'], ['a', 'b'])
    >>> parse_list("[Have the check reissued...") is None
    True
    """
    text = text.strip()
    if not _LITERAL.match(text) or not text.endswith("]"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = _parse_python(text)
    return value if isinstance(value, list) else None


def _parse_python(text: str) -> Any:
    if _ODD_ESCAPE.search(text.replace("\\\\", "")):
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None
    if re.search(r"""['"]\s+[uUrR]?['"]""", text) and isinstance(value, list):
        return _unglued(text, value)
    return value


def _unglued(text: str, value: list[Any]) -> list[Any]:
    """A printed array has no commas, so Python glues its texts together: take the texts one by one."""
    tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.string.strip()]
    words = [t for t in tokens if t.type == tokenize.STRING]
    if len(words) > len(value) and len(words) == len(tokens) - 2:
        return [ast.literal_eval(t.string) for t in words]
    return value


def as_texts(value: Any) -> tuple[list[str] | None, bool]:
    """Return a cell as a list of texts and whether it was understood; None where the cell is missing.

    Examples
    --------
    >>> as_texts("[]"), as_texts(None), as_texts("[Just have the..."), as_texts("One passage.")
    (([], True), (None, True), (['[Just have the...'], False), (['One passage.'], True))
    """
    if absent(value):
        return None, True
    if isinstance(value, str):
        if value.strip().casefold() in MISSING_WORDS:
            return None, True
        if not value.lstrip().startswith("["):
            return [value], not (value.lstrip().startswith(_PRINTED) and value.rstrip().endswith((")", "}")))
        parsed = parse_list(value)
        texts = None if parsed is None else _texts(parsed)
        return ([value], False) if texts is None else (texts, True)
    texts = _texts(value.tolist() if isinstance(value, np.ndarray) else value)
    return ([str(value)], False) if texts is None else (texts, True)


def _texts(value: Any) -> list[str] | None:
    """Return the texts of a list of texts or of records that hold one; None for anything else."""
    if not isinstance(value, list | tuple):
        return None
    texts = []
    for item in value:
        if isinstance(item, Mapping):
            item = next((item[key] for key in _TEXT_KEYS if isinstance(item.get(key), str)), None)
        if not isinstance(item, str):
            return None
        texts.append(item)
    return texts


def text_lists(raw: Raw, name: str, report: Lossy) -> None:
    """Make a column of lists of texts; a cell that cannot be parsed is kept whole, as one text."""
    pairs = [as_texts(value) for value in raw.columns[name]]
    raw.columns[name] = [texts for texts, _ in pairs]
    report.add("unparsed", name, "kept as one text", sum(not understood for _, understood in pairs))


def joined_texts(raw: Raw, name: str, report: Lossy) -> None:
    """Make a column of texts out of lists of texts: one element is the text, several are joined by line ends."""
    joined = unparsed = 0
    for i, value in enumerate(raw.columns[name]):
        listed = isinstance(value, str) and value.lstrip().startswith("[")
        if not listed and not isinstance(value, list | tuple | np.ndarray):
            continue
        texts, understood = as_texts(value)
        unparsed += not understood
        if understood and texts is not None:
            joined += len(texts) > 1
            raw.columns[name][i] = "\n".join(texts) if texts else None
    report.add("unparsed", name, "kept as text", unparsed)
    report.add("mapped", name, "several texts joined by line ends", joined)


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
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, list | dict) else str(value)


def as_bool(value: Any) -> bool | None:
    """Return a strict truth value: true, false, 0 or 1 in any case; None for anything else.

    Examples
    --------
    >>> as_bool("True"), as_bool(0), as_bool("yes") is None
    (True, False, True)
    """
    if isinstance(value, str):
        return {"true": True, "1": True, "false": False, "0": False}.get(value.strip().casefold())
    if isinstance(value, bool | np.bool_) or value in (0, 1):
        return bool(value)
    return None


def each(raw: Raw, name: str, read: Callable[[Any], Any], expected: str) -> None:
    """Apply a reader to a column; a ValueError names the place, what was found and what is expected."""
    out: Values = []
    for i, value in enumerate(raw.columns[name]):
        try:
            out.append(read(value))
        except (ValueError, TypeError) as error:
            shown = repr(value)
            raise RagnbError(
                f"{raw.where(i)}column {name!r}: found {shown[:80]}{'…' * (len(shown) > 80)}, expected {expected}"
            ) from error
    raw.columns[name] = out
