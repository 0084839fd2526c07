"""Counts of samples: the labels of traces as bars from zero, the scores of each metric by equal bins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Unpack

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbError, need_columns, unknown
from ragnb.markup import SYSTEM_COLOURS, one_line, percent
from ragnb.plots.canvas import Axes, Look, canvas, fitted, legend_below
from ragnb.plots.heat import grid
from ragnb.plots.means import check_systems, gaps, notes_below, split
from ragnb.schema import CLIP, METRICS, Metric, metric_list, resolve_metrics

TENTHS = 10
COUNTED = ("metric", "bin_low", "bin_high", "n")


def outcomes(
    outcomes: pd.DataFrame, *, label: str = "label", by: str | None = None, lang: str = "en", **look: Unpack[Look]
) -> Axes:
    """Draw counts as bars, one row a label, in the order of the frame.

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
    lang : {"en", "zh"}
    finding : str, optional
        What the picture shows, in a sentence: its title, and the start of its words. By default what stands out
        in the frame; empty for no title.

    Returns
    -------
    Axes
        The count, and the share where the frame has it, stand beside each bar.

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
    systems = split(outcomes, by)
    check_systems(list(systems))
    names, many, say, values = [fitted(name) for name in labels], len(systems), texts.load(lang), []
    with canvas(0.9 + 0.26 * max(len(labels), 1) * many, lang, **look) as (ax, describe):
        for number, (system, part) in enumerate(systems.items()):
            places = [labels.index(str(name)) for name in part[label]]
            heights = [place - 0.4 + 0.8 * (number + 0.5) / many for place in places]
            name: Any = {"color": SYSTEM_COLOURS[number], "label": fitted(system) or "_one"}
            bars = ax.barh(heights, part["n"].to_numpy(dtype=float), 0.7 / many, **name)
            counts = [f"{int(n)}" for n in part["n"]]
            if "share" in part:
                counts = [f"{n} ({percent(share)})" for n, share in zip(counts, part["share"], strict=True)]
            ax.bar_label(bars, counts, padding=4, fontsize=8.5)
            words = ", ".join(f"{names[place]} {count}" for place, count in zip(places, counts, strict=True))
            values.append(f"{fitted(system)}: {words}" if by else words)
        ax.set_yticks(range(len(names)), names)
        ax.set_ylim(max(len(names), 1) - 0.5, -0.5)
        ax.set_xlim(left=0)
        ax.margins(x=0.12)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.tick_params(axis="y", length=0)
        if many > 1:
            legend_below(ax)
        describe(_most(label, systems, say), "; ".join(values), say("chart.count"))
    return ax


def _most(label: str, systems: dict[str, pd.DataFrame], say: Callable[..., str]) -> str:
    """Say which label comes most often, of each system or, where they agree, of all."""
    counted = {name: part for name, part in systems.items() if part["n"].sum()}
    largest = {name: part.iloc[int(part["n"].to_numpy().argmax())] for name, part in counted.items()}
    names = {system: fitted(row[label]) for system, row in largest.items()}
    if len(names) > 1 and len(shared := set(names.values())) == 1:
        return say("chart.most_in_all", name=shared.pop(), systems=len(names))
    each = [
        (f"{fitted(system)}: " if system else "")
        + say("chart.most", name=names[system], k=int(row["n"]), n=int(systems[system]["n"].sum()))
        for system, row in largest.items()
    ]
    return "; ".join(each[:3] + [f"+ {len(each) - 3}"] * (len(each) > 3)) or say("chart.nothing_counted")


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
    if set(COUNTED) <= set(map(str, scores.columns)):
        rows = list(_from_counts(scores, metrics, by))
        problem = "no counts to draw; weights.histogram(scores) makes some"
    else:
        chosen = resolve_metrics(metrics, [str(name) for name in scores.columns])
        endless = [metric.name for metric in chosen if not metric.bounded]
        rows = list(_from_scores(scores, [metric for metric in chosen if metric.bounded], by))
        problem = "no metric with a finite range to draw; name some: metrics=[Metric('mine', 0, 1)]"
    if not rows:
        raise RagnbError(problem)
    if len(parts := {len(row.counts) for row in rows}) > 1:
        raise RagnbError(f"the metrics have different numbers of bins, {sorted(parts)}; count them alike")
    table = np.array([row.counts for row in rows])
    sizes = [", ".join(filter(None, [say("chart.n", n=f"{sum(r.counts):,}"), gaps(r.lacks, say)])) for r in rows]
    names = [f"{row.name}\n{size}" for row, size in zip(rows, sizes, strict=True)]
    alike = len({row.ends for row in rows}) == 1
    with canvas(1.0 + 0.42 * len(rows), lang, **look) as (ax, describe):
        written = [[f"{n:,}" if n else "" for n in counts] for counts in table.tolist()]
        shares = np.where(table > 0, table / np.maximum(table.sum(axis=1, keepdims=True), 1), np.nan)
        grid(ax, shares, written, cmap="Blues", size=8.5 if table.max() < 100_000 else 6.5)
        ends = np.linspace(*(rows[0].ends if alike else (0.0, 1.0)), table.shape[1] + 1)
        ax.set_xticks(range(len(ends)), [f"{end:.3g}" for end in ends])
        ax.set_yticklabels(names)
        notes = [say("chart.bins")] + ([] if alike else [say("chart.shares")])
        notes += notes_below(say, "chart.lower", any(row.lower for row in rows), endless)
        ax.set_xlabel("\n".join(notes), fontsize=8.5, loc="right")
        values = [f"{one_line(n)}: {' '.join(map(str, row.counts))}" for n, row in zip(names, rows, strict=True)]
        describe(_bad_end(rows, say), "; ".join(values))
    return ax


def _from_scores(scores: pd.DataFrame, metrics: list[Metric], by: str | None) -> Iterator[_Row]:
    for metric in metrics:
        for system, part in split(scores, by).items():
            values = pd.to_numeric(part[metric.name], errors="raise").to_numpy(dtype=float, na_value=np.nan)
            missing = np.isnan(values)
            status = part.get(f"{metric.name}__status", pd.Series("", index=part.index)).astype(str)[missing]
            lacks = {f"n_{word}": int((status == word).sum()) for word in ("failed", "not_applicable")}
            lacks["n_missing"] = len(status) - sum(lacks.values())
            ends, lower = (metric.low, metric.high), metric.better == "lower"
            yield _Row(metric.name, system, _tenths(values[~missing], metric), ends, lower, lacks)


def _from_counts(counts: pd.DataFrame, metrics: Any, by: str | None) -> Iterator[_Row]:
    names = list(dict.fromkeys(map(str, counts["metric"])))
    chosen = metric_list(metrics)
    for metric in names if chosen is None else chosen:
        name = metric.name if isinstance(metric, Metric) else metric
        if name not in names:
            raise unknown("metric", name, names)
        known = metric if isinstance(metric, Metric) else METRICS.get(name)
        lower = known is not None and known.better == "lower"
        for system, part in split(counts[counts["metric"] == name], by).items():
            bins = part.sort_values("bin_low", kind="stable")
            ends = (bins["bin_low"].iloc[0], bins["bin_high"].iloc[-1])
            yield _Row(name, system, [int(n) for n in bins["n"]], ends, lower, bins.iloc[0].to_dict())


def _tenths(values: np.ndarray, metric: Metric) -> list[int]:
    outside = values[(values < metric.low - CLIP) | (values > metric.high + CLIP)]
    if outside.size:
        raise RagnbError(
            f"{metric.name}={outside[0]:g} lies outside {metric.low:g}..{metric.high:g}; "
            f"declare its range: Metric({metric.name!r}, low, high)"
        )
    # The slack keeps 0.3 in the tenth that starts at 0.3, which floats put a hair above it.
    tenth = np.floor((values - metric.low) / (metric.high - metric.low) * TENTHS + 1e-9).astype(int)
    return [int(n) for n in np.bincount(np.clip(tenth, 0, TENTHS - 1), minlength=TENTHS)]


def _bad_end(rows: list[_Row], say: Callable[..., str]) -> str:
    """Say where most of a metric's scores lie at the bad end."""
    ends = [(row.counts[-1 if row.lower else 0], sum(row.counts), row.name) for row in rows if sum(row.counts)]
    if not ends:
        return say("chart.nothing")
    k, n, name = max(ends, key=lambda end: end[0] / end[1])
    return say("chart.bad_end", name=name, k=f"{k:,}", n=f"{n:,}") if k else say("chart.no_bad_end")
