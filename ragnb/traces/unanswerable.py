"""Questions that gold calls unanswerable: a metric that cannot grade a refusal does not apply to them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError
from ragnb.schema import Metric

Frame = TypeVar("Frame")
_NO = ("false", "0", "0.0", "否", "no", "n", "f", "unanswerable", "不可回答", "无法回答")
_YES = ("true", "1", "1.0", "是", "yes", "y", "t", "answerable", "可回答", "", "nan", "none", "null")


def mark_unanswerable(frame: Frame, *, metrics: Iterable[Metric]) -> Frame:
    """Return the frame with the scores of unanswerable questions not applicable where a metric cannot grade a
    refusal.

    Else inventing an answer could raise a mean that a correct refusal has no part in.

    Parameters
    ----------
    frame : DataFrame or polars.LazyFrame
        Without a column ``answerable`` it is returned as it is.
    metrics : iterable of Metric
        Those with ``grades_refusals`` keep their scores, and so do the rates, which know what was answerable.

    Examples
    --------
    >>> scores = pd.DataFrame({"faithfulness": [0.9, 0.2], "answerable": [True, False]})
    >>> mark_unanswerable(scores, metrics=[Metric("faithfulness")])["faithfulness"].tolist()
    [0.9, nan]
    """
    rows: Any = frame
    columns = rows.collect_schema().names() if hasattr(rows, "collect_schema") else list(rows.columns)
    blind = [
        metric.name
        for metric in metrics
        if metric.name in columns
        and not metric.grades_refusals
        and (metric.role == "quality" or metric.family == "wording")
    ]
    if not blind or "answerable" not in columns:
        return frame
    if not isinstance(rows, pd.DataFrame):
        return cast(Frame, _marked_lazily(rows, columns, blind))
    refusable = _refusable(rows)
    if not refusable.any():
        return frame
    made: dict[str, Any] = {}
    for name in blind:
        made[name] = rows[name].mask(refusable)
        status = f"{name}__status"
        words = rows[status].astype(object).to_numpy() if status in columns else np.full(len(rows), None)
        made[status] = np.where(refusable, "not_applicable", words)
    return cast(Frame, rows.assign(**made))


def count_unanswerable(frame: Any) -> int:
    """Return how many rows ask what gold calls unanswerable.

    Examples
    --------
    >>> count_unanswerable(pd.DataFrame({"answerable": [True, False, None]}))
    1
    """
    if isinstance(frame, pd.DataFrame):
        return int(_refusable(frame).sum()) if "answerable" in frame else 0
    if "answerable" not in frame.collect_schema().names():
        return 0
    return int(frame.select(_refusable_lazily().sum()).collect(engine="streaming").item())


def _refusable(rows: pd.DataFrame) -> Any:
    cells = rows["answerable"].astype(object)
    words = cells.where(cells.notna(), "").astype(str).str.strip().str.lower()
    if len(other := words[~words.isin([*_NO, *_YES])]):
        raise RagnbError(f"column 'answerable': found {other.iloc[0]!r}, expected true or false")
    return words.isin(_NO).to_numpy()


def _refusable_lazily() -> Any:
    import polars as pl

    return pl.col("answerable").cast(pl.String).str.strip_chars().str.to_lowercase().is_in(_NO).fill_null(False)


def _marked_lazily(rows: Any, columns: list[str], blind: list[str]) -> Any:
    import polars as pl

    refusable, made = _refusable_lazily(), {}
    for name in blind:
        status = f"{name}__status"
        word = pl.col(status).cast(pl.String) if status in columns else pl.lit(None, dtype=pl.String)
        made[name] = pl.when(refusable).then(None).otherwise(pl.col(name))
        made[status] = pl.when(refusable).then(pl.lit("not_applicable")).otherwise(word)
    return rows.with_columns(**made)
