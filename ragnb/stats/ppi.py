"""A human mean from few labels and many judge scores: prediction-powered, or by error rates without pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ragnb.errors import RagnbError
from ragnb.stats.estimates import Codes, Labels, Values, cluster_codes, pairs, t_interval
from ragnb.stats.means import Array, wilson

LEAST_YOUDEN = 0.1


@dataclass(frozen=True, slots=True)
class Corrected:
    """A corrected mean with its interval; `weight` is λ, what the judge's scores were worth.

    Examples
    --------
    >>> Corrected(3.9, 3.6, 4.2, 0.15, 0.5, 50, 400, 20).weight
    0.5
    """

    value: float
    low: float
    high: float
    se: float
    weight: float
    n: int
    n_judged: int
    n_clusters: int


def ppi_mean(
    human: Values,
    judge: Values,
    judged: Values,
    clusters: Labels = None,
    judged_clusters: Labels = None,
    *,
    weight: float | None = None,
    level: float = 0.95,
) -> Corrected:
    """Return the prediction-powered mean of what humans would say, with clusters that may hold both kinds of rows.

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

    Returns
    -------
    Corrected
        value = mean(Y) + λ (mean(F on the N) − mean(F on the n)), ± t(G−1)·se.

    Notes
    -----
    λ = clip(cov(Y, F) / ((1 + n/N) var F), 0, 1), cov with divisor n on the labelled rows, var with divisor
    n + N − 1 on all. A labelled row contributes (e − ē)/n with e = Y − λF, another λ(F − F̄)/N, and
    se² = G/(G−1) Σ_g (Σ_{i∈g} c_i)². Angelopoulos, Duchi and Zrnic (2023), PPI++, arXiv 2311.01453; the sums
    by cluster follow Miller (2024), arXiv 2411.00640.

    Examples
    --------
    >>> found = ppi_mean([3, 4, 5, 4], [2, 3, 5, 4], [4, 4, 5, 3, 4, 5])
    >>> round(found.value, 3), round(found.weight, 3), found.n, found.n_judged
    (4.303, 0.455, 4, 6)
    """
    y, f, more, code = labelled_rows(human, judge, judged, clusters, judged_clusters)
    n, n_more = len(y), len(more)
    everyone = np.concatenate([f, more])
    lam = weight if n_more else 0.0
    if lam is None:
        spread = everyone.var(ddof=1)
        cov = float(np.mean((y - y.mean()) * (f - f.mean())))
        lam = float(np.clip(cov / ((1 + n / n_more) * spread), 0.0, 1.0)) if spread > 0 else 0.0
    shift = float(more.mean() - f.mean()) if n_more else 0.0
    error = y - lam * f
    parts = np.concatenate([(error - error.mean()) / n, lam * (more - more.mean()) / n_more if n_more else more])
    if lam == 0:  # rows that the estimate does not use are no clusters of it
        parts, code = parts[:n], np.unique(code[:n], return_inverse=True)[1]
    sums = np.bincount(code, weights=parts)
    g = len(sums)
    se = float(np.sqrt(g / (g - 1) * np.sum(sums**2))) if g > 1 else np.nan
    value = float(y.mean()) + lam * shift
    return Corrected(value, *t_interval(value, se, g - 1, level), se, lam, n, n_more, g)


def labelled_rows(
    human: Values, judge: Values, judged: Values, clusters: Labels, judged_clusters: Labels
) -> tuple[Array, Array, Array, Codes]:
    """Return Y and F of the labelled rows, F of the further ones, and the clusters of both, one after the other.

    Rows with a gap are left out. Fewer than 2 labelled rows, infinite values and clusters of one kind only raise
    RagnbError.

    Examples
    --------
    >>> labelled_rows([3, 4, float("nan")], [2, 3, 4], [5], ["a", "b", "c"], ["b"])
    (array([3., 4.]), array([2., 3.]), array([5.]), array([0, 1, 1]))
    """
    if (clusters is None) != (judged_clusters is None):
        raise RagnbError("clusters come for one kind of rows only; give clusters and judged_clusters, or neither")
    y, f, _ = pairs(human, judge)
    more = np.asarray(judged, dtype=float)
    seen = ~(np.isnan(np.asarray(human, dtype=float)) | np.isnan(np.asarray(judge, dtype=float)))
    extra = ~np.isnan(more)
    more, n = more[extra], len(y)
    if n < 2:
        raise RagnbError(f"{n} rows have both a human and a judge's score; the correction needs 2 or more")
    if np.isinf(more).any():
        raise RagnbError("judged holds an infinite value; a score is a finite number or missing")
    names = None
    if clusters is not None and judged_clusters is not None:
        names = np.concatenate([np.asarray(clusters)[seen], np.asarray(judged_clusters)[extra]])
    return y, f, more, cluster_codes(names, n + len(more))


def rogan_gladen(
    positive: tuple[int, int], sensitivity: tuple[int, int], specificity: tuple[int, int], *, level: float = 0.95
) -> Corrected:
    """Return a true rate from a judge's rate and its error rates, where no item has both a human and a judge.

    Parameters
    ----------
    positive : (int, int)
        The judge's positives and the rows it judged.
    sensitivity, specificity : (int, int)
        Right calls and trials on true positives, on true negatives.

    Raises
    ------
    RagnbError
        Youden's J = sensitivity + specificity − 1 is 0.1 or less, or its interval reaches 0: such a judge tells
        too little, and the division by J would show noise as a rate. Where items have both, use `ppi_mean`.

    Notes
    -----
    Rogan and Gladen (1978), Am. J. Epidemiol. 107, 71–76, cut to [0, 1]. The interval is Lee et al.'s (2025),
    How to Correctly Report LLM-as-a-Judge Evaluations, for independent rows; J's is Newcombe's hybrid of two
    Wilson intervals (1998, method 10).

    Examples
    --------
    >>> found = rogan_gladen((400, 1000), (180, 200), (140, 200))
    >>> round(found.value, 4), round(found.low, 4), round(found.high, 4)
    (0.1667, 0.0564, 0.2627)
    """
    from scipy.special import ndtri

    z = float(ndtri(0.5 + level / 2))
    for name, (k, n) in (("positive", positive), ("sensitivity", sensitivity), ("specificity", specificity)):
        if not 0 <= k <= n or n < 1:
            raise RagnbError(f"{name}={(k, n)} is no count out of a total; give (right calls, trials)")
    (k, n), (k1, m1), (k0, m0) = positive, sensitivity, specificity
    q1, q0 = k1 / m1, k0 / m0
    youden = q1 + q0 - 1
    least = youden - float(np.hypot(q1 - _low(q1, m1, z), q0 - _low(q0, m0, z)))
    if youden <= LEAST_YOUDEN or least <= 0:
        raise RagnbError(
            f"Youden's J = {youden:.3f}, interval from {least:.3f}: this judge tells too little for a corrected "
            f"rate (J must exceed {LEAST_YOUDEN} and its interval 0); label items that the judge scored instead"
        )
    value = float(np.clip((k / n + q0 - 1) / youden, 0.0, 1.0))
    # Shrunken rates, as an observed 0 or 1 has no variance; then a first-order shift of the centre.
    p, s1, s0 = (k + z**2 / 2) / (n + z**2), (k1 + 1) / (m1 + 2), (k0 + 1) / (m0 + 2)
    j = s1 + s0 - 1
    centre = (p + s0 - 1) / j
    v1, v0 = s1 * (1 - s1) / (m1 + 2), s0 * (1 - s0) / (m0 + 2)
    shift = 2 * z**2 * (centre * v1 - (1 - centre) * v0)
    se = float(np.sqrt(p * (1 - p) / (n + z**2) + (1 - centre) ** 2 * v0 + centre**2 * v1) / j)
    low, high = (float(np.clip(centre + shift + sign * z * se, 0.0, 1.0)) for sign in (-1, 1))
    return Corrected(value, low, high, se, 1 / youden, m1 + m0, n, n + m1 + m0)


def _low(p: float, n: int, z: float) -> float:
    return float(wilson(np.array(p), np.array(float(n)), np.array(z))[0])
