"""A run beside the baseline and the accepted run that its scenario names, with notes on what else changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.comparison.differences import compared, with_ratings
from ragnb.comparison.operations import operations_beside
from ragnb.comparison.pairs import ABSENT, Pairs
from ragnb.comparison.questions import question_changes
from ragnb.comparison.source import Run, anchor_beside, judge_of, need_baseline, paired_runs
from ragnb.errors import RagnbError
from ragnb.markup import count
from ragnb.scenario import Scenario
from ragnb.schema import Metric, note_frame, note_row
from ragnb.texts.errors import translated
from ragnb.weights.total import Flags


class Beside(NamedTuple):
    """How a run differs from its baseline.

    Attributes
    ----------
    table : DataFrame or None
        As `ragnb.compare`; None without a baseline, or where the two cannot be compared, which a note then says.
    notes : DataFrame
        ``code, about, text``: questions, documents or a judge that changed, so that no such change is taken for
        one of the system.
    questions : DataFrame or None
        Of one candidate what became of each common question.
    operations : DataFrame or None
        As `ragnb.compare_operations`; None where the two share no measure.
    """

    table: pd.DataFrame | None
    notes: pd.DataFrame
    questions: pd.DataFrame | None = None
    operations: pd.DataFrame | None = None


def beside_baseline(scenario: Scenario, frame: Any, metrics: list[Metric]) -> Beside:
    """Return how a run differs from the baseline of its scenario; nothing without one."""
    if scenario.baseline is None:
        return Beside(None, note_frame([]))
    run = Run(scenario.name, scenario, frame, tuple(metrics), judge=judge_of(scenario))
    need_baseline(str(scenario.baseline), run.systems)
    table, notes, other, pairs = _comparison_with(run, scenario.baseline)
    if other is None:
        return Beside(None, notes)
    if len(pairs) == 1:
        questions = question_changes(pairs[0], scenario)
    else:
        questions = None
    operations = operations_beside(run, other, pairs)
    if len(operations):
        return Beside(table, notes, questions, operations)
    return Beside(table, notes, questions)


def beside_anchor(
    scenario: Scenario, frame: Any, metrics: list[Metric]
) -> tuple[pd.DataFrame | None, pd.DataFrame]:
    """Return how a run differs from the accepted one, as `compare`, and the notes that come before.

    None without an ``anchor:``, where it is the baseline anyway, and where the two cannot be compared, as a note
    then says. All notes are about the ``anchor``.
    """
    anchor = anchor_beside(scenario, scenario.baseline)
    if anchor is None:
        return None, note_frame([])
    run = Run(scenario.name, scenario, frame, tuple(metrics), judge=judge_of(scenario))
    table, notes, _, _ = _comparison_with(run, anchor)
    say = texts.load(scenario.lang)
    notes["text"] = [say("compare.anchor", head=text) for text in notes["text"]]
    return table, notes.assign(about="anchor")


class _Comparison(NamedTuple):
    """A run compared with another: the table, what else changed, that other run and the pairs of both.

    Without a table and a run where the two cannot be compared; the one note then says why.
    """

    table: pd.DataFrame | None
    notes: pd.DataFrame
    other: Run | None
    pairs: list[Pairs]


def _comparison_with(run: Run, base: Any) -> _Comparison:
    """Compare a run with another."""
    lang = run.scenario.lang
    try:
        other, pairs = paired_runs(run, base)
    except RagnbError as error:
        # The page of the run itself is still of use, so an unfit baseline does not stop it.
        reason = translated(str(error), lang)
        text = texts.load(lang)("note.not_compared", reason=reason)
        return _Comparison(None, note_frame([note_row("not_compared", "", text)]), None, [])
    table = compared(with_ratings(pairs, run.scenario), run.scenario)
    return _Comparison(table, note_frame(changes(run, other, pairs)), other, pairs)


def changes(run: Run, other: Run, every: Iterable[Pairs]) -> Iterator[dict[str, str]]:
    """Yield a note for each of judge, questions and documents that changed between two runs."""
    say = texts.load(run.scenario.lang)
    doc = run.scenario.doc
    if run.judge and other.judge and run.judge != other.judge:
        yield note_row("judge_changed", "", say("note.judge_changed"))
    for pairs in every:
        there: Flags = np.any(pairs.states < ABSENT, axis=2)  # (2, Q): who was asked what
        n_common = int(there.all(axis=0).sum())
        if pairs.new_references:
            text = say(
                "note.references_changed", changed=count(pairs.new_references), n=count(n_common)
            )
            yield note_row("references_changed", pairs.candidate, text)
        is_new, is_old = there
        only_new = int((is_new & ~is_old).sum())
        only_old = int((is_old & ~is_new).sum())
        if only_new or only_old or pairs.reworded:
            text = say(
                "note.questions_changed",
                n=count(n_common),
                new=count(only_new),
                old=count(only_old),
                reworded=count(pairs.reworded),
            )
            yield note_row("questions_changed", pairs.candidate, text)
        if doc not in pairs.labels:
            continue
        new, old = (set(pairs.labels.loc[side, doc].dropna()) for side in there)
        if new != old:
            text = say(
                "note.documents_changed", new=count(len(new - old)), old=count(len(old - new))
            )
            yield note_row("documents_changed", pairs.candidate, text)
