"""Means with their intervals, of one system or several."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Unpack

import pandas as pd

from ragnb.errors import RagnbError, listing, need_columns, need_known
from ragnb.markup import (
    MISSING,
    count,
    is_missing,
    with_interval,
)
from ragnb.markup.rendering import (
    INK,
    SYSTEM_COLOURS,
    check_systems,
)
from ragnb.plots.canvas import (
    Axes,
    LookOfSystems,
    fitted,
    speaker,
    system_places,
)
from ragnb.plots.rows import Dot, Row, dot_rows
from ragnb.schema import METRICS, TOTAL, Metric, metric_list, scale_of

Thresholds = Mapping[str, Sequence[tuple[str, float]]] | Sequence[tuple[str, float]]
_UNKNOWN = Metric("unknown")
_LINES = ("--", ":", "-.", (0, (1, 3)))
_STEP = 0.42  # half the height of a threshold in the row of a single system


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
            others = [name for name in means if name not in ("metric", "value", "low", "high")]
            raise RagnbError(
                f"means holds a metric twice; name the column that distinguishes the systems: by=… (have: "
                f"{listing(others)})"
            )
        self.say = speaker(look)
        self.rows: dict[tuple[str, str], Mapping[Any, Any]] = {}
        for row in means.to_dict("records"):
            system = str(row[by]) if by else ""
            self.rows[system, str(row["metric"])] = row
        self.systems = list(dict.fromkeys(system for system, _ in self.rows))
        # A frame without rows still has one system, the unnamed one.
        if not self.systems and not by:
            self.systems = [""]
        check_systems(self.systems)
        # A range and a direction are those of a metric, whichever system the row is of.
        about = {metric: row for (_, metric), row in self.rows.items()}
        if metrics is None:
            names = _default_metrics(means, list(about), total)
        else:
            names = [
                item if isinstance(item, str) else item.name for item in metric_list(metrics) or ()
            ]
        self.ranges: dict[str, tuple[float, float]] = {}
        self.better: dict[str, str] = {}
        self.endless: list[str] = []
        for name in names:
            need_known("metric", name, list(about))
            of_metric = about[name]
            known = METRICS.get(name, _UNKNOWN)
            low = float(of_metric.get("range_low", known.low))
            high = float(of_metric.get("range_high", known.high))
            if math.isfinite(low) and math.isfinite(high):
                self.ranges[name] = (low, high)
                self.better[name] = of_metric.get("better") or known.better
            else:
                self.endless.append(name)
        self.metrics = [*self.ranges]
        # Between its scale's ends a metric is shown beside others.
        self.scales = {name: scale_of(name, *ends) for name, ends in self.ranges.items()}
        scales = {*self.scales.values()}
        self.common = scales.pop() if len(scales) == 1 else None

    def at(self, system: str, metric: str) -> tuple[Any, Any, Any]:
        """Return an estimate and its interval, None if missing."""
        return estimate(self.rows.get((system, metric), {}))

    def head(self, metric: str) -> str:
        """Return what a metric is called here, marked where lower is better."""
        if metric == TOTAL:
            name = self.say("chart.total")
        else:
            name = fitted(metric)
        if self.better[metric] == "lower":
            return f"{name} ↓"
        return name

    def written(self, system: str, metric: str, *, n: bool = False) -> str:
        """Write an estimate as every page writes it, or a dash with what is missing; on request with its n."""
        row = self.rows.get((system, metric), {})
        if is_missing(row.get("value")):
            why = gaps(row, self.say) or self.say("word.missing")
            return f"{MISSING} {why}"
        rate = row.get("role", METRICS.get(metric, _UNKNOWN).role) == "rate"
        words = with_interval(*estimate(row), percent=rate)
        if not n or is_missing(row.get("n")):
            return words
        return f"{words}  {self.say('chart.n', n=count(row['n']))}"

    def shown(self, metric: str, *numbers: Any) -> list[Any]:
        """Return raw values if all metrics share a range, else positions in their own; None if missing."""
        if self.common:
            low, high = 0.0, 1.0
        else:
            low, high = self.ranges[metric]
        return [None if is_missing(number) else (number - low) / (high - low) for number in numbers]

    def place(self, key: tuple[str, str]) -> float:
        """Return the position of an estimate in its range, 1 at the good end; nan if missing."""
        system, metric = key
        value, _, _ = self.at(system, metric)
        if is_missing(value):
            return math.nan
        low, high = self.scales[metric]
        # A cosine may lie below its scale, see `scale_of`.
        place = max((float(value) - low) / (high - low), 0.0)
        if self.better[metric] == "lower":
            return 1.0 - place
        return place

    def finding(self) -> str:
        """Return the finding: the total, and the estimates nearest to the bad and the good end of their range."""
        estimates = [
            key for key in product(self.systems, self.metrics) if not math.isnan(self.place(key))
        ]
        totals = [key for key in estimates if key[1] == TOTAL]
        plain = [key for key in estimates if key[1] != TOTAL]
        if len(self.systems) > 1 and totals:
            # Of equal totals the first is the best and the last the worst; one total is told once.
            best = max(totals, key=self.place)
            worst = min(reversed(totals), key=self.place)
            values = []
            for system, _ in dict.fromkeys([best, worst]):
                values.append(f"{fitted(system)} {self.written(system, TOTAL)}")
            return self.say("chart.total_is", values=", ".join(values))
        if not plain:
            return self.say("chart.nothing")
        weak = self._named(min(plain, key=self.place))
        strong = self._named(max(plain, key=self.place))
        if totals:
            return self.say("chart.total_weak", total=self.written("", TOTAL), weak=weak)
        if weak == strong:
            return weak
        return self.say("chart.ends", weak=weak, strong=strong)

    def _named(self, key: tuple[str, str]) -> str:
        """Write an estimate with its metric, and of several systems with its system."""
        system, metric = key
        name = self.head(metric)
        if len(self.systems) > 1:
            name += f" ({fitted(system)})"
        return f"{name} {self.written(system, metric)}"


def _default_metrics(means: pd.DataFrame, names: Sequence[str], total: bool) -> list[str]:
    """Return the metrics that enter the weighted score, all where none is known to, and with `total` the total."""
    plain = [name for name in names if name != TOTAL]
    chosen = plain
    if "weight" in means:
        weighted = set(means.loc[means["weight"].notna(), "metric"])
        chosen = [name for name in plain if name in weighted] or plain
    if total and TOTAL in names:
        return [*chosen, TOTAL]
    return chosen


def estimate(row: Mapping[Any, Any], value: str = "value") -> tuple[Any, Any, Any]:
    """Return the value of a row and its interval, None if missing."""
    return row.get(value), row.get("low"), row.get("high")


def gaps(row: Mapping[Any, Any], say: Callable[..., str]) -> str:
    """Return how many scores are missing, failed or not applicable; empty if none."""
    parts = []
    for key in ("n_missing", "n_failed", "n_not_applicable"):
        n = row.get(key)
        if n is not None and n > 0:
            parts.append(say(f"chart.{key}", n=int(n)))
    return ", ".join(parts)


def notes_below(
    say: Callable[..., str], lower: str, senses: Iterable[str], endless: Sequence[str]
) -> list[str]:
    """Say under a chart that lower is better somewhere (in the words of `lower`), and what is not drawn."""
    notes = []
    if "lower" in senses:
        notes.append(say(lower))
    if endless:
        notes.append(say("chart.not_drawn", names=", ".join(endless)))
    return notes


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
    table = Means(means, **look)
    rows = list[Row]()
    own = table.common is None  # each metric on its own range
    low, high = table.common or (0.0, 1.0)
    colours = system_colours(look, table.systems)
    for metric in table.metrics:
        head = table.head(metric)
        if own:
            head += " ({:g}–{:g})".format(*table.ranges[metric])
        dots = list[Dot]()
        for name, colour in zip(table.systems, colours, strict=False):
            shown = table.shown(metric, *table.at(name, metric))
            words = table.written(name, metric, n=True)
            dots.append(Dot(shown, words, colour, label=fitted(name)))
        rows.append((head, dots))
    if own:
        notes = [table.say("chart.shares")]
    else:
        notes = [table.say("chart.range", low=f"{low:g}", high=f"{high:g}")]
        # A cosine may lie below the others' 0.
        lows = [row["low"] for row in table.rows.values() if not is_missing(row.get("low"))]
        low = min([low, *lows])
    notes += notes_below(table.say, "chart.lower", table.better.values(), table.endless)
    about: Any = {"finding": table.finding(), "labels": ["; ".join(notes)]}
    with dot_rows(look, rows, **about, span=(low, high)) as ax:
        _draw_thresholds(ax, table, bars)
    return ax


def _draw_thresholds(ax: Axes, table: Means, bars: Thresholds) -> None:
    """Draw the thresholds of each metric in its row; a name has one style, and is in the legend once."""
    half = (len(table.systems) - 1) / 2 + _STEP  # of the height of a row of several systems
    styles = dict[str, Any]()
    for middle, metric in zip(ax.get_yticks(), table.metrics, strict=True):
        of_metric = bars.get(metric, ()) if isinstance(bars, Mapping) else bars
        for name, at in of_metric:
            # A label that begins with an underscore stays out of the legend.
            label = "_bar"
            if name not in styles:
                label = fitted(name)
                styles[name] = _LINES[len(styles) % len(_LINES)]
            ax.plot(
                table.shown(metric, at, at),
                [middle - half, middle + half],
                color=INK,
                linewidth=1.2,
                linestyle=styles[name],
                label=label,
                zorder=1,
            )


def system_colours(look: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return a colour a system; one that is alone has none of them, unless it has its place among others."""
    if len(names) < 2 and not look.get("systems"):
        return [INK] * len(names)
    return [SYSTEM_COLOURS[place] for place in system_places(look, names)]
