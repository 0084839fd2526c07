"""Small pictures as SVG strings: an interval on its scale, tall or as thin as a line of text.

Text and axes are drawn in ``currentColor``, so that a picture follows the page it stands in, light or dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ragnb.errors import RagnbError
from ragnb.markup.tables import with_interval
from ragnb.markup.text import MISSING, Safe, element, is_missing, one_line, text_width

INK = "#1f2328"
"""The colour of text and axes where ``currentColor`` cannot be said."""

SYSTEM_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000")
"""Okabe and Ito's colours that stand 3 : 1 out from white; black is drawn in the colour of the text."""

DASHES: tuple[tuple[float, ...], ...] = ((), (6, 3), (2, 2), (8, 3, 2, 3), (12, 4))
"""One dash pattern a system, in pixels, so that grey print keeps them apart."""


def picture(width: float, height: float, label: str, *children: object) -> Safe:
    """Return an ``<svg>`` that says what it shows, as wide as it is drawn and never wider than its place."""
    return element(
        "svg", *children, xmlns="http://www.w3.org/2000/svg", class_="rg-svg", role="img",
        aria_label=one_line(label), width=float(width), height=float(height), viewBox=f"0 0 {width:g} {height:g}",
        fill="currentColor", font_size=12,
    )  # fmt: skip


def svg_text(x: float, y: float, text: object, anchor: str = "middle", **more: object) -> Safe:
    """Return a line of SVG text."""
    return element("text", one_line(text), x=float(x), y=float(y), text_anchor=anchor, **more)


def line(x1: float, y1: float, x2: float, y2: float, **more: object) -> Safe:
    """Return an SVG line in the colour of the text."""
    given: dict[str, object] = {"stroke": "currentColor", "stroke_width": 1, **more}
    return element("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), **given)


def check_span(span: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a scale, or refuse a scale that is empty or endless."""
    low, high = float(span[0]), float(span[1])
    if not (low < high and high - low < float("inf")):
        raise RagnbError(f"span={tuple(span)!r} is no scale; give two finite ends, the lower one first")
    return low, high


@dataclass(frozen=True)
class Scale:
    """A scale from `start` to `end`, laid between two places; what lies outside is put at its edge."""

    start: float
    end: float
    left: float
    right: float

    def __call__(self, number: float) -> float:
        inside = min(max(number, self.start), self.end)
        return self.left + (self.right - self.left) * (inside - self.start) / (self.end - self.start)


def interval_svg(
    value: Any, low: Any, high: Any, *, label: str = "", span: tuple[float, float] = (0, 1),
    bars: Iterable[tuple[str, float]] = (), percent: bool = False, width: int = 260,
) -> Safe:  # fmt: skip
    """Draw an estimate as a point with its interval on the whole of a common scale.

    Parameters
    ----------
    value, low, high : float or None
        The estimate and the ends of its interval. Nothing is drawn for a missing value but the scale and a
        dash; an end outside the scale is drawn at its edge, with an arrow.
    span : (float, float)
        The ends of the scale, both written under it.
    bars : iterable of (name, at)
        Named thresholds, drawn as lines across the scale.
    label : str
        What the estimate is of; the numbers are added to it for those who cannot see the picture.
    percent : bool
        Write the scale and the numbers as percentages.
    width : int
        Pixels.

    Returns
    -------
    Safe
        An ``<svg role="img">``.

    Raises
    ------
    RagnbError
        For a scale that is empty or endless.

    Examples
    --------
    >>> 'aria-label="recall: 0.812 [0.771, 0.843]"' in interval_svg(0.812, 0.771, 0.843, label="recall")
    True
    """
    start, end = check_span(span)
    named = sorted(((one_line(name), float(at)) for name, at in bars), key=lambda bar: bar[1])
    x, wide = Scale(start, end, 8.0, width - 8.0), [text_width(name) for name, _ in named]
    crowded = len(named) > 1 and (x(named[0][1]) < wide[0] or x(named[-1][1]) + wide[-1] > width)
    middle = 10.0 + 14 * (len(named) if crowded else (len(named) + 1) // 2)
    parts = [line(x.left, middle, x.right, middle, stroke_opacity=0.35)]
    for edge, anchor in ((start, "start"), (end, "end")):
        parts.append(line(x(edge), middle - 4, x(edge), middle + 4, stroke_opacity=0.35))
        mark = f"{100 * edge:g} %" if percent else f"{edge:g}"
        parts.append(svg_text(x(edge), middle + 20, mark, anchor, fill_opacity=0.8))
    for place, (name, at) in enumerate(named):
        # The lower of two neighbours is written to the left of its line, the higher to the right.
        left = x(at) + wide[place] > width or (len(named) > 1 and place % 2 == 0 and not crowded)
        y = 11.0 + 14 * (place if crowded else place // 2)
        parts.append(line(x(at), y - 9, x(at), middle + 8, stroke_dasharray="3 2", class_="rg-bar"))
        parts.append(svg_text(x(at) + (-3 if left else 3), y, name, "end" if left else "start"))
    dash = [svg_text(x.left + 4, middle - 4, MISSING, "start")]
    parts += dash if is_missing(value) else _dot(value, low, high, x, middle)
    said = with_interval(value, low, high, percent)
    return picture(width, middle + 24, f"{label}: {said}" if label else said, *parts)


def _dot(value: Any, low: Any, high: Any, x: Scale, y: float, radius: float = 5.0) -> list[Safe]:
    """Draw an estimate on its interval, with arrows at the edge of the scale where the interval goes on."""
    parts = []
    if not is_missing(low) and not is_missing(high):
        parts.append(line(x(low), y, x(high), y, stroke_width=3, class_="rg-interval"))
        tips = [(x.left, -radius - 1)] * (low < x.start) + [(x.right, radius + 1)] * (high > x.end)
        parts += [
            element("polygon", points=f"{at + tip:g},{y:g} {at:g},{y - 4:g} {at:g},{y + 4:g}") for at, tip in tips
        ]
    return [*parts, element("circle", cx=x(value), cy=y, r=radius, class_="rg-dot")]


def thin_svg(
    value: Any, low: Any, high: Any, *, label: str, span: tuple[float, float] = (0, 1),
    bars: Iterable[float] = (), percent: bool = False, width: int = 120,
) -> Safe:  # fmt: skip
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
    x, y = Scale(*check_span(span), 5.0, width - 5.0), 8.0
    parts = [line(x.left, y, x.right, y, stroke_opacity=0.35)]
    parts += [line(edge, y - 3, edge, y + 3, stroke_opacity=0.35) for edge in (x.left, x.right)]
    parts += [line(x(at), 1, x(at), 2 * y - 1, stroke_dasharray="3 2", class_="rg-bar") for at in bars]
    parts += [] if is_missing(value) else _dot(value, low, high, x, y, 4.0)
    return picture(width, 2 * y, f"{label}: {with_interval(value, low, high, percent)}", *parts)
