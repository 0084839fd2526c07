"""Several humans on one item: each beside the others, which is the best that a judge can hope for."""

from __future__ import annotations

import numpy as np

from ragnb.stats.agreement import within_share
from ragnb.stats.estimates import Codes, Estimate, Labels, Values
from ragnb.stats.means import Array


def leave_one_out(ratings: Values) -> tuple[Codes, Array, Array]:
    """Set every human rating beside the mean of the other humans on its item.

    Parameters
    ----------
    ratings : array, shape (items, raters)
        nan where a rater did not rate; items with one rating have no other and are left out.

    Returns
    -------
    (item, own, others)
        One entry a rating: the item's row, the rating, the mean of the others.

    Examples
    --------
    >>> item, own, others = leave_one_out([[1, 2, 6], [3, float("nan"), float("nan")]])
    >>> item.tolist(), own.tolist(), others.tolist()
    ([0, 0, 0], [1.0, 2.0, 6.0], [4.0, 3.5, 1.5])
    """
    grid = np.atleast_2d(np.asarray(ratings, dtype=float))
    m = np.sum(~np.isnan(grid), axis=1)
    item, rater = np.nonzero(~np.isnan(grid) & (m >= 2)[:, None])
    own = grid[item, rater]
    return item, own, (np.nansum(grid, axis=1)[item] - own) / (m[item] - 1)


def human_ceiling(
    ratings: Values,
    clusters: Labels = None,
    *,
    tolerance: float = 1.0,
    weights: Labels = None,
    level: float = 0.95,
) -> Estimate:
    """Return the ±tolerance share of one human against the mean of the others: what a judge can hope for.

    Items are the clusters where none are given, because an item's ratings are compared with one another.
    `weights` are of the items, as in `clustered_mean`.

    Examples
    --------
    >>> human_ceiling([[4, 4, 5], [1, 1, 4]]).value
    0.5
    """
    item, own, others = leave_one_out(ratings)
    label = item if clusters is None else np.asarray(clusters)[item]
    size = None if weights is None else np.asarray(weights, dtype=float)[item]
    return within_share(own, others, label, tolerance=tolerance, weights=size, level=level)
