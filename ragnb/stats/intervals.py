"""A clustered ratio mean: its standard error and its interval, of many at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragnb.stats.arrays import Array

_NOISE = 1e-9  # a smaller standard error, as a share of the range, is rounding error: the values are identical
_IDENTICAL = 1e-12  # likewise, as a share of the value, of a range that is wide
_WIDE = 1e6  # a range so many times as wide as the scores are apart tells nothing of them
_EULER = 0.5772156649015329  # γ: the sum of 1/k to n is digamma(n + 1) + γ
_BLOCK = 2_000_000  # counts of the bootstrap held at once: 16 MB of resamples × units


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
    is_usable = (n_clusters >= 2) & (total > 0)
    # Where the result is nan, any divisors will do.
    g = np.where(is_usable, n_clusters, 2.0)
    a = np.where(is_usable, total, 1.0)
    # Taken from moments, a sum of squares may come out as -1e-20.
    squares = np.maximum(inflated, 0.0)
    return np.where(is_usable, np.sqrt((g - 1) / g * squares) / a, np.nan)


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
    variance = np.maximum(p * (1 - p) / n + z2n / (4 * n), 0.0)
    half = z * np.sqrt(variance) / (1 + z2n)
    # Rounding leaves 1e-17 of the difference.
    low = np.where(p == 0, 0.0, np.clip(centre - half, 0.0, 1.0))
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
        Else, and where the range is a million times as wide as the scores are apart: value ± t·se, no end of it
        beyond an end of the range; nan is no end.
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
    kept = 1.0 if fraction is None else np.sqrt(fraction)  # the effective n after repeated looks
    if fraction is not None:
        level = (1 + level) / 2
    df0 = np.maximum(g_eff - 1, 1.0)
    t = t_quantile(level, df0 if df is None else np.maximum(df, 1.0))
    scale = _scale(value, se, n_kish, ranges)
    p = np.clip((value - scale.base) / scale.width, 0.0, 1.0)
    variance = (se / scale.width) ** 2
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        varies = (variance > _NOISE**2) & (p > 0) & (p < 1)
        n = np.where(varies, p * (1 - p) / variance, n_kish)
        quantile = t
        if df is None:
            drawn_n = _towards_kish(n, n_kish, elsewhere, binary)
            n = np.where(binary, np.minimum(n, n_kish), drawn_n)
            quantile = t_quantile(level, skewed_df(p, n, t, g_eff, df0, sum_h4))
            # All alike: Wilson's bound at this quantile is that of Clopper and Pearson.
            n_alike = kept * size_if_alike(g_eff, n_kish)
            error = (1 - level) / 2  # of one side
            exact = np.sqrt(n_alike * (error ** (-1 / n_alike) - 1))
            n = np.where(varies, n, n_alike / kept)
            quantile = np.where(varies, quantile, exact)
        low_share, high_share = wilson(p, kept * n, quantile)

    margin = t * se / np.sqrt(kept)
    low_by_t = np.maximum(value - margin, scale.least)
    high_by_t = np.minimum(value + margin, scale.most)
    low = np.where(scale.is_finite, scale.base + scale.width * low_share, low_by_t)
    high = np.where(scale.is_finite, scale.base + scale.width * high_share, high_by_t)
    # Above 1 there are more rows than were planned for, and the looks no longer keep the level.
    is_known = np.isfinite(value) & np.isfinite(se) & (kept <= 1)
    return np.where(is_known, low, np.nan), np.where(is_known, high, np.nan)


class _Scale(NamedTuple):
    """The range of a metric, as its interval sees it."""

    base: Array  # what the share 0 is, and how wide 0 to 1 is; 0 and 1 where an end is infinite
    width: Array
    least: Array  # the ends themselves
    most: Array
    is_finite: Array  # whether the interval is Wilson's on the range


def _scale(value: Any, se: Any, n_kish: Any, ranges: tuple[Any, Any]) -> _Scale:
    """Return the range, which counts as endless where it is far wider than the scores are apart."""
    bottom, top = ranges
    has_ends = np.isfinite(bottom) & np.isfinite(top)
    width = np.where(has_ends, top - bottom, 1.0)
    # About the distance between the scores: two standard deviations each way.
    apart = 4 * se * np.sqrt(n_kish)
    varies = se > _IDENTICAL * np.abs(value)
    is_wide = (width > _WIDE) & (width > _WIDE * apart) & varies
    return _Scale(
        base=np.where(has_ends, bottom, 0.0),
        width=width,
        # An end counts also where the other one is infinite: no mean of latencies is below 0.
        least=np.where(np.isnan(bottom), -np.inf, bottom),
        most=np.where(np.isnan(top), np.inf, top),
        is_finite=has_ends & ~is_wide,
    )


def _towards_kish(n: Array, n_kish: Array, elsewhere: Any, binary: Any) -> Array:
    """Return Wilson's n, drawn towards Kish's where most scores lie at one end and few elsewhere."""
    if elsewhere is None:
        return n
    few, scores = elsewhere
    share = np.divide(few, scores, out=np.ones(np.shape(few)), where=np.asarray(scores) > 0)
    # Fully, where at most 10 scores, and a quarter of them, are elsewhere; not at all from 30, or a half, on.
    by_number = np.clip(1.5 - few / 20, 0.0, 1.0)
    by_share = np.clip(2 - 4 * share, 0.0, 1.0)
    drawn = by_number * by_share
    with np.errstate(divide="ignore", invalid="ignore"):
        # A weighted geometric mean of the two: n at 0, Kish's at 1.
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
    # The variance, as a share of what it would be with clusters that are all 0 or all 1 inside.
    r = np.minimum(g_eff / n, 1.0)
    shrink = t**2 / n
    centre = (p + shrink / 2) / (1 + shrink)  # Wilson's, which is never 0 or 1
    # (1 − 2c)²/(c(1 − c)) is the squared skewness of a 0/1 score.
    kurtosis = 1.5 * (1 - 2 * centre) ** 2 / (centre * (1 - centre)) * r * (1 - r)
    if sum_h4 is None:
        spread = 1 / df0
    else:
        spread = np.clip(g_eff**2 * sum_h4, 1 / df0, 2 / df0)
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
    total = int(sizes.sum())
    if total == 0:
        return means
    block = max(1, _BLOCK // len(sizes))
    for start in range(0, resamples, block):
        part = means[start : start + block]
        drawn = _drawn(rng, sizes, total, len(part))
        bottom = drawn @ weights
        top = drawn @ sums
        if variances.any():
            top += np.sqrt(drawn @ variances) * rng.standard_normal(part.shape)
        np.divide(top, bottom, out=part, where=bottom > 0)
    return means


def _drawn(rng: np.random.Generator, sizes: npt.NDArray[np.int64], total: int, n: int) -> Array:
    """Return how often each unit is drawn in n resamples of `total` draws, shape (n, U)."""
    units = len(sizes)
    if total > units:
        return rng.multinomial(total, sizes / total, size=(n,)).astype(float)
    # All units are of size 1: drawing them one by one is the multinomial, and faster.
    return drawn_counts(rng, units, total, n).astype(float)


def drawn_counts(rng: np.random.Generator, units: int, draws: int, n: int) -> npt.NDArray[np.intp]:
    """Return how often each of some equal units is drawn in n resamples with replacement, shape (n, units).

    Examples
    --------
    >>> drawn_counts(np.random.default_rng(0), 1, 3, 2).tolist()
    [[3], [3]]
    """
    picked = rng.integers(0, units, (n, draws))
    # Each resample is counted in bins of its own.
    bins = picked + units * np.arange(n)[:, None]
    return np.bincount(bins.ravel(), minlength=n * units).reshape(n, units)
