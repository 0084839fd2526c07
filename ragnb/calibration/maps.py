"""What a judge's score means in the humans' points, and whether a map of it passes where the judge fails."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.calibration.cells import Cells, dealt, spread
from ragnb.calibration.raters import Array
from ragnb.calibration.verdict import Settings
from ragnb.stats import Estimate, Recalibration

MOST_POINTS = 20
MOST_CELLS = 5000
COLUMNS = ["map", "mae", "mae_low", "mae_high", "share", "low", "high", "gain", "gain_low", "gain_high"]
COLUMNS += ["helps", "passes"]


def recalibration(cells: Cells, scale: tuple[float, float], settings: Settings) -> list[dict[str, Any]]:
    """Return raw scores, a constant, a line and a rising curve side by side, each judged out of fold."""
    tolerance, target, level = settings.tolerance, settings.target, settings.level
    delta = settings.acceptable_bias(scale)
    own = cells if cells.cluster is not None else dealt(cells, settings.seed)
    if own.n_clusters < 2:
        return []
    how: dict[str, Any] = {**own.how, "tolerance": tolerance}
    found = {k: stats.recalibrate(own.x, own.y, kind=k, level=level, **how) for k in ("linear", "isotonic")}
    line = found["linear"]
    rows = [_map("raw", line.raw_mae, line.raw_within)]
    rows += [_map("constant", line.constant_mae, line.constant_within)]
    for kind, part in found.items():
        low = stats.within_share(part.predicted, own.y, level=2 * level - 1, **how).low
        passes = part.helps and low >= target and part.within.value > part.constant_within.value
        passes = bool(passes and part.bias.low >= -delta and part.bias.high <= delta)
        rows.append(_map(kind, part.mae, part.within, part, passes))
    return rows


def _map(
    kind: str, error: Estimate, share: Estimate, part: Recalibration | None = None, passes: bool = False
) -> dict[str, Any]:
    row = {"map": kind, **spread("mae", error), "share": share.value, "low": share.low, "high": share.high}
    gain = spread("gain", part.gain) if part else dict.fromkeys(("gain", "gain_low", "gain_high"), np.nan)
    return row | gain | {"helps": bool(part and part.helps), "passes": passes}


def reliability(cells: Cells, scale: tuple[float, float], level: float, resamples: int, seed: int) -> pd.DataFrame:
    """Return E[human | judge] at each score with its interval, and the isotonic map with a bootstrap band."""
    place = _points(cells)
    rows = []
    for k in range(int(place.max(initial=-1)) + 1):
        part = cells.where(place == k)
        found = stats.clustered_mean(part.y, **part.how, ends=scale, level=level)
        score = float(np.average(part.x, weights=part.sums["counts"]))
        rows.append((score, found.value, found.low, found.high, found.n, found.n_clusters))
    frame = pd.DataFrame(rows, columns=["judge_score", "human", "low", "high", "n", "n_clusters"])
    human = frame["human"].to_numpy()
    weights = np.bincount(place, weights=cells.sums["counts"]).astype(float)
    low, high = _band(cells, place, human, weights, level, resamples, seed)
    curves = {"isotonic": rising(human[None, :], weights)[0], "isotonic_low": low, "isotonic_high": high}
    for at, (name, curve) in enumerate(curves.items(), 4):
        frame.insert(at, name, curve)
    return frame


def _points(cells: Cells) -> Any:
    """A point a cell: the judge's distinct scores, or twenty equal parts of the ratings."""
    values, at = np.unique(np.round(cells.x, 9), return_inverse=True)
    if len(values) <= MOST_POINTS:
        return at
    before = np.cumsum(np.bincount(at, weights=cells.counts))
    part = np.floor((before - 1e-9) / before[-1] * MOST_POINTS).astype(np.int64)
    return np.unique(part, return_inverse=True)[1][at]


def rising(means: Array, weights: Array) -> Array:
    """Return the weighted isotonic fit of each row.

    Examples
    --------
    >>> rising(np.array([[1.0, 3.0, 2.0]]), np.ones(3)).tolist()
    [[1.0, 2.5, 2.5]]
    """
    from scipy.optimize import isotonic_regression

    return np.array([isotonic_regression(row, weights=weights).x for row in means])


def _band(
    cells: Cells, place: Any, human: Array, weights: Array, level: float, resamples: int, seed: int
) -> tuple[Array, Array]:
    """Percentiles of the isotonic fit when clusters are drawn again; nan with one cluster."""
    k = len(human)
    own = dealt(replace(cells, group=np.asarray(place)), seed)
    units = own.n_clusters
    if units < 2 or resamples < 1 or own.cluster is None:
        return np.full(k, np.nan), np.full(k, np.nan)
    key = own.cluster * k + own.group
    rows = own.sums["counts"]
    parts = (np.bincount(key, w, minlength=units * k) for w in (rows, rows * own.y))
    size, sums = (part.reshape(units, k).astype(float) for part in parts)
    one = np.ones(units, dtype=np.int64)
    means = stats.resampled_means(one, size, sums, np.zeros_like(size), resamples=resamples, seed=seed)
    curves = rising(np.where(np.isnan(means), human, means), weights)
    low, high = np.quantile(curves, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.asarray(low), np.asarray(high)


def counted(cells: Cells, scale: tuple[float, float]) -> pd.DataFrame:
    """Return judge × human cells and their counts; ``attrs["step"]`` is what scores were rounded to, or 0."""
    step = 0.0
    x, y = cells.x, cells.y
    if len(np.unique(np.column_stack([x, y]), axis=0)) > MOST_CELLS:
        step = (scale[1] - scale[0]) / 100
        x, y = (np.round((v - scale[0]) / step) * step + scale[0] for v in (x, y))
    frame = pd.DataFrame({"judge_score": x, "human_score": y, "n": cells.counts.astype(np.int64)})
    frame = frame.groupby(["judge_score", "human_score"], as_index=False)[["n"]].sum()
    frame.attrs["step"] = step
    return frame
