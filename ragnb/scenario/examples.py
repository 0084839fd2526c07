"""How the value of a key is written, for the messages that refuse another value."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from ragnb.schema import METRICS
from ragnb.schema.secrets import masked

KeyPath = tuple[str | int, ...]

EXAMPLES: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_name("examples.toml").read_text(encoding="utf-8")
)
_LISTS_OF_TEXT = ("metrics", "slices", "refusal", "patterns", "partial")
_COMPARISON = re.compile(r"\s*(\w+)\s*([<>≤≥]=?)\s*(\d+(?:\.\d+)?|\.\d+)\s*")
_BOUNDS = {
    **dict.fromkeys(("min", "minimum", "least", "at_least", "above", "lower"), ">="),
    **dict.fromkeys(("max", "maximum", "most", "at_most", "below", "upper"), "<="),
}
"""Words that other tools have for the two directions of a gate."""
_LONGEST = 60  # characters of a value that a message repeats


def example_of(where: KeyPath, given: Any) -> Any:
    """Return a value that a key takes, made of the value that was given where its meaning can be told.

    None where no example is known.

    Examples
    --------
    >>> example_of(("gates",), "faithfulness > 0.8")
    [{'name': 'faithfulness', 'metric': 'faithfulness', 'op': '>=', 'threshold': 0.8}]
    >>> example_of(("slices",), "language"), example_of(("where",), "strong")
    (['language'], {'system': 'strong'})
    """
    path = path_of(where)
    if path in ("gates", "gates[]"):
        gates = _meant_gates(given)
        if gates:
            return gates if path == "gates" else gates[0]
    if path in _LISTS_OF_TEXT and isinstance(given, str) and _may_be_repeated(given):
        return [given]
    return EXAMPLES.get(path)


def _may_be_repeated(text: str) -> bool:
    """Whether a message may show a text: short, visible, and no secret."""
    return 0 < len(text.strip()) <= _LONGEST and text.isprintable() and masked(text) == text


def path_of(where: KeyPath) -> str:
    """Return a place as the table of examples names it, whatever the number of an item.

    Examples
    --------
    >>> path_of(("gates", 0)), path_of(("rubric", "passing"))
    ('gates[]', 'rubric.passing')
    """
    parts = ["[]" if isinstance(part, int) else f".{part}" for part in where]
    return "".join(parts)[1:]  # without the point before the first key


def _meant_gates(given: Any) -> list[dict[str, Any]]:
    """Return the gates that a comparison such as ``faithfulness>0.8``, or names with numbers, mean."""
    if isinstance(given, str):
        fit = _COMPARISON.fullmatch(given)
        if fit is None:
            return []
        name, sign, number = fit.groups()
        threshold = float(number)
        if not math.isfinite(threshold):  # of some hundred digits
            return []
        op = ">=" if sign[0] in ">≥" else "<="
        return [_gate(name, op, threshold)]
    if not isinstance(given, Mapping):
        return []
    for name, value in given.items():
        is_name = isinstance(name, str) and re.fullmatch(r"\w+", name)
        if not is_name or not _is_number(value):
            return []
    lower = {name for name, metric in METRICS.items() if metric.better == "lower"}
    return [
        _gate(name, "<=" if name in lower else ">=", float(value)) for name, value in given.items()
    ]


def _gate(metric: str, op: str, threshold: float) -> dict[str, Any]:
    return {"name": metric, "metric": metric, "op": op, "threshold": threshold}


def bound_of(where: KeyPath, given: Any) -> str:
    """Return the sign of a gate that a key such as ``min`` means; empty for any other key.

    Examples
    --------
    >>> bound_of(("gates", 0, "min"), 0.8), bound_of(("gates", 0, "minn"), 0.8)
    ('>=', '')
    """
    if where[0] == "gates" and _is_number(given):
        return _BOUNDS.get(str(where[-1]), "")
    return ""


def _is_number(value: Any) -> bool:
    """Whether a value is a finite number that a float can hold; True and False are none."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # of a whole number of more than 308 digits
        return False
