"""The metrics of pairs and, last, their weighted score: the numbers of each, one column after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragnb.comparison.pairs import Pairs
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
        return np.asarray(
            (self.scores[0] - self.scores[1]) * (1 if self.about["better"] == "higher" else -1)
        )


def total_of_pairs(pairs: Pairs, scenario: Scenario) -> Total:
    """Return how the metrics of pairs add up under the settings of a scenario."""
    how: dict[str, Any] = {"orient": scenario.orient, "rescale": scenario.rescale, "strict": False}
    return total_of(pairs.metrics, scenario.metric_weights, **how)


def columns_of(pairs: Pairs, scenario: Scenario) -> list[Column]:
    """Return the metrics of pairs and, last, their weighted score."""
    total = total_of_pairs(pairs, scenario)
    there = ~np.isnan(pairs.scores)
    both: Flags = np.all(there, axis=0)
    worst = np.array(
        [metric.low if metric.better == "higher" else metric.high for metric in pairs.metrics]
    )
    lost = there.any(axis=0) & ~there & (pairs.states != 2).all(axis=0)
    filled = np.where(lost, np.where(np.isfinite(worst), worst, np.nan), pairs.scores)

    def added(scores: Array, present: Flags) -> Array:
        """Return the weighted score of each question over the metrics that are present, nan without any."""
        weights = present * total.weights
        score = (weights * (np.nan_to_num(scores) * total.slopes + total.intercepts)).sum(axis=-1)
        with np.errstate(invalid="ignore"):  # 0/0 is nan
            return np.asarray(score / weights.sum(axis=-1))

    share = total.shares(both)
    noise = np.where(share > 0, pairs.noise * (share * total.slopes) ** 2, 0.0).sum(axis=-1)
    parts = {
        "scores": (np.where(both, pairs.scores, np.nan), added(pairs.scores, both)),
        "own": (pairs.scores, added(pairs.scores, there)),
        "filled": (filled, added(filled, np.all(~np.isnan(filled), axis=0))),
        "noise": (pairs.noise, noise),
        "states": (pairs.states, np.zeros(noise.shape, dtype=int)),
    }
    if pairs.human is not None:
        # A metric that nobody rated enters the people's total as it was scored.
        rated = ~np.isnan(pairs.human).all(axis=(0, 1))
        filled_in = np.where(rated, pairs.human, pairs.scores)
        everyone = np.all(~np.isnan(filled_in) | ~both, axis=2)
        people = np.where(everyone, added(filled_in, both), np.nan)
        counts = bool((rated & (total.weights > 0)).any())
        parts["human"] = pairs.human, people if counts else np.full(noise.shape, np.nan)
    # By column, so that what is computed of a column reads its numbers one after the other.
    whole = {
        name: np.concatenate([np.moveaxis(part, -1, 0), last[None]])
        for name, (part, last) in parts.items()
    }
    abouts = _abouts(pairs.metrics, total)
    return [
        Column(name, about, **{key: part[k] for key, part in whole.items()})
        for k, (name, about) in enumerate(abouts.items())
    ]


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
    elif not columns[-1].about["reason"] and columns[-1].width > 0:
        return columns[-1]
    return named.get(asked or "correct_outcome", columns[0] if len(columns) == 2 else None)
