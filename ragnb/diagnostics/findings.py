"""From scores to diagnoses: which metric is past its bar, how surely, what that costs, and where to look."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.diagnostics.lifts import Lifts, lifts
from ragnb.diagnostics.rules import RULES, SLACK, fitting, lift_bar, past, rule_texts
from ragnb.errors import RagnbError
from ragnb.schema import Gate, Metric, Rule
from ragnb.weights import MetricsArgument, moments, sample_weight

COLUMNS = (
    "metric", "severity", "value", "low", "high", "threshold", "certain", "n", "n_clusters", "cost",
    "causes", "actions", "worst", "rule",
)  # fmt: skip
_SHOWN = ("sample_id", "question", "answer", "ground_truth_answer")
_SHOWN_IF_THERE = ("system", "doc_name")

Means = Mapping[str, Mapping[Hashable, Any]]


def diagnose(
    scores: pd.DataFrame,
    metrics: MetricsArgument = None,
    *,
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
        One row a sample, one column a metric, nan where there is no score.
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
          scores in input order.
        - ``rule``: the rule's name.

        ``attrs["weighted"]`` says whether document weights change the means.

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
    weight = sample_weight(scores, doc_weights, doc=doc)
    rows = lifts(scores, metrics, weight, metric_weights=metric_weights, orient=orient, rescale=rescale)
    table = moments(scores, metrics, doc=doc, cluster=cluster).means(
        metric_weights, doc_weights, level=level, orient=orient, rescale=rescale, strict=False
    )
    means: Means = {row["metric"]: row for row in table.to_dict("records")}
    found: list[dict[str, Any]] = []
    for rule, metric in fitting(rules, rows.parts.metrics):
        if fired := _fired(rule, metric, means):
            row = _finding(rule, metric, means, rows, fired)
            row["causes"], row["actions"] = rule_texts(rule, lang)
            row["worst"] = worst_samples(scores, rows.values(metric), metric, top)
            found.append(row)
    found.sort(key=_urgency)
    diagnoses = pd.DataFrame(found, columns=list(COLUMNS))
    diagnoses.attrs["weighted"] = bool((weight != 1).any())
    return diagnoses


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
    return value >= gate.at - SLACK if gate.op == ">=" else value <= gate.at + SLACK


def _finding(rule: Rule, metric: Metric, means: Means, rows: Lifts, fired: tuple[str, float]) -> dict[str, Any]:
    severity, threshold = fired
    mean = means[metric.name]
    certain = bool(past(mean["high"] if metric.better == "higher" else mean["low"], threshold, metric.better))
    if rule.also is not None:
        other = means[rule.also.metric]
        certain &= _meets(float(other["low"] if rule.also.op == ">=" else other["high"]), rule.also)
    bar = lift_bar(rule)
    in_total = bool(pd.notna(mean["weight"])) and bar is not None
    return {
        "metric": metric.name,
        "severity": severity,
        "value": float(mean["value"]),
        "low": float(mean["low"]),
        "high": float(mean["high"]),
        "threshold": threshold,
        "certain": certain,
        "n": int(mean["n"]),
        "n_clusters": int(mean["n_clusters"]),
        "cost": float(rows.rises(metric, bar).sum()) if in_total and bar is not None else float("nan"),
        "rule": rule.name,
    }


def worst_samples(scores: pd.DataFrame, values: Any, metric: Metric, top: int) -> list[dict[str, Any]]:
    """Return the `top` samples with the worst scores as records; samples without a score are never among them.

    Examples
    --------
    >>> frame = pd.DataFrame({"sample_id": ["a", "b", "c"], "question": ["x", "y", "z"]})
    >>> [r["sample_id"] for r in worst_samples(frame, [0.5, None, 0.1], Metric("m"), 2)]
    ['c', 'a']
    """
    x = np.asarray(values, dtype=float)
    order = np.argsort(x if metric.better == "higher" else -x, kind="stable")
    positions = order[: min(top, int((~np.isnan(x)).sum()))]
    shown = [*_SHOWN, *(name for name in _SHOWN_IF_THERE if name in scores.columns)]
    return [
        {name: _cell(scores, position, name) for name in shown} | {"score": float(x[position])}
        for position in positions
    ]


def _cell(scores: pd.DataFrame, position: int, name: str) -> Any:
    if name in scores.columns:
        cell = scores[name].iloc[position]
    else:
        cell = scores.index[position] if name == "sample_id" else None
    if pd.api.types.is_scalar(cell) and pd.isna(cell):
        return None
    return cell.item() if isinstance(cell, np.generic) else cell
