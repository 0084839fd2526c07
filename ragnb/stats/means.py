"""The estimator of all means: a clustered ratio mean, its standard error and interval.

The functions take arrays of many means at once, from sums that any engine can make.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
_NOISE = 1e-9  # a smaller standard error, as a share of the range, is rounding error: the values are identical
_BLOCK = 2_000_000  # counts of the bootstrap held at once: 16 MB of resamples × units
_FEW = 5  # clusters: with so few, identical scores carry no more information than the clusters do


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
    low = np.where(p == 0, 0.0, np.clip(centre - half, 0.0, 1.0))  # rounding leaves 1e-17 of the difference
    high = np.where(p == 1, 1.0, np.clip(centre + half, 0.0, 1.0))
    return low, high


def _skewed_df(p: Array, n: Array, g_eff: Array, t: Array) -> Array:
    """Degrees of freedom of se², fewer than G_eff − 1 where the clusters' sums are skewed: see `mean_interval`."""
    r = np.minimum(g_eff / n, 1.0)
    shrink = t**2 / n
    centre = (p + shrink / 2) / (1 + shrink)
    half_kurtosis = (1 - 2 * centre) ** 2 / (centre * (1 - centre)) * r * (1 - r)
    return np.asarray(np.maximum(np.maximum(g_eff - 1, 1.0) / (1 + half_kurtosis), 1.0))


def mean_interval(
    value: Array, se: Array, g_eff: Array, n_kish: Array, ranges: tuple[Array, Array], *, binary: Any = False,
    level: float = 0.95, df: Array | None = None, fraction: Any = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the interval of a clustered mean.

    Parameters
    ----------
    value, se : array
        The mean and its jackknife standard error; nan gives a nan interval.
    g_eff : array
        1/Σh², the effective number of clusters; t has max(g_eff − 1, 1) degrees of freedom.
    n_kish : array
        Kish's effective number of samples. Where se is 0, the smaller of it and `g_eff` represents n: values all
        alike do not provide how those of one cluster go together. With 5 clusters or fewer (0/1: fewer
        than 5) n is at most that, too.
    ranges : (array, array)
        The ends of the metric's range. Finite: Wilson at n = p(1−p)/se² on the range rescaled to 0–1, with t
        in place of z, of fewer degrees of freedom where p is near an end and the clusters' sums are skewed.
        Else: value ± t·se.
    binary : bool or array of bool
        For 0/1 values n is capped at Kish's, as no design tells more than independent samples would.
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
    G clusters the variance of a variance is σ⁴ (2/(G−1) + κ/G), κ the excess kurtosis, so the degrees of freedom
    that match it (Satterthwaite 1946, Biometrics Bulletin 2, 110–114) are (G−1)/(1 + κ/2). In place of a fourth
    moment, which few clusters tell badly, stands what the range implies: with r = G_eff/n the share of the
    variance that 0/1 clusters would have, a cluster's skewness is γ = (1−2p) √(r/pq) where the variance goes as
    pq, and κ = 2γ² (1.5 γ² for a gamma; simulation in benchmarks/coverage.py bears out 2), with p at Wilson's
    centre. The factor 1 − r lets go of it for 0/1 clusters, whose variance follows from their mean:
    ν = max((G_eff − 1)/(1 + r(1 − r)(1 − 2p)²/pq), 1).

    Fourth-root rule: a margin wider by fraction^(−1/4), at half the error a side (t(.975) where a side has 5 %),
    misses a true value at any of 15 looks on a Brownian path in 5.0 % of cases, of 60 in 5.8 %; `widening` is its
    cost. Where the plan is raised after looking, it is 7 % (1.5 times) to 8.6 % (twice).

    Examples
    --------
    >>> one = np.array(1.0)
    >>> low, high = mean_interval(one, 0 * one, 20 * one, 20 * one, (0 * one, one))
    >>> round(float(low), 3), float(high)
    (0.82, 1.0)
    """
    bottom, top = ranges
    kept = 1.0 if fraction is None else np.sqrt(fraction)  # the effective n after repeated looks
    level = level if fraction is None else (1 + level) / 2
    t = t_quantile(level, np.maximum(g_eff - 1 if df is None else df, 1.0))
    finite = np.isfinite(bottom) & np.isfinite(top)
    width = np.where(finite, top - bottom, 1.0)
    base = np.where(finite, bottom, 0.0)
    p = np.clip((value - base) / width, 0.0, 1.0)
    s2 = (se / width) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        varies = (s2 > _NOISE**2) & (p > 0) & (p < 1)
        fewest = np.minimum(n_kish, g_eff)
        n = np.where(varies, p * (1 - p) / s2, n_kish if df is not None else fewest)
        if df is None:
            few = g_eff < _FEW + np.where(binary, -1e-9, 1e-9)  # identical 0/1 clusters count as 0/1 rows
            n = np.where(few, np.minimum(n, fewest), np.where(binary, np.minimum(n, n_kish), n))
            wider = np.where(varies, t_quantile(level, _skewed_df(p, n, g_eff, t)), t)
            n = n * (t / wider) ** 2
        low, high = wilson(p, kept * n, t)
    low = np.where(finite, base + width * low, value - t * se / np.sqrt(kept))
    high = np.where(finite, base + width * high, value + t * se / np.sqrt(kept))
    known = np.isfinite(value) & np.isfinite(se) & (kept <= 1)
    return np.where(known, low, np.nan), np.where(known, high, np.nan)


def widening(fraction: float, df: float, *, level: float = 0.95) -> float:
    """Return the factor by which the fourth-root rule of `mean_interval` widens the margin of a single look.

    Examples
    --------
    >>> round(widening(1.0, np.inf, level=0.9), 2), round(widening(1 / 16, np.inf, level=0.9), 2)
    (1.19, 2.38)
    """
    return float(t_quantile((1 + level) / 2, df) / t_quantile(level, df) / fraction**0.25)


def resampled_means(
    sizes: npt.NDArray[np.int64], weights: Array, sums: Array, variances: Array, *, resamples: int, seed: int
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
            picked = rng.integers(0, units, (len(part), total)) + units * np.arange(len(part))[:, None]
            drawn = np.bincount(picked.ravel(), minlength=len(part) * units).reshape(-1, units).astype(float)
        bottom, top = drawn @ weights, drawn @ sums
        if variances.any():
            top += np.sqrt(drawn @ variances) * rng.standard_normal(part.shape)
        np.divide(top, bottom, out=part, where=bottom > 0)
    return means
