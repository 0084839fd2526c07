"""Lists that are written in a cell, as JSON or as Python prints them."""

from __future__ import annotations

import ast
import json
import re
from contextlib import suppress
from typing import Any

# How a list begins; prose in brackets, such as [Have the check reissued …, is none.
_LITERAL = re.compile(r"""\[\s*(?:\]|[uUrRbB]?['"]|[\[{(\d]|None\b)""")
# What Python does not know as an escape: reading it would warn, or change the text.
_ODD_ESCAPE = re.compile(r"""\\(?![\n\\'"abfnrtvxuUN])""")
# Texts without a comma in between, as numpy prints an array.
_GLUED = re.compile(r"""['"]\s+[uUrR]?['"]""")
# Possessive, so that a long text without an end does not take quadratic time.
_QUOTED = r"""(?:'[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+")"""
_STRING = re.compile(f"[uUrR]?{_QUOTED}", re.DOTALL)
_PLAIN = re.compile(_QUOTED, re.DOTALL)


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
    value: Any = plain_texts(text)
    if value is None:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = _parse_python(text)
    if isinstance(value, list):
        return value
    return None


def plain_texts(text: str) -> list[str] | None:
    """Return the texts of a list as ``repr`` writes it, or JSON without escapes; None for any other list."""
    words = _PLAIN.findall(text)  # in their quotes
    if not words or f"[{', '.join(words)}]" != text:
        return None
    # Neither JSON nor Python has these in a quoted text.
    if "\n" in text or "\r" in text or "\0" in text:
        return None
    if "\\" not in text:
        return [word[1:-1] for word in words]
    # What begins with " may be JSON, whose escapes are not Python's: "\/" is one, and in it two surrogates are one
    # character.
    if text[1] == '"' or _ODD_ESCAPE.search(text.replace("\\\\", "")):
        return None
    with suppress(UnicodeError):
        # `unicode_escape` reads bytes as Latin-1: characters beyond it are written as escapes first.
        return [
            word[1:-1].encode("latin-1", "backslashreplace").decode("unicode_escape")
            for word in words
        ]
    return None


def _parse_python(text: str) -> Any:
    """Return the value of a Python literal, None where it is none; texts without commas are a printed array."""
    # Pairs of backslashes are taken out first: the second of a pair does not begin an escape.
    if _ODD_ESCAPE.search(text.replace("\\\\", "")):
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None
    # NumPy prints an array of texts without commas, and Python would join such texts into one.
    if _GLUED.search(text):
        between_texts = _STRING.sub("", text[1:-1]).strip()
        if not between_texts:
            return [ast.literal_eval(word) for word in _STRING.findall(text)]
    return value
