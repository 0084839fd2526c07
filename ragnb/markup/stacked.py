"""Counts as one stacked bar, each part named beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsFloat

from ragnb.errors import RagnbError, listing, unknown
from ragnb.markup.cells import MISSING, is_missing
from ragnb.markup.svg import TONES, picture, svg_text
from ragnb.markup.text import Safe, element, one_line, text_width

# Without the page's style sheet; with it the class decides, so that a dark page has its own shades.
_TONE_FILLS = {"good": "#00756b", "watch": "#8a5a00", "bad": "#b8400e", "none": "#666666"}
_PARTS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#7F7F7F")


def stacked_svg(
    labels: Sequence[object],
    counts: Sequence[SupportsFloat],
    *,
    label: str,
    tones: Sequence[str] | None = None,
    width: int = 640,
) -> Safe:
    """Draw counts as one stacked bar, each part with its label and count beside it.

    Parameters
    ----------
    labels : sequence
        The names of the parts, in the order in which they are drawn.
    counts : sequence of int
        Their sizes; a part of 0 is named and not drawn.
    label : str
        What the picture shows, in words.
    tones : sequence of {"good", "watch", "bad", "none"}, optional
        Colours of judgement instead of colours of order.
    width : int
        Pixels.

    Returns
    -------
    Safe
        An ``<svg role="img">``.

    Raises
    ------
    RagnbError
        For counts that are missing or negative, or that do not pair with the labels.

    Examples
    --------
    >>> "fine 7" in stacked_svg(["fine", "retrieval miss"], [7, 3], label="Failure modes")
    True
    """
    sizes = _sizes(labels, counts)
    total = sum(sizes)
    written = [f"{one_line(name, 40)} {size:g}" for name, size in zip(labels, sizes, strict=True)]
    said = f"{label}: {', '.join(written)}"
    if total == 0:
        return picture(width, 24, said, svg_text(0, 16, ", ".join(written) or MISSING, "start"))
    colours = _part_colours(tones, len(sizes))
    parts: list[Safe] = []
    beside: list[tuple[str, dict[str, object]]] = []
    start = 0.0
    for size, colour, name in zip(sizes, colours, written, strict=True):
        wide = width * size / total
        if size:
            shape = {"x": start, "y": 0, "width": max(wide - 1, 0.5), "height": 22}
            parts.append(element("rect", element("title", name), **shape, **colour))
        if text_width(name) <= wide:
            parts.append(svg_text(start + wide / 2, 38, name))
        else:
            beside.append((name, colour))
        start += wide
    listed, height = _key(beside, width, 44.0 if len(beside) < len(sizes) else 28.0)
    return picture(width, height, said, *parts, *listed)


def _key(items: Sequence[tuple[str, dict[str, object]]], width: float, top: float) -> tuple[list[Safe], float]:
    """List the parts that are narrower than their labels, each with a patch of its colour, in rows."""
    parts: list[Safe] = []
    x, y = 0.0, top
    for name, colour in items:
        wide = 18 + text_width(name)
        if x and x + wide > width:
            x, y = 0.0, y + 18
        parts.append(element("rect", x=x, y=y, width=12, height=12, **colour))
        parts.append(svg_text(x + 18, y + 11, name, "start"))
        x += wide + 18
    return parts, y + (18 if items else 0)


def _sizes(labels: Sequence[object], counts: Sequence[SupportsFloat]) -> list[float]:
    if len(labels) != len(counts):
        raise RagnbError(f"{len(labels)} labels do not pair with {len(counts)} counts; give one count a label")
    if any(is_missing(size) or float(size) < 0 for size in counts):
        raise RagnbError(f"counts={listing(counts)} hold a missing or negative count; leave such parts out")
    return [float(size) for size in counts]


def _part_colours(tones: Sequence[str] | None, most: int) -> list[dict[str, object]]:
    if tones is None:
        return [{"fill": _PARTS[place % len(_PARTS)]} for place in range(most)]
    for tone in tones:
        if tone not in TONES:
            raise unknown("tone", tone, list(TONES))
    return [{"class_": f"rg-{tone}", "fill": _TONE_FILLS[tone]} for tone in tones]
