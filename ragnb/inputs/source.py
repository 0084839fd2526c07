"""Arguments of a caller → a scenario, and the frame and metrics of its run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ragnb.calibration import looks_like_ratings
from ragnb.errors import RagnbError, listing
from ragnb.inputs.gather import Inputs
from ragnb.inputs.streams import head_of
from ragnb.scenario import Scenario, load_scenario
from ragnb.schema import METRICS, Metric, resolve_metrics, undeclared_columns
from ragnb.traces import RATES, mark_unanswerable
from ragnb.weights import column_names


def opened(source: Any, overrides: Mapping[str, Any]) -> tuple[Scenario, Any]:
    if isinstance(source, Scenario):
        return source.replace(**overrides), None
    if isinstance(source, str | os.PathLike):
        return scenario_of(Path(source), overrides), None
    return Scenario.without_files().replace(**overrides), source


def scenario_of(path: Path, overrides: Mapping[str, Any], role: str = "") -> Scenario:
    """Return the scenario of a YAML file; for any other file, one with it as scores or (with gold) as traces."""
    if path.suffix.lower() in (".yaml", ".yml"):
        return load_scenario(path).replace(**overrides)
    role = role or ("scores" if overrides.get("gold") is None else "traces")
    return Scenario(**{role: path}).replace(**overrides)


def prepared(scenario: Scenario, inputs: Inputs) -> list[Metric]:
    """Return the metrics of a run; those that cannot grade a refusal lose the scores of unanswerable questions."""
    metrics = metrics_of(scenario, inputs.frame)
    inputs.frame = mark_unanswerable(inputs.frame, metrics=metrics)
    return metrics


def metrics_of(scenario: Scenario, frame: Any) -> list[Metric]:
    """The scenario's metrics, then the rates of the traces."""
    columns, own, given = column_names(frame), scenario.declared, scenario.metrics
    if given is None and scenario.rubric is not None:
        given = tuple(name for name in {**METRICS, **own} if name in columns)
    chosen = resolve_metrics(given and [own.get(m, m) if isinstance(m, str) else m for m in given], columns)
    named = {metric.name for metric in chosen}
    metrics = [*chosen, *(METRICS[name] for name in RATES if name in columns and name not in named)]
    if not metrics:
        raise RagnbError(_nothing_to_average(head_of(frame)))
    return metrics


def _nothing_to_average(frame: pd.DataFrame) -> str:
    """Return the error for a table without a known metric."""
    if looks_like_ratings([str(c) for c in frame.columns]):
        return (
            f"these are ratings (columns: {listing(frame.columns)}), which validate a judge: run "
            "ragnb calibrate on the file, or name it as ratings: in a scenario"
        )
    numbers = undeclared_columns(frame)
    step = f"declare one, such as metrics=[rn.Metric({numbers[0]!r}, low, high)]" if numbers else "score it first"
    return f"no column is a metric that ragnb knows (numeric columns: {listing(numbers)}); {step}"
