"""How far a judge lies from the humans: error, bias, slope, limits of agreement.

`weights` are those of rows drawn with unequal chances, 1 / inclusion probability (Hájek's mean), as in
`clustered_mean`.

The statistics of a pair are functions of Σ1, Σj, Σh, Σj², Σh², Σjh by cluster, so leaving out each cluster in turn
costs one array operation, and any engine that can group and sum can feed it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ragnb.stats.estimates import Counts, Estimate, Labels, Values, jackknife, t_interval
from ragnb.stats.means import Array
from ragnb.stats.tally import tallied


def bias(
    judge: Values,
    human: Values,
    clusters: Labels = None,
    *,
    weights: Labels = None,
    counts: Counts = None,
    level: float = 0.95,
) -> Estimate:
    """Return mean(judge − human) with its clustered interval, value ± t·se; above 0 the judge is generous.

    Examples
    --------
    >>> bias([4, 5, 3], [3, 5, 1]).value
    1.0
    """
    t = tallied(judge, human, clusters, counts, weights=weights)
    return t.mean(t.x - t.y, level=level)


def mae(
    judge: Values,
    human: Values,
    clusters: Labels = None,
    *,
    scale: tuple[float, float] | None = None,
    weights: Labels = None,
    counts: Counts = None,
    level: float = 0.95,
) -> Estimate:
    """Return the mean absolute error; with a scale its interval stays between 0 and the scale's width.

    Examples
    --------
    >>> mae([4, 5, 3], [3, 5, 5], scale=(1, 5)).value
    1.0
    """
    t = tallied(judge, human, clusters, counts, weights=weights)
    ends = (-np.inf, np.inf) if scale is None else (0.0, scale[1] - scale[0])
    return t.mean(np.abs(t.x - t.y), ends=ends, level=level)


def rmse(
    judge: Values,
    human: Values,
    clusters: Labels = None,
    *,
    weights: Labels = None,
    counts: Counts = None,
    level: float = 0.95,
) -> Estimate:
    """Return the root mean squared error; the interval is that of the mean square, under the root.

    Examples
    --------
    >>> rmse([4, 5], [3, 4]).value
    1.0
    """
    t = tallied(judge, human, clusters, counts, weights=weights)
    square = t.mean((t.x - t.y) ** 2, level=level)
    value, low, high = (float(np.sqrt(max(part, 0.0))) for part in (square.value, square.low, square.high))
    se = square.se / (2 * value) if value > 0 else square.se
    return Estimate(value, low, high, se, square.n, square.n_clusters)


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


def _slope(s: Array) -> Array:
    _, _, _, vx, vy, cov = second_moments(s)
    of_mean = (vx + vy + 2 * cov) / 4
    slope: Array = np.where(of_mean > 1e-11 * (vx + vy), (vx - vy) / 2 / of_mean, np.nan)
    return slope


def _limit(s: Array, factor: float) -> Array:
    """Mean + factor · sd (divisor n − 1) from Σ1, Σd, Σd²; nan for one row."""
    n, mean = s[..., 0], s[..., 1] / s[..., 0]
    spread = np.maximum(s[..., 2] - n * mean**2, 0.0)
    return np.asarray(mean + factor * np.sqrt(spread / np.where(n > 1, n - 1, np.nan)), dtype=float)


def slope_on_mean(
    judge: Values, human: Values, clusters: Labels = None, *, counts: Counts = None, level: float = 0.95
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
    return tallied(judge, human, clusters, counts).of_moments(_slope, level=level)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of agreement: between `low` and `high` lie about 95 % of the differences judge − human.

    Examples
    --------
    >>> limits_of_agreement([4, 5, 3, 2], [3, 5, 4, 2]).sd.__round__(3)
    0.816
    """

    low: Estimate
    high: Estimate
    sd: float
    outside: float


def limits_of_agreement(
    judge: Values,
    human: Values,
    clusters: Labels = None,
    *,
    factor: float = 1.96,
    counts: Counts = None,
    level: float = 0.95,
) -> Limits:
    """Return bias ± factor·s with an interval for each limit, and the share of rows outside them.

    Without clusters se² = s² (1/n + factor² / (2(n−1))) and t(n−1); with clusters the jackknife's.

    Notes
    -----
    Bland and Altman (1986), Lancet i, 307–310; the standard error is that of 1999.

    Examples
    --------
    >>> limits = limits_of_agreement([4, 5, 3, 2], [3, 5, 4, 2])
    >>> round(limits.low.value, 2), round(limits.high.value, 2), limits.outside
    (-1.6, 1.6, 0.0)
    """
    t = tallied(judge, human, clusters, counts)
    n, d, c = round(float(t.counts.sum())), t.x - t.y, t.counts
    centre = float(c @ d / n) if n else np.nan
    sd = float(np.sqrt(c @ (d - centre) ** 2 / (n - 1))) if n > 1 else np.nan
    sums = t.sums([np.ones(len(d)), d - centre, (d - centre) ** 2])
    ends = []
    for sign in (-factor, factor):
        value = centre + sign * sd
        if clusters is None:
            se = sd * float(np.sqrt(1 / n + factor**2 / (2 * (n - 1)))) if n > 1 else np.nan
            ends.append(Estimate(value, *t_interval(value, se, n - 1, level), se, n, n))
        else:
            part = jackknife(partial(_limit, factor=sign), sums, sums[:, 0], level=level)
            ends.append(Estimate(value, part.low + centre, part.high + centre, part.se, n, part.n_clusters))
    outside = float(c @ ((d < ends[0].value) | (d > ends[1].value)) / n) if n else np.nan
    return Limits(ends[0], ends[1], sd, outside)
