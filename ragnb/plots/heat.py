"""A grid of shaded cells with their numbers in them, for every heat map of this room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ragnb.markup import MISSING, text_width
from ragnb.plots.canvas import GREY, Axes, fitted, wrapped

# Neither is the ink of the page, which turns light where the page is dark: cells keep their shade there.
DARK, LIGHT = "#111111", "#ffffff"
MOST_LINES = 3
_SIZE = 8.5


def grid(ax: Axes, shades: np.ndarray, written: Sequence[Sequence[str]], *, cmap: str, size: float = 8.5) -> None:
    """Shade cells from 0 (light) to 1 (dark), nan for a cell without shade, and write in each.

    A cell that says `MISSING` is hatched; an empty text leaves it bare. The first row is on top.
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    colours, (rows, columns) = colormaps[cmap], shades.shape
    for (y, x), shade in np.ndenumerate(shades):
        gone, text = bool(np.isnan(shade)), written[y][x]
        # Not the darkest end of the map, so that a cell stands out from a dark page too.
        face = "none" if gone else colours(0.04 + 0.8 * shade)
        hatch, edge = ("////", GREY) if text == MISSING else (None, to_rgba(GREY, 0.4))
        look: dict[str, Any] = {"facecolor": face, "edgecolor": edge, "linewidth": 0.5, "hatch": hatch}
        ax.add_patch(Rectangle((x, y), 1, 1, label="_cell", **look))
        if text:
            ink: dict[str, Any] = {} if gone else {"color": LIGHT if _dark(face) else DARK}
            ax.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=size, **ink)
    ax.set(xlim=(0, columns), ylim=(max(rows, 1), 0))
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.set_yticks(np.arange(rows) + 0.5)
    ax.set_xticks(np.arange(columns) + 0.5)


def _dark(face: Any) -> bool:
    """Whether white text stands out more than black from a colour, by WCAG's relative luminance."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in face[:3]]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear)) < 0.179


def heads(names: Sequence[str], points: float) -> tuple[list[str], bool, float]:
    """Lay out names of columns that are `points` wide: across where three lines hold each, else upright.

    Returns the names, broken into lines, whether they are upright, and how high they stand, in points.

    Examples
    --------
    >>> heads(["context_recall"], 60.0)
    (['context_\\nrecall'], False, 22.0)
    """
    across = [wrapped(name, points - 4, _SIZE) for name in names]
    if all(len(name.splitlines()) <= MOST_LINES and _wide(name) <= points - 2 for name in across):
        return across, False, 11.0 * max((len(name.splitlines()) for name in across), default=0)
    upright = [fitted(name, 150.0, _SIZE) for name in names]
    return upright, True, max(map(_wide, upright))


def name_columns(ax: Axes, names: list[str], upright: bool) -> None:
    """Write the names above their columns."""
    ax.xaxis.tick_top()
    turn: dict[str, Any] = {"rotation": 90, "va": "bottom"} if upright else {}
    ax.set_xticklabels(names, fontsize=_SIZE, **turn)
    ax.xaxis.set_label_position("bottom")


def _wide(name: str) -> float:
    return max((text_width(line, _SIZE) for line in name.splitlines()), default=0.0)
