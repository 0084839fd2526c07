"""What is compared: frames, files, scenarios, run folders, runs of a store → the questions of two systems."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from ragnb.comparison.pairs import REFERENCE, Pairs, RunRows, paired, rows_of
from ragnb.errors import RagnbError, listing, near_names, need_known, unknown
from ragnb.files import refuse_too_long, slug
from ragnb.inputs import read_scenario, scenario_of, streams
from ragnb.readers.names import rename_map
from ragnb.scenario import Scenario, load_scenario
from ragnb.schema import Metric
from ragnb.weights import column_names

REPORTS = Path("reports")
# What two runs of one evaluation have in common; files and columns are each run's own.
_SHARED = (
    "lang",
    "doc",
    "cluster",
    "rubric",
    "metrics",
    "metric_weights",
    "doc_weights",
    "orient",
    "rescale",
    "level",
    "candidate",
    "baseline",
    "anchor",
    "gates",
    "corpus",
    "no_data",
)


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
    system : str
        The column that names systems.
    judge : str
        The judge and its rubric, as its own settings name them; empty where they name none.
    numbered : bool
        Whether its ids are places in the file, as it has none.
    """

    name: str
    scenario: Scenario
    frame: Any
    metrics: tuple[Metric, ...]
    system: str = "system"
    judge: str = ""
    numbered: bool = False

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """Those that its rows name."""
        named = self.system in column_names(self.frame)
        if named:
            return tuple(str(name) for name in streams.distinct_values(self.frame, self.system))
        return ()


def run_of(
    source: Any,
    *,
    system: str = "system",
    settings: Mapping[str, Any] | None = None,
    like: Scenario | None = None,
    name: str = "",
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
    # What one run says of the evaluation holds for the other, unless the caller says otherwise.
    settings = _shared_settings(like) | dict(settings or {})
    label = ""
    snapshot = None
    if isinstance(source, str | os.PathLike):
        label, source, snapshot = _at(os.fspath(source), settings)
    if isinstance(source, Scenario):
        frame = None
        scenario = source
    else:
        frame = source
        scenario = Scenario.without_files()
    scenario, inputs, metrics = read_scenario(scenario.replace(**settings), frame)
    if not label and frame is None:
        label = scenario.name
    # Where rows have no ids the reader makes them, and reports it among what it changed.
    is_numbered = any(
        row["what"] == "made" and row["column"] == "sample_id" for row in inputs.lossy
    )
    run = Run(
        name=label or name,
        scenario=scenario,
        frame=inputs.frame,
        metrics=tuple(metrics),
        system=system,
        # The scenario made from a snapshot has no profiles of judges, and may have the rubric of the other run.
        judge=judge_of(snapshot or scenario),
        numbered=is_numbered,
    )
    if not label and len(run.systems) == 1:
        return replace(run, name=run.systems[0])
    return run


def _shared_settings(scenario: Scenario | None) -> dict[str, Any]:
    """Return what a scenario itself says of the evaluation, without the defaults of what it leaves open."""
    if scenario is None:
        return {}
    return {key: getattr(scenario, key) for key in _SHARED if key in scenario.model_fields_set}


def located(path: str) -> str | None:
    """Return the file or folder that a path or scenario name refers to, None if there is none.

    ``latest`` is the newest run of all scenarios, ``reports/NAME/latest`` or ``NAME`` the newest of one;
    ``store.sqlite#RUN`` is a run of a store.
    """
    refuse_too_long(path)
    file, sign, _ = path.rpartition("#")
    if (sign and Path(file).is_file()) or Path(path).exists():
        return path
    pointers = []  # files that hold the name of the newest folder beside them
    if path == "latest":
        pointers = sorted(
            REPORTS.glob("*/latest.txt"), key=lambda one: one.stat().st_mtime, reverse=True
        )
    else:
        if Path(path).name == "latest":
            pointers.append(Path(path).with_name("latest.txt"))
        pointers.append(Path(path) / "latest.txt")
        pointers.append(REPORTS / slug(path) / "latest.txt")
    for pointer in pointers:
        if pointer.is_file():
            return str(pointer.parent / pointer.read_text(encoding="utf-8").strip())
    return None


def need_baseline(baseline: str, systems: Collection[str]) -> None:
    """Refuse a baseline that is neither one of the systems nor a file or run."""
    if baseline not in systems and located(baseline) is None:
        folder = Path(baseline).parent
        there: list[str] = []
        with suppress(OSError):
            there = [entry.name for entry in folder.iterdir() if entry.is_file()]
        # A name that is nearly that of a file beside it is likelier a slip than a system.
        tables = [str(folder / name) for name in near_names(Path(baseline).name, there, least=75)]
        step = "Name one of these, a table of scores, or a run such as reports/NAME/latest"
        raise unknown("baseline", baseline, [*systems, *tables], step)


class _Place(NamedTuple):
    """The name of a run, if it is not that of its settings, what it is read from, and its snapshot."""

    label: str
    source: Any
    snapshot: Scenario | None


def _at(path: str, settings: Mapping[str, Any]) -> _Place:
    """Return what a path leads to: a run of a store, a file or scenario, or the folder of a run."""
    place = located(path)
    if place is None:
        raise RagnbError(
            f"{path}: there is no such file, folder of a run or scenario with a run in {REPORTS}/; name a table "
            "of scores, reports/NAME/latest, or store.sqlite#RUN"
        )
    file, sign, run = place.rpartition("#")
    if sign and Path(file).is_file():
        from ragnb.store import Store

        with Store(file, new=False) as store:
            return _Place(store.named(run), store.scores(run), None)
    folder = Path(place)
    is_run = folder.is_dir() and (folder / "run.json").is_file()
    if not is_run:
        return _Place("", scenario_of(folder, settings), None)
    table = folder / "scores.csv"
    if not table.is_file():
        raise RagnbError(
            f"{place}: the run was read in a stream and kept only its worst rows (worst.csv); compare the files "
            "that it was made from"
        )
    snapshot = load_scenario(folder / "scenario.snapshot.yaml")
    # The folder of a run is named by its time, a hyphen and a hash of its inputs.
    time = folder.name.partition("-")[0]
    scenario = Scenario(scores=table, name=snapshot.name, **_shared_settings(snapshot))
    return _Place(f"{snapshot.name} {time}", scenario, snapshot)


def judge_of(scenario: Scenario) -> str:
    """Return what decides a judge's scores, as one text."""
    profile = scenario.llm_profiles.get("judge")
    rubric = scenario.rubric
    if profile:
        who = f"{profile.model} at {profile.base_url}"
    else:
        who = ""
    if rubric:
        return f"{who} {rubric.model_dump_json()}"
    return who


def paired_runs(
    run: Run,
    baseline: Any = None,
    candidate: str | None = None,
    on: str | None = None,
    by: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> tuple[Run, list[Pairs]]:
    """Pair each candidate of a run with its baseline; return the run that contains the baseline too."""
    scenario = run.scenario
    system = run.system
    baseline = _baseline_of(run, baseline)
    inside = isinstance(baseline, str) and baseline in run.systems
    if inside:
        other = run
    elif isinstance(baseline, Run):
        other = baseline
    else:
        other = run_of(baseline, system=system, settings=settings, like=scenario, name="baseline")
    metrics = _shared_metrics(run, other)
    columns = list(dict.fromkeys([*column_names(run.frame), *column_names(other.frame)]))
    on = _column_of(on, columns)
    for option, column in {"on": on, "by": by}.items():
        if column is not None:
            need_known(option, column, columns, "Neither side has it.")
    if not (inside or on):
        _need_questions(run, other)
    labels = [*_labels_of(scenario, on), by, "label", system]
    if inside:
        runs = [run]
    else:
        # In one table both sides were scored with the same references; in two they may not have been.
        runs = [run, other]
        labels.append(REFERENCE)
    tables = [rows_of(one.frame, metrics, labels, doc=scenario.doc) for one in runs]
    rows = RunRows(tables, system)
    position_of_other = len(runs) - 1
    couples = _couples(run, other, baseline if inside else None, candidate or scenario.candidate)
    every = []
    for couple in couples:
        sides = [rows.of(0, couple.new), rows.of(position_of_other, couple.old)]
        new = couple.new or run.name or "candidate"
        old = couple.old or other.name or "baseline"
        # Two versions of one system have one name, and the table needs two.
        if new != old:
            names = (new, old)
        else:
            names = (f"{new} (new)", f"{old} (old)")
        origins = (run, couple.new), (other, couple.old)
        every.append(paired(sides, metrics, on, scenario, names, origins))
    return other, every


def _labels_of(scenario: Scenario, on: str | None) -> list[str | None]:
    """Return the columns that tell questions, documents and clusters; those that rows lack are passed over."""
    return ["sample_id", "question", on, scenario.doc, scenario.cluster]


def _baseline_of(run: Run, baseline: Any) -> Any:
    """Return what a run is compared with: what is given, else the baseline of its scenario, else its anchor."""
    for choice in (baseline, run.scenario.baseline, run.scenario.anchor):
        if choice is None:
            continue
        if isinstance(choice, str):
            need_baseline(choice, run.systems)
        return choice
    if run.systems:
        have = f"one of the systems {listing(run.systems)}, or another run"
    else:
        have = "another run"
    raise RagnbError(f"compare needs a baseline: name {have}: baseline='…'")


def _need_questions(run: Run, other: Run) -> None:
    """Refuse to pair the rows of two files by their places."""
    have_texts = all("question" in column_names(one.frame) for one in (run, other))
    if (run.numbered or other.numbered) and not have_texts:
        raise RagnbError(
            "rows without sample_id and question could only be paired by their places; give both sides a column "
            "sample_id or question, or name the one that tells their questions: on='…'"
        )


def anchor_beside(scenario: Scenario, baseline: Any) -> Any:
    """Return the accepted run of a scenario; None without one, and where it is the baseline anyway."""
    anchor = scenario.anchor
    if anchor is None or not isinstance(baseline, str | Path):
        return anchor
    if Path(baseline).resolve() == Path(anchor).resolve():
        return None
    return anchor


def _column_of(on: str | None, columns: Sequence[str]) -> str | None:
    """Return the column that tells questions by the name it has here, as other tools write it or as we do."""
    if on is None or on in columns:
        return on
    return rename_map([on]).get(on, on)


def pairs_of_systems(
    run: Run, on: str | None = None, *, couples: Iterable[tuple[str, str]]
) -> Iterator[Pairs]:
    """Yield the pairs of systems of one run, each couple a candidate and its baseline; rows are read once."""
    scenario = run.scenario
    columns = [*column_names(run.frame)]
    on = _column_of(on, columns)
    if on is not None:
        need_known("on", on, columns, "Neither side has it.")
    labels = [*_labels_of(scenario, on), "label", run.system]
    rows = RunRows([rows_of(run.frame, run.metrics, labels, doc=scenario.doc)], run.system)
    for new, old in couples:
        sides = [rows.of(0, new), rows.of(0, old)]
        origins = (run, new), (run, old)
        yield paired(sides, run.metrics, on, scenario, (new, old), origins)


def _shared_metrics(run: Run, other: Run) -> list[Metric]:
    """Return the metrics of a run that the other has too, in the same range."""
    theirs = {metric.name: metric for metric in other.metrics}
    metrics = [metric for metric in run.metrics if metric.name in theirs]
    if not metrics:
        raise RagnbError(
            f"the two sides share no metric ({listing(m.name for m in run.metrics)}; {listing(theirs)}); score "
            "both with the same metrics"
        )
    for metric in metrics:
        their = theirs[metric.name]
        if (their.low, their.high) != (metric.low, metric.high):
            raise RagnbError(
                f"{metric.name!r} goes from {metric.low:g} to {metric.high:g} on one side and from {their.low:g} "
                f"to {their.high:g} on the other; declare one range for both"
            )
    return metrics


class _Couple(NamedTuple):
    """The candidate and the baseline of one comparison; None is a run that names no system, or one only."""

    new: str | None
    old: str | None


def _couples(run: Run, other: Run, inside: str | None, candidate: str | None) -> list[_Couple]:
    """Return which systems are compared; `inside` is the baseline where it is a system of the run itself."""
    if candidate is not None:
        need_known("candidate", candidate, run.systems)
    chosen: Sequence[str | None] = run.systems
    if candidate is not None:
        chosen = [candidate]
    if inside is not None:
        others = [name for name in chosen if name != inside]
        if not others:
            raise RagnbError(
                f"{inside!r} is compared with itself; name another system, or another run: baseline='…'"
            )
        return [_Couple(name, inside) for name in others]
    # A name that is the only one is no choice: two versions may call themselves differently.
    if len(run.systems) <= 1:
        chosen = [None]
    if len(other.systems) <= 1:
        return [_Couple(name, None) for name in chosen]
    step = "write the rows of one of them to a file of its own, and compare with that"
    for name in chosen:
        if name is None:
            raise RagnbError(
                f"the baseline holds the systems {listing(other.systems)}, and the other side names none; {step}"
            )
        if name not in other.systems:
            raise RagnbError(
                f"the baseline holds the systems {listing(other.systems)}, none named {name!r}; {step}"
            )
    return [_Couple(name, name) for name in chosen]
