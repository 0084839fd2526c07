"""The pictures of a calibration card, each under a sentence on how to read it."""

from __future__ import annotations

from typing import Any

from ragnb import texts
from ragnb.markup.blocks import Picture

CHARTS = {
    "judge_human": "counts", "band_shares": "bands", "bias_by": "inflation", "reliability": "reliability",
    "bland_altman": "counts", "corrected_means": "corrected", "label_budget": "budget",
}  # fmt: skip
"""A function of `ragnb.plots` → the frame of the card that it draws, in reading order."""


def card_pictures(card: Any, judge: str, dimension: str) -> tuple[Picture, ...]:
    """Return the charts of one judge on one dimension; a chart without rows is left out.

    Parameters
    ----------
    card : CalibrationCard
    judge, dimension : str
        A row of ``card.verdicts``.

    Examples
    --------
    >>> import pandas as pd
    >>> from ragnb import calibrate
    >>> card = calibrate(pd.DataFrame({"judge": [4, 5, 2, 1] * 5, "human": [5, 5, 2, 1] * 5}), scale=(1, 5))
    >>> card_pictures(card, "judge", "all")[0].svg[:4]
    '<svg'
    """
    from ragnb import plots

    say, here = texts.load(card.lang), {"judge": judge, "dimension": dimension}
    rows = {name: getattr(card, frame) for name, frame in CHARTS.items()}
    names = [name for name, frame in rows.items() if (frame[[*here]] == [*here.values()]).all(axis=1).any()]
    return tuple(Picture(plots.svg(getattr(plots, name)(card, **here)), say(f"report.{name}")) for name in names)
