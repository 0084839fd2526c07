"""Does the judge put answers in the humans' order: Kendall's τ-b, pooled, within clusters, and of systems.

τ-b is A/√(BC) with A, B, C sums over pairs of rows, so that leaving out a cluster subtracts its pairs.
"""

from __future__ import annotations

import numpy as np

from ragnb.stats.estimates import (
    NONE,
    Codes,
    Counts,
    Estimate,
    Labels,
    Rows,
    Values,
    complete_rows,
    jackknife,
    packed,
    ratio,
)
from ragnb.stats.means import Array


def kendall(
    judge: Values,
    human: Values,
    clusters: Labels = None,
    *,
    digits: int | None = None,
    counts: Counts = None,
    level: float = 0.95,
) -> Estimate:
    """Return Kendall's τ-b, in O(n log n).

    Parameters
    ----------
    clusters : array, shape (n,), optional
        What is left out in turn for the interval, made on Fisher's z. None makes every row its own cluster.
    digits : int, optional
        Round to so many decimals first. Means of raters that differ in the last bit only are no ties to None,
        nor to scipy; 9 makes them ties, which moves τ-b in the third decimal on real ratings.

    Notes
    -----
    Kendall (1945), Biometrika 33, 239–251. The jackknife is exact.

    Examples
    --------
    >>> round(kendall([1, 2, 3, 4], [1, 3, 2, 4]).value, 4)
    0.6667
    """
    rows, x, y = _rounded(judge, human, clusters, counts, digits)
    if not len(x):
        return NONE
    pooled = _concordance(np.zeros(len(x), dtype=np.intp), x, y, rows.counts)
    inside = _concordance(rows.code, x, y, rows.inside)
    parts, sizes = rows.sums(*(2 * pooled - inside).T), rows.sums(np.ones(len(x)))[:, 0]
    whole = rows.counts @ pooled
    found = jackknife(_tau, parts, sizes, whole=whole, times=rows.times, bounded=True, level=level)
    return found if np.isfinite(found.value) else NONE


def kendall_within(
    judge: Values,
    human: Values,
    clusters: Values,
    *,
    digits: int | None = None,
    counts: Counts = None,
    level: float = 0.95,
) -> Estimate:
    """Return the plain mean of the τ-b of the clusters in which both vary.

    A pooled coefficient mixes what separates clusters with what separates answers; this one does not.

    Returns
    -------
    Estimate
        n and n_clusters count the clusters that have a coefficient; nan where none has.

    Examples
    --------
    >>> kendall_within([1, 2, 5, 6], [1, 2, 1, 2], ["a", "a", "b", "b"]).value
    1.0
    """
    rows, x, y = _rounded(judge, human, clusters, counts, digits)
    if not len(x):
        return NONE
    each = _tau(rows.sums(*_concordance(rows.code, x, y, rows.inside).T))
    used = np.isfinite(each)
    if not used.any():
        return NONE
    parts, sizes = np.stack([np.ones(used.sum()), each[used]], axis=1), rows.sums(np.ones(len(x)))[used, 0]
    return jackknife(ratio, parts, sizes, bounded=True, level=level)


def kendall_of_means(
    judge: Values,
    human: Values,
    system: Values,
    clusters: Labels = None,
    *,
    digits: int = 10,
    counts: Counts = None,
    level: float = 0.95,
) -> Estimate:
    """Return the τ-b of the systems' means: does the judge put the systems in the humans' order.

    Parameters
    ----------
    system : array, shape (n,)
        The system of each row; nan for fewer than two systems, and where means are all alike.
    clusters : array, shape (n,), optional
        What is left out of every system's mean in turn.

    Examples
    --------
    >>> kendall_of_means([1, 2, 3, 3, 4, 4], [1, 1, 3, 3, 5, 5], ["a", "a", "b", "b", "c", "c"]).value
    1.0
    """
    rows, x, y = _rounded(judge, human, clusters, counts, None)
    name = packed(np.asarray(system)[rows.kept])
    one = (name[:, None] == np.arange(name.max(initial=0) + 1)).astype(float).T

    def tau_of_means(s: Array) -> Array:
        n, of_judge, of_human = np.split(s, 3, axis=-1)
        a, b = (np.round(total / n, digits) for total in (of_judge, of_human))
        a, b = (np.sign(mean[..., :, None] - mean[..., None, :]) for mean in (a, b))
        return _tau(np.stack([(p * q).sum(axis=(-1, -2)) for p, q in ((a, b), (a, a), (b, b))], axis=-1))

    if len(one) < 2:
        return NONE
    parts, sizes = rows.sums(*one, *(one * x), *(one * y)), rows.sums(np.ones(len(x)))[:, 0]
    return jackknife(tau_of_means, parts, sizes, times=rows.times, bounded=True, level=level)


def _rounded(
    judge: Values, human: Values, clusters: Labels, counts: Counts, digits: int | None
) -> tuple[Rows, Array, Array]:
    rows = complete_rows([judge, human], clusters, counts)
    x, y = rows.columns if digits is None else (np.round(column, digits) for column in rows.columns)
    return rows, x, y


def _tau(sums: Array) -> Array:
    """Return A/√(BC), nan where one of both never varies."""
    both, of_x, of_y = sums[..., 0], sums[..., 1], sums[..., 2]
    varies = (of_x > 1e-12) & (of_y > 1e-12)
    return np.clip(np.where(varies, both / np.sqrt(np.where(varies, of_x * of_y, 1.0)), np.nan), -1.0, 1.0)


def _concordance(group: Codes, x: Array, y: Array, weights: Array) -> Array:
    """Columns of Σ sgn(x)sgn(y), Σ |sgn x|, Σ |sgn y| over the pairs of each row within its group."""
    nx, ny = np.unique(x, return_inverse=True)[1], np.unique(y, return_inverse=True)[1]
    kx, ky = int(nx.max()) + 1, int(ny.max()) + 1
    cell, at = np.unique((group * kx + nx) * ky + ny, return_inverse=True)
    size: Array = np.bincount(at, weights=weights).astype(float)
    own, a, b = cell // ky // kx, cell // ky % kx, cell % ky
    (left, right), (under, over) = _split(own, a, size), _split(own, b, size)
    (beside, _), (beneath, level_right) = _split(cell // ky, b, size), _split(own * ky + b, a, size)
    both = _below(own, a, b, size)
    crossed = (left - both - beneath) + (under - both - beside)
    agreeing = both + (right - level_right - (under - both - beside))
    return np.stack([agreeing - crossed, left + right, under + over], axis=1)[at]


def _split(group: Codes, values: Codes, size: Array) -> tuple[Array, Array]:
    """Sum the sizes of each row's group at lower values, and at higher ones."""
    line = np.unique(group * (int(values.max()) + 1) + values, return_inverse=True)[1]
    order = np.argsort(line, kind="stable")
    g, v, running = group[order], line[order], np.r_[0.0, np.cumsum(size[order])]
    lower, higher = np.empty(len(g)), np.empty(len(g))
    lower[order] = running[np.searchsorted(v, v, "left")] - running[np.searchsorted(g, g, "left")]
    higher[order] = running[np.searchsorted(g, g, "right")] - running[np.searchsorted(v, v, "right")]
    return lower, higher


def _below(group: Codes, x: Codes, y: Codes, size: Array) -> Array:
    """Sum the sizes of the rows of each row's group with lower x and lower y, bit by bit of y.

    In the order of x, row k counts for i at the highest bit where their y differ, among the rows that share the
    bits above it: one pass a bit, O(n log n) in all.
    """
    place = np.lexsort((-y, x, group))
    node, here, found = group[place], np.arange(len(x)), np.zeros(len(x))
    start, stop = np.searchsorted(node, node, "left"), np.searchsorted(node, node, "right")
    for bit in reversed(range(int(y.max(initial=0)).bit_length())):
        low = (y[place] >> bit) & 1 == 0
        seen = np.r_[0, np.cumsum(low)]
        summed = np.r_[0.0, np.cumsum(np.where(low, size[place], 0.0))]
        found[place] += np.where(low, 0.0, summed[:-1] - summed[start])
        before, split = seen[:-1] - seen[start], start + seen[stop] - seen[start]
        to = np.where(low, start + before, split + here - start - before)
        moved = place, np.where(low, start, split), np.where(low, split, stop)
        place, start, stop = (np.empty_like(part) for part in moved)
        place[to], start[to], stop[to] = moved
    return found
