"""Dots with intervals, for reading values: a mean is never drawn without its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbError
from ragnb.markup import INK, SYSTEM_COLOURS
from ragnb.markup.cells import is_missing
from ragnb.plots.canvas import Axes, Look, beside, canvas, fitted, legend_below
from ragnb.plots.means import Means, Metrics, below
from ragnb.plots.rows import draw_row, name_rows, whole

Bar = tuple[str, float]
Bars = Mapping[str, Sequence[Bar]] | Sequence[Bar]
_LINES = ("--", ":", "-.", (0, (1, 3)))


def intervals(
    means: pd.DataFrame, *, metrics: Metrics = None, by: str | None = None, bars: Bars = (), lang: str = "en",
    **look: Unpack[Look],
) -> Axes:  # fmt: skip
    """Draw every mean as a dot with its interval on the whole range, the numbers and n beside it.

    Parameters
    ----------
    means : DataFrame
        ``[by,] metric, value, low, high, n`` and more, as `weighted_means` returns it.
    metrics : str or several, optional
        The rows; by default the metrics that enter the weighted score, and the total.
    by : str, optional
        The column of systems, at most five.
    bars : sequence of (name, at), or mapping of metric to such a sequence
        Thresholds, drawn as named lines: across all rows, or each in its metric's row. In raw units.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}
    finding : str, optional
        What the picture shows, in a sentence: its title, and the start of its words. By default what stands out
        in the frame; empty for no title.

    Returns
    -------
    Axes
        Raw values, the first metric on top. Metrics of different ranges are each drawn on their own, which
        their names give; a metric without a finite range is named below and not drawn.

    Raises
    ------
    RagnbError
        For an unknown metric or column, more than five systems, and several systems without `by`.

    Examples
    --------
    >>> means = pd.DataFrame({"metric": ["a"], "value": [0.5], "low": [0.4], "high": [0.6], "n": [9]})
    >>> [text.get_text() for text in intervals(means).texts]
    ['0.500 [0.400, 0.600]  n = 9']
    """
    table = Means(means, metrics, by, lang, total=True)
    check_systems(table.systems)
    say, many = texts.load(lang), len(table.systems)
    names = [table.head(metric) for metric in table.metrics]
    if table.common is None:
        ends = (table.ranges[metric] for metric in table.metrics)
        names = [f"{name} ({low:g}–{high:g})" for name, (low, high) in zip(names, ends, strict=True)]
    rows = len(names) * (many + (many > 1) * 0.6)
    with canvas(0.9 + 0.3 * max(rows, 1) + 0.2 * (many > 1), lang, **look) as (ax, tell):
        for place, metric in enumerate(table.metrics):
            for number, system in enumerate(table.systems):
                _row(ax, table, (system, metric), _height(place, number, many), number)
        middle = [_height(place, (many - 1) / 2, many) for place in range(len(names))]
        name_rows(ax, names, middle, max(rows, 1) - 0.4 - 0.6 * (many > 1))
        named = _bars(ax, table, bars, many)
        notes = _scale(ax, table, say)
        if many > 1 or named:
            legend_below(ax)
        tell(table.seen(), table.words(), "; ".join(notes))
    return ax


def check_systems(systems: Sequence[str]) -> None:
    """Refuse more systems than there are colours that can be told apart."""
    if len(systems) > len(SYSTEM_COLOURS):
        raise RagnbError(
            f"a chart shows at most {len(SYSTEM_COLOURS)} systems and is given {len(systems)}; choose some"
        )


def _height(place: int, number: float, many: int) -> float:
    return place * (many + 0.6 * (many > 1)) + number


def _place(table: Means, metric: str, number: float) -> float:
    """Raw where all share a range, else the place in the metric's own."""
    low, high = table.ranges[metric]
    return number if table.common is not None else (number - low) / (high - low)


def _row(ax: Axes, table: Means, key: tuple[str, str], y: float, number: int) -> None:
    system, metric = key
    colour = SYSTEM_COLOURS[number] if len(table.systems) > 1 else INK
    label = fitted(system) if metric == table.metrics[0] and system else "_row"
    value, low, high = (None if is_missing(x) else _place(table, metric, x) for x in table.estimate(*key))
    draw_row(ax, y, (value, low, high), table.counted(*key), colour, label=label)


def _bars(ax: Axes, table: Means, bars: Bars, many: int) -> bool:
    """Draw the thresholds; say whether a legend has to name them."""
    if not isinstance(bars, Mapping) and table.common is not None:
        for number, (name, at) in enumerate(sorted(bars, key=lambda bar: bar[1])):
            ax.axvline(at, color=INK, linewidth=1, linestyle="--", label="_bar", zorder=1)
            # The lowest of several is named to the left of its line, the others to the right.
            side, shift = ("right", -3) if number == 0 and len(bars) > 1 else ("left", 3)
            beside(ax, fitted(name), at, 1, xytext=(shift, 0), va="top", ha=side)
        if bars:
            ax.set_ylim(top=-1.1)
        return False
    own = bars if isinstance(bars, Mapping) else dict.fromkeys(table.metrics, bars)
    drawn: list[str] = []
    for place, metric in enumerate(table.metrics):
        for name, at in own.get(metric, ()):
            label = "_bar" if name in drawn else fitted(name)
            drawn += [name] if name not in drawn else []
            x, line = _place(table, metric, at), _LINES[drawn.index(name) % len(_LINES)]
            ends = [_height(place, -0.42, many), _height(place, many - 1 + 0.42, many)]
            ax.plot([x, x], ends, color=INK, linewidth=1.2, linestyle=line, label=label, zorder=1)
    return bool(drawn)


def _scale(ax: Axes, table: Means, say: Any) -> list[str]:
    """Show the range that all share, or that each has; return what has to be said of it."""
    low, high = table.common or (0.0, 1.0)
    drawn = [row["low"] for row in table.rows.values() if table.common and not is_missing(row.get("low"))]
    whole(ax, min([low, *drawn]), high)  # a cosine may lie below the others' 0
    notes = [say("chart.shares") if table.common is None else say("chart.range", low=f"{low:g}", high=f"{high:g}")]
    return notes + below(say, "chart.lower", "lower" in table.better.values(), table.endless)
