"""Dots on their intervals, one row each, the numbers beside them: how every estimate is drawn here."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Unpack

import pandas as pd

from ragnb.errors import unknown
from ragnb.markup import INK, SYSTEM_COLOURS
from ragnb.markup.cells import is_missing
from ragnb.plots.canvas import GREY, Axes, Look, canvas, fitted, legend_below, note
from ragnb.plots.means import TOTAL, Estimate, Means, Metrics, check_systems, estimate, notes_below, rank_documents

Threshold = tuple[str, float]
Thresholds = Mapping[str, Sequence[Threshold]] | Sequence[Threshold]
_LINES = ("--", ":", "-.", (0, (1, 3)))
# Half the height of a row that a threshold takes.
_STEP = 0.42


class Dot(NamedTuple):
    """One estimate as a row: its value and interval, the words to its right, and how it is marked."""

    at: Estimate
    words: str
    colour: str = INK
    mark: str = "o"
    label: str = ""


@contextmanager
def dot_rows(
    names: Sequence[str], groups: Sequence[Sequence[Dot]], *, finding: str, labels: Sequence[str], about: str = "",
    span: tuple[float, float] | None = None, lang: str, look: Look,
) -> Iterator[Axes]:  # fmt: skip
    """Give Axes with a row a dot, under each name its group of rows, the first on top, told in words.

    A missing estimate is its words alone. The labels of the first group name the marks in a legend. `about` comes
    before the values in the words, `span` is the whole range of the scale, and `labels` are those of the axes.
    """
    many = max(map(len, groups), default=1)
    space = many + 0.6 * (many > 1)
    rows, values = max(space * len(groups), 1), [about] * bool(about)
    with canvas(1.0 + 0.3 * rows, lang, **look) as (ax, describe):
        for place, (name, group) in enumerate(zip(names, groups, strict=True)):
            for step, dot in enumerate(group):
                _draw(ax, place * space + step, dot if place == 0 else dot._replace(label=""))
                whose = f"{name}, {dot.label}" if dot.label else name
                values.append(f"{whose}: {dot.words.replace('  ', ', ')}")
        ax.set_yticks([place * space + (many - 1) / 2 for place in range(len(names))], names)
        ax.set_ylim(rows - 0.4 - 0.6 * (many > 1), -0.6)
        ax.spines.left.set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
        ax.set_axisbelow(True)
        if span is not None:
            low, high = span
            margin, marks = 0.02 * (high - low), whole_points(low, high)
            ax.set_xlim(low - margin, high + margin)
            if marks:
                ax.set_xticks(marks)
            ax.spines.bottom.set_bounds(low, high)
        yield ax
        if ax.get_legend_handles_labels()[1]:
            legend_below(ax)
        describe(finding, "; ".join(values), *labels)


def _draw(ax: Axes, y: float, dot: Dot) -> None:
    value, low, high = dot.at
    if not is_missing(low) and not is_missing(high):
        ends = [float(low), float(high)]
        ax.plot(ends, [y, y], color=dot.colour, linewidth=2.2, solid_capstyle="butt", label="_interval")
    at = ([], []) if is_missing(value) else ([float(value)], [y])
    look: Any = {"linestyle": "none", "marker": dot.mark, "color": dot.colour, "markersize": 6, "zorder": 3}
    ax.plot(*at, label=dot.label or "_row", **look)
    ax.text(1.02, y, dot.words, transform=ax.get_yaxis_transform(), va="center", fontsize=8.5)


def whole_points(low: float, high: float) -> list[float]:
    """Return the whole points of a scale where these are few; else nothing."""
    few = float(high - low).is_integer() and 3 <= high - low <= 12
    return [low + step for step in range(int(high - low) + 1)] if few else []


def percents(axis: Any) -> None:
    """Write shares from 0 to 1 as percentages along an axis."""
    axis.set_ticks([k / 100 for k in range(0, 101, 20)], labels=[f"{k} %" for k in range(0, 101, 20)])


def intervals(
    means: pd.DataFrame, *, metrics: Metrics = None, by: str | None = None, bars: Thresholds = (),
    lang: str = "en", **look: Unpack[Look],
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
    table = Means(means, metrics, by, lang)
    check_systems(table.systems)
    own = table.common is None
    spans = [" ({:g}–{:g})".format(*table.ranges[metric]) if own else "" for metric in table.metrics]
    names = [table.head(metric) + span for metric, span in zip(table.metrics, spans, strict=True)]
    looks = [(INK, "o", "")]
    if len(table.systems) > 1:
        looks = [(colour, "o", fitted(name)) for colour, name in zip(SYSTEM_COLOURS, table.systems, strict=False)]
    groups = [
        [
            Dot(_place(table, metric, *estimate(table.row(name, metric))), table.counted(name, metric), *look)
            for name, look in zip(table.systems, looks, strict=True)
        ]
        for metric in table.metrics
    ]
    low, high = table.common or (0.0, 1.0)
    notes = [table.say("chart.shares") if own else table.say("chart.range", low=f"{low:g}", high=f"{high:g}")]
    notes += notes_below(table.say, "chart.lower", "lower" in table.better.values(), table.endless)
    lows = [] if own else [row["low"] for row in table.rows.values() if not is_missing(row.get("low"))]
    span = min([low, *lows]), high  # a cosine may lie below the others' 0
    labels = ["; ".join(notes)]
    with dot_rows(names, groups, finding=table.finding(), labels=labels, span=span, lang=lang, look=look) as ax:
        _thresholds(ax, table, bars)
    return ax


def _place(table: Means, metric: str, *numbers: Any) -> Any:
    """Raw where all metrics share a range, else the places in the metric's own; None for what is missing."""
    low, high = (0.0, 1.0) if table.common else table.ranges[metric]
    return tuple(None if is_missing(number) else (number - low) / (high - low) for number in numbers)


def _thresholds(ax: Axes, table: Means, bars: Thresholds) -> None:
    """Draw thresholds across all rows, named at the top, or each metric's in its rows, named by a legend."""
    if not isinstance(bars, Mapping) and table.common:
        for number, (name, at) in enumerate(sorted(bars, key=lambda bar: bar[1])):
            ax.axvline(at, color=INK, linewidth=1, linestyle="--", label="_bar", zorder=1)
            # The lowest of several is named to the left of its line, the others to the right.
            side, shift = ("right", -3) if number == 0 and len(bars) > 1 else ("left", 3)
            note(ax, fitted(name), at, 1, xytext=(shift, 0), va="top", ha=side)
        if bars:
            ax.set_ylim(top=-1.1)
        return
    by_metric = bars if isinstance(bars, Mapping) else dict.fromkeys(table.metrics, bars)
    half, drawn = (len(table.systems) - 1) / 2 + _STEP, list[str]()
    for middle, metric in zip(ax.get_yticks(), table.metrics, strict=True):
        for name, at in by_metric.get(metric, ()):
            label = "_bar" if name in drawn else fitted(name)
            drawn += [name] * (name not in drawn)
            (x,), line = _place(table, metric, at), _LINES[drawn.index(name) % len(_LINES)]
            look: Any = {"color": INK, "linewidth": 1.2, "linestyle": line, "zorder": 1}
            ax.plot([x, x], [middle - half, middle + half], label=label, **look)


def by_weight(
    means: pd.DataFrame, *, doc_weights: Mapping[str, float] | None = None, metric: str = TOTAL,
    by: str = "document", most: int = 30, lang: str = "en", **look: Unpack[Look],
) -> Axes:  # fmt: skip
    """Draw each document's score against the weight it carries, the heaviest on top.

    Parameters
    ----------
    means : DataFrame
        ``document, metric, value, low, high, n``: an Assessment's ``documents``, or `weighted_means` by document.
    doc_weights : mapping of document to weight, optional
        As everywhere: 1.0 for a document that is not named.
    metric : str
        Which row of each document.
    by : str
        The column of documents.
    most : int
        How many documents are drawn, the heaviest and of these the lowest first; the rest is counted below.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}
    finding : str, optional
        The title and the start of the words; by default the heaviest document's score. Empty for no title.

    Returns
    -------
    Axes
        A row a document: its weight before its name, its score with the interval of its own questions and n. A
        line parts documents of different weights.

    Raises
    ------
    RagnbError
        For an unknown metric, column or document, and for ``most`` below 1.

    Examples
    --------
    >>> means = pd.DataFrame({"document": ["a", "b"], "metric": "weighted_score", "value": [0.9, 0.4], "n": 4})
    >>> ax = by_weight(means, doc_weights={"b": 3.0})
    >>> ax.get_title(loc="left"), [label.get_text() for label in ax.get_yticklabels()]
    ('The heaviest document, b (×3), scores 0.400 [—, —]', ['×3  b', '×1  a'])
    """
    table, names, rest = rank_documents(means, [metric], by, lang, most=most)
    weights = dict.fromkeys(names, 1.0)
    for name, weight in (doc_weights or {}).items():
        if name not in names:
            raise unknown("doc_weights", name, names)
        weights[name] = weight
    shown, say = sorted(names, key=lambda name: -weights[name])[:most], table.say
    names = [f"×{weights[name]:g}  {fitted(name)}" for name in shown]
    groups = [
        [Dot(estimate(table.row(name, metric)), table.counted(name, metric), SYSTEM_COLOURS[0])] for name in shown
    ]
    finding = say("chart.nothing")
    if scored := [name for name in shown if table.place(name, metric) >= 0]:
        key = "chart.heaviest" if len({weights[name] for name in shown}) > 1 else "chart.lowest"
        heaviest = {"name": fitted(scored[0]), "value": table.written(scored[0], metric)}
        finding = say(key, weight=f"{weights[scored[0]]:g}", **heaviest)
    axis = say("chart.by_weight", metric=say("chart.total") if metric == TOTAL else fitted(metric))
    how: Any = {"span": table.ranges[metric], "lang": lang, "look": look}
    with dot_rows(names, groups, finding=finding, labels=["; ".join([axis, *rest])], **how) as ax:
        for y, (name, above) in enumerate(itertools.pairwise(shown)):
            if weights[name] != weights[above]:
                ax.axhline(y + 0.5, color=INK, linewidth=0.6, alpha=0.5, label="_step")
    return ax
