"""How often and how closely a judge meets the humans, and what that is worth beside chance and a constant."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ragnb.errors import RagnbError
from ragnb.stats.estimates import NONE, Codes, Counts, Estimate, Labels, Values, clustered_mean, leave_out
from ragnb.stats.means import Array
from ragnb.stats.tally import tallied

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


def within(judge: Values, human: Values, tolerance: float = 1.0) -> Array:
    """Return 1 where the judge lies within ±tolerance of the human, 0 where not, nan where one is missing.

    Parameters
    ----------
    judge, human : array, shape (n,)
        Ratings on one scale.
    tolerance : float
        In points of the scale, ≥ 0; 1e-9 is added. 0 on rounded values is exact agreement. Whether both are
        rounded first (`round_half_up`) moves a share by ten points and more.

    Examples
    --------
    >>> within([2.3333333333333335, 4.0], [1.3333333333333333, 2.5]).tolist()
    [1.0, 0.0]
    """
    x, y = np.asarray(judge, dtype=float), np.asarray(human, dtype=float)
    if not tolerance >= 0:
        raise RagnbError(f"tolerance={tolerance} is negative; give points of the scale, such as 1.0")
    return np.where(np.isnan(x) | np.isnan(y), np.nan, (np.abs(x - y) <= tolerance + SLACK).astype(float))


def within_share(
    judge: Values,
    human: Values,
    clusters: Labels = None,
    *,
    tolerance: float = 1.0,
    weights: Labels = None,
    counts: Counts = None,
    level: float = 0.95,
) -> Estimate:
    """Return the share of rows within ±tolerance, with Wilson's interval at the clusters' effective size.

    Exact agreement is ``tolerance=0`` on rounded values. `weights` as in `clustered_mean`.

    Examples
    --------
    >>> share = within_share([4, 5, 2, 1], [5, 5, 4, 1])
    >>> share.value, share.n
    (0.75, 4)
    """
    flags = within(judge, human, tolerance)
    return clustered_mean(
        flags, clusters, weights=weights, counts=counts, ends=(0.0, 1.0), binary=True, level=level
    )


def _near(values: Array, others: Array, tolerance: float, own: Codes, theirs: Codes, counts: Array) -> Array:
    """Count, for each value, the others with the same code that lie within the tolerance."""
    reach = tolerance + SLACK
    low = float(min(values.min(), others.min()))
    stride = float(max(values.max(), others.max())) - low + 4 * (reach + 1)
    line = theirs * stride + (others - low)
    order = np.argsort(line)
    line, running = line[order], np.r_[0.0, np.cumsum(counts[order])]
    at = own * stride + (values - low)
    last, first = np.searchsorted(line, at + reach, "right"), np.searchsorted(line, at - reach, "left")
    return np.asarray(running[last] - running[first], dtype=float)


def chance_floor(judge: Values, human: Values, *, tolerance: float = 1.0, counts: Counts = None) -> float:
    """Return the ±tolerance share of an independent judge with the same marginals, in O(n log n).

    It is the share over all n² pairs of a judge's score with any human's score.

    Examples
    --------
    >>> chance_floor([1, 5], [1, 5])
    0.5
    """
    one = np.zeros(len(np.asarray(judge)), dtype=np.intp)
    t = tallied(judge, human, one, counts)
    if not len(t.x):
        return float("nan")
    return float(t.counts @ _near(t.x, t.y, tolerance, t.code, t.code, t.counts) / t.counts.sum() ** 2)


def within_kappa(
    judge: Values,
    human: Values,
    clusters: Labels = None,
    *,
    tolerance: float = 1.0,
    counts: Counts = None,
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
    t = tallied(judge, human, clusters, counts)
    x, y, code, inside, all_rows = t.x, t.y, t.code, t.inside, t.counts
    if not len(x):
        return NONE
    one = np.zeros(len(x), dtype=np.intp)
    hits = np.bincount(code, weights=inside * within(x, y, tolerance))
    of_judge = _near(x, y, tolerance, one, one, all_rows)
    crossed = np.bincount(code, weights=inside * (of_judge + _near(y, x, tolerance, one, one, all_rows)))
    own = np.bincount(code, weights=inside * _near(x, y, tolerance, code, code, inside))
    m, n = np.bincount(code, weights=inside).astype(float), float(all_rows.sum())
    everything, met = float(all_rows @ of_judge), float(t.times @ hits)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = _beyond(met / n, everything / n**2)
        floors = (everything - crossed + own) / (n - m) ** 2
        without = _beyond((met - hits) / (n - m), floors)
    return leave_out(float(value), without, m, times=t.times, level=level)


def _beyond(share: Values, floor: Values) -> Array:
    share, floor = np.asarray(share), np.asarray(floor)
    return np.asarray(np.where(floor < 1 - 1e-12, (share - floor) / (1 - floor), np.nan), dtype=float)


def best_constant(
    human: Values,
    clusters: Labels = None,
    *,
    tolerance: float = 1.0,
    levels: Labels = None,
    weights: Labels = None,
    counts: Counts = None,
    level: float = 0.95,
) -> tuple[float, Estimate]:
    """Return the one score that would meet most humans, and the ±tolerance share of a judge that always gives it.

    Parameters
    ----------
    levels : array, optional
        The scores such a judge may give; None lets it give any number between the humans' lowest and highest.

    Examples
    --------
    >>> score, share = best_constant([1, 4, 5, 5], levels=range(1, 6))
    >>> float(score), share.value
    (4.0, 0.75)
    """
    raw = np.asarray(human, dtype=float)
    size = np.ones(len(raw)) if counts is None else np.asarray(counts, dtype=float)
    size = size if weights is None else size * np.asarray(weights, dtype=float)
    y, size = raw[~np.isnan(raw)], size[~np.isnan(raw)]
    if not len(y):
        return np.nan, clustered_mean(raw, clusters, level=level)
    order = np.argsort(y)
    y, running = y[order], np.r_[0.0, np.cumsum(size[order])]
    offered = np.minimum(y + tolerance, y[-1]) if levels is None else np.asarray(levels, dtype=float)
    tried = np.unique(offered)
    reach = tolerance + SLACK
    met = running[np.searchsorted(y, tried + reach, "right")] - running[np.searchsorted(y, tried - reach, "left")]
    score = float(tried[int(np.argmax(met))])
    same = np.full(len(raw), score)
    return score, within_share(
        same, raw, clusters, tolerance=tolerance, weights=weights, counts=counts, level=level
    )
