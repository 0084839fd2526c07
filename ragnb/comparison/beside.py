"""A run beside the baseline and the accepted run that its scenario names, with notes on what else changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.comparison.differences import compared, with_ratings
from ragnb.comparison.operations import operations_beside
from ragnb.comparison.pairs import Pairs
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
    table, notes, other, pairs = _beside(run, scenario.baseline)
    if other is None:
        return Beside(None, notes)
    if len(pairs) == 1:
        turned = question_changes(pairs[0], scenario)
    else:
        turned = None
    took = operations_beside(run, other, pairs)
    return Beside(table, notes, turned, took if len(took) else None)


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
    table, notes, *_ = _beside(run, anchor)
    say = texts.load(scenario.lang)
    notes["text"] = [say("compare.anchor", head=text) for text in notes["text"]]
    return table, notes.assign(about="anchor")


def _beside(
    run: Run, base: Any
) -> tuple[pd.DataFrame | None, pd.DataFrame, Run | None, list[Pairs]]:
    """Return how a run differs from another, what changed, that run and the pairs; or a note why it cannot."""
    lang = run.scenario.lang
    try:
        other, pairs = paired_runs(run, base)
    except RagnbError as error:
        text = texts.load(lang)("note.not_compared", reason=translated(str(error), lang))
        return None, note_frame([note_row("not_compared", "", text)]), None, []
    table = compared(with_ratings(pairs, run.scenario), run.scenario)
    return table, note_frame(changes(run, other, pairs)), other, pairs


def changes(run: Run, other: Run, every: Iterable[Pairs]) -> Iterator[dict[str, str]]:
    """Yield a note for each of judge, questions and documents that changed between two runs."""
    say = texts.load(run.scenario.lang)
    doc = run.scenario.doc
    if run.judge and other.judge and run.judge != other.judge:
        yield note_row("judge_changed", "", say("note.judge_changed"))
    for pairs in every:
        if pairs.new_references:
            n = int(np.any(pairs.states < 4, axis=2).all(axis=0).sum())
            words = {"changed": count(pairs.new_references), "n": count(n)}
            yield note_row(
                "references_changed", pairs.candidate, say("note.references_changed", **words)
            )
        there: Flags = np.any(pairs.states < 4, axis=2)
        only = [int((there[side] & ~there[1 - side]).sum()) for side in (0, 1)]
        if any(only) or pairs.reworded:
            counts = {
                "new": count(only[0]),
                "old": count(only[1]),
                "reworded": count(pairs.reworded),
            }
            text = say("note.questions_changed", n=count(int(there.all(axis=0).sum())), **counts)
            yield note_row("questions_changed", pairs.candidate, text)
        new, old = (
            set(pairs.labels.loc[side, doc].dropna()) if doc in pairs.labels else set()
            for side in there
        )
        if new != old:
            text = say(
                "note.documents_changed", new=count(len(new - old)), old=count(len(old - new))
            )
            yield note_row("documents_changed", pairs.candidate, text)
