"""Sample size planning: how many questions or labels a decision needs at 80 % power."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from numbers import Real
from typing import Any, Literal

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.calibration import calibrate, read_ratings
from ragnb.comparison.differences import compare
from ragnb.comparison.estimates import POWER
from ragnb.comparison.source import run_of
from ragnb.diagnostics import check_gates
from ragnb.errors import RagnbError, listing, need_known
from ragnb.schema import DEFAULT_GATES, records
from ragnb.weights import weighted_means

_MOST = 10**7  # questions: what more would be needed for is told as out of reach
_OF_MEANS = (
    "metric_weights",
    "doc_weights",
    "doc",
    "cluster",
    "level",
    "orient",
    "rescale",
    "corpus",
)
_COLUMNS = (
    "kind",
    "about",
    "system",
    "expected",
    "target",
    "n",
    "needed",
    "more",
    "documents",
    "detectable",
    "design_effect",
    "reason",
)


def plan(
    pilot: Any = None,
    *,
    kind: Literal["gate", "comparison", "calibration"],
    expected: float | None = None,
    target: float | None = None,
    questions: int | None = None,
    sd: float | None = None,
    icc: float = 0.1,
    per_document: float = 10,
    level: float = 0.95,
    **settings: Any,
) -> pd.DataFrame:
    """Plan the questions of a gate or a comparison, or the labels of a calibration, at 80 % power.

    Parameters
    ----------
    pilot : DataFrame, path or Scenario, optional
        What is there already: scores for a gate, as `ragnb.compare` takes them for a comparison, ratings for a
        calibration. None plans from the assumptions below.
    kind : {"gate", "comparison", "calibration"}
    expected : float, optional
        The true mean of a gate's metric, the true difference of a comparison, the true share within the tolerance
        of a calibration. With a pilot only for a comparison: the difference to detect, by default the one seen.
    target : float, optional
        The threshold of the gate; the share that a calibration must show, 0.8 by default.
    questions : int, optional
        In the place of `expected`: what so many questions, or labels, can detect.
    sd : float, optional
        The standard deviation of one question's score, or paired difference, in the metric's units. None for a
        gate means pass/fail; two pass/fail systems that differ on a share c of the questions have √c.
    icc : float in [0, 1]
        How strongly the questions of one document go together.
    per_document : float
        Questions a document, or labels a cluster.
    level : float in (0, 1)
        Of the intervals.
    **settings
        With a pilot: those of a scenario (``gates=``, ``metric_weights=``), of `ragnb.compare` (``baseline=``) or
        of `ragnb.calibrate`.

    Returns
    -------
    DataFrame
        ``kind, about`` (gate, metric, dimension), ``system, expected, target, n`` (at hand), ``needed`` (in all),
        ``more`` (beside those at hand), ``documents``, ``detectable`` (the distance from the target, or the
        difference, that shows with 80 % probability), ``design_effect, reason`` (why nothing is needed, or no
        number suffices: ``decided``, ``too_close``). ``needed`` is missing where no feasible number suffices.

    Raises
    ------
    RagnbError
        For assumptions that are missing or out of range.

    Notes
    -----
    A gate without a pilot: the least n with T(df)((``|μ − b|`` − half)/se) ≥ 0.8, half = t·√(b(1−b)·deff/n),
    deff = 1 + (m − 1)·icc, df = n/m − 1. With one: ``stats.questions_to_decide``, which takes the pilot's mean for
    uncertain. A comparison: the least n at which (t + t(0.8))·se does not exceed the difference. A calibration:
    the exact binomial number of labels times deff.

    Examples
    --------
    >>> plan(kind="gate", expected=0.9, target=0.8)[["needed", "documents", "design_effect"]]
       needed  documents  design_effect
    0     253         26            1.9
    >>> plan(kind="comparison", questions=200, sd=0.3)["detectable"].round(3).tolist()
    [0.086]
    """
    need_known("kind", kind, _OF_PILOT)
    if pilot is not None:
        rows = list(_OF_PILOT[kind](pilot, expected, target, {"level": level} | settings))
    elif settings:
        raise RagnbError(
            f"{next(iter(settings))}= describes a pilot, and none is given; name it first"
        )
    else:
        if target is None:
            target = _USUAL_TARGETS.get(kind)
        assumed = {
            "sd": sd,
            "icc": icc,
            "per_document": per_document,
            "level": level,
            "questions": questions,
            "expected": expected,
            "target": target,
        }
        rows = [_assumed(kind, assumed)]
    rows = [dict.fromkeys(_COLUMNS) | {"kind": kind} | row for row in rows]
    table = pd.DataFrame(rows, dtype=object)
    table = table.astype(dict.fromkeys(("n", "needed", "more", "documents"), "Int64"))
    return table.astype(
        dict.fromkeys(("expected", "target", "detectable", "design_effect"), "float")
    )


_USUAL_TARGETS = {"comparison": 0.0, "calibration": 0.8}  # the threshold of a gate is its own
_SUCH_AS = {
    "gate": {"target": 0.8, "expected": 0.9, "questions": 200, "sd": 0.3},
    "comparison": {"target": 0.0, "expected": 0.05, "questions": 200, "sd": 0.3},
    "calibration": {"target": 0.8, "expected": 0.9, "questions": 200, "sd": 0.3},
}
"""Assumptions to begin with, for the message that asks for one."""


def _assumed(kind: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plan that assumptions make."""
    _check_assumptions(kind, asked)
    design = _Design.of(kind, asked)
    mean = asked["expected"]
    row = {
        "about": kind,
        "expected": mean,
        "target": design.target,
        "design_effect": design.effect,
    }
    if asked["questions"] is not None:
        n = asked["questions"]
        documents = ceil(n / design.per_document)
        return row | {"needed": n, "documents": documents, "detectable": design.detectable(n)}
    needed = design.needed(mean)
    if needed is None:
        return row | {"reason": "too_close"}
    return row | {
        "needed": needed,
        "more": needed,
        "documents": ceil(needed / design.per_document),
        "detectable": abs(mean - design.target),
    }


def _check_assumptions(kind: str, asked: Mapping[str, Any]) -> None:
    """Refuse assumptions that are missing or out of range."""
    # Without a standard deviation the scores are pass/fail: their mean is a share, which determines it.
    are_shares = asked["sd"] is None and kind != "comparison"
    span = (0, 1) if are_shares else (-np.inf, np.inf)
    bounds = {
        "target": span,
        "icc": (0, 1),
        "level": (1e-6, 1 - 1e-6),
        "per_document": (1, np.inf),
    }
    if asked["questions"] is None:
        bounds["expected"] = span
    else:
        bounds["questions"] = (2, np.inf)
    if not are_shares:
        bounds["sd"] = (1e-12, np.inf)
    lacking = [name for name in bounds if asked[name] is None]
    if lacking:
        example = ", ".join(f"{name}={_SUCH_AS[kind][name]}" for name in lacking)
        raise RagnbError(
            f"a plan without a pilot needs {listing(lacking)}; write, for example, {example}, or name a pilot"
        )
    for name, (low, high) in bounds.items():
        value = asked[name]
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if is_number and low <= value <= high and np.isfinite(value):
            continue
        # Most likely a percentage.
        if is_number and high == 1 and 1 < value <= 100:
            raise RagnbError(f"{name}={value!r} must lie between 0 and 1; write {value / 100:g}")
        raise RagnbError(f"{name}={value!r} must lie between {low:g} and {high:g}")


@dataclass(frozen=True)
class _Design:
    """What is assumed of questions in documents.

    Attributes
    ----------
    target : float
        The mean, or the difference, that has to be shown to be exceeded.
    per_document : float
        Questions a document.
    sd : float or None
        Of a score; None of shares, whose mean tells it.
    labels : bool
        Whether labels show that a judge agrees with people, as an exact binomial test has it.
    level : float
        Of the two-sided interval.
    effect : float
        The design effect, 1 + (m − 1)·icc.
    """

    target: float
    per_document: float
    sd: float | None
    labels: bool
    level: float
    effect: float

    @classmethod
    def of(cls, kind: str, asked: Mapping[str, Any]) -> _Design:
        """Take the design from what a caller assumes."""
        m = asked["per_document"]
        return cls(
            target=asked["target"],
            per_document=m,
            sd=asked["sd"],
            labels=kind == "calibration",
            level=asked["level"],
            effect=1 + (m - 1) * asked["icc"],
        )

    @property
    def sides(self) -> float:
        """The level of the interval; labels have to show one side only."""
        if self.labels:
            return 2 * self.level - 1
        return self.level

    def se(self, n: float, mean: float) -> float:
        """Return the standard error of a mean of n questions."""
        if self.sd is None:
            variance = mean * (1 - mean)
        else:
            variance = self.sd**2
        return float(np.sqrt(variance * self.effect / n))

    def by_interval(self, n: float, mean: float) -> float:
        """Return how much above 80 % the probability is that the interval of n questions leaves the target out."""
        from scipy.special import stdtr

        df = max(n / self.per_document - 1, 1.0)
        if self.sd is None:
            # As the interval itself will: a mean near 1 over few documents has fewer degrees of freedom.
            t = stats.t_quantile(self.sides, df)
            df = float(stats.skewed_df(mean, n / self.effect, t, n / self.per_document, df))
        # The half-width is that at the target, see `plan`; the mean scatters with an error of its own.
        half = float(stats.t_quantile(self.sides, df)) * np.float64(self.se(n, self.target))
        se = np.float64(self.se(n, mean))
        with np.errstate(divide="ignore"):  # a share of 0 or 1 has no standard error
            z = (abs(mean - self.target) - half) / se
        return float(stdtr(df, z)) - POWER

    def power(self, n: float, mean: float) -> float:
        """Return the same; of labels at most that of the exact binomial test, which holds where independent."""
        if not self.labels:
            return self.by_interval(n, mean)
        alpha = 1 - self.level
        # As many independent labels are worth as much as n labels in clusters.
        independent = [n // self.effect]
        exact = float(stats.binomial_power(independent, self.target, mean, alpha=alpha)[0]) - POWER
        if self.effect == 1:
            return exact
        return min(exact, self.by_interval(n, mean))

    def detectable(self, n: float) -> float:
        """Return the least difference that n questions show with 80 % probability, nan where none is."""
        from scipy.optimize import brentq

        # The largest mean to look at: a share is below 1, a mean is hardly a million standard deviations away.
        if self.sd is None:
            end = 1 - 1e-9
        else:
            end = self.target + 1e6 * self.sd
        if self.power(n, end) <= 0:
            return float("nan")
        mean_shown = brentq(lambda mean: self.power(n, mean), self.target + 1e-12, end)
        return float(mean_shown - self.target)

    def needed(self, mean: float) -> int | None:
        """Return how many questions show with 80 % probability that a mean is above the target; None: too many."""
        from scipy.optimize import brentq

        # Labels show one side only: agreement below the target is never shown to be above it.
        if self.by_interval(_MOST, mean) <= 0 or (self.labels and mean <= self.target):
            return None
        if self.by_interval(2, mean) < 0:
            needed: int = ceil(brentq(lambda n: self.by_interval(n, mean), 2, _MOST))
        else:
            needed = 2
        if not self.labels:
            return needed
        alpha = 1 - self.level
        independent = stats.sample_size_exact(self.target, min(mean, 1 - 1e-9), alpha=alpha)
        exact: int = ceil(self.effect * independent)
        if self.effect == 1:
            return exact
        return max(exact, needed)


def _gates(
    pilot: Any, expected: Any, target: Any, settings: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Return the questions that each gate of a pilot still needs, by system."""
    if expected is not None or target is not None:
        raise RagnbError(
            "a pilot's gates set the thresholds: gates=[rn.Gate('F', 'faithfulness', '>=', 0.8)]"
        )
    run = run_of(pilot, settings=settings)
    scenario = run.scenario
    by = "system" if len(run.systems) > 1 else None
    how: dict[str, Any] = {name: getattr(scenario, name) for name in _OF_MEANS}
    means = weighted_means(run.frame, metrics=run.metrics, by=by, **how)
    if scenario.gates is not None:
        gates = scenario.gates
    else:
        gates = DEFAULT_GATES
    there = set(means["metric"])
    # A gate against another run is a comparison, which is planned as one.
    planned = [gate for gate in gates if gate.metric in there and gate.not_worse_than is None]
    if not planned:
        raise RagnbError(
            f"no gate uses a metric of the pilot ({listing(dict.fromkeys(means['metric']))}); name one: "
            "gates=[rn.Gate('F', 'faithfulness', '>=', 0.8)]"
        )
    checked = check_gates(means, gates=planned, documents_may_fail=scenario.documents_may_fail)
    for row in records(checked):
        more = row["more_needed"]
        if row["outcome"] in ("pass", "fail"):
            why = "decided"
        elif pd.isna(more):
            why = "too_close"
        else:
            why = None
        yield {
            "about": row["gate"],
            "system": row["system"],
            "expected": row["value"],
            "target": row["threshold"],
            "n": row["n"],
            "needed": row["n"] + more,
            "more": more,
            "detectable": abs(row["value"] - row["threshold"]),
            "reason": why,
        }


def _pairs(
    pilot: Any, expected: Any, target: Any, settings: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Return the questions that each metric of a pilot needs to detect a difference."""
    if target is not None:
        raise RagnbError(
            "target= is the threshold of a gate; a comparison needs the difference: expected=0.03"
        )
    for row in records(compare(pilot, **settings)):
        difference = row["value"] if expected is None else expected
        n = row["n_common"]
        # n questions detect `detectable`; what is detectable falls with the root of their number.
        if difference:
            needed = n * (row["detectable"] / abs(difference)) ** 2
        else:
            needed = np.nan
        plan_of_metric = {
            "about": row["metric"],
            "system": row["candidate"],
            "expected": difference,
            "target": 0.0,
            "n": n,
            "detectable": row["detectable"],
        }
        # Also where `needed` is nan: without a difference, or without an interval.
        if not needed < _MOST:
            yield plan_of_metric | {"reason": "too_close"}
            continue
        yield plan_of_metric | {"needed": ceil(needed), "more": max(ceil(needed) - n, 0)}


def _labels(
    pilot: Any, expected: Any, target: Any, settings: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Return the labels that each dimension of rated answers needs."""
    if expected is not None:
        raise RagnbError("with a pilot, the agreement comes from its ratings; remove expected=")
    if isinstance(pilot, pd.DataFrame):
        rated = pilot
    else:
        rated = read_ratings(pilot)
    if target is not None:
        settings = {"target": target} | settings
    card = calibrate(rated, **settings)
    for row, n in zip(records(card.labels_needed), card.verdicts["n"], strict=True):
        if row["reason"] == "counted":
            reason = None  # a number of labels was found
        else:
            reason = row["reason"]
        yield {
            "about": row["dimension"],
            "system": row["judge"],
            "expected": row["seen"],
            "target": card.target,
            "needed": row["total"],
            "more": row["more"],
            "design_effect": row["deff"],
            "n": int(n),
            "reason": reason,
        }


_OF_PILOT = {"gate": _gates, "comparison": _pairs, "calibration": _labels}
