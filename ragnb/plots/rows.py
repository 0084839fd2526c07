"""Dots with intervals in rows, and a grid of them: what most charts are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ragnb.markup import (
    is_missing,
)
from ragnb.markup.rendering import (
    INK,
)
from ragnb.plots.canvas import (
    GREY,
    Axes,
    canvas,
    legend_below,
)

# Neither is the ink of the page, which turns light where the page is dark: cells keep their shade there.
DARK, LIGHT = "#111111", "#ffffff"


class Dot(NamedTuple):
    """One estimate as a row: value, interval, the text to its right, and its mark."""

    at: Sequence[Any]
    words: str
    colour: str = INK
    mark: str = "o"
    label: str = ""


Row = tuple[str, list[Dot]]


@contextmanager
def dot_rows(
    look: Mapping[str, Any],
    rows: Sequence[Row],
    *,
    finding: str,
    labels: Sequence[str],
    about: str = "",
    span: tuple[float, float] | None = None,
) -> Iterator[Axes]:
    """Yield Axes with one row per dot, grouped under their names, the first on top, with a text alternative.

    A missing estimate is its words alone. The labels of the first group name the marks in a legend. `about` comes
    before the values in the words, `span` is the whole range of the scale, and `labels` are those of the axes.
    """
    many = max((len(group) for _, group in rows), default=1)
    gap = 0.6 if many > 1 else 0.0  # between groups, in rows
    space = many + gap
    values = [about]
    height = max(space * len(rows), 1)
    with canvas(look, 1.0 + 0.3 * height) as (ax, describe):
        for place, (name, group) in enumerate(rows):
            for step, dot in enumerate(group):
                y = place * space + step
                value, low, high = dot.at
                if not is_missing(low) and not is_missing(high):
                    ax.plot(
                        [float(low), float(high)],
                        [y, y],
                        color=dot.colour,
                        linewidth=2.2,
                        solid_capstyle="butt",
                        label="_interval",
                    )
                # Also of a missing estimate, without a point: the legend names its mark.
                at: Any = ([], [])
                if not is_missing(value):
                    at = ([float(value)], [y])
                label = "_row"
                if place == 0 and dot.label:
                    label = dot.label
                ax.plot(*at, dot.mark, color=dot.colour, ms=6, zorder=3, label=label)
                ax.text(
                    1.02,
                    y,
                    dot.words,
                    transform=ax.get_yaxis_transform(),
                    va="center",
                    fontsize=8.5,
                )
                who = f"{name}, {dot.label}" if dot.label else name
                # Two spaces separate words on the chart, a comma those of the text alternative.
                words = dot.words.replace("  ", ", ")
                values.append(f"{who}: {words}")
        middles = [place * space + (many - 1) / 2 for place in range(len(rows))]
        name_rows(ax, middles, [name for name, _ in rows], height - 0.4 - gap, -0.6)
        ax.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
        ax.set_axisbelow(True)
        if span is not None:
            whole_scale(ax, "x", *span)
            ax.spines.bottom.set_bounds(*span)
        yield ax
        legend_below(ax)
        describe(finding, values, *labels)


def name_rows(
    ax: Axes, places: Iterable[float], names: Sequence[str], bottom: float, top: float
) -> None:
    """Write the names of rows at their places, without an axis beside them."""
    ax.set_yticks([*places], names)
    ax.set_ylim(bottom, top)
    ax.spines.left.set_visible(False)
    ax.tick_params(axis="y", length=0)


def whole_scale(
    ax: Axes, x: str, low: float, high: float, margin: float = 0.02, below: float | None = None
) -> None:
    """Show a whole scale on an axis, ``x`` or ``y``, with margins as shares of it; mark whole points where few."""
    if below is None:
        below = margin
    ends: Any = (low - below * (high - low), high + margin * (high - low))
    ax.set(**{f"{x}lim": ends})
    if float(high - low).is_integer() and 3 <= high - low <= 12:
        ax.set(**{f"{x}ticks": np.arange(low, high + 0.5)})


def percents(axis: Any) -> None:
    """Write shares from 0 to 1 as percentages along an axis."""
    axis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")


def grid(ax: Axes, shades: Any, written: Sequence[Sequence[str]], size: float) -> None:
    """Shade cells from 0 (light) to 1 (dark), nan for none, and write in each, the first row on top."""
    from matplotlib.colors import to_rgba
    from seaborn import heatmap
    from seaborn.utils import relative_luminance

    # Not the ends of the map, so that a cell stands out from white paper and from a dark page.
    heatmap(
        shades,
        ax=ax,
        cmap="Blues",
        vmin=-0.05,
        vmax=1.2,
        linewidths=0.5,
        linecolor=to_rgba(GREY, 0.25),
        cbar=False,
        xticklabels=False,
        yticklabels=False,
    )
    faces = ax.collections[-1].get_facecolor()
    for k, ((y, x), shade) in enumerate(np.ndenumerate(shades)):
        # Seaborn's own numbers turn white at a luminance of .408, where black is still the clearer (WCAG).
        ink: Any = {}
        if not np.isnan(shade):
            is_dark = relative_luminance(faces[k]) < 0.179
            ink = {"color": LIGHT if is_dark else DARK}
        ax.text(x + 0.5, y + 0.5, written[y][x], ha="center", va="center", fontsize=size, **ink)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
