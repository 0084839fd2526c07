"""Failures: what a table writes where a score should be, or beside it.

Each function takes the raw table, makes cells what they mean, and records a fact with its evidence.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from numbers import Real

import numpy as np
import pandas as pd

from ragnb.readers.cells import NUMBER, is_number_text
from ragnb.readers.facts import is_failure, is_technical
from ragnb.readers.kinds import (
    FAILED_WORDS,
    SAYS_NOTHING,
    Cells,
    as_number,
    count_cells,
    is_blank,
    pass_of,
    set_failed,
    set_skipped,
)
from ragnb.readers.names import loose, spaced
from ragnb.readers.raw import Lossy, Raw, Values, absent, is_text
from ragnb.readers.verdicts import VERDICT_WORDS, are_verdicts, read_verdicts
from ragnb.schema import Metric

_ERROR_COLUMNS = frozenset(map(spaced, FAILED_WORDS["columns"]))
_STATUS_COLUMNS = frozenset(map(spaced, FAILED_WORDS["status"]))
_ROW_SUCCESS = ("success", "successful", "is_success", "is_successful")


def failed_among(found: Cells, kinds: Mapping[str, str], *, declared: bool = True) -> set[str]:
    """Return the words that stand for failures among the numbers of a column; none where it is mostly words.

    Of a column that nobody declared, only words that say a failure are taken, among more numbers.

    Examples
    --------
    >>> sorted(failed_among(Cells(3, 1, 0, 0), {"Failed": "failure", "5": "number"}))
    ['Failed']
    >>> failed_among(Cells(1, 0, 0, 2), {"good": "other", "5": "number"})
    set()
    """
    strange = found.verdicts + found.others
    if "odd" in kinds.values():
        return set()
    # Where words are as many as numbers they are not the exception: the column may be of grades.
    if strange and (not declared or strange >= found.numbers):
        return set()
    if not declared and found.failures > found.numbers:
        return set()
    return {word for word, kind in kinds.items() if kind in ("failure", "verdict", "other")}


def mark_failed_words(raw: Raw, name: str, report: Lossy, *, declared: bool = True) -> None:
    """Take words among the numbers of a column for failures, as `failed_among` finds them; verdicts are scores."""
    counts, kinds = count_cells(raw.columns[name])
    if not counts.words:
        return
    if are_verdicts(name, counts):
        if declared:
            read_verdicts(raw, name, report)
        return
    words = failed_among(counts, kinds, declared=declared)
    texts = ((row, cell) for row, cell in enumerate(raw.columns[name]) if isinstance(cell, str))
    failed = {row: cell.strip() for row, cell in texts if cell in words}
    if not failed:
        return
    set_failed(raw, name, failed)
    if raw.typed and all(NUMBER.fullmatch(word.strip()) for word in _numbers_in(kinds)):
        raw.columns[name] = [as_number(cell) for cell in raw.columns[name]]
    shown = shown_words(words)
    report.add("left_out", name, f"words, read as failed scores: {shown}", len(failed))
    raw.fact(name, "blank", "failed", f"{len(failed)} cells hold words among numbers: {shown}")


def mark_minus_one(raw: Raw, metric: Metric, report: Lossy) -> None:
    """Take -1 for a failure in a metric whose scale begins at 0 or above and that has no other negative number."""
    cells = raw.columns[metric.name]
    # Of a correlation -1 is a score.
    if metric.low < 0:
        return
    if isinstance(cells, pd.Series) and not is_text(cells):
        numbers = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float)
    elif any(isinstance(cell, Real) or (cell is not None and "-1" in str(cell)) for cell in cells):
        given = [as_number(cell) for cell in cells]
        numbers = np.array([math.nan if one is None else one for one in given], dtype=float)
    else:
        return
    marks = np.flatnonzero(numbers == -1)
    # Beside -0.5 and -3, -1 is a number like them.
    if not len(marks) or (numbers < 0).sum() > len(marks):
        return
    set_failed(raw, metric.name, dict.fromkeys(marks.tolist(), "-1"))
    report.add("mapped", metric.name, "-1, which its scale does not hold: failed", len(marks))
    raw.fact(metric.name, "blank", "failed", f"{len(marks)} cells hold -1, below the scale")


def _numbers_in(kinds: Mapping[str, str]) -> list[str]:
    return [word for word, kind in kinds.items() if kind == "number"]


def shown_words(words: Iterable[str]) -> str:
    """Return a few words for a message."""
    return ", ".join(repr(word.strip()[:40]) for word in sorted(words)[:3])


def mark_broken_rows(
    raw: Raw, metrics: Iterable[str], names: Mapping[str, str], report: Lossy
) -> None:
    """Take scores for failures where the row says why: an error, a status, or a verdict without a score.

    A score that is there fails only beside what a program says that did not get through, and only where no tool
    vouches for it; other texts beside scores may be opinions of the answer, and are reported.

    Parameters
    ----------
    metrics : iterable of str
        The metrics, by their canonical names.
    names : mapping of column to canonical name
        What the columns were called in the file: ``Faithfulness_error`` stands beside ``Faithfulness``.
    """
    wanted = [name for name in metrics if name in raw.columns]
    if not wanted:
        return
    near = {loose(column): column for column in raw.columns}
    was = {ours: column for column, ours in names.items()}
    of_row = _row_errors(raw)
    # An error that left another score of the row blank is that one's.
    explains = {row for row in of_row if any(is_blank(raw.columns[name][row]) for name in wanted)}
    technical = {row: why for row, why in of_row.items() if is_technical(why)}
    technical = {row: why for row, why in technical.items() if row not in explains}
    # A judge scores an empty answer too: none beside an error is a failure, whatever its score. What the layout of
    # a tool hands over is taken as the tool says it.
    answers = raw.columns.get("answer", ())
    unanswered = {row for row, cell in enumerate(answers) if row in of_row and is_blank(cell)}
    for metric in wanted:
        column = was.get(metric, metric)
        # A tool's own layout said what this score is.
        vouched = column in raw.scales
        reasons = dict(of_row)
        broken = {} if vouched else dict(technical)
        for ending in FAILED_WORDS["endings"]:
            beside = near.get(loose(f"{column}_{ending}"))
            if beside and beside != metric:
                texts = _texts_of(raw, beside)
                reasons |= texts
                broken |= {row: why for row, why in texts.items() if is_technical(why)}
        ended = near.get(loose(f"{column}_status"))
        if ended and ended not in (metric, f"{metric}__status"):
            set_skipped(raw, metric, list(raw.columns[ended]), report)
            words = _texts_of(raw, ended)
            reasons |= {row: why for row, why in words.items() if is_failure(why)}
        for ending in VERDICT_WORDS["passed"]:
            beside = near.get(loose(f"{column}_{ending}"))
            if beside and beside != metric:
                # Where the score is blank, a verdict of false is the judge's only word, and no score.
                lost = _false_rows(raw.columns[beside])
                reasons = dict.fromkeys(lost, f"{beside}: false") | reasons
        if not reasons:
            continue
        cells = raw.columns[metric]
        status = raw.cells(f"{metric}__status")
        failed = {
            row: why
            for row, why in reasons.items()
            if (is_blank(cells[row]) or row in broken or (row in unanswered and not vouched))
            and is_blank(status[row])
        }
        if failed:
            blank = [row for row in failed if is_blank(cells[row])]
            set_failed(raw, metric, failed)
            if blank:
                report.add("mapped", metric, "failed: no score, beside an error", len(blank))
                evidence = f"{len(blank)} cells are blank beside an error"
                raw.fact(metric, "blank", "failed", evidence)
            scored = len(failed) - len(blank)
            if scored:
                report.add("mapped", metric, "failed: a score beside an error", scored)
                raw.fact(metric, "blank", "failed", f"{scored} cells have a score beside an error")
    _report_opinions(raw, wanted, {*technical} | unanswered, report)


def _report_opinions(raw: Raw, metrics: Sequence[str], failed: Set[int], report: Lossy) -> None:
    """Report rows that have scores beside a text in a column of errors, where the text is taken for no failure."""
    known = [name for name in metrics if name not in raw.scales]
    for column in list(raw.columns):
        if not known or not is_error_column(column):
            continue
        texts = {row: why for row, why in _texts_of(raw, column).items() if row not in failed}
        scored = [
            row for row in texts if any(not is_blank(raw.columns[name][row]) for name in known)
        ]
        if scored:
            shown = shown_words({texts[row] for row in scored})
            report.add("kept", column, f"texts beside scores, which count: {shown}", len(scored))


def _row_errors(raw: Raw) -> dict[int, str]:
    """Return the rows that say that something failed, and what they say."""
    reasons: dict[int, str] = {}
    for column in list(raw.columns):
        name = spaced(column)
        if name in _STATUS_COLUMNS:
            texts = _texts_of(raw, column)
            reasons = {row: why for row, why in texts.items() if is_failure(why)} | reasons
        if is_success_column(column):
            lost = _false_rows(raw.columns[column])
            reasons = dict.fromkeys(lost, f"{column}: false") | reasons
    for column in list(raw.columns):
        if is_error_column(column):
            reasons |= _texts_of(raw, column)
    return reasons


def is_error_column(column: str) -> bool:
    """Whether a column says what failed in a row, where it says something."""
    return spaced(column) in _ERROR_COLUMNS


def is_success_column(column: str) -> bool:
    """Whether a column says that a row succeeded or not."""
    return spaced(column) in _ROW_SUCCESS


def _texts_of(raw: Raw, column: str) -> dict[int, str]:
    """Return the rows in which a column says something; numbers and flags other than true say nothing."""
    cells = raw.columns[column]
    if isinstance(cells, pd.Series) and not is_text(cells):
        return {row: f"{column}: true" for row, cell in enumerate(cells) if cell is True}
    texts: dict[int, str] = {}
    for row, cell in enumerate(cells):
        if absent(cell) or isinstance(cell, Real):
            if cell is True:
                texts[row] = f"{column}: true"
            continue
        text = cell.strip() if isinstance(cell, str) else str(cell)
        word = text.casefold()
        if word in SAYS_NOTHING or is_number_text(word):
            continue
        texts[row] = f"{column}: true" if word == "true" else text
    return texts


def _false_rows(cells: Values) -> list[int]:
    return [row for row, cell in enumerate(cells) if pass_of(cell) is False]
