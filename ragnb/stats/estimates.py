"""One small result, a number with its interval and its n, and the delete-one-cluster jackknife behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ragnb.errors import RagnbError
from ragnb.stats.means import Array, jackknife_se, kish, mean_interval, t_quantile

Codes = npt.NDArray[np.intp]
Values = npt.ArrayLike
Labels = npt.ArrayLike | None
Counts = npt.ArrayLike | None  # how many rows a row stands for, ≥ 1 (in clusters also a fraction); None is one


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval, se and what it rests on; nan where there is none.

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


NONE = Estimate(np.nan, np.nan, np.nan, np.nan, 0, 0)


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
        raise RagnbError(f"clusters has {len(names)} rows, the values have {n}; give one cluster a row")
    return packed(names)


def packed(names: npt.NDArray[Any]) -> Codes:
    """Return labels as codes 0 … G−1 in their order; small whole numbers need no sorting.

    Examples
    --------
    >>> packed(np.array([7, 2, 7])).tolist()
    [1, 0, 1]
    """
    if names.dtype.kind in "iu" and names.size and names.min() >= 0 and names.max() < 4 * names.size + 64:
        there = np.bincount(names) > 0
        return np.asarray((np.cumsum(there) - 1)[names], dtype=np.intp)
    return np.unique(names, return_inverse=True)[1].reshape(-1)


def pairs(judge: Values, human: Values) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    """Return the rows that both rated, and which of the rows these are.

    A row where either is nan is left out, so that n counts what is compared. Infinite values and columns of
    different lengths raise RagnbError.

    Examples
    --------
    >>> pairs([1, 2, float("nan")], [2, 2, 3])
    (array([1., 2.]), array([2., 2.]), array([ True,  True, False]))
    """
    x, y = np.asarray(judge, dtype=float), np.asarray(human, dtype=float)
    if x.shape != y.shape or x.ndim != 1:
        raise RagnbError(f"judge has shape {x.shape}, human {y.shape}; give one value a row in both")
    if np.isinf(x).any() or np.isinf(y).any():
        raise RagnbError("judge or human holds an infinite value; a rating is a finite number or missing")
    seen = ~(np.isnan(x) | np.isnan(y))
    return x[seen], y[seen], seen


def sums_by(codes: Codes, rows: Array) -> Array:
    """Return the column sums of `rows` (n × k) by code, as an array G × k.

    Examples
    --------
    >>> sums_by(np.array([0, 1, 0]), np.array([[1.0], [2.0], [3.0]])).tolist()
    [[4.0], [2.0]]
    """
    size = int(codes.max()) + 1 if len(codes) else 0
    return np.stack([np.bincount(codes, weights=column, minlength=size) for column in rows.T], axis=1)


def t_interval(value: float, se: float, df: float, level: float, *, bounded: bool = False) -> tuple[float, float]:
    """Return value ± t·se; on Fisher's z, atanh(value), where `bounded` says that the value lies in (−1, 1).

    Rows that are all alike have no spread to judge by: se 0 gives nan, never an interval of no width.

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


def leave_out(
    value: float,
    without: Array,
    sizes: Array,
    *,
    times: Array | None = None,
    bounded: bool = False,
    level: float = 0.95,
) -> Estimate:
    """Return the jackknife's estimate from the values found when each cluster is left out.

    Parameters
    ----------
    value : float
        The statistic on all rows.
    without : array, shape (G,)
        The statistic without cluster g. One nan leaves no interval.
    sizes : array, shape (G,)
        Rows a cluster; t has max(1/Σh² − 1, 1) degrees of freedom, h the shares of the rows.
    times : array, shape (G,), optional
        How many clusters each stands for; None is one.
    bounded : bool
        The statistic lies in (−1, 1): the interval is made on Fisher's z.

    Notes
    -----
    se² = (G−1)/G · Σ (θ₍g₎ − θ)², centred on θ; for a mean it is `jackknife_se`. Efron and Tibshirani (1993),
    An Introduction to the Bootstrap, chapter 11.

    Examples
    --------
    >>> leave_out(0.5, np.array([2 / 3, 1 / 3, 2 / 3, 1 / 3]), np.ones(4)).se.__round__(4)
    0.2887
    """
    many = np.ones(len(sizes)) if times is None else times
    g, n = round(float(many.sum())), float(many @ sizes)
    se = float(np.sqrt((g - 1) / g * (many @ (without - value) ** 2))) if g > 1 else np.nan
    df = n**2 / float(many @ sizes**2) - 1 if n else 0.0
    low, high = t_interval(value, se, df, level, bounded=bounded)
    return Estimate(float(value), low, high, se if np.isfinite(se) else np.nan, round(n), g)


def jackknife(
    statistic: Callable[[Array], Array],
    sums: Array,
    sizes: Array,
    *,
    times: Array | None = None,
    bounded: bool = False,
    level: float = 0.95,
) -> Estimate:
    """Return the delete-one-cluster jackknife of a function of column sums, with G extra evaluations at once.

    Parameters
    ----------
    statistic : callable
        From sums (…, k) to values (…).
    sums : array, shape (G, k)
        The column sums of each cluster.
    sizes, times, bounded, level
        As in `leave_out`.

    Examples
    --------
    >>> mean = lambda s: s[..., 1] / s[..., 0]
    >>> jackknife(mean, np.array([[2.0, 1.0], [2.0, 2.0], [2.0, 0.0]]), np.full(3, 2.0)).value
    0.5
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = sums.sum(axis=0) if times is None else times @ sums
        value, without = float(statistic(whole)), statistic(whole - sums)
    return leave_out(value, without, sizes, times=times, bounded=bounded, level=level)


def clustered_mean(
    values: Values,
    clusters: Labels = None,
    *,
    weights: Labels = None,
    counts: Counts = None,
    ends: tuple[float, float] = (-np.inf, np.inf),
    binary: bool = False,
    level: float = 0.95,
) -> Estimate:
    """Return the mean of rows that move together within clusters, nan rows left out.

    Parameters
    ----------
    values : array, shape (n,)
        One value a row.
    clusters : array, shape (n,), optional
        Any labels; None makes every row its own cluster.
    weights : array, shape (n,), optional
        Weights ≥ 0, not frequencies.
    counts : array, shape (n,), optional
        Frequencies: how many rows a row stands for; without clusters, that many clusters of one row.
    ends : (float, float)
        The ends of the values' range. Finite: Wilson's interval on the range; else value ± t·se.
    binary : bool
        The values are 0 and 1.

    Examples
    --------
    >>> share = clustered_mean([1, 1, 0, 1, 0, 1], ["a", "a", "b", "b", "c", "c"], ends=(0, 1), binary=True)
    >>> round(share.value, 3), round(share.low, 3), round(share.high, 3), share.n, share.n_clusters
    (0.667, 0.111, 0.97, 6, 3)
    """
    x = np.asarray(values, dtype=float)
    v = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=float)
    c = np.ones(len(x)) if counts is None else np.asarray(counts, dtype=float)
    code = cluster_codes(clusters, len(x))
    used = ~np.isnan(x) & (v > 0)
    x, v, c, code = x[used], v[used], c[used], packed(code[used])
    if not len(x):
        return NONE
    inside, times = (np.ones(len(x)), c) if clusters is None else (c, np.ones(int(code.max()) + 1))
    total, g = float(v @ c), float(times.sum())
    mean = float((v * c) @ x / total)
    a, u = np.bincount(code, weights=v * inside), np.bincount(code, weights=v * inside * (x - mean))
    inflated = times @ (u / (1 - a / total)) ** 2 if g > 1 else np.nan
    se = jackknife_se(np.array(total), np.array(g), np.array(inflated))
    size, g_eff = kish(total, c @ v**2), kish(total, times @ a**2)
    edges = np.array(float(ends[0])), np.array(float(ends[1]))
    low, high = mean_interval(np.array(mean), se, g_eff, size, edges, binary=binary, level=level)
    n, df = round(float(c.sum())), max(float(g_eff) - 1, 1.0)
    return Estimate(mean, float(low), float(high), float(se), n, round(g), df, float(size))
