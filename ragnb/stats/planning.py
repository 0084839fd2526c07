"""How many labels and questions are needed, and whether labels were drawn as planned."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragnb.errors import RagnbError
from ragnb.stats.arrays import Array, Labels, Values, inner
from ragnb.stats.clustered import cluster_codes, clustered_mean, complete_rows, mean_squares
from ragnb.stats.correction import both_clusters
from ragnb.stats.decisions import wilson_size
from ragnb.stats.intervals import kish, mean_interval, t_quantile


class DrawTest(NamedTuple):
    """The judge's mean on labelled rows and on the rest, the distance in standard errors, the two-sided p-value.

    Examples
    --------
    >>> DrawTest(3.0, 4.5, -12.0, 1e-9).rest
    4.5
    """

    labelled: float
    rest: float
    z: float
    p: float


def draw_test(
    labelled: Values, rest: Values, clusters: Labels = None, rest_clusters: Labels = None
) -> DrawTest:
    """Test whether the labelled rows look like a random sample, by the judge's scores on them and on the rest.

    The null hypothesis is that the draw did not depend on the judge's score. A draw that moves the spread of the
    judge's scores and not their mean is not found, and a draw by the *human* score cannot be found beyond what
    the judge shares with it: no human scored the rest. A draw with unequal, recorded chances is known and needs
    no test.

    Parameters
    ----------
    labelled, rest : array, shapes (n,) and (m,)
        The judge's scores on the labelled rows and on the others it scored, without gaps.
    clusters, rest_clusters : array, optional
        One set of labels: a name in both is one cluster. Give both or neither.

    Returns
    -------
    DrawTest
        nan for z and p where a side has no rows or the scores do not vary.

    Notes
    -----
    D = Σ cᵢFᵢ, cᵢ = 1/n on labelled rows and −1/m on the others, is 0 on average under the null. Scores of one
    cluster are alike: Var D = σ_b² Σ_g c_g² + σ_e² Σ cᵢ², c_g the sum over a cluster, both components by one-way
    analysis of variance of *all* rows. So rows drawn within clusters are tested by what varies within, whole
    clusters by what varies between. The p-value is that of Pearson's type III with D's skewness, as few labels of
    a lopsided score are skewed; its normal quantile is compared with t at Satterthwaite's degrees of freedom.

    Size at p ≤ 0.01, 1,000 draws a setting of 80 or 400 rows, 12 to 150 labels, clusters or none, scores from
    normal to 95 % alike: rows drawn at random 0.7 % on average, 1.7 % at most (Monte-Carlo error 0.3), rows within
    drawn clusters 0.5 and 1.5 %, whole clusters 0.2 and 1.2 %; systematic draws in strata of the score 0 %.

    Examples
    --------
    >>> found = draw_test([2, 3, 3, 2, 4, 3], [4, 5, 5, 4, 3, 5, 4, 5, 4, 5, 5, 4])
    >>> round(found.z, 1), found.p < 0.01
    (-3.1, True)
    """
    from scipy.special import gammainc, gammaincc, ndtr, ndtri, stdtr

    f = np.asarray(labelled, dtype=float)
    more = np.asarray(rest, dtype=float)
    names = both_clusters(clusters, rest_clusters, "rest_clusters")
    every = np.concatenate([f, more])
    n = len(f)
    m = len(more)
    rows = len(f) + len(more)
    of_labelled, of_rest = (float(part.mean()) if len(part) else np.nan for part in (f, more))
    if not (n and m) or not np.ptp(every) > 0:
        return DrawTest(of_labelled, of_rest, np.nan, np.nan)
    code = cluster_codes(names, rows)
    centred = every - every.mean()
    c = np.concatenate([np.full(n, 1 / n), np.full(m, -1 / m)])
    total = inner(centred, centred)
    by_cluster = np.bincount(code, weights=c)
    g = len(by_cluster)
    typical = np.inf
    squares = [total / (rows - 1)] * 2
    df = np.array([rows - 1.0, rows - 1.0])
    if 1 < g < rows:
        between, inside, typical = mean_squares(every, code, np.ones(rows))
        squares = [max(between, inside), inside]
        df = np.array([g - 1.0, rows - g])
    of_clusters = inner(by_cluster, by_cluster) / typical
    parts = np.array([of_clusters, inner(c, c) - of_clusters]) * squares
    variance = float(parts.sum())
    few = float(parts.sum() ** 2 / np.sum(parts**2 / df))
    z = inner(c, centred) / variance**0.5
    third = float(np.mean(centred**3)) / float(np.mean(centred**2)) ** 1.5
    skew = third * (variance * (rows - 1) / total) ** 0.5 * (m - n) / rows
    # The tail of Pearson's type III, moved from the normal to t.
    tail = float(ndtr(-abs(z)))
    if abs(skew) >= 1e-4:
        shape = 4 / skew**2
        side = z * np.sign(skew)
        at = max(shape + side * shape**0.5, 0.0)
        tail = float(min(gammainc(shape, at), gammaincc(shape, at)))
    return DrawTest(of_labelled, of_rest, z, min(2 * float(stdtr(few, ndtri(min(tail, 0.5)))), 1.0))


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

    def above(k: Array, p: float) -> Array:  # P(X > k)
        return np.where(k < size, betainc(k + 1, np.maximum(size - k, 0.5), p), 0.0)

    # The least k with P(X > k | target) ≤ alpha lies beside the continuous inverse.
    near = np.clip(np.ceil(bdtrik(1 - alpha, size, target)) + np.arange(-1, 2)[:, None], 0, size)
    least = np.min(np.where(above(near, target) <= alpha, near, size), axis=0)
    return above(least, share)


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
    g = int(rows.code.max(initial=-1)) + 1
    if g < 2 or rows.counts.sum() == g:
        return float("nan")
    between, inside, m0 = mean_squares(rows.columns[0], rows.code, rows.counts)
    bottom = between + (m0 - 1) * inside
    if bottom > 0:
        return float((between - inside) / bottom)
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
    if np.isfinite(rho):
        return float(max(1.0, 1 + (np.sum(m**2) / np.sum(m) - 1) * rho))
    return 1.0


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
        size = self.size
        b = self.target
        likely = (size * self.share + 1) / (size + 2)
        r = total / self.n
        alpha = self.alpha
        kept = np.ones(())
        if self.planned is not None:
            alpha = alpha / 2
            kept = np.sqrt(total / self.planned)
        se_at_target = np.sqrt(b * (1 - b) / (size * r * kept))
        half = t_quantile(1 - 2 * alpha, self.df * r) * se_at_target
        with np.errstate(divide="ignore", invalid="ignore"):
            wanders = np.sqrt(likely * (1 - likely) / size * (1 - 1 / r))
            chances = stdtr(self.df, (self.share - b - half) / wanders)
        past = total > (self.planned or np.inf)
        return np.where((total < self.n) | past, np.nan, chances)


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
    if clusters is not None:
        rho = anova_icc(flags, clusters, counts=counts)
    else:
        rho = float("nan")
    c = rows.counts
    v = rows.weights
    kept = float(kish(inner(c, v), inner(c, v**2)))
    deff = design_effect(np.bincount(rows.code, c), rho) * (c.sum() / kept if kept else 1.0)
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
        nan = float("nan")
        return LabelsNeeded(total, total, independent, nan, None, nan, deff, rho, share, reason)

    if not share > target:
        return without("share_at_or_below_target")
    if labels_planned is None:
        most_labels = _MOST_LABELS * n
    else:
        most_labels = labels_planned
    error = alpha if labels_planned is None else alpha / 2
    near = min(share, 1 - 1e-9)
    if deff * sample_size_normal(target, near, alpha=error, power=power) > _MOST_LABELS * n:
        return without("too_close_to_tell")
    independent = sample_size_exact(target, near, alpha=error, power=power)
    total = ceil(deff * independent)
    if labels_planned is not None:
        if max(total, n) > labels_planned:
            return without("beyond_plan", total, independent)
        total = ceil((deff * independent) ** (2 / 3) * labels_planned ** (1 / 3) - 1e-9)
    # Labels that are not yet enough gain with each that is added, up to where the chance levels off.
    sizes = np.unique(np.geomspace(n, most_labels, 200).round())
    chances = at_hand.chance(sizes)
    reached = np.flatnonzero(chances >= power)
    likely = None
    if len(reached):
        below = int(sizes[max(reached[0] - 1, 0)])
        steps = np.arange(below, int(sizes[reached[0]]) + 1)
        likely = int(steps[np.flatnonzero(at_hand.chance(steps) >= power)[0]])
    chance = float(at_hand.chance(max(total, n)))
    more = max(total - n, 0)
    most = float(np.nanmax(chances))
    return LabelsNeeded(total, more, independent, chance, likely, most, deff, rho, share, "counted")


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
        per_label = 1.0
    else:
        per_label = float(kish(n, np.sum(sizes_seen**2.0))) / n
    if sizes is None:
        told = (n, need.total, need.likely, labels_planned)
        here = [size for size in told if size is not None]
        top = max(4 * n, 200, int(1.5 * max(here)))
        sizes = np.unique(np.r_[np.geomspace(10, top, 38).round(), here])
    labels = np.asarray(sizes, dtype=float)
    share = np.full(len(labels), need.seen)
    se = np.sqrt(share * (1 - share) * need.deff / labels)
    g_eff = np.maximum(per_label * labels, 1.0)
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
    return {
        "labels": labels,
        "low": low,
        "high": high,
        "probability": np.where(fraction <= 1, power.reshape(ahead.shape).min(axis=1), np.nan),
        "chance": at_hand.chance(labels),
    }
