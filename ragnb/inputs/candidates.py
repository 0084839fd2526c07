"""Columns that may be metrics though nobody declared them, told from counts, flags and settings by their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from ragnb.readers import is_measure
from ragnb.readers.failures import failure_columns
from ragnb.readers.metrics import open_facts
from ragnb.readers.names import WORDS, plain, words_in
from ragnb.readers.verdicts import name_is_verdict
from ragnb.schema import CASE_COLUMNS, METRICS, NOT_METRICS, is_operation

MAPPED = (*CASE_COLUMNS, "answerable", "gold_ids", "citations", "chunks", "ts", "ok", "repeat")
"""The columns that have a meaning of their own."""

_QUESTION = frozenset(WORDS["of_the_question"]["words"])
_OF_THE_ANSWER = frozenset(WORDS["of_the_question"]["of_the_answer"])
_QUESTION_SIGNS = tuple(WORDS["of_the_question"]["signs"])


def describes_question(name: str) -> bool:
    """Whether a column is a flag or a setting of the question or the run, which no answer earns.

    Examples
    --------
    >>> [describes_question(name) for name in ("needs_table", "language", "episode_done", "is_correct")]
    [True, True, True, False]
    """
    if plain(name) in _OF_THE_ANSWER:
        return False
    return bool(words_in(name) & _QUESTION) or any(sign in name for sign in _QUESTION_SIGNS)


def numbers_rows(values: pd.Series) -> bool:
    """Whether values only count on from one row to the next.

    Examples
    --------
    >>> numbers_rows(pd.Series([3, 4, 5])), numbers_rows(pd.Series([3, 4, 4]))
    (True, False)
    """
    return len(values) > 2 and bool(values.diff().dropna().eq(1).all())


def why_no_candidate(name: str, values: pd.Series) -> str:
    """Return why a numeric column without a declaration is not proposed as a metric: a code, empty where it is.

    Codes are ``mapped, operation, measure, question, numbering, empty``.

    Examples
    --------
    >>> numbers = pd.Series([0.5, 0.7])
    >>> [why_no_candidate(name, numbers) for name in ("helpful", "latency", "top_k", "needs_table")]
    ['', 'operation', 'measure', 'question']
    """
    if name in (*MAPPED, *NOT_METRICS) or "__" in name:
        return "mapped"
    if not len(values):
        return "empty"
    if is_operation(name):
        return "operation"
    if is_measure(name) or failure_columns([name]).get(name) in ("failed", "status"):
        return "measure"
    if describes_question(name):
        return "question"
    if numbers_rows(values):
        return "numbering"
    return ""


def is_number(cells: pd.Series) -> bool:
    """Whether a column holds numbers or flags.

    Examples
    --------
    >>> is_number(pd.Series([1.5])), is_number(pd.Series([True])), is_number(pd.Series(["a"]))
    (True, True, False)
    """
    return pd.api.types.is_numeric_dtype(cells) or pd.api.types.is_bool_dtype(cells)


def left_out(
    frame: pd.DataFrame, used: Iterable[str], facts: Iterable[Mapping[str, Any]]
) -> dict[str, str]:
    """Return the columns that a table offers as metrics and that do not count, with what is not known of each.

    Codes are ``direction, scale`` and ``declared``, of a column of which all is known but that nobody declared.

    Examples
    --------
    >>> left_out(pd.DataFrame({"faithfulness": [0.5], "tone": [4]}), ["faithfulness"], [])
    {'tone': 'declared'}
    """
    facts = list(facts)
    with_open_fact = open_facts(facts)
    known_names = [name for name in with_open_fact if name in METRICS]
    offered = dict.fromkeys([*offered_columns(frame), *_graded(frame, facts), *known_names])
    taken = set(used)
    codes = {}
    for name in offered:
        if name in taken or is_operation(name):
            continue
        fact = with_open_fact.get(name)
        codes[name] = "declared" if fact is None else str(fact["fact"])
    return codes


def _graded(frame: pd.DataFrame, facts: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the columns of grades that are no plain numbers; a verdict on the whole answer sums up the scores."""
    graded = []
    for name in dict.fromkeys(fact["metric"] for fact in facts if fact["metric"] in frame):
        cells = frame[name]
        if is_number(cells) and not pd.api.types.is_bool_dtype(cells):
            continue
        # By the name alone, as if its cells were numbers.
        if not name_is_verdict(name) and not why_no_candidate(name, pd.Series([0.0])):
            graded.append(name)
    return graded


def offered_columns(frame: pd.DataFrame) -> list[str]:
    """Return the numeric columns that may be metrics and that METRICS does not declare; flags are left aside.

    Examples
    --------
    >>> offered_columns(pd.DataFrame({"faithfulness": [0.5], "tone": [4], "latency": [2.5], "ok": [True]}))
    ['tone']
    """
    offered = []
    for name in map(str, frame.columns):
        cells = frame[name]
        if name in METRICS or not is_number(cells) or pd.api.types.is_bool_dtype(cells):
            continue
        values = pd.to_numeric(cells).astype(float).dropna()
        if not why_no_candidate(name, values):
            offered.append(name)
    return offered
