"""Power: how many labels a verdict needs, and what more labels would gain."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np

from ragnb.errors import RagnbError
from ragnb.stats.estimates import Labels, Values, clustered_mean, complete_rows, mean_squares
from ragnb.stats.means import Array, kish, mean_interval


def _check(**rates: float) -> None:
    for name, rate in rates.items():
        if not 0 < rate < 1:
            raise RagnbError(f"{name}={rate} is not between 0 and 1; give a share such as 0.8")


def sample_size_normal(target: float, share: float, *, alpha: float = 0.05, power: float = 0.8) -> int:
    """Return the rows that show a true `share` to exceed `target`, by the normal approximation.

    n = ((z₁₋α √(p₀q₀) + z₁₋β √(p₁q₁)) / (p₁ − p₀))², rounded up; one-sided, independent rows. Fleiss, Levin and
    Paik (2003), Statistical Methods for Rates and Proportions, chapter 2.

    Examples
    --------
    >>> sample_size_normal(0.8, 0.9)
    83
    """
    from scipy.special import ndtri

    _check(target=target, share=share, alpha=alpha, power=power)
    if share <= target:
        raise RagnbError(f"share={share} does not exceed target={target}; no number of labels shows that it does")
    width: float = ndtri(1 - alpha) * sqrt(target * (1 - target)) + ndtri(power) * sqrt(share * (1 - share))
    return ceil((width / (share - target)) ** 2)


def binomial_power(n: Values, target: float, share: float, *, alpha: float = 0.05) -> Array:
    """Return the power of the exact one-sided binomial test of share > target at each n.

    Examples
    --------
    >>> binomial_power([94], 0.8, 0.9).round(4).tolist()
    [0.8562]
    """
    from scipy.special import bdtrik, betainc

    size = np.asarray(n, dtype=float)

    def above(k: Array, p: float) -> Array:  # P(X > k)
        return np.where(k < size, betainc(k + 1, np.maximum(size - k, 0.5), p), 0.0)

    # The least k with P(X > k | target) ≤ alpha lies beside the continuous inverse.
    near = np.clip(np.ceil(bdtrik(1 - alpha, size, target)) + np.arange(-1, 2)[:, None], 0, size)
    least = np.min(np.where(above(near, target) <= alpha, near, size), axis=0)
    return above(least, share)


def sample_size_exact(target: float, share: float, *, alpha: float = 0.05, power: float = 0.8) -> int:
    """Return the least n from which on the exact binomial test keeps the power, whatever more is labelled.

    The power of an exact test rises in saw teeth; the first n that reaches it may be followed by one that
    does not, so the search starts well above the normal approximation and walks down. Past 5,000 rows, where
    teeth no longer matter, it is the normal approximation.

    Examples
    --------
    >>> [sample_size_exact(0.8, share) for share in (0.85, 0.9, 0.95)]
    [398, 94, 37]
    """
    near = sample_size_normal(target, share, alpha=alpha, power=power)
    if near > 5000:
        return near
    top = 2 * near + 60
    sizes = np.arange(1, top + 1)
    weak = np.flatnonzero(binomial_power(sizes, target, share, alpha=alpha) < power)
    return int(sizes[weak[-1]]) + 1 if len(weak) else 1


def anova_icc(values: Values, clusters: Labels, *, counts: Labels = None) -> float:
    """Return ρ, the intra-cluster correlation by one-way analysis of variance, for clusters of any sizes.

    ρ = (MSB − MSW) / (MSB + (m₀ − 1) MSW), m₀ = (n − Σm²/n)/(G − 1); nan with one cluster, with no cluster of
    two rows, or where nothing varies. It may be negative. Donner and Koval (1980), Biometrics 36, 19–25.

    Examples
    --------
    >>> anova_icc([1, 1, 0, 0, 1, 1], ["a", "a", "b", "b", "c", "c"])
    1.0
    """
    rows = complete_rows([values], clusters, counts)
    g = int(rows.code.max(initial=-1)) + 1
    if g < 2 or rows.counts.sum() == g:
        return float("nan")
    between, inside, m0 = mean_squares(rows.columns[0], rows.code, rows.counts)
    bottom = between + (m0 - 1) * inside
    return float((between - inside) / bottom) if bottom > 0 else float("nan")


def design_effect(sizes: Values, rho: float) -> float:
    """Return 1 + (Σm²/Σm − 1)·ρ, at least 1: the number of clustered rows equivalent to one independent row.

    Kish (1965), Survey Sampling, with the sizes' weighted mean for unequal clusters.

    Examples
    --------
    >>> design_effect([2, 2, 4], 0.5)
    2.0
    """
    m = np.asarray(sizes, dtype=float)
    return float(max(1.0, 1 + (np.sum(m**2) / np.sum(m) - 1) * rho)) if np.isfinite(rho) else 1.0


@dataclass(frozen=True, slots=True)
class LabelsNeeded:
    """The labels that show a share above a target: `total` = deff · `independent`, None where none suffice.

    `reason` is "counted", "share_at_or_below_target" (more labels will not help), "too_close_to_tell" (the share
    is above the target, its lower bound does not), or "beyond_plan" (it takes a new plan of `total` labels, all
    fresh).

    Examples
    --------
    >>> LabelsNeeded(200, 80, 100, 2.0, 0.1, 0.92, 0.9, "counted").more
    80
    """

    total: int | None
    more: int | None
    independent: int | None
    deff: float
    rho: float
    seen: float
    planned: float
    reason: str


def labels_needed(
    flags: Values, clusters: Labels = None, *, target: float = 0.8, alpha: float = 0.05, power: float = 0.8,
    weights: Labels = None, counts: Labels = None, labels_planned: int | None = None,
) -> LabelsNeeded:  # fmt: skip
    """Return how many labels show that the share of flags exceeds the target, planned on its lower 80 % bound.

    Parameters
    ----------
    flags : array, shape (n,)
        1 within the tolerance, 0 not, nan not rated.
    clusters : array, shape (n,), optional
        Rows of one cluster repeat one another: the design effect multiplies the number.
    weights : array, shape (n,), optional
        As in `clustered_mean`; Kish's factor for unequal ones goes into the design effect.
    counts : array, shape (n,), optional
        The number of rows that each row represents.
    labels_planned : int, optional
        The most labels that will be bought, where the verdict is looked at again as they come in: N labels then
        tell as much as N √(N / planned) at half the `alpha` (`mean_interval`).

    Returns
    -------
    LabelsNeeded
        Planned on the one-sided lower 80 % bound of the share, because the seen share is as likely too high as
        too low. `more` is what is missing beside the rows at hand, never below 0.

    Examples
    --------
    >>> plan = labels_needed([1] * 95 + [0] * 5, target=0.8)
    >>> plan.total, plan.more, plan.reason
    (57, 0, 'counted')
    """
    _check(target=target, alpha=alpha, power=power)
    rows = complete_rows([flags], clusters, counts, weights)
    how: dict[str, Any] = {"weights": weights, "counts": counts, "ends": (0.0, 1.0), "binary": True}
    share = clustered_mean(flags, clusters, **how, level=0.6)
    rho = anova_icc(flags, clusters, counts=counts) if clusters is not None else float("nan")
    c, v = rows.counts, rows.weights
    size, planned = float(kish(c @ v, c @ v**2)), share.low
    deff = design_effect(np.bincount(rows.code, c), rho) * (c.sum() / size if size else 1.0)
    if not planned > target + 1e-3:
        reason = "too_close_to_tell" if share.value > target else "share_at_or_below_target"
        return LabelsNeeded(None, None, None, deff, rho, share.value, planned, reason)
    error = alpha if labels_planned is None else alpha / 2
    independent = sample_size_exact(target, min(planned, 1 - 1e-9), alpha=error, power=power)
    total = ceil(deff * independent)
    if labels_planned is not None and max(total, share.n) > labels_planned:
        return LabelsNeeded(total, total, independent, deff, rho, share.value, planned, "beyond_plan")
    if labels_planned is not None:
        total = ceil((deff * independent) ** (2 / 3) * labels_planned ** (1 / 3) - 1e-9)
    return LabelsNeeded(total, max(total - share.n, 0), independent, deff, rho, share.value, planned, "counted")


def label_budget(
    flags: Values, clusters: Labels = None, *, target: float = 0.8, alpha: float = 0.05, level: float = 0.95,
    sizes: Values | None = None, weights: Labels = None, counts: Labels = None, labels_planned: int | None = None,
) -> dict[str, Array]:  # fmt: skip
    """Return the interval and power for numbers of labels, if further ones are like those available.

    Parameters
    ----------
    flags, clusters
        As in `labels_needed`: 1 within the tolerance, 0 not, nan not rated.
    target, alpha
        The test: exact binomial, one-sided, on labels / design effect, as in `labels_needed`.
    level : float
        The level of ``low, high``, the interval of the share.
    sizes : array, optional
        The numbers of labels, each 1 or more; None lays some 40 from 10 past what is there and what is needed.
    weights, counts : array, optional
        As in `labels_needed`.
    labels_planned : int, optional
        As in `labels_needed`: the chances are those of a verdict under this plan, nan beyond it.

    Returns
    -------
    dict of array
        ``labels``; ``low, high``, the interval expected at so many; ``probability`` to show share > target, were
        the seen share the true one, and ``cautious``, were its lower 80 % bound: each the least at that number
        of labels or any larger one.

    Examples
    --------
    >>> curve = label_budget([1] * 90 + [0] * 10, target=0.8, sizes=[50, 94, 200])
    >>> curve["probability"].round(2).tolist(), (curve["high"] - curve["low"]).round(2).tolist()
    ([0.51, 0.81, 0.99], [0.17, 0.12, 0.08])
    """
    how: dict[str, Any] = {"weights": weights, "counts": counts, "labels_planned": labels_planned}
    need = labels_needed(flags, clusters, target=target, alpha=alpha, **how)
    rows = complete_rows([flags], clusters, counts, weights)
    n, sizes_seen = round(float(rows.counts.sum())), np.bincount(rows.code, rows.counts)
    per_label = 1.0 if clusters is None else float(kish(n, np.sum(sizes_seen**2.0))) / n
    if sizes is None:
        here = [size for size in (n, need.total, labels_planned) if size is not None]
        top = max(4 * n, 200, int(1.5 * max(here)))
        sizes = np.unique(np.r_[np.geomspace(10, top, 38).round(), here])
    labels = np.asarray(sizes, dtype=float)
    share = np.full(len(labels), need.seen)
    se = np.sqrt(share * (1 - share) * need.deff / labels)
    g_eff = np.maximum(per_label * labels, 1.0)
    edges = np.zeros(len(labels)), np.ones(len(labels))
    low, high = mean_interval(share, se, g_eff, labels, edges, binary=True, level=level)
    fraction = labels / (labels_planned or np.inf)
    alpha, kept_of = (alpha, 1.0) if labels_planned is None else (alpha / 2, np.sqrt(fraction))
    independent = np.maximum(np.floor(labels * kept_of / need.deff + 1e-9), 1.0)
    ahead = independent[:, None] + np.arange(61.0)  # a tooth of the exact test's power is shorter than that

    def kept(true: float) -> Array:
        power = binomial_power(ahead.ravel(), target, min(true, 1 - 1e-9), alpha=alpha)
        return np.where(fraction <= 1, power.reshape(ahead.shape).min(axis=1), np.nan)

    chances = {"probability": kept(need.seen), "cautious": kept(need.planned)}
    return {"labels": labels, "low": low, "high": high, **chances}
