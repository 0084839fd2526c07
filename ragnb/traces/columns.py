"""Columns of a frame of any engine as Polars series, and new columns back onto the caller's kind of frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, require
from ragnb.polars import pl
from ragnb.readers.frames import native, polars_series
from ragnb.readers.nested import passages_with_ids
from ragnb.readers.raw import absent
from ragnb.traces.answers import composed

GOLD_COLUMNS = ("answerable", "gold_ids", "gold_claim")


def workable(frame: Any) -> Any:
    """Return a pandas frame as it is, and a frame of another engine as a Polars one.

    Examples
    --------
    >>> workable(pd.DataFrame({"a": [1]})).shape
    (1, 1)
    """
    if isinstance(frame, pd.DataFrame):
        return pd.DataFrame(frame)  # without attrs, which pandas copies deeply at every step
    rows = native(frame)
    if isinstance(rows, nw.LazyFrame):
        rows = rows.collect()
    return rows.to_polars()


def with_chunks(frame: Any) -> Any:
    """Return a pandas or Polars frame with ``chunks``, where its ``retrieved_contexts`` are objects with ids.

    So do the readers of files: without ids a retrieved passage is never found, and no citation names one.

    Examples
    --------
    >>> contexts = [[{"id": "a", "text": "Ann pays."}]]
    >>> with_chunks(pd.DataFrame({"retrieved_contexts": contexts}))["chunks"].tolist()
    [[{'id': 'a', 'text': 'Ann pays.'}]]
    """
    if "chunks" in frame.columns or "retrieved_contexts" not in frame.columns:
        return frame
    passages = passages_with_ids(cells(frame, "retrieved_contexts"))
    if passages is None:
        return frame
    if isinstance(frame, pd.DataFrame):
        return frame.assign(chunks=pd.Series(passages, index=frame.index, dtype=object))
    return frame.with_columns(pl.Series("chunks", passages))


def as_brought(made: Any, frame: Any) -> Any:
    """Convert a Polars frame back to the caller's kind of frame; one of pandas keeps the caller's ``attrs``.

    A query is run for its rows, and comes back as one over them. DuckDB's rows come back by PyArrow, where that
    is installed, on DuckDB's default connection.

    Examples
    --------
    >>> import polars as pl
    >>> type(as_brought(pl.DataFrame({"a": [1]}), pl.LazyFrame({"a": [1]}))).__name__
    'LazyFrame'
    """
    if isinstance(made, pd.DataFrame):
        made.attrs = dict(frame.attrs)
        return made
    rows = native(frame)
    kind = rows.implementation
    if kind.is_polars():
        if isinstance(rows, nw.LazyFrame):
            return made.lazy()
        return made
    if kind.is_pyarrow():
        return made.to_arrow()
    if kind.is_duckdb():
        require("pyarrow", extra="duckdb")
        return require("duckdb", extra="duckdb").from_arrow(made.to_arrow())
    return made


def column(frame: Any, name: str) -> pl.Series:
    """Return a column as a Polars series, all null where it does not exist; cells of several types stay objects.

    Examples
    --------
    >>> column(pd.DataFrame({"a": ["x", None]}), "a").dtype, column(pd.DataFrame({"a": [1, "b"]}), "a").dtype
    (String, Object)
    """
    if name not in frame.columns:
        return pl.Series(name, [None] * len(frame), dtype=pl.Null)
    if not isinstance(frame, pd.DataFrame):
        series: pl.Series = frame[name]
        return series
    kind = frame[name].dtype
    # The buffer is handed over as it is, and no text is copied.
    if isinstance(kind, pd.StringDtype) and kind.storage == "pyarrow":
        return pl.Series(name, frame[name].array.__arrow_array__(), dtype=pl.String)
    values = cells(frame, name)
    kinds = set(map(type, values)) - {type(None)}
    if kinds == {str}:
        return as_series(values).alias(name)
    if not kinds:
        return pl.Series(name, values, dtype=pl.Null)
    if kinds == {bool}:
        return pl.Series(name, values, dtype=pl.Boolean)
    return pl.Series(name, values, dtype=pl.Object)


def cells(frame: Any, name: str) -> list[Any]:
    """Return a column as Python objects."""
    values: list[Any]
    if isinstance(frame, pd.DataFrame):
        values = frame[name].to_numpy(dtype=object).tolist()
    else:
        values = frame[name].to_list()
    return values


def as_series(values: Sequence[str | None]) -> pl.Series:
    """Return texts as a Polars series; half a surrogate pair, which no engine supports, becomes ``?``.

    Examples
    --------
    >>> as_series(["a", None]).to_list(), as_series(["\\ud800"]).to_list()
    (['a', None], ['?'])
    """
    try:
        return pl.Series(values, dtype=pl.String)
    except UnicodeEncodeError:
        clean = [
            None if text is None else text.encode("utf-8", "replace").decode("utf-8")
            for text in values
        ]
        return pl.Series(clean, dtype=pl.String)


def texts(frame: Any, name: str) -> pl.Series:
    """Return a column as texts, null where a cell is absent.

    Examples
    --------
    >>> texts(pd.DataFrame({"a": ["x", None, 3]}), "a").to_list()
    ['x', None, '3']
    """
    series = column(frame, name)
    if series.dtype in (pl.String, pl.Null) or series.dtype.is_integer():
        return series.cast(pl.String)
    return as_series([None if absent(cell) else str(cell) for cell in series.to_list()])


def ids(frame: Any, name: str) -> pl.Series:
    """Return a column of ids as texts in one form, null where there is none or it is blank.

    Examples
    --------
    >>> ids(pd.DataFrame({"a": [12, " a ", 3.0, ""]}), "a").to_list()
    ['12', 'a', '3', None]
    """
    series = column(frame, name)
    is_plain = series.dtype.is_integer() or series.dtype in (pl.String, pl.Null)
    if is_plain:
        return _one_form(texts(frame, name))
    return _one_form(as_series([_id_text(cell) for cell in series.to_list()]))


def id_lists(frame: Any, name: str) -> pl.Series:
    """Return a column of lists of ids, or of chunks with an ``id``; an entry without an id is null.

    Raises
    ------
    RagnbError
        If a cell is no list.

    Examples
    --------
    >>> id_lists(pd.DataFrame({"chunks": [[{"id": 7}, {"text": "x"}], [], None]}), "chunks").to_list()
    [['7', None], [], None]
    """
    if name not in frame.columns:
        return column(frame, name).cast(pl.List(pl.String))
    if not isinstance(frame, pd.DataFrame):
        # Lists of texts, or of objects whose id is a text, stay in Polars.
        inner = getattr(frame[name].dtype, "inner", None)
        if inner == pl.String:
            return _lists_in_one_form(frame[name])
        if isinstance(inner, pl.Struct) and dict(inner).get("id") == pl.String:
            return _lists_in_one_form(frame[name].list.eval(pl.element().struct.field("id")))
    lists = [None if absent(cell) else cell for cell in cells(frame, name)]
    for row, cell in enumerate(lists):
        if cell is not None and not isinstance(cell, list | tuple | np.ndarray):
            raise RagnbError(
                f"column {name!r}, row {_label(frame, row)!r}: {str(cell)[:60]!r} is not a list of ids; "
                "read the file with rn.read_traces or rn.read_gold"
            )
    return _nested_ids(lists, name)


def _lists_in_one_form(lists: pl.Series) -> pl.Series:
    one_form = pl.element().map_batches(_one_form, return_dtype=pl.String, is_elementwise=True)
    return lists.list.eval(one_form)


def _nested_ids(lists: Sequence[Sequence[Any] | None], name: str) -> pl.Series:
    """Return lists of ids or of chunks as a Polars series of lists of ids."""
    # One flat column of all entries is made faster than a column of lists.
    entries = [item for cell in lists if cell is not None for item in cell]
    entries = [item.get("id") if type(item) is dict else item for item in entries]
    if not set(map(type, entries)) <= {str, type(None)}:
        entries = [_id_text(entry) for entry in entries]
    places = np.arange(len(lists))
    sizes = [0 if cell is None else len(cell) for cell in lists]
    flat = pl.DataFrame({"row": np.repeat(places, sizes), name: _one_form(as_series(entries))})
    grouped = flat.group_by("row", maintain_order=True).agg(name)

    is_there = pl.Series("there", [cell is not None for cell in lists], dtype=pl.Boolean)
    rows = pl.DataFrame({"row": places, "there": is_there})
    nested = rows.join(grouped, on="row", how="left", maintain_order="left")
    # Neither an empty list nor a missing one has entries, so neither has a group: `there` tells them apart.
    empty = pl.lit([], pl.List(pl.String))
    return nested.select(pl.when("there").then(pl.col(name).fill_null(empty)))[name]


def distinct(lists: pl.Series) -> pl.Series:
    """Return lists with each id once, in their order, and nothing in the place of no id."""
    return lists.list.drop_nulls().list.unique(maintain_order=True)


def _one_form(names: pl.Series) -> pl.Series:
    """Return ids in NFC without white space at their ends, null for blank ones."""
    names = composed(names).str.strip_chars()
    return names.set(names == "", None)


def _id_text(value: Any) -> str | None:
    """Return the id that a cell or a chunk holds as text, None without one."""
    if isinstance(value, dict):
        value = value.get("id")
    if value is None or isinstance(value, str):
        return value
    # A column of ids with a gap is read as floats by pandas: 12.0 is the id 12.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if absent(value):
        return None
    return str(value)


def answerable(frame: Any) -> pl.Series:
    """Return the column ``answerable`` as 1 and 0, null where a cell is absent.

    Raises
    ------
    RagnbError
        For a value that is not true or false.

    Examples
    --------
    >>> answerable(pd.DataFrame({"answerable": [True, 0, None]})).to_list()
    [1.0, 0.0, None]
    """
    series = column(frame, "answerable")
    if series.dtype in (pl.Boolean, pl.Null):
        return series.cast(pl.Float64)
    values: list[float | None] = []
    for row, cell in enumerate(series.to_list()):
        if absent(cell):
            values.append(None)
            continue
        is_number = isinstance(cell, int | float | np.bool_ | np.number)
        if not is_number or cell not in (0, 1):
            label = _label(frame, row)
            raise RagnbError(
                f"column 'answerable', row {label!r}: {cell!r} is neither true nor false"
            )
        values.append(float(cell))
    return pl.Series(values, dtype=pl.Float64)


def _label(frame: Any, row: int) -> Any:
    """Return what a row is called in an error: its index in pandas, else its number."""
    if isinstance(frame, pd.DataFrame):
        return frame.index[row]
    return row


def with_gold(traces: Any, gold: Any, rows: pl.Series) -> Any:
    """Return the traces with gold's columns: gold owns its own, and fills the gaps of what both have.

    Parameters
    ----------
    traces, gold : DataFrame of pandas or Polars
    rows : (N,) series of int
        The row of gold that each trace met, null for none.
    """
    frame = traces[[name for name in traces.columns if name not in GOLD_COLUMNS]]
    if not isinstance(frame, pd.DataFrame):
        gathered = []
        for name in gold.columns:
            series = column(gold, name)
            if series.dtype == pl.Object:
                series = polars_series(series.name, series.to_list())
            gathered.append(series.gather(rows))
        theirs = pl.DataFrame(gathered)
        return frame.with_columns(**{series.name: _filled(frame, series) for series in theirs})
    if not isinstance(gold, pd.DataFrame):
        gold = pd.DataFrame({name: gold[name].to_list() for name in gold.columns})
    # There is no row -1, so that traces that met no gold get missing cells.
    met = gold.reset_index(drop=True).reindex(rows.fill_null(-1).to_numpy())
    theirs = met.set_axis(frame.index)
    return frame.assign(**{name: _filled(frame, theirs[name]) for name in theirs})


def _filled(frame: Any, theirs: Any) -> Any:
    """Return a column of a frame with its gaps filled, the other one where it has none of that name."""
    if theirs.name not in frame.columns:
        return theirs
    ours = frame[theirs.name]
    if isinstance(ours, pd.Series):
        if ours.isna().any():
            return ours.astype(object).where(ours.notna(), theirs)
        return ours
    if not ours.null_count():
        return ours
    # A Polars column has one type; text is the one that holds both.
    if ours.dtype != theirs.dtype:
        ours = ours.cast(pl.String)
        theirs = theirs.cast(pl.String)
    return ours.zip_with(ours.is_not_null(), theirs)


def assemble(frame: Any, new: pl.DataFrame) -> Any:
    """Return the frame with new columns in the place of those it had."""
    kept = frame[[name for name in frame.columns if name not in new.columns]]
    if not isinstance(frame, pd.DataFrame):
        return kept.hstack(new)
    pandas_columns = {series.name: _for_pandas(series, frame.index) for series in new}
    return pd.concat([kept, pd.DataFrame(pandas_columns, frame.index)], axis=1)


def _for_pandas(series: pl.Series, index: pd.Index[Any]) -> Any:
    """Return a Polars column as pandas holds it."""
    # pandas' own booleans know no gap, and `citations_flagged` has none.
    if series.dtype == pl.Boolean and series.name != "citations_flagged":
        is_missing = series.is_null().to_numpy()
        return pd.arrays.BooleanArray(series.fill_null(False).to_numpy(writable=True), is_missing)
    if isinstance(series.dtype, pl.Enum):
        # Words are looked up by their codes, which makes no text for each row; the code -1 takes the last, None.
        words = np.array([*series.dtype.categories, None], dtype=object)
        codes = series.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        dtype = None if series.name.endswith("__status") else object
        return pd.Series(words[codes], index, dtype)
    if isinstance(series.dtype, pl.List):
        return pd.Series(series.to_list(), index, dtype=object)
    return series.to_numpy()
