"""How a number is written, one way each, with an em dash for what is missing."""

from __future__ import annotations

import math
from typing import SupportsFloat

from ragnb.markup.text import MISSING, is_missing

Number = SupportsFloat | None


def _fixed(value: float, digits: int) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    # Adding 0.0 after rounding takes the sign off a zero.
    return f"{round(value, digits) + 0.0:.{digits}f}"


def number(value: Number, digits: int = 3) -> str:
    """Write a score with three decimals.

    Examples
    --------
    >>> number(0.8124), number(-0.0001), number(None)
    ('0.812', '0.000', '—')
    """
    return MISSING if is_missing(value) else _fixed(float(value), digits)  # type: ignore[arg-type]


def signed(value: float, share: bool = False) -> str:
    """Write a difference with its sign, a minus that is as wide as a plus; of shares in percentage points.

    Examples
    --------
    >>> signed(0.12), signed(-0.034, share=True), signed(-0.0001)
    ('+0.120', '−3.4', '0.000')
    """
    text = number(100 * value, 1) if share else number(value)
    return f"+{text}" if value > 0 and text.strip("0.") else text.replace("-", "−")


def p_value(value: Number) -> str:
    """Write a p-value with three decimals, a smaller one as such.

    Examples
    --------
    >>> p_value(0.0123), p_value(0.0001), p_value(float("nan"))
    ('0.012', '< 0.001', '—')
    """
    return "< 0.001" if not is_missing(value) and float(value) < 0.001 else number(value)  # type: ignore[arg-type]


def percent(value: Number) -> str:
    """Write a rate as a percentage with one decimal.

    Examples
    --------
    >>> percent(0.886), percent(float("nan"))
    ('88.6 %', '—')
    """
    return MISSING if is_missing(value) else f"{_fixed(100 * float(value), 1)} %"  # type: ignore[arg-type]


def count(value: Number) -> str:
    """Write a count without decimals, thousands apart.

    Examples
    --------
    >>> count(12345.0), count(None)
    ('12,345', '—')
    """
    return MISSING if is_missing(value) else f"{round(float(value)):,}"  # type: ignore[arg-type]


def with_interval(value: Number, low: Number, high: Number, percent: bool = False, digits: int = 3) -> str:
    """Write an estimate with its interval; an end that is missing is a dash.

    Examples
    --------
    >>> with_interval(0.812, 0.771, 0.843)
    '0.812 [0.771, 0.843]'
    >>> with_interval(0.886, 0.8, 0.95, percent=True)
    '88.6 % [80.0, 95.0]'
    >>> with_interval(None, None, None)
    '—'
    """
    if is_missing(value):
        return MISSING
    if percent:
        ends = [_percent(end).removesuffix(" %") for end in (low, high)]
        return f"{_percent(value)} [{', '.join(ends)}]"
    return f"{number(value, digits)} [{number(low, digits)}, {number(high, digits)}]"


_percent = percent
