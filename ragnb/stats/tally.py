"""Rows that stand for many: a judge × human × cluster table serves every formula as its rows would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ragnb.errors import RagnbError
from ragnb.stats.estimates import (
    Codes,
    Counts,
    Estimate,
    Labels,
    Values,
    cluster_codes,
    clustered_mean,
    jackknife,
    packed,
    pairs,
    sums_by,
)
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
    group: Codes
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

    def sums(self, columns: Sequence[Array]) -> Array:
        """Return the sums of columns by cluster."""
        return sums_by(self.code, self.inside[:, None] * np.stack(columns, axis=1))

    def moments(self) -> Array:
        """Return Σ1, Σj, Σh, Σj², Σh², Σjh by cluster, both less one origin."""
        origin = float(self.counts @ (self.x + self.y) / 2 / self.counts.sum()) if len(self.x) else 0.0
        x, y = self.x - origin, self.y - origin
        return self.sums([np.ones(len(x)), x, y, x * x, y * y, x * y])

    def of_moments(self, statistic: Callable[[Array], Array], **how: Any) -> Estimate:
        """Return the jackknife of a function of `moments`."""
        sums = self.moments()
        return jackknife(statistic, sums, sums[:, 0], times=self.times, **how)


def tallied(
    judge: Values, human: Values, clusters: Labels, counts: Counts, group: Labels = None, weights: Labels = None
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
    x, y, seen = pairs(judge, human)
    code = packed(cluster_codes(clusters, len(seen))[seen])
    own = np.zeros(len(x), dtype=np.intp) if group is None else packed(cluster_codes(group, len(seen))[seen])
    size, one = size[seen], np.ones(len(x))
    v = one if weights is None else np.asarray(weights, dtype=float)[seen]
    if clusters is None:
        return Tally(x, y, code, one, size, own, True, v)
    return Tally(x, y, code, size, np.ones(int(code.max(initial=-1)) + 1), own, False, v)
