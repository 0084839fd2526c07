"""Charts of a means frame: dots with intervals, radar, documents by metrics and by weight."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, listing, need_columns, unknown
from ragnb.markup import DASHES, INK, MISSING, SYSTEM_COLOURS, count, is_missing, number, text_width, with_interval
from ragnb.markup.radar import axis_names, check_systems, radar_points, radar_runs
from ragnb.plots.canvas import GREY, WIDTH, Axes, Look, canvas, fitted, legend_below, speaker, wrapped
from ragnb.plots.marks import Dot, dot_rows, grid
from ragnb.schema import METRICS, Metric, metric_list, scale_of

TOTAL = "weighted_score"
Thresholds = Mapping[str, Sequence[tuple[str, float]]] | Sequence[tuple[str, float]]
_UNKNOWN = Metric("unknown")
_LINES = ("--", ":", "-.", (0, (1, 3)))
# Half the height of a row that a threshold takes.
_STEP = 0.42


class OfMeans(Look, total=False):
    """Options of charts of means: which metrics, and the column of systems or documents."""

    metrics: str | Iterable[str] | None
    by: str | None


class Means:
    """The rows of a means frame by system and metric, and the ranges and directions of its metrics.

    Without `metrics` come those that enter the weighted score (all, where the frame does not say or none does),
    and the total where `total` is true. `endless` names metrics whose range has no end; they are not drawn.
    """

    def __init__(
        self, means: pd.DataFrame, *, by: str | None = None, metrics: Any = None, total: bool = True, **look: Any
    ) -> None:
        keys = [by, "metric"] if by else ["metric"]
        need_columns(means.columns, ("metric", "value", *keys[:-1]))
        if means.duplicated(keys).any():
            raise RagnbError(
                f"means holds a metric twice; name the column that distinguishes the systems: by=… (have: "
                f"{listing(name for name in means.columns if name not in ('metric', 'value', 'low', 'high'))})"
            )
        self.say = speaker(look)
        self.rows: dict[tuple[str, str], Mapping[Any, Any]] = {
            (str(row[by]) if by else "", str(row["metric"])): row for row in means.to_dict("records")
        }
        self.systems = list(dict.fromkeys(system for system, _ in self.rows)) or [""] * (not by)
        about = {metric: row for (_, metric), row in self.rows.items()}
        plain = [name for name in about if name != TOTAL]
        weighted = set(means.loc[means["weight"].notna(), "metric"]) if "weight" in means else set()
        names = ([name for name in plain if name in weighted] or plain) + [TOTAL] * (total and TOTAL in about)
        if metrics is not None:
            names = [item if isinstance(item, str) else item.name for item in metric_list(metrics) or ()]
        self.ranges: dict[str, tuple[float, float]] = {}
        self.better: dict[str, str] = {}
        for name in names:
            if name not in about:
                raise unknown("metric", name, list(about))
            row, known = about[name], METRICS.get(name, _UNKNOWN)
            ends = float(row.get("range_low", known.low)), float(row.get("range_high", known.high))
            if all(map(math.isfinite, ends)):
                self.ranges[name], self.better[name] = ends, row.get("better") or known.better
        self.metrics = list(self.ranges)
        self.endless = [name for name in names if name not in self.ranges]
        # Between its scale's ends a metric is shown beside others.
        self.scales = {name: scale_of(name, *ends) for name, ends in self.ranges.items()}
        self.common = next(iter(self.scales.values())) if len(set(self.scales.values())) == 1 else None

    def at(self, system: str, metric: str) -> tuple[Any, Any, Any]:
        """Return an estimate and its interval, None if missing."""
        return estimate(self.rows.get((system, metric), {}))

    def head(self, metric: str) -> str:
        """Return what a metric is called here, marked where lower is better."""
        name = self.say("chart.total") if metric == TOTAL else fitted(metric)
        return name + " ↓" * (self.better[metric] == "lower")

    def written(self, system: str, metric: str, *, n: bool = False) -> str:
        """Write an estimate as every page writes it, or a dash with what is missing; on request with its n."""
        row = self.rows.get((system, metric), {})
        if is_missing(row.get("value")):
            return f"{MISSING} {gaps(row, self.say) or self.say('word.missing')}"
        rate = row.get("role", METRICS.get(metric, _UNKNOWN).role) == "rate"
        words = with_interval(*estimate(row), percent=rate)
        return words if not n or is_missing(row.get("n")) else f"{words}  {self.say('chart.n', n=count(row['n']))}"

    def words(self, system: str, *, named: bool = True) -> str:
        """Return all numbers of a system in one line."""
        numbers = [f"{self.head(name).removesuffix(' ↓')} {self.written(system, name)}" for name in self.metrics]
        return f"{fitted(system)}: " * named + ", ".join(numbers)

    def place(self, system: str, metric: str) -> float:
        """Return the position of an estimate in its range, 1 at the good end; nan if missing."""
        value, (low, high) = self.at(system, metric)[0], self.scales[metric]
        place = math.nan if is_missing(value) else max((float(value) - low) / (high - low), 0.0)
        return 1.0 - place if self.better[metric] == "lower" else place

    def ranked(self, systems: Iterable[str]) -> list[tuple[str, str]]:
        """Return the estimates that are there, the worst in its range first; the total only where it is alone."""
        keys = [(system, metric) for system in systems for metric in self.metrics]
        keys = [key for key in keys if not math.isnan(self.place(*key))]
        keys = [key for key in keys if key[1] != TOTAL] or keys
        return sorted(keys, key=lambda key: self.place(*key))

    def finding(self) -> str:
        """Return the finding: the total, and the estimates nearest to the bad and the good end of their range."""
        ranked, whole = self.ranked(self.systems), self.systems if TOTAL in self.metrics else []
        totals = [name for name in whole if not is_missing(self.at(name, TOTAL)[0])]
        if len(self.systems) > 1 and totals:
            totals.sort(key=lambda name: -self.place(name, TOTAL))
            ends = dict.fromkeys([totals[0], totals[-1]])
            values = ", ".join(f"{fitted(name)} {self.written(name, TOTAL)}" for name in ends)
            return self.say("chart.total_is", values=values)
        if not ranked or ranked[0][1] == TOTAL:
            return self.say("chart.nothing")
        best = max(ranked, key=lambda key: self.place(*key))
        weak, strong = (
            f"{self.head(metric)}{f' ({fitted(name)})' * (len(self.systems) > 1)} {self.written(name, metric)}"
            for name, metric in (ranked[0], best)
        )
        if totals:
            return self.say("chart.total_weak", total=self.written("", TOTAL), weak=weak)
        return weak if weak == strong else self.say("chart.ends", weak=weak, strong=strong)

    def notes(self, lower: str) -> list[str]:
        """Say under a chart that lower is better somewhere (in the words of `lower`), and what is not drawn."""
        return notes_below(self.say, lower, "lower" in self.better.values(), self.endless)


def estimate(row: Mapping[Any, Any], value: str = "value") -> tuple[Any, Any, Any]:
    """Return the value of a row and its interval, None if missing."""
    return row.get(value), row.get("low"), row.get("high")


def gaps(row: Mapping[Any, Any], say: Callable[..., str]) -> str:
    """Return how many scores are missing, failed or not applicable; empty if none."""
    numbers = [(f"chart.{key}", row.get(key)) for key in ("n_missing", "n_failed", "n_not_applicable")]
    return ", ".join(say(key, n=int(n)) for key, n in numbers if n is not None and n > 0)


def notes_below(say: Callable[..., str], lower: str, turned: bool, endless: Sequence[str]) -> list[str]:
    """Say under a chart that lower is better somewhere (in the words of `lower`), and what is not drawn."""
    return [say(lower)] * turned + [say("chart.not_drawn", names=", ".join(endless))] * bool(endless)


# Dots on their intervals


def intervals(means: pd.DataFrame, *, bars: Thresholds = (), **look: Unpack[OfMeans]) -> Axes:
    """Draw every mean as a dot with its interval on the full range, with its numbers and n.

    Parameters
    ----------
    means : DataFrame
        ``[by,] metric, value, low, high, n`` and more, as `weighted_means` returns it.
    metrics : str or several, optional
        The rows; by default the metrics that enter the weighted score, and the total.
    by : str, optional
        The column of systems, at most five.
    bars : sequence of (name, at), or mapping of metric to such a sequence
        Thresholds, drawn as lines that a legend names: in all rows, or each in its metric's row. In raw units.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}, optional
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
    table = Means(means, **look)
    check_systems(table.systems)
    own, (low, high) = table.common is None, table.common or (0.0, 1.0)
    colours = SYSTEM_COLOURS if len(table.systems) > 1 else [INK]
    rows = []
    for metric in table.metrics:
        ends = " ({:g}–{:g})".format(*table.ranges[metric]) if own else ""
        rows.append((table.head(metric) + ends, list[Dot]()))
        for name, colour in zip(table.systems, colours, strict=False):
            at, words = _shown(table, metric, *table.at(name, metric)), table.written(name, metric, n=True)
            rows[-1][1].append(Dot(at, words, colour, label=fitted(name)))
    notes = [table.say("chart.shares") if own else table.say("chart.range", low=f"{low:g}", high=f"{high:g}")]
    lows = [] if own else [row["low"] for row in table.rows.values() if not is_missing(row.get("low"))]
    span = min([low, *lows]), high  # a cosine may lie below the others' 0
    labels = ["; ".join([*notes, *table.notes("chart.lower")])]
    with dot_rows(look, rows, finding=table.finding(), labels=labels, span=span) as ax:
        _thresholds(ax, table, bars)
    return ax


def _shown(table: Means, metric: str, *numbers: Any) -> list[Any]:
    """Raw values if all metrics share a range, else positions in each metric's own range; None if missing."""
    low, high = (0.0, 1.0) if table.common else table.ranges[metric]
    return [None if is_missing(number) else (number - low) / (high - low) for number in numbers]


def _thresholds(ax: Axes, table: Means, bars: Thresholds) -> None:
    """Draw each metric's thresholds in its rows, named by a legend."""
    by_metric = bars if isinstance(bars, Mapping) else dict.fromkeys(table.metrics, bars)
    half, drawn = (len(table.systems) - 1) / 2 + _STEP, list[str]()
    for middle, metric in zip(ax.get_yticks(), table.metrics, strict=True):
        for name, at in by_metric.get(metric, ()):
            label = "_bar" if name in drawn else fitted(name)
            drawn += [name] * (name not in drawn)
            style: Any = {"linewidth": 1.2, "linestyle": _LINES[drawn.index(name) % len(_LINES)], "zorder": 1}
            ax.plot(_shown(table, metric, at, at), [middle - half, middle + half], color=INK, label=label, **style)


def by_weight(
    means: pd.DataFrame, *, doc_weights: Mapping[str, float] | None = None, metric: str = TOTAL,
    by: str = "document", most: int = 30, **look: Unpack[Look],
) -> Axes:  # fmt: skip
    """Draw each document's score, ordered by weight, the largest on top.

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
    lang : {"en", "zh"}, optional
    finding : str, optional
        The title and the start of the words; by default the heaviest document's score. Empty for no title.

    Returns
    -------
    Axes
        One row per document: its weight before its name, its score with the interval of its own questions and n. A
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
    ('b, with the largest weight (×3), scores 0.400 [—, —]', ['×3  b', '×1  a'])
    """
    table = Means(means, metrics=[metric], by=by, **look)
    names, rest = _documents(table, most)
    weights = dict.fromkeys(names, 1.0) | dict(doc_weights or {})
    for name in doc_weights or {}:
        if name not in names:
            raise unknown("doc_weights", name, names)
    shown, say, colour = sorted(names, key=lambda name: -weights[name])[:most], table.say, SYSTEM_COLOURS[0]
    dots = [Dot(table.at(name, metric), table.written(name, metric, n=True), colour) for name in shown]
    rows = [(f"×{weights[name]:g}  {fitted(name)}", [dot]) for name, dot in zip(shown, dots, strict=True)]
    finding = say("chart.nothing")
    if scored := [name for name in shown if not math.isnan(table.place(name, metric))]:
        key = "chart.heaviest" if len({weights[name] for name in shown}) > 1 else "chart.lowest"
        first = {"name": fitted(scored[0]), "weight": f"{weights[scored[0]]:g}"}
        finding = say(key, value=table.written(scored[0], metric), **first)
    axis = say("chart.by_weight", metric=say("chart.total") if metric == TOTAL else fitted(metric))
    labels = ["; ".join([axis, *rest])]
    with dot_rows(look, rows, finding=finding, labels=labels, span=table.ranges[metric]) as ax:
        for y, (name, above) in enumerate(itertools.pairwise(shown)):
            if weights[name] != weights[above]:
                ax.axhline(y + 0.5, color=INK, linewidth=0.6, alpha=0.5, label="_step")
    return ax


# Documents by metrics


def _documents(table: Means, most: int) -> tuple[list[str], list[str]]:
    """Return the documents of a table, the worst first, and a note on those that are not drawn."""
    if most < 1:
        raise RagnbError(f"most={most} draws nothing; give the number of documents to draw, such as 30")
    if table.endless:
        raise RagnbError(f"{table.endless[0]!r} has no finite range for shading or layout; leave it out")
    names = list(table.systems)
    values = {name: [table.at(name, TOTAL)[0]] for name in names}
    if all(is_missing(value) for (value,) in values.values()):
        values = {name: [table.place(name, metric) for metric in table.metrics] for name in names}
    names.sort(key=lambda name: min((float(x) for x in values[name] if not is_missing(x)), default=math.inf))
    return names, [table.say("chart.rest", n=count(len(names) - most))] * (len(names) > most)


def documents(
    means: pd.DataFrame, *, by: str = "document", most: int = 30, metrics: str | Iterable[str] | None = None,
    **look: Unpack[Look],
) -> Axes:  # fmt: skip
    """Draw documents by metrics as a heat map, the worst document on top, the numbers in the cells.

    The worst is so by the total, where the frame has it, else by its worst metric.

    Parameters
    ----------
    means : DataFrame
        ``document, metric, value, n`` and more: an Assessment's ``documents``, or `weighted_means` by document.
    metrics : str or several, optional
        The columns; by default the metrics that enter the weighted score, and the total.
    by : str
        The column of documents.
    most : int
        How many documents are drawn; the rest is counted below.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}, optional
    finding : str, optional
        The title and the start of the words; by default the worst documents. Empty for no title.

    Returns
    -------
    Axes
        The darker a cell, the nearer to the bad end of its metric's range; a mean that is missing is hatched
        and says ``—``. A document's name gives its n, the least and the most over its metrics where they differ.

    Raises
    ------
    RagnbError
        For an unknown metric or column, and for ``most`` below 1.

    Examples
    --------
    >>> means = pd.DataFrame({"document": ["a", "b"], "metric": "faithfulness", "value": [0.9, None], "n": [4, 0]})
    >>> ax = documents(means)
    >>> [label.get_text() for label in ax.get_yticklabels()], [text.get_text() for text in ax.texts]
    (['a  n = 4', 'b  n = 0'], ['0.900', '—'])
    """
    table = Means(means, metrics=metrics, by=by, **look)
    every, rest = _documents(table, most)
    names, columns = every[:most], table.metrics
    labels = [f"{fitted(name)}  {_n(table, name)}" for name in names]
    shades = np.array([[1.0 - table.place(name, metric) for metric in columns] for name in names])
    written = [[number(table.at(name, metric)[0]) for metric in columns] for name in names]
    margin = max((text_width(label, 9.0) for label in labels), default=0.0) + 20
    # Three decimals a cell: a picture of many metrics is wider; names of a few stand across.
    width = min(max(WIDTH, (margin + (30.0 if len(columns) > 6 else 62.0) * len(columns)) / 72), 12.0)
    points = (width * 72 - margin) / max(len(columns), 1)
    heads, upright, high = _heads([table.head(metric) for metric in columns], points)
    with canvas(look, 0.9 + high / 72 + 0.26 * max(len(names), 1), width) as (ax, describe):
        grid(ax, shades.reshape(len(names), len(columns)), written, "YlOrBr", 8.5 if points > 34 else 7.5)
        ax.set_yticklabels(labels)
        ax.xaxis.tick_top()
        turn: Any = {"rotation": 90, "va": "bottom"} if upright else {}
        ax.set_xticklabels(heads, fontsize=8.5, **turn)
        ax.xaxis.set_label_position("bottom")
        if columns[-1:] == [TOTAL] and len(columns) > 1:
            ax.axvline(len(columns) - 1, color=INK, linewidth=1.8, label="_total")
        finding = table.say("chart.nothing")
        if worst := table.ranked(names)[:1]:
            worst_name, metric = worst[0]
            what = {"name": fitted(worst_name), "metric": table.head(metric)}
            finding = table.say("chart.worst", value=table.written(worst_name, metric), **what)
        describe(finding, [table.words(name) for name in names], "; ".join([table.say("chart.darker"), *rest]))
    return ax


def _heads(names: Sequence[str], points: float) -> tuple[list[str], bool, float]:
    """Lay out names of columns that are `points` wide: across where three lines hold each, else upright.

    Returns the names, broken into lines, whether they are upright, and how high they stand, in points.

    Examples
    --------
    >>> _heads(["context_recall"], 60.0)
    (['context_\\nrecall'], False, 22.0)
    """
    across = [wrapped(name, points - 4, 8.5) for name in names]
    lines = max((name.count("\n") + 1 for name in across), default=0)
    if lines <= 3 and all(text_width(line, 8.5) <= points - 2 for name in across for line in name.splitlines()):
        return across, False, 11.0 * lines
    upright = [fitted(name, 150.0, 8.5) for name in names]
    return upright, True, max(text_width(name, 8.5) for name in upright)


def _n(table: Means, name: str) -> str:
    """The n of a document; where its metrics differ, the least and the most."""
    cells: Any = [table.rows.get((name, metric), {}).get("n") for metric in table.metrics]
    known = sorted({int(n) for n in cells if not is_missing(n)})
    ends = "–".join(map(count, dict.fromkeys([*known[:1], *known[-1:]])))
    return table.say("chart.n", n=ends) if known else ""


# The radar, for the shape of a system; its geometry is that of markup


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
    check_systems(table.systems)
    systems = {name: [table.at(name, metric)[0] for metric in table.metrics] for name in table.systems}
    lang = look.get("lang") or "en"
    heads = axis_names(table.metrics, systems, ranges=table.scales, better=table.better, lang=lang)
    names = [wrapped(name, 96) for name in heads]
    # Inches: the widest name has its place beside the web, which shrinks where a page is too narrow for both.
    side = max(text_width(line, 9.0) for name in names for line in name.splitlines()) / 72 + 0.1
    radius = max(1.0, min(1.8, WIDTH / 2 - side))
    with canvas(look, 2.4 * radius + 0.8, 2 * (1.1 * radius + side)) as (ax, describe):
        _web(ax, names, table.common, 1.1 + side / radius)
        lower = [table.better[metric] == "lower" for metric in table.metrics]
        for (system, values), colour, dash in zip(systems.items(), SYSTEM_COLOURS, DASHES, strict=False):
            points = radar_points(values, ranges=list(table.scales.values()), lower=lower)
            style: Any = {"color": colour, "linewidth": 1.6, "marker": "o", "markersize": 4}
            style["linestyle"] = (0, dash) if dash else "-"
            # A system without any score has no run, and is named in the legend too.
            for part, (run, closed) in enumerate(radar_runs(points) or [([], False)]):
                path = points[[*run, *run[:1]] if closed else run]
                ax.plot(*path.T, label="_more" if part else fitted(system) or "_one", **style)
                if closed and len(systems) < 3:
                    ax.fill(*path.T, color=colour, alpha=0.07, linewidth=0)
        notes = table.notes("chart.turned")
        if len(systems) > 1:
            legend_below(ax, 10 + 14 * len(notes))
        values = [table.words(name, named=len(systems) > 1) for name in systems]
        describe(table.finding(), values, "\n".join(notes))
    return ax


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
    if common:
        for ring in (0.5, 1.0):
            ax.text(0.02, ring - 0.02, f"{np.interp(ring, (0, 1), common):g}", va="top", fontsize=8, label="_ring")
