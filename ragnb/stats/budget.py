"""What more labels would buy: the interval's expected width, and the chance that a share is shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ragnb.stats.estimates import Counts, Labels, Values, cluster_codes
from ragnb.stats.means import Array, kish, mean_interval
from ragnb.stats.power import binomial_power, labels_needed


@dataclass(frozen=True, slots=True)
class LabelBudget:
    """A curve over numbers of labels: the interval expected, and the chance to show share > target.

    `chance` takes the seen share for true, `cautious` its lower 80 % bound; both are the least chance at that
    number of labels or any larger one.

    Examples
    --------
    >>> LabelBudget(*(np.array([50.0]) for _ in range(5))).labels
    array([50.])
    """

    labels: Array
    low: Array
    high: Array
    chance: Array
    cautious: Array


def label_budget(
    flags: Values,
    clusters: Labels = None,
    *,
    target: float = 0.8,
    alpha: float = 0.05,
    level: float = 0.95,
    sizes: Values | None = None,
    weights: Labels = None,
    counts: Counts = None,
) -> LabelBudget:
    """Return what numbers of labels buy, if further ones are like those at hand: same share, same clusters.

    Parameters
    ----------
    flags, clusters
        As in `labels_needed`: 1 within the tolerance, 0 not, nan not rated.
    target, alpha
        The test: exact binomial, one-sided, on labels / design effect, as in `labels_needed`.
    level : float
        The level of ``low, high``, the interval of the share.
    sizes : array, optional
        The numbers of labels, each 1 or more; None lays some 40 from 10 past what is there and what is needed.
    weights, counts : array, optional
        As in `labels_needed`.

    Examples
    --------
    >>> curve = label_budget([1] * 90 + [0] * 10, target=0.8, sizes=[50, 94, 200])
    >>> curve.chance.round(2).tolist(), (curve.high - curve.low).round(2).tolist()
    ([0.51, 0.81, 0.99], [0.17, 0.12, 0.08])
    """
    need = labels_needed(flags, clusters, target=target, alpha=alpha, weights=weights, counts=counts)
    x = np.asarray(flags, dtype=float)
    seen = ~np.isnan(x)
    many = np.ones(len(x)) if counts is None else np.asarray(counts, dtype=float)
    n = round(float(many[seen].sum()))
    names = cluster_codes(clusters, len(x))[seen]
    per_label = 1.0 if clusters is None else float(kish(n, np.sum(np.bincount(names, many[seen]) ** 2.0))) / n
    labels = _sizes(n, need.total) if sizes is None else np.asarray(sizes, dtype=float)
    share = np.full(len(labels), need.seen)
    se = np.sqrt(share * (1 - share) * need.deff / labels)
    g_eff = np.maximum(per_label * labels, 1.0)
    edges = np.zeros(len(labels)), np.ones(len(labels))
    low, high = mean_interval(share, se, g_eff, labels, edges, binary=True, level=level)
    rows = np.maximum(np.floor(labels / need.deff), 1.0)
    ahead = rows[:, None] + np.arange(61.0)  # a tooth of the exact test's power is shorter than that

    def kept(true: float) -> Array:
        power = binomial_power(ahead.ravel(), target, min(true, 1 - 1e-9), alpha=alpha)
        return np.asarray(power.reshape(ahead.shape).min(axis=1))

    return LabelBudget(labels, low, high, kept(float(share[0])), kept(need.planned))


def _sizes(n: int, total: int | None) -> Array:
    top = max(4 * n, 200, 0 if total is None else int(1.5 * total))
    steps = np.unique(np.geomspace(10, top, 38).round())
    return np.unique(np.concatenate([steps, [float(n)], [] if total is None else [float(total)]]))
