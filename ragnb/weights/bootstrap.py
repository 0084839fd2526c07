"""Cells → bootstrap: the interval of `Moments.means` found another way, without going back to the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.errors import RagnbError
from ragnb.weights.cells import Cells
from ragnb.weights.check import check_weights
from ragnb.weights.columns import Array, Codes
from ragnb.weights.estimates import Plan, cell_columns, document_weights, plan_total, total_centre, weight_vector

if TYPE_CHECKING:
    from ragnb.weights.reduction import Moments

_FEWEST = 100


def bootstrap(
    self: Moments,
    *,
    metric_weights: Mapping[str, float] | None = None,
    doc_weights: Mapping[str, float] | None = None,
    resamples: int = 2000,
    seed: int = 0,
    level: float = 0.95,
    orient: bool = True,
    rescale: bool = False,
) -> pd.DataFrame:
    """Return the table of `means` with percentile intervals and standard errors of the cluster bootstrap.

    Parameters
    ----------
    metric_weights, doc_weights : mapping of name to weight, optional
    resamples : int
        At least 100.
    seed : int
        The same seed gives the same numbers; a group's are those of its rows alone.
    level : float
        Of the intervals, in (0, 1).
    orient, rescale : bool
        As in `weighted_means`.

    Raises
    ------
    RagnbError
        As `means`, and for too few resamples.

    Notes
    -----
    Every resample draws as many clusters as the group has, with replacement. Clusters are drawn exactly. Rows
    that are their own clusters and share a cell are drawn by their number exactly and by their values in the
    first two moments, as normal, within the metric's range: cells hold no more. The percentile interval is a check
    of `means`, not a rival: with few clusters it is too narrow, and for values all alike it has no width. Efron
    (1979), Ann. Stat. 7, 1–26.

    Examples
    --------
    >>> from ragnb.weights import moments
    >>> scores = pd.DataFrame({"faithfulness": [1.0, 0.5, 0.0, 0.6] * 9, "doc_name": list("abcdefghijkl") * 3})
    >>> moments(scores).bootstrap()[["metric", "value", "low", "high", "n_clusters"]].round(1)
               metric  value  low  high  n_clusters
    0    faithfulness    0.5  0.3   0.7          12
    1  weighted_score    0.5  0.3   0.7          12
    """
    if resamples < _FEWEST:
        raise RagnbError(f"resamples={resamples!r} are too few for an interval; take at least {_FEWEST}")
    table = self.means(
        metric_weights=metric_weights, doc_weights=doc_weights, level=level, orient=orient, rescale=rescale
    )
    checked = check_weights(metric_weights, "metric_weights", names=[m.name for m in self.metrics])
    vector = weight_vector(self.metrics, checked)
    plan = plan_total(self.metrics, vector, orient=orient, rescale=rescale)
    named = check_weights(doc_weights, "doc_weights")
    units = _units(self.cells, plan, document_weights(self.cells, self.docs, named))
    spans = table[["range_low", "range_high"]].head(len(self.metrics) + 1).to_numpy(copy=True)
    spans[-1, 0] = plan.least
    middles = np.append(self.cells.centre, total_centre(self.cells, plan))
    usable = table["n_clusters"].to_numpy().reshape(len(self.rows), len(spans)) >= 2
    found = np.full((*usable.shape, 3), np.nan)
    for g in range(len(self.rows)):
        sizes, *sums = (part[units[0] == g] for part in units[1:])
        means = stats.resampled_means(sizes, *sums, resamples=resamples, seed=seed)
        for k in np.flatnonzero(usable[g]):
            own = np.clip(means[:, k] + middles[k], *spans[k])
            found[g, k] = [*np.nanquantile(own, [0.5 - level / 2, 0.5 + level / 2]), np.nanstd(own, ddof=1)]
    # Without a range, scores that are all alike tell nothing of their spread.
    found.reshape(-1, 3)[table["low"].isna().to_numpy(), :2] = np.nan
    table[["low", "high", "se"]] = found.reshape(-1, 3)
    return table


def _units(cells: Cells, plan: Plan, doc_weight: Array) -> tuple[Codes, Codes, Array, Array, Array]:
    """Group, size, Σv, Σvx and the variance of a draw, of clusters and then of the cells of single rows."""
    sums, counts, squares = cell_columns(cells, plan)
    v = doc_weight[cells.doc][:, None]
    alone = cells.cluster < 0
    group, cluster = cells.group[~alone], cells.cluster[~alone]
    starts = np.flatnonzero(np.append(True, (np.diff(group) != 0) | (np.diff(cluster) != 0)))[: len(group)]
    n, own = cells.n[alone][:, None], v[alone]
    mean = sums[alone] / n
    spread = np.maximum(squares / n - mean**2, 0.0) if len(squares) else np.empty_like(mean)
    clusters = [np.add.reduceat((v * x)[~alone], starts, axis=0) for x in (counts, sums)]
    sizes = np.append(np.ones(len(starts), dtype=np.int64), cells.n[alone].astype(np.int64))
    variances = np.vstack([np.zeros_like(clusters[0]), own**2 * spread])
    rows = [own * counts[alone] / n, own * mean]
    weights, totals = (np.vstack(pair) for pair in zip(clusters, rows, strict=True))
    return np.append(group[starts], cells.group[alone]), sizes, weights, totals, variances
