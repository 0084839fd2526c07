"""The radar: its geometry and the names of its axes, once for every place that draws one, and as an SVG string."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragnb import texts
from ragnb.errors import RagnbError
from ragnb.markup.text import Safe, is_missing, one_line, text_width

if TYPE_CHECKING:
    import numpy as np

INK = "#1f2328"
"""The colour of text and axes where ``currentColor`` cannot be said."""

SYSTEM_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000")
"""Okabe and Ito's colours that stand 3 : 1 out from white; black is drawn in the colour of the text."""

DASHES: tuple[tuple[float, ...], ...] = ((), (6, 3), (2, 2), (8, 3, 2, 3), (12, 4))
"""One dash pattern a system, in pixels, so that grey print keeps them apart."""

Ranges = Mapping[str, tuple[float, float]]


def check_span(span: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a scale, or refuse a scale that is empty or endless."""
    low, high = float(span[0]), float(span[1])
    if not (low < high and high - low < float("inf")):
        raise RagnbError(f"span={tuple(span)!r} is no scale; give two finite ends, the lower one first")
    return low, high


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
    import numpy as np

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
    import numpy as np

    there = ~np.isnan(points).any(axis=1)
    size = len(there)
    if there.all():
        return [(list(range(size)), True)] if size else []
    order = np.roll(np.arange(size), -int(np.argmin(there)))  # begins with a gap, and so does each of its parts
    parts = np.split(order, np.flatnonzero(~there[order]))
    return [(part[1:].tolist(), False) for part in parts if len(part) > 1]


def axis_names(
    metrics: Sequence[str], systems: Mapping[str, Sequence[Any]], *, ranges: Ranges, better: Mapping[str, str],
    lang: str,
) -> list[str]:  # fmt: skip
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


def check_systems(systems: Collection[str]) -> None:
    """Refuse more systems than there are colours that can be told apart."""
    if len(systems) > len(SYSTEM_COLOURS):
        raise RagnbError(
            f"a chart shows at most {len(SYSTEM_COLOURS)} systems and is given {len(systems)}; choose some"
        )


def radar_svg(
    metrics: Sequence[str], systems: Mapping[str, Sequence[Any]], *, label: str, ranges: Ranges | None = None,
    better: Mapping[str, str] | None = None, radius: int = 130, lang: str = "en",
) -> Safe:  # fmt: skip
    """Draw systems as closed polygons over their metrics; of two metrics as lines, of one as points.

    Parameters
    ----------
    metrics : sequence of str
        The axes, the first one up.
    systems : mapping of system to values
        One value a metric, raw, in its own units; None or NaN leaves a gap that the axis names.
    label : str
        The finding, in words, for those who cannot see the picture.
    ranges : mapping of metric to (low, high), optional
        As the columns ``range_low, range_high`` of means; 0 to 1 where none is given. The rim is the good end.
    better : mapping of metric to {"higher", "lower"}, optional
        As the column ``better`` of means. Where lower is better the axis is turned and marked ``↓``.
    radius : int
        Pixels.
    lang : {"en", "zh"}
        The language of the word for a gap.

    Returns
    -------
    Safe
        An ``<svg role="img">``.

    Raises
    ------
    RagnbError
        For more than five systems, and for a metric without a finite range.

    Examples
    --------
    >>> 'role="img"' in radar_svg(["a", "b", "c"], {"mine": [0.5, None, 1.0]}, label="b is missing")
    True
    """
    from ragnb.markup.html import render

    check_systems(systems)
    spans, senses = ranges or {}, better or {}
    names = axis_names(metrics, systems, ranges=spans, better=senses, lang=lang)
    shown = [check_span(spans.get(metric, (0, 1))) for metric in metrics]
    lower = [senses.get(metric) == "lower" for metric in metrics]
    middle, top = max(*map(text_width, names), 6.0) + 14 + radius, radius + 24.0
    outlines = []
    for values in systems.values():
        points = radar_points(values, ranges=shown, lower=lower) * [1, -1] * radius + [middle, top]
        outlines.append([(points[run].tolist(), closed) for run, closed in radar_runs(points)])
    keys = [one_line(system, 40) for system in systems]
    styles = zip(SYSTEM_COLOURS, (" ".join(f"{dash:g}" for dash in dashes) for dashes in DASHES), strict=True)
    return render(
        "radar.svg", label=one_line(label), x=middle, y=top, radius=radius, styles=list(styles),
        axes=list(zip(names, radar_points([1.0] * len(names)).tolist(), strict=True)), outlines=outlines,
        ends=shown[0] if len(set(shown)) == 1 else None, keys=keys if len(keys) > 1 else [],
        left=middle - (max(map(text_width, keys), default=0) + 40) / 2,
    )  # fmt: skip
