"""Decisions at a threshold: flip probability, questions needed, unobserved failures, and when one is settled."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import numpy.typing as npt

from ragnb.stats.estimates import Flags, Values, packed
from ragnb.stats.means import Array, t_quantile

MOST_TIMES = 30
"""A plan of more than so many times the questions at hand is none: the mean lies too close to the threshold."""
_POWER, _NEAR = 0.8, 1e-9
_SHARE = 0.2  # of the variance that the range allows: values that all came out alike may not stay so


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
    >>> from ragnb.stats.means import wilson
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
    value: float, threshold: float, n: float, df: float, level: float, *, size: float | None = None,
    se: float = 0.0,
) -> int | None:  # fmt: skip
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
            sides = [stdtr(freedom, (way * gap - half) / (se * np.sqrt(k / (n + k)))) for way in (1, -1)]
        return float(np.nan_to_num(sides[0] + sides[1], nan=0.0))

    # The probability rises with k wherever the interval at hand contains the threshold.
    most = int(MOST_TIMES * n)
    needed = bisect_left(range(1, most + 1), _POWER, key=decided) + 1
    return needed if needed <= most else None


def unseen_failures(low: npt.ArrayLike, g_eff: npt.ArrayLike, *, alpha: float = 0.05) -> tuple[Array, Array]:
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
        full = place + 1 + int(np.argmax(room[place:] == 0))  # up to here every place is needed by a row that ends
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
    value: Values, threshold: Values, variance: Values, n: Values, size: Values, *, width: float = 1.0,
    binary: bool = False,
) -> Flags:  # fmt: skip
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
    v, at, s2, seen, whole = (np.asarray(one, dtype=float) for one in (value, threshold, variance, n, size))
    least: Array = _SHARE * (v * (1 - v) * binary + width**2 / seen)
    least = np.maximum(least, at * (1 - at) / 2 * binary)
    return np.asarray(np.abs(v - at) > 3 * np.sqrt(np.maximum(s2, least) * np.maximum(1 / seen - 1 / whole, 0)))
