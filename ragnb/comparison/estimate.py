"""Paired differences → estimate, interval, p-value and outcome."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ragnb import stats
from ragnb.stats.estimates import Estimate, packed, sums_by
from ragnb.weights.columns import Array

POWER = 0.8
_FEW_CHANGED = 20
TIE = 1e-9
"""A smaller difference is none: what rounding leaves."""


def difference(
    values: Array,
    clusters: npt.NDArray[np.intp],
    weights: Array,
    *,
    width: float = np.inf,
    binary: bool = False,
    level: float = 0.95,
    complete: bool = False,
) -> Estimate:
    """Return the mean of paired differences with its clustered interval, value ± t·se.

    Parameters
    ----------
    values : (Q,) float
        Candidate − baseline, nan where a side has no score.
    width : float
        Of the metric's range.
    binary : bool
        Both scores are 0 or 1.
    complete : bool
        The clusters are documents, and the entire corpus: see `ragnb.weighted_means`.

    Notes
    -----
    se is the delete-one-cluster jackknife's, t has max(G_eff − 1, 1) degrees of freedom. Where fewer than 20 of n
    pass/fail questions differ, it is at least √(c + 2 − (ΣD)²/(n + 2))/(n + 2), c those that differ (Bonett and
    Price 2012, J. Educ. Behav. Stat. 37, 479–488): the jackknife alone covers 71 % then. Differences all equal
    have no spread to judge by and take that floor for c = 0, on the metric's range. One cluster has no interval.

    Examples
    --------
    >>> found = difference(np.array([0.1, 0.3, 0.2, 0.2]), np.arange(4), np.ones(4))
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.2, 0.07, 0.33)
    """
    found = mean_of(values, clusters, weights, level, complete)
    if found.n_clusters < 2:
        return replace(found, low=np.nan, high=np.nan)
    there = values[~np.isnan(values) & (weights > 0)] / width if np.isfinite(width) else np.empty(0)
    n, se = len(there), found.se
    changed = int((np.abs(there) > TIE).sum())
    if n and binary and changed < _FEW_CHANGED:
        se = max(se, float(np.sqrt(changed + 2 - there.sum() ** 2 / (n + 2))) / (n + 2) * width)
    elif n and not se > 1e-12 * max(1.0, abs(found.value)):
        se = float(np.sqrt(2)) / (n + 2) * width
    half = float(stats.t_quantile(level, found.df)) * se if se > 0 else np.nan
    return replace(found, se=se, low=found.value - half, high=found.value + half)


def mean_of(
    values: Array, clusters: npt.NDArray[np.intp], weights: Array, level: float, complete: bool
) -> Estimate:
    """Return the mean of one side, or of differences, over clusters or over documents that are all there are."""
    mean = stats.stratified_mean if complete else stats.clustered_mean
    return mean(values, clusters, weights=weights, level=level)


def p_value(found: Estimate) -> float:
    """Return the two-sided p-value of no difference: p ≤ α exactly where the interval at 1 − α excludes 0.

    Examples
    --------
    >>> round(p_value(Estimate(0.2, 0.07, 0.33, 0.041, 4, 4, df=3.0)), 3)
    0.016
    """
    from scipy.special import stdtr

    if not np.isfinite(found.low):
        return np.nan
    return float(2 * stdtr(found.df, -abs(found.value) / found.se))


def detectable(found: Estimate, level: float) -> float:
    """Return the difference that a set like this one would show at 80 % power.

    Examples
    --------
    >>> round(detectable(Estimate(0.0, -0.1, 0.1, 0.05, 50, 50, df=49.0), 0.95), 3)
    0.143
    """
    if not np.isfinite(found.low):
        return np.nan
    times = stats.t_quantile(level, found.df) + stats.t_quantile(2 * POWER - 1, found.df)
    return float(times) * found.se


def outcome_of(low: float, high: float, *, margin: float, better: str, p: float = 0.0, alpha: float = 0.05) -> str:
    """Return the word for an interval of candidate − baseline.

    Parameters
    ----------
    margin : float
        *same* is inside ± margin; nan has no *same*.
    better : {"higher", "lower"}
        Which sign of the difference is good.
    p : float
        The adjusted p-value that must be below `alpha` for better or worse.

    Examples
    --------
    >>> outcome_of(0.01, 0.09, margin=0.05, better="higher"), outcome_of(-0.01, 0.04, margin=0.05, better="higher")
    ('better', 'same')
    """
    if not (np.isfinite(low) and np.isfinite(high)):
        return "undecided"
    if -margin <= low and high <= margin:
        return "same"
    if (low > 0 or high < 0) and p < alpha:
        return "better" if (low > 0) == (better == "higher") else "worse"
    return "undecided"


def all_questions(
    new: Array, old: Array, clusters: npt.NDArray[np.intp], weights: Array, level: float
) -> Estimate:
    """Return the difference of two means over all questions of each side, clusters shared.

    Where few questions are common, it uses those of one side too: delete-one-cluster jackknife of the difference
    of the two means.
    """
    sides = [(np.where(np.isnan(x), 0.0, weights), np.nan_to_num(x)) for x in (new, old)]
    columns = np.stack([part for v, x in sides for part in (v, v * x)], axis=1)
    sums = sums_by(packed(clusters), columns)

    def of(s: Array) -> Array:
        return np.asarray(s[..., 1] / s[..., 0] - s[..., 3] / s[..., 2])

    return stats.jackknife(of, sums, sums[:, 0] + sums[:, 2], level=level)
