"""Rows of dots with their intervals, each with its number written beside it: how every estimate is drawn here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragnb.markup import INK
from ragnb.markup.cells import is_missing
from ragnb.plots.canvas import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

GOOD, WATCH, BAD = "#009E73", "#E69F00", "#D55E00"
"""Okabe and Ito's green, orange and vermilion; never without a word or another shape beside them."""


@dataclass(frozen=True)
class Row:
    """One estimate: where it stands, what is written on its right, how it is marked."""

    y: float
    value: Any
    low: Any
    high: Any
    said: str
    colour: str = INK
    mark: str = "o"
    label: str = "_row"


def draw_row(ax: Axes, row: Row) -> None:
    """Draw a dot on its interval, the words to the right of the Axes; a missing estimate is its words alone."""
    if not is_missing(row.low) and not is_missing(row.high):
        ends = [float(row.low), float(row.high)]
        ax.plot(ends, [row.y, row.y], color=row.colour, linewidth=2.2, solid_capstyle="butt", label="_interval")
    at = [] if is_missing(row.value) else [float(row.value)]
    ax.plot(
        at, [row.y] * len(at), linestyle="none", marker=row.mark, color=row.colour, markersize=6,
        label=row.label, zorder=3,
    )  # fmt: skip
    ax.text(1.02, row.y, row.said, transform=ax.get_yaxis_transform(), va="center", fontsize=8.5)


def name_rows(ax: Axes, heights: Sequence[float], names: Sequence[str], bottom: float) -> None:
    """Name the rows, the first on top, and leave only the scale below them."""
    ax.set_yticks(heights, names)
    ax.set_ylim(bottom, -0.6)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)


def whole(ax: Axes, low: float, high: float) -> None:
    """Show a whole range on the scale below, with a step for each point where these are few."""
    margin = 0.02 * (high - low)
    ax.set_xlim(low - margin, high + margin)
    if high - low == int(high - low) and 3 <= high - low <= 12:
        ax.set_xticks([low + step for step in range(int(high - low) + 1)])
    ax.spines.bottom.set_bounds(low, high)


def percents(axis: Axis) -> None:
    """Write shares from 0 to 1 as percentages along an axis."""
    axis.set_ticks([k / 100 for k in range(0, 101, 20)], labels=[f"{k} %" for k in range(0, 101, 20)])
