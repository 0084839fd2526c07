"""How many labels a verdict still needs, with the reason, and what a budget of labels would buy."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.calibration.cells import Cells
from ragnb.calibration.verdict import Settings
from ragnb.markup import number, percent
from ragnb.stats.means import Array
from ragnb.texts import load


def budget_curve(flags: Array, cells: Cells, settings: Settings) -> pd.DataFrame:
    """Return a curve: with so many labels, so wide an interval, and so good a chance to show the target.

    Returns
    -------
    DataFrame
        ``labels, share`` (seen now), ``low, high`` (its interval expected at so many labels), ``half_width,
        probability`` (of showing the target, were the seen share the true one), ``cautious`` (were its lower 80 %
        bound), ``target, n`` (labels now).
    """
    target, level = settings.target, settings.level
    curve = stats.label_budget(flags, **cells.how, target=target, alpha=1 - level, level=level)
    return pd.DataFrame(
        {
            "labels": curve.labels.astype(int),
            "share": float(np.average(flags, weights=cells.sums["counts"])),
            "low": curve.low,
            "high": curve.high,
            "half_width": (curve.high - curve.low) / 2,
            "probability": curve.chance,
            "cautious": curve.cautious,
            "target": target,
            "n": cells.n,
        }
    )


def labels_text(need: stats.LabelsNeeded, n: int, target: float, lang: str = "en") -> str:
    """Say how many labels are missing and why.

    Examples
    --------
    >>> need = stats.labels_needed([1] * 7 + [0] * 3, target=0.8)
    >>> labels_text(need, 10, 0.8)
    'More labels will not help: 70.0 % of the ratings agree, and 80.0 % is asked for.'
    """
    key = "enough" if need.more == 0 else need.reason
    shares = {"seen": percent(need.seen), "planned": percent(need.planned), "target": percent(target)}
    return load(lang)(f"labels.{key}", n=n, total=need.total, more=need.more, deff=number(need.deff, 2), **shares)
