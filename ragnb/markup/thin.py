"""An interval as a thin bar, for the cells of a table and for cards: no words of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ragnb.markup.cells import is_missing, with_interval
from ragnb.markup.svg import Scale, check_span, line, picture
from ragnb.markup.text import Safe, element

_HEIGHT, _MIDDLE = 16, 8.0


def thin_svg(
    value: Any,
    low: Any,
    high: Any,
    *,
    label: str,
    span: tuple[float, float] = (0, 1),
    bars: Iterable[float] = (),
    percent: bool = False,
    width: int = 120,
) -> Safe:
    """Draw an estimate and its interval on the whole of a scale, in the height of a line of text.

    Parameters
    ----------
    value, low, high : float or None
        The estimate and the ends of its interval; of a missing one only the scale is drawn.
    label : str
        What the estimate is of; the numbers are added to it for those who cannot see the picture.
    span : (float, float)
        The ends of the scale.
    bars : iterable of float
        Thresholds, drawn as dashed lines; the table names them.
    percent : bool
        Say the numbers as percentages.
    width : int
        Pixels.

    Raises
    ------
    RagnbError
        For a scale that is empty or endless.

    Examples
    --------
    >>> 'aria-label="recall: 81.2 % [77.1, 84.3]"' in thin_svg(0.812, 0.771, 0.843, label="recall", percent=True)
    True
    """
    x = Scale(*check_span(span), 5.0, width - 5.0)
    parts = [line(x.left, _MIDDLE, x.right, _MIDDLE, stroke_opacity=0.35)]
    parts += [line(edge, _MIDDLE - 3, edge, _MIDDLE + 3, stroke_opacity=0.35) for edge in (x.left, x.right)]
    parts += [line(x(at), 1, x(at), _HEIGHT - 1, stroke_dasharray="3 2", class_="rg-bar") for at in bars]
    if not is_missing(value):
        if not is_missing(low) and not is_missing(high):
            parts.append(line(x(low), _MIDDLE, x(high), _MIDDLE, stroke_width=3, class_="rg-interval"))
        parts.append(element("circle", cx=x(value), cy=_MIDDLE, r=4.0, class_="rg-dot"))
    return picture(width, _HEIGHT, f"{label}: {with_interval(value, low, high, percent)}", *parts)
