"""The account: what was expected, what came and what was lost, from the lines of the files to the cells."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb.inputs import streams
from ragnb.inputs.coverage import Coverage
from ragnb.schema import METRICS, STOPPED_EARLY, Metric, records
from ragnb.traces import RATES, count_unanswerable, mark_unanswerable
from ragnb.weights import Batch, collected, column_names, opened
from ragnb.weights.columns import count_where

COLUMNS = (
    "stage",
    "subject",
    "system",
    "expected",
    "seen",
    "lost",
    "reason",
    "failed",
    "not_applicable",
    "decides",
    "worst",
    "best",
)
"""``expected = seen + lost``. Beside them: how many of the lost failed, how many cells are not expected because
the metric does not apply, whether a gate or the total uses it, and the mean if all that is lost were wrong, and
of a metric if all of it were right."""

EVIDENCE = ("retrieved_contexts", "ground_truth_answer", "ground_truth_contexts")
"""The fields whose absence in a row explains an empty cell of a metric that needs them; a question and an answer
are what the run itself should hold, so that their absence explains nothing."""

_SAME = 1e-12  # scores are at the bad end up to rounding
_OPEN = ("", "missing")  # the statuses of an empty cell that say nothing about why it is empty


class Answers(NamedTuple):
    """How many rows a system has, how many of them lack an answer, and how many of these failed.

    `known` is whether anything says which rows lack one.
    """

    rows: int
    lost: int
    failed: int
    known: bool


# What is not applicable, with its evidence


def mark_not_applicable(frame: Any, *, metrics: Iterable[Metric], blank: str = "lost") -> Any:
    """Return the rows with empty cells marked as not applicable where the file says why they are empty.

    It says so where a field that the metric needs is empty in that row and filled in others, where a judge left
    a question out because the gates were settled, and where `blank` or ``Metric.blank`` is ``not_applicable``.
    A cell that has a number or a status keeps it.

    Examples
    --------
    >>> rows = {"faithfulness": [0.9, None, None], "retrieved_contexts": [["a"], None, ["b"]]}
    >>> metric = Metric("faithfulness", needs=["retrieved_contexts"])
    >>> marked = mark_not_applicable(pd.DataFrame(rows), metrics=[metric])
    >>> marked["faithfulness__status"].eq("not_applicable").tolist()
    [False, True, False]
    """
    have = column_names(frame)
    quality = [metric for metric in metrics if metric.name in have and metric.role == "quality"]
    needed = {field for metric in quality for field in metric.needs}
    fields = [field for field in EVIDENCE if field in needed and field in have]
    partly_filled = _partly_filled(frame, fields)
    statuses: list[nw.Expr] = []
    for metric in quality:
        status = f"{metric.name}__status"
        conditions = [_is_empty(frame, metric.name)]
        word = nw.lit(None, nw.String)
        if status in have:
            word = nw.col(status).cast(nw.String)
            conditions.append(word.is_null() | word.is_in([*_OPEN]))
        # Where blanks are declared not to apply, none needs an explanation.
        if "not_applicable" not in (metric.blank, blank):
            reasons = _explanations(metric, partly_filled, have)
            if not reasons:
                continue
            conditions.append(nw.any_horizontal(*reasons, ignore_nulls=True))
        does_not_apply = nw.all_horizontal(*conditions, ignore_nulls=True)
        marked = nw.when(does_not_apply).then(nw.lit("not_applicable")).otherwise(word)
        statuses.append(marked.alias(status))
    if statuses:
        return nw.from_native(frame).with_columns(*statuses).to_native()
    return frame


def count_not_applicable(frame: Any, metrics: Iterable[Metric]) -> int:
    """Return how many rows there are to which no quality metric applies.

    Without any quality metric these are the unanswerable questions.

    Examples
    --------
    >>> rows = {"faithfulness": [0.9, None], "faithfulness__status": [None, "not_applicable"]}
    >>> count_not_applicable(pd.DataFrame(rows), [Metric("faithfulness")])
    1
    """
    have = column_names(frame)
    quality = [
        metric.name for metric in metrics if metric.role == "quality" and metric.name in have
    ]
    if not quality:
        return count_unanswerable(frame)
    if not all(f"{name}__status" in have for name in quality):
        return 0
    words = [nw.col(f"{name}__status").cast(nw.String) for name in quality]
    excluded = [(word == "not_applicable").fill_null(False) for word in words]
    nowhere = nw.all_horizontal(*excluded, ignore_nulls=True)
    counted = collected(opened(frame).select(count_where(nowhere, "n")))
    return int(counted["n"].item() or 0)


def _partly_filled(frame: Any, fields: Sequence[str]) -> list[str]:
    """Return the fields that are filled in some row and empty in another."""
    if not fields:
        return []
    counts = [count_where(nw.col(field).is_null(), field) for field in fields]
    counted = collected(opened(frame).select(nw.len().alias("rows"), *counts))
    n_rows = int(counted["rows"].item() or 0)
    return [field for field in fields if 0 < int(counted[field].item() or 0) < n_rows]


def _explanations(
    metric: Metric, partly_filled: Sequence[str], have: Collection[str]
) -> list[nw.Expr]:
    """Return the conditions under which an empty cell of a metric has an explanation in its row."""
    # A field that is empty in every row does not explain why some cells are.
    reasons = [nw.col(field).is_null() for field in metric.needs if field in partly_filled]
    if f"{metric.name}__reason" in have:
        reason = nw.col(f"{metric.name}__reason").cast(nw.String)
        reasons.append((reason == STOPPED_EARLY).fill_null(False))
    return reasons


def _is_empty(frame: Any, name: str) -> nw.Expr:
    """Return where a column of numbers holds none; NaN is none in every engine."""
    empty = nw.col(name).is_null()
    if isinstance(frame, pd.DataFrame):
        return empty
    if nw.from_native(frame).collect_schema()[name].is_float():
        return empty | nw.col(name).is_nan()
    return empty


# Answers


def count_answers(frame: Any, metrics: Iterable[Metric], *, labelled: bool) -> Answers:
    """Return how many rows there are and how many of them lack an answer.

    Of traces that were labelled, those that `label_traces` leaves open. Of a table of scores with answers, rows
    without an answer and without any score: an answer that was scored is no lost one.

    Examples
    --------
    >>> rows = {"answer": ["x", None, None], "faithfulness": [0.9, 0.1, None]}
    >>> count_answers(pd.DataFrame(rows), [Metric("faithfulness")], labelled=False)
    Answers(rows=3, lost=1, failed=0, known=True)
    """
    have = column_names(frame)
    if labelled and "answered" in have:
        lacking = nw.col("answered").is_null()
    elif "answer" in have:
        lacking = nw.col("answer").is_null()
        for metric in metrics:
            if metric.name in have:
                lacking = lacking & _is_empty(frame, metric.name)
    else:
        return Answers(streams.size(frame), 0, 0, known=False)
    counts = [nw.len().alias("rows"), count_where(lacking, "lost")]
    if "ok" in have:
        word = nw.col("ok").cast(nw.String).str.to_lowercase()
        failed = word.is_in(["false", "0", "0.0"]).fill_null(False)
        counts.append(count_where(lacking & failed, "failed"))
    counted = collected(opened(frame).select(*counts)).to_dict(as_series=False)
    # In SQL a sum over no rows is null.
    n_lost = counted["lost"][0] or 0
    n_failed = counted.get("failed", [0])[0] or 0
    return Answers(int(counted["rows"][0]), int(n_lost), int(n_failed), known=True)


# Cells


def at_worst(metrics: Iterable[Metric]) -> Any:
    """Return a function that sets the lost scores of a batch to the worst end of their range."""
    bounded = [metric for metric in metrics if metric.bounded]

    def derive(batch: Batch) -> Batch:
        changed: dict[Any, Any] = {}
        for metric in bounded:
            values = batch.values(metric)
            status = batch.status(metric)
            # Codes of a status: 0 is ok or missing, 1 failed, 2 not applicable.
            is_lost = np.isnan(values) & (status < 2)
            worst = worst_end(metric.low, metric.high, metric.better)
            changed[metric] = np.where(is_lost, worst, values)
            changed["status", metric] = np.where(is_lost, 0, status).astype(np.int8)
        return batch.with_values(changed)

    return derive


def worst_end(low: float, high: float, better: str) -> float:
    """Return the bad end of a range.

    Examples
    --------
    >>> worst_end(0.0, 1.0, "lower")
    1.0
    """
    if better == "higher":
        return low
    return high


def computed_rates(labelled: bool, of_log: bool) -> frozenset[str]:
    """Return the rates that are read off the answers: an empty cell of theirs is explained by its answer.

    An answer that is lost is one lost answer, not one lost cell a rate, and a rate that needs a gold field which
    a question lacks does not apply to it.
    """
    rates = {*RATES} if labelled else set()
    if of_log:
        rates |= {name for name, metric in METRICS.items() if metric.role == "rate"}
        rates |= {name for name, metric in METRICS.items() if metric.family == "wording"}
    return frozenset(rates)


def make_account(
    means: pd.DataFrame,
    *,
    worst: pd.DataFrame,
    lines: Iterable[Mapping[str, Any]],
    coverage: Sequence[Coverage],
    answers: Mapping[Any, Answers],
    metrics: Sequence[Metric],
    decides: Collection[str],
    computed: Collection[str],
    expect: int | None = None,
    blank: str = "lost",
) -> pd.DataFrame:
    """Return the account of a run: one row a stage, subject and system, with the columns of `COLUMNS`.

    Parameters
    ----------
    means, worst : DataFrame
        What `weighted_means` returns, with the column ``system`` where there are several; and the same where each
        lost score is at the worst end of its range.
    lines : iterable of mapping
        ``role, lines, damaged`` of each input file.
    answers : mapping of system to Answers
        None is the only system of a run that names none.
    decides : collection of str
        The metrics that a gate or the total uses.
    computed : collection of str
        See `computed_rates`.
    expect : int, optional
        How many answers each system should have given.
    """
    rows = []
    for file in lines:
        if file["lines"]:
            n_lines = int(file["lines"])
            rows.append(_row("lines", file["role"], None, n_lines, int(file["damaged"])))
    for system, given in answers.items():
        asked = [of_set for of_set in coverage if of_set.system == system]
        if expect is not None:
            # A failed answer did come: it is counted as lost among the answers, not here.
            seen = min(expect, given.rows - given.lost + given.failed)
            asked.append(Coverage("expect", system, expect, seen))
        for of_set in asked:
            n_lost = of_set.expected - of_set.seen
            rows.append(_row("questions", of_set.subject, system, of_set.expected, n_lost))
        if given.known:
            rows.append(
                _row("answers", "answers", system, given.rows, given.lost, failed=given.failed)
            )
        # Several sets may lack the same answer: the largest loss counts, not their sum.
        lost_answers = max([given.lost, *(of_set.expected - of_set.seen for of_set in asked)])
        absent = _absent_cells(asked, metrics, blank)
        if expect is not None:
            never_came = max(0, expect - given.rows)
            for metric in metrics:
                absent[metric.name] = max(absent.get(metric.name, 0), never_came)
        lowest = {row["metric"]: row for row in _of_system(worst, system, decides)}
        for mean in _of_system(means, system, decides):
            name = mean["metric"]
            n_absent = absent.get(name, 0)
            if mean["role"] == "total":
                n_absent = max(absent.values(), default=0)
            if name in computed:
                row = _of_rate(mean, given, lost_answers)
            else:
                row = _of_cells(mean, lowest[name], n_absent)
            rows.append(row | {"decides": name in decides})
    frame = pd.DataFrame(rows, columns=list(COLUMNS), dtype=object)
    counts = dict.fromkeys(("expected", "seen", "lost", "failed", "not_applicable"), "int64")
    return frame.astype(counts | {"decides": bool, "worst": "float64", "best": "float64"})


def _of_system(
    table: pd.DataFrame, system: Any, decides: Collection[str] = ()
) -> list[dict[Any, Any]]:
    """Return the rows of one system, of measures of operation those that decide; no total of nothing."""
    of_system = table
    if "system" in table:
        of_system = table[table["system"] == system]
    # What an answer took says nothing about which are missing, until a gate goes by it.
    is_operation = of_system["role"] == "operation"
    of_system = of_system[~is_operation | of_system["metric"].isin([*decides])]
    is_quality = of_system["role"] == "quality"
    is_total = of_system["role"] == "total"
    some_total = bool(of_system.loc[is_total, "n"].any())
    no_score = not of_system.loc[is_quality, "n"].any()
    # A total that no answer has, beside scores, is one whose scales cannot be added up.
    if is_quality.any() and (some_total or no_score):
        return records(of_system)
    return records(of_system[~is_total])


def _row(
    stage: str,
    subject: str,
    system: Any,
    expected: int,
    lost: int,
    *,
    failed: int = 0,
    not_applicable: int = 0,
    worst: float = math.nan,
    best: float = math.nan,
) -> dict[str, Any]:
    """Return a row of the account; what is lost and did not fail is missing, or damaged in a file."""
    reasons = []
    if failed:
        reasons.append("failed")
    if lost > failed:
        reasons.append("damaged" if stage == "lines" else "missing")
    return {
        "stage": stage,
        "subject": subject,
        "system": system,
        "expected": expected,
        "seen": expected - lost,
        "lost": lost,
        "reason": ", ".join(reasons),
        "failed": failed,
        "not_applicable": not_applicable,
        "decides": False,
        "worst": worst,
        "best": best,
    }


def _of_cells(row: Mapping[Any, Any], lowest: Mapping[Any, Any], absent: int) -> dict[str, Any]:
    """Return the row of a metric or the total, of which so many cells never came."""
    is_total = row["role"] == "total"
    lost = int(row["n_failed"]) + int(row["n_missing"]) + absent
    bad = worst_end(row["range_low"], row["range_high"], row["better"])
    worst = math.nan
    if math.isfinite(bad) or not lost:
        worst = _lowered(lowest, absent)
    best = math.nan
    if not is_total:
        best = _raised(row, worst, bad, lost)
    return _row(
        "total" if is_total else "cells",
        row["metric"],
        row.get("system"),
        int(row["n"]) + lost,
        lost,
        failed=int(row["n_failed"]),
        not_applicable=int(row["n_not_applicable"]),
        worst=worst,
        best=best,
    )


def _raised(row: Mapping[Any, Any], worst: float, bad: float, lost: int) -> float:
    """Return the mean of a metric with all that is lost at the good end of its range.

    The weight of what is lost follows from how far it lowers the mean; where the mean is at the bad end already
    and nothing can lower it, from how many scores are lost.
    """
    if bad == row["range_low"]:
        good = row["range_high"]
    else:
        good = row["range_low"]
    if pd.isna(worst):
        return math.nan
    if not lost:
        return float(row["value"])
    if not row["n"]:
        return float(good)
    value = float(row["value"])
    share = lost / (lost + int(row["n"]))  # of the weight that is lost
    if abs(value - bad) > _SAME:
        share = (value - worst) / (value - bad)
    return float(value + share * (good - value))


def _of_rate(row: Mapping[Any, Any], given: Answers, lost_answers: int) -> dict[str, Any]:
    """Return the row of a rate that is read off the answers.

    Its cells of failed answers are lost with these answers, and its other empty cells do not apply.
    """
    n = int(row["n"])
    failed = max(0, int(row["n_failed"]) - given.failed)
    n_rows = n + int(row["n_failed"]) + int(row["n_missing"]) + int(row["n_not_applicable"])
    # Where a rate does not apply to every answer, nobody knows to how many of the lost ones it would have applied.
    applies_to_all = n == given.rows - given.lost
    worst = math.nan
    if applies_to_all:
        worst = _lowered(row, lost_answers)
    return _row(
        "cells",
        row["metric"],
        row.get("system"),
        n + failed,
        failed,
        failed=failed,
        not_applicable=n_rows - n - failed,
        worst=worst,
    )


def _lowered(row: Mapping[Any, Any], absent: int) -> float:
    """Return a mean with so many cells more at the bad end of its range."""
    bad = worst_end(row["range_low"], row["range_high"], row["better"])
    if not absent:
        return float(row["value"])
    if not math.isfinite(bad):
        return math.nan
    value = 0.0 if pd.isna(row["value"]) else float(row["value"])
    n = int(row["n"])
    return (value * n + bad * absent) / (n + absent)


def _absent_cells(
    asked: Iterable[Coverage], metrics: Sequence[Metric], blank: str
) -> dict[str, int]:
    """Return how many cells of each metric are lost with the cases that did not come."""
    quality = [metric for metric in metrics if metric.role == "quality"]
    empty = {metric.name: math.nan for metric in quality}
    cells: dict[str, int] = {}
    for of_set in asked:
        questions = of_set.questions
        if questions is None or of_set.came is None or of_set.came.all():
            continue
        # Marked like the rows of the run, with every score empty: what does not apply is not lost.
        rows = questions.drop(columns=[name for name in empty if name in questions])
        rows = rows.assign(**empty)
        rows = mark_unanswerable(rows, metrics=quality)
        rows = mark_not_applicable(rows, metrics=quality, blank=blank)
        unmarked = pd.Series(None, index=rows.index, dtype=object)
        for name in empty:
            status = rows.get(f"{name}__status", unmarked)
            n_lost = int((status[~of_set.came] != "not_applicable").sum())
            # Several sets may lack the same question.
            cells[name] = max(cells.get(name, 0), n_lost)
    return cells
