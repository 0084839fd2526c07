"""Which metrics a run has: those of its scenario, of a tool, or of the columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import pandas as pd

from ragnb.calibration import looks_like_ratings
from ragnb.errors import RagnbError, did_you_mean, listing
from ragnb.inputs.account import mark_not_applicable
from ragnb.inputs.gather import Inputs
from ragnb.inputs.streams import head_of
from ragnb.readers.facts import SILENT, direction_of_name
from ragnb.readers.metrics import open_facts
from ragnb.readers.reading import metrics_of_tool
from ragnb.scenario import Scenario
from ragnb.scenario.load import metric_place
from ragnb.schema import (
    METRICS,
    RUBRIC,
    Metric,
    is_operation,
    known_metric,
    quantile_of,
    rank_measure,
    resolve_metrics,
    undeclared_columns,
)
from ragnb.traces import RATES, mark_unanswerable
from ragnb.weights import column_names


def prepared(scenario: Scenario, inputs: Inputs) -> list[Metric]:
    """Return the metrics of a run; cells that do not apply are marked.

    Those are the scores of unanswerable questions where a metric cannot grade a refusal, and empty cells where
    the file says why they are empty.
    """
    metrics = metrics_of(scenario, inputs.frame, inputs.tools, inputs.facts)
    frame = mark_unanswerable(inputs.frame, metrics=metrics)
    inputs.frame = mark_not_applicable(frame, metrics=metrics, blank=scenario.blank)
    return metrics


def metrics_of(
    scenario: Scenario,
    frame: Any,
    tools: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    facts: Iterable[Mapping[str, Any]] = (),
) -> list[Metric]:
    """Return the scenario's metrics, else those that METRICS or a layout declares; then the rates of the traces.

    A metric with an open fact is left out; naming it without a declaration is refused. Measures of operation
    (latency, tokens, cost) that a gate names, also in ``p95(latency_s)``, come last; they need no declaration.
    """
    declared_here = scenario.declared
    with_open_fact = {
        name: fact
        for name, fact in open_facts(facts).items()
        if name not in declared_here and not is_operation(name)
    }
    _refuse_open(scenario, with_open_fact)
    columns = [name for name in column_names(frame) if name not in with_open_fact]
    of_tool = {metric.name: metric for metric in metrics_of_tool(tools.values(), columns)}

    given = scenario.metrics
    if given is None and scenario.rubric is not None:
        given = tuple(name for name in {**METRICS, **declared_here} if name in columns)
    elif given is None:
        given = tuple(of_tool.values()) or None
    elif all(isinstance(metric, Metric) and metric.family != RUBRIC for metric in given):
        # What is declared adds to what the table has, as it adds to METRICS; names select.
        others = [metric for name, metric in of_tool.items() if name not in declared_here]
        given = (*others, *given)
    _need_columns_of(scenario, given or (), columns)
    resolved = given
    if given:
        declared = of_tool | declared_here
        resolved = tuple(
            declared.get(item, item) if isinstance(item, str) else item for item in given
        )
    metrics = list(resolve_metrics(resolved, columns))

    there = {metric.name for metric in metrics}
    metrics += [METRICS[name] for name in RATES if name in columns and name not in there]
    if not metrics:
        raise RagnbError(_nothing_to_average(head_of(frame), with_open_fact))

    there |= {metric.name for metric in metrics}
    for name in scenario.named_metrics:
        ranked = known_metric(name) if rank_measure(name) else None
        if ranked and ranked.name in columns and ranked.name not in there:
            metrics.append(ranked)
    for name in _gated_columns(scenario):
        if name in columns and name not in there and is_operation(name):
            metrics.append(declared_here.get(name, Metric(name)))
    return metrics


def _gated_columns(scenario: Scenario) -> list[str]:
    """Return the columns that gates name, each once; ``p95(latency_s)`` is of latency_s."""
    names = []
    for gate in scenario.gates or ():
        quantile = quantile_of(gate.metric)
        names.append(gate.metric if quantile is None else quantile[1])
    return list(dict.fromkeys(names))


def _need_columns_of(scenario: Scenario, given: Iterable[str | Metric], columns: list[str]) -> None:
    """Refuse a metric that the file of a scenario names and the table does not have, with its line."""
    for item in given:
        name = item if isinstance(item, str) else item.name
        if name in columns:
            continue
        where = metric_place(scenario, name)
        if where:
            near = did_you_mean(name, [column for column in columns if "__" not in column])
            reason = f"{name!r} is no column of the table; {near}"
            raise RagnbError(f"{where}{reason}")


def _refuse_open(scenario: Scenario, asked: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse a metric that a scenario names and of which a fact is open."""
    # Each name that a scenario gives for a metric, with its key. No fact of a declared metric is open.
    named = [("metrics", item) for item in scenario.metrics or () if isinstance(item, str)]
    named += [("gates", gate.metric) for gate in scenario.gates or ()]
    named += [("metric_weights", name) for name in scenario.metric_weights or ()]
    for key, name in named:
        if name in asked:
            raise RagnbError(f"{key} names {name!r}, and {open_sentence(asked[name])}")


def open_sentence(fact: Mapping[str, Any]) -> str:
    """Word what is open of a metric, why, and what to write.

    Examples
    --------
    >>> open_sentence({"metric": "bias", "fact": "direction", "value": "?", "evidence": "nothing says it"})
    "its direction is open (nothing says it); declare it: metrics=[rn.Metric('bias', low, high, better='lower')] \
or better='higher'"
    """
    name = fact["metric"]
    evidence = fact["evidence"]
    value = fact["value"]
    if fact["fact"] == "direction":
        return (
            f"its direction is open ({evidence}); declare it: "
            f"metrics=[rn.Metric({name!r}, low, high, better='lower')] or better='higher'"
        )
    low, high = value or ("low", "high")
    return (
        f"its scale is open ({evidence}); declare it: metrics=[rn.Metric({name!r}, {low}, {high})] "
        f"if it is {low}..{high}"
    )


def _nothing_to_average(
    frame: pd.DataFrame, asked: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
) -> str:
    """Return the error for a table without a known metric; `asked` are the metrics with an open fact."""
    if looks_like_ratings([str(name) for name in frame.columns]):
        return (
            f"these are ratings (columns: {listing(frame.columns)}), which validate a judge: run "
            "ragnb calibrate on the file, or name it as ratings: in a scenario"
        )
    numbers = undeclared_columns(frame)
    for name, fact in asked.items():
        # A column of which nothing at all is known is one of the candidates below.
        is_silent = fact["fact"] == "scale" or fact["evidence"] == SILENT.evidence
        if name in METRICS or not is_silent:
            return f"no column is a metric yet: {name!r}: {open_sentence(fact)}"
    step = "score it first"
    if numbers:
        direction = direction_of_name(numbers[0])
        better = "…" if direction is None or direction.open else direction.better
        option = "" if better == "higher" else f", better={better!r}"
        step = f"declare one, such as metrics=[rn.Metric({numbers[0]!r}, low, high{option})]"
    return f"no column is a metric that ragnb knows (numeric columns: {listing(numbers)}); {step}"
