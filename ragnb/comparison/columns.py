"""The metrics of pairs and, last, their weighted score: the numbers of each, one column after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ragnb.comparison.pairs import NOT_APPLICABLE, Pairs
from ragnb.errors import need_known
from ragnb.scenario import Scenario
from ragnb.schema import TOTAL, Metric
from ragnb.weights.total import Array, Flags, Total, total_of


@dataclass(frozen=True)
class Column:
    """One metric of the pairs, or their total: the source of one row of the table, which ends in `about`.

    Attributes
    ----------
    metric : str
    about : dict
    scores, own, filled : (2, Q) float
        Of the candidate and the baseline: where both have a score; each side's own; with the worst where one side
        lost its score.
    noise, states : (2, Q)
        As in `Pairs`.
    human : (2, Q) float or None
        As in `Pairs`.
    """

    metric: str
    about: dict[str, Any]
    scores: Array
    own: Array
    filled: Array
    noise: Array
    states: Array
    human: Array | None = None

    @property
    def width(self) -> float:
        """The length of the range."""
        return float(self.about["range_high"] - self.about["range_low"])

    @property
    def gain(self) -> Array:
        """Candidate − baseline of each question, above 0 where it is better."""
        sign = 1 if self.about["better"] == "higher" else -1
        return np.asarray((self.scores[0] - self.scores[1]) * sign)


def total_of_pairs(pairs: Pairs, scenario: Scenario) -> Total:
    """Return how the metrics of pairs add up under the settings of a scenario."""
    how: dict[str, Any] = {"orient": scenario.orient, "rescale": scenario.rescale, "strict": False}
    return total_of(pairs.metrics, scenario.metric_weights, **how)


def columns_of(pairs: Pairs, scenario: Scenario) -> list[Column]:
    """Return the metrics of pairs and, last, their weighted score."""
    total = total_of_pairs(pairs, scenario)
    # Metrics first, so that what is computed of one reads its numbers one after the other: (K, 2, Q).
    scores = np.moveaxis(pairs.scores, -1, 0)
    noise = np.moveaxis(pairs.noise, -1, 0)
    states = np.moveaxis(pairs.states, -1, 0)
    there = ~np.isnan(scores)
    both: Flags = np.all(there, axis=1, keepdims=True)  # (K, 1, Q)
    filled = _with_lost_at_worst(scores, states, _worst_scores(pairs.metrics))
    # Of each metric, beside its questions on both sides: (K, 1, 1).
    weights = total.weights[:, None, None]
    slopes = total.slopes[:, None, None]
    intercepts = total.intercepts[:, None, None]

    def weighed(scores: Array) -> Array:
        return np.asarray((scores * slopes + intercepts) * weights)

    def added(parts: Array, present: Flags) -> Array:
        """Return the weighted score of each question over the metrics that are present, nan without any."""
        score = np.where(present, parts, 0.0).sum(axis=0)
        with np.errstate(invalid="ignore"):  # 0/0 is nan
            return np.asarray(score / (present * weights).sum(axis=0))

    # A weighted sum of independent means has the sum of their variances, each times its squared weight. Where a
    # metric has no share its noise may be nan, and does not count.
    share = np.moveaxis(total.shares(both[:, 0].T), -1, 0)[:, None]
    noise_of_total = np.where(share > 0, noise * (share * slopes) ** 2, 0.0).sum(axis=0)
    parts_of_scores = weighed(scores)
    parts_of_filled = parts_of_scores
    # Mostly nothing is lost, and weighing many questions a second time would take long for nothing.
    if filled is not scores:
        parts_of_filled = weighed(filled)
    is_filled: Flags = np.all(~np.isnan(filled), axis=1, keepdims=True)
    parts = {
        "scores": [*np.where(both, scores, np.nan), added(parts_of_scores, both)],
        "own": [*scores, added(parts_of_scores, there)],
        "filled": [*filled, added(parts_of_filled, is_filled)],
        "noise": [*noise, noise_of_total],
        "states": [*states, np.zeros(noise_of_total.shape, dtype=int)],
    }
    if pairs.human is not None:
        human = np.moveaxis(pairs.human, -1, 0)
        # A metric that nobody rated enters the people's total as it was scored.
        is_rated: Flags = ~np.all(np.isnan(human), axis=(1, 2))
        of_people = np.where(is_rated[:, None, None], human, scores)
        # People's total of a question needs a rating for every rated metric that the judge's total has there.
        is_complete: Flags = np.all(~np.isnan(of_people) | ~both, axis=0)
        if (is_rated & (total.weights > 0)).any():
            total_of_people = np.where(is_complete, added(weighed(of_people), both), np.nan)
        else:
            total_of_people = np.full(is_complete.shape, np.nan)
        parts["human"] = [*human, total_of_people]
    columns = []
    for k, (name, about) in enumerate(_abouts(pairs.metrics, total).items()):
        arrays = {key: part[k] for key, part in parts.items()}
        columns.append(Column(name, about, **arrays))
    return columns


def _worst_scores(metrics: Sequence[Metric]) -> Array:
    """Return the bad end of each metric's range, nan where it has none."""
    worst = np.array(
        [metric.low if metric.better == "higher" else metric.high for metric in metrics]
    )
    worst[~np.isfinite(worst)] = np.nan
    return worst


def _with_lost_at_worst(scores: Array, states: npt.NDArray[np.int8], worst: Array) -> Array:
    """Return scores (K, 2, Q), the worst where one side alone has a score of a metric that applies to both.

    Where nothing is lost these are the scores themselves, not a copy.
    """
    there = ~np.isnan(scores)
    applies = (states != NOT_APPLICABLE).all(axis=1, keepdims=True)
    is_lost = there.any(axis=1, keepdims=True) & ~there & applies
    if is_lost.any():
        return np.where(is_lost, worst[:, None, None], scores)
    return scores


def _abouts(metrics: Sequence[Metric], total: Total) -> dict[str, dict[str, Any]]:
    """Return what the table says of each metric and, last, of the weighted score."""
    abouts: dict[str, dict[str, Any]] = {
        metric.name: {
            "range_low": metric.low,
            "range_high": metric.high,
            "better": metric.better,
            "kind": metric.kind,
            "role": metric.role,
            "weight": float(weight) if metric.role == "quality" or weight > 0 else np.nan,
            "reason": "",
        }
        for metric, weight in zip(metrics, total.given, strict=True)
    }
    abouts[TOTAL] = {
        "range_low": total.low,
        "range_high": total.high,
        "better": "higher",
        "kind": "continuous",
        "role": "total",
        "weight": np.nan,
        "reason": total.reason,
    }
    return abouts


def primary_of(columns: Sequence[Column], asked: str | None) -> Column | None:
    """Return the metric that decides: the requested one, the total, ``correct_outcome`` or the only one."""
    named = {column.metric: column for column in columns}
    if asked is not None:
        need_known("primary", asked, [*named])
        return named[asked]
    total = columns[-1]
    # A total that needs no reason may still lack a range: of rates alone, which have no weight, its width is nan.
    if not total.about["reason"] and total.width > 0:
        return total
    if "correct_outcome" in named:
        return named["correct_outcome"]
    # One metric, and its total.
    if len(columns) == 2:
        return columns[0]
    return None
