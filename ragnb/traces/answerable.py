"""Questions that are marked as unanswerable, and how many there are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import narwhals as nw
import pandas as pd

from ragnb.errors import RagnbError
from ragnb.schema import Metric
from ragnb.traces.matching import Frame, tally
from ragnb.traces.outcomes import ANSWERABLE, UNANSWERABLE
from ragnb.weights import (
    collected,
    opened,
)


def repeated_answers(labelled: Any, *, least: int = 3, most: int = 3) -> dict[str, int]:
    """Count the questions with an identical answer that counts as an answer and hits no gold id.

    Parameters
    ----------
    labelled : DataFrame
        What `label_traces` returns.
    least : int
        How many questions an answer must be given to.
    most : int
        How many answers are returned, the most frequent first.

    Returns
    -------
    dict of str to int
        Answer → different questions. Refusals, whole or in part, and answers with a right citation are left out.

    Examples
    --------
    >>> from ragnb.traces import label_traces
    >>> said = pd.DataFrame({"question": ["a", "b", "c"], "answer": ["无法回答"] * 3})
    >>> repeated_answers(label_traces(said)), repeated_answers(label_traces(said, refusal=["无法回答"]))
    ({'无法回答': 3}, {})
    """
    answered = nw.col("answered").fill_null(False)
    hit = nw.col("hit").fill_null(False)
    partial = nw.col("partial").fill_null(False)
    misses = opened(labelled).filter(answered & ~hit & ~partial).select("question", "answer")
    # A question that was asked again and got the same answer counts once.
    pairs = misses.unique().with_columns(nw.col("answer").cast(nw.String).str.strip_chars())
    counts = pairs.group_by("answer").agg(nw.len().alias("n"))
    repeated = counts.filter(nw.col("n") >= least)
    # Equally frequent ones by their text, which is the same order in every engine.
    first: Any = collected(repeated.sort("n", "answer", descending=[True, False]).head(most))
    return dict(first.iter_rows())


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
    rows = nw.from_native(cast(Any, frame))
    names = rows.collect_schema().names()
    blind = [
        metric.name
        for metric in metrics
        if metric.name in names
        and not metric.grades_refusals
        and (metric.role == "quality" or metric.family == "wording")
    ]
    if not blind or "answerable" not in names:
        return frame
    if isinstance(frame, pd.DataFrame) and not count_unanswerable(frame):
        return frame
    # Worked out once, not once a metric.
    is_unanswerable = nw.col("__unanswerable")
    changed: list[nw.Expr] = []
    for name in blind:
        status = f"{name}__status"
        word = nw.lit(None, nw.String)
        if status in names:
            word = nw.col(status).cast(nw.String)
        score = nw.when(~is_unanswerable).then(nw.col(name))
        marked_status = nw.when(is_unanswerable).then(nw.lit("not_applicable")).otherwise(word)
        changed += [score.alias(name), marked_status.alias(status)]
    marked = rows.with_columns(_unanswerable().alias("__unanswerable")).with_columns(*changed)
    return cast(Frame, marked.drop("__unanswerable").to_native())


def count_unanswerable(frame: Any) -> int:
    """Return how many rows ask what gold calls unanswerable.

    Examples
    --------
    >>> count_unanswerable(pd.DataFrame({"answerable": [True, False, None]}))
    1
    """
    rows = opened(frame)
    if "answerable" not in rows.collect_schema().names():
        return 0

    if isinstance(rows, nw.DataFrame):
        is_known = nw.col("answerable").is_in([*UNANSWERABLE, *ANSWERABLE])
        odd = rows.select(_answerable_word()).filter(~is_known).drop_nulls()
        if len(odd):
            raise RagnbError(
                f"column 'answerable': found {odd.item(0, 0)!r}, expected true or false"
            )
    return tally(frame, {"n": _unanswerable()})["n"]


def _answerable_word() -> nw.Expr:
    return nw.col("answerable").cast(nw.String).str.strip_chars().str.to_lowercase()


def _unanswerable() -> nw.Expr:
    return _answerable_word().is_in(UNANSWERABLE).fill_null(False)
