"""Agreement in rank: Kendall's τ-b of answers, of means, and within groups."""

from __future__ import annotations

import numpy as np

from ragnb.stats.arrays import Array, Codes, Labels, Values
from ragnb.stats.clustered import NONE, Estimate, complete_rows, jackknife, packed, ratio


def kendall(
    judge: Values,
    human: Values,
    clusters: Labels = None,
    *,
    digits: int | None = None,
    counts: Labels = None,
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
    rows = complete_rows([_rounded(judge, digits), _rounded(human, digits)], clusters, counts)
    x, y = rows.columns
    pooled = _concordance(np.zeros(len(x), dtype=np.intp), x, y, rows.counts)
    inside = _concordance(rows.code, x, y, rows.inside)
    lost = (
        2 * pooled - inside
    ).T  # a pair of two clusters is lost with either, one within a cluster once
    tau = rows.jackknife(_tau, *lost, whole=rows.counts @ pooled, bounded=True, level=level)
    if np.isfinite(tau.value):
        return tau
    return NONE


def kendall_within(
    judge: Values,
    human: Values,
    clusters: Values,
    *,
    digits: int | None = None,
    counts: Labels = None,
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
    rows = complete_rows([_rounded(judge, digits), _rounded(human, digits)], clusters, counts)
    x, y = rows.columns
    each = _tau(rows.sums(*_concordance(rows.code, x, y, rows.inside).T))
    used = np.isfinite(each)
    if not used.any():
        return NONE
    parts = np.stack([np.ones(used.sum()), each[used]], axis=1)
    sizes = rows.sums(np.ones(len(x)))[used, 0]
    return jackknife(ratio, parts, sizes, bounded=True, level=level)


def kendall_of_means(
    judge: Values,
    human: Values,
    system: Values,
    clusters: Labels = None,
    *,
    digits: int = 10,
    counts: Labels = None,
    level: float = 0.95,
) -> Estimate:
    """Return Kendall's τ-b of the systems' means.

    Parameters
    ----------
    system : array, shape (n,)
        The system of each row; nan for fewer than two systems, and where means are all equal.
    clusters : array, shape (n,), optional
        What is left out of every system's mean in turn.

    Examples
    --------
    >>> kendall_of_means([1, 2, 3, 3, 4, 4], [1, 1, 3, 3, 5, 5], ["a", "a", "b", "b", "c", "c"]).value
    1.0
    """
    rows = complete_rows([judge, human], clusters, counts)
    x, y = rows.columns
    name = packed(np.asarray(system)[rows.kept])
    one = (name[:, None] == np.arange(name.max(initial=0) + 1)).astype(float).T

    def tau_of_means(s: Array) -> Array:
        n, of_judge, of_human = np.split(s, 3, axis=-1)
        means = [np.round(total / n, digits) for total in (of_judge, of_human)]
        judge_order, human_order = (
            np.sign(mean[..., :, None] - mean[..., None, :]) for mean in means
        )
        pairs = [
            judge_order * human_order,
            judge_order * judge_order,
            human_order * human_order,
        ]
        return _tau(np.stack([pair.sum(axis=(-1, -2)) for pair in pairs], axis=-1))

    return rows.jackknife(tau_of_means, *one, *(one * x), *(one * y), bounded=True, level=level)


def _rounded(values: Values, digits: int | None) -> Values:
    if digits is None:
        return values
    return np.round(np.asarray(values, dtype=float), digits)


def _tau(sums: Array) -> Array:
    """Return A/√(BC), nan if one of them does not vary."""
    both = sums[..., 0]
    of_x = sums[..., 1]
    of_y = sums[..., 2]
    varies = (of_x > 1e-12) & (of_y > 1e-12)
    return np.clip(
        np.where(varies, both / np.sqrt(np.where(varies, of_x * of_y, 1.0)), np.nan), -1.0, 1.0
    )


def _concordance(group: Codes, x: Array, y: Array, weights: Array) -> Array:
    """Columns of Σ sgn(x)sgn(y), Σ |sgn x|, Σ |sgn y| over the pairs of each row within its group."""
    nx = np.unique(x, return_inverse=True)[1]
    ny = np.unique(y, return_inverse=True)[1]
    kx = int(nx.max(initial=0)) + 1
    ky = int(ny.max(initial=0)) + 1
    cell, at = np.unique((group * kx + nx) * ky + ny, return_inverse=True)
    size: Array = np.bincount(at, weights=weights).astype(float)
    cell_of_group = cell // ky // kx
    a = cell // ky % kx
    b = cell % ky
    agreeing = _below(cell_of_group, a, b, size) + _below(cell_of_group, kx - a, ky - b, size)
    crossed = _below(cell_of_group, a, ky - b, size) + _below(cell_of_group, kx - a, b, size)
    groups = (packed(of) for of in (cell_of_group, cell // ky, cell_of_group * ky + b))
    whole, same_x, same_y = (np.bincount(code, weights=size)[code] for code in groups)
    return np.stack([agreeing - crossed, whole - same_x, whole - same_y], axis=1)[at]


def _below(group: Codes, x: Codes, y: Codes, size: Array) -> Array:
    """Sum the sizes of the rows of each row's group with lower x and lower y, bit by bit of y, in O(n log² n).

    In the order of x, row k counts for i at the highest bit where their y differ, among the rows that share the
    bits above it. Rows of one x are in falling order of y: none counts for another.
    """
    order = np.lexsort((-y, x, group))
    group = group[order]
    y = y[order]
    size = size[order]
    below = np.zeros(len(order))
    for bit in range(int(y.max(initial=0)).bit_length()):
        node = (group << 32) + (y >> bit + 1)
        at = np.argsort(node, kind="stable")
        low = (y[at] >> bit) & 1 == 0
        before = np.cumsum(np.where(low, size[at], 0.0))
        before -= np.r_[0.0, before][np.searchsorted(node[at], node[at])]
        below[order[at]] += np.where(low, 0.0, before)
    return below
