"""Frames of any engine: opened, read in batches of pandas columns, and the columns of a query as expressions."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError, need_columns, require
from ragnb.readers.executors import ROWS, on_spark, reduced
from ragnb.readers.frames import native
from ragnb.schema import CLIP, DRAWN, STATUS_WORDS, Metric
from ragnb.weights.columns import Array, Labels, coded, column_names, numeric, score_of, status_codes

if TYPE_CHECKING:
    import polars as pl

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]


def opened(frame: Any) -> Frame:
    """Return a frame of any engine for narwhals; an eager Polars frame is made lazy, so that it is optimised.

    Raises
    ------
    RagnbError
        For what is no data frame.

    Examples
    --------
    >>> opened(pd.DataFrame({"a": [1]})).columns
    ['a']
    """
    found: Frame = native(frame)
    eager_polars = isinstance(found, nw.DataFrame) and found.implementation.is_polars()
    return found.lazy() if eager_polars else found


def stays_lazy(frame: Any) -> bool:
    """Return whether the caller's frame is a query that has not run."""
    return isinstance(nw.from_native(frame), nw.LazyFrame)


def collected(frame: Frame) -> nw.DataFrame[Any]:
    """Run a query; Polars streams its rows, and DuckDB's result comes as pandas, which needs no Arrow."""
    if isinstance(frame, nw.DataFrame):
        return frame
    if frame.implementation.is_polars():
        return cast(nw.DataFrame[Any], nw.from_native(frame.to_native().collect(engine="streaming")))
    return frame.collect(backend="pandas") if frame.implementation.is_duckdb() else frame.collect()


def swift(frame: Frame) -> nw.LazyFrame[Any]:
    """Return a query over the rows; those of an eager frame go to Polars, which shares Arrow's numbers."""
    return nw.from_native(frame.to_polars()).lazy() if isinstance(frame, nw.DataFrame) else frame


def key_of(frame: Frame, column: str) -> nw.Expr:
    """Return a column as a group key: missing is null, a whole number its digits.

    Raises
    ------
    RagnbError
        For a column that is not there.
    """
    schema = frame.collect_schema()
    need_columns(schema.names(), [column])
    key, kind = nw.col(column), schema[column]
    if kind == nw.Unknown:
        return nw.lit(None, dtype=nw.String)
    if kind.is_float():
        return nw.when(~key.is_nan()).then(key)
    categorical = kind in (nw.Categorical, nw.Enum) and not frame.implementation.is_polars()
    return key.cast(nw.String) if kind.is_integer() or kind == nw.Date or categorical else key


def laid_out(frame: Frame, metrics: Sequence[Metric]) -> tuple[Frame, list[tuple[nw.Expr, str]]]:
    """Return a query with the scores as ``__v0``, ``__v1`` …, and the row-wise checks with their messages.

    A score within 1e-6 beyond an end of its range is that end.
    """
    schema = frame.collect_schema()
    values: dict[str, nw.Expr] = {}
    faults: list[tuple[nw.Expr, str]] = []
    for k, metric in enumerate(metrics):
        name, kind, low, high = metric.name, schema[metric.name], float(metric.low), float(metric.high)
        value = score_of(name, kind)
        values[f"__v{k}"] = value.clip(low, high)
        inside = (value >= low - CLIP) & (value <= high + CLIP) & value.is_finite()
        faults.append((~value.is_null() & ~inside, f"column {name!r} lies outside {low:g}..{high:g}"))
        if not kind.is_numeric() and kind != nw.Boolean:
            faults.append((~nw.col(name).is_null(), f"column {name!r} holds what is no score"))
        if f"{name}__status" in schema:
            word = key_of(frame, f"{name}__status").cast(nw.String)
            odd = ~word.is_null() & ~word.is_in(STATUS_WORDS)
            clash = word.is_in(["failed", "not_applicable"]) & ~value.is_null()
            faults.append((odd, f"column '{name}__status' holds what is no status"))
            faults.append((clash, f"column {name!r} has a number beside a status that has none"))
    return frame.with_columns(**values) if values else frame, faults


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
        self._values: dict[Metric, Array] = {}
        self._statuses: dict[Metric, npt.NDArray[np.int8]] = {}
        self.made: dict[int, npt.NDArray[Any]] = {}  # columns by the id of the expression that gave them
        self._labels: dict[tuple[str | None, bool], Labels] = {}

    def __len__(self) -> int:
        return len(self.frame)

    def values(self, metric: Metric) -> Array:
        """Return the scores of a metric, nan where there is none; see `numeric`."""
        if metric not in self._values:
            self._values[metric] = numeric(self.frame, metric)
        return self._values[metric]

    def with_values(self, values: Mapping[Metric, Array]) -> Batch:
        """Return the batch with the scores of other metrics; its labels are shared."""
        batch = Batch(self.frame)
        batch._values, batch._labels = dict(values), self._labels
        return batch

    def status(self, metric: Metric) -> npt.NDArray[np.int8]:
        """Return the status of each row; see `status_codes`."""
        if metric not in self._statuses:
            self._statuses[metric] = status_codes(self.frame, metric, self.values(metric))
        return self._statuses[metric]

    def labels(self, column: str | None, *, compose: bool = False) -> Labels:
        """Return a column as codes into sorted names; without a column no row has a label."""
        if (column, compose) not in self._labels:
            none = Labels(np.full(len(self), -1, dtype=np.int64), ())
            made = coded(self.frame[column], compose=compose) if column in self.frame else none
            self._labels[column, compose] = made
        return self._labels[column, compose]

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
        odd = ~np.isnan(chances) & ~((chances > 0) & (chances <= 1))
        if odd.any():
            raise RagnbError(f"column {DRAWN!r}: found {chances[odd][0]:g}, expected a number above 0 and up to 1")
        drawn: Array = np.divide(1.0, chances, out=np.zeros(len(self)), where=~np.isnan(chances))
        return drawn

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
        return Labels(np.where(named.codes < 0, len(named.names), named.codes), (*named.names, None))


@dataclass(frozen=True)
class Reduction:
    """A reduction computed in one pass over the rows.

    Attributes
    ----------
    kernel : function of a Batch
    finish : function of the list of what the kernel made
    columns : str or None
        What the kernel reads beside the metrics, where it is there.
    merge : function of the list of what the kernel made, optional
        Makes one of them on Spark's executors, so that what reaches the driver does not grow with the batches.
    """

    kernel: Callable[[Batch], Any]
    finish: Callable[[list[Any]], Any] = list
    columns: Sequence[str | None] = ()
    merge: Callable[[list[Any]], Any] | None = None


def reduce_batches(scores: Any, metrics: Sequence[Metric], reductions: Sequence[Reduction]) -> list[Any]:
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
    wanted = [name for name in dict.fromkeys(asked) if name in have] or have[:1]  # to count rows

    def take(part: pd.DataFrame, named: bool = False) -> list[list[Any]]:
        if named:
            part.index = pd.Index(part["sample_id"] if "sample_id" in part else ["?"] * len(part))
        batch = Batch(part)
        return [[one.kernel(batch)] for one in reductions]

    def merged(parts: list[list[list[Any]]]) -> list[list[Any]]:
        made = _joined(parts)
        return [[one.merge(of_one)] if one.merge else of_one for one, of_one in zip(reductions, made, strict=True)]

    try:
        made = _of_parts(scores, wanted, take, merged)
    except RagnbError:
        if stays_lazy(scores):  # a second pass finds the row's name, which the first one does not keep
            named = dict.fromkeys([*wanted, *(name for name in have if name == "sample_id")])
            _of_parts(scores, list(named), partial(take, named=True), merged)
        raise
    return [one.finish(of_one) for one, of_one in zip(reductions, made, strict=True)]


def _joined(parts: list[list[list[Any]]]) -> list[list[Any]]:
    return [[made for part in of_parts for made in part] for of_parts in zip(*parts, strict=True)]


def _of_parts(scores: Any, wanted: Sequence[str], take: Callable[..., Any], merged: Callable[..., Any]) -> Any:
    """Apply a function to the needed columns, batch by batch; return what each reduction made."""
    if isinstance(scores, pd.DataFrame):
        return take(pd.DataFrame({name: scores[name] for name in wanted}, scores.index, copy=False))
    rows = native(scores).select(*wanted)
    if on_spark(rows):
        return reduced(rows.to_native(), lambda part: take(_pandas(part)), merged)
    with closing(_parts(rows)) as parts:
        made = [take(_pandas(part)) for part in parts if len(part)]
    return _joined(made or [take(_pandas(collected(rows.head(0)).to_polars()))])


def _parts(rows: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> Generator[pl.DataFrame]:
    import polars as pl

    if isinstance(rows, nw.DataFrame):
        yield rows.to_polars()
    elif rows.implementation.is_polars():
        yield from rows.to_native().collect_batches(chunk_size=ROWS, maintain_order=True)
    else:
        require("pyarrow", extra="duckdb")
        relation = rows.to_native()
        reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch  # its name before 2.0
        with closing(reader(ROWS)) as stream:  # DuckDB runs no other query while one is open
            yield from map(pl.from_arrow, stream)


def _pandas(part: pl.DataFrame) -> pd.DataFrame:
    """Return a batch of Polars as pandas columns: numbers shared, texts coded."""
    import polars as pl

    made: dict[str, Any] = {}
    for column in part:
        if column.dtype.is_numeric() or column.dtype == pl.Boolean:
            whole = column.dtype.is_integer() and not column.null_count()
            numbers = column if whole else column.cast(pl.Float64).fill_null(np.nan)
            made[column.name] = numbers.to_numpy()
        elif column.dtype in (pl.String, pl.Categorical, pl.Enum):
            words = column.cast(pl.Categorical)
            codes, _ = pd.factorize(words.to_physical().to_numpy())  # in the order in which words appear, too
            names = words.unique(maintain_order=True).drop_nulls().cast(pl.String).to_list()
            made[column.name] = pd.Categorical.from_codes(codes, pd.Index(names, dtype=object))
        else:
            made[column.name] = pd.Series(column.to_list(), dtype=object)
    return pd.DataFrame(made, range(len(part)), copy=False)
