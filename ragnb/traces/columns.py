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
    found = native(frame)
    return (found.collect() if isinstance(found, nw.LazyFrame) else found).to_polars()


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
    found = native(frame)
    kind = found.implementation
    if kind.is_polars():
        if isinstance(found, nw.LazyFrame):
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
    pandas = isinstance(frame, pd.DataFrame)
    out: list[Any]
    if pandas:
        out = frame[name].to_numpy(dtype=object).tolist()
    else:
        out = frame[name].to_list()
    return out


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
        clean = [v if v is None else v.encode("utf-8", "replace").decode("utf-8") for v in values]
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
    known = series.dtype.is_integer() or str(series.dtype) in ("String", "Null")
    return _one_form(texts(frame, name) if known else as_series([*map(_id_text, series.to_list())]))


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
    if isinstance(frame, pd.DataFrame):
        kind = None
    else:
        kind = frame[name].dtype
    inner = getattr(kind, "inner", None)
    if inner == pl.String or (isinstance(inner, pl.Struct) and dict(inner).get("id") == pl.String):
        if inner == pl.String:
            entry = pl.element()
        else:
            entry = pl.element().struct.field("id")
        one_form = pl.element().map_batches(_one_form, return_dtype=pl.String, is_elementwise=True)
        series: pl.Series = frame[name].list.eval(entry).list.eval(one_form)
        return series
    lists = [None if absent(cell) else cell for cell in cells(frame, name)]
    for row, cell in enumerate(lists):
        if cell is not None and not isinstance(cell, list | tuple | np.ndarray):
            raise RagnbError(
                f"column {name!r}, row {_label(frame, row)!r}: {str(cell)[:60]!r} is not a list of ids; "
                "read the file with rn.read_traces or rn.read_gold"
            )
    # One flat column of all entries is made faster than a column of lists.
    entries = [item for cell in lists if cell is not None for item in cell]
    entries = [item.get("id") if type(item) is dict else item for item in entries]
    if not set(map(type, entries)) <= {str, type(None)}:
        entries = [*map(_id_text, entries)]
    rows = np.repeat(np.arange(len(lists)), [0 if cell is None else len(cell) for cell in lists])
    flat = pl.DataFrame({"row": rows, name: _one_form(as_series(entries))})
    there = pl.Series("there", [cell is not None for cell in lists], dtype=pl.Boolean)
    nested = pl.DataFrame({"row": np.arange(len(lists)), "there": there}).join(
        flat.group_by("row", maintain_order=True).agg(name),
        on="row",
        how="left",
        maintain_order="left",
    )
    return nested.select(
        pl.when("there").then(pl.col(name).fill_null(pl.lit([], pl.List(pl.String))))
    )[name]


def distinct(lists: pl.Series) -> pl.Series:
    """Return lists with each id once, in their order, and nothing in the place of no id."""
    return lists.list.drop_nulls().list.unique(maintain_order=True)


def _one_form(names: pl.Series) -> pl.Series:
    names = composed(names).str.strip_chars()
    return names.set(names == "", None)


def _id_text(value: Any) -> str | None:
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
    values = [None if absent(cell) else cell for cell in series.to_list()]
    for row, cell in enumerate(values):
        if cell is not None and not (
            isinstance(cell, int | float | np.bool_ | np.number) and cell in (0, 1)
        ):
            label = _label(frame, row)
            raise RagnbError(
                f"column 'answerable', row {label!r}: {cell!r} is neither true nor false"
            )
    return pl.Series([cell if cell is None else float(cell) for cell in values], dtype=pl.Float64)


def _label(frame: Any, row: int) -> Any:
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
        columns = [column(gold, name) for name in gold.columns]
        columns = [
            polars_series(one.name, one.to_list()) if one.dtype == pl.Object else one
            for one in columns
        ]
        theirs = pl.DataFrame([one.gather(rows) for one in columns])
        return frame.with_columns(**{series.name: _filled(frame, series) for series in theirs})
    if not isinstance(gold, pd.DataFrame):
        gold = pd.DataFrame({name: gold[name].to_list() for name in gold.columns})
    theirs = (
        gold.reset_index(drop=True).reindex(rows.fill_null(-1).to_numpy()).set_axis(frame.index)
    )
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
    if ours.null_count() and ours.dtype != theirs.dtype:
        ours = ours.cast(pl.String)
        theirs = theirs.cast(pl.String)
    if ours.null_count():
        return ours.zip_with(ours.is_not_null(), theirs)
    return ours


def assemble(frame: Any, new: pl.DataFrame) -> Any:
    """Return the frame with new columns in the place of those it had."""
    kept = frame[[name for name in frame.columns if name not in new.columns]]
    if not isinstance(frame, pd.DataFrame):
        return kept.hstack(new)
    made: dict[str, Any] = {}
    for series in new:
        # pandas' own booleans know no gap.
        if series.dtype == pl.Boolean and series.name != "citations_flagged":
            gone = series.is_null().to_numpy()
            made[series.name] = pd.arrays.BooleanArray(
                series.fill_null(False).to_numpy(writable=True), gone
            )
        elif isinstance(series.dtype, pl.Enum):
            words = np.array([*series.dtype.categories, None], dtype=object)
            words = words[series.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()]
            made[series.name] = pd.Series(
                words, frame.index, None if series.name.endswith("__status") else object
            )
        elif isinstance(series.dtype, pl.List):
            made[series.name] = pd.Series(series.to_list(), frame.index, dtype=object)
        else:
            made[series.name] = series.to_numpy()
    return pd.concat([kept, pd.DataFrame(made, frame.index)], axis=1)
