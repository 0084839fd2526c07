"""How the scores of a sample add up: each metric's part of a total, and its way into it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ragnb.schema import Metric
from ragnb.weights.cells import Flags
from ragnb.weights.columns import Array


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
