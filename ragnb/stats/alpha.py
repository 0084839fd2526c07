"""Krippendorff's alpha: do several humans agree, with gaps and any number of raters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ragnb.errors import unknown
from ragnb.stats.agreement import Flags
from ragnb.stats.estimates import Codes, Estimate, Labels, Values, cluster_codes, jackknife, leave_out, sums_by
from ragnb.stats.means import Array

METRICS = ("nominal", "ordinal", "interval")


def krippendorff_alpha(
    ratings: Values, metric: str = "interval", clusters: Labels = None, *, level: float = 0.95
) -> Estimate:
    """Return Krippendorff's alpha of items × raters with gaps; time and memory grow linearly with the items.

    Parameters
    ----------
    ratings : array, shape (items, raters)
        nan where a rater did not rate; items with one rating say nothing and are left out.
    metric : {"nominal", "ordinal", "interval"}
        How far two ratings are apart: same or not, by rank, by value.
    clusters : array, shape (items,), optional
        Items are the clusters where none are given. The interval is the jackknife's; for ordinal data the
        ranks are held fixed.

    Returns
    -------
    Estimate
        nan where all ratings are alike. n counts items with two ratings or more.

    Notes
    -----
    Krippendorff (2011), Computing Krippendorff's Alpha-Reliability. The ordinal distance is the squared
    distance of mid-ranks, so sums of squares by item serve as for values, and no table of pairs is built.

    Examples
    --------
    >>> no = float("nan")
    >>> ratings = [[no, 1, no], [no, no, no], [no, 2, 2], [no, 1, 1], [no, 3, 3], [3, 3, 4], [4, 4, 4], [1, 3, no]]
    >>> round(krippendorff_alpha(ratings).value, 3)
    0.725
    """
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    grid = np.asarray(ratings, dtype=float)
    m = np.sum(~np.isnan(grid), axis=1)
    code = np.unique(cluster_codes(clusters, len(grid))[m >= 2], return_inverse=True)[1]
    grid, m = grid[m >= 2], m[m >= 2].astype(float)
    known = ~np.isnan(grid)
    _, place, counts = np.unique(np.round(grid[known], 9), return_inverse=True, return_counts=True)
    if metric == "nominal":
        return _nominal(place, counts, code, known, m, level)
    points = grid.copy()
    if metric == "ordinal":
        points[known] = (np.cumsum(counts) - counts / 2.0)[place]
    points -= points[known].mean() if len(m) else 0.0
    first, second = np.nansum(points, axis=1), np.nansum(points**2, axis=1)
    sums = sums_by(code, np.stack([m, (m * second - first**2) / (m - 1), second, first], axis=1))
    return jackknife(_alpha, sums, np.bincount(code).astype(float), bounded=True, level=level)


def _alpha(s: Array) -> Array:
    """Alpha from the sums of (ratings, disagreement within items, squares, values)."""
    n = s[..., 0]
    return _beyond(s[..., 1], (n * s[..., 2] - s[..., 3] ** 2) / (n - 1), s[..., 2])


def _beyond(seen: npt.ArrayLike, expected: npt.ArrayLike, size: npt.ArrayLike) -> Array:
    seen, expected, size = np.asarray(seen), np.asarray(expected), np.asarray(size)
    return np.asarray(np.where(expected > 1e-12 * size, 1 - seen / expected, np.nan), dtype=float)


def _nominal(place: Codes, counts: Codes, code: Codes, known: Flags, m: Array, level: float) -> Estimate:
    """Alpha for names: n² − Σ n_c² from counts by item and by cluster, never a column a name."""
    item = np.nonzero(known)[0]

    def squares(of: Codes) -> Array:
        pair, alike = np.unique(of * len(counts) + place, return_counts=True)
        return np.asarray(np.bincount(pair // len(counts), weights=alike.astype(float) ** 2), dtype=float)

    n, whole = float(m.sum()), float(np.sum(counts.astype(float) ** 2))
    seen = np.bincount(code, weights=(m**2 - squares(item)) / (m - 1)) if len(m) else np.zeros(0)
    lost = np.bincount(code, weights=m)
    cluster = code[item]
    shared = np.bincount(cluster, weights=counts[place].astype(float)) if len(m) else np.zeros(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = _beyond(seen.sum(), np.float64((n**2 - whole) / (n - 1)), np.float64(n))
        left = n - lost
        without = _beyond(
            seen.sum() - seen, (left**2 - (whole - 2 * shared + squares(cluster))) / (left - 1), left
        )
    return leave_out(float(value), without, np.bincount(code).astype(float), bounded=True, level=level)
