"""How surprising a mean is beside a bar, and many of them at once: what the intervals say, as p-values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ragnb.stats.estimates import Estimate, Values
from ragnb.stats.means import Array, mean_interval


def p_above(found: Estimate, bar: float, *, share: bool = False) -> float:
    """Return the one-sided p-value of a clustered mean against "at or below the bar", nan where se is.

    Parameters
    ----------
    found : Estimate
        From `clustered_mean`; for a share of 0/1 rows say so.
    share : bool
        Wilson's interval was used: it is inverted, by search.

    Notes
    -----
    p ≤ α exactly where the one-sided interval at 1 − α lies above the bar. "At or above" has 1 − p.

    Examples
    --------
    >>> round(p_above(Estimate(0.5, 0.1, 0.9, 0.2, 50, 11, df=10), 0.0), 4)
    0.0157
    """
    from scipy.special import stdtr

    if not np.isfinite(found.se) or not np.isfinite(found.df):
        return np.nan
    if share:
        p = _where_the_interval_ends(found, bar)
        return p if found.value > bar else 1 - p
    if not found.se > 1e-12 * max(1.0, abs(found.value)):
        return np.nan
    return float(stdtr(found.df, -(found.value - bar) / found.se))


def _where_the_interval_ends(found: Estimate, bar: float) -> float:
    """Return the one-sided level, 1e-12 to 0.5, at which the end of a share's interval lies at the bar."""
    least, most = np.log(1e-12), np.log(0.5)
    value, se, g_eff, n = (np.array(x) for x in (found.value, found.se, found.df + 1, found.n_eff))
    for _ in range(6):
        tried = np.linspace(least, most, 64)
        levels: Any = 1 - 2 * np.exp(tried)
        ends = mean_interval(value, se, g_eff, n, (np.array(0.0), np.array(1.0)), binary=True, level=levels)
        beyond = ends[0] > bar if found.value > bar else ends[1] < bar
        first = int(np.argmax(beyond)) if beyond.any() else 63
        least, most = tried[max(first - 1, 0)], tried[first]
    return float(np.exp(most))


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
    order = np.argsort(np.where(np.isnan(raw), np.inf, raw), kind="stable")[: int((~np.isnan(raw)).sum())]
    steps = np.arange(len(order), 0, -1)
    out[order] = np.minimum(np.maximum.accumulate(steps * raw[order]), 1.0)
    return out
