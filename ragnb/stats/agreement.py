"""How often and how closely a judge meets the humans, and what that is worth beside chance and a constant."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ragnb.errors import RagnbError
from ragnb.stats.estimates import Codes, Estimate, Labels, Values, clustered_mean, leave_out, pairs
from ragnb.stats.means import Array

SLACK = 1e-9  # means of raters are thirds: a difference of exactly 1 may arrive as 1.0000000000000004
Flags = npt.NDArray[np.bool_]


def round_half_up(values: Values) -> Array:
    """Round to whole numbers, halves upwards, with a slack of 1e-9 for halves that arrive a bit too small.

    Examples
    --------
    >>> round_half_up([2.5, 3.5, -0.5, 2.4]).tolist()
    [3.0, 4.0, 0.0, 2.0]
    """
    rounded: Array = np.floor(np.asarray(values, dtype=float) + (0.5 + SLACK)) + 0.0
    return rounded


def within(judge: Values, human: Values, tolerance: float = 1.0, *, rounded: bool = False) -> Array:
    """Return 1 where the judge lies within ±tolerance of the human, 0 where not, nan where one is missing.

    Parameters
    ----------
    judge, human : array, shape (n,)
        Ratings on one scale.
    tolerance : float
        In points of the scale, ≥ 0; 1e-9 is added. 0 on rounded values is exact agreement.
    rounded : bool
        Round both half up first. The rule matters: it moves a share by ten points and more.

    Examples
    --------
    >>> within([2.3333333333333335, 4.0], [1.3333333333333333, 2.5]).tolist()
    [1.0, 0.0]
    >>> within([4.0], [2.5], rounded=True).tolist()
    [1.0]
    """
    x, y = np.asarray(judge, dtype=float), np.asarray(human, dtype=float)
    if not tolerance >= 0:
        raise RagnbError(f"tolerance={tolerance} is negative; give points of the scale, such as 1.0")
    if rounded:
        x, y = round_half_up(x), round_half_up(y)
    return np.where(np.isnan(x) | np.isnan(y), np.nan, (np.abs(x - y) <= tolerance + SLACK).astype(float))


def within_share(
    judge: Values,
    human: Values,
    clusters: Labels = None,
    *,
    tolerance: float = 1.0,
    rounded: bool = False,
    level: float = 0.95,
) -> Estimate:
    """Return the share of rows within ±tolerance, with Wilson's interval at the clusters' effective size.

    Exact agreement is ``tolerance=0, rounded=True``.

    Examples
    --------
    >>> share = within_share([4, 5, 2, 1], [5, 5, 4, 1])
    >>> share.value, share.n
    (0.75, 4)
    """
    flags = within(judge, human, tolerance, rounded=rounded)
    return clustered_mean(flags, clusters, ends=(0.0, 1.0), binary=True, level=level)


def _near(values: Array, others: Array, tolerance: float, own: Codes, theirs: Codes) -> Array:
    """Count, for each value, the others with the same code that lie within the tolerance."""
    reach = tolerance + SLACK
    low = float(min(values.min(), others.min()))
    stride = float(max(values.max(), others.max())) - low + 4 * (reach + 1)
    line = np.sort(theirs * stride + (others - low))
    at = own * stride + (values - low)
    return (np.searchsorted(line, at + reach, "right") - np.searchsorted(line, at - reach, "left")).astype(float)


def chance_floor(judge: Values, human: Values, *, tolerance: float = 1.0) -> float:
    """Return the ±tolerance share of an independent judge with the same marginals, in O(n log n).

    It is the share over all n² pairs of a judge's score with any human's score.

    Examples
    --------
    >>> chance_floor([1, 5], [1, 5])
    0.5
    """
    x, y, _ = pairs(judge, human)
    if not len(x):
        return float("nan")
    one = np.zeros(len(x), dtype=np.intp)
    return float(_near(x, y, tolerance, one, one).mean() / len(x))


def within_kappa(
    judge: Values,
    human: Values,
    clusters: Labels = None,
    *,
    tolerance: float = 1.0,
    level: float = 0.95,
) -> Estimate:
    """Return κ±tolerance = (share − floor) / (1 − floor), nan where the floor is 1.

    0 is what chance gives with these marginals, 1 is perfect. The interval is value ± t·se with the exact
    delete-one-cluster jackknife of share and floor together. Give rounded values for the rounded form.

    Notes
    -----
    A weighted kappa (Cohen 1968) whose weights are 1 within the tolerance and 0 outside.

    Examples
    --------
    >>> within_kappa([1, 5, 1, 5], [1, 5, 1, 5]).value
    1.0
    """
    x, y, (code,) = pairs(judge, human, clusters)
    if not len(x):
        return Estimate(np.nan, np.nan, np.nan, np.nan, 0, 0)
    one = np.zeros(len(x), dtype=np.intp)
    hits = np.bincount(code, weights=within(x, y, tolerance))
    of_judge = _near(x, y, tolerance, one, one)
    crossed = np.bincount(code, weights=of_judge + _near(y, x, tolerance, one, one))
    own = np.bincount(code, weights=_near(x, y, tolerance, code, code))
    m, n = np.bincount(code).astype(float), float(len(x))
    everything = of_judge.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        value = _beyond(hits.sum() / n, everything / n**2)
        floors = (everything - crossed + own) / (n - m) ** 2
        without = _beyond((hits.sum() - hits) / (n - m), floors)
    return leave_out(float(value), without, m, level=level)


def _beyond(share: Values, floor: Values) -> Array:
    share, floor = np.asarray(share), np.asarray(floor)
    return np.asarray(np.where(floor < 1 - 1e-12, (share - floor) / (1 - floor), np.nan), dtype=float)


def best_constant(
    human: Values,
    clusters: Labels = None,
    *,
    tolerance: float = 1.0,
    levels: Labels = None,
    rounded: bool = False,
    level: float = 0.95,
) -> tuple[float, Estimate]:
    """Return the one score that would meet most humans, and the ±tolerance share of a judge that always gives it.

    Parameters
    ----------
    levels : array, optional
        The scores such a judge may give; None lets it give any number between the humans' lowest and highest.
    rounded : bool
        Compare both rounded half up.

    Examples
    --------
    >>> score, share = best_constant([1, 4, 5, 5], levels=range(1, 6))
    >>> float(score), share.value
    (4.0, 0.75)
    """
    raw = np.asarray(human, dtype=float)
    y = np.sort(raw[~np.isnan(raw)])
    if not len(y):
        return np.nan, clustered_mean(raw, clusters, level=level)
    y = np.sort(round_half_up(y)) if rounded else y
    offered = np.minimum(y + tolerance, y[-1]) if levels is None else np.asarray(levels, dtype=float)
    tried = np.unique(round_half_up(offered) if rounded else offered)
    reach = tolerance + SLACK
    met = np.searchsorted(y, tried + reach, "right") - np.searchsorted(y, tried - reach, "left")
    score = float(tried[int(np.argmax(met))])
    return score, within_share(
        np.full(len(raw), score), raw, clusters, tolerance=tolerance, rounded=rounded, level=level
    )


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


def rater_pairs(ratings: Values) -> tuple[Codes, Array, Array]:
    """Return every pair of humans who rated the same item: the item's row, one rating, the other.

    Examples
    --------
    >>> item, one, other = rater_pairs([[1, 2, 6]])
    >>> one.tolist(), other.tolist()
    ([1.0, 1.0, 2.0], [2.0, 6.0, 6.0])
    """
    grid = np.atleast_2d(np.asarray(ratings, dtype=float))
    first, second = np.triu_indices(grid.shape[1], 1)
    one, other = grid[:, first].ravel(), grid[:, second].ravel()
    both = ~(np.isnan(one) | np.isnan(other))
    return np.repeat(np.arange(len(grid)), len(first))[both], one[both], other[both]


def human_ceiling(
    ratings: Values, clusters: Labels = None, *, tolerance: float = 1.0, level: float = 0.95
) -> Estimate:
    """Return the ±tolerance share of one human against the mean of the others: what a judge can hope for.

    Items are the clusters where none are given, because an item's ratings are compared with one another.

    Examples
    --------
    >>> human_ceiling([[4, 4, 5], [1, 1, 4]]).value
    0.5
    """
    item, own, others = leave_one_out(ratings)
    label = item if clusters is None else np.asarray(clusters)[item]
    return within_share(own, others, label, tolerance=tolerance, level=level)
