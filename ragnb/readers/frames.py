"""Frames of any engine under canonical column names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import narwhals as nw
import pandas as pd

from ragnb.errors import RagnbError, not_a_frame
from ragnb.polars import pl
from ragnb.readers.cells import as_text
from ragnb.readers.names import CASE_ALIASES, rename_map
from ragnb.readers.objects import as_record, columns_of_results, dict_of_lists
from ragnb.readers.owner import is_repeat_name, named_systems
from ragnb.readers.raw import (
    Lossy,
    Values,
    absent,
    check_columns,
    column,
    from_records,
    refuse_twice,
    text_series,
)
from ragnb.schema import METRICS, EvalCase, Metric

# What fits into 64 bits with a sign; ``UInt64`` does not.
_NUMBERS = (nw.Boolean, nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32)


def native(frame: Any, reader: str = "read_scores") -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    """Return a frame of any engine for narwhals.

    Raises
    ------
    RagnbError
        For what is no data frame, naming the `reader` that makes one of a file, and for two columns of one name.

    Examples
    --------
    >>> native(pd.DataFrame({"a": [1]})).shape
    (1, 1)
    """
    try:
        narwhals_frame: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(frame)
    except TypeError:
        raise not_a_frame(frame, "rn." + reader) from None
    except nw.exceptions.DuplicateError:
        # The `columns` of an Arrow table are its cells.
        refuse_twice(getattr(frame, "column_names", None) or list(map(str, frame.columns)))
        raise
    return narwhals_frame


def canonical(
    frame: Any,
    *kept: str | None,
    metrics: Iterable[Metric] = (),
    reader: str = "read_scores",
    picks: Mapping[str, str] = MappingProxyType({}),
) -> Any:
    """Return a frame whose columns have ragnb's names; it is the caller's own where nothing changes.

    Tools' names become ragnb's, as in files (``user_input`` is ``question``), where no column has that name yet.
    Named levels of a pandas index become columns too, at the end. A query gets the names and does not run.

    Parameters
    ----------
    frame : DataFrame of any engine, path, records or results
        What is no frame is read by `reader`.
    *kept : str or None
        Columns that the caller names; they stay what they are. Where ``system`` is one and not there, the one
        column that distinguishes systems is it.
    metrics : Metric objects
        The caller's own; a column of such a name is that metric.
    reader : str
        The reader that a message names for what is no frame.
    picks : mapping of column to name, optional
        The caller's choice, which comes before every other name.

    Raises
    ------
    RagnbError
        For what is no frame, columns in levels, two columns of one name, and two columns that mean one name.

    Examples
    --------
    >>> canonical(pd.DataFrame({"user_input": ["Who?"], "Faithfulness": [1.0]})).columns.tolist()
    ['question', 'faithfulness']
    """
    frame = brought(frame, reader)
    if not isinstance(frame, pd.DataFrame):
        narwhals_frame = native(frame, reader)
        schema = narwhals_frame.collect_schema()
        names = _names(schema.names(), kept, metrics, picks, lambda name: schema[name].is_numeric())
        if names:
            return narwhals_frame.rename(names).to_native()
        return frame
    check_columns(frame)
    levels = [
        i
        for i, name in enumerate(frame.index.names)
        if name is not None and name not in frame.columns
    ]
    if levels:
        index = frame.index
        cells_of_levels = {
            str(index.names[i]): index.get_level_values(i).to_numpy() for i in levels
        }
        frame = frame.assign(**cells_of_levels)
    texts = [name for name in frame.columns if isinstance(name, str)]
    names = _names(
        texts, kept, metrics, picks, lambda name: pd.api.types.is_numeric_dtype(frame[name])
    )
    if names:
        return frame.rename(columns=names)
    return frame


def as_called(made: Any, frame: Any, called: Any) -> Any:
    """Return `made`, rows of the `frame` that `canonical` made of `called`, under the names that `called` has.

    Examples
    --------
    >>> mine = pd.DataFrame({"user_input": ["Who?"]}, index=pd.Index(["a"], name="doc_name"))
    >>> named = canonical(mine)
    >>> as_called(named.assign(label="OK"), named, mine).columns.tolist()
    ['user_input', 'label']
    """
    if frame is called or not is_frame(called):
        return made
    our_names = nw.from_native(frame).collect_schema().names()
    their_names = nw.from_native(called).collect_schema().names()
    # `canonical` keeps the order of the columns and appends levels of the index, so `our_names` may be longer.
    pairs = zip(our_names, their_names, strict=False)
    renamed = {ours: theirs for ours, theirs in pairs if ours != theirs}
    if isinstance(made, pd.DataFrame):
        added_levels = our_names[len(their_names) :]  # which the index holds as well
        return made.drop(columns=added_levels).rename(columns=renamed)
    if renamed:
        return nw.from_native(made).rename(renamed).to_native()
    return made


def _names(
    columns: list[str],
    kept: Sequence[Any],
    metrics: Iterable[Metric],
    picks: Mapping[str, str],
    is_numeric: Callable[[str], bool],
) -> dict[str, str]:
    """Return the new names of columns, ``<metric>__status`` with its metric."""
    own_metrics = list(metrics)
    keep_names = {*METRICS, *CASE_ALIASES, *(metric.name for metric in own_metrics), *kept}
    try:
        unchanged = {name: name for name in columns if name in keep_names}
        names = rename_map(columns, picks=unchanged | dict(picks), metrics=own_metrics)
        if "system" in kept and "system" not in {*columns, *names.values()}:
            free = [name for name in columns if name not in kept and name not in names]
            # Numbers under a name such as `seed` or `run` count runs of one system.
            systems = [
                name
                for name in named_systems(free)
                if not (is_repeat_name(name) and is_numeric(name))
            ]
            if len(systems) == 1:
                names[systems[0]] = "system"
    except RagnbError as error:
        # The advice to pick one with `columns=` is for files: few functions of frames have that argument.
        message = str(error).partition("; pick one")[0]
        raise RagnbError(f"{message}; rename the intended column") from None
    for name in columns:
        base, bar, tail = name.partition("__")
        if bar and base in names:
            names[name] = f"{names[base]}__{tail}"
    return {name: new for name, new in names.items() if name != new}


def in_memory(source: Any, report: Lossy) -> dict[str, list[Any]]:
    """Return the columns of what is in memory; a named index becomes columns of its own."""
    if isinstance(source, pd.DataFrame):
        return _from_pandas(source, report)
    frame = nw.from_native(source, pass_through=True)
    if isinstance(frame, nw.DataFrame | nw.LazyFrame):
        return from_engine(frame.lazy().collect())
    results = columns_of_results(source)
    if results is not None:
        return results
    if callable(getattr(source, "to_pandas", None)):
        return in_memory(source.to_pandas(), report)
    lists = dict_of_lists(source)
    if lists is not None:
        return lists
    if isinstance(source, EvalCase | Mapping):
        source = [source]
    if isinstance(source, Iterable) and not isinstance(source, str | bytes):
        rows = [_without_nones(row) for row in source]
        records = [as_record(row) for row in rows]
        known = [record for record in records if record is not None]
        if len(known) == len(records):
            return from_records(known)
    raise RagnbError(
        f"cannot read a {type(source).__name__}; expected a path, a frame, an object with to_pandas(), a "
        "list of dicts or EvalCase, a dict of lists, or the results of an evaluator (ragas, Haystack, LlamaIndex)"
    )


def _from_pandas(source: pd.DataFrame, report: Lossy) -> dict[str, Values]:
    """Return the columns of a pandas frame, behind the named levels of its index."""
    index = source.index
    # Integers without a name only number the rows; anything else may have said something.
    unnamed = [index.get_level_values(i) for i, name in enumerate(index.names) if name is None]
    if any(not pd.api.types.is_integer_dtype(level) for level in unnamed):
        report.add("left_out", "", "index without a name", len(source))
    check_columns(source)
    levels = [name for name in index.names if name is not None and name not in source.columns]
    whole = source.reset_index(levels) if levels else source
    # pandas tells the columns 1 and "1" apart; files do not.
    names = [str(name) for name in whole.columns]
    refuse_twice(names)
    return {name: column(whole.iloc[:, i]) for i, name in enumerate(names)}


def _without_nones(row: Any) -> Any:
    """Return a case as a mapping of the fields that it has; any other row as it is."""
    if isinstance(row, EvalCase):
        return row.model_dump(exclude_none=True)
    return row


def is_frame(source: Any) -> bool:
    """Return whether a value is a data frame or query of some engine.

    Examples
    --------
    >>> is_frame(pd.DataFrame()), is_frame([{"question": "Who?"}])
    (True, False)
    """
    try:
        frame = nw.from_native(source, pass_through=True)
    except nw.exceptions.DuplicateError:
        return True  # `native` refuses it in words
    return isinstance(frame, nw.DataFrame | nw.LazyFrame)


def brought(source: Any, reader: str) -> Any:
    """Return a frame as it is, and a path, records or results as the named reader reads them."""
    if is_frame(source):
        return source
    # Imported here because these readers import this module.
    from ragnb.readers import samples, traces

    readers = {
        "read_scores": samples.read_scores,
        "read_cases": samples.read_cases,
        "read_traces": traces.read_traces,
        "read_gold": traces.read_gold,
    }
    return readers[reader](source)


def from_engine(frame: nw.DataFrame[Any]) -> dict[str, Values]:
    """Return the columns of a frame of another engine than pandas, whole where of one simple type."""
    columns: dict[str, Values] = {}
    for name in frame.columns:
        cells = frame[name]
        kind = frame.schema[name]
        if kind in (nw.String, nw.Categorical, nw.Enum):
            columns[str(name)] = column(text_series(cells.cast(nw.String)))
        # Whole numbers with gaps would be floats in NumPy, which round those above 2**53.
        elif kind.is_float() or (kind in _NUMBERS and not cells.null_count()):
            columns[str(name)] = column(pd.Series(cells.to_numpy()))
        else:
            columns[str(name)] = cells.to_list()
    return columns


def polars_series(name: str, cells: Sequence[Any]) -> pl.Series:
    """Return cells as a Polars series; cells of several types become text.

    Examples
    --------
    >>> polars_series("a", [1, "b"]).to_list(), polars_series("a", [1, 2.5, float("nan")]).to_list()
    (['1', 'b'], [1.0, 2.5, None])
    """
    values = [None if absent(cell) else cell for cell in cells]
    types = set(map(type, values)) - {type(None)}
    # Polars would infer the type from the first cells, and refuse a float behind whole numbers.
    dtype = pl.Float64 if types == {int, float} else None
    with suppress(TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        return pl.Series(name, values, dtype=dtype)
    return pl.Series(name, [as_text(cell) for cell in values], dtype=pl.String)
