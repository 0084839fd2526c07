"""Cells → lists of texts, texts, identifiers, truth values; what no parser takes stays as text and is counted."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError
from ragnb.readers.lossy import Lossy
from ragnb.readers.names import WORDS
from ragnb.readers.raw import TEXT, Raw, Values, absent, is_text, unpacked

MISSING_WORDS = {"", "nan", "none", "null", "na", "n/a", "<na>"}
_LONGEST_WORD = max(map(len, MISSING_WORDS))
# What people, spreadsheets and databases write where a number is missing; `MISSING_WORDS` where a text is.
NO_NUMBER = {*MISSING_WORDS, *"-–—/无無", "--", "#n/a", "#na", "n.a.", "-nan", "(null)", r"\n", "缺失"}
CONTEXTS = ("retrieved_contexts", "ground_truth_contexts")
IDS = ("sample_id", "doc_name", "system", "repeat", "persona", "cluster", "item_id")
TEXTS = ("question", "answer", "ground_truth_answer")
LISTS = ("source_units", "generation_params", "chunks", "citations", "gold_ids", "passage_id")
_LITERAL = re.compile(r"""\[\s*(?:\]|[uUrRbB]?['"]|[\[{(\d]|None\b)""")
_ODD_ESCAPE = re.compile(r"""\\(?![\n\\'"abfnrtvxuUN])""")
_GLUED = re.compile(r"""['"]\s+[uUrR]?['"]""")
_STRING = re.compile(r"""[uUrR]?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""", re.DOTALL)
_PRINTED = ("('", '("', "{'", '{"', "array(")
_TEXT_KEYS, _DOC_KEYS = WORDS["passage"]["text"], WORDS["passage"]["document"]
_NAMES = {*_DOC_KEYS, "url", "uri", "link", "path", "filepath", "hash"} - {"document"}


def parse_list(text: str) -> list[Any] | None:
    """Read a JSON list, a Python list or a printed array of texts; None if it is none of them whole.

    Examples
    --------
    >>> parse_list('["a", "b"]'), parse_list("['it\\\\'s', 'b']"), parse_list("['a' 'b']")
    (['a', 'b'], ["it's", 'b'], ['a', 'b'])
    >>> parse_list("[Have the check reissued...") is None
    True
    """
    text = text.strip()
    if not _LITERAL.match(text) or not text.endswith("]"):
        return None
    value: Any = _plain_texts(text)
    if value is None:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = _parse_python(text)
    return value if isinstance(value, list) else None


def _plain_texts(text: str) -> list[str] | None:
    """Return the texts of a list without escapes, as JSON and ``repr`` write it; None for any other list.

    Without a backslash a quote ends the text that it opened, so that a search for it finds the end.
    """
    if "\\" in text or "\n" in text or "\r" in text or "\0" in text:
        return None
    items: list[str] = []
    start, last = 1, len(text) - 1
    while (quote := text[start]) == "'" or quote == '"':
        end = text.find(quote, start + 1)
        items.append(text[start + 1 : end])
        if end + 1 == last:
            return items
        if end < 0 or text[end + 1 : end + 3] != ", ":
            return None
        start = end + 3
    return None


def _parse_python(text: str) -> Any:
    """Return the value of a Python literal, None where it is none; texts without commas are a printed array."""
    if _ODD_ESCAPE.search(text.replace("\\\\", "")):
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None
    if _GLUED.search(text) and not _STRING.sub("", text[1:-1]).strip():
        return [ast.literal_eval(word) for word in _STRING.findall(text)]
    return value


def as_texts(value: Any) -> tuple[list[str] | None, bool]:
    """Return a cell as a list of texts and whether it was understood; None where the cell is missing.

    Examples
    --------
    >>> as_texts("[]"), as_texts(None), as_texts("[Just have the..."), as_texts("One passage.")
    (([], True), (None, True), (['[Just have the...'], False), (['One passage.'], True))
    >>> as_texts([{"chunk_text": "One passage.", "id": 7}]), as_texts({"id": 7})
    ((['One passage.'], True), (['{"id": 7}'], False))
    """
    texts, _, understood = _passages(value)
    return texts, understood


Objects = list[Mapping[str, Any] | None]


def _passages(value: Any) -> tuple[list[str] | None, Objects, bool]:
    """Return the texts of a cell, the objects that hold them if any do, and whether all were understood.

    What is not understood stays as text or JSON.
    """
    if isinstance(value, str):
        text = value.strip()
        if len(text) <= _LONGEST_WORD and text.casefold() in MISSING_WORDS:
            return None, [], True
        items = parse_list(text) if text.startswith("[") else _object(text)
        if items is None:
            printed = text.startswith(_PRINTED) and text.endswith((")", "}"))
            return [value], [], not text.startswith("[") and not printed
    elif absent(value):
        return None, [], True
    else:
        value = value.tolist() if isinstance(value, np.ndarray) else value
        items = list(value) if isinstance(value, list | tuple) else [value]
    if set(map(type, items)) <= {str}:
        return items, [], True
    passages = [_passage(item) for item in items]
    if None in passages and isinstance(value, str):
        return [value], [], False
    given = [
        passage or (json.dumps(item, ensure_ascii=False, default=str), None)
        for passage, item in zip(passages, items, strict=True)
        if not absent(item)
    ]
    return [text for text, _ in given], [fields for _, fields in given], None not in passages


def _object(text: str) -> list[Any] | None:
    """Return the object of a text in a list, if it is one with a text under a key that says so."""
    found = parse_list(f"[{text}]") if text.lstrip().startswith("{") else None
    return found if found and isinstance(found[0], Mapping) and {*map(_loose, found[0])} & {*_TEXT_KEYS} else None


def _passage(item: Any) -> Any:
    """Return the text of a passage and the object that holds it; None where there is none."""
    if isinstance(item, str):
        return item, None
    fields = item if isinstance(item, Mapping) else getattr(item, "__dict__", None)
    if not isinstance(fields, Mapping):
        return None
    text = _text_in(fields)
    return None if text is None else (text, fields)


def _text_in(fields: Mapping[str, Any]) -> str | None:
    """Return the text under the key that says so, there or one level down, else the longest that is no name."""
    texts = {_loose(key): cell for key, cell in fields.items() if isinstance(cell, str)}
    named = [texts[key] for key in _TEXT_KEYS if key in texts]
    if any(map(str.strip, named)):
        return next(filter(str.strip, named))
    for cell in fields.values():
        inner = _text_in(cell) if isinstance(cell, Mapping) and {*map(_loose, cell)} & {*_TEXT_KEYS} else None
        if inner is not None:
            return inner
    others = (cell for key, cell in texts.items() if cell.strip() and key not in _NAMES and not key.endswith("id"))
    return max(others, key=len, default=named[0] if named else None)


def _loose(key: object) -> str:
    return str(key).replace("_", "").replace("-", "").casefold()


def _doc_of(fields: Mapping[str, Any], text: str) -> str | None:
    """Return the document that a passage object names, itself or in its metadata."""
    for held in (fields, fields.get("metadata", fields.get("meta"))):
        named = held if isinstance(held, Mapping) else {}
        near = {_loose(key): cell for key, cell in named.items() if cell != text}
        for key in _DOC_KEYS:
            if isinstance(near.get(key), str | int) and near[key] != "":
                return as_id(near[key])
    return None


def text_lists(raw: Raw, name: str, report: Lossy) -> None:
    """Make a column of lists of texts; a cell that cannot be parsed is kept whole, as one text.

    What objects hold beside their text goes to two columns of lists, one entry a passage: the documents that they
    name, and the other fields.
    """
    cells = [_passages(value) for value in raw.columns[name]]
    raw.columns[name] = [texts for texts, _, _ in cells]
    report.add("unparsed", name, "kept as one text", sum(not understood for _, _, understood in cells))
    if not any(map(any, (objects for _, objects, _ in cells))):
        return
    side = name.removesuffix("_contexts")
    pairs = [list(zip(texts or (), objects, strict=False)) for texts, objects, _ in cells]
    docs = [[fields and _doc_of(fields, text) for text, fields in row] for row in pairs]
    rest = [
        [fields and {str(key): cell for key, cell in fields.items() if cell != text} for text, fields in row]
        for row in pairs
    ]
    for column, made in ((f"{side}_doc_names", docs), (f"{side}_fields", rest)):
        if any(map(any, made)) and column not in raw.columns:
            raw.columns[column] = [row if any(row) else None for row in made]
            report.add("made", column, f"what objects in {name} hold beside their text", len(made))


def _nested(raw: Raw, name: str) -> dict[int, Any]:
    """Return by row the cells of a column that hold a list or an object, or the text of a list."""
    cells = raw.columns[name]
    if isinstance(cells, pd.Series) and not (is_text(cells) and cells.str.lstrip().str.startswith("[").any()):
        return {}
    raw.columns[name] = cells = list(cells)
    kinds = (list, tuple, np.ndarray, Mapping)
    return {
        i: cell
        for i, cell in enumerate(cells)
        if (cell.lstrip().startswith("[") if isinstance(cell, str) else isinstance(cell, kinds))
    }


def joined_texts(raw: Raw, name: str, report: Lossy) -> None:
    """Make a column of texts out of lists of texts: one element is the text, several are joined by line ends."""
    joined = unparsed = 0
    for i, value in _nested(raw, name).items():
        texts, understood = (None, True) if isinstance(value, Mapping) else as_texts(value)
        unparsed += not understood
        if understood and texts is not None:
            joined += len(texts) > 1
            raw.columns[name][i] = "\n".join(texts) if texts else None
    report.add("unparsed", name, "kept as text", unparsed)
    report.add("mapped", name, "several texts joined by line ends", joined)


def last_turns(raw: Raw, name: str, report: Lossy) -> None:
    """Take the last turn of the user for a cell that holds a conversation."""
    cells = _nested(raw, name)
    turns = {i: turn for i, cell in cells.items() if (turn := _last_turn(cell)) is not None}
    for i, turn in turns.items():
        raw.columns[name][i] = turn
    report.add("mapped", name, "last turn of the user in a conversation", len(turns))
    printed = sum(isinstance(cell, str) and cell.startswith("[HumanMessage(") for cell in cells.values())
    report.add("unparsed", name, "printed conversations, kept as text", printed)


def _last_turn(cell: Any) -> str | None:
    """Return the text of the last turn of a user, None where the cell holds no conversation with one."""
    turns = parse_list(cell) or [] if isinstance(cell, str) else [cell] if isinstance(cell, Mapping) else cell
    for turn in reversed(list(turns)):
        fields = turn if isinstance(turn, Mapping) else {}
        speaker = next((fields[key] for key in ("role", "type", "speaker", "from") if key in fields), "")
        content = next((fields[key] for key in ("content", "text", "value") if key in fields), None)
        if isinstance(content, list):
            content = "\n".join(part["text"] for part in content if isinstance(part, Mapping) and "text" in part)
        if str(speaker).casefold() in ("human", "user") and isinstance(content, str) and content.strip():
            return content
    return None


def as_text(value: Any) -> str | None:
    """Return a cell of a text column as text; missing stays missing.

    Examples
    --------
    >>> as_text(42), as_text("NaN"), as_text("None"), as_text("")
    ('42', None, 'None', '')
    """
    if absent(value) or (isinstance(value, str) and value.strip() in ("NaN", "<NA>")):
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return as_id(value)


def as_id(value: Any) -> str | None:
    """Return an identifier as text: leading zeros stay, a whole float loses its ``.0``.

    Examples
    --------
    >>> as_id("007"), as_id(7), as_id(7.0), as_id("")
    ('007', '7', '7', None)
    """
    if absent(value) or value == "":
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, list | dict) else str(value)


def each(raw: Raw, name: str, read: Callable[[Any], Any], expected: str) -> None:
    """Apply a reader to a column; a ValueError names the place, what was found and what is expected."""
    out: Values = []
    for i, value in enumerate(raw.columns[name]):
        try:
            out.append(read(value))
        except (ValueError, TypeError, KeyError) as error:
            shown = repr(value)
            raise RagnbError(
                f"{raw.where(i)}column {name!r}: found {shown[:80]}{'…' * (len(shown) > 80)}, expected {expected}"
            ) from error
    raw.columns[name] = out


def case_cells(raw: Raw, report: Lossy) -> None:
    """Make the cells of the case columns what the frame contract says: texts, identifiers, lists."""
    for name in CONTEXTS:
        if name in raw.columns:
            text_lists(raw, name, report)
    if "question" in raw.columns:
        last_turns(raw, "question", report)
    if "ground_truth_answer" in raw.columns:
        joined_texts(raw, "ground_truth_answer", report)
    # Of a file of texts an empty cell is missing.
    readers: dict[str, Callable[[Any], Any]]
    readers = dict.fromkeys(TEXTS, as_text if raw.typed else lambda cell: as_text(cell) or None)
    readers |= dict.fromkeys(IDS, as_id) | ({} if raw.typed else dict.fromkeys(LISTS, _parsed))
    for name, read in readers.items():
        cells = raw.columns.get(name)
        if isinstance(cells, pd.Series):
            raw.columns[name] = cells if name in LISTS else _mapped(cells, read)
        elif cells is not None:
            nested = 0 if name in LISTS else sum(isinstance(value, dict | list) for value in cells)
            report.add("unparsed", name, "objects and lists, kept as their JSON text", nested)
            raw.columns[name] = [read(value) for value in cells]


def _mapped(cells: pd.Series[Any], read: Callable[[Any], Any]) -> Values:
    """Return what `read` makes of the cells, called once for each distinct one; of texts it changes few."""
    odd = cells == "" if read is as_id else cells.astype(str).str.strip().isin(["NaN", "<NA>"])
    if is_text(cells) and not odd.any():
        return cells
    codes, distinct = pd.factorize(cells, use_na_sentinel=False)
    made = [read(cell) for cell in distinct.tolist()]
    return pd.Series(made, dtype=TEXT).take(codes).reset_index(drop=True)


def _parsed(value: Any) -> Any:
    """Return the list or object of a cell of text; other text as it is; None for an empty cell."""
    if not isinstance(value, str) or not value.strip():
        return None if absent(value) or isinstance(value, str) else value
    if value.lstrip().startswith("{"):
        return unpacked(value, ".*")
    parsed = parse_list(value)
    return value if parsed is None else parsed
