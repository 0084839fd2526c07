"""Rows of any engine in batches of pandas columns, and reductions in one pass over them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar, cast

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError, require
from ragnb.readers.executors import ROWS, on_spark, reduced
from ragnb.readers.frames import native
from ragnb.schema import DRAWN, Metric
from ragnb.weights.columns import (
    Frame,
    Labels,
    coded,
    collected,
    column_names,
    numeric,
    status_codes,
    stays_lazy,
)
from ragnb.weights.total import Array

if TYPE_CHECKING:
    import polars as pl

Made = TypeVar("Made")
_HELD = 8  # batches whose results are in memory before they are merged


class Batch:
    """Some rows of a frame: each metric's column and status is checked once, each label column coded once.

    Examples
    --------
    >>> batch = Batch(pd.DataFrame({"faithfulness": [1.0, None]}))
    >>> batch.values(Metric("faithfulness"))
    array([ 1., nan])
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self._made: dict[Hashable, Any] = {}

    def __len__(self) -> int:
        return len(self.frame)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what was made under this key, making it the first time."""
        if key not in self._made:
            self._made[key] = make()
        return cast(Made, self._made[key])

    def values(self, metric: Metric) -> Array:
        """Return the scores of a metric, nan where there is none; see `numeric`."""
        return self.once(metric, lambda: numeric(self.frame, metric))

    def with_values(self, values: Mapping[Any, Array]) -> Batch:
        """Return the batch with the scores of other metrics; its labels are shared."""
        batch = Batch(self.frame)
        # Scores are kept under their metric, so that others take their place; what is kept of labels stays.
        batch._made = {**self._made, **values}
        return batch

    def status(self, metric: Metric) -> npt.NDArray[np.int8]:
        """Return the status of each row; see `status_codes`."""
        return self.once(
            ("status", metric), lambda: status_codes(self.frame, metric, self.values(metric))
        )

    def labels(self, column: str | None, *, compose: bool = False) -> Labels:
        """Return a column as codes into sorted names; without a column no row has a label."""
        if column not in self.frame:
            return Labels(np.full(len(self), -1, dtype=np.int64), ())
        return self.once((column, compose), lambda: coded(self.frame[column], compose=compose))

    def weights(self) -> Array | None:
        """Return 1 / the chance with which each row was drawn, 0 without one; None where all rows count alike.

        Raises
        ------
        RagnbError
            For a chance outside (0, 1].
        """
        if DRAWN not in self.frame:
            return None
        chances = pd.to_numeric(self.frame[DRAWN], errors="coerce").to_numpy(dtype=float)
        odd = (chances <= 0) | (chances > 1)
        if odd.any():
            raise RagnbError(
                f"column {DRAWN!r}: found {chances[odd][0]:g}, expected a number above 0 and up to 1"
            )
        # A row without a chance does not count.
        return np.nan_to_num(1 / chances)

    def groups(self, column: str | None, *, compose: bool = False) -> Labels:
        """Return a column as groups: rows without a name are the last one; without a column all rows are one.

        Examples
        --------
        >>> Batch(pd.DataFrame({"system": ["a", None]})).groups("system")
        Labels(codes=array([0, 1]), names=('a', None))
        """
        if column is None:
            return Labels(np.zeros(len(self), dtype=np.int64), ("",))
        named = self.labels(column, compose=compose)
        if not (named.codes < 0).any():
            return named
        return Labels(
            np.where(named.codes < 0, len(named.names), named.codes), (*named.names, None)
        )


@dataclass(frozen=True)
class Reduction:
    """A reduction computed in one pass over the rows.

    Attributes
    ----------
    kernel : function of a Batch
    merge : function of a list of what the kernel made
        Makes one of them, in any grouping: Spark's executors merge theirs, so that the driver gets few. By default
        the first, of rows that are one batch.
    columns : str or None
        What the kernel reads beside the metrics, where it is there.
    finish : function of what all batches made together
    """

    kernel: Callable[[Batch], Any]
    merge: Callable[[list[Any]], Any] = itemgetter(0)
    columns: Sequence[str | None] = ()
    finish: Callable[[Any], Any] = lambda made: made


def reduce_batches(
    scores: Any, metrics: Sequence[Metric], reductions: Sequence[Reduction]
) -> list[Any]:
    """Apply several reductions to the rows in one pass; PySpark rows stay on the executors.

    Parameters
    ----------
    scores : DataFrame of any engine
        An eager frame is one batch, whose columns are views.
    metrics : Metric objects
        Their columns and statuses are in the batches.

    Raises
    ------
    RagnbError
        As the kernels; of a query the row is named by its ``sample_id``.

    Examples
    --------
    >>> import polars as pl
    >>> reduce_batches(pl.LazyFrame({"faithfulness": [0.5, 1.0]}), [Metric("faithfulness")], [Reduction(len, sum)])
    [2]
    """
    have = column_names(scores)
    asked = [name for metric in metrics for name in (metric.name, f"{metric.name}__status")]
    asked += [name for one in reductions for name in one.columns if name is not None]
    # Without any column there would be no rows to count.
    wanted = [name for name in dict.fromkeys(asked) if name in have] or have[:1]

    def take(part: pd.DataFrame) -> list[Any]:
        batch = Batch(part)
        return [reduction.kernel(batch) for reduction in reductions]

    def take_named(part: pd.DataFrame) -> list[Any]:
        names = part["sample_id"] if "sample_id" in part else ["?"] * len(part)
        return take(part.set_axis(names))

    def merge(parts: list[list[Any]]) -> list[Any]:
        of_reductions = zip(*parts, strict=True)
        return [
            reduction.merge(list(reduced))
            for reduction, reduced in zip(reductions, of_reductions, strict=True)
        ]

    if isinstance(scores, pd.DataFrame):
        columns = {name: scores[name] for name in wanted}
        results = merge([take(pd.DataFrame(columns, scores.index, copy=False))])
    else:
        try:
            results = _of_parts(native(scores).select(*wanted), take, merge)
        except RagnbError:
            # A second pass finds the row's name, which the first one does not keep.
            if stays_lazy(scores):
                if "sample_id" in have and "sample_id" not in wanted:
                    wanted.append("sample_id")
                _of_parts(native(scores).select(*wanted), take_named, merge)
            raise
    return [reduction.finish(result) for reduction, result in zip(reductions, results, strict=True)]


def _of_parts(
    rows: Frame, take: Callable[[pd.DataFrame], Any], merge: Callable[[list[Any]], Any]
) -> Any:
    """Apply a function to the rows, batch by batch, and merge what it made."""
    if on_spark(rows):
        return reduced(rows.to_native(), lambda part: take(_pandas(part)), merge)
    results: list[Any] = []
    with closing(_parts(rows)) as parts:
        for part in parts:
            if not len(part):
                continue
            # Merged a few at a time: cells of all batches together could be as many as the rows.
            if len(results) >= _HELD:
                results = [merge(results)]
            results.append(take(_pandas(part)))
    if not results:
        # No rows have a result, too; an empty batch has columns of the right types.
        results.append(take(_pandas(collected(rows.head(0)).to_polars())))
    return merge(results)


def _parts(rows: Frame) -> Generator[pl.DataFrame]:
    import polars as pl

    if isinstance(rows, nw.DataFrame):
        yield rows.to_polars()
    elif rows.implementation.is_polars():
        # Polars reads dozens of such pieces ahead.
        with pl.Config(streaming_chunk_size=max(ROWS // 64, 1)):
            yield from rows.to_native().collect_batches(chunk_size=ROWS, maintain_order=True)
    else:
        require("pyarrow", extra="duckdb")
        relation = rows.to_native()
        # What it was called before Polars 2.0.
        reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
        # Closed in any case: DuckDB runs no other query while one is open.
        with closing(reader(ROWS)) as stream:
            yield from map(pl.from_arrow, stream)


def _pandas(part: pl.DataFrame) -> pd.DataFrame:
    """Return a batch of Polars as pandas columns: numbers shared, texts coded."""
    import polars as pl

    columns: dict[str, Any] = {}
    for column in part:
        if column.dtype.is_numeric() or column.dtype == pl.Boolean:
            numbers = column
            # NumPy's whole numbers hold no gaps.
            if column.null_count() or not column.dtype.is_integer():
                numbers = column.cast(pl.Float64).fill_null(np.nan)
            columns[column.name] = numbers.to_numpy()
        elif column.dtype in (pl.String, pl.Categorical, pl.Enum):
            words = column.cast(pl.Categorical)
            # In the order in which words appear, too.
            codes, _ = pd.factorize(words.to_physical().to_numpy())
            names = words.unique(maintain_order=True).drop_nulls().cast(pl.String).to_list()
            columns[column.name] = pd.Categorical.from_codes(codes, pd.Index(names, dtype=object))
        else:
            columns[column.name] = pd.Series(column.to_list(), dtype=object)
    return pd.DataFrame(columns, range(len(part)), copy=False)
