"""Judge against human, pair by pair: where the pairs lie, and the band within the tolerance."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from ragnb.markup import count, text_width
from ragnb.plots.canvas import WIDTH, Axes
from ragnb.plots.card import OfCard, Part, part
from ragnb.plots.heat import DARK, LIGHT, grid

MOST_STEPS = 25
_COUNTS = ("judge_score", "human_score", "n")
_PARTS_OF_A_POINT = (1, 2, 3, 4, 5, 6, 10, 20)


def judge_human(
    card: Any, *, tolerance: float | None = None, scale: tuple[float, float] | None = None, **look: Unpack[OfCard]
) -> Axes:
    """Draw how often each judge's score met each human score, with the band within the tolerance outlined.

    Parameters
    ----------
    card : CalibrationCard or DataFrame
        A card, or its ``counts``: ``[judge, dimension,] judge_score, human_score, n``.
    judge, dimension : str, optional
        Which, where there are several.
    tolerance : float, optional
        In points of the scale; by default the card's, else 1.
    scale : (low, high), optional
        The whole scale, both axes; by default the card's, else from the lowest to the highest score.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}, optional
        By default the card's.
    finding : str, optional
        The title and the start of the words; by default how many pairs lie within the band. Empty for no title.

    Returns
    -------
    Axes
        A cell a pair of scores, the judge's to the right, the human's upwards, its number of pairs in it, an
        empty one bare. Scores on more than 25 steps are put into 25 equal ones, and a note says so; what lies
        within the band is still counted on the scores themselves.

    Raises
    ------
    RagnbError
        For several judges or dimensions and no choice, and for unknown ones.

    Examples
    --------
    >>> import pandas as pd
    >>> counts = pd.DataFrame({"judge_score": [1, 2, 3], "human_score": [1, 3, 1], "n": [4, 2, 1]})
    >>> judge_human(counts).get_title(loc="left")
    '6 of 7 pairs lie within ±1; the judge is further above in 1, further below in 0'
    """
    p = part(card, "counts", _COUNTS, **look)
    x, y, n = (p.rows[name].to_numpy(dtype=float) for name in _COUNTS)
    width, (low, high) = p.set("tolerance", tolerance), p.ends(scale, x, y)
    (across, exact), (up, exact_too) = _ladder(x, low, high), _ladder(y, low, high)
    table = np.zeros((len(up), len(across)))
    np.add.at(table, (_rungs(y, up), _rungs(x, across)), n)
    notes = [p.say("chart.judge_axis"), p.say("chart.outlined", tolerance=f"{width:g}")]
    notes += [] if exact and exact_too and not p.rows.attrs.get("step") else [p.say("chart.rounded")]
    tall = min(max(0.34 * len(up), 2.2), 5.0)
    with p.canvas(tall + 0.9) as (ax, tell):
        _cells(ax, table[::-1])
        _outline(ax, np.abs(up[::-1, None] - across) <= width + 1e-9)
        _ticks(ax, across, up, low, high)
        values = ", ".join(filter(None, [p.name, p.n(n.sum())]))
        tell(_seen(p, x - y, n, width), values, "; ".join(notes), p.say("chart.human_axis"))
    return ax


def _ladder(values: np.ndarray, low: float, high: float) -> tuple[np.ndarray, bool]:
    """The scores of an axis: the coarsest steps that hold every score, else 25 equal ones."""
    for parts in _PARTS_OF_A_POINT:
        steps = (high - low) * parts
        whole = np.abs((values - low) * parts - np.round((values - low) * parts)) < 1e-6
        if steps < MOST_STEPS and abs(steps - round(steps)) < 1e-6 and whole.all():
            return low + np.arange(round(steps) + 1) / parts, True
    return low + (high - low) * (np.arange(MOST_STEPS) + 0.5) / MOST_STEPS, False


def _rungs(values: np.ndarray, ladder: np.ndarray) -> Any:
    step = ladder[1] - ladder[0] if len(ladder) > 1 else 1.0
    place = np.floor((values - ladder[0]) / step + 0.5 + 1e-9).astype(int)
    return place.clip(0, len(ladder) - 1)


def _cells(ax: Axes, table: np.ndarray) -> None:
    # Roots, so that one crowded cell does not pale all the others.
    shades = np.where(table > 0, np.sqrt(table / max(table.max(), 1)), np.nan)
    written = [[count(n) if n else "" for n in row] for row in table.tolist()]
    wide = 0.85 * WIDTH * 72 / table.shape[1]
    fits = max((text_width(text, 8.0) for row in written for text in row), default=0.0) < wide - 2
    grid(ax, shades, written if fits else [[""] * table.shape[1]] * len(table), cmap="Blues", size=8.0)


def _outline(ax: Axes, inside: np.ndarray) -> None:
    """Draw the border between the cells within the tolerance and those outside."""
    from matplotlib.collections import LineCollection

    beside, below = inside[:, 1:] != inside[:, :-1], inside[1:] != inside[:-1]
    lines = [[(x + 1, y), (x + 1, y + 1)] for y, x in np.argwhere(beside).tolist()]
    lines += [[(x, y + 1), (x + 1, y + 1)] for y, x in np.argwhere(below).tolist()]
    # Dark on a light edge: it is seen on pale cells, and between bare ones on a dark page.
    for colour, width, label in ((LIGHT, 3.4, "_halo"), (DARK, 1.8, "_band")):
        line = LineCollection(lines, colors=colour, linewidths=width, capstyle="projecting", label=label)
        ax.add_collection(line)


def _ticks(ax: Axes, across: np.ndarray, up: np.ndarray, low: float, high: float) -> None:
    """Name whole points of the scale where they are few, else five places."""
    few = high - low <= 12 and float(high - low).is_integer()
    marks = low + np.arange(int(high - low) + 1) if few else np.linspace(low, high, 5)
    for axis, ladder in ((ax.xaxis, across), (ax.yaxis, up)):
        step = ladder[1] - ladder[0] if len(ladder) > 1 else 1.0
        places = (marks - ladder[0]) / step + 0.5
        axis.set_ticks(list(places if axis is ax.xaxis else len(ladder) - places), [f"{mark:g}" for mark in marks])


def _seen(p: Part, gap: np.ndarray, n: np.ndarray, width: float) -> str:
    """Say how many pairs lie within the tolerance, and on which side the others."""
    if not n.sum():
        return p.say("chart.no_pairs")
    slack = width + 1e-9
    sides = {"inside": np.abs(gap) <= slack, "above": gap > slack, "below": -gap > slack}
    counted = {side: count(n[flag].sum()) for side, flag in sides.items()}
    return p.say("chart.pairs", tolerance=f"{width:g}", n=count(n.sum()), **counted)
