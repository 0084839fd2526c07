"""Charts of rows: the labels of traces as bars from zero, the scores of each metric as dots with a box."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, Unpack

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, need_columns, unknown
from ragnb.markup import INK, MISSING, SYSTEM_COLOURS, count, is_missing, number, one_line, percent
from ragnb.markup.radar import check_systems
from ragnb.plots.canvas import Axes, Look, canvas, fitted, legend_below, speaker
from ragnb.plots.marks import gaps, notes_below, whole_scale
from ragnb.schema import CLIP, Metric, resolve_metrics

# Dots a row; the box holds all scores.
MOST_DOTS = 300


def outcomes(outcomes: pd.DataFrame, *, label: str = "label", by: str | None = None, **look: Unpack[Look]) -> Axes:
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
    check_systems(systems)
    names, many, say, values = [fitted(name) for name in labels], len(systems), speaker(look), []
    with canvas(look, 0.9 + 0.26 * max(len(labels), 1) * many) as (ax, describe):
        for number, (system, part) in enumerate(systems.items()):
            places = [labels.index(str(name)) for name in part[label]]
            heights = [place - 0.4 + 0.8 * (number + 0.5) / many for place in places]
            bars = ax.barh(
                heights, part["n"].to_numpy(dtype=float), 0.7 / many,
                color=SYSTEM_COLOURS[number], label=fitted(system) or "_one",
            )  # fmt: skip
            counts = [f"{int(n)}" for n in part["n"]]
            if "share" in part:
                counts = [f"{n} ({percent(share)})" for n, share in zip(counts, part["share"], strict=True)]
            ax.bar_label(bars, counts, padding=4, fontsize=8.5)
            words = ", ".join(f"{names[place]} {n}" for place, n in zip(places, counts, strict=True))
            values.append(f"{fitted(system)}: " * bool(by) + words)
        ax.set_yticks(range(len(names)), names)
        ax.set_ylim(max(len(names), 1) - 0.5, -0.5)
        ax.set_xlim(left=0)
        ax.margins(x=0.12)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.tick_params(axis="y", length=0)
        if many > 1:
            legend_below(ax)
        describe(_most(label, systems, say), values, say("chart.count"))
    return ax


def _most(label: str, systems: dict[str, pd.DataFrame], say: Callable[..., str]) -> str:
    """Return the most frequent label of each system."""
    sentences = []
    for system, part in systems.items():
        if n := int(part["n"].sum()):
            row = part.iloc[int(part["n"].to_numpy().argmax())]
            words = say("chart.most", name=fitted(row[label]), k=int(row["n"]), n=n)
            sentences.append(f"{fitted(system)}: " * bool(system) + words)
    return "; ".join(sentences) or say("chart.nothing_counted")


def _split(frame: pd.DataFrame, by: str | None) -> dict[str, pd.DataFrame]:
    """Split a frame by a column of names, in order of appearance; without the column, one unnamed part."""
    if by is None:
        return {"": frame}
    if by not in frame.columns:
        raise unknown("by", by, [str(name) for name in frame.columns])
    # Not groupby: it loses rows without a name, and fails on a name with a lone surrogate.
    names = [MISSING if is_missing(name) else str(name) for name in frame[by]]
    return {one: frame[[name == one for name in names]] for one in dict.fromkeys(names)}


def distribution(
    scores: pd.DataFrame, *, metrics: str | Metric | Iterable[str | Metric] | None = None, by: str | None = None,
    **look: Unpack[Look],
) -> Axes:  # fmt: skip
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
    from seaborn import boxenplot, scatterplot

    say, systems = speaker(look), _split(scores, by)
    check_systems(systems)
    chosen = resolve_metrics(metrics, [str(name) for name in scores.columns])
    bounded = [metric for metric in chosen if metric.bounded]
    if not bounded:
        raise RagnbError("no metric with a finite range to draw; name some: metrics=[Metric('mine', 0, 1)]")
    own = len({(metric.low, metric.high) for metric in bounded}) > 1
    low, high = (0.0, 1.0) if own else (bounded[0].low, bounded[0].high)
    heads, told, bad = list[str](), list[str](), list[tuple[int, int, str]]()
    rows, dots = list[pd.DataFrame](), list[pd.DataFrame]()
    for metric, (colour, system) in product(bounded, enumerate(systems)):
        values, lacks = _scores(systems[system], metric)
        lower, width, n = metric.better == "lower", metric.high - metric.low, len(values)
        name = fitted(metric.name) + f" · {fitted(system)}" * bool(system) + " ↓" * lower
        size = ", ".join(filter(None, [say("chart.n", n=count(n)), gaps(lacks, say)]))
        heads.append(f"{name}{f' ({metric.low:g}–{metric.high:g})' * own}\n{size}")
        first, middle, third = map(number, np.percentile(values, [25, 50, 75]) if n else [None] * 3)
        told.append(f"{one_line(heads[-1])}, {say('chart.quartiles', middle=middle, low=first, high=third)}")
        worst = metric.high - values if lower else values - metric.low
        bad.append((int((worst < 0.1 * width - 1e-9).sum()), n, name))
        # A score that is not there is not drawn, and keeps the place of a row that has no other.
        shown = np.append((values - metric.low) / width if own else values, np.nan)
        rows.append(pd.DataFrame({"score": shown, "row": len(rows), "system": colour}))
        dots.append(rows[-1].iloc[[*np.linspace(0, n - 1, min(n, MOST_DOTS)).astype(int), n]])
    with canvas(look, 1.0 + 0.42 * len(rows)) as (ax, describe):
        drawn = pd.concat(dots, ignore_index=True)
        # As far apart as scores are many there, by the golden ratio: seaborn's stripplot spreads all alike, and
        # draws lots, so that no two pictures would be equal.
        near = drawn.groupby(["row", (drawn["score"] - low) / (high - low) * 20 // 1])["row"].transform("size")
        wide = 0.6 * near / near.groupby(drawn["row"]).transform("max")
        drawn["row"] = drawn["row"] + wide * (np.arange(len(drawn)) * 0.618034 % 1 - 0.5)
        dot: Any = {"palette": [*SYSTEM_COLOURS[: len(systems)]], "legend": False, "s": 9, "alpha": 0.6, "lw": 0}
        scatterplot(drawn, x="score", y="row", hue="system", ax=ax, **dot)
        # Not its boxplot, whose call matplotlib has begun to warn of: of the letter values only the quartiles.
        box: Any = {"k_depth": 1, "showfliers": False, "width": 0.68, "fill": False, "linewidth": 1, "color": INK}
        every = pd.concat(rows, ignore_index=True)
        boxenplot(every, x="score", y="row", orient="h", native_scale=True, ax=ax, **box)
        ax.set_yticks(range(len(heads)), heads)
        ax.set_ylim(len(heads) - 0.5, -0.5)
        ax.tick_params(axis="y", length=0)
        ax.spines.left.set_visible(False)
        whole_scale(ax, "x", low, high)
        notes = [say("chart.spread")] + [say("chart.shares")] * own
        endless = [metric.name for metric in chosen if not metric.bounded]
        notes += notes_below(say, "chart.lower", any(metric.better == "lower" for metric in bounded), endless)
        ax.set_xlabel("\n".join(notes), fontsize=8.5, loc="right")
        ax.set_ylabel("")
        k, n, name = max(bad, key=lambda row: row[0] / max(row[1], 1))
        finding = say("chart.bad_end", name=name, k=count(k), n=count(n)) if k else say("chart.no_bad_end")
        describe(finding if any(n for _, n, _ in bad) else say("chart.nothing"), told)
    return ax


def _scores(part: pd.DataFrame, metric: Metric) -> tuple[Any, dict[str, int]]:
    """Return the scores that are there, in their range, and why others are not."""
    values = pd.to_numeric(part[metric.name], errors="raise").to_numpy(dtype=float, na_value=np.nan)
    low, high, missing = metric.low, metric.high, np.isnan(values)
    outside = values[(values < low - CLIP) | (values > high + CLIP)]
    if outside.size:
        raise RagnbError(
            f"{metric.name}={outside[0]:g} lies outside {low:g}..{high:g}; "
            f"declare its range: Metric({metric.name!r}, low, high)"
        )
    status = part.get(f"{metric.name}__status", pd.Series("", index=part.index)).astype(str)[missing]
    lacks = {f"n_{word}": int((status == word).sum()) for word in ("failed", "not_applicable")}
    return np.sort(np.clip(values[~missing], low, high)), lacks | {"n_missing": len(status) - sum(lacks.values())}
