"""Cells → lists of texts, texts, identifiers, numbers; and back to CSV that is safe in a spreadsheet.

Numbers are strict for metrics, with their ranges, and careful for other columns that look like numbers.
"""

from __future__ import annotations

import ast
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError, listing
from ragnb.polars import pl
from ragnb.readers.facts import verdict_value
from ragnb.readers.names import WORDS, loose
from ragnb.readers.objects import is_object, is_print, no_text, passage_fields, printed_passages
from ragnb.readers.raw import (
    Lossy,
    Raw,
    Values,
    absent,
    column,
    is_arrow,
    is_text,
    settle,
    unpacked,
)
from ragnb.schema import CASE_COLUMNS, CLIP, METRICS, Metric, declare_step

MISSING_WORDS = {"", "nan", "none", "null", "na", "n/a", "<na>"}
_LONGEST_WORD = max(map(len, MISSING_WORDS))
# What people, spreadsheets and databases write where a number is missing; `MISSING_WORDS` where a text is.
NO_NUMBER = {
    *MISSING_WORDS,
    *"-–—/无無",
    "--",
    "#n/a",
    "#na",
    "n.a.",
    "-nan",
    "(null)",
    r"\n",
    "缺失",
}
CONTEXTS = ("retrieved_contexts", "ground_truth_contexts")
IDS = ("sample_id", "doc_name", "system", "repeat", "persona", "cluster", "item_id")
TEXTS = ("question", "answer", "ground_truth_answer")
LISTS = ("source_units", "generation_params", "chunks", "citations", "gold_ids", "passage_id")
_LITERAL = re.compile(r"""\[\s*(?:\]|[uUrRbB]?['"]|[\[{(\d]|None\b)""")
_ODD_ESCAPE = re.compile(r"""\\(?![\n\\'"abfnrtvxuUN])""")
_GLUED = re.compile(r"""['"]\s+[uUrR]?['"]""")
_QUOTED = r"""(?:'[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+")"""
_STRING = re.compile(f"[uUrR]?{_QUOTED}", re.DOTALL)
_PLAIN = re.compile(_QUOTED, re.DOTALL)
_NESTED = (list, tuple, np.ndarray, Mapping)
_PRINTED = ("('", '("', "{'", '{"', "array(")
_TURN = {loose(name) for name in WORDS["conversation"]["turn"]}
_TEXT_KEYS = WORDS["passage"]["text"]
_DOC_KEYS = WORDS["passage"]["document"]
_NAMES = {*_DOC_KEYS, "url", "uri", "link", "path", "filepath", "hash"} - {"document"}
# How far below the high end of its range a value is taken for it: 0.9999999999 is a 1.
ROUNDED = 1e-9
NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d{1,4})?")
_SIMPLE = re.compile(r"-?[0-9]{1,40}(\.[0-9]{0,40})?(e-?[0-9]{2})?")
_SETTLED = {*CASE_COLUMNS, *IDS, *LISTS, "gold_claim", "raw_answer"}
# What a column of texts may hold instead, if all do; leading zeros and 19 digits make an identifier.
_FORMS: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (re.compile("true|false", re.IGNORECASE), lambda word: word.casefold() == "true"),
    (re.compile(r"(?![-+]?0\d)[-+]?\d{1,18}"), int),
    (re.compile(rf"(?![-+]?(?:0\d|\d{{19}})){NUMBER.pattern}"), float),
)
VERDICTS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "是": 1.0, "否": 0.0}
_SAID_TRUE = "True and yes are 1, False and no 0"
_DECIMAL_COMMA = re.compile(r"[-+]?(0,\d{1,18}|\d{1,9},(?!\d{3}(?:\s{0,3}%)?$)\d{1,18})(\s{0,3}%)?")
_PERCENT = re.compile(r"[-+]?(\d{1,9}(\.\d{0,18})?|\.\d{1,18})\s{0,3}%")


def is_number_text(word: str) -> bool:
    """Whether a text is a number, also with a decimal comma or a percent sign.

    Examples
    --------
    >>> [is_number_text(word) for word in ("0.5", "0,5", "87%", "8/10", "")]
    [True, True, True, False, False]
    """
    forms = (NUMBER, _DECIMAL_COMMA, _PERCENT)
    return any(form.fullmatch(word) for form in forms)


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
    if isinstance(value, list):
        return value
    return None


def _plain_texts(text: str) -> list[str] | None:
    """Return the texts of a list as ``repr`` writes it, or JSON without escapes; None for any other list."""
    escaped = "\\" in text
    words = _PLAIN.findall(text)
    if not words or f"[{', '.join(words)}]" != text or "\n" in text or "\r" in text or "\0" in text:
        return None
    if not escaped:
        return [word[1:-1] for word in words]
    if text[1] == '"' or _ODD_ESCAPE.search(text.replace("\\\\", "")):
        return None
    with suppress(UnicodeError):
        return [
            word[1:-1].encode("latin-1", "backslashreplace").decode("unicode_escape")
            for word in words
        ]
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
    passages, understood = _passages(value)
    return passages and [text for text, _ in passages], understood


def _passages(value: Any) -> tuple[Any, bool]:
    """Return the passages of a cell as pairs of `_passage`, None where it is missing, and whether all were parsed.

    What is not understood stays as text or JSON.
    """
    if isinstance(value, str):
        text = value.strip()
        if len(text) <= _LONGEST_WORD and text.casefold() in MISSING_WORDS:
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
        found = parse_list(f"[{text}]")
    else:
        found = None
    if found and isinstance(found[0], Mapping) and {*map(loose, found[0])} & {*_TEXT_KEYS}:
        return found
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
        found = printed_passages(text) if is_print(text) else [text]
        if found is None:
            return None
        passages += map(_passage, found)
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
        return _plain_texts(cell)
    if isinstance(cell, list) and {*map(type, cell)} <= {str}:
        return cell
    return None


def _other_fields(fields: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {str(key): cell for key, cell in fields.items() if cell is not text and cell != text}


def unnest(
    raw: Raw, name: str, read: Callable[[Any], tuple[Any, str]], how: str, report: Lossy
) -> None:
    """Convert cells of a column with a list or an object, or the text of a list, to text.

    `read` returns what a cell becomes, and whether it is ``mapped`` as `how` says, ``unparsed``, or neither.
    """
    cells = raw.columns[name]
    if isinstance(cells, pd.Series) and not (
        is_text(cells) and cells.str.lstrip().str.startswith("[").any()
    ):
        return
    raw.columns[name] = cells = list(cells)
    counts: Counter[str] = Counter()
    for i, cell in enumerate(cells):
        if isinstance(cell, str):
            is_list = cell.lstrip().startswith("[")
        else:
            is_list = isinstance(cell, _NESTED)
        if is_list:
            cells[i], what = read(cell)
            counts[what] += 1
    report.add("unparsed", name, "kept as text", counts["unparsed"])
    report.add("mapped", name, how, counts["mapped"])


def joined(cell: Any) -> tuple[Any, str]:
    """Return the texts of a list as one, joined by line ends."""
    texts, understood = (None, True) if isinstance(cell, Mapping) else as_texts(cell)
    if texts is None or not understood:
        return cell, "" if understood else "unparsed"
    return "\n".join(texts) if texts else None, "mapped" if len(texts) > 1 else ""


def last_turn(cell: Any) -> tuple[Any, str]:
    """Return the text of the last user turn; the cell itself if it is not a conversation with one."""
    asked = user_turns(cell)
    if asked:
        return asked[-1], "mapped"
    return cell, "unparsed" if isinstance(cell, str) and cell.startswith("[HumanMessage(") else ""


def user_turns(cell: Any) -> list[str]:
    """Return what the user said in a conversation, turn by turn; nothing of a cell that is none.

    Examples
    --------
    >>> user_turns([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}])
    ['Hi']
    """
    turns = cell
    if isinstance(cell, str):
        turns = parse_list(cell) or []
    elif isinstance(cell, Mapping):
        turns = [cell]
    said = []
    for turn in turns:
        fields = turn if isinstance(turn, Mapping) else {}
        speaker = next(
            (fields[key] for key in ("role", "type", "speaker", "from") if key in fields), ""
        )
        content = next((fields[key] for key in ("content", "text", "value") if key in fields), None)
        if isinstance(content, list):
            content = "\n".join(
                part["text"] for part in content if isinstance(part, Mapping) and "text" in part
            )
        is_user = str(speaker).casefold() in ("human", "user")
        if is_user and isinstance(content, str) and content.strip():
            said.append(content)
    return said


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
    return as_id(value.tolist() if isinstance(value, np.ndarray) else value)


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
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def each(raw: Raw, name: str, read: Callable[[Any], Any], expected: str) -> None:
    """Apply a parser to a column; an error names the place, what was found and what is expected."""
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


def count_turns(raw: Raw) -> None:
    """Add the column ``turn``, how many turns of the user a conversation has, where some have several."""
    cells = raw.columns["question"]
    has_texts = isinstance(cells, pd.Series) and is_text(cells)
    if has_texts and not cells.str.lstrip().str.startswith("[").any():
        return
    if any(loose(name) in _TURN for name in raw.columns):
        return
    is_nested = (
        cell.lstrip().startswith("[") if isinstance(cell, str) else isinstance(cell, _NESTED)
        for cell in cells
    )
    counts = [
        len(user_turns(cell)) if nested else 0
        for cell, nested in zip(cells, is_nested, strict=True)
    ]
    if max(counts, default=0) > 1:
        raw.columns["turn"] = [n or None for n in counts]


def case_cells(raw: Raw, report: Lossy) -> None:
    """Convert the case columns to the types of the frame contract: texts, identifiers, lists."""
    for name in filter(raw.columns.__contains__, CONTEXTS):
        text_lists(raw, name, report)
    if "question" in raw.columns:
        count_turns(raw)
        unnest(raw, "question", last_turn, "last turn of the user in a conversation", report)
    if "ground_truth_answer" in raw.columns:
        unnest(raw, "ground_truth_answer", joined, "several texts joined by line ends", report)

    def present_text(cell: Any) -> str | None:
        return as_text(cell) or None

    # Of a file of texts an empty cell is missing.
    as_read = as_text if raw.typed else present_text
    readers = dict.fromkeys(TEXTS, as_read) | dict.fromkeys(IDS, as_id)
    if not raw.typed:
        readers |= dict.fromkeys(LISTS, _parsed)
    for name, read in readers.items():
        cells = raw.columns.get(name)
        if cells is not None and not (
            isinstance(cells, pd.Series) and _is_read(cells, name, raw.typed)
        ):
            if name in LISTS:
                nested = 0
            else:
                nested = sum(isinstance(value, dict | list) for value in cells)
            report.add("unparsed", name, "objects and lists, kept as their JSON text", nested)
            raw.columns[name] = [read(value) for value in cells]


def _is_read(cells: pd.Series[Any], name: str, typed: bool) -> bool:
    """Whether no cell of a case column would change, as those of few texts do."""
    if name in LISTS:
        return typed
    if name in IDS:
        words = [""]
    else:
        words = ["NaN", "<NA>", *[""] * (not typed)]
    return is_text(cells) and not cells.str.strip().isin(words).any()


def _parsed(value: Any) -> Any:
    """Return the list or object of a cell of text; other text as it is; None for an empty cell."""
    if not isinstance(value, str) or not value.strip():
        if absent(value) or isinstance(value, str):
            return None
        return value
    if value.lstrip().startswith("{"):
        return unpacked(value, ".*")
    parsed = parse_list(value)
    if parsed is None:
        return value
    return parsed


def metric_values(raw: Raw, metric: Metric, report: Lossy) -> pd.Series[float]:
    """Return a metric's column as floats in its range; missing cells are NaN.

    Raises
    ------
    RagnbError
        For a text that is not a number, and for a value outside the range, with the place.

    Examples
    --------
    >>> raw = Raw({"faithfulness": ["0.5", "True", "", "0.9999999999"]}, "csv")
    >>> metric_values(raw, Metric("faithfulness"), Lossy()).tolist()
    [0.5, 1.0, nan, 1.0]
    """
    cells = raw.columns[metric.name]
    whole = column(cells)
    if isinstance(whole, pd.Series) and not is_text(whole) and not np.isinf(whole).any():
        values = whole.to_numpy(dtype=float, copy=True)
        report.add("mapped", metric.name, _SAID_TRUE, len(cells) * (whole.dtype == bool))
    elif (
        is_arrow(cells)
        and (text := pl.Series(cells)).str.contains(f"^(?:{_SIMPLE.pattern})?$").all()
    ):
        values = text.cast(pl.Float64, strict=False).to_numpy(writable=True)
    elif set(map(type, cells)) == {str} and all(map(_SIMPLE.fullmatch, filter(None, cells))):
        values = np.array([float(cell or "nan") for cell in cells])
    else:
        values = np.array(_numbers(raw, metric, report), dtype=float)
    for end, near in near_ends(values, metric):
        report.add("clipped", metric.name, f"within {CLIP:g} of {end:g}", int(near.sum()))
        values[near] = end
    outside = (values < metric.low) | (values > metric.high)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        present = values[~np.isnan(values)]
        low, high = raw.spans.get(metric.name, (present.min(), present.max()))
        mixed = two_scales(present)
        step = mixed or declare_step(metric.name, low, high)
        raise RagnbError(
            f"{raw.where(row)}column {metric.name!r}: {values[row]:.12g} lies outside "
            f"{metric.low:g}..{metric.high:g} ({int(outside.sum())} of {len(present)} values do); {step}"
        )
    if metric.high > 1:
        mixed = two_scales(values[~np.isnan(values)])
        report.add("kept", metric.name, mixed, len(values) * bool(mixed))
    return pd.Series(values)


def two_scales(values: npt.NDArray[np.float64]) -> str:
    """Return what says that scores are on two scales, some within 0 and 1 and some as percent; else nothing.

    Examples
    --------
    >>> two_scales(np.array([0.7, 0.8, 0.0, 75.0, 81.0]))
    'values on two scales: 3 from 0 to 0.8 and 2 from 75 to 81; bring them on one scale, such as 0.6 for 60'
    >>> two_scales(np.array([0.5, 2.0, 7.5])), two_scales(np.array([0.0, 50.0, 100.0]))
    ('', '')
    """
    small = values[(values >= 0) & (values <= 1)]
    large = values[values > 1]
    fractions = int(((small > 0) & (small < 1)).sum())
    least = max(2, _FEW_OF_A_SCALE * len(values))
    few = fractions < least or len(large) < least
    if few or large.min() < _GAP or large.max() > _MOST_PERCENT or values.min() < 0:
        return ""
    return (
        f"values on two scales: {len(small)} from {small.min():g} to {small.max():g} and {len(large)} from "
        f"{large.min():g} to {large.max():g}; bring them on one scale, such as 0.6 for 60"
    )


# A scale of more than 1 that is used has values between 1 and this; of another scale there are more than a few.
_GAP = 3
_FEW_OF_A_SCALE = 0.05
_MOST_PERCENT = 100


def near_ends(values: Any, metric: Metric) -> list[tuple[float, Any]]:
    """Return the ends of a metric's range, and which values, of an array or a query, are taken for each."""
    low = float(metric.low)
    high = float(metric.high)
    below = (values < low) & (values >= low - CLIP)
    above = (values != high) & (values >= high - ROUNDED) & (values <= high + CLIP)
    return [(end, near) for end, near in ((low, below), (high, above)) if math.isfinite(end)]


def _numbers(raw: Raw, metric: Metric, report: Lossy) -> list[float]:
    """Return the numbers of cells, and list those in unusual notation.

    A comma is a decimal one only in a file of texts, and where it can set off no thousands. Percent signs count
    where every number has one, so that no column is of two scales.
    """
    name = metric.name
    given = raw.columns[metric.name]
    cells = [
        unicodedata.normalize("NFKC", cell).strip() if isinstance(cell, str) else cell
        for cell in given
    ]
    commas = [
        i
        for i, cell in enumerate(cells)
        if isinstance(cell, str) and _DECIMAL_COMMA.fullmatch(cell)
    ]
    for i in commas * (not raw.typed):
        cells[i] = cells[i].replace(",", ".")
    report.add("mapped", name, "decimal commas", len(commas) * (not raw.typed))
    words = [str(cell).casefold() if isinstance(cell, str | bool) else None for cell in cells]
    report.add("mapped", name, _SAID_TRUE, sum(w in VERDICTS for w in words))
    marks = [word for word in words if word in NO_NUMBER - MISSING_WORDS]
    report.add("mapped", name, f"missing: {listing(dict.fromkeys(marks))}", len(marks))
    present = [i for i, cell in enumerate(cells) if not absent(cell) and words[i] not in NO_NUMBER]
    verdicts = [verdict_value(cells[i]) for i in present]
    if None not in verdicts:  # in words of merit too, as PASS and FAIL
        values = [math.nan] * len(cells)
        for i, verdict in zip(present, verdicts, strict=True):
            values[i] = verdict[0] if verdict else math.nan
        return values
    if metric.high in (1, 100) and all(_PERCENT.fullmatch(str(cells[i])) for i in present):
        for i in present:
            cells[i] = float(Decimal(cells[i].rstrip("% ")) / (1 if metric.high == 100 else 100))
        report.add(
            "mapped",
            name,
            f"percent signs, read as {metric.low:g} to {metric.high:g}",
            len(present),
        )
    values = [math.nan] * len(cells)
    for i in present:
        cell = cells[i]
        word = words[i]
        number = isinstance(cell, Real | Decimal | np.bool_) or (
            word is not None and NUMBER.fullmatch(word)
        )
        if word in VERDICTS:
            values[i] = VERDICTS[word]
        elif number:
            values[i] = float(cell)
        else:
            values[i] = math.inf
        if math.isinf(values[i]):
            is_percent = str(given[i]).strip().endswith("%")
            if is_percent:
                step = "; write 0.87 for 87%"
            else:
                step = (
                    "; write a number in its place, or keep the column as text: "
                    f"columns={{{name!r}: '{name}_text'}}"
                )
            raise RagnbError(
                f"{raw.where(i)}column {name!r}: found {repr(given[i])[:80]}, "
                f"expected a number or an empty cell{step}"
            )
    return values


def other_values(cells: Values, typed: bool) -> pd.Series[Any]:
    """Return an undeclared column: numbers and booleans are parsed only if all cells are such.

    Leading zeros make an identifier, so such a column stays text.

    Examples
    --------
    >>> other_values(["1", "", "2.5"], False).tolist(), other_values(["007", "1"], False).tolist()
    ([1.0, nan, 2.5], ['007', '1'])
    """
    if typed or not set(map(type, cells)) <= {str, type(None)}:
        return settle(cells)
    words = [
        None if cell is None or cell.strip().casefold() in NO_NUMBER else cell.strip()
        for cell in cells
    ]
    present = [word for word in words if word is not None]
    for form, read in _FORMS:
        if present and all(map(form.fullmatch, present)):
            return settle([word and read(word) for word in words])
    return settle([None if (cell or "").strip() in ("", "NaN", "<NA>") else cell for cell in cells])


def declared(metrics: Sequence[Metric | str] | None, columns: Sequence[str]) -> dict[str, Metric]:
    """Return the metrics whose columns are there: the caller's, and those that ragnb knows unless names select."""
    own = {m.name: m for m in metrics or () if isinstance(m, Metric)}
    named = [m for m in metrics or () if isinstance(m, str)]
    pool: Mapping[str, Metric] = METRICS
    if named:
        pool = {name: METRICS[name] for name in named if name in METRICS}
    return {name: metric for name, metric in {**pool, **own}.items() if name in columns}


def to_frame(
    raw: Raw,
    report: Lossy,
    origin: Mapping[str, object],
    metrics: Mapping[str, Metric] = MappingProxyType({}),
) -> pd.DataFrame:
    """Return the columns as a frame that remembers where it came from and what became of it."""
    columns = dict[str, Any]()
    for name, cells in raw.columns.items():
        if name in metrics:
            columns[name] = metric_values(raw, metrics[name], report)
        elif name in _SETTLED:
            columns[name] = settle(cells)
        else:
            columns[name] = other_values(cells, raw.typed)
    frame = pd.DataFrame(columns)
    frame.attrs |= {"lossy": report.rows, "source": {**origin, "rows": len(frame)}}
    return frame
