"""The prediction-powered mean with an interval for few clusters of any sizes: a jackknife that renews λ."""

from __future__ import annotations

import numpy as np

from ragnb.stats.estimates import Labels, Values, sums_by, t_interval
from ragnb.stats.means import Array, mean_interval
from ragnb.stats.ppi import Corrected, labelled_rows


def ppi_jackknife(
    human: Values,
    judge: Values,
    judged: Values,
    clusters: Labels = None,
    judged_clusters: Labels = None,
    *,
    weight: float | None = None,
    ends: tuple[float, float] = (-np.inf, np.inf),
    level: float = 0.95,
) -> Corrected:
    """Return the mean of `ppi_mean` with an interval that holds with few clusters, of any sizes.

    Parameters
    ----------
    human, judge, judged, clusters, judged_clusters, weight
        As in `ppi_mean`.
    ends : (float, float)
        The ends of the scale. Finite: the mean stays on the scale, with Wilson's interval and its fewer degrees of
        freedom near an end (`mean_interval`). Else: value ± t·se.

    Returns
    -------
    Corrected
        Without an interval (nan) where all labels lie in one cluster. With λ = 0 it is `clustered_mean` of the
        humans' scores.

    Notes
    -----
    se is the delete-one-cluster jackknife, centred on the estimate, with λ found anew each time: the sandwich of
    `ppi_mean` takes λ as known and leaves a heavy cluster's residual small. t has 1/Σh² − 1 degrees of freedom,
    h_g = (s_e n_g/n + λ s_F N_g/N)/(s_e + λ s_F), s_e the standard deviation of Y − λF, s_F of F: a cluster's
    part in the labelled and in the further rows, weighed by what each contributes to the error. Coverage beside
    the sandwich's: benchmarks/calibration.py.

    Examples
    --------
    >>> found = ppi_jackknife([3, 4, 5, 4], [2, 3, 5, 4], [4, 4, 5, 3, 4, 5], ends=(1, 5))
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (4.303, 2.993, 4.831)
    """
    y, f, more, code = labelled_rows(human, judge, judged, clusters, judged_clusters)
    n, at = len(y), (float(y.mean()), float(np.concatenate([f, more]).mean()))
    y, f, more = y - at[0], f - at[1], more - at[1]
    table = np.zeros((len(code), 8))
    table[:n, :5] = np.stack([np.ones(n), f, f**2, y, y * f], axis=1)
    table[n:, 5:] = np.stack([np.ones(len(more)), more, more**2], axis=1)
    sums = sums_by(code, table)
    whole, noise = sums.sum(axis=0), 1e-12 * float(np.concatenate([f, more]).var())
    centred, lam = (float(x) for x in _point(whole, weight, noise))
    used = sums[(sums[:, 0] > 0) | (lam != 0)]
    g, value = len(used), centred + at[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        moves = _point(whole - used, weight, noise)[0] - centred
    se = float(np.sqrt((g - 1) / g * np.sum(moves**2))) if g > 1 else np.nan
    spread = float((y - lam * f).std()), abs(lam) * float(np.concatenate([f, more]).std())
    spread = spread if sum(spread) > 0 else (1.0, 0.0)
    h = spread[0] * used[:, 0] / n + (spread[1] * used[:, 5] / len(more) if lam else 0.0)
    g_eff = float(h.sum() ** 2 / np.sum(h**2))
    if not np.isfinite(ends).all():
        return Corrected(value, *t_interval(value, se, g_eff - 1, level), se, lam, n, len(more), g)
    value = float(np.clip(value, *ends))
    edges = np.array(float(ends[0])), np.array(float(ends[1]))
    low, high = mean_interval(
        np.array(value), np.array(se), np.array(g_eff), np.array(float(n)), edges, level=level
    )
    return Corrected(value, float(low), float(high), se, lam, n, len(more), g)


def _point(sums: Array, weight: float | None, noise: float) -> tuple[Array, Array]:
    """Return the estimate and λ from sums (…, 8) of 1, F, F², Y, YF on labelled rows and of 1, F, F² on others."""
    n, f, ff, y, yf, more, g, gg = np.moveaxis(sums, -1, 0)
    rows = n + more
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = (ff + gg - (f + g) ** 2 / rows) / (rows - 1)
        best = np.clip((yf / n - y * f / n**2) / ((1 + n / more) * spread), 0.0, 1.0)
        lam = np.where(spread > noise, best, 0.0) if weight is None else np.full_like(n, weight)
        lam = np.where(more > 0, lam, 0.0)
        value = y / n + np.where(lam != 0, lam * (g / more - f / n), 0.0)
    return np.asarray(value, dtype=float), np.asarray(lam, dtype=float)
