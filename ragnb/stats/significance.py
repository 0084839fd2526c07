"""How surprising a mean is beside a bar, and many of them at once: what the intervals say, as p-values."""

from __future__ import annotations

import numpy as np

from ragnb.stats.estimates import Estimate, Values
from ragnb.stats.means import Array


def p_above(found: Estimate, bar: float, *, share: bool = False) -> float:
    """Return the one-sided p-value of a clustered mean against "at or below the bar", nan where se is.

    Parameters
    ----------
    found : Estimate
        From `clustered_mean`; for a share of 0/1 rows say so.
    share : bool
        Wilson's interval was used: the score statistic at the bar takes the place of (value − bar)/se.

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
    se = found.se
    if share:
        spread = found.value * (1 - found.value)
        size = min(spread / se**2, found.n) if se > 1e-9 and spread > 0 else found.n
        se = float(np.sqrt(bar * (1 - bar) / size))
    elif not se > 1e-12 * max(1.0, abs(found.value)):
        return np.nan
    return float(stdtr(found.df, -(found.value - bar) / se))


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
