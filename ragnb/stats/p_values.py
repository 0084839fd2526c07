"""p-values: of an estimate, at or below its level exactly where its interval decides; of several, Holm's."""

from __future__ import annotations

import numpy as np

from ragnb.stats.arrays import Array, Values
from ragnb.stats.clustered import Estimate
from ragnb.stats.intervals import mean_interval


def t_p_value(value: float, se: float, df: float) -> float:
    """Return the two-sided p-value of a value whose standard error has so many degrees of freedom.

    Examples
    --------
    >>> round(t_p_value(0.2, 0.1, 19), 3)
    0.06
    """
    from scipy.special import stdtr

    return float(2 * stdtr(df, -abs(value) / se))


def p_above(
    found: Estimate, threshold: float, *, share: bool = False, fraction: float | None = None
) -> float:
    """Return the one-sided p-value of a clustered mean against "at or below the threshold", nan where se is.

    Parameters
    ----------
    found : Estimate
        From `clustered_mean`; for a share of 0/1 rows say so.
    share : bool
        Wilson's interval was used: it is inverted, by search.
    fraction : float, optional
        Of a share: as in `clustered_mean`; nan above 1.

    Notes
    -----
    p ≤ α exactly where the one-sided interval at 1 − α is above the threshold. "At or above" has 1 − p.

    Examples
    --------
    >>> round(p_above(Estimate(0.5, 0.1, 0.9, 0.2, 50, 11, df=10), 0.0), 4)
    0.0157
    """
    from scipy.special import stdtr

    if not np.isfinite(found.se) or not np.isfinite(found.df) or (fraction or 0) > 1:
        return np.nan
    if share:
        # The one-sided level, 1e-12 to 0.5, at which the end of the interval is at the threshold: each of six
        # rounds finds one of 63 gaps, so that its logarithm is known to 4e-10.
        least = np.log(1e-12)
        most = np.log(0.5)
        for _ in range(6):
            tried = np.linspace(least, most, 64)
            ends = mean_interval(
                found.value,
                found.se,
                found.df + 1,
                found.n_eff,
                (0.0, 1.0),
                binary=True,
                sum_h4=None if np.isnan(found.sum_h4) else found.sum_h4,
                level=1 - 2 * np.exp(tried),
                fraction=fraction,
            )
            if found.value > threshold:
                beyond = ends[0] > threshold
            else:
                beyond = ends[1] < threshold
            first = int(np.argmax(beyond)) if beyond.any() else 63
            least = tried[max(first - 1, 0)]
            most = tried[first]
        return float(np.exp(most) if found.value > threshold else 1 - np.exp(most))
    if not found.se > 1e-12 * max(1.0, abs(found.value)):
        return np.nan
    return float(stdtr(found.df, -(found.value - threshold) / found.se))


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
    order = np.argsort(np.where(np.isnan(raw), np.inf, raw), kind="stable")[
        : int((~np.isnan(raw)).sum())
    ]
    out[order] = np.minimum(np.maximum.accumulate(np.arange(len(order), 0, -1) * raw[order]), 1.0)
    return out
