"""What is compared: frames, files, scenarios, run folders, runs of a store → the questions of two systems."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ragnb.comparison.pairs import REFERENCE, Pairs, RunRows, paired, rows_of
from ragnb.errors import RagnbError, listing, near_names, need_known, unknown
from ragnb.files import slug
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
    shared = {
        key: getattr(like, key)
        for key in _SHARED
        if like is not None and key in like.model_fields_set
    }
    # What one run says of the evaluation holds for the other, unless the caller says otherwise.
    settings = shared | dict(settings or {})
    label = ""
    snapshot = None
    if isinstance(source, str | os.PathLike):
        label, source, snapshot = _at(os.fspath(source), settings)
    frame = None if isinstance(source, Scenario) else source
    scenario = (source if frame is None else Scenario.without_files()).replace(**settings)
    scenario, inputs, metrics = read_scenario(scenario, frame)
    made = any((row["what"], row["column"]) == ("made", "sample_id") for row in inputs.lossy)
    label = label or (scenario.name if frame is None else "")
    judge = judge_of(snapshot or scenario)
    run = Run(label or name, scenario, inputs.frame, tuple(metrics), system, judge, made)
    if not label and len(run.systems) == 1:
        return replace(run, name=run.systems[0])
    return run


def located(path: str) -> str | None:
    """Return the file or folder that a path or scenario name refers to, None if there is none.

    ``latest`` is the newest run of all scenarios, ``reports/NAME/latest`` or ``NAME`` the newest of one;
    ``store.sqlite#RUN`` is a run of a store.
    """
    file, sign, _ = path.rpartition("#")
    if (sign and Path(file).is_file()) or Path(path).exists():
        return path
    if Path(path).name == "latest":
        pointers = [Path(path).with_name("latest.txt")]
    else:
        pointers = []
    pointers += [Path(path) / "latest.txt", REPORTS / slug(path) / "latest.txt"]
    if path == "latest":
        pointers = sorted(
            REPORTS.glob("*/latest.txt"), key=lambda one: one.stat().st_mtime, reverse=True
        )
    named = (
        str(one.parent / one.read_text(encoding="utf-8").strip())
        for one in pointers
        if one.is_file()
    )
    return next(named, None)


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


def _at(path: str, settings: Mapping[str, Any]) -> tuple[str, Any, Scenario | None]:
    """Return the name of a run, if it is not that of its settings, what it is read from, and its snapshot."""
    if (place := located(path)) is None:
        raise RagnbError(
            f"{path}: there is no such file, folder of a run or scenario with a run in {REPORTS}/; name a table "
            "of scores, reports/NAME/latest, or store.sqlite#RUN"
        )
    file, sign, run = place.rpartition("#")
    if sign and Path(file).is_file():
        from ragnb.store import Store

        with Store(file, new=False) as store:
            return store.named(run), store.scores(run), None
    if not (Path(place).is_dir() and (Path(place) / "run.json").is_file()):
        return "", scenario_of(Path(place), settings), None
    if not (table := Path(place) / "scores.csv").is_file():
        raise RagnbError(
            f"{place}: the run was read in a stream and kept only its worst rows (worst.csv); compare the files "
            "that it was made from"
        )
    snapshot = load_scenario(Path(place) / "scenario.snapshot.yaml")
    kept = {key: getattr(snapshot, key) for key in _SHARED if key in snapshot.model_fields_set}
    label = f"{snapshot.name} {Path(place).name.partition('-')[0]}"
    return label, Scenario(scores=table, name=snapshot.name, **kept), snapshot


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
    columns = list(dict.fromkeys(name for one in (run, other) for name in column_names(one.frame)))
    on = _column_of(on, columns)
    for option, column in {"on": on, "by": by}.items():
        if column is not None:
            need_known(option, column, columns, "Neither side has it.")
    if not (inside or on):
        _need_questions(run, other)
    read: tuple[str | None, ...] = ("sample_id", "question", on, scenario.doc, scenario.cluster)
    read += (by, "label", system)
    if inside:
        runs = [run]
    else:
        # In one table both sides were scored with the same references; in two they may not have been.
        runs = [run, other]
        read += (REFERENCE,)
    tables = [rows_of(one.frame, metrics, read, doc=scenario.doc) for one in runs]
    rows = RunRows(tables, system)
    out = []
    for pair in _sides(run, other, baseline if inside else None, candidate or scenario.candidate):
        sides = [rows.of(0, pair[0]), rows.of(len(runs) - 1, pair[1])]
        new = pair[0] or run.name or "candidate"
        old = pair[1] or other.name or "baseline"
        # Two versions of one system have one name, and the table needs two.
        if new != old:
            names = (new, old)
        else:
            names = (f"{new} (new)", f"{old} (old)")
        origins = (run, pair[0]), (other, pair[1])
        out.append(paired(sides, metrics, on, scenario, names, origins))
    return other, out


def _baseline_of(run: Run, baseline: Any) -> Any:
    """Return what a run is compared with: what is given, else the baseline of its scenario, else its anchor."""
    for one in (baseline, run.scenario.baseline, run.scenario.anchor):
        if one is not None:
            if isinstance(one, str):
                need_baseline(one, run.systems)
            return one
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
    read = ("sample_id", "question", on, scenario.doc, scenario.cluster, "label", run.system)
    rows = RunRows([rows_of(run.frame, run.metrics, read, doc=scenario.doc)], run.system)
    for new, old in couples:
        origins = (run, new), (run, old)
        yield paired(
            [rows.of(0, new), rows.of(0, old)], run.metrics, on, scenario, (new, old), origins
        )


def _shared_metrics(run: Run, other: Run) -> list[Metric]:
    theirs = {metric.name: metric for metric in other.metrics}
    if not (metrics := [metric for metric in run.metrics if metric.name in theirs]):
        raise RagnbError(
            f"the two sides share no metric ({listing(m.name for m in run.metrics)}; {listing(theirs)}); score "
            "both with the same metrics"
        )
    for name, (low, high) in ((metric.name, (metric.low, metric.high)) for metric in metrics):
        if (theirs[name].low, theirs[name].high) != (low, high):
            raise RagnbError(
                f"{name!r} goes from {low:g} to {high:g} on one side and from {theirs[name].low:g} to "
                f"{theirs[name].high:g} on the other; declare one range for both"
            )
    return metrics


def _sides(
    run: Run, other: Run, inside: str | None, candidate: str | None
) -> Iterable[tuple[str | None, str | None]]:
    """Return which systems are compared; None is a run that names none, or one only."""
    if candidate is not None:
        need_known("candidate", candidate, run.systems)
    chosen: Sequence[str | None] = run.systems
    if candidate is not None:
        chosen = [candidate]
    if inside is not None:
        if not (others := [name for name in chosen if name != inside]):
            raise RagnbError(
                f"{inside!r} is compared with itself; name another system, or another run: baseline='…'"
            )
        return [(name, inside) for name in others]
    # A name that is the only one is no choice: two versions may call themselves differently.
    if len(run.systems) <= 1:
        chosen = [None]
    several = len(other.systems) > 1
    if lacking := [name for name in chosen if several and name not in other.systems]:
        step = "write the rows of one of them to a file of its own, and compare with that"
        if lacking[0] is None:
            raise RagnbError(
                f"the baseline holds the systems {listing(other.systems)}, and the other side names none; {step}"
            )
        raise RagnbError(
            f"the baseline holds the systems {listing(other.systems)}, none named {lacking[0]!r}; {step}"
        )
    return [(name, name if several else None) for name in chosen]
