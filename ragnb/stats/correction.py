"""Means of a judge corrected by labels of people, and maps from its scores to theirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ragnb.errors import RagnbError, unknown
from ragnb.stats.arrays import Array, Codes, Flags, Labels, Values, inner
from ragnb.stats.clustered import (
    Estimate,
    checked,
    cluster_codes,
    complete_rows,
    jackknife,
    packed,
    sums_by,
    t_interval,
)
from ragnb.stats.intervals import kish, mean_interval

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
    human: Values,
    judge: Values,
    judged: Values,
    clusters: Labels = None,
    judged_clusters: Labels = None,
    *,
    weights: Labels = None,
    shares: tuple[Values, Values] | None = None,
    weight: float | None = None,
    ends: tuple[float, float] = (-np.inf, np.inf),
    level: float = 0.95,
) -> Corrected:
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
    shares : (array of (n,), array of (N,)), optional
        How much each row counts in the population, as by the weight of its document; by default all alike.
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
    f̄). With weights it is the regression estimator, ȳ + β (mean of F on all rows − f̄), with ȳ, f̄ and β = cov(Y,
    F)/var F Hájek's, Σwx/Σw, on the labelled rows (Särndal, Swensson and Wretman 1992, Model Assisted Survey
    Sampling, chapter 6), and n_g/n is w_g/Σw: the variance of F over all rows would be that of another range.

    Examples
    --------
    >>> found = ppi_jackknife([3, 4, 5, 4], [2, 3, 5, 4], [4, 4, 5, 3, 4, 5], ends=(1, 5))
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (4.303, 2.975, 4.834)
    """
    names = both_clusters(clusters, judged_clusters, "judged_clusters")
    y, f = checked(human, judge)
    more = np.asarray(judged, dtype=float)
    if weights is None:
        w = np.ones(len(y))
    else:
        w = np.asarray(weights, dtype=float)
    seen = ~np.isnan(y - f)
    extra = ~np.isnan(more)
    y = y[seen]
    f = f[seen]
    w = w[seen]
    more = more[extra]
    n = int(seen.sum())
    if n < 2:
        raise RagnbError(
            f"{n} rows have both a human and a judge score; the correction needs 2 or more"
        )
    if np.isinf(more).any():
        raise RagnbError("judged holds an infinite value; a score is a finite number or missing")
    code = cluster_codes(None if names is None else names[np.r_[seen, extra]], n + len(more))
    labels = y
    centre = float(y.mean())
    every = np.concatenate([f, more])
    y = y - centre
    every = every - every.mean()
    f = every[:n]
    v = _row_shares(shares, seen, extra)
    sums = sums_by(code, _terms(y, w, every) * v[:, None])
    whole = sums.sum(axis=0)
    noise = 1e-12 * float(every.var())
    is_drawn = weight is None and bool(np.ptp(w) > 0)
    how_point: dict[str, Any] = {"weight": weight, "noise": noise, "is_drawn": is_drawn}
    centred, lam = (float(x) for x in _point(whole, **how_point))
    w = w * v[:n]
    used = sums[(sums[:, 0] > 0) | (lam != 0)]
    g = len(used)
    value = centred + centre
    se = jackknife(lambda s: _point(s, **how_point)[0], used, used[:, 6], whole=whole).se
    error = y - lam * f
    error = error - np.average(error, weights=w)
    # A cluster counts by what it adds to the error of the labels and to that of the judge's scores.
    of_labels = float(np.sqrt(np.average(error**2, weights=w)))
    of_judge = abs(lam) * float(every.std())
    if not (of_labels + of_judge > 0):
        of_labels = 1.0
        of_judge = 0.0
    h = of_labels * used[:, 1] / whole[1]
    if lam:
        unlabelled = used[:, 6] - used[:, 0]
        h = h + of_judge * unlabelled / (whole[6] - whole[0])
    g_eff = float(h.sum() ** 2 / np.sum(h**2))
    if np.isfinite(ends).all():
        value = float(np.clip(value, *ends))
        how: dict[str, Any] = {"sum_h4": float(np.sum((h / h.sum()) ** 4)), "level": level}
        if not lam:  # the people's scores alone, as `clustered_mean` takes them
            at_low, at_high = (int((labels == end).sum()) for end in ends)
            how["binary"] = at_low + at_high == n
            how["elsewhere"] = n - max(at_low, at_high), n
        ends_of = mean_interval(value, se, g_eff, kish(w.sum(), inner(w, w)), ends, **how)
        low, high = map(float, ends_of)
    else:
        low, high = t_interval(value, se, g_eff - 1, level)
    df = max(g_eff - 1, 1.0)
    return Corrected(value, low, high, se, n, g, df=df, weight=lam, n_judged=len(more))


def ppi_difference(
    human: Array, judge: Array, clusters: npt.NDArray[Any], *, shares: Array, level: float = 0.95
) -> Corrected:
    """Return the difference of two prediction-powered means whose labels are on different questions.

    Parameters
    ----------
    human, judge : (2, Q) float
        The scores of two systems, nan where there is none.
    clusters, shares : (Q,)
        The cluster of each question, and how much it counts.

    Returns
    -------
    Corrected
        The difference of two `ppi_jackknife`, its se by leaving each cluster out of both at once; the fewer of
        their degrees of freedom, n the labels of the side that has fewer, and no weight.

    Examples
    --------
    >>> nan = float("nan")
    >>> human = np.array([[5, 4, nan, nan], [nan, nan, 3, 4]])
    >>> judge = np.array([[4.0, 4, 5, 5], [3, 3, 3, 4]])
    >>> round(ppi_difference(human, judge, np.arange(4), shares=np.ones(4)).value, 2)
    1.25
    """
    code = packed(clusters)
    parts = []
    alone = []
    for y, f in zip(human, judge, strict=True):
        labelled = ~np.isnan(y - f)
        rows = np.concatenate([np.flatnonzero(labelled), np.flatnonzero(~labelled & ~np.isnan(f))])
        n = int(labelled.sum())
        first = rows[:n]
        rest = rows[n:]
        given = y[first], f[first], f[rest], clusters[first], clusters[rest]
        alone.append(ppi_jackknife(*given, shares=(shares[first], shares[rest]), level=level))
        terms = _terms(y[first] - y[first].mean(), np.ones(n), f[rows] - f[rows].mean())
        sums = np.zeros((code.max() + 1, terms.shape[1]))
        np.add.at(sums, code[rows], terms * (shares[rows] / shares[rows].mean())[:, None])
        parts.append((sums, 1e-12 * float(f[rows].var())))

    def difference(both: Array) -> Array:
        sides = np.split(both, 2, axis=-1)
        new, old = (
            _point(side, weight=None, noise=noise, is_drawn=False)[0]
            for side, (_, noise) in zip(sides, parts, strict=True)
        )
        return np.asarray(new - old)

    both = np.hstack([sums for sums, _ in parts])
    estimate = jackknife(difference, both, both[:, 6] + both[:, 15], level=level)
    new, old = alone
    value = new.value - old.value
    df = min(new.df, old.df)
    low, high = t_interval(value, estimate.se, df, level)
    n = min(new.n, old.n)
    n_judged = min(new.n_judged, old.n_judged)
    return Corrected(
        value,
        low,
        high,
        estimate.se,
        n,
        estimate.n_clusters,
        df=df,
        weight=np.nan,
        n_judged=n_judged,
    )


def _terms(y: Array, w: Array, every: Array) -> Array:
    """Return the rows of which `_point` takes the sums: labels `y` of weights `w`, the judge's scores `every`."""
    n = len(y)
    f = every[: len(y)]
    table = np.zeros((len(every), 9))
    of_labels = [np.ones(n), w, w * f, w * y, w * y * f, w * f**2]
    of_judge = [np.ones(len(every)), every, every**2]
    table[:n, :6] = np.stack(of_labels, axis=1)
    table[:, 6:] = np.stack(of_judge, axis=1)
    return table


def _row_shares(shares: tuple[Values, Values] | None, seen: Flags, extra: Flags) -> Array:
    """Return how much each row of the population counts, 1 on average: the labelled ones, then the others."""
    if shares is None:
        return np.ones(int(seen.sum() + extra.sum()))
    labelled, others = (np.asarray(side, dtype=float) for side in shares)
    v = np.concatenate([labelled[seen], others[extra]])
    return np.asarray(v / v.mean())


def _point(
    sums: Array, *, weight: float | None, noise: float, is_drawn: bool
) -> tuple[Array, Array]:
    """Return the estimate and λ from sums (…, 9) of 1, w, wF, wY, wYF, wF² (labelled) and 1, F, F² (all)."""
    n, w, f, y, yf, ff, rows, g, gg = np.moveaxis(sums, -1, 0)
    more = rows - n
    with np.errstate(divide="ignore", invalid="ignore"):
        covariance = yf / w - y * f / w**2
        if is_drawn:
            # The labelled rows have a range of their own where large scores were drawn more often.
            variance = ff / w - (f / w) ** 2
            best = covariance / variance
            moved = g / rows - f / w
        else:
            variance = (gg - g**2 / rows) / (rows - 1)
            best = np.clip(covariance / (rows / more * variance), 0.0, 1.0)
            moved = rows / more * (g / rows - f / w)
        if weight is None:
            lam = np.where(variance > noise, best, 0.0)
        else:
            lam = np.full_like(n, weight)
        lam = np.where(more > 0, lam, 0.0)
        value = y / w + np.where(lam != 0, lam * moved, 0.0)
    return np.asarray(value, dtype=float), np.asarray(lam, dtype=float)


def both_clusters(clusters: Labels, others: Labels, name: str) -> Any:
    """Return one set of labels of two kinds of rows, none where neither has them."""
    if (clusters is None) != (others is None):
        raise RagnbError(
            f"clusters are given for one kind of row only; give both clusters and {name}, or neither"
        )
    if clusters is None:
        return None
    return np.concatenate([np.asarray(clusters), np.asarray(others)])


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
        raise RagnbError(
            "no row has both a judge score and a human score; recalibration needs some"
        )
    if kind == "linear":
        centre = inner(c, x) / float(c.sum())
        mean = inner(c, y) / float(c.sum())
        if np.ptp(x) > 0:
            slope = inner(c * (x - centre), y) / inner(c * (x - centre), x - centre)
        else:
            slope = 0.0
        return lambda scores: mean + slope * (np.asarray(scores, dtype=float) - centre)
    from scipy.optimize import isotonic_regression

    # Means of raters that differ in the last bit are one score, not two knots with a cliff between them.
    knots, at = np.unique(np.round(x, 9), return_inverse=True)
    sizes = np.bincount(at, weights=c)
    fitted = np.asarray(
        isotonic_regression(np.bincount(at, weights=c * y) / sizes, weights=sizes).x, dtype=float
    )
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
    load = np.zeros(max(min(k, len(sizes)), 1))
    fold = np.zeros(len(sizes), dtype=np.intp)
    for g in np.argsort(sizes, kind="stable")[::-1]:
        fold[g] = np.argmin(load)
        load[fold[g]] += sizes[g]
    return fold[code]


def _median(values: Array, counts: Array) -> float:
    order = np.argsort(values)
    upto = np.cumsum(counts[order])
    # Both are one value unless the count is even.
    middle = np.searchsorted(upto, [upto[-1] / 2, upto[-1] / 2 + 0.5])
    return float(values[order][middle].mean())


def recalibrate(
    judge: Values, human: Values, clusters: Values, *, counts: Labels = None
) -> dict[str, Array]:
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
        test = fold == f
        train = fold != f
        predicted["constant"][test] = _median(y[train], c[train])
        for kind in MAPS:
            predicted[kind][test] = fit_map(x[train], y[train], kind, counts=c[train])(x[test])
    return predicted
