"""The result frames of one system of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb import diagnostics, weights
from ragnb.diagnostics import RULES
from ragnb.errors import need_columns
from ragnb.inputs import (
    Inputs,
    at_worst,
    count_answers,
    count_not_applicable,
    streams,
)
from ragnb.inputs.account import Answers
from ragnb.inputs.operations import operation_names
from ragnb.markup import MISSING, is_missing
from ragnb.scenario import Scenario
from ragnb.schema import Metric
from ragnb.sheet.documents import DocumentMeans
from ragnb.sheet.operations import (
    means_on_spark,
    measure_operations,
    measured_reduction,
)
from ragnb.sheet.passing import clustering
from ragnb.sheet.retrieval import retrieved
from ragnb.traces import outcome_counts
from ragnb.weights import Moments, Weighing
from ragnb.weights.conversations import (
    turn_column,
)

# What is sliced by where nobody asked: columns of few groups.
_SLICES = ("kind", "language")
_FEW_GROUPS = 12  # of a column that makes slices: one with more names rows, not kinds
_MANY_TURNS = 40  # of conversations, which are told by turn


@dataclass(frozen=True)
class SystemFrames:
    """What is found of one system, or of a run that names none.

    Attributes
    ----------
    frames : mapping of name to DataFrame or None
        Those of `Assessment` that systems stack up.
    worst : DataFrame
        The means if every lost score were at the worst end of its range.
    of_documents : DocumentMeans or None
        None without documents.
    docs : collection of str
        The documents of its rows.
    rows : int
    answers : Answers
        How many answers were expected and how many came.
    taken : DataFrame or None
        What each answer took, by question; None where nobody asks.
    """

    frames: dict[str, pd.DataFrame | None]
    worst: pd.DataFrame
    of_documents: DocumentMeans | None
    docs: Collection[str]
    rows: int
    answers: Answers
    taken: Any


@dataclass(frozen=True)
class _Reduced:
    """What one pass over the rows gives, each part by its name."""

    gains: Any
    mode_gains: Any
    mode_shares: Any
    tenths: pd.DataFrame
    whole: Moments
    by_group: list[Moments]
    taken: Any


def system_frames(
    scenario: Scenario,
    inputs: Inputs,
    frame: Any,
    metrics: list[Metric],
    *,
    measured: bool = False,
) -> SystemFrames:
    """Return the result frames of one system, or of a run that names none.

    `measured` tells whether a gate asks what the answers took.
    """
    have = weights.column_names(frame)
    weights.need_documents(have, **clustering(scenario))
    pairs = list(diagnostics.fitting(RULES, metrics))
    slices = _slices_of(frame, scenario)
    by_doc = [scenario.doc] if scenario.doc in have else []
    measures = operation_names(frame, metrics)
    # Values of rows on Spark stay there.
    of_spark = means_on_spark(frame, measures)
    wants_taken = of_spark is None and (measured or bool(measures))
    reduced = _reduced(
        scenario,
        frame,
        metrics,
        pairs,
        by_doc=by_doc,
        slices=slices,
        measures=measures if wants_taken else None,
    )
    weighing = weighing_of(scenario, metrics, reduced.whole.docs)
    means = _means(frame, metrics, weighing, reduced.whole)
    outcomes = None
    label_counts = None
    if inputs.labelled:
        outcomes = outcome_counts(frame, lang=scenario.lang)
        label_counts = _label_counts(frame, [*slices, *by_doc])
    operations = of_spark
    if of_spark is None:
        operations = measure_operations(reduced.taken, scenario.level, columns=measures)
    of_documents = None
    if by_doc:
        score = means.loc[means["role"] == "total", "value"].iloc[0]
        of_documents = DocumentMeans(reduced.by_group[0], weighing, score)
    ranked = None
    ranked_by_step = None
    # Ranks need the passages of every row, which rows that are streamed do not hold.
    if inputs.labelled and inputs.stream is None:
        ranked, ranked_by_step = retrieved(scenario, frame, reduced.whole.docs)
    without_score = means[["metric", "n_missing", "n_failed", "n_not_applicable"]]
    frames: dict[str, pd.DataFrame | None] = {
        "means": means,
        "diagnoses": diagnostics.findings(
            frame, pairs, reduced.whole, reduced.gains, weighing, top=3, lang=scenario.lang
        ),
        "modes": diagnostics.mode_summary(reduced.mode_gains, reduced.mode_shares, weighing),
        "operations": operations,
        "outcomes": outcomes,
        "retrieval": ranked,
        "retrieval_by_step": ranked_by_step,
        "label_counts": label_counts,
        # The first of the groups are the documents, where there are any; see `_reduced`.
        "slices": _by_slice(reduced.by_group[len(by_doc) :], weighing),
        # How many rows score in each tenth, and how many have no score.
        "spread": reduced.tenths.merge(without_score, on="metric"),
    }
    return SystemFrames(
        frames=frames,
        worst=_worst(scenario, frame, metrics, means, weighing, reduced.whole.questions),
        of_documents=of_documents,
        docs=reduced.whole.docs,
        rows=int(reduced.whole.rows.sum()),
        answers=count_answers(frame, metrics, labelled=inputs.labelled),
        taken=reduced.taken,
    )


def _means(
    frame: Any, metrics: Sequence[Metric], weighing: Weighing, whole: Moments
) -> pd.DataFrame:
    """Return the means of a system, the gaps of its total told apart."""
    means = weighing.means(whole)
    # A total does not apply to a question to which none of its metrics applies; moments count it as missing.
    total = means["role"] == "total"
    n_not_applicable = count_not_applicable(frame, metrics)
    means.loc[total, "n_not_applicable"] += n_not_applicable
    means.loc[total, "n_missing"] -= n_not_applicable
    return means


def _reduced(
    scenario: Scenario,
    frame: Any,
    metrics: list[Metric],
    pairs: list[Any],
    *,
    by_doc: Sequence[str],
    slices: Sequence[str],
    measures: Sequence[str] | None,
) -> _Reduced:
    """Reduce the rows once, for everything that is told of them.

    `by_doc` is the column of documents, if there is one, `slices` are others by which means are taken; `measures`
    are the columns of what the answers took, None where nobody asks.
    """
    how = clustering(scenario)
    weighing = weighing_of(scenario, metrics)
    questions = weights.question_of(frame, **how)
    by_group = []
    for doc in by_doc:
        # Where means are taken by document, documents are no clusters.
        questions_of_doc = weights.question_of(frame, **how, by=doc)
        by_group.append(
            weights.moments_reduction(metrics, **how, by=doc, questions=questions_of_doc)
        )
    by_group += [
        weights.moments_reduction(metrics, **how, by=column, questions=questions)
        for column in slices
    ]
    thresholds = diagnostics.warning_bars(RULES, metrics)
    # The results come back in this order and are taken apart by it below.
    reductions = [
        diagnostics.rule_gains(pairs, metrics, weighing),
        *diagnostics.mode_reductions(metrics, thresholds, weighing, questions),
        weights.histogram_reduction(_bounded(metrics)),
        weights.moments_reduction(metrics, **how, by=None, questions=questions),
        *by_group,
    ]
    if measures is not None:
        reductions.append(
            measured_reduction(
                list(measures),
                metrics,
                doc=scenario.doc,
                cluster=scenario.cluster,
                questions=questions,
            )
        )
    results = weights.reduce_batches(frame, metrics, reductions)
    taken = None
    if measures is not None:
        taken = results.pop()
    gains, mode_gains, mode_shares, tenths, whole, *grouped = results
    return _Reduced(gains, mode_gains, mode_shares, tenths, whole, grouped, taken)


def _bounded(metrics: Sequence[Metric]) -> list[Metric]:
    """Return the metrics of quality that have a worst score."""
    return [metric for metric in metrics if metric.bounded and metric.role == "quality"]


def _worst(
    scenario: Scenario,
    frame: Any,
    metrics: Sequence[Metric],
    means: pd.DataFrame,
    weighing: Weighing,
    questions: str | None,
) -> pd.DataFrame:
    """Return the means if every lost score were at the worst end of its range."""
    bounded = _bounded(metrics)
    of_bounded = means["metric"].isin(metric.name for metric in bounded)
    lost = means.loc[(means["role"] == "quality") & of_bounded, ["n_missing", "n_failed"]]
    # Nothing lost: a second pass over the rows would give the means that are already there.
    if not lost.to_numpy().any():
        return means
    derived = weights.moments_reduction(
        metrics, **clustering(scenario), questions=questions, derive=at_worst(bounded)
    )
    reduced: Moments = weights.reduce_batches(frame, metrics, [derived])[0]
    return weighing.means(reduced)


def weighing_of(
    scenario: Scenario, metrics: list[Metric], docs: Collection[str] | None = None
) -> Weighing:
    """Return how means are weighed, without the weights of what does not occur, which a note names."""
    names = [metric.name for metric in metrics]
    doc_weights = scenario.doc_weights
    # Which documents occur is known only once the rows have been reduced.
    if docs is not None:
        doc_weights = weights.present_weights(doc_weights, docs)
    return Weighing(
        metric_weights=weights.present_weights(scenario.metric_weights, names),
        doc_weights=doc_weights,
        doc=scenario.doc,
        cluster=scenario.cluster,
        level=scenario.level,
        orient=scenario.orient,
        rescale=scenario.rescale,
        corpus=scenario.corpus,
    )


def _label_counts(frame: Any, columns: Sequence[str]) -> pd.DataFrame:
    """Return how often each label occurs in the groups of some columns: ``slice, group, label, n``."""
    # Added up here, not in the engine: names in two forms of Unicode are one group.
    counted = Counter[tuple[str, str, str]]()
    for name in dict.fromkeys(columns):
        rows = weights.opened(frame).select(
            nw.col(name).alias("group"), nw.col("label").cast(nw.String)
        )
        counts = rows.drop_nulls("label").group_by("group", "label").agg(nw.len().alias("n"))
        for group, label, n in weights.collected(counts).iter_rows():
            shown = MISSING
            if not is_missing(group):
                shown = weights.nfc(str(group))
            counted[name, shown, label] += n
    keys = sorted(counted)
    table = pd.DataFrame(keys, columns=["slice", "group", "label"], dtype=object)
    return table.assign(n=np.array([counted[key] for key in keys], dtype=np.int64))


def _slices_of(frame: Any, scenario: Scenario) -> Sequence[str]:
    """Return the columns of the slices; those nobody asked for only where their groups are few."""
    have = weights.column_names(frame)
    if scenario.slices is not None:
        need_columns(have, scenario.slices)
        return scenario.slices
    most_groups = dict.fromkeys(_SLICES, _FEW_GROUPS)
    turn = turn_column(frame)
    if turn is not None:
        most_groups[turn] = _MANY_TURNS
    slices = []
    for column, most in most_groups.items():
        if column in have and 1 < len(streams.distinct_values(frame, column)) <= most:
            slices.append(column)
    return slices


def _by_slice(slices: Sequence[Moments], weighing: Weighing) -> pd.DataFrame | None:
    """Return the means by the groups of each slice; None without slices."""
    if not slices:
        return None
    tables = []
    for moments in slices:
        by = str(moments.by)
        # Means by a column that they have themselves, such as "kind", call their own "metric_kind".
        table = weighing.means(moments).rename(columns={by: "group", f"metric_{by}": by})
        table.insert(0, "slice", by)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)
