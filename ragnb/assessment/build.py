"""Scenario → Assessment: read, label, weigh, diagnose, hold against the gates, and say it in words."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

from ragnb.assessment import breakdowns, judge, streams, words
from ragnb.assessment.inputs import Inputs, gather
from ragnb.assessment.result import Assessment
from ragnb.assessment.stages import join_stages
from ragnb.diagnostics import RULES, diagnose, failure_summary
from ragnb.diagnostics.rules import warning_bars
from ragnb.errors import RagnbError
from ragnb.gates import check_gates
from ragnb.scenario import Scenario, Settings, load_scenario
from ragnb.schema import DEFAULT_GATES, METRICS, Gate, Metric, resolve_metrics
from ragnb.traces import RATES, outcome_counts
from ragnb.weights import column_names, moments


def assess(source: Any, **overrides: Unpack[Settings]) -> Assessment:
    """Lay one run out on one sheet: means, diagnoses, gates, notes and a verdict.

    Parameters
    ----------
    source : Scenario, path, or frame
        A scenario, the path of one (``.yaml``), or any results file (also a pattern or a folder of files of one
        format, which are read as one table) or frame with no scenario at all. Together
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

    Notes
    -----
    Parquet and JSONL files (a pattern such as ``scores/*.parquet``, a folder, or one file) and Polars LazyFrames
    of more than 200,000 rows (of JSON lines: 128 MB) are read in a stream, not held: every number is of all
    rows, and ``scores`` holds the worst of them, as a note says. Scores and traces that are joined must fit in
    memory.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame({"faithfulness": [0.9, 0.4, 0.8], "doc_name": ["a", "b", "c"]})
    >>> sheet = assess(scores, metric_weights={"faithfulness": 2})
    >>> sheet.means[["metric", "weight", "n"]].head(1)
             metric  weight  n
    0  faithfulness     2.0  3
    """
    scenario, frame = opened(source, overrides)
    inputs = gather(scenario, frame)
    if frame is None:
        join_stages(scenario, inputs)
    try:
        return _sheet(with_clusters(scenario, inputs), inputs)
    finally:
        if inputs.stream is not None:
            inputs.stream.close()


def opened(source: Any, overrides: Mapping[str, Any]) -> tuple[Scenario, Any]:
    if isinstance(source, Scenario):
        return source.replace(**overrides), None
    if isinstance(source, str | os.PathLike):
        return scenario_of(Path(source), overrides), None
    return Scenario.without_files().replace(**overrides), source


def scenario_of(path: Path, overrides: Mapping[str, Any], role: str = "") -> Scenario:
    """Return the scenario of a YAML file; of any other file one of it alone, as scores or, beside gold, traces."""
    if path.suffix.lower() in (".yaml", ".yml"):
        return load_scenario(path).replace(**overrides)
    role = role or ("scores" if overrides.get("gold") is None else "traces")
    return Scenario(**{role: path}).replace(**overrides)


def with_clusters(scenario: Scenario, inputs: Inputs) -> Scenario:
    """Rows of one question (repeats, several systems) are a cluster, where nothing names a larger one."""
    names = column_names(inputs.frame)
    if inputs.stream is not None or scenario.cluster is not None or scenario.doc in names:
        return scenario
    key = next((name for name in words.QUESTIONS if name in names), None)
    repeated = key is not None and bool(inputs.frame[key].dropna().duplicated().any())
    return scenario.replace(cluster=key) if repeated else scenario


def _sheet(scenario: Scenario, inputs: Inputs) -> Assessment:
    frame, lang = inputs.frame, scenario.lang
    settings = {name: getattr(scenario, name) for name in ("metric_weights", "doc_weights", "orient", "rescale")}
    finish: dict[str, Any] = settings | {"level": scenario.level, "strict": False}
    shape: dict[str, Any] = {"doc": scenario.doc, "cluster": scenario.cluster}
    metrics = metrics_of(scenario, frame)
    reduced = moments(frame, metrics=metrics, **shape)
    means = reduced.means(**finish)
    systems = streams.distinct(frame, "system") if "system" in column_names(frame) else 0
    by_system = moments(frame, metrics=metrics, by="system", **shape).means(**finish) if systems > 1 else None
    reading = settings | shape | {"level": scenario.level}
    gates = check_gates(means, gates=gates_of(scenario, metrics, inputs), no_data=scenario.no_data)
    modes = failure_summary(frame, metrics=metrics, **reading)
    card = judge.calibrated(scenario, inputs.ratings)
    notes = words.notes(scenario, inputs, means, gates, modes, metrics, systems, card)
    diagnoses = diagnose(frame, metrics=metrics, lang=lang, **reading)
    outcomes = outcome_counts(frame, lang=lang) if inputs.labelled else None
    weighed = streams.weighed(frame, scenario, metrics, total=not means.attrs["why_no_total"])
    return Assessment(
        scenario=scenario,
        scores=weighed if inputs.stream is None else streams.worst_rows(weighed, diagnoses),
        rows=inputs.rows,
        unscored=breakdowns.unscored(reduced, outcomes),
        spread=breakdowns.spread(frame, metrics, means if by_system is None else by_system),
        means=means,
        systems=by_system,
        documents=breakdowns.by_document(frame, metrics, scenario, finish),
        slices=breakdowns.by_slice(frame, metrics, scenario, finish),
        diagnoses=diagnoses,
        modes=modes,
        outcomes=outcomes,
        gates=gates,
        notes=notes,
        ledger=words.ledger(inputs, means, lang),
        verdict=words.verdict(scenario, means, gates, systems > 1),
        inputs=inputs.files,
        calibration=card,
    )


def metrics_of(scenario: Scenario, frame: Any) -> list[Metric]:
    """The scenario's metrics, then the rates that the traces gave."""
    columns, own, given = column_names(frame), scenario.declared, scenario.metrics
    if given is None and scenario.rubric is not None:
        given = tuple(name for name in {**METRICS, **own} if name in columns)
    chosen = resolve_metrics(given and [own.get(m, m) if isinstance(m, str) else m for m in given], columns)
    named = {metric.name for metric in chosen}
    metrics = [*chosen, *(METRICS[name] for name in RATES if name in columns and name not in named)]
    if not metrics:
        raise RagnbError(words.nothing_to_average(streams.head_of(frame)))
    return metrics


def gates_of(scenario: Scenario, metrics: list[Metric], inputs: Inputs) -> tuple[Gate, ...]:
    """The scenario's gates; else the default ones for what is there."""
    if scenario.gates is not None:
        return scenario.gates
    found = list(DEFAULT_GATES) if inputs.with_gold else []
    quality = [metric for metric in metrics if metric.role == "quality"]
    ops: dict[str, Any] = {metric.name: ">=" if metric.better == "higher" else "<=" for metric in quality}
    found += [Gate(name, name, ops[name], bar) for name, bar in warning_bars(RULES, quality).items()]
    return tuple(found)
