"""Which answers of a log failed: by an error, a flag, a status or the reason why a model stopped."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragnb.readers.names import loose, plain, rename_columns
from ragnb.readers.raw import Lossy, Raw, absent

NESTED = tomllib.loads(Path(__file__).with_name("nested.toml").read_text(encoding="utf-8"))
_WORDS = {kind: {*words} for kind, words in NESTED["outcome"].items()}
_KINDS = {name: kind for kind, names in NESTED["failure"].items() for name in names}
# With ``.0``, as pandas makes floats of a column of codes in which some are missing.
_HTTP = re.compile(r"[1-5]\d\d(\.0)?")
# Words of columns that say when a call was made, or how long it took.
_TIMES = frozenset(NESTED["times"]["words"])
_LONGEST = 300  # characters of an error that are shown


def failure_columns(columns: Collection[str]) -> dict[str, str]:
    """Return the columns that say whether an answer failed, and how: ``error, ok, failed, status, finish``.

    Examples
    --------
    >>> failure_columns(["question", "Error_Message", "ok", "finish_reason"])
    {'Error_Message': 'error', 'ok': 'ok', 'finish_reason': 'finish'}
    """
    return {name: _KINDS[loose(name)] for name in columns if loose(name) in _KINDS}


def outcomes(
    columns: Mapping[str, Sequence[Any]], answers: Sequence[Any]
) -> tuple[list[bool | None], list[str | None]] | None:
    """Return of each answer whether it came, and the words of the error; None if no column speaks of it.

    A column speaks if a cell of it can be understood: a status ``open`` in every row is no outcome. An error
    beside an answer and a flag or status that says that all went well was tried again: the answer came.

    Parameters
    ----------
    columns : mapping of name to cells
        Those of `failure_columns`.
    answers : sequence

    Examples
    --------
    >>> outcomes({"error": ["timeout", None]}, [None, "Yes."])
    ([False, True], ['timeout', None])
    >>> outcomes({"status": [200, 503]}, ["Yes.", ""])
    ([True, False], [None, 'status 503'])
    >>> outcomes({"status": ["open", "open"]}, ["Yes.", "No."]) is None
    True
    """
    kinds = failure_columns(columns)
    cells = {name: list(columns[name]) for name in kinds}
    # Any words in a column of errors are understood, and its empty cells say that there was no error.
    speaking = [
        name
        for name, kind in kinds.items()
        if kind == "error" or any(_good(cell, kind) is not None for cell in cells[name])
    ]
    if not speaking:
        return None
    came: list[bool | None] = []
    words: list[str | None] = []
    for row, answer in enumerate(answers):
        error: str | None = None
        bad: str | None = None
        good = False
        for name in speaking:
            kind = kinds[name]
            cell = cells[name][row]
            if kind == "error":
                error = error or _error(cell, name)
                continue
            is_good = _good(cell, kind)
            good = good or bool(is_good)
            if is_good is False:
                bad = _bad(cell, kind, name)
        has_answer = isinstance(answer, str) and answer.strip() != ""
        tried_again = error is not None and good and has_answer
        failed = bad is not None or (error is not None and not tried_again)
        came.append(not failed)
        words.append(error or bad)
    return came, words


def tells_if_answered(cells: Sequence[Any], name: str, answers: Sequence[Any]) -> bool:
    """Return whether a flag is false in just those rows that have no answer: it speaks of calls, not of answers.

    Examples
    --------
    >>> tells_if_answered([True, False], "success", ["Yes.", None])
    True
    >>> tells_if_answered([True, False], "success", ["Yes.", "No."])
    False
    """
    kind = failure_columns([name]).get(name)
    if kind not in ("ok", "failed"):
        return False
    is_false = [_good(cell, kind) is False for cell in cells]
    lacks_answer = [_is_blank(answer) for answer in answers]
    return any(is_false) and is_false == lacks_answer


def name_log_flag(raw: Raw, report: Lossy) -> None:
    """Call a column ``ok`` that says, in a log, whether the answer came: a ``success`` of the call is no score.

    A log has no reference answers, and has an answer missing where the flag says no, or times beside the answers.

    Examples
    --------
    >>> raw = Raw({"answer": ["Yes.", None], "success": [1, 0]}, "jsonl")
    >>> name_log_flag(raw, Lossy())
    >>> raw.columns["ok"]
    [True, False]
    """
    flags = [name for name, kind in failure_columns(raw.columns).items() if kind == "ok"]
    if len(flags) != 1 or "ok" in raw.columns or "answer" not in raw.columns:
        return
    # Beside a reference the flag may be a verdict on the answer.
    if "ground_truth_answer" in raw.columns:
        return
    flag = flags[0]
    cells = [_good(cell, "ok") for cell in raw.columns[flag]]
    if None in cells:
        return
    answers = raw.columns["answer"]
    lost_answer = any(
        not came and _is_blank(answer) for came, answer in zip(cells, answers, strict=True)
    )
    has_times = any({*plain(name).split("_")} & _TIMES for name in raw.columns)
    if lost_answer or has_times:
        raw.columns[flag] = cells
        rename_columns(raw, {flag: "ok"}, report)


def _is_blank(answer: Any) -> bool:
    return absent(answer) or not str(answer).strip()


def error_words(
    columns: Mapping[str, Sequence[Any]], names: Collection[str], row: int
) -> str | None:
    """Return the words of the first error in a row, also of one after which the answer came.

    Examples
    --------
    >>> error_words({"error": ["none", "timeout"]}, ["error"], 1)
    'timeout'
    """
    errors = (_error(columns[name][row], name) for name in names)
    return next(filter(None, errors), None)


def _error(cell: Any, name: str) -> str | None:
    """Return the words of a cell in a column of errors, the column's name for a flag; None for no error."""
    if cell is True:
        return name
    if absent(cell) or str(cell).strip().casefold() in _WORDS["none"]:
        return None
    if isinstance(cell, Mapping):
        # An object without any of these is shown whole.
        message = next((cell[key] for key in ("message", "type", "code") if cell.get(key)), cell)
        return str(message)[:_LONGEST]
    return str(cell).strip()[:_LONGEST]


def _good(cell: Any, kind: str) -> bool | None:
    """Return whether a flag, a status or a reason says that all went well; None where it says nothing."""
    if isinstance(cell, Mapping):
        cell = next(
            (cell[key] for key in ("status_code", "statusCode", "code") if key in cell), None
        )
    if absent(cell):
        return None
    word = str(cell).strip().casefold()
    if kind in ("ok", "failed"):
        if word in _WORDS["yes"]:
            flag = True
        elif word in _WORDS["no"]:
            flag = False
        else:
            flag = None
        if flag is None or kind == "ok":
            return flag
        return not flag
    if word in _WORDS["bad"]:
        return False
    if kind == "finish":
        if word in _WORDS["stopped"]:
            return True
        return None
    if _HTTP.fullmatch(word):
        return int(float(word)) < 400
    if word in _WORDS["good"]:
        return True
    return None


def _bad(cell: Any, kind: str, name: str) -> str:
    """Return the words for what went wrong: the name of a flag, and of a status or a reason also its value."""
    if kind in ("ok", "failed"):
        return name
    return f"{name} {str(cell).strip()[:_LONGEST]}"
