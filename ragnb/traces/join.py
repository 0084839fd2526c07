"""Traces meet gold: by sample_id where both have it, else by exact question text; what did not meet is told."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbWarning, listing
from ragnb.traces.cells import absent, column, name_of

Positions = npt.NDArray[np.int64]
MOST_LISTED = 50


@dataclass(frozen=True)
class Keys:
    """What the rows of a frame are known by."""

    ids: list[str | None]
    questions: list[str | None]

    @classmethod
    def of(cls, frame: pd.DataFrame, by_id: bool) -> Keys:
        """Read the keys of a frame; without `by_id` its ids are left aside."""
        ids = [name_of(v) for v in column(frame, "sample_id" if by_id else "")]
        return cls(ids, [None if absent(v) else str(v) for v in column(frame, "question")])

    def names(self) -> list[str]:
        """Return for each row the key it is joined by."""
        return [i or q or "" for i, q in zip(self.ids, self.questions, strict=True)]


def match(traces: pd.DataFrame, gold: pd.DataFrame, join: str) -> tuple[Positions, dict[str, Any]]:
    """Return for each trace the row of its gold (−1 for none), and the join report.

    Examples
    --------
    >>> gold = pd.DataFrame({"sample_id": ["a", "b"], "question": ["x", "y"]})
    >>> match(pd.DataFrame({"question": ["y", "z"]}), gold, "auto")[0]
    array([ 1, -1])
    """
    by_id = join == "auto" and _share_ids(traces, gold)
    ours, theirs = Keys.of(traces, by_id), Keys.of(gold, by_id)
    last_id = {i: row for row, i in enumerate(theirs.ids) if i is not None}
    last_question = {q: row for row, q in enumerate(theirs.questions) if q is not None}
    without_id = {q: row for q, row in last_question.items() if theirs.ids[row] is None}
    found = np.full(len(traces), -1, dtype=np.int64)
    for row, (i, q) in enumerate(zip(ours.ids, ours.questions, strict=True)):
        by_text = last_question if i is None else without_id
        found[row] = last_id.get(i or "", by_text.get(q or "", -1))
    _warn_of_repeats(ours, theirs, found)
    by = "sample_id" if by_id else "question"
    return found, report_of(traces, by, len(gold), _unmet(ours, theirs, found))


def _share_ids(traces: pd.DataFrame, gold: pd.DataFrame) -> bool:
    if "sample_id" not in traces or "sample_id" not in gold:
        return False
    ours, theirs = ({name_of(v) for v in column(f, "sample_id")} - {None} for f in (traces, gold))
    if ours and theirs and not ours & theirs:
        warnings.warn(
            f"no sample_id of the traces ({listing(sorted(map(str, ours)), 3)}) is in gold "
            f"({listing(sorted(map(str, theirs)), 3)}); they are joined by question text",
            RagnbWarning,
            stacklevel=5,
        )
    return bool(ours & theirs)


def _unmet(ours: Keys, theirs: Keys, found: Positions) -> dict[str, list[str]]:
    names, gold_names = ours.names(), theirs.names()
    met = {gold_names[row] for row in found if row >= 0}
    unmatched = [name for name, row in zip(names, found, strict=True) if row < 0]
    alone = [name for name in gold_names if name not in met]
    differs = [
        name
        for name, q, row in zip(names, ours.questions, found, strict=True)
        if row >= 0 and q is not None and theirs.questions[row] not in (None, q)
    ]
    return {
        "unmatched": unmatched,
        "gold_without_trace": alone,
        "repeated_questions": repeats([q for q in theirs.questions if q is not None]),
        "question_differs": differs,
    }


def report_of(
    traces: pd.DataFrame, by: str | None, n_gold: int, lists: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Return the join report: counts, and the first of the names behind each count."""
    names = ("unmatched", "gold_without_trace", "repeated_questions", "question_differs")
    told = {name: list(lists.get(name, ())) for name in names}
    told["duplicate_traces"] = repeated_traces(traces, Keys.of(traces, by != "question").names())
    counts = {"by": by, "n_traces": len(traces), "n_gold": n_gold}
    counts["n_matched"] = len(traces) - len(told["unmatched"]) if by else 0
    counts |= {f"n_{name}": len(items) for name, items in told.items()}
    return counts | {name: items[:MOST_LISTED] for name, items in told.items()}


def repeats(items: Sequence[str]) -> list[str]:
    """Return every item beyond the first of its name.

    Examples
    --------
    >>> repeats(["a", "b", "a", "a"])
    ['a', 'a']
    """
    seen: set[str] = set()
    out = []
    for item in items:
        if item in seen:
            out.append(item)
        seen.add(item)
    return out


def repeated_traces(traces: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Return the names of traces whose question the same system (and repeat) has answered before."""
    keys = pd.DataFrame({"name": names} | {c: list(traces[c]) for c in ("system", "repeat") if c in traces})
    return [name for name, again in zip(names, keys.duplicated(), strict=True) if again]


def _warn_of_repeats(ours: Keys, theirs: Keys, found: Positions) -> None:
    gold_ids, gold_questions = Counter(theirs.ids), Counter(theirs.questions)
    by_id, by_text = set(), set()
    for i, row in zip(ours.ids, found, strict=True):
        if row >= 0 and i is not None and theirs.ids[row] == i:
            by_id |= {i} if gold_ids[i] > 1 else set()
        elif row >= 0:
            question = theirs.questions[row]
            by_text |= {question} if gold_questions[question] > 1 else set()
    for what, names in (("question", by_text), ("sample_id", by_id)):
        if names:
            step = "give traces and gold a sample_id" if what == "question" else "make every sample_id unique"
            warnings.warn(
                f"gold holds {len(names)} {what}(s) more than once ({listing(sorted(map(str, names)), 3)}); "
                f"the last one wins: {step}",
                RagnbWarning,
                stacklevel=5,
            )
