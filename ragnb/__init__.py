"""Evaluate a RAG system: is it good enough, what to fix first, and can its judge be trusted?

Frames go in and small frames come out; `assess` lays them all on one sheet.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_ROOM_OF = {
    "DEFAULT_GATES": "schema",
    "METRICS": "schema",
    "RULES": "diagnostics",
    "Assessment": "sheet",
    "CalibrationCard": "calibration",
    "EvalCase": "schema",
    "Gate": "schema",
    "Metric": "schema",
    "Moments": "weights",
    "Rubric": "schema",
    "Rule": "schema",
    "Scenario": "scenario",
    "agreement": "calibration",
    "applicable_metrics": "readers",
    "arena": "judging",
    "assess": "sheet",
    "calibrate": "calibration",
    "changed_questions": "comparison",
    "check_gates": "diagnostics",
    "compare": "comparison",
    "corrected_mean": "calibration",
    "diagnose": "diagnostics",
    "evaluate": "scoring",
    "failure_modes": "diagnostics",
    "judge": "judging",
    "label_traces": "traces",
    "load_scenario": "scenario",
    "moments": "weights",
    "patch_scenario": "scenario",
    "plan": "comparison",
    "read_cases": "readers",
    "read_gold": "readers",
    "read_ratings": "calibration",
    "read_scores": "readers",
    "read_traces": "readers",
    "refusal_metrics": "traces",
    "standings": "comparison",
    "weigh": "weights",
    "weight_map": "comparison",
    "weighted_means": "weights",
    "weighted_score": "weights",
}

__all__ = sorted(_ROOM_OF)

if TYPE_CHECKING:
    from ragnb.calibration import CalibrationCard as CalibrationCard
    from ragnb.calibration import agreement as agreement
    from ragnb.calibration import calibrate as calibrate
    from ragnb.calibration import corrected_mean as corrected_mean
    from ragnb.calibration import read_ratings as read_ratings
    from ragnb.comparison import changed_questions as changed_questions
    from ragnb.comparison import compare as compare
    from ragnb.comparison import plan as plan
    from ragnb.comparison import standings as standings
    from ragnb.comparison import weight_map as weight_map
    from ragnb.diagnostics import RULES as RULES
    from ragnb.diagnostics import check_gates as check_gates
    from ragnb.diagnostics import diagnose as diagnose
    from ragnb.diagnostics import failure_modes as failure_modes
    from ragnb.judging import arena as arena
    from ragnb.judging import judge as judge
    from ragnb.readers import applicable_metrics as applicable_metrics
    from ragnb.readers import read_cases as read_cases
    from ragnb.readers import read_gold as read_gold
    from ragnb.readers import read_scores as read_scores
    from ragnb.readers import read_traces as read_traces
    from ragnb.scenario import Scenario as Scenario
    from ragnb.scenario import load_scenario as load_scenario
    from ragnb.scenario import patch_scenario as patch_scenario
    from ragnb.schema import DEFAULT_GATES as DEFAULT_GATES
    from ragnb.schema import METRICS as METRICS
    from ragnb.schema import EvalCase as EvalCase
    from ragnb.schema import Gate as Gate
    from ragnb.schema import Metric as Metric
    from ragnb.schema import Rubric as Rubric
    from ragnb.schema import Rule as Rule
    from ragnb.scoring import evaluate as evaluate
    from ragnb.sheet import Assessment as Assessment
    from ragnb.sheet import assess as assess
    from ragnb.traces import label_traces as label_traces
    from ragnb.traces import refusal_metrics as refusal_metrics
    from ragnb.weights import Moments as Moments
    from ragnb.weights import moments as moments
    from ragnb.weights import weigh as weigh
    from ragnb.weights import weighted_means as weighted_means
    from ragnb.weights import weighted_score as weighted_score


def __getattr__(name: str) -> Any:
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'ragnb' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"ragnb.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
