"""Quantiles of clustered values, such as the 95th percentile of a latency, and their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ragnb.errors import RagnbError
from ragnb.stats.arrays import Array, Codes, Flags, Labels, Values
from ragnb.stats.clustered import NONE, Estimate, checked, cluster_codes, packed
from ragnb.stats.intervals import drawn_counts, jackknife_se, mean_interval

_BLOCK = 4_000_000  # counts of resamples × values held at once: 32 MB
_FAR = 16.0  # standard errors: farther off no interval reaches
_DRAWS = 20_000_000  # values drawn in all: the more values, the fewer resamples …
_FEWEST = 200  # … but never fewer than this


@dataclass(frozen=True, slots=True)
class QuantileDifference(Estimate):
    """A difference of quantiles with the two-sided p-value of none, as the bootstrap tells it."""

    p: float = float("nan")


def quantile_interval(
    values: Values,
    q: float,
    clusters: Labels = None,
    *,
    lost: Labels = None,
    level: float = 0.95,
) -> Estimate:
    """Return a quantile of clustered values with its interval, which has no end where the values show none.

    Parameters
    ----------
    values : array, shape (n,)
        One a row, nan where there is none.
    q : float
        In (0, 1): 0.95 is the 95th percentile.
    clusters : array, shape (n,), optional
        Any labels; None makes every row its own cluster.
    lost : array of bool, shape (n,), optional
        Rows that have no value though they should: `low` holds if they lie below all others, `high` if above.
    level : float
        In (0, 1).

    Returns
    -------
    Estimate
        `value` interpolates between two values as numpy does; se is nan. ``high`` is inf, and ``low`` −inf, where
        no value is known to be beyond the quantile: of 60 answers the slowest may be faster than the 95th
        percentile.

    Notes
    -----
    A test turned round (Woodruff 1952, J. Am. Stat. Assoc. 47, 635–646): x is in the interval if that of the share
    of values ≤ x, see `ragnb.stats.mean_interval`, holds q; without clusters these are about the exact limits by
    order statistics. The clustered bootstrap of one quantile would end at the largest value seen: for the 95th
    percentile of log-normal values it covers 85 % at 60 questions, 91 % at 200, and lies below the truth in 8–15 %
    of samples; this one covers 95–98 % (``benchmarks/quantiles.py``).

    Examples
    --------
    >>> found = quantile_interval([1.0, 1.2, 1.3, 1.5, 1.6, 1.9, 2.0, 2.2, 2.5, 9.0], 0.5)
    >>> round(found.value, 2), found.low, found.high
    (1.75, 1.2, 2.5)
    """
    _check(q)
    (x,) = checked(values)
    is_lost = np.zeros(len(x), dtype=bool)
    if lost is not None:
        is_lost = np.isnan(x) & np.asarray(lost)
    kept = ~np.isnan(x) | is_lost
    x = x[kept]
    is_lost = is_lost[kept]
    code = packed(cluster_codes(clusters, len(kept))[kept])
    seen = x[~is_lost]
    if not len(seen):
        return NONE
    value = float(np.quantile(seen, q))
    # What is lost counts against either end: as below all others for the low one, as above them for the high one.
    if_below = _shares(np.where(is_lost, -np.inf, x), code, q, level)
    if_above = if_below
    if is_lost.any():
        if_above = _shares(np.where(is_lost, np.inf, x), code, q, level)
    low = _first(if_below.values, if_below.high >= q)
    # Beyond the last value of whose share the interval still holds q.
    least_from_here = np.minimum.accumulate(if_above.low[::-1])[::-1]
    high = _first(if_above.values, least_from_here > q)
    g = int(code.max()) + 1
    if g < 2:
        low = high = np.nan
    return Estimate(value, min(low, value), max(high, value), np.nan, len(seen), g)


def quantile_difference(
    new: Values,
    old: Values,
    q: float,
    clusters: Labels = None,
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> QuantileDifference:
    """Return a quantile of new values less that of old ones, paired, with its clustered bootstrap interval.

    Parameters
    ----------
    new, old : array, shape (n,)
        Of the same questions; a row that lacks one of them is left out.
    q : float
        In (0, 1).
    clusters : array, shape (n,), optional
        Drawn with replacement; None makes every row its own cluster.
    level : float
        In (0, 1).
    resamples : int
        Of more than 20,000 values fewer are made, at least 200.
    seed : int
        The same seed gives the same numbers.

    Notes
    -----
    Percentile interval. For the 95th percentile of log-normal values of equal systems it covers 96–97 %, and says
    *faster* in 1–2 % of samples. Where the new system takes half the time it covers 91–95 %; what it misses makes
    the gain look smaller (``benchmarks/quantiles.py``).

    Examples
    --------
    >>> slow = np.arange(1.0, 41.0)
    >>> found = quantile_difference(slow / 2, slow, 0.5)
    >>> found.value, found.high < 0
    (-10.25, True)
    """
    _check(q)
    x, y = checked(new, old)
    kept = ~(np.isnan(x) | np.isnan(y))
    x = x[kept]
    y = y[kept]
    if not len(x):
        return QuantileDifference(np.nan, np.nan, np.nan, np.nan, 0, 0)
    code = packed(cluster_codes(clusters, len(kept))[kept])
    g = int(code.max()) + 1
    value = float(np.quantile(x, q) - np.quantile(y, q))
    if g < 2:
        return QuantileDifference(value, np.nan, np.nan, np.nan, len(x), g)
    rng = np.random.default_rng(seed)
    new_order = np.argsort(x)
    old_order = np.argsort(y)
    x = x[new_order]
    y = y[old_order]
    new_code = code[new_order]
    old_code = code[old_order]
    drawn_differences = np.empty(max(min(resamples, _DRAWS // len(x)), _FEWEST))
    step = max(1, _BLOCK // len(x))
    for start in range(0, len(drawn_differences), step):
        part = drawn_differences[start : start + step]
        drawn = drawn_counts(rng, g, g, len(part))
        of_new = _quantiles(x, drawn[:, new_code], q)
        of_old = _quantiles(y, drawn[:, old_code], q)
        part[:] = of_new - of_old
    low, high = np.quantile(drawn_differences, [(1 - level) / 2, (1 + level) / 2])
    beyond = min(int((drawn_differences >= 0).sum()), int((drawn_differences <= 0).sum()))
    p = min(2 * (beyond + 1) / (len(drawn_differences) + 1), 1.0)
    se = float(drawn_differences.std(ddof=1))
    return QuantileDifference(value, float(low), float(high), se, len(x), g, p=p)


def _check(q: float) -> None:
    if not 0 < q < 1:
        raise RagnbError(f"q={q!r} is no quantile between 0 and 1; 0.95 is the 95th percentile")


def _quantiles(ordered: Array, counts: Codes, q: float) -> Array:
    """Return the quantile of values in their order, each of which was drawn so often, for each row of counts."""
    upto = counts.cumsum(axis=1)
    # Between two places among the drawn values, as numpy interpolates.
    place = q * (upto[:, -1] - 1)
    below = np.floor(place)
    places = np.stack([below, np.ceil(place)], axis=1)
    # `searchsorted` takes one row at a time.
    at = [row.searchsorted(two, side="right") for row, two in zip(upto, places, strict=True)]
    lower, upper = ordered[np.array(at)].T
    return np.asarray(lower + (place - below) * (upper - lower))


def _first(at: Array, holds: Flags) -> float:
    """Return the first value of which something holds, infinity where it holds of none."""
    if holds.any():
        return float(at[holds.argmax()])
    return np.inf


class _Shares(NamedTuple):
    """Distinct values in their order, and the interval of the share of rows up to each."""

    values: Array
    low: Array
    high: Array


def _shares(values: Array, code: Codes, q: float, level: float) -> _Shares:
    """Return the distinct values in their order with both ends of the interval of the share up to each.

    Of very many values those whose share is too far from q to hold it are left out: its standard error is at most
    about 1/√G.

    A row of cluster g adds 1 to its count S, and so (2S + 1) to the sum of squared counts, from which the sum of
    squared residuals S − share · size follows for every value at once.
    """
    order = np.argsort(values, kind="stable")
    cluster = code[order]
    n = len(cluster)
    sizes = np.bincount(code).astype(float)
    parts = sizes / n
    # The jackknife's weight of a cluster; 0 for a single one, without which nothing is left.
    weight = np.divide(1.0, (1 - parts) ** 2, out=np.zeros(len(parts)), where=parts < 1)
    starts = np.cumsum(sizes) - sizes
    before = np.empty(n)  # how many rows of the same cluster come before each: S above
    before[np.argsort(cluster, kind="stable")] = np.arange(n)
    before -= starts[cluster]
    squares = np.cumsum(weight[cluster] * (2 * before + 1))
    products = np.cumsum(weight[cluster] * sizes[cluster])
    ordered = values[order]
    is_last = np.append(ordered[1:] != ordered[:-1], True)  # the last row of its value
    last = np.flatnonzero(is_last)
    g_eff = 1 / float((parts**2).sum())
    near = np.abs((last + 1) / n - q) <= _FAR / np.sqrt(g_eff)
    if near.any():
        last = last[near]
    share = (last + 1) / n
    inflated = squares[last] - 2 * share * products[last] + share**2 * float(weight @ sizes**2)
    # What rounding leaves of counts that are all in proportion.
    inflated = np.where(inflated > 1e-9 * squares[last], inflated, 0.0)

    def each(number: float) -> Array:
        return np.full(share.shape, number, dtype=float)

    low, high = mean_interval(
        share,
        jackknife_se(each(n), each(len(sizes)), inflated),
        g_eff=each(g_eff),
        n_kish=each(n),
        ranges=(each(0.0), each(1.0)),
        binary=True,
        sum_h4=float((parts**4).sum()),
        level=level,
    )
    return _Shares(ordered[last], low, high)
