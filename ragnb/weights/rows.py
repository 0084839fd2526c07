"""Row by row: the weighted score of each sample, its document's weight, and how much each metric counts in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError
from ragnb.schema import Metric, resolve_metrics
from ragnb.weights.check import check_weights, warn_unused
from ragnb.weights.columns import Array, labels, matrix, statuses
from ragnb.weights.finish import plan_total, weight_vector
from ragnb.weights.reduced import MetricsArgument


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
    _pandas_only(scores)
    chosen = resolve_metrics(metrics, [str(c) for c in scores.columns])
    values = matrix(scores, chosen)
    statuses(scores, chosen, values)
    checked = check_weights(metric_weights, "metric_weights")
    warn_unused(checked, [m.name for m in chosen], "metric_weights", stacklevel=4)
    vector = weight_vector(chosen, checked)
    plan = plan_total(chosen, vector, orient=orient, rescale=rescale, strict=strict)
    weight = ~np.isnan(values) * plan.weights
    scale = weight.sum(axis=1, keepdims=True)
    share = np.divide(weight, scale, out=np.zeros_like(weight), where=scale > 0)
    turned = np.array([m.low + m.high if s < 0 else 0.0 for m, s in zip(chosen, plan.slopes, strict=True)])
    moved = np.array([m.low if rescale and m.bounded else 0.0 for m in chosen])
    intercepts = np.where(
        turned != 0, turned * np.abs(plan.slopes) - moved * np.abs(plan.slopes), -moved * plan.slopes
    )
    return Effective(chosen, values, share, plan.slopes, intercepts, plan.why_not)


def _pandas_only(scores: object) -> None:
    if not isinstance(scores, pd.DataFrame):
        kind = type(scores).__name__
        raise RagnbError(f"{kind} is no pandas frame; convert it first, such as scores.to_pandas()")


def weighted_score(
    scores: pd.DataFrame,
    metric_weights: Mapping[str, float] | None = None,
    *,
    metrics: MetricsArgument = None,
    orient: bool = True,
    rescale: bool = False,
) -> pd.Series[Any]:
    """Return each sample's weighted score, Σ w·s / Σ w over the metrics that have a score.

    Parameters
    ----------
    scores : DataFrame
        One row a sample, one column a metric.
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
        Named ``weighted_score``, on the index of `scores`; nan where no metric with weight has a score.

    Raises
    ------
    RagnbError
        For weights that are none, unknown metrics, values outside their range, and metrics of different ranges.

    Examples
    --------
    >>> scores = pd.DataFrame({"faithfulness": [1.0, None], "context_recall": [0.5, 0.25]})
    >>> weighted_score(scores, {"faithfulness": 3}).tolist()
    [0.875, 0.25]
    """
    parts = effective_weights(scores, metric_weights, metrics=metrics, orient=orient, rescale=rescale)
    filled = np.where(np.isnan(parts.values), 0.0, parts.intercepts + parts.slopes * parts.values)
    total = (parts.share * filled).sum(axis=1)
    total[parts.share.sum(axis=1) == 0] = np.nan
    return pd.Series(total, index=scores.index, name="weighted_score")


def sample_weight(
    scores: pd.DataFrame, doc_weights: Mapping[str, float] | None = None, *, doc: str = "doc_name"
) -> pd.Series[Any]:
    """Return each sample's document weight, 1.0 for a document that is not named or a row without one.

    Raises
    ------
    RagnbError
        For weights that are none.

    Examples
    --------
    >>> sample_weight(pd.DataFrame({"doc_name": ["a.pdf", None]}), {"a.pdf": 2}).tolist()
    [2.0, 1.0]
    """
    _pandas_only(scores)
    checked = check_weights(doc_weights, "doc_weights")
    found = labels(scores, doc, optional=doc == "doc_name", compose=True)
    warn_unused(checked, found.names, "doc_weights")
    table: npt.NDArray[np.float64] = np.array([checked.get(name, 1.0) for name in found.names] + [1.0])
    return pd.Series(table[found.codes], index=scores.index, name="sample_weight")


def weigh(
    scores: pd.DataFrame,
    metric_weights: Mapping[str, float] | None = None,
    doc_weights: Mapping[str, float] | None = None,
    *,
    metrics: MetricsArgument = None,
    doc: str = "doc_name",
    orient: bool = True,
    rescale: bool = False,
) -> pd.DataFrame:
    """Return the scores with two columns more, ``weighted_score`` and ``sample_weight``.

    Columns of these names that are there already are made anew.

    Raises
    ------
    RagnbError
        As `weighted_score`.

    Examples
    --------
    >>> weigh(pd.DataFrame({"faithfulness": [0.5]}))[["weighted_score", "sample_weight"]].values.tolist()
    [[0.5, 1.0]]
    """
    return scores.assign(
        weighted_score=weighted_score(scores, metric_weights, metrics=metrics, orient=orient, rescale=rescale),
        sample_weight=sample_weight(scores, doc_weights, doc=doc),
    )
