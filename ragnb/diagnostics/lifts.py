"""What a bad score costs: how far the total rises when it is lifted to its bar, exactly, from the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
        Scores and the metrics' shares of each sample's weighted score.
    weight : (N,) float
        The samples' document weights.
    """

    parts: Effective
    weight: Array

    @property
    def total(self) -> float:
        """The document weight of all samples that have a weighted score; 0 where there is no total."""
        return float(self.weight[self.parts.scale > 0].sum())

    def column(self, metric: Metric) -> int:
        """Return the position of a metric."""
        return self.parts.metrics.index(metric)

    def values(self, metric: Metric) -> Array:
        """Return a metric's scores, nan where there is none."""
        return np.asarray(self.parts.values[:, self.column(metric)], dtype=float)

    def rises(self, metric: Metric, bar: float) -> Array:
        """Return by how much each sample, lifted to the bar where it is past it, raises the total.

        The total is Σ v·t / Σ v over the samples, t = Σ share · (intercept + slope · score); so one score
        lifted by δ raises it by v · share · slope · δ / Σ v. All nan where there is no total.
        """
        if self.total <= 0:
            return np.full(len(self.weight), np.nan)
        k = self.column(metric)
        x = self.values(metric)
        delta = np.where(past(x, bar, metric.better), bar - x, 0.0)
        return np.asarray(
            self.weight * self.parts.share(k) * delta * (self.parts.slopes[k] / self.total), dtype=float
        )


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
