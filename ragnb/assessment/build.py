"""Scenario → Assessment: read, label, weigh, diagnose, hold against the gates, and say it in words."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ragnb.assessment import words
from ragnb.assessment.inputs import Inputs, gather
from ragnb.assessment.result import Assessment
from ragnb.diagnostics import RULES, diagnose, failure_summary
from ragnb.diagnostics.rules import warning_bars
from ragnb.errors import RagnbError
from ragnb.gates import check_gates
from ragnb.scenario import Scenario, load_scenario
from ragnb.schema import DEFAULT_GATES, METRICS, Gate, Metric, resolve_metrics
from ragnb.traces import RATES, outcome_counts
from ragnb.weights import moments, sample_weight, weigh

_SLICES, _FEW_GROUPS = ("kind", "language"), 12


def assess(source: Any, **overrides: Any) -> Assessment:
    """Lay one run out on one sheet: means, diagnoses, gates, notes and a verdict.

    Parameters
    ----------
    source : Scenario, path, or frame
        A scenario, the path of one (``.yaml``), or any results file or frame with no scenario at all. Together
        with ``gold=`` the file or frame holds traces.
    **overrides
        Any field of `Scenario` for this run only, such as ``metric_weights=``, ``metrics=``, ``lang=``; no file
        is touched. None or blank keeps the scenario's value.

    Returns
    -------
    Assessment
        Metrics that cannot be added up leave the weighted score missing, with a note; nothing raises for that.
        Without gates in the scenario, traces are held against `DEFAULT_GATES`, and scores against the warning
        bars of the diagnostic rules.

    Raises
    ------
    RagnbError
        For a scenario, a file or a frame that is not understood.

    Examples
    --------
    >>> scores = pd.DataFrame({"faithfulness": [0.9, 0.4, 0.8], "doc_name": ["a", "b", "c"]})
    >>> sheet = assess(scores, metric_weights={"faithfulness": 2})
    >>> sheet.means[["metric", "weight", "n"]].head(1)
             metric  weight  n
    0  faithfulness     2.0  3
    """
    scenario, frame = _scenario(source, overrides)
    inputs = gather(scenario, frame)
    return _sheet(scenario, inputs)


def _scenario(source: Any, overrides: Mapping[str, Any]) -> tuple[Scenario, Any]:
    if isinstance(source, Scenario):
        return source.replace(**overrides), None
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.suffix.lower() in (".yaml", ".yml"):
            return load_scenario(path).replace(**overrides), None
        role = "traces" if overrides.get("gold") is not None else "scores"
        return Scenario(**{role: path, **overrides}), None
    return Scenario.without_files().replace(**overrides), source


def _sheet(scenario: Scenario, inputs: Inputs) -> Assessment:
    frame, lang = inputs.frame, scenario.lang
    settings: dict[str, Any] = {
        "metric_weights": scenario.metric_weights,
        "doc_weights": scenario.doc_weights,
        "orient": scenario.orient,
        "rescale": scenario.rescale,
    }
    finish: dict[str, Any] = settings | {"level": scenario.level, "strict": False}
    shape: dict[str, Any] = {"doc": scenario.doc, "cluster": scenario.cluster}
    metrics = _metrics(scenario, frame)
    if not metrics:
        raise RagnbError(words.nothing_to_average(frame))
    means = moments(frame, metrics, **shape).means(**finish)
    several = "system" in frame and frame["system"].nunique() > 1
    reading = settings | shape | {"level": scenario.level}
    gates = check_gates(means, _gates(scenario, metrics, inputs), no_data=scenario.no_data)
    modes = failure_summary(frame, metrics, **reading)
    notes = words.notes(scenario, inputs, means, gates, modes, metrics, several)
    return Assessment(
        scenario=scenario,
        scores=_weighed(frame, scenario, metrics, means),
        means=means,
        systems=moments(frame, metrics, by="system", **shape).means(**finish) if several else None,
        documents=_by_document(frame, metrics, scenario, finish),
        slices=_by_slice(frame, metrics, scenario, finish),
        diagnoses=diagnose(frame, metrics, lang=lang, **reading),
        modes=modes,
        outcomes=outcome_counts(frame, lang=lang) if inputs.labelled else None,
        gates=gates,
        notes=notes,
        ledger=words.ledger(inputs, means, lang),
        verdict=words.verdict(scenario, means, gates, several),
        inputs=inputs.files,
    )


def _metrics(scenario: Scenario, frame: pd.DataFrame) -> list[Metric]:
    """The scenario's metrics, then the rates that the traces gave."""
    columns = [str(c) for c in frame.columns]
    chosen = resolve_metrics(scenario.metrics, columns)
    named = {metric.name for metric in chosen}
    return [*chosen, *(METRICS[name] for name in RATES if name in columns and name not in named)]


def _gates(scenario: Scenario, metrics: list[Metric], inputs: Inputs) -> tuple[Gate, ...]:
    """The scenario's gates; else the default ones for what is there."""
    if scenario.gates is not None:
        return scenario.gates
    found = list(DEFAULT_GATES) if inputs.with_gold else []
    quality = [metric for metric in metrics if metric.role == "quality"]
    ops: dict[str, Any] = {metric.name: ">=" if metric.better == "higher" else "<=" for metric in quality}
    found += [Gate(name, name, ops[name], bar) for name, bar in warning_bars(RULES, quality).items()]
    return tuple(found)


def _weighed(frame: pd.DataFrame, scenario: Scenario, metrics: list[Metric], means: pd.DataFrame) -> pd.DataFrame:
    if means.attrs["why_no_total"]:
        weight = sample_weight(frame, scenario.doc_weights, doc=scenario.doc)
        return frame.assign(weighted_score=float("nan"), sample_weight=weight)
    return weigh(
        frame, scenario.metric_weights, scenario.doc_weights, metrics=metrics, doc=scenario.doc,
        orient=scenario.orient, rescale=scenario.rescale,
    )  # fmt: skip


def _by_document(
    frame: pd.DataFrame, metrics: list[Metric], scenario: Scenario, finish: dict[str, Any]
) -> pd.DataFrame | None:
    """Means by document: within one document its questions are the clusters, or no document had an interval."""
    if scenario.doc not in frame or not frame[scenario.doc].notna().any():
        return None
    named = frame[frame[scenario.doc].notna()].rename(columns={scenario.doc: "document"})
    by = moments(named, metrics, by="document", cluster=scenario.cluster)
    return by.means(**(finish | {"doc_weights": None}))


def _by_slice(
    frame: pd.DataFrame, metrics: list[Metric], scenario: Scenario, finish: dict[str, Any]
) -> pd.DataFrame | None:
    """Means by the groups of each slice; columns nobody asked for only where they part the rows in a few."""
    few = [c for c in _SLICES if c in frame and 1 < frame[c].nunique() <= _FEW_GROUPS]
    tables = []
    for column in few if scenario.slices is None else scenario.slices:
        by = moments(frame, metrics, by=column, doc=scenario.doc, cluster=scenario.cluster).means(**finish)
        tables.append(by.rename(columns={column: "group"}))
        tables[-1].insert(0, "slice", column)
    return pd.concat(tables, ignore_index=True) if tables else None
