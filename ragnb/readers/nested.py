"""Traces with messages, turns, steps or spans below each record → question, answer and passages of the record."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import pandas as pd

from ragnb.readers.cells import CONTEXTS
from ragnb.readers.failures import NESTED
from ragnb.readers.lists import parse_list
from ragnb.readers.names import loose
from ragnb.readers.passages import passage_text
from ragnb.readers.raw import Lossy, Raw, absent

_MESSAGE = {kind: {*words} for kind, words in NESTED["message"].items()}
_STEP = NESTED["step"]
_PLACES = ("chunks", "retrieved_contexts")
_IDS = ("id", "chunkid", "passageid", "docid", "documentid", "nodeid", "uuid", "key")
_WRAPPERS = ("document", "node", "chunk", "passage")
# One word, or a file with its extension and perhaps a place in it.
_NAME = re.compile(r"\S{1,200}|[^\n]{1,200}\.[A-Za-z0-9]{1,5}(?:[#?]\S*)?")
# Deeper than any trace nests what it retrieved.
_DEEPEST = 4


class Told(NamedTuple):
    """What one record says below its top: None where it does not."""

    question: str | None
    answer: str | None
    passages: list[dict[str, Any]] | None


def read_nested(raw: Raw, report: Lossy) -> None:
    """Give a table of traces the question, the answer and the passages that its records hold in a list below.

    The last message of a user is the question, the last one of the assistant after it the answer, and the passages
    of all steps are passages, each with the number of its ``step``. What a record says at its top counts first.

    Examples
    --------
    >>> chat = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ann."}]
    >>> raw = Raw({"messages": [chat]}, "jsonl")
    >>> read_nested(raw, Lossy())
    >>> raw.columns["question"], raw.columns["answer"]
    (['Who?'], ['Ann.'])
    """
    named_passages(raw, report)
    read_lists(raw, report)


def read_lists(raw: Raw, report: Lossy) -> None:
    """Fill question, answer and passages from the lists below the records; see `read_nested`."""
    # The likeliest come first, as the first list of a record that says something counts.
    lists = [name for kind in NESTED["lists"] for name in raw.columns if loose(name) == kind]
    lists = [name for name in lists if any(_items(cell) for cell in raw.columns[name])]
    if not lists:
        return
    records = [_told([raw.columns[name][row] for name in lists]) for row in range(len(raw))]
    answers = _answers_below(raw, records)  # before the questions are filled, which it looks at
    _fill(raw, "question", [record.question for record in records], lists, report)
    _fill(raw, "answer", answers, lists, report)
    if "question" in raw.columns and any(record.question for record in records):
        raw.columns.setdefault("answer", [None] * len(raw))  # asked, and none answered
    if not any(name in raw.columns for name in _PLACES):
        _passages(raw, [record.passages for record in records], lists, report)


def _answers_below(raw: Raw, records: Sequence[Told]) -> list[str | None]:
    """Return the answers below the records, but for those of records whose answer would stand at their top.

    Where answers stand beside the questions, one that is missing there was not given, whatever a step put out.
    """
    given = raw.cells("answer")
    # Where no record answers at its top, that is not where this tool puts answers.
    if all(_empty(cell) for cell in given):
        return [record.answer for record in records]
    return [
        record.answer if _empty(question) else None
        for record, question in zip(records, raw.cells("question"), strict=True)
    ]


def _empty(cell: Any) -> bool:
    """Return whether a cell is missing or an empty text."""
    return absent(cell) or cell == ""


def named_passages(raw: Raw, report: Lossy) -> None:
    """Take a list of passages under another name, such as ``sources``, for those that were retrieved."""
    if any(name in raw.columns for name in _PLACES):
        return
    for name in passage_columns(raw.columns):
        lists = [_items(cell) for cell in raw.columns[name]]
        passages = [None if items is None else _found(items, None) for items in lists]
        _passages(raw, _names_as_ids(passages), [name], report)
        return


def passage_columns(columns: Mapping[Any, Sequence[Any]] | pd.DataFrame) -> Iterator[str]:
    """Yield the columns of lists that are named for passages, such as ``sources``, the likeliest first.

    Examples
    --------
    >>> [*passage_columns({"sources": [["d#1"], None], "hits": [3, 4]})]
    ['sources']
    """
    for kind in NESTED["trace"]["passages"]:
        for name in [str(column) for column in columns if loose(str(column)) == kind]:
            cells = list(columns[name])
            lists = [_items(cell) for cell in cells]
            only_lists = all(
                items is not None or _empty(cell) for items, cell in zip(lists, cells, strict=True)
            )
            if any(lists) and only_lists:
                yield name


def _names_as_ids(lists: list[Any]) -> list[Any]:
    """Take texts for ids where each is a name: one word, or the path of a file."""
    for passages in lists:
        for passage in passages or ():
            # One passage that is a sentence shows that the others are texts, too, however short.
            if [*passage] != ["text"] or not _NAME.fullmatch(passage["text"].strip()):
                return lists
    return [
        passages and [{"id": passage["text"].strip()} for passage in passages] for passages in lists
    ]


def _fill(raw: Raw, name: str, below: list[Any], lists: Sequence[str], report: Lossy) -> None:
    """Fill the gaps of a column with what was found below."""
    cells = list(raw.columns.get(name, [None] * len(raw)))
    n_filled = 0
    for row, value in enumerate(below):
        if value is not None and _empty(cells[row]):
            cells[row] = value
            n_filled += 1
    if n_filled:
        raw.columns[name] = cells
        report.add("made", name, f"from {', '.join(lists)}", n_filled)


def _passages(raw: Raw, below: list[Any], lists: Sequence[str], report: Lossy) -> None:
    """Add the column of passages: chunks where they have ids, else texts."""
    if not any(below):
        return
    has_ids = any("id" in passage for passages in below for passage in passages or ())
    name = "chunks" if has_ids else "retrieved_contexts"
    raw.columns[name] = below
    report.add("made", name, f"passages of {', '.join(lists)}", sum(map(bool, below)))


def _told(cells: Sequence[Any]) -> Told:
    """Return what the lists of a record say, of each part the first that says it."""
    question = None
    answer = None
    passages = None
    for cell in cells:
        items = _items(cell)
        if items is None:
            continue
        told = _of_messages(items) if _is_chat(items) else _of_steps(items)
        if question is None:
            question = told.question
        if answer is None:
            answer = told.answer
        if passages is None:
            passages = told.passages
    return Told(question, answer, passages)


def _items(cell: Any) -> list[Any] | None:
    """Return the list in a cell, also one in a text; None where there is none."""
    if isinstance(cell, str):
        cell = parse_list(cell) if cell.lstrip()[:1] == "[" else None
    if isinstance(cell, Mapping):
        # Of several lists in an object none is known to be the one; of one, it is.
        inner = [value for value in cell.values() if isinstance(value, list)]
        cell = inner[0] if len(inner) == 1 else None
    if hasattr(cell, "tolist") and not isinstance(cell, list):
        cell = cell.tolist()
    if isinstance(cell, list | tuple):
        return list(cell)
    return None


def _is_chat(items: Sequence[Any]) -> bool:
    """Return whether a list is one of messages, and not of steps or spans."""
    return any(_speaker(item) for item in items)


def _speaker(item: Any) -> str:
    """Return who speaks: user, assistant, tool; nothing for others and for what is no message."""
    fields = _named(item)
    word = next((str(fields[key]) for key in NESTED["message"]["speaker"] if key in fields), "")
    word = loose(word).removesuffix("message")
    kinds = ("user", "assistant", "tool")
    found = next((kind for kind in kinds if word in _MESSAGE[kind]), "")
    if any(key in fields for key in NESTED["message"]["content"]):
        return found
    return ""


def _of_messages(items: Sequence[Any]) -> Told:
    """Return what messages say: the last question, the answer after it, and the passages of all of them."""
    question = None
    answer = None
    passages: list[dict[str, Any]] = []
    searched = False
    for number, item in enumerate(items, 1):
        who = _speaker(item)
        fields = _named(item)
        content = next((fields[key] for key in NESTED["message"]["content"] if key in fields), None)
        text = _text(content)
        if who == "user" and text:
            question = text
            answer = None  # of the question before
        elif who == "assistant" and text:
            answer = text
        elif who == "tool":
            searched = True
            passages += _found(_parsed(content), number)
        # Passages may stand in the message itself, beside its text.
        below = [value for key, value in fields.items() if key in _STEP["passages"]]
        if who == "assistant":
            # Azure OpenAI "on your data" answers so.
            below.append(_named(fields.get("context")).get("citations"))
        for value in below:
            if isinstance(value, list):
                searched = True
                passages += _found(value, number)
    return Told(question, answer, passages if searched else None)


def _of_steps(items: Sequence[Any]) -> Told:
    """Return what steps or spans say: the question and answer of the last turn, and the passages of all."""
    question = None
    answer = None
    passages: list[dict[str, Any]] = []
    searched = False
    for nth, item in enumerate(items, 1):
        fields = _flat(item)
        number = next((fields[key] for key in _STEP["number"] if key in fields), nth)
        kind = loose(fields.get("openinference.span.kind") or fields.get("spankind") or "")
        retrieves = kind in _STEP["retriever"]
        of_step = _passages_of_step(fields, number, retrieves=retrieves)
        if of_step is not None:
            searched = True
            passages += of_step
        # What a retriever was asked is often a rewritten question, and what it put out is no answer.
        if retrieves:
            continue
        step_question = _first_text(fields, _STEP["question"])
        step_answer = _first_text(fields, _STEP["answer"])
        # A step that rewrites the question has it in the user's words, which is the question to judge by.
        if _prepares(fields):
            question = question or step_question
            continue
        if kind and (question or answer):
            continue  # of spans the first, the root, has the question and the answer
        question = step_question or question
        if step_question or _says_nothing(fields):
            answer = None  # that of the question before, or of a step before it
        answer = step_answer or answer
    return Told(question, answer, passages if searched else None)


def _passages_of_step(
    fields: Mapping[str, Any], number: Any, *, retrieves: bool
) -> list[dict[str, Any]] | None:
    """Return the passages of the first field that holds some; empty where the fields for them hold none.

    None is of a step that did not search: it has no list in such a field.
    """
    searched = False
    for key in _STEP["passages"]:
        value = fields.get(key)
        # The output of any other span is its answer.
        if key == "output.value" and not retrieves:
            continue
        # An empty text is no list: it does not show that the step searched.
        is_json_text = isinstance(value, str) and value.lstrip()[:1] in ("[", "{")
        if isinstance(value, list) or is_json_text:
            searched = True
            passages = _found(_parsed(value), number)
            if passages:
                return passages
    return [] if searched else None


def _first_text(fields: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    """Return the text under the first of some keys that has one."""
    for key in keys:
        text = _text(fields.get(key))
        if text:
            return text
    return None


def _says_nothing(fields: Mapping[str, Any]) -> bool:
    """Return whether a step was to give an answer, and gave none."""
    given = [fields[key] for key in _STEP["answer"] if key in fields]
    return bool(given) and all(_empty(cell) for cell in given)


def _prepares(fields: Mapping[str, Any]) -> bool:
    """Whether a step is named for what comes before an answer: it rewrites the question, searches or plans."""
    names = [fields.get(key) for key in _STEP["name"]]
    name = " ".join(loose(part) for part in names if isinstance(part, str))
    # A step called RetrievalQA, say, both searches and answers.
    if any(word in name for word in _STEP["answers"]):
        return False
    return any(word in name for word in _STEP["prepares"])


def _named(item: Any) -> dict[str, Any]:
    """Return the fields of an object by their loose names."""
    if isinstance(item, Mapping):
        return {loose(key): value for key, value in item.items()}
    return {}


def _flat(item: Any, depth: int = 0) -> dict[str, Any]:
    """Return the fields of a step and of its attributes, by their loose names; lists in points become lists."""
    fields = _named(item)
    flat = dict(fields)
    for key in _STEP["fields"]:
        inner = fields.get(key)
        # Where spans are exported as a table, their attributes are the JSON text of an object.
        if isinstance(inner, str) and inner.lstrip()[:1] == "{":
            inner = _parsed(inner)
        if isinstance(inner, Mapping) and depth < _DEEPEST:
            for name, value in _flat(inner, depth + 1).items():
                flat.setdefault(name, value)
    for name in ("retrieval", "input", "output", "openinference"):
        inner = flat.get(name)
        if isinstance(inner, Mapping):
            for key, value in inner.items():
                flat.setdefault(f"{name}.{loose(key)}", value)
    # Attributes may come as objects in objects: {"openinference": {"span": {"kind": …}}}.
    span = flat.get("openinference.span")
    if isinstance(span, Mapping):
        flat.setdefault("openinference.span.kind", span.get("kind"))
    documents = _in_points(flat, "retrieval.documents.")
    if documents:
        flat.setdefault("retrieval.documents", documents)
    return flat


def _in_points(fields: Mapping[str, Any], start: str) -> list[dict[str, Any]]:
    """Return the objects that OpenInference writes as ``retrieval.documents.0.document.content``."""
    points: dict[str, dict[str, Any]] = {}
    for name, value in fields.items():
        if name.startswith(start):
            number, _, key = name.removeprefix(start).partition(".")
            points.setdefault(number, {})[key.removeprefix("document.")] = value
    return list(points.values())


def _text(content: Any) -> str | None:
    """Return the text of a message: a text, or the texts of its parts."""
    if isinstance(content, str):
        if content.strip():
            return content
        return None
    if isinstance(content, list):
        parts = [part if isinstance(part, str) else _named(part).get("text") for part in content]
        texts = [part for part in parts if isinstance(part, str) and part.strip()]
        return "\n".join(texts) or None
    if isinstance(content, Mapping):
        fields = _named(content)
        keys = (*NESTED["message"]["content"], "answer", "question", "query", "output")
        return next((fields[key] for key in keys if isinstance(fields.get(key), str)), None)
    return None


def _parsed(content: Any) -> Any:
    """Return what the JSON in a text holds; a text of another kind as it is."""
    if isinstance(content, str) and content.lstrip()[:1] in ("[", "{"):
        with suppress(ValueError, RecursionError):
            return json.loads(content)
        items = parse_list(content)
        if items is None:
            return content
        return items
    return content


def _found(value: Any, number: Any, depth: int = 0) -> list[dict[str, Any]]:
    """Return the passages in a value: texts, objects with a text or an id, and lists of them."""
    if isinstance(value, str):
        if value.strip():
            return [_passage({"text": value}, number)]
        return []
    if isinstance(value, Mapping):
        fields = _named(value)
        for key in _STEP["passages"]:
            if isinstance(fields.get(key), list) and depth < _DEEPEST:
                return _found(fields[key], number, depth + 1)
        if _is_passage(value):
            return [_passage(value, number)]
        return []
    if isinstance(value, list | tuple) and depth < _DEEPEST:
        return [passage for item in value for passage in _each(item, number, depth)]
    return []


def _each(item: Any, number: Any, depth: int) -> Iterator[dict[str, Any]]:
    """Yield the passages in an item of a list, in which a whole number is an id."""
    if isinstance(item, int) and not isinstance(item, bool):
        yield _passage({"id": str(item)}, number)
    else:
        yield from _found(item, number, depth + 1)


def _is_passage(value: Mapping[str, Any]) -> bool:
    """Return whether an object has the text or the id of a passage."""
    return bool(passage_text(value)) or any(key in _named(value) for key in _IDS)


def _passage(value: Mapping[str, Any], number: Any) -> dict[str, Any]:
    """Return a passage with its id as ``id`` and the step it comes from."""
    # As OpenInference names the parts of a document.
    passage = {str(key).removeprefix("document."): cell for key, cell in value.items()}
    for wrapper in _WRAPPERS:
        inner = passage.get(wrapper)
        if isinstance(inner, Mapping):
            # What stands around the wrapped object, such as a score, belongs to the passage too.
            around = {key: cell for key, cell in passage.items() if key != wrapper}
            passage = {**around, **inner}
    fields = _named(passage)
    name = next((fields[key] for key in _IDS if not absent(fields.get(key))), None)
    if name is None:
        # Documents of LangChain often have their id there.
        name = _named(fields.get("metadata")).get("id")
    if name is not None:
        passage["id"] = str(name)
    if number is None:
        return passage
    return {**passage, "step": number}


def passages_with_ids(cells: Iterable[Any]) -> list[list[dict[str, Any]] | None] | None:
    """Return the passages of each cell as objects with an ``id``, where any of them has one; else None.

    Examples
    --------
    >>> passages_with_ids([[{"chunk_id": 7, "content": "Ann."}], None])
    [[{'chunk_id': 7, 'content': 'Ann.', 'id': '7'}], None]
    >>> passages_with_ids([["Ann."]]) is None
    True
    """
    lists = [_items(cell) for cell in cells]
    if not any(isinstance(item, Mapping) for items in lists for item in items or ()):
        return None
    passages = [None if items is None else _found(items, None) for items in lists]
    if any("id" in passage for of_cell in passages for passage in of_cell or ()):
        return passages
    return None


def from_contexts(raw: Raw, report: Lossy) -> None:
    """Count the passages of objects with ids as chunks too, so that retrieval is measured."""
    if "chunks" in raw.columns or CONTEXTS[0] not in raw.columns:
        return
    passages = passages_with_ids(raw.columns[CONTEXTS[0]])
    if passages is not None:
        raw.columns["chunks"] = passages
        report.add("made", "chunks", f"passages of {CONTEXTS[0]} with an id", len(raw))
