"""The columns of a raw table as the columns of a frame: of cases, of metrics, and others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pandas as pd

from ragnb.readers.cells import (
    CONTEXTS,
    IDS,
    LISTS,
    NESTED,
    NO_NUMBER,
    NUMBER,
    TEXTS,
    as_id,
    as_text,
)
from ragnb.readers.lists import parse_list
from ragnb.readers.names import WORDS, loose
from ragnb.readers.passages import as_texts, text_lists
from ragnb.readers.raw import Lossy, Raw, Values, absent, is_text, settle, unpacked
from ragnb.readers.scores import metric_values
from ragnb.schema import CASE_COLUMNS, METRICS, Metric

_TURN = {loose(name) for name in WORDS["conversation"]["turn"]}
_SETTLED = {*CASE_COLUMNS, *IDS, *LISTS, "gold_claim", "raw_answer"}
# What a column of texts may hold instead, if all do; leading zeros and 19 digits make an identifier.
_FORMS: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (re.compile("true|false", re.IGNORECASE), lambda word: word.casefold() == "true"),
    (re.compile(r"(?![-+]?0\d)[-+]?\d{1,18}"), int),
    (re.compile(rf"(?![-+]?(?:0\d|\d{{19}})){NUMBER.pattern}"), float),
)


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
            is_list = isinstance(cell, NESTED)
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


def count_turns(raw: Raw) -> None:
    """Add the column ``turn``, how many turns of the user a conversation has, where some have several."""
    cells = raw.columns["question"]
    has_texts = isinstance(cells, pd.Series) and is_text(cells)
    if has_texts and not cells.str.lstrip().str.startswith("[").any():
        return
    if any(loose(name) in _TURN for name in raw.columns):
        return
    is_nested = (
        cell.lstrip().startswith("[") if isinstance(cell, str) else isinstance(cell, NESTED)
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
    by_name = {m.name: m for m in metrics or () if isinstance(m, Metric)}
    named = [m for m in metrics or () if isinstance(m, str)]
    pool: Mapping[str, Metric] = METRICS
    if named:
        pool = {name: METRICS[name] for name in named if name in METRICS}
    return {name: metric for name, metric in {**pool, **by_name}.items() if name in columns}


def to_frame(
    raw: Raw, report: Lossy, metrics: Mapping[str, Metric] = MappingProxyType({})
) -> pd.DataFrame:
    """Return the columns as a frame."""
    columns = dict[str, Any]()
    for name, cells in raw.columns.items():
        if name in metrics:
            columns[name] = metric_values(raw, metrics[name], report)
        elif name in _SETTLED:
            columns[name] = settle(cells)
        else:
            columns[name] = other_values(cells, raw.typed)
    return pd.DataFrame(columns)
