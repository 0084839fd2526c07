"""What a table says of its metrics beside their scores: verdicts, failures and scales, and the facts that follow.

Each function takes the raw table, makes cells what they mean, and records a fact with its evidence.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence, Set
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ragnb.readers.cells import NO_NUMBER, NUMBER, is_number_text
from ragnb.readers.facts import (
    SILENT,
    WORDS,
    Direction,
    count_verdicts,
    direction_of_name,
    fold_word,
    is_failure,
    is_technical,
    name_tokens,
    verdict_value,
)
from ragnb.readers.failures import tells_if_answered
from ragnb.readers.names import loose, spaced
from ragnb.readers.raw import Lossy, Raw, Values, absent, is_text
from ragnb.schema import CASE_COLUMNS, NOT_METRICS, Metric

LONGEST_REASON = 200
_FAILED = WORDS["failed"]
_VERDICT = WORDS["verdict"]
SAYS_NOTHING = frozenset(_FAILED["nothing"])
_SKIPPED = frozenset(map(fold_word, _FAILED["skipped"]))
_ERROR_COLUMNS = frozenset(map(spaced, _FAILED["columns"]))
_STATUS_COLUMNS = frozenset(map(spaced, _FAILED["status"]))
_VERDICT_NAMES = frozenset(map(spaced, _VERDICT["names"]))
_LOOSE_VERDICT_NAMES = frozenset(map(loose, _VERDICT_NAMES))
_REFERENCE = frozenset(_VERDICT["reference"])
_ROW_SUCCESS = ("success", "successful", "is_success", "is_successful")


# Failures: what stands where a score should be, or beside it


class Cells(NamedTuple):
    """How many cells of a column hold a number, a word for a failure, a verdict, and another word."""

    numbers: int
    failures: int
    verdicts: int
    others: int

    @property
    def words(self) -> int:
        """How many hold a word."""
        return self.failures + self.verdicts + self.others


def kind_of_cell(cell: Any) -> str:
    """Return what a cell of a metric is: ``blank, number, odd, failure, verdict`` or ``other``.

    What begins as a number and is none is ``odd``: it may mean two things, and is nobody's word for a failure.

    Examples
    --------
    >>> [kind_of_cell(cell) for cell in (0.5, "0.5", "", "Failed", "PASS", "8/10", "see below")]
    ['number', 'number', 'blank', 'failure', 'verdict', 'odd', 'other']
    """
    if absent(cell):
        return "blank"
    if isinstance(cell, Real | Decimal | np.bool_):
        return "number"
    if not isinstance(cell, str):
        return "odd"
    word = unicodedata.normalize("NFKC", cell).strip().casefold()
    if word in NO_NUMBER:
        return "blank"
    if is_number_text(word):
        return "number"
    verdict = verdict_value(cell)
    if verdict is not None and not verdict[1]:
        return "number"  # yes and no are 1 and 0 wherever they stand
    if is_failure(cell):
        return "failure"
    if verdict is not None:
        return "verdict"
    begins_as_number = word[:1].isdigit() or word[:1] in "+-.½¼¾[{" or word.startswith("inf")
    if begins_as_number:
        return "odd"
    return "other"


def count_cells(cells: Values) -> tuple[Cells, dict[str, str]]:
    """Return how many cells of each kind a column holds, and the kind of each distinct text."""
    if isinstance(cells, pd.Series) and not is_text(cells):
        return Cells(int(cells.notna().sum()), 0, 0, 0), {}
    kinds: dict[str, str] = {}
    counts: dict[str, int] = {}
    for cell in cells:
        if isinstance(cell, str):
            kind = kinds.get(cell)
            if kind is None:
                kind = kinds[cell] = kind_of_cell(cell)
        else:
            kind = kind_of_cell(cell)
        counts[kind] = counts.get(kind, 0) + 1
    found = Cells(
        counts.get("number", 0),
        counts.get("failure", 0),
        counts.get("verdict", 0),
        counts.get("other", 0) + counts.get("odd", 0),
    )
    return found, kinds


def set_failed(raw: Raw, metric: str, reasons: Mapping[int, str]) -> None:
    """Set the status of some rows of a metric to ``failed``, with the reason, and clear their cells."""
    size = len(raw)
    cells = list(raw.columns[metric])
    status = list(raw.cells(f"{metric}__status"))
    reason = list(raw.cells(f"{metric}__reason")) if size else []
    for row, why in reasons.items():
        cells[row] = None
        status[row] = "failed"
        if _blank(reason[row]):
            reason[row] = why[:LONGEST_REASON]
    raw.columns[metric] = cells
    raw.columns[f"{metric}__status"] = status
    raw.columns[f"{metric}__reason"] = reason


def set_skipped(raw: Raw, metric: str, statuses: Sequence[Any], report: Lossy) -> None:
    """Make blank cells of a metric ``not_applicable`` where a status says that they were skipped."""
    cells = raw.columns.get(metric, ())
    before = raw.cells(f"{metric}__status")
    skipped = [
        row
        for row, (cell, status) in enumerate(zip(cells, statuses, strict=False))
        if _blank(cell) and _blank(before[row]) and fold_word(str(status)) in _SKIPPED
    ]
    if not skipped:
        return
    status = list(before)
    for row in skipped:
        status[row] = "not_applicable"
    raw.columns[f"{metric}__status"] = status
    report.add(
        "mapped", metric, "not applicable: its status says that it was skipped", len(skipped)
    )
    raw.fact(metric, "blank", "not_applicable", f"{len(skipped)} cells have a status of skipped")


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
    if strange and (not declared or strange >= found.numbers):
        return set()
    if not declared and found.failures > found.numbers:
        return set()
    return {word for word, kind in kinds.items() if kind in ("failure", "verdict", "other")}


def are_verdicts(name: str, found: Cells) -> bool:
    """Whether the words of a column are verdicts, beside no number."""
    told = found.verdicts > 0 or name_is_verdict(name)
    return told and found.words > 0 and not found.numbers and not found.others


def mark_failed_words(raw: Raw, name: str, report: Lossy, *, declared: bool = True) -> None:
    """Take words among the numbers of a column for failures, as `failed_among` finds them; verdicts are scores."""
    found, kinds = count_cells(raw.columns[name])
    if not found.words:
        return
    if are_verdicts(name, found):
        if declared:
            read_verdicts(raw, name, report)
        return
    words = failed_among(found, kinds, declared=declared)
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
    explains = {row for row in of_row if any(_blank(raw.columns[name][row]) for name in wanted)}
    technical = {row: why for row, why in of_row.items() if is_technical(why)}
    technical = {row: why for row, why in technical.items() if row not in explains}
    # A judge scores an empty answer too: none beside an error is a failure, whatever its score. What the layout of
    # a tool hands over is taken as the tool says it.
    answers = raw.columns.get("answer", ())
    unanswered = {row for row, cell in enumerate(answers) if row in of_row and _blank(cell)}
    for metric in wanted:
        column = was.get(metric, metric)
        vouched = column in raw.scales
        reasons = dict(of_row)
        broken = {} if vouched else dict(technical)
        for ending in _FAILED["endings"]:
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
        for ending in _VERDICT["passed"]:
            beside = near.get(loose(f"{column}_{ending}"))
            if beside and beside != metric:
                lost = _false_rows(raw.columns[beside])
                reasons = dict.fromkeys(lost, f"{beside}: false") | reasons
        if not reasons:
            continue
        cells = raw.columns[metric]
        status = raw.cells(f"{metric}__status")
        failed = {
            row: why
            for row, why in reasons.items()
            if (_blank(cells[row]) or row in broken or (row in unanswered and not vouched))
            and _blank(status[row])
        }
        if failed:
            blank = [row for row in failed if _blank(cells[row])]
            set_failed(raw, metric, failed)
            if blank:
                report.add("mapped", metric, "failed: no score, beside an error", len(blank))
                told = f"{len(blank)} cells are blank beside an error"
                raw.fact(metric, "blank", "failed", told)
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
        scored = [row for row in texts if any(not _blank(raw.columns[name][row]) for name in known)]
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
    found: dict[int, str] = {}
    for row, cell in enumerate(cells):
        if absent(cell) or isinstance(cell, Real):
            if cell is True:
                found[row] = f"{column}: true"
            continue
        text = cell.strip() if isinstance(cell, str) else str(cell)
        word = text.casefold()
        if word in SAYS_NOTHING or is_number_text(word):
            continue
        found[row] = f"{column}: true" if word == "true" else text
    return found


def _false_rows(cells: Values) -> list[int]:
    return [row for row, cell in enumerate(cells) if _passed(cell) is False]


def _passed(cell: Any) -> bool | None:
    """Return what a verdict says, None where it is none."""
    if isinstance(cell, bool | np.bool_):
        return bool(cell)
    if isinstance(cell, Real) and cell in (0, 1):
        return bool(cell)
    verdict = verdict_value(cell)
    if verdict is None and isinstance(cell, str) and cell.strip() in ("0", "1", "0.0", "1.0"):
        return cell.strip().startswith("1")
    if verdict is None:
        return None
    return bool(verdict[0])


def _blank(cell: Any) -> bool:
    if absent(cell):
        return True
    return isinstance(cell, str) and cell.strip().casefold() in NO_NUMBER


def as_number(cell: Any) -> float | None:
    """Return the number in a cell, None where there is none.

    Examples
    --------
    >>> as_number("0.5"), as_number(True), as_number("Failed"), as_number(float("nan"))
    (0.5, 1.0, None, None)
    """
    if absent(cell):
        return None
    if isinstance(cell, Real | Decimal | np.bool_):
        return float(cell)
    if isinstance(cell, str) and is_number_text(cell.strip().casefold()):
        text = cell.strip().replace(",", ".").rstrip("% ")
        return float(text)
    return None


# Direction: verdicts beside scores, the tool, the catalogue, the words of a name


def note_verdicts(
    raw: Raw,
    name: str,
    scores: Iterable[Any],
    thresholds: Iterable[Any],
    verdicts: Iterable[Any],
) -> None:
    """Keep the direction that verdicts beside the scores of a metric say; without thresholds, who passes tells."""
    numbers = [as_number(cell) for cell in scores]
    limits = [as_number(cell) for cell in thresholds]
    passed = [_passed(cell) for cell in verdicts]
    if any(limit is not None for limit in limits):
        found = count_verdicts(numbers, limits, passed).direction
    else:
        found = _separated(numbers, passed)
    if found is not None:
        raw.verdicts[name] = found


def _separated(scores: Sequence[float | None], passed: Sequence[bool | None]) -> Direction | None:
    """Return the direction where all scores that pass lie on one side of those that do not."""
    pairs = zip(scores, passed, strict=True)
    told = [(score, good) for score, good in pairs if score is not None and good is not None]
    good = [score for score, is_good in told if is_good]
    bad = [score for score, is_good in told if not is_good]
    if not good or not bad:
        return None
    if min(good) > max(bad):
        return Direction("higher", "every score that passes lies above every one that fails")
    if max(good) < min(bad):
        return Direction("lower", "every score that passes lies below every one that fails")
    return None


def verdicts_beside(raw: Raw) -> None:
    """Keep what columns of verdicts and thresholds beside a metric's say, such as ``toxicity_passed``."""
    near = {loose(column): column for column in raw.columns}
    for column in list(raw.columns):
        folded = loose(column)
        sides = [near.get(folded + loose(end)) for end in _VERDICT["passed"]]
        beside = next((side for side in sides if side and side != column), None)
        if beside is None or column in raw.verdicts:
            continue
        limits = [near.get(folded + loose(end)) for end in _VERDICT["threshold"]]
        limit = next((name for name in limits if name), None)
        thresholds = raw.columns[limit] if limit else [None] * len(raw)
        note_verdicts(raw, column, raw.columns[column], thresholds, raw.columns[beside])


def labels_beside(raw: Raw) -> None:
    """Keep what the labels beside a score say, such as Phoenix's ``hallucinated`` (scored 1) and ``factual``."""
    near = {loose(column): column for column in raw.columns}
    for column in list(raw.columns):
        stem = loose(column).removesuffix("score")
        label = near.get(f"{stem}label")
        if stem == loose(column) or label is None or column in raw.verdicts:
            continue
        words = [
            cell if isinstance(cell, str) and cell.strip() else None for cell in raw.columns[label]
        ]
        good = good_labels({word for word in words if word is not None})
        scores = [as_number(cell) for cell in raw.columns[column]]
        passed = [None if word is None else good.get(word) for word in words]
        found = _separated(scores, passed)
        bad_scores = {
            score for score, is_good in zip(scores, passed, strict=True) if is_good is False
        }
        if found is None and True not in passed and bad_scores in ({0.0}, {1.0}):
            found = Direction("lower" if bad_scores == {1.0} else "higher", "")
        if found is not None:
            bad = next(word for word, is_good in good.items() if not is_good)
            end = "high" if found.better == "lower" else "low"
            raw.verdicts[column] = Direction(found.better, f"its label {bad!r} has {end} scores")


def good_labels(words: Set[str]) -> dict[str, bool]:
    """Return which labels are good: of two, one that names what is bad tells of the other.

    Examples
    --------
    >>> sorted(good_labels({"factual", "hallucinated"}).items()), good_labels({"hallucinated"})
    ([('factual', True), ('hallucinated', False)], {'hallucinated': False})
    >>> good_labels({"yes", "no"}), good_labels({"a", "b", "toxic"})
    ({}, {})
    """
    told = set(words)
    if len(told) > 2:
        told = {word for word in told if not is_failure(word)}
    bad = {word for word in told if _names_bad(word)}
    if len(bad) != 1 or len(told) > 2:
        return {}
    return {word: word not in bad for word in told}


def _names_bad(word: str) -> bool:
    verdict = verdict_value(word)
    if verdict is not None:
        return verdict == (0.0, True)
    named = direction_of_name(word)
    return named is not None and named.better == "lower"


def direction_of(
    raw: Raw, column: str, metric: Metric | None, row: Mapping[str, Any], convention: str | None
) -> Direction:
    """Return the direction of a metric, by the strongest evidence that speaks.

    Parameters
    ----------
    column : str
        What the file calls it.
    metric : Metric or None
        The metric of METRICS that this name means.
    row : mapping
        What the layout says of it, with ``better`` where it does.
    convention : {"higher", None}
        Whether the tool takes more for better in whatever it scores; a name that says otherwise is asked.
    """
    if column in raw.verdicts:
        return raw.verdicts[column]
    if row.get("better"):
        return Direction(row["better"], "the layout of the tool")
    if metric is not None:
        return Direction(metric.better, f"{metric.name!r} is a metric that ragnb knows")
    named = direction_of_name(column)
    if convention and named is not None and named.better != convention:
        return Direction(
            "?", f"its tool takes {convention} for better, and {named.evidence} says otherwise"
        )
    if named is not None:
        return named
    if convention:
        return Direction(convention, f"its tool takes {convention} for better in all metrics")
    return SILENT


# Scale: the rubric's dimensions, and metrics of a judge who rates on another scale


# Verdicts in words


def name_is_verdict(name: str) -> bool:
    """Whether a column is named for what a yes in it says: ``passed``, ``correct``, ``verdict``, 通过.

    Examples
    --------
    >>> name_is_verdict("is_correct"), name_is_verdict("needs_table")
    (True, False)
    """
    return spaced(name) in _VERDICT_NAMES or loose(name) in _LOOSE_VERDICT_NAMES


def is_reference(name: str) -> bool:
    """Whether a column holds what people say or what should come out, and no score of an answer.

    Examples
    --------
    >>> is_reference("human_label"), is_reference("expected_verdict"), is_reference("verdict")
    (True, True, False)
    """
    signs = _VERDICT["reference_anywhere"]
    return bool({*name_tokens(name)} & _REFERENCE) or any(sign in name for sign in signs)


def verdict_columns(raw: Raw, taken: Iterable[str]) -> dict[str, Direction]:
    """Return the columns whose cells are all verdicts, and which verdict is good in each.

    Where a column beside them holds what people say, all are labels, and ratings have their own reader. A flag
    that is false just where the answer is missing says whether the call came back.
    """
    found: dict[str, Direction] = {}
    barred = {*CASE_COLUMNS, *NOT_METRICS, *taken, "label", "answerable", "gold_ids"}
    people = False
    for name, cells in raw.columns.items():
        if name in barred or "__" in name:
            continue
        if tells_if_answered(cells, name, raw.cells("answer")):
            continue
        direction = _verdict_direction(name, cells)
        if direction is None:
            continue
        if is_reference(name):
            people = True
        else:
            found[name] = direction
    if people:
        return {}
    return found


def _verdict_direction(name: str, cells: Values) -> Direction | None:
    """Return which verdict of a column is good, None where its cells are no verdicts or no one says."""
    if name_is_verdict(name) and _only_0_and_1(cells):
        return Direction("higher", f"{name!r} is a name for a verdict whose yes is good")
    if isinstance(cells, pd.Series) and not is_text(cells):
        if cells.dtype != bool:  # other numbers are read as such already
            return None
        merit = False
    else:
        words = {
            cell if isinstance(cell, str) else repr(cell) for cell in cells if not _blank(cell)
        }
        verdicts = [verdict_value(word) for word in words]
        told = [verdict for verdict in verdicts if verdict is not None]
        failures = sum(
            verdict is None and is_failure(word)
            for word, verdict in zip(words, verdicts, strict=True)
        )
        if not told or len(told) + failures < len(words):
            return None
        merit = any(is_merit for _, is_merit in told)
    named = direction_of_name(name)
    if merit:
        return Direction("higher", "its words say which verdict is good")
    if name_is_verdict(name):
        return Direction("higher", f"{name!r} is a name for a verdict whose yes is good")
    if named is not None and not named.open:
        return named
    return None


def _only_0_and_1(cells: Values) -> bool:
    """Whether all cells that hold something are 0 or 1."""
    if isinstance(cells, pd.Series) and not is_text(cells):
        given = cells.dropna()
        return len(given) > 0 and bool(given.isin([0, 1]).all())
    filled = [cell for cell in cells if not _blank(cell)]
    numbers = {as_number(cell) for cell in filled if not isinstance(cell, list | dict)}
    return bool(filled) and numbers <= {0.0, 1.0}


def read_verdicts(raw: Raw, name: str, report: Lossy) -> None:
    """Make a column of verdicts numbers: 1 and 0, and ``failed`` where a word says neither."""
    cells = list(raw.columns[name])
    failed: dict[int, str] = {}
    for row, cell in enumerate(cells):
        if _blank(cell):
            cells[row] = None
            continue
        passed = _passed(cell)
        if passed is None:
            failed[row] = str(cell).strip()
            cells[row] = None
        else:
            cells[row] = float(passed)
    raw.columns[name] = cells
    if failed:
        set_failed(raw, name, failed)
    report.add("mapped", name, "verdicts, read as 1 and 0", len(cells))
