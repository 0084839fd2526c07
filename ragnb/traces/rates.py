"""The rates of labelled traces, by the one estimator, and how often each label occurs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbError, did_you_mean, unknown
from ragnb.schema import METRICS
from ragnb.traces.outcomes import LABELS
from ragnb.weights import column_names, moments, plain_sums

RATES = tuple(name for name, metric in METRICS.items() if metric.role == "rate")
"""The rates, in the order of METRICS."""


def refusal_metrics(
    labelled: Any,
    metrics: str | tuple[str, ...] | list[str] | None = None,
    *,
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
    >>> refusal_metrics(label_traces(traces, gold), "over_refusal")[["metric", "value", "numerator", "n"]]
             metric  value  numerator  n
    0  over_refusal    0.5        1.0  2
    """
    names = _chosen(labelled, metrics)
    found = moments(labelled, names, doc=doc, cluster=cluster, by=by)
    means = found.means(None, doc_weights, level=level)
    attrs = means.attrs
    means = means[means["metric"] != "weighted_score"].reset_index(drop=True)
    means["numerator"] = plain_sums(found).ravel()
    means.attrs = attrs
    return means


def _columns(labelled: Any, names: Iterable[str | None]) -> pd.DataFrame:
    """Return the columns that are there as a pandas frame."""
    names = [n for n in dict.fromkeys(names) if n is not None and n in labelled.columns]
    if isinstance(labelled, pd.DataFrame):
        return labelled[names]
    return pd.DataFrame({name: _pandas(labelled[name]) for name in names})


def _pandas(series: Any) -> Any:
    import polars as pl

    if series.dtype.is_numeric():
        return series.to_numpy()
    if isinstance(series.dtype, pl.Enum):
        words, places = series.dtype.categories, series.to_physical().cast(pl.Int64).fill_null(-1)
    else:
        words = series.unique(maintain_order=True).drop_nulls()
        places = series.cast(words.dtype).replace_strict(words, range(len(words)), default=-1)
    names: list[Any] = words.to_list()
    return pd.Categorical.from_codes(places.to_numpy(), pd.Index(names))


def _chosen(labelled: Any, metrics: str | tuple[str, ...] | list[str] | None) -> list[str]:
    columns = column_names(labelled)
    there = [name for name in RATES if name in columns]
    if metrics is None:
        if not there:
            step = did_you_mean(RATES[0], columns)
            raise RagnbError(f"the frame holds no rate; label the traces with rn.label_traces; {step}")
        return there
    chosen = [metrics] if isinstance(metrics, str) else list(metrics)
    for name in chosen:
        if name not in there:
            raise unknown("metric", name, there, "Label the traces with rn.label_traces.")
    return chosen


def outcome_counts(labelled: Any, *, lang: str = "en") -> pd.DataFrame:
    """Return how often each label occurs, and what it means.

    Parameters
    ----------
    labelled : DataFrame
        What `label_traces` returns. Rows without a label are left out.
    lang : {"en", "zh"}

    Returns
    -------
    DataFrame
        ``label, meaning, n, share``; all five labels, in one order. ``share`` is nan where no row has a label.

    Examples
    --------
    >>> outcome_counts(pd.DataFrame({"label": ["OK", "OK", None]}))[["label", "n", "share"]].head(2)
            label  n  share
    0          OK  2    1.0
    1  REFUSAL_OK  0    0.0
    """
    say = texts.load(lang)
    found = _columns(labelled, ["label"])["label"]
    n = found.value_counts().reindex(list(LABELS), fill_value=0).to_numpy()
    share = n / n.sum() if n.sum() else np.full(len(n), np.nan)
    meaning = [say(f"label.{name}") for name in LABELS]
    return pd.DataFrame({"label": LABELS, "meaning": meaning, "n": n, "share": share})
