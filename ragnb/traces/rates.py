"""Rates of labelled traces, the frequency of each label, and repeated answers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbError, did_you_mean, unknown
from ragnb.readers.frames import canonical
from ragnb.schema import METRICS, Metric, metric_list
from ragnb.traces import columns
from ragnb.weights import MetricsArgument, collected, column_names, moments, opened, plain_sums

Frame = TypeVar("Frame")
LABELS = ("OK", "REFUSAL_OK", "OVER_REFUSAL", "HALLUCINATION", "ANS_NO_HIT")
UNANSWERABLE = ("false", "0", "0.0", "否", "no", "n", "f", "unanswerable", "不可回答", "无法回答")
ANSWERABLE = ("true", "1", "1.0", "是", "yes", "y", "t", "answerable", "可回答", "", "nan", "none", "null")
RATES = tuple(name for name, metric in METRICS.items() if metric.role == "rate" and metric.family != "wording")
"""The rates, in the order of METRICS."""


def refusal_metrics(
    labelled: Any,
    *,
    metrics: MetricsArgument = None,
    doc_weights: Mapping[str, float] | None = None,
    by: str | None = None,
    doc: str = "doc_name",
    cluster: str | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Return the refusal, citation and retrieval rates of labelled traces, with intervals.

    Parameters
    ----------
    labelled : DataFrame
        What `label_traces` returns, of pandas, Polars, PyArrow, DuckDB or PySpark.
    metrics : names, optional
        Some of `RATES`; None takes all that are there.
    doc_weights, by, doc, cluster, level
        As `ragnb.weighted_means` takes them.

    Returns
    -------
    DataFrame
        The columns of `ragnb.weighted_means`, with no total row, and ``numerator``: the plain sum of the column
        over the ``n`` rows where the rate applies. ``value`` is ``numerator / n`` without document weights,
        and nan, never 0, where nothing applies.

    Raises
    ------
    RagnbError
        For a name that is no rate or no column, and as `ragnb.weighted_means` does.

    Examples
    --------
    >>> from ragnb.traces import label_traces
    >>> traces = pd.DataFrame({"question": ["x", "y"], "answer": ["Yes. citations: [a]", "Not in context"]})
    >>> gold = pd.DataFrame({"question": ["x", "y"], "answerable": [True, True], "gold_ids": [["a"], ["b"]]})
    >>> labelled = label_traces(traces, gold=gold)
    >>> refusal_metrics(labelled, metrics="over_refusal")[["metric", "value", "numerator", "n"]]
             metric  value  numerator  n
    0  over_refusal    0.5        1.0  2
    """
    labelled = canonical(labelled, doc, cluster, by, reader="read_traces")
    names = _chosen(labelled, metrics)
    found = moments(labelled, metrics=names, doc=doc, cluster=cluster, by=by)
    means = found.means(doc_weights=doc_weights, level=level)
    means = means[means["role"] != "total"].reset_index(drop=True)
    means["numerator"] = plain_sums(found).ravel()
    return means


def _chosen(labelled: Any, metrics: MetricsArgument) -> list[str]:
    columns = column_names(labelled)
    there = [name for name in RATES if name in columns]
    chosen = metric_list(metrics)
    if chosen is None:
        if not there:
            step = did_you_mean(RATES[0], columns)
            raise RagnbError(f"the frame contains no rate; label the traces with rn.label_traces; {step}")
        return there
    names = [metric if isinstance(metric, str) else metric.name for metric in chosen]
    for name in names:
        if name not in there:
            raise unknown("metric", name, there, "Label the traces with rn.label_traces.")
    return names


def outcome_counts(labelled: Any, *, lang: str = "en") -> pd.DataFrame:
    """Return the frequency of each label, and its meaning.

    Parameters
    ----------
    labelled : DataFrame
        What `label_traces` returns, of pandas, Polars, PyArrow, DuckDB or PySpark. Rows without a label are left
        out.
    lang : {"en", "zh"}

    Returns
    -------
    DataFrame
        ``label, meaning, n, share``; all five labels, in one order. ``share`` is nan where no row has a label.

    Raises
    ------
    RagnbError
        For a frame without labels.

    Examples
    --------
    >>> outcome_counts(pd.DataFrame({"label": ["OK", "OK", None]}))[["label", "n", "share"]].head(2)
            label  n  share
    0          OK  2    1.0
    1  REFUSAL_OK  0    0.0
    """
    say = texts.load(lang)
    have = column_names(labelled)
    if "label" not in have:
        step = did_you_mean("label", have)
        raise RagnbError(f"the frame has no column 'label'; label the traces with rn.label_traces; {step}")
    word = nw.col("label").cast(nw.String)
    rows = opened(labelled).select(*(nw.when(word == one).then(1).otherwise(0).sum().alias(one) for one in LABELS))
    n = np.array([collected(rows)[one].to_list()[0] or 0 for one in LABELS], dtype=np.int64)
    share = n / n.sum() if n.sum() else np.full(len(n), np.nan)
    meaning = [say(f"label.{name}") for name in LABELS]
    return pd.DataFrame({"label": LABELS, "meaning": meaning, "n": n, "share": share})


def repeated_answers(labelled: pd.DataFrame, *, least: int = 3, most: int = 3) -> dict[str, int]:
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
    yes = labelled[["answered", "hit", "partial"]].eq(True).fillna(False).astype(bool)
    misses = labelled[yes["answered"] & ~yes["hit"] & ~yes["partial"]]
    said = misses[["question", "answer"]].drop_duplicates()["answer"].astype(str).str.strip().value_counts()
    return {str(text): int(n) for text, n in said.head(most).items() if n >= least}


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
    made: list[nw.Expr] = []
    for name in blind:
        status = f"{name}__status"
        word = nw.col(status).cast(nw.String) if status in names else nw.lit(None, nw.String)
        made.append(nw.when(~_unanswerable()).then(nw.col(name)).alias(name))
        made.append(nw.when(_unanswerable()).then(nw.lit("not_applicable")).otherwise(word).alias(status))
    return cast(Frame, rows.with_columns(*made).to_native())


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
        odd = rows.select(_answerable_word()).filter(~nw.col("answerable").is_in([*UNANSWERABLE, *ANSWERABLE]))
        if len(odd := odd.drop_nulls()):
            raise RagnbError(f"column 'answerable': found {odd.item(0, 0)!r}, expected true or false")
    return int(collected(rows.select(_unanswerable().sum())).item())


def _answerable_word() -> nw.Expr:
    return nw.col("answerable").cast(nw.String).str.strip_chars().str.to_lowercase()


def _unanswerable() -> nw.Expr:
    return _answerable_word().is_in(UNANSWERABLE).fill_null(False)


def sample_traces(traces: Frame, *, share: float = 0.01, key: str = "sample_id", salt: str = "") -> Frame:
    """Return the rows whose key hashes below a share: the same rows in every order, file and chunk.

    A larger share keeps the rows of a smaller one. All rows of one key stay together or leave together.

    Parameters
    ----------
    traces : DataFrame
        Of pandas, Polars, PyArrow or DuckDB; of PySpark it comes back as Polars.
    share : float in [0, 1]
        The part of the keys to keep, in expectation.
    key : str
        What is hashed, as text. A row without one is hashed by its ``question``; a row without either is left
        out, except under a share of 1.
    salt : str
        Another salt draws another sample.

    Returns
    -------
    DataFrame
        The kept rows, in their order, of the caller's engine.

    Raises
    ------
    RagnbError
        For a share outside [0, 1], and where neither the key nor ``question`` is a column.

    Notes
    -----
    A key is kept when the first 8 bytes of BLAKE2b of its UTF-8 text, personalised by the salt's own hash, lie
    below share · 2⁶⁴ as a big-endian number.

    Examples
    --------
    >>> traces = pd.DataFrame({"sample_id": [str(i) for i in range(1000)], "answer": "x"})
    >>> len(sample_traces(traces, share=0.1))
    105
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise RagnbError(f"share={share!r} must lie between 0 and 1, such as 0.01 for one percent")
    frame: Any = columns.workable(traces)
    if key not in frame.columns and "question" not in frame.columns:
        raise RagnbError(f"key={key!r} is not a column; {did_you_mean(key, [str(c) for c in frame.columns])}")
    ids, questions = columns.ids(frame, key), columns.texts(frame, "question")
    person = hashlib.blake2b(salt.encode("utf-8"), digest_size=16).digest()
    threshold = round(share * (1 << 64))

    def is_kept(name: str | None) -> bool:
        if name is None:
            return share == 1
        digest = hashlib.blake2b(name.encode("utf-8"), digest_size=8, person=person).digest()
        return int.from_bytes(digest, "big") < threshold

    kept = np.array([is_kept(name) for name in ids.zip_with(ids.is_not_null(), questions)], dtype=bool)
    made = frame[kept] if isinstance(frame, pd.DataFrame) else frame.filter(kept)
    return cast(Frame, columns.as_brought(made, traces, {}))
