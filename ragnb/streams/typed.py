"""The cells of a query made what the frame contract says; of the rows that are shown, as readers make them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from ragnb.errors import RagnbError, listing, place
from ragnb.readers.cells import MISSING_WORDS
from ragnb.readers.contract import CONTEXTS, IDS, TEXTS, case_cells
from ragnb.readers.lossy import Lossy
from ragnb.readers.numbers import ROUNDED, other_values
from ragnb.readers.raw import Raw
from ragnb.schema import CLIP, Metric

if TYPE_CHECKING:
    import polars as pl

_NUMBER = r"^[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d{1,4})?$"


def typed(frame: pl.LazyFrame, metrics: Mapping[str, Metric], file: str, report: Lossy) -> pl.LazyFrame:
    """Return a query whose metrics are floats, and whose identifiers and case texts are texts.

    Values that are taken for an end of their range are counted in the report, by one query over all metrics.

    Raises
    ------
    RagnbError
        For a text in a metric's column that is no number, with the sample.

    Examples
    --------
    >>> import polars as pl
    >>> from ragnb.schema import METRICS
    >>> query = pl.LazyFrame({"sample_id": [7.0], "faithfulness": ["True"]})
    >>> typed(query, {"faithfulness": METRICS["faithfulness"]}, "s.parquet", Lossy()).collect().rows()
    [('7', 1.0)]
    """
    import polars as pl

    made: list[pl.Expr] = []
    moved: dict[tuple[str, float], pl.Expr] = {}
    worded = []
    for name, kind in frame.collect_schema().items():
        if name in metrics:
            if isinstance(kind, pl.String | pl.Categorical | pl.Enum):
                worded.append(name)
            value = _number(name, kind)
            if metrics[name].bounded and (kind.is_numeric() or name in worded):
                low, high = float(metrics[name].low), float(metrics[name].high)
                moved[name, low] = (value < low) & (value >= low - CLIP)
                moved[name, high] = (value != high) & (value >= high - ROUNDED) & (value <= high + CLIP)
                value = pl.when(moved[name, low]).then(low).when(moved[name, high]).then(high).otherwise(value)
            made.append(value.alias(name))
        elif name in IDS or name in TEXTS:
            made.append(_text(name, kind).alias(name))
    for name in worded:
        lost = _number(name, pl.String()).is_null() & ~_word(name).is_in(list(MISSING_WORDS))
        found = frame.filter(lost).select(name, "sample_id").head(1).collect(engine="streaming")
        if len(found):
            raise RagnbError(
                f"{place(file)}column {name!r}: found {found[name][0]!r} (sample_id {found['sample_id'][0]!r}), "
                "expected a number or an empty cell"
            )
    counts = [near.sum().alias(str(i)) for i, near in enumerate(moved.values())]
    counted = frame.select(counts).collect(engine="streaming").row(0) if counts else ()
    for (name, end), n in zip(moved, counted, strict=True):
        report.add("clipped", name, f"within {CLIP:g} of {end:g}", n)
    return frame.with_columns(made)


def _word(name: str) -> pl.Expr:
    import polars as pl

    return pl.col(name).cast(pl.String).str.strip_chars().str.to_lowercase()


def _number(name: str, kind: pl.DataType) -> pl.Expr:
    """Return a column of numbers, truth values or words for them as floats; any other as it is."""
    import polars as pl

    value = pl.col(name)
    if isinstance(kind, pl.String | pl.Categorical | pl.Enum):
        word = _word(name)
        number = pl.when(word.str.contains(_NUMBER)).then(word).cast(pl.Float64, strict=False)
        value = pl.when(word == "true").then(1.0).when(word == "false").then(0.0).otherwise(number)
    elif kind.is_numeric() or kind in (pl.Boolean, pl.Null):
        value = value.cast(pl.Float64).fill_nan(None)
    return value


def _text(name: str, kind: pl.DataType) -> pl.Expr:
    """Return a column of identifiers or texts as texts; null where a cell holds none."""
    import polars as pl

    value = pl.col(name)
    text = value if kind == pl.String else value.cast(pl.String)
    if kind.is_nested():
        joined = pl.when(value.list.len() > 0).then(value.list.join("\n"))
        return joined if kind == pl.List(pl.String) and name in TEXTS else value
    if name in TEXTS:
        return pl.when(~text.str.contains(r"^\s*(?:NaN|<NA>)\s*$")).then(text)
    if kind.is_float():
        whole = value.cast(pl.Int64, strict=False).cast(pl.String)
        return pl.when(value.is_not_nan()).then(pl.when(value == value.round()).then(whole).otherwise(text))
    return pl.when(text != "").then(text) if kind == pl.String else text


def shown_rows(rows: pl.DataFrame) -> pd.DataFrame:
    """Return a few rows of a stream as a pandas frame whose cells are those that `read_scores` gives.

    Examples
    --------
    >>> import polars as pl
    >>> shown_rows(pl.DataFrame({"retrieved_contexts": ["['a', 'b']"]}))["retrieved_contexts"].tolist()
    [['a', 'b']]
    """
    raw = Raw({name: rows[name].to_list() for name in rows.columns}, "stream")
    case_cells(raw, Lossy())
    frame = pd.DataFrame({name: other_values(cells, True) for name, cells in raw.columns.items()})
    for name, kind in rows.schema.items():
        if kind.is_numeric() and name not in IDS and name not in CONTEXTS:
            frame[name] = pd.to_numeric(frame[name])
    return frame


def groups_listed(frame: pl.LazyFrame, column: str) -> str:
    """Word the values of a column of a stream, the first of them by name."""
    import polars as pl

    found = frame.select(pl.col(column).cast(pl.String).unique().drop_nulls().sort().head(1000))
    return listing(found.collect(engine="streaming")[column].to_list())
