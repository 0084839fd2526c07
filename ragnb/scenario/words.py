"""How refusals speak of keys and values: short, dotted, and never with an endpoint's key in them."""

from __future__ import annotations

import re
import unicodedata

Where = tuple[str | int, ...]

_SECRET = re.compile(
    r"(?<![A-Za-z0-9])(?:sk|pk|rk|gsk)[-_][\w\-]{8,}"
    r"|(?<![A-Za-z0-9])(?:hf_|gh[pousr]_|glpat-|xox[abprs]-|AKIA|AIza)[\w\-]{12,}"
    r"|(?<![A-Za-z0-9])eyJ[\w\-]{10,}\.[\w\-.]*"
    r"|(?<![A-Za-z0-9])(?=[0-9]*[a-fA-F])[0-9a-fA-F]{32,}(?![A-Za-z0-9])"
    r"|(?i:bearer)\s+\S{8,}"
)
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


def holds_secret(text: str) -> bool:
    """Whether the text looks like a literal key.

    Examples
    --------
    >>> holds_secret("sk-" + "a1" * 8), holds_secret("task-force-report-2024.pdf")
    (True, False)
    """
    return _SECRET.search(text) is not None


def masked(text: str) -> str:
    """Put ``***`` where the text looks like a literal key.

    Examples
    --------
    >>> masked("https://host/?k=sk-" + "a1" * 8)
    'https://host/?k=***'
    """
    return _SECRET.sub("***", text)


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
