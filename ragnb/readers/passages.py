"""The passages of an answer: their texts, the documents that they name, and what else they hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ragnb.polars import pl
from ragnb.readers.cells import LONGEST_WORD, MISSING_WORDS, as_id
from ragnb.readers.lists import parse_list, plain_texts
from ragnb.readers.names import WORDS, loose
from ragnb.readers.objects import is_object, is_print, no_text, passage_fields, printed_passages
from ragnb.readers.raw import Lossy, Raw, absent, is_arrow

# How printed objects begin that are no list.
_PRINTED = ("('", '("', "{'", '{"', "array(")
_TEXT_KEYS = WORDS["passage"]["text"]
_DOC_KEYS = WORDS["passage"]["document"]
# Keys of names: what they hold is no text of a passage.
_NAMES = {*_DOC_KEYS, "url", "uri", "link", "path", "filepath", "hash"} - {"document"}


def as_texts(value: Any) -> tuple[list[str] | None, bool]:
    """Return a cell as a list of texts and whether it was understood; None where the cell is missing.

    Examples
    --------
    >>> as_texts("[]"), as_texts(None), as_texts("[Just have the..."), as_texts("One passage.")
    (([], True), (None, True), (['[Just have the...'], False), (['One passage.'], True))
    >>> as_texts([{"chunk_text": "One passage.", "id": 7}]), as_texts({"id": 7})
    ((['One passage.'], True), (['{"id": 7}'], False))
    """
    cell = _passages(value)
    return _texts_of(cell.passages), cell.understood


class _Passage(NamedTuple):
    """The text of a passage, and the object that contains it, if one does."""

    text: str
    fields: Mapping[str, Any] | None


class _Cell(NamedTuple):
    """The passages of a cell, None where it is missing, and whether all were parsed."""

    passages: list[_Passage] | None
    understood: bool


def _texts_of(passages: Sequence[_Passage] | None) -> list[str] | None:
    """Return the texts of passages; None where there is no list of them."""
    if passages is None:
        return None
    return [passage.text for passage in passages]


def _passages(value: Any) -> _Cell:
    """Return the passages of a cell; what is not understood stays as text or JSON."""
    if isinstance(value, str):
        text = value.strip()
        if len(text) <= LONGEST_WORD and text.casefold() in MISSING_WORDS:
            return _Cell(None, understood=True)
        items = _items_of_text(text)
        if items is None and is_print(text):
            return _Cell(None, understood=False)  # what objects print is no passage
        if items is None or None in map(_passage, items):
            is_list = text.startswith("[")
            is_printed = text.startswith(_PRINTED) and text.endswith((")", "}"))
            return _Cell([_Passage(value, None)], understood=not is_list and not is_printed)
    elif absent(value):
        return _Cell(None, understood=True)
    else:
        if isinstance(value, np.ndarray):
            value = value.tolist()
        items = list(value) if isinstance(value, list | tuple) else [value]
    passages: list[_Passage] = []
    understood = True
    for item in items:
        if absent(item):
            understood = False
            continue
        passage = _passage(item)
        if passage is None:
            understood = False
            passage = _Passage(json.dumps(item, ensure_ascii=False, default=str), None)
        passages.append(passage)
    return _Cell(passages, understood)


def _items_of_text(text: str) -> list[Any] | None:
    """Return what the print, the list or the object in a text holds; None where it is none of these whole."""
    if is_print(text):
        return printed_passages(text)
    if text.startswith("["):
        return parse_list(text)
    return _object(text)


def _object(text: str) -> list[Any] | None:
    """Return the object of a text in a list, if it is one with a text under a key that says so."""
    if not text.lstrip().startswith("{"):
        return None
    items = parse_list(f"[{text}]")
    if items and isinstance(items[0], Mapping) and {*map(loose, items[0])} & {*_TEXT_KEYS}:
        return items
    return None


def passage_text(item: Any) -> str | None:
    """Return the text of a passage, an object or a text; None where it has none.

    Examples
    --------
    >>> passage_text({"id": 7, "content": "One passage."}), passage_text({"id": 7, "score": 0.5})
    ('One passage.', None)
    """
    passage = _passage(item)
    return passage.text if passage else None


def _passage(item: Any) -> _Passage | None:
    """Return the passage that an item of a list is; None if it has no text.

    Raises
    ------
    RagnbError
        For an object of another library without a text.
    """
    if isinstance(item, str):
        return _Passage(item, None)
    if isinstance(item, dict | Mapping):  # first the type of nearly all, which is quick to tell
        text = _text_in(item)
        return None if text is None else _Passage(text, item)
    if is_object(item):
        fields = passage_fields(item)
        if fields is None:
            raise no_text(item)
        return _Passage(fields["text"], fields)
    return None


def _text_in(fields: Mapping[str, Any]) -> str | None:
    """Return the text under the key that says so, there or one level down, else the longest that is not a name."""
    texts = {loose(key): cell for key, cell in fields.items() if isinstance(cell, str)}
    named = [texts[key] for key in _TEXT_KEYS if key in texts]
    for text in named:
        if text.strip():
            return text
    for cell in fields.values():
        inner = None
        if isinstance(cell, Mapping):
            if {*map(loose, cell)} & {*_TEXT_KEYS}:
                inner = _text_in(cell)
        elif is_object(cell):
            inner_fields = passage_fields(cell)
            inner = None if inner_fields is None else str(inner_fields["text"])
        if inner is not None:
            return inner
    others = [
        cell
        for key, cell in texts.items()
        if cell.strip() and key not in _NAMES and not key.endswith("id")
    ]
    if others:
        return max(others, key=len)
    # An empty text is that of an empty passage; without a text it is none.
    return named[0] if named else None


def _doc_of(fields: Mapping[str, Any], text: str) -> str | None:
    """Return the document that a passage object names, itself or in its metadata."""
    metadata = fields.get("metadata", fields.get("meta"))
    for holder in (fields, metadata):
        if not isinstance(holder, dict | Mapping):
            continue
        # The text itself is left out, as it may stand under a key such as "document".
        others = _other_fields(holder, text)
        by_loose_name = {loose(key): cell for key, cell in others.items()}
        for key in _DOC_KEYS:
            cell = by_loose_name.get(key, "")
            if cell != "" and isinstance(cell, str | int):
                return as_id(cell)
    return None


def text_lists(raw: Raw, name: str, report: Lossy) -> None:
    """Make a column of lists of texts; a cell that cannot be parsed is kept whole, as one text.

    What objects hold beside their text goes to two columns of lists, one entry a passage: the documents that they
    name, and the other fields.
    """
    cells = raw.columns[name]
    # Nearly all cells are plain lists of texts, which need no parser.
    if is_arrow(cells):
        lists = _split(cells)
    else:
        lists = list(map(_at_once, cells))
    parsed = {row: _passages(cells[row]) for row, texts in enumerate(lists) if texts is None}
    for row, cell in parsed.items():
        lists[row] = _texts_of(cell.passages)
    # Texts in a list may be what objects print, too.
    for row, texts in enumerate(lists):
        if texts and is_print(texts[0]):
            passages = _unprinted(texts)
            parsed[row] = _Cell(passages, understood=passages is not None)
            lists[row] = _texts_of(passages)
    raw.columns[name] = lists
    odd = [cell.passages for cell in parsed.values() if not cell.understood]
    n_prints = sum(passages is None for passages in odd)
    why = "prints of objects that do not hold their texts: not used as passages"
    report.add("unparsed", name, why, n_prints)
    report.add("unparsed", name, "kept as one text", len(odd) - n_prints)
    side = name.removesuffix("_contexts")
    for column, read in ((f"{side}_doc_names", _doc_of), (f"{side}_fields", _other_fields)):
        beside = {
            row: [
                passage.fields and read(passage.fields, passage.text)
                for passage in cell.passages or ()
            ]
            for row, cell in parsed.items()
        }
        if any(map(any, beside.values())) and column not in raw.columns:
            raw.columns[column] = [
                beside[row] if any(beside.get(row, ())) else None for row in range(len(lists))
            ]
            detail = f"what objects in {name} hold beside their text"
            report.add("made", column, detail, len(lists))


def _unprinted(texts: Sequence[str]) -> Any:
    """Return the passages of printed objects; None where one cannot be read."""
    passages: list[_Passage | None] = []
    for text in texts:
        items = printed_passages(text) if is_print(text) else [text]
        if items is None:
            return None
        passages += map(_passage, items)
    return passages


def _split(cells: pd.Series[str]) -> list[list[str] | None]:
    """Return the texts of lists that hold no other mark of the kind around each of them, and no escape."""
    text = pl.col("text")
    mark = text.str.slice(1, 1)  # the quote after the bracket
    words = text.str.head(-2).str.tail(-2).str.split(mark + ", " + mark)
    begins_as_list = text.str.contains(r"^\[['\"]")
    ends_as_list = text.str.ends_with(mark + "]")
    has_escape = text.str.contains(r"[\\\n\r\x00]")
    has_only_outer_marks = text.str.count_matches(mark, literal=True) == 2 * words.list.len()
    is_plain = begins_as_list & ~has_escape & (ends_as_list & has_only_outer_marks)
    lists = pl.DataFrame({"text": cells}).lazy().select(pl.when(is_plain).then(words))
    return lists.collect().to_series().to_list()


def _at_once(cell: Any) -> list[str] | None:
    """Return a list of texts, also one in a text that needs no parser; None for any other cell."""
    if isinstance(cell, str):
        return plain_texts(cell)
    if isinstance(cell, list) and {*map(type, cell)} <= {str}:
        return cell
    return None


def _other_fields(fields: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return what an object holds beside a text."""
    return {str(key): cell for key, cell in fields.items() if cell is not text and cell != text}
