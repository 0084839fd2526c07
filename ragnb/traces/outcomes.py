"""How many traces have which outcome, and the rates of refusals and citations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbError, did_you_mean, need_known
from ragnb.readers.frames import canonical
from ragnb.schema import KNOWN_RATES, METRICS, metric_list
from ragnb.traces.matching import tally
from ragnb.weights import (
    MetricsArgument,
    column_names,
    moments,
    plain_sums,
)

LABELS = ("OK", "REFUSAL_OK", "OVER_REFUSAL", "HALLUCINATION", "ANS_NO_HIT")
# How gold files say that a question is unanswerable or answerable, in lower case.
UNANSWERABLE = ("false", "0", "0.0", "否", "no", "n", "f", "unanswerable", "不可回答", "无法回答")
ANSWERABLE = (
    "true",
    "1",
    "1.0",
    "是",
    "yes",
    "y",
    "t",
    "answerable",
    "可回答",
    "",
    "nan",
    "none",
    "null",
)
_OTHER_RATES = ("wording", "log")
RATES = tuple(
    name for name in METRICS if name in KNOWN_RATES and METRICS[name].family not in _OTHER_RATES
)
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
    have = column_names(labelled)
    given = metric_list(metrics)
    there = [name for name in RATES if name in have]
    if given is None and not there:
        step = did_you_mean(RATES[0], have)
        raise RagnbError(
            f"the frame contains no rate; label the traces with rn.label_traces; {step}"
        )
    if given is None:
        names = there
    else:
        names = [metric if isinstance(metric, str) else metric.name for metric in given]
    for name in names:
        need_known("metric", name, there, "Label the traces with rn.label_traces.")
    reduced = moments(labelled, metrics=names, doc=doc, cluster=cluster, by=by)
    means = reduced.means(doc_weights=doc_weights, level=level)
    means = means[means["role"] != "total"].reset_index(drop=True)
    means["numerator"] = plain_sums(reduced).ravel()
    return means


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
        raise RagnbError(
            f"the frame has no column 'label'; label the traces with rn.label_traces; {step}"
        )
    # As text, because labels in Polars are an Enum, which other engines lack.
    word = nw.col("label").cast(nw.String)
    counts = tally(labelled, {label: word == label for label in LABELS})
    n = np.array([*counts.values()], dtype=np.int64)
    share = np.full(len(n), np.nan)
    if n.any():
        share = n / n.sum()
    meaning = [say(f"label.{name}") for name in LABELS]
    return pd.DataFrame({"label": LABELS, "meaning": meaning, "n": n, "share": share})
