"""The clusters of every mean: documents, else repeated questions, else rows."""

from __future__ import annotations

from typing import Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, need_columns, unknown
from ragnb.polars import pl
from ragnb.readers.query import count_distinct
from ragnb.weights.batches import Batch
from ragnb.weights.columns import Labels, coded, collected, column_names, key_of, opened

Corpus = Literal["sample", "complete"]
INSIDE = "question within document"
"""The cluster unit of a complete corpus."""
QUESTIONS = ("sample_id", "question")
"""What tells the rows of one question; the one with fewer values decides, as readers number unnamed samples."""


def need_documents(have: list[str], doc: str, cluster: str | None, corpus: str) -> None:
    """Refuse a complete corpus without documents, or with clusters that are something else.

    Examples
    --------
    >>> need_documents(["doc_name"], "doc_name", None, "complete")
    """
    if corpus not in ("sample", "complete"):
        raise unknown("corpus", corpus, ["sample", "complete"])
    if corpus == "complete" and cluster is not None:
        raise RagnbError(
            f"corpus='complete' cannot be combined with cluster={cluster!r}; choose one"
        )
    if corpus == "complete" and doc not in have:
        raise RagnbError(
            f"corpus='complete' needs the document of each question, and there is no column {doc!r}"
        )


def question_of(
    frame: Any,
    *,
    doc: str,
    cluster: str | None = None,
    by: str | None = None,
    corpus: str = "sample",
) -> str | None:
    """Return the column of questions that are clusters, as one repeats among rows without a document.

    Of a complete corpus, and by document, as one repeats at all.

    Raises
    ------
    RagnbError
        For a column that is not there.

    Examples
    --------
    >>> question_of(pd.DataFrame({"question": ["a", "a", "b"]}), doc="doc_name")
    'question'
    """
    have = column_names(frame)
    document = document_column(have, doc)
    need_columns(have, filter(None, (cluster, by)))
    columns = [name for name in QUESTIONS if cluster is None and name in have]
    if by == doc or corpus == "complete":
        without = None
    else:
        without = document
    if columns and without is not None and not _has_gaps(frame, without):
        return None
    best = None
    best_apart = 0
    distinct_before = 0
    for name in columns:
        known, distinct = _counts(frame, name, without)
        # One text on rows with different ids is a placeholder, not a question.
        if distinct - known < best_apart and (distinct > 1 or distinct_before <= 1):
            best = name
            best_apart = distinct - known
        distinct_before = distinct
    return best


def document_column(have: list[str], doc: str) -> str | None:
    """Return the document column; a frame without ``doc_name`` has no documents.

    Raises
    ------
    RagnbError
        For any other column that is not there.

    Examples
    --------
    >>> document_column(["question"], "doc_name") is None
    True
    """
    need_columns(have, {doc} - {"doc_name"})
    if doc in have:
        return doc
    return None


def question_clusters(batch: Batch, base: Labels, questions: str | None) -> Labels:
    """Return the cluster of each row, −1 if it is a cluster of its own: its document, else its question.

    Parameters
    ----------
    base : Labels
        The rows' documents.
    questions : str, optional
        The column of questions, where they repeat among rows without a document.

    Examples
    --------
    >>> batch = Batch(pd.DataFrame({"question": ["a", "a", "b"]}))
    >>> question_clusters(batch, batch.labels(None), "question")
    Labels(codes=array([0, 0, 1]), names=('a', 'b'))
    """
    if questions is None:
        return base
    loose = base.codes < 0
    asked = coded(_as_label(batch.frame[questions][loose]))
    codes = base.codes.copy()
    codes[loose] = np.where(asked.codes < 0, -1, asked.codes + len(base.names))
    return Labels(codes, (*base.names, *asked.names))


def _counts(frame: Any, name: str, without: str | None) -> tuple[int, int]:
    """How many rows have a question, and how many questions there are; none in a column of lists on an engine."""
    if isinstance(frame, pd.DataFrame):
        asked = frame[name]
        if without is not None:
            asked = asked[frame[without].isna()]
        asked = _as_label(asked)
        return int(asked.notna().sum()), int(asked.nunique())
    rows = opened(frame)
    kind = rows.collect_schema()[name]
    if kind.is_nested() or kind in (nw.Object, nw.Unknown):
        return 0, 0
    if without is not None:
        rows = rows.filter(key_of(rows, without).is_null())
    known = rows.select(key_of(rows, name).alias("q")).filter(~nw.col("q").is_null())
    if rows.implementation.is_polars():
        return count_distinct(known.to_native(), pl.col("q"))
    counts = collected(
        known.select(nw.len().alias("known"), nw.col("q").n_unique().alias("distinct"))
    )
    pair = (counts[one].to_list()[0] for one in ("known", "distinct"))
    # DuckDB counts nothing as null.
    known_n, distinct = (0 if pd.isna(one) else int(one) for one in pair)
    return known_n, distinct


def _has_gaps(frame: Any, column: str) -> bool:
    rows = opened(frame)
    gaps = key_of(rows, column).is_null().any().alias("gaps")
    return bool(collected(rows.select(gaps))["gaps"].to_list()[0])


def _as_label(asked: pd.Series[Any]) -> pd.Series[Any]:
    """Questions that are lists of turns as text."""
    if pd.api.types.infer_dtype(asked, skipna=True) == "mixed":
        return asked.map(str, na_action="ignore")
    return asked
