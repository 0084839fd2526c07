"""Counts as one stacked bar, each part named beside it."""

from __future__ import annotations

from collections.abc import Sequence

from ragnb.markup.svg import picture, svg_text
from ragnb.markup.text import Safe, element, one_line, text_width

# Without the page's style sheet; with it the class decides, so that a dark page has its own shades.
_TONE_FILLS = {"good": "#00756b", "watch": "#8a5a00", "bad": "#b8400e", "none": "#666666"}
_WIDTH = 640


def stacked_svg(labels: Sequence[object], counts: Sequence[int], *, label: str, tones: Sequence[str]) -> Safe:
    """Draw counts as one stacked bar, each part with its label and count beside it.

    Parameters
    ----------
    labels : sequence
        The names of the parts, in the order in which they are drawn.
    counts : sequence of int
        Their sizes, above 0.
    label : str
        What the picture shows, in words.
    tones : sequence of {"good", "watch", "bad", "none"}
        The colours of judgement.

    Returns
    -------
    Safe
        An ``<svg role="img">``.

    Examples
    --------
    >>> "fine 7" in stacked_svg(["fine", "miss"], [7, 3], label="Failure modes", tones=["good", "bad"])
    True
    """
    written = [f"{one_line(name, 40)} {size:g}" for name, size in zip(labels, counts, strict=True)]
    parts: list[Safe] = []
    beside: list[tuple[str, dict[str, str]]] = []
    start = 0.0
    for size, tone, name in zip(counts, tones, written, strict=True):
        wide, colour = _WIDTH * size / sum(counts), {"class_": f"rg-{tone}", "fill": _TONE_FILLS[tone]}
        shape = {"x": start, "y": 0, "width": max(wide - 1, 0.5), "height": 22}
        parts.append(element("rect", element("title", name), **shape, **colour))
        if text_width(name) <= wide:
            parts.append(svg_text(start + wide / 2, 38, name))
        else:
            beside.append((name, colour))
        start += wide
    listed, height = _key(beside, 44.0 if len(beside) < len(counts) else 28.0)
    return picture(_WIDTH, height, f"{label}: {', '.join(written)}", *parts, *listed)


def _key(items: Sequence[tuple[str, dict[str, str]]], top: float) -> tuple[list[Safe], float]:
    """List the parts that are narrower than their labels, each with a patch of its colour, in rows."""
    parts: list[Safe] = []
    x, y = 0.0, top
    for name, colour in items:
        wide = 18 + text_width(name)
        if x and x + wide > _WIDTH:
            x, y = 0.0, y + 18
        parts.append(element("rect", x=x, y=y, width=12, height=12, **colour))
        parts.append(svg_text(x + 18, y + 11, name, "start"))
        x += wide + 18
    return parts, y + (18 if items else 0)
