"""How the scores of each metric spread: counts by equal bins, which keep heaps at the ends of a range in sight."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Unpack

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbError, unknown
from ragnb.markup import one_line
from ragnb.plots.canvas import Axes, Look, canvas, fitted
from ragnb.plots.heat import grid
from ragnb.plots.means import below, gaps, split
from ragnb.schema import CLIP, METRICS, Metric, metric_list, resolve_metrics

TENTHS = 10
COUNTED = ("metric", "bin_low", "bin_high", "n")


class _Row(NamedTuple):
    """One metric of one system: its counts, the ends of its range, and how many scores it lacks."""

    metric: str
    system: str
    counts: list[int]
    ends: tuple[float, float]
    lower: bool
    lacks: Mapping[Any, Any]

    @property
    def name(self) -> str:
        whose = f" · {fitted(self.system)}" if self.system else ""
        return f"{fitted(self.metric)}{whose}{' ↓' if self.lower else ''}"


def distribution(
    scores: pd.DataFrame, *, metrics: str | Metric | Iterable[str | Metric] | None = None, by: str | None = None,
    lang: str = "en", **look: Unpack[Look],
) -> Axes:  # fmt: skip
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
    say, endless = texts.load(lang), list[str]()
    if counted := set(COUNTED) <= set(map(str, scores.columns)):
        rows = list(_from_counts(scores, metrics, by))
    else:
        chosen = resolve_metrics(metrics, [str(name) for name in scores.columns])
        endless = [metric.name for metric in chosen if not metric.bounded]
        rows = list(_from_scores(scores, [metric for metric in chosen if metric.bounded], by))
    if not rows and counted:
        raise RagnbError("no counts to draw; weights.histogram(scores) makes some")
    if not rows:
        raise RagnbError("no metric with a finite range to draw; name some: metrics=[Metric('mine', 0, 1)]")
    parts = {len(row.counts) for row in rows}
    if len(parts) != 1:
        raise RagnbError(f"the metrics have different numbers of bins, {sorted(parts)}; count them alike")
    said = [", ".join(filter(None, [say("chart.n", n=f"{sum(r.counts):,}"), gaps(r.lacks, lang)])) for r in rows]
    names = [f"{row.name}\n{n}" for row, n in zip(rows, said, strict=True)]
    alike = len({row.ends for row in rows}) == 1
    with canvas(1.0 + 0.42 * len(rows), lang, **look) as (ax, tell):
        _draw(ax, np.array([row.counts for row in rows]), *(rows[0].ends if alike else (0.0, 1.0)))
        ax.set_yticklabels(names)
        notes = [say("chart.bins")] + ([] if alike else [say("chart.shares")])
        notes += below(say, "chart.lower", any(row.lower for row in rows), endless)
        ax.set_xlabel("\n".join(notes), fontsize=8.5, loc="right")
        told = [f"{one_line(n)}: {' '.join(map(str, row.counts))}" for n, row in zip(names, rows, strict=True)]
        tell(_seen(rows, say), "; ".join(told))
    return ax


def _from_scores(scores: pd.DataFrame, metrics: list[Metric], by: str | None) -> Iterator[_Row]:
    for m in metrics:
        for system, part in split(scores, by).items():
            values = pd.to_numeric(part[m.name], errors="raise").to_numpy(dtype=float, na_value=np.nan)
            there = values[~np.isnan(values)]
            status = part.get(f"{m.name}__status", pd.Series("", index=part.index)).astype(str)[np.isnan(values)]
            lacks = {f"n_{word}": int((status == word).sum()) for word in ("failed", "not_applicable")}
            lacks["n_missing"] = len(status) - sum(lacks.values())
            yield _Row(m.name, system, _counts(there, m), (m.low, m.high), m.better == "lower", lacks)


def _from_counts(counts: pd.DataFrame, metrics: Any, by: str | None) -> Iterator[_Row]:
    here = list(dict.fromkeys(map(str, counts["metric"])))
    named = metric_list(metrics)
    for metric in here if named is None else named:
        name = metric.name if isinstance(metric, Metric) else metric
        if name not in here:
            raise unknown("metric", name, here)
        known = metric if isinstance(metric, Metric) else METRICS.get(name)
        lower = known is not None and known.better == "lower"
        for system, part in split(counts[counts["metric"] == name], by).items():
            bins = part.sort_values("bin_low", kind="stable")
            ends = (bins["bin_low"].iloc[0], bins["bin_high"].iloc[-1])
            yield _Row(name, system, [int(n) for n in bins["n"]], ends, lower, bins.iloc[0].to_dict())


def _counts(values: np.ndarray, metric: Metric) -> list[int]:
    outside = values[(values < metric.low - CLIP) | (values > metric.high + CLIP)]
    if outside.size:
        raise RagnbError(
            f"{metric.name}={outside[0]:g} lies outside {metric.low:g}..{metric.high:g}; "
            f"declare its range: Metric({metric.name!r}, low, high)"
        )
    # The slack keeps 0.3 in the tenth that starts at 0.3, which floats put a hair above it.
    tenth = np.floor((values - metric.low) / (metric.high - metric.low) * TENTHS + 1e-9).astype(int)
    return [int(n) for n in np.bincount(np.clip(tenth, 0, TENTHS - 1), minlength=TENTHS)]


def _draw(ax: Axes, table: np.ndarray, low: float, high: float) -> None:
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    written = [[f"{n:,}" if n else "" for n in row] for row in table.tolist()]
    longest = max(len(cell) for row in written for cell in row)
    grid(ax, np.where(table > 0, shares, np.nan), written, cmap="Blues", size=8.5 if longest < 7 else 6.5)
    ends = np.linspace(low, high, table.shape[1] + 1)
    ax.set_xticks(range(len(ends)), [f"{end:.3g}" for end in ends])


def _seen(rows: list[_Row], say: Callable[..., str]) -> str:
    """Say where most of a metric's scores lie at the bad end."""
    ends = [(row.counts[-1 if row.lower else 0], sum(row.counts), row.name) for row in rows if sum(row.counts)]
    if not ends:
        return say("chart.nothing")
    k, n, name = max(ends, key=lambda end: end[0] / end[1])
    return say("chart.bad_end", name=name, k=f"{k:,}", n=f"{n:,}") if k else say("chart.no_bad_end")
