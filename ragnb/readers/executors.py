"""PySpark rows where they lie: functions of a batch run on the executors, whose workers need ragnb."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import narwhals as nw

from ragnb.errors import RagnbError, require
from ragnb.polars import pl

ROWS = 1 << 19
"""Rows of a batch: rows of any number are reduced in the memory that these take."""

WIDTH = 16
"""How many partial results reach the driver at most."""


def on_spark(frame: Any) -> bool:
    """Return whether a frame is PySpark's.

    Examples
    --------
    >>> import pandas as pd
    >>> on_spark(pd.DataFrame({"a": [1]}))
    False
    """
    found = nw.from_native(frame, pass_through=True)
    return isinstance(found, nw.LazyFrame) and found.implementation.is_pyspark()


def reduced(
    frame: Any, kernel: Callable[[pl.DataFrame], Any], merge: Callable[[list[Any]], Any]
) -> Any:
    """Return what a kernel makes of the rows: on each executor what it made is merged, and Spark merges on.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    kernel : function of a Polars frame
    merge : function of a list of what the kernel made
        Of the same type as its entries, in any grouping.

    Raises
    ------
    RagnbError
        What the kernel raised on an executor.
    """

    def packed(parts: Iterable[Any]) -> Iterator[Any]:
        pa = require("pyarrow", extra="spark")
        try:
            results = list(parts)
            # A partition without rows has none, and yields none.
            if not results:
                return
            merged = merge(results)
        except RagnbError as error:  # raised there, its words would drown in a trace of the worker
            merged = error
        yield pa.RecordBatch.from_pydict({"made": [pickle.dumps(merged)]})

    def reduce_rows(batches: Iterator[Any]) -> Iterator[Any]:
        return packed(map(kernel, _large(batches)))

    def reduce_again(batches: Iterator[Any]) -> Iterator[Any]:
        cells = (cell for batch in batches for cell in batch["made"].to_pylist())
        return packed(_unpacked(cells))

    width = min(WIDTH, frame.sparkSession.sparkContext.defaultParallelism)
    of_partitions = frame.mapInArrow(reduce_rows, "made binary")
    # Reduced once more on the executors: a frame may have thousands of partitions, and the driver is to get only a
    # few results.
    rows = of_partitions.repartition(width).mapInArrow(reduce_again, "made binary").collect()
    results = list(_unpacked(row[0] for row in rows))
    if not results:
        results = [kernel(_empty(frame))]
    return merge(results)


def _unpacked(cells: Iterable[bytes]) -> Iterator[Any]:
    """Yield what was pickled; an error among it is raised."""
    for cell in cells:
        result = pickle.loads(cell)
        if isinstance(result, RagnbError):
            raise result
        yield result


def mapped(frame: Any, function: Callable[[pl.DataFrame], pl.DataFrame]) -> Any:
    """Return a PySpark frame of what a function makes of each batch of rows, once it runs.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    function : function of a Polars frame
        Of an empty frame it returns the columns that it returns of any.
    """
    empty = frame.sparkSession.createDataFrame(_arrow(function(_empty(frame))))
    shape = empty.toArrow().schema  # Spark's lists and texts are not Polars' large ones

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        for part in _large(batches):
            yield from _arrow(function(part)).cast(shape).to_batches()

    return frame.mapInArrow(run, empty.schema)


def _empty(frame: Any) -> pl.DataFrame:
    """Return the columns of a PySpark frame without rows."""
    return pl.DataFrame(frame.limit(0).toArrow())


def _large(batches: Iterator[Any]) -> Iterator[pl.DataFrame]:
    """Yield Arrow's batches, of 10,000 rows unless Spark is told otherwise, as frames of `ROWS` rows."""
    pa = require("pyarrow", extra="spark")
    collected: list[Any] = []
    for batch in batches:
        collected.append(batch)
        if sum(map(len, collected)) >= ROWS:
            yield pl.DataFrame(pa.Table.from_batches(collected))
            collected = []
    if collected:
        yield pl.DataFrame(pa.Table.from_batches(collected))


def _arrow(frame: pl.DataFrame) -> Any:
    """Return a Polars frame as the Arrow table that Spark reads, which knows no categories."""
    categories = [name for name, kind in frame.schema.items() if kind in (pl.Enum, pl.Categorical)]
    as_texts = frame.with_columns(pl.col(categories).cast(pl.String))
    # At the newest level texts become string views, which not every reader of Arrow knows.
    return as_texts.to_arrow(compat_level=pl.CompatLevel.oldest())
