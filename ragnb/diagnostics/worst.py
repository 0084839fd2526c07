"""Where to look first: the samples with the worst scores, as records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.schema import Metric
from ragnb.weights import Batch, Reduction, collected, column_names, opened, reduce_batches, score_of, stays_lazy

_SHOWN = ("sample_id", "question", "answer", "ground_truth_answer")
_SHOWN_IF_THERE = ("system", "doc_name")
_RUN = 1_000
Array = npt.NDArray[np.float64]


def worst_samples(scores: Any, metrics: Sequence[Metric], top: int) -> list[list[dict[str, Any]]]:
    """Return for each metric the `top` samples with the worst scores as records, none without a score.

    Of a yes or no, samples at the good end are not among them either: they are not worse than any.
    Equal scores stand in input order; where rows have none (DuckDB,
    PySpark), by ``sample_id``. A frame without ``sample_id`` gives the row's label, or None where rows have no
    order.

    Examples
    --------
    >>> frame = pd.DataFrame({"sample_id": ["a", "b", "c"], "faithfulness": [0.5, None, 0.1]})
    >>> [r["sample_id"] for r in worst_samples(frame, [Metric("faithfulness")], 2)[0]]
    ['c', 'a']
    """
    there = column_names(scores)
    shown = [*_SHOWN, *(name for name in _SHOWN_IF_THERE if name in there)]
    have = [name for name in shown if name in there]
    if stays_lazy(scores):
        return [_on_engine(scores, metric, top, shown, have) for metric in metrics]

    def kernel(batch: Batch) -> tuple[pd.Index[Any], list[Array]]:
        return batch.frame.index, [batch.values(metric) for metric in metrics]

    index, columns = reduce_batches(scores, metrics, [Reduction(kernel)])[0][0]
    places = [_least(_badness(m, x), top).tolist() for m, x in zip(metrics, columns, strict=True)]
    every = [at for positions in places for at in positions]
    few = nw.from_native(scores, eager_only=True)[every]
    cells = {"sample_id": index[every].tolist()} | {name: few[name].to_list() for name in have}
    records = iter(zip(*(cells.get(name, [None] * len(every)) for name in shown), strict=True))
    return [
        [dict(zip(shown, map(_plain, next(records)), strict=True)) | {"score": float(x[at])} for at in positions]
        for x, positions in zip(columns, places, strict=True)
    ]


def _badness(metric: Metric, x: Array) -> Array:
    """Numbers that are least for the worst scores, nan where a score is never shown."""
    if metric.kind == "binary":
        x = np.where(x == _good(metric), np.nan, x)
    return x if metric.better == "higher" else -x


def _good(metric: Metric) -> float:
    """The end of a yes or no that is good; infinity, which is no score, of other metrics."""
    return np.inf if metric.kind != "binary" else metric.high if metric.better == "higher" else metric.low


def _least(x: Array, top: int) -> npt.NDArray[np.int64]:
    """The places of the `top` least numbers, the least first, equal ones in their order; nan is none of them."""
    ends = np.fmin.reduceat(x, np.arange(0, len(x), _RUN)) if len(x) else x
    bar = np.partition(ends, top - 1)[top - 1] if 0 < top <= len(ends) else np.nan  # no least number is above it
    near = np.flatnonzero(x <= (np.inf if np.isnan(bar) else bar))
    return near[np.argsort(x[near], kind="stable")][:top]


def _plain(cell: Any) -> Any:
    if pd.api.types.is_scalar(cell) and pd.isna(cell):
        return None
    return cell.item() if isinstance(cell, np.generic) else cell


def _on_engine(
    scores: Any, metric: Metric, top: int, shown: Sequence[str], have: Sequence[str]
) -> list[dict[str, Any]]:
    """Let the engine sort and take the head: a few rows leave it."""
    rows = opened(scores).select(*have, metric.name)
    schema, number = rows.collect_schema(), None
    if rows.implementation.is_polars():  # DuckDB's and PySpark's rows have no order
        rows, number = nw.from_native(rows.to_native().with_row_index("__row")), "__row"
    value = score_of(metric.name, schema[metric.name]).alias("__v0")
    scored = rows.with_columns(value).filter(~nw.col("__v0").is_null(), nw.col("__v0") != _good(metric))
    tie = number or ("sample_id" if "sample_id" in have else None)
    order = ["__v0"] if tie is None else ["__v0", tie]
    downwards = [metric.better == "lower", False][: len(order)]
    worst = scored.sort(*order, descending=downwards, nulls_last=True).head(top)
    records = []
    for row in collected(worst).rows(named=True):
        label = {} if number is None else {"sample_id": row[number]}
        cells = label | {name: row[name] for name in have}
        records.append({name: _plain(cells.get(name)) for name in shown} | {"score": float(row["__v0"])})
    return records
