"""Means of a judge corrected by labels of people, and maps from its scores to theirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

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
    rows = _population(human, judge, judged, names, weights, shares)
    n = len(rows.human)
    n_judged = len(rows.judge) - n
    sums = sums_by(rows.code, rows.terms())
    whole = sums.sum(axis=0)
    how: dict[str, Any] = {
        "weight": weight,
        "noise": 1e-12 * float(rows.judge.var()),
        "is_drawn": weight is None and bool(np.ptp(rows.weights) > 0),
    }
    centred, lam = (float(x) for x in _point(whole, **how))
    value = centred + rows.centre
    # With λ = 0 a cluster without labels has no part in the mean, nor in the number of clusters.
    used = sums[(_Sums.of(sums).n > 0) | (lam != 0)]
    n_clusters = len(used)
    size = _Sums.of(used).rows
    se = jackknife(lambda part: _point(part, **how)[0], used, size, whole=whole).se

    h = _parts_of_clusters(rows, lam, _Sums.of(used), _Sums.of(whole))
    g_eff = float(h.sum() ** 2 / np.sum(h**2))
    if np.isfinite(ends).all():
        value = float(np.clip(value, *ends))
        weight_of_row = rows.weights * rows.shares[:n]
        n_kish = kish(weight_of_row.sum(), inner(weight_of_row, weight_of_row))
        options: dict[str, Any] = {"sum_h4": float(np.sum((h / h.sum()) ** 4)), "level": level}
        if lam == 0:
            # The people's scores alone, as `clustered_mean` takes them.
            at_low, at_high = (int((rows.labels == end).sum()) for end in ends)
            options["binary"] = at_low + at_high == n
            options["elsewhere"] = n - max(at_low, at_high), n
        bounds = mean_interval(value, se, g_eff, n_kish, ends, **options)
        low, high = map(float, bounds)
    else:
        low, high = t_interval(value, se, g_eff - 1, level)
    df = max(g_eff - 1, 1.0)
    return Corrected(value, low, high, se, n, n_clusters, df=df, weight=lam, n_judged=n_judged)


class _Population(NamedTuple):
    """The rows a human mean is asked of: the n that people labelled, then the N that only the judge scored."""

    labels: Array  # (n,) the people's scores, as they gave them
    centre: float  # their mean, taken off `human`: sums of small numbers keep their digits
    human: Array  # (n,)
    judge: Array  # (n + N,) the judge's scores, less their mean
    weights: Array  # (n,) 1 / inclusion probability
    shares: Array  # (n + N,) how much each row counts, 1 on average
    code: Codes  # (n + N,) the cluster

    def terms(self) -> Array:
        """Return the terms of `_Sums`, a row each."""
        return _terms(self.human, self.weights, self.judge) * self.shares[:, None]


def _population(
    human: Values,
    judge: Values,
    judged: Values,
    clusters: Any,
    weights: Labels,
    shares: tuple[Values, Values] | None,
) -> _Population:
    """Return the rows that have the scores they need; `clusters` names those of both kinds."""
    y, f = checked(human, judge)
    more = np.asarray(judged, dtype=float)
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    is_labelled = ~np.isnan(y - f)
    is_judged = ~np.isnan(more)
    n = int(is_labelled.sum())
    if n < 2:
        raise RagnbError(
            f"{n} rows have both a human and a judge score; the correction needs 2 or more"
        )
    more = more[is_judged]
    if np.isinf(more).any():
        raise RagnbError("judged holds an infinite value; a score is a finite number or missing")
    if clusters is not None:
        clusters = clusters[np.r_[is_labelled, is_judged]]
    labels = y[is_labelled]
    centre = float(labels.mean())
    scores = np.concatenate([f[is_labelled], more])
    return _Population(
        labels=labels,
        centre=centre,
        human=labels - centre,
        judge=scores - scores.mean(),
        weights=w[is_labelled],
        shares=_row_shares(shares, is_labelled, is_judged),
        code=cluster_codes(clusters, len(scores)),
    )


def _parts_of_clusters(rows: _Population, lam: float, used: _Sums, whole: _Sums) -> Array:
    """Return each cluster's part in the error of the labels and in λ times that of the judge's scores, h_g."""
    n = len(rows.human)
    weight_of_row = rows.weights * rows.shares[:n]
    error = rows.human - lam * rows.judge[:n]
    error = error - np.average(error, weights=weight_of_row)
    of_labels = float(np.sqrt(np.average(error**2, weights=weight_of_row)))
    of_judge = abs(lam) * float(rows.judge.std())
    if not (of_labels + of_judge > 0):
        # Nothing varies: clusters count by their labels.
        of_labels = 1.0
        of_judge = 0.0
    h: Array = of_labels * used.weight / whole.weight
    if lam:
        h = h + of_judge * (used.rows - used.n) / (whole.rows - whole.n)
    return h


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
    n_codes = int(code.max()) + 1
    means = []
    tables = []
    noises = []
    for y, f in zip(human, judge, strict=True):
        is_labelled = ~np.isnan(y - f)
        labelled = np.flatnonzero(is_labelled)
        rest = np.flatnonzero(~is_labelled & ~np.isnan(f))
        both_shares = shares[labelled], shares[rest]
        both_clusters_of = clusters[labelled], clusters[rest]
        scores = y[labelled], f[labelled], f[rest]
        means.append(ppi_jackknife(*scores, *both_clusters_of, shares=both_shares, level=level))
        rows = _population(*scores, None, None, both_shares)
        # A cluster may have rows of one system alone: both sides are laid out over the clusters of both.
        table = np.zeros((n_codes, len(_Sums._fields)))
        np.add.at(table, code[np.concatenate([labelled, rest])], rows.terms())
        tables.append(table)
        noises.append(1e-12 * float(rows.judge.var()))

    def difference(sums: Array) -> Array:
        new_sums, old_sums = np.split(sums, 2, axis=-1)
        new, _ = _point(new_sums, weight=None, noise=noises[0], is_drawn=False)
        old, _ = _point(old_sums, weight=None, noise=noises[1], is_drawn=False)
        return np.asarray(new - old)

    size = _Sums.of(tables[0]).rows + _Sums.of(tables[1]).rows
    estimate = jackknife(difference, np.hstack(tables), size, level=level)
    new, old = means
    value = new.value - old.value
    df = min(new.df, old.df)
    low, high = t_interval(value, estimate.se, df, level)
    return Corrected(
        value,
        low,
        high,
        estimate.se,
        n=min(new.n, old.n),
        n_clusters=estimate.n_clusters,
        df=df,
        weight=np.nan,
        n_judged=min(new.n_judged, old.n_judged),
    )


class _Sums(NamedTuple):
    """Sums over rows, of any shape, from which an estimate and its λ follow: of labelled rows, then of all."""

    n: Array  # labelled rows
    weight: Array  # Σw
    judge: Array  # ΣwF
    human: Array  # ΣwY
    product: Array  # ΣwYF
    judge_squared: Array  # ΣwF²
    rows: Array  # rows, labelled or not
    all_judge: Array  # ΣF
    all_judge_squared: Array  # ΣF²

    @classmethod
    def of(cls, table: Array) -> _Sums:
        """Return the sums in the last axis of a table."""
        return cls(*np.moveaxis(table, -1, 0))


def _terms(human: Array, weights: Array, judge: Array) -> Array:
    """Return what each row adds to `_Sums`, shape (n + N, 9): the n labelled rows first."""
    n = len(human)
    judge_labelled = judge[:n]
    zero = np.zeros(len(judge) - n)

    def of_labels(terms: Array) -> Array:
        return np.concatenate([terms, zero])

    terms = _Sums(
        n=of_labels(np.ones(n)),
        weight=of_labels(weights),
        judge=of_labels(weights * judge_labelled),
        human=of_labels(weights * human),
        product=of_labels(weights * human * judge_labelled),
        judge_squared=of_labels(weights * judge_labelled**2),
        rows=np.ones(len(judge)),
        all_judge=judge,
        all_judge_squared=judge**2,
    )
    return np.stack(terms, axis=1)


def _row_shares(shares: tuple[Values, Values] | None, seen: Flags, extra: Flags) -> Array:
    """Return how much each row of the population counts, 1 on average: the labelled ones, then the others."""
    if shares is None:
        return np.ones(int(seen.sum() + extra.sum()))
    labelled, others = (np.asarray(side, dtype=float) for side in shares)
    v = np.concatenate([labelled[seen], others[extra]])
    return np.asarray(v / v.mean())


def _point(
    table: Array, *, weight: float | None, noise: float, is_drawn: bool
) -> tuple[Array, Array]:
    """Return the estimate and λ from a table (…, 9) of `_Sums`.

    `weight` is a λ that was given, `noise` a variance that is rounding error, and `is_drawn` says that labelled
    rows were drawn with unequal chances.
    """
    sums = _Sums.of(table)
    n_rest = sums.rows - sums.n
    # Without further rows λ is 0, whatever it divides by; without labels there is no mean, and the value is nan.
    with np.errstate(divide="ignore", invalid="ignore"):
        human_mean = sums.human / sums.weight
        judge_mean = sums.judge / sums.weight
        covariance = sums.product / sums.weight - sums.human * sums.judge / sums.weight**2
        distance = sums.all_judge / sums.rows - judge_mean  # of all rows from the labelled ones
        if is_drawn:
            # The labelled rows have a range of their own where large scores were drawn more often.
            variance = sums.judge_squared / sums.weight - judge_mean**2
            best = covariance / variance
        else:
            squares = sums.all_judge_squared - sums.all_judge**2 / sums.rows
            variance = squares / (sums.rows - 1)
            # 1 + n/N: the labelled mean is this many times as far from the other N rows as from all rows.
            stretch = sums.rows / n_rest
            best = np.clip(covariance / (stretch * variance), 0.0, 1.0)
            distance = stretch * distance
        if weight is None:
            lam = np.where(variance > noise, best, 0.0)
        else:
            lam = np.full_like(sums.n, weight)
        lam = np.where(n_rest > 0, lam, 0.0)
        value = human_mean + np.where(lam != 0, lam * distance, 0.0)
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
    x, y = rows.columns
    c = rows.counts
    if not len(x):
        raise RagnbError(
            "no row has both a judge score and a human score; recalibration needs some"
        )
    if kind == "linear":
        return _line(x, y, c)
    return _rising_curve(x, y, c)


def _line(x: Array, y: Array, counts: Array) -> Callable[[Values], Array]:
    """Fit y on x by weighted least squares; a level line where x does not vary."""
    centre = inner(counts, x) / float(counts.sum())
    mean = inner(counts, y) / float(counts.sum())
    slope = 0.0
    if np.ptp(x) > 0:
        weighted = counts * (x - centre)
        slope = inner(weighted, y) / inner(weighted, x - centre)

    def mapped(scores: Values) -> Array:
        return mean + slope * (np.asarray(scores, dtype=float) - centre)

    return mapped


def _rising_curve(x: Array, y: Array, counts: Array) -> Callable[[Values], Array]:
    """Fit y on x by weighted isotonic regression, straight between the distinct x and flat beyond them."""
    from scipy.optimize import isotonic_regression

    # Means of raters that differ in the last bit are one score, not two knots with a cliff between them.
    knots, at = np.unique(np.round(x, 9), return_inverse=True)
    sizes = np.bincount(at, weights=counts)
    means = np.bincount(at, weights=counts * y) / sizes
    fitted = np.asarray(isotonic_regression(means, weights=sizes).x, dtype=float)

    def mapped(scores: Values) -> Array:
        return np.asarray(np.interp(np.asarray(scores, dtype=float), knots, fitted))

    return mapped


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
    rows = np.ones(len(code)) if counts is None else np.asarray(counts, dtype=float)
    sizes = np.bincount(code, weights=rows)
    load = np.zeros(max(min(k, len(sizes)), 1))
    fold = np.zeros(len(sizes), dtype=np.intp)
    for g in np.argsort(sizes, kind="stable")[::-1]:
        fold[g] = np.argmin(load)
        load[fold[g]] += sizes[g]
    return fold[code]


def _median(values: Array, counts: Array) -> float:
    """Return the median of values that stand for so many rows each."""
    order = np.argsort(values)
    upto = np.cumsum(counts[order])
    half = upto[-1] / 2
    # Both are one value unless the count is even.
    middle = np.searchsorted(upto, [half, half + 0.5])
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
    x, y = rows.columns
    c = rows.counts
    fold = grouped_folds(rows.code, counts=c)
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
