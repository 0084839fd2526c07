"""Charts of a means frame, and the marks that all charts share: dots with intervals, shaded cells, scales."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Unpack

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, listing, need_columns, unknown
from ragnb.markup import DASHES, INK, MISSING, SYSTEM_COLOURS, count, is_missing, text_width, with_interval
from ragnb.markup.radar import axis_names, check_systems, radar_points, radar_runs
from ragnb.plots.canvas import GREY, WIDTH, Axes, Look, canvas, fitted, legend_below, speaker, wrapped
from ragnb.schema import METRICS, Metric, metric_list, scale_of

# Neither is the ink of the page, which turns light where the page is dark: cells keep their shade there.
DARK, LIGHT = "#111111", "#ffffff"


class Dot(NamedTuple):
    """One estimate as a row: value, interval, the text to its right, and its mark."""

    at: Sequence[Any]
    words: str
    colour: str = INK
    mark: str = "o"
    label: str = ""


@contextmanager
def dot_rows(
    look: Mapping[str, Any], rows: Sequence[tuple[str, Sequence[Dot]]], *, finding: str, labels: Sequence[str],
    about: str = "", span: tuple[float, float] | None = None,
) -> Iterator[Axes]:  # fmt: skip
    """Yield Axes with one row per dot, grouped under their names, the first on top, with a text alternative.

    A missing estimate is its words alone. The labels of the first group name the marks in a legend. `about` comes
    before the values in the words, `span` is the whole range of the scale, and `labels` are those of the axes.
    """
    many = max((len(group) for _, group in rows), default=1)
    space, values = many + 0.6 * (many > 1), [about]
    height = max(space * len(rows), 1)
    with canvas(look, 1.0 + 0.3 * height) as (ax, describe):
        for place, (name, group) in enumerate(rows):
            for step, dot in enumerate(group):
                y, (value, low, high) = place * space + step, dot.at
                if not is_missing(low) and not is_missing(high):
                    line: Any = {"linewidth": 2.2, "solid_capstyle": "butt", "label": "_interval"}
                    ax.plot([float(low), float(high)], [y, y], color=dot.colour, **line)
                at = ([], []) if is_missing(value) else ([float(value)], [y])
                mark: Any = {"marker": dot.mark, "markersize": 6, "linestyle": "none", "zorder": 3}
                ax.plot(*at, color=dot.colour, label=(not place and dot.label) or "_row", **mark)
                ax.text(1.02, y, dot.words, transform=ax.get_yaxis_transform(), va="center", fontsize=8.5)
                values.append(f"{name}{dot.label and ', '}{dot.label}: {dot.words.replace('  ', ', ')}")
        ax.set_yticks([place * space + (many - 1) / 2 for place in range(len(rows))], [name for name, _ in rows])
        ax.set_ylim(height - 0.4 - 0.6 * (many > 1), -0.6)
        ax.spines.left.set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
        ax.set_axisbelow(True)
        if span is not None:
            whole_scale(ax, "x", *span)
            ax.spines.bottom.set_bounds(*span)
        yield ax
        if ax.get_legend_handles_labels()[1]:
            legend_below(ax)
        describe(finding, values, *labels)


def whole_scale(
    ax: Axes, x: str, low: float, high: float, margin: float = 0.02, below: float | None = None
) -> None:
    """Show a whole scale on an axis, ``x`` or ``y``, with margins as shares of it; mark whole points where few."""
    ends: Any = low - (margin if below is None else below) * (high - low), high + margin * (high - low)
    ax.set(**{f"{x}lim": ends})
    if float(high - low).is_integer() and 3 <= high - low <= 12:
        ax.set(**{f"{x}ticks": np.arange(low, high + 0.5)})


def percents(axis: Any) -> None:
    """Write shares from 0 to 1 as percentages along an axis."""
    axis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")


def grid(ax: Axes, shades: Any, written: Sequence[Sequence[str]], size: float) -> None:
    """Shade cells from 0 (light) to 1 (dark), nan for none, and write in each, the first row on top."""
    from matplotlib.colors import to_rgba
    from seaborn import heatmap
    from seaborn.utils import relative_luminance

    rows, columns = shades.shape
    if shades.size:
        # Not the ends of the map, so that a cell stands out from white paper and from a dark page.
        look: Any = {"vmin": -0.05, "vmax": 1.2, "linewidths": 0.5, "linecolor": to_rgba(GREY, 0.25)}
        heatmap(shades, ax=ax, cmap="Blues", cbar=False, xticklabels=False, yticklabels=False, **look)
        faces = ax.collections[-1].get_facecolor()
    for k, ((y, x), shade) in enumerate(np.ndenumerate(shades)):
        # Seaborn's own numbers turn white at a luminance of .408, where black is still the clearer (WCAG).
        ink: Any = {} if np.isnan(shade) else {"color": LIGHT if relative_luminance(faces[k]) < 0.179 else DARK}
        ax.text(x + 0.5, y + 0.5, written[y][x], ha="center", va="center", fontsize=size, **ink)
    ax.set(xlim=(0, columns), ylim=(max(rows, 1), 0))
    ax.set(xticks=np.arange(columns) + 0.5, yticks=np.arange(rows) + 0.5)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


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
