"""From scores to diagnoses: which metric is past its bar, how surely, what that costs, and where to look."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.diagnostics.rules import RULES, SLACK, fitting, lift_bar, past, rule_texts
from ragnb.diagnostics.worst import worst_samples
from ragnb.errors import RagnbError
from ragnb.schema import Gate, Metric, Rule, records
from ragnb.weights import (
    MetricsArgument,
    Moments,
    Reduction,
    Weighing,
    check_weights,
    gains_reduction,
    moments_reduction,
    question_of,
    reduce_batches,
    scored,
)

COLUMNS = (
    "metric", "severity", "value", "low", "high", "threshold", "certain", "n", "n_clusters", "cost",
    "causes", "actions", "worst", "rule",
)  # fmt: skip

Means = Mapping[str, Mapping[Hashable, Any]]


def diagnose(
    scores: Any,
    *,
    metrics: MetricsArgument = None,
    rules: Iterable[Rule] = RULES,
    metric_weights: Mapping[str, float] | None = None,
    doc_weights: Mapping[str, float] | None = None,
    doc: str = "doc_name",
    cluster: str | None = None,
    level: float = 0.95,
    orient: bool = True,
    rescale: bool = False,
    top: int = 3,
    lang: str = "en",
) -> pd.DataFrame:
    """Return a diagnosis for each rule that a metric's mean fires.

    Parameters
    ----------
    scores : DataFrame
        One row a sample, one column a metric, nan or null where there is no score; of pandas, Polars, PyArrow,
        DuckDB or PySpark. Of a query only cells and the worst samples leave its engine.
    metrics : names or Metric objects, optional
        None takes the columns that METRICS declares; a metric without a rule gives no diagnosis.
    rules : Rule objects
        Bars are strict, with a slack of 1e-9; critical wins over warning.
    metric_weights, doc_weights : mapping of name to weight, optional
        Document weights enter the means and the cost, metric weights the cost.
    doc, cluster, level, orient, rescale
        As in `weighted_means`.
    top : int
        How many worst samples to show, 0 or more.
    lang : {"en", "zh"}
        The language of causes and actions.

    Returns
    -------
    DataFrame
        Critical before warning, then the highest ``cost``, then the order of the rules:

        - ``metric, value, low, high, n, n_clusters``: the mean as `weighted_means` gives it.
        - ``severity``: ``critical`` or ``warning``; ``threshold``: the bar that fired.
        - ``certain``: whether the whole interval is past it (and, for a rule of two metrics, the other metric's
          whole interval meets its condition); False without an interval.
        - ``cost``: the rise of the total weighted score if each sample past the warning bar were lifted to it;
          nan for a metric outside the total. With ``orient=False`` a lower-is-better metric costs less than 0.
        - ``causes``: list of str; ``actions``: list of ``{"text", "setting"}``.
        - ``worst``: records of ``sample_id`` (the row's label where there is none), ``question``, ``answer``,
          ``ground_truth_answer``, ``score``, and ``system``, ``doc_name`` where there; the worst first, equal
          scores in input order. Rows of DuckDB and PySpark have no order: equal scores go by ``sample_id``.
        - ``rule``: the rule's name; ``weighted``: whether document weights change the means.

    Raises
    ------
    RagnbError
        As `weighted_means`, though metrics that do not add up leave the cost missing; for a negative `top`,
        another `lang`, and a rule whose critical bar is on the good side of its warning bar.

    Examples
    --------
    >>> scores = pd.DataFrame({"faithfulness": [0.2, 0.9, 0.4], "doc_name": ["a", "b", "c"]})
    >>> diagnose(scores)[["metric", "severity", "value", "threshold", "certain", "cost"]].round(3)
             metric  severity  value  threshold  certain   cost
    0  faithfulness   warning    0.5        0.7    False  0.267
    """
    texts.table(lang)
    if isinstance(top, bool) or not isinstance(top, int) or top < 0:
        raise RagnbError(f"top={top!r} must be a whole number, 0 or more")
    frame, chosen = scored(scores, metrics, doc, cluster)
    weighing = Weighing(metric_weights, doc_weights, doc, cluster, level, orient, rescale)
    pairs = list(fitting(rules, chosen))
    questions = question_of(frame, doc=doc, cluster=cluster)
    reductions = [
        moments_reduction(chosen, doc=doc, cluster=cluster, questions=questions),
        rule_gains(pairs, chosen, weighing),
    ]
    reduced, gains = reduce_batches(frame, chosen, reductions)
    return findings(frame, pairs, reduced, gains, weighing, top=top, lang=lang)


Pairs = Sequence[tuple[Rule, Metric]]


def rule_gains(pairs: Pairs, metrics: Sequence[Metric], weighing: Weighing) -> Reduction:
    """Return the reduction to what each rule's metric would gain at its warning threshold."""
    return gains_reduction(metrics, [(metrics.index(metric), lift_bar(rule)) for rule, metric in pairs], weighing)


def findings(
    frame: Any, pairs: Pairs, reduced: Moments, gains: Sequence[float], weighing: Weighing, *, top: int, lang: str
) -> pd.DataFrame:
    """Return the table of `diagnose` from what the rows were reduced to."""
    means: Means = {row["metric"]: row for row in records(weighing.means(reduced))}
    fired = [
        (rule, metric, fired_at, gain)
        for (rule, metric), gain in zip(pairs, gains, strict=True)
        if (fired_at := _fired(rule, metric, means))
    ]
    worst = worst_samples(frame, [metric for _, metric, *_ in fired], top)
    found: list[dict[str, Any]] = []
    for (rule, metric, fired_at, gain), samples in zip(fired, worst, strict=True):
        row = _finding(rule, metric, means, fired_at, float(gain))
        row["causes"], row["actions"] = rule_texts(rule, lang)
        row["worst"] = samples
        found.append(row)
    found.sort(key=_urgency)
    diagnoses = pd.DataFrame(found, columns=list(COLUMNS))
    weights = check_weights(weighing.doc_weights, "doc_weights")
    return diagnoses.assign(weighted=any(weights.get(name, 1.0) != 1 for name in reduced.docs))


def _urgency(row: Mapping[str, Any]) -> tuple[bool, bool, float]:
    missing = bool(np.isnan(row["cost"]))
    return row["severity"] != "critical", missing, 0.0 if missing else -row["cost"]


def _fired(rule: Rule, metric: Metric, means: Means) -> tuple[str, float] | None:
    """The severity and the bar that the mean fires, if any."""
    value = float(means[metric.name]["value"])
    if rule.also is not None and not _meets(float(means[rule.also.metric]["value"]), rule.also):
        return None
    for severity, bar in (("critical", rule.critical), ("warning", rule.warning)):
        if bar is not None and past(value, bar, metric.better):
            return severity, bar
    return None


def _meets(value: float, gate: Gate) -> bool:
    return value >= gate.threshold - SLACK if gate.op == ">=" else value <= gate.threshold + SLACK


def _finding(rule: Rule, metric: Metric, means: Means, fired: tuple[str, float], cost: float) -> dict[str, Any]:
    severity, threshold = fired
    mean = means[metric.name]
    certain = bool(past(mean["high"] if metric.better == "higher" else mean["low"], threshold, metric.better))
    if rule.also is not None:
        other = means[rule.also.metric]
        certain &= _meets(float(other["low"] if rule.also.op == ">=" else other["high"]), rule.also)
    return {
        "metric": metric.name,
        "severity": severity,
        **{name: float(mean[name]) for name in ("value", "low", "high")},
        "threshold": threshold,
        "certain": certain,
        "n": int(mean["n"]),
        "n_clusters": int(mean["n_clusters"]),
        "cost": cost if pd.notna(mean["weight"]) else float("nan"),
        "rule": rule.name,
    }
