"""The seeded cluster bootstrap on sums: the clusters are drawn, their rows are never seen."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
_BLOCK = 2_000_000  # counts held at once: 16 MB of resamples × units


def resampled_means(
    sizes: npt.NDArray[np.int64], weights: Array, sums: Array, variances: Array, *, resamples: int, seed: int
) -> Array:
    """Return bootstrap means: units drawn with replacement, as many as there are.

    Parameters
    ----------
    sizes : (U,) int
        1 for a cluster; for rows that are clusters of their own and share a unit, how many they are.
    weights, sums, variances : (U, W) float
        Σv, Σvx and Var(vx) of one draw from a unit; the variance of a cluster is 0, as it is drawn whole.
    resamples : int
    seed : int
        The same seed gives the same numbers.

    Returns
    -------
    (resamples, W) float
        Σvx / Σv of each resample; nan where nothing with weight was drawn.

    Notes
    -----
    The counts are multinomial, which is the bootstrap itself for clusters. What c draws from a unit of several
    rows add up to is known by its mean and variance alone: it is drawn as normal, with c times both.

    Examples
    --------
    >>> one, zero = np.ones((3, 1)), np.zeros((3, 1))
    >>> resampled_means(np.array([1, 1, 1]), one, one / 2, zero, resamples=2, seed=0).tolist()
    [[0.5], [0.5]]
    """
    rng = np.random.default_rng(seed)
    means = np.full((resamples, weights.shape[1]), np.nan)
    units, total = len(sizes), int(sizes.sum())
    block = max(1, _BLOCK // max(units, 1))
    for start in range(0, resamples if total else 0, block):
        part = means[start : start + block]
        drawn = _counts(rng, sizes, total, len(part))
        bottom, top = drawn @ weights, drawn @ sums
        if variances.any():
            top += np.sqrt(drawn @ variances) * rng.standard_normal(part.shape)
        np.divide(top, bottom, out=part, where=bottom > 0)
    return means


def _counts(rng: np.random.Generator, sizes: npt.NDArray[np.int64], total: int, resamples: int) -> Array:
    """How often each unit is drawn in each resample: multinomial, drawn one by one where that is faster."""
    units = len(sizes)
    if total > units:
        return rng.multinomial(total, sizes / total, size=resamples).astype(float)
    drawn = rng.integers(0, units, (resamples, total)) + units * np.arange(resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=resamples * units).reshape(resamples, units).astype(float)
