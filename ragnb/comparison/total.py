"""The weighted score of pairs: per question, over the metrics that both systems have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ragnb.comparison.pairs import Pairs
from ragnb.weights.check import check_metric_weights
from ragnb.weights.columns import Array
from ragnb.weights.estimates import Plan, intercepts, plan_total, weight_vector


@dataclass(frozen=True)
class Total:
    """How the metrics of pairs add up.

    Attributes
    ----------
    plan : Plan
        Weights, slopes, and why there is no total.
    weights : (K,) float
    intercepts : (K,) float
        What turning and rescaling add to a metric.
    """

    plan: Plan
    weights: Array
    intercepts: Array

    @classmethod
    def of(cls, pairs: Pairs, metric_weights: Mapping[str, float] | None, *, orient: bool, rescale: bool) -> Total:
        """Lay down the total for these weights."""
        checked = check_metric_weights(metric_weights, [m.name for m in pairs.metrics])
        weights = weight_vector(pairs.metrics, checked)
        plan = plan_total(pairs.metrics, weights, orient=orient, rescale=rescale, strict=False)
        return cls(plan, weights, intercepts(pairs.metrics, plan.slopes, rescale=rescale))

    @property
    def width(self) -> float:
        """Of the total's range; nan where there is no total."""
        return self.plan.high - self.plan.low

    def scores(self, scores: Array, present: npt.NDArray[np.bool_]) -> Array:
        """Return the weighted score of each question over the metrics that are present, nan without any.

        Parameters
        ----------
        scores, present : (..., Q, K)
        """
        weights = present * self.plan.weights
        scale = weights.sum(axis=-1)
        added = (weights * (np.nan_to_num(scores) * self.plan.slopes + self.intercepts)).sum(axis=-1)
        found: Array = np.divide(added, scale, out=np.full_like(added, np.nan), where=scale > 0)
        return found
