"""Rows of dots with their intervals, each with its number written beside it: how every estimate is drawn here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragnb.markup import INK
from ragnb.markup.cells import is_missing
from ragnb.plots.canvas import GREY, Axes

GOOD, WATCH, BAD = "#009E73", "#E69F00", "#D55E00"
"""Okabe and Ito's green, orange and vermilion; never without a word or another shape beside them."""
Estimate = tuple[Any, Any, Any]


def estimate(row: Mapping[Any, Any], value: str = "value") -> Estimate:
    """Return the value of a row and the ends of its interval, None for what is not there."""
    return row.get(value), row.get("low"), row.get("high")


def draw_row(
    ax: Axes, y: float, at: Estimate, said: str, colour: str = INK, mark: str = "o", label: str = "_row"
) -> None:
    """Draw a dot on its interval, the words to the right of the Axes; a missing estimate is its words alone."""
    value, low, high = at
    if not is_missing(low) and not is_missing(high):
        ends = [float(low), float(high)]
        ax.plot(ends, [y, y], color=colour, linewidth=2.2, solid_capstyle="butt", label="_interval")
    dot = ([], []) if is_missing(value) else ([float(value)], [y])
    ax.plot(*dot, linestyle="none", marker=mark, color=colour, markersize=6, label=label, zorder=3)
    ax.text(1.02, y, said, transform=ax.get_yaxis_transform(), va="center", fontsize=8.5)


def name_rows(
    ax: Axes, names: Sequence[str], heights: Sequence[float] | None = None, bottom: float | None = None
) -> None:
    """Name the rows, the first on top, and leave only the scale below them."""
    ax.set_yticks(range(len(names)) if heights is None else heights, names)
    ax.set_ylim(max(len(names), 1) - 0.4 if bottom is None else bottom, -0.6)
    ax.spines.left.set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)


def points(low: float, high: float) -> list[float]:
    """Return the whole points of a scale where these are few; else nothing."""
    few = float(high - low).is_integer() and 3 <= high - low <= 12
    return [low + step for step in range(int(high - low) + 1)] if few else []


def whole(ax: Axes, low: float, high: float) -> None:
    """Show a whole range on the scale below, with a step for each point where these are few."""
    margin = 0.02 * (high - low)
    ax.set_xlim(low - margin, high + margin)
    if marks := points(low, high):
        ax.set_xticks(marks)
    ax.spines.bottom.set_bounds(low, high)


def percents(axis: Any) -> None:
    """Write shares from 0 to 1 as percentages along an axis."""
    axis.set_ticks([k / 100 for k in range(0, 101, 20)], labels=[f"{k} %" for k in range(0, 101, 20)])
