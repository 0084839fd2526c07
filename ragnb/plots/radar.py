"""The radar, for the shape of a system; its geometry is that of markup."""

from __future__ import annotations

from typing import Any, Unpack

import pandas as pd

from ragnb.errors import RagnbError
from ragnb.markup import DASHES, SYSTEM_COLOURS, radar_points, radar_runs, text_width
from ragnb.markup.radar import axis_names, check_radar
from ragnb.plots.canvas import GREY, WIDTH, Axes, Look, canvas, fitted, legend_below, wrapped
from ragnb.plots.dots import intervals
from ragnb.plots.means import Means, Metrics, notes_below


def radar(
    means: pd.DataFrame, *, metrics: Metrics = None, by: str | None = None, dots: bool = False, lang: str = "en",
    **look: Unpack[Look],
) -> Axes:  # fmt: skip
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
    dots : bool
        Put the same means as dots with intervals beside it, for reading values. Makes a figure of its own.
    ax : Axes, optional
        Plain ones; by default those of a new figure.
    lang : {"en", "zh"}
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
        For an unknown metric or column, more than five systems, several systems without `by`, and dots beside
        Axes that are given.

    Examples
    --------
    >>> means = pd.DataFrame({"metric": ["a", "b", "c"], "value": [0.5, None, 1.0]})
    >>> [text.get_text() for text in radar(means).texts][:3]
    ['a', 'b (missing)', 'c']
    """
    if dots and look.get("ax") is not None:
        raise RagnbError(
            "dots=True makes a figure of two charts; leave out ax, or draw plots.intervals beside it"
        )
    table = Means(means, metrics, by, lang, total=False)
    if len(table.metrics) < 3:
        return intervals(means, metrics=(*table.metrics, *table.endless), by=by, lang=lang, **look)
    if dots:
        return _with_dots(table, means, metrics=metrics, by=by, lang=lang, **look)
    systems: dict[str, list[Any]] = {
        name: [table.row(name, metric).get("value") for metric in table.metrics] for name in table.systems
    }
    check_radar(systems)
    heads = axis_names(table.metrics, systems, ranges=table.scales, better=table.better, lang=lang)
    names = [wrapped(name, 96) for name in heads]
    # Inches: the widest name has its place beside the web, which shrinks where a page is too narrow for both.
    side = max(text_width(line, 9.0) for name in names for line in name.splitlines()) / 72 + 0.1
    radius = max(1.0, min(1.8, WIDTH / 2 - side))
    with canvas(2.4 * radius + 0.8, lang, 2 * (1.1 * radius + side), **look) as (ax, describe):
        _web(ax, names, table.common, 1.1 + side / radius)
        lower = [table.better[metric] == "lower" for metric in table.metrics]
        for place, (system, values) in enumerate(systems.items()):
            points = radar_points(values, ranges=list(table.scales.values()), lower=lower)
            _outline(ax, points, place, fitted(system), filled=len(systems) < 3)
        notes = notes_below(table.say, "chart.turned", any(lower), table.endless)
        if len(systems) > 1:
            legend_below(ax, 10 + 14 * len(notes))
        values = [f"{fitted(name)}: " * (len(systems) > 1) + table.words(name) for name in systems]
        describe(table.finding(), "; ".join(values), "\n".join(notes))
    return ax


def _with_dots(table: Means, means: pd.DataFrame, **how: Any) -> Axes:
    """Draw the radar and, to its right, the dots."""
    from matplotlib import pyplot as plt

    rows = (len(table.metrics) + 1) * (len(table.systems) + 0.6 * (len(table.systems) > 1))
    size = 1.9 * WIDTH, max(5.6 + 0.25 * len(table.systems), 1.2 + 0.3 * rows)
    figure = plt.figure(figsize=size, facecolor="white", layout="constrained")
    halves: Any = figure.subfigures(1, 2, width_ratios=[1, 1.1])
    left = radar(means, **how | {"ax": halves[0].subplots()})
    intervals(means, **how | {"ax": halves[1].subplots(), "finding": ""})
    return left


def _web(ax: Axes, names: list[str], common: tuple[float, float] | None, wide: float) -> None:
    from matplotlib.patches import Circle

    ax.set(xlim=(-wide, wide), ylim=(-1.18, 1.18), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    thin: Any = {"linewidth": 0.6, "alpha": 0.7}
    for ring in (0.25, 0.5, 0.75, 1.0):
        ax.add_patch(Circle((0, 0), ring, fill=False, edgecolor=GREY, **thin))
    for name, (x, y) in zip(names, radar_points([1.0] * len(names)).tolist(), strict=True):
        ax.plot([0, x], [0, y], color=GREY, label="_spoke", **thin)
        side = "center" if abs(x) < 0.1 else "left" if x > 0 else "right"
        ax.text(1.08 * x, 1.09 * y, name, ha=side, va="center")
    if common is not None:
        low, high = common
        for ring in (0.5, 1.0):
            mark = f"{low + ring * (high - low):g}"
            ax.text(0.02, ring - 0.02, mark, ha="left", va="top", fontsize=8, label="_ring")


def _outline(ax: Axes, points: Any, place: int, system: str, filled: bool) -> None:
    colour, dash = SYSTEM_COLOURS[place], DASHES[place]
    style: dict[str, Any] = {"color": colour, "linewidth": 1.6, "marker": "o", "markersize": 4}
    style["linestyle"] = (0, dash) if dash else "-"
    # A system without any score has no run, and is named in the legend too.
    for number, (run, closed) in enumerate(radar_runs(points) or [([], False)]):
        path = points[[*run, *run[:1]] if closed else run]
        ax.plot(path[:, 0], path[:, 1], label="_more" if number else system or "_one", **style)
        if closed and filled:
            ax.fill(path[:, 0], path[:, 1], color=colour, alpha=0.07, linewidth=0)
