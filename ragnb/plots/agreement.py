"""Charts of how a judge and the humans agree, score by score."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np

from ragnb.markup import count, is_missing, text_width
from ragnb.markup.rendering import INK
from ragnb.plots.canvas import GREY, WIDTH, Axes, Look, canvas
from ragnb.plots.part import BAD, BLUE, Part, signed
from ragnb.plots.rows import DARK, LIGHT, grid

_PAIRS = ("judge_score", "human_score", "n")
MOST_STEPS = 25  # of a scale whose every pair of scores has a mark of its own
_SLACK = 1e-9  # of a gap of scores: 4.3 − 3.3 is 1 up to rounding
_RADIUS = 11.0  # points, of the mark of the most frequent pair


def judge_human(card: Any, **look: Unpack[Look]) -> Axes:
    """Draw how often each judge's score met each human score, with the band within the tolerance outlined.

    Parameters
    ----------
    card : CalibrationCard or DataFrame
        A card, or its ``counts``: ``[judge, dimension,] judge_score, human_score, n``.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}, optional
        By default the card's.
    finding : str, optional
        The title and the start of the words; by default how many pairs are within the band. Empty for no title.

    Returns
    -------
    Axes
        On the scale of the card, else from the lowest to the highest score; the tolerance is the card's, else 1.
        A cell a pair of scores, the judge's to the right, the human's upwards, its number of pairs in it, an
        empty one bare. Scores on more than 25 steps are put into 25 equal ones, and a note says so; what lies
        within the band is still counted on the scores themselves.

    Raises
    ------
    RagnbError
        For several judges or dimensions: ``card.only(judge=…)`` takes one.

    Examples
    --------
    >>> import pandas as pd
    >>> counts = pd.DataFrame({"judge_score": [1, 2, 3], "human_score": [1, 3, 1], "n": [4, 2, 1]})
    >>> judge_human(counts).get_title(loc="left")
    '6 of 7 pairs agree within ±1; the judge is higher in 1, lower in 0'
    """
    part = Part(card, "counts", _PAIRS, look)
    x, y, n = part.pairs()
    tolerance = part.set("tolerance")
    say = part.say
    low, high = part.ends(x, y)
    across = _cells_of(x, low, high)
    up = _cells_of(y, low, high)
    # The slack keeps a score in the cell that starts with it.
    upright, level = (np.clip(scores + 1e-9, low, high) for scores in (y, x))
    counts, _, _ = np.histogram2d(upright, level, bins=[up.edges, across.edges], weights=n)
    counts = counts[::-1]  # the highest human score in the first row
    written = _written(counts)
    height = min(max(0.34 * len(counts), 2.2), 5.0) + 0.9
    with canvas(part.look, height) as (ax, describe):
        # Roots, so that one crowded cell does not pale all the others.
        shades = np.where(counts > 0, np.sqrt(counts / max(counts.max(), 1)), np.nan)
        grid(ax, shades, written, 8.0)
        rows, columns = ((edges[1:] + edges[:-1]) / 2 for edges in (up.edges[::-1], across.edges))
        _outline(ax, np.abs(rows[:, None] - columns) <= tolerance + _SLACK)
        _mark_scores(ax, across, up, low, high, len(counts))
        above = n[x - y > tolerance + _SLACK].sum()
        below = n[y - x > tolerance + _SLACK].sum()
        numbers = {"n": n.sum(), "inside": n.sum() - above - below, "above": above, "below": below}
        # Without a tolerance scores agree where they are equal.
        exactly = "" if tolerance else "_exact"
        finding = say(
            f"chart.pairs{exactly}",
            tolerance=f"{tolerance:g}",
            **{name: count(k) for name, k in numbers.items()},
        )
        if not n.sum():
            finding = say("chart.no_pairs")
        notes = [
            say("chart.judge_axis"),
            say(f"chart.outlined{exactly}", tolerance=f"{tolerance:g}"),
        ]
        if not (across.are_exact and up.are_exact):
            notes.append(say("chart.rounded"))
        describe(finding, [part.about, part.n(n.sum())], "; ".join(notes), say("chart.human_axis"))
    return ax


class _Cells(NamedTuple):
    """The edges of the cells along an axis, and whether each score has a cell of its own."""

    edges: Any
    are_exact: bool


def _cells_of(values: Any, low: float, high: float) -> _Cells:
    """Return cells around the coarsest steps that hold every score, else 25 equal parts of the scale."""
    for parts in (1, 2, 3, 4, 5, 6, 10, 20):
        # Of the scale's length first, then of each score.
        steps = np.array([high - low, *(values - low)]) * parts
        are_whole = (np.abs(steps - np.round(steps)) < 1e-6).all()
        if steps[0] < MOST_STEPS and are_whole:
            # Half a step around each, so that the first and the last score are in the middle of a cell too.
            return _Cells(low + (np.arange(round(steps[0]) + 2) - 0.5) / parts, True)
    return _Cells(np.linspace(low, high, MOST_STEPS + 1), False)


def _written(counts: Any) -> list[list[str]]:
    """Return the numbers in the cells; none at all where the widest does not fit."""
    n_columns = counts.shape[1]
    written = [[count(n) if n else "" for n in row] for row in counts.tolist()]
    widest = max(text_width(text, 8.0) for row in written for text in row)
    # The width of a cell in points, less two; all cells together take about 0.85 of the chart's.
    room = 0.85 * WIDTH * 72 / n_columns - 2
    if widest > room:
        return [[""] * n_columns] * len(counts)
    return written


def _mark_scores(
    ax: Axes, across: _Cells, up: _Cells, low: float, high: float, n_rows: int
) -> None:
    """Write scores along both axes: whole ones where they are few, else five from end to end."""
    if high - low <= 12 and float(high - low).is_integer():
        marks = np.linspace(low, high, int(high - low) + 1)
    else:
        marks = np.linspace(low, high, 5)
    labels = [f"{mark:g}" for mark in marks]
    # A grid has cells of size 1, counted from the left and from the top.
    ax.set_xticks((marks - across.edges[0]) / (across.edges[1] - across.edges[0]), labels)
    ax.set_yticks(n_rows - (marks - up.edges[0]) / (up.edges[1] - up.edges[0]), labels)


def _outline(ax: Axes, inside: np.ndarray) -> None:
    """Draw the border between the cells within the tolerance and those outside."""
    from matplotlib.collections import LineCollection

    # A line between two cells of a row stands, one between two cells of a column lies.
    standing = [[(x + 1, y), (x + 1, y + 1)] for y, x in np.argwhere(np.diff(inside, axis=1))]
    lying = [[(x, y + 1), (x + 1, y + 1)] for y, x in np.argwhere(np.diff(inside, axis=0))]
    lines = [*standing, *lying]
    # Dark on a light edge: it is seen on pale cells, and between bare ones on a dark page.
    for colour, width, label in ((LIGHT, 3.4, "_halo"), (DARK, 1.8, "_band")):
        line = LineCollection(
            lines, colors=colour, linewidths=width, capstyle="projecting", label=label
        )
        ax.add_collection(line)


def bland_altman(card: Any, **look: Unpack[Look]) -> Axes:
    """Draw the differences judge − human against the mean of both, with bias, limits of agreement and slope.

    Parameters
    ----------
    card : CalibrationCard or DataFrame
        A card, or its ``counts``, without the lines: ``[judge, dimension,] judge_score, human_score, n``.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}, optional
        By default the card's.
    finding : str, optional
        The title and the start of the words; by default the bias and the limits. Empty for no title.

    Returns
    -------
    Axes
        A point for each pair of scores, its area the number of pairs. Lines
        for the bias and the limits, with their intervals as bands and their numbers at the right; the slope as a
        dotted line through the mean of all pairs. A line whose number is missing is not drawn.

    Raises
    ------
    RagnbError
        For several judges or dimensions: ``card.only(judge=…)`` takes one.

    Notes
    -----
    Bland and Altman (1986), Lancet i, 307–310.

    Examples
    --------
    >>> import pandas as pd
    >>> counts = pd.DataFrame({"judge_score": [3, 4], "human_score": [2, 4], "n": [5, 1]})
    >>> ax = bland_altman(counts)
    >>> ax.collections[0].get_offsets().tolist(), ax.get_title(loc="left")
    ([[2.5, 1.0], [4.0, 0.0]], 'Differences between judge and human scores')
    """
    part = Part(card, "counts", _PAIRS, look)
    x, y, n = part.pairs()
    mean = (x + y) / 2
    gap = x - y
    say = part.say
    measures = _measures_of(part)
    # From the lowest to the highest, as `_apart` needs their heights.
    lines: dict[str, _Measure] = {
        name: measures[name] for name in ("loa_low", "bias", "loa_high") if name in measures
    }
    heights = [line.value for line in lines.values()]
    shown = [0.0, *gap, *heights]
    low, high = part.ends(mean)
    # Half a point where all are equal: the axis would have no length.
    margin = 0.04 * (high - low) or 0.5
    margin_above = 0.06 * np.ptp(shown) or 0.5
    written: dict[str, str] = {
        name: say(f"chart.{name}", value=signed(*line)) for name, line in lines.items()
    }
    notes = [say("chart.mean_axis"), say("chart.area")]
    with canvas(part.look, 4.2) as (ax, describe):
        ax.set(
            xlim=(low - margin, high + margin),
            ylim=(min(shown) - margin_above, max(shown) + margin_above),
        )
        ax.axhline(0, color=GREY, linewidth=0.8, label="_zero", zorder=1)
        _draw_pairs(ax, mean, gap, n)
        _draw_lines(ax, lines)
        length = np.ptp(shown) + 2 * margin_above
        _write_beside(ax, _apart(heights, 0.1 * length), list(written.values()))
        if {"slope", "bias", "mean_judge", "mean_human"} <= set(measures):
            _draw_slope(ax, measures)
            written["slope"] = say("chart.slope", value=signed(*measures["slope"]))
            notes.append(written["slope"])
        if "bias" in measures:
            finding = say("chart.off", value=signed(*measures["bias"]))
        else:
            finding = say("chart.not_summed")
        describe(
            finding,
            [part.about, part.n(n.sum()), *written.values()],
            "\n".join(notes),
            say("chart.difference_axis"),
        )
    return ax


class _Measure(NamedTuple):
    """A measure of agreement with its interval."""

    value: float
    low: float
    high: float


def _measures_of(part: Part) -> dict[str, _Measure]:
    """Return the measures of agreement that the card has a value of; none of a frame alone."""
    table = part.beside("table").reindex(columns=["measure", "value", "low", "high"])
    rows = table.dropna(subset="value").itertuples(index=False)
    return {str(name): _Measure(*numbers) for name, *numbers in rows}


def _draw_pairs(ax: Axes, mean: Any, gap: Any, n: Any) -> None:
    """Draw a dot for each pair of scores, its area the number of pairs."""
    radius = np.maximum(_RADIUS * np.sqrt(n / max(n.max(initial=1.0), 1.0)), 1.8)
    # The largest first, so that none is hidden.
    order = np.argsort(-n, kind="stable")
    ax.scatter(
        mean[order],
        gap[order],
        s=(2 * radius[order]) ** 2,  # square points: matplotlib takes the square of the diameter
        color=BLUE,
        alpha=0.65,
        linewidths=0,
        zorder=2,
    )


def _draw_lines(ax: Axes, lines: dict[str, _Measure]) -> None:
    """Draw the bias and the limits of agreement, each with the band of its interval."""
    for name, (value, low, high) in lines.items():
        if not (is_missing(low) or is_missing(high)):
            ax.axhspan(low, high, color=GREY, alpha=0.25, linewidth=0, label="_span", zorder=0)
        style = "-" if name == "bias" else "--"
        ax.axhline(value, color=INK, linewidth=1.4, linestyle=style, label=f"_{name}")


def _write_beside(ax: Axes, heights: Any, words: list[str]) -> None:
    """Write the numbers of the lines at the right of the Axes, an interval on a line of its own."""
    for height, text in zip(heights, words, strict=True):
        ax.text(
            1.01,  # of the width of the Axes; the height is in the units of the differences
            height,
            text.replace(" [", "\n["),
            transform=ax.get_yaxis_transform(),
            va="center",
            fontsize=8.5,
        )


def _draw_slope(ax: Axes, measures: dict[str, _Measure]) -> None:
    """Draw how the difference grows with the mean: a regression goes through the mean of both axes."""
    mean = (measures["mean_judge"].value + measures["mean_human"].value) / 2
    ax.axline(
        (mean, measures["bias"].value),
        slope=measures["slope"].value,
        color=BAD,
        linewidth=1.4,
        linestyle=":",
        label="_slope",
    )


def _apart(heights: list[float], least: float) -> Any:
    """Push rising heights apart until neighbours are at least `least` from each other, about the same middle."""
    # Less the distance that is due up to each, heights must not fall: hence the running maximum.
    steps = least * np.arange(len(heights))
    apart = np.maximum.accumulate(np.array(heights) - steps) + steps
    if not heights:
        return apart
    return apart + (np.mean(heights) - apart.mean())
