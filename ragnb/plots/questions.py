"""Scores question by question: outcomes, and how scores are distributed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, NamedTuple, Unpack

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, need_columns, need_known
from ragnb.markup import (
    MISSING,
    count,
    is_missing,
    number,
    one_line,
    percent,
)
from ragnb.markup.rendering import (
    INK,
    SYSTEM_COLOURS,
    check_systems,
)
from ragnb.plots.canvas import (
    Axes,
    LookOfSystems,
    canvas,
    fitted,
    legend_below,
    speaker,
    system_places,
)
from ragnb.plots.means import gaps, notes_below
from ragnb.plots.rows import name_rows, whole_scale
from ragnb.schema import CLIP, Metric, resolve_metrics

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
    labels = list(dict.fromkeys(map(str, outcomes[label])))
    systems = _split(outcomes, by)
    many = len(systems)
    say = speaker(look)
    values = list[str]()
    lines = list[str]()
    with canvas(look, 0.9 + 0.26 * max(len(labels), 1) * many) as (ax, describe):
        colours = system_places(look, list(systems))
        for place, (system, part) in enumerate(systems.items()):
            counts = part["n"].astype(int)
            names = [fitted(name) for name in part[label]]
            # The bars of a label share 0.8 of its row, each a little apart from the next.
            offset = 0.8 * (place + 0.5) / many
            heights = [labels.index(str(name)) - 0.4 + offset for name in part[label]]
            bars = ax.barh(
                heights,
                counts.to_numpy(float),
                0.7 / many,
                color=SYSTEM_COLOURS[colours[place]],
                label=fitted(system) or "_one",
            )
            if "share" in part:
                words = [
                    f"{n} ({percent(share)})"
                    for n, share in zip(counts, part["share"], strict=True)
                ]
            else:
                words = [f"{n}" for n in counts]
            ax.bar_label(bars, words, padding=4, fontsize=8.5)
            head = f"{fitted(system)}: " if system else ""
            with_names = [f"{name} {word}" for name, word in zip(names, words, strict=True)]
            values.append(head + ", ".join(with_names))
            if counts.sum():
                top = int(counts.to_numpy().argmax())
                most = say("chart.most", name=names[top], k=counts.iloc[top], n=counts.sum())
                lines.append(head + most)
        shown = [fitted(name) for name in labels]
        name_rows(ax, range(len(labels)), shown, max(len(labels), 1) - 0.5, -0.5)
        ax.set_xlim(left=0)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        legend_below(ax)
        describe("; ".join(lines) or say("chart.nothing_counted"), values, say("chart.count"))
    return ax


def _split(frame: pd.DataFrame, by: str | None) -> dict[str, pd.DataFrame]:
    """Split a frame by a column of names, in order of appearance; without the column, one unnamed part."""
    if by is None:
        return {"": frame}
    need_known("by", by, [str(name) for name in frame.columns])
    # Not groupby: it loses rows without a name, and fails on a name with a lone surrogate.
    names = [MISSING if is_missing(name) else str(name) for name in frame[by]]
    systems = list(dict.fromkeys(names))
    check_systems(systems)
    return {system: frame[[name == system for name in names]] for system in systems}


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

    say = speaker(look)
    systems = _split(scores, by)
    chosen = resolve_metrics(metrics, [str(name) for name in scores.columns])
    bounded = [metric for metric in chosen if metric.bounded]
    endless = [metric.name for metric in chosen if not metric.bounded]
    if not bounded:
        raise RagnbError(
            "no metric with a finite range to draw; name some: metrics=[Metric('mine', 0, 1)]"
        )
    # Metrics of different ranges share one axis as shares of their own.
    own = len({(metric.low, metric.high) for metric in bounded}) > 1
    if own:
        low, high = 0.0, 1.0
    else:
        low, high = bounded[0].low, bounded[0].high
    rows = [
        _row(systems[system], metric, system, own, say)
        for metric, system in product(bounded, systems)
    ]
    places = system_places(look, list(systems))
    with canvas(look, 1.0 + 0.42 * len(rows)) as (ax, describe):
        for nth, row in enumerate(rows):
            across, off = _spread(row.values, low, high)
            # The systems of a metric follow each other.
            colour = SYSTEM_COLOURS[places[nth % len(systems)]]
            ax.scatter(across, nth + off, color=colour, s=9, alpha=0.6, linewidths=0)
        # Not its boxplot, whose call matplotlib has begun to warn of: of the letter values only the quartiles.
        boxenplot(
            {nth: row.values for nth, row in enumerate(rows)},
            orient="h",
            native_scale=True,
            ax=ax,
            k_depth=1,
            showfliers=False,
            width=0.68,
            fill=False,
            linewidth=1,
            color=INK,
        )
        heads = [row.head for row in rows]
        name_rows(ax, range(len(heads)), heads, len(heads) - 0.5, -0.5)
        whole_scale(ax, "x", low, high)
        notes = [say("chart.spread")]
        if own:
            notes.append(say("chart.shares"))
        notes += notes_below(say, "chart.lower", [metric.better for metric in bounded], endless)
        ax.set_xlabel("\n".join(notes), fontsize=8.5, loc="right")
        ax.set_ylabel("")
        describe(_most_at_bad_end(rows, say), [row.words for row in rows])
    return ax


class _Row(NamedTuple):
    """The scores of a metric and system: their name, how they are headed and told, how many are at the bad end."""

    name: str
    head: str
    words: str
    values: Any
    n_bad: int


def _most_at_bad_end(rows: Sequence[_Row], say: Any) -> str:
    """Say which row has the largest share of its scores at the bad end, or that none has any."""
    if not any(len(row.values) for row in rows):
        return str(say("chart.nothing"))
    worst = max(rows, key=lambda row: row.n_bad / max(len(row.values), 1))
    if not worst.n_bad:
        return str(say("chart.no_bad_end"))
    n = count(len(worst.values))
    return str(say("chart.bad_end", name=worst.name, k=count(worst.n_bad), n=n))


def _row(part: pd.DataFrame, metric: Metric, system: str, own: bool, say: Any) -> _Row:
    """Return the scores of a metric, as shares of their `own` range where metrics have different ones."""
    values, lacks = _scores(part, metric)
    is_lower = metric.better == "lower"
    width = metric.high - metric.low
    n = len(values)
    name = fitted(metric.name)
    if system:
        name += f" · {fitted(system)}"
    if is_lower:
        name += " ↓"
    size = say("chart.n", n=count(n))
    missing = gaps(lacks, say)
    if missing:
        size += f", {missing}"
    scale = f" ({metric.low:g}–{metric.high:g})" if own else ""
    head = f"{name}{scale}\n{size}"
    quartiles: Any = [None, None, None]
    if n:
        quartiles = np.percentile(values, [25, 50, 75])
    first, middle, third = map(number, quartiles)
    words = say("chart.quartiles", middle=middle, low=first, high=third)
    if is_lower:
        from_worst = metric.high - values
    else:
        from_worst = values - metric.low
    # The slack keeps a score at the very border out: 1 − 0.9 is a little less than 0.1.
    n_bad = int((from_worst < 0.1 * width - 1e-9).sum())
    shown = (values - metric.low) / width if own else values
    return _Row(name, head, f"{one_line(head)}, {words}", shown, n_bad)


def _spread(values: Any, low: float, high: float) -> tuple[Any, Any]:
    """Return at most `MOST_DOTS` of the values and how far off its line each is drawn.

    As far as scores are many there, by the golden ratio: seaborn's stripplot spreads all alike, and draws lots, so
    that no two pictures would be equal.
    """
    ranks = np.linspace(0, len(values) - 1, min(len(values), MOST_DOTS)).astype(int)
    dots = values[ranks]  # of sorted values, so the ends are among them
    twentieth = (dots - low) / (high - low) * 20 // 1  # of the range
    _, part, sizes = np.unique(twentieth, return_inverse=True, return_counts=True)
    width = 0.6 * sizes[part] / sizes.max(initial=1)  # of the row, for each dot
    return dots, width * (np.arange(len(dots)) * 0.618034 % 1 - 0.5)


def _scores(part: pd.DataFrame, metric: Metric) -> tuple[Any, dict[str, int]]:
    """Return the scores that are there, in their range, and why others are not."""
    values = pd.to_numeric(part[metric.name], errors="raise").to_numpy(dtype=float, na_value=np.nan)
    low = metric.low
    high = metric.high
    missing = np.isnan(values)
    outside = values[(values < low - CLIP) | (values > high + CLIP)]
    if outside.size:
        raise RagnbError(
            f"{metric.name}={outside[0]:g} lies outside {low:g}..{high:g}; "
            f"declare its range: Metric({metric.name!r}, low, high)"
        )
    no_status = pd.Series("", index=part.index)
    status = part.get(f"{metric.name}__status", no_status).astype(str)[missing]
    n_failed = int((status == "failed").sum())
    n_not_applicable = int((status == "not_applicable").sum())
    lacks = {
        "n_failed": n_failed,
        "n_not_applicable": n_not_applicable,
        "n_missing": len(status) - n_failed - n_not_applicable,
    }
    return np.sort(np.clip(values[~missing], low, high)), lacks
