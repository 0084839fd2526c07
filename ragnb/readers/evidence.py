"""Failures: what a table writes where a score should be, or beside it.

Each function takes the raw table, makes cells what they mean, and records a fact with its evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from numbers import Real
from typing import Any, NamedTuple

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
    # What begins as a number, such as 8/10, may be a score: reading the column refuses it.
    if "odd" in kinds.values():
        return set()
    # Where words are as many as numbers they are not the exception: the column may be of grades.
    other_words = found.verdicts + found.others
    if other_words and (not declared or other_words >= found.numbers):
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
    failed: dict[int, str] = {}
    for row, cell in enumerate(raw.columns[name]):
        if isinstance(cell, str) and cell in words:
            failed[row] = cell.strip()
    if not failed:
        return
    set_failed(raw, name, failed)
    # In a frame the words made texts of the numbers, and a column of texts is no candidate for a metric.
    number_texts = [word for word, kind in kinds.items() if kind == "number"]
    if raw.typed and all(NUMBER.fullmatch(word.strip()) for word in number_texts):
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
    elif any(_may_be_minus_one(cell) for cell in cells):
        # `as_number` returns None for what is no number, and NumPy makes NaN of it.
        numbers = np.array([as_number(cell) for cell in cells], dtype=float)
    else:
        return
    minus_one_rows = np.flatnonzero(numbers == -1)
    n_negative = (numbers < 0).sum()
    # Beside -0.5 and -3, -1 is a number like them.
    if not len(minus_one_rows) or n_negative > len(minus_one_rows):
        return
    n = len(minus_one_rows)
    set_failed(raw, metric.name, dict.fromkeys(minus_one_rows.tolist(), "-1"))
    report.add("mapped", metric.name, "-1, which its scale does not hold: failed", n)
    raw.fact(metric.name, "blank", "failed", f"{n} cells hold -1, below the scale")


def _may_be_minus_one(cell: Any) -> bool:
    """Whether a cell is worth parsing; texts without a -1 in them need not be."""
    return isinstance(cell, Real) or (cell is not None and "-1" in str(cell))


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
    columns_by_name = {loose(column): column for column in raw.columns}
    original_names = {ours: column for column, ours in names.items()}
    row_errors = _row_errors(raw)
    # An error that left another score of the row blank is that one's.
    explained = {
        row for row in row_errors if any(is_blank(raw.columns[name][row]) for name in wanted)
    }
    technical = {row for row, why in row_errors.items() if is_technical(why)} - explained
    # A judge scores an empty answer too: none beside an error is a failure, whatever its score. What the layout of
    # a tool hands over is taken as the tool says it.
    answers = raw.columns.get("answer", ())
    unanswered = {row for row, cell in enumerate(answers) if row in row_errors and is_blank(cell)}
    for metric in wanted:
        column = original_names.get(metric, metric)
        # A tool's own layout said what this score is.
        vouched = column in raw.scales
        errors = _errors_of_metric(raw, metric, column, columns_by_name, row_errors, report)
        if not errors.reasons:
            continue
        broken = errors.technical if vouched else errors.technical | technical | unanswered
        cells = raw.columns[metric]
        status = raw.cells(f"{metric}__status")
        # A status that is there already comes from the tool, or from a word in the cell.
        failed = {
            row: why
            for row, why in errors.reasons.items()
            if is_blank(status[row]) and (is_blank(cells[row]) or row in broken)
        }
        if failed:
            _set_broken(raw, metric, failed, report)
    _report_opinions(raw, wanted, technical | unanswered, report)


class _MetricErrors(NamedTuple):
    """The rows in which something says that a metric failed, with its words, and those where a program says it."""

    reasons: dict[int, str]
    technical: set[int]


def _errors_of_metric(
    raw: Raw,
    metric: str,
    column: str,
    columns_by_name: Mapping[str, str],
    row_errors: Mapping[int, str],
    report: Lossy,
) -> _MetricErrors:
    """Return what the columns beside a metric, such as ``<column>_error``, and the errors of rows say of it.

    The words of a column of its own count more than those of the row, and a verdict without words the least. Only
    errors of its own columns are listed as technical.
    """
    reasons = dict(row_errors)
    technical: set[int] = set()
    for ending in FAILED_WORDS["endings"]:
        beside = columns_by_name.get(loose(f"{column}_{ending}"))
        if beside and beside != metric:
            texts = _texts_of(raw, beside)
            reasons |= texts
            technical |= {row for row, why in texts.items() if is_technical(why)}
    status_column = columns_by_name.get(loose(f"{column}_status"))
    if status_column and status_column not in (metric, f"{metric}__status"):
        set_skipped(raw, metric, list(raw.columns[status_column]), report)
        texts = _texts_of(raw, status_column)
        reasons |= {row: why for row, why in texts.items() if is_failure(why)}
    for ending in VERDICT_WORDS["passed"]:
        beside = columns_by_name.get(loose(f"{column}_{ending}"))
        if beside and beside != metric:
            # Where the score is blank, a verdict of false is the judge's only word, and no score.
            not_passed = _false_rows(raw.columns[beside])
            reasons = dict.fromkeys(not_passed, f"{beside}: false") | reasons
    return _MetricErrors(reasons, technical)


def _set_broken(raw: Raw, metric: str, failed: Mapping[int, str], report: Lossy) -> None:
    """Set rows of a metric to ``failed``, and report apart those that have no score and those that lose theirs."""
    cells = raw.columns[metric]
    n_blank = sum(is_blank(cells[row]) for row in failed)
    n_scored = len(failed) - n_blank
    set_failed(raw, metric, failed)
    if n_blank:
        report.add("mapped", metric, "failed: no score, beside an error", n_blank)
        raw.fact(metric, "blank", "failed", f"{n_blank} cells are blank beside an error")
    if n_scored:
        report.add("mapped", metric, "failed: a score beside an error", n_scored)
        raw.fact(metric, "blank", "failed", f"{n_scored} cells have a score beside an error")


def _report_opinions(raw: Raw, metrics: Sequence[str], failed: Set[int], report: Lossy) -> None:
    """Report rows that have scores beside a text in a column of errors, where the text is taken for no failure."""
    # The tool vouches for the scores of its own layout.
    unvouched = [name for name in metrics if name not in raw.scales]
    if not unvouched:
        return
    for column in filter(is_error_column, list(raw.columns)):
        opinions: list[str] = []
        for row, why in _texts_of(raw, column).items():
            has_score = any(not is_blank(raw.columns[name][row]) for name in unvouched)
            if has_score and row not in failed:
                opinions.append(why)
        if opinions:
            shown = shown_words(set(opinions))
            report.add("kept", column, f"texts beside scores, which count: {shown}", len(opinions))


def _row_errors(raw: Raw) -> dict[int, str]:
    """Return the rows that say that something failed, and what they say."""
    reasons: dict[int, str] = {}
    for column in list(raw.columns):
        if spaced(column) in _STATUS_COLUMNS:
            texts = _texts_of(raw, column)
            reasons = {row: why for row, why in texts.items() if is_failure(why)} | reasons
        if is_success_column(column):
            failed_rows = _false_rows(raw.columns[column])
            reasons = dict.fromkeys(failed_rows, f"{column}: false") | reasons
    # Columns of errors come last, because their words say more than a status or a flag.
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
    # A series of flags or numbers has no texts.
    if isinstance(cells, pd.Series) and not is_text(cells):
        return {row: f"{column}: true" for row, cell in enumerate(cells) if cell is True}
    texts: dict[int, str] = {}
    for row, cell in enumerate(cells):
        if absent(cell) or isinstance(cell, Real):
            if cell is True:
                texts[row] = f"{column}: true"
            continue
        text = str(cell)  # also of an object, as some tools write an error
        if isinstance(cell, str):
            text = cell.strip()
        word = text.casefold()
        if word in SAYS_NOTHING or is_number_text(word):
            continue
        # A flag has no words but the name of its column.
        if word == "true":
            text = f"{column}: true"
        texts[row] = text
    return texts


def _false_rows(cells: Values) -> list[int]:
    return [row for row, cell in enumerate(cells) if pass_of(cell) is False]
