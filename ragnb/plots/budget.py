"""What more labels would buy: the interval they leave, and the chance that the target is shown."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from ragnb.markup import INK, SYSTEM_COLOURS, count, percent
from ragnb.markup.cells import is_missing
from ragnb.plots.canvas import Axes, beside, legend_below
from ragnb.plots.card import OfCard, Part, part
from ragnb.plots.rows import percents

_CURVE = ("labels", "share", "low", "high", "probability")


def label_budget(card: Any, **look: Unpack[OfCard]) -> Axes:
    """Draw, against the number of labels, the interval to expect and the chance to show the target.

    Parameters
    ----------
    card : CalibrationCard or DataFrame
        A card, or its ``budget``: ``[judge, dimension,] labels, share, low, high, probability``, optionally
        ``cautious, target, n``, as ``card.budget`` holds it.
    judge, dimension : str, optional
        Which, where there are several.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}, optional
        By default the card's.
    finding : str, optional
        The title and the start of the words; by default what the card says of the labels needed, else how far
        the interval shrinks. Empty for no title.

    Returns
    -------
    Axes
        Shares on one scale from 0 to 100 %, labels on a logarithmic one: the interval as a band about the share
        seen, the target as a dashed line, the chance to show it as lines (the seen share taken for true, and its
        lower 80 % bound); the labels at hand as an upright line.

    Raises
    ------
    RagnbError
        For several judges or dimensions and no choice, and for unknown ones.

    Examples
    --------
    >>> import pandas as pd
    >>> curve = pd.DataFrame({"labels": [50, 200], "share": 0.9, "low": [0.78, 0.85], "high": [0.96, 0.94],
    ...                       "probability": [0.5, 0.99], "target": 0.8, "n": 50})
    >>> label_budget(curve).get_title(loc="left")
    '50 labels know the share to 78.0–96.0 %, 200 would to 85.0–94.0 %'
    """
    p = part(card, "budget", _CURVE, **look)
    curve, say = p.rows.sort_values("labels", kind="stable"), p.say
    x, records = curve["labels"].to_numpy(dtype=float), curve.to_dict("records")
    first: Any = records[0] if records else {}
    with p.canvas(3.8) as (ax, tell):
        blue, orange = SYSTEM_COLOURS[:2]
        band: Any = {"color": blue, "alpha": 0.2, "linewidth": 0, "label": say("chart.expected_interval")}
        ax.fill_between(x, curve["low"].astype(float), curve["high"].astype(float), **band)
        ax.plot(x, curve["share"], color=blue, linewidth=1.6, label=say("chart.share_seen"))
        ax.plot(x, curve["probability"], color=orange, linewidth=1.8, label=say("chart.chance"))
        if "cautious" in curve:
            ax.plot(x, curve["cautious"], color=orange, linewidth=1.4, linestyle="--", label=say("chart.cautious"))
        bar = p.set("target", first.get("target"))
        ax.axhline(bar, color=INK, linewidth=1, linestyle="--", label=say("chart.target", target=percent(bar)))
        n = first.get("n")
        if not is_missing(n):
            ax.axvline(float(n), color=INK, linewidth=1, linestyle=":", label="_now")
            beside(ax, say("chart.labels_now", n=count(n)), float(n), 0.06)
        _scales(ax, x)
        legend_below(ax, 36)
        some = records[:: max(len(records) // 5, 1)]
        told = [say("chart.budget_row", chance=percent(r["probability"]), **_ends(r)) for r in some]
        tell(_seen(p, records), p.words(told), say("chart.labels_axis"))
    return ax


def _scales(ax: Axes, x: np.ndarray) -> None:
    """A logarithmic scale with plain numbers below, the whole range of shares at the side."""
    from matplotlib.ticker import NullLocator

    ax.set_ylim(-0.02, 1.02)
    percents(ax.yaxis)
    if len(x):
        low, high = x.min(), max(x.max(), x.min() * 1.01)
        ax.set_xscale("log")
        ax.set_xlim(low, high)
        marks = [k * 10.0**power for power in range(9) for k in (1, 2, 5) if low <= k * 10.0**power <= high]
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xticks(marks or [low], [count(mark) for mark in marks or [low]])


def _ends(row: Any) -> dict[str, str]:
    low, high = (percent(row[end]) for end in ("low", "high"))
    return {"labels": count(row["labels"]), "interval": f"{low.removesuffix(' %')}–{high}"}


def _seen(p: Part, records: list[Any]) -> str:
    """What the card says of the labels needed; else the interval with the labels at hand and with the most."""
    text = p.beside("labels_needed").get("text")
    if not is_missing(text):
        return str(text)
    if not records:
        return p.say("chart.no_intervals")
    n = records[0].get("n", records[0]["labels"])
    near = min(records, key=lambda row: abs(row["labels"] - n))
    far = _ends(records[-1])
    return p.say("chart.shrinks", most=far["labels"], there=far["interval"], **_ends(near))
