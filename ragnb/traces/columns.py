"""Columns of a frame of either engine as Polars series: texts, ids, lists of ids laid out flat."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError
from ragnb.traces.forms import composed

if TYPE_CHECKING:
    import polars as pl

Flags = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]


def absent(value: Any) -> bool:
    """Whether a cell holds nothing (None, NaN, NA); a list never does.

    Examples
    --------
    >>> absent(float("nan")), absent([])
    (True, False)
    """
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value)


def column(frame: Any, name: str) -> list[Any]:
    """Return a column as a list, all None where it is not there.

    Examples
    --------
    >>> column(pd.DataFrame({"a": [1, 2]}), "b")
    [None, None]
    """
    if name not in frame.columns:
        return [None] * len(frame)
    pandas = isinstance(frame, pd.DataFrame)
    out: list[Any] = frame[name].to_numpy(dtype=object).tolist() if pandas else frame[name].to_list()
    return out


def as_series(values: Sequence[str | None]) -> pl.Series:
    """Return texts as a Polars series; half a surrogate pair, which no engine can hold, becomes ``?``.

    Examples
    --------
    >>> as_series(["a", None]).to_list(), as_series(["\\ud800"]).to_list()
    (['a', None], ['?'])
    """
    import polars as pl

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
    import polars as pl

    if not isinstance(frame, pd.DataFrame) and name in frame.columns and frame[name].dtype == pl.String:
        series: pl.Series = frame[name]
        return series
    if name in frame.columns and getattr(frame[name].dtype, "storage", None) == "pyarrow":
        return pl.Series(frame[name].array.__arrow_array__(), dtype=pl.String)
    values = column(frame, name)
    if set(map(type, values)) <= {str, type(None)}:
        return as_series(values)
    return as_series([None if absent(v) else str(v) for v in values])


def name_of(value: Any) -> str | None:
    """Return an id as text in Unicode form NFC; a chunk gives its ``id``; None where there is none.

    Examples
    --------
    >>> name_of({"id": 12}), name_of(12.0), name_of(" a ")
    ('12', '12', 'a')
    """
    value = value.get("id") if isinstance(value, dict) else value
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value).strip()
    if absent(value):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


def names(values: Sequence[Any] | pl.Series) -> pl.Series:
    """Return ids (or chunks) as `name_of` each, null where there is none or it is blank.

    Examples
    --------
    >>> names([{"id": 12}, " a ", None, ""]).to_list()
    ['12', 'a', None, None]
    """
    import polars as pl

    if not isinstance(values, pl.Series):
        values = [v.get("id") if type(v) is dict else v for v in values]
        if not set(map(type, values)) <= {str, type(None)}:
            values = [name_of(value) for value in values]
        values = as_series(values)
    stripped = composed(values.str.strip_chars())
    return stripped.set(stripped == "", None)


@dataclass(frozen=True)
class Lists:
    """A column of lists of ids, laid out flat.

    Attributes
    ----------
    there : (N,) bool
        Which rows have a list, even an empty one.
    rows : (F,) int
        The row of each id, ascending.
    names : (F,) series of str
        Null where an entry has no id.
    """

    there: Flags
    rows: Positions
    names: pl.Series

    @classmethod
    def none(cls, size: int) -> Lists:
        """Return lists that are all absent."""
        return cls(np.zeros(size, dtype=bool), np.empty(0, dtype=np.int64), as_series([]))

    @classmethod
    def of(cls, frame: Any, name: str) -> Lists:
        """Read a column of lists.

        Raises
        ------
        RagnbError
            If a cell is no list.

        Examples
        --------
        >>> Lists.of(pd.DataFrame({"chunks": [[{"id": "a"}], None]}), "chunks").there
        array([ True, False])
        """
        if name not in frame.columns:
            return cls.none(len(frame))
        if not isinstance(frame, pd.DataFrame) and (flat := _flat(frame[name])) is not None:
            return cls.laid(frame[name].is_not_null().to_numpy(), frame[name].list.len(), flat)
        values = column(frame, name)
        lists = [v if type(v) is list else _listed(frame, name, at, v) for at, v in enumerate(values)]
        there = np.fromiter((v is not None for v in lists), dtype=bool, count=len(lists))
        flat = names([item for items in lists if items for item in items])
        return cls.laid(there, [len(v) if v else 0 for v in lists], flat)

    @classmethod
    def laid(cls, there: Flags, lengths: Any, flat: pl.Series) -> Lists:
        """Return lists from the length of each and all their names in a row."""
        import polars as pl

        counts = pl.Series(lengths, dtype=pl.Int64).fill_null(0).to_numpy()
        return cls(there, np.repeat(np.arange(len(there)), counts), flat)

    def distinct(self) -> Lists:
        """Return the lists with each name once, in their order, and nothing in the place of no name."""
        import polars as pl

        pairs = pl.DataFrame({"row": self.rows, "name": self.names}).drop_nulls()
        pairs = pairs.filter(pl.struct("row", "name").is_first_distinct())
        return Lists(self.there, pairs["row"].to_numpy(), pairs["name"])

    def nested(self) -> pl.Series:
        """Return a series of lists, null where a row has none."""
        import polars as pl

        nothing = pl.Series("name", [[]], dtype=pl.List(pl.String))
        held = pl.DataFrame({"row": self.rows, "name": self.names})
        lists = held.group_by("row", maintain_order=True).agg("name")
        place = np.where(self.there, len(lists), -1)
        place[lists["row"].to_numpy()] = np.arange(len(lists))
        taken = pl.Series(place)
        return pl.concat([lists["name"], nothing]).gather(taken.set(taken < 0, None)).alias("names")


def _flat(series: pl.Series) -> pl.Series | None:
    """Return the names of a Polars column of lists of texts or of chunks with a text id; None for another."""
    import polars as pl

    inner = getattr(series.dtype, "inner", None)
    held = series.filter(series.list.len() > 0) if inner is not None else series
    if inner == pl.String:
        return names(held.explode())
    if isinstance(inner, pl.Struct) and dict(inner).get("id") == pl.String:
        return names(held.explode().struct.field("id"))
    return None


def _listed(frame: Any, name: str, at: int, value: Any) -> Sequence[Any] | None:
    if absent(value):
        return None
    if not isinstance(value, list | tuple | np.ndarray):
        row = frame.index[at] if isinstance(frame, pd.DataFrame) else at
        raise RagnbError(
            f"column {name!r}, row {row!r}: {str(value)[:60]!r} is no list of ids; "
            "read the file with rn.read_traces or rn.read_gold"
        )
    return list(value)
