"""One row of the table of `compare`: a metric of two systems over the questions that are kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from ragnb import stats
from ragnb.calibration.ratings import with_ends
from ragnb.comparison.columns import Column
from ragnb.comparison.estimates import TIE, detectable, difference, mean_of, p_value
from ragnb.comparison.pairs import NOT_APPLICABLE, OK, STATES, Pairs
from ragnb.comparison.people import decided_apart, decided_by_people
from ragnb.stats import NONE, Estimate
from ragnb.weights.columns import Codes
from ragnb.weights.total import Array, Flags

# Of the questions of either side: where fewer are common, the difference over all of them is told, too.
_LITTLE_OVERLAP = 0.3
# Of the range of a metric: the margin where nobody names one.
SAME_SHARE = 1 / 20


def row_of(pairs: Pairs, column: Column, kept: Any, level: float) -> dict[str, Any]:
    """Return one row of the table, over the questions that are kept."""
    weight = pairs.weights[kept]
    clusters = pairs.clusters[kept]
    new, old = column.scores[:, kept]
    scores = column.own[:, kept]
    gain = column.gain[kept]
    there = ~np.isnan(gain) & (weight > 0)  # (Q,): on both sides
    only = ~np.isnan(scores) & np.isnan(gain) & (weight > 0)  # (2, Q): on that side alone
    n_only_new, n_only_old = only.sum(axis=1).tolist()
    paired = difference_of(pairs, column, column.scores, kept, level)
    shown = detectable(paired, level)
    # The variances of both sides add up: their repeats are independent.
    noise = _noise(column.noise[:, kept].sum(axis=0)[there], weight[there], level)
    everywhere = _everywhere(paired, scores, only, clusters, weight, level)
    row = {
        "candidate": pairs.candidate,
        "baseline": pairs.baseline,
        "metric": column.metric,
        **with_ends(paired),
        "p": p_value(paired),
        "candidate_mean": _mean(new, weight),
        "baseline_mean": _mean(old, weight),
        "se": paired.se,
        "df": paired.df,
        "n_common": paired.n,
        "n_only_candidate": n_only_new,
        "n_only_baseline": n_only_old,
        "n_lost": _lost(column.states[0, kept][only[1]]),
        "n_left_out": n_only_new + n_only_old,
        "left_out": _left_out(pairs, column.states[:, kept], only),
        "wins": int((gain[there] > TIE).sum()),
        "ties": int((np.abs(gain[there]) <= TIE).sum()),
        "losses": int((gain[there] < -TIE).sum()),
        "correlation": _correlation(new[there], old[there]),
        **_unpaired(scores, clusters, weight, level, pairs.complete),
        "detectable": shown,
        "questions_needed": _questions_needed(paired, shown),
        "noise": noise,
        "below_noise": abs(paired.value) < noise,
        "worst_case": _mean(column.filled[0, kept] - column.filled[1, kept], weight),
        # What the baseline lost is no excuse for what the candidate did.
        "worst_if_lost": _mean(column.filled[0, kept] - scores[1], weight),
        **with_ends(everywhere, "all_value", "all_"),
        "n_clusters": paired.n_clusters,
        "n_eff": paired.n_eff,
        "cluster_unit": pairs.unit,
        **column.about,
    }
    if column.human is None:
        return row
    return row | _of_people(pairs, column, kept, paired, level)


def _unpaired(
    own: Array, clusters: Codes, weight: Array, level: float, complete: bool
) -> dict[str, float]:
    """Return the difference of two means as if their questions were not the same ones: what pairing gains."""
    new, old = (mean_of(side, clusters, weight, level, complete) for side in own)
    value = new.value - old.value
    se = float(np.hypot(new.se, old.se))
    df = max(min(new.df, old.df), 1.0)
    half = float(stats.t_quantile(level, df)) * se
    return {
        "unpaired_value": value,
        "unpaired_se": se,
        "unpaired_low": value - half,
        "unpaired_high": value + half,
    }


def _everywhere(
    found: Estimate, own: Array, only: Flags, clusters: Codes, weight: Array, level: float
) -> Estimate:
    """Return the difference over all questions of either side, where common ones alone tell little; else none."""
    n_either = found.n + only.sum()
    if found.n >= _LITTLE_OVERLAP * n_either:
        return NONE
    # The scores of both sides one after the other, the candidate's first. A document of both stays one cluster.
    return stats.contrast(
        own.ravel(),
        np.repeat([True, False], len(weight)),
        clusters=np.tile(clusters, 2),
        weights=np.tile(weight, 2),
        level=level,
    )


def _correlation(new: Array, old: Array) -> float:
    """Return the correlation of both sides; nan of fewer than three questions, and where a side is constant."""
    if len(new) < 3 or np.ptp(new) < TIE or np.ptp(old) < TIE:
        return np.nan
    return float(np.corrcoef(new, old)[0, 1])


def _questions_needed(found: Estimate, shown: float) -> float:
    """Return how many questions would show a difference, where as many as there are show one of `shown`."""
    if abs(found.value) <= TIE:
        # Of no difference no number of questions shows one.
        return np.nan
    # A standard error falls with the root of the number of questions.
    return float(np.ceil(found.n * (shown / abs(found.value)) ** 2))


def _of_people(
    pairs: Pairs, column: Column, kept: Any, found: Estimate, level: float
) -> dict[str, Any]:
    """Return the columns of what people say of a difference, and what they change in those of the judge."""
    assert column.human is not None
    weight = pairs.weights[kept]
    clusters = pairs.clusters[kept]
    human = column.human[:, kept]
    new, old = column.scores[:, kept]
    people = decided_by_people(
        human[0] - human[1],
        new - old,
        clusters,
        weight,
        width=column.width,
        level=level,
        complete=pairs.complete,
        is_rated=not np.isnan(human).all(),
    )
    # Without enough rated pairs, ratings of different questions may do, but only where documents are a sample.
    if not people.is_covered and not pairs.complete:
        scores = np.stack([new, old])
        unpaired_ratings = decided_apart(
            human, scores, clusters, weight, width=column.width, level=level
        )
        people = unpaired_ratings or people
    columns = people.as_columns(found)
    if people.is_covered:
        corrected = people.corrected
        columns |= with_ends(corrected)
        columns["se"] = corrected.se
        columns["df"] = corrected.df
        columns["p"] = p_value(corrected)
        columns["detectable"] = detectable(corrected, level)
        # More ratings narrow it too: how many questions would do is not told by the questions alone.
        columns["questions_needed"] = np.nan
    return columns


def _lost(states: Array) -> int:
    """Count the questions that only the baseline scored, without those that the metric does not apply to."""
    return int((states != NOT_APPLICABLE).sum())


def _left_out(pairs: Pairs, states: Array, only: Flags) -> str:
    """Count why questions scored by one side are not pairs, by the status of the other side's score."""
    new, old = states
    only_new, only_old = only
    parts = []
    for name, lacking in ((pairs.candidate, new[only_old]), (pairs.baseline, old[only_new])):
        # A weighted score has no states of its own: all are 0, and nothing is listed.
        counts = [
            f"{n} {STATES[state]}"
            for state, n in enumerate(np.bincount(lacking))
            if n and state != OK
        ]
        if counts:
            parts.append(f"{name}: {', '.join(counts)}")
    return "; ".join(parts)


def difference_of(pairs: Pairs, column: Column, sides: Array, kept: Any, level: float) -> Estimate:
    """Return the paired difference of a column's scores, or of people's, over the questions that are kept."""
    return difference(
        sides[0, kept] - sides[1, kept],
        pairs.clusters[kept],
        pairs.weights[kept],
        width=column.width,
        level=level,
        complete=pairs.complete,
    )


def _mean(values: Array, weights: Array) -> float:
    there = ~np.isnan(values) & (weights > 0)
    if there.any():
        return float(np.average(values[there], weights=weights[there]))
    return np.nan


def _noise(of_question: Array, weights: Array, level: float) -> float:
    """Return the bound of the mean difference, at `level`, if the systems differed by judge noise alone."""
    from scipy.special import ndtri

    is_repeated = ~np.isnan(of_question)
    if not is_repeated.any():
        return np.nan
    # Questions that were not repeated are as noisy as those that were.
    variance = np.where(is_repeated, of_question, of_question[is_repeated].mean())
    # The standard error of a weighted mean is √(Σ w²·variance) / Σw.
    root = np.sqrt(stats.inner(weights**2, variance))
    return float(ndtri(0.5 + level / 2) * root / weights.sum())
