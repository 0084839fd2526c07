"""The passages of an answer: their texts, the documents that they name, and what else they hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

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
    passages, understood = _passages(value)
    return passages and [text for text, _ in passages], understood


def _passages(value: Any) -> tuple[Any, bool]:
    """Return the passages of a cell as pairs of `_passage`, None where it is missing, and whether all were parsed.

    What is not understood stays as text or JSON.
    """
    if isinstance(value, str):
        text = value.strip()
        if len(text) <= LONGEST_WORD and text.casefold() in MISSING_WORDS:
            return None, True
        items = printed_passages(text) if is_print(text) else None
        if items is None and is_print(text):
            return None, False  # what objects print is no passage
        if items is None:
            if text.startswith("["):
                items = parse_list(text)
            else:
                items = _object(text)
        if items is None or None in map(_passage, items):
            printed = text.startswith(_PRINTED) and text.endswith((")", "}"))
            return [(value, None)], not text.startswith("[") and not printed
    elif absent(value):
        return None, True
    else:
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if isinstance(value, list | tuple):
            items = list(value)
        else:
            items = [value]
    given = [(item, _passage(item)) for item in items if not absent(item)]
    passages = [
        passage or (json.dumps(item, ensure_ascii=False, default=str), None)
        for item, passage in given
    ]
    understood = len(given) == len(items) and all(passage is not None for _, passage in given)
    return passages, understood


def _object(text: str) -> list[Any] | None:
    """Return the object of a text in a list, if it is one with a text under a key that says so."""
    if text.lstrip().startswith("{"):
        items = parse_list(f"[{text}]")
    else:
        items = None
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
    return (_passage(item) or (None,))[0]


def _passage(item: Any) -> Any:
    """Return the text of a passage and the object that contains it; None if there is none."""
    if isinstance(item, str):
        return item, None
    if isinstance(item, dict | Mapping):  # first the type of nearly all, which is quick to tell
        text = _text_in(item)
        return None if text is None else (text, item)
    if is_object(item):
        fields = passage_fields(item)
        if fields is None:
            raise no_text(item)
        return fields["text"], fields
    return None


def _text_in(fields: Mapping[str, Any]) -> str | None:
    """Return the text under the key that says so, there or one level down, else the longest that is not a name."""
    texts = {loose(key): cell for key, cell in fields.items() if isinstance(cell, str)}
    named = [texts[key] for key in _TEXT_KEYS if key in texts]
    if any(map(str.strip, named)):
        return next(filter(str.strip, named))
    for cell in fields.values():
        held = passage_fields(cell) if is_object(cell) else None
        inner = None if held is None else str(held["text"])
        if isinstance(cell, Mapping) and {*map(loose, cell)} & {*_TEXT_KEYS}:
            inner = _text_in(cell)
        if inner is not None:
            return inner
    others = (
        cell
        for key, cell in texts.items()
        if cell.strip() and key not in _NAMES and not key.endswith("id")
    )
    return max(others, key=len, default=named[0] if named else None)


def _doc_of(fields: Mapping[str, Any], text: str) -> str | None:
    """Return the document that a passage object names, itself or in its metadata."""
    for held in (fields, fields.get("metadata", fields.get("meta"))):
        if not isinstance(held, dict | Mapping):
            continue
        near = {loose(key): cell for key, cell in held.items() if cell is not text and cell != text}
        for key in _DOC_KEYS:
            cell = near.get(key, "")
            if cell != "" and isinstance(cell, str | int):
                return as_id(cell)
    return None


def text_lists(raw: Raw, name: str, report: Lossy) -> None:
    """Make a column of lists of texts; a cell that cannot be parsed is kept whole, as one text.

    What objects hold beside their text goes to two columns of lists, one entry a passage: the documents that they
    name, and the other fields.
    """
    cells = raw.columns[name]
    if is_arrow(cells):
        lists = _split(cells)
    else:
        lists = list(map(_at_once, cells))
    others = {i: _passages(cells[i]) for i, texts in enumerate(lists) if texts is None}
    for i, (passages, _) in others.items():
        lists[i] = passages and [text for text, _ in passages]
    prints = {i: _unprinted(texts) for i, texts in enumerate(lists) if texts and is_print(texts[0])}
    for i, passages in prints.items():
        others[i] = passages, passages is not None
        lists[i] = passages and [text for text, _ in passages]
    raw.columns[name] = lists
    odd = [passages for passages, understood in others.values() if not understood]
    why = "prints of objects that do not hold their texts: not used as passages"
    report.add("unparsed", name, why, sum(passages is None for passages in odd))
    report.add("unparsed", name, "kept as one text", sum(passages is not None for passages in odd))
    side = name.removesuffix("_contexts")
    for other, beside in ((f"{side}_doc_names", _doc_of), (f"{side}_fields", _other_fields)):
        rows = {
            i: [f and beside(f, text) for text, f in passages or ()]
            for i, (passages, _) in others.items()
        }
        if any(map(any, rows.values())) and other not in raw.columns:
            raw.columns[other] = [
                rows[i] if any(rows.get(i, ())) else None for i in range(len(lists))
            ]
            report.add("made", other, f"what objects in {name} hold beside their text", len(lists))


def _unprinted(texts: Sequence[str]) -> Any:
    """Return the passages of printed objects as pairs of `_passage`; None where one cannot be read."""
    passages: list[Any] = []
    for text in texts:
        items = printed_passages(text) if is_print(text) else [text]
        if items is None:
            return None
        passages += map(_passage, items)
    return passages


def _split(cells: pd.Series[str]) -> list[list[str] | None]:
    """Return the texts of lists that hold no other mark of the kind around each of them, and no escape."""
    text = pl.col("text")
    mark = text.str.slice(1, 1)
    words = text.str.head(-2).str.tail(-2).str.split(mark + ", " + mark)
    plain = text.str.contains(r"^\[['\"]") & ~text.str.contains(r"[\\\n\r\x00]")
    plain &= text.str.ends_with(mark + "]") & (
        text.str.count_matches(mark, literal=True) == 2 * words.list.len()
    )
    return (
        pl.DataFrame({"text": cells})
        .lazy()
        .select(pl.when(plain).then(words))
        .collect()
        .to_series()
        .to_list()
    )


def _at_once(cell: Any) -> list[str] | None:
    """Return a list of texts, also one in a text that needs no parser; None for any other cell."""
    if isinstance(cell, str):
        return plain_texts(cell)
    if isinstance(cell, list) and {*map(type, cell)} <= {str}:
        return cell
    return None


def _other_fields(fields: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {str(key): cell for key, cell in fields.items() if cell is not text and cell != text}
