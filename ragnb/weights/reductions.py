"""Further reductions: potential gains, and the distribution of scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb.errors import RagnbError
from ragnb.schema import Metric
from ragnb.weights.cells import Keys
from ragnb.weights.columns import Array, Codes, Flags
from ragnb.weights.engines import Batch, Reduction
from ragnb.weights.total import Weighing, check_weights, evaluated, relative, total_of

# Keeps 0.3 in the tenth that starts at 0.3, which floats put a hair above it.
_HAIR = 1e-9


def gains_reduction(
    metrics: Sequence[Metric],
    lifts: Sequence[tuple[int, float]],
    weighing: Weighing,
    *,
    part: nw.Expr | None = None,
    parts: int = 1,
) -> Reduction:
    """Return the reduction to the gain in the total if scores that miss a threshold were raised to it.

    The rows are summed by the weight of their document and the pattern of gaps, on which a lift's weight depends.

    Parameters
    ----------
    metrics : Metric objects
        All that are in the frame and count.
    lifts : pairs of (position of the metric, threshold)
        A threshold is below the good scores of a higher-is-better metric, above those of a lower-is-better one.
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
    checked = check_weights(weighing.doc_weights, "doc_weights")
    how = {"orient": weighing.orient, "rescale": weighing.rescale, "strict": False, "known": False}
    total = total_of(metrics, weighing.metric_weights, **how)

    def kernel(batch: Batch) -> tuple[Array, Array, Flags, Array, Codes]:
        """Rows, document weight, gaps, Σ of what lacks to the thresholds, and part of each cell."""
        values = [batch.values(metric) for metric in metrics]
        docs = batch.labels(weighing.doc if checked else None, compose=True)
        each, kind = np.unique([*(checked.get(name, 1.0) for name in docs.names), 1.0], return_inverse=True)
        of_part = np.zeros(len(batch)) if part is None else evaluated(part, batch, metrics)
        kinds, place = kind[docs.codes], np.asarray(of_part, dtype=np.int64)
        present = np.array([x == x for x in values], dtype=bool).reshape(len(values), len(batch)).T
        key = Keys.of([(kinds, len(each)), (place, parts)], present)
        lacking = np.empty((len(key.row), len(lifts)))
        for i, (k, threshold) in enumerate(lifts):
            way = threshold - values[k]
            clip = np.fmax if metrics[k].better == "higher" else np.fmin
            lacking[:, i] = key.sums(clip(way, 0.0, out=way))  # nan gives 0
        return key.sums(), each[kinds[key.row]], present[key.row], lacking, place[key.row]

    def finish(cells: list[Any]) -> Array:
        n, doc_weight, present, lacking, place = (np.concatenate(column) for column in zip(*cells, strict=True))
        weight, share = relative(doc_weight), total.shares(present)
        mass = float((weight * n)[share.sum(axis=1) > 0].sum())
        gains: Array = np.zeros((parts, len(lifts)))
        np.add.at(gains, place, weight[:, None] * lacking * (share * total.slopes)[:, [k for k, _ in lifts]])
        gains = gains / mass if mass > 0 else np.full_like(gains, np.nan)
        return gains[0] if part is None else gains

    return Reduction(kernel, finish, [weighing.doc] if checked else [])


def histogram_reduction(metrics: Sequence[Metric], *, bins: int = 10, ends: bool = False) -> Reduction:
    """Return the reduction to ``metric, bin_low, bin_high, n``; with `ends` how many lie at either end too.

    The columns ``n_low, n_high`` are the same in every bin of a metric.

    Raises
    ------
    RagnbError
        For a metric without a finite range.
    """
    endless = [metric.name for metric in metrics if not metric.bounded]
    if endless:
        raise RagnbError(f"{endless[0]!r} has no finite range for binning; declare one, or leave it out")
    low, high = (np.array([getattr(m, end) for m in metrics], dtype=float)[:, None] for end in ("low", "high"))
    edges = low + (high - low) * np.arange(bins + 1) / bins
    names = np.repeat(np.array([m.name for m in metrics], dtype=object), bins)
    empty = pd.DataFrame({"metric": names, "bin_low": edges[:, :-1].ravel(), "bin_high": edges[:, 1:].ravel()})

    def count(batch: Batch) -> Array:
        """Metrics × bins, then how many lie at the low end and at the high end."""
        counts = np.zeros((len(metrics), bins + 2))
        for k, metric in enumerate(metrics):
            batch.status(metric)  # refuses a number whose status is failed
            x = batch.values(metric)
            x = x[~np.isnan(x)]
            place = np.floor((x - metric.low) / (metric.high - metric.low) * bins + _HAIR).astype(np.int64)
            counts[k, :bins] = np.bincount(np.clip(place, 0, bins - 1), minlength=bins)
            counts[k, bins:] = (x == metric.low).sum(), (x == metric.high).sum()
        return counts

    def finish(parts: list[Array]) -> pd.DataFrame:
        every = np.sum(parts, axis=0).astype(np.int64)
        table = empty.assign(n=every[:, :bins].ravel())
        if ends:
            table[["n_low", "n_high"]] = every[:, bins:].repeat(bins, axis=0)
        return table

    return Reduction(count, finish)
