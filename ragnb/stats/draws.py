"""Whether labelled rows look like a random sample of all rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ragnb.stats.arrays import Array, Codes, Labels, Values, inner
from ragnb.stats.clustered import cluster_codes, mean_squares
from ragnb.stats.correction import both_clusters


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


def draw_test(
    labelled: Values, rest: Values, clusters: Labels = None, rest_clusters: Labels = None
) -> DrawTest:
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
    >>> test = draw_test([2, 3, 3, 2, 4, 3], [4, 5, 5, 4, 3, 5, 4, 5, 4, 5, 5, 4])
    >>> round(test.z, 1), test.p < 0.01
    (-3.1, True)
    """
    judge_labelled = np.asarray(labelled, dtype=float)
    judge_rest = np.asarray(rest, dtype=float)
    names = both_clusters(clusters, rest_clusters, "rest_clusters")
    n = len(judge_labelled)
    m = len(judge_rest)
    scores = np.concatenate([judge_labelled, judge_rest])
    mean_labelled = float(judge_labelled.mean()) if n else np.nan
    mean_rest = float(judge_rest.mean()) if m else np.nan
    if n == 0 or m == 0 or not np.ptp(scores) > 0:
        return DrawTest(mean_labelled, mean_rest, np.nan, np.nan)

    code = cluster_codes(names, n + m)
    contrast = np.concatenate([np.full(n, 1 / n), np.full(m, -1 / m)])  # the cᵢ of the notes
    variance, df = _variance_of_contrast(contrast, scores, code)
    centred = scores - scores.mean()
    z = inner(contrast, centred) / variance**0.5

    # D is skewed as the scores are, in so far as its sides differ in size: not at all where n = m.
    skew_of_scores = float(np.mean(centred**3)) / float(np.mean(centred**2)) ** 1.5
    sd_ratio = (variance * (n + m - 1) / inner(centred, centred)) ** 0.5
    skew = skew_of_scores * sd_ratio * (m - n) / (n + m)
    return DrawTest(mean_labelled, mean_rest, z, _two_sided_p(z, skew, df))


def _variance_of_contrast(contrast: Array, scores: Array, code: Codes) -> tuple[float, float]:
    """Return Var D = σ_b² Σ_g c_g² + σ_e² Σ cᵢ² and its degrees of freedom (Satterthwaite 1946)."""
    n_rows = len(scores)
    by_cluster = np.bincount(code, weights=contrast)
    n_clusters = len(by_cluster)
    if 1 < n_clusters < n_rows:
        between, inside, typical_size = mean_squares(scores, code, np.ones(n_rows))
        # A negative component of the clusters counts as none: then both mean squares are equal.
        mean_square = np.array([max(between, inside), inside])
        df = np.array([n_clusters - 1.0, n_rows - n_clusters])
    else:
        # One cluster, or a cluster a row: there is one component only.
        centred = scores - scores.mean()
        mean_square = np.full(2, inner(centred, centred) / (n_rows - 1))
        df = np.array([n_rows - 1.0, n_rows - 1.0])
        typical_size = np.inf
    # Var D, rewritten as multiples of the two mean squares, whose degrees of freedom are known.
    of_clusters = inner(by_cluster, by_cluster) / typical_size
    parts = mean_square * np.array([of_clusters, inner(contrast, contrast) - of_clusters])
    variance = float(parts.sum())
    return variance, float(variance**2 / np.sum(parts**2 / df))


def _two_sided_p(z: float, skew: float, df: float) -> float:
    """Return the p-value of a standardised sum of so much skewness, by Pearson's type III and t."""
    from scipy.special import gammainc, gammaincc, ndtr, ndtri, stdtr

    tail = float(ndtr(-abs(z)))
    # A smaller skewness moves the tail by less than 1e-5.
    if abs(skew) >= 1e-4:
        shape = 4 / skew**2
        at = max(shape + z * np.sign(skew) * shape**0.5, 0.0)
        tail = float(min(gammainc(shape, at), gammaincc(shape, at)))
    # The normal quantile of the tail is looked up in t: the variance is estimated.
    return 2 * float(stdtr(df, ndtri(tail)))
