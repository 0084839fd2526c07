"""What moves together in every mean: documents, else questions that repeat, else rows."""

from __future__ import annotations

from collections.abc import Iterable

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb.weights.columns import Labels, coded, labels
from ragnb.weights.engines import Frame, collected, key_of

QUESTIONS = ("sample_id", "question")
"""What tells the rows of one question; the one with fewer values decides, as readers number unnamed samples."""


def question_columns(names: Iterable[str], cluster: str | None) -> list[str]:
    """Return the columns by which rows of one question are told, none where the caller names the clusters."""
    have = set(names)
    return [name for name in QUESTIONS if cluster is None and name in have]


def cluster_labels(
    frame: pd.DataFrame, docs: Labels, cluster: str | None, *, within: bool
) -> tuple[Labels, str | None]:
    """Return the cluster of each row, −1 where it is one alone, and the column of questions where it decides.

    Parameters
    ----------
    docs : Labels
        The rows' documents; a row that has none goes by its question, if any question of such rows repeats.
    cluster : str, optional
        The caller's column, which decides alone.
    within : bool
        Whether the rows are grouped by document: then a document tells nothing.

    Examples
    --------
    >>> frame = pd.DataFrame({"question": ["a", "a", "b"]})
    >>> none = Labels(np.array([-1, -1, -1]), ())
    >>> cluster_labels(frame, none, None, within=False)
    (Labels(codes=array([0, 0, 1]), names=('a', 'b')), 'question')
    """
    if cluster is not None:
        return labels(frame, cluster), None
    base = labels(frame, None) if within else docs
    loose = base.codes < 0
    if not loose.any():
        return base, None
    best, size, told = None, int(loose.sum()), 0
    for name in question_columns(map(str, frame.columns), cluster):
        questions = frame[name] if loose.all() else frame[name][loose]
        if pd.api.types.infer_dtype(questions, skipna=True) == "mixed":  # lists of turns
            questions = questions.map(str, na_action="ignore")
        distinct = int(questions.nunique())
        apart = distinct + int(questions.isna().sum())
        if apart < size and _tells(distinct, told):
            best, size = (questions, name), apart
        told = distinct
    if best is None:
        return base, None
    found = coded(best[0])
    codes = base.codes.copy()
    codes[loose] = np.where(found.codes < 0, -1, found.codes + len(base.names))
    return Labels(codes, (*base.names, *found.names)), best[1]


def _tells(distinct: int, told: int) -> bool:
    """Whether a column tells questions apart: one text on rows of different ids is a stand-in, no question."""
    return distinct > 1 or told <= 1


def repeated_question(frame: Frame) -> str | None:
    """Return the column of questions if one repeats, by a query that counts its distinct values.

    Examples
    --------
    >>> repeated_question(nw.from_native(pd.DataFrame({"question": ["a", "a", "b"]})))
    'question'
    """
    schema = frame.collect_schema()
    best, best_apart, told = None, 0, 0
    for name in question_columns(schema.names(), None):
        if schema[name].is_nested() or schema[name] in (nw.Object, nw.Unknown):
            continue
        asked = frame.select(key_of(frame, name).alias("q"))
        known = asked.filter(~nw.col("q").is_null())
        counts = collected(known.select(nw.len().alias("n"), nw.col("q").n_unique().alias("distinct")))
        found = (counts[one].to_list()[0] for one in ("n", "distinct"))
        known_n, distinct = (0 if pd.isna(one) else int(one) for one in found)  # DuckDB counts nothing as null
        apart = distinct - known_n
        if apart < best_apart and _tells(distinct, told):
            best, best_apart = name, apart
        told = distinct
    return best
