"""Which system leads at which weights, as a triangle or as strips."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Unpack

import numpy as np
import pandas as pd

from ragnb.markup import (
    number,
    percent,
)
from ragnb.markup.rendering import (
    INK,
    SYSTEM_COLOURS,
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
from ragnb.plots.rows import name_rows

_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(0.75)]])
_SHOWN = 20_000  # points that are drawn; more only make the file larger
_STRIP = 0.5  # inches a metric


def weight_map(found: Any, **look: Unpack[LookOfSystems]) -> Axes:
    """Draw who leads under which weights: a triangle for three metrics, a strip a metric for any number.

    Parameters
    ----------
    found : WeightMap
        What `ragnb.weight_map` returns.
    **look
        ``lang, ax, finding``, as for every chart; ``systems`` in the order of their colours.

    Examples
    --------
    >>> import ragnb as rn
    >>> rows = {"sample_id": [*"abcd"] * 2, "system": ["new"] * 4 + ["old"] * 4}
    >>> rows |= {"faithfulness": [0.9, 0.8, 0.9, 0.7, 0.5, 0.6, 0.5, 0.4]}
    >>> rows |= {"context_recall": [0.5, 0.4, 0.5, 0.5, 0.6, 0.7, 0.6, 0.7]}
    >>> len(weight_map(rn.weight_map(pd.DataFrame(rows), baseline="old")).get_yticks())
    2
    """
    say = speaker(look)
    shares = found.shares
    leader = max(("candidate", "baseline"), key=lambda side: shares[side])
    seen = say(
        "chart.leads",
        name=getattr(found, leader),
        share=percent(shares[leader]),
        sure=percent(shares[f"{leader}_conclusive"]),
    )
    values = []
    for row in found.flips.dropna().itertuples():
        words = say("chart.flip", today=percent(row.today), flip=percent(row.flip))
        values.append(f"{row.metric}: {words}")
    draw: Any
    if len(found.metrics) == 3:
        draw = _triangle
        height = 4.6
    else:
        draw = _strips
        height = 1.2 + _STRIP * len(found.metrics)
    with canvas(look, height) as (ax, describe):
        sides = system_places(look, [found.candidate, found.baseline])
        label = draw(ax, found, say, [SYSTEM_COLOURS[place] for place in sides])
        legend_below(ax)
        describe(seen, values, label, "")
    return ax


def _areas(
    at: pd.DataFrame, found: Any, say: Callable[..., str], colours: Sequence[str]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield who leads, conclusively or not: at which rows, and how that is drawn."""
    leads = at["value"] > 0
    is_conclusive = (at["low"] > 0) | (at["high"] < 0)
    sides = (found.candidate, leads), (found.baseline, ~leads)
    strengths = ("conclusive", is_conclusive, 0.9), ("not_conclusive", ~is_conclusive, 0.35)
    for (name, ahead), colour in zip(sides, colours, strict=True):
        for word, kept, strength in strengths:
            label = f"{name}, {say(f'chart.{word}')}"
            look = {"color": colour, "alpha": strength, "linewidth": 0, "label": label}
            yield (ahead & kept).to_numpy(), look


def _triangle(ax: Axes, found: Any, say: Callable[..., str], colours: Sequence[str]) -> str:
    """Draw the weightings of three metrics, each metric a corner; return the label of the axis, which has none."""
    points = found.points.iloc[:_SHOWN]
    places = points[list(found.metrics)].to_numpy() @ _CORNERS
    for kept, look in _areas(points, found, say, colours):
        if kept.any():
            x, y = places[kept].T
            ax.scatter(
                x, y, s=5, rasterized=True, **look
            )  # thousands of dots would make a large SVG
    ax.fill(*_CORNERS.T, fill=False, edgecolor=INK, linewidth=0.8)
    ax.plot(*(found.today @ _CORNERS), "*", ms=13, color=INK, label=say("chart.today"))
    flip = found.nearest_flip
    if flip:
        place = np.array([*flip["weights"].values()]) @ _CORNERS
        ax.plot(*place, "X", color=INK, label=say("chart.nearest"))
    sides = ("right", "left", "center")
    for name, (x, y), side in zip(found.metrics, _CORNERS, sides, strict=True):
        # Above the upper corner, below the two others.
        if y:
            ax.text(x, y + 0.03, fitted(name), ha=side, va="bottom", fontsize=9)
        else:
            ax.text(x, y - 0.03, fitted(name), ha=side, va="top", fontsize=9)
    ax.set(aspect="equal", xticks=[], yticks=[], xlim=(-0.35, 1.35), ylim=(-0.1, 0.95))
    ax.spines[["left", "bottom"]].set_visible(False)
    return ""


def _strips(ax: Axes, found: Any, say: Callable[..., str], colours: Sequence[str]) -> str:
    """Draw a strip a metric, its share of the weight from 0 to 1; return the label of the axis."""
    names = found.flips["metric"].tolist()
    rows = found.flips[["metric", "today", "flip"]].itertuples(index=False)
    for place, (name, today, flip) in enumerate(rows):
        strip = found.strip(name)
        shares = strip["share"].to_numpy()
        width = strip["share"].iloc[1]  # from one share to the next
        for kept, look in _areas(strip, found, say, colours):
            # The first strip alone is in the legend: the others have the same colours.
            if place > 0:
                look["label"] = "_part"
            ax.barh([place] * kept.sum(), width, left=shares[kept] - width / 2, height=0.55, **look)
        label = "_row" if place > 0 else say("chart.today")
        ax.plot(today, place, "o", color=INK, label=label)
        if not math.isnan(flip):
            upright = [place - 0.4, place + 0.4]
            ax.plot([flip, flip], upright, color=INK, linewidth=1.6, label="_flip")
            ax.text(flip, place - 0.42, number(flip, 2), ha="center", va="bottom", fontsize=8)
    name_rows(ax, range(len(names)), [fitted(name) for name in names], len(names) - 0.4, -0.8)
    ax.set_xlim(0, 1)
    return say("chart.weight_share")
