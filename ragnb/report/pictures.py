"""The pictures of a calibration card, each under a sentence on how to read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ragnb import texts
from ragnb.markup import Safe, figure, join

CHARTS = {
    "judge_human": "counts",
    "band_shares": "bands",
    "bias_by": "inflation",
    "reliability": "reliability",
    "bland_altman": "counts",
    "corrected_means": "corrected",
    "label_budget": "budget",
}
"""A function of `ragnb.plots` → the frame of the card that it draws, in reading order."""


def card_pictures(card: Any, judge: str, dimension: str, *, charts: Sequence[str] = tuple(CHARTS)) -> Safe:
    """Return charts of one judge on one dimension as HTML; a chart without rows is left out.

    Parameters
    ----------
    card : CalibrationCard
    judge, dimension : str
        A row of ``card.verdicts``.
    charts : sequence of str
        Which, by the names of the functions in `ragnb.plots`.

    Examples
    --------
    >>> import pandas as pd
    >>> from ragnb import calibrate
    >>> card = calibrate(pd.DataFrame({"judge": [4, 5, 2, 1] * 5, "human": [5, 5, 2, 1] * 5}), scale=(1, 5))
    >>> card_pictures(card, "judge", "all", charts=["judge_human"])[:8]
    '<figure>'
    """
    from ragnb import plots

    say = texts.load(card.lang)
    parts = []
    for name in charts:
        frame = getattr(card, CHARTS[name])
        if ((frame["judge"] == judge) & (frame["dimension"] == dimension)).any():
            draw: Callable[..., Any] = getattr(plots, name)
            picture = plots.svg(draw(card, judge=judge, dimension=dimension))
            parts.append(figure(picture, say(f"report.{name}")))
    return join(parts)
