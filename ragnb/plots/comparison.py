"""Charts of a comparison, and of rows: labels as bars from zero, scores as dots with a box."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, Unpack

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, need_columns, unknown
from ragnb.markup import INK, MISSING, SYSTEM_COLOURS, count, is_missing, number, one_line, percent, with_interval
from ragnb.markup.radar import check_systems
from ragnb.plots.canvas import GREY, Axes, Look, canvas, fitted, legend_below, speaker
from ragnb.plots.marks import Dot, dot_rows, gaps, grid, notes_below, whole_scale
from ragnb.schema import CLIP, Metric, resolve_metrics

_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(0.75)]])
_SHOWN = 20_000
_STEP = 0.5


def differences(compared: pd.DataFrame, **look: Unpack[Look]) -> Axes:
    """Draw paired differences as dots with intervals, with 0 and the margin of *same*.

    Parameters
    ----------
    compared : DataFrame
        What `ragnb.compare` returns.
    **look
        ``lang, ax, finding``, as for every chart.

    Examples
    --------
    >>> import ragnb as rn
    >>> rows = {"sample_id": [*"abcd"] * 2, "system": ["new"] * 4 + ["old"] * 4}
    >>> scores = pd.DataFrame(rows | {"faithfulness": [0.9, 0.8, 0.9, 0.7, 0.5, 0.6, 0.5, 0.4]})
    >>> differences(rn.compare(scores, baseline="old")).get_title(loc="left")
    'new − old: better'
    """
    need_columns(compared.columns, ("candidate", "baseline", "metric", "outcome", "value", "margin", "primary"))
    say, rows = speaker(look), []
    for row in compared.to_dict("records"):
        width = row["range_high"] - row["range_low"]
        unit = width if math.isfinite(width) else 1.0
        at = [row[name] / unit for name in ("value", "low", "high")]
        words = f"{with_interval(row['value'], row['low'], row['high'])}  {say('compared.' + row['outcome'])}"
        name = say("chart.total") if row["metric"] == "weighted_score" else fitted(row["metric"])
        several = compared["candidate"].nunique() > 1
        rows.append((f"{fitted(row['candidate'])}: {name}" if several else name, [Dot(at, words)]))
    first = compared.iloc[-1] if not compared["primary"].any() else compared[compared["primary"]].iloc[0]
    finding = f"{first['candidate']} − {first['baseline']}: {say('compared.' + first['outcome'])}"
    with dot_rows(look, rows, finding=finding, labels=(say("chart.difference"), "")) as ax:
        ax.axvline(0, color=INK, linewidth=0.8, zorder=0)
        margins = compared["margin"] / (compared["range_high"] - compared["range_low"])
        if margins.nunique() == 1 and math.isfinite(margins.iloc[0]):
            ax.axvspan(-margins.iloc[0], margins.iloc[0], color=GREY, alpha=0.15, linewidth=0)
    return ax


def win_rates(found: Any, **look: Unpack[Look]) -> Axes:
    """Draw how often each of several systems scores higher than each other one, as shaded cells.

    Parameters
    ----------
    found : Standings
        What `ragnb.standings` returns.
    **look
        ``lang, ax, finding``, as for every chart.

    Examples
    --------
    >>> import ragnb as rn
    >>> rows = {"sample_id": [*"abcd"] * 2, "system": ["new"] * 4 + ["old"] * 4}
    >>> scores = pd.DataFrame(rows | {"faithfulness": [0.9, 0.8, 0.9, 0.7, 0.5, 0.6, 0.5, 0.4]})
    >>> win_rates(rn.standings(scores)).get_title(loc="left")
    'new wins most often'
    """
    say, names = speaker(look), found.ranks["system"].tolist()
    pairs = found.pairs.set_index(["candidate", "baseline"])
    rates = pairs["win_rate"].unstack().reindex(index=names, columns=names)
    shown = pairs["outcome"].unstack().reindex(index=names, columns=names)
    sure = shown.isin(["better", "worse"]).to_numpy()
    written = [
        ["" if math.isnan(rate) else percent(rate) + " *" * int(one) for rate, one in zip(*row, strict=True)]
        for row in zip(rates.to_numpy(), sure, strict=True)
    ]
    best = found.ranks.sort_values("win_rate", kind="stable")["system"].iloc[-1]
    with canvas(look, 1.2 + 0.42 * len(names), 1.6 + 1.1 * len(names)) as (ax, describe):
        grid(ax, rates.to_numpy(), written, 8.5)
        ax.set_xticks(np.arange(len(names)) + 0.5, [fitted(name) for name in names])
        ax.set_yticks(np.arange(len(names)) + 0.5, [fitted(name) for name in names])
        ax.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
        rows = found.pairs.itertuples()
        values = [f"{row.candidate} / {row.baseline}: {percent(row.win_rate)}" for row in rows]
        describe(say("chart.win_rates", best=best), values, say("chart.wins_more"), "")
    return ax


def weight_map(found: Any, **look: Unpack[Look]) -> Axes:
    """Draw who leads under which weights: a triangle for three metrics, a strip a metric for any number.

    Parameters
    ----------
    found : WeightMap
        What `ragnb.weight_map` returns.
    **look
        ``lang, ax, finding``, as for every chart.

    Examples
    --------
    >>> import ragnb as rn
    >>> rows = {"sample_id": [*"abcd"] * 2, "system": ["new"] * 4 + ["old"] * 4}
    >>> rows |= {"faithfulness": [0.9, 0.8, 0.9, 0.7, 0.5, 0.6, 0.5, 0.4]}
    >>> rows |= {"context_recall": [0.5, 0.4, 0.5, 0.5, 0.6, 0.7, 0.6, 0.7]}
    >>> len(weight_map(rn.weight_map(pd.DataFrame(rows), baseline="old")).get_yticks())
    2
    """
    say, shares = speaker(look), found.shares
    leader = max(("candidate", "baseline"), key=lambda side: shares[side])
    sure = percent(shares[f"{leader}_conclusive"])
    seen = say("chart.leads", name=getattr(found, leader), share=percent(shares[leader]), sure=sure)
    values = [
        f"{row.metric}: {say('chart.flip', today=percent(row.today), flip=percent(row.flip))}"
        for row in found.flips.dropna().itertuples()
    ]
    draw = _triangle if len(found.metrics) == 3 else _strips
    height = 4.6 if len(found.metrics) == 3 else 1.2 + _STEP * len(found.metrics)
    with canvas(look, height) as (ax, describe):
        label = draw(ax, found, say)
        legend_below(ax)
        describe(seen, values, label, "")
    return ax


def _kinds(at: pd.DataFrame, found: Any, say: Callable[..., str]) -> list[tuple[Any, str, str, float]]:
    """Return the four areas: which rows, the name, the colour, and how strong it is."""
    new, old = SYSTEM_COLOURS[:2]
    sure, unsure = (say(f"chart.{word}") for word in ("conclusive", "not_conclusive"))
    return [
        (at["low"] > 0, f"{found.candidate}, {sure}", new, 0.9),
        ((at["value"] > 0) & ~(at["low"] > 0), f"{found.candidate}, {unsure}", new, 0.35),
        (at["high"] < 0, f"{found.baseline}, {sure}", old, 0.9),
        ((at["value"] <= 0) & ~(at["high"] < 0), f"{found.baseline}, {unsure}", old, 0.35),
    ]


def _triangle(ax: Axes, found: Any, say: Callable[..., str]) -> str:
    points = found.points.iloc[:_SHOWN]
    places = points[list(found.metrics)].to_numpy() @ _CORNERS
    for kept, name, colour, strength in _kinds(points, found, say):
        if kept.any():
            x, y = places[kept.to_numpy()].T
            ax.scatter(x, y, s=5, color=colour, alpha=strength, linewidth=0, label=name, rasterized=True)
    ax.fill(*_CORNERS.T, fill=False, edgecolor=INK, linewidth=0.8)
    star: Any = {"marker": "*", "markersize": 13, "linestyle": "none", "color": INK}
    ax.plot(*(found.today @ _CORNERS), label=say("chart.today"), **star)
    if flip := found.nearest_flip:
        ax.plot(*(np.array([*flip["weights"].values()]) @ _CORNERS), "X", color=INK, label=say("chart.nearest"))
    for name, (x, y), side in zip(found.metrics, _CORNERS, ("right", "left", "center"), strict=True):
        shift = 0.03 if y else -0.03
        ax.text(x, y + shift, fitted(name), ha=side, va="bottom" if y else "top", fontsize=9)
    ax.set(aspect="equal", xticks=[], yticks=[], xlim=(-0.35, 1.35), ylim=(-0.1, 0.95))
    ax.spines[["left", "bottom"]].set_visible(False)
    return ""


def _strips(ax: Axes, found: Any, say: Callable[..., str]) -> str:
    names = found.flips["metric"].tolist()
    for place, name in enumerate(names):
        strip = found.strip(name)
        step = strip["share"].iloc[1] / 2
        for kept, label, colour, strength in _kinds(strip, found, say):
            shares = strip.loc[kept, "share"]
            bars: Any = {"color": colour, "alpha": strength, "linewidth": 0, "height": 0.55}
            ax.barh([place] * len(shares), 2 * step, left=shares - step, label="_part" if place else label, **bars)
        row = found.flips.iloc[place]
        ax.plot(row["today"], place, "o", color=INK, label="_row" if place else say("chart.today"))
        if not math.isnan(row["flip"]):
            ax.plot([row["flip"]] * 2, [place - 0.4, place + 0.4], color=INK, linewidth=1.6, label="_flip")
            ax.text(row["flip"], place - 0.42, number(row["flip"], 2), ha="center", va="bottom", fontsize=8)
    ax.set_yticks(range(len(names)), [fitted(name) for name in names])
    ax.set(xlim=(0, 1), ylim=(len(names) - 0.4, -0.8))
    ax.spines.left.set_visible(False)
    ax.tick_params(axis="y", length=0)
    return say("chart.weight_share")


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
