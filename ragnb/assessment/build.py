"""Scenario → Assessment: read, label, weigh, diagnose, hold against the gates, and say it in words."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ragnb.assessment import streams, words
from ragnb.assessment.inputs import Inputs, gather
from ragnb.assessment.result import Assessment
from ragnb.diagnostics import RULES, diagnose, failure_summary
from ragnb.diagnostics.rules import warning_bars
from ragnb.errors import RagnbError
from ragnb.gates import check_gates
from ragnb.scenario import Scenario, load_scenario
from ragnb.schema import DEFAULT_GATES, METRICS, Gate, Metric, resolve_metrics
from ragnb.traces import RATES, outcome_counts
from ragnb.weights import Moments, column_names, histogram, moments

_SLICES, _FEW_GROUPS = ("kind", "language"), 12


def assess(source: Any, **overrides: Any) -> Assessment:
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
        raise RagnbError(words.nothing_to_average(streams.head_of(frame)))
    reduced = moments(frame, metrics, **shape)
    means = reduced.means(**finish)
    systems = streams.distinct(frame, "system") if "system" in column_names(frame) else 0
    by_system = moments(frame, metrics, by="system", **shape).means(**finish) if systems > 1 else None
    reading = settings | shape | {"level": scenario.level}
    gates = check_gates(means, _gates(scenario, metrics, inputs), no_data=scenario.no_data)
    modes = failure_summary(frame, metrics, **reading)
    notes = words.notes(scenario, inputs, means, gates, modes, metrics, systems)
    diagnoses = diagnose(frame, metrics, lang=lang, **reading)
    outcomes = outcome_counts(frame, lang=lang) if inputs.labelled else None
    weighed = streams.weighed(frame, scenario, metrics, total=not means.attrs["why_no_total"])
    return Assessment(
        scenario=scenario,
        scores=weighed if inputs.stream is None else streams.worst_rows(weighed, diagnoses),
        rows=inputs.rows,
        unscored=_unscored(reduced, outcomes),
        spread=_spread(frame, metrics, means if by_system is None else by_system),
        means=means,
        systems=by_system,
        documents=_by_document(frame, metrics, scenario, finish),
        slices=_by_slice(frame, metrics, scenario, finish),
        diagnoses=diagnoses,
        modes=modes,
        outcomes=outcomes,
        gates=gates,
        notes=notes,
        ledger=words.ledger(inputs, means, lang),
        verdict=words.verdict(scenario, means, gates, systems > 1),
        inputs=inputs.files,
    )


def _metrics(scenario: Scenario, frame: Any) -> list[Metric]:
    """The scenario's metrics, then the rates that the traces gave."""
    columns = column_names(frame)
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


def _unscored(reduced: Moments, outcomes: pd.DataFrame | None) -> int:
    """How many rows have no score of quality; of traces without any such metric, no label."""
    quality = [k for k, metric in enumerate(reduced.metrics) if metric.role == "quality"]
    if quality:
        alone = ~reduced.cells.present[:, quality].any(axis=1)
        return int(reduced.cells.n[alone].sum())
    return int(reduced.rows.sum()) - (0 if outcomes is None else int(outcomes["n"].sum()))


def _spread(frame: Any, metrics: list[Metric], means: pd.DataFrame) -> pd.DataFrame:
    """How many rows score in each tenth, and how many have no score of which kind, by system where means are."""
    bounded = [metric for metric in metrics if metric.bounded and metric.role == "quality"]
    by = [name for name in ("system",) if name in means]
    table = histogram(frame, bounded, by=by[0] if by else None)
    return table.merge(means[[*by, "metric", "n_missing", "n_failed", "n_not_applicable"]], on=[*by, "metric"])


def _by_document(
    frame: Any, metrics: list[Metric], scenario: Scenario, finish: dict[str, Any]
) -> pd.DataFrame | None:
    """Means by document, without the rows that have none."""
    if scenario.doc not in column_names(frame):
        return None
    by = moments(frame, metrics, by=scenario.doc, doc=scenario.doc, cluster=scenario.cluster)
    means = by.means(**(finish | {"doc_weights": None}))
    named = means[means[scenario.doc].notna()].reset_index(drop=True).rename(columns={scenario.doc: "document"})
    return named if len(named) else None


def _by_slice(
    frame: Any, metrics: list[Metric], scenario: Scenario, finish: dict[str, Any]
) -> pd.DataFrame | None:
    """Means by the groups of each slice; columns nobody asked for only where they part the rows in a few."""
    have = column_names(frame)
    few = [c for c in _SLICES if c in have and 1 < streams.distinct(frame, c) <= _FEW_GROUPS]
    tables = []
    for column in few if scenario.slices is None else scenario.slices:
        by = moments(frame, metrics, by=column, doc=scenario.doc, cluster=scenario.cluster).means(**finish)
        tables.append(by.rename(columns={column: "group"}))
        tables[-1].insert(0, "slice", column)
    return pd.concat(tables, ignore_index=True) if tables else None
