"""Sources of a comparison: a frame, file, scenario, run folder, or run of a store → its scores."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from ragnb.errors import RagnbError, unknown
from ragnb.files import slug
from ragnb.inputs import read_scenario, scenario_of, streams
from ragnb.scenario import Scenario, load_scenario
from ragnb.schema import Metric
from ragnb.weights import column_names

REPORTS = Path("reports")
# What two runs of one evaluation have in common; files and columns are each run's own.
_SHARED = (
    "lang", "doc", "cluster", "rubric", "metrics", "metric_weights", "doc_weights", "orient", "rescale", "level",
    "candidate", "baseline", "gates", "corpus", "no_data",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """The scores of one run.

    Attributes
    ----------
    name : str
        Of its file or system.
    scenario : Scenario
        Its settings.
    frame : DataFrame of any engine
    metrics : tuple of Metric
    systems : tuple of str
        Those that its rows name.
    judge : str
        The judge and its rubric, as its own settings name them; empty where they name none.
    numbered : bool
        Whether its ids are places in the file, as it has none.
    """

    name: str
    scenario: Scenario
    frame: Any
    metrics: tuple[Metric, ...]
    systems: tuple[str, ...]
    judge: str = ""
    numbered: bool = False


def run_of(
    source: Any, *, system: str, settings: Mapping[str, Any], like: Scenario | None = None, name: str = ""
) -> Run:
    """Read one run.

    Parameters
    ----------
    source : DataFrame, path or Scenario
        See `ragnb.compare`.
    settings : mapping
        Fields of `Scenario` that apply to this call.
    like : Scenario, optional
        The settings of the run that it is compared with.
    name : str
        Of a frame whose rows name no single system.
    """
    shared = {key: getattr(like, key) for key in _SHARED if like is not None and key in like.model_fields_set}
    settings = shared | dict(settings)
    if isinstance(source, str | os.PathLike):
        return _of_path(os.fspath(source), system, settings)
    if isinstance(source, Scenario):
        return _gathered(source.name, source.replace(**settings), None, system)
    scenario = Scenario.without_files().replace(**settings)
    found = _gathered("", scenario, pd.DataFrame(source) if isinstance(source, list) else source, system)
    return replace(found, name=(found.systems[0] if len(found.systems) == 1 else "") or name)


def located(path: str) -> str | None:
    """Return the file or folder that a path or scenario name refers to, None if there is none.

    ``latest`` is the newest run of all scenarios, ``reports/NAME/latest`` or ``NAME`` the newest of one;
    ``store.sqlite#RUN`` is a run of a store.
    """
    file, sign, _ = path.rpartition("#")
    if (sign and Path(file).is_file()) or Path(path).exists():
        return path
    pointers = [Path(path).with_name("latest.txt")] if Path(path).name == "latest" else []
    pointers += [Path(path) / "latest.txt", REPORTS / slug(path) / "latest.txt"]
    if path == "latest":
        pointers = sorted(REPORTS.glob("*/latest.txt"), key=lambda one: one.stat().st_mtime, reverse=True)
    named = (str(one.parent / one.read_text(encoding="utf-8").strip()) for one in pointers if one.is_file())
    return next(named, None)


def need_baseline(baseline: str, systems: Collection[str]) -> None:
    """Refuse a baseline that is neither one of the systems nor a file or run."""
    if baseline not in systems and located(baseline) is None:
        raise unknown("baseline", baseline, list(systems), "It is no file or run either.")


def _of_path(path: str, system: str, settings: Mapping[str, Any]) -> Run:
    if (place := located(path)) is None:
        raise RagnbError(
            f"{path}: there is no such file, folder of a run or scenario with a run in {REPORTS}/; name a table "
            "of scores, reports/NAME/latest, or store.sqlite#RUN"
        )
    file, sign, run = place.rpartition("#")
    if sign and Path(file).is_file():
        from ragnb.store import Store

        with Store(file, new=False) as store:
            name, frame = store.named(run), store.scores(run)
        return _gathered(name, Scenario.without_files().replace(**settings), frame, system)
    if (found := Path(place)).is_dir() and (found / "run.json").is_file():
        return _of_folder(found, system, settings)
    scenario = scenario_of(found, settings)
    return _gathered(scenario.name if found.suffix in (".yaml", ".yml") else found.stem, scenario, None, system)


def _of_folder(folder: Path, system: str, settings: Mapping[str, Any]) -> Run:
    """Return the run in a folder of `ragnb report`, with the settings of its snapshot."""
    if not (table := folder / "scores.csv").is_file():
        raise RagnbError(
            f"{folder}: the run was read in a stream and kept only its worst rows (worst.csv); compare the files "
            "that it was made from"
        )
    snapshot = load_scenario(folder / "scenario.snapshot.yaml")
    kept = {key: getattr(snapshot, key) for key in _SHARED if key in snapshot.model_fields_set}
    scenario = Scenario(scores=table, name=snapshot.name, **kept).replace(**settings)
    found = _gathered(f"{snapshot.name} {folder.name.partition('-')[0]}", scenario, None, system)
    return replace(found, judge=judge_of(snapshot))


def _gathered(name: str, scenario: Scenario, frame: Any, system: str) -> Run:
    scenario, inputs, metrics = read_scenario(scenario, frame)
    made = any((row["what"], row["column"]) == ("made", "sample_id") for row in inputs.lossy)
    systems = systems_of(inputs.frame, system)
    return Run(name, scenario, inputs.frame, tuple(metrics), systems, judge_of(scenario), made)


def judge_of(scenario: Scenario) -> str:
    """Return what decides a judge's scores, as one text."""
    profile, rubric = scenario.llm_profiles.get("judge"), scenario.rubric
    who = f"{profile.model} at {profile.base_url}" if profile else ""
    return f"{who} {rubric.model_dump_json()}" if rubric else who


def systems_of(frame: Any, system: str) -> tuple[str, ...]:
    if system not in column_names(frame):
        return ()
    return tuple(str(name) for name in streams.distinct_values(frame, system))
