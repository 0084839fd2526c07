"""A means frame made ready to draw: its metrics, systems, ranges and directions, and its numbers in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbError, listing, need_columns, unknown
from ragnb.markup import MISSING, SYSTEM_COLOURS, count, with_interval
from ragnb.markup.cells import is_missing
from ragnb.plots.canvas import fitted
from ragnb.schema import METRICS, Metric, metric_list, scale_of

TOTAL = "weighted_score"
ORDERS = ("worst", "frame")
_UNKNOWN = Metric("unknown")
Metrics = str | Iterable[str] | None
Estimate = tuple[Any, Any, Any]


class Means:
    """The rows of a means frame by system and metric, and the ranges and directions of its metrics.

    Without `metrics` come those that enter the weighted score (all, where the frame does not say or none does),
    and the total where `total` is true. `endless` names metrics whose range has no end; they are not drawn.
    """

    def __init__(
        self, means: pd.DataFrame, metrics: Metrics, by: str | None, lang: str, *, total: bool = True
    ) -> None:
        keys = [by, "metric"] if by else ["metric"]
        need_columns(means.columns, ("metric", "value", *keys[:-1]))
        if means.duplicated(keys).any():
            raise RagnbError(
                f"means holds a metric more than once; say which column tells the systems apart: by=… (have: "
                f"{listing(name for name in means.columns if name not in ('metric', 'value', 'low', 'high'))})"
            )
        self.say = texts.load(lang)
        self.rows: dict[tuple[str, str], Mapping[Any, Any]] = {
            (str(row[by]) if by else "", str(row["metric"])): row for row in means.to_dict("records")
        }
        self.systems = tuple(dict.fromkeys(system for system, _ in self.rows)) or ("",) * (not by)
        self.ranges: dict[str, tuple[float, float]] = {}
        self.better: dict[str, str] = {}
        about, names = {metric: row for (_, metric), row in self.rows.items()}, _chosen(means, metrics, total)
        for name in names:
            row, known = about[name], METRICS.get(name, _UNKNOWN)
            ends = float(row.get("range_low", known.low)), float(row.get("range_high", known.high))
            if all(map(math.isfinite, ends)):
                self.ranges[name], self.better[name] = ends, row.get("better") or known.better
        self.metrics = tuple(self.ranges)
        self.endless = [name for name in names if name not in self.ranges]
        # Between its scale's ends a metric is shown beside others.
        self.scales = {name: scale_of(name, *ends) for name, ends in self.ranges.items()}
        scales = set(self.scales.values())
        self.common = scales.pop() if len(scales) == 1 else None

    def row(self, system: str, metric: str) -> Mapping[Any, Any]:
        """Return a row of the frame, empty where there is none."""
        return self.rows.get((system, metric), {})

    def head(self, metric: str) -> str:
        """Return what a metric is called here, marked where lower is better."""
        name = self.say("chart.total") if metric == TOTAL else fitted(metric)
        return name + " ↓" * (self.better[metric] == "lower")

    def written(self, system: str, metric: str) -> str:
        """Write an estimate as every page writes it, or a dash with what is missing."""
        row = self.row(system, metric)
        if is_missing(row.get("value")):
            return f"{MISSING} {gaps(row, self.say) or self.say('word.missing')}"
        rate = row.get("role", METRICS.get(metric, _UNKNOWN).role) == "rate"
        return with_interval(*estimate(row), percent=rate)

    def counted(self, system: str, metric: str) -> str:
        """Write an estimate with its n after it."""
        row, words = self.row(system, metric), self.written(system, metric)
        if is_missing(row.get("n")) or is_missing(row.get("value")):
            return words
        return f"{words}  {self.say('chart.n', n=count(row['n']))}"

    def words(self, system: str) -> str:
        """Say all numbers of a system in one line."""
        names = {name: self.say("chart.total") if name == TOTAL else fitted(name) for name in self.metrics}
        return ", ".join(f"{name} {self.written(system, metric)}" for metric, name in names.items())

    def place(self, system: str, metric: str) -> float:
        """Return where an estimate stands in its range, 1 at the good end; nan where there is none."""
        value: Any = self.row(system, metric).get("value")
        low, high = self.scales[metric]
        if is_missing(value):
            return math.nan
        place = max((float(value) - low) / (high - low), 0.0)
        return 1.0 - place if self.better[metric] == "lower" else place

    def finding(self) -> str:
        """Say what stands out: the total, and the estimates nearest to the bad and the good end of their range."""
        keys = [(system, metric) for system in self.systems for metric in self.metrics]
        places = {key: place for key in keys if (place := self.place(*key)) >= 0}
        totals = sorted((key for key in places if key[1] == TOTAL), key=lambda key: -places[key])
        if len(self.systems) > 1 and totals:
            ends = dict.fromkeys([totals[0][0], totals[-1][0]])
            values = ", ".join(f"{fitted(system)} {self.written(system, TOTAL)}" for system in ends)
            return self.say("chart.total_is", values=values)
        keys = [key for key in places if key[1] != TOTAL]
        if not keys:
            return self.say("chart.nothing")
        weak, strong = (self._named(*end(keys, key=places.__getitem__)) for end in (min, max))
        if totals:
            return self.say("chart.total_weak", total=self.written("", TOTAL), weak=weak)
        return weak if weak == strong else self.say("chart.ends", weak=weak, strong=strong)

    def _named(self, system: str, metric: str) -> str:
        whose = f" ({fitted(system)})" if len(self.systems) > 1 else ""
        return f"{self.head(metric)}{whose} {self.written(system, metric)}"


def _chosen(means: pd.DataFrame, metrics: Metrics, total: bool) -> Sequence[str]:
    names = list(dict.fromkeys(map(str, means["metric"])))
    if metrics is not None:
        chosen = [item if isinstance(item, str) else item.name for item in metric_list(metrics) or ()]
        if strangers := [name for name in chosen if name not in names]:
            raise unknown("metric", strangers[0], names)
        return chosen
    plain = [name for name in names if name != TOTAL]
    weighted = set(means.loc[means["weight"].notna(), "metric"]) if "weight" in means else set()
    return ([name for name in plain if name in weighted] or plain) + [TOTAL] * (total and TOTAL in names)


def rank_documents(
    means: pd.DataFrame, metrics: Metrics, by: str, lang: str, *, most: int, order: str = "worst"
) -> tuple[Means, list[str], list[str]]:
    """Return a means frame made ready, its documents, the worst first, and a note on those that are not drawn."""
    if order not in ORDERS:
        raise unknown("order", order, ORDERS)
    if most < 1:
        raise RagnbError(f"most={most} draws nothing; give the number of documents to draw, such as 30")
    table = Means(means, metrics, by, lang)
    if table.endless:
        raise RagnbError(f"{table.endless[0]!r} has no finite range to shade or to lay out; leave it out")
    names = list(table.systems)
    if order == "worst":
        values: dict[str, Any] = {name: table.row(name, TOTAL).get("value") for name in names}
        if all(map(is_missing, values.values())):
            places = {name: [table.place(name, metric) for metric in table.metrics] for name in names}
            values = {name: min((at for at in places[name] if at == at), default=None) for name in names}
        names.sort(key=lambda name: math.inf if is_missing(values[name]) else float(values[name]))
    rest = [table.say("chart.rest", n=count(len(names) - most))] * (len(names) > most)
    return table, names, rest


def check_systems(systems: Collection[str]) -> None:
    """Refuse more systems than there are colours that can be told apart."""
    if len(systems) > len(SYSTEM_COLOURS):
        raise RagnbError(
            f"a chart shows at most {len(SYSTEM_COLOURS)} systems and is given {len(systems)}; choose some"
        )


def split(frame: pd.DataFrame, by: str | None) -> dict[str, pd.DataFrame]:
    """Part a frame by a column of names, in the order in which they come; one part without a name otherwise."""
    if by is None:
        return {"": frame}
    if by not in frame.columns:
        raise unknown("by", by, [str(name) for name in frame.columns])
    # Not groupby: it loses rows without a name, and cannot hold a name with a lone surrogate.
    names = [MISSING if is_missing(name) else str(name) for name in frame[by]]
    return {one: frame[[name == one for name in names]] for one in dict.fromkeys(names)}


def estimate(row: Mapping[Any, Any], value: str = "value") -> Estimate:
    """Return the value of a row and the ends of its interval, None for what is not there."""
    return row.get(value), row.get("low"), row.get("high")


def gaps(row: Mapping[Any, Any], say: Callable[..., str]) -> str:
    """Say how many scores are missing, failed or not applicable; empty where none is."""
    numbers = [(f"chart.{key}", row.get(key)) for key in ("n_missing", "n_failed", "n_not_applicable")]
    return ", ".join(say(key, n=int(n)) for key, n in numbers if n is not None and n > 0)


def notes_below(say: Callable[..., str], lower: str, turned: bool, endless: Sequence[str]) -> list[str]:
    """Say under a chart that lower is better somewhere (in the words of `lower`), and what is not drawn."""
    return [say(lower)] * turned + [say("chart.not_drawn", names=", ".join(endless))] * bool(endless)
