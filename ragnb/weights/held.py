"""Eager rows of any engine as the few columns that NumPy works on: numbers shared, texts coded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb.readers.frames import native
from ragnb.schema import Metric
from ragnb.weights.clusters import question_columns, repeated_question
from ragnb.weights.columns import factorized
from ragnb.weights.engines import column_names

if TYPE_CHECKING:
    import polars as pl


def held(
    scores: Any, metrics: Sequence[Metric], doc: str, cluster: str | None = None, by: str | None = None
) -> pd.DataFrame | None:
    """Return the columns of scores and statuses, and those that say what belongs together; None for a query.

    Texts of documents, clusters and groups come as categories; questions come where they may be the clusters. None
    too where a column of another engine's frame is not there or no number: its query says what is wrong.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"faithfulness": [1.0, None], "doc_name": ["a", "b"]})
    >>> held(frame, [Metric("faithfulness")], "doc_name").dtypes.astype(str).tolist()
    ['float64', 'category']
    """
    named = [c for m in metrics for c in (m.name, f"{m.name}__status")]
    others = (doc, cluster, by)
    wanted = dict.fromkeys([*named, *(name for name in others if name is not None)])
    have = column_names(scores)
    if any(name not in have and name != "doc_name" for name in others if name is not None):
        return scores if isinstance(scores, pd.DataFrame) else None
    if isinstance(scores, pd.DataFrame):
        columns = {name: scores[name] for name in wanted if name in have}
        coded = {name: _coded(column) for name, column in columns.items() if name not in named}
        columns |= {name: scores[name] for name in question_columns(have, cluster) if name not in wanted}
        return pd.DataFrame(columns | coded, index=scores.index, copy=False)
    rows = native(scores)
    if isinstance(rows, nw.LazyFrame) or not all(rows.schema[m.name].is_numeric() for m in metrics):
        return None
    loose = cluster is None and (doc not in have or by == doc or rows.get_column(doc).null_count() > 0)
    questions = repeated_question(rows) if loose else None
    kept = [name for name in dict.fromkeys([*wanted, questions]) if name in have]
    frame = rows.select(*kept).to_polars()
    return pd.DataFrame({name: _array(frame[name]) for name in frame.columns}, range(len(rows)), copy=False)


def _coded(column: pd.Series[Any]) -> pd.Series[Any]:
    if not (pd.api.types.is_string_dtype(column.dtype) or column.dtype == object):
        return column
    codes, names = factorized(column)
    return pd.Series(pd.Categorical.from_codes(codes, pd.Index(names, dtype=object)), column.index)


def _array(column: pl.Series) -> Any:
    import polars as pl

    if column.dtype.is_numeric():
        whole = column.dtype.is_integer() and not column.null_count()
        return column.to_numpy() if whole else column.cast(pl.Float64).fill_null(np.nan).to_numpy()
    if isinstance(column.dtype, pl.Enum):
        places = column.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        return pd.Categorical.from_codes(places, pd.Index(column.dtype.categories.to_list(), dtype=object))
    if column.dtype not in (pl.String, pl.Categorical):
        return pd.Series(column.to_list(), dtype=object)
    words = column.cast(pl.Categorical)
    names = words.unique(maintain_order=True).drop_nulls()
    own = names.to_physical().to_numpy()
    codes = np.full(int(own.max(initial=0)) + 2, -1, dtype=np.int32)
    codes[own] = np.arange(len(own))
    places = codes.take(words.to_physical().fill_null(len(codes) - 1).to_numpy())
    return pd.Categorical.from_codes(places, pd.Index(names.cast(pl.String).to_list(), dtype=object))
