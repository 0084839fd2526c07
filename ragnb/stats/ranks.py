"""Does the judge put answers in the humans' order: correlations, pooled and within clusters or systems.

Each coefficient is A/√(BC) with A, B, C sums over rows, so that leaving out a cluster subtracts its part.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ragnb.errors import unknown
from ragnb.stats.estimates import NONE, Codes, Counts, Estimate, Labels, Values, leave_out, sums_by
from ragnb.stats.means import Array
from ragnb.stats.tally import Tally, tallied


def _split(group: Codes, values: Array, of: Array) -> tuple[Array, Array, Array]:
    """Σ of_k over the rows k of i's group with v_k < v_i, with v_k = v_i, with v_k > v_i, in O(n log n)."""
    order = np.lexsort((values, group))
    g, v = group[order], values[order]
    new = np.flatnonzero(np.r_[True, (g[1:] != g[:-1]) | (v[1:] != v[:-1])])
    sizes = np.diff(np.r_[new, len(v)])
    first, past = np.repeat(new, sizes), np.repeat(new + sizes, sizes)
    start, stop = np.searchsorted(g, g, "left"), np.searchsorted(g, g, "right")
    running = np.r_[0.0, np.cumsum(of[order])]
    parts = np.empty((3, len(v)))
    parts[:, order] = np.diff(running[np.stack([start, first, past, stop])], axis=0)
    return parts[0], parts[1], parts[2]


def _signs(group: Codes, values: Array, of: Array) -> Array:
    """Σ sgn(v_i − v_k)·of_k over the rows k of i's group."""
    below, _, above = _split(group, values, of)
    return below - above


def _below(group: Codes, x: Array, y: Array, times: Array) -> Array:
    """Σ times_k over the rows k of i's group with x_k < x_i and y_k < y_i, bit by bit of y's rank.

    In the order of x, row k counts for i at the highest bit where their ranks of y differ, among the rows that
    share the bits above it: one pass a bit, O(n log n) in all.
    """
    rank = np.unique(y, return_inverse=True)[1]
    place = np.lexsort((-rank, x, group))
    node, here, found = group[place], np.arange(len(x)), np.zeros(len(x))
    start, stop = np.searchsorted(node, node, "left"), np.searchsorted(node, node, "right")
    for bit in reversed(range(int(rank.max(initial=0)).bit_length())):
        low = (rank[place] >> bit) & 1 == 0
        seen = np.r_[0, np.cumsum(low)]
        summed = np.r_[0.0, np.cumsum(np.where(low, times[place], 0.0))]
        found[place] += np.where(low, 0.0, summed[:-1] - summed[start])
        before, split = seen[:-1] - seen[start], start + seen[stop] - seen[start]
        to = np.where(low, start + before, split + here - start - before)
        moved = place, np.where(low, start, split), np.where(low, split, stop)
        place, start, stop = (np.empty_like(part) for part in moved)
        place[to], start[to], stop[to] = moved
    return found


def _concordance(group: Codes, x: Array, y: Array, weights: Array) -> Array:
    """Rows of Σ sgn(x)sgn(y), Σ |sgn x|, Σ |sgn y| over the pairs of each row within its group."""
    nx, ny = np.unique(x, return_inverse=True)[1], np.unique(y, return_inverse=True)[1]
    kx, ky = int(nx.max()) + 1, int(ny.max()) + 1
    cell, at = np.unique((group * kx + nx) * ky + ny, return_inverse=True)
    g, a, b = cell // ky // kx, (cell // ky % kx).astype(float), (cell % ky).astype(float)
    times: Array = np.bincount(at, weights=weights).astype(float)
    left, _, right = _split(g, a, times)
    under, _, over = _split(g, b, times)
    beside = _split(cell // ky, b, times)[0]  # same x, lower y
    level, _, level_right = _split(g * ky + cell % ky, a, times)  # same y, lower and higher x
    both = _below(g, a, b, times)
    crossed = (left - both - level) + (under - both - beside)
    agreeing = both + (right - level_right - (under - both - beside))
    rows = np.stack([agreeing - crossed, left + right, under + over], axis=1)
    return rows[at]


def _pearson(group: Codes, pair: Codes, t: Tally, x: Array, y: Array) -> tuple[Array, Array]:
    c = t.counts
    size = np.maximum(np.bincount(group, weights=c, minlength=1), 1)
    x = x - (np.bincount(group, weights=c * x, minlength=1) / size)[group]
    y = y - (np.bincount(group, weights=c * y, minlength=1) / size)[group]
    rows = np.stack([x * y, x * x, y * y, x, y, np.ones(len(x))], axis=1)
    return rows, rows


def _spearman(group: Codes, pair: Codes, t: Tally, x: Array, y: Array) -> tuple[Array, Array]:
    c = t.counts
    rx, ry = _signs(group, x, c), _signs(group, y, c)
    rows = np.stack([rx * ry, rx * rx, ry * ry], axis=1)
    shifts = [
        _signs(group, x, c * ry) + _signs(group, y, c * rx),
        2 * _signs(group, x, c * rx),
        2 * _signs(group, y, c * ry),
    ]
    return rows, rows - np.stack(shifts, axis=1)


def _kendall(group: Codes, pair: Codes, t: Tally, x: Array, y: Array) -> tuple[Array, Array]:
    rows = _concordance(group, x, y, t.counts)
    return rows, 2 * rows - _concordance(pair, x, y, t.inside)


_PARTS: dict[str, Callable[[Codes, Codes, Tally, Array, Array], tuple[Array, Array]]] = {
    "pearson": _pearson,
    "spearman": _spearman,
    "kendall": _kendall,
}


def _coefficient(s: Array) -> Array:
    a, b, c = s[..., 0], s[..., 1], s[..., 2]
    if s.shape[-1] == 6:
        with np.errstate(divide="ignore", invalid="ignore"):
            mx, my, n = s[..., 3], s[..., 4], s[..., 5]
            a, b, c = a - mx * my / n, b - mx**2 / n, c - my**2 / n
    some = (b > 1e-12 * s[..., 1]) & (c > 1e-12 * s[..., 2])
    r: Array = np.where(some, a / np.sqrt(np.where(some, b * c, 1.0)), np.nan)
    return np.clip(r, -1.0, 1.0)


def correlation(
    judge: Values,
    human: Values,
    kind: str = "pearson",
    clusters: Labels = None,
    *,
    within: Labels = None,
    digits: int | None = None,
    counts: Counts = None,
    level: float = 0.95,
) -> Estimate:
    """Return Pearson's r, Spearman's ρ or Kendall's τ-b, pooled or as the mean over groups.

    Parameters
    ----------
    kind : {"pearson", "spearman", "kendall"}
    clusters : array, shape (n,), optional
        What is left out in turn for the interval, made on Fisher's z. None makes every row its own cluster.
    within : array, shape (n,), optional
        Groups (clusters, systems): the plain mean of the coefficients of the groups in which both vary. Pooled
        coefficients mix what separates groups with what separates answers; these do not. ``within=clusters``
        gives the within-cluster coefficient.
    digits : int, optional
        Round to so many decimals first. Means of raters that differ in the last bit only are no ties to None,
        nor to scipy; 9 makes them ties, which moves ρ and τ-b in the third decimal on real ratings.

    Returns
    -------
    Estimate
        n and n_clusters count the groups that have a coefficient; nan where none has.

    Notes
    -----
    Kendall (1945), Biometrika 33, 239–251, for τ-b. O(n log n) for every kind. The jackknife is exact for r
    and τ-b, and first order (the influence function with its rank terms) for ρ.

    Examples
    --------
    >>> round(correlation([1, 2, 3, 4], [1, 3, 2, 4], "kendall").value, 4)
    0.6667
    >>> correlation([1, 2, 5, 6], [1, 2, 1, 2], within=["a", "a", "b", "b"]).value
    1.0
    """
    if kind not in _PARTS:
        raise unknown("kind", kind, tuple(_PARTS))
    t = tallied(judge, human, clusters, counts, within)
    x, y = (t.x, t.y) if digits is None else (np.round(t.x, digits), np.round(t.y, digits))
    group = t.group
    if not len(x):
        return NONE
    cell, pair = np.unique(group * len(t.times) + t.code, return_inverse=True)
    of_group, of_unit = cell // len(t.times), cell % len(t.times)
    rows, lost = _PARTS[kind](group, pair, t, x, y)
    whole = sums_by(group, t.counts[:, None] * rows)
    each = _coefficient(whole)
    used = np.isfinite(each)
    if not used.any():
        return NONE
    sizes, taken = np.bincount(pair, weights=t.inside), sums_by(pair, t.inside[:, None] * lost)
    with np.errstate(divide="ignore", invalid="ignore"):
        if kind == "spearman":  # of degree 3 in the rows: the average part goes, the rest is that of a mean
            h = (sizes / np.bincount(group, weights=t.counts)[of_group])[:, None]
            taken = (taken - 3 * h * whole[of_group]) / (1 - h)
        left = _coefficient(whole[of_group] - taken)
    without = _mean_without(each, left, of_group, of_unit)
    counted = sums_by(of_unit, np.where(used[of_group], sizes, 0.0)[:, None])[:, 0]
    keep = counted > 0
    of_mean, some = float(each[used].mean()), t.times[keep]
    return leave_out(of_mean, without[keep], counted[keep], times=some, bounded=True, level=level)


def _mean_without(each: Array, left: Array, of_group: Codes, of_unit: Codes) -> Array:
    """The mean coefficient over groups when a unit is left out; a group that stops varying leaves the mean."""
    used = np.isfinite(each)[of_group]
    still = np.isfinite(left) & used
    total, n = np.nansum(each), np.count_nonzero(np.isfinite(each))
    change = np.where(still, left, 0.0) - np.where(used, each[of_group], 0.0)
    gone = np.bincount(of_unit, weights=(used & ~still).astype(float))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((total + np.bincount(of_unit, weights=change)) / (n - gone), dtype=float)
