"""Rows coded by cluster, and the estimates of them: means, contrasts, strata, and tests of several at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragnb.errors import RagnbError
from ragnb.stats.arrays import Array, Codes, Flags, Labels, Values, inner
from ragnb.stats.intervals import kish, mean_interval, t_quantile

_SMALLEST = 1e-300  # its inverse is near the largest float
LOST_IN_ROUNDING = 1e-13  # of the largest weight: what a lighter one adds to a sum is lost in it


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
        return sums_of_columns(self.code, [self.inside * column for column in columns])

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
    divisor = 1.0
    if largest > 0:
        divisor = 2.0 ** (np.frexp(largest)[1] - 1)
    shares: Array = weights / divisor
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
    if counts is None:
        size = np.ones(len(first))
    else:
        size = np.asarray(counts, dtype=float)
    if size.shape != first.shape or not (size > 0).all() or (clusters is None and (size < 1).any()):
        raise RagnbError(
            "counts must be one number per row, 1 or more (above 0 in clusters): how many rows each row represents"
        )
    if weights is None:
        weight = np.ones(len(first))
    else:
        weight = relative(np.asarray(weights, dtype=float))
    kept = (weight > 0) & ~np.any(np.isnan(values), axis=0)
    # What is lost in the rounding of the largest is left out, so that no row counts that adds nothing.
    kept &= weight > LOST_IN_ROUNDING * weight[kept].max(initial=0.0)
    code = cluster_codes(clusters, len(first))
    if not kept.all():
        code = packed(code[kept])
    size = size[kept]
    one = np.ones(int(kept.sum()))
    if clusters is None:
        # A count is that many clusters of one row …
        inside = one
        times = size
    else:
        # … or that many rows of one cluster.
        inside = size
        times = np.ones(int(code.max(initial=-1)) + 1)
    return Rows([column[kept] for column in values], code, inside, times, weight[kept], kept)


def checked(*columns: Values) -> list[Array]:
    """Return columns as floats, of one length and finite where they are not missing.

    Examples
    --------
    >>> checked([1, None], [2, 3])
    [array([ 1., nan]), array([2., 3.])]
    """
    values = [np.asarray(column, dtype=float) for column in columns]
    first = values[0]
    last = values[-1]
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


def lone_apart(codes: Codes) -> Codes:
    """Return codes in which each row without one (−1) is a cluster of its own.

    Examples
    --------
    >>> lone_apart(np.array([0, -1, 1, -1])).tolist()
    [0, 2, 1, 3]
    """
    is_lone = codes < 0
    next_code = codes.max(initial=-1) + np.cumsum(is_lone)
    return np.asarray(np.where(is_lone, next_code, codes))


def packed(names: npt.NDArray[Any]) -> Codes:
    """Return labels as codes 0 … G−1 in their order; small whole numbers need no sorting.

    Examples
    --------
    >>> packed(np.array([7, 2, 7])).tolist()
    [1, 0, 1]
    """
    is_small = False
    if names.dtype.kind in "iu" and names.size:
        # Most labels are codes of a part of some rows, with few gaps between them: a table of all codes is short.
        is_small = bool(names.min() >= 0 and names.max() < 4 * names.size + 64)
    if not is_small:
        return np.unique(names, return_inverse=True)[1]
    occurs = np.bincount(names) > 0
    return np.asarray((np.cumsum(occurs) - 1)[names], dtype=np.intp)


def sums_by(codes: Codes, rows: Array) -> Array:
    """Return the column sums of `rows` (n × k) by code, as an array G × k.

    Examples
    --------
    >>> sums_by(np.array([0, 1, 0]), np.array([[1.0], [2.0], [3.0]])).tolist()
    [[4.0], [2.0]]
    """
    return sums_of_columns(codes, rows.T)


def sums_of_columns(codes: Codes, columns: Sequence[Array] | Array) -> Array:
    """Return the sums of k columns by code, as an array G × k.

    Examples
    --------
    >>> sums_of_columns(np.array([0, 1, 0]), [np.array([1.0, 2.0, 3.0])]).tolist()
    [[4.0], [2.0]]
    """
    size = int(codes.max()) + 1 if len(codes) else 0
    sums = [np.bincount(codes, weights=column, minlength=size) for column in columns]
    return np.array(sums, dtype=float).reshape(len(columns), size).T


def mean_squares(x: Array, code: Codes, counts: Array) -> tuple[float, float, float]:
    """Return the one-way analysis of variance: mean squares between and within clusters, and m₀, a typical size.

    m₀ = (n − Σm²/n)/(G − 1). Donner and Koval (1980), Biometrics 36, 19–25.

    Examples
    --------
    >>> mean_squares(np.array([1.0, 3.0, 2.0, 2.0]), np.array([0, 0, 1, 1]), np.ones(4))
    (0.0, 1.0, 2.0)
    """
    sizes = np.bincount(code, weights=counts).astype(float)
    n = float(sizes.sum())
    g = len(sizes)
    mean_of_cluster = np.bincount(code, weights=counts * x) / sizes
    mean = inner(counts, x) / n
    between = inner(sizes, (mean_of_cluster - mean) ** 2)
    inside = inner(counts, (x - mean_of_cluster[code]) ** 2)
    typical_size = (n - inner(sizes, sizes) / n) / (g - 1)
    return between / (g - 1), inside / (n - g), typical_size


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
    # Of equal values rounding leaves a standard error that is not quite 0.
    if not np.isfinite(value) or not se > 1e-12 * max(1.0, abs(value)):
        return np.nan, np.nan
    if not bounded:
        return value - t * se, value + t * se
    if abs(value) >= 1 - 1e-12:
        return np.nan, np.nan
    z = np.arctanh(value)
    # 1/(1 − value²) is the slope of atanh there.
    half = t * se / (1 - value**2)
    return float(np.tanh(z - half)), float(np.tanh(z + half))


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
    # A statistic may have no value where a cluster is left out: there is no standard error then.
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = many @ parts if whole is None else whole
        value = float(statistic(sums))
        without_each = statistic(sums - parts)
    g = round(float(many.sum()))
    n = inner(many, sizes)
    se = np.nan
    if g > 1:
        se = float(np.sqrt((g - 1) / g * inner(many, (without_each - value) ** 2)))
    df = 1.0
    if n > 0:
        g_eff = n**2 / inner(many, sizes**2)
        df = max(g_eff - 1, 1.0)
    low, high = t_interval(value, se, df, level, bounded=bounded)
    return Estimate(value, low, high, se if np.isfinite(se) else np.nan, round(n), g, df)


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
    x = rows.columns[0]
    v = rows.weights
    c = rows.counts
    if not len(x):
        return NONE
    total = inner(v, c)
    mean = inner(v * c, x) / total
    # Centred, so that the residuals of identical values are 0 and not their rounding.
    parts = rows.sums(v, v * (x - mean))
    estimate = jackknife(ratio, parts, parts[:, 0], times=rows.times, level=level)
    size = kish(total, inner(c, v**2))
    g_eff = kish(total, inner(rows.times, parts[:, 0] ** 2))
    sum_h4 = inner(rows.times, (parts[:, 0] / total) ** 4)
    at_low, at_high = (float(c[x == end].sum()) for end in ends)
    n_rows = float(c.sum())
    low, high = mean_interval(
        mean,
        estimate.se,
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
        estimate.se,
        round(n_rows),
        estimate.n_clusters,
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
    x = rows.columns[0]
    in_group = rows.weights * group
    others = rows.weights * ~group
    # A cluster that both sides share is left out of both at once.
    parts = rows.sums(in_group, in_group * x, others, others * x)
    sizes = parts[:, 0] + parts[:, 2]

    def difference(sums: Array) -> Array:
        return ratio(sums[..., :2]) - ratio(sums[..., 2:])

    return jackknife(difference, parts, sizes, times=rows.times, level=level)
