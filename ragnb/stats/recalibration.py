"""Can a map of the judge's score mend it: linear and isotonic maps, judged on clusters they have not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ragnb.errors import RagnbError, unknown
from ragnb.stats.agreement import within_share
from ragnb.stats.closeness import mae
from ragnb.stats.estimates import Codes, Counts, Estimate, Labels, Values, clustered_mean, packed
from ragnb.stats.means import Array
from ragnb.stats.tally import tallied

MAPS = ("linear", "isotonic")


@dataclass(frozen=True, slots=True)
class ScoreMap:
    """A map from the judge's score to the human's, linear between its knots and flat beyond them if isotonic.

    Examples
    --------
    >>> ScoreMap("linear", np.array([0.0, 1.0]), np.array([1.0, 3.0]))([2.0]).tolist()
    [5.0]
    """

    kind: str
    x: Array
    y: Array

    def __call__(self, judge: Values) -> Array:
        """Return the mapped scores, nan where the judge's is missing."""
        score = np.asarray(judge, dtype=float)
        if self.kind == "linear":
            return np.asarray(self.y[0] + (score - self.x[0]) * (self.y[1] - self.y[0]) / (self.x[1] - self.x[0]))
        return np.where(np.isnan(score), np.nan, np.interp(score, self.x, self.y))


def fit_map(judge: Values, human: Values, kind: str = "isotonic", *, counts: Counts = None) -> ScoreMap:
    """Fit E[human | judge] by least squares, on a line or on any rising curve.

    Parameters
    ----------
    kind : {"linear", "isotonic"}
        Isotonic: pool-adjacent-violators on the means at each distinct judge's score (Barlow et al. 1972). A
        judge that never varies gives the constant mean.

    Examples
    --------
    >>> fit_map([1, 2, 3, 4], [1, 3, 2, 4])([2.5, 9.0]).tolist()
    [2.5, 4.0]
    """
    if kind not in MAPS:
        raise unknown("kind", kind, MAPS)
    t = tallied(judge, human, None, counts)
    x, y, c = t.x, t.y, t.counts
    if not len(x):
        raise RagnbError("no row has both a judge's and a human's score; a map needs some")
    if kind == "linear":
        centre, mean = float(c @ x / c.sum()), float(c @ y / c.sum())
        spread = x - centre
        slope = float((c * spread) @ y / ((c * spread) @ spread)) if np.ptp(x) > 0 else 0.0
        return ScoreMap(kind, np.array([centre, centre + 1.0]), np.array([mean, mean + slope]))
    from scipy.optimize import isotonic_regression

    # Means of raters that differ in the last bit are one score, not two knots with a cliff between them.
    knots, at = np.unique(np.round(x, 9), return_inverse=True)
    sizes = np.bincount(at, weights=c)
    fitted = isotonic_regression(np.bincount(at, weights=c * y) / sizes, weights=sizes).x
    return ScoreMap(kind, knots, np.asarray(fitted, dtype=float))


def grouped_folds(clusters: Values, k: int = 5, *, counts: Counts = None) -> Codes:
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


@dataclass(frozen=True, slots=True)
class Recalibration:
    """What a map does to clusters it has not seen, beside no map and a constant.

    `predicted` holds the out-of-fold scores of the rows that both rated; `gain` is the mean fall of the absolute
    error against the raw judge, above 0 is better. `helps` says that the map's mae is below both others.

    Examples
    --------
    >>> recalibrate([1, 2, 3, 4] * 5, [2, 3, 4, 5] * 5, np.repeat(range(5), 4), kind="linear").helps
    True
    """

    kind: str
    predicted: Array
    mae: Estimate
    within: Estimate
    bias: Estimate
    raw_mae: Estimate
    raw_within: Estimate
    constant_mae: Estimate
    constant_within: Estimate
    gain: Estimate
    helps: bool


def recalibrate(
    judge: Values,
    human: Values,
    clusters: Values,
    *,
    kind: str = "isotonic",
    tolerance: float = 1.0,
    weights: Labels = None,
    counts: Counts = None,
    level: float = 0.95,
) -> Recalibration:
    """Fit a map on four fifths of the clusters, judge it on the fifth, in turn (`grouped_folds`).

    Parameters
    ----------
    kind : {"linear", "isotonic"}
    weights : array, shape (n,), optional
        Of the rows that judge a map, as in `clustered_mean`; it is fitted without them.

    Returns
    -------
    Recalibration
        The constant is the humans' median on the other folds, which needs no judge at all.

    Raises
    ------
    RagnbError
        Fewer than two folds.

    Examples
    --------
    >>> found = recalibrate([1, 2, 3, 4] * 5, [2, 3, 4, 5] * 5, np.repeat(range(5), 4), kind="linear")
    >>> found.raw_mae.value, round(found.mae.value, 9), found.constant_mae.value
    (1.0, 0.0, 1.0)
    """
    t = tallied(judge, human, clusters, counts, weights=weights)
    x, y, code, c = t.x, t.y, t.code, t.counts
    fold = grouped_folds(code, counts=c)
    if len(np.unique(fold)) < 2:
        raise RagnbError("the rows come from one cluster; recalibration needs two clusters or more")
    predicted, fixed = np.empty(len(x)), np.empty(len(x))
    for f in np.unique(fold):
        held = fold == f
        predicted[held] = fit_map(x[~held], y[~held], kind, counts=c[~held])(x[held])
        fixed[held] = _median(y[~held], c[~held])
    how: dict[str, Any] = {"weights": t.weights, "counts": c, "level": level}
    found = {}
    for name, scores in (("", predicted), ("raw_", x), ("constant_", fixed)):
        found[f"{name}mae"] = mae(scores, y, code, **how)
        found[f"{name}within"] = within_share(scores, y, code, tolerance=tolerance, **how)
    found["bias"] = clustered_mean(predicted - y, code, **how)
    found["gain"] = clustered_mean(np.abs(x - y) - np.abs(predicted - y), code, **how)
    helps = found["mae"].value < min(found["raw_mae"].value, found["constant_mae"].value)
    return Recalibration(kind=kind, predicted=predicted, helps=helps, **found)
