"""An Assessment → files: written to a temporary file and renamed, the same bytes for the same input."""

from __future__ import annotations

import math
import platform
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from ragnb.assessment.result import Assessment
from ragnb.diagnostics import gates_json, gates_junit
from ragnb.files import json_text, write_whole
from ragnb.readers import to_csv_text

_PACKAGES = ("numpy", "pandas", "scipy", "pydantic", "narwhals", "polars", "matplotlib", "papermill")


def save(sheet: Assessment, folder: Path, command: str | None) -> dict[str, Path]:
    """Write all files of a run; see `Assessment.save`."""
    texts = {
        "worst.csv" if sheet.streamed else "scores.csv": to_csv_text(sheet.scores),
        "means.csv": to_csv_text(sheet.means),
        "gates.json": gates_json(sheet.gates),
        "gates.junit.xml": gates_junit(sheet.gates, name=sheet.scenario.name, lang=sheet.scenario.lang),
        "report.md": sheet.to_markdown(),
        "scenario.snapshot.yaml": sheet.scenario.snapshot_text(relative_to=folder),
        "run.json": json_text(run_record(sheet, command)),
    }
    if sheet.calibration is not None:
        texts["calibration.json"] = json_text(sheet.calibration.to_dict())
        texts["calibration.md"] = sheet.calibration.to_markdown()
    return {name: write_whole(folder / name, text) for name, text in texts.items()}


def run_record(sheet: Assessment, command: str | None) -> dict[str, Any]:
    """Return how a run was made: versions, input hashes, settings, command, time."""
    scenario = sheet.scenario
    return {
        "ragnb": metadata.version("ragnb"),
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in _PACKAGES},
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "scenario": scenario.name,
        "inputs": sheet.inputs,
        "weights": {"metric_weights": scenario.metric_weights, "doc_weights": scenario.doc_weights},
        "blocked": sheet.blocked,
        "verdict": sheet.verdict,
        "overall": _overall(sheet),
        "judge": None if sheet.calibration is None else sheet.calibration.verdict,
    }


def _overall(sheet: Assessment) -> dict[str, Any]:
    """The weighted score as JSON holds it: what is not there is null."""
    shown = sheet.shown_system
    means = sheet.means if shown is None else sheet.of_system(shown).means
    row = means[means["metric"] == "weighted_score"].iloc[-1]
    ends = float(row["range_low"]), float(row["range_high"])
    found = {name: float(row[name]) if math.isfinite(row[name]) else None for name in ("value", "low", "high")}
    span = list(ends) if all(map(math.isfinite, ends)) else None
    return found | {"n": int(row["n"]), "n_clusters": int(row["n_clusters"]), "range": span}
