"""Weights as users write them: checked strictly, and compared with the names that occur."""

from __future__ import annotations

import math
import unicodedata
import warnings
from collections.abc import Collection, Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from ragnb.errors import RagnbError, RagnbWarning, did_you_mean, place, unknown
from ragnb.readers.names import rename_map
from ragnb.schema import METRICS


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


def check_weights(
    weights: Mapping[str, Any] | None, what: str, *, source: object = None, names: Collection[str] = ()
) -> dict[str, float]:
    """Return the weights as floats, or refuse them.

    Parameters
    ----------
    weights : mapping of name to weight, or None
        Finite, ≥ 0; 0 leaves its name out. Booleans and strings are no weights. None and ``{}`` mean 1.0
        everywhere.
    what : str
        ``metric_weights`` or ``doc_weights``, for the message.
    source : optional
        The file they come from, for the message.
    names : collection of str
        Metrics that are what they are called; what a tool calls another one is ragnb's name of it.

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
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real | Decimal):
            raise RagnbError(f"{where}{value!r} is no weight; write a number such as 0.3")
        number = _finite(value)
        if number is None or number < 0:
            raise RagnbError(f"{where}{value!r} is no weight; it must be finite and not negative")
        key = nfc(name) if what == "doc_weights" else metric_name(str(name), names)
        if key in checked:
            raise RagnbError(f"{where}the name stands twice (equal in Unicode form NFC); keep one of them")
        checked[key] = number
    return checked


def metric_name(name: str, names: Collection[str] = ()) -> str:
    """Return ragnb's name of the metric that a frame's header means; any other name, and those of `names`, stay.

    Examples
    --------
    >>> metric_name("Groundedness"), metric_name("Groundedness", ["Groundedness"]), metric_name("q")
    ('faithfulness', 'Groundedness', 'q')
    """
    meant = name if name in names else rename_map([name]).get(name, name)
    return meant if meant in METRICS else name


def check_metric_weights(
    weights: Mapping[str, Any] | None, names: Collection[str], *, stacklevel: int = 3
) -> dict[str, float]:
    """Return the metric weights as floats; an unknown name is refused, a known one that is absent warns.

    Examples
    --------
    >>> check_metric_weights({"context_recall": 10}, ["context_recall"])
    {'context_recall': 10.0}
    """
    checked = check_weights(weights, "metric_weights", names=names)
    for name in checked:
        if name not in names and name not in METRICS:
            step = "A metric of your own is declared first: metrics=[Metric(name, low, high)]."
            raise unknown("metric_weights", name, list(dict.fromkeys([*names, *METRICS])), step)
    warn_unused(checked, names, "metric_weights", stacklevel=stacklevel + 1)
    return checked


def present_weights(weights: Mapping[str, float], names: Collection[str]) -> dict[str, float]:
    """Return the weights of what occurs, names compared in Unicode form NFC.

    Examples
    --------
    >>> present_weights({"a": 2.0, "b": 3.0}, ["b", "c"])
    {'b': 3.0}
    """
    return {name: weight for name, weight in weights.items() if name in names or nfc(name) in names}


def refuse_all_zero(left: bool, what: str) -> None:
    """Refuse weights that leave nothing of a table."""
    if not left:
        raise RagnbError(f"{what}: all weights are 0; give one a positive weight, such as 1.0")


def _finite(value: Real | Decimal) -> float | None:
    try:
        number = float(value)
    except (OverflowError, ValueError):  # a whole number beyond floats, a signalling nan
        return None
    return number if math.isfinite(number) else None


def warn_unused(weights: Mapping[str, float], names: Collection[str], what: str, stacklevel: int = 3) -> None:
    """Warn for each weight whose name does not occur, with the near names.

    Examples
    --------
    >>> warn_unused({"a": 1.0}, ["a", "b"], "doc_weights")
    """
    have = set(names) if weights else set()
    for name in weights:
        if name not in have:
            warnings.warn(
                f"{what} names {name!r}, which does not occur; {did_you_mean(name, list(names))}",
                RagnbWarning,
                stacklevel=stacklevel + 1,
            )
