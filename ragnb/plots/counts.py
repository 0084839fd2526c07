"""Charts of counts: the labels of traces as bars from zero, the scores of each metric by equal bins."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Unpack

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, need_columns, unknown
from ragnb.markup import MISSING, SYSTEM_COLOURS, count, is_missing, one_line, percent
from ragnb.markup.radar import check_systems
from ragnb.plots.canvas import Axes, Look, canvas, fitted, legend_below, speaker
from ragnb.plots.marks import grid
from ragnb.plots.means import gaps, notes_below
from ragnb.schema import CLIP, METRICS, Metric, metric_list, resolve_metrics

COUNTED = ("metric", "bin_low", "bin_high", "n")


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
    """Draw how many samples score in each part of a metric's range, one row per metric (and system).

    Parameters
    ----------
    scores : DataFrame
        One row per sample, one column per metric; optional ``<metric>__status``; drawn by tenths. Or the counts
        themselves, as ``weights.histogram`` returns them for rows of any number: ``[by,] metric, bin_low,
        bin_high, n``, optionally ``n_missing, n_failed, n_not_applicable`` on each row.
    metrics : names or Metric objects, optional
        As everywhere: None takes the columns that METRICS declares; of counts, all.
    by : str, optional
        A column, such as ``system``: a row for each of its values.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}, optional
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
    say, endless = speaker(look), list[str]()
    problem = "no counts to draw; weights.histogram(scores) makes some"
    if not set(COUNTED) <= set(map(str, scores.columns)):
        chosen = resolve_metrics(metrics, [str(name) for name in scores.columns])
        endless = [metric.name for metric in chosen if not metric.bounded]
        metrics = bounded = [metric for metric in chosen if metric.bounded]
        scores = _tenths(scores, bounded, by)
        problem = "no metric with a finite range to draw; name some: metrics=[Metric('mine', 0, 1)]"
    present, names, rows, lower = list(dict.fromkeys(map(str, scores["metric"]))), list[str](), [], list[bool]()
    for metric in present if metrics is None else metric_list(metrics) or ():
        name = metric if isinstance(metric, str) else metric.name
        if name not in present:
            raise unknown("metric", name, present)
        known = METRICS.get(name) if isinstance(metric, str) else metric
        for system, part in _split(scores[scores["metric"] == name], by).items():
            rows.append(part.sort_values("bin_low", kind="stable"))
            lower.append(known is not None and known.better == "lower")
            names.append(fitted(name) + f" · {fitted(system)}" * bool(system) + " ↓" * lower[-1])
    if not rows:
        raise RagnbError(problem)
    if len(parts := {len(bins) for bins in rows}) > 1:
        raise RagnbError(f"the metrics have different numbers of bins, {sorted(parts)}; use one number for all")
    table = np.array([bins["n"].to_numpy(dtype=int) for bins in rows])
    n, spans = table.sum(axis=1), {(float(bins["bin_low"].min()), float(bins["bin_high"].max())) for bins in rows}
    own = len(spans) > 1
    sizes = [[say("chart.n", n=count(k)), gaps(dict(bins.iloc[0]), say)] for k, bins in zip(n, rows, strict=True)]
    heads = [f"{name}\n{', '.join(filter(None, size))}" for name, size in zip(names, sizes, strict=True)]
    with canvas(look, 1.0 + 0.42 * len(rows)) as (ax, describe):
        written = [[count(cell) if cell else "" for cell in row] for row in table]
        shares = np.where(table > 0, table / np.maximum(n, 1)[:, None], np.nan)
        grid(ax, shares, written, "Blues", 8.5 if table.max() < 100_000 else 6.5)
        low, high = (0.0, 1.0) if own else spans.pop()
        ends = np.linspace(low, high, table.shape[1] + 1)
        ax.set_xticks(range(len(ends)), [f"{end:.3g}" for end in ends])
        ax.set_yticklabels(heads)
        notes = [say("chart.bins")] + [say("chart.shares")] * own
        notes += notes_below(say, "chart.lower", any(lower), endless)
        ax.set_xlabel("\n".join(notes), fontsize=8.5, loc="right")
        bad = np.where(lower, table[:, -1], table[:, 0])
        worst = int(np.argmax(bad / np.maximum(n, 1)))
        finding = say("chart.bad_end", name=names[worst], k=count(bad[worst]), n=count(n[worst]))
        finding = finding if bad.any() else say("chart.no_bad_end" if n.any() else "chart.nothing")
        values = [f"{one_line(head)}: {' '.join(map(str, k))}" for head, k in zip(heads, table, strict=True)]
        describe(finding, values)
    return ax


def _tenths(scores: pd.DataFrame, metrics: list[Metric], by: str | None) -> pd.DataFrame:
    """Count scores by tenths, as `weights.histogram` does, and those that are missing."""
    parts = [pd.DataFrame(columns=COUNTED)]
    for metric in metrics:
        low, high = metric.low, metric.high
        for system, part in _split(scores, by).items():
            values = pd.to_numeric(part[metric.name], errors="raise").to_numpy(dtype=float, na_value=np.nan)
            missing = np.isnan(values)
            outside = values[(values < low - CLIP) | (values > high + CLIP)]
            if outside.size:
                raise RagnbError(
                    f"{metric.name}={outside[0]:g} lies outside {low:g}..{high:g}; "
                    f"declare its range: Metric({metric.name!r}, low, high)"
                )
            status = part.get(f"{metric.name}__status", pd.Series("", index=part.index)).astype(str)[missing]
            lacks = {f"n_{word}": int((status == word).sum()) for word in ("failed", "not_applicable")}
            lacks["n_missing"] = len(status) - sum(lacks.values())
            # The slack keeps 0.3 in the tenth that starts at 0.3, which floats put a hair above it.
            inside, ends = np.clip(values[~missing] + 1e-9 * (high - low), low, high), np.linspace(low, high, 11)
            bins = {"bin_low": ends[:-1], "bin_high": ends[1:], "n": np.histogram(inside, 10, (low, high))[0]}
            parts.append(pd.DataFrame(bins).assign(metric=metric.name, **lacks))
            parts[-1][by] = pd.Series([system] * 10, dtype=object)
    return pd.concat(parts[len(parts) > 1 :])
