"""Weighted means, intervals and weighted scores, computed from moments of the scores.

Metric weights say how much a metric counts in a sample's total; document weights how much a document's samples
count in a mean. Questions of one document move together, so documents are the clusters of every interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from ragnb.weights.batches import Batch, Reduction, reduce_batches
from ragnb.weights.clusters import Corpus, need_documents, question_of
from ragnb.weights.columns import (
    MetricsArgument,
    as_pandas,
    collected,
    column_names,
    opened,
    score_of,
    scored,
)
from ragnb.weights.columns import stays_lazy as stays_lazy
from ragnb.weights.moments import Moments, moments, moments_reduction, plain_sums
from ragnb.weights.notes import notes, why_no_total
from ragnb.weights.reductions import (
    add_columns,
    evaluated,
    gains_reduction,
    histogram_reduction,
    weigh,
    weighted_score,
)
from ragnb.weights.repeated import Noise as Noise
from ragnb.weights.repeated import noise as noise
from ragnb.weights.total import Weighing, check_weights, metric_name, nfc, present_weights


def weighted_means(
    scores: Any,
    *,
    metrics: MetricsArgument = None,
    metric_weights: Mapping[str, float] | None = None,
    doc_weights: Mapping[str, float] | None = None,
    by: str | None = None,
    doc: str = "doc_name",
    cluster: str | None = None,
    level: float = 0.95,
    orient: bool = True,
    rescale: bool = False,
    corpus: Corpus = "sample",
) -> pd.DataFrame:
    """Return every metric's document-weighted mean and the weighted score, with clustered intervals.

    Parameters
    ----------
    scores : DataFrame
        One row per sample, one column per metric, nan or null where there is no score; optional
        ``<metric>__status``. Of pandas, Polars, PyArrow, DuckDB or PySpark, as `moments` takes it.
    metrics : names or Metric objects, optional
        None takes the columns that METRICS declares; objects add to them; names select.
    metric_weights, doc_weights : mapping of name to weight, optional
        Finite, ≥ 0; 0 leaves the metric or document out; 1.0 for a name that is not given. A metric that is
        neither in the table nor in METRICS is refused; one that is known but absent, and an absent document, warn.
    by : str, optional
        A column to group by: one block of rows per value, last the rows without one. By the document column itself
        each row is a cluster (see `notes`), as one document has no interval.
    doc : str
        The document column.
    cluster : str, optional
        The column of clusters of correlated rows, if not the document.
    level : float
        Of the intervals, in (0, 1).
    orient : bool
        Whether a lower-is-better metric enters the weighted score as low + high − s. Its own row stays raw.
    rescale : bool
        Whether metrics of different ranges are rescaled to 0–1 for the weighted score.
    corpus : {"sample", "complete"}
        Whether the documents are a sample of more or the entire corpus. For a complete corpus the interval is how
        the means would vary with other questions about these documents, not with other documents.

    Returns
    -------
    DataFrame
        ``[by,] metric, weight, value, low, high, se, n, n_missing, n_failed, n_not_applicable, n_clusters,
        n_eff, df, cluster_unit, range_low, range_high, better, kind, role, level, low_if, share_unseen,
        top_share, top_cluster, reason``; the last row of a group is ``weighted_score``, whose role is ``total``.
        ``value`` is Σ v·s / Σ v over scored samples, nan if missing; ``low, high`` is Wilson's interval
        on the metric's range
        at the size that the delete-one-cluster jackknife gives, with Student's t (see ``stats.mean_interval``),
        nan with fewer than two clusters; ``n_eff`` is Kish's; ``df`` is 1/Σh² − 1 over the clusters' shares h.
        ``weight`` is nan for a rate outside the total. ``cluster_unit`` is ``document``, ``cluster``,
        ``question``, ``row`` or, of a complete corpus, ``question within document``. If none of few documents
        failed, ``share_unseen`` is the share of all that could fail unobserved, and ``low_if`` how low (for a
        lower-is-better metric: high) the mean may then be; else nan. ``top_cluster`` is a cluster with the largest
        share, ``top_share``. ``reason`` says why there is no weighted score.

    Raises
    ------
    RagnbError
        For weights that are none or leave nothing, unknown metrics or columns, values outside their range, metrics
        of different ranges, and a number whose status is ``failed``.

    Examples
    --------
    >>> scores = pd.DataFrame({"faithfulness": [1.0, 0.5, 0.9], "doc_name": ["a", "b", "c"]})
    >>> weighted_means(scores)[["metric", "value", "low", "high", "n"]].round(3)
               metric  value    low   high  n
    0    faithfulness    0.8  0.165  0.988  3
    1  weighted_score    0.8  0.165  0.988  3
    """
    return moments(scores, metrics=metrics, doc=doc, cluster=cluster, by=by, corpus=corpus).means(
        metric_weights=metric_weights,
        doc_weights=doc_weights,
        level=level,
        orient=orient,
        rescale=rescale,
    )
