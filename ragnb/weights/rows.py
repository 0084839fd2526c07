"""Row by row: the weighted score of each sample and its document's weight, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.readers.frames import as_called, canonical
from ragnb.weights.added import Total, add_columns
from ragnb.weights.check import check_metric_weights, check_weights, refuse_all_zero, warn_unused
from ragnb.weights.columns import labels, score_columns
from ragnb.weights.effective import intercepts
from ragnb.weights.finish import plan_total, weight_vector
from ragnb.weights.reduced import MetricsArgument
from ragnb.weights.scored import scored

Rows = TypeVar("Rows")


def weighted_score(
    scores: Any,
    *,
    metrics: MetricsArgument = None,
    metric_weights: Mapping[str, float] | None = None,
    orient: bool = True,
    rescale: bool = False,
) -> Any:
    """Return each sample's weighted score, Σ w·s / Σ w over the metrics that have a score.

    Parameters
    ----------
    scores : DataFrame
        One row a sample, one column a metric; of pandas, Polars, PyArrow, DuckDB or PySpark.
    metric_weights : mapping of metric to weight, optional
        Finite, ≥ 0; 0 leaves the metric out. A metric that is not named counts 1.0 (a rubric dimension: the
        rubric's).
    metrics : names or Metric objects, optional
        None takes the columns that METRICS declares; a rate enters only when `metric_weights` names it.
    orient : bool
        Whether a lower-is-better metric enters as low + high − s of its range.
    rescale : bool
        Whether metrics are first brought to 0–1 by their ranges, so that different ranges can be added up.

    Returns
    -------
    Series
        Named ``weighted_score``, on the index of `scores`; nan where no metric with weight has a score. For
        another engine than pandas a frame of its kind with this one column, null where there is no score: a
        lazy one stays lazy (and has no order to be joined by: see `weigh`).

    Raises
    ------
    RagnbError
        For weights that are none, unknown metrics, values outside their range, and metrics of different ranges.
        What is wrong in the rows of a lazy frame makes its query fail when it runs, in the engine's own way.

    Examples
    --------
    >>> scores = pd.DataFrame({"faithfulness": [1.0, None], "context_recall": [0.5, 0.25]})
    >>> weighted_score(scores, metric_weights={"faithfulness": 3}).tolist()
    [0.875, 0.25]
    """
    frame, total = _total(scores, (), metrics, metric_weights, orient=orient, rescale=rescale)
    if not isinstance(frame, pd.DataFrame):
        return add_columns(frame, total, None, only=True)
    values, _ = score_columns(frame, total.metrics)
    return pd.Series(total.of(values, len(frame)), index=scores.index, name="weighted_score")


def _total(
    scores: Any,
    kept: Sequence[str],
    metrics: MetricsArgument,
    weights: Mapping[str, float] | None,
    *,
    orient: bool,
    rescale: bool,
) -> tuple[Any, Total]:
    frame, chosen = scored(scores, metrics, *kept)
    checked = check_metric_weights(weights, [m.name for m in chosen], stacklevel=4)
    plan = plan_total(chosen, weight_vector(chosen, checked), orient=orient, rescale=rescale)
    return frame, Total(chosen, plan.weights, plan.slopes, intercepts(chosen, plan.slopes, rescale=rescale))


def sample_weight(scores: Any, *, doc_weights: Mapping[str, float] | None = None, doc: str = "doc_name") -> Any:
    """Return each sample's document weight, 1.0 for a document that is not named or a row without one.

    Returns
    -------
    Series
        Named ``sample_weight``; for another engine than pandas a frame of its kind, as `weighted_score`. On a
        lazy frame no query is run: document names match in the Unicode forms NFC and NFD and as they are
        written in `doc_weights`, and a weight for a document that does not occur brings no warning.

    Raises
    ------
    RagnbError
        For weights that are none.

    Examples
    --------
    >>> sample_weight(pd.DataFrame({"doc_name": ["a.pdf", None]}), doc_weights={"a.pdf": 2}).tolist()
    [2.0, 1.0]
    """
    scores = canonical(scores, doc)
    if not isinstance(scores, pd.DataFrame):
        return add_columns(scores, None, (doc, doc_weights), only=True)
    checked = check_weights(doc_weights, "doc_weights")
    if not checked:
        labels(scores.iloc[:0], doc, optional=doc == "doc_name")  # refuses a column that is not there
        return pd.Series(1.0, index=scores.index, name="sample_weight")
    found = labels(scores, doc, optional=doc == "doc_name", compose=True)
    warn_unused(checked, found.names, "doc_weights")
    table: npt.NDArray[np.float64] = np.array([checked.get(name, 1.0) for name in found.names] + [1.0])
    weight = table[found.codes]
    refuse_all_zero(bool(weight.any()) or not len(weight), "doc_weights")
    return pd.Series(weight, index=scores.index, name="sample_weight")


def weigh(
    scores: Rows,
    *,
    metrics: MetricsArgument = None,
    metric_weights: Mapping[str, float] | None = None,
    doc_weights: Mapping[str, float] | None = None,
    doc: str = "doc_name",
    orient: bool = True,
    rescale: bool = False,
) -> Rows:
    """Return the scores with two columns more, ``weighted_score`` and ``sample_weight``.

    Columns of these names that are there already are made anew. A frame of another engine than pandas comes
    back as its kind, and a lazy one lazy: see `weighted_score` and `sample_weight`.

    Raises
    ------
    RagnbError
        As `weighted_score`.

    Examples
    --------
    >>> weigh(pd.DataFrame({"faithfulness": [0.5]}))[["weighted_score", "sample_weight"]].values.tolist()
    [[0.5, 1.0]]
    """
    how: dict[str, Any] = {"orient": orient, "rescale": rescale}
    if not isinstance(scores, pd.DataFrame):
        frame, total = _total(scores, (doc,), metrics, metric_weights, **how)
        return cast(Rows, as_called(add_columns(frame, total, (doc, doc_weights)), frame, scores))
    total = weighted_score(scores, metrics=metrics, metric_weights=metric_weights, **how)
    weight = sample_weight(scores, doc_weights=doc_weights, doc=doc)
    return cast(Rows, scores.assign(weighted_score=total, sample_weight=weight))
