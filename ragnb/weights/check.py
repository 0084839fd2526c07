"""Weights as users write them: checked strictly, and compared with the names that occur."""

from __future__ import annotations

import math
import unicodedata
import warnings
from collections.abc import Collection, Mapping
from numbers import Real
from typing import Any

import numpy as np

from ragnb.errors import RagnbError, RagnbWarning, did_you_mean, place


def spelt(name: object) -> str:
    """Return a name as text: a whole number as its digits, which columns with gaps hold as floats.

    Examples
    --------
    >>> spelt(7.0), spelt(0.5), spelt("7.0")
    ('7', '0.5', '7.0')
    """
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name)


def nfc(name: object) -> str:
    """Return a name in Unicode form NFC, in which document names are compared.

    Examples
    --------
    >>> nfc("re\\u0301sume\\u0301.pdf") == "r\\u00e9sum\\u00e9.pdf"
    True
    """
    return unicodedata.normalize("NFC", spelt(name))


def check_weights(weights: Mapping[str, Any] | None, what: str, *, source: object = None) -> dict[str, float]:
    """Return the weights as floats, or refuse them.

    Parameters
    ----------
    weights : mapping of name to weight, or None
        Finite, ≥ 0, not all zero; booleans and strings are no weights. None and ``{}`` mean 1.0 everywhere.
    what : str
        ``metric_weights`` or ``doc_weights``, for the message.
    source : optional
        The file they come from, for the message.

    Raises
    ------
    RagnbError
        With the file, the key and the value.

    Examples
    --------
    >>> check_weights({"faithfulness": 2}, "metric_weights")
    {'faithfulness': 2.0}
    """
    checked: dict[str, float] = {}
    if weights is not None and not isinstance(weights, Mapping):
        raise RagnbError(f"{what}={weights!r} is no mapping; write {{name: weight}}")
    for name, value in (weights or {}).items():
        where = place(source, key=f"{what}.{name}")
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
            raise RagnbError(f"{where}{value!r} is no weight; write a number such as 0.3")
        number = _finite(value)
        if number is None or number < 0:
            raise RagnbError(f"{where}{value!r} is no weight; it must be finite and not negative")
        key = nfc(name) if what == "doc_weights" else str(name)
        if key in checked:
            raise RagnbError(f"{where}the name stands twice (equal in Unicode form NFC); keep one of them")
        checked[key] = number
    if checked and not any(checked.values()):
        raise RagnbError(f"{place(source, key=what)}all weights are 0; give one a positive weight, such as 1.0")
    return checked


def _finite(value: Real) -> float | None:
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def warn_unused(weights: Mapping[str, float], names: Collection[str], what: str, stacklevel: int = 3) -> None:
    """Warn for each weight whose name does not occur, with the near names.

    Examples
    --------
    >>> warn_unused({"a": 1.0}, ["a", "b"], "doc_weights")
    """
    have = set(names)
    for name in weights:
        if name not in have:
            warnings.warn(
                f"{what} names {name!r}, which does not occur; {did_you_mean(name, list(names))}",
                RagnbWarning,
                stacklevel=stacklevel + 1,
            )
