"""What a caller hands over → the scenario that it makes, its rows and its metrics."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import narwhals as nw

from ragnb.errors import RagnbError
from ragnb.inputs.card import card_of
from ragnb.inputs.coverage import case_coverage
from ragnb.inputs.file_card import FileCard
from ragnb.inputs.gather import Inputs, gather
from ragnb.inputs.metrics_used import prepared
from ragnb.inputs.rubric import with_dimensions_apart, with_judged
from ragnb.inputs.stages import join_stages, with_cases
from ragnb.readers import open_role, remembered
from ragnb.readers.documents import find_documents
from ragnb.readers.jsons import first_records
from ragnb.scenario import Scenario, load_scenario
from ragnb.schema import Metric
from ragnb.weights.conversations import conversation_cluster

_UNREADABLE = (RagnbError, ValueError, OSError)
_FIRST_RECORDS = 50  # tell what a file may be before all of it is read


def read_inputs(source: Any, overrides: Mapping[str, Any]) -> tuple[Scenario, Inputs, list[Metric]]:
    """Read what a caller hands over: the scenario that it makes, its rows and its metrics.

    A file or frame alone with answers and no score is read as a log. The refusal of a file has its card behind it.
    """
    overrides, gold = gold_in_memory(overrides)
    scenario, frame = _opened(source, overrides, has_gold=gold is not None)
    # Without a scenario file and without gold, only the contents of a file or frame say what it is.
    is_alone = not isinstance(source, Scenario) and scenario.path is None
    is_alone = is_alone and scenario.gold is None and gold is None
    path = scenario.scores if is_alone else None
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
        is_query = isinstance(nw.from_native(frame, pass_through=True), nw.LazyFrame)
        if not is_alone or is_query or (frame is None and path is None):
            raise
        try:
            card = card or _card_of(path or frame, scenario)
        except _UNREADABLE:
            raise error from None
        read_as_traces = remembered(frame).role == "traces"
        has_answers = "answer" in card.columns.values()
        if card.kind == "cases" and has_answers and not read_as_traces:
            question = open_role(str(path) if path else None, [*card.columns])
            raise _with_card(question, card, path) from None
        if _is_log(card, scenario, said=read_as_traces):
            of_log = scenario_of(path, overrides, "traces") if path else scenario
            return read_scenario(of_log, frame, log=True)
        raise _with_card(error, card, path) from None


def _with_card(error: Exception, card: FileCard, path: Path | None) -> RagnbError:
    """Return an error with the card of the file behind it; that of a frame in memory stays as it is."""
    if path is None:
        return RagnbError(str(error))
    return RagnbError(f"{error}\n\n{card}")


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
    cluster = conversation_cluster(frame, scenario.doc)
    if cluster is None:
        return scenario
    return scenario.replace(cluster=cluster)


def _opened(
    source: Any, overrides: Mapping[str, Any], *, has_gold: bool = False
) -> tuple[Scenario, Any]:
    if isinstance(source, Scenario):
        return source.replace(**overrides), None
    if isinstance(source, str | os.PathLike):
        role = "traces" if has_gold else ""
        return scenario_of(Path(source), overrides, role), None
    return Scenario.without_files().replace(**overrides), source


def scenario_of(path: Path, overrides: Mapping[str, Any], role: str = "") -> Scenario:
    """Return the scenario of a YAML file; for any other file, one with it as scores or (with gold) as traces."""
    if path.suffix.lower() in (".yaml", ".yml"):
        return load_scenario(path).replace(**overrides)
    if not role:
        role = "scores" if overrides.get("gold") is None else "traces"
    return Scenario(**{role: path}).replace(**overrides)
