"""What people's ratings make of a difference that a judge found: corrected where they rated enough pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ragnb import stats
from ragnb.calibration.ratings import with_ends
from ragnb.comparison.estimates import Changes, difference, least_error
from ragnb.stats import NONE, Estimate
from ragnb.weights.total import Array

DECIDED = "decided"
UNCHECKED = "unchecked"
UNRATED = "unrated"
APART = "decided on different questions"
BY_PEOPLE = (DECIDED, APART)
# From these on, intervals held their level under judges biased by ±0.1 on one system (benchmarks/comparison.py).
LEAST_PAIRS = 20
LEAST_CLUSTERS = 5  # clusters with ratings on both sides, below which people decide nothing
LEAST_UNLIKE = 5  # ratings other than the most frequent: of fewer the jackknife tells too little


@dataclass(frozen=True)
class People:
    """The differences of people, of the judge on the same pairs, and of both together.

    Attributes
    ----------
    corrected : Estimate
        The people's difference, made narrower by what the judge says of the pairs that they did not rate.
    human : Estimate
        The people's alone.
    bias : Estimate
        The judge's difference − the people's: above 0 the judge favours the candidate.
    is_rated : bool
        Whether people rated either side at all.
    is_apart : bool
        Whether they rated the two systems on different questions.
    """

    corrected: Estimate
    human: Estimate
    bias: Estimate
    is_rated: bool
    is_apart: bool = False

    @property
    def is_covered(self) -> bool:
        """Whether enough pairs, or enough answers of both, are rated for their interval to hold its level."""
        enough = self.human.n >= LEAST_PAIRS and self.human.n_clusters >= LEAST_CLUSTERS
        return enough and bool(np.isfinite(self.corrected.low))

    def as_columns(self, judged: Estimate) -> dict[str, Any]:
        """Return the columns that stand beside the one that decides."""
        if not self.is_rated:
            people = UNRATED
        elif not self.is_covered:
            people = UNCHECKED
        elif self.is_apart:
            people = APART
        else:
            people = DECIDED
        return {
            **with_ends(judged, "judge_value", "judge_"),
            **with_ends(self.human, "human_value", "human_"),
            "n_human": self.human.n,
            **with_ends(self.bias, "judge_bias", "judge_bias_"),
            "people": people,
        }


def decided_by_people(
    human: Array,
    judged: Array,
    clusters: npt.NDArray[np.intp],
    weights: Array,
    *,
    width: float,
    level: float,
    complete: bool,
    is_rated: bool,
) -> People:
    """Return what people's differences, known of some questions, make of the judge's differences of all.

    Parameters
    ----------
    human, judged : (Q,) float
        Candidate − baseline; nan where people, or the judge, did not score both.
    width : float
        Of the metric's range.

    Notes
    -----
    The floor of `least_error` holds for the people's differences, too: of 20 pairs that people rate alike, the
    jackknife would say that no pair ever differs.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> truth = rng.normal(0, 0.1, 200)
    >>> human = np.where(np.arange(200) < 80, truth, np.nan)
    >>> how = {"width": 1.0, "level": 0.95, "complete": False, "is_rated": True}
    >>> found = decided_by_people(human, truth + 0.1, np.arange(200), np.ones(200), **how)
    >>> round(found.bias.value, 2), bool(found.corrected.low < 0 < found.corrected.high)
    (0.1, True)
    """
    how: dict[str, Any] = {"width": width, "level": level, "complete": complete}
    alone = difference(human, clusters, weights, **how)
    bias = difference(judged - human, clusters, weights, **how)
    # (Q,): scored by the judge for both; of these, those that people rated for both, and the others.
    there = ~np.isnan(judged) & (weights > 0)
    rated = there & ~np.isnan(human)
    rest = there & ~rated
    if rated.sum() < 2:
        return People(NONE, alone, bias, is_rated)
    corrected: Estimate = stats.ppi_jackknife(
        human[rated],
        judged[rated],
        judged[rest],
        clusters[rated],
        clusters[rest],
        shares=(weights[rated], weights[rest]),
        level=level,
    )
    if np.isfinite(width) and np.isfinite(corrected.df):
        changes = Changes.of(human[rated] / width)
        is_identical = not corrected.se > 1e-12 * max(1.0, abs(corrected.value))
        if is_identical or changes.are_few:
            # t has G_eff − 1 degrees of freedom, see `difference`.
            least = least_error(changes, alone.n_eff, alone.df + 1, identical=is_identical)
            se = max(corrected.se, float(least) * width)
            half = float(stats.t_quantile(level, corrected.df)) * se
            low = corrected.value - half
            high = corrected.value + half
            corrected = replace(corrected, se=se, low=low, high=high)
        corrected = _within_range(corrected, width)
    return People(corrected, alone, bias, is_rated)


def _within_range(found: Estimate, width: float) -> Estimate:
    """Return a difference whose interval stays within the range of what it is a difference of."""
    return replace(found, low=max(found.low, -width), high=min(found.high, width))


def decided_apart(
    human: Array,
    judged: Array,
    clusters: npt.NDArray[np.intp],
    weights: Array,
    *,
    width: float,
    level: float,
) -> People | None:
    """Return what ratings of the two systems on different questions make of the judge's difference.

    None where too few are rated, or too alike, for the interval to hold its level.

    Parameters
    ----------
    human, judged : (2, Q) float
        The scores of candidate and baseline by people and by the judge, nan where there is none.
    width : float
        Of the metric's range.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> truth = rng.normal(0.7, 0.1, (2, 200))
    >>> human = np.where([np.arange(200) % 4 == 0, np.arange(200) % 4 == 2], truth.round(2), np.nan)
    >>> judged = truth + np.array([[0.1], [0.0]])
    >>> found = decided_apart(human, judged, np.arange(200), np.ones(200), width=1.0, level=0.95)
    >>> round(found.bias.value, 2), bool(found.corrected.low < 0 < found.corrected.high)
    (0.1, True)
    """
    counts = ~np.isnan(judged) & (weights > 0)
    human, judged = (np.where(counts, side, np.nan) for side in (human, judged))
    for side in human:
        known = ~np.isnan(side)
        n_rated = known.sum()
        n_clusters = len(np.unique(clusters[known]))
        _, frequencies = np.unique(side[known], return_counts=True)
        n_unlike = n_rated - frequencies.max(initial=0)
        if n_rated < LEAST_PAIRS or n_clusters < LEAST_CLUSTERS or n_unlike < LEAST_UNLIKE:
            return None
    how: dict[str, Any] = {"shares": weights, "level": level}
    corrected = _within_range(stats.ppi_difference(human, judged, clusters, **how), width)
    # With itself in the judge's place there is nothing to correct: this is the plain difference of two means.
    off = judged - human
    alone = stats.ppi_difference(human, human, clusters, **how)
    bias = stats.ppi_difference(off, off, clusters, **how)
    return People(corrected, alone, bias, is_rated=True, is_apart=True)
