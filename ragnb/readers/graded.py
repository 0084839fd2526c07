"""Columns of grades that are no plain numbers: verdicts, also beside a third word, ``4/5``, decimal commas."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import pandas as pd

from ragnb.readers.cells import NO_NUMBER, is_number_text
from ragnb.readers.evidence import shown_words
from ragnb.readers.facts import SILENT, Direction, direction_of_name, verdict_value
from ragnb.readers.failures import tells_if_answered
from ragnb.readers.kinds import as_number, kind_of_cell, set_failed
from ragnb.readers.raw import Lossy, Raw, Values, absent, is_text
from ragnb.readers.verdicts import is_reference, name_is_verdict

_PART = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s?/\s?(\d{1,6})")
LONGEST_WORD = 40  # characters: what is longer is a sentence and no grade
MOST_GRADES = 2000
"""Of a column with more distinct texts, or a longer one, none is a grade."""
_FIRST = 100  # cells whose length tells texts from words
# Words beside known verdicts, such as 'skipped': with more it is no column of verdicts.
_MOST_OTHERS = 3


class Grades(NamedTuple):
    """What the cells of a column mean.

    Attributes
    ----------
    numbers : mapping of text to float or None
        None where a word is neither end of a verdict.
    ends : pair of float, or None
        The scale, where the cells say it.
    evidence : str
    merit : bool
        Whether the words say by themselves which is good.
    """

    numbers: Mapping[str, float | None]
    ends: tuple[float, float] | None
    evidence: str
    merit: bool

    def need_reading(self, *, typed: bool) -> bool:
        """Whether the cells of a metric are not read as they are; a file of texts has decimal commas, too."""
        has_other_words = None in self.numbers.values()
        are_numbers = self.ends is None
        return has_other_words or (are_numbers and typed) or self.ends not in (None, (0, 1))


def grades_of(cells: Values) -> Grades | None:
    """Return what cells mean that are grades but no plain numbers; None where they are anything else.

    Examples
    --------
    >>> grades_of(["4/5", "2/5"]).numbers, grades_of(["0,5", "0,75"]).numbers
    ({'4/5': 4.0, '2/5': 2.0}, {'0,5': 0.5, '0,75': 0.75})
    >>> grades_of(["PASS", "FAIL", "PASS", "SKIP"]).numbers
    {'PASS': 1.0, 'FAIL': 0.0, 'SKIP': None}
    >>> grades_of(["0.5", "0.75"]) is None, grades_of(["easy", "hard"]) is None
    (True, True)
    """
    return grades_of_words(_counted(cells))


def grades_of_words(counts: Mapping[str, int]) -> Grades | None:
    """Return what the distinct texts of a column mean, as `grades_of` does; `counts` says how often each stands.

    Examples
    --------
    >>> grades_of_words({"yes": 3, "no": 2}).numbers, grades_of_words({}) is None
    ({'yes': 1.0, 'no': 0.0}, True)
    """
    if not counts or len(counts) > MOST_GRADES:
        return None
    matches = {word: _PART.fullmatch(word.strip()) for word in counts}
    parts = {word: match for word, match in matches.items() if match is not None}
    wholes = {match[2] for match in parts.values()}
    # Parts of several wholes are on no one scale, and 7/5 is no part: such cells may be dates.
    if len(parts) == len(counts) and len(wholes) == 1:
        (whole,) = wholes
        numbers = {word: float(match[1]) for word, match in parts.items()}
        if max(numbers.values()) <= float(whole):
            return Grades(numbers, (0, float(whole)), f"its cells are parts of {whole}", False)
        return None
    if all(is_number_text(word.strip()) for word in counts):
        # Plain numbers need no table of words: they are read as numbers elsewhere.
        if not any("," in word for word in counts):
            return None
        return Grades({word: as_number(word) for word in counts}, None, "decimal commas", False)
    return _verdicts(counts)


def _counted(cells: Values) -> Counter[str]:
    """Return the distinct texts of a column and how often each stands; none where they are no short words."""
    if isinstance(cells, pd.Series) and not is_text(cells):
        if cells.dtype != bool:
            return Counter()
        return Counter({str(value): int(n) for value, n in cells.value_counts().items()})
    # A few cells show a column of passages or answers, before a million distinct texts are counted.
    if any(isinstance(cell, str) and len(cell) > LONGEST_WORD for cell in cells[:_FIRST]):
        return Counter()
    cell_counts: dict[Any, int]
    if isinstance(cells, pd.Series):
        cell_counts = {str(word): int(n) for word, n in cells.value_counts().items()}
    # A float may be the NaN of a missing cell; any other is refused below.
    elif {*map(type, cells)} <= {str, bool, float, type(None)}:
        cell_counts = dict(Counter(cells))
    else:
        return Counter()
    words = [word for word in cell_counts if not absent(word)]
    if not all(isinstance(word, str | bool) and len(str(word)) <= LONGEST_WORD for word in words):
        return Counter()
    counts: Counter[str] = Counter()
    for word in words:
        text = str(word)
        if text.strip().casefold() not in NO_NUMBER:
            counts[text] = cell_counts[word]
    return counts


def _verdicts(counts: Mapping[str, int]) -> Grades | None:
    """Return verdicts, and up to three other words beside more of them."""
    verdicts = {word: verdict_value(word) for word in counts}
    known_verdicts = {word: verdict for word, verdict in verdicts.items() if verdict is not None}
    others = [word for word in counts if verdicts[word] is None]
    n_verdicts = sum(counts[word] for word in known_verdicts)
    n_others = sum(counts[word] for word in others)
    if not known_verdicts or len(others) > _MOST_OTHERS or n_others >= n_verdicts:
        return None
    values = {verdict[0] for verdict in known_verdicts.values()}
    if others and len(values) < 2 and any(kind_of_cell(word) != "failure" for word in others):
        return None  # one word among others is no scale
    numbers: dict[str, float | None] = {}
    for word, verdict in verdicts.items():
        numbers[word] = None if verdict is None else verdict[0]
    merit = any(verdict[1] for verdict in known_verdicts.values())
    evidence = "all its cells are verdicts"
    if others:
        evidence = f"its cells are verdicts but for {n_others}: {shown_words(others)}"
    return Grades(numbers, (0, 1), evidence, merit)


def direction_of_grades(name: str, grades: Grades) -> Direction:
    """Return which end of a column of grades is better, open where nothing says it.

    Examples
    --------
    >>> direction_of_grades("needs_work", grades_of(["yes", "no"])).better
    '?'
    """
    if grades.merit:
        return Direction("higher", "its words say which verdict is good")
    if name_is_verdict(name):
        return Direction("higher", f"{name!r} is a name for a verdict whose yes is good")
    return direction_of_name(name) or SILENT


def graded_columns(raw: Raw, names: Collection[str]) -> dict[str, Grades]:
    """Return those of the columns that hold grades; none where people's verdicts stand beside them.

    A flag that is false just where the answer is missing says whether the call came back.
    """
    graded = {}
    for name in names:
        grades = grades_of(raw.columns[name])
        if grades is None or tells_if_answered(raw.columns[name], name, raw.cells("answer")):
            continue
        if is_reference(name):
            return {}
        graded[name] = grades
    return graded


def note_grades(
    raw: Raw, name: str, grades: Grades, told: Collection[tuple[Any, Any]] = ()
) -> None:
    """Record scale and direction of a column of grades, or that they are open.

    What is `told` of the column already, as pairs of `facts_told`, stays as it is.

    Examples
    --------
    >>> raw = Raw({"polite": ["yes", "no"]}, "frame")
    >>> note_grades(raw, "polite", grades_of(raw.columns["polite"]))
    >>> [(fact["fact"], fact["value"]) for fact in raw.facts]
    [('scale', (0, 1)), ('direction', 'higher')]
    """
    raw.graded.add(name)
    direction = direction_of_grades(name, grades)
    if (name, "scale") not in told and grades.ends is not None:
        raw.fact(name, "scale", grades.ends, grades.evidence)
    if (name, "direction") not in told:
        raw.fact(name, "direction", direction.better, direction.evidence, open=direction.open)


def read_grades(raw: Raw, name: str, grades: Grades, report: Lossy) -> None:
    """Make a column of grades numbers, and ``failed`` where a word is neither end of a verdict."""
    cells = [None if absent(cell) else str(cell) for cell in raw.columns[name]]
    other_words = {word for word, number in grades.numbers.items() if number is None}
    failed = {
        row: cell.strip()
        for row, cell in enumerate(cells)
        if cell is not None and cell in other_words
    }
    # Words for a missing cell are no keys, and become None.
    raw.columns[name] = [None if cell is None else grades.numbers.get(cell) for cell in cells]
    if failed:
        set_failed(raw, name, failed)
        words = shown_words(set(failed.values()))
        report.add("left_out", name, f"words, read as failed scores: {words}", len(failed))
        raw.fact(name, "blank", "failed", f"{len(failed)} cells hold other words: {words}")
    report.add("mapped", name, f"grades, read as numbers: {grades.evidence}", len(cells))
