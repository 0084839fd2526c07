"""Charts of means, comparisons and rows, and the marks that all share: dots with intervals, cells, scales."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any, NamedTuple, Unpack

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, listing, need_columns, need_known
from ragnb.markup import (
    MISSING,
    count,
    is_missing,
    number,
    one_line,
    percent,
    text_width,
    with_interval,
)
from ragnb.markup.rendering import (
    DASHES,
    INK,
    SYSTEM_COLOURS,
    axis_names,
    check_systems,
    radar_points,
    radar_runs,
)
from ragnb.plots.canvas import (
    GREY,
    MARKS,
    WIDTH,
    Axes,
    Look,
    LookOfSystems,
    canvas,
    fitted,
    legend_below,
    speaker,
    system_places,
    wrapped,
)
from ragnb.schema import CLIP, METRICS, Metric, metric_list, resolve_metrics, scale_of

# Neither is the ink of the page, which turns light where the page is dark: cells keep their shade there.
DARK, LIGHT = "#111111", "#ffffff"


class Dot(NamedTuple):
    """One estimate as a row: value, interval, the text to its right, and its mark."""

    at: Sequence[Any]
    words: str
    colour: str = INK
    mark: str = "o"
    label: str = ""


Row = tuple[str, list[Dot]]


@contextmanager
def dot_rows(
    look: Mapping[str, Any],
    rows: Sequence[Row],
    *,
    finding: str,
    labels: Sequence[str],
    about: str = "",
    span: tuple[float, float] | None = None,
) -> Iterator[Axes]:
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
                at: Any = ([], []) if is_missing(value) else ([float(value)], [y])
                ax.plot(
                    *at,
                    dot.mark,
                    color=dot.colour,
                    ms=6,
                    zorder=3,
                    label=(not place and dot.label) or "_row",
                )
                ax.text(
                    1.02,
                    y,
                    dot.words,
                    transform=ax.get_yaxis_transform(),
                    va="center",
                    fontsize=8.5,
                )
                values.append(
                    f"{name}{dot.label and ', '}{dot.label}: {dot.words.replace('  ', ', ')}"
                )
        middles = [place * space + (many - 1) / 2 for place in range(len(rows))]
        name_rows(ax, middles, [name for name, _ in rows], height - 0.4 - 0.6 * (many > 1), -0.6)
        ax.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
        ax.set_axisbelow(True)
        if span is not None:
            whole_scale(ax, "x", *span)
            ax.spines.bottom.set_bounds(*span)
        yield ax
        legend_below(ax)
        describe(finding, values, *labels)


def name_rows(
    ax: Axes, places: Iterable[float], names: Sequence[str], bottom: float, top: float
) -> None:
    """Write the names of rows at their places, without an axis beside them."""
    ax.set_yticks([*places], names)
    ax.set_ylim(bottom, top)
    ax.spines.left.set_visible(False)
    ax.tick_params(axis="y", length=0)


def whole_scale(
    ax: Axes, x: str, low: float, high: float, margin: float = 0.02, below: float | None = None
) -> None:
    """Show a whole scale on an axis, ``x`` or ``y``, with margins as shares of it; mark whole points where few."""
    ends: Any = (
        low - (margin if below is None else below) * (high - low),
        high + margin * (high - low),
    )
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

    # Not the ends of the map, so that a cell stands out from white paper and from a dark page.
    look: Any = {"vmin": -0.05, "vmax": 1.2, "linewidths": 0.5, "linecolor": to_rgba(GREY, 0.25)}
    heatmap(shades, ax=ax, cmap="Blues", cbar=False, xticklabels=False, yticklabels=False, **look)
    faces = ax.collections[-1].get_facecolor()
    for k, ((y, x), shade) in enumerate(np.ndenumerate(shades)):
        # Seaborn's own numbers turn white at a luminance of .408, where black is still the clearer (WCAG).
        ink: Any = (
            {}
            if np.isnan(shade)
            else {"color": LIGHT if relative_luminance(faces[k]) < 0.179 else DARK}
        )
        ax.text(x + 0.5, y + 0.5, written[y][x], ha="center", va="center", fontsize=size, **ink)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


TOTAL = "weighted_score"
Thresholds = Mapping[str, Sequence[tuple[str, float]]] | Sequence[tuple[str, float]]
_UNKNOWN = Metric("unknown")
_LINES = ("--", ":", "-.", (0, (1, 3)))
# Half the height of a row that a threshold takes.
_STEP = 0.42


class OfMeans(LookOfSystems, total=False):
    """Options of charts of means: which metrics, and the column of systems or documents."""

    metrics: str | Iterable[str] | None
    by: str | None


class Means:
    """The rows of a means frame by system and metric, and the ranges and directions of its metrics.

    Without `metrics` come those that enter the weighted score (all, where the frame does not say or none does),
    and the total where `total` is true. `endless` names metrics whose range has no end; they are not drawn.
    """

    def __init__(
        self,
        means: pd.DataFrame,
        *,
        by: str | None = None,
        metrics: Any = None,
        total: bool = True,
        **look: Any,
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
            (str(row[by]) if by else "", str(row["metric"])): row
            for row in means.to_dict("records")
        }
        self.systems = list(dict.fromkeys(system for system, _ in self.rows)) or [""] * (not by)
        check_systems(self.systems)
        about = {metric: row for (_, metric), row in self.rows.items()}
        plain = [name for name in about if name != TOTAL]
        weighted = set(means.loc[means["weight"].notna(), "metric"]) if "weight" in means else set()
        names = ([name for name in plain if name in weighted] or plain) + [TOTAL] * (
            total and TOTAL in about
        )
        if metrics is not None:
            names = [
                item if isinstance(item, str) else item.name for item in metric_list(metrics) or ()
            ]
        self.ranges: dict[str, tuple[float, float]] = {}
        self.better: dict[str, str] = {}
        for name in names:
            need_known("metric", name, list(about))
            row, known = about[name], METRICS.get(name, _UNKNOWN)
            ends = float(row.get("range_low", known.low)), float(row.get("range_high", known.high))
            if all(map(math.isfinite, ends)):
                self.ranges[name], self.better[name] = ends, row.get("better") or known.better
        self.metrics, self.endless = (
            [*self.ranges],
            [name for name in names if name not in self.ranges],
        )
        # Between its scale's ends a metric is shown beside others.
        self.scales = {name: scale_of(name, *ends) for name, ends in self.ranges.items()}
        self.common = (
            next(iter(self.scales.values())) if len(set(self.scales.values())) == 1 else None
        )

    def at(self, system: str, metric: str) -> tuple[Any, Any, Any]:
        """Return an estimate and its interval, None if missing."""
        return estimate(self.rows.get((system, metric), {}))

    def head(self, metric: str) -> str:
        """Return what a metric is called here, marked where lower is better."""
        name = self.say("chart.total") if metric == TOTAL else fitted(metric)
        return name + " ↓" * (self.better[metric] == "lower")

    def written(self, system: str, metric: str, *, n: bool = False) -> str:
        """Write an estimate as every page writes it, or a dash with what is missing; on request with its n."""
        if is_missing((row := self.rows.get((system, metric), {})).get("value")):
            return f"{MISSING} {gaps(row, self.say) or self.say('word.missing')}"
        rate = row.get("role", METRICS.get(metric, _UNKNOWN).role) == "rate"
        words = with_interval(*estimate(row), percent=rate)
        return (
            words
            if not n or is_missing(row.get("n"))
            else f"{words}  {self.say('chart.n', n=count(row['n']))}"
        )

    def shown(self, metric: str, *numbers: Any) -> list[Any]:
        """Return raw values if all metrics share a range, else positions in their own; None if missing."""
        low, high = (0.0, 1.0) if self.common else self.ranges[metric]
        return [None if is_missing(number) else (number - low) / (high - low) for number in numbers]

    def place(self, key: tuple[str, str]) -> float:
        """Return the position of an estimate in its range, 1 at the good end; nan if missing."""
        value, (low, high) = self.at(*key)[0], self.scales[key[1]]
        place = math.nan if is_missing(value) else max((float(value) - low) / (high - low), 0.0)
        return 1.0 - place if self.better[key[1]] == "lower" else place

    def finding(self) -> str:
        """Return the finding: the total, and the estimates nearest to the bad and the good end of their range."""
        there = [
            key for key in product(self.systems, self.metrics) if not math.isnan(self.place(key))
        ]
        plain, totals = (
            [key for key in there if (key[1] == TOTAL) is whole] for whole in (False, True)
        )
        several = len(self.systems) > 1
        if several and totals:
            ends = dict.fromkeys(
                [max(totals, key=self.place), min(reversed(totals), key=self.place)]
            )
            values = ", ".join(
                f"{fitted(system)} {self.written(system, TOTAL)}" for system, _ in ends
            )
            return self.say("chart.total_is", values=values)
        if not plain:
            return self.say("chart.nothing")
        weak, strong = (
            f"{self.head(metric)}{f' ({fitted(system)})' * several} {self.written(system, metric)}"
            for system, metric in (min(plain, key=self.place), max(plain, key=self.place))
        )
        if totals:
            return self.say("chart.total_weak", total=self.written("", TOTAL), weak=weak)
        return weak if weak == strong else self.say("chart.ends", weak=weak, strong=strong)


def estimate(row: Mapping[Any, Any], value: str = "value") -> tuple[Any, Any, Any]:
    """Return the value of a row and its interval, None if missing."""
    return row.get(value), row.get("low"), row.get("high")


def gaps(row: Mapping[Any, Any], say: Callable[..., str]) -> str:
    """Return how many scores are missing, failed or not applicable; empty if none."""
    numbers = [
        (f"chart.{key}", row.get(key)) for key in ("n_missing", "n_failed", "n_not_applicable")
    ]
    return ", ".join(say(key, n=int(n)) for key, n in numbers if n is not None and n > 0)


def notes_below(
    say: Callable[..., str], lower: str, senses: Iterable[str], endless: Sequence[str]
) -> list[str]:
    """Say under a chart that lower is better somewhere (in the words of `lower`), and what is not drawn."""
    return [say(lower)] * ("lower" in senses) + [
        say("chart.not_drawn", names=", ".join(endless))
    ] * bool(endless)


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
    systems : sequence of str, optional
        The systems in the order of their colours, so that each has one in all charts; by default as they come.
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
    table, rows = Means(means, **look), list[Row]()
    own, (low, high) = table.common is None, table.common or (0.0, 1.0)
    colours = _system_colours(look, table.systems)
    for metric in table.metrics:
        ends, dots = " ({:g}–{:g})".format(*table.ranges[metric]) if own else "", list[Dot]()
        for name, colour in zip(table.systems, colours, strict=False):
            shown, words = (
                table.shown(metric, *table.at(name, metric)),
                table.written(name, metric, n=True),
            )
            dots.append(Dot(shown, words, colour, label=fitted(name)))
        rows.append((table.head(metric) + ends, dots))
    notes = [
        table.say("chart.shares")
        if own
        else table.say("chart.range", low=f"{low:g}", high=f"{high:g}")
    ]
    notes += notes_below(table.say, "chart.lower", table.better.values(), table.endless)
    # A cosine may lie below the others' 0.
    lows = (
        [] if own else [row["low"] for row in table.rows.values() if not is_missing(row.get("low"))]
    )
    half, styles = (len(table.systems) - 1) / 2 + _STEP, dict[str, Any]()
    about: Any = {"finding": table.finding(), "labels": ["; ".join(notes)]}
    with dot_rows(look, rows, **about, span=(min([low, *lows]), high)) as ax:
        for middle, metric in zip(ax.get_yticks(), table.metrics, strict=True):
            for name, at in bars.get(metric, ()) if isinstance(bars, Mapping) else bars:
                label = "_bar" if name in styles else fitted(name)
                line: Any = {
                    "linestyle": styles.setdefault(name, _LINES[len(styles) % len(_LINES)]),
                    "zorder": 1,
                }
                upright = [middle - half, middle + half]
                ax.plot(
                    table.shown(metric, at, at),
                    upright,
                    color=INK,
                    linewidth=1.2,
                    label=label,
                    **line,
                )
    return ax


def _system_colours(look: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return a colour a system; one that is alone has none of them, unless it has its place among others."""
    if len(names) < 2 and not look.get("systems"):
        return [INK] * len(names)
    return [SYSTEM_COLOURS[place] for place in system_places(look, names)]


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
    systems : sequence of str, optional
        The systems in the order of their colours, so that each has one in all charts; by default as they come.
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
    if len((table := Means(means, total=False, **look)).metrics) < 3:
        return intervals(means, **look | {"metrics": [*table.metrics, *table.endless]})
    systems = {
        name: [table.at(name, metric)[0] for metric in table.metrics] for name in table.systems
    }
    lower = [table.better[metric] == "lower" for metric in table.metrics]
    axes = list(zip(table.metrics, table.scales.values(), lower, strict=True))
    names = [wrapped(name, 96) for name in axis_names(axes, systems, look.get("lang") or "en")]
    # Inches: the widest name has its place beside the web, which shrinks where a page is too narrow for both.
    side = max(text_width(line, 9.0) for name in names for line in name.splitlines()) / 72 + 0.1
    radius = max(1.0, min(1.8, WIDTH / 2 - side))
    values = list[str]()
    with canvas(look, 2.4 * radius + 0.8, 2 * (1.1 * radius + side)) as (ax, describe):
        _web(ax, names, table.common, 1.1 + side / radius)
        places = system_places(look, list(systems))
        for place, (system, found) in zip(places, systems.items(), strict=True):
            colour, dash = SYSTEM_COLOURS[place], DASHES[place]
            points = radar_points(found, axes)
            line: Any = {"color": colour, "linewidth": 1.6, "marker": "o", "markersize": 4}
            line["linestyle"] = (0, dash) if dash else "-"
            # A system without any score has no run, and is named in the legend too.
            for part, (run, closed) in enumerate(radar_runs(points) or [([], False)]):
                path = points[[*run, *run[:1]] if closed else run]
                ax.plot(*path.T, label="_more" if part else fitted(system) or "_one", **line)
                if closed and len(systems) < 3:
                    ax.fill(*path.T, color=colour, alpha=0.07, linewidth=0)
            words = (
                f"{fitted(metric)} {table.written(system, metric)}" for metric in table.metrics
            )
            values.append(f"{fitted(system)}: " * (len(systems) > 1) + ", ".join(words))
        notes = notes_below(table.say, "chart.turned", table.better.values(), table.endless)
        legend_below(ax, 10 + 14 * len(notes))
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
            ax.text(
                0.02,
                ring - 0.02,
                f"{np.interp(ring, (0, 1), common):g}",
                va="top",
                fontsize=8,
                label="_ring",
            )


_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(0.75)]])
_SHOWN = 20_000
_STRIP = 0.5


def differences(compared: pd.DataFrame, **look: Unpack[Look]) -> Axes:
    """Draw paired differences as dots with intervals, with 0 and the margin of *same*.

    Parameters
    ----------
    compared : DataFrame
        What `ragnb.compare` returns.
    **look
        ``lang, ax, finding``, as for every chart.

    Examples
    --------
    >>> import ragnb as rn
    >>> rows = {"sample_id": [*"abcd"] * 2, "system": ["new"] * 4 + ["old"] * 4}
    >>> scores = pd.DataFrame(rows | {"faithfulness": [0.9, 0.8, 0.9, 0.7, 0.5, 0.6, 0.5, 0.4]})
    >>> differences(rn.compare(scores, baseline="old")).get_title(loc="left")
    'new − old: better'
    """
    need_columns(
        compared.columns,
        ("candidate", "baseline", "metric", "outcome", "value", "margin", "primary"),
    )
    say, rows = speaker(look), []
    for row in compared.to_dict("records"):
        width = row["range_high"] - row["range_low"]
        at = [
            row[name] / (width if math.isfinite(width) else 1.0)
            for name in ("value", "low", "high")
        ]
        outcome = say("compared." + row["outcome"])
        if row["outcome"] == "undecided" and row["low"] * row["high"] > 0:
            outcome = say("chart.by_holm", outcome=outcome)  # the interval alone would decide
        words = f"{with_interval(row['value'], row['low'], row['high'])}  {outcome}"
        name = say("chart.total") if row["metric"] == "weighted_score" else fitted(row["metric"])
        several = compared["candidate"].nunique() > 1
        rows.append((f"{fitted(row['candidate'])}: {name}" if several else name, [Dot(at, words)]))
    first = (
        compared.iloc[-1]
        if not compared["primary"].any()
        else compared[compared["primary"]].iloc[0]
    )
    finding = f"{first['candidate']} − {first['baseline']}: {say('compared.' + first['outcome'])}"
    with dot_rows(look, rows, finding=finding, labels=(say("chart.difference"), "")) as ax:
        ax.axvline(0, color=INK, linewidth=0.8, zorder=0)
        margins = compared["margin"] / (compared["range_high"] - compared["range_low"])
        if margins.nunique() == 1 and math.isfinite(margins.iloc[0]):
            ax.axvspan(-margins.iloc[0], margins.iloc[0], color=GREY, alpha=0.15, linewidth=0)
    return ax


def by_depth(
    found: pd.DataFrame, *, measure: str = "recall", **look: Unpack[LookOfSystems]
) -> Axes:
    """Draw a measure of retrieval over the number of passages, with the band of its intervals, a line a system.

    Parameters
    ----------
    found : DataFrame
        What `ragnb.retrieval` returns, of at most five systems.
    measure : str
        ``hit, recall, precision, ndcg, mrr`` or ``map``.
    **look
        ``lang, ax, finding``, as for every chart; ``systems`` in the order of their colours.

    Raises
    ------
    RagnbError
        For a measure that the frame does not hold, and more than five systems.

    Examples
    --------
    >>> rows = {"measure": ["recall"] * 2, "k": [1, 5], "value": [0.5, 0.8], "low": [0.4, 0.7], "high": [0.6, 0.9]}
    >>> by_depth(pd.DataFrame(rows)).get_title(loc="left")
    'recall@5: 0.800'
    """
    need_columns(found.columns, ("measure", "k", "value", "low", "high"))
    need_known("measure", measure, list(dict.fromkeys(found["measure"])))
    rows = found[found["measure"] == measure].sort_values("k", kind="stable")
    is_several = "system" in rows and rows["system"].nunique() > 1
    parts: dict[str, pd.DataFrame] = {"": rows}
    if is_several:
        parts = {str(name): part for name, part in rows.groupby("system", sort=False)}
    check_systems(list(parts))
    say, told, last = speaker(look), list[str](), list[str]()
    with canvas(look, 2.8) as (ax, describe):
        places, colours = system_places(look, list(parts)), _system_colours(look, list(parts))
        for place, colour, (name, part) in zip(places, colours, parts.items(), strict=True):
            band: Any = {"color": colour, "alpha": 0.15, "linewidth": 0}
            ax.fill_between(part["k"], part["low"], part["high"], **band)
            label = fitted(name) if name else "_only"
            ax.plot(
                part["k"],
                part["value"],
                color=colour,
                marker=MARKS[place],
                markersize=5,
                label=label,
            )
            head = f"{name}: " if name else ""
            for row in part.to_dict("records"):
                words = with_interval(row["value"], row["low"], row["high"])
                told.append(f"{head}k = {row['k']}: {words}")
            last.append(f"{head}{number(part['value'].iloc[-1])}")
        ax.set_ylim(0, 1.02)
        ax.set_xticks(sorted(set(rows["k"])))
        legend_below(ax)
        finding = f"{measure}@{rows['k'].max()}: {', '.join(last)}"
        describe(finding, told, say("chart.depth"), measure)
    return ax


def win_rates(found: Any, **look: Unpack[Look]) -> Axes:
    """Draw how often each of several systems scores higher than each other one, as shaded cells.

    Parameters
    ----------
    found : Standings
        What `ragnb.standings` returns.
    **look
        ``lang, ax, finding``, as for every chart.

    Examples
    --------
    >>> import ragnb as rn
    >>> rows = {"sample_id": [*"abcd"] * 2, "system": ["new"] * 4 + ["old"] * 4}
    >>> scores = pd.DataFrame(rows | {"faithfulness": [0.9, 0.8, 0.9, 0.7, 0.5, 0.6, 0.5, 0.4]})
    >>> win_rates(rn.standings(scores)).get_title(loc="left")
    'new wins most often'
    """
    say, names = speaker(look), found.ranks["system"].tolist()
    pairs = found.pairs.set_index(["candidate", "baseline"])
    rates, outcome = (
        pairs[key].unstack().reindex(index=names, columns=names) for key in ("win_rate", "outcome")
    )
    sure = outcome.isin(["better", "worse"]).to_numpy()
    written = [
        [
            "" if math.isnan(rate) else percent(rate) + " *" * int(one)
            for rate, one in zip(*row, strict=True)
        ]
        for row in zip(rates.to_numpy(), sure, strict=True)
    ]
    best = found.ranks.sort_values("win_rate", kind="stable")["system"].iloc[-1]
    with canvas(look, 1.2 + 0.42 * len(names), 1.6 + 1.1 * len(names)) as (ax, describe):
        grid(ax, rates.to_numpy(), written, 8.5)
        ticks: Any = np.arange(len(names)) + 0.5, [fitted(name) for name in names]
        ax.set_xticks(*ticks)
        ax.set_yticks(*ticks, rotation=0)
        ax.tick_params(top=False, labeltop=True, bottom=False, labelbottom=False)
        values = [
            f"{row.candidate} / {row.baseline}: {percent(row.win_rate)}"
            for row in found.pairs.itertuples()
        ]
        describe(say("chart.win_rates", best=best), values, say("chart.wins_more"), "")
    return ax


def weight_map(found: Any, **look: Unpack[LookOfSystems]) -> Axes:
    """Draw who leads under which weights: a triangle for three metrics, a strip a metric for any number.

    Parameters
    ----------
    found : WeightMap
        What `ragnb.weight_map` returns.
    **look
        ``lang, ax, finding``, as for every chart; ``systems`` in the order of their colours.

    Examples
    --------
    >>> import ragnb as rn
    >>> rows = {"sample_id": [*"abcd"] * 2, "system": ["new"] * 4 + ["old"] * 4}
    >>> rows |= {"faithfulness": [0.9, 0.8, 0.9, 0.7, 0.5, 0.6, 0.5, 0.4]}
    >>> rows |= {"context_recall": [0.5, 0.4, 0.5, 0.5, 0.6, 0.7, 0.6, 0.7]}
    >>> len(weight_map(rn.weight_map(pd.DataFrame(rows), baseline="old")).get_yticks())
    2
    """
    say, shares = speaker(look), found.shares
    leader = max(("candidate", "baseline"), key=lambda side: shares[side])
    sure = percent(shares[f"{leader}_conclusive"])
    seen = say("chart.leads", name=getattr(found, leader), share=percent(shares[leader]), sure=sure)
    values = [
        f"{row.metric}: {say('chart.flip', today=percent(row.today), flip=percent(row.flip))}"
        for row in found.flips.dropna().itertuples()
    ]
    draw, height = (
        (_triangle, 4.6)
        if len(found.metrics) == 3
        else (_strips, 1.2 + _STRIP * len(found.metrics))
    )
    with canvas(look, height) as (ax, describe):
        sides = system_places(look, [found.candidate, found.baseline])
        label = draw(ax, found, say, [SYSTEM_COLOURS[place] for place in sides])
        legend_below(ax)
        describe(seen, values, label, "")
    return ax


def _areas(
    at: pd.DataFrame, found: Any, say: Callable[..., str], colours: Sequence[str]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield who leads, conclusively or not: at which rows, and how that is drawn."""
    leads, sure = at["value"] > 0, (at["low"] > 0) | (at["high"] < 0)
    sides = (found.candidate, leads), (found.baseline, ~leads)
    for (name, ahead), colour in zip(sides, colours, strict=True):
        for word, kept, strength in (("conclusive", sure, 0.9), ("not_conclusive", ~sure, 0.35)):
            look = {
                "color": colour,
                "alpha": strength,
                "linewidth": 0,
                "label": f"{name}, {say(f'chart.{word}')}",
            }
            yield (ahead & kept).to_numpy(), look


def _triangle(ax: Axes, found: Any, say: Callable[..., str], colours: Sequence[str]) -> str:
    points = found.points.iloc[:_SHOWN]
    places = points[list(found.metrics)].to_numpy() @ _CORNERS
    for kept, look in _areas(points, found, say, colours):
        if kept.any():
            x, y = places[kept].T
            ax.scatter(x, y, s=5, rasterized=True, **look)
    ax.fill(*_CORNERS.T, fill=False, edgecolor=INK, linewidth=0.8)
    ax.plot(*(found.today @ _CORNERS), "*", ms=13, color=INK, label=say("chart.today"))
    if flip := found.nearest_flip:
        ax.plot(
            *(np.array([*flip["weights"].values()]) @ _CORNERS),
            "X",
            color=INK,
            label=say("chart.nearest"),
        )
    for name, (x, y), side in zip(
        found.metrics, _CORNERS, ("right", "left", "center"), strict=True
    ):
        ax.text(
            x,
            y + (0.03 if y else -0.03),
            fitted(name),
            ha=side,
            va="bottom" if y else "top",
            fontsize=9,
        )
    ax.set(aspect="equal", xticks=[], yticks=[], xlim=(-0.35, 1.35), ylim=(-0.1, 0.95))
    ax.spines[["left", "bottom"]].set_visible(False)
    return ""


def _strips(ax: Axes, found: Any, say: Callable[..., str], colours: Sequence[str]) -> str:
    names = found.flips["metric"].tolist()
    for place, (name, today, flip) in enumerate(
        found.flips[["metric", "today", "flip"]].itertuples(index=False)
    ):
        strip = found.strip(name)
        shares, width = strip["share"].to_numpy(), strip["share"].iloc[1]
        for kept, look in _areas(strip, found, say, colours):
            look |= {"label": "_part"} if place else {}
            ax.barh([place] * kept.sum(), width, left=shares[kept] - width / 2, height=0.55, **look)
        ax.plot(today, place, "o", color=INK, label="_row" if place else say("chart.today"))
        if not math.isnan(flip):
            ax.plot(
                [flip, flip], [place - 0.4, place + 0.4], color=INK, linewidth=1.6, label="_flip"
            )
            ax.text(flip, place - 0.42, number(flip, 2), ha="center", va="bottom", fontsize=8)
    name_rows(ax, range(len(names)), [fitted(name) for name in names], len(names) - 0.4, -0.8)
    ax.set_xlim(0, 1)
    return say("chart.weight_share")


# Dots a row; the box holds all scores.
MOST_DOTS = 300


def outcomes(
    outcomes: pd.DataFrame,
    *,
    label: str = "label",
    by: str | None = None,
    **look: Unpack[LookOfSystems],
) -> Axes:
    """Draw counts as bars, one row per label, in the order of the frame.

    Parameters
    ----------
    outcomes : DataFrame
        ``[by,] label, n``, and optionally ``share`` in [0, 1], as an Assessment's ``outcomes`` or ``modes``.
    label : str
        The column of labels, such as ``meaning`` or ``failure_mode``.
    by : str, optional
        The column of systems, at most five: a bar for each, side by side.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}, optional
    systems : sequence of str, optional
        The systems in the order of their colours, so that each has one in all charts; by default as they come.
    finding : str, optional
        What the picture shows, in a sentence: its title, and the start of its words. By default what stands out
        in the frame; empty for no title.

    Returns
    -------
    Axes
        Each bar is labelled with the count, and the share if the frame has it.

    Raises
    ------
    RagnbError
        For a column that is not there, and for more than five systems.

    Examples
    --------
    >>> axes = outcomes(pd.DataFrame({"label": ["OK", "REFUSAL_OK"], "n": [3, 1], "share": [0.75, 0.25]}))
    >>> [float(bar.get_width()) for bar in axes.patches], [text.get_text() for text in axes.texts]
    ([3.0, 1.0], ['3 (75.0 %)', '1 (25.0 %)'])
    """
    from matplotlib.ticker import MaxNLocator

    need_columns(outcomes.columns, (label, "n"))
    labels, systems = list(dict.fromkeys(map(str, outcomes[label]))), _split(outcomes, by)
    many, say, values, found = len(systems), speaker(look), list[str](), list[str]()
    with canvas(look, 0.9 + 0.26 * max(len(labels), 1) * many) as (ax, describe):
        colours = system_places(look, list(systems))
        for place, (system, part) in enumerate(systems.items()):
            counts, names = part["n"].astype(int), [fitted(name) for name in part[label]]
            heights = [
                labels.index(str(name)) - 0.4 + 0.8 * (place + 0.5) / many for name in part[label]
            ]
            bar: Any = {"color": SYSTEM_COLOURS[colours[place]], "label": fitted(system) or "_one"}
            bars = ax.barh(heights, counts.to_numpy(float), 0.7 / many, **bar)
            shares = (
                [f" ({percent(share)})" for share in part["share"]]
                if "share" in part
                else [""] * len(part)
            )
            words = [f"{n}{share}" for n, share in zip(counts, shares, strict=True)]
            ax.bar_label(bars, words, padding=4, fontsize=8.5)
            head = f"{fitted(system)}: " * bool(system)
            values.append(head + ", ".join(map(" ".join, zip(names, words, strict=True))))
            if counts.sum():
                top = int(counts.to_numpy().argmax())
                found.append(
                    head + say("chart.most", name=names[top], k=counts.iloc[top], n=counts.sum())
                )
        name_rows(
            ax,
            range(len(labels)),
            [fitted(name) for name in labels],
            max(len(labels), 1) - 0.5,
            -0.5,
        )
        ax.set_xlim(left=0)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        legend_below(ax)
        describe("; ".join(found) or say("chart.nothing_counted"), values, say("chart.count"))
    return ax


def _split(frame: pd.DataFrame, by: str | None) -> dict[str, pd.DataFrame]:
    """Split a frame by a column of names, in order of appearance; without the column, one unnamed part."""
    if by is None:
        return {"": frame}
    need_known("by", by, [str(name) for name in frame.columns])
    # Not groupby: it loses rows without a name, and fails on a name with a lone surrogate.
    names = [MISSING if is_missing(name) else str(name) for name in frame[by]]
    check_systems(systems := list(dict.fromkeys(names)))
    return {one: frame[[name == one for name in names]] for one in systems}


def distribution(
    scores: pd.DataFrame,
    *,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    by: str | None = None,
    **look: Unpack[LookOfSystems],
) -> Axes:
    """Draw the scores of each metric (and system) as dots in its range, with a box of their quartiles.

    Parameters
    ----------
    scores : DataFrame
        One row per sample, one column per metric; optional ``<metric>__status``.
    metrics : names or Metric objects, optional
        As everywhere: None takes the columns that METRICS declares.
    by : str, optional
        The column of systems, at most five: a row for each, in its colour.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}, optional
    systems : sequence of str, optional
        The systems in the order of their colours, so that each has one in all charts; by default as they come.
    finding : str, optional
        What the picture shows, in a sentence: its title, and the start of its words. By default the row with
        the largest share in the worst tenth of its range; empty for no title.

    Returns
    -------
    Axes
        The box holds the middle half of all scores, its line the median. Of many scores 300 are drawn as dots,
        at even ranks, the ends among them, spread where many lie. A row's name gives n and how many scores are
        missing, failed or not applicable.

    Raises
    ------
    RagnbError
        For unknown metrics or columns, for no metric with a finite range, for scores outside theirs, and for
        more than five systems.

    Examples
    --------
    >>> axes = distribution(pd.DataFrame({"faithfulness": [0.05, 0.95, 1.0, None]}))
    >>> axes.collections[0].get_offsets()[:, 0].tolist(), axes.get_yticklabels()[0].get_text().splitlines()
    ([0.05, 0.95, 1.0], ['faithfulness', 'n = 3, 1 missing'])
    """
    from seaborn import boxenplot

    say, systems = speaker(look), _split(scores, by)
    chosen = resolve_metrics(metrics, [str(name) for name in scores.columns])
    if not (bounded := [metric for metric in chosen if metric.bounded]):
        raise RagnbError(
            "no metric with a finite range to draw; name some: metrics=[Metric('mine', 0, 1)]"
        )
    own = len({(metric.low, metric.high) for metric in bounded}) > 1
    low, high = (0.0, 1.0) if own else (bounded[0].low, bounded[0].high)
    heads, told, bad, rows = list[str](), list[str](), list[tuple[int, int, str]](), list[Any]()
    for metric, system in product(bounded, systems):
        values, lacks = _scores(systems[system], metric)
        lower, width, n = metric.better == "lower", metric.high - metric.low, len(values)
        name = fitted(metric.name) + f" · {fitted(system)}" * bool(system) + " ↓" * lower
        size = ", ".join(filter(None, [say("chart.n", n=count(n)), gaps(lacks, say)]))
        heads.append(f"{name}{f' ({metric.low:g}–{metric.high:g})' * own}\n{size}")
        first, middle, third = map(number, np.percentile(values, [25, 50, 75]) if n else [None] * 3)
        told.append(
            f"{one_line(heads[-1])}, {say('chart.quartiles', middle=middle, low=first, high=third)}"
        )
        worst = metric.high - values if lower else values - metric.low
        bad.append((int((worst < 0.1 * width - 1e-9).sum()), n, name))
        rows.append((values - metric.low) / width if own else values)
    places = system_places(look, list(systems))
    with canvas(look, 1.0 + 0.42 * len(rows)) as (ax, describe):
        for row, values in enumerate(rows):
            few = values[np.linspace(0, len(values) - 1, min(len(values), MOST_DOTS)).astype(int)]
            # As far apart as scores are many there, by the golden ratio: seaborn's stripplot spreads all alike,
            # and draws lots, so that no two pictures would be equal.
            tenths = (few - low) / (high - low) * 20 // 1
            _, part, sizes = np.unique(tenths, return_inverse=True, return_counts=True)
            wide = 0.6 * sizes[part] / sizes.max(initial=1)
            dots: Any = {
                "color": SYSTEM_COLOURS[places[row % len(systems)]],
                "s": 9,
                "alpha": 0.6,
                "linewidths": 0,
            }
            ax.scatter(few, row + wide * (np.arange(len(few)) * 0.618034 % 1 - 0.5), **dots)
        # Not its boxplot, whose call matplotlib has begun to warn of: of the letter values only the quartiles.
        box: Any = {
            "k_depth": 1,
            "showfliers": False,
            "width": 0.68,
            "fill": False,
            "linewidth": 1,
            "color": INK,
        }
        boxenplot(dict(enumerate(rows)), orient="h", native_scale=True, ax=ax, **box)
        name_rows(ax, range(len(heads)), heads, len(heads) - 0.5, -0.5)
        whole_scale(ax, "x", low, high)
        notes = [say("chart.spread")] + [say("chart.shares")] * own
        endless = [metric.name for metric in chosen if not metric.bounded]
        notes += notes_below(say, "chart.lower", [metric.better for metric in bounded], endless)
        ax.set_xlabel("\n".join(notes), fontsize=8.5, loc="right")
        ax.set_ylabel("")
        k, n, name = max(bad, key=lambda row: row[0] / max(row[1], 1))
        finding = (
            say("chart.bad_end", name=name, k=count(k), n=count(n))
            if k
            else say("chart.no_bad_end")
        )
        describe(finding if any(n for _, n, _ in bad) else say("chart.nothing"), told)
    return ax


def _scores(part: pd.DataFrame, metric: Metric) -> tuple[Any, dict[str, int]]:
    """Return the scores that are there, in their range, and why others are not."""
    values = pd.to_numeric(part[metric.name], errors="raise").to_numpy(dtype=float, na_value=np.nan)
    low, high, missing = metric.low, metric.high, np.isnan(values)
    if (outside := values[(values < low - CLIP) | (values > high + CLIP)]).size:
        raise RagnbError(
            f"{metric.name}={outside[0]:g} lies outside {low:g}..{high:g}; "
            f"declare its range: Metric({metric.name!r}, low, high)"
        )
    status = part.get(f"{metric.name}__status", pd.Series("", index=part.index)).astype(str)[
        missing
    ]
    lacks = {f"n_{word}": int((status == word).sum()) for word in ("failed", "not_applicable")}
    return np.sort(np.clip(values[~missing], low, high)), lacks | {
        "n_missing": len(status) - sum(lacks.values())
    }
