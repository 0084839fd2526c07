"""Prediction-powered means, recalibration of scores, and the test of random sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ragnb.errors import RagnbError, unknown
from ragnb.stats.estimates import (
    Codes,
    Estimate,
    Labels,
    Values,
    checked,
    cluster_codes,
    complete_rows,
    jackknife,
    mean_squares,
    packed,
    sums_by,
    t_interval,
)
from ragnb.stats.means import Array, kish, mean_interval

MAPS = ("linear", "isotonic")


@dataclass(frozen=True, slots=True)
class Corrected(Estimate):
    """A corrected mean with its interval; `weight` is λ, the weight of the judge's scores.

    Examples
    --------
    >>> Corrected(3.9, 3.6, 4.2, 0.15, 50, 20, weight=0.5, n_judged=400).weight
    0.5
    """

    weight: float = 0.0
    n_judged: int = 0


def ppi_jackknife(
    human: Values, judge: Values, judged: Values, clusters: Labels = None, judged_clusters: Labels = None, *,
    weights: Labels = None, weight: float | None = None, ends: tuple[float, float] = (-np.inf, np.inf),
    level: float = 0.95,
) -> Corrected:  # fmt: skip
    """Return the prediction-powered human mean, with an interval that is valid for few clusters.

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
        Without an interval (nan) where all labels are in one cluster. With λ = 0 it is `clustered_mean` of the
        humans' scores.

    Notes
    -----
    λ = clip(cov(Y, F) / ((1 + n/N) var F), 0, 1), cov with divisor n on the labelled rows, var with divisor n + N
    − 1 on all: Angelopoulos, Duchi and Zrnic (2023), PPI++, arXiv 2311.01453. se is the delete-one-cluster
    jackknife, centred on the estimate, with λ re-estimated each time: the familiar sandwich, G/(G−1) Σ_g (Σ_{i∈g}
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
    names = _both(clusters, judged_clusters, "judged_clusters")
    y, f = checked(human, judge)
    more = np.asarray(judged, dtype=float)
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    seen, extra = ~np.isnan(y - f), ~np.isnan(more)
    y, f, w, more, n = y[seen], f[seen], w[seen], more[extra], int(seen.sum())
    if n < 2:
        raise RagnbError(f"{n} rows have both a human and a judge score; the correction needs 2 or more")
    if np.isinf(more).any():
        raise RagnbError("judged holds an infinite value; a score is a finite number or missing")
    code = cluster_codes(None if names is None else names[np.r_[seen, extra]], n + len(more))
    centre, every = float(y.mean()), np.concatenate([f, more])
    y, every = y - centre, every - every.mean()
    f = every[:n]
    table = np.zeros((len(code), 8))
    table[:n, :5] = np.stack([np.ones(n), w, w * f, w * y, w * y * f], axis=1)
    table[:, 5:] = np.stack([np.ones(len(code)), every, every**2], axis=1)
    sums = sums_by(code, table)
    whole, noise = sums.sum(axis=0), 1e-12 * float(every.var())
    centred, lam = (float(x) for x in _point(whole, weight, noise))
    used = sums[(sums[:, 0] > 0) | (lam != 0)]
    g, value = len(used), centred + centre
    se = jackknife(lambda s: _point(s, weight, noise)[0], used, used[:, 5], whole=whole).se
    error = y - lam * f
    error = error - np.average(error, weights=w)
    scale = float(np.sqrt(np.average(error**2, weights=w))), abs(lam) * float(every.std())
    scale = scale if sum(scale) > 0 else (1.0, 0.0)
    further = used[:, 5] - used[:, 0]
    h = scale[0] * used[:, 1] / whole[1] + (scale[1] * further / len(more) if lam else 0.0)
    g_eff = float(h.sum() ** 2 / np.sum(h**2))
    if np.isfinite(ends).all():
        value = float(np.clip(value, *ends))
        edges = np.array(float(ends[0])), np.array(float(ends[1]))
        parts = np.array(value), np.array(se), np.array(g_eff), kish(w.sum(), w @ w)
        low, high = map(float, mean_interval(*parts, edges, level=level))
    else:
        low, high = t_interval(value, se, g_eff - 1, level)
    return Corrected(value, low, high, se, n, g, weight=lam, n_judged=len(more))


def _point(sums: Array, weight: float | None, noise: float) -> tuple[Array, Array]:
    """Return the estimate and λ from sums (…, 8) of 1, w, wF, wY, wYF on labelled rows and of 1, F, F² on all."""
    n, w, f, y, yf, rows, g, gg = np.moveaxis(sums, -1, 0)
    more = rows - n
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = (gg - g**2 / rows) / (rows - 1)
        best = np.clip((yf / w - y * f / w**2) / (rows / more * variance), 0.0, 1.0)
        lam = np.where(variance > noise, best, 0.0) if weight is None else np.full_like(n, weight)
        lam = np.where(more > 0, lam, 0.0)
        value = y / w + np.where(lam != 0, lam * rows / more * (g / rows - f / w), 0.0)
    return np.asarray(value, dtype=float), np.asarray(lam, dtype=float)


def _both(clusters: Labels, others: Labels, name: str) -> Any:
    """Return one set of labels of two kinds of rows, none where neither has them."""
    if (clusters is None) != (others is None):
        raise RagnbError(f"clusters are given for one kind of row only; give both clusters and {name}, or neither")
    return None if clusters is None else np.concatenate([np.asarray(clusters), np.asarray(others)])


def fit_map(
    judge: Values, human: Values, kind: str = "isotonic", *, counts: Labels = None
) -> Callable[[Values], Array]:
    """Fit E[human | judge] by least squares, on a line or on any rising curve; return the map of scores.

    Parameters
    ----------
    kind : {"linear", "isotonic"}
        Isotonic: pool-adjacent-violators on the means at each distinct judge's score (Barlow et al. 1972). A
        judge that never varies gives the constant mean. It is flat beyond the scores it was fitted on.

    Examples
    --------
    >>> fit_map([1, 2, 3, 4], [1, 3, 2, 4])([2.5, 9.0]).tolist()
    [2.5, 4.0]
    """
    if kind not in MAPS:
        raise unknown("kind", kind, MAPS)
    rows = complete_rows([judge, human], None, counts)
    (x, y), c = rows.columns, rows.counts
    if not len(x):
        raise RagnbError("no row has both a judge score and a human score; recalibration needs some")
    if kind == "linear":
        centre, mean = float(c @ x / c.sum()), float(c @ y / c.sum())
        slope = float((c * (x - centre)) @ y / ((c * (x - centre)) @ (x - centre))) if np.ptp(x) > 0 else 0.0
        return lambda scores: mean + slope * (np.asarray(scores, dtype=float) - centre)
    from scipy.optimize import isotonic_regression

    # Means of raters that differ in the last bit are one score, not two knots with a cliff between them.
    knots, at = np.unique(np.round(x, 9), return_inverse=True)
    sizes = np.bincount(at, weights=c)
    fitted = np.asarray(isotonic_regression(np.bincount(at, weights=c * y) / sizes, weights=sizes).x, dtype=float)
    return lambda scores: np.asarray(np.interp(np.asarray(scores, dtype=float), knots, fitted))


def grouped_folds(clusters: Values, k: int = 5, *, counts: Labels = None) -> Codes:
    """Return a fold 0 … k−1 a row: clusters stay whole, the largest go first (of
    equals the last name), each to the lightest fold, as in scikit-learn's GroupKFold.

    Fewer clusters than k give as many folds as clusters.

    Examples
    --------
    >>> grouped_folds(["a", "a", "a", "b", "c", "c"], 2).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    code = packed(np.asarray(clusters))
    sizes = np.bincount(code, weights=None if counts is None else np.asarray(counts, dtype=float))
    load, fold = np.zeros(max(min(k, len(sizes)), 1)), np.zeros(len(sizes), dtype=np.intp)
    for g in np.argsort(sizes, kind="stable")[::-1]:
        fold[g] = np.argmin(load)
        load[fold[g]] += sizes[g]
    return fold[code]


def _median(values: Array, counts: Array) -> float:
    order = np.argsort(values)
    upto = np.cumsum(counts[order])
    middle = np.searchsorted(upto, [upto[-1] / 2, upto[-1] / 2 + 0.5])  # alike unless the count is even
    return float(values[order][middle].mean())


def recalibrate(
    judge: Values, human: Values, clusters: Values, *, counts: Labels = None
) -> dict[str, Array]:  # fmt: skip
    """Fit maps on four fifths of the clusters and map the scores of the fifth, in turn (`grouped_folds`).

    Returns
    -------
    dict of array
        The scores, out of fold, of the rows that both rated: ``raw``, the judge's as they are; ``constant``, the
        humans' median on the other folds, which needs no judge at all; ``linear, isotonic``, by the maps of
        `fit_map`.

    Raises
    ------
    RagnbError
        Fewer than two folds.

    Examples
    --------
    >>> found = recalibrate([1, 2, 3, 4] * 5, [2, 3, 4, 5] * 5, np.repeat(range(5), 4))
    >>> {name: scores[:4].round(9).tolist() for name, scores in found.items() if name != "isotonic"}
    {'raw': [1.0, 2.0, 3.0, 4.0], 'constant': [3.5, 3.5, 3.5, 3.5], 'linear': [2.0, 3.0, 4.0, 5.0]}
    """
    rows = complete_rows([judge, human], clusters, counts)
    (x, y), c, fold = rows.columns, rows.counts, grouped_folds(rows.code, counts=rows.counts)
    if len(np.unique(fold)) < 2:
        raise RagnbError("the rows come from one cluster; recalibration needs two clusters or more")
    predicted = {"raw": x, **{name: np.empty(len(x)) for name in ("constant", *MAPS)}}
    for f in np.unique(fold):
        test, train = fold == f, fold != f
        predicted["constant"][test] = _median(y[train], c[train])
        for kind in MAPS:
            predicted[kind][test] = fit_map(x[train], y[train], kind, counts=c[train])(x[test])
    return predicted


class DrawTest(NamedTuple):
    """The judge's mean on labelled rows and on the rest, the distance in standard errors, the two-sided p-value.

    Examples
    --------
    >>> DrawTest(3.0, 4.5, -12.0, 1e-9).rest
    4.5
    """

    labelled: float
    rest: float
    z: float
    p: float


def draw_test(labelled: Values, rest: Values, clusters: Labels = None, rest_clusters: Labels = None) -> DrawTest:
    """Test whether the labelled rows look like a random sample, by the judge's scores on them and on the rest.

    The null hypothesis is that the draw did not depend on the judge's score. A draw that moves the spread of the
    judge's scores and not their mean is not found, and a draw by the *human* score cannot be found beyond what
    the judge shares with it: no human scored the rest. A draw with unequal, recorded chances is known and needs
    no test.

    Parameters
    ----------
    labelled, rest : array, shapes (n,) and (m,)
        The judge's scores on the labelled rows and on the others it scored, without gaps.
    clusters, rest_clusters : array, optional
        One set of labels: a name in both is one cluster. Give both or neither.

    Returns
    -------
    DrawTest
        nan for z and p where a side has no rows or the scores do not vary.

    Notes
    -----
    D = Σ cᵢFᵢ, cᵢ = 1/n on labelled rows and −1/m on the others, is 0 on average under the null. Scores of one
    cluster are alike: Var D = σ_b² Σ_g c_g² + σ_e² Σ cᵢ², c_g the sum over a cluster, both components by one-way
    analysis of variance of *all* rows. So rows drawn within clusters are tested by what varies within, whole
    clusters by what varies between. The p-value is that of Pearson's type III with D's skewness, as few labels of
    a lopsided score are skewed; its normal quantile is compared with t at Satterthwaite's degrees of freedom.

    Size at p ≤ 0.01, 1,000 draws a setting of 80 or 400 rows, 12 to 150 labels, clusters or none, scores from
    normal to 95 % alike: rows drawn at random 0.7 % on average, 1.7 % at most (Monte-Carlo error 0.3), rows within
    drawn clusters 0.5 and 1.5 %, whole clusters 0.2 and 1.2 %; systematic draws in strata of the score 0 %.

    Examples
    --------
    >>> found = draw_test([2, 3, 3, 2, 4, 3], [4, 5, 5, 4, 3, 5, 4, 5, 4, 5, 5, 4])
    >>> round(found.z, 1), found.p < 0.01
    (-3.1, True)
    """
    from scipy.special import gammainc, gammaincc, ndtr, ndtri, stdtr

    f, more = np.asarray(labelled, dtype=float), np.asarray(rest, dtype=float)
    names = _both(clusters, rest_clusters, "rest_clusters")
    every, n, m, rows = np.concatenate([f, more]), len(f), len(more), len(f) + len(more)
    of_labelled, of_rest = (float(part.mean()) if len(part) else np.nan for part in (f, more))
    if not (n and m) or not np.ptp(every) > 0:
        return DrawTest(of_labelled, of_rest, np.nan, np.nan)
    code = cluster_codes(names, rows)
    centred, c = every - every.mean(), np.concatenate([np.full(n, 1 / n), np.full(m, -1 / m)])
    total, by_cluster = float(centred @ centred), np.bincount(code, weights=c)
    g, typical = len(by_cluster), np.inf
    squares, df = [total / (rows - 1)] * 2, np.array([rows - 1.0, rows - 1.0])
    if 1 < g < rows:
        between, inside, typical = mean_squares(every, code, np.ones(rows))
        squares, df = [max(between, inside), inside], np.array([g - 1.0, rows - g])
    of_clusters = float(by_cluster @ by_cluster) / typical
    parts = np.array([of_clusters, float(c @ c) - of_clusters]) * squares
    variance, few = float(parts.sum()), float(parts.sum() ** 2 / np.sum(parts**2 / df))
    z = float(c @ centred) / variance**0.5
    third = float(np.mean(centred**3)) / float(np.mean(centred**2)) ** 1.5
    skew = third * (variance * (rows - 1) / total) ** 0.5 * (m - n) / rows
    # The tail of Pearson's type III, moved from the normal to t.
    tail = float(ndtr(-abs(z)))
    if abs(skew) >= 1e-4:
        shape, side = 4 / skew**2, z * np.sign(skew)
        at = max(shape + side * shape**0.5, 0.0)
        tail = float(min(gammainc(shape, at), gammaincc(shape, at)))
    return DrawTest(of_labelled, of_rest, z, min(2 * float(stdtr(few, ndtri(min(tail, 0.5)))), 1.0))
