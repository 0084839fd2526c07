"""Statistical formulas on arrays, without frames, names or labels: means, agreement, sample sizes, decisions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragnb.errors import RagnbError, unknown

__all__ = [
    "MAPS",
    "Corrected",
    "Estimate",
    "LabelsNeeded",
    "anova_icc",
    "balanced_order",
    "best_constant",
    "bias",
    "binomial_power",
    "chance_floor",
    "clustered_mean",
    "contrast",
    "design_effect",
    "draw_test",
    "fit_map",
    "flip_probability",
    "grouped_folds",
    "harmonic",
    "holm",
    "human_ceiling",
    "jackknife",
    "jackknife_se",
    "kendall",
    "kendall_of_means",
    "kendall_within",
    "kish",
    "krippendorff_alpha",
    "label_budget",
    "labels_needed",
    "leave_one_out",
    "limits_of_agreement",
    "mae",
    "mean_interval",
    "p_above",
    "pooled_variance",
    "ppi_difference",
    "ppi_jackknife",
    "quadratic_kappa",
    "questions_to_decide",
    "recalibrate",
    "resampled_means",
    "round_half_up",
    "sample_size_exact",
    "sample_size_normal",
    "side_is_settled",
    "size_if_alike",
    "skewed_df",
    "slope_on_mean",
    "stratified_mean",
    "stratified_se",
    "t_quantile",
    "unseen_failures",
    "widening",
    "wilson",
    "wilson_size",
    "within",
    "within_share",
]

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]
Values = npt.ArrayLike
Labels = (
    npt.ArrayLike | None
)  # also counts: how many rows a row represents, ≥ 1 (in clusters also a fraction)
_NOISE = 1e-9  # a smaller standard error, as a share of the range, is rounding error: the values are identical
_IDENTICAL = 1e-12  # likewise, as a share of the value, of a range that is wide
_WIDE = 1e6  # a range so many times as wide as the scores are apart tells nothing of them
_SMALLEST = 1e-300
LOST_IN_ROUNDING = 1e-13  # of the largest weight: what a lighter one adds to a sum is lost in it
_EULER = 0.5772156649015329
_BLOCK = 2_000_000  # counts of the bootstrap held at once: 16 MB of resamples × units

# Means: a clustered ratio mean, its standard error and interval, of many at once


def t_quantile(level: float, df: npt.ArrayLike) -> Array:
    """Return the two-sided Student t quantile at `level` for (fractional) degrees of freedom.

    Examples
    --------
    >>> round(float(t_quantile(0.95, 9)), 3)
    2.262
    """
    from scipy.special import stdtrit

    return np.asarray(stdtrit(np.asarray(df, dtype=float), 0.5 + level / 2), dtype=float)


def kish(sum_v: npt.ArrayLike, sum_v2: npt.ArrayLike) -> Array:
    """Return Kish's effective sample size (Σv)²/Σv², 0 without weight.

    Examples
    --------
    >>> float(kish(4.0, 4.0))
    4.0
    """
    top: Array = np.asarray(sum_v, dtype=float) ** 2
    bottom = np.asarray(sum_v2, dtype=float)
    return np.asarray(np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0))


def jackknife_se(total: Array, n_clusters: Array, inflated: Array) -> Array:
    """Return the delete-one-cluster jackknife standard error of a ratio mean, centred on the mean.

    Parameters
    ----------
    total : array
        A = Σ a_g, the weight of all clusters.
    n_clusters : array
        G, the clusters with a_g > 0.
    inflated : array
        Σ (u_g / (1 − a_g/A))², with u_g the cluster's weighted residual sum.

    Returns
    -------
    array
        sqrt((G−1)/G · inflated) / A; nan where G < 2, never 0 for want of clusters.

    Notes
    -----
    Deleting cluster g moves the mean by −u_g / (A − a_g), so the sum above is the jackknife itself.

    Examples
    --------
    >>> round(float(jackknife_se(np.array(4.0), np.array(4.0), np.array(16 / 9))), 4)
    0.2887
    """
    usable = (n_clusters >= 2) & (total > 0)
    g = np.where(usable, n_clusters, 2.0)
    a = np.where(usable, total, 1.0)
    return np.where(usable, np.sqrt((g - 1) / g * np.maximum(inflated, 0.0)) / a, np.nan)


def wilson(p: Array, n: Array, z: Array) -> tuple[Array, Array]:
    """Return Wilson's score bounds for a proportion `p` at (fractional) size `n` and quantile `z`.

    Wilson (1927), J. Am. Stat. Assoc. 22, 209–212. The bounds are in [0, 1].

    Examples
    --------
    >>> low, high = wilson(np.array(0.5), np.array(10.0), np.array(1.959963984540054))
    >>> round(float(low), 4), round(float(high), 4)
    (0.2366, 0.7634)
    """
    z2n = z**2 / n
    centre = (p + z2n / 2) / (1 + z2n)
    half = z * np.sqrt(np.maximum(p * (1 - p) / n + z2n / (4 * n), 0.0)) / (1 + z2n)
    low = np.where(
        p == 0, 0.0, np.clip(centre - half, 0.0, 1.0)
    )  # rounding leaves 1e-17 of the difference
    high = np.where(p == 1, 1.0, np.clip(centre + half, 0.0, 1.0))
    return low, high


def harmonic(x: npt.ArrayLike) -> Array:
    """Return the harmonic number 1 + 1/2 + … + 1/x of (fractional) sizes x ≥ 0.

    Examples
    --------
    >>> harmonic([1.0, 2.0, 4.0]).round(4).tolist()
    [1.0, 1.5, 2.0833]
    """
    from scipy.special import digamma

    return np.asarray(digamma(np.asarray(x, dtype=float) + 1.0), dtype=float) + _EULER


def size_if_alike(g_eff: npt.ArrayLike, n_kish: npt.ArrayLike) -> Array:
    """Return how many independent questions clustered ones are worth that are all alike: G·H(K/G).

    H(m) is what m questions of one cluster are worth at an intra-cluster correlation of .5 where all are right:
    the beta-binomial distribution with ρ = .5 has that slope of its log-likelihood at p = 1.

    Examples
    --------
    >>> size_if_alike(10.0, 80.0).round(2).item(), size_if_alike(10.0, 10.0).item()
    (27.18, 10.0)
    """
    clusters = np.asarray(g_eff, dtype=float)
    inside = np.divide(
        n_kish, clusters, out=np.ones(np.broadcast(n_kish, clusters).shape), where=clusters > 0
    )
    return np.asarray(clusters * harmonic(np.maximum(inside, 1.0)))


def mean_interval(
    value: Any,
    se: Any,
    g_eff: Any,
    n_kish: Any,
    ranges: tuple[Any, Any],
    *,
    binary: Any = False,
    sum_h4: Any = None,
    elsewhere: Any = None,
    level: Any = 0.95,
    df: Array | None = None,
    fraction: Any = None,
) -> tuple[Array, Array]:
    """Return the interval of a clustered mean.

    Parameters
    ----------
    value, se : array
        The mean and its jackknife standard error; nan gives a nan interval.
    g_eff : array
        1/Σh², the effective number of clusters; t has max(g_eff − 1, 1) degrees of freedom.
    n_kish : array
        Kish's effective number of samples. Where se is 0, `size_if_alike` of it and `g_eff` represents n.
    ranges : (array, array)
        The ends of the metric's range. Finite: Wilson at n = p(1−p)/se² on the range rescaled to 0–1, with t
        in place of z, of fewer degrees of freedom where p is near an end and the clusters' sums are skewed.
        Else, and where the range is a million times as wide as the scores are apart: value ± t·se, within it.
    binary : bool or array of bool
        Whether every score lies at an end of the range. Then n is at most Kish's, as no design tells more than
        independent samples would.
    sum_h4 : array, optional
        Σh⁴ over the clusters; None is that of equal ones.
    elsewhere : (array, array), optional
        Of scores of which most lie at one end: how many lie elsewhere, and how many scores there are. Blemishes
        seen tell little of the rare failure unseen, so that n is drawn towards Kish's where they are few.
    level : float
        In (0, 1).
    df : array, optional
        Degrees of freedom of a standard error that is not the jackknife's, see `stratified_se`: Wilson's n is then
        p(1−p)/se², Kish's where se is 0, and nothing is taken off.
    fraction : float or array, optional
        The information fraction, samples at hand ÷ the most there will be, where the interval is looked at again
        as samples come in. Then both ends hold at every look together: fourth-root rule, see Notes. Above 1 the
        plan is spent, and both ends are nan. None is an interval for one look.

    Notes
    -----
    Near an end of its range a mean is skewed, and Wilson's interval with t(G_eff − 1) then covers too seldom. Over
    clusters the variance of a variance goes with Σh⁴ and the excess kurtosis, so that the degrees of freedom that
    match it (Satterthwaite 1946, Biometrics Bulletin 2, 110–114; Bell and McCaffrey 2002, Survey Methodology 28,
    169) are 1/(1/(G_eff − 1) + k·G_eff²Σh⁴). In place of a fourth moment, which few clusters tell badly, stands
    what the range implies: with r = G_eff/n the share of the variance that 0/1 clusters would have,
    k = 1.5 (1−2p)²/pq · r(1 − r), with p at Wilson's centre; 1 − r lets go of it for 0/1 clusters, whose variance
    follows from their mean. G_eff²Σh⁴ counts as at least that of equal clusters and at most twice that.

    Where all scores are alike, the interval is that of Clopper and Pearson (1934) at `size_if_alike`.

    Fourth-root rule: a margin wider by fraction^(−1/4), at half the error a side (t(.975) where a side has 5 %),
    misses a true value at any of 15 looks on a Brownian path in 5.0 % of cases, of 60 in 5.8 %; `widening` is its
    cost. Where the plan is raised after looking, it is 7 % (1.5 times) to 8.6 % (twice).

    Examples
    --------
    >>> one = np.array(1.0)
    >>> low, high = mean_interval(one, 0 * one, 20 * one, 20 * one, (0 * one, one))
    >>> round(float(low), 3), float(high)
    (0.832, 1.0)
    """
    bottom, top = ranges
    kept = 1.0 if fraction is None else np.sqrt(fraction)  # the effective n after repeated looks
    level = level if fraction is None else (1 + level) / 2
    df0 = np.maximum(g_eff - 1, 1.0)
    t = t_quantile(level, df0 if df is None else np.maximum(df, 1.0))
    has_ends = np.isfinite(bottom) & np.isfinite(top)
    width = np.where(has_ends, top - bottom, 1.0)
    base = np.where(has_ends, bottom, 0.0)
    apart = 4 * se * np.sqrt(n_kish)  # about what the scores are apart
    is_wide = (
        has_ends & (width > _WIDE) & (se > _IDENTICAL * np.abs(value)) & (width > _WIDE * apart)
    )
    finite = has_ends & ~is_wide
    p = np.clip((value - base) / width, 0.0, 1.0)
    s2 = (se / width) ** 2
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        varies = (s2 > _NOISE**2) & (p > 0) & (p < 1)
        n = np.where(varies, p * (1 - p) / s2, n_kish)
        quantile = t
        if df is None:
            n = np.where(binary, np.minimum(n, n_kish), _towards_kish(n, n_kish, elsewhere, binary))
            quantile = t_quantile(level, skewed_df(p, n, t, g_eff, df0, sum_h4))
            # All alike: Wilson's bound at this quantile is that of Clopper and Pearson.
            alike = kept * size_if_alike(g_eff, n_kish)
            exact = np.sqrt(alike * (((1 - level) / 2) ** (-1 / alike) - 1))
            n = np.where(varies, n, alike / kept)
            quantile = np.where(varies, quantile, exact)
        low, high = wilson(p, kept * n, quantile)
    margin = t * se / np.sqrt(kept)
    least = np.where(has_ends, bottom, -np.inf)
    most = np.where(has_ends, top, np.inf)
    low = np.where(finite, base + width * low, np.maximum(value - margin, least))
    high = np.where(finite, base + width * high, np.minimum(value + margin, most))
    known = np.isfinite(value) & np.isfinite(se) & (kept <= 1)
    return np.where(known, low, np.nan), np.where(known, high, np.nan)


def _towards_kish(n: Array, n_kish: Array, elsewhere: Any, binary: Any) -> Array:
    """Return Wilson's n, drawn towards Kish's where most scores lie at one end and few elsewhere."""
    if elsewhere is None:
        return n
    few, scores = elsewhere
    share = np.divide(few, scores, out=np.ones(np.shape(few)), where=np.asarray(scores) > 0)
    drawn = np.clip(1.5 - few / 20, 0.0, 1.0) * np.clip(2 - 4 * share, 0.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = np.where(n_kish > 0, n * (n_kish / n) ** drawn, n)
    return np.where((n > n_kish) & (drawn > 0) & ~np.asarray(binary), between, n)


def skewed_df(p: Any, n: Any, t: Any, g_eff: Any, df0: Any, sum_h4: Any = None) -> Array:
    """Return the degrees of freedom of a variance over clusters whose sums are skewed: see `mean_interval`.

    Parameters
    ----------
    p : array
        The mean as a share of the range.
    n, g_eff : array
        The effective numbers of samples and of clusters.
    t, df0 : array
        Student's quantile at the degrees of freedom `df0` without skewness.
    sum_h4 : array, optional
        Σh⁴ over the clusters; None is that of equal ones.

    Examples
    --------
    >>> round(float(skewed_df(0.95, 79.0, 2.14, 15.0, 14.0)), 1)
    4.1
    """
    r = np.minimum(g_eff / n, 1.0)
    shrink = t**2 / n
    centre = (p + shrink / 2) / (1 + shrink)
    kurtosis = 1.5 * (1 - 2 * centre) ** 2 / (centre * (1 - centre)) * r * (1 - r)
    spread = 1 / df0 if sum_h4 is None else np.clip(g_eff**2 * sum_h4, 1 / df0, 2 / df0)
    return np.asarray(np.maximum(1 / (1 / df0 + kurtosis * spread), 1.0))


def widening(fraction: float, df: float, *, level: float = 0.95) -> float:
    """Return the factor by which the fourth-root rule of `mean_interval` widens the margin of a single look.

    Examples
    --------
    >>> round(widening(1.0, np.inf, level=0.9), 2), round(widening(1 / 16, np.inf, level=0.9), 2)
    (1.19, 2.38)
    """
    return float(t_quantile((1 + level) / 2, df) / t_quantile(level, df) / fraction**0.25)


def resampled_means(
    sizes: npt.NDArray[np.int64],
    weights: Array,
    sums: Array,
    variances: Array,
    *,
    resamples: int,
    seed: int,
) -> Array:
    """Return bootstrap means: units drawn with replacement, as many as there are.

    Parameters
    ----------
    sizes : (U,) int
        1 for a cluster; for rows that are clusters of their own and share a unit, how many they are.
    weights, sums, variances : (U, W) float
        Σv, Σvx and Var(vx) of one draw from a unit; the variance of a cluster is 0, as it is drawn whole.
    resamples : int
    seed : int
        The same seed gives the same numbers.

    Returns
    -------
    (resamples, W) float
        Σvx / Σv of each resample; nan where nothing with weight was drawn.

    Notes
    -----
    The counts are multinomial, which is the bootstrap itself for clusters. What c draws from a unit of several
    rows add up to is known by its mean and variance alone: it is drawn as normal, with c times both.

    Examples
    --------
    >>> one, zero = np.ones((3, 1)), np.zeros((3, 1))
    >>> resampled_means(np.array([1, 1, 1]), one, one / 2, zero, resamples=2, seed=0).tolist()
    [[0.5], [0.5]]
    """
    rng = np.random.default_rng(seed)
    means = np.full((resamples, weights.shape[1]), np.nan)
    units, total = len(sizes), int(sizes.sum())
    block = max(1, _BLOCK // max(units, 1))
    for start in range(0, resamples if total else 0, block):
        part = means[start : start + block]
        if total > units:  # multinomial; drawn one by one where that is faster
            drawn = rng.multinomial(total, sizes / total, size=len(part)).astype(float)
        else:
            picked = (
                rng.integers(0, units, (len(part), total)) + units * np.arange(len(part))[:, None]
            )
            drawn = (
                np.bincount(picked.ravel(), minlength=len(part) * units)
                .reshape(-1, units)
                .astype(float)
            )
        bottom, top = drawn @ weights, drawn @ sums
        if variances.any():
            top += np.sqrt(drawn @ variances) * rng.standard_normal(part.shape)
        np.divide(top, bottom, out=part, where=bottom > 0)
    return means


# Estimates with interval and n: agreement with people, corrected means, and the sample sizes they need


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval, se and sample sizes; nan if missing.

    Of a mean, `df` is that of its t and `n_eff` Kish's effective number of rows.

    Examples
    --------
    >>> Estimate(0.5, 0.2, 0.8, 0.1, 20, 5).n_clusters
    5
    """

    value: float
    low: float
    high: float
    se: float
    n: int
    n_clusters: int
    df: float = float("nan")
    n_eff: float = float("nan")
    sum_h4: float = float("nan")


_POOLED, _FEWEST = 5.0, 5
NONE = Estimate(np.nan, np.nan, np.nan, np.nan, 0, 0)


class Rows(NamedTuple):
    """Rows without gaps: a row represents `inside` rows of a cluster, a cluster `times` clusters.

    Rows without a cluster are clusters of their own: a row that represents 9 is 9 clusters of one row. So every
    sum over rows is `times` @ (sums by `code`), and leaving out one cluster takes one of those sums away.
    """

    columns: list[Array]
    code: Codes
    inside: Array
    times: Array
    weights: Array
    kept: Flags

    @property
    def counts(self) -> Array:
        """The number of rows that each row represents."""
        return self.inside * self.times[self.code]

    def sums(self, *columns: Array) -> Array:
        """Return the sums of columns by cluster."""
        return sums_by(self.code, self.inside[:, None] * np.stack(columns, axis=1))

    def jackknife(
        self, statistic: Callable[[Array], Array], *columns: Array, **options: Any
    ) -> Estimate:
        """Return the jackknife of a function of the sums of columns; `options` are those of `jackknife`."""
        sizes = self.sums(np.ones(len(self.code)))[:, 0]
        return jackknife(statistic, self.sums(*columns), sizes, times=self.times, **options)


def relative(weights: Array) -> Array:
    """Return weights relative to the largest, so that none overflows or underflows.

    The divisor is the power of two below the largest, which changes no digit.

    Examples
    --------
    >>> relative(np.array([3.0, 0.5, 0.0])).tolist()
    [1.5, 0.25, 0.0]
    """
    largest = float(weights.max(initial=0.0))
    shares: Array = weights / (2.0 ** (np.frexp(largest)[1] - 1) if largest > 0 else 1.0)
    shares[shares < _SMALLEST] = 0.0  # its inverse would overflow
    return shares


def complete_rows(
    columns: Sequence[Values],
    clusters: Labels = None,
    counts: Labels = None,
    weights: Labels = None,
) -> Rows:
    """Return the rows that have every value and a weight above 0, with what each represents.

    Columns of different lengths, infinite values, and clusters or counts of another length raise RagnbError.

    Examples
    --------
    >>> complete_rows([[1, 2]], None, [3, 1]).times.tolist()
    [3.0, 1.0]
    >>> complete_rows([[1, 2]], ["a", "a"], [3, 1]).inside.tolist()
    [3.0, 1.0]
    """
    values = checked(*columns)
    first = values[0]
    size = np.ones(len(first)) if counts is None else np.asarray(counts, dtype=float)
    if size.shape != first.shape or not (size > 0).all() or (clusters is None and (size < 1).any()):
        raise RagnbError(
            "counts must be one number per row, 1 or more (above 0 in clusters): how many rows each row represents"
        )
    weight = np.ones(len(first)) if weights is None else relative(np.asarray(weights, dtype=float))
    kept = (weight > 0) & ~np.any(np.isnan(values), axis=0)
    kept &= weight > LOST_IN_ROUNDING * weight[kept].max(initial=0.0)
    code, size, one = (
        packed(cluster_codes(clusters, len(first))[kept]),
        size[kept],
        np.ones(int(kept.sum())),
    )
    inside, times = (
        (one, size) if clusters is None else (size, np.ones(int(code.max(initial=-1)) + 1))
    )
    return Rows([column[kept] for column in values], code, inside, times, weight[kept], kept)


def checked(*columns: Values) -> list[Array]:
    """Return columns as floats, of one length and finite where they are not missing.

    Examples
    --------
    >>> checked([1, None], [2, 3])
    [array([ 1., nan]), array([2., 3.])]
    """
    values = [np.asarray(column, dtype=float) for column in columns]
    first, last = values[0], values[-1]
    if first.shape != last.shape or first.ndim != 1:
        raise RagnbError(
            f"judge has shape {first.shape}, human {last.shape}; give one value per row in both"
        )
    if any(np.isinf(column).any() for column in values):
        raise RagnbError(
            "judge or human holds an infinite value; a rating is a finite number or missing"
        )
    return values


def cluster_codes(clusters: Labels, n: int) -> Codes:
    """Return clusters as codes 0 … G−1; None makes every row its own cluster.

    Examples
    --------
    >>> cluster_codes(["b", "a", "b"], 3).tolist()
    [1, 0, 1]
    """
    if clusters is None:
        return np.arange(n)
    names = np.asarray(clusters)
    if len(names) != n:
        raise RagnbError(
            f"clusters has {len(names)} rows, the values have {n}; give one cluster per row"
        )
    return packed(names)


def packed(names: npt.NDArray[Any]) -> Codes:
    """Return labels as codes 0 … G−1 in their order; small whole numbers need no sorting.

    Examples
    --------
    >>> packed(np.array([7, 2, 7])).tolist()
    [1, 0, 1]
    """
    if (
        names.dtype.kind in "iu"
        and names.size
        and names.min() >= 0
        and names.max() < 4 * names.size + 64
    ):
        there = np.bincount(names) > 0
        return np.asarray((np.cumsum(there) - 1)[names], dtype=np.intp)
    return np.unique(names, return_inverse=True)[1]


def sums_by(codes: Codes, rows: Array) -> Array:
    """Return the column sums of `rows` (n × k) by code, as an array G × k.

    Examples
    --------
    >>> sums_by(np.array([0, 1, 0]), np.array([[1.0], [2.0], [3.0]])).tolist()
    [[4.0], [2.0]]
    """
    size = int(codes.max()) + 1 if len(codes) else 0
    sums = [np.bincount(codes, weights=column, minlength=size) for column in rows.T]
    return np.array(sums, dtype=float).reshape(rows.shape[1], size).T


def mean_squares(x: Array, code: Codes, counts: Array) -> tuple[float, float, float]:
    """Return the one-way analysis of variance: mean squares between and within clusters, and m₀, a typical size.

    m₀ = (n − Σm²/n)/(G − 1). Donner and Koval (1980), Biometrics 36, 19–25.

    Examples
    --------
    >>> mean_squares(np.array([1.0, 3.0, 2.0, 2.0]), np.array([0, 0, 1, 1]), np.ones(4))
    (0.0, 1.0, 2.0)
    """
    m = np.bincount(code, weights=counts).astype(float)
    n, g = float(m.sum()), len(m)
    mean = np.bincount(code, weights=counts * x) / m
    between, inside = float(m @ (mean - counts @ x / n) ** 2), float(counts @ (x - mean[code]) ** 2)
    return between / (g - 1), inside / (n - g), (n - float(m @ m) / n) / (g - 1)


def t_interval(
    value: float, se: float, df: float, level: float, *, bounded: bool = False
) -> tuple[float, float]:
    """Return value ± t·se; on Fisher's z, atanh(value), where `bounded` says that the value is in (−1, 1).

    Rows that are all equal have no spread to judge by: se 0 gives nan, never an interval of no width.

    Examples
    --------
    >>> [round(end, 3) for end in t_interval(0.5, 0.1, 19, 0.95, bounded=True)]
    [0.264, 0.68]
    """
    t = float(t_quantile(level, max(df, 1.0)))
    if not np.isfinite(value) or not se > 1e-12 * max(1.0, abs(value)):
        return np.nan, np.nan
    if not bounded:
        return value - t * se, value + t * se
    if abs(value) >= 1 - 1e-12:
        return np.nan, np.nan
    z, half = np.arctanh(value), t * se / (1 - value**2)
    return float(np.tanh(z - half)), float(np.tanh(z + half))


def t_p_value(value: float, se: float, df: float) -> float:
    """Return the two-sided p-value of a value whose standard error has so many degrees of freedom.

    Examples
    --------
    >>> round(t_p_value(0.2, 0.1, 19), 3)
    0.06
    """
    from scipy.special import stdtr

    return float(2 * stdtr(df, -abs(value) / se))


def jackknife(
    statistic: Callable[[Array], Array],
    parts: Array,
    sizes: Array,
    *,
    whole: Array | None = None,
    times: Array | None = None,
    bounded: bool = False,
    level: float = 0.95,
) -> Estimate:
    """Return the delete-one-cluster jackknife of a function of sums, with G extra evaluations at once.

    Parameters
    ----------
    statistic : callable
        From sums (…, k) to values (…).
    parts : array, shape (G, k)
        What each cluster takes away from the sums when it is left out.
    sizes : array, shape (G,)
        Rows a cluster; t has max(1/Σh² − 1, 1) degrees of freedom, h the shares of the rows.
    whole : array, shape (k,), optional
        The sums over all rows, where they are not those of the parts: pairs of rows of two clusters are lost with
        either of them.
    times : array, shape (G,), optional
        How many clusters each represents; None is one.
    bounded : bool
        The statistic is in (−1, 1): the interval is made on Fisher's z.

    Returns
    -------
    Estimate
        Without an interval where the statistic has no value without one of the clusters.

    Notes
    -----
    se² = (G−1)/G · Σ (θ₍g₎ − θ)², centred on θ. Efron and Tibshirani (1993), An Introduction to the Bootstrap,
    chapter 11.

    Examples
    --------
    >>> mean = lambda s: s[..., 1] / s[..., 0]
    >>> found = jackknife(mean, np.array([[2.0, 1.0], [2.0, 2.0], [2.0, 0.0]]), np.full(3, 2.0))
    >>> found.value, round(found.se, 4)
    (0.5, 0.2887)
    """
    many = np.ones(len(sizes)) if times is None else times
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = many @ parts if whole is None else whole
        value, without = float(statistic(sums)), statistic(sums - parts)
    g, n = round(float(many.sum())), float(many @ sizes)
    se = float(np.sqrt((g - 1) / g * (many @ (without - value) ** 2))) if g > 1 else np.nan
    df = n**2 / float(many @ sizes**2) - 1 if n else 0.0
    low, high = t_interval(value, se, df, level, bounded=bounded)
    return Estimate(value, low, high, se if np.isfinite(se) else np.nan, round(n), g)


def ratio(sums: Array) -> Array:
    """Return the second sum over the first: the mean."""
    return np.asarray(sums[..., 1] / sums[..., 0])


def clustered_mean(
    values: Values,
    clusters: Labels = None,
    *,
    weights: Labels = None,
    counts: Labels = None,
    ends: tuple[float, float] = (-np.inf, np.inf),
    level: float = 0.95,
    fraction: float | None = None,
) -> Estimate:
    """Return the mean of clustered rows, without nan rows.

    Parameters
    ----------
    values : array, shape (n,)
        One value per row.
    clusters : array, shape (n,), optional
        Any labels; None makes every row its own cluster.
    weights : array, shape (n,), optional
        Weights ≥ 0, not frequencies; of rows drawn with unequal chances 1 / inclusion probability (Hájek's mean).
    counts : array, shape (n,), optional
        Frequencies: how many rows a row represents; without clusters, that many clusters of one row.
    ends : (float, float)
        The ends of the values' range. Finite: Wilson's interval on the range; else value ± t·se.
    fraction : float, optional
        The rows at hand ÷ the most there will be, where the interval is looked at again: see `mean_interval`.

    Examples
    --------
    >>> share = clustered_mean([1, 1, 0, 1, 0, 1], ["a", "a", "b", "b", "c", "c"], ends=(0, 1))
    >>> round(share.value, 3), round(share.low, 3), round(share.high, 3), share.n, share.n_clusters
    (0.667, 0.111, 0.97, 6, 3)
    """
    rows = complete_rows([values], clusters, counts, weights)
    x, v, c = rows.columns[0], rows.weights, rows.counts
    if not len(x):
        return NONE
    total = float(v @ c)
    mean = float((v * c) @ x / total)
    parts = rows.sums(v, v * (x - mean))  # centred: the residuals of identical values are 0
    found = jackknife(ratio, parts, parts[:, 0], times=rows.times, level=level)
    size, g_eff = kish(total, c @ v**2), kish(total, rows.times @ parts[:, 0] ** 2)
    sum_h4 = float(rows.times @ (parts[:, 0] / total) ** 4)
    at_low, at_high = (float(c @ (x == end)) for end in ends)
    n_rows = float(c.sum())
    low, high = mean_interval(
        mean,
        found.se,
        g_eff,
        size,
        ends,
        binary=at_low + at_high == n_rows,
        sum_h4=sum_h4,
        elsewhere=(n_rows - max(at_low, at_high), n_rows),
        level=level,
        fraction=fraction,
    )
    df = max(float(g_eff) - 1, 1.0)
    return Estimate(
        mean,
        float(low),
        float(high),
        found.se,
        round(n_rows),
        found.n_clusters,
        df,
        float(size),
        sum_h4,
    )


def contrast(
    values: Values,
    inside: Values,
    clusters: Labels = None,
    *,
    weights: Labels = None,
    counts: Labels = None,
    level: float = 0.95,
) -> Estimate:
    """Return the mean of the rows inside a group less that of the others, whose clusters they may share.

    Parameters
    ----------
    inside : array of bool, shape (n,)
        Which rows are of the group.
    values, clusters, weights, counts
        As in `clustered_mean`.

    Examples
    --------
    >>> contrast([1.0, 0.5, 0.5, 0.2], [True, False, True, False], ["a", "a", "b", "b"]).value
    0.4
    """
    rows = complete_rows([values], clusters, counts, weights)
    group = np.asarray(inside)[rows.kept]
    sides = [rows.weights * side for side in (group, ~group)]
    parts = rows.sums(*(part for side in sides for part in (side, side * rows.columns[0])))
    sizes = parts[:, 0] + parts[:, 2]
    return jackknife(
        lambda s: ratio(s[..., :2]) - ratio(s[..., 2:]), parts, sizes, times=rows.times, level=level
    )


def stratified_se(
    shares: Array, questions: Array, squares: Array, inflation: Any = 1.0
) -> tuple[Array, Array]:
    """Return the standard error and degrees of freedom of a mean over a complete corpus of documents.

    Parameters
    ----------
    shares : (D, ...) float
        h, the share of each document in the weight of all; 0 leaves it out.
    questions : (D, ...) float
        N, the scored questions of each.
    squares : (D, ...) float
        Σ (x − mean)² over the questions of each document.
    inflation : (D, ...) float
        N Σr²/(Σr)² over the repeats r of its questions: 1 where all are asked equally often.

    Returns
    -------
    (...) float, (...) float
        se² = Σ h² s²/N, with s² of each document shrunk to the pooled variance as by 5 questions more: own
        variances alone cover 85 %, the pooled one alone 88. Degrees of freedom by Satterthwaite (1946), at most
        Σ(N − 1). Both nan where Σ(N − 1) < 5: too few questions to tell a variance by.

    Examples
    --------
    >>> h, n, ss = np.array([0.5, 0.5]), np.array([5.0, 5.0]), np.array([0.4, 0.6])
    >>> [round(float(x), 3) for x in stratified_se(h, n, ss)]
    [0.112, 8.0]
    """
    there = (shares > 0) & (questions > 0)
    n, inside = np.where(there, questions, 1.0), np.where(there, questions - 1, 0.0)
    freedom, left = inside.sum(axis=0), np.where(there, squares, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        pool = left.sum(axis=0) / freedom
        parts = np.where(
            there, shares**2 * (left + _POOLED * pool) / (n + _POOLED - 1) * inflation / n, 0.0
        )
        se2 = parts.sum(axis=0)
        df = np.minimum(se2**2 / (parts**2 / (n + _POOLED - 1)).sum(axis=0), freedom)
    df = np.where(se2 > 0, df, freedom)
    enough = freedom >= _FEWEST
    return np.where(enough, np.sqrt(se2), np.nan), np.where(enough, df, np.nan)


def stratified_mean(
    values: Values, strata: Labels, *, weights: Labels = None, level: float = 0.95
) -> Estimate:
    """Return the mean of questions over a complete corpus of documents, value ± t·se, without nan rows.

    Where the documents have too few questions to tell how they vary, it is that of `clustered_mean`.

    Parameters
    ----------
    values : array, shape (n,)
        One value per question.
    strata : array, shape (n,)
        The document of each.
    weights : array, shape (n,), optional
        Weights ≥ 0, not frequencies.

    Examples
    --------
    >>> found = stratified_mean([0.5, 0.6, 0.7, 0.9, 0.8, 1.0, 0.9], [*"aaabbbb"])
    >>> round(found.value, 3), round(found.se, 3), found.n_clusters
    (0.771, 0.034, 7)
    """
    rows = complete_rows([values], strata, None, weights)
    x, v, code = rows.columns[0], rows.weights, rows.code
    if not len(x):
        return NONE
    n, total, squares = np.bincount(code).astype(float), float(v.sum()), np.bincount(code, v**2)
    left: Array = np.bincount(code, (x - (np.bincount(code, x) / n)[code]) ** 2).astype(float)
    mass = np.bincount(code, v)
    se, df = (float(part) for part in stratified_se(mass / total, n, left, n * squares / mass**2))
    if not np.isfinite(se):
        return clustered_mean(values, strata, weights=weights, level=level)
    mean = float(v @ x / total)
    low, high = t_interval(mean, se, df, level)
    return Estimate(mean, low, high, se, len(x), len(x), df, float(kish(total, v @ v)))


def p_above(
    found: Estimate, threshold: float, *, share: bool = False, fraction: float | None = None
) -> float:
    """Return the one-sided p-value of a clustered mean against "at or below the threshold", nan where se is.

    Parameters
    ----------
    found : Estimate
        From `clustered_mean`; for a share of 0/1 rows say so.
    share : bool
        Wilson's interval was used: it is inverted, by search.
    fraction : float, optional
        Of a share: as in `clustered_mean`; nan above 1.

    Notes
    -----
    p ≤ α exactly where the one-sided interval at 1 − α is above the threshold. "At or above" has 1 − p.

    Examples
    --------
    >>> round(p_above(Estimate(0.5, 0.1, 0.9, 0.2, 50, 11, df=10), 0.0), 4)
    0.0157
    """
    from scipy.special import stdtr

    if not np.isfinite(found.se) or not np.isfinite(found.df) or (fraction or 0) > 1:
        return np.nan
    if share:
        # The one-sided level, 1e-12 to 0.5, at which the end of the interval is at the threshold
        least, most = np.log(1e-12), np.log(0.5)
        for _ in range(6):
            tried = np.linspace(least, most, 64)
            ends = mean_interval(
                found.value,
                found.se,
                found.df + 1,
                found.n_eff,
                (0.0, 1.0),
                binary=True,
                sum_h4=None if np.isnan(found.sum_h4) else found.sum_h4,
                level=1 - 2 * np.exp(tried),
                fraction=fraction,
            )
            beyond = ends[0] > threshold if found.value > threshold else ends[1] < threshold
            first = int(np.argmax(beyond)) if beyond.any() else 63
            least, most = tried[max(first - 1, 0)], tried[first]
        return float(np.exp(most) if found.value > threshold else 1 - np.exp(most))
    if not found.se > 1e-12 * max(1.0, abs(found.value)):
        return np.nan
    return float(stdtr(found.df, -(found.value - threshold) / found.se))


def holm(p: Values) -> Array:
    """Return Holm's adjusted p-values: at or below α where the step-down procedure rejects; nan stays nan.

    Holm (1979), Scand. J. Stat. 6, 65–70. Valid whatever the dependence.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    raw = np.asarray(p, dtype=float)
    out = np.full(len(raw), np.nan)
    order = np.argsort(np.where(np.isnan(raw), np.inf, raw), kind="stable")[
        : int((~np.isnan(raw)).sum())
    ]
    out[order] = np.minimum(np.maximum.accumulate(np.arange(len(order), 0, -1) * raw[order]), 1.0)
    return out


SLACK = (
    1e-9  # means of raters are thirds: a difference of exactly 1 may arrive as 1.0000000000000004
)


def round_half_up(values: Values) -> Array:
    """Round to whole numbers, halves upwards, with a tolerance of 1e-9 for floating-point error.

    Examples
    --------
    >>> round_half_up([2.5, 3.5, -0.5, 2.4]).tolist()
    [3.0, 4.0, 0.0, 2.0]
    """
    return np.asarray(np.floor(np.asarray(values, dtype=float) + (0.5 + SLACK)) + 0.0)


def within(judge: Values, human: Values, tolerance: float = 1.0) -> Array:
    """Return 1 if the judge is within ±tolerance of the human, 0 if not, nan if one is missing.

    Parameters
    ----------
    judge, human : array, shape (n,)
        Ratings on one scale.
    tolerance : float
        In points of the scale, ≥ 0; 1e-9 is added. 0 on rounded values is exact agreement. Whether both are
        rounded first (`round_half_up`) moves a share by ten points and more.

    Examples
    --------
    >>> within([2.3333333333333335, 4.0], [1.3333333333333333, 2.5]).tolist()
    [1.0, 0.0]
    """
    x, y = checked(judge, human)
    if not tolerance >= 0:
        raise RagnbError(
            f"tolerance={tolerance} is negative; give points of the scale, such as 1.0"
        )
    return np.where(np.isnan(x - y), np.nan, (np.abs(x - y) <= tolerance + SLACK).astype(float))


def within_share(
    judge: Values, human: Values, clusters: Labels = None, *, tolerance: float = 1.0, **options: Any
) -> Estimate:
    """Return the share of rows within ±tolerance, with Wilson's interval at the clusters' effective size.

    Exact agreement is ``tolerance=0`` on rounded values.

    Examples
    --------
    >>> share = within_share([4, 5, 2, 1], [5, 5, 4, 1])
    >>> share.value, share.n
    (0.75, 4)
    """
    return clustered_mean(within(judge, human, tolerance), clusters, ends=(0.0, 1.0), **options)


def _sizes_near(values: Array, sizes: Array, at: Array, tolerance: float) -> Array:
    """Sum the sizes of the values within ±tolerance of each point."""
    order = np.argsort(values)
    line, running = values[order], np.r_[0.0, np.cumsum(sizes[order])]
    reach = tolerance + SLACK
    last, first = (
        np.searchsorted(line, at + reach, "right"),
        np.searchsorted(line, at - reach, "left"),
    )
    return np.asarray(running[last] - running[first], dtype=float)


def chance_floor(
    judge: Values, human: Values, *, tolerance: float = 1.0, counts: Labels = None
) -> float:
    """Return the ±tolerance share of an independent judge with the same marginals, in O(n log n).

    It is the share over all n² pairs of a judge's score with any human's score.

    Examples
    --------
    >>> chance_floor([1, 5], [1, 5])
    0.5
    """
    rows = complete_rows([judge, human], np.zeros(np.shape(judge)), counts)
    x, y = rows.columns
    met, total = rows.counts @ _sizes_near(y, rows.counts, x, tolerance), rows.counts.sum()
    return float(met / total**2) if total else float("nan")


def best_constant(
    human: Values,
    clusters: Labels = None,
    *,
    tolerance: float = 1.0,
    levels: Labels = None,
    counts: Labels = None,
    weights: Labels = None,
    level: float = 0.95,
) -> tuple[float, Estimate]:
    """Return the constant score with the highest ±tolerance agreement, and that agreement.

    Parameters
    ----------
    levels : array, optional
        The scores such a judge may give; None lets it give any number between the humans' lowest and highest.

    Examples
    --------
    >>> score, share = best_constant([1, 4, 5, 5], levels=range(1, 6))
    >>> float(score), share.value
    (4.0, 0.75)
    """
    rows = complete_rows([human], clusters, counts, weights)
    y, score = rows.columns[0], np.nan
    if len(y):
        offered = np.minimum(y + tolerance, y.max()) if levels is None else levels
        tried = np.unique(np.asarray(offered, dtype=float))
        score = float(
            tried[int(np.argmax(_sizes_near(y, rows.counts * rows.weights, tried, tolerance)))]
        )
    options: dict[str, Any] = {"counts": counts, "weights": weights, "level": level}
    return score, within_share(
        np.full(np.shape(human), score), human, clusters, tolerance=tolerance, **options
    )


def bias(judge: Values, human: Values, clusters: Labels = None, **options: Any) -> Estimate:
    """Return mean(judge − human) with its clustered interval, value ± t·se; above 0 the judge is generous.

    Examples
    --------
    >>> bias([4, 5, 3], [3, 5, 1]).value
    1.0
    """
    x, y = checked(judge, human)
    return clustered_mean(x - y, clusters, **options)


def mae(
    judge: Values,
    human: Values,
    clusters: Labels = None,
    *,
    scale: tuple[float, float] | None = None,
    **options: Any,
) -> Estimate:
    """Return the mean absolute error; with a scale its interval stays between 0 and the scale's width.

    Examples
    --------
    >>> mae([4, 5, 3], [3, 5, 5], scale=(1, 5)).value
    1.0
    """
    x, y = checked(judge, human)
    ends = (-np.inf, np.inf) if scale is None else (0.0, scale[1] - scale[0])
    return clustered_mean(np.abs(x - y), clusters, ends=ends, **options)


def limits_of_agreement(
    judge: Values,
    human: Values,
    clusters: Labels = None,
    *,
    factor: float = 1.96,
    counts: Labels = None,
    level: float = 0.95,
) -> tuple[Estimate, Estimate]:
    """Return bias − factor·s and bias + factor·s, between which lie about 95 % of the differences judge − human.

    Without clusters se² = s² (1/n + factor² / (2(n−1))) and t(n−1); with clusters the jackknife's.

    Notes
    -----
    Bland and Altman (1986), Lancet i, 307–310; the standard error is that of 1999.

    Examples
    --------
    >>> low, high = limits_of_agreement([4, 5, 3, 2], [3, 5, 4, 2])
    >>> round(low.value, 2), round(high.value, 2)
    (-1.6, 1.6)
    """
    rows = complete_rows([judge, human], clusters, counts)
    gap, n = rows.columns[0] - rows.columns[1], round(float(rows.counts.sum()))
    centre = float(rows.counts @ gap / n) if n else np.nan
    columns, ends = (np.ones(len(gap)), gap - centre, (gap - centre) ** 2), []
    for sign in (-factor, factor):
        found = rows.jackknife(partial(_limit, factor=sign), *columns, level=level)
        value, low, high, se = (
            found.value + centre,
            found.low + centre,
            found.high + centre,
            found.se,
        )
        if clusters is None:
            se = (
                found.value / sign * float(np.sqrt(1 / max(n, 1) + factor**2 / (2 * max(n - 1, 1))))
            )
            low, high = t_interval(value, se, n - 1, level)
        ends.append(Estimate(value, low, high, se, n, found.n_clusters))
    return ends[0], ends[1]


def _limit(s: Array, factor: float) -> Array:
    """Return mean + factor·sd (divisor n − 1) from Σ1, Σd, Σd²; nan for one row."""
    n, mean = s[..., 0], s[..., 1] / s[..., 0]
    squares = np.maximum(s[..., 2] - n * mean**2, 0.0)
    return np.asarray(
        mean + factor * np.sqrt(squares / np.where(n > 1, n - 1, np.nan)), dtype=float
    )


def second_moments(s: Array) -> tuple[Array, ...]:
    """Return n, the two means, the two variances and the covariance (divisor n) of six sums.

    Examples
    --------
    >>> [float(part) for part in second_moments(np.array([2.0, 0.0, 0.0, 2.0, 0.0, 0.0]))]
    [2.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    """
    n = s[..., 0]
    mx, my = s[..., 1] / n, s[..., 2] / n
    vx, vy = s[..., 3] / n - mx**2, s[..., 4] / n - my**2
    noise = 1e-11 * (s[..., 3] + s[..., 4]) / n
    vx, vy = np.where(vx > noise, vx, 0.0), np.where(vy > noise, vy, 0.0)
    return n, mx, my, vx, vy, np.where((vx > 0) & (vy > 0), s[..., 5] / n - mx * my, 0.0)


def _of_moments(
    statistic: Callable[[Array], Array], rows: Rows, level: float, *, bounded: bool
) -> Estimate:
    """Return the jackknife of a function of Σ1, Σj, Σh, Σj², Σh², Σjh, both less one origin."""
    x, y = rows.columns
    origin = float(rows.counts @ (x + y) / 2 / rows.counts.sum()) if len(x) else 0.0
    x, y = x - origin, y - origin
    return rows.jackknife(
        statistic, np.ones(len(x)), x, y, x * x, y * y, x * y, bounded=bounded, level=level
    )


def slope_on_mean(
    judge: Values,
    human: Values,
    clusters: Labels = None,
    *,
    counts: Labels = None,
    level: float = 0.95,
) -> Estimate:
    """Return the slope of (judge − human) on their mean; above 0 the judge spreads its scores more than humans.

    Notes
    -----
    Bland and Altman (1999), Stat. Methods Med. Res. 8, 135–160.

    Examples
    --------
    >>> round(slope_on_mean([1, 3, 5], [2, 3, 4]).value, 4)
    0.6667
    """

    def slope(s: Array) -> Array:
        _, _, _, vx, vy, cov = second_moments(s)
        of_mean = (vx + vy + 2 * cov) / 4
        return np.asarray(np.where(of_mean > 1e-11 * (vx + vy), (vx - vy) / 2 / of_mean, np.nan))

    return _of_moments(slope, complete_rows([judge, human], clusters, counts), level, bounded=False)


def quadratic_kappa(
    judge: Values,
    human: Values,
    scale: tuple[float, float],
    clusters: Labels = None,
    *,
    counts: Labels = None,
    level: float = 0.95,
) -> Estimate:
    """Return the quadratic weighted kappa of both, rounded half up, over the full label range.

    Weights are distances between labels, so a label that nobody gave changes nothing; that makes this kappa
    Lin's concordance 2·cov/(var j + var h + (mean j − mean h)²) of the rounded values. Rounded values outside the
    scale raise RagnbError.

    Notes
    -----
    Cohen (1968), Psychol. Bull. 70, 213–220; the identity is King and Chinchilli's (2001), Stat. Med. 20.

    Examples
    --------
    >>> human, judge = [1, 1, 2, 2, 9, 9, 10, 10, 2, 9], [1, 2, 2, 9, 9, 10, 10, 10, 1, 9]
    >>> round(quadratic_kappa(judge, human, (1, 10)).value, 4)
    0.836
    """
    x, y = round_half_up(judge), round_half_up(human)
    for name, values in (("judge", x), ("human", y)):
        outside = values[(values < scale[0]) | (values > scale[1])]
        if len(outside):
            raise RagnbError(
                f"{name} holds {outside[0]:g}, outside scale={scale}; give the scale the raters used"
            )

    def concordance(s: Array) -> Array:
        _, mx, my, vx, vy, cov = second_moments(s)
        return np.asarray(2 * cov / (vx + vy + (mx - my) ** 2))

    return _of_moments(concordance, complete_rows([x, y], clusters, counts), level, bounded=True)


def leave_one_out(ratings: Values) -> tuple[Codes, Array, Array]:
    """Pair every human rating with the mean of the other humans on its item.

    Parameters
    ----------
    ratings : array, shape (items, raters)
        nan where a rater did not rate; items with one rating have no other and are left out.

    Returns
    -------
    (item, own, others)
        One entry per rating: the item's row, the rating, the mean of the others.

    Examples
    --------
    >>> item, own, others = leave_one_out([[1, 2, 6], [3, float("nan"), float("nan")]])
    >>> item.tolist(), own.tolist(), others.tolist()
    ([0, 0, 0], [1.0, 2.0, 6.0], [4.0, 3.5, 1.5])
    """
    grid = np.atleast_2d(np.asarray(ratings, dtype=float))
    m = np.sum(~np.isnan(grid), axis=1)
    item, rater = np.nonzero(~np.isnan(grid) & (m >= 2)[:, None])
    own = grid[item, rater]
    return item, own, (np.nansum(grid, axis=1)[item] - own) / (m[item] - 1)


def human_ceiling(
    ratings: Values, clusters: Labels = None, *, weights: Labels = None, **options: Any
) -> Estimate:
    """Return the ±tolerance agreement of one human with the mean of the others: the human ceiling.

    Items are the clusters where none are given, because an item's ratings are compared with one another.
    `weights` are of the items; `options` are further ones of `within_share`.

    Examples
    --------
    >>> human_ceiling([[4, 4, 5], [1, 1, 4]]).value
    0.5
    """
    item, own, others = leave_one_out(ratings)
    label = item if clusters is None else np.asarray(clusters)[item]
    size = None if weights is None else np.asarray(weights, dtype=float)[item]
    return within_share(own, others, label, weights=size, **options)


def krippendorff_alpha(
    ratings: Values, clusters: Labels = None, *, level: float = 0.95
) -> Estimate:
    """Return Krippendorff's alpha of items × raters with gaps, for ratings whose differences have a meaning.

    Parameters
    ----------
    ratings : array, shape (items, raters)
        nan where a rater did not rate; items with one rating say nothing and are left out.
    clusters : array, shape (items,), optional
        Items are the clusters where none are given.

    Returns
    -------
    Estimate
        nan where all ratings are alike. n counts items with two ratings or more.

    Notes
    -----
    Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, with the interval metric: sums of squares by
    item serve, and no table of pairs is built.

    Examples
    --------
    >>> no = float("nan")
    >>> ratings = [[no, 1, no], [no, no, no], [no, 2, 2], [no, 1, 1], [no, 3, 3], [3, 3, 4], [4, 4, 4], [1, 3, no]]
    >>> round(krippendorff_alpha(ratings).value, 3)
    0.725
    """
    grid = np.asarray(ratings, dtype=float)
    m = np.sum(~np.isnan(grid), axis=1).astype(float)
    code = np.unique(cluster_codes(clusters, len(grid))[m >= 2], return_inverse=True)[1]
    grid, m = grid[m >= 2], m[m >= 2]
    points = grid - (np.nanmean(grid) if len(m) else 0.0)
    first, second = np.nansum(points, axis=1), np.nansum(points**2, axis=1)
    parts = sums_by(code, np.stack([m, (m * second - first**2) / (m - 1), second, first], axis=1))

    def alpha(s: Array) -> Array:
        expected = (s[..., 0] * s[..., 2] - s[..., 3] ** 2) / (s[..., 0] - 1)
        return np.asarray(
            np.where(expected > 1e-12 * s[..., 2], 1 - s[..., 1] / expected, np.nan), dtype=float
        )

    return jackknife(alpha, parts, np.bincount(code).astype(float), bounded=True, level=level)


def kendall(
    judge: Values,
    human: Values,
    clusters: Labels = None,
    *,
    digits: int | None = None,
    counts: Labels = None,
    level: float = 0.95,
) -> Estimate:
    """Return Kendall's τ-b, in O(n log n).

    Parameters
    ----------
    clusters : array, shape (n,), optional
        What is left out in turn for the interval, made on Fisher's z. None makes every row its own cluster.
    digits : int, optional
        Round to so many decimals first. Means of raters that differ in the last bit only are no ties to None,
        nor to scipy; 9 makes them ties, which moves τ-b in the third decimal on real ratings.

    Notes
    -----
    Kendall (1945), Biometrika 33, 239–251. The jackknife is exact.

    Examples
    --------
    >>> round(kendall([1, 2, 3, 4], [1, 3, 2, 4]).value, 4)
    0.6667
    """
    rows = complete_rows([_rounded(judge, digits), _rounded(human, digits)], clusters, counts)
    x, y = rows.columns
    pooled = _concordance(np.zeros(len(x), dtype=np.intp), x, y, rows.counts)
    inside = _concordance(rows.code, x, y, rows.inside)
    lost = (
        2 * pooled - inside
    ).T  # a pair of two clusters is lost with either, one within a cluster once
    found = rows.jackknife(_tau, *lost, whole=rows.counts @ pooled, bounded=True, level=level)
    return found if np.isfinite(found.value) else NONE


def kendall_within(
    judge: Values,
    human: Values,
    clusters: Values,
    *,
    digits: int | None = None,
    counts: Labels = None,
    level: float = 0.95,
) -> Estimate:
    """Return the plain mean of the τ-b of the clusters in which both vary.

    A pooled coefficient mixes what separates clusters with what separates answers; this one does not.

    Returns
    -------
    Estimate
        n and n_clusters count the clusters that have a coefficient; nan where none has.

    Examples
    --------
    >>> kendall_within([1, 2, 5, 6], [1, 2, 1, 2], ["a", "a", "b", "b"]).value
    1.0
    """
    rows = complete_rows([_rounded(judge, digits), _rounded(human, digits)], clusters, counts)
    x, y = rows.columns
    each = _tau(rows.sums(*_concordance(rows.code, x, y, rows.inside).T))
    used = np.isfinite(each)
    if not used.any():
        return NONE
    parts, sizes = (
        np.stack([np.ones(used.sum()), each[used]], axis=1),
        rows.sums(np.ones(len(x)))[used, 0],
    )
    return jackknife(ratio, parts, sizes, bounded=True, level=level)


def kendall_of_means(
    judge: Values,
    human: Values,
    system: Values,
    clusters: Labels = None,
    *,
    digits: int = 10,
    counts: Labels = None,
    level: float = 0.95,
) -> Estimate:
    """Return Kendall's τ-b of the systems' means.

    Parameters
    ----------
    system : array, shape (n,)
        The system of each row; nan for fewer than two systems, and where means are all equal.
    clusters : array, shape (n,), optional
        What is left out of every system's mean in turn.

    Examples
    --------
    >>> kendall_of_means([1, 2, 3, 3, 4, 4], [1, 1, 3, 3, 5, 5], ["a", "a", "b", "b", "c", "c"]).value
    1.0
    """
    rows = complete_rows([judge, human], clusters, counts)
    (x, y), name = rows.columns, packed(np.asarray(system)[rows.kept])
    one = (name[:, None] == np.arange(name.max(initial=0) + 1)).astype(float).T

    def tau_of_means(s: Array) -> Array:
        n, of_judge, of_human = np.split(s, 3, axis=-1)
        a, b = (np.round(total / n, digits) for total in (of_judge, of_human))
        a, b = (np.sign(mean[..., :, None] - mean[..., None, :]) for mean in (a, b))
        return _tau(
            np.stack([(p * q).sum(axis=(-1, -2)) for p, q in ((a, b), (a, a), (b, b))], axis=-1)
        )

    return rows.jackknife(tau_of_means, *one, *(one * x), *(one * y), bounded=True, level=level)


def _rounded(values: Values, digits: int | None) -> Values:
    return values if digits is None else np.round(np.asarray(values, dtype=float), digits)


def _tau(sums: Array) -> Array:
    """Return A/√(BC), nan if one of them does not vary."""
    both, of_x, of_y = sums[..., 0], sums[..., 1], sums[..., 2]
    varies = (of_x > 1e-12) & (of_y > 1e-12)
    return np.clip(
        np.where(varies, both / np.sqrt(np.where(varies, of_x * of_y, 1.0)), np.nan), -1.0, 1.0
    )


def _concordance(group: Codes, x: Array, y: Array, weights: Array) -> Array:
    """Columns of Σ sgn(x)sgn(y), Σ |sgn x|, Σ |sgn y| over the pairs of each row within its group."""
    nx, ny = np.unique(x, return_inverse=True)[1], np.unique(y, return_inverse=True)[1]
    kx, ky = int(nx.max(initial=0)) + 1, int(ny.max(initial=0)) + 1
    cell, at = np.unique((group * kx + nx) * ky + ny, return_inverse=True)
    size: Array = np.bincount(at, weights=weights).astype(float)
    own, a, b = cell // ky // kx, cell // ky % kx, cell % ky
    agreeing = _below(own, a, b, size) + _below(own, kx - a, ky - b, size)
    crossed = _below(own, a, ky - b, size) + _below(own, kx - a, b, size)
    groups = (packed(of) for of in (own, cell // ky, own * ky + b))
    whole, same_x, same_y = (np.bincount(code, weights=size)[code] for code in groups)
    return np.stack([agreeing - crossed, whole - same_x, whole - same_y], axis=1)[at]


def _below(group: Codes, x: Codes, y: Codes, size: Array) -> Array:
    """Sum the sizes of the rows of each row's group with lower x and lower y, bit by bit of y, in O(n log² n).

    In the order of x, row k counts for i at the highest bit where their y differ, among the rows that share the
    bits above it. Rows of one x are in falling order of y: none counts for another.
    """
    order = np.lexsort((-y, x, group))
    group, y, size, found = group[order], y[order], size[order], np.zeros(len(order))
    for bit in range(int(y.max(initial=0)).bit_length()):
        node = (group << 32) + (y >> bit + 1)
        at = np.argsort(node, kind="stable")
        low = (y[at] >> bit) & 1 == 0
        before = np.cumsum(np.where(low, size[at], 0.0))
        before -= np.r_[0.0, before][np.searchsorted(node[at], node[at])]
        found[order[at]] += np.where(low, 0.0, before)
    return found


MAPS = ("linear", "isotonic")


@dataclass(frozen=True, slots=True)
class Corrected(Estimate):
    """A corrected mean with its interval; `weight` is λ, the weight of the judge's scores.

    Examples
    --------
    >>> Corrected(3.9, 3.6, 4.2, 0.15, 50, 20, weight=0.5, n_judged=400).weight
    0.5
    """

    weight: float = 0.0
    n_judged: int = 0


def ppi_jackknife(
    human: Values,
    judge: Values,
    judged: Values,
    clusters: Labels = None,
    judged_clusters: Labels = None,
    *,
    weights: Labels = None,
    shares: tuple[Values, Values] | None = None,
    weight: float | None = None,
    ends: tuple[float, float] = (-np.inf, np.inf),
    level: float = 0.95,
) -> Corrected:
    """Return the prediction-powered human mean, with an interval that is valid for few clusters.

    Parameters
    ----------
    human, judge : array, shape (n,)
        The rows with human labels, and the judge's scores on them.
    judged : array, shape (N,)
        The judge's scores on further rows, drawn from the same population. None there: the human mean alone.
    clusters, judged_clusters : array, shapes (n,) and (N,), optional
        One set of labels: a name in both is one cluster. Give both or neither.
    weight : float, optional
        λ; None chooses it. 0 ignores the judge, 1 is the classical form.
    weights : array, shape (n,), optional
        1 / inclusion probability of labelled rows that were drawn with unequal chances. All rows together are then
        what they were drawn from.
    shares : (array of (n,), array of (N,)), optional
        How much each row counts in the population, as by the weight of its document; by default all alike.
    ends : (float, float)
        The ends of the scale. Finite: the mean stays on the scale, with Wilson's interval and its fewer degrees of
        freedom near an end (`mean_interval`). Else: value ± t·se.

    Returns
    -------
    Corrected
        Without an interval (nan) where all labels are in one cluster. With λ = 0 it is `clustered_mean` of the
        humans' scores.

    Notes
    -----
    λ = clip(cov(Y, F) / ((1 + n/N) var F), 0, 1), cov with divisor n on the labelled rows, var with divisor n + N
    − 1 on all: Angelopoulos, Duchi and Zrnic (2023), PPI++, arXiv 2311.01453. se is the delete-one-cluster
    jackknife, centred on the estimate, with λ re-estimated each time: the familiar sandwich, G/(G−1) Σ_g (Σ_{i∈g}
    c_i)² (Miller 2024, arXiv 2411.00640), takes λ as known and leaves a heavy cluster's residual small. t has
    1/Σh² − 1 degrees of freedom, h_g = (s_e n_g/n + λ s_F N_g/N)/(s_e + λ s_F), s_e the standard deviation of Y −
    λF, s_F of F: a cluster's part in the labelled and in the further rows, weighed by what each contributes to
    the error. Coverage beside the sandwich's: benchmarks/calibration.py.

    The value is ȳ + λ (1 + n/N) (mean of F on all rows − f̄), which without weights is ȳ + λ (mean of F on the N −
    f̄). With weights it is the regression estimator, ȳ + β (mean of F on all rows − f̄), with ȳ, f̄ and β = cov(Y,
    F)/var F Hájek's, Σwx/Σw, on the labelled rows (Särndal, Swensson and Wretman 1992, Model Assisted Survey
    Sampling, chapter 6), and n_g/n is w_g/Σw: the variance of F over all rows would be that of another range.

    Examples
    --------
    >>> found = ppi_jackknife([3, 4, 5, 4], [2, 3, 5, 4], [4, 4, 5, 3, 4, 5], ends=(1, 5))
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (4.303, 2.975, 4.834)
    """
    names = _both(clusters, judged_clusters, "judged_clusters")
    y, f = checked(human, judge)
    more = np.asarray(judged, dtype=float)
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    seen, extra = ~np.isnan(y - f), ~np.isnan(more)
    y, f, w, more, n = y[seen], f[seen], w[seen], more[extra], int(seen.sum())
    if n < 2:
        raise RagnbError(
            f"{n} rows have both a human and a judge score; the correction needs 2 or more"
        )
    if np.isinf(more).any():
        raise RagnbError("judged holds an infinite value; a score is a finite number or missing")
    code = cluster_codes(None if names is None else names[np.r_[seen, extra]], n + len(more))
    labels = y
    centre, every = float(y.mean()), np.concatenate([f, more])
    y, every = y - centre, every - every.mean()
    f = every[:n]
    v = _row_shares(shares, seen, extra)
    sums = sums_by(code, _terms(y, w, every) * v[:, None])
    whole, noise = sums.sum(axis=0), 1e-12 * float(every.var())
    is_drawn = weight is None and bool(np.ptp(w) > 0)
    how_point: dict[str, Any] = {"weight": weight, "noise": noise, "is_drawn": is_drawn}
    centred, lam = (float(x) for x in _point(whole, **how_point))
    w = w * v[:n]
    used = sums[(sums[:, 0] > 0) | (lam != 0)]
    g, value = len(used), centred + centre
    se = jackknife(lambda s: _point(s, **how_point)[0], used, used[:, 6], whole=whole).se
    error = y - lam * f
    error = error - np.average(error, weights=w)
    scale = float(np.sqrt(np.average(error**2, weights=w))), abs(lam) * float(every.std())
    scale = scale if sum(scale) > 0 else (1.0, 0.0)
    h = scale[0] * used[:, 1] / whole[1] + (
        scale[1] * (used[:, 6] - used[:, 0]) / (whole[6] - whole[0]) if lam else 0.0
    )
    g_eff = float(h.sum() ** 2 / np.sum(h**2))
    if np.isfinite(ends).all():
        value = float(np.clip(value, *ends))
        how: dict[str, Any] = {"sum_h4": float(np.sum((h / h.sum()) ** 4)), "level": level}
        if not lam:  # the people's scores alone, as `clustered_mean` takes them
            at_low, at_high = (int((labels == end).sum()) for end in ends)
            how["binary"] = at_low + at_high == n
            how["elsewhere"] = n - max(at_low, at_high), n
        ends_of = mean_interval(value, se, g_eff, kish(w.sum(), w @ w), ends, **how)
        low, high = map(float, ends_of)
    else:
        low, high = t_interval(value, se, g_eff - 1, level)
    df = max(g_eff - 1, 1.0)
    return Corrected(value, low, high, se, n, g, df=df, weight=lam, n_judged=len(more))


def ppi_difference(
    human: Array, judge: Array, clusters: npt.NDArray[Any], *, shares: Array, level: float = 0.95
) -> Corrected:
    """Return the difference of two prediction-powered means whose labels are on different questions.

    Parameters
    ----------
    human, judge : (2, Q) float
        The scores of two systems, nan where there is none.
    clusters, shares : (Q,)
        The cluster of each question, and how much it counts.

    Returns
    -------
    Corrected
        The difference of two `ppi_jackknife`, its se by leaving each cluster out of both at once; the fewer of
        their degrees of freedom, n the labels of the side that has fewer, and no weight.

    Examples
    --------
    >>> nan = float("nan")
    >>> human = np.array([[5, 4, nan, nan], [nan, nan, 3, 4]])
    >>> judge = np.array([[4.0, 4, 5, 5], [3, 3, 3, 4]])
    >>> round(ppi_difference(human, judge, np.arange(4), shares=np.ones(4)).value, 2)
    1.25
    """
    code = packed(clusters)
    parts, alone = [], []
    for y, f in zip(human, judge, strict=True):
        labelled = ~np.isnan(y - f)
        rows = np.concatenate([np.flatnonzero(labelled), np.flatnonzero(~labelled & ~np.isnan(f))])
        n = int(labelled.sum())
        first, rest = rows[:n], rows[n:]
        given = y[first], f[first], f[rest], clusters[first], clusters[rest]
        alone.append(ppi_jackknife(*given, shares=(shares[first], shares[rest]), level=level))
        terms = _terms(y[first] - y[first].mean(), np.ones(n), f[rows] - f[rows].mean())
        sums = np.zeros((code.max() + 1, terms.shape[1]))
        np.add.at(sums, code[rows], terms * (shares[rows] / shares[rows].mean())[:, None])
        parts.append((sums, 1e-12 * float(f[rows].var())))

    def difference(both: Array) -> Array:
        sides = np.split(both, 2, axis=-1)
        new, old = (
            _point(side, weight=None, noise=noise, is_drawn=False)[0]
            for side, (_, noise) in zip(sides, parts, strict=True)
        )
        return np.asarray(new - old)

    both = np.hstack([sums for sums, _ in parts])
    found = jackknife(difference, both, both[:, 6] + both[:, 15], level=level)
    new, old = alone
    value, df = new.value - old.value, min(new.df, old.df)
    low, high = t_interval(value, found.se, df, level)
    n, n_judged = min(new.n, old.n), min(new.n_judged, old.n_judged)
    return Corrected(
        value, low, high, found.se, n, found.n_clusters, df=df, weight=np.nan, n_judged=n_judged
    )


def _terms(y: Array, w: Array, every: Array) -> Array:
    """Return the rows of which `_point` takes the sums: labels `y` of weights `w`, the judge's scores `every`."""
    n, f = len(y), every[: len(y)]
    table = np.zeros((len(every), 9))
    table[:n, :6] = np.stack([np.ones(n), w, w * f, w * y, w * y * f, w * f**2], axis=1)
    table[:, 6:] = np.stack([np.ones(len(every)), every, every**2], axis=1)
    return table


def _row_shares(shares: tuple[Values, Values] | None, seen: Flags, extra: Flags) -> Array:
    """Return how much each row of the population counts, 1 on average: the labelled ones, then the others."""
    if shares is None:
        return np.ones(int(seen.sum() + extra.sum()))
    labelled, others = (np.asarray(side, dtype=float) for side in shares)
    v = np.concatenate([labelled[seen], others[extra]])
    return np.asarray(v / v.mean())


def _point(
    sums: Array, *, weight: float | None, noise: float, is_drawn: bool
) -> tuple[Array, Array]:
    """Return the estimate and λ from sums (…, 9) of 1, w, wF, wY, wYF, wF² (labelled) and 1, F, F² (all)."""
    n, w, f, y, yf, ff, rows, g, gg = np.moveaxis(sums, -1, 0)
    more = rows - n
    with np.errstate(divide="ignore", invalid="ignore"):
        covariance = yf / w - y * f / w**2
        if is_drawn:
            # The labelled rows have a range of their own where large scores were drawn more often.
            variance = ff / w - (f / w) ** 2
            best, moved = covariance / variance, g / rows - f / w
        else:
            variance = (gg - g**2 / rows) / (rows - 1)
            best = np.clip(covariance / (rows / more * variance), 0.0, 1.0)
            moved = rows / more * (g / rows - f / w)
        lam = np.where(variance > noise, best, 0.0) if weight is None else np.full_like(n, weight)
        lam = np.where(more > 0, lam, 0.0)
        value = y / w + np.where(lam != 0, lam * moved, 0.0)
    return np.asarray(value, dtype=float), np.asarray(lam, dtype=float)


def _both(clusters: Labels, others: Labels, name: str) -> Any:
    """Return one set of labels of two kinds of rows, none where neither has them."""
    if (clusters is None) != (others is None):
        raise RagnbError(
            f"clusters are given for one kind of row only; give both clusters and {name}, or neither"
        )
    return None if clusters is None else np.concatenate([np.asarray(clusters), np.asarray(others)])


def fit_map(
    judge: Values, human: Values, kind: str = "isotonic", *, counts: Labels = None
) -> Callable[[Values], Array]:
    """Fit E[human | judge] by least squares, on a line or on any rising curve; return the map of scores.

    Parameters
    ----------
    kind : {"linear", "isotonic"}
        Isotonic: pool-adjacent-violators on the means at each distinct judge's score (Barlow et al. 1972). A
        judge that never varies gives the constant mean. It is flat beyond the scores it was fitted on.

    Examples
    --------
    >>> fit_map([1, 2, 3, 4], [1, 3, 2, 4])([2.5, 9.0]).tolist()
    [2.5, 4.0]
    """
    if kind not in MAPS:
        raise unknown("kind", kind, MAPS)
    rows = complete_rows([judge, human], None, counts)
    (x, y), c = rows.columns, rows.counts
    if not len(x):
        raise RagnbError(
            "no row has both a judge score and a human score; recalibration needs some"
        )
    if kind == "linear":
        centre, mean = float(c @ x / c.sum()), float(c @ y / c.sum())
        slope = (
            float((c * (x - centre)) @ y / ((c * (x - centre)) @ (x - centre)))
            if np.ptp(x) > 0
            else 0.0
        )
        return lambda scores: mean + slope * (np.asarray(scores, dtype=float) - centre)
    from scipy.optimize import isotonic_regression

    # Means of raters that differ in the last bit are one score, not two knots with a cliff between them.
    knots, at = np.unique(np.round(x, 9), return_inverse=True)
    sizes = np.bincount(at, weights=c)
    fitted = np.asarray(
        isotonic_regression(np.bincount(at, weights=c * y) / sizes, weights=sizes).x, dtype=float
    )
    return lambda scores: np.asarray(np.interp(np.asarray(scores, dtype=float), knots, fitted))


def grouped_folds(clusters: Values, k: int = 5, *, counts: Labels = None) -> Codes:
    """Return a fold 0 … k−1 a row: clusters stay whole, the largest go first (of
    equals the last name), each to the lightest fold, as in scikit-learn's GroupKFold.

    Fewer clusters than k give as many folds as clusters.

    Examples
    --------
    >>> grouped_folds(["a", "a", "a", "b", "c", "c"], 2).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    code = packed(np.asarray(clusters))
    sizes = np.bincount(code, weights=None if counts is None else np.asarray(counts, dtype=float))
    load, fold = np.zeros(max(min(k, len(sizes)), 1)), np.zeros(len(sizes), dtype=np.intp)
    for g in np.argsort(sizes, kind="stable")[::-1]:
        fold[g] = np.argmin(load)
        load[fold[g]] += sizes[g]
    return fold[code]


def _median(values: Array, counts: Array) -> float:
    order = np.argsort(values)
    upto = np.cumsum(counts[order])
    middle = np.searchsorted(
        upto, [upto[-1] / 2, upto[-1] / 2 + 0.5]
    )  # alike unless the count is even
    return float(values[order][middle].mean())


def recalibrate(
    judge: Values, human: Values, clusters: Values, *, counts: Labels = None
) -> dict[str, Array]:
    """Fit maps on four fifths of the clusters and map the scores of the fifth, in turn (`grouped_folds`).

    Returns
    -------
    dict of array
        The scores, out of fold, of the rows that both rated: ``raw``, the judge's as they are; ``constant``, the
        humans' median on the other folds, which needs no judge at all; ``linear, isotonic``, by the maps of
        `fit_map`.

    Raises
    ------
    RagnbError
        Fewer than two folds.

    Examples
    --------
    >>> found = recalibrate([1, 2, 3, 4] * 5, [2, 3, 4, 5] * 5, np.repeat(range(5), 4))
    >>> {name: scores[:4].round(9).tolist() for name, scores in found.items() if name != "isotonic"}
    {'raw': [1.0, 2.0, 3.0, 4.0], 'constant': [3.5, 3.5, 3.5, 3.5], 'linear': [2.0, 3.0, 4.0, 5.0]}
    """
    rows = complete_rows([judge, human], clusters, counts)
    (x, y), c, fold = rows.columns, rows.counts, grouped_folds(rows.code, counts=rows.counts)
    if len(np.unique(fold)) < 2:
        raise RagnbError("the rows come from one cluster; recalibration needs two clusters or more")
    predicted = {"raw": x, **{name: np.empty(len(x)) for name in ("constant", *MAPS)}}
    for f in np.unique(fold):
        test, train = fold == f, fold != f
        predicted["constant"][test] = _median(y[train], c[train])
        for kind in MAPS:
            predicted[kind][test] = fit_map(x[train], y[train], kind, counts=c[train])(x[test])
    return predicted


class DrawTest(NamedTuple):
    """The judge's mean on labelled rows and on the rest, the distance in standard errors, the two-sided p-value.

    Examples
    --------
    >>> DrawTest(3.0, 4.5, -12.0, 1e-9).rest
    4.5
    """

    labelled: float
    rest: float
    z: float
    p: float


def draw_test(
    labelled: Values, rest: Values, clusters: Labels = None, rest_clusters: Labels = None
) -> DrawTest:
    """Test whether the labelled rows look like a random sample, by the judge's scores on them and on the rest.

    The null hypothesis is that the draw did not depend on the judge's score. A draw that moves the spread of the
    judge's scores and not their mean is not found, and a draw by the *human* score cannot be found beyond what
    the judge shares with it: no human scored the rest. A draw with unequal, recorded chances is known and needs
    no test.

    Parameters
    ----------
    labelled, rest : array, shapes (n,) and (m,)
        The judge's scores on the labelled rows and on the others it scored, without gaps.
    clusters, rest_clusters : array, optional
        One set of labels: a name in both is one cluster. Give both or neither.

    Returns
    -------
    DrawTest
        nan for z and p where a side has no rows or the scores do not vary.

    Notes
    -----
    D = Σ cᵢFᵢ, cᵢ = 1/n on labelled rows and −1/m on the others, is 0 on average under the null. Scores of one
    cluster are alike: Var D = σ_b² Σ_g c_g² + σ_e² Σ cᵢ², c_g the sum over a cluster, both components by one-way
    analysis of variance of *all* rows. So rows drawn within clusters are tested by what varies within, whole
    clusters by what varies between. The p-value is that of Pearson's type III with D's skewness, as few labels of
    a lopsided score are skewed; its normal quantile is compared with t at Satterthwaite's degrees of freedom.

    Size at p ≤ 0.01, 1,000 draws a setting of 80 or 400 rows, 12 to 150 labels, clusters or none, scores from
    normal to 95 % alike: rows drawn at random 0.7 % on average, 1.7 % at most (Monte-Carlo error 0.3), rows within
    drawn clusters 0.5 and 1.5 %, whole clusters 0.2 and 1.2 %; systematic draws in strata of the score 0 %.

    Examples
    --------
    >>> found = draw_test([2, 3, 3, 2, 4, 3], [4, 5, 5, 4, 3, 5, 4, 5, 4, 5, 5, 4])
    >>> round(found.z, 1), found.p < 0.01
    (-3.1, True)
    """
    from scipy.special import gammainc, gammaincc, ndtr, ndtri, stdtr

    f, more = np.asarray(labelled, dtype=float), np.asarray(rest, dtype=float)
    names = _both(clusters, rest_clusters, "rest_clusters")
    every, n, m, rows = np.concatenate([f, more]), len(f), len(more), len(f) + len(more)
    of_labelled, of_rest = (float(part.mean()) if len(part) else np.nan for part in (f, more))
    if not (n and m) or not np.ptp(every) > 0:
        return DrawTest(of_labelled, of_rest, np.nan, np.nan)
    code = cluster_codes(names, rows)
    centred, c = every - every.mean(), np.concatenate([np.full(n, 1 / n), np.full(m, -1 / m)])
    total, by_cluster = float(centred @ centred), np.bincount(code, weights=c)
    g, typical = len(by_cluster), np.inf
    squares, df = [total / (rows - 1)] * 2, np.array([rows - 1.0, rows - 1.0])
    if 1 < g < rows:
        between, inside, typical = mean_squares(every, code, np.ones(rows))
        squares, df = [max(between, inside), inside], np.array([g - 1.0, rows - g])
    of_clusters = float(by_cluster @ by_cluster) / typical
    parts = np.array([of_clusters, float(c @ c) - of_clusters]) * squares
    variance, few = float(parts.sum()), float(parts.sum() ** 2 / np.sum(parts**2 / df))
    z = float(c @ centred) / variance**0.5
    third = float(np.mean(centred**3)) / float(np.mean(centred**2)) ** 1.5
    skew = third * (variance * (rows - 1) / total) ** 0.5 * (m - n) / rows
    # The tail of Pearson's type III, moved from the normal to t.
    tail = float(ndtr(-abs(z)))
    if abs(skew) >= 1e-4:
        shape, side = 4 / skew**2, z * np.sign(skew)
        at = max(shape + side * shape**0.5, 0.0)
        tail = float(min(gammainc(shape, at), gammaincc(shape, at)))
    return DrawTest(of_labelled, of_rest, z, min(2 * float(stdtr(few, ndtri(min(tail, 0.5)))), 1.0))


def _check(**rates: float) -> None:
    for name, rate in rates.items():
        if not 0 < rate < 1:
            raise RagnbError(f"{name}={rate} is not between 0 and 1; give a share such as 0.8")


def sample_size_normal(
    target: float, share: float, *, alpha: float = 0.05, power: float = 0.8
) -> int:
    """Return the rows that show a true `share` to exceed `target`, by the normal approximation.

    n = ((z₁₋α √(p₀q₀) + z₁₋β √(p₁q₁)) / (p₁ − p₀))², rounded up; one-sided, independent rows. Fleiss, Levin and
    Paik (2003), Statistical Methods for Rates and Proportions, chapter 2.

    Examples
    --------
    >>> sample_size_normal(0.8, 0.9)
    83
    """
    from scipy.special import ndtri

    _check(target=target, share=share, alpha=alpha, power=power)
    if share <= target:
        raise RagnbError(
            f"share={share} does not exceed target={target}; no number of labels shows that it does"
        )
    width: float = ndtri(1 - alpha) * sqrt(target * (1 - target)) + ndtri(power) * sqrt(
        share * (1 - share)
    )
    return ceil((width / (share - target)) ** 2)


def binomial_power(n: Values, target: float, share: float, *, alpha: float = 0.05) -> Array:
    """Return the power of the exact one-sided binomial test of share > target at each n.

    Examples
    --------
    >>> binomial_power([94], 0.8, 0.9).round(4).tolist()
    [0.8562]
    """
    from scipy.special import bdtrik, betainc

    size = np.asarray(n, dtype=float)

    def above(k: Array, p: float) -> Array:  # P(X > k)
        return np.where(k < size, betainc(k + 1, np.maximum(size - k, 0.5), p), 0.0)

    # The least k with P(X > k | target) ≤ alpha lies beside the continuous inverse.
    near = np.clip(np.ceil(bdtrik(1 - alpha, size, target)) + np.arange(-1, 2)[:, None], 0, size)
    least = np.min(np.where(above(near, target) <= alpha, near, size), axis=0)
    return above(least, share)


def sample_size_exact(
    target: float, share: float, *, alpha: float = 0.05, power: float = 0.8
) -> int:
    """Return the least n from which on the exact binomial test keeps the power, whatever more is labelled.

    The power of an exact test rises in saw teeth; the first n that reaches it may be followed by one that
    does not, so the search starts well above the normal approximation and walks down. Past 5,000 rows, where
    teeth no longer matter, it is the normal approximation.

    Examples
    --------
    >>> [sample_size_exact(0.8, share) for share in (0.85, 0.9, 0.95)]
    [398, 94, 37]
    """
    near = sample_size_normal(target, share, alpha=alpha, power=power)
    if near > 5000:
        return near
    sizes = np.arange(1, 2 * near + 61)
    weak = np.flatnonzero(binomial_power(sizes, target, share, alpha=alpha) < power)
    return int(sizes[weak[-1]]) + 1 if len(weak) else 1


def anova_icc(values: Values, clusters: Labels, *, counts: Labels = None) -> float:
    """Return ρ, the intra-cluster correlation by one-way analysis of variance, for clusters of any sizes.

    ρ = (MSB − MSW) / (MSB + (m₀ − 1) MSW), m₀ = (n − Σm²/n)/(G − 1); nan with one cluster, with no cluster of
    two rows, or where nothing varies. It may be negative. Donner and Koval (1980), Biometrics 36, 19–25.

    Examples
    --------
    >>> anova_icc([1, 1, 0, 0, 1, 1], ["a", "a", "b", "b", "c", "c"])
    1.0
    """
    rows = complete_rows([values], clusters, counts)
    g = int(rows.code.max(initial=-1)) + 1
    if g < 2 or rows.counts.sum() == g:
        return float("nan")
    between, inside, m0 = mean_squares(rows.columns[0], rows.code, rows.counts)
    bottom = between + (m0 - 1) * inside
    return float((between - inside) / bottom) if bottom > 0 else float("nan")


def design_effect(sizes: Values, rho: float) -> float:
    """Return 1 + (Σm²/Σm − 1)·ρ, at least 1: the number of clustered rows equivalent to one independent row.

    Kish (1965), Survey Sampling, with the sizes' weighted mean for unequal clusters.

    Examples
    --------
    >>> design_effect([2, 2, 4], 0.5)
    2.0
    """
    m = np.asarray(sizes, dtype=float)
    return float(max(1.0, 1 + (np.sum(m**2) / np.sum(m) - 1) * rho)) if np.isfinite(rho) else 1.0


@dataclass(frozen=True, slots=True)
class LabelsNeeded:
    """The labels that show a share above a target.

    `total` is what the test needs if the share seen is the true one (80 % power), `more` what of it is missing,
    `chance` that so many do when only the labels at hand are known of the truth, `likely` the number at which
    that chance is 80 % (None where none does), `most` the largest chance that any number gives. `reason` is
    "counted", "share_at_or_below_target" (more labels will not help), "too_close_to_tell" (more than 100 times
    the labels at hand), or "beyond_plan" (it takes a new plan of `total` labels, all fresh).

    Examples
    --------
    >>> LabelsNeeded(200, 80, 100, 0.6, 400, 0.9, 2.0, 0.1, 0.92, "counted").more
    80
    """

    total: int | None
    more: int | None
    independent: int | None
    chance: float
    likely: int | None
    most: float
    deff: float
    rho: float
    seen: float
    reason: str


_MOST_LABELS = 100  # times those at hand: nobody can use a plan of more


@dataclass(frozen=True, slots=True)
class _Labelled:
    """A share of flags as so many labels show it, and how its test is planned."""

    share: float
    n: int
    size: float
    df: float
    deff: float
    target: float
    alpha: float
    planned: int | None

    def chance(self, labels: npt.ArrayLike) -> Array:
        """Return the chance that so many labels show share > target, given those at hand; nan for fewer.

        Nothing is known of the truth but the labels at hand (a flat prior), so the share of n + k labels wanders
        by se √(k/(n + k)) around the one seen. The se is that of (m p + 1)/(m + 2), m the effective size: with
        the share itself a few labels that all agree would be certain.
        """
        from scipy.special import stdtr

        total = np.asarray(labels, dtype=float)
        size, b = self.size, self.target
        likely = (size * self.share + 1) / (size + 2)
        r = total / self.n
        alpha, kept = self.alpha, np.ones(())
        if self.planned is not None:
            alpha, kept = alpha / 2, np.sqrt(total / self.planned)
        half = t_quantile(1 - 2 * alpha, self.df * r) * np.sqrt(b * (1 - b) / (size * r * kept))
        with np.errstate(divide="ignore", invalid="ignore"):
            wanders = np.sqrt(likely * (1 - likely) / size * (1 - 1 / r))
            chances = stdtr(self.df, (self.share - b - half) / wanders)
        past = total > (self.planned or np.inf)
        return np.where((total < self.n) | past, np.nan, chances)


def _labelled(
    flags: Values,
    clusters: Labels,
    weights: Labels,
    counts: Labels,
    *,
    target: float,
    alpha: float,
    labels_planned: int | None,
) -> tuple[_Labelled, float]:
    """Return the labels at hand for planning, and the correlation within their clusters."""
    rows = complete_rows([flags], clusters, counts, weights)
    level = 1 - 2 * alpha
    how: Any = {"weights": weights, "counts": counts, "ends": (0.0, 1.0), "level": level}
    share = clustered_mean(flags, clusters, **how)
    rho = anova_icc(flags, clusters, counts=counts) if clusters is not None else float("nan")
    c, v = rows.counts, rows.weights
    kept = float(kish(c @ v, c @ v**2))
    deff = design_effect(np.bincount(rows.code, c), rho) * (c.sum() / kept if kept else 1.0)
    size = wilson_size(share.value, share.low, share.high, share.df, level)
    size = size if np.isfinite(size) else share.n / deff
    if clusters is not None and share.n:
        # The interval that decides may be wider than the correlation says, above all with few clusters.
        deff = max(deff, share.n / size)
    df = max(share.df, 1.0)
    return _Labelled(share.value, share.n, size, df, deff, target, alpha, labels_planned), rho


def labels_needed(
    flags: Values,
    clusters: Labels = None,
    *,
    target: float = 0.8,
    alpha: float = 0.05,
    power: float = 0.8,
    weights: Labels = None,
    counts: Labels = None,
    labels_planned: int | None = None,
) -> LabelsNeeded:
    """Return how many labels show that the share of flags exceeds the target, and how likely they suffice.

    Parameters
    ----------
    flags : array, shape (n,)
        1 within the tolerance, 0 not, nan not rated.
    clusters : array, shape (n,), optional
        Rows of one cluster repeat one another: the design effect multiplies the number.
    weights : array, shape (n,), optional
        As in `clustered_mean`; Kish's factor for unequal ones goes into the design effect.
    counts : array, shape (n,), optional
        The number of rows that each row represents.
    labels_planned : int, optional
        The most labels that will be bought, where the verdict is looked at again as they come in: N labels then
        tell as much as N √(N / planned) at half the `alpha` (`mean_interval`).

    Returns
    -------
    LabelsNeeded
        `total` is the exact binomial test's, if the share seen is the true one. It is as likely too high as too
        low, so `chance` says how often so many labels do, and `likely` how many do in 80 of 100 cases.

    Examples
    --------
    >>> plan = labels_needed([1] * 167 + [0] * 33, target=0.8)
    >>> plan.total, round(plan.chance, 2), plan.likely, round(plan.most, 2)
    (811, 0.7, 2354, 0.87)
    """
    _check(target=target, alpha=alpha, power=power)
    how: Any = {"target": target, "alpha": alpha, "labels_planned": labels_planned}
    at_hand, rho = _labelled(flags, clusters, weights, counts, **how)
    share, n, deff = at_hand.share, at_hand.n, at_hand.deff

    def without(
        reason: str, total: int | None = None, independent: int | None = None
    ) -> LabelsNeeded:
        nan = float("nan")
        return LabelsNeeded(total, total, independent, nan, None, nan, deff, rho, share, reason)

    if not share > target:
        return without("share_at_or_below_target")
    most_labels = _MOST_LABELS * n if labels_planned is None else labels_planned
    error = alpha if labels_planned is None else alpha / 2
    near = min(share, 1 - 1e-9)
    if deff * sample_size_normal(target, near, alpha=error, power=power) > _MOST_LABELS * n:
        return without("too_close_to_tell")
    independent = sample_size_exact(target, near, alpha=error, power=power)
    total = ceil(deff * independent)
    if labels_planned is not None:
        if max(total, n) > labels_planned:
            return without("beyond_plan", total, independent)
        total = ceil((deff * independent) ** (2 / 3) * labels_planned ** (1 / 3) - 1e-9)
    # Labels that are not yet enough gain with each that is added, up to where the chance levels off.
    sizes = np.unique(np.geomspace(n, most_labels, 200).round())
    chances = at_hand.chance(sizes)
    reached = np.flatnonzero(chances >= power)
    likely = None
    if len(reached):
        below = int(sizes[max(reached[0] - 1, 0)])
        steps = np.arange(below, int(sizes[reached[0]]) + 1)
        likely = int(steps[np.flatnonzero(at_hand.chance(steps) >= power)[0]])
    chance = float(at_hand.chance(max(total, n)))
    more, most = max(total - n, 0), float(np.nanmax(chances))
    return LabelsNeeded(total, more, independent, chance, likely, most, deff, rho, share, "counted")


def label_budget(
    flags: Values,
    clusters: Labels = None,
    *,
    target: float = 0.8,
    alpha: float = 0.05,
    level: float = 0.95,
    sizes: Values | None = None,
    weights: Labels = None,
    counts: Labels = None,
    labels_planned: int | None = None,
) -> dict[str, Array]:
    """Return the interval and power for numbers of labels, if further ones are like those available.

    Parameters
    ----------
    flags, clusters
        As in `labels_needed`: 1 within the tolerance, 0 not, nan not rated.
    target, alpha
        The test: exact binomial, one-sided, on labels / design effect, as in `labels_needed`.
    level : float
        The level of ``low, high``, the interval of the share.
    sizes : array, optional
        The numbers of labels, each 1 or more; None lays some 40 from 10 past what is there and what is needed.
    weights, counts : array, optional
        As in `labels_needed`.
    labels_planned : int, optional
        As in `labels_needed`: the chances are those of a verdict under this plan, nan beyond it.

    Returns
    -------
    dict of array
        ``labels``; ``low, high``, the interval expected at so many; ``probability`` to show share > target, were
        the seen share the true one (the least at that number of labels or any larger one); ``chance`` of it when
        only the labels at hand are known of the truth (`labels_needed`), nan for fewer labels than those.

    Examples
    --------
    >>> curve = label_budget([1] * 90 + [0] * 10, target=0.8, sizes=[50, 94, 200])
    >>> curve["probability"].round(2).tolist(), (curve["high"] - curve["low"]).round(2).tolist()
    ([0.51, 0.81, 0.99], [0.17, 0.12, 0.08])
    """
    how: Any = {"target": target, "alpha": alpha, "labels_planned": labels_planned}
    need = labels_needed(flags, clusters, weights=weights, counts=counts, **how)
    at_hand, _ = _labelled(flags, clusters, weights, counts, **how)
    rows = complete_rows([flags], clusters, counts, weights)
    n, sizes_seen = at_hand.n, np.bincount(rows.code, rows.counts)
    per_label = 1.0 if clusters is None else float(kish(n, np.sum(sizes_seen**2.0))) / n
    if sizes is None:
        told = (n, need.total, need.likely, labels_planned)
        here = [size for size in told if size is not None]
        top = max(4 * n, 200, int(1.5 * max(here)))
        sizes = np.unique(np.r_[np.geomspace(10, top, 38).round(), here])
    labels = np.asarray(sizes, dtype=float)
    share = np.full(len(labels), need.seen)
    se = np.sqrt(share * (1 - share) * need.deff / labels)
    g_eff = np.maximum(per_label * labels, 1.0)
    low, high = mean_interval(share, se, g_eff, labels, (0.0, 1.0), binary=True, level=level)
    fraction = labels / (labels_planned or np.inf)
    alpha, kept_of = (alpha, 1.0) if labels_planned is None else (alpha / 2, np.sqrt(fraction))
    independent = np.maximum(np.floor(labels * kept_of / need.deff + 1e-9), 1.0)
    # The teeth of the exact test's power are shorter than this.
    ahead = independent[:, None] + np.arange(61.0)
    power = binomial_power(ahead.ravel(), target, min(need.seen, 1 - 1e-9), alpha=alpha)
    return {
        "labels": labels,
        "low": low,
        "high": high,
        "probability": np.where(fraction <= 1, power.reshape(ahead.shape).min(axis=1), np.nan),
        "chance": at_hand.chance(labels),
    }


# Decisions at a threshold

MOST_TIMES = 30
"""A plan of more than so many times the questions at hand is none: the mean lies too close to the threshold."""
_POWER, _NEAR = 0.8, 1e-9
_SHARE = (
    0.2  # of the variance that the range allows: values that all came out alike may not stay so
)


def flip_probability(value: float, threshold: float, se: float, df: float) -> float:
    """Return the probability that an identical repeat falls on the other side of a threshold; nan without se.

    A repeat differs from this run by se √2 and nothing is known of the truth but this run: T(−|value − b|/(√2 se))
    with max(df, 1) degrees of freedom. Where the truth is the threshold itself it is 50 %, and this says 30 on
    average.

    Examples
    --------
    >>> round(flip_probability(0.82, 0.8, 0.03, 13), 3)
    0.323
    """
    from scipy.special import stdtr

    if not (se > 0 and np.isfinite(df)):
        return float("nan")
    return float(stdtr(max(df, 1.0), -abs(value - threshold) / (np.sqrt(2) * se)))


def wilson_size(value: float, low: float, high: float, df: float, level: float) -> float:
    """Return n of the Wilson interval (low, high) of a share with Student's t, nan if it is not one.

    At an end L of the interval (p − L)² = t² L(1 − L)/n, so either end tells n; both tell the same.

    Examples
    --------
    >>> t = t_quantile(0.95, 9.0)
    >>> low, high = wilson(np.array(0.9), np.array(60.0), t)
    >>> round(wilson_size(0.9, float(low), float(high), 9, 0.95), 6)
    60.0
    """
    t2 = float(t_quantile(level, max(df, 1.0))) ** 2
    ends = [end for end in (low, high) if min(end, 1 - end) > _NEAR and end != value]
    told = [t2 * end * (1 - end) / (value - end) ** 2 for end in ends]
    alike = bool(told) and np.allclose(told, told[0], rtol=1e-6)
    return float(told[0]) if alike else float("nan")


def questions_to_decide(
    value: float,
    threshold: float,
    n: float,
    df: float,
    level: float,
    *,
    size: float | None = None,
    se: float = 0.0,
) -> int | None:
    """Return how many more questions decide on which side of a threshold a mean lies, at 80 % power.

    Parameters
    ----------
    value, threshold : float
        With `size` shares in [0, 1].
    n : float
        The questions at hand.
    df, level : float
        Of the interval at hand.
    size : float, optional
        Wilson's n of the interval; None where it is value ± t·se.
    se : float
        Without `size`.

    Returns
    -------
    int or None
        None above 30 n: too close to the threshold for more questions to decide.

    Notes
    -----
    Nothing is known but this estimate, so the mean of n + k questions wanders by se √(k/(n + k)), and with
    r = (n + k)/n its interval reaches t(df·r) √(b(1 − b)/(size·r)) from the threshold b (without a size
    t·se/√r). The smallest k at which the mean is farther from b than that, on either side, with 80 %.

    Examples
    --------
    >>> questions_to_decide(0.86, 0.8, 84, 13, 0.95, size=84)
    582
    """
    from scipy.special import stdtr

    freedom, gap = max(df, 1.0), value - threshold
    se = se if size is None else float(np.sqrt(value * (1 - value) / size))

    def decided(k: int) -> float:
        r = np.float64((n + k) / n)
        error = se if size is None else np.sqrt(threshold * (1 - threshold) / size)
        half = t_quantile(level, freedom * r) * error / np.sqrt(r)
        with np.errstate(divide="ignore", invalid="ignore"):
            sides = [
                stdtr(freedom, (way * gap - half) / (se * np.sqrt(k / (n + k)))) for way in (1, -1)
            ]
        return float(np.nan_to_num(sides[0] + sides[1], nan=0.0))

    # The probability rises with k wherever the interval at hand contains the threshold.
    most = int(MOST_TIMES * n)
    needed = bisect_left(range(1, most + 1), _POWER, key=decided) + 1
    return needed if needed <= most else None


def unseen_failures(
    low: npt.ArrayLike, g_eff: npt.ArrayLike, *, alpha: float = 0.05
) -> tuple[Array, Array]:
    """Return how low a mean may be if entire documents can fail, and the share that may fail unobserved.

    Parameters
    ----------
    low : array
        The low end of the interval, rescaled so that 0 is the bad end of the range.
    g_eff : array
        The effective number of documents, none of which failed.

    Notes
    -----
    Were a share q of all documents failures, none of G would be one with probability (1 − q)^G: at least `alpha`
    up to q = 1 − α^(1/G). Such documents, at the bad end, leave (1 − q) of the mean.

    Examples
    --------
    >>> low_if, share = unseen_failures(0.95, 20)
    >>> round(float(low_if), 3), round(float(share), 3)
    (0.818, 0.139)
    """
    kept: Array = alpha ** (1 / np.asarray(g_eff, dtype=float))
    return np.asarray(low, dtype=float) * kept, 1 - kept


# Sequential evaluation: a balanced order of rows, and when a decision is settled


def balanced_order(groups: npt.ArrayLike, *, seed: int = 0) -> npt.NDArray[np.intp]:
    """Return a random order of rows in which every prefix has the groups in proportion.

    Among the first k of N rows a group of m has ⌊km/N⌋ or ⌈km/N⌉: groups of one size come in rounds of one row
    each. The order is random within the groups and, as far as that leaves a choice, among them.

    Parameters
    ----------
    groups : array
        The group of each row, such as its document.
    seed : int
        The same seed gives the same order.

    Examples
    --------
    >>> groups = np.array(["a", "b", "c"] * 4)
    >>> groups[balanced_order(groups)].reshape(4, 3).tolist()
    [['c', 'b', 'a'], ['a', 'b', 'c'], ['c', 'a', 'b'], ['a', 'c', 'b']]
    """
    rng, code = np.random.default_rng(seed), packed(np.asarray(groups))
    n, sizes = len(code), np.bincount(code)
    shuffled = rng.permutation(n)
    rows = shuffled[np.argsort(code[shuffled], kind="stable")]
    size, start = np.repeat(sizes, sizes), np.cumsum(sizes) - sizes
    rank = np.arange(n) - np.repeat(start, sizes)
    # A row may come from one place on and must come before another: between them its group is in proportion. Where
    # it is aimed at, no group is early or late on average.
    opens, ends = np.append(rank * n // size, n), np.append(-(-(rank + 1) * n // size), n)
    aim = np.append((rank + rng.random(n)) / size, np.inf)
    room = np.arange(1, n + 1) - np.cumsum(np.bincount(ends[:n], minlength=n + 1)[1:])
    following, order = start.copy(), np.empty(n, dtype=np.intp)
    for place in range(n):
        full = (
            place + 1 + int(np.argmax(room[place:] == 0))
        )  # up to here every place is needed by a row that ends
        fits = (opens[following] <= place) & (ends[following] <= full)
        chosen = int(following[np.argmin(np.where(fits, aim[following], np.inf))])
        order[place] = rows[chosen]
        room[place : ends[chosen] - 1] -= 1
        group = code[rows[chosen]]
        following[group] = chosen + 1 if chosen + 1 < start[group] + sizes[group] else n
    return order


def pooled_variance(values: Values, groups: npt.ArrayLike) -> float:
    """Return the variance of values within their groups, Σ(x − mean of its group)² / Σ(m − 1), m the group sizes.

    It is nan where no group has two values.

    Examples
    --------
    >>> pooled_variance([1, 3, 2, 2, 9], ["a", "a", "b", "b", "c"])
    1.0
    """
    x, code = np.asarray(values, dtype=float), packed(np.asarray(groups))
    sizes = np.bincount(code)
    residuals = x - (np.bincount(code, weights=x) / sizes)[code]
    freedom = len(x) - len(sizes)
    return float(residuals @ residuals) / freedom if freedom else float("nan")


def side_is_settled(
    value: Values,
    threshold: Values,
    variance: Values,
    n: Values,
    size: Values,
    *,
    width: float = 1.0,
    binary: bool = False,
) -> Flags:
    """Return whether the remaining rows cannot move a mean to the other side of a threshold.

    Parameters
    ----------
    value : array
        The (weighted) mean of the rows that are there, a beginning of a `balanced_order`.
    threshold : array
    variance : array
        Within the groups of the order; see `pooled_variance`. With nan nothing is settled.
    n, size : array
        How many rows are there, and how many there will be; of weighted rows Kish's numbers.
    width : float
        Of the range of the values.
    binary : bool
        Whether the values are 0 and 1.

    Returns
    -------
    array of bool
        True where \\|value − threshold\\| > 3 √(s² (1/n − 1/size)), with s² the variance, yet at least a fifth of
        width²/n, and for 0/1 values a fifth of v(1 − v) + 1/n and half of b(1 − b) at the threshold b.

    Notes
    -----
    The mean of all rows is that of the first plus a deviation of variance s²(1/n − 1/size) (sampling without
    replacement within groups). The least variance is for values that are piled up at one end: before one of the
    others is seen, their own variance is 0. Half of what rows at the threshold would have is for failures that are
    rare: without it 1.8 % of runs at a pass rate of .95 ended on the other side, with it .4.

    Examples
    --------
    >>> side_is_settled([0.9, 0.82], 0.8, 0.1, 80, 400, binary=True).tolist()
    [True, False]
    """
    v, at, s2, seen, whole = (
        np.asarray(one, dtype=float) for one in (value, threshold, variance, n, size)
    )
    least: Array = _SHARE * (v * (1 - v) * binary + width**2 / seen)
    least = np.maximum(least, at * (1 - at) / 2 * binary)
    return np.asarray(
        np.abs(v - at) > 3 * np.sqrt(np.maximum(s2, least) * np.maximum(1 / seen - 1 / whole, 0))
    )
