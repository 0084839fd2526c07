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
    given = scenario.metrics
    asked = {name: fact for name, fact in open_facts(facts).items() if name not in declared_here}
    asked = {name: fact for name, fact in asked.items() if not is_operation(name)}
    _refuse_open(scenario, asked)
    columns = [name for name in column_names(frame) if name not in asked]
    of_tool = {metric.name: metric for metric in metrics_of_tool(tools.values(), columns)}
    if given is None and scenario.rubric is not None:
        given = tuple(name for name in {**METRICS, **declared_here} if name in columns)
    elif given is None:
        given = tuple(of_tool.values()) or None
    elif all(isinstance(metric, Metric) and metric.family != RUBRIC for metric in given):
        # What is declared adds to what the table has, as it adds to METRICS; names select.
        given = (*(metric for name, metric in of_tool.items() if name not in declared_here), *given)
    _need_columns_of(scenario, given or (), columns)
    declared = of_tool | declared_here
    metrics = list(
        resolve_metrics(
            given and [declared.get(m, m) if isinstance(m, str) else m for m in given], columns
        )
    )

    there = {metric.name for metric in metrics}
    metrics += [METRICS[name] for name in RATES if name in columns and name not in there]
    if not metrics:
        raise RagnbError(_nothing_to_average(head_of(frame), asked))

    there |= {metric.name for metric in metrics}
    ranked = [known_metric(name) for name in scenario.named_metrics if rank_measure(name)]
    metrics += [one for one in ranked if one and one.name in columns and one.name not in there]

    asked_of = (gate.metric for gate in scenario.gates or ())
    columns_asked = (quantile_of(name) or (None, name) for name in asked_of)
    gated = dict.fromkeys(column for _, column in columns_asked)
    measured = [name for name in gated if name in columns and name not in there]
    metrics += [declared_here.get(name, Metric(name)) for name in measured if is_operation(name)]
    return metrics


def _need_columns_of(scenario: Scenario, given: Iterable[str | Metric], columns: list[str]) -> None:
    """Refuse a metric that the file of a scenario names and the table does not have, with its line."""
    for item in given:
        name = item if isinstance(item, str) else item.name
        if name not in columns and (where := metric_place(scenario, name)):
            near = did_you_mean(name, [column for column in columns if "__" not in column])
            reason = f"{name!r} is no column of the table; {near}"
            raise RagnbError(f"{where}{reason}")


def _refuse_open(scenario: Scenario, asked: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse a metric that a scenario names and of which a fact is open."""
    listed = scenario.metrics or ()
    named = [("metrics", item) for item in listed if isinstance(item, str)]
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
    if looks_like_ratings([str(c) for c in frame.columns]):
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
        named = direction_of_name(numbers[0])
        better = "…" if named is None or named.open else named.better
        end = "" if better == "higher" else f", better={better!r}"
        step = f"declare one, such as metrics=[rn.Metric({numbers[0]!r}, low, high{end})]"
    return f"no column is a metric that ragnb knows (numeric columns: {listing(numbers)}); {step}"
