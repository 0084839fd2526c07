"""The tables of a scenario's stages: recorded by them, found and joined here."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbError, listing
from ragnb.files import DOCUMENT_SUFFIXES, digest, json_text, matched, short_hash, slug, write_whole
from ragnb.inputs.gather import Inputs, labelled, not_in
from ragnb.readers import reading_of_scores
from ragnb.scenario import Scenario
from ragnb.scenario.fields import SOURCES
from ragnb.schema import CASE_COLUMNS, METRICS, note_row
from ragnb.traces import RATES
from ragnb.weights import column_names

STAGES = ("evaluate", "judge")
MAKES_CASES: dict[str, Literal["dataset", "answer"]] = {"generate": "dataset", "answer": "answer"}
"""The stages whose table holds the cases of the next, with the profile of the model that makes it."""
KEYS = ("sample_id", "system", "repeat")
# Inputs that matter only where a stage stopped early because the gates were decided.
_OF_GATES = ("gates", "rescale", "where", "metric_weights", "doc_weights")
HOME = "RAGNB_HOME"
"""For a kernel, the folder in which the command was given: its own working directory is that of the run."""


@dataclass(frozen=True)
class StageTable:
    """A table that a stage wrote, and which of its inputs changed since; empty if none."""

    stage: str
    path: Path
    changed: tuple[str, ...]
    complete: bool = True


def record_stage(
    stage: str, scenario: Scenario, table: Path, *, complete: bool = True, **stopped: Any
) -> Path:
    """Write down, in ``reports/<scenario>/<stage>.json``, which table a stage wrote and from what.

    Where it `stopped` early, that is true of the gates and weights of then; it is `complete` where nothing failed.

    Examples
    --------
    >>> from contextlib import chdir
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, chdir(folder):
    ...     cases, table = (write_whole(Path(name), "") for name in ("cases.jsonl", "scores.csv"))
    ...     record_stage("evaluate", Scenario(cases=cases.absolute()), table).as_posix()
    'reports/cases/evaluate.json'
    """
    path = Path("reports") / slug(scenario.name) / f"{stage}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    inputs = {name: value for name, value in _inputs(stage, scenario).items() if value is not None}
    if not stopped:
        inputs = {name: value for name, value in inputs.items() if name not in _OF_GATES}
    record = {
        "stage": stage,
        "table": relative(table.absolute(), path.parent.absolute()),
        "sha256": digest([table]),
        "inputs": inputs,
        **stopped,
        "complete": complete,
        "asked": _asked(stage, scenario),
    }
    return write_whole(path, json_text(record))


def relative(path: Path, folder: Path) -> str:
    """Return the way from a folder to a path, with slashes; there is none from one drive of Windows to another."""
    if path.anchor == folder.anchor:
        path = Path(os.path.relpath(path, folder))
    return path.as_posix()


def _inputs(stage: str, scenario: Scenario) -> dict[str, Any]:
    """Return the inputs of a stage: the cases, how they are read, the model, and its rubric or the refusals."""
    if stage in MAKES_CASES:
        return _inputs_of_cases(stage, scenario)
    inputs: dict[str, Any] = {
        "cases": _digest_of_cases(scenario),
        "columns": dict(scenario.columns),
        "encoding": scenario.encoding,
        "llm_profiles.judge": _model(scenario, "judge"),
        # Only evaluate compares vectors.
        "llm_profiles.embeddings": _model(scenario, "embeddings") if stage == "evaluate" else None,
    }
    if stage == "judge":
        inputs["rubric"] = scenario.rubric.model_dump(mode="json") if scenario.rubric else {}
    else:
        inputs["refusal"] = list(scenario.refusal)
    inputs["gates"] = [asdict(gate) for gate in scenario.gates or ()]
    inputs["rescale"] = scenario.rescale
    inputs["where"] = dict(scenario.where)
    inputs["metric_weights"] = dict(scenario.metric_weights)
    inputs["doc_weights"] = dict(scenario.doc_weights)
    return inputs


def _inputs_of_cases(stage: str, scenario: Scenario) -> dict[str, Any]:
    """Return the inputs of a stage that makes cases."""
    inputs: dict[str, Any] = {"documents": None}
    if scenario.documents:
        inputs["documents"] = _digest_of(scenario.documents)
    if stage == "generate":
        review = _home() / "reports" / slug(scenario.name) / "review.csv"
        inputs["generation"] = scenario.generation.model_dump(mode="json")
        inputs["review"] = digest([review]) if review.is_file() else None
    else:
        modules = [path for path in _modules(scenario) if path.is_file()]
        inputs["cases"] = _digest_of_cases(scenario)
        inputs["where"] = dict(scenario.where)
        inputs["system"] = scenario.system.model_dump(exclude={"improve"})
        inputs["refusal"] = list(scenario.refusal)
        inputs["code"] = digest(modules) if modules else None
    role = MAKES_CASES[stage]
    inputs[f"llm_profiles.{role}"] = _model(scenario, role)
    inputs["columns"] = dict(scenario.columns)
    inputs["encoding"] = scenario.encoding
    inputs["lang"] = scenario.lang
    return inputs


def _digest_of_cases(scenario: Scenario) -> str | None:
    if not scenario.cases:
        return None
    return digest(matched(scenario.cases))


def _model(
    scenario: Scenario, role: Literal["judge", "embeddings", "dataset", "answer"]
) -> dict[str, Any] | None:
    """Return which model has a role, None without one."""
    profile = scenario.llm_profiles.get(role)
    if profile is None:
        return None
    return {"base_url": profile.base_url, "model": profile.model}


def _digest_of(documents: Path) -> str:
    """Return the hash of a file or of all files of a folder, which are read once while they stay the same."""
    files = [documents]
    if documents.is_dir():
        files = sorted(path for path in documents.rglob("*") if path.is_file()) or [documents]
    states = [path.stat() for path in files]
    # One of these changes when a file is written again.
    marks = [
        (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns) for state in states
    ]
    return _digest_once(tuple(zip(files, marks, strict=True)))


@lru_cache(maxsize=4)
def _digest_once(files: tuple[tuple[Path, Any], ...]) -> str:
    """Return the hash of files, each with what tells that it is still the same."""
    return digest([path for path, _ in files])


def _modules(scenario: Scenario) -> list[Path]:
    """Return where the modules of a scenario's system are, if they are beside it.

    A module of the user's own is read, not imported: what it imports in turn is not followed.
    """
    functions = (scenario.system.retrieve, scenario.system.generate)
    names = dict.fromkeys(name.partition(":")[0] for name in functions if name)
    folder = scenario.path.parent if scenario.path else Path.cwd()
    return [folder / f"{name.replace('.', '/')}.py" for name in names]


def system_version(scenario: Scenario) -> str:
    """Return a hash of what answers depend on besides the question: the system, its code, model and documents."""
    used = {
        name: value
        for name, value in _inputs("answer", scenario).items()
        if name not in ("cases", "where")
    }
    return short_hash(json_text(used))


def _asked(stage: str, scenario: Scenario) -> list[str]:
    """Return what a stage was to compute; more of it makes no table wrong, but a stage incomplete."""
    metrics = scenario.metrics or () if stage == "evaluate" else ()
    return [metric if isinstance(metric, str) else metric.name for metric in metrics]


def stage_table(stage: str, scenario: Scenario) -> StageTable | None:
    """Return the table that a stage left, also one of other inputs.

    The record is looked for in ``reports/`` of the working directory, of the scenario's folder, and of the
    folders above it. A record whose table is gone counts for nothing.
    """
    record = _record_of(stage, scenario)
    if record is None:
        return None
    try:
        kept = json.loads(record.read_text(encoding="utf-8"))
        table = record.parent / kept["table"]
        inputs = dict(kept["inputs"])
        sha256 = kept["sha256"]
    except (ValueError, KeyError, TypeError):
        raise RagnbError(
            f"{record}: is not a record of ragnb {stage}; remove it, or run it again"
        ) from None
    if not table.is_file():
        return None
    today = _inputs(stage, scenario)
    changed = [name for name, value in inputs.items() if today.get(name) != value]
    if digest([table]) != sha256:
        changed.append("table")

    has_all_asked = set(_asked(stage, scenario)) <= {*kept.get("asked", ())}
    is_whole = kept.get("complete", True) and has_all_asked
    return StageTable(stage, table, tuple(changed), complete=is_whole and not changed)


def _record_of(stage: str, scenario: Scenario) -> Path | None:
    """Return where the record of a stage is."""
    folders = [_home()]
    if scenario.path:
        folders += [scenario.path.parent, *scenario.path.parent.parents]
    for folder in folders:
        record = folder / "reports" / slug(scenario.name) / f"{stage}.json"
        if record.is_file():
            return record
    return None


def stage_tables(scenario: Scenario) -> Iterator[StageTable]:
    """Yield the tables that evaluate and judge left, those of other inputs among them."""
    if scenario.cases is not None:
        for stage in STAGES:
            if table := stage_table(stage, scenario):
                yield table


def input_files(scenario: Scenario, *, stage: str = "") -> Iterator[Path]:
    """Yield every file that a run of a scenario reads, so that none of them is written over.

    These are its own file, those that it names, the modules of its system, and the tables of its stages; the
    table of the `stage` that runs is left out, as it is written again.
    """
    if scenario.path is not None:
        yield scenario.path
    for role in (*SOURCES, "gold"):
        path = getattr(scenario, role)
        if role == "documents" and path is not None and path.is_dir():
            yield from (one for one in path.rglob("*") if one.suffix.lower() in DOCUMENT_SUFFIXES)
        elif path is not None:
            yield from matched(path)
    yield from _modules(scenario)
    for other in (*MAKES_CASES, *STAGES):
        if other == stage:
            continue
        with suppress(RagnbError):  # a record that cannot be read names no table
            table = stage_table(other, scenario)
            if table is not None:
                yield table.path


def with_cases(scenario: Scenario, before: str = "evaluate", *, current: bool = False) -> Scenario:
    """Return a scenario with the cases that generate and answer made for the stage `before` or a later one.

    Tables of other inputs are not used: then the cases are those that the scenario names.

    Raises
    ------
    RagnbError
        With `current`, for a table of other inputs: what is scored next would not be what the system answers.
    """
    stages = list(MAKES_CASES)
    if before in MAKES_CASES:
        stages = stages[: stages.index(before)]
    for stage in stages:
        if stage == "generate":
            has_source = bool(scenario.documents) and scenario.cases is None
        else:
            has_source = bool(scenario.cases)
        table = stage_table(stage, scenario) if has_source else None
        if table and not table.changed:
            # What the stage wrote has canonical columns in UTF-8, however its source was to be read.
            scenario = scenario.replace(cases=table.path.resolve(), columns={}, encoding="utf-8")
        elif table and current:
            raise RagnbError(
                f"{_shown(table.path)} was made from other inputs (changed: {listing(table.changed)}); run ragnb "
                f"{stage} or ragnb run first, or remove the file"
            )
    return scenario


def _home() -> Path:
    return Path(os.environ.get(HOME) or Path.cwd())


def join_stages(scenario: Scenario, inputs: Inputs) -> None:
    """Join the tables of the stages to the input, in place; note the stages whose tables are not used.

    Raises
    ------
    RagnbError
        For two values of one cell, and where there are cases alone and no stage has scored them.
    """
    only_cases = scenario.scores is None and scenario.traces is None
    used = False
    named = _shown(scenario.path) if scenario.path else scenario.name
    for table in stage_tables(scenario):
        if table.changed or inputs.stream is not None:
            inputs.stages.append(_note_of_unused(table, named, scenario.lang))
        else:
            used |= _join(scenario, inputs, table, only_cases)
    if not only_cases or scenario.cases is None:
        return
    have = {str(name) for name in column_names(inputs.frame)}
    if not used and not have & {*METRICS, *scenario.declared}:
        unused = " ".join(row["text"] for row in inputs.stages)
        raise RagnbError(
            f"{named}: its cases have no scores yet; run ragnb evaluate {named} or ragnb judge {named} first. "
            f"{unused}"
        )
    if have >= {"answerable", "answer"}:
        inputs.frame = labelled(inputs, scenario, inputs.frame, None)
        # None were asked for: whether an answer is right is left to the metrics.
        if "citations" not in have:
            rates = [name for name in RATES if "refusal" not in name]
            statuses = [f"{name}__status" for name in rates]
            inputs.frame = inputs.frame.drop(columns=["label", *rates, *statuses])
            inputs.labelled = False


def _note_of_unused(table: StageTable, scenario: str, lang: str) -> dict[str, str]:
    """Return the note on a table that is not used: its inputs changed, or the rows do not fit in memory."""
    say = texts.load(lang)
    key = "note.stage_unused" if table.changed else "note.stage_streamed"
    changed = listing(table.changed)
    text = say(key, scenario=scenario, table=_shown(table.path), stage=table.stage, changed=changed)
    return note_row("stage_unused", table.stage, text)


def _shown(path: Path) -> str:
    """Return a path as it is shown, from where the command was given."""
    return str(Path(relative(path.absolute(), _home())))


def _join(scenario: Scenario, inputs: Inputs, of_stage: StageTable, only_cases: bool) -> bool:
    """Join one table by sample, system and repeat; return whether it added anything."""
    # A column that maps to itself keeps its name: it is canonical already, even if it is an alias elsewhere.
    header = pd.read_csv(of_stage.path, nrows=0).columns
    reading = reading_of_scores(
        of_stage.path,
        format="csv",
        columns={str(name): str(name) for name in header},
        metrics=list(scenario.declared.values()),
    )
    table = reading.frame
    frame = inputs.frame
    n_read = len(table)
    for name, value in scenario.where.items():
        if name in table:
            table = table[table[name].astype(str) == str(value)]
    keys = [name for name in KEYS if name in frame and name in table]
    if frame.duplicated(keys).any() or table.duplicated(keys).any():
        keys += [name for name in ("question", "answer") if name in frame and name in table]
    # A stage writes a status beside each of its scores.
    statuses = [name for name in map(str, table) if name.endswith("__status")]
    scored = [name.removesuffix("__status") for name in statuses]
    scored = [name for name in scored if name not in CASE_COLUMNS]
    table = table.drop_duplicates([*keys, *scored])
    if table.duplicated(keys).any():
        sample = table.loc[table.duplicated(keys), "sample_id"].iloc[0]
        raise RagnbError(
            f"two values for one cell: {_shown(of_stage.path)} contains sample_id {sample!r} more than once, and "
            f"{listing(keys)} do not distinguish its rows; give the cases a column 'repeat' or 'system' that does"
        )
    new = [name for name in table if name not in frame]
    beside = frame[keys].merge(table, on=keys, how="left", validate="m:1").set_axis(frame.index)
    gaps = {name: _gaps(frame, beside, name, of_stage) for name in scored if name in frame}
    # Cases decide which rows there are; to scores or traces the other rows of the table are added.
    rest = table[:0] if only_cases else not_in(frame, table, keys)
    if not new and rest.empty and not any(gap.any() for gap in gaps.values()):
        return False
    joined = pd.concat([frame, beside[new]], axis=1)
    for name, gap in gaps.items():
        for column in {name, f"{name}__status", f"{name}__reason"} & set(frame) & set(table):
            joined[column] = joined[column].mask(gap, beside[column])
    if len(rest):
        joined = pd.concat([joined, rest], ignore_index=True)
    inputs.frame = joined
    inputs.rows = len(joined)
    inputs.note(of_stage.stage, reading.origin, [], n_read)
    return True


def _gaps(
    frame: pd.DataFrame, beside: pd.DataFrame, name: str, of_stage: StageTable
) -> pd.Series[bool]:
    """Return where the frame has no outcome and the table has a value; conflicting values are refused."""
    here = pd.to_numeric(frame[name])
    there = pd.to_numeric(beside[name])
    in_both = (here.notna() & there.notna()).to_numpy()

    differ = in_both & ~np.isclose(here, there, rtol=1e-9, atol=1e-9)
    if differ.any():
        row = int(differ.argmax())
        path = _shown(of_stage.path)
        sample = frame["sample_id"].iloc[row]
        raise RagnbError(
            f"two values for one cell: {name} of sample_id {sample!r} is {here.iloc[row]:g}, and "
            f"{there.iloc[row]:g} in {path}; drop {name!r} from the other file, or remove {path} to leave out "
            f"what ragnb {of_stage.stage} wrote"
        )
    words = frame.get(f"{name}__status", pd.Series("", index=frame.index))
    return here.isna() & there.notna() & (words != "not_applicable")
