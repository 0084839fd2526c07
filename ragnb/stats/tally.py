"""Rows that stand for many: a judge × human × cluster table serves every formula as its rows would."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ragnb.errors import RagnbError
from ragnb.stats.estimates import Codes, Counts, Estimate, Labels, Values, clustered_mean, pairs
from ragnb.stats.means import Array


class Tally(NamedTuple):
    """The rows that both rated: a row stands for `inside` rows of a cluster, a cluster for `times` clusters.

    Rows without a cluster are clusters of their own: a row that stands for 9 is 9 clusters of one row. So every
    sum over rows is `times` @ (sums by `code`), and leaving out one cluster takes one of those sums away.
    """

    x: Array
    y: Array
    code: Codes
    inside: Array
    times: Array
    labels: list[Codes]
    alone: bool
    weights: Array

    @property
    def counts(self) -> Array:
        """How many rows a row stands for."""
        return self.inside * self.times[self.code]

    def mean(self, values: Values, **how: Any) -> Estimate:
        """Return `clustered_mean` of one value a row."""
        clusters = None if self.alone else self.code
        return clustered_mean(values, clusters, weights=self.weights, counts=self.counts, **how)


def tallied(
    judge: Values, human: Values, clusters: Labels, counts: Counts, *labels: Labels, weights: Labels = None
) -> Tally:
    """Return the rows that both rated, by `pairs`, with what each stands for.

    Examples
    --------
    >>> tallied([1, 2], [2, 2], None, [3, 1]).times.tolist()
    [3.0, 1.0]
    >>> tallied([1, 2], [2, 2], ["a", "a"], [3, 1]).inside.tolist()
    [3.0, 1.0]
    """
    size = np.ones(len(np.asarray(judge))) if counts is None else np.asarray(counts, dtype=float)
    if size.shape != np.shape(judge) or not (size > 0).all() or (clusters is None and (size < 1).any()):
        raise RagnbError(
            "counts must be one number a row, 1 or more (above 0 in clusters): how many rows each row stands for"
        )
    x, y, (code, *others) = pairs(judge, human, clusters, *labels)
    seen = ~(np.isnan(np.asarray(judge, dtype=float)) | np.isnan(np.asarray(human, dtype=float)))
    size, one = size[seen], np.ones(len(x))
    v = one if weights is None else np.asarray(weights, dtype=float)[seen]
    if clusters is None:
        return Tally(x, y, code, one, size, others, True, v)
    return Tally(x, y, code, size, np.ones(int(code.max(initial=-1)) + 1), others, False, v)
