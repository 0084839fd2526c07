"""The estimate of one difference with its interval, the word for it, and what a gate says of it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ragnb import stats
from ragnb.stats import Estimate
from ragnb.weights.total import Array

POWER = 0.8  # with which a difference of `detectable` size is found: the usual 80 %
OFTEN = 0.9  # how often an unchanged system should pass a gate that it is held to
# A smaller difference is what rounding leaves: 0.9 − 0.8 and 0.4 − 0.3 are not one number.
TIE = 1e-9
# With fewer questions changed, those seen tell little of how the others would.
_FEW_CHANGED = 20
OUTCOMES = ("better", "better_within", "same", "undecided", "worse_within", "worse")
# What lost questions could have turned.
FLATTERED = ("better", "better_within", "same", "worse_within")


def difference(
    values: Array,
    clusters: npt.NDArray[np.intp],
    weights: Array,
    *,
    width: float = np.inf,
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
    complete : bool
        The clusters are documents, and the entire corpus: see `ragnb.weighted_means`.

    Notes
    -----
    se is the delete-one-cluster jackknife's, t has max(G_eff − 1, 1) degrees of freedom. Where few questions
    differ, and where all differences are equal, se is at least `least_error`. One cluster has no interval, and
    none lies beyond the range.

    Examples
    --------
    >>> found = difference(np.array([0.1, 0.3, 0.2, 0.2]), np.arange(4), np.ones(4))
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.2, 0.07, 0.33)
    """
    mean = mean_of(values, clusters, weights, level, complete)
    if mean.n_clusters < 2:
        return replace(mean, low=np.nan, high=np.nan)
    se = mean.se
    if np.isfinite(width):
        changes = Changes.of(values[~np.isnan(values) & (weights > 0)] / width)
        # Of a complete corpus the questions are the units, else the clusters that t's degrees of freedom tell.
        g_eff = mean.n_eff if complete else mean.df + 1
        # Written with "not", so that an error of nan counts as no error.
        is_identical = not se > 1e-12 * max(1.0, abs(mean.value))
        if is_identical or changes.are_few:
            least = least_error(changes, mean.n_eff, g_eff, identical=is_identical)
            se = max(se, float(least) * width)
    if se > 0:
        half = float(stats.t_quantile(level, mean.df)) * se
    else:
        half = np.nan
    low = max(mean.value - half, -width)
    high = min(mean.value + half, width)
    return replace(mean, se=se, low=low, high=high)


class Changes(NamedTuple):
    """What differences say of how many questions change; each is a number, or an array of one for each weighting.

    Attributes
    ----------
    n : int
        The questions.
    changed : int
        Those with a difference.
    whole : bool
        Whether each difference is 0 or the whole range.
    total, squares : float
        Σd and Σd², d as a share of the range.
    """

    n: int
    changed: int
    whole: bool
    total: Any
    squares: Any

    @classmethod
    def of(cls, shares: Array) -> Changes:
        """Count the changes among differences that are shares of the range."""
        differs = np.abs(shares) > TIE
        is_whole = np.abs(np.abs(shares[differs]) - 1) <= TIE
        return cls(
            n=len(shares),
            changed=int(differs.sum()),
            whole=bool(is_whole.all()),
            total=shares.sum(),
            squares=stats.inner(shares, shares),
        )

    @property
    def are_few(self) -> bool:
        """Whether so few questions change that those seen tell little of how the others would."""
        return self.changed < _FEW_CHANGED and (2 * self.changed <= self.n or self.whole)


def least_error(changes: Changes, n_kish: float, g_eff: float, *, identical: Any = False) -> Array:
    """Return the least standard error of a mean difference of which few questions are the source, as a share.

    Two changes are added to those seen, of the mean square of those and one over the whole range: for one
    pass/fail metric without documents that is Bonett and Price's (2012, J. Educ. Behav. Stat. 37, 479–488),
    √(c + 2 − (Σd)²/(n + 2))/(n + 2). In documents each counts as `stats.harmonic` of the questions in one.

    Parameters
    ----------
    n_kish, g_eff : float
        Kish's effective number of questions, and the effective number of clusters.
    identical : bool or array of bool
        Whether all differences are equal: then nothing but the two is known.

    Examples
    --------
    >>> changes = Changes.of(np.array([1.0, -1.0] + [0.0] * 48))
    >>> round(float(least_error(changes, 50.0, 50.0)), 5), round(float(np.sqrt(4) / 52), 5)
    (0.03846, 0.03846)
    """
    # What the questions of one cluster are worth together.
    inside = float(stats.size_if_alike(g_eff, n_kish)) / g_eff
    # Single numbers, or arrays with one for each weighting.
    squares = np.where(identical, 0.0, changes.squares)
    total = np.where(identical, 0.0, changes.total)
    changed = np.where(identical, 0, changes.changed)
    # Two further changes, each as large as the mean square of those seen and one of the whole range (1).
    added = 2 * inside * (squares + 1) / (changed + 1)
    variance = (squares + added - total**2 / (changes.n + 2)) / (changes.n + 2) ** 2
    return np.asarray(np.sqrt(np.maximum(variance, 0.0) * changes.n / n_kish))


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
    if not np.isfinite(found.low):
        return np.nan
    return stats.t_p_value(found.value, found.se, found.df)


def detectable(found: Estimate, level: float) -> float:
    """Return the difference that a set like this one would show at 80 % power.

    Examples
    --------
    >>> round(detectable(Estimate(0.0, -0.1, 0.1, 0.05, 50, 50, df=49.0), 0.95), 3)
    0.143
    """
    if not np.isfinite(found.low):
        return np.nan
    to_exclude_0 = stats.t_quantile(level, found.df)
    # The quantile is two-sided, and power has one side.
    to_be_likely = stats.t_quantile(2 * POWER - 1, found.df)
    return float(to_exclude_0 + to_be_likely) * found.se


def outcome_of(
    low: float, high: float, *, margin: float, better: str, p: float = 0.0, alpha: float = 0.05
) -> str:
    """Return the word for an interval of candidate − baseline.

    Parameters
    ----------
    margin : float
        *same* is inside ± margin, as are ``better_within`` and ``worse_within``, which exclude 0; nan has none.
    better : {"higher", "lower"}
        Which sign of the difference is good.
    p : float
        The adjusted p-value that must be below `alpha` for better or worse.

    Returns
    -------
    str
        One of `OUTCOMES`.

    Examples
    --------
    >>> outcome_of(0.01, 0.09, margin=0.05, better="higher"), outcome_of(-0.01, 0.04, margin=0.05, better="higher")
    ('better', 'same')
    >>> outcome_of(-0.04, -0.038, margin=0.05, better="higher")
    'worse_within'
    """
    if not (np.isfinite(low) and np.isfinite(high)):
        return "undecided"
    is_within = -margin <= low and high <= margin
    if (low > 0 or high < 0) and p < alpha:
        if (low > 0) == (better == "higher"):
            word = "better"
        else:
            word = "worse"
        if is_within:
            return f"{word}_within"
        return word
    if is_within:
        return "same"
    return "undecided"


class Verdict(enum.IntEnum):
    """What a gate says of a difference, the worst last; the values are the exit codes of the command line."""

    PASSED = 0
    NOT_PROVEN = 3
    BLOCKED = 1


def gate_verdict(
    row: Mapping[Any, Any], policy: Literal["margin", "strict", "all"] = "margin"
) -> Verdict:
    """Return what a gate says of one row of `compare`.

    Words are of the table's level, red is of a tenth of its error (99.5 % of 95 %): of ten releases in a row, an
    unchanged system would be red in one chain of five at 95 %, in fewer than one of twenty-two at 99.5 %.

    Parameters
    ----------
    row : mapping
        ``outcome, value, low, high, p, margin, level, better``.
    policy : {"margin", "strict", "all"}
        ``margin`` lets a loss inside ± margin pass, ``strict`` blocks any that the narrower level shows. ``all``
        is ``margin`` for each metric alone: which rows are asked is the caller's.

    Examples
    --------
    >>> row = {"outcome": "worse_within", "value": -0.039, "low": -0.040, "high": -0.038, "p": 1e-9}
    >>> row |= {"margin": 0.05, "level": 0.95, "better": "higher"}
    >>> gate_verdict(row).name, gate_verdict(row, "strict").name
    ('PASSED', 'BLOCKED')
    """
    outcome = row["outcome"]
    if outcome == "undecided":
        return Verdict.NOT_PROVEN
    if outcome not in ("worse", "worse_within"):
        return Verdict.PASSED
    # Red is of a tenth of the error of words.
    is_sure = row["p"] < (1 - row["level"]) / 10
    if outcome == "worse_within":
        if policy == "strict" and is_sure:
            return Verdict.BLOCKED
        return Verdict.PASSED
    if row["better"] == "higher":
        least_loss = -row["high"]
    else:
        least_loss = row["low"]
    if is_sure or least_loss > row["margin"]:
        return Verdict.BLOCKED
    return Verdict.NOT_PROVEN


def pass_chance(row: Mapping[Any, Any]) -> tuple[float, float]:
    """Return with what probability an unchanged system passes the gate, and how many questions make that 90 %.

    T_df(margin/se − t), t the quantile of the interval; the questions are those whose standard error would do.

    Examples
    --------
    >>> row = {"margin": 0.05, "se": 0.022, "df": 39.0, "level": 0.95, "n_common": 200}
    >>> chance, needed = pass_chance(row)
    >>> round(chance, 2), int(needed)
    (0.6, 423)
    """
    from scipy.special import ndtri, stdtr

    if not (row["se"] > 0 and np.isfinite(row["margin"]) and row["df"] > 0):
        return np.nan, np.nan
    quantile = float(stats.t_quantile(row["level"], row["df"]))
    chance = float(stdtr(row["df"], row["margin"] / row["se"] - quantile))
    # How many times as small the standard error has to be; questions go with its square.
    wanted = (quantile + float(ndtri(OFTEN))) * row["se"] / row["margin"]
    return chance, float(np.ceil(row["n_common"] * wanted**2))
