"""Agreement of a judge with people: within one point, bias, limits, kappa, alpha, rank correlations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ragnb.errors import RagnbError
from ragnb.stats.arrays import Array, Codes, Labels, Values, inner
from ragnb.stats.clustered import (
    Estimate,
    Rows,
    checked,
    cluster_codes,
    clustered_mean,
    complete_rows,
    jackknife,
    sums_by,
    t_interval,
)

# Means of raters are thirds: a difference of exactly 1 may arrive as 1.0000000000000004.
SLACK = 1e-9


def round_half_up(values: Values) -> Array:
    """Round to whole numbers, halves upwards, with a tolerance of 1e-9 for floating-point error.

    Examples
    --------
    >>> round_half_up([2.5, 3.5, -0.5, 2.4]).tolist()
    [3.0, 4.0, 0.0, 2.0]
    """
    return np.asarray(np.floor(np.asarray(values, dtype=float) + (0.5 + SLACK)))


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
    gap = x - y
    is_within = np.abs(gap) <= tolerance + SLACK
    return np.where(np.isnan(gap), np.nan, is_within.astype(float))


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
    line = values[order]
    running = np.r_[0.0, np.cumsum(sizes[order])]  # of the first 0, 1, 2, … values
    reach = tolerance + SLACK
    last = np.searchsorted(line, at + reach, "right")
    first = np.searchsorted(line, at - reach, "left")
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
    one_cluster = np.zeros(np.shape(judge))  # no interval is asked for
    rows = complete_rows([judge, human], one_cluster, counts)
    x, y = rows.columns
    met = inner(rows.counts, _sizes_near(y, rows.counts, x, tolerance))
    total = float(rows.counts.sum())
    if total:
        return met / total**2
    return float("nan")


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
    y = rows.columns[0]
    score = np.nan
    if len(y):
        if levels is None:
            # A window of ±tolerance can be moved up until its lower end is a human score, without losing any.
            offered = np.minimum(y + tolerance, y.max())
        else:
            offered = levels
        candidates = np.unique(np.asarray(offered, dtype=float))
        held = _sizes_near(y, rows.counts * rows.weights, candidates, tolerance)
        score = float(candidates[int(np.argmax(held))])
    options: dict[str, Any] = {"counts": counts, "weights": weights, "level": level}
    constant = np.full(np.shape(human), score)
    return score, within_share(constant, human, clusters, tolerance=tolerance, **options)


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
    if scale is None:
        ends = (-np.inf, np.inf)
    else:
        ends = (0.0, scale[1] - scale[0])
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
    gap = rows.columns[0] - rows.columns[1]
    n = round(float(rows.counts.sum()))
    centre = inner(rows.counts, gap) / n if n else np.nan
    # Less their mean, so that the squares are small and their sum keeps its digits.
    columns = (np.ones(len(gap)), gap - centre, (gap - centre) ** 2)
    ends = []
    for signed_factor in (-factor, factor):
        limit = rows.jackknife(partial(_limit, factor=signed_factor), *columns, level=level)
        value = limit.value + centre
        low = limit.low + centre
        high = limit.high + centre
        se = limit.se
        if clusters is None:
            # Bland and Altman (1999), Stat. Methods Med. Res. 8, 135–160: independent rows.
            sd = limit.value / signed_factor
            se = sd * float(np.sqrt(1 / max(n, 1) + factor**2 / (2 * max(n - 1, 1))))
            low, high = t_interval(value, se, n - 1, level)
        ends.append(Estimate(value, low, high, se, n, limit.n_clusters))
    return ends[0], ends[1]


def _limit(s: Array, factor: float) -> Array:
    """Return mean + factor·sd (divisor n − 1) from Σ1, Σd, Σd²; nan for one row."""
    n = s[..., 0]
    mean = s[..., 1] / n
    squares = np.maximum(s[..., 2] - n * mean**2, 0.0)  # rounding may leave -1e-17
    variance = squares / np.where(n > 1, n - 1, np.nan)
    return np.asarray(mean + factor * np.sqrt(variance), dtype=float)


def second_moments(s: Array) -> tuple[Array, ...]:
    """Return n, the two means, the two variances and the covariance (divisor n) of six sums.

    Examples
    --------
    >>> [float(part) for part in second_moments(np.array([2.0, 0.0, 0.0, 2.0, 0.0, 0.0]))]
    [2.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    """
    n = s[..., 0]
    mx = s[..., 1] / n
    my = s[..., 2] / n
    vx = s[..., 3] / n - mx**2
    vy = s[..., 4] / n - my**2
    # What rounding leaves of scores that are all alike is no variance.
    noise = 1e-11 * (s[..., 3] + s[..., 4]) / n
    vx = np.where(vx > noise, vx, 0.0)
    vy = np.where(vy > noise, vy, 0.0)
    covariance = np.where((vx > 0) & (vy > 0), s[..., 5] / n - mx * my, 0.0)
    return n, mx, my, vx, vy, covariance


def _of_moments(
    statistic: Callable[[Array], Array], rows: Rows, level: float, *, bounded: bool
) -> Estimate:
    """Return the jackknife of a function of Σ1, Σj, Σh, Σj², Σh², Σjh, both less one origin."""
    x, y = rows.columns
    origin = 0.0
    if len(x):
        origin = inner(rows.counts, x + y) / 2 / float(rows.counts.sum())
    x = x - origin
    y = y - origin
    terms = (np.ones(len(x)), x, y, x * x, y * y, x * y)
    return rows.jackknife(statistic, *terms, bounded=bounded, level=level)


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
        of_mean = (vx + vy + 2 * cov) / 4  # Var((j + h)/2)
        with_gap = (vx - vy) / 2  # Cov(j − h, (j + h)/2)
        return np.asarray(np.where(of_mean > 1e-11 * (vx + vy), with_gap / of_mean, np.nan))

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
    x = round_half_up(judge)
    y = round_half_up(human)
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
    is_rated = ~np.isnan(grid)
    n_ratings = np.sum(is_rated, axis=1)
    item, rater = np.nonzero(is_rated & (n_ratings >= 2)[:, None])
    own_ratings = grid[item, rater]
    sum_of_others = np.nansum(grid, axis=1)[item] - own_ratings
    return item, own_ratings, sum_of_others / (n_ratings[item] - 1)


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
    item, own_ratings, others = leave_one_out(ratings)
    cluster_of_rating = item if clusters is None else np.asarray(clusters)[item]
    weight_of_rating = None
    if weights is not None:
        weight_of_rating = np.asarray(weights, dtype=float)[item]
    return within_share(own_ratings, others, cluster_of_rating, weights=weight_of_rating, **options)


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
    has_pair = np.sum(~np.isnan(grid), axis=1) >= 2
    # Numbered again without the clusters all of whose items have a single rating.
    code = np.unique(cluster_codes(clusters, len(grid))[has_pair], return_inverse=True)[1]
    grid = grid[has_pair]
    m = np.sum(~np.isnan(grid), axis=1).astype(float)
    points = grid - (np.nanmean(grid) if len(m) else 0.0)
    total = np.nansum(points, axis=1)
    squares = np.nansum(points**2, axis=1)
    # Of an item: the squared distances of its m(m − 1)/2 pairs, divided by m − 1.
    inside = (m * squares - total**2) / (m - 1)
    parts = sums_by(code, np.stack([m, inside, squares, total], axis=1))

    def alpha(sums: Array) -> Array:
        n, observed, squares, total = np.moveaxis(sums, -1, 0)
        expected = (n * squares - total**2) / (n - 1)
        # Where all ratings are one value nothing is expected, but for rounding.
        varies = expected > 1e-12 * squares
        return np.asarray(np.where(varies, 1 - observed / expected, np.nan), dtype=float)

    return jackknife(alpha, parts, np.bincount(code).astype(float), bounded=True, level=level)
