"""What a judge's score is worth: what humans say where it says so, and how often both agree there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from ragnb.markup import INK, SYSTEM_COLOURS, count, percent, with_interval
from ragnb.markup.cells import is_missing
from ragnb.plots.canvas import GREY, Axes, beside, fitted, legend_below
from ragnb.plots.card import OfCard, Part, part
from ragnb.plots.rows import BAD, GOOD, WATCH, draw_row, estimate, name_rows, percents, points, whole

_MEANS = ("judge_score", "human", "n")
_BANDS = ("band", "share", "n")
_LOOKS = {"TRUST": (GOOD, "o"), "REJECT": (BAD, "s"), "NOT PROVEN": (WATCH, "^"), "too few": (GREY, "D")}


def reliability(card: Any, *, scale: tuple[float, float] | None = None, **look: Unpack[OfCard]) -> Axes:
    """Draw the mean of the humans where the judge gave each score, with its band and the isotonic curve.

    Parameters
    ----------
    card : CalibrationCard or DataFrame
        A card, or its ``reliability``: ``[judge, dimension,] judge_score, human, low, high, isotonic, n``.
    judge, dimension : str, optional
        Which, where there are several.
    scale : (low, high), optional
        The whole scale, both axes; by default the card's, else from the lowest to the highest number.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}, optional
        By default the card's.
    finding : str, optional
        The title and the start of the words; by default the score whose humans' interval stands furthest from
        it. Empty for no title.

    Returns
    -------
    Axes
        Points of E[human | judge], their intervals, clusters respected, joined to a band where neighbours have
        both; the diagonal of a judge that is right on average; n along the bottom. A missing mean is a gap.

    Raises
    ------
    RagnbError
        For several judges or dimensions and no choice, and for unknown ones.

    Examples
    --------
    >>> import pandas as pd
    >>> curve = pd.DataFrame({"judge_score": [1, 2], "human": [1.5, 1.8], "low": 1.2, "high": [1.8, 2.2], "n": 9})
    >>> reliability(curve).get_title(loc="left")
    'Where the judge says 1, humans say 1.500 [1.200, 1.800] on average'
    """
    p = part(card, "reliability", _MEANS, **look)
    curve = p.rows.sort_values("judge_score", kind="stable").reindex(columns=[*_MEANS, "low", "high", "isotonic"])
    x, human, n, low, high, isotonic = (curve[name].to_numpy(dtype=float) for name in curve)
    say = p.say
    with p.canvas(4.2) as (ax, tell):
        ends = p.ends(scale, x, human, low, high)
        ax.plot(ends, ends, color=GREY, linewidth=1, linestyle="--", label=say("chart.right_on_average"))
        ax.fill_between(x, low, high, color=SYSTEM_COLOURS[0], alpha=0.15, linewidth=0, label="_band")
        ax.vlines(x, low, high, color=SYSTEM_COLOURS[0], linewidth=1.6, label="_interval")
        sure = np.where(np.isnan(low), "none", SYSTEM_COLOURS[0])
        size = np.clip(90 * n / max(n.max(initial=1.0), 1.0), 14, None)
        ax.scatter(x, human, s=size, c=sure, edgecolors=SYSTEM_COLOURS[0], label=say("chart.human_mean"), zorder=3)
        ax.plot(x, isotonic, color=SYSTEM_COLOURS[1], linewidth=1.6, label=say("chart.isotonic"))
        # Every second n where they would touch.
        for k in range(0, len(x), 1 + len(x) // 12):
            many = p.n(n[k]) if k == 0 and len(x) < 8 else count(n[k])
            beside(ax, many, x[k], 0, xytext=(0, 3), ha="center", fontsize=7.5, label="_n")
        margin, marks = 0.04 * (ends[1] - ends[0]), points(*ends)
        ax.set_xlim(ends[0] - margin, ends[1] + margin)
        ax.set_ylim(ends[0] - 2.2 * margin, ends[1] + margin)
        if marks:
            ax.set(xticks=marks, yticks=marks)
        legend_below(ax, 36)
        rows = list(zip(x, human, low, high, n, strict=True))
        told = [f"{a:g}: {with_interval(b, c, d)} ({p.n(many)})" for a, b, c, d, many in rows]
        tell(_furthest(rows, p), p.words(told), say("chart.judge_axis"), say("chart.human_axis"))
    return ax


def _furthest(rows: Sequence[tuple[float, ...]], p: Part) -> str:
    """Say where an interval leaves the diagonal by most."""
    off = [(max(low - x, x - high), x, human, low, high) for x, human, low, high, _ in rows if low > x or high < x]
    if not off:
        return p.say("chart.none_off" if any(not np.isnan(row[2]) for row in rows) else "chart.no_intervals")
    _, x, human, low, high = max(off)
    return p.say("chart.humans_say", score=f"{x:g}", value=with_interval(human, low, high))


def band_shares(
    card: Any, *, target: float | None = None, tolerance: float | None = None, **look: Unpack[OfCard]
) -> Axes:
    """Draw the share within the tolerance by the judge's score, against the target.

    Parameters
    ----------
    card : CalibrationCard or DataFrame
        A card, or its ``bands``: ``[judge, dimension,] band, share, low, high, n``, optionally ``start, verdict``.
    judge, dimension : str, optional
        Which, where there are several.
    target, tolerance : float, optional
        By default the card's, else 0.8 and 1.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}, optional
        By default the card's.
    finding : str, optional
        The title and the start of the words; by default the bands with a verdict. Empty for no title.

    Returns
    -------
    Axes
        A row a band, the highest on top: the share on its interval, its verdict by shape, colour and word.

    Raises
    ------
    RagnbError
        For several judges or dimensions and no choice, and for unknown ones.

    Examples
    --------
    >>> import pandas as pd
    >>> bands = pd.DataFrame({"band": ["1-5", "6-10"], "share": [0.4, 0.9], "n": 90})
    >>> band_shares(bands.assign(verdict=["REJECT", "TRUST"])).get_title(loc="left")
    'The judge is trusted where it says 6-10; rejected where it says 1-5'
    """
    p = part(card, "bands", _BANDS, **look)
    rows = p.rows.iloc[::-1] if "start" not in p.rows else p.rows.sort_values("start", ascending=False)
    bar, width, say = p.set("target", target), p.set("tolerance", tolerance), p.say
    records = rows.to_dict("records")
    names = [fitted(row["band"]) for row in records]
    axis = say("chart.band_axis", tolerance=f"{width:g}", target=percent(bar))
    with p.canvas(1.1 + 0.32 * max(len(names), 1)) as (ax, tell):
        told = []
        for y, row in enumerate(records):
            verdict, at = str(row.get("verdict", "")), estimate(row, "share")
            said = [with_interval(*at, percent=True), p.n(row["n"])]
            said += [say(f"chart.verdict.{verdict.lower().replace(' ', '_')}")] if verdict in _LOOKS else []
            draw_row(ax, y, at, "  ".join(said), *_LOOKS.get(verdict, ()))
            told.append(f"{names[y]}: {', '.join(said)}")
        name_rows(ax, names)
        whole(ax, 0.0, 1.0)
        percents(ax.xaxis)
        ax.axvline(bar, color=INK, linewidth=1.2, linestyle="--", label="_target", zorder=1)
        tell(_trusted(records, p), p.words(told), axis, say("chart.judge_axis"))
    return ax


def _trusted(records: list[dict[Any, Any]], p: Part) -> str:
    """Say where the judge is trusted and where it is rejected, from low to high."""
    where = {
        verdict: ", ".join(fitted(row["band"]) for row in records[::-1] if row.get("verdict") == verdict)
        for verdict in ("TRUST", "REJECT")
    }
    found = [p.say(f"chart.bands.{key.lower()}", bands=bands) for key, bands in where.items() if bands]
    if not any(not is_missing(row["share"]) for row in records):
        return p.say("chart.no_pairs")
    return p.say("chart.bands.all", found=p.say("chart.and").join(found)) if found else p.say("chart.bands.none")
