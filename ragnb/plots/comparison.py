"""Charts of a comparison: paired differences with intervals, and which system leads for which weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Unpack

import numpy as np
import pandas as pd

from ragnb.errors import need_columns
from ragnb.markup import INK, SYSTEM_COLOURS, number, percent, with_interval
from ragnb.plots.canvas import GREY, Axes, Look, canvas, fitted, legend_below, speaker
from ragnb.plots.marks import Dot, dot_rows, grid

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
