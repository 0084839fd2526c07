"""The geometry of the radar and the names of its axes, once for every place that draws one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ragnb import texts
from ragnb.errors import RagnbError
from ragnb.markup.cells import is_missing
from ragnb.markup.svg import SYSTEM_COLOURS, check_span
from ragnb.markup.text import one_line

Ranges = Mapping[str, tuple[float, float]]
MOST_SYSTEMS = len(SYSTEM_COLOURS)


def radar_points(
    values: Sequence[Any], *, ranges: Sequence[tuple[float, float]] | None = None, lower: Sequence[bool] = ()
) -> np.ndarray:
    """Place one value an axis on a radar of radius 1 whose rim is the good end of each range.

    The first axis points up, the others follow clockwise. A value where lower is better enters as
    low + high - value, so that outside is better on every axis.

    Parameters
    ----------
    values : sequence of float or None, length k
        One value an axis, in the units of its metric.
    ranges : sequence of (low, high), length k, optional
        The range of each axis; 0 to 1 by default.
    lower : sequence of bool, length k, optional
        Whether lower is better.

    Returns
    -------
    ndarray, shape (k, 2)
        x to the right, y upwards; NaN where the value is missing.

    Raises
    ------
    RagnbError
        For a range without finite ends.

    Examples
    --------
    >>> (radar_points([1.0, 0.5, None, 0.0]).round(3) + 0.0).tolist()
    [[0.0, 1.0], [0.5, 0.0], [nan, nan], [0.0, 0.0]]
    """
    size = len(values)
    ends = np.array([check_span(span) for span in (ranges or [(0.0, 1.0)] * size)]).reshape(size, 2)
    raw = np.array([np.nan if is_missing(value) else float(value) for value in values])
    share = np.clip((raw - ends[:, 0]) / (ends[:, 1] - ends[:, 0]), 0.0, 1.0)  # the centre, of a cosine below 0
    share = np.where(np.array(lower or [False] * size, dtype=bool), 1.0 - share, share)
    angle = 2 * np.pi * np.arange(size) / max(size, 1)
    return np.column_stack([share * np.sin(angle), share * np.cos(angle)])


def radar_runs(points: np.ndarray) -> list[tuple[list[int], bool]]:
    """Cut the outline of a radar at its gaps: runs of neighbouring axes, and whether the run closes.

    Examples
    --------
    >>> radar_runs(radar_points([1, 1, 1])), radar_runs(radar_points([1, 1, None, 1]))
    ([([0, 1, 2], True)], [([3, 0, 1], False)])
    """
    there = ~np.isnan(points).any(axis=1)
    size = len(there)
    if there.all():
        return [(list(range(size)), True)] if size else []
    order = np.roll(np.arange(size), -int(np.argmin(there)))  # begins with a gap, and so does each of its parts
    parts = np.split(order, np.flatnonzero(~there[order]))
    return [(part[1:].tolist(), False) for part in parts if len(part) > 1]


def axis_names(
    metrics: Sequence[str],
    systems: Mapping[str, Sequence[Any]],
    *,
    ranges: Ranges,
    better: Mapping[str, str],
    lang: str,
) -> list[str]:
    """Name the axes: the metric, ``↓`` where lower is better, its range where ranges differ, and its gaps."""
    missing = str(texts.entry(lang, "word.missing"))
    spans = [check_span(ranges.get(metric, (0, 1))) for metric in metrics]
    mixed, names = len(set(spans)) > 1, []
    for place, (metric, (low, high)) in enumerate(zip(metrics, spans, strict=True)):
        gaps = [str(system) for system, values in systems.items() if is_missing(values[place])]
        whose = "" if len(gaps) == len(systems) else ": " + ", ".join(gaps)
        words = [one_line(metric, 40)]
        words += ["↓"] if better.get(metric) == "lower" else []
        words += [f"({low:g}–{high:g})"] if mixed else []
        words += [f"({missing}{one_line(whose, 40)})" if whose else f"({missing})"] if gaps else []
        names.append(" ".join(words))
    return names


def check_radar(systems: Mapping[str, Sequence[Any]]) -> None:
    """Refuse a radar of too many systems."""
    if not 1 <= len(systems) <= MOST_SYSTEMS:
        raise RagnbError(
            f"a radar shows 1 to {MOST_SYSTEMS} systems and is given {len(systems)}; "
            "choose some, or draw intervals"
        )
