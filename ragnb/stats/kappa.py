"""Cohen's kappa of a table, with any weights."""

from __future__ import annotations

import numpy as np

from ragnb.errors import RagnbError, listing, unknown
from ragnb.stats.estimates import Estimate, Values, t_interval
from ragnb.stats.means import Array

WEIGHTS = ("none", "linear", "quadratic")


def rating_table(judge: Values, human: Values, levels: Values) -> Array:
    """Count the rows by judge's level (down) and human's level (across); a nan in either leaves the row out.

    A value that is not one of the levels raises RagnbError.

    Examples
    --------
    >>> rating_table([1, 2, 2], [1, 2, 3], [1, 2, 3]).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    """
    names = np.unique(np.asarray(levels, dtype=float))
    x, y = np.asarray(judge, dtype=float), np.asarray(human, dtype=float)
    seen = ~(np.isnan(x) | np.isnan(y))
    at = []
    for values in (x[seen], y[seen]):
        place = np.minimum(np.searchsorted(names, values), len(names) - 1)
        wrong = values[names[place] != values]
        if len(wrong):
            choices = listing(f"{name:g}" for name in names)
            raise RagnbError(f"{wrong[0]:g} is not a level (have: {choices}); give every level of the scale")
        at.append(place)
    k = len(names)
    return np.bincount(at[0] * k + at[1], minlength=k * k).reshape(k, k).astype(float)


def _weights(weights: str | Values, k: int, levels: Values | None) -> Array:
    """Agreement weights, 1 on the diagonal, by name or from a table of disagreements."""
    if not isinstance(weights, str):
        cost = np.asarray(weights, dtype=float)
        if cost.shape != (k, k):
            raise RagnbError(f"weights has shape {cost.shape}, the table is {k} × {k}; give a disagreement a cell")
        return np.asarray(1 - cost / cost.max())
    if weights not in WEIGHTS:
        raise unknown("weights", weights, WEIGHTS)
    at = np.arange(k, dtype=float) if levels is None else np.unique(np.asarray(levels, dtype=float))
    gap = np.abs(at[:, None] - at[None, :])
    if weights == "none":
        return np.asarray(gap == 0, dtype=float)
    return np.asarray(1 - (gap / gap.max()) ** (2 if weights == "quadratic" else 1))


def kappa(
    table: Values,
    weights: str | Values = "none",
    *,
    n: float | None = None,
    levels: Values | None = None,
    level: float = 0.95,
) -> Estimate:
    """Return Cohen's kappa of a square table of counts or proportions, for independent rows.

    Parameters
    ----------
    table : array, shape (k, k)
        One rater down, the other across, every level of the scale there, used or not.
    weights : {"none", "linear", "quadratic"} or array, shape (k, k)
        By distance between levels, or the disagreement of each cell (0 on the diagonal).
    n : float, optional
        The number of rows, where the table holds proportions.
    levels : array, shape (k,), optional
        The levels' values; None means equal steps.

    Notes
    -----
    Cohen (1960, 1968); the standard error is Fleiss, Cohen and Everitt's (1969), Psychol. Bull. 72, 323–327.
    For clustered ratings use `quadratic_kappa` or `within_kappa`, which leave out one cluster at a time.

    Examples
    --------
    >>> skin = [[10, 4, 1, 0], [5, 10, 12, 2], [2, 4, 12, 5], [0, 2, 6, 13]]
    >>> round(kappa(skin).value, 4), round(kappa(skin, "linear").value, 4)
    (0.3449, 0.5082)
    """
    counts = np.asarray(table, dtype=float)
    total = counts.sum()
    size = total if n is None else n
    p, w = counts / total, _weights(weights, len(counts), levels)
    row, column = p.sum(axis=1), p.sum(axis=0)
    seen, chance = float(np.sum(w * p)), float(row @ w @ column)
    if chance >= 1 - 1e-12:
        return Estimate(np.nan, np.nan, np.nan, np.nan, int(size), int(size))
    value = (seen - chance) / (1 - chance)
    edge = (w @ column)[:, None] + (row @ w)[None, :]
    spread = np.sum(p * (w - edge * (1 - value)) ** 2) - (value - chance * (1 - value)) ** 2
    se = float(np.sqrt(spread / size) / (1 - chance)) if spread > 1e-14 else 0.0
    return Estimate(value, *t_interval(value, se, np.inf, level), se, int(size), int(size))
