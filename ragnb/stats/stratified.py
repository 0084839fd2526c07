"""The mean over strata that are all there are: documents of a complete corpus."""

from __future__ import annotations

from typing import Any

import numpy as np

from ragnb.stats.arrays import Array, Labels, Values, inner
from ragnb.stats.clustered import (
    NONE,
    Estimate,
    clustered_mean,
    complete_rows,
    t_interval,
)
from ragnb.stats.intervals import kish

_POOLED = 5.0
_FEWEST = 5


def stratified_se(
    shares: Array, questions: Array, squares: Array, inflation: Any = 1.0
) -> tuple[Array, Array]:
    """Return the standard error and degrees of freedom of a mean over a complete corpus of documents.

    Parameters
    ----------
    shares : (D, ...) float
        h, the share of each document in the weight of all; 0 leaves it out.
    questions : (D, ...) float
        N, the scored questions of each.
    squares : (D, ...) float
        Σ (x − mean)² over the questions of each document.
    inflation : (D, ...) float
        N Σr²/(Σr)² over the repeats r of its questions: 1 where all are asked equally often.

    Returns
    -------
    (...) float, (...) float
        se² = Σ h² s²/N, with s² of each document shrunk to the pooled variance as by 5 questions more: own
        variances alone cover 85 %, the pooled one alone 88. Degrees of freedom by Satterthwaite (1946), at most
        Σ(N − 1). Both nan where Σ(N − 1) < 5: too few questions to tell a variance by.

    Examples
    --------
    >>> h, n, ss = np.array([0.5, 0.5]), np.array([5.0, 5.0]), np.array([0.4, 0.6])
    >>> [round(float(x), 3) for x in stratified_se(h, n, ss)]
    [0.112, 8.0]
    """
    counts = (shares > 0) & (questions > 0)
    n = np.where(counts, questions, 1.0)
    freedom = np.where(counts, questions - 1, 0.0).sum(axis=0)
    squares = np.where(counts, squares, 0.0)
    # Without freedom there is no pooled variance; both results are nan there.
    with np.errstate(divide="ignore", invalid="ignore"):
        pooled = squares.sum(axis=0) / freedom
        # The variance of each document, shrunk to that of all as by a few questions more.
        variance = (squares + _POOLED * pooled) / (n + _POOLED - 1)
        parts = np.where(counts, shares**2 * variance * inflation / n, 0.0)
        se2 = parts.sum(axis=0)
        satterthwaite = se2**2 / (parts**2 / (n + _POOLED - 1)).sum(axis=0)
        df = np.minimum(satterthwaite, freedom)
    df = np.where(se2 > 0, df, freedom)
    has_enough = freedom >= _FEWEST
    return np.where(has_enough, np.sqrt(se2), np.nan), np.where(has_enough, df, np.nan)


def stratified_mean(
    values: Values, strata: Labels, *, weights: Labels = None, level: float = 0.95
) -> Estimate:
    """Return the mean of questions over a complete corpus of documents, value ± t·se, without nan rows.

    Where the documents have too few questions to tell how they vary, it is that of `clustered_mean`.

    Parameters
    ----------
    values : array, shape (n,)
        One value per question.
    strata : array, shape (n,)
        The document of each.
    weights : array, shape (n,), optional
        Weights ≥ 0, not frequencies.

    Examples
    --------
    >>> found = stratified_mean([0.5, 0.6, 0.7, 0.9, 0.8, 1.0, 0.9], [*"aaabbbb"])
    >>> round(found.value, 3), round(found.se, 3), found.n_clusters
    (0.771, 0.034, 7)
    """
    rows = complete_rows([values], strata, None, weights)
    x = rows.columns[0]
    v = rows.weights
    code = rows.code
    if not len(x):
        return NONE
    n = np.bincount(code).astype(float)
    total = float(v.sum())
    mean_of_stratum = np.bincount(code, x) / n
    squares: Array = np.bincount(code, (x - mean_of_stratum[code]) ** 2).astype(float)
    mass = np.bincount(code, v)
    uneven = n * np.bincount(code, v**2) / mass**2
    se, df = (float(part) for part in stratified_se(mass / total, n, squares, uneven))
    if not np.isfinite(se):
        return clustered_mean(values, strata, weights=weights, level=level)
    mean = inner(v, x) / total
    low, high = t_interval(mean, se, df, level)
    return Estimate(mean, low, high, se, len(x), len(x), df, float(kish(total, inner(v, v))))
