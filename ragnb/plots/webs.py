"""Means as a web, an axis a metric."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import pandas as pd

from ragnb.markup import (
    text_width,
)
from ragnb.markup.rendering import (
    DASHES,
    SYSTEM_COLOURS,
    axis_names,
    radar_points,
    radar_runs,
)
from ragnb.plots.canvas import (
    GREY,
    WIDTH,
    Axes,
    canvas,
    fitted,
    legend_below,
    system_places,
    wrapped,
)
from ragnb.plots.means import Means, OfMeans, intervals, notes_below


def radar(means: pd.DataFrame, **look: Unpack[OfMeans]) -> Axes:
    """Draw means as closed polygons, the first metric up; fewer than three metrics become dots with intervals.

    Parameters
    ----------
    means : DataFrame
        ``[by,] metric, value`` and more, as `weighted_means` returns it. Ranges and directions are its
        columns, else from METRICS, else they are 0 to 1 and higher.
    metrics : str or several, optional
        The axes; by default the metrics that enter the weighted score. The total is no axis.
    by : str, optional
        The column of systems, at most five.
    ax : Axes, optional
        Plain ones; by default those of a new figure.
    lang : {"en", "zh"}, optional
    systems : sequence of str, optional
        The systems in the order of their colours, so that each has one in all charts; by default as they come.
    finding : str, optional
        What the picture shows, in a sentence: its title, and the start of its words. By default what stands out
        in the frame; empty for no title.

    Returns
    -------
    Axes
        The rim is the good end of the range; where lower is better the axis is turned and marked ``↓``. Metrics
        of different ranges are each drawn on their own, which their names give. A missing mean is a gap that
        the axis names; a metric without a finite range is named below and not drawn.

    Raises
    ------
    RagnbError
        For an unknown metric or column, more than five systems, and several systems without `by`.

    See Also
    --------
    intervals : The same means as dots with intervals, for reading values.

    Examples
    --------
    >>> means = pd.DataFrame({"metric": ["a", "b", "c"], "value": [0.5, None, 1.0]})
    >>> [text.get_text() for text in radar(means).texts][:3]
    ['a', 'b (missing)', 'c']
    """
    table = Means(means, total=False, **look)
    if len(table.metrics) < 3:
        return intervals(means, **look | {"metrics": [*table.metrics, *table.endless]})
    systems = {}  # the values of each, None where one is missing
    for name in table.systems:
        systems[name] = [table.at(name, metric)[0] for metric in table.metrics]
    lower = [table.better[metric] == "lower" for metric in table.metrics]
    axes = list(zip(table.metrics, table.scales.values(), lower, strict=True))
    names = [wrapped(name, 96) for name in axis_names(axes, systems, look.get("lang") or "en")]
    # Inches: the widest name has its place beside the web, which shrinks where a page is too narrow for both.
    widest = max(text_width(line, 9.0) for name in names for line in name.splitlines())
    side = widest / 72 + 0.1
    radius = max(1.0, min(1.8, WIDTH / 2 - side))
    values = list[str]()
    with canvas(look, 2.4 * radius + 0.8, 2 * (1.1 * radius + side)) as (ax, describe):
        _web(ax, names, table.common, 1.1 + side / radius)
        places = system_places(look, list(systems))
        for place, (system, values_of_system) in zip(places, systems.items(), strict=True):
            points = radar_points(values_of_system, axes)
            _draw_polygon(ax, points, place, fitted(system), is_filled=len(systems) < 3)
            words = ", ".join(
                f"{fitted(metric)} {table.written(system, metric)}" for metric in table.metrics
            )
            if len(systems) > 1:
                words = f"{fitted(system)}: {words}"
            values.append(words)
        notes = notes_below(table.say, "chart.turned", table.better.values(), table.endless)
        legend_below(ax, 10 + 14 * len(notes))
        describe(table.finding(), values, "\n".join(notes))
    return ax


def _draw_polygon(ax: Axes, points: Any, place: int, name: str, *, is_filled: bool) -> None:
    """Draw the web of one system, of which gaps leave runs of neighbours; without a gap it is closed.

    Parameters
    ----------
    points : (K, 2) float
        nan where a mean is missing.
    place : int
        The system's, among the colours and dashes.
    """
    colour = SYSTEM_COLOURS[place]
    dash = DASHES[place]
    # A system without any score has no run, and is named in the legend too.
    runs = radar_runs(points) or [([], False)]
    for part, (run, is_closed) in enumerate(runs):
        if is_closed:
            path = points[[*run, *run[:1]]]
        else:
            path = points[run]
        if part == 0:
            label = name or "_one"
        else:
            label = "_more"
        ax.plot(
            *path.T,
            label=label,
            color=colour,
            linewidth=1.6,
            marker="o",
            markersize=4,
            linestyle=(0, dash) if dash else "-",
        )
        if is_closed and is_filled:
            ax.fill(*path.T, color=colour, alpha=0.07, linewidth=0)


def _web(ax: Axes, names: list[str], common: tuple[float, float] | None, wide: float) -> None:
    """Draw the rings and the axes with their names, and on the rings the values where all share a range."""
    from matplotlib.patches import Circle

    ax.set(xlim=(-wide, wide), ylim=(-1.18, 1.18), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    thin: Any = {"linewidth": 0.6, "alpha": 0.7}
    for ring in (0.25, 0.5, 0.75, 1.0):
        ax.add_patch(Circle((0, 0), ring, fill=False, edgecolor=GREY, **thin))
    for name, (x, y) in zip(names, radar_points([1.0] * len(names)).tolist(), strict=True):
        ax.plot([0, x], [0, y], color=GREY, label="_spoke", **thin)
        if abs(x) < 0.1:
            side = "center"
        elif x > 0:
            side = "left"
        else:
            side = "right"
        ax.text(1.08 * x, 1.09 * y, name, ha=side, va="center")
    if common:
        for ring in (0.5, 1.0):
            value = f"{np.interp(ring, (0, 1), common):g}"
            ax.text(0.02, ring - 0.02, value, va="top", fontsize=8, label="_ring")
