"""How refusals speak of keys and values: short, dotted, and never with an endpoint's key in them."""

from __future__ import annotations

import re
import unicodedata

from ragnb.schema import masked

Where = tuple[str | int, ...]

# Unicode gives these no format category, and yet they draw nothing.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def dotted(where: Where) -> str:
    """Word a place in the tree.

    Examples
    --------
    >>> dotted(("gates", 0, "at"))
    'gates[0].at'
    """
    parts = [f"[{part}]" if isinstance(part, int) else f".{masked(part)}" for part in where]
    return "".join(parts).removeprefix(".")


def shown(value: object, most: int = 80) -> str:
    """Show a value in a message: short, escaped, masked; of a container only what it is.

    Examples
    --------
    >>> shown("0.3"), shown(True), shown([1, 2]), shown(None)
    ("'0.3'", 'true', 'a list', 'nothing')
    """
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple | set | frozenset):
        return "a list"
    if isinstance(value, str):
        text = masked(value)
        return repr(text if len(text) <= most else f"{text[:most]}…")
    return masked(repr(value))[:most] if isinstance(value, int | float) else f"a {type(value).__name__}"


def invisible(text: str) -> list[str]:
    """Return the characters of a name that no one sees, as ``U+XXXX``.

    Examples
    --------
    >>> invisible("faith\\u202efulness"), invisible("差旅报销制度.pdf")
    (['U+202E'], [])
    """
    unseen = [
        char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") or _BLANK.match(char)
    ]
    return [f"U+{ord(char):04X}" for char in dict.fromkeys(unseen)]
