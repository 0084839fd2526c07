"""A corrected mean as a result, and the rows it is made of: labelled ones and ones that only the judge saw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ragnb.errors import RagnbError
from ragnb.stats.estimates import Codes, Labels, Values, cluster_codes, pairs
from ragnb.stats.means import Array


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


def labelled_rows(
    human: Values, judge: Values, judged: Values, clusters: Labels, judged_clusters: Labels, weights: Labels
) -> tuple[Array, Array, Array, Codes, Array]:
    """Return Y and F of the labelled rows, F of the further ones, the clusters of both, the labels' weights.

    Rows with a gap are left out. Fewer than 2 labelled rows, infinite values and clusters of one kind only raise
    RagnbError.

    Examples
    --------
    >>> labelled_rows([3, 4, float("nan")], [2, 3, 4], [5], ["a", "b", "c"], ["b"], None)
    (array([3., 4.]), array([2., 3.]), array([5.]), array([0, 1, 1]), array([1., 1.]))
    """
    if (clusters is None) != (judged_clusters is None):
        raise RagnbError("clusters come for one kind of rows only; give clusters and judged_clusters, or neither")
    y, f, seen = pairs(human, judge)
    more = np.asarray(judged, dtype=float)
    extra = ~np.isnan(more)
    more, n = more[extra], len(y)
    if n < 2:
        raise RagnbError(f"{n} rows have both a human and a judge's score; the correction needs 2 or more")
    if np.isinf(more).any():
        raise RagnbError("judged holds an infinite value; a score is a finite number or missing")
    names = None
    if clusters is not None and judged_clusters is not None:
        names = np.concatenate([np.asarray(clusters)[seen], np.asarray(judged_clusters)[extra]])
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)[seen]
    return y, f, more, cluster_codes(names, n + len(more)), w
