"""What a bad score costs: how far the total rises when it is lifted to its bar, exactly, from the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.diagnostics.rules import past
from ragnb.schema import Metric
from ragnb.weights import Effective, MetricsArgument, effective_weights

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Lifts:
    """The rows' scores, and how much the total follows each of them.

    Attributes
    ----------
    parts : Effective
        Scores and what each sample's weighted score is made of.
    weight : (N,) float
        The samples' document weights.
    """

    parts: Effective
    weight: Array

    @cached_property
    def total(self) -> float:
        """The document weight of all samples that have a weighted score; 0 where there is no total."""
        return float(np.where(self.parts.scale > 0, self.weight, 0.0).sum())

    @cached_property
    def _share(self) -> Array:
        """What a unit of weight of a metric is to the total, sample by sample: 0 where there is none."""
        scale = self.parts.scale
        return np.divide(self.weight, scale * self.total, out=np.zeros(len(scale)), where=scale > 0)

    def rises(self, metric: Metric, bar: float) -> Array:
        """Return by how much each sample, lifted to the bar where it is past it, raises the total.

        The total is Σ v·t / Σ v over the samples, t = Σ share · (intercept + slope · score); so one score
        lifted by δ raises it by v · share · slope · δ / Σ v. All nan where there is no total.
        """
        if self.total <= 0:
            return np.full(len(self.weight), np.nan)
        return self._share * self._lifted(metric, bar)

    def rise(self, metric: Metric, bar: float) -> float:
        """Return the sum of `rises`."""
        if self.total <= 0:
            return float("nan")
        return float(np.einsum("i,i", self._share, self._lifted(metric, bar)))  # BLAS would wake its threads

    def _lifted(self, metric: Metric, bar: float) -> Array:
        """How far each sample is past the bar, times what the metric counts."""
        k = self.parts.metrics.index(metric)
        x = self.parts.values[k]
        factor = self.parts.weights[k] * self.parts.slopes[k]
        return np.where(past(x, bar, metric.better), factor * (bar - x), 0.0)


def lifts(
    scores: pd.DataFrame,
    metrics: MetricsArgument,
    weight: pd.Series[Any],
    *,
    metric_weights: Mapping[str, float] | None,
    orient: bool,
    rescale: bool,
) -> Lifts:
    """Return the rows' scores with what the total makes of them; metrics that do not add up have no total.

    Examples
    --------
    >>> frame = pd.DataFrame({"faithfulness": [0.5, 1.0], "context_recall": [1.0, None]})
    >>> one = pd.Series([1.0, 1.0])
    >>> found = lifts(frame, None, one, metric_weights=None, orient=True, rescale=False)
    >>> found.rises(found.parts.metrics[0], 0.7).round(3).tolist()
    [0.05, 0.0]
    """
    parts = effective_weights(
        scores, metric_weights, metrics=metrics, orient=orient, rescale=rescale, strict=False
    )
    return Lifts(parts, weight.to_numpy(dtype=float))
