"""A run compared with its baseline: what changed between them, and the table of differences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import texts
from ragnb.comparison.changed import question_changes
from ragnb.comparison.differences import compared, paired_runs
from ragnb.comparison.pairs import Pairs
from ragnb.comparison.source import Run, judge_of, need_baseline, systems_of
from ragnb.errors import RagnbError
from ragnb.markup import count
from ragnb.scenario import Scenario
from ragnb.schema import Metric, note_frame, note_row
from ragnb.texts.errors import translated


def beside_baseline(
    scenario: Scenario, frame: Any, metrics: list[Metric]
) -> tuple[pd.DataFrame | None, pd.DataFrame, pd.DataFrame | None]:
    """Return how a run differs from the baseline of its scenario, the notes that come before, and each question.

    Returns
    -------
    DataFrame or None, DataFrame, DataFrame or None
        As `compare`, None without a baseline or where the two cannot be compared, which a note then says; and
        ``code, about, text``: questions, documents or a judge that changed, so that no such change is taken for
        one of the system.
    """
    if scenario.baseline is None:
        return None, note_frame([]), None
    run = Run(scenario.name, scenario, frame, tuple(metrics), systems_of(frame, "system"), judge_of(scenario))
    say = texts.load(scenario.lang)
    need_baseline(str(scenario.baseline), run.systems)
    try:
        other, pairs = paired_runs(run)
    except RagnbError as error:
        reason = translated(str(error), scenario.lang)
        return None, note_frame([note_row("not_compared", "", say("note.not_compared", reason=reason))]), None
    turned = question_changes(pairs[0], scenario) if len(pairs) == 1 else None
    return compared(pairs, scenario), note_frame(changes(run, other, pairs)), turned


def changes(run: Run, other: Run, pairs: Iterable[Pairs]) -> list[dict[str, str]]:
    """Return a note for each of judge, questions and documents that changed between two runs."""
    scenario = run.scenario
    rows = [row for one in pairs for row in _of_questions(one, scenario.doc, scenario.lang)]
    if run.judge and other.judge and run.judge != other.judge:
        rows.insert(0, note_row("judge_changed", "", texts.load(scenario.lang)("note.judge_changed")))
    return rows


def _of_questions(pairs: Pairs, doc: str, lang: str) -> list[dict[str, str]]:
    say, rows = texts.load(lang), []
    there: npt.NDArray[np.bool_] = np.any(pairs.states < 4, axis=2)
    only = [int((there[side] & ~there[1 - side]).sum()) for side in (0, 1)]
    if any(only) or pairs.reworded:
        counts = {"new": count(only[0]), "old": count(only[1]), "reworded": count(pairs.reworded)}
        text = say("note.questions_changed", n=count(int(np.logical_and(*there).sum())), **counts)
        rows.append(note_row("questions_changed", pairs.candidate, text))
    if doc in pairs.labels:
        sides = [set(pairs.labels.loc[side, doc].dropna()) for side in there]
        if sides[0] != sides[1]:
            counts = {"new": count(len(sides[0] - sides[1])), "old": count(len(sides[1] - sides[0]))}
            rows.append(note_row("documents_changed", pairs.candidate, say("note.documents_changed", **counts)))
    return rows
