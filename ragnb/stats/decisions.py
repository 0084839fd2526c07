"""Decisions at a threshold: how often a repeat would differ, and how many more questions decide."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import numpy.typing as npt

from ragnb.stats.arrays import Array
from ragnb.stats.intervals import t_quantile

MOST_TIMES = 30
"""A plan of more than so many times the questions at hand is none: the mean lies too close to the threshold."""
_POWER = 0.8  # with which the number of questions that is told decides
_NEAR = 1e-9  # rounding, beside an end of the range
SHARE_OF_RANGE = (
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
    >>> from ragnb.stats import wilson
    >>> t = t_quantile(0.95, 9.0)
    >>> low, high = wilson(np.array(0.9), np.array(60.0), t)
    >>> round(wilson_size(0.9, float(low), float(high), 9, 0.95), 6)
    60.0
    """
    t2 = float(t_quantile(level, max(df, 1.0))) ** 2
    ends = [end for end in (low, high) if min(end, 1 - end) > _NEAR and end != value]
    sizes = [t2 * end * (1 - end) / (value - end) ** 2 for end in ends]
    alike = bool(sizes) and np.allclose(sizes, sizes[0], rtol=1e-6)
    if alike:
        return float(sizes[0])
    return float("nan")


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

    freedom = max(df, 1.0)
    gap = value - threshold
    if size is not None:
        se = float(np.sqrt(value * (1 - value) / size))

    def decided(k: int) -> float:
        r = np.float64((n + k) / n)
        if size is None:
            error = se
        else:
            error = np.sqrt(threshold * (1 - threshold) / size)
        half = t_quantile(level, freedom * r) * error / np.sqrt(r)
        with np.errstate(divide="ignore", invalid="ignore"):
            wanders = se * np.sqrt(k / (n + k))
            above = stdtr(freedom, (gap - half) / wanders)
            below = stdtr(freedom, (-gap - half) / wanders)
        return float(np.nan_to_num(above + below, nan=0.0))

    # The probability rises with k wherever the interval at hand contains the threshold.
    most = int(MOST_TIMES * n)
    needed = bisect_left(range(1, most + 1), _POWER, key=decided) + 1
    if needed <= most:
        return needed
    return None


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
