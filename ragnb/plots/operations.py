"""Quality beside what it takes: each system with the intervals of both."""

from __future__ import annotations

import math
from typing import Any, Unpack

import pandas as pd

from ragnb.errors import RagnbError, need_columns, need_known
from ragnb.markup import amount, amounts, with_interval
from ragnb.markup.rendering import SYSTEM_COLOURS, check_systems
from ragnb.plots.canvas import (
    MARKS,
    Axes,
    LookOfSystems,
    canvas,
    fitted,
    legend_below,
    speaker,
    system_places,
)
from ragnb.schema import TOTAL

_MEASURES = ("mean", "median", "p95")


def quality_by_cost(
    means: pd.DataFrame,
    operations: pd.DataFrame,
    *,
    measure: str | None = None,
    statistic: str = "mean",
    metric: str = TOTAL,
    **look: Unpack[LookOfSystems],
) -> Axes:
    """Draw the quality of systems over what their answers took, a cross of two intervals each.

    Parameters
    ----------
    means, operations : DataFrame
        Of an `Assessment`: ``sheet.means`` and ``sheet.operations``, of one system or up to five.
    measure : str, optional
        The column of `operations` to draw, such as ``cost_usd``; by default the first.
    statistic : {"mean", "median", "p95"}
    metric : str
        The metric of `means` to draw.
    **look
        ``lang, ax, finding``, as for every chart; ``systems`` in the order of their colours.

    Raises
    ------
    RagnbError
        For a measure, statistic or metric that is not there, and more than five systems.

    Examples
    --------
    >>> import ragnb as rn
    >>> rows = {"question": [*"abcd"] * 2, "system": ["new"] * 4 + ["old"] * 4}
    >>> rows |= {"faithfulness": [0.9, 0.8, 0.9, 0.7, 0.5, 0.6, 0.5, 0.4], "cost_usd": [2, 3, 2, 2, 1, 1, 2, 1]}
    >>> sheet = rn.assess(pd.DataFrame(rows))
    >>> quality_by_cost(sheet.means, sheet.operations).get_title(loc="left")
    'new: 0.825 at 2.25, old: 0.500 at 1.25'
    """
    if operations is None:
        raise RagnbError(
            "no column measures what the answers took; add one such as latency_s, total_tokens or cost_usd"
        )
    need_columns(operations.columns, ("metric", *_MEASURES))
    need_known("statistic", statistic, _MEASURES)
    names = list(dict.fromkeys(operations["metric"]))
    chosen = names[0] if measure is None else measure
    need_known("measure", chosen, names)
    need_known("metric", metric, list(dict.fromkeys(means["metric"])))
    taken = _rows(operations[operations["metric"] == chosen])
    quality = _rows(means[means["metric"] == metric])
    systems = [name for name in taken if name in quality]
    check_systems(systems)
    say = speaker(look)
    lines = list[str]()
    titles = list[str]()
    with canvas(look, 3.0) as (ax, describe):
        for place, name in zip(system_places(look, systems), systems, strict=True):
            score = quality[name]
            x = taken[name][statistic]
            x_low = taken[name][f"{statistic}_low"]
            x_high = taken[name][f"{statistic}_high"]
            y = score["value"]
            ax.errorbar(
                x,
                y,
                xerr=_arms(x, x_low, x_high),
                yerr=_arms(y, score["low"], score["high"]),
                color=SYSTEM_COLOURS[place],
                marker=MARKS[place],
                markersize=6,
                label=fitted(name) if name else "_only",
            )
            head = f"{name}: " if name else ""
            took = amount(x)
            ends = amounts(x_low, x_high)
            if ends:
                took += f" ({ends})"
            written = with_interval(y, score["low"], score["high"])
            lines.append(f"{head}{written}; {chosen} {took}")
            titles.append(head + say("chart.at", score=f"{y:.3f}", amount=amount(x)))
        _reach(ax, taken, quality, systems, statistic)
        legend_below(ax)
        x_label = f"{chosen} ({say(f'operations.{statistic}')})"
        if metric == TOTAL:
            y_label = say("chart.total")
        else:
            y_label = metric
        describe(", ".join(titles), lines, x_label, y_label)
    return ax


def _rows(table: pd.DataFrame) -> dict[str, dict[Any, Any]]:
    """Return the row of each system; of a table without systems one under an empty name."""
    rows = table.to_dict("records")
    return {str(row.get("system", "")): row for row in rows}


def _arms(value: float, low: float, high: float) -> list[list[float]] | None:
    """Return how far an interval reaches on both sides, (2, 1); an end that nothing shows has no arm."""
    arms = [value - low, high - value]
    return [[arm if math.isfinite(arm) else 0.0] for arm in arms]


def _reach(
    ax: Axes,
    taken: dict[str, dict[Any, Any]],
    quality: dict[str, dict[Any, Any]],
    systems: list[str],
    statistic: str,
) -> None:
    """Let the axis of what is taken begin at 0, and mark the interval that has no upper end."""
    ax.margins(0.1, 0.25)
    ax.set_xlim(left=0)
    for name in systems:
        if math.isinf(taken[name][f"{statistic}_high"]):
            at = taken[name][statistic], quality[name]["value"]
            ax.annotate("→", at, xytext=(6, 0), textcoords="offset points", va="center")
