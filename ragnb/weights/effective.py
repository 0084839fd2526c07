"""How the scores of a sample add up: its weighted score, and how much each metric counts in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ragnb.schema import Metric
from ragnb.weights.cells import Flags
from ragnb.weights.check import check_metric_weights
from ragnb.weights.columns import Array, score_columns
from ragnb.weights.engines import scored_columns
from ragnb.weights.finish import plan_total, weight_vector
from ragnb.weights.reduced import MetricsArgument
from ragnb.weights.scored import scored

_BLOCK = 2**14


@dataclass(frozen=True)
class Effective:
    """What each metric contributes to each sample's weighted score.

    Attributes
    ----------
    metrics : tuple of Metric
    values : (N,) float each
        Raw scores of a metric, nan where there is none.
    weights : (K,) float
        Of the metrics in the total.
    scale : (N,) float
        Σ weight over the metrics that the sample has; 0 where it has no weighted score.
    slopes, intercepts : (K,) float
        A metric's way into the total: its rise per unit is negative where lower is better.
    why_no_total : str
        Why nothing adds up, in words; empty where it does.
    """

    metrics: tuple[Metric, ...]
    values: list[Array]
    weights: Array
    scale: Array
    slopes: Array
    intercepts: Array
    why_no_total: str

    @cached_property
    def score(self) -> Array:
        """The weighted scores, Σ weight · (intercept + slope · value) / scale, nan where there is none: (N,)."""
        score = np.empty(len(self.scale))
        used = [(self.values[k], self.weights[k], k) for k in np.flatnonzero(self.weights)]
        for block in _blocks(len(score)):
            top = np.zeros(len(score[block]))
            for values, weight, k in used:
                x = values[block] * (weight * self.slopes[k])
                x += weight * self.intercepts[k]
                top += np.where(np.isnan(x), 0.0, x)
            bottom = self.scale[block]
            np.divide(top, np.where(bottom > 0, bottom, np.nan), out=score[block])
        return score


def effective_weights(
    scores: Any,
    metric_weights: Mapping[str, float] | None = None,
    *,
    metrics: MetricsArgument = None,
    orient: bool = True,
    rescale: bool = False,
    strict: bool = True,
) -> Effective:
    """Return each sample's weighted score and the weight that it is spread over.

    Of another engine than pandas the metrics' columns are collected; rows of DuckDB and PySpark have no order.

    Raises
    ------
    RagnbError
        As `weighted_score`; with ``strict=False`` metrics of different ranges give shares of 0 instead.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"faithfulness": [1.0], "context_recall": [None]})
    >>> effective_weights(frame).scale.tolist()
    [1.0]
    """
    scores, chosen = scored(scores, metrics)
    scores = scored_columns(scores, chosen)
    values, _ = score_columns(scores, chosen)
    checked = check_metric_weights(metric_weights, [m.name for m in chosen], stacklevel=4)
    vector = weight_vector(chosen, checked)
    plan = plan_total(chosen, vector, orient=orient, rescale=rescale, strict=strict)
    added = intercepts(chosen, plan.slopes, rescale=rescale)
    scale = np.zeros(len(scores))
    for block in _blocks(len(scale)):
        for k in np.flatnonzero(plan.weights):
            scale[block] += plan.weights[k] * ~np.isnan(values[k][block])
    return Effective(chosen, values, plan.weights, scale, plan.slopes, added, plan.why_not)


def _blocks(rows: int) -> Iterator[slice]:
    """Runs of rows that stay in the processor's cache."""
    return (slice(start, start + _BLOCK) for start in range(0, rows, _BLOCK))


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
    turned = np.array([sum(m.scale) if s < 0 else 0.0 for m, s in zip(metrics, slopes, strict=True)])
    moved = np.array([m.scale[0] if rescale and m.bounded else 0.0 for m in metrics])
    found: Array = np.where(turned != 0, turned * np.abs(slopes) - moved * np.abs(slopes), -moved * slopes)
    return found
