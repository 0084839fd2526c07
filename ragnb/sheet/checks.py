"""The gates of a run, and what they find."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

import pandas as pd

from ragnb import diagnostics
from ragnb.comparison.beside import Beside
from ragnb.comparison.operations import with_operations
from ragnb.diagnostics import RULES
from ragnb.errors import RagnbError
from ragnb.inputs import Inputs
from ragnb.scenario import Scenario
from ragnb.schema import DEFAULT_GATES, Gate, Metric, quantile_of
from ragnb.sheet.documents import stacked
from ragnb.sheet.operations import is_asked, rows_for_gates, with_questions_needed


def check_means(
    asked: Sequence[Gate],
    measured: Sequence[Gate],
    means: pd.DataFrame,
    taken: Mapping[str | None, Any],
    scenario: Scenario,
) -> pd.DataFrame:
    """Check the gates on means, and those `measured` by what the answers took.

    Parameters
    ----------
    asked : sequence of Gate
        All gates of the run.
    means : DataFrame
        Of all systems.
    taken : mapping of system to values
        What each answer took, see `SystemFrames`.
    """
    tables = [means]
    if measured:
        quantiles = {
            system: rows_for_gates(values, measured, scenario.level)
            for system, values in taken.items()
        }
        rows = stacked(quantiles)
        if rows is not None:
            tables.append(rows)
    gates = diagnostics.check_gates(
        pd.concat(tables, ignore_index=True),
        gates=plain(asked),
        no_data=scenario.no_data,
        documents_may_fail=scenario.documents_may_fail,
    )
    if measured:
        return with_questions_needed(gates, taken, scenario.level)
    return gates


def with_completeness(
    gates: pd.DataFrame,
    account: pd.DataFrame,
    asked: Iterable[Gate],
    differences: Beside,
    scenario: Scenario,
) -> pd.DataFrame:
    """Return the gates after what was lost has been counted, with those on a change and on completeness.

    Raises
    ------
    RagnbError
        For a gate on a change from a baseline where there is none.
    """
    allow = scenario.allow.model_dump()
    parts = [diagnostics.reopen_incomplete(gates, account, allow=allow)]
    on_change = [gate for gate in asked if gate.not_worse_than is not None]
    if on_change and scenario.baseline is None:
        raise RagnbError(
            f"gate {on_change[0].name!r} asks not_worse_than: baseline, and the scenario names none; add "
            "baseline: with a system, a table of scores or the folder of a run"
        )
    if on_change:
        table = with_operations(differences.table, differences.operations, on_change)
        parts.append(
            diagnostics.check_differences(table, gates=on_change, no_data=scenario.no_data)
        )
    parts.append(diagnostics.completeness(account, allow=allow, no_data=scenario.no_data))
    checked = pd.concat(parts, ignore_index=True)
    if scenario.candidate is None:
        return checked
    # Among several systems only the gates of the candidate block; those of files, without a system, still do.
    of_another = checked["system"].notna() & (checked["system"] != scenario.candidate)
    reason = checked["reason"].mask(of_another, "not the candidate")
    return checked.assign(blocks=checked["blocks"] & ~of_another, reason=reason)


def of_operation(gates: Iterable[Gate], metrics: list[Metric]) -> list[Gate]:
    """Return the gates on what answers took that no metric of the run answers, such as ``p95(latency_s)``."""
    names = {metric.name for metric in metrics}
    return [gate for gate in gates if is_asked(gate.metric) and gate.metric not in names]


def deciding(means: pd.DataFrame, gates: Iterable[Gate]) -> set[str]:
    """Return the metrics that the total or a gate that blocks uses."""
    names = {*means.loc[means["weight"] > 0, "metric"]}
    for gate in gates:
        if gate.advisory:
            continue
        names.add(gate.metric)
        # A gate on p95(latency_s) goes by the cells of latency_s.
        quantile = quantile_of(gate.metric)
        if quantile is not None:
            _, column = quantile
            names.add(column)
    return names


def gates_of(scenario: Scenario, metrics: list[Metric], inputs: Inputs) -> tuple[Gate, ...]:
    """The scenario's gates, else the default ones for what is there, under its policy for what is inconclusive."""
    # An empty list is the wish for no gates, and None that nobody said.
    if scenario.gates is not None:
        return tuple(_under_policy(gate, scenario.undecided) for gate in scenario.gates)
    gates: list[Gate] = []
    if inputs.with_gold:
        measured = {metric.name for metric in metrics}
        gates = [gate for gate in DEFAULT_GATES if gate.metric in measured]
    quality = {metric.name: metric for metric in metrics if metric.role == "quality"}
    # Somebody named these in the tool that scored, so they block.
    named = {
        name: row["threshold"]
        for name, row in inputs.tools.items()
        if name in quality and row["threshold"] is not None
    }
    gates += [Gate(name, name, _op_of(quality[name]), at) for name, at in named.items()]
    # Nobody named these thresholds, so they are shown and never block.
    unnamed = [metric for name, metric in quality.items() if name not in named]
    bars = diagnostics.warning_bars(RULES, unnamed)
    advisory = [
        Gate(name, name, _op_of(quality[name]), at, advisory=True) for name, at in bars.items()
    ]
    return (*(_under_policy(gate, scenario.undecided) for gate in gates), *advisory)


def _op_of(metric: Metric) -> Literal[">=", "<="]:
    """Return the comparison that a good mean of a metric meets."""
    if metric.better == "higher":
        return ">="
    return "<="


def _under_policy(gate: Gate, undecided: str) -> Gate:
    """Return a gate that says for itself what happens if it is not decided, else as the scenario says."""
    # A gate on a change has neither op nor threshold, and `Gate` refuses None for them.
    fields = {name: value for name, value in asdict(gate).items() if value is not None}
    if fields["undecided"] == "value":
        fields["undecided"] = undecided
    return Gate(**fields)


def plain(gates: Iterable[Gate]) -> tuple[Gate, ...]:
    """Return the gates on means; weights alone do not tell a difference from a baseline."""
    return tuple(gate for gate in gates if gate.not_worse_than is None)
