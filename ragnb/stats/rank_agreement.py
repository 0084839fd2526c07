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
    # A pair of two clusters is lost with either of them, a pair within a cluster once.
    lost = (2 * pooled - inside).T
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
    system_code = packed(np.asarray(system)[rows.kept])
    systems = np.arange(system_code.max(initial=0) + 1)
    is_of_system = (system_code == systems[:, None]).astype(float)  # (systems, rows)

    def order(means: Array) -> Array:
        """Return −1, 0 or 1 for each pair of systems; means that differ by rounding alone are equal."""
        rounded = np.round(means, digits)
        return np.asarray(np.sign(rounded[..., :, None] - rounded[..., None, :]))

    def tau_of_means(s: Array) -> Array:
        n, of_judge, of_human = np.split(s, 3, axis=-1)
        judge_order = order(of_judge / n)
        human_order = order(of_human / n)
        products = [
            judge_order * human_order,
            judge_order * judge_order,
            human_order * human_order,
        ]
        return _tau(np.stack([product.sum(axis=(-1, -2)) for product in products], axis=-1))

    terms = [*is_of_system, *(is_of_system * x), *(is_of_system * y)]
    return rows.jackknife(tau_of_means, *terms, bounded=True, level=level)


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
    scale = np.sqrt(np.where(varies, of_x * of_y, 1.0))
    return np.clip(np.where(varies, both / scale, np.nan), -1.0, 1.0)


def _concordance(group: Codes, x: Array, y: Array, weights: Array) -> Array:
    """Columns of Σ sgn(x)sgn(y), Σ |sgn x|, Σ |sgn y| over the pairs of each row within its group."""
    rank_x = np.unique(x, return_inverse=True)[1]
    rank_y = np.unique(y, return_inverse=True)[1]
    n_x = int(rank_x.max(initial=0)) + 1
    n_y = int(rank_y.max(initial=0)) + 1
    # Rows of one group, x and y have the same pairs: they are one cell, written as one number.
    cell, cell_of_row = np.unique((group * n_x + rank_x) * n_y + rank_y, return_inverse=True)
    size: Array = np.bincount(cell_of_row, weights=weights).astype(float)
    of_group = cell // n_y // n_x
    a = cell // n_y % n_x
    b = cell % n_y
    agreeing = _below(of_group, a, b, size) + _below(of_group, n_x - a, n_y - b, size)
    crossed = _below(of_group, a, n_y - b, size) + _below(of_group, n_x - a, b, size)

    def size_of_all(code: Codes) -> Array:
        numbered = packed(code)
        return np.asarray(np.bincount(numbered, weights=size)[numbered])

    whole = size_of_all(of_group)
    differ_in_x = whole - size_of_all(cell // n_y)
    differ_in_y = whole - size_of_all(of_group * n_y + b)
    return np.stack([agreeing - crossed, differ_in_x, differ_in_y], axis=1)[cell_of_row]


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
        node = (group << 32) + (y >> bit + 1)  # rows whose y share the bits above this one
        at = np.argsort(node, kind="stable")  # stable: within a node still in the order of x
        is_low = (y[at] >> bit) & 1 == 0
        low_before = np.cumsum(np.where(is_low, size[at], 0.0))
        # Less what was summed up before the node begins.
        low_before -= np.r_[0.0, low_before][np.searchsorted(node[at], node[at])]
        below[order[at]] += np.where(is_low, 0.0, low_before)
    return below
