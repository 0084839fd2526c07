"""Charts of how a judge and the humans agree, score by score."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from ragnb.markup import count, is_missing, text_width
from ragnb.markup.rendering import INK
from ragnb.plots.canvas import GREY, WIDTH, Axes, Look, canvas
from ragnb.plots.part import BAD, BLUE, Part, signed
from ragnb.plots.rows import DARK, LIGHT, grid

_PAIRS = ("judge_score", "human_score", "n")
MOST_STEPS = 25  # of a scale whose every pair of scores has a mark of its own
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
    p = Part(card, "counts", _PAIRS, look)
    (x, y, n), width, say = p.pairs(), p.set("tolerance"), p.say
    low, high = p.ends(x, y)
    (across, exact), (up, exact_too) = _edges(x, low, high), _edges(y, low, high)
    # The slack keeps a score in the cell that starts with it.
    upright, level = (np.clip(scores + 1e-9, low, high) for scores in (y, x))
    table = np.histogram2d(upright, level, bins=[up, across], weights=n)[0][::-1]
    written = [[count(n) if n else "" for n in row] for row in table.tolist()]
    if (
        max(text_width(text, 8.0) for row in written for text in row)
        > 0.85 * WIDTH * 72 / table.shape[1] - 2
    ):
        written = [[""] * table.shape[1]] * len(table)
    with canvas(p.look, min(max(0.34 * len(table), 2.2), 5.0) + 0.9) as (ax, describe):
        # Roots, so that one crowded cell does not pale all the others.
        grid(ax, np.where(table > 0, np.sqrt(table / max(table.max(), 1)), np.nan), written, 8.0)
        rows, columns = ((edges[1:] + edges[:-1]) / 2 for edges in (up[::-1], across))
        _outline(ax, np.abs(rows[:, None] - columns) <= width + 1e-9)
        few = high - low <= 12 and float(high - low).is_integer()
        marks = np.linspace(low, high, int(high - low) + 1 if few else 5)
        labels = [f"{mark:g}" for mark in marks]
        ax.set_xticks((marks - across[0]) / (across[1] - across[0]), labels)
        ax.set_yticks(len(table) - (marks - up[0]) / (up[1] - up[0]), labels)
        above, below = (n[gap > width + 1e-9].sum() for gap in (x - y, y - x))
        numbers = {"n": n.sum(), "inside": n.sum() - above - below, "above": above, "below": below}
        exactly = "" if width else "_exact"
        counts = {side: count(k) for side, k in numbers.items()}
        finding = say(f"chart.pairs{exactly}", tolerance=f"{width:g}", **counts)
        outlined = say(f"chart.outlined{exactly}", tolerance=f"{width:g}")
        notes = [say("chart.judge_axis"), outlined]
        if not (exact and exact_too):
            notes.append(say("chart.rounded"))
        if not n.sum():
            finding = say("chart.no_pairs")
        describe(finding, [p.about, p.n(n.sum())], "; ".join(notes), say("chart.human_axis"))
    return ax


def _edges(values: Any, low: float, high: float) -> tuple[Any, bool]:
    """The edges of an axis' cells: around the coarsest steps that hold every score, else of 25 equal parts."""
    for parts in (1, 2, 3, 4, 5, 6, 10, 20):
        # Of the scale's length first, then of each score.
        steps = np.array([high - low, *(values - low)]) * parts
        if steps[0] < MOST_STEPS and (np.abs(steps - np.round(steps)) < 1e-6).all():
            return low + (np.arange(round(steps[0]) + 2) - 0.5) / parts, True
    return np.linspace(low, high, MOST_STEPS + 1), False


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
    p = Part(card, "counts", _PAIRS, look)
    (x, y, n), say = p.pairs(), p.say
    table = (
        p.beside("table")
        .reindex(columns=["measure", "value", "low", "high"])
        .dropna(subset="value")
    )
    numbers_of = {str(name): numbers for name, *numbers in table.itertuples(index=False)}
    lines: dict[str, Any] = {
        name: numbers_of[name] for name in ("loa_low", "bias", "loa_high") if name in numbers_of
    }
    shown = [0.0, *(x - y), *(at for at, _, _ in lines.values())]
    low, high = p.ends((x + y) / 2)
    margin = 0.04 * (high - low) or 0.5
    more = 0.06 * np.ptp(shown) or 0.5
    with canvas(p.look, 4.2) as (ax, describe):
        ax.set(xlim=(low - margin, high + margin), ylim=(min(shown) - more, max(shown) + more))
        ax.axhline(0, color=GREY, linewidth=0.8, label="_zero", zorder=1)
        radius = np.maximum(_RADIUS * np.sqrt(n / max(n.max(initial=1.0), 1.0)), 1.8)
        # The largest first, so that none is hidden.
        order = np.argsort(-n, kind="stable")
        dots: Any = {
            "s": (2 * radius[order]) ** 2,
            "color": BLUE,
            "alpha": 0.65,
            "linewidths": 0,
            "zorder": 2,
        }
        ax.scatter(((x + y) / 2)[order], (x - y)[order], **dots)
        for name, (at, *ends) in lines.items():
            if not any(map(is_missing, ends)):
                ax.axhspan(*ends, color=GREY, alpha=0.25, linewidth=0, label="_span", zorder=0)
            ax.axhline(
                at,
                color=INK,
                linewidth=1.4,
                linestyle="-" if name == "bias" else "--",
                label=f"_{name}",
            )
        words = {
            name: say(f"chart.{name}", value=signed(*numbers)) for name, numbers in lines.items()
        }
        heights = _apart([at for at, _, _ in lines.values()], 0.1 * (np.ptp(shown) + 2 * more))
        for height, text in zip(heights, words.values(), strict=True):
            beside: Any = {"transform": ax.get_yaxis_transform(), "va": "center", "fontsize": 8.5}
            ax.text(1.01, height, text.replace(" [", "\n["), **beside)
        notes = [say("chart.mean_axis"), say("chart.area")]
        if {"slope", "bias", "mean_judge", "mean_human"} <= set(numbers_of):
            middle = (
                (numbers_of["mean_judge"][0] + numbers_of["mean_human"][0]) / 2,
                numbers_of["bias"][0],
            )
            ax.axline(
                middle,
                slope=numbers_of["slope"][0],
                color=BAD,
                linewidth=1.4,
                linestyle=":",
                label="_slope",
            )
            words["slope"] = say("chart.slope", value=signed(*numbers_of["slope"]))
            notes.append(words["slope"])
        if "bias" in numbers_of:
            finding = say("chart.off", value=signed(*numbers_of["bias"]))
        else:
            finding = say("chart.not_summed")
        describe(
            finding,
            [p.about, p.n(n.sum()), *words.values()],
            "\n".join(notes),
            say("chart.difference_axis"),
        )
    return ax


def _apart(heights: list[float], least: float) -> Any:
    """Push rising heights apart until neighbours are at least `least` from each other, about the same middle."""
    steps = least * np.arange(len(heights))
    apart = np.maximum.accumulate(np.array(heights) - steps) + steps
    return apart + (np.mean(heights) - apart.mean() if heights else 0.0)
