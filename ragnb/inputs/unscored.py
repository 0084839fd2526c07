"""A scenario before its first run: the metrics and documents that will count, without a score yet."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragnb.inputs.gather import Inputs, cases_of
from ragnb.inputs.reading import scenario_of
from ragnb.inputs.stages import stage_tables, with_cases
from ragnb.scenario import Scenario
from ragnb.schema import METRICS, Metric


def not_scored_yet(
    source: Any, overrides: Mapping[str, Any]
) -> tuple[Scenario, Inputs, list[Metric]] | None:
    """Return what will be weighed once a scenario has run; None for what is no scenario, or has scores.

    Parameters
    ----------
    source : path or Scenario
    overrides : mapping
        Fields of the scenario for this reading only.

    Returns
    -------
    (scenario, inputs, metrics) or None
        As `read_inputs`; every score is missing.
    """
    if isinstance(source, Scenario):
        scenario = source.replace(**overrides)
    elif isinstance(source, str | os.PathLike) and Path(source).suffix.lower() in (".yaml", ".yml"):
        scenario = scenario_of(Path(source), overrides)
    else:
        return None
    has_scores = scenario.scores is not None or scenario.traces is not None
    if has_scores or (scenario.cases is None and scenario.documents is None):
        return None
    if next(stage_tables(with_cases(scenario)), None) is not None:
        return None
    metrics = _planned(scenario)
    documents = _documents(scenario)
    frame = pd.DataFrame(index=documents.index)
    if documents.notna().any():
        frame = pd.DataFrame({scenario.doc: documents})
    frame = frame.assign(**{metric.name: np.nan for metric in metrics})
    return scenario, Inputs(frame=frame, rows=len(frame)), metrics


def _planned(scenario: Scenario) -> list[Metric]:
    """Return the metrics that the scenario names, else those that its stages compute."""
    from ragnb.scoring import gold
    from ragnb.scoring.run import default_metrics

    if scenario.metrics is not None:
        known = {**METRICS, **scenario.declared}
        names = [item if isinstance(item, str) else item.name for item in scenario.metrics]
        return [known[name] for name in names if name in known]
    if scenario.rubric is not None:
        return list(scenario.rubric.metrics)
    # Generated cases come with their gold.
    has_gold = scenario.cases is None or gold.has_gold(cases_of(scenario))
    names = default_metrics(has_judge="judge" in scenario.llm_profiles, has_gold=has_gold)
    return [METRICS[name] for name in names if name in METRICS]


def _documents(scenario: Scenario) -> pd.Series[Any]:
    """Return the document of each case, or of each passage where there are no cases yet."""
    from ragnb.scoring import passages_of

    if scenario.cases is not None:
        cases = cases_of(scenario)
        empty = pd.Series([None] * len(cases), dtype=object)
        documents: pd.Series[Any] = cases.get(scenario.doc, empty)
        return documents
    passages = passages_of(
        scenario.documents, encoding=scenario.encoding, columns=dict(scenario.columns)
    )
    return passages["doc_name"].reset_index(drop=True)
