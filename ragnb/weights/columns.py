"""The columns of a caller's frame: its metrics, scores and labels, as arrays and as expressions of a query.

Numeric columns have gaps, and are checked against their metric's range and status words.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError, RagnbWarning, listing, need_columns, outside, place
from ragnb.readers.frames import canonical, native
from ragnb.readers.names import rename_map
from ragnb.readers.reading import metrics_of_tool, remembered
from ragnb.schema import (
    CLIP,
    METRICS,
    NOT_METRICS,
    Metric,
    declare_step,
    metric_list,
    resolve_metrics,
)
from ragnb.weights.total import Array, Flags, canonical_name, nfc

Codes = npt.NDArray[np.int64]
MetricsArgument = str | Metric | Iterable[str | Metric] | None
Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]
# The codes of `status_codes`. A gap that was never scored needs none: it is what is neither scored nor of these.
FAILED = 1
ABSENT = 2
_STATUSES = {"ok": 0, "not_applicable": ABSENT, "failed": FAILED, "missing": 0}
_NO_SCORE = re.compile(
    r"(time|stamp|latency|duration|second|cost|price|token|index|id|count|length|rank)s?$"
)


@dataclass(frozen=True)
class Labels:
    """Codes into labels; −1 if missing. For groups, None is the name of rows without one."""

    codes: Codes
    names: tuple[Any, ...]


def count_where(condition: nw.Expr, name: str) -> nw.Expr:
    """Return how many rows meet a condition, as a column of this name.

    Examples
    --------
    >>> frame = nw.from_native(pd.DataFrame({"score": [1, 0, 1]}))
    >>> int(frame.select(count_where(nw.col("score") > 0, "n"))["n"].item())
    2
    """
    return nw.when(condition).then(1).otherwise(0).sum().alias(name)


def column_names(frame: Any) -> list[str]:
    """Return the columns of a frame of any engine.

    Examples
    --------
    >>> column_names(pd.DataFrame({"a": [1]}))
    ['a']
    """
    if isinstance(frame, pd.DataFrame):
        return [str(name) for name in frame.columns]
    return native(frame).collect_schema().names()


def scored(
    scores: Any, metrics: MetricsArgument, *kept: str | None
) -> tuple[Any, tuple[Metric, ...]]:
    """Return a frame under canonical names, and its selected metrics.

    Parameters
    ----------
    scores : DataFrame of any engine
    metrics : names or Metric objects, or None
        As `resolve_metrics` takes them; a name may be what a tool calls the metric. None is all that ragnb knows,
        and of a table that a reader made all that its tool declares, too.
    *kept : str or None
        Columns that the caller names; they stay what they are.

    Raises
    ------
    RagnbError
        As `canonical` and `resolve_metrics`; for None where no column is a metric that ragnb knows.

    Examples
    --------
    >>> frame, chosen = scored(pd.DataFrame({"Faithfulness": [1.0]}), None)
    >>> frame.columns.tolist(), [metric.name for metric in chosen]
    (['faithfulness'], ['faithfulness'])
    """
    given = metric_list(metrics)
    if given is None:
        of_tool = remembered(scores).metrics
        given = [*metrics_of_tool(of_tool, column_names(scores) if of_tool else ())] or None
    declared_metrics = [item for item in given or () if isinstance(item, Metric)]
    if _was_resolved(given, declared_metrics):
        have = column_names(scores)
        if {metric.name for metric in declared_metrics} <= set(have):
            # Metrics that were resolved before come with a frame that was named before.
            kept = (*kept, *have)
    frame = canonical(scores, *kept, metrics=declared_metrics)
    columns = column_names(frame)
    if given is not None:
        given = [_named(item, columns, declared_metrics) for item in given]
    chosen = resolve_metrics(given, columns)
    if given is None and not chosen:
        raise _no_metric(frame)
    return frame, chosen


def _was_resolved(given: Sequence[str | Metric] | None, declared: Sequence[Metric]) -> bool:
    """Return whether metrics are what `scored` itself returned: objects alone, and one of them ragnb's own."""
    if not declared or declared != given:
        return False
    return any(METRICS.get(metric.name) == metric for metric in declared)


def _named(item: str | Metric, columns: Sequence[str], declared: Sequence[Metric]) -> str | Metric:
    """Return a metric's own name for what a tool calls it, and else the same."""
    if isinstance(item, str) and item not in columns:
        return rename_map([item], metrics=declared).get(item, item)
    return item


def _no_metric(frame: Any) -> RagnbError:
    """Return the error for a frame without a metric: what may be one, and how to declare it."""
    rows = native(frame)
    kinds = {str(name): kind for name, kind in rows.collect_schema().items()}
    numeric = [name for name, kind in kinds.items() if kind.is_numeric()]
    others = (name for name in numeric if name not in NOT_METRICS and "__" not in name)
    # Last what is hardly a score, as the first is named in the example.
    numbers = sorted(others, key=lambda name: bool(_NO_SCORE.search(name.casefold())))
    step = "score the answers first, with rn.evaluate or rn.judge, or read the file that holds the scores"
    if numbers:
        step = f"declare those that are scores: metrics=[rn.Metric({numbers[0]!r}, low, high)]"
        if isinstance(rows, nw.DataFrame):
            column = rows[numbers[0]].drop_nulls()
            low = 0.0
            high = 1.0
            if len(column):
                low = float(column.min())
                high = float(column.max())
            if low >= 0 and high <= 1:
                step = f"declare its scale: metrics=[rn.Metric({numbers[0]!r})] if it is 0..1"
            else:
                step = declare_step(numbers[0], low, high)
    return RagnbError(
        f"no column is a metric that ragnb knows (columns: {listing(kinds)}; numeric: {listing(numbers)}); {step}"
    )


def as_pandas(frame: Any) -> pd.DataFrame:
    """Return a pandas frame; other engines' frames are collected.

    Examples
    --------
    >>> as_pandas(pd.DataFrame({"a": [1]})).shape
    (1, 1)
    """
    if isinstance(frame, pd.DataFrame):
        return frame
    found = native(frame)
    if isinstance(found, nw.LazyFrame):
        eager = found.collect()
    else:
        eager = found
    columns: dict[str, Any] = {}
    for name, kind in eager.schema.items():
        # Only as a list does anything but floats keep its gaps as None.
        columns[name] = eager[name].to_numpy() if kind == nw.Float64 else eager[name].to_list()
    return pd.DataFrame(columns)


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
    if eager_polars:
        return found.lazy()
    return found


def stays_lazy(frame: Any) -> bool:
    """Return whether the caller's frame is a query that has not run."""
    return isinstance(nw.from_native(frame), nw.LazyFrame)


def collected(frame: Frame) -> nw.DataFrame[Any]:
    """Run a query; Polars streams its rows, and DuckDB's result comes as pandas, which needs no Arrow."""
    if isinstance(frame, nw.DataFrame):
        return frame
    if frame.implementation.is_polars():
        return cast(
            nw.DataFrame[Any], nw.from_native(frame.to_native().collect(engine="streaming"))
        )
    if frame.implementation.is_duckdb():
        return frame.collect(backend="pandas")
    return frame.collect()


def swift(frame: Frame) -> nw.LazyFrame[Any]:
    """Return a query over the rows; those of an eager frame go to Polars, which shares Arrow's numbers."""
    if isinstance(frame, nw.DataFrame):
        return nw.from_native(frame.to_polars()).lazy()
    return frame


def key_of(frame: Frame, column: str) -> nw.Expr:
    """Return a column as a group key: missing is null, and so is a number that is none.

    Raises
    ------
    RagnbError
        For a column that is not there.
    """
    schema = frame.collect_schema()
    need_columns(schema.names(), [column])
    key = nw.col(column)
    kind = schema[column]
    if kind == nw.Unknown:
        return nw.lit(None, dtype=nw.String)
    if kind.is_float():
        return nw.when(~key.is_nan()).then(key)
    return key


def score_of(name: str, kind: Any) -> nw.Expr:
    """Return a column of this type as floats, null for every gap."""
    if not kind.is_numeric() and kind != nw.Boolean:
        return nw.lit(None, dtype=nw.Float64)
    value = nw.col(name).cast(nw.Float64)
    if kind.is_float():
        return nw.when(~value.is_nan()).then(value)
    return value


def laid_out(frame: Frame, metrics: Sequence[Metric]) -> tuple[Frame, list[tuple[nw.Expr, str]]]:
    """Return a query with the scores as ``__v0``, ``__v1`` …, and the row-wise checks with their messages.

    A score within 1e-6 beyond an end of its range is that end.
    """
    schema = frame.collect_schema()
    values: dict[str, nw.Expr] = {}
    faults: list[tuple[nw.Expr, str]] = []
    for k, metric in enumerate(metrics):
        name = metric.name
        kind = schema[metric.name]
        low = float(metric.low)
        high = float(metric.high)
        value = score_of(name, kind)
        values[f"__v{k}"] = value.clip(low, high)
        inside = (value >= low - CLIP) & (value <= high + CLIP) & value.is_finite()
        is_outside = ~value.is_null() & ~inside
        faults.append((is_outside, f"column {name!r} lies outside {low:g}..{high:g}"))
        if not kind.is_numeric() and kind != nw.Boolean:
            faults.append((~nw.col(name).is_null(), f"column {name!r} holds what is no score"))
        if f"{name}__status" in schema:
            word = key_of(frame, f"{name}__status").cast(nw.String)
            odd = ~word.is_null() & ~word.is_in(list(_STATUSES))
            clash = word.is_in(["failed", "not_applicable"]) & ~value.is_null()
            faults.append((odd, f"column '{name}__status' holds what is no status"))
            faults.append((clash, f"column {name!r} has a number beside a status that has none"))
    return frame.with_columns(**values) if values else frame, faults


def numeric(frame: pd.DataFrame, metric: Metric) -> Array:
    """Return a metric's column as floats, nan if there is no score.

    A value within 1e-6 of an end of the range, beyond it, is that end; a warning says so.

    Raises
    ------
    RagnbError
        For text, infinity, or a value outside the metric's range, with the row.

    Examples
    --------
    >>> numeric(pd.DataFrame({"faithfulness": [1, None]}), Metric("faithfulness"))
    array([ 1., nan])
    """
    column = frame[metric.name]
    if getattr(column.dtype, "kind", "O") in "mMc":
        raise RagnbError(
            f"column {metric.name!r} holds {column.dtype}, which is not a score; convert it to numbers in "
            f"{metric.low:g}..{metric.high:g}"
        )
    if not pd.api.types.is_numeric_dtype(column.dtype):
        odd = np.array([not _is_score(cell) for cell in column], dtype=bool)
        if odd.any():
            at = int(np.argmax(odd))
            cell = column.iloc[at]
            kind = "text" if isinstance(cell, str) else f"of type {type(cell).__name__}"
            raise RagnbError(
                f"column {metric.name!r}, row {column.index[at]!r}: {cell!r} is {kind}, not a score; "
                "read the file with rn.read_scores, or convert the column to numbers"
            )
    values: Array
    if column.dtype == np.float64:
        values = column.to_numpy()  # without a copy
    else:
        values = column.to_numpy(dtype=float, na_value=np.nan)

    def is_wrong(x: Array) -> Flags:
        return np.isinf(x) | (x < metric.low - CLIP) | (x > metric.high + CLIP)

    # Both ends tell whether any value is wrong: the rows are walked over a second time only where one is.
    least = np.fmin.reduce(values, initial=np.nan)
    most = np.fmax.reduce(values, initial=np.nan)
    if is_wrong(np.array([least, most])).any():
        position = int(np.argmax(is_wrong(values)))
        raise RagnbError(
            f"column {metric.name!r}, row {frame.index[position]!r}: {float(values[position])!r} lies outside "
            f"{metric.low:g}..{metric.high:g}; {declare_step(metric.name, least, most)}"
        )
    if least < metric.low or most > metric.high:
        beyond = least if least < metric.low else most
        warnings.warn(
            f"column {metric.name!r}: {float(beyond)!r} and other values within {CLIP:g} of an end of "
            f"{metric.low:g}..{metric.high:g} are set to that end",
            RagnbWarning,
            stacklevel=outside(),
        )
        values = np.clip(values, metric.low, metric.high)
    return values


def _is_score(cell: Any) -> bool:
    """Whether a cell is a real number or missing."""
    if isinstance(cell, int | float | Decimal | np.floating | np.integer | np.bool_):
        return not isinstance(cell, np.timedelta64)  # which NumPy calls an integer
    return cell is None or (pd.api.types.is_scalar(cell) and bool(pd.isna(cell)))


def status_codes(frame: pd.DataFrame, metric: Metric, values: Array) -> npt.NDArray[np.int8]:
    """Return for every row 0 (ok or missing), 1 (failed) or 2 (not applicable).

    Raises
    ------
    RagnbError
        For a status that is no status word, and for a number whose status is failed or not_applicable.

    Examples
    --------
    >>> frame = pd.DataFrame({"faithfulness": [None], "faithfulness__status": ["failed"]})
    >>> status_codes(frame, Metric("faithfulness"), np.array([np.nan]))
    array([1], dtype=int8)
    """
    name = f"{metric.name}__status"
    if name not in frame.columns:
        return np.zeros(len(frame), dtype=np.int8)
    label = coded(frame[name])
    of_words = [_STATUSES.get(word, -1) for word in label.names]
    # A row without a status has the label −1, which is the last.
    codes = np.array([*of_words, 0], dtype=np.int8)[label.codes]
    if (codes < 0).any():
        at = int(np.argmin(codes))
        raise RagnbError(
            f"column {name!r}, row {frame.index[at]!r}: {label.names[label.codes[at]]!r} is not a status "
            f"(have: {listing(_STATUSES)})"
        )
    clash = (codes > 0) & ~np.isnan(values)
    if clash.any():
        at = int(np.argmax(clash))
        raise RagnbError(
            f"column {metric.name!r}, row {frame.index[at]!r}: {float(values[at])!r} has "
            f"status {frame[name].iloc[at]!r}; a score that failed or is not applicable has no number"
        )
    return codes


def coded(values: Any, *, compose: bool = False) -> Labels:
    """Return values as codes into their sorted names, −1 if missing.

    Parameters
    ----------
    values : array of labels
    compose : bool
        Whether names are equal under Unicode form NFC.

    Raises
    ------
    RagnbError
        For lists and mappings.

    Examples
    --------
    >>> coded(pd.Series(["b", None, "a"]))
    Labels(codes=array([ 1, -1,  0]), names=('a', 'b'))
    """
    is_text = isinstance(getattr(values, "dtype", None), pd.StringDtype)
    try:
        codes, uniques = pd.factorize(values, sort=is_text)
    except TypeError:
        where = place(key=getattr(values, "name", None))
        raise RagnbError(
            f"{where}lists and mappings cannot name a group, document or cluster; convert them to text"
        ) from None
    # Of a column of gaps alone, pandas before 3.1 names the gap.
    distinct: list[Any] = []
    if not (codes < 0).all():
        distinct = np.asarray(uniques, object).tolist()
    if is_text and "".join(distinct).isascii():  # sorted, and spelt in one way
        return Labels(codes, tuple(distinct))
    named = nfc if compose else canonical_name
    spelt = [name if type(name) is str and name.isascii() else named(name) for name in distinct]
    try:
        texts: Any = pd.Series(spelt, dtype="str")
    except UnicodeEncodeError:  # half a surrogate pair
        texts = pd.Series(spelt, dtype=object)
    # One name may be spelt in two ways, so that two values have one rank. A gap stays −1.
    ranks, names = pd.factorize(texts, sort=True)
    return Labels(np.append(ranks, -1).take(codes), tuple(names.tolist()))
