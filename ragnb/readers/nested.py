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
    lists = [name for kind in NESTED["lists"] for name in raw.columns if loose(name) == kind]
    lists = [name for name in lists if any(_items(cell) for cell in raw.columns[name])]
    if not lists:
        return
    read_rows = [_told([raw.columns[name][i] for name in lists]) for i in range(len(raw))]
    answers = _answers_below(raw, read_rows)
    _fill(raw, "question", [one.question for one in read_rows], lists, report)
    _fill(raw, "answer", answers, lists, report)
    if "question" in raw.columns and any(one.question for one in read_rows):
        raw.columns.setdefault("answer", [None] * len(raw))  # asked, and none answered
    if not any(name in raw.columns for name in _PLACES):
        _passages(raw, [one.passages for one in read_rows], lists, report)


def _answers_below(raw: Raw, told: Sequence[Told]) -> list[str | None]:
    """Return the answers below the records, but for those of records whose answer would stand at their top.

    Where answers stand beside the questions, one that is missing there was not given, whatever a step put out.
    """
    given = raw.cells("answer")
    # Where no record answers at its top, that is not where this tool puts answers.
    if all(_empty(cell) for cell in given):
        return [one.answer for one in told]
    asked = raw.cells("question")
    return [
        one.answer if _empty(question) else None for one, question in zip(told, asked, strict=True)
    ]


def _empty(cell: Any) -> bool:
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
        for name in [str(one) for one in columns if loose(str(one)) == kind]:
            cells = list(columns[name])
            lists = [_items(cell) for cell in cells]
            whole = all(
                items is not None or absent(cell) or cell == ""
                for items, cell in zip(lists, cells, strict=True)
            )
            if any(lists) and whole:
                yield name


def _names_as_ids(found: list[Any]) -> list[Any]:
    """Take texts for ids where each is a name: one word, or the path of a file."""
    passages = [one for items in found for one in items or ()]
    # One passage that is a sentence shows that the others are texts, too, however short.
    if not all([*one] == ["text"] and _NAME.fullmatch(one["text"].strip()) for one in passages):
        return found
    return [items and [{"id": one["text"].strip()} for one in items] for items in found]


def _fill(raw: Raw, name: str, found: list[Any], lists: Sequence[str], report: Lossy) -> None:
    """Fill the gaps of a column with what was found below."""
    given = list(raw.columns.get(name, [None] * len(raw)))
    empty = [_empty(cell) for cell in given]
    used = [gap and cell is not None for gap, cell in zip(empty, found, strict=True)]
    if not any(used):
        return
    raw.columns[name] = [
        below if use else cell for cell, below, use in zip(given, found, used, strict=True)
    ]
    report.add("made", name, f"from {', '.join(lists)}", sum(used))


def _passages(raw: Raw, found: list[Any], lists: Sequence[str], report: Lossy) -> None:
    """Add the column of passages: chunks where they have ids, else texts."""
    if not any(found):
        return
    ids = any("id" in passage for passages in found for passage in passages or ())
    name = "chunks" if ids else "retrieved_contexts"
    raw.columns[name] = found
    report.add("made", name, f"passages of {', '.join(lists)}", sum(map(bool, found)))


def _told(cells: Sequence[Any]) -> Told:
    question = answer = passages = None
    for cell in cells:
        items = _items(cell)
        if items is None:
            continue
        if _is_chat(items):
            one = _of_messages(items)
        else:
            one = _of_steps(items)
        if question is None:
            question = one.question
        if answer is None:
            answer = one.answer
        if passages is None:
            passages = one.passages
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
    question = answer = None
    passages: list[dict[str, Any]] = []
    searched = False
    for number, item in enumerate(items, 1):
        who = _speaker(item)
        fields = _named(item)
        content = next((fields[k] for k in NESTED["message"]["content"] if k in fields), None)
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
    question = answer = None
    passages: list[dict[str, Any]] = []
    searched = False
    for nth, item in enumerate(items, 1):
        fields = _flat(item)
        number = next((fields[key] for key in _STEP["number"] if key in fields), nth)
        kind = loose(fields.get("openinference.span.kind") or fields.get("spankind") or "")
        retrieves = kind in _STEP["retriever"]
        for key in _STEP["passages"]:
            value = fields.get(key)
            # The output of any other span is its answer.
            if key == "output.value" and not retrieves:
                continue
            if isinstance(value, list) or (isinstance(value, str) and value.lstrip()[:1] in "[{"):
                found = _found(_parsed(value), number)
                searched = True
                passages += found
                if found:
                    break
        # What a retriever was asked is often a rewritten question, and what it put out is no answer.
        if retrieves:
            continue
        asked = next(
            (_text(fields[key]) for key in _STEP["question"] if _text(fields.get(key))), None
        )
        said = next((_text(fields[key]) for key in _STEP["answer"] if _text(fields.get(key))), None)
        # A step that rewrites the question has it in the user's words, which is the question to judge by.
        if _prepares(fields):
            question = question or asked
            continue
        if kind and (question or answer):
            continue  # of spans the first, the root, has the question and the answer
        question = asked or question
        if asked or _says_nothing(fields):
            answer = None  # that of the question before, or of a step before it
        answer = said or answer
    return Told(question, answer, passages if searched else None)


def _says_nothing(fields: Mapping[str, Any]) -> bool:
    """Return whether a step was to give an answer, and gave none."""
    given = [fields[key] for key in _STEP["answer"] if key in fields]
    return bool(given) and all(_empty(cell) for cell in given)


def _prepares(fields: Mapping[str, Any]) -> bool:
    """Whether a step is named for what comes before an answer: it rewrites the question, searches or plans."""
    words = [fields.get(key) for key in _STEP["name"]]
    said = " ".join(loose(word) for word in words if isinstance(word, str))
    answers = any(word in said for word in _STEP["answers"])
    return not answers and any(word in said for word in _STEP["prepares"])


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
        return next((fields[k] for k in keys if isinstance(fields.get(k), str)), None)
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
        return [one for item in value for one in _each(item, number, depth)]
    return []


def _each(item: Any, number: Any, depth: int) -> Iterator[dict[str, Any]]:
    if isinstance(item, int) and not isinstance(item, bool):
        yield _passage({"id": str(item)}, number)
    else:
        yield from _found(item, number, depth + 1)


def _is_passage(value: Mapping[str, Any]) -> bool:
    return bool(passage_text(value)) or any(key in _named(value) for key in _IDS)


def _passage(value: Mapping[str, Any], number: Any) -> dict[str, Any]:
    """Return a passage with its id as ``id`` and the step it comes from."""
    # As OpenInference names the parts of a document.
    passage = {str(key).removeprefix("document."): cell for key, cell in value.items()}
    for wrapper in _WRAPPERS:
        inner = passage.get(wrapper)
        if isinstance(inner, Mapping):
            passage = {**{k: v for k, v in passage.items() if k != wrapper}, **inner}
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
    found = [_items(cell) for cell in cells]
    if not any(isinstance(item, Mapping) for items in found for item in items or ()):
        return None
    passages = [None if items is None else _found(items, None) for items in found]
    has_id = any("id" in passage for items in passages for passage in items or ())
    if has_id:
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
