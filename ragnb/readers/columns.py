"""The columns of a raw table as the columns of a frame: of cases, of metrics, and others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

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
# What a column of texts may hold instead, if all do. Leading zeros make an identifier, and so do 19 digits: not
# all such numbers fit into ``int64``, and a float would round them.
_FORMS: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (re.compile("true|false", re.IGNORECASE), lambda word: word.casefold() == "true"),
    (re.compile(r"(?![-+]?0\d)[-+]?\d{1,18}"), int),
    (re.compile(rf"(?![-+]?(?:0\d|\d{{19}})){NUMBER.pattern}"), float),
)


class UnnestedCell(NamedTuple):
    """What a nested cell becomes, and the kind of report on it: ``mapped``, ``unparsed``, or "" for none."""

    value: Any
    what: str


def unnest(
    raw: Raw, name: str, read: Callable[[Any], UnnestedCell], how: str, report: Lossy
) -> None:
    """Convert cells of a column with a list or an object, or the text of a list, to text.

    `how` says in the report what `read` makes of a cell that it maps.
    """
    if _is_flat(raw.columns[name]):
        return
    cells = list(raw.columns[name])
    counts: Counter[str] = Counter()
    for i, cell in enumerate(cells):
        if _is_nested(cell):
            cells[i], what = read(cell)
            counts[what] += 1
    raw.columns[name] = cells
    report.add("unparsed", name, "kept as text", counts["unparsed"])
    report.add("mapped", name, how, counts["mapped"])


def _is_flat(cells: Values) -> bool:
    """Whether a column is a series in which no text begins as a list, so that no cell of it need be looked at."""
    if not isinstance(cells, pd.Series):
        return False
    return not is_text(cells) or not cells.str.lstrip().str.startswith("[").any()


def _is_nested(cell: Any) -> bool:
    """Whether a cell is a list or an object, or a text that begins as a list."""
    if isinstance(cell, str):
        return cell.lstrip().startswith("[")
    return isinstance(cell, NESTED)


def joined(cell: Any) -> UnnestedCell:
    """Return the texts of a list as one, joined by line ends."""
    # An object is kept, and reported with the objects of other columns.
    if isinstance(cell, Mapping):
        return UnnestedCell(cell, "")
    texts, understood = as_texts(cell)
    if not understood:
        return UnnestedCell(cell, "unparsed")
    if texts is None:
        return UnnestedCell(cell, "")
    if not texts:
        return UnnestedCell(None, "")
    if len(texts) == 1:  # which is that text to the letter, and needs no report
        return UnnestedCell(texts[0], "")
    return UnnestedCell("\n".join(texts), "mapped")


def last_turn(cell: Any) -> UnnestedCell:
    """Return the text of the last user turn; the cell itself if it is not a conversation with one."""
    turns = user_turns(cell)
    if turns:
        return UnnestedCell(turns[-1], "mapped")
    # LangChain's messages print like this: a conversation, but not one that can be parsed.
    if isinstance(cell, str) and cell.startswith("[HumanMessage("):
        return UnnestedCell(cell, "unparsed")
    return UnnestedCell(cell, "")


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
    questions = []
    for turn in turns:
        if not isinstance(turn, Mapping):
            continue
        speaker = _first_of(turn, ("role", "type", "speaker", "from"))
        content = _first_of(turn, ("content", "text", "value"))
        # Messages of several parts, such as a text and an image.
        if isinstance(content, list):
            texts = [
                part["text"] for part in content if isinstance(part, Mapping) and "text" in part
            ]
            content = "\n".join(texts)
        is_user = str(speaker).casefold() in ("human", "user")
        if is_user and isinstance(content, str) and content.strip():
            questions.append(content)
    return questions


def _first_of(fields: Mapping[str, Any], keys: Iterable[str]) -> Any:
    """Return what an object holds under the first of some keys that it has; None where it has none of them."""
    return next((fields[key] for key in keys if key in fields), None)


def count_turns(raw: Raw) -> None:
    """Add the column ``turn``, how many turns of the user a conversation has, where some have several."""
    cells = raw.columns["question"]
    if _is_flat(cells) or any(loose(name) in _TURN for name in raw.columns):
        return
    counts = [len(user_turns(cell)) if _is_nested(cell) else 0 for cell in cells]
    if max(counts, default=0) > 1:
        raw.columns["turn"] = [n or None for n in counts]


def case_cells(raw: Raw, report: Lossy) -> None:
    """Convert the case columns to the types of the frame contract: texts, identifiers, lists."""
    for name in CONTEXTS:
        if name in raw.columns:
            text_lists(raw, name, report)
    if "question" in raw.columns:
        count_turns(raw)  # before only the last turn is left
        unnest(raw, "question", last_turn, "last turn of the user in a conversation", report)
    if "ground_truth_answer" in raw.columns:
        unnest(raw, "ground_truth_answer", joined, "several texts joined by line ends", report)

    readers: dict[str, Callable[[Any], Any]] = {}
    # Of a file of texts an empty cell is missing.
    readers |= dict.fromkeys(TEXTS, as_text if raw.typed else _present_text)
    readers |= dict.fromkeys(IDS, as_id)
    if not raw.typed:
        readers |= dict.fromkeys(LISTS, _parsed)
    for name, read in readers.items():
        cells = raw.columns.get(name)
        if cells is None or (isinstance(cells, pd.Series) and _is_read(cells, name, raw.typed)):
            continue
        if name not in LISTS:
            n_nested = sum(isinstance(cell, dict | list) for cell in cells)
            report.add("unparsed", name, "objects and lists, kept as their JSON text", n_nested)
        raw.columns[name] = [read(cell) for cell in cells]


def _present_text(cell: Any) -> str | None:
    return as_text(cell) or None


def _is_read(cells: pd.Series[Any], name: str, typed: bool) -> bool:
    """Whether no cell of a case column would change, as those of few texts do."""
    if name in LISTS:
        return typed
    # The texts that `as_id`, `as_text` and `_present_text` take for a missing cell.
    if name in IDS:
        missing_words = [""]
    elif typed:
        missing_words = ["NaN", "<NA>"]
    else:
        missing_words = ["NaN", "<NA>", ""]
    return is_text(cells) and not cells.str.strip().isin(missing_words).any()


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
    # Among numbers many words say that one is missing; a column of texts may hold `none` or `-` as a text.
    words = [
        None if cell is None or cell.strip().casefold() in NO_NUMBER else cell.strip()
        for cell in cells
    ]
    present = [word for word in words if word is not None]
    for form, read in _FORMS:
        if present and all(map(form.fullmatch, present)):
            return settle([None if word is None else read(word) for word in words])
    missing_words = ("", "NaN", "<NA>")
    return settle([None if (cell or "").strip() in missing_words else cell for cell in cells])


def declared(metrics: Sequence[Metric | str] | None, columns: Sequence[str]) -> dict[str, Metric]:
    """Return the metrics whose columns are there: the caller's, and those that ragnb knows unless names select."""
    chosen = metrics or ()
    own = {metric.name: metric for metric in chosen if isinstance(metric, Metric)}
    selected = [name for name in chosen if isinstance(name, str)]
    known: Mapping[str, Metric] = METRICS
    if selected:
        known = {name: METRICS[name] for name in selected if name in METRICS}
    # The caller's come last, so that they replace ours of the same name.
    return {name: metric for name, metric in {**known, **own}.items() if name in columns}


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
