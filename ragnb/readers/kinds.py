"""What the cells of a column hold: numbers, words for a failure, verdicts, nothing."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ragnb.readers.cells import NO_NUMBER, is_number_text
from ragnb.readers.facts import WORDS, fold_word, is_failure, verdict_value
from ragnb.readers.raw import Lossy, Raw, Values, absent, is_text

LONGEST_REASON = 200  # characters of an error that are kept beside its row
FAILED_WORDS = WORDS["failed"]
SAYS_NOTHING = frozenset(FAILED_WORDS["nothing"])
_SKIPPED = frozenset(map(fold_word, FAILED_WORDS["skipped"]))


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
    # Neither a Decimal nor a flag of NumPy is a Real.
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
    # Every kind from the start: counting in a plain dict is quicker than in a Counter.
    counts = dict.fromkeys(("blank", "number", "odd", "failure", "verdict", "other"), 0)
    for cell in cells:
        if isinstance(cell, str):
            # Texts of a metric are few and repeat: each is looked at once.
            kind = kinds.get(cell)
            if kind is None:
                kind = kind_of_cell(cell)
                kinds[cell] = kind
        else:
            kind = kind_of_cell(cell)
        counts[kind] += 1
    cell_counts = Cells(
        numbers=counts["number"],
        failures=counts["failure"],
        verdicts=counts["verdict"],
        others=counts["other"] + counts["odd"],
    )
    return cell_counts, kinds


def set_failed(raw: Raw, metric: str, reasons: Mapping[int, str]) -> None:
    """Set the status of some rows of a metric to ``failed``, with the reason, and clear their cells."""
    cells = list(raw.columns[metric])
    status = list(raw.cells(f"{metric}__status"))
    reason = list(raw.cells(f"{metric}__reason"))
    for row, why in reasons.items():
        cells[row] = None
        status[row] = "failed"
        # What the tool gave as the reason says more than a word in the cell.
        if is_blank(reason[row]):
            reason[row] = why[:LONGEST_REASON]
    raw.columns[metric] = cells
    raw.columns[f"{metric}__status"] = status
    raw.columns[f"{metric}__reason"] = reason


def set_skipped(raw: Raw, metric: str, statuses: Sequence[Any], report: Lossy) -> None:
    """Make blank cells of a metric ``not_applicable`` where a status says that they were skipped."""
    cells = raw.columns.get(metric, ())
    new_status = list(raw.cells(f"{metric}__status"))
    skipped = [
        row
        for row, (cell, status) in enumerate(zip(cells, statuses, strict=False))
        if is_blank(cell) and is_blank(new_status[row]) and fold_word(str(status)) in _SKIPPED
    ]
    if not skipped:
        return
    for row in skipped:
        new_status[row] = "not_applicable"
    raw.columns[f"{metric}__status"] = new_status
    report.add(
        "mapped", metric, "not applicable: its status says that it was skipped", len(skipped)
    )
    raw.fact(metric, "blank", "not_applicable", f"{len(skipped)} cells have a status of skipped")


def pass_of(cell: Any) -> bool | None:
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


def is_blank(cell: Any) -> bool:
    """Whether a cell of a metric holds nothing, or a word for nothing, such as ``-``."""
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
        # A percentage stays as it is written: 87% is 87, and the scale of its metric says how much that is.
        text = cell.strip().replace(",", ".").rstrip("% ")
        return float(text)
    return None
