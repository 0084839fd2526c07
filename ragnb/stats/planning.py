"""How many labels show that a judge keeps to people, and how likely they suffice."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from ragnb.errors import RagnbError
from ragnb.stats.arrays import Array, Labels, Values, inner
from ragnb.stats.clustered import clustered_mean, complete_rows, mean_squares
from ragnb.stats.decisions import wilson_size
from ragnb.stats.intervals import kish, mean_interval, t_quantile


def _check(**rates: float) -> None:
    for name, rate in rates.items():
        if not 0 < rate < 1:
            raise RagnbError(f"{name}={rate} is not between 0 and 1; give a share such as 0.8")


def sample_size_normal(
    target: float, share: float, *, alpha: float = 0.05, power: float = 0.8
) -> int:
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
        raise RagnbError(
            f"share={share} does not exceed target={target}; no number of labels shows that it does"
        )
    to_reject = ndtri(1 - alpha) * sqrt(target * (1 - target))
    to_be_sure = ndtri(power) * sqrt(share * (1 - share))
    width: float = to_reject + to_be_sure
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

    def chance_above(k: Array, p: float) -> Array:
        # P(X > k) = I_p(k + 1, n − k). At k = n it is not defined; any second argument above 0 will do there.
        beyond = betainc(k + 1, np.maximum(size - k, 0.5), p)
        return np.where(k < size, beyond, 0.0)

    # The least k with P(X > k | target) ≤ alpha lies beside the continuous inverse, which rounding may move by 1.
    beside = np.arange(-1, 2)[:, None]
    candidates = np.clip(np.ceil(bdtrik(1 - alpha, size, target)) + beside, 0, size)
    rejects = chance_above(candidates, target) <= alpha
    critical = np.min(np.where(rejects, candidates, size), axis=0)
    return chance_above(critical, share)


def sample_size_exact(
    target: float, share: float, *, alpha: float = 0.05, power: float = 0.8
) -> int:
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
    # The power is a sawtooth in n; beyond twice the normal approximation plus 60 no tooth falls below `power`.
    sizes = np.arange(1, 2 * near + 61)
    weak = np.flatnonzero(binomial_power(sizes, target, share, alpha=alpha) < power)
    if len(weak):
        return int(sizes[weak[-1]]) + 1
    return 1


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
    n_clusters = int(rows.code.max(initial=-1)) + 1
    if n_clusters < 2 or rows.counts.sum() == n_clusters:
        return float("nan")
    between, inside, typical_size = mean_squares(rows.columns[0], rows.code, rows.counts)
    whole = between + (typical_size - 1) * inside
    if whole > 0:
        return float((between - inside) / whole)
    return float("nan")


def design_effect(sizes: Values, rho: float) -> float:
    """Return 1 + (Σm²/Σm − 1)·ρ, at least 1: the number of clustered rows equivalent to one independent row.

    Kish (1965), Survey Sampling, with the sizes' weighted mean for unequal clusters.

    Examples
    --------
    >>> design_effect([2, 2, 4], 0.5)
    2.0
    """
    m = np.asarray(sizes, dtype=float)
    if not np.isfinite(rho):
        return 1.0
    # The mean size of the cluster of a row drawn at random.
    size_of_row = np.sum(m**2) / np.sum(m)
    return float(max(1.0, 1 + (size_of_row - 1) * rho))


@dataclass(frozen=True, slots=True)
class LabelsNeeded:
    """The labels that show a share above a target.

    `total` is what the test needs if the share seen is the true one (80 % power), `more` what of it is missing,
    `chance` that so many do when only the labels at hand are known of the truth, `likely` the number at which
    that chance is 80 % (None where none does), `most` the largest chance that any number gives. `reason` is
    "counted", "share_at_or_below_target" (more labels will not help), "too_close_to_tell" (more than 100 times
    the labels at hand), or "beyond_plan" (it takes a new plan of `total` labels, all fresh).

    Examples
    --------
    >>> LabelsNeeded(200, 80, 100, 0.6, 400, 0.9, 2.0, 0.1, 0.92, "counted").more
    80
    """

    total: int | None
    more: int | None
    independent: int | None
    chance: float
    likely: int | None
    most: float
    deff: float
    rho: float
    seen: float
    reason: str


_MOST_LABELS = 100  # times those at hand: nobody can use a plan of more


@dataclass(frozen=True, slots=True)
class _Labelled:
    """A share of flags as so many labels show it, and how its test is planned."""

    share: float
    n: int
    size: float
    df: float
    deff: float
    target: float
    alpha: float
    planned: int | None

    def chance(self, labels: npt.ArrayLike) -> Array:
        """Return the chance that so many labels show share > target, given those at hand; nan for fewer.

        Nothing is known of the truth but the labels at hand (a flat prior), so the share of n + k labels wanders
        by se √(k/(n + k)) around the one seen. The se is that of (m p + 1)/(m + 2), m the effective size: with
        the share itself a few labels that all agree would be certain.
        """
        from scipy.special import stdtr

        total = np.asarray(labels, dtype=float)
        growth = total / self.n  # 1 at the labels at hand
        alpha = self.alpha
        kept = np.ones(())  # the share of the effective size that repeated looks leave
        if self.planned is not None:
            alpha = alpha / 2
            kept = np.sqrt(total / self.planned)
        se_at_target = np.sqrt(self.target * (1 - self.target) / (self.size * growth * kept))
        margin = t_quantile(1 - 2 * alpha, self.df * growth) * se_at_target
        likely = (self.size * self.share + 1) / (self.size + 2)
        # At the labels at hand the share wanders no further: the chance is 0 or 1, by ±inf.
        with np.errstate(divide="ignore", invalid="ignore"):
            wanders = np.sqrt(likely * (1 - likely) / self.size * (1 - 1 / growth))
            chances = stdtr(self.df, (self.share - self.target - margin) / wanders)
        is_past_plan = total > (self.planned or np.inf)
        return np.where((total < self.n) | is_past_plan, np.nan, chances)

    def first_likely(self, most_labels: int, power: float) -> tuple[int | None, float]:
        """Return the fewest labels whose chance is `power`, None where none is, and the largest chance of any."""
        # Labels that are not yet enough gain with each that is added, up to where the chance levels off.
        sizes = np.unique(np.geomspace(self.n, most_labels, 200).round())
        chances = self.chance(sizes)
        most = float(np.nanmax(chances))
        reached = np.flatnonzero(chances >= power)
        if not len(reached):
            return None, most
        # The grid is coarse: every size is tried between its last that is too small and its first that is enough.
        below = int(sizes[max(reached[0] - 1, 0)])
        steps = np.arange(below, int(sizes[reached[0]]) + 1)
        enough = np.flatnonzero(self.chance(steps) >= power)
        return int(steps[enough[0]]), most


def _labelled(
    flags: Values,
    clusters: Labels,
    weights: Labels,
    counts: Labels,
    *,
    target: float,
    alpha: float,
    labels_planned: int | None,
) -> tuple[_Labelled, float]:
    """Return the labels at hand for planning, and the correlation within their clusters."""
    rows = complete_rows([flags], clusters, counts, weights)
    level = 1 - 2 * alpha
    how: Any = {"weights": weights, "counts": counts, "ends": (0.0, 1.0), "level": level}
    share = clustered_mean(flags, clusters, **how)
    rho = float("nan")
    if clusters is not None:
        rho = anova_icc(flags, clusters, counts=counts)
    deff = design_effect(np.bincount(rows.code, rows.counts), rho)
    n_kish = float(kish(inner(rows.counts, rows.weights), inner(rows.counts, rows.weights**2)))
    if n_kish > 0:
        deff = deff * (rows.counts.sum() / n_kish)
    size = wilson_size(share.value, share.low, share.high, share.df, level)
    if not np.isfinite(size):
        size = share.n / deff
    if clusters is not None and share.n:
        # The interval that decides may be wider than the correlation says, above all with few clusters.
        deff = max(deff, share.n / size)
    df = max(share.df, 1.0)
    return _Labelled(share.value, share.n, size, df, deff, target, alpha, labels_planned), rho


def labels_needed(
    flags: Values,
    clusters: Labels = None,
    *,
    target: float = 0.8,
    alpha: float = 0.05,
    power: float = 0.8,
    weights: Labels = None,
    counts: Labels = None,
    labels_planned: int | None = None,
) -> LabelsNeeded:
    """Return how many labels show that the share of flags exceeds the target, and how likely they suffice.

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
        `total` is the exact binomial test's, if the share seen is the true one. It is as likely too high as too
        low, so `chance` says how often so many labels do, and `likely` how many do in 80 of 100 cases.

    Examples
    --------
    >>> plan = labels_needed([1] * 167 + [0] * 33, target=0.8)
    >>> plan.total, round(plan.chance, 2), plan.likely, round(plan.most, 2)
    (811, 0.7, 2354, 0.87)
    """
    _check(target=target, alpha=alpha, power=power)
    how: Any = {"target": target, "alpha": alpha, "labels_planned": labels_planned}
    at_hand, rho = _labelled(flags, clusters, weights, counts, **how)
    share = at_hand.share
    n = at_hand.n
    deff = at_hand.deff

    def without(
        reason: str, total: int | None = None, independent: int | None = None
    ) -> LabelsNeeded:
        return LabelsNeeded(
            total=total,
            more=total,
            independent=independent,
            chance=float("nan"),
            likely=None,
            most=float("nan"),
            deff=deff,
            rho=rho,
            seen=share,
            reason=reason,
        )

    if not share > target:
        return without("share_at_or_below_target")
    if labels_planned is None:
        most_labels = _MOST_LABELS * n
        error = alpha
    else:
        most_labels = labels_planned
        error = alpha / 2
    near = min(share, 1 - 1e-9)  # the formulas need a share below 1
    if deff * sample_size_normal(target, near, alpha=error, power=power) > _MOST_LABELS * n:
        return without("too_close_to_tell")
    independent = sample_size_exact(target, near, alpha=error, power=power)
    total = ceil(deff * independent)
    if labels_planned is not None:
        if max(total, n) > labels_planned:
            return without("beyond_plan", total, independent)
        # Solves N √(N / planned) = worth for N; rounding must not ask for one label more.
        worth = deff * independent
        total = ceil(worth ** (2 / 3) * labels_planned ** (1 / 3) - 1e-9)
    likely, most = at_hand.first_likely(most_labels, power)
    return LabelsNeeded(
        total=total,
        more=max(total - n, 0),
        independent=independent,
        chance=float(at_hand.chance(max(total, n))),
        likely=likely,
        most=most,
        deff=deff,
        rho=rho,
        seen=share,
        reason="counted",
    )


def label_budget(
    flags: Values,
    clusters: Labels = None,
    *,
    target: float = 0.8,
    alpha: float = 0.05,
    level: float = 0.95,
    sizes: Values | None = None,
    weights: Labels = None,
    counts: Labels = None,
    labels_planned: int | None = None,
) -> dict[str, Array]:
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
        the seen share the true one (the least at that number of labels or any larger one); ``chance`` of it when
        only the labels at hand are known of the truth (`labels_needed`), nan for fewer labels than those.

    Examples
    --------
    >>> curve = label_budget([1] * 90 + [0] * 10, target=0.8, sizes=[50, 94, 200])
    >>> curve["probability"].round(2).tolist(), (curve["high"] - curve["low"]).round(2).tolist()
    ([0.51, 0.81, 0.99], [0.17, 0.12, 0.08])
    """
    how: Any = {"target": target, "alpha": alpha, "labels_planned": labels_planned}
    need = labels_needed(flags, clusters, weights=weights, counts=counts, **how)
    at_hand, _ = _labelled(flags, clusters, weights, counts, **how)
    rows = complete_rows([flags], clusters, counts, weights)
    n = at_hand.n
    sizes_seen = np.bincount(rows.code, rows.counts)
    if clusters is None:
        clusters_per_label = 1.0
    else:
        clusters_per_label = float(kish(n, np.sum(sizes_seen**2.0))) / n
    if sizes is None:
        known = (n, need.total, need.likely, labels_planned)
        # What a chart marks must be on the curve.
        marked = [size for size in known if size is not None]
        top = max(4 * n, 200, int(1.5 * max(marked)))
        sizes = np.unique(np.r_[np.geomspace(10, top, 38).round(), marked])
    labels = np.asarray(sizes, dtype=float)
    share = np.full(len(labels), need.seen)
    se = np.sqrt(share * (1 - share) * need.deff / labels)
    g_eff = np.maximum(clusters_per_label * labels, 1.0)
    low, high = mean_interval(share, se, g_eff, labels, (0.0, 1.0), binary=True, level=level)
    fraction = labels / (labels_planned or np.inf)
    worth = labels / need.deff
    if labels_planned is not None:
        # The fourth-root rule: what is looked at again counts less, at half the error a side.
        worth = worth * np.sqrt(fraction)
        alpha = alpha / 2
    independent = np.maximum(np.floor(worth + 1e-9), 1.0)
    # The teeth of the exact test's power are shorter than this.
    ahead = independent[:, None] + np.arange(61.0)
    power = binomial_power(ahead.ravel(), target, min(need.seen, 1 - 1e-9), alpha=alpha)
    least_power = power.reshape(ahead.shape).min(axis=1)
    return {
        "labels": labels,
        "low": low,
        "high": high,
        "probability": np.where(fraction <= 1, least_power, np.nan),
        "chance": at_hand.chance(labels),
    }
