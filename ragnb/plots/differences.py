"""Bland and Altman's plot: how far the judge stands from the human, all along the scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
import pandas as pd

from ragnb.markup import INK, SYSTEM_COLOURS, count, with_interval
from ragnb.markup.cells import is_missing
from ragnb.plots.canvas import GREY, Axes
from ragnb.plots.card import OfCard, Part, part
from ragnb.plots.rows import BAD

_COUNTS = ("judge_score", "human_score", "n")
_LINES = ("loa_low", "bias", "loa_high")
_SLOPE = ("slope", "bias", "mean_judge", "mean_human")
_RADIUS = 11.0


def bland_altman(card: Any, *, table: pd.DataFrame | None = None, **look: Unpack[OfCard]) -> Axes:
    """Draw the differences judge − human against the mean of both, with bias, limits of agreement and slope.

    Parameters
    ----------
    card : CalibrationCard or DataFrame
        A card, or its ``counts``: ``[judge, dimension,] judge_score, human_score, n``.
    table : DataFrame, optional
        With a frame of counts: the card's ``table``, or what `agreement` gives, for the lines.
    judge, dimension : str, optional
        Which, where there are several.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}, optional
        By default the card's.
    finding : str, optional
        The title and the start of the words; by default the bias and the limits. Empty for no title.

    Returns
    -------
    Axes
        A point for each pair of scores, its area the number of pairs, which is written in it from two on. Lines
        for the bias and the limits, with their intervals as bands and their numbers at the right; the slope as a
        dotted line through the mean of all pairs. A line whose number is missing is not drawn.

    Raises
    ------
    RagnbError
        For several judges or dimensions and no choice, and for unknown ones.

    Notes
    -----
    Bland and Altman (1986), Lancet i, 307–310.

    Examples
    --------
    >>> counts = pd.DataFrame({"judge_score": [3, 4], "human_score": [2, 4], "n": [5, 1]})
    >>> ax = bland_altman(counts)
    >>> ax.collections[0].get_offsets().tolist(), [text.get_text() for text in ax.texts]
    ([[2.5, 1.0], [4.0, 0.0]], ['5'])
    """
    p = part(card, "counts", _COUNTS, **look)
    row, say = p.beside("table", table), p.say
    with p.canvas(4.2) as (ax, tell):
        _span(ax, row, p)
        _points(ax, p)
        said = _lines(ax, row, p)
        if not any(is_missing(row.get(name)) for name in _SLOPE):
            middle = (row["mean_judge"] + row["mean_human"]) / 2, row["bias"]
            ax.axline(middle, slope=row["slope"], color=BAD, linewidth=1.4, linestyle=":", label="_slope")
            said["slope"] = signed(row["slope"], row.get("slope_low"), row.get("slope_high"))
        notes = [say("chart.mean_axis"), say("chart.area")]
        notes += [say("chart.slope", value=said["slope"])] if "slope" in said else []
        seen = say("chart.off", value=said["bias"]) if "bias" in said else say("chart.not_summed")
        told = [say(f"chart.{name}", value=value) for name, value in said.items()]
        values = p.words([p.n(p.rows["n"].sum()), *told])
        tell(seen, values, "\n".join(notes), say("chart.difference_axis"))
    return ax


def signed(value: Any, low: Any, high: Any) -> str:
    """Write a difference with its sign and its interval."""
    return ("+" if value > 0 else "") + with_interval(value, low, high)


def _span(ax: Axes, row: Mapping[Any, Any], p: Part) -> None:
    """Show the whole scale below, and at the side all differences and limits."""
    x, y = (p.rows[name].to_numpy(dtype=float) for name in _COUNTS[:2])
    lines = [row[name] for name in _LINES if not is_missing(row.get(name))]
    gaps, means = [0.0, *(x - y), *lines], (x + y) / 2
    low, high = p.ends(None, means)
    margin, more = 0.04 * (high - low) or 0.5, 0.06 * (max(gaps) - min(gaps)) or 0.5
    ax.set(xlim=(low - margin, high + margin), ylim=(min(gaps) - more, max(gaps) + more))


def _points(ax: Axes, p: Part) -> None:
    x, y, n = (p.rows[name].to_numpy(dtype=float) for name in _COUNTS)
    mean, gap = (x + y) / 2, x - y
    order = np.argsort(-n, kind="stable")
    mean, gap, n = mean[order], gap[order], n[order]
    radius = np.maximum(_RADIUS * np.sqrt(n / max(n.max(initial=1.0), 1.0)), 1.8)
    ax.axhline(0, color=GREY, linewidth=0.8, label="_zero", zorder=1)
    ax.scatter(mean, gap, s=(2 * radius) ** 2, color=SYSTEM_COLOURS[0], alpha=0.65, linewidths=0, zorder=2)
    for k in _numbered(ax, mean, gap, n, radius):
        text, r = count(n[k]), radius[k]
        inside = _inside(text, r)
        ax.annotate(
            text, (mean[k], gap[k]), (0, 0) if inside else (r + 1, 0), textcoords="offset points", va="center",
            ha="center" if inside else "left", fontsize=7.5, zorder=4,
        )  # fmt: skip


def _inside(text: str, radius: float) -> bool:
    """Whether a number fits into its point."""
    return 2 * radius > 3 + 5 * len(text)


def _numbered(ax: Axes, x: np.ndarray, y: np.ndarray, n: np.ndarray, radius: np.ndarray) -> list[int]:
    """Choose the points of two pairs or more whose number has room, the largest first."""
    box = ax.get_window_extent()
    points = 72 / float(ax.get_figure(root=True).dpi)  # type: ignore[union-attr]
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    across, up = (x - left) / (right - left) * box.width * points, (y - low) / (high - low) * box.height * points
    chosen: list[int] = []
    taken: list[tuple[float, float, float, float]] = []
    for k in np.flatnonzero(n > 1).tolist():
        wide = 5.0 * len(count(n[k]))
        start = across[k] - wide / 2 if _inside(count(n[k]), radius[k]) else across[k] + radius[k] + 1
        place = (start, start + wide, up[k] - 4.5, up[k] + 4.5)
        free = all(place[1] < a or b < place[0] or place[3] < c or d < place[2] for a, b, c, d in taken)
        # A point drawn before is larger: a number on it would be read as its own.
        off = np.hypot(across[:k] - (start + wide / 2), up[:k] - up[k]) > radius[:k] + wide / 2
        if free and off.all():
            chosen.append(k)
            taken.append(place)
    return chosen


def _lines(ax: Axes, row: Mapping[Any, Any], p: Part) -> dict[str, str]:
    """Draw bias and limits; return how each is written."""
    found: dict[str, float] = {name: row[name] for name in _LINES if not is_missing(row.get(name))}
    said = {name: signed(at, row.get(f"{name}_low"), row.get(f"{name}_high")) for name, at in found.items()}
    for name, at in found.items():
        ends: Any = [row.get(f"{name}_{end}") for end in ("low", "high")]
        if not any(map(is_missing, ends)):
            ax.axhspan(*ends, color=GREY, alpha=0.25, linewidth=0, label="_span", zorder=0)
        ax.axhline(at, color=INK, linewidth=1.4, linestyle="-" if name == "bias" else "--", label=f"_{name}")
    low, high = ax.get_ylim()
    heights = spread(list(found.values()), 0.1 * (high - low))
    for height, name in zip(heights, found, strict=True):
        text = p.say(f"chart.{name}", value=said[name]).replace(" [", "\n[")
        ax.text(1.01, height, text, transform=ax.get_yaxis_transform(), va="center", fontsize=8.5)
    return said


def spread(heights: list[float], least: float) -> list[float]:
    """Push rising heights apart until neighbours are at least `least` from each other, about the same middle.

    Examples
    --------
    >>> spread([0.0, 0.5, 4.0], 1.0)
    [-0.25, 0.75, 4.0]
    """
    placed = [float(height) for height in heights]
    for _ in range(len(placed)):
        for k in range(1, len(placed)):
            short = least - (placed[k] - placed[k - 1])
            if short > 1e-12:
                placed[k - 1], placed[k] = placed[k - 1] - short / 2, placed[k] + short / 2
    return placed
