"""What `assess` returns: every small result frame of one run."""

from __future__ import annotations

import math
import os
import platform
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd

from ragnb.calibration import CalibrationCard
from ragnb.diagnostics import gates_json, gates_junit
from ragnb.errors import unknown
from ragnb.files import json_text, write_whole
from ragnb.readers import to_csv_text
from ragnb.scenario import Scenario

_PACKAGES = ("numpy", "pandas", "scipy", "pydantic", "narwhals", "polars", "matplotlib", "papermill")


@dataclass(frozen=True, repr=False)
class Assessment:
    """Every small result frame of one run, made by `assess`.

    Attributes
    ----------
    scenario : Scenario
        The settings that were used, overrides included.
    scores : DataFrame
        The rows, weighed: ``weighted_score``, ``sample_weight``; with traces also their labels and rates. Of rows
        too many to hold (see `assess`) only those that the sheet shows: the 1,000 worst by weighted score, and
        the worst samples of the diagnoses. No number of the sheet is computed from them.
    rows, unscored : int
        How many rows the sheet is about, and how many of them have no score of quality (of traces: no label).
    spread : DataFrame
        ``[system,] metric, bin_low, bin_high, n, n_missing, n_failed, n_not_applicable``: how many rows score in
        each tenth of a metric's range, and how many have no score.
    means : DataFrame
        As `weighted_means` gives it: the metrics, the rates, last ``weighted_score``.
    systems, common : DataFrame or None
        Where there are several systems, which are never pooled, ``means``, ``diagnoses``, ``modes``, ``outcomes``,
        ``documents`` and ``slices`` have a first column ``system``, and ``systems`` is ``means``; ``common`` is
        the same on the questions that all of them answered, where they did not answer the same ones; how many
        those are is ``common_questions``.
    documents : DataFrame or None
        The means by document; rows of one document are the clusters of its own interval.
    slices : DataFrame or None
        The same by the groups of the scenario's slices: ``slice, group`` and the columns of means.
    diagnoses, modes : DataFrame
        As `diagnose` and ``diagnostics.failure_summary`` give them.
    outcomes : DataFrame or None
        ``label, meaning, n, share`` of labelled traces.
    gates : DataFrame
        As `check_gates` gives it, a row a gate and system, after the gates on the input (see
        ``gates.completeness``).
    calibration : CalibrationCard or None
        Of the scenario's ratings; None without.
    comparison : DataFrame or None
        Beside the scenario's ``baseline``, as `compare` gives it; `report` names the previous run where the
        scenario names none.
    notes : DataFrame
        ``code, about, text``: what a reader must know before believing the numbers.
    ledger : DataFrame
        ``step, rows``: where the rows came from and where they went.
    verdict : str
        One sentence.
    inputs : list of dict
        ``role, path, sha256, rows`` of the files read.

    Examples
    --------
    >>> from ragnb import assess
    >>> sheet = assess(pd.DataFrame({"faithfulness": [1.0, 0.8], "doc_name": ["a", "b"]}))
    >>> sheet.means["metric"].tolist()
    ['faithfulness', 'weighted_score']
    """

    scenario: Scenario
    scores: pd.DataFrame
    rows: int
    unscored: int
    spread: pd.DataFrame
    means: pd.DataFrame
    systems: pd.DataFrame | None
    common: pd.DataFrame | None
    common_questions: int
    documents: pd.DataFrame | None
    slices: pd.DataFrame | None
    diagnoses: pd.DataFrame
    modes: pd.DataFrame
    outcomes: pd.DataFrame | None
    gates: pd.DataFrame
    notes: pd.DataFrame
    ledger: pd.DataFrame
    verdict: str
    inputs: list[dict[str, Any]]
    calibration: CalibrationCard | None = None
    comparison: pd.DataFrame | None = None

    @property
    def streamed(self) -> bool:
        """Whether `scores` holds only some of the rows."""
        return len(self.scores) < self.rows

    @property
    def blocked(self) -> bool:
        """Whether a gate blocks."""
        return bool(self.gates["blocks"].any())

    @property
    def incomplete(self) -> bool:
        """Whether more input lines are damaged or lost than the scenario allows."""
        return bool((self.gates["reason"] == "incomplete").any())

    @property
    def shown_system(self) -> str | None:
        """The system that a page shows in detail: the candidate, else the one with most gates that block."""
        if self.systems is None:
            return None
        if self.scenario.candidate is not None:
            return self.scenario.candidate
        blocks = self.gates.groupby("system")["blocks"].sum()
        totals = self.systems[self.systems["metric"] == "weighted_score"].set_index("system")["value"]
        order = pd.DataFrame({"blocks": -blocks.reindex(totals.index).fillna(0), "value": totals})
        return str(order.sort_values(["blocks", "value"], kind="stable").index[0])

    def of_system(self, name: str) -> Assessment:
        """Return the same run with the frames of one system alone.

        Raises
        ------
        RagnbError
            For a name that is none of the systems.

        Examples
        --------
        >>> from ragnb import assess
        >>> scores = pd.DataFrame({"question": ["x", "x"], "faithfulness": [1.0, 0.8], "system": ["a", "b"]})
        >>> assess(scores).of_system("b").means["value"].tolist()
        [0.8, 0.8]
        """
        names = [] if self.systems is None else self.systems["system"].unique().tolist()
        if name not in names:
            raise unknown("system", name, names)
        own: dict[str, Any] = {}
        for field in ("means", "diagnoses", "modes", "outcomes", "documents", "slices"):
            if (frame := getattr(self, field)) is not None:
                own[field] = frame[frame["system"] == name].drop(columns="system").reset_index(drop=True)
        return replace(self, **own)

    def __repr__(self) -> str:
        return f"Assessment({self.verdict!r}, {self.rows} rows, {len(self.notes)} notes)"

    def _repr_html_(self) -> str:
        from ragnb.assessment.sheet import to_html

        return to_html(self)

    def to_markdown(self) -> str:
        """Return the sheet as Markdown, without times and machine paths: equal input gives equal text."""
        from ragnb.assessment.sheet import to_markdown

        return to_markdown(self)

    def save(self, folder: str | os.PathLike[str], *, command: str | None = None) -> dict[str, Path]:
        """Write the page and the tables of the run into a folder; each file appears whole or not at all.

        Parameters
        ----------
        folder : path
            Made if it is not there.
        command : str, optional
            What was called, for ``run.json``.

        Returns
        -------
        dict of name to path
            ``scores.csv, means.csv, gates.json, gates.junit.xml, report.md, report.html, scenario.snapshot.yaml,
            run.json``; ``worst.csv`` in the place of ``scores.csv`` where the rows were too many to hold; with
            ratings also ``calibration.json, calibration.md``.

        Examples
        --------
        >>> import tempfile
        >>> from ragnb import assess
        >>> sheet = assess(pd.DataFrame({"faithfulness": [1.0, 0.8], "doc_name": ["a", "b"]}))
        >>> sorted(sheet.save(tempfile.mkdtemp()))[:3]
        ['gates.json', 'gates.junit.xml', 'means.csv']
        """
        from ragnb.assessment.sheet import to_page

        texts = {
            "worst.csv" if self.streamed else "scores.csv": to_csv_text(self.scores),
            "means.csv": to_csv_text(self.means),
            "gates.json": gates_json(self.gates),
            "gates.junit.xml": gates_junit(self.gates, name=self.scenario.name, lang=self.scenario.lang),
            "report.md": self.to_markdown(),
            "report.html": to_page(self),
            "scenario.snapshot.yaml": self.scenario.snapshot_text(relative_to=Path(folder)),
            "run.json": json_text(run_record(self, command)),
        }
        if self.calibration is not None:
            texts["calibration.json"] = json_text(self.calibration.to_dict())
            texts["calibration.md"] = self.calibration.to_markdown()
        return {name: write_whole(Path(folder) / name, text) for name, text in texts.items()}


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
