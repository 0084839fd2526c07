"""Traces and gold: what a system answered, and what it should have → the canonical frames."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ragnb.readers.cells import MISSING_WORDS, as_id, as_text, each
from ragnb.readers.columns import case_cells, to_frame
from ragnb.readers.failures import error_words, failure_columns, outcomes
from ragnb.readers.formats import Source, load
from ragnb.readers.guard import record_by_record, told_in_words
from ragnb.readers.ids import identify
from ragnb.readers.lists import parse_list
from ragnb.readers.names import WORDS, name_columns
from ragnb.readers.nested import from_contexts, read_nested
from ragnb.readers.owner import name_by_name, name_owner
from ragnb.readers.raw import Lossy, Raw, absent, collector_paused
from ragnb.readers.reading import Reading
from ragnb.readers.samples import fold
from ragnb.readers.scores import VERDICTS
from ragnb.schema import DRAWN

_CHUNK_IDS = ("id", "chunk_id", "passage_id", "doc_id", "document_id")
_SEVERAL = re.compile(r"[,;|，；、]")


def read_traces(
    source: Source,
    *,
    format: str | None = None,
    strict: bool = False,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
) -> pd.DataFrame:
    """Read traces, one answer of a system a row.

    Many traces of a clean JSONL file are read fastest by Polars, whose frames `label_traces` takes:
    ``polars.read_ndjson(path, infer_schema_length=None)``, which does not look for keys given twice.

    Parameters
    ----------
    source, format, strict, columns, encoding
        As for `read_scores`.

    Returns
    -------
    DataFrame
        ``sample_id`` (where there is one), ``question``, ``answer`` (to the letter), ``chunks`` (lists of
        dicts with a text ``id``; None where a trace has none), ``citations`` (lists of texts, None where a
        trace has no list of its own), ``ok`` (where a column speaks of it: false where the call failed, by
        ``error``, ``exception``, ``status``, ``success``, ``finish_reason`` and the like), ``error`` (in words),
        ``ts`` and every other field. ``attrs`` as `read_scores`.

    A record may hold ``messages``, ``turns``, ``steps`` or ``spans``: the last message of the user is the
    question, the last one of the assistant the answer, and the passages of all steps are its passages, each with
    its ``step``.

    Raises
    ------
    RagnbError
        As `read_scores`; and without ``answer``, without both ``question`` and ``sample_id``, or where
        ``chunks`` or ``citations`` are no lists.

    Examples
    --------
    >>> frame = read_traces([{"q": "Who?", "answer": "- Ann.", "chunks": [{"id": 7}]}])
    >>> frame["chunks"].tolist(), "citations" in frame
    ([[{'id': '7'}]], False)
    """
    reading = reading_of_traces(
        source, format=format, strict=strict, columns=columns, encoding=encoding
    )
    return reading.with_attrs()


@collector_paused()
def reading_of_traces(
    source: Source, *, columns: Mapping[str, str] | None = None, **how: Any
) -> Reading:
    """Read as `read_traces` does; `how` are its other arguments."""
    with told_in_words(source if isinstance(source, str | Path) else None):
        return _read_traces(source, columns, **how)


def _read_traces(source: Source, columns: Mapping[str, str] | None, **how: Any) -> Reading:
    """Read a source as `read_traces` does; damage may raise anything."""
    opened, report, origin = _open(source, columns, **how)
    names = _source_names(opened, report)
    raw, _ = record_by_record(opened, report, origin, partial(_as_traces, names=names))
    name_owner(raw, report)
    raw.need("answer")
    if "sample_id" not in raw.columns:
        raw.need("question")
    if "chunks" in raw.columns:
        each(raw, "chunks", _chunks, "a list of objects with an id, or of ids")
        lists = raw.columns["chunks"]
        # Those without any id would count as retrieved in vain.
        without_ids = [
            bool(chunks) and not any(chunk["id"] for chunk in chunks) for chunks in lists
        ]
        raw.columns["chunks"] = [
            None if has_no_id else chunks
            for chunks, has_no_id in zip(lists, without_ids, strict=True)
        ]
        why = "lists of chunks without an id: retrieval is not measured there"
        report.add("left_out", "chunks", why, sum(without_ids))
    if "citations" in raw.columns:
        each(raw, "citations", _ids, "a list of ids, or null")
    case_cells(raw, report)
    frame = to_frame(raw, report)
    return Reading(frame, origin | {"rows": len(frame)}, report.rows, role="traces")


def _as_traces(raw: Raw, report: Lossy, names: set[str]) -> None:
    """Fold passages as rows, and read what nested records say."""
    fold(raw, names, report, scores=False)
    as_trace(raw, report)


def as_trace(raw: Raw, report: Lossy) -> None:
    """Read what nested records and columns of failures say of each answer: ``ok`` and the words in ``error``.

    Examples
    --------
    >>> raw = Raw({"question": ["a", "b"], "answer": ["Yes.", ""], "status": [200, 504]}, "jsonl")
    >>> as_trace(raw, Lossy())
    >>> raw.columns["ok"], raw.columns["error"]
    ([True, False], [None, 'status 504'])
    """
    read_nested(raw, report)
    from_contexts(raw, report)
    if "answer" not in raw.columns:
        return
    names = failure_columns(raw.columns)
    if not names:
        return
    cells = {name: raw.columns[name] for name in names}
    outcome_of_rows = outcomes(cells, list(raw.columns["answer"]))
    if outcome_of_rows is None:
        return
    came, words = outcome_of_rows
    raw.columns["ok"] = came
    # A single column `ok` has no words for an error, and is already called what it is.
    if [*names] != ["ok"]:
        error_names = {name for name, kind in names.items() if kind == "error"}
        errors = [error_words(raw.columns, error_names, row) for row in range(len(raw))]
        n_retried = sum(bool(ok and error) for ok, error in zip(came, errors, strict=True))
        why = "an answer that came after an error counts as answered"
        report.add("mapped", "error", why, n_retried)
        report.add("mapped", ", ".join(names), "ok: whether the answer came", len(raw))
        raw.columns["error"] = words
    n_failed = sum(ok is False for ok in came)
    report.add("mapped", "ok", "answers that failed", n_failed)


def read_gold(
    source: Source,
    *,
    format: str | None = None,
    strict: bool = False,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
) -> pd.DataFrame:
    """Read gold: which questions can be answered, from which passages.

    Parameters
    ----------
    source, format, strict, columns, encoding
        As for `read_scores`.

    Returns
    -------
    DataFrame
        ``sample_id`` (where there is one), ``question``, ``answerable`` (bool), ``gold_ids`` (lists of
        texts, empty where there are none), ``gold_claim`` (where there is one) and every other field. Repeated
        questions and ids stay; ``attrs["lossy"]`` counts them.

    Relevance judgements (qrels of TREC or BEIR: a query, a passage and its relevance a row) have no question: a
    query is joined by its id, and is answerable if a passage is relevant.

    Raises
    ------
    RagnbError
        As `read_scores`; and without ``question``, or where ``answerable`` is not true or false.

    Examples
    --------
    >>> gold = read_gold([{"qid": "a", "q": "Who?", "answerable": True, "gold_ids": ["d#1"]}])
    >>> gold.to_dict("records")
    [{'sample_id': 'a', 'question': 'Who?', 'answerable': True, 'gold_ids': ['d#1']}]
    """
    reading = reading_of_gold(
        source, format=format, strict=strict, columns=columns, encoding=encoding
    )
    return reading.with_attrs()


def reading_of_gold(
    source: Source, *, columns: Mapping[str, str] | None = None, **how: Any
) -> Reading:
    """Read as `read_gold` does; `how` are its other arguments."""
    with told_in_words(source if isinstance(source, str | Path) else None):
        return _read_gold(source, columns, **how)


def _read_gold(source: Source, columns: Mapping[str, str] | None, **how: Any) -> Reading:
    """Read a source as `read_gold` does; damage may raise anything."""
    raw, report, origin = _open(source, columns, **how)
    name_by_name(raw, report)
    qrels = qrels_columns(raw.columns)
    if qrels:
        _of_qrels(raw, _Qrels(*qrels), report)
    else:
        raw.need("question")
    raw.need("answerable")
    blank = [as_text(cell) is None or not str(cell).strip() for cell in raw.columns["answerable"]]
    if DRAWN in raw.columns and not all(blank):  # those of ragnb check --to-label, in random order
        raw.drop(blank, "answerable", "questions that are not labelled yet", report)
    each(raw, "answerable", _truth, "true or false")
    _read_gold_ids(raw, report)
    if "gold_claim" in raw.columns:
        raw.columns["gold_claim"] = [as_text(cell) for cell in raw.columns["gold_claim"]]
    case_cells(raw, report)
    for name in ("question", "sample_id"):
        n_of = Counter(cell for cell in raw.columns.get(name, []) if cell is not None)
        n_repeated = sum(n > 1 for n in n_of.values())
        report.add("kept", name, "values that occur more than once", n_repeated)
    frame = to_frame(raw, report)
    frame["answerable"] = frame["answerable"].astype(bool)
    return Reading(frame, origin | {"rows": len(frame)}, report.rows)


# Words for true and false, by their texts.
_TRUTHS = {"1": True, "0": False} | {word: bool(value) for word, value in VERDICTS.items()}


def _truth(cell: Any) -> bool:
    """Return the truth value of a cell; a 1 beside a missing cell is 1.0 in pandas.

    Raises
    ------
    KeyError
        For any other word, for which `each` names the cell.
    """
    return _TRUTHS[str(cell).strip().casefold().removesuffix(".0")]


def _read_gold_ids(raw: Raw, report: Lossy) -> None:
    """Make ``gold_ids`` lists of texts, and count the texts that may have been meant as several ids."""
    if "gold_ids" not in raw.columns:
        report.add("made", "gold_ids", "no such column, so no ids", len(raw))
        raw.columns["gold_ids"] = [None] * len(raw)
    _read_relevance(raw, report)
    n_several = 0
    for cell in raw.columns["gold_ids"]:
        # The text is not split, as an id may itself hold such a sign.
        if isinstance(cell, str) and cell.lstrip()[:1] != "[" and _SEVERAL.search(cell):
            n_several += 1
    why = "texts with , or ; each taken as one id; several are a JSON list"
    report.add("kept", "gold_ids", why, n_several)
    each(raw, "gold_ids", lambda cell: _ids(cell, bare=True) or [], "a list of ids")


_RELEVANCE = ("relevance", "grade", "rel")


def _read_relevance(raw: Raw, report: Lossy) -> None:
    """Make of ``gold_ids`` that grade each passage ids, and ``gold_relevance`` beside them.

    Graded are ``{"id": 2}`` and ``[{"id": …, "relevance": 2}]``.
    """
    if "gold_relevance" in raw.columns:
        each(raw, "gold_relevance", _numbers, "a list of numbers, one for each of gold_ids")
        return
    cells = raw.columns["gold_ids"]
    graded = [_graded(cell) for cell in cells]
    n_graded = sum(map(bool, graded))
    if not n_graded:
        return
    raw.columns["gold_ids"] = [
        list(grades) if grades else cell for grades, cell in zip(graded, cells, strict=True)
    ]
    raw.columns["gold_relevance"] = [list(grades.values()) if grades else None for grades in graded]
    report.add("made", "gold_relevance", "from gold_ids", n_graded)


def _graded(cell: Any) -> dict[str, float]:
    """Return the relevance of each passage by its id, without those that are not relevant; empty without any."""
    if isinstance(cell, str) and cell.lstrip()[:1] in ("{", "["):
        with suppress(ValueError):
            cell = json.loads(cell)
    if isinstance(cell, dict):
        pairs = list(cell.items())
    elif isinstance(cell, list) and cell and all(isinstance(item, dict) for item in cell):
        pairs = [(_first_of(item, _CHUNK_IDS), _first_of(item, _RELEVANCE)) for item in cell]
        pairs = [(id, grade) for id, grade in pairs if id is not None and grade is not None]
    else:
        return {}
    if not all(isinstance(grade, int | float) for _, grade in pairs):
        return {}
    return {str(as_id(id)): float(grade) for id, grade in pairs if grade > 0}


def _first_of(item: Mapping[str, Any], keys: Iterable[str]) -> Any:
    """Return what an object holds under the first of some keys that it has; None where it has none."""
    return next((item[key] for key in keys if not absent(item.get(key))), None)


def _numbers(cell: Any) -> list[float] | None:
    """Return a list of numbers; None for a missing cell."""
    if absent(cell):
        return None
    items = parse_list(cell) if isinstance(cell, str) else cell
    return [float(item) for item in items or ()]


class _Qrels(NamedTuple):
    """The columns of relevance judgements, as `qrels_columns` returns them."""

    query: str
    passage: str
    relevance: str


def qrels_columns(columns: Collection[str]) -> tuple[str, ...]:
    """Return the columns of relevance judgements: query, passage and relevance; none where they are none.

    Examples
    --------
    >>> qrels_columns(["sample_id", "corpus-id", "score"]), qrels_columns(["question", "answer", "score"])
    (('sample_id', 'corpus-id', 'score'), ())
    """
    column_of = {
        role: next((name for name in names if name in columns), "")
        for role, names in WORDS["qrels"].items()
    }
    if "sample_id" in columns:
        query = "sample_id"
    elif column_of["judged"]:
        # A column named for a judgement makes even a table without ids one of judgements.
        query = "question"
    else:
        return ()
    passage = column_of["passage"]
    relevance = column_of["judged"] or column_of["score"]
    is_answered = bool({"answer", "answerable"} & {*columns})
    if query in columns and passage and relevance and not is_answered:
        return (query, passage, relevance)
    return ()


def _of_qrels(raw: Raw, names: _Qrels, report: Lossy) -> None:
    """Make gold of relevance judgements (a row a query and passage): relevant passages are the gold ids."""
    # Of each query the relevant passages, with their grades.
    relevant_of: dict[str, dict[str, float]] = {}
    for query, passage, relevance in zip(*(raw.columns[name] for name in names), strict=True):
        relevant = relevant_of.setdefault(str(as_id(query)), {})
        # As trec_eval has it: a relevance above 0 is relevant.
        if float(relevance) > 0:
            relevant[str(as_id(passage))] = float(relevance)
    report.add("mapped", names.relevance, "relevant passages of each query: gold_ids", len(raw))
    raw.columns = {
        names.query: list(relevant_of),
        "answerable": [bool(relevant) for relevant in relevant_of.values()],
        "gold_ids": [list(relevant) for relevant in relevant_of.values()],
    }
    # Where all are 1, they say no more than the ids do.
    if any(grade != 1 for relevant in relevant_of.values() for grade in relevant.values()):
        raw.columns["gold_relevance"] = [
            list(relevant.values()) for relevant in relevant_of.values()
        ]
    # A row is a query now, and no line of the file.
    raw.lines = None


class _Opened(NamedTuple):
    """A table under canonical names, the report of what was changed, and where it is from."""

    raw: Raw
    report: Lossy
    origin: dict[str, object]


def _open(source: Source, columns: Mapping[str, str] | None, **how: Any) -> _Opened:
    """Load a source, and give its columns their names and its samples their ids."""
    report = Lossy()
    raw, origin = load(source, report, **how)
    name_columns(raw, report, picks=columns)
    identify(raw, report)
    raw.check_even()
    return _Opened(raw, report, origin)


def _source_names(raw: Raw, report: Lossy) -> set[str]:
    """Return the names of the columns, now and in the file."""
    in_file = {str(row["column"]) for row in report.rows if row["what"] == "mapped"}
    return in_file.union(raw.columns)


def _ids(value: Any, bare: bool = False) -> list[str] | None:
    """Return a list of ids; `bare` takes a text without brackets as one id."""
    if bare and isinstance(value, str) and value.strip() and not value.lstrip().startswith("["):
        return [value.strip()]
    chunks = _chunks(value)
    if chunks is None:
        return None
    # An object with other keys than an id is a passage whose id is not found, not a missing id.
    if any(chunk["id"] is None and len(chunk) > 1 for chunk in chunks):
        raise ValueError(value)
    return [chunk["id"] for chunk in chunks if chunk["id"] is not None]


def _chunks(value: Any) -> list[dict[str, Any]] | None:
    """Return the passages in a cell, each with its id as a text; None for a missing cell."""
    # Most rows are as they should be, and are not copied.
    if type(value) is list and all(
        type(item) is dict and type(item.get("id")) is str for item in value
    ):
        return value
    if absent(value) or (isinstance(value, str) and value.strip().casefold() in MISSING_WORDS):
        return None
    if isinstance(value, np.ndarray):
        value = value.tolist()
    items = parse_list(value) if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or any(isinstance(item, list | tuple) for item in items):
        raise ValueError(value)
    return [_chunk(item) for item in items]


def _chunk(item: Any) -> dict[str, Any]:
    """Return a passage, an object or an id alone, as an object with its id as a text."""
    if not isinstance(item, dict):
        return {"id": as_id(item)}
    if type(item.get("id")) is str:
        return item
    return {**item, "id": as_id(_first_of(item, _CHUNK_IDS))}
