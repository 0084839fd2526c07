"""The verdict on one judge and one dimension: trusted, rejected, or not proven, and what may be done meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.calibration.cells import Cells
from ragnb.calibration.measures import over_constant

TRUST, REJECT, NOT_PROVEN = "TRUST", "REJECT", "NOT PROVEN"
RECALIBRATE, RANKING_ONLY, INFLATED = "RECALIBRATE", "RANKING ONLY", "INFLATED"
WORST_LAST = (TRUST, NOT_PROVEN, REJECT)
SIDES = (RECALIBRATE, RANKING_ONLY, INFLATED)


@dataclass(frozen=True)
class Settings:
    """What a verdict is asked with."""

    tolerance: float
    target: float
    delta: float | None
    level: float
    resamples: int
    seed: int
    lang: str

    def acceptable_bias(self, scale: tuple[float, float]) -> float:
        """Return the acceptable bias: the one asked for, else 1/18 of the scale."""
        return (scale[1] - scale[0]) / 18 if self.delta is None else self.delta


def verdict_row(
    cells: Cells, row: Mapping[str, Any], groups: pd.DataFrame, settings: Settings, scale: tuple[float, float]
) -> dict[str, Any]:
    """Return the verdict and what it was decided on.

    TRUST needs three things at once, each at `level`: the share's one-sided lower bound reaches the target, the
    judge agrees more often than the best constant (one-sided, pair by pair), and the interval of the bias lies
    inside ±delta; so must that of every system which the judge inflates. REJECT: the share's one-sided upper
    bound misses the target.
    """
    tolerance, target, delta = settings.tolerance, settings.target, settings.acceptable_bias(scale)
    once = 2 * settings.level - 1  # the two-sided interval whose ends are one-sided bounds at `level`
    share = stats.within_share(cells.x, cells.y, tolerance=tolerance, **cells.how, level=once)
    above = over_constant(cells, row["constant_score"], tolerance, once)
    beats = bool(above.low > 0)
    favoured = groups.loc[groups["inflated"] & (groups["kind"] == "system"), "high"].max()
    unbiased = bool(row["bias_low"] >= -delta and row["bias_high"] <= delta and not favoured > delta)
    trusted = share.low >= target and beats and unbiased
    return {
        "verdict": TRUST if trusted else REJECT if share.high < target else NOT_PROVEN,
        "share": share.value,
        "low": row["within_low"],
        "high": row["within_high"],
        "lower": share.low,
        "upper": share.high,
        "target": target,
        "constant": row["constant"],
        "constant_score": row["constant_score"],
        "beats_constant": beats,
        **{name: row[name] for name in ("bias", "bias_low", "bias_high")},
        "delta": delta,
        "unbiased": unbiased,
        "n": cells.n,
        "n_clusters": cells.n_clusters,
    }


def sides(
    verdict: str,
    row: Mapping[str, Any],
    maps: pd.DataFrame,
    groups: pd.DataFrame,
) -> tuple[str, ...]:
    """Return the side verdicts, in the order of `SIDES`; none stands beside TRUST."""
    found = []
    if verdict != TRUST and maps["passes"].any():
        found.append(RECALIBRATE)
    if verdict != TRUST and row["kendall_within_low"] > 0:
        found.append(RANKING_ONLY)
    if groups.loc[groups["kind"].isin(["overall", "system"]), "inflated"].any():
        found.append(INFLATED)
    return tuple(found)


def hopeless(row: Mapping[str, Any]) -> str | None:
    """Return why more labels alone will not bring TRUST, beside a share at or below the target."""
    if row["bias_low"] > row["delta"] or row["bias_high"] < -row["delta"]:
        return "bias"
    if np.isfinite(row["share"]) and row["share"] <= row["constant"]:
        return "constant"
    return None


def worst(verdicts: Sequence[str]) -> str:
    """Return the worst of the verdicts.

    Examples
    --------
    >>> worst(["TRUST", "NOT PROVEN"])
    'NOT PROVEN'
    """
    return max(verdicts, key=WORST_LAST.index)
