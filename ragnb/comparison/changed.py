"""What changed from a baseline: questions fixed and broken, and the questions, documents and judge themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import texts
from ragnb.comparison.differences import TIE, Flags, Pairs, columns_of, compared, paired_runs, primary_of
from ragnb.comparison.source import Run, judge_of, need_baseline, run_of, systems_of
from ragnb.diagnostics import failure_modes
from ragnb.diagnostics.findings import MODES, NEEDED
from ragnb.errors import RagnbError, listing
from ragnb.markup import count
from ragnb.scenario import Scenario
from ragnb.schema import METRICS, Metric, note_frame, note_row
from ragnb.texts.errors import translated
from ragnb.weights import Batch, Reduction, column_names, reduce_batches

CHANGES = ("fixed", "broken", "better", "worse")
RIGHT = ("OK", "REFUSAL_OK")
TEXTS = {"answer": "answer", "contexts": "retrieved_contexts"}


def changed_questions(
    scores: Any, *, baseline: Any = None, candidate: str | None = None, system: str = "system",
    metric: str | None = None, n: int = 20, on: str | None = None, **settings: Any,
) -> pd.DataFrame:  # fmt: skip
    """Return the questions whose score changed most, with both answers and passages and what they failed by.

    Parameters
    ----------
    scores, baseline, candidate, system, on
        As in `compare`.
    metric : str, optional
        The metric whose differences count; by default the one that decides in `compare`.
    n : int
        How many questions at most that became better, and as many that became worse.
    **settings
        As in `compare`.

    Returns
    -------
    DataFrame
        One row per candidate and question, the largest change first: ``candidate, baseline, metric``, ``sample_id,
        question, doc_name`` (and `on`) where the rows have them, ``change``, ``value`` (candidate − baseline),
        ``candidate_value, baseline_value``, then ``candidate_answer, baseline_answer, candidate_contexts,
        baseline_contexts`` where the columns exist, and ``candidate_mode, baseline_mode``, the failure modes,
        where faithfulness and answer_relevancy are among the metrics. ``change`` is ``fixed`` where the score rose
        and the question now passes: its pass/fail score turned, or its failure mode became ``fine``; ``broken``
        is the reverse; else ``better`` or ``worse``.

    Raises
    ------
    RagnbError
        As `compare`; for several metrics of which none decides, and an `n` that is not a whole number above 0.

    Notes
    -----
    Repeats of a question enter as their mean, and the answer shown is that of the first. A question that one
    side could not score is not among them: `compare` counts it in ``left_out``.

    Examples
    --------
    >>> rows = {"sample_id": [*"abc"] * 2, "system": ["new"] * 3 + ["old"] * 3, "answer": [*"uvwxyz"]}
    >>> scores = pd.DataFrame(rows | {"correct_outcome": [1, 0, 1, 0, 1, 1]})
    >>> table = changed_questions(scores, baseline="old")
    >>> table[["sample_id", "change", "value", "candidate_answer", "baseline_answer"]]
      sample_id  change  value candidate_answer baseline_answer
    0         a   fixed    1.0                u               x
    1         b  broken   -1.0                v               y
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise RagnbError(f"n={n!r}: give the number of questions to show of each direction, 1 or more")
    run = run_of(scores, system=system, settings=settings, name="candidate")
    _, every = paired_runs(run, baseline, candidate, system, on, settings=settings)
    return pd.concat([_changed(one, run.scenario, metric, n, system) for one in every], ignore_index=True)


def _changed(pairs: Pairs, scenario: Scenario, metric: str | None, n: int, system: str) -> pd.DataFrame:
    columns = columns_of(pairs, scenario)
    column = primary_of(columns, metric)
    if column is None:
        choices = listing(one.metric for one in columns[:-1])
        raise RagnbError(f"several metrics and no total ({columns[-1].reason}); name one of {choices}: metric='…'")
    new, old = column.scores
    gain = np.nan_to_num(new - old) * (1 if column.better == "higher" else -1) * (pairs.weights > 0)
    key, asked = str(pairs.labels.columns[0]), pairs.labels.iloc[:, 0].astype(str)
    order = np.lexsort([asked, -np.abs(gain).round(9)])  # of equal changes by name: rows of a query have no order
    moved = [order[sign * gain[order] > TIE][:n] for sign in (1, -1)]
    at = np.array([k for k in order if k in {*moved[0], *moved[1]}], dtype=np.intp)
    labels, modes = pairs.labels.iloc[at].reset_index(drop=True), _modes(pairs, at)
    turned = (np.abs(gain[at]) >= column.high - column.low - TIE) & (column.kind == "binary")
    names = {"candidate": pairs.candidate, "baseline": pairs.baseline, "metric": column.metric}
    shown = [name for name in dict.fromkeys([key, "sample_id", "question", scenario.doc]) if name in labels]
    table = pd.DataFrame(names, index=labels.index).join(labels[shown])
    table["change"] = _words(gain[at] > 0, turned, modes)
    table["value"], table["candidate_value"], table["baseline_value"] = new[at] - old[at], new[at], old[at]
    texts = [_texts(*origin, key, labels[key].tolist(), system, TEXTS.values()) for origin in pairs.origins]
    for name, source in TEXTS.items():
        if any(source in one for one in texts):
            for role, one in zip(("candidate", "baseline"), texts, strict=True):
                table[f"{role}_{name}"] = one[source].reindex(labels[key]).to_list() if source in one else None
    if modes is not None:
        table["candidate_mode"], table["baseline_mode"] = modes
    return table


def question_changes(pairs: Pairs, scenario: Scenario) -> pd.DataFrame:
    """Return what became of each common question from the baseline to the candidate.

    Returns
    -------
    DataFrame
        ``sample_id`` (or what tells questions), ``before, now`` (the score that decides; nan where none does),
        ``before_label, now_label`` (None without gold) and ``change``: ``fixed``, ``broken``, ``better``,
        ``worse`` or ``same``.
    """
    column = primary_of(columns_of(pairs, scenario), None)
    common = np.all(pairs.states < 4, axis=0).any(axis=1)
    key = str(pairs.labels.columns[0])
    table = pd.DataFrame({"sample_id": pairs.labels.loc[common, key].astype(str).to_numpy(object)})
    now, before = (np.full(len(common), np.nan),) * 2 if column is None else column.scores
    table["before"], table["now"] = before[common], now[common]
    for role, origin in zip(("now", "before"), pairs.origins, strict=True):
        found = _texts(*origin, key, table["sample_id"].tolist(), "system", ["label"])
        table[f"{role}_label"] = found["label"].reindex(table["sample_id"]).to_list() if "label" in found else None
    sign = 1 if column is None or column.better == "higher" else -1
    gain = sign * (table["now"] - table["before"]).fillna(0.0)
    change = np.select([gain > TIE, gain < -TIE], ["better", "worse"], "same")
    right = [table[f"{role}_label"].isin(RIGHT) for role in ("now", "before")]
    known = table[["now_label", "before_label"]].notna().all(axis=1)
    turned = [known & right[0] & ~right[1], known & right[1] & ~right[0]]
    return table.assign(change=np.select(turned, ["fixed", "broken"], np.where(known, "same", change)))


def _modes(pairs: Pairs, at: npt.NDArray[np.intp]) -> Any:
    """Return the failure modes of some questions, of the candidate and the baseline; None where none applies."""
    # The rules' thresholds mean nothing on a scale of the caller's own.
    known = [(metric, METRICS[metric.name]) for metric in pairs.metrics if metric.name in METRICS]
    own = [m for m, ours in known if (m.scale, m.better) == (ours.scale, ours.better)]
    if not {*NEEDED} <= {metric.name for metric in own}:
        return None
    names = [metric.name for metric in pairs.metrics]
    frames = [pd.DataFrame(side[at], columns=names) for side in pairs.scores]
    return np.stack([failure_modes(one, metrics=own)["failure_mode"].to_numpy(object) for one in frames])


def _words(better: Flags, turned: Flags, modes: Any) -> list[str]:
    """Return the word for each change; one that the failure modes contradict is no more than better or worse."""
    if modes is not None:
        after, before = modes
        known = (after != MODES[0]) & (before != MODES[0])
        fine = np.where(better, after, before) == MODES[-1]
        turned = turned | (known & fine & (after != before))
    return [CHANGES[2 * (not turn) + (not up)] for up, turn in zip(better, turned, strict=True)]


def _texts(
    frame: Any, name: str | None, key: str, questions: Sequence[str], system: str, columns: Iterable[str]
) -> pd.DataFrame:
    """Return columns of some questions, one row each, from rows of any engine; those that are there."""
    wanted, have = set(questions), [text for text in columns if text in column_names(frame)]

    def of_batch(batch: Batch) -> pd.DataFrame:
        asked = batch.labels(key)
        kept = np.array([*(one in wanted for one in asked.names), False])[asked.codes]
        if name is not None:
            named = batch.labels(system)
            kept &= np.array([*(one == name for one in named.names), False])[named.codes]
        rows = {text: batch.frame[text].to_numpy(object)[kept] for text in have}
        return pd.DataFrame(rows, index=np.array([*asked.names, None], dtype=object)[asked.codes[kept]])

    def first(parts: list[pd.DataFrame]) -> pd.DataFrame:
        whole = pd.concat(parts)
        return whole[~whole.index.duplicated()]

    return cast(pd.DataFrame, reduce_batches(frame, [], [Reduction(of_batch, first, [key, system, *have])])[0])


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
