"""A caller's arguments → a scenario; and the tables of its stages: recorded by them, found and joined here."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.calibration import looks_like_ratings
from ragnb.errors import RagnbError, did_you_mean, listing
from ragnb.files import (
    DOCUMENT_SUFFIXES,
    digest,
    json_text,
    matched,
    short_hash,
    slug,
    write_whole,
)
from ragnb.inputs.account import case_coverage, mark_not_applicable
from ragnb.inputs.card import FileCard, card_of
from ragnb.inputs.gather import Inputs, gather, labelled, not_in
from ragnb.inputs.rubric import with_dimensions_apart, with_judged
from ragnb.inputs.streams import head_of
from ragnb.readers import open_role, read_scores
from ragnb.readers.documents import find_documents
from ragnb.readers.facts import SILENT, direction_of_name
from ragnb.readers.jsons import first_records
from ragnb.readers.metrics import open_facts
from ragnb.scenario import Scenario, load_scenario
from ragnb.scenario.fields import SOURCES
from ragnb.scenario.load import metric_place
from ragnb.schema import (
    CASE_COLUMNS,
    METRICS,
    RUBRIC,
    Metric,
    is_operation,
    known_metric,
    note_row,
    quantile_of,
    rank_measure,
    resolve_metrics,
    undeclared_columns,
)
from ragnb.traces import RATES, mark_unanswerable
from ragnb.weights import column_names
from ragnb.weights.conversations import conversation_cluster

STAGES = ("evaluate", "judge")
MAKES_CASES: dict[str, Literal["dataset", "answer"]] = {"generate": "dataset", "answer": "answer"}
"""The stages whose table holds the cases of the next, with the profile of the model that makes it."""
KEYS = ("sample_id", "system", "repeat")
_UNREADABLE = (RagnbError, ValueError, OSError)
_FIRST_RECORDS = 50
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
    every = _inputs(stage, scenario).items()
    used = {
        name: value
        for name, value in every
        if value is not None and (stopped or name not in _OF_GATES)
    }
    where = relative(table.absolute(), path.parent.absolute())
    record = {"stage": stage, "table": where, "sha256": digest([table]), "inputs": used} | stopped
    record |= {"complete": complete, "asked": _asked(stage, scenario)}
    return write_whole(path, json_text(record))


def relative(path: Path, folder: Path) -> str:
    """Return the way from a folder to a path, with slashes; there is none from one drive of Windows to another."""
    return Path(os.path.relpath(path, folder) if path.anchor == folder.anchor else path).as_posix()


def _inputs(stage: str, scenario: Scenario) -> dict[str, Any]:
    """The inputs of a stage: the cases, how they are read, the model, and its rubric or the refusals."""
    role: Literal["judge", "dataset", "answer"] = MAKES_CASES.get(stage, "judge")
    profile = scenario.llm_profiles.get(role)
    if stage in MAKES_CASES:
        return _inputs_of_cases(stage, scenario) | {
            f"llm_profiles.{role}": profile
            and {"base_url": profile.base_url, "model": profile.model},
            "columns": dict(scenario.columns),
            "encoding": scenario.encoding,
            "lang": scenario.lang,
        }
    if scenario.rubric:
        rubric = scenario.rubric.model_dump(mode="json")
    else:
        rubric = None
    if stage == "evaluate":
        vectors = scenario.llm_profiles.get("embeddings")
    else:
        vectors = None
    return {
        "cases": digest(matched(scenario.cases)) if scenario.cases else None,
        "columns": dict(scenario.columns),
        "encoding": scenario.encoding,
        "llm_profiles.judge": profile and {"base_url": profile.base_url, "model": profile.model},
        "llm_profiles.embeddings": vectors
        and {"base_url": vectors.base_url, "model": vectors.model},
        **({"rubric": rubric or {}} if stage == "judge" else {"refusal": list(scenario.refusal)}),
        "gates": [asdict(gate) for gate in scenario.gates or ()],
        "rescale": scenario.rescale,
        **{
            name: dict(getattr(scenario, name))
            for name in ("where", "metric_weights", "doc_weights")
        },
    }


def _inputs_of_cases(stage: str, scenario: Scenario) -> dict[str, Any]:
    review = _home() / "reports" / slug(scenario.name) / "review.csv"
    documents = {"documents": _digest_of(scenario.documents) if scenario.documents else None}
    if stage == "generate":
        about = documents | {"generation": scenario.generation.model_dump(mode="json")}
        return about | {"review": digest([review]) if review.is_file() else None}
    modules = [path for path in _modules(scenario) if path.is_file()]
    return documents | {
        "cases": digest(matched(scenario.cases)) if scenario.cases else None,
        "where": dict(scenario.where),
        "system": scenario.system.model_dump(exclude={"improve"}),
        "refusal": list(scenario.refusal),
        "code": digest(modules) if modules else None,
    }


def _digest_of(documents: Path) -> str:
    """Return the hash of a file or of all files of a folder, which are read once while they stay the same."""
    files = [documents]
    if documents.is_dir():
        files = sorted(path for path in documents.rglob("*") if path.is_file()) or [documents]
    states = [path.stat() for path in files]
    marks = [(one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns) for one in states]
    return _digest_once(tuple(zip(files, marks, strict=True)))


@lru_cache(maxsize=4)
def _digest_once(files: tuple[tuple[Path, Any], ...]) -> str:
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
    if scenario.path:
        above = [scenario.path.parent, *scenario.path.parent.parents]
    else:
        above = []
    names = (
        folder / "reports" / slug(scenario.name) / f"{stage}.json" for folder in (_home(), *above)
    )
    record = next((name for name in names if name.is_file()), None)
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
    whole = kept.get("complete", True) and set(_asked(stage, scenario)) <= {*kept.get("asked", ())}
    return StageTable(stage, table, tuple(changed), complete=whole and not changed)


def stage_tables(scenario: Scenario) -> Iterator[StageTable]:
    """Yield the tables that evaluate and judge left, those of other inputs among them."""
    if scenario.cases is not None:
        for stage in STAGES:
            if found := stage_table(stage, scenario):
                yield found


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
        with suppress(RagnbError):  # a record that cannot be read names no table
            if other != stage:
                found = stage_table(other, scenario)
            else:
                found = None
            if found is not None:
                yield found.path


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
            wanted = scenario.documents and scenario.cases is None
        else:
            wanted = scenario.cases
        found = stage_table(stage, scenario) if wanted else None
        if found and not found.changed:
            scenario = scenario.replace(cases=found.path.resolve(), columns={}, encoding="utf-8")
        elif found and current:
            raise RagnbError(
                f"{_shown(found.path)} was made from other inputs (changed: {listing(found.changed)}); run ragnb "
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
    say = texts.load(scenario.lang)
    alone = scenario.scores is None and scenario.traces is None
    used = False
    if scenario.path:
        named = _shown(scenario.path)
    else:
        named = scenario.name
    for found in stage_tables(scenario):
        if found.changed or inputs.stream is not None:
            if found.changed:
                key = "note.stage_unused"
            else:
                key = "note.stage_streamed"
            words = {
                "table": _shown(found.path),
                "stage": found.stage,
                "changed": listing(found.changed),
            }
            inputs.stages.append(
                note_row("stage_unused", found.stage, say(key, scenario=named, **words))
            )
        else:
            used |= _join(scenario, inputs, found, alone)
    have = {str(name) for name in column_names(inputs.frame)}
    if (
        alone
        and scenario.cases is not None
        and not used
        and not have & {*METRICS, *scenario.declared}
    ):
        unused = " ".join(row["text"] for row in inputs.stages)
        raise RagnbError(
            f"{named}: its cases have no scores yet; run ragnb evaluate {named} or ragnb judge {named} first. "
            f"{unused}"
        )
    if alone and scenario.cases is not None and have >= {"answerable", "answer"}:
        inputs.frame = labelled(inputs, scenario, inputs.frame, None)
        # None were asked for: whether an answer is right is left to the metrics.
        if "citations" not in have:
            gone = [
                f"{name}{end}"
                for name in RATES
                if "refusal" not in name
                for end in ("", "__status")
            ]
            inputs.frame, inputs.labelled = inputs.frame.drop(columns=["label", *gone]), False


def _shown(path: Path) -> str:
    return str(Path(relative(path.absolute(), _home())))


def _join(scenario: Scenario, inputs: Inputs, found: StageTable, alone: bool) -> bool:
    """Join one table by sample, system and repeat; return whether it added anything."""
    # A column that maps to itself keeps its name: it is canonical already, even if it is an alias elsewhere.
    own = {str(name): str(name) for name in pd.read_csv(found.path, nrows=0).columns}
    table = read_scores(
        found.path, format="csv", columns=own, metrics=list(scenario.declared.values())
    )
    frame = inputs.frame
    rows = len(table)
    origin = table.attrs["source"]
    for name, value in scenario.where.items():
        if name in table:
            table = table[table[name].astype(str) == str(value)]
    keys = [name for name in KEYS if name in frame and name in table]
    if frame.duplicated(keys).any() or table.duplicated(keys).any():
        keys += [name for name in ("question", "answer") if name in frame and name in table]
    marked = (
        name.removesuffix("__status") for name in map(str, table) if name.endswith("__status")
    )
    scored = [name for name in marked if name not in CASE_COLUMNS]
    table = table.drop_duplicates([*keys, *scored])
    if table.duplicated(keys).any():
        sample = table.loc[table.duplicated(keys), "sample_id"].iloc[0]
        raise RagnbError(
            f"two values for one cell: {_shown(found.path)} contains sample_id {sample!r} more than once, and "
            f"{listing(keys)} do not distinguish its rows; give the cases a column 'repeat' or 'system' that does"
        )
    new = [name for name in table if name not in frame]
    beside = frame[keys].merge(table, on=keys, how="left", validate="m:1").set_axis(frame.index)
    gaps = {name: _gaps(frame, beside, name, found) for name in scored if name in frame}
    rest = table[:0] if alone else not_in(frame, table, keys)
    if not new and rest.empty and not any(gap.any() for gap in gaps.values()):
        return False
    joined = pd.concat([frame, beside[new]], axis=1)
    for name, gap in gaps.items():
        for column in {name, f"{name}__status", f"{name}__reason"} & set(frame) & set(table):
            joined[column] = joined[column].mask(gap, beside[column])
    inputs.frame = pd.concat([joined, rest], ignore_index=True) if len(rest) else joined
    inputs.rows = len(inputs.frame)
    inputs.note(found.stage, origin, [], rows)
    return True


def _gaps(
    frame: pd.DataFrame, beside: pd.DataFrame, name: str, found: StageTable
) -> pd.Series[bool]:
    """Where the frame has no outcome and the table has a value; conflicting values are refused."""
    here = pd.to_numeric(frame[name])
    there = pd.to_numeric(beside[name])
    differ = (here.notna() & there.notna()).to_numpy() & ~np.isclose(
        here, there, rtol=1e-9, atol=1e-9
    )
    if differ.any():
        row = int(differ.argmax())
        path = _shown(found.path)
        sample, one, other = (part.iloc[row] for part in (frame["sample_id"], here, there))
        raise RagnbError(
            f"two values for one cell: {name} of sample_id {sample!r} is {one:g}, and {other:g} in {path}; drop "
            f"{name!r} from the other file, or remove {path} to leave out what ragnb {found.stage} wrote"
        )
    words = frame.get(f"{name}__status", pd.Series("", index=frame.index))
    return here.isna() & there.notna() & (words != "not_applicable")


def read_inputs(source: Any, overrides: Mapping[str, Any]) -> tuple[Scenario, Inputs, list[Metric]]:
    """Read what a caller hands over: the scenario that it makes, its rows and its metrics.

    A file or frame alone with answers and no score is read as a log. The refusal of a file has its card behind it.
    """
    overrides, gold = gold_in_memory(overrides)
    scenario, frame = _opened(source, overrides, has_gold=gold is not None)
    alone = not isinstance(source, Scenario) and scenario.path is None
    alone = alone and scenario.gold is None and gold is None
    path = scenario.scores if alone else None
    card = None
    if path is not None and _begins_as_log(path, scenario):
        # Else a long log is read once more, to find that it holds no scores.
        with suppress(*_UNREADABLE):
            card = _card_of(path, scenario)
        if card is not None and _is_log(card, scenario):
            return read_scenario(scenario_of(path, overrides, "traces"), log=True)
    try:
        return read_scenario(scenario, frame, gold=gold)
    except RagnbError as error:
        # A query is not collected unasked.
        query = isinstance(nw.from_native(frame, pass_through=True), nw.LazyFrame)
        if not alone or query or (frame is None and path is None):
            raise
        try:
            card = card or _card_of(path or frame, scenario)
        except _UNREADABLE:
            raise error from None
        said = getattr(frame, "attrs", {}).get("role") == "traces"
        if card.kind == "cases" and "answer" in card.columns.values() and not said:
            asked = open_role(str(path) if path else None, [*card.columns])
            raise RagnbError(f"{asked}\n\n{card}" if path else str(asked)) from None
        if _is_log(card, scenario, said=said):
            of_log = scenario_of(path, overrides, "traces") if path else scenario
            return read_scenario(of_log, frame, log=True)
        raise RagnbError(f"{error}\n\n{card}" if path else str(error)) from None


def _card_of(source: Any, scenario: Scenario) -> FileCard:
    """Return the card of a file, a frame or some records, read as a scenario says."""
    return card_of(source, columns=scenario.columns, encoding=scenario.encoding, lang=scenario.lang)


def _is_log(card: FileCard, scenario: Scenario, *, said: bool = False) -> bool:
    """Whether a table is to be read as a log; `said` where its frame was read as traces."""
    is_log = card.kind == "traces" or said
    return is_log and scenario.metrics is None and {*card.told} <= {*scenario.columns}


def _begins_as_log(path: Path, scenario: Scenario) -> bool:
    """Whether the first records of a file of JSON lines look like a log; the card of all of it decides."""
    try:
        document = find_documents(path, scenario.encoding)[0]
        if document.suffix not in (".jsonl", ".ndjson"):
            return False
        records = first_records(document, _FIRST_RECORDS)
        return bool(records) and _is_log(_card_of(records, scenario), scenario)
    except _UNREADABLE:
        return False


def gold_in_memory(overrides: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """Return the overrides without gold that is no path, and that gold; None where it is a path or missing.

    Examples
    --------
    >>> gold_in_memory({"lang": "en", "gold": "gold.csv"})
    ({'lang': 'en', 'gold': 'gold.csv'}, None)
    """
    gold = overrides.get("gold")
    if gold is None or isinstance(gold, str | os.PathLike):
        return dict(overrides), None
    return {key: value for key, value in overrides.items() if key != "gold"}, gold


def read_scenario(
    scenario: Scenario, frame: Any = None, *, gold: Any = None, log: bool = False
) -> tuple[Scenario, Inputs, list[Metric]]:
    """Read the files of a scenario, or a frame in their place, and the tables of its stages."""
    if frame is None:
        scenario = with_cases(scenario)
    inputs = gather(scenario, frame, gold=gold, log=log)
    if frame is None:
        join_stages(scenario, inputs)
        scenario = with_judged(scenario, inputs)
    if inputs.cases is not None:
        inputs.coverage += case_coverage(
            inputs.frame, inputs.read_rows, inputs.cases, where=scenario.where
        )
    metrics = prepared(scenario, inputs)
    scenario = with_conversations(scenario, inputs.frame)
    return with_dimensions_apart(scenario, metrics), inputs, metrics


def with_conversations(scenario: Scenario, frame: Any) -> Scenario:
    """Return a scenario whose clusters are the conversations of the rows, where it names no others."""
    if scenario.cluster is not None or scenario.corpus != "sample":
        return scenario
    found = conversation_cluster(frame, scenario.doc)
    if found is None:
        return scenario
    return scenario.replace(cluster=found)


def _opened(
    source: Any, overrides: Mapping[str, Any], *, has_gold: bool = False
) -> tuple[Scenario, Any]:
    if isinstance(source, Scenario):
        return source.replace(**overrides), None
    if isinstance(source, str | os.PathLike):
        return scenario_of(Path(source), overrides, "traces" if has_gold else ""), None
    return Scenario.without_files().replace(**overrides), source


def scenario_of(path: Path, overrides: Mapping[str, Any], role: str = "") -> Scenario:
    """Return the scenario of a YAML file; for any other file, one with it as scores or (with gold) as traces."""
    if path.suffix.lower() in (".yaml", ".yml"):
        return load_scenario(path).replace(**overrides)
    role = role or ("scores" if overrides.get("gold") is None else "traces")
    return Scenario(**{role: path}).replace(**overrides)


def prepared(scenario: Scenario, inputs: Inputs) -> list[Metric]:
    """Return the metrics of a run; cells that do not apply are marked.

    Those are the scores of unanswerable questions where a metric cannot grade a refusal, and empty cells where
    the file says why they are empty.
    """
    metrics = metrics_of(scenario, inputs.frame, inputs.tools, inputs.facts)
    frame = mark_unanswerable(inputs.frame, metrics=metrics)
    inputs.frame = mark_not_applicable(frame, metrics=metrics, blank=scenario.blank)
    return metrics


def metrics_of(
    scenario: Scenario,
    frame: Any,
    tools: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    facts: Iterable[Mapping[str, Any]] = (),
) -> list[Metric]:
    """Return the scenario's metrics, else those that METRICS or a layout declares; then the rates of the traces.

    A metric with an open fact is left out; naming it without a declaration is refused. Measures of operation
    (latency, tokens, cost) that a gate names, also in ``p95(latency_s)``, come last; they need no declaration.
    """
    own = scenario.declared
    given = scenario.metrics
    asked = {name: fact for name, fact in open_facts(facts).items() if name not in own}
    asked = {name: fact for name, fact in asked.items() if not is_operation(name)}
    _refuse_open(scenario, asked)
    columns = [name for name in column_names(frame) if name not in asked]
    of_tool = {metric.name: metric for metric in _of_tool(tools, columns)}
    if given is None and scenario.rubric is not None:
        given = tuple(name for name in {**METRICS, **own} if name in columns)
    elif given is None:
        given = tuple(of_tool.values()) or None
    elif all(isinstance(metric, Metric) and metric.family != RUBRIC for metric in given):
        # What is declared adds to what the table has, as it adds to METRICS; names select.
        given = (*(metric for name, metric in of_tool.items() if name not in own), *given)
    _need_columns_of(scenario, given or (), columns)
    declared = of_tool | own
    metrics = list(
        resolve_metrics(
            given and [declared.get(m, m) if isinstance(m, str) else m for m in given], columns
        )
    )

    there = {metric.name for metric in metrics}
    metrics += [METRICS[name] for name in RATES if name in columns and name not in there]
    if not metrics:
        raise RagnbError(_nothing_to_average(head_of(frame), asked))

    there |= {metric.name for metric in metrics}
    ranked = [known_metric(name) for name in scenario.named_metrics if rank_measure(name)]
    metrics += [one for one in ranked if one and one.name in columns and one.name not in there]

    asked_of = (gate.metric for gate in scenario.gates or ())
    columns_asked = (quantile_of(name) or (None, name) for name in asked_of)
    gated = dict.fromkeys(column for _, column in columns_asked)
    measured = [name for name in gated if name in columns and name not in there]
    metrics += [own.get(name, Metric(name)) for name in measured if is_operation(name)]
    return metrics


def _need_columns_of(scenario: Scenario, given: Iterable[str | Metric], columns: list[str]) -> None:
    """Refuse a metric that the file of a scenario names and the table does not have, with its line."""
    for item in given:
        name = item if isinstance(item, str) else item.name
        if name not in columns and (where := metric_place(scenario, name)):
            near = did_you_mean(name, [column for column in columns if "__" not in column])
            reason = f"{name!r} is no column of the table; {near}"
            raise RagnbError(f"{where}{reason}")


def _of_tool(tools: Mapping[str, Mapping[str, Any]], columns: list[str]) -> Iterator[Metric]:
    """Yield the metrics that a layout declares and METRICS does not hold as they are.

    A recall that a tool scored is a score like its others, though ragnb's own of that name is a rate beside the
    total.
    """
    for name, row in tools.items():
        if name not in columns:
            continue
        known = METRICS.get(name)
        kind = row.get("kind", "continuous")
        made = Metric(name, row["low"], row["high"], row["better"], kind=kind, role="quality")
        if known is None or (known.scale, known.better) != (made.scale, made.better):
            yield made
        elif known.role == "rate":
            yield replace(known, role="quality")


def _refuse_open(scenario: Scenario, asked: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse a metric that a scenario names and of which a fact is open."""
    listed = scenario.metrics or ()
    named = [("metrics", item) for item in listed if isinstance(item, str)]
    named += [("gates", gate.metric) for gate in scenario.gates or ()]
    named += [("metric_weights", name) for name in scenario.metric_weights or ()]
    for key, name in named:
        if name in asked:
            raise RagnbError(f"{key} names {name!r}, and {open_sentence(asked[name])}")


def open_sentence(fact: Mapping[str, Any]) -> str:
    """Word what is open of a metric, why, and what to write.

    Examples
    --------
    >>> open_sentence({"metric": "bias", "fact": "direction", "value": "?", "evidence": "nothing says it"})
    "its direction is open (nothing says it); declare it: metrics=[rn.Metric('bias', low, high, better='lower')] \
or better='higher'"
    """
    name = fact["metric"]
    evidence = fact["evidence"]
    value = fact["value"]
    if fact["fact"] == "direction":
        return (
            f"its direction is open ({evidence}); declare it: "
            f"metrics=[rn.Metric({name!r}, low, high, better='lower')] or better='higher'"
        )
    low, high = value or ("low", "high")
    return (
        f"its scale is open ({evidence}); declare it: metrics=[rn.Metric({name!r}, {low}, {high})] "
        f"if it is {low}..{high}"
    )


def _nothing_to_average(
    frame: pd.DataFrame, asked: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
) -> str:
    """Return the error for a table without a known metric; `asked` are the metrics with an open fact."""
    if looks_like_ratings([str(c) for c in frame.columns]):
        return (
            f"these are ratings (columns: {listing(frame.columns)}), which validate a judge: run "
            "ragnb calibrate on the file, or name it as ratings: in a scenario"
        )
    numbers = undeclared_columns(frame)
    for name, fact in asked.items():
        # A column of which nothing at all is known is one of the candidates below.
        is_silent = fact["fact"] == "scale" or fact["evidence"] == SILENT.evidence
        if name in METRICS or not is_silent:
            return f"no column is a metric yet: {name!r}: {open_sentence(fact)}"
    step = "score it first"
    if numbers:
        named = direction_of_name(numbers[0])
        better = "…" if named is None or named.open else named.better
        end = "" if better == "higher" else f", better={better!r}"
        step = f"declare one, such as metrics=[rn.Metric({numbers[0]!r}, low, high{end})]"
    return f"no column is a metric that ragnb knows (numeric columns: {listing(numbers)}); {step}"
