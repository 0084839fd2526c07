"""How scores spread, for charts of any number of rows: counts by equal bins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError
from ragnb.schema import Metric
from ragnb.weights.columns import coded, labels, score_columns
from ragnb.weights.engines import BAD, explain, grouped, opened, patterned
from ragnb.weights.grouped import grouped_by
from ragnb.weights.reduced import MetricsArgument
from ragnb.weights.scored import scored


def histogram(
    scores: Any, *, metrics: MetricsArgument = None, by: str | None = None, bins: int = 10
) -> pd.DataFrame:
    """Return how many samples score in each of equal bins of a metric's range.

    Parameters
    ----------
    scores : DataFrame
        One row a sample, one column a metric, nan where there is no score; of pandas, Polars, PyArrow, DuckDB or
        PySpark. Other engines than pandas count in one query.
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
    scores, chosen = scored(scores, metrics, by)
    endless = [metric.name for metric in chosen if not metric.bounded]
    if endless:
        raise RagnbError(f"{endless[0]!r} has no finite range to put in bins; declare one, or leave it out")
    count = _counts if isinstance(scores, pd.DataFrame) else _counts_on_engine
    names, counts = count(scores, chosen, by, bins)
    low, high = (np.array([getattr(m, end) for m in chosen], dtype=float)[:, None] for end in ("low", "high"))
    edges = low + (high - low) * np.arange(bins + 1) / bins
    columns = {
        "metric": np.repeat(np.array([m.name for m in chosen], dtype=object), bins),
        "bin_low": edges[:, :-1].ravel(),
        "bin_high": edges[:, 1:].ravel(),
    }
    table = pd.DataFrame({name: np.tile(column, len(names)) for name, column in columns.items()})
    if by is not None:
        table.insert(0, by, np.repeat(np.array(names, dtype=object), len(chosen) * bins))
    return table.assign(n=counts.ravel())


# The slack keeps 0.3 in the tenth that starts at 0.3, which floats put a hair above it.
_HAIR = 1e-9
Counts = tuple[tuple[str | None, ...], npt.NDArray[np.int64]]


def _counts(frame: pd.DataFrame, metrics: Sequence[Metric], by: str | None, bins: int) -> Counts:
    """The groups, and groups × metrics × bins."""
    values, _ = score_columns(frame, metrics)
    group = grouped_by(None if by is None else labels(frame, by), len(frame))
    size = len(group.names)
    counts = np.zeros((size, len(metrics), bins), dtype=np.int64)
    for k, (metric, x) in enumerate(zip(metrics, values, strict=True)):
        scored = ~np.isnan(x)
        place = np.floor((x[scored] - metric.low) / (metric.high - metric.low) * bins + _HAIR).astype(np.int64)
        cell = group.codes[scored] * bins + np.clip(place, 0, bins - 1)
        counts[:, k] = np.bincount(cell, minlength=size * bins).reshape(-1, bins)
    return group.names, counts


def _counts_on_engine(scores: Any, metrics: Sequence[Metric], by: str | None, bins: int) -> Counts:
    """The same by a query a metric, which reads its column alone."""
    tables = [_table_of(scores, metric, by, bins) for metric in metrics]
    keys = [table["__k0"] if by is not None else np.zeros(len(table["__n"])) for table in tables]
    ends = np.cumsum([0, *map(len, keys)])
    every = np.concatenate(keys) if keys else np.empty(0)
    group = grouped_by(None if by is None else coded(every), len(every))
    counts = np.zeros((len(group.names), len(metrics), bins), dtype=np.int64)
    for k, table in enumerate(tables):
        codes, place = group.codes[ends[k] : ends[k + 1]], table["__place"]
        scored = place >= 0
        np.add.at(counts[:, k], (codes[scored], place[scored]), table["__n"][scored].astype(np.int64))
    return group.names, counts


def _table_of(scores: Any, metric: Metric, by: str | None, bins: int) -> dict[str, npt.NDArray[Any]]:
    """How many rows of each group are in each bin, −1 without a score."""
    value = nw.col("__v0")
    place = ((value - metric.low) / (metric.high - metric.low) * bins + _HAIR).floor()
    inside = nw.when(place > bins - 1).then(nw.lit(bins - 1.0)).otherwise(place)
    inside = nw.when(place < 0).then(nw.lit(0.0)).otherwise(inside)
    scored = nw.when(value.is_null()).then(nw.lit(-1.0)).otherwise(inside)
    rows = patterned(opened(scores), [metric], {} if by is None else {"__k0": by})
    rows = rows.with_columns(__place=scored.cast(nw.Int64))
    table = grouped(rows, [*([] if by is None else ["__k0"]), "__place"], [BAD])
    if table[BAD].any():
        explain(scores, [metric])
    return table
