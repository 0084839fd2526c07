"""How scores are distributed, for charts of any number of rows: counts by equal bins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError
from ragnb.schema import Metric
from ragnb.weights.batches import Batch, Reduction, reduce_batches
from ragnb.weights.reduction import with_unnamed
from ragnb.weights.scored import MetricsArgument, scored

# Keeps 0.3 in the tenth that starts at 0.3, which floats put a hair above it.
_HAIR = 1e-9
def histogram(
    scores: Any, *, metrics: MetricsArgument = None, by: str | None = None, bins: int = 10
) -> pd.DataFrame:
    """Return how many samples score in each of equal bins of a metric's range.

    Parameters
    ----------
    scores : DataFrame
        One row a sample, one column a metric, nan where there is no score; of pandas, Polars, PyArrow, DuckDB or
        PySpark.
    metrics : names or Metric objects, optional
        None takes the columns that METRICS declares.
    by : str, optional
        A column to group by; its empty cells are the group None, the last one.
    bins : int

    Returns
    -------
    DataFrame
        ``[by,] metric, bin_low, bin_high, n``, every bin of every metric, empty ones too. A bin holds its lower
        end, the last one both. Histograms of parts of the rows merge by adding ``n`` over equal other columns.

    Raises
    ------
    RagnbError
        For a metric without a finite range, values outside it, and unknown metrics or columns.

    Examples
    --------
    >>> histogram(pd.DataFrame({"faithfulness": [0.2, 0.5, 1.0, None]}), bins=2)
             metric  bin_low  bin_high  n
    0  faithfulness      0.0       0.5  1
    1  faithfulness      0.5       1.0  2
    """
    if bins < 1:
        raise RagnbError(f"bins={bins!r} must be a number of bins, such as 10")
    frame, chosen = scored(scores, metrics, by)
    table: pd.DataFrame = reduce_batches(frame, chosen, [histogram_reduction(chosen, by=by, bins=bins)])[0]
    return table


def histogram_reduction(metrics: Sequence[Metric], *, by: str | None = None, bins: int = 10) -> Reduction:
    """Return the reduction to the table of `histogram`.

    Raises
    ------
    RagnbError
        For a metric without a finite range.
    """
    endless = [metric.name for metric in metrics if not metric.bounded]
    if endless:
        raise RagnbError(f"{endless[0]!r} has no finite range to put in bins; declare one, or leave it out")

    def count(batch: Batch) -> dict[str | None, npt.NDArray[np.int64]]:
        """Each group's metrics × bins."""
        group = with_unnamed(None if by is None else batch.labels(by), len(batch))
        counts = np.zeros((len(group.names), len(metrics), bins), dtype=np.int64)
        batch.statuses(metrics)  # refuses a number whose status is failed
        for k, metric in enumerate(metrics):
            x = batch.values(metric)
            there = ~np.isnan(x)
            place = np.floor((x[there] - metric.low) / (metric.high - metric.low) * bins + _HAIR).astype(np.int64)
            cell = group.codes[there] * bins + np.clip(place, 0, bins - 1)
            counts[:, k] = np.bincount(cell, minlength=counts[:, k].size).reshape(-1, bins)
        return dict(zip(group.names, counts, strict=True))

    def finish(parts: list[dict[str | None, npt.NDArray[np.int64]]]) -> pd.DataFrame:
        groups = sorted({name for part in parts for name in part}, key=lambda name: (name is None, name))
        zero = np.zeros((len(metrics), bins), dtype=np.int64)
        counts = [sum((part.get(name, zero) for part in parts), zero) for name in groups]
        low, high = (np.array([getattr(m, end) for m in metrics], dtype=float)[:, None] for end in ("low", "high"))
        edges = low + (high - low) * np.arange(bins + 1) / bins
        columns = {
            "metric": np.repeat(np.array([m.name for m in metrics], dtype=object), bins),
            "bin_low": edges[:, :-1].ravel(),
            "bin_high": edges[:, 1:].ravel(),
        }
        table = pd.DataFrame({name: np.tile(column, len(groups)) for name, column in columns.items()})
        if by is not None:
            table.insert(0, by, np.repeat(np.array(groups, dtype=object), len(metrics) * bins))
        return table.assign(n=np.array(counts, dtype=np.int64).ravel())

    return Reduction(count, finish, [by])
