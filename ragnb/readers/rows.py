"""What a row is: one answer, or a mean of many, or one of a few that were picked.

Rows of answers hold a question, an answer, or an id that repeats as questions do or differs in each row. Tables
of totals are refused with the evidence, rows of means among answers are left out and counted, and where nothing
tells, the caller is asked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from ragnb.errors import RagnbError, listing, place
from ragnb.readers.cells import NO_NUMBER, NUMBER
from ragnb.readers.evidence import is_error_column
from ragnb.readers.lists import parse_list
from ragnb.readers.mean_rows import is_mean_label
from ragnb.readers.names import WORDS, meanings, plain, words_in
from ragnb.readers.owner import ROW_WORDS, owner_rank
from ragnb.readers.raw import Lossy, Raw, Values, absent, is_text
from ragnb.schema import CASE_COLUMNS, METRICS

_COUNTS = ROW_WORDS["counts"]
_COUNT_NAMES = {plain(word) for word in _COUNTS["names"]}
_COUNTING = [plain(word) for word in _COUNTS["of"]]
_WEAK_COUNTS = {plain(word) for word in _COUNTS["weak"]}
_SPREAD_ENDS = tuple(_COUNTS["spread"])
_KEYS = {name: {plain(word) for word in words} for name, words in ROW_WORDS["keys"].items()}

# What answers hold and totals do not.
_OF_AN_ANSWER = {
    "question",
    "answer",
    "ground_truth_answer",
    "retrieved_contexts",
    "ground_truth_contexts",
}
_RESULT_FILE = re.compile(r"\.(parquet|csv|jsonl?|yaml)$", re.IGNORECASE)
_WORD = re.compile(r"[㐀-鿿]|[^\W㐀-鿿]+")
# An address, a path or a date has many words and is no sentence.
_WITHOUT_SPACES = re.compile(r"[^\s。？！，；]+")
_DATE = re.compile(
    r"\d{1,4}[-/.年]\d{1,2}[-/.月]\d{1,4}日?([T ,]+[\d:.]+(Z|[+-][\d:]+| ?[AP]M)?)?", re.I
)
# How near the mean of a list has to be to what a summary says, so that the list is all of it.
_ROUNDED_MEAN = 0.006


def check_samples(raw: Raw, labels: Sequence[str] = ()) -> None:
    """Refuse totals and rows that do not fit the header; ask where nothing tells totals from answers.

    Where all rows are means and totals, `labels` holds what they are called.
    """
    if labels:
        evidence = f"each row is a mean or total ({listing(dict.fromkeys(labels), most=3)})"
    else:
        evidence = _signs_of_totals(raw)
    if evidence:
        raise RagnbError(
            f"{place(raw.file)}is a table of totals, one row per system or setting (columns "
            f"{listing(raw.columns)}): {evidence}; read the table they were computed from, one row per sample; "
            "or, if these are samples, name the column with the question: columns={'…': 'question'}"
        )
    texts = []
    if not _signs_of_answers(raw):
        texts = [name for name, cells in raw.columns.items() if _is_text(cells)]
    # Answers of a few settings to several questions repeat their names; each row of totals has its own.
    if texts and (raw.uneven or raw.distinct(*texts) == len(raw)):
        raise RagnbError(
            f"{place(raw.file)}totals or answers? Rows (columns {listing(raw.columns)}) differ in "
            f"{listing(texts, most=3)}, with no question and no sample id, no lists and no sentences. Of a table "
            "of totals, read the table they were computed from, one row per sample; of answers, name the column "
            "with the question or its id: columns={'…': 'question'} or columns={'…': 'sample_id'}"
        )
    raw.check_even()


def _known(raw: Raw) -> set[str]:
    """Return the columns of a case that a table has; a system is none, as totals have it too."""
    known = ({*CASE_COLUMNS} - {"system"}) & raw.columns.keys()
    if known == {"doc_name"}:
        files = raw.columns["doc_name"]
        # A table of runs has a column of files, too, and they are files of results, no documents.
        if all(_RESULT_FILE.search(str(cell)) for cell in files):
            return set()
    return known


def _signs_of_totals(raw: Raw) -> str:
    """Return what says that rows are totals, in words; empty where nothing does.

    The surest signs come first: they count in spite of an id, and the later ones only beside no column of a case.
    """
    known = _known(raw)
    if known & _OF_AN_ANSWER:
        return ""
    # A count of questions beside an id says how many rows a mean is of; an id alone may be a system's.
    counted = [name for name in raw.columns if is_count_name(name) and _counts(raw.columns[name])]
    if counted:
        return f"{listing(counted)} counts the samples of a row"
    if known - {"doc_name"}:
        return ""
    # `n` or `count` may also be a number of passages, so that an id beside it makes the row an answer.
    weakly_counted = [
        name for name in raw.columns if plain(name) in _WEAK_COUNTS and _counts(raw.columns[name])
    ]
    if weakly_counted:
        return f"{listing(weakly_counted)} counts the samples of a row"
    if known:
        return ""
    spread = [name for name in raw.columns if name.casefold().endswith(_SPREAD_ENDS)]
    if spread:
        return f"{listing(spread, most=3)} is the spread of a mean"
    files = [name for name, cells in raw.columns.items() if _name_results(cells)]
    if files:
        return f"{listing(files)} names files of results"
    names = {*raw.columns}
    long = WORDS["long"]
    if names & {*long["metric"], "metrics"} and names & {*long["score"]}:
        return "each row is a metric"
    return _signs_of_a_row_per_system(raw)


def _signs_of_a_row_per_system(raw: Raw) -> str:
    """Return, in words, that each row is of another system, with no text or list in it; empty if it is not so."""
    owners = [name for name in raw.columns if owner_rank(name) is not None and raw.is_plain(name)]
    if not owners or any(_has_sentences(raw.columns[name]) for name in _hinted(raw)):
        return ""
    if _has_lists(raw) or raw.distinct(*owners) != len(raw):
        return ""
    # No study asks each system one question only; a single row may be the first answer of one.
    if len(raw) == 1 and _signs_of_answers(raw):
        return ""
    return f"each row has another {' and '.join(owners[:3])}"


def _name_results(cells: Values) -> bool:
    """Return whether all cells that hold something are names of files of results."""
    filled = [cell for cell in cells if not absent(cell) and cell != ""]
    if not filled:
        return False
    return all(isinstance(cell, str) and bool(_RESULT_FILE.search(cell)) for cell in filled)


def is_count_name(name: str) -> bool:
    """Return whether a column or key counts samples, by its name.

    Examples
    --------
    >>> [is_count_name(name) for name in ("num_samples", "numQuestions", "问题数", "n_tokens")]
    [True, True, True, False]
    """
    words = plain(name)
    if words in _COUNT_NAMES:
        return True
    for counting in _COUNTING:
        # As in number_of_questions and question_count.
        if words.startswith(f"{counting}_"):
            counted = words.removeprefix(f"{counting}_").removeprefix("of_")
        elif words.endswith(f"_{counting}"):
            counted = words.removesuffix(f"_{counting}")
        else:
            continue
        if counted in _COUNTS["what"]:
            return True
    return False


def _counts(cells: Values) -> bool:
    """Return whether cells are whole numbers that do not merely number the rows."""
    try:
        numbers = [float(cell) for cell in cells if not absent(cell) and cell != ""]
    except (TypeError, ValueError):
        return False
    if not numbers or not all(math.isfinite(n) and n == int(n) and n >= 0 for n in numbers):
        return False
    # 1, 2, 3, … down the rows is a row number under the name of a count.
    is_row_number = len(numbers) > 1 and all(
        after - before == 1 for before, after in pairwise(numbers)
    )
    # A row that counts one sample, or none, is no mean of several.
    return max(numbers) > 1 and not is_row_number


def _signs_of_answers(raw: Raw) -> bool:
    """Return whether rows have what answers have: a question, an id, lists, nested measurements or sentences."""
    if _known(raw) or _has_lists(raw):
        return True
    texts = [name for name, cells in raw.columns.items() if _is_text(cells)]
    return any(_has_sentences(raw.columns[name]) for name in texts)


def _hinted(raw: Raw) -> list[str]:
    """Return the columns whose names are words for a question or an answer."""
    hints = {word for words in WORDS["hints"].values() for word in words}
    return [name for name in raw.columns if words_in(name) & hints]


def _has_lists(raw: Raw) -> bool:
    """Return whether cells of a column are lists, or objects of a file that can hold some."""
    for name, cells in raw.columns.items():
        # An interval is written as a list of two, and says nothing of a row being an answer.
        if name.casefold().endswith(_SPREAD_ENDS) or isinstance(cells, pd.Series):
            continue
        if any(isinstance(cell, list | dict) and cell for cell in cells):
            return True
    return False


def _has_sentences(cells: Values) -> bool:
    """Whether half of the cells are lists, questions or texts of nine words; a Chinese character is a word."""
    n_filled = 0
    n_lists = 0
    n_sentences = 0
    for cell in cells:
        if absent(cell) or cell == "":
            continue
        n_filled += 1
        if isinstance(cell, list) or (isinstance(cell, str) and parse_list(cell)):
            n_lists += 1
        # An object is no sentence, however many words are in it.
        if isinstance(cell, str) and not cell.lstrip().startswith("{"):
            n_sentences += _is_sentence(cell.strip())
    most = max(n_lists, n_sentences)
    # Half of them, as some answers are one word, and some names of settings are long.
    return most > 0 and n_filled <= 2 * most


def _is_sentence(text: str) -> bool:
    """Return whether a text is a question, or has as many words as a sentence; an address or a date is none."""
    if is_address(text) or _DATE.fullmatch(text):
        return False
    # "Who pays?" is a question of two words; the name of a model or of a setting seldom has nine.
    least = 2 if text.endswith(("?", "？")) else 9
    return len(_WORD.findall(text)) >= least


def is_address(text: str) -> bool:
    """Whether a text is the address of a page or of a file: one word with a slash, or of the web.

    Examples
    --------
    >>> texts = ("https://a.org/b?c", "org/model-7b", "www.a.org", "食宿费/交通费怎么报销？")
    >>> [is_address(text) for text in texts]
    [True, True, True, False]
    """
    has_slash = "/" in text or "\\" in text
    begins_as_address = text[:4].casefold() == "www."
    return (has_slash or begins_as_address) and bool(_WITHOUT_SPACES.fullmatch(text))


def _is_text(cells: Values) -> bool:
    """Return whether a column holds a text that is neither a number nor a word for a missing one."""
    if isinstance(cells, pd.Series) and not is_text(cells):
        return False
    texts = (cell.strip().casefold() for cell in cells if isinstance(cell, str))
    return any(text not in NO_NUMBER and not NUMBER.fullmatch(text) for text in texts)


# Objects of JSON


def is_selection(key: str) -> bool:
    """Return whether a list of this name holds only some of the answers.

    Examples
    --------
    >>> is_selection("worst_cases"), is_selection("results")
    (True, False)
    """
    words = plain(key)
    parts = ("worst_", "low_scor", "lowest_", "failed_", "failing_", "failure_")
    return words in _KEYS["selections"] or words.startswith(parts)


def check_list(file: object, value: Mapping[str, Any], key: str, report: Lossy) -> None:
    """Refuse a list that is a selection of what was scored, beside totals or a count of all.

    Raises
    ------
    RagnbError
        Where the list is called failures, worst, examples or the like, and what stands beside it was computed of
        more than the list holds; the message names both.
    """
    rows = value[key]
    n_rows = len(rows)
    beside = {name: cell for name, cell in value.items() if name != key}
    summaries = [name for name, cell in beside.items() if _is_summary(name, cell)]
    counts = {name: n for name, n in _counts_in(beside) if n > 1}
    # One count that agrees is enough: of several, the others may count calls or tokens.
    is_whole = n_rows in counts.values()
    larger_counts = {name: n for name, n in counts.items() if n > n_rows}
    if is_selection(key):
        # A list named for a selection may still be all there is, and then its mean is the one that is told.
        is_of_rows = any(_agrees(beside[name], rows) for name in summaries)
        if (summaries or larger_counts) and not is_whole and not is_of_rows:
            named = listing([*summaries, *larger_counts])
            raise RagnbError(
                f"{place(file)}holds totals ({named}) and a selection of the answers: the {n_rows} under "
                f"{key!r}. A mean of a selection says nothing about all answers; read the file with every answer "
                "that they were computed from, one row per sample (most tools write it beside this one)"
            )
        return
    if is_whole:
        return
    if larger_counts:
        name, n_counted = max(larger_counts.items(), key=lambda item: item[1])
        n_lost = n_counted - n_rows
        why = f"{name} counts {n_counted} samples, {key!r} holds {n_rows}"
        report.expect(n_counted, n_lost)
        report.add("left_out", None, why, n_lost)
        return
    for name, cell in beside.items():
        n_lost = _not_among(rows, cell) if is_error_column(name) else 0
        if n_lost:
            report.expect(n_rows + n_lost, n_lost)
            report.add("left_out", None, f"{name} holds samples that {key!r} does not", n_lost)


def _not_among(rows: Sequence[Mapping[str, Any]], errors: Any) -> int:
    """Return how many of a list of errors name none of the rows; those were samples that came to nothing."""
    if not isinstance(errors, list):
        return 0
    # The texts and numbers of all rows, as any of them may be the id or the question that an error names.
    cells = {str(cell) for row in rows for cell in row.values() if isinstance(cell, str | int)}
    return sum(_names_in(error).isdisjoint(cells) for error in errors if error)


def _names_in(error: Any) -> set[str]:
    """Return the texts in an error that may be the id or the question of a sample."""
    if isinstance(error, Mapping):
        return {str(cell) for cell in error.values() if isinstance(cell, str | int)}
    text = str(error)
    # As a whole, where the error is just the question, and word by word, as in "q7: timeout".
    return {text, *re.split(r"[:：\s]+", text)}


def counts_all(value: Mapping[str, Any], rows: int) -> bool:
    """Return whether an object counts its samples, and no more than a list in it holds.

    Examples
    --------
    >>> counts_all({"num_questions": 20}, 20), counts_all({"num_questions": 40}, 20), counts_all({}, 20)
    (True, False, False)
    """
    without_lists = {name: cell for name, cell in value.items() if not isinstance(cell, list)}
    counts = [n for _, n in _counts_in(without_lists)]
    return max(counts, default=0) == rows


def totals_error(file: object, value: Mapping[str, Any]) -> RagnbError | None:
    """Return the refusal of an object that holds means or totals and no answers; None for any other."""
    objects = {name: cell for name, cell in value.items() if isinstance(cell, dict)}
    numbers = [name for name, cell in value.items() if _is_score(cell)]
    scored = [name for name in numbers if _is_metric(name)]
    by_system = [name for name, cell in objects.items() if _scores_in(cell)]
    counted = [name for name, _ in _counts_in(value)]
    summaries = [name for name, cell in objects.items() if _is_summary(name, cell)]
    # A settings file has numbers, too: without a metric, a summary or a count it is no file of totals.
    is_counted = bool(counted) and bool(numbers or objects)
    if not (scored or by_system or summaries or is_counted):
        return None
    signs = listing(dict.fromkeys([*summaries, *by_system, *scored, *counted]), most=6)
    found = " among ".join((signs, listing(value)))
    return RagnbError(
        f"{place(file)}holds totals ({found}), one number for all answers or for a system, and no answers; read "
        "the file that they were computed from, with one record per question (most tools write it beside this "
        "one, as a list of results, test cases or samples)"
    )


def _is_metric(name: str) -> bool:
    """Return whether a key means a metric of METRICS."""
    return bool(meanings([name]).keys() & METRICS.keys())


def _scores_in(cell: Mapping[str, Any]) -> bool:
    """Return whether an object holds a number, or an object of numbers, under the name of a metric."""
    return any(
        _is_metric(name) and (_is_score(item) or isinstance(item, dict))
        for name, item in cell.items()
    )


def _is_score(cell: Any) -> bool:
    """Return whether a value is a number; a truth value, which is an int in Python, is none."""
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _is_summary(name: str, cell: Any) -> bool:
    """Return whether a key holds numbers that were computed of samples."""
    if not isinstance(cell, dict) or not cell:
        return False
    if plain(name) in _KEYS["summaries"] or is_mean_label(name):
        holds_numbers = any(
            _is_score(item) or (isinstance(item, dict) and item) for item in cell.values()
        )
        if holds_numbers:
            return True
    # Under any other name: metrics with one number each, and nothing else.
    return _scores_in(cell) and all(map(_is_score, cell.values()))


def _counts_in(value: Mapping[str, Any]) -> Iterable[tuple[str, int]]:
    """Yield the keys of an object, and of its summaries, that count samples."""
    weak = _WEAK_COUNTS | _KEYS["counts"]
    for name, cell in value.items():
        is_whole_number = isinstance(cell, int) and not isinstance(cell, bool)
        if is_whole_number and (is_count_name(name) or plain(name) in weak):
            yield name, cell
        elif isinstance(cell, dict) and (plain(name) in _KEYS["summaries"]):
            yield from _counts_in(cell)


def _agrees(summary: Any, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether what a summary says are the means of these rows, so that they are all rows."""
    if not isinstance(summary, dict):
        return False
    n_compared = 0
    for name, stated_mean in summary.items():
        cells = [row.get(name) for row in rows]
        numbers = [float(cell) for cell in cells if isinstance(cell, int | float)]
        # With gaps, nobody knows whether the mean counted the rows without a number.
        if not _is_score(stated_mean) or len(numbers) != len(rows):
            continue
        n_compared += 1
        if abs(sum(numbers) / len(numbers) - stated_mean) > _ROUNDED_MEAN:
            return False
    return n_compared > 0
