"""The gates of a run, and what they find."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

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
    compared = [means]
    if measured:
        rows = stacked(
            {
                name: rows_for_gates(values, measured, scenario.level)
                for name, values in taken.items()
            }
        )
        if rows is not None:
            compared.append(rows)
    gates = diagnostics.check_gates(
        pd.concat(compared, ignore_index=True),
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
    checked = [diagnostics.reopen_incomplete(gates, account, allow=allow)]
    beside = [gate for gate in asked if gate.not_worse_than is not None]
    if beside and scenario.baseline is None:
        raise RagnbError(
            f"gate {beside[0].name!r} asks not_worse_than: baseline, and the scenario names none; add "
            "baseline: with a system, a table of scores or the folder of a run"
        )
    if beside:
        table = with_operations(differences.table, differences.operations, beside)
        checked.append(diagnostics.check_differences(table, gates=beside, no_data=scenario.no_data))
    checked.append(diagnostics.completeness(account, allow=allow, no_data=scenario.no_data))
    found = pd.concat(checked, ignore_index=True)
    if scenario.candidate is None:
        return found
    # Among several systems only the gates of the candidate block.
    other = found["system"].notna() & (found["system"] != scenario.candidate)
    reason = found["reason"].mask(other, "not the candidate")
    return found.assign(blocks=found["blocks"] & ~other, reason=reason)


def of_operation(gates: Iterable[Gate], metrics: list[Metric]) -> list[Gate]:
    """Return the gates on what answers took that no metric of the run answers, such as ``p95(latency_s)``."""
    names = {metric.name for metric in metrics}
    return [gate for gate in gates if is_asked(gate.metric) and gate.metric not in names]


def deciding(means: pd.DataFrame, gates: Iterable[Gate]) -> set[str]:
    """Return the metrics that the total or a gate that blocks uses."""
    weighed = means.loc[means["weight"] > 0, "metric"]
    gated = [gate.metric for gate in gates if not gate.advisory]
    quantiles = filter(None, map(quantile_of, gated))
    return {*weighed, *gated, *(column for _, column in quantiles)}


def gates_of(scenario: Scenario, metrics: list[Metric], inputs: Inputs) -> tuple[Gate, ...]:
    """The scenario's gates, else the default ones for what is there, under its policy for what is inconclusive."""
    quality = {metric.name: metric for metric in metrics if metric.role == "quality"}
    ops: dict[str, Any] = {
        name: ">=" if metric.better == "higher" else "<=" for name, metric in quality.items()
    }
    gates = list(scenario.gates or ())
    advisory = list[Gate]()
    if scenario.gates is None:
        there = {metric.name for metric in metrics} if inputs.with_gold else ()
        # Somebody named these in the tool that scored, so they block.
        named = {name: row["threshold"] for name, row in inputs.tools.items() if name in ops}
        named = {name: at for name, at in named.items() if at is not None}
        gates = [gate for gate in DEFAULT_GATES if gate.metric in there]
        gates += [Gate(name, name, ops[name], at) for name, at in named.items()]
        # Nobody named these thresholds, so they are shown and never block.
        bars = diagnostics.warning_bars(
            RULES, [metric for name, metric in quality.items() if name not in named]
        )
        advisory = [Gate(name, name, ops[name], bar, advisory=True) for name, bar in bars.items()]
    return (*(_under_policy(gate, scenario.undecided) for gate in gates), *advisory)


def _under_policy(gate: Gate, undecided: str) -> Gate:
    """Return a gate that says for itself what happens if it is not decided, else as the scenario says."""
    fields = {name: value for name, value in asdict(gate).items() if value is not None}
    if fields["undecided"] == "value":
        fields["undecided"] = undecided
    return Gate(**fields)


def plain(gates: Iterable[Gate]) -> tuple[Gate, ...]:
    """Return the gates on means; weights alone do not tell a difference from a baseline."""
    return tuple(gate for gate in gates if gate.not_worse_than is None)
