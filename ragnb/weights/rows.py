"""Row by row: the weighted score of each sample, its document's weight, and how much each metric counts in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError
from ragnb.schema import Metric, resolve_metrics
from ragnb.weights.added import DocWeights, Total, add_columns
from ragnb.weights.cells import Flags
from ragnb.weights.check import check_weights, warn_unused
from ragnb.weights.columns import Array, labels, matrix, statuses
from ragnb.weights.engines import column_names
from ragnb.weights.finish import plan_total, weight_vector
from ragnb.weights.reduced import MetricsArgument

Rows = TypeVar("Rows")


@dataclass(frozen=True)
class Effective:
    """What each metric contributes to each sample's weighted score.

    Attributes
    ----------
    metrics : tuple of Metric
    values : (N, K) float
        Raw scores, nan where there is none.
    share : (N, K) float
        The metric's part of the sample's total: rows add up to 1, or to 0 where there is no weighted score.
    slopes : (K,) float
        The rise of the total per unit of the metric, before `share`: negative where lower is better.
    intercepts : (K,) float
        The total is Σ share · (intercept + slope · value).
    why_no_total : str
        Why nothing adds up, in words; empty where it does.
    """

    metrics: tuple[Metric, ...]
    values: Array
    share: Array
    slopes: Array
    intercepts: Array
    why_no_total: str


def effective_weights(
    scores: pd.DataFrame,
    metric_weights: Mapping[str, float] | None = None,
    *,
    metrics: MetricsArgument = None,
    orient: bool = True,
    rescale: bool = False,
    strict: bool = True,
) -> Effective:
    """Return each metric's share of each sample's weighted score.

    Raises
    ------
    RagnbError
        As `weighted_score`; with ``strict=False`` metrics of different ranges give shares of 0 instead.

    Examples
    --------
    >>> frame = pd.DataFrame({"faithfulness": [1.0], "context_recall": [None]})
    >>> effective_weights(frame).share.tolist()
    [[1.0, 0.0]]
    """
    if not isinstance(scores, pd.DataFrame):
        kind = type(scores).__name__
        raise RagnbError(f"{kind} is no pandas frame; convert it first, such as scores.to_pandas()")
    chosen = resolve_metrics(metrics, [str(c) for c in scores.columns])
    values = matrix(scores, chosen)
    statuses(scores, chosen, values)
    checked = check_weights(metric_weights, "metric_weights")
    warn_unused(checked, [m.name for m in chosen], "metric_weights", stacklevel=4)
    vector = weight_vector(chosen, checked)
    plan = plan_total(chosen, vector, orient=orient, rescale=rescale, strict=strict)
    share = shares(~np.isnan(values), plan.weights)
    return Effective(
        chosen, values, share, plan.slopes, intercepts(chosen, plan.slopes, rescale=rescale), plan.why_not
    )


def shares(present: Flags, weights: Array) -> Array:
    """Return each metric's part of the total of rows with these gaps: rows add up to 1, or to 0 without a total.

    Examples
    --------
    >>> shares(np.array([[True, True], [True, False]]), np.array([1.0, 3.0])).tolist()
    [[0.25, 0.75], [1.0, 0.0]]
    """
    weight = present * weights
    scale = weight.sum(axis=1, keepdims=True)
    share: Array = np.divide(weight, scale, out=np.zeros_like(weight), where=scale > 0)
    return share


def intercepts(metrics: Sequence[Metric], slopes: Array, *, rescale: bool) -> Array:
    """Return what turning and rescaling add to each metric on its way into the total.

    Examples
    --------
    >>> intercepts([Metric("a"), Metric("b")], np.array([-1.0, -1.0]), rescale=False).tolist()
    [1.0, 1.0]
    """
    turned = np.array([m.low + m.high if s < 0 else 0.0 for m, s in zip(metrics, slopes, strict=True)])
    moved = np.array([m.low if rescale and m.bounded else 0.0 for m in metrics])
    found: Array = np.where(turned != 0, turned * np.abs(slopes) - moved * np.abs(slopes), -moved * slopes)
    return found


def weighted_score(
    scores: Any,
    metric_weights: Mapping[str, float] | None = None,
    *,
    metrics: MetricsArgument = None,
    orient: bool = True,
    rescale: bool = False,
) -> Any:
    """Return each sample's weighted score, Σ w·s / Σ w over the metrics that have a score.

    Parameters
    ----------
    scores : DataFrame
        One row a sample, one column a metric; of pandas, Polars, PyArrow, DuckDB or PySpark.
    metric_weights : mapping of metric to weight, optional
        Finite, ≥ 0, not all zero. A metric that is not named counts 1.0 (a rubric dimension: the rubric's).
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
    >>> weighted_score(scores, {"faithfulness": 3}).tolist()
    [0.875, 0.25]
    """
    if not isinstance(scores, pd.DataFrame):
        total = _total(scores, metric_weights, metrics=metrics, orient=orient, rescale=rescale)
        return add_columns(scores, total, None, only=True)
    parts = effective_weights(scores, metric_weights, metrics=metrics, orient=orient, rescale=rescale)
    filled = np.where(np.isnan(parts.values), 0.0, parts.intercepts + parts.slopes * parts.values)
    score = (parts.share * filled).sum(axis=1)
    score[parts.share.sum(axis=1) == 0] = np.nan
    return pd.Series(score, index=scores.index, name="weighted_score")


def _total(
    scores: Any,
    metric_weights: Mapping[str, float] | None,
    *,
    metrics: MetricsArgument,
    orient: bool,
    rescale: bool,
) -> Total:
    chosen = resolve_metrics(metrics, column_names(scores))
    checked = check_weights(metric_weights, "metric_weights")
    warn_unused(checked, [m.name for m in chosen], "metric_weights", stacklevel=4)
    plan = plan_total(chosen, weight_vector(chosen, checked), orient=orient, rescale=rescale)
    return Total(chosen, plan.weights, plan.slopes, intercepts(chosen, plan.slopes, rescale=rescale))


def sample_weight(scores: Any, doc_weights: Mapping[str, float] | None = None, *, doc: str = "doc_name") -> Any:
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
    >>> sample_weight(pd.DataFrame({"doc_name": ["a.pdf", None]}), {"a.pdf": 2}).tolist()
    [2.0, 1.0]
    """
    if not isinstance(scores, pd.DataFrame):
        return add_columns(scores, None, DocWeights(doc, doc_weights), only=True)
    checked = check_weights(doc_weights, "doc_weights")
    found = labels(scores, doc, optional=doc == "doc_name", compose=True)
    warn_unused(checked, found.names, "doc_weights")
    table: npt.NDArray[np.float64] = np.array([checked.get(name, 1.0) for name in found.names] + [1.0])
    return pd.Series(table[found.codes], index=scores.index, name="sample_weight")


def weigh(
    scores: Rows,
    metric_weights: Mapping[str, float] | None = None,
    doc_weights: Mapping[str, float] | None = None,
    *,
    metrics: MetricsArgument = None,
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
    if not isinstance(scores, pd.DataFrame):
        total = _total(scores, metric_weights, metrics=metrics, orient=orient, rescale=rescale)
        return cast(Rows, add_columns(scores, total, DocWeights(doc, doc_weights)))
    made = scores.assign(
        weighted_score=weighted_score(scores, metric_weights, metrics=metrics, orient=orient, rescale=rescale),
        sample_weight=sample_weight(scores, doc_weights, doc=doc),
    )
    return cast(Rows, made)
