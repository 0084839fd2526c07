"""How the scores of each metric spread: counts by tenths of the range, which keep heaps at 0 and 1 in sight."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbError
from ragnb.markup import INK, one_line
from ragnb.plots.canvas import LONGEST, WIDTH, canvas, describe
from ragnb.plots.means import gaps, split
from ragnb.schema import Metric, resolve_metrics

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TENTHS = 10


def distribution(
    scores: pd.DataFrame,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    *,
    by: str | None = None,
    ax: Axes | None = None,
    lang: str = "en",
    finding: str = "",
) -> Axes:
    """Draw how many samples score in each tenth of a metric's range, one row a metric (and system).

    Parameters
    ----------
    scores : DataFrame
        One row a sample, one column a metric; optional ``<metric>__status``.
    metrics : names or Metric objects, optional
        As everywhere: None takes the columns that METRICS declares.
    by : str, optional
        A column, such as ``system``: a row for each of its values.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}
    finding : str
        What the picture shows, in a sentence: its title, and the start of its words.

    Returns
    -------
    Axes
        A heat map whose cells hold the counts; the shade is the share of the row. The last tenth holds its upper
        end. A row's name gives n and how many scores are missing, failed or not applicable.

    Raises
    ------
    RagnbError
        For unknown metrics or columns, for no metric with a finite range, and for scores outside theirs.

    Examples
    --------
    >>> axes = distribution(pd.DataFrame({"faithfulness": [0.05, 0.95, 1.0, None]}))
    >>> [text.get_text() for text in axes.texts if text.get_text()]
    ['1', '2']
    """
    chosen = resolve_metrics(metrics, [str(name) for name in scores.columns])
    bounded = [metric for metric in chosen if metric.bounded]
    if not bounded:
        raise RagnbError("no metric with a finite range to draw; name some: metrics=[Metric('mine', 0, 1)]")
    say = texts.load(lang)
    rows = {
        _name(part, metric, system, lang): _counts(part[metric.name], metric)
        for metric in bounded
        for system, part in split(scores, by).items()
    }
    endless = [metric.name for metric in chosen if not metric.bounded]
    with canvas(ax, WIDTH, 1.1 + 0.42 * len(rows), [*rows, finding, say("chart.bins")]) as ax:
        _heat(ax, rows)
        same = len({(metric.low, metric.high) for metric in bounded}) == 1
        low, high = (bounded[0].low, bounded[0].high) if same else (0.0, 1.0)
        edges = [f"{low + (high - low) * step / TENTHS:g}" for step in range(TENTHS + 1)]
        ax.set_xticks(range(TENTHS + 1), edges, rotation=0)
        notes = [say("chart.bins")] if same else [say("chart.bins"), say("chart.shares")]
        notes += [say("chart.not_drawn", names=", ".join(endless))] if endless else []
        ax.set_xlabel("; ".join(notes), fontsize=8.5, loc="right")
        values = "; ".join(f"{one_line(name)}: {' '.join(map(str, row))}" for name, row in rows.items())
        describe(ax, finding, say("chart.distribution", values=values))
    return ax


def _numbers(column: pd.Series[Any]) -> np.ndarray:
    return pd.to_numeric(column, errors="raise").to_numpy(dtype=float, na_value=np.nan)


def _counts(column: pd.Series[Any], metric: Metric) -> list[int]:
    values = _numbers(column)
    values = values[~np.isnan(values)]
    outside = values[(values < metric.low) | (values > metric.high)]
    if outside.size:
        raise RagnbError(
            f"{metric.name}={outside[0]:g} lies outside {metric.low:g}..{metric.high:g}; "
            f"declare its range: Metric({metric.name!r}, low, high)"
        )
    # The slack keeps 0.3 in the tenth that starts at 0.3, which floats put a hair above it.
    tenth = np.floor((values - metric.low) / (metric.high - metric.low) * TENTHS + 1e-9).astype(int)
    return [int(n) for n in np.bincount(np.minimum(tenth, TENTHS - 1), minlength=TENTHS)]


def _name(part: pd.DataFrame, metric: Metric, system: str, lang: str) -> str:
    say = texts.load(lang)
    empty = np.isnan(_numbers(part[metric.name]))
    status = part.get(f"{metric.name}__status")
    words = [""] * len(part) if status is None else [str(word) for word in status]
    said = pd.Series([word for word, gone in zip(words, empty, strict=True) if gone], dtype=object)
    row = {f"n_{word}": int((said == word).sum()) for word in ("failed", "not_applicable")}
    row["n_missing"] = len(said) - sum(row.values())
    counts = ", ".join(filter(None, [say("chart.n", n=int((~empty).sum())), gaps(row, lang)]))
    whose = f" · {one_line(system, LONGEST)}" if system else ""
    return f"{one_line(metric.name, LONGEST)}{whose}\n{counts}"


def _heat(ax: Axes, rows: dict[str, list[int]]) -> None:
    import seaborn as sns

    table = np.array(list(rows.values()))
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    sns.heatmap(
        shares, annot=table, fmt="d", mask=table == 0, cmap="Blues", vmin=0, vmax=1, cbar=False,
        xticklabels=False, yticklabels=False, ax=ax, annot_kws={"fontsize": 8.5},
    )  # fmt: skip
    ax.set_yticks(np.arange(len(rows)) + 0.5, list(rows))
    ax.tick_params(length=0)
    for y in range(len(rows) + 1):
        ax.axhline(y, color=INK, linewidth=0.4, alpha=0.3)
