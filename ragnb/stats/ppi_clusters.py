"""The prediction-powered mean with an interval for few clusters of any sizes: a jackknife that renews λ."""

from __future__ import annotations

import numpy as np

from ragnb.stats.estimates import Labels, Values, sums_by, t_interval
from ragnb.stats.means import Array, kish, mean_interval
from ragnb.stats.ppi import Corrected, labelled_rows


def ppi_jackknife(
    human: Values,
    judge: Values,
    judged: Values,
    clusters: Labels = None,
    judged_clusters: Labels = None,
    *,
    weights: Labels = None,
    weight: float | None = None,
    ends: tuple[float, float] = (-np.inf, np.inf),
    level: float = 0.95,
) -> Corrected:
    """Return the prediction-powered mean of what humans would say, with an interval that holds with few clusters.

    Parameters
    ----------
    human, judge : array, shape (n,)
        The rows with human labels, and the judge's scores on them.
    judged : array, shape (N,)
        The judge's scores on further rows, drawn from the same population. None there: the human mean alone.
    clusters, judged_clusters : array, shapes (n,) and (N,), optional
        One set of labels: a name in both is one cluster. Give both or neither.
    weight : float, optional
        λ; None chooses it. 0 ignores the judge, 1 is the classical form.
    weights : array, shape (n,), optional
        1 / inclusion probability of labelled rows that were drawn with unequal chances. All rows together are then
        what they were drawn from.
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
    λ = clip(cov(Y, F) / ((1 + n/N) var F), 0, 1), cov with divisor n on the labelled rows, var with divisor n + N
    − 1 on all: Angelopoulos, Duchi and Zrnic (2023), PPI++, arXiv 2311.01453. se is the delete-one-cluster
    jackknife, centred on the estimate, with λ found anew each time: the familiar sandwich, G/(G−1) Σ_g (Σ_{i∈g}
    c_i)² (Miller 2024, arXiv 2411.00640), takes λ as known and leaves a heavy cluster's residual small. t has
    1/Σh² − 1 degrees of freedom, h_g = (s_e n_g/n + λ s_F N_g/N)/(s_e + λ s_F), s_e the standard deviation of Y −
    λF, s_F of F: a cluster's part in the labelled and in the further rows, weighed by what each contributes to
    the error. Coverage beside the sandwich's: benchmarks/calibration.py.

    The value is ȳ + λ (1 + n/N) (mean of F on all rows − f̄), which without weights is ȳ + λ (mean of F on the N −
    f̄). With weights ȳ, f̄ and the covariance in λ are Hájek's, Σwx/Σw (Särndal, Swensson and Wretman 1992, Model
    Assisted Survey Sampling, chapter 6), and n_g/n is w_g/Σw.

    Examples
    --------
    >>> found = ppi_jackknife([3, 4, 5, 4], [2, 3, 5, 4], [4, 4, 5, 3, 4, 5], ends=(1, 5))
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (4.303, 2.993, 4.831)
    """
    y, f, more, code, w = labelled_rows(human, judge, judged, clusters, judged_clusters, weights)
    n, at = len(y), (float(y.mean()), float(np.concatenate([f, more]).mean()))
    y, f, more = y - at[0], f - at[1], more - at[1]
    every = np.concatenate([f, more])
    table = np.zeros((len(code), 8))
    table[:n, :5] = np.stack([np.ones(n), w, w * f, w * y, w * y * f], axis=1)
    table[:, 5:] = np.stack([np.ones(len(code)), every, every**2], axis=1)
    sums = sums_by(code, table)
    whole, noise = sums.sum(axis=0), 1e-12 * float(every.var())
    centred, lam = (float(x) for x in _point(whole, weight, noise))
    used = sums[(sums[:, 0] > 0) | (lam != 0)]
    g, value = len(used), centred + at[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        moves = _point(whole - used, weight, noise)[0] - centred
    se = float(np.sqrt((g - 1) / g * np.sum(moves**2))) if g > 1 else np.nan
    error = y - lam * f
    error = error - np.average(error, weights=w)
    spread = float(np.sqrt(np.average(error**2, weights=w))), abs(lam) * float(every.std())
    spread = spread if sum(spread) > 0 else (1.0, 0.0)
    further = used[:, 5] - used[:, 0]
    h = spread[0] * used[:, 1] / whole[1] + (spread[1] * further / len(more) if lam else 0.0)
    g_eff = float(h.sum() ** 2 / np.sum(h**2))
    if not np.isfinite(ends).all():
        return Corrected(value, *t_interval(value, se, g_eff - 1, level), se, lam, n, len(more), g)
    value = float(np.clip(value, *ends))
    edges = np.array(float(ends[0])), np.array(float(ends[1]))
    low, high = mean_interval(
        np.array(value), np.array(se), np.array(g_eff), kish(w.sum(), w @ w), edges, level=level
    )
    return Corrected(value, float(low), float(high), se, lam, n, len(more), g)


def _point(sums: Array, weight: float | None, noise: float) -> tuple[Array, Array]:
    """Return the estimate and λ from sums (…, 8) of 1, w, wF, wY, wYF on labelled rows and of 1, F, F² on all."""
    n, w, f, y, yf, rows, g, gg = np.moveaxis(sums, -1, 0)
    more = rows - n
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = (gg - g**2 / rows) / (rows - 1)
        best = np.clip((yf / w - y * f / w**2) / (rows / more * spread), 0.0, 1.0)
        lam = np.where(spread > noise, best, 0.0) if weight is None else np.full_like(n, weight)
        lam = np.where(more > 0, lam, 0.0)
        value = y / w + np.where(lam != 0, lam * rows / more * (g / rows - f / w), 0.0)
    return np.asarray(value, dtype=float), np.asarray(lam, dtype=float)
