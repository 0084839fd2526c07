"""How many of the questions that should be there are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.inputs import streams
from ragnb.traces import join_report
from ragnb.weights import collected, column_names, opened
from ragnb.weights.columns import count_where


class Coverage(NamedTuple):
    """How many questions of one set a system should have answered and did.

    `questions` are those of the set, where they are at hand, and `came` says which of them have a row.
    """

    subject: str
    system: Any
    expected: int
    seen: int
    questions: pd.DataFrame | None = None
    came: npt.NDArray[np.bool_] | None = None


def gold_coverage(
    labelled: Any,
    read: Any,
    gold: pd.DataFrame,
    *,
    where: Mapping[str, Any],
    scored: Sequence[Any],
    join: Any,
) -> list[Coverage]:
    """Return for each system how many gold questions it answered, of those that `where` does not leave out.

    Parameters
    ----------
    labelled, read : DataFrame of any engine
        The traces that `where` keeps, labelled, and all that were read.
    scored : sequence
        The systems that the scores name, which may have no trace at all.
    """
    of_questions, of_system = _parted(where)
    expected = streams.narrowed(gold, of_questions)
    asked = streams.narrowed(read, of_system)
    answered = _with_answer(labelled)

    def without_trace(frame: Any, name: Any) -> int:
        rows_of_system = streams.of_system(frame, name)
        return int(join_report(rows_of_system, gold=expected, join=join)["n_gold_without_trace"])

    covered = []
    for name in _systems(labelled, scored):
        # A question whose trace was dropped by `where` was excluded on purpose, and of a question that gold holds
        # twice, labelling gave its trace to one.
        excluded = without_trace(labelled, name) - without_trace(asked, name)
        unanswered = without_trace(answered, name)
        n_wanted = len(expected) - excluded
        covered.append(Coverage("gold", name, n_wanted, len(expected) - unanswered))
    return covered


def case_coverage(
    frame: Any, read: Any, cases: pd.DataFrame, *, where: Mapping[str, Any]
) -> list[Coverage]:
    """Return for each system how many of the cases it has a row for, of those that `where` does not leave out.

    Cases are found by ``sample_id`` or ``question``, whichever finds more of them; where neither finds any, rows
    are counted. Cases that hold the answers of several systems are told apart by their column ``system``.

    Parameters
    ----------
    frame, read : DataFrame of any engine
        The rows that `where` keeps, and all that were read.

    Examples
    --------
    >>> cases = pd.DataFrame({"question": ["x", "y"]})
    >>> case_coverage(cases[:1], cases[:1], cases, where={})[0][:4]
    ('cases', None, 2, 1)
    """
    of_questions, of_system = _parted(where)
    wanted = streams.narrowed(cases, where)
    asked = streams.narrowed(read, of_system)
    answered = _with_answer(frame)
    covered = []
    for name in _systems(frame, ()):
        of_name = _cases_of(wanted, name)
        rows = streams.of_system(frame, name)
        rows_answered = streams.of_system(answered, name)
        rows_asked = streams.of_system(asked, name)
        came = _matched(rows, of_name)
        if came is None:
            # By counts alone: what `where` dropped is not expected, and the first cases are taken to have come.
            n_rows = streams.size(rows)
            n_dropped = streams.size(rows_asked) - n_rows
            expected = max(len(of_name) - n_dropped, 0)
            seen = min(streams.size(rows_answered), expected)
            first = np.arange(len(of_name)) < min(n_rows, expected)
            covered.append(Coverage("cases", name, expected, seen, of_name, first))
            continue
        has_answer = came
        if answered is not frame:
            has_answer = np.zeros(len(of_name), dtype=bool)
            is_answered = _matched(rows_answered, of_name)
            if is_answered is not None:
                has_answer = is_answered
        was_asked = _matched(rows_asked, of_name) if of_questions else None
        if was_asked is not None:
            # A question whose row was dropped by `where` was excluded on purpose.
            kept = ~was_asked | came
            of_name = of_name[kept]
            came = came[kept]
            has_answer = has_answer[kept]
        seen = int(has_answer.sum())
        covered.append(Coverage("cases", name, len(of_name), seen, of_name, came))
    return covered


def _cases_of(cases: pd.DataFrame, system: Any) -> pd.DataFrame:
    """Return the cases that a system was asked: its own where cases name it, else all of them."""
    if system is not None and "system" in cases and (cases["system"] == system).any():
        cases = cases[cases["system"] == system]
    keys = [key for key in streams.QUESTIONS if key in cases]
    if not keys:
        return cases
    # A case of several systems or repeats counts once.
    return cases.drop_duplicates(keys[:1])


def _with_answer(frame: Any) -> Any:
    """Return the rows that hold an answer, all of them where nothing says which do."""
    if "answered" not in column_names(frame):
        return frame
    return nw.from_native(frame).filter(~nw.col("answered").is_null()).to_native()


def system_coverage(frame: Any, names: Sequence[Any]) -> list[Coverage]:
    """Return for each of several systems how many it has of the questions that any of them was asked.

    Nothing is expected where the systems share no question, or no column tells questions apart: then they were
    asked different ones, which a note says.

    Examples
    --------
    >>> rows = pd.DataFrame({"system": [*"aab"], "question": ["x", "y", "x"], "faithfulness": 0.9})
    >>> [one[:4] for one in system_coverage(rows, ["a", "b"])]
    [('systems', 'a', 2, 2), ('systems', 'b', 2, 1)]
    """
    if len(names) < 2:
        return []
    key = _shared_key(frame, names)
    if key is None:
        return []
    pairs = collected(opened(frame).select(key, "system").drop_nulls([key, "system"]).unique())
    asked = pairs[key].unique()
    questions = _questions_of(frame, key)
    covered = []
    for name in names:
        came = pairs.filter(nw.col("system") == name)[key]
        has_row = None
        if questions is not None:
            has_row = questions[key].isin(came.to_list()).to_numpy()
        covered.append(Coverage("systems", name, len(asked), len(came), questions, has_row))
    return covered


# What tells whether a metric applies to a question, whoever answered it.
_OF_QUESTIONS = ("answerable", "ground_truth_answer", "ground_truth_contexts")


def _questions_of(frame: Any, key: str) -> pd.DataFrame | None:
    """Return what the rows in memory say of each question, apart from what a system made of it."""
    if not isinstance(frame, pd.DataFrame):
        return None
    have = [key, *(name for name in _OF_QUESTIONS if name in frame)]
    return frame.loc[frame[key].notna(), have].drop_duplicates(key)


def _shared_key(frame: Any, names: Sequence[Any]) -> str | None:
    """Return the column by which the systems share most questions, None where they share none."""
    best = None
    most = 0
    for key in streams.QUESTIONS:
        if key not in column_names(frame):
            continue
        pairs = opened(frame).select(key, "system").drop_nulls([key, "system"]).unique()
        systems = pairs.group_by(key).agg(nw.len().alias("systems"))
        counted = collected(systems.select(count_where(nw.col("systems") > 1, "n")))
        n_shared = int(counted["n"].item() or 0)
        if n_shared > most:
            best = key
            most = n_shared
    return best


def _parted(where: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns of `where` that are of questions, and those that are of systems and repeats."""
    of_system = {name: value for name, value in where.items() if name in ("system", "repeat")}
    of_questions = {name: value for name, value in where.items() if name not in of_system}
    return of_questions, of_system


def _systems(frame: Any, scored: Sequence[Any]) -> list[Any]:
    """Return the systems of some rows and those that the scores name; only None where there are not several."""
    if "system" not in column_names(frame):
        return [None]
    of_rows = streams.distinct_values(frame, "system")
    if not of_rows:
        return [None]
    names = list(dict.fromkeys([*of_rows, *scored]))
    # None stands for the scores of a single system.
    if len({*names} - {None}) > 1:
        return names
    return [None]


def _matched(rows: Any, cases: pd.DataFrame) -> npt.NDArray[np.bool_] | None:
    """Return which cases have a row, by the key that finds most of them; None where none finds any."""
    best: npt.NDArray[np.bool_] | None = None
    for key in streams.QUESTIONS:
        if key not in cases or key not in column_names(rows):
            continue
        names = cases[key].astype("string").str.strip()
        text = nw.col(key).cast(nw.String).str.strip_chars()
        of_rows = opened(rows).select(text.alias(key)).drop_nulls(key)
        # Only keys that cases have leave the engine of a query.
        is_of_case = nw.col(key).is_in(names.dropna().unique().tolist())
        found = collected(of_rows.filter(is_of_case).unique())[key].to_list()
        has_row = names.isin(found).to_numpy(dtype=bool)
        if has_row.any() and (best is None or has_row.sum() > best.sum()):
            best = has_row
    return best
