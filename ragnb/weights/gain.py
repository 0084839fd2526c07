"""Potential gain: what lifting scores to a threshold would do to the weighted score, exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from ragnb.schema import Metric
from ragnb.weights.batches import Batch, reduce_batches
from ragnb.weights.cells import Keys
from ragnb.weights.check import check_weights
from ragnb.weights.columns import Array, Codes
from ragnb.weights.estimates import plan_total, relative, shares, weight_vector
from ragnb.weights.weighing import evaluated

Lift = tuple[int, float]


def potential_gains(
    scores: Any,
    metrics: Sequence[Metric],
    lifts: Sequence[Lift],
    *,
    metric_weights: Mapping[str, float] | None = None,
    doc_weights: Mapping[str, float] | None = None,
    doc: str = "doc_name",
    orient: bool = True,
    rescale: bool = False,
    part: nw.Expr | None = None,
    parts: int = 1,
) -> Array:
    """Return by how much the total would rise if a metric's scores beyond a threshold were lifted to it.

    The rows are summed by the weight of their document and the pattern of gaps, on which a lift's weight depends.

    Parameters
    ----------
    scores : DataFrame
        Of any engine.
    metrics : Metric objects
        All that are in the frame and count.
    lifts : pairs of (position of the metric, threshold)
        A threshold lies below the good scores of a higher-is-better metric, above those of a lower-is-better one.
    part : expression, optional
        The part of the rows that a row is of, 0 to `parts` − 1, read off the scores ``__v0``, ``__v1`` … .

    Returns
    -------
    (L,) or, with `part`, (parts, L) float
        Σ v · share · slope · (threshold − s) / Σ v over the rows that have a total; nan where none has one. Of a
        part the upper sum is over its rows alone.

    Raises
    ------
    RagnbError
        As `moments`.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"faithfulness": [0.5, 1.0], "context_recall": [1.0, None]})
    >>> potential_gains(frame, [Metric("faithfulness"), Metric("context_recall")], [(0, 0.7)]).round(3)
    array([0.05])
    """
    checked = check_weights(doc_weights, "doc_weights")
    named = check_weights(metric_weights, "metric_weights", names=[m.name for m in metrics])
    plan = plan_total(metrics, weight_vector(tuple(metrics), named), orient=orient, rescale=rescale, strict=False)
    columns = [doc] if checked else []

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

    cells = reduce_batches(scores, metrics, columns, kernel)
    n, doc_weight, share, lacking, place = (np.concatenate(column) for column in zip(*cells, strict=True))
    weight = relative(doc_weight)
    total = float((weight * n)[share.sum(axis=1) > 0].sum())
    which = [k for k, _ in lifts]
    rises: Array = np.zeros((parts, len(lifts)))
    np.add.at(rises, place, weight[:, None] * lacking * share[:, which] * plan.slopes[which])
    rises = rises / total if total > 0 else np.full_like(rises, np.nan)
    return rises[0] if part is None else rises
