"""How the scores of each metric spread: counts by equal bins, which keep heaps at the ends of a range in sight."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbError, unknown
from ragnb.markup import one_line
from ragnb.plots.canvas import WIDTH, canvas, describe, fitted
from ragnb.plots.heat import grid
from ragnb.plots.means import below, gaps, split
from ragnb.schema import CLIP, METRICS, Metric, metric_list, resolve_metrics

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TENTHS = 10
COUNTED = ("metric", "bin_low", "bin_high", "n")


@dataclass(frozen=True)
class _Row:
    """One metric of one system: its counts, the ends of its range, and what its name adds."""

    metric: str
    system: str
    counts: list[int]
    ends: tuple[float, float]
    lower: bool
    gaps: str

    @property
    def name(self) -> str:
        whose = f" · {fitted(self.system)}" if self.system else ""
        return f"{fitted(self.metric)}{whose}{' ↓' if self.lower else ''}"


def distribution(
    scores: pd.DataFrame,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    *,
    by: str | None = None,
    ax: Axes | None = None,
    lang: str = "en",
    finding: str | None = None,
) -> Axes:
    """Draw how many samples score in each part of a metric's range, one row a metric (and system).

    Parameters
    ----------
    scores : DataFrame
        One row a sample, one column a metric; optional ``<metric>__status``; drawn by tenths. Or the counts
        themselves, as ``weights.histogram`` returns them for rows of any number: ``[by,] metric, bin_low,
        bin_high, n``, optionally ``n_missing, n_failed, n_not_applicable`` on each row.
    metrics : names or Metric objects, optional
        As everywhere: None takes the columns that METRICS declares; of counts, all.
    by : str, optional
        A column, such as ``system``: a row for each of its values.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}
    finding : str, optional
        What the picture shows, in a sentence: its title, and the start of its words. By default the row with
        the largest share in the worst part of its range; empty for no title.

    Returns
    -------
    Axes
        A heat map whose cells hold the counts; the shade is the share of the row, and a part that nothing fell
        into is empty. The last part holds its upper end. A row's name gives n and how many scores are missing,
        failed or not applicable.

    Raises
    ------
    RagnbError
        For unknown metrics or columns, for no metric with a finite range, for scores outside theirs, and for
        counts whose metrics have different numbers of parts.

    Examples
    --------
    >>> axes = distribution(pd.DataFrame({"faithfulness": [0.05, 0.95, 1.0, None]}))
    >>> [text.get_text() for text in axes.texts if text.get_text()]
    ['1', '2']
    """
    say = texts.load(lang)
    counted = set(COUNTED) <= set(map(str, scores.columns))
    rows, endless = _from_counts(scores, metrics, by, lang) if counted else _from_scores(scores, metrics, by, lang)
    parts = {len(row.counts) for row in rows}
    if len(parts) != 1:
        raise RagnbError(f"the metrics have different numbers of bins, {sorted(parts)}; count them alike")
    names = [f"{row.name}\n{_how_many(row, lang)}" for row in rows]
    with canvas(ax, WIDTH, 1.0 + 0.42 * len(rows), [*names, finding or "", say("chart.bins")]) as ax:
        _draw(ax, rows, names)
        notes = [say("chart.bins")] + ([] if _same(rows) else [say("chart.shares")])
        notes += below(say, "chart.lower", any(row.lower for row in rows), endless)
        ax.set_xlabel("\n".join(notes), fontsize=8.5, loc="right")
        said = [f"{one_line(n)}: {' '.join(map(str, row.counts))}" for n, row in zip(names, rows, strict=True)]
        describe(ax, finding, _seen(rows, lang), "; ".join(said), lang)
    return ax


def _from_scores(scores: pd.DataFrame, metrics: Any, by: str | None, lang: str) -> tuple[list[_Row], list[str]]:
    chosen = resolve_metrics(metrics, [str(name) for name in scores.columns])
    bounded = [metric for metric in chosen if metric.bounded]
    if not bounded:
        raise RagnbError("no metric with a finite range to draw; name some: metrics=[Metric('mine', 0, 1)]")
    rows = [
        _Row(
            m.name, system, _counts(part[m.name], m), (m.low, m.high), m.better == "lower",
            gaps(_gaps(part, m.name), lang),
        )
        for m in bounded
        for system, part in split(scores, by).items()
    ]  # fmt: skip
    return rows, [metric.name for metric in chosen if not metric.bounded]


def _from_counts(counts: pd.DataFrame, metrics: Any, by: str | None, lang: str) -> tuple[list[_Row], list[str]]:
    here = list(dict.fromkeys(map(str, counts["metric"])))
    named = metric_list(metrics)
    rows = []
    for metric in here if named is None else named:
        name = metric.name if isinstance(metric, Metric) else metric
        if name not in here:
            raise unknown("metric", name, here)
        known = metric if isinstance(metric, Metric) else METRICS.get(name)
        for system, part in split(counts[counts["metric"] == name], by).items():
            bins = part.sort_values("bin_low", kind="stable")
            ends = (bins["bin_low"].iloc[0], bins["bin_high"].iloc[-1])
            lower, gone = known is not None and known.better == "lower", gaps(bins.iloc[0].to_dict(), lang)
            rows.append(_Row(name, system, [int(n) for n in bins["n"]], ends, lower, gone))
    if not rows:
        raise RagnbError("no counts to draw; weights.histogram(scores) makes some")
    return rows, []


def _numbers(column: pd.Series[Any]) -> np.ndarray:
    return pd.to_numeric(column, errors="raise").to_numpy(dtype=float, na_value=np.nan)


def _counts(column: pd.Series[Any], metric: Metric) -> list[int]:
    values = _numbers(column)
    values = values[~np.isnan(values)]
    outside = values[(values < metric.low - CLIP) | (values > metric.high + CLIP)]
    if outside.size:
        raise RagnbError(
            f"{metric.name}={outside[0]:g} lies outside {metric.low:g}..{metric.high:g}; "
            f"declare its range: Metric({metric.name!r}, low, high)"
        )
    # The slack keeps 0.3 in the tenth that starts at 0.3, which floats put a hair above it.
    tenth = np.floor((values - metric.low) / (metric.high - metric.low) * TENTHS + 1e-9).astype(int)
    return [int(n) for n in np.bincount(np.clip(tenth, 0, TENTHS - 1), minlength=TENTHS)]


def _gaps(part: pd.DataFrame, metric: str) -> dict[str, Any]:
    empty = np.isnan(_numbers(part[metric]))
    status = part.get(f"{metric}__status")
    words = [""] * len(part) if status is None else [str(word) for word in status]
    said = pd.Series([word for word, gone in zip(words, empty, strict=True) if gone], dtype=object)
    row = {f"n_{word}": int((said == word).sum()) for word in ("failed", "not_applicable")}
    return row | {"n_missing": len(said) - sum(row.values())}


def _how_many(row: _Row, lang: str) -> str:
    return ", ".join(filter(None, [texts.load(lang)("chart.n", n=f"{sum(row.counts):,}"), row.gaps]))


def _same(rows: list[_Row]) -> bool:
    return len({row.ends for row in rows}) == 1


def _draw(ax: Axes, rows: list[_Row], names: list[str]) -> None:
    table = np.array([row.counts for row in rows])
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    written = [[f"{n:,}" if n else "" for n in row.counts] for row in rows]
    longest = max(len(cell) for row in written for cell in row)
    grid(ax, np.where(table > 0, shares, np.nan), written, cmap="Blues", size=8.5 if longest < 7 else 6.5)
    low, high = rows[0].ends if _same(rows) else (0.0, 1.0)
    parts = table.shape[1]
    ax.set_yticks(np.arange(len(rows)) + 0.5, names)
    ax.set_xticks(range(parts + 1), [f"{low + (high - low) * step / parts:.3g}" for step in range(parts + 1)])


def _seen(rows: list[_Row], lang: str) -> str:
    """Say where most of a metric's scores lie at the bad end."""
    say = texts.load(lang)
    scored = [row for row in rows if sum(row.counts)]
    if not scored:
        return say("chart.nothing")
    worst = max(scored, key=lambda row: row.counts[-1 if row.lower else 0] / sum(row.counts))
    k, n = worst.counts[-1 if worst.lower else 0], sum(worst.counts)
    return say("chart.bad_end", name=worst.name, k=f"{k:,}", n=f"{n:,}") if k else say("chart.no_bad_end")
