"""A means frame made ready to draw: its metrics, systems, ranges and directions, and its numbers in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbError, listing, need_columns, unknown
from ragnb.markup import MISSING, count, one_line, with_interval
from ragnb.markup.cells import is_missing
from ragnb.plots.canvas import fitted
from ragnb.plots.rows import Estimate, estimate
from ragnb.schema import METRICS, Metric, metric_list, scale_of

TOTAL = "weighted_score"
GAPS = ("n_missing", "n_failed", "n_not_applicable")
_UNKNOWN = Metric("unknown")
Metrics = str | Iterable[str] | None


class Means:
    """The rows of a means frame by system and metric, and the ranges and directions of its metrics.

    Without `metrics` come those that enter the weighted score (all, where the frame does not say or none does),
    and the total where `total` is true. `endless` names metrics whose range has no end; they are not drawn.
    """

    def __init__(self, means: pd.DataFrame, metrics: Metrics, by: str | None, lang: str, *, total: bool) -> None:
        keys = [by, "metric"] if by else ["metric"]
        need_columns(means.columns, ("metric", "value", *keys[:-1]))
        if means.duplicated(keys).any():
            raise RagnbError(
                f"means holds a metric more than once; say which column tells the systems apart: by=… (have: "
                f"{listing(name for name in means.columns if name not in ('metric', 'value', 'low', 'high'))})"
            )
        records = [{str(key): value for key, value in row.items()} for row in means.to_dict("records")]
        self.lang = lang
        self.rows = {(str(row[by]) if by else "", str(row["metric"])): row for row in records}
        self.systems = tuple(dict.fromkeys(system for system, _ in self.rows)) or ("",) * (not by)
        self.ranges: dict[str, tuple[float, float]] = {}
        self.better: dict[str, str] = {}
        about, chosen = {metric: row for (_, metric), row in self.rows.items()}, _chosen(means, metrics, total)
        for name in chosen:
            row, known = about[name], METRICS.get(name, _UNKNOWN)
            ends = float(row.get("range_low", known.low)), float(row.get("range_high", known.high))
            if all(map(math.isfinite, ends)):
                self.ranges[name], self.better[name] = ends, row.get("better") or known.better
        self.metrics = tuple(name for name in chosen if name in self.ranges)
        self.endless = [name for name in chosen if name not in self.ranges]
        # Between its scale's ends a metric is shown beside others.
        self.scales = {name: scale_of(name, *ends) for name, ends in self.ranges.items()}

    @property
    def common(self) -> tuple[float, float] | None:
        """The scale that all metrics share, or None."""
        found = set(self.scales.values())
        return found.pop() if len(found) == 1 else None

    def get(self, system: str, metric: str, column: str) -> Any:
        """Return one cell, None where the frame has no such row or column."""
        return self.rows.get((system, metric), {}).get(column)

    def estimate(self, system: str, metric: str) -> Estimate:
        """Return an estimate and the ends of its interval."""
        return estimate(self.rows.get((system, metric), {}))

    def head(self, metric: str) -> str:
        """Return what a metric is called here, marked where lower is better."""
        name = texts.load(self.lang)("chart.total") if metric == TOTAL else fitted(metric)
        return name + " ↓" * (self.better[metric] == "lower")

    def written(self, system: str, metric: str) -> str:
        """Write an estimate as every page writes it, or a dash with what is missing."""
        row = self.rows.get((system, metric), {})
        rate = row.get("role", METRICS.get(metric, _UNKNOWN).role) == "rate"
        said = with_interval(*estimate(row), percent=rate)
        if said == MISSING:
            return f"{MISSING} {gaps(row, self.lang) or texts.entry(self.lang, 'word.missing')}"
        return said

    def counted(self, system: str, metric: str) -> str:
        """Write an estimate with its n after it."""
        n = self.get(system, metric, "n")
        said = self.written(system, metric)
        if is_missing(n) or is_missing(self.get(system, metric, "value")):
            return said
        return f"{said}  {texts.load(self.lang)('chart.n', n=count(n))}"

    def words(self) -> str:
        """Say all numbers in one line."""
        parts, total = [], texts.load(self.lang)("chart.total")
        names = {m: total if m == TOTAL else one_line(m, 40) for m in self.metrics}
        for system in self.systems:
            numbers = ", ".join(f"{names[m]} {self.written(system, m)}" for m in self.metrics)
            parts.append(f"{one_line(system, 40)}: {numbers}" if len(self.systems) > 1 else numbers)
        return "; ".join(parts)

    def place(self, system: str, metric: str) -> float:
        """Return where an estimate stands in its range, 1 at the good end; nan where there is none."""
        value, (low, high) = self.get(system, metric, "value"), self.scales[metric]
        if is_missing(value):
            return math.nan
        place = max((float(value) - low) / (high - low), 0.0)
        return 1.0 - place if self.better[metric] == "lower" else place

    def seen(self) -> str:
        """Say what stands out: the total, and the estimates nearest to the bad and the good end of their range."""
        say = texts.load(self.lang)
        keys = [(s, m) for s in self.systems for m in self.metrics if self.place(s, m) >= 0]
        totals = sorted((key for key in keys if key[1] == TOTAL), key=lambda key: -self.place(*key))
        if len(self.systems) > 1 and totals:
            ends = dict.fromkeys([totals[0][0], totals[-1][0]])
            values = ", ".join(f"{fitted(s)} {self.written(s, TOTAL)}" for s in ends)
            return say("chart.total_is", values=values)
        keys = [key for key in keys if key[1] != TOTAL]
        if not keys:
            return say("chart.nothing")
        weak, strong = (self._named(end(keys, key=lambda key: self.place(*key))) for end in (min, max))
        if totals:
            return say("chart.total_weak", total=self.written("", TOTAL), weak=weak)
        return weak if weak == strong else say("chart.ends", weak=weak, strong=strong)

    def _named(self, key: tuple[str, str]) -> str:
        whose = f" ({fitted(key[0])})" if len(self.systems) > 1 else ""
        return f"{self.head(key[1])}{whose} {self.written(*key)}"


def split(frame: pd.DataFrame, by: str | None) -> dict[str, pd.DataFrame]:
    """Part a frame by a column of names, in the order in which they come; one part without a name otherwise."""
    if by is None:
        return {"": frame}
    if by not in frame.columns:
        raise unknown("by", by, [str(name) for name in frame.columns])
    # Not groupby: it loses rows without a name, and cannot hold a name with a lone surrogate.
    names = [MISSING if is_missing(name) else str(name) for name in frame[by]]
    return {
        name: frame.iloc[[row for row, other in enumerate(names) if other == name]]
        for name in dict.fromkeys(names)
    }


def below(say: Callable[..., str], lower: str, turned: bool, endless: Sequence[str]) -> list[str]:
    """Say under a chart that lower is better somewhere (in the words of `lower`), and what is not drawn."""
    return [say(lower)] * turned + [say("chart.not_drawn", names=", ".join(endless))] * bool(endless)


def gaps(row: Mapping[Any, Any], lang: str) -> str:
    """Say how many scores are missing, failed or not applicable; empty where none is."""
    say = texts.load(lang)
    found = [(key, row.get(key)) for key in GAPS]
    return ", ".join(say(f"chart.{key}", n=int(n)) for key, n in found if n is not None and n == n and n > 0)


def _chosen(means: pd.DataFrame, metrics: Metrics, total: bool) -> Sequence[str]:
    here = list(dict.fromkeys(str(name) for name in means["metric"]))
    if metrics is not None:
        named = [item if isinstance(item, str) else item.name for item in metric_list(metrics) or ()]
        for name in named:
            if name not in here:
                raise unknown("metric", name, here)
        return named
    plain = [name for name in here if name != TOTAL]
    weighed = set(means.loc[means["weight"].notna(), "metric"]) if "weight" in means else set()
    chosen = [name for name in plain if name in weighed] or plain
    return [*chosen, *([TOTAL] if total and TOTAL in here else [])]
