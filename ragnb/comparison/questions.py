"""Which questions changed between two systems, with both answers and what they failed by."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.comparison.columns import columns_of, primary_of
from ragnb.comparison.estimates import TIE
from ragnb.comparison.pairs import ABSENT, Pairs, rows_of
from ragnb.comparison.source import Run, paired_runs, run_of
from ragnb.diagnostics import failure_modes
from ragnb.diagnostics.findings import MODES, NEEDED
from ragnb.diagnostics.rules import same_scale
from ragnb.errors import RagnbError, listing, need_whole
from ragnb.scenario import Scenario, need_arguments
from ragnb.weights import column_names
from ragnb.weights.total import Array, Flags

if TYPE_CHECKING:
    from ragnb.scenario.settings import SharedSettings


RIGHT = ("OK", "REFUSAL_OK")
TEXTS = {"answer": "answer", "contexts": "retrieved_contexts"}


def changed_questions(
    scores: Any,
    *,
    baseline: Any = None,
    candidate: str | None = None,
    system: str = "system",
    metric: str | None = None,
    n: int = 20,
    on: str | None = None,
    **settings: Unpack[SharedSettings],
) -> pd.DataFrame:
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
    need_arguments(changed_questions, settings)
    need_whole("n", n)
    run = run_of(scores, system=system, settings=settings, name="candidate")
    _, every = paired_runs(run, baseline, candidate, on, settings=settings)
    return pd.concat([_changed(one, run.scenario, metric, n) for one in every], ignore_index=True)


def _changed(pairs: Pairs, scenario: Scenario, metric: str | None, n: int) -> pd.DataFrame:
    """Return the table of one candidate."""
    columns = columns_of(pairs, scenario)
    column = primary_of(columns, metric)
    if column is None:
        choices = listing(one.metric for one in columns[:-1])
        reason = columns[-1].about["reason"]
        raise RagnbError(
            f"several metrics and no total ({reason}); name one of {choices}: metric='…'"
        )
    gain = np.nan_to_num(column.gain) * (pairs.weights > 0)
    # Of equal changes, whatever their last bits, by name: rows of a query have no order.
    order = np.lexsort((pairs.labels[pairs.key].to_numpy(str), -np.abs(gain).round(9)))
    better = order[gain[order] > TIE][:n]
    worse = order[gain[order] < -TIE][:n]
    moved = {*better, *worse}
    at = np.array([k for k in order if k in moved], dtype=np.intp)  # the questions that are shown
    labels = pairs.labels.iloc[at].reset_index(drop=True)
    gain = gain[at]
    new, old = column.scores[:, at]
    names = {"candidate": pairs.candidate, "baseline": pairs.baseline, "metric": column.metric}
    identifying = dict.fromkeys([pairs.key, "sample_id", "question", scenario.doc])
    shown = [name for name in identifying if name in labels]
    table = pd.DataFrame(names, index=labels.index).join(labels[shown])
    # A pass/fail score has turned where it changed by its whole range.
    turned = (np.abs(gain) >= column.width - TIE) & (column.about["kind"] == "binary")
    modes = _modes(pairs, at)
    if modes is not None:
        turned |= _is_fine_on_one_side(modes, gain)
    table["change"] = _words(gain, turned)
    table["value"] = new - old
    table["candidate_value"] = new
    table["baseline_value"] = old
    of_new, of_old = (
        _texts(run, system, pairs.key, labels[pairs.key]) for run, system in pairs.origins
    )
    for name in TEXTS:
        if name in of_new or name in of_old:
            table[f"candidate_{name}"] = of_new.get(name)
            table[f"baseline_{name}"] = of_old.get(name)
    if modes is not None:
        table["candidate_mode"] = modes.candidate
        table["baseline_mode"] = modes.baseline
    return table


class _Modes(NamedTuple):
    """The failure modes of some questions on both sides."""

    candidate: npt.NDArray[Any]
    baseline: npt.NDArray[Any]


def _is_fine_on_one_side(modes: _Modes, gain: Array) -> Flags:
    """Return where the better side has no failure mode, and the other has one that is known."""
    unknown, fine = MODES[0], MODES[-1]
    is_gain = gain > 0
    better_side = np.where(is_gain, modes.candidate, modes.baseline)
    worse_side = np.where(is_gain, modes.baseline, modes.candidate)
    return np.asarray((better_side == fine) & (worse_side != fine) & (worse_side != unknown))


def _words(gain: Array, turned: Flags) -> npt.NDArray[np.str_]:
    """Return the word for each change, given which questions came to be right or wrong."""
    tests = [turned & (gain > 0), turned & (gain < 0), gain > TIE, gain < -TIE]
    return np.select(tests, ["fixed", "broken", "better", "worse"], "same")


def question_changes(pairs: Pairs, scenario: Scenario) -> pd.DataFrame:
    """Return what became of each common question from the baseline to the candidate.

    Returns
    -------
    DataFrame
        ``sample_id`` (or what tells questions), ``before, now`` (the score that decides; nan where none does),
        ``before_label, now_label`` (None without gold), ``before_answer, now_answer`` where the rows have answers,
        and ``change``: ``fixed``, ``broken``, ``better``, ``worse`` or ``same``.
    """
    column = primary_of(columns_of(pairs, scenario), None)
    common = np.all(pairs.states < ABSENT, axis=0).any(axis=1)
    labels = pairs.labels[common].reset_index(drop=True)
    if column is None:
        gain = now = before = np.full(len(common), np.nan)
    else:
        gain = column.gain
        now, before = column.scores
    table = pd.DataFrame(
        {"sample_id": labels[pairs.key], "before": before[common], "now": now[common]}
    )
    table["now_label"] = labels.get("candidate_label")
    table["before_label"] = labels.get("baseline_label")
    for side, (run, system) in zip(("now", "before"), pairs.origins, strict=True):
        # Of rows that are not all held the answers stay where they are.
        if isinstance(run.frame, pd.DataFrame):
            texts = _texts(run, system, pairs.key, labels[pairs.key], ["answer"])
            table = table.assign(**{f"{side}_{name}": cells for name, cells in texts.items()})
    known = table[["now_label", "before_label"]].notna().all(axis=1).to_numpy()
    is_right_now = table["now_label"].isin(RIGHT).to_numpy(int)
    was_right = table["before_label"].isin(RIGHT).to_numpy(int)
    # Labels say whether an answer is right; without both of them the score says whether it is better.
    change = _words(np.where(known, is_right_now - was_right, np.nan_to_num(gain[common])), known)
    return table.assign(change=change)


def _modes(pairs: Pairs, at: npt.NDArray[np.intp]) -> _Modes | None:
    """Return the failure modes of some questions; None where the metrics that tell them are not there."""
    comparable = [metric for metric in pairs.metrics if same_scale(metric)]
    if not {*NEEDED} <= {metric.name for metric in comparable}:
        return None
    names = [metric.name for metric in pairs.metrics]
    candidate, baseline = (
        failure_modes(pd.DataFrame(side[at], columns=names), metrics=comparable)["failure_mode"]
        for side in pairs.scores
    )
    return _Modes(candidate.to_numpy(object), baseline.to_numpy(object))


def _texts(
    run: Run,
    system: str | None,
    key: str,
    questions: pd.Series[Any],
    names: Iterable[str] = tuple(TEXTS),
) -> dict[str, list[Any]]:
    """Return the `names` of `TEXTS` that are there, of some questions of a system, from rows of any engine."""
    there = column_names(run.frame)
    have = {name: TEXTS[name] for name in names if TEXTS[name] in there}
    if not have:
        return {}
    only: dict[str, list[Any]] = {key: questions.tolist()}
    if system is not None:
        only[run.system] = [system]
    rows = rows_of(run.frame, [], only, texts=[*have.values()], only=only)
    # Of a question that was answered several times the first answer is shown.
    asked = rows.drop_duplicates(key).set_index(key).reindex(questions)
    return {name: asked[column].to_list() for name, column in have.items()}
