"""Differences of two systems, curves over depths, and who wins."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np
import pandas as pd

from ragnb.errors import need_columns, need_known
from ragnb.markup import (
    number,
    percent,
    with_interval,
)
from ragnb.markup.rendering import (
    INK,
    check_systems,
)
from ragnb.plots.canvas import (
    GREY,
    MARKS,
    Axes,
    Look,
    LookOfSystems,
    canvas,
    fitted,
    legend_below,
    speaker,
    system_places,
)
from ragnb.plots.means import system_colours
from ragnb.plots.rows import Dot, dot_rows, grid
from ragnb.schema import TOTAL


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
    need_columns(
        compared.columns,
        ("candidate", "baseline", "metric", "outcome", "value", "margin", "primary"),
    )
    say = speaker(look)
    several = compared["candidate"].nunique() > 1
    rows = []
    for row in compared.to_dict("records"):
        # As shares of its range a difference is drawn beside those of metrics on other scales.
        width = row["range_high"] - row["range_low"]
        if not math.isfinite(width):
            width = 1.0
        at = [row[name] / width for name in ("value", "low", "high")]
        outcome = say("compared." + row["outcome"])
        if row["outcome"] == "undecided" and row["low"] * row["high"] > 0:
            outcome = say("chart.by_holm", outcome=outcome)  # the interval alone would decide
        words = f"{with_interval(row['value'], row['low'], row['high'])}  {outcome}"
        if row["metric"] == TOTAL:
            name = say("chart.total")
        else:
            name = fitted(row["metric"])
        if several:
            name = f"{fitted(row['candidate'])}: {name}"
        rows.append((name, [Dot(at, words)]))
    if compared["primary"].any():
        first = compared[compared["primary"]].iloc[0]
    else:
        first = compared.iloc[-1]
    finding = f"{first['candidate']} − {first['baseline']}: {say('compared.' + first['outcome'])}"
    with dot_rows(look, rows, finding=finding, labels=(say("chart.difference"), "")) as ax:
        ax.axvline(0, color=INK, linewidth=0.8, zorder=0)
        margins = compared["margin"] / (compared["range_high"] - compared["range_low"])
        # One band for all rows, where they have one margin.
        if margins.nunique() == 1 and math.isfinite(margins.iloc[0]):
            ax.axvspan(-margins.iloc[0], margins.iloc[0], color=GREY, alpha=0.15, linewidth=0)
    return ax


def by_depth(
    found: pd.DataFrame, *, measure: str = "recall", **look: Unpack[LookOfSystems]
) -> Axes:
    """Draw a measure of retrieval over the number of passages, with the band of its intervals, a line a system.

    Parameters
    ----------
    found : DataFrame
        What `ragnb.retrieval` returns, of at most five systems.
    measure : str
        ``hit, recall, precision, ndcg, mrr`` or ``map``.
    **look
        ``lang, ax, finding``, as for every chart; ``systems`` in the order of their colours.

    Raises
    ------
    RagnbError
        For a measure that the frame does not hold, and more than five systems.

    Examples
    --------
    >>> rows = {"measure": ["recall"] * 2, "k": [1, 5], "value": [0.5, 0.8], "low": [0.4, 0.7], "high": [0.6, 0.9]}
    >>> by_depth(pd.DataFrame(rows)).get_title(loc="left")
    'recall@5: 0.800'
    """
    need_columns(found.columns, ("measure", "k", "value", "low", "high"))
    need_known("measure", measure, list(dict.fromkeys(found["measure"])))
    rows = found[found["measure"] == measure].sort_values("k", kind="stable")
    is_several = "system" in rows and rows["system"].nunique() > 1
    parts: dict[str, pd.DataFrame] = {"": rows}
    if is_several:
        parts = {str(name): part for name, part in rows.groupby("system", sort=False)}
    check_systems(list(parts))
    say = speaker(look)
    lines = list[str]()
    last = list[str]()
    with canvas(look, 2.8) as (ax, describe):
        places = system_places(look, list(parts))
        colours = system_colours(look, list(parts))
        for place, colour, (name, part) in zip(places, colours, parts.items(), strict=True):
            ax.fill_between(
                part["k"], part["low"], part["high"], color=colour, alpha=0.15, linewidth=0
            )
            ax.plot(
                part["k"],
                part["value"],
                color=colour,
                marker=MARKS[place],
                markersize=5,
                label=fitted(name) if name else "_only",
            )
            head = f"{name}: " if name else ""
            for row in part.to_dict("records"):
                words = with_interval(row["value"], row["low"], row["high"])
                lines.append(f"{head}k = {row['k']}: {words}")
            last.append(f"{head}{number(part['value'].iloc[-1])}")
        ax.set_ylim(0, 1.02)
        ax.set_xticks(sorted(set(rows["k"])))
        legend_below(ax)
        finding = f"{measure}@{rows['k'].max()}: {', '.join(last)}"
        describe(finding, lines, say("chart.depth"), measure)
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
    say = speaker(look)
    names = found.ranks["system"].tolist()
    pairs = found.pairs.set_index(["candidate", "baseline"])
    # A row for each candidate, a column for each baseline; empty where they are the same system.
    rates = pairs["win_rate"].unstack().reindex(index=names, columns=names).to_numpy()
    outcomes = pairs["outcome"].unstack().reindex(index=names, columns=names)
    is_conclusive = outcomes.isin(["better", "worse"]).to_numpy()
    written = []
    for rates_of_candidate, conclusive in zip(rates, is_conclusive, strict=True):
        cells = []
        for rate, is_marked in zip(rates_of_candidate, conclusive, strict=True):
            if math.isnan(rate):
                cells.append("")
            elif is_marked:
                cells.append(f"{percent(rate)} *")
            else:
                cells.append(percent(rate))
        written.append(cells)
    best = found.ranks.sort_values("win_rate", kind="stable")["system"].iloc[-1]
    with canvas(look, 1.2 + 0.42 * len(names), 1.6 + 1.1 * len(names)) as (ax, describe):
        grid(ax, rates, written, 8.5)
        middles = np.arange(len(names)) + 0.5
        shown = [fitted(name) for name in names]
        ax.set_xticks(middles, shown)
        ax.set_yticks(middles, shown, rotation=0)
        ax.tick_params(top=False, labeltop=True, bottom=False, labelbottom=False)
        values = [
            f"{row.candidate} / {row.baseline}: {percent(row.win_rate)}"
            for row in found.pairs.itertuples()
        ]
        describe(say("chart.win_rates", best=best), values, say("chart.wins_more"), "")
    return ax
