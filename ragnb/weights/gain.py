"""Potential gain: what lifting scores to a threshold would do to the weighted score, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from ragnb.schema import Metric
from ragnb.weights.batches import Batch, Reduction
from ragnb.weights.cells import Keys
from ragnb.weights.check import check_weights
from ragnb.weights.columns import Array, Codes
from ragnb.weights.estimates import plan_total, relative, shares, weight_vector
from ragnb.weights.reduction import Weighing
from ragnb.weights.weighing import evaluated

Lift = tuple[int, float]


def gains_reduction(
    metrics: Sequence[Metric],
    lifts: Sequence[Lift],
    weighing: Weighing,
    *,
    part: nw.Expr | None = None,
    parts: int = 1,
) -> Reduction:
    """Return the reduction to the rise of the total if a metric's scores beyond a threshold were lifted to it.

    The rows are summed by the weight of their document and the pattern of gaps, on which a lift's weight depends.

    Parameters
    ----------
    metrics : Metric objects
        All that are in the frame and count.
    lifts : pairs of (position of the metric, threshold)
        A threshold lies below the good scores of a higher-is-better metric, above those of a lower-is-better one.
    part : expression, optional
        The part of the rows that a row is of, 0 to `parts` − 1, read off the scores ``__v0``, ``__v1`` … .

    Returns
    -------
    Reduction
        To a (L,) or, with `part`, (parts, L) array of float:
        Σ v · share · slope · (threshold − s) / Σ v over the rows that have a total; nan where none has one. Of a
        part the numerator is over its rows alone.

    Raises
    ------
    RagnbError
        As `moments`.

    Examples
    --------
    >>> import polars as pl
    >>> from ragnb.weights import reduce_batches
    >>> frame = pl.DataFrame({"faithfulness": [0.5, 1.0], "context_recall": [1.0, None]})
    >>> metrics = [Metric("faithfulness"), Metric("context_recall")]
    >>> reduce_batches(frame, metrics, [gains_reduction(metrics, [(0, 0.7)], Weighing())])[0].round(3)
    array([0.05])
    """
    doc, orient, rescale = weighing.doc, weighing.orient, weighing.rescale
    checked = check_weights(weighing.doc_weights, "doc_weights")
    named = check_weights(weighing.metric_weights, "metric_weights", names=[m.name for m in metrics])
    plan = plan_total(metrics, weight_vector(metrics, named), orient=orient, rescale=rescale, strict=False)

    def kernel(batch: Batch) -> tuple[Array, Array, Array, Array, Codes]:
        """Rows, document weight, shares of metrics, Σ of what lacks to the thresholds, and part of each cell."""
        values = [batch.values(metric) for metric in metrics]
        docs = batch.labels(doc if doc in batch.frame else None, compose=True)
        each, kind = np.unique([*(checked.get(name, 1.0) for name in docs.names), 1.0], return_inverse=True)
        kinds = kind[docs.codes]
        place: Codes = np.zeros(len(batch), dtype=np.int64)
        if part is not None:
            place = evaluated(part, batch, metrics).astype(np.int64)
        key = Keys.of([(kinds, len(each)), (place, parts)], values, len(batch))
        lacking = np.empty((len(key.n), len(lifts)))
        for i, (k, threshold) in enumerate(lifts):
            way = threshold - values[k]
            clip = np.fmax if metrics[k].better == "higher" else np.fmin
            lacking[:, i] = key.sums(clip(way, 0.0, out=way))  # nan gives 0
        return key.n, each[kinds[key.row]], shares(key.present(values), plan.weights), lacking, place[key.row]

    def finish(cells: list[Any]) -> Array:
        n, doc_weight, share, lacking, place = (np.concatenate(column) for column in zip(*cells, strict=True))
        weight = relative(doc_weight)
        total = float((weight * n)[share.sum(axis=1) > 0].sum())
        which = [k for k, _ in lifts]
        gains: Array = np.zeros((parts, len(lifts)))
        np.add.at(gains, place, weight[:, None] * lacking * share[:, which] * plan.slopes[which])
        gains = gains / total if total > 0 else np.full_like(gains, np.nan)
        return gains[0] if part is None else gains

    return Reduction(kernel, finish, [doc] if checked else [])
