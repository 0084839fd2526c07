"""Findings and failure modes: which metric misses its threshold, and what went wrong in each sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple, TypeVar, cast

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import texts, weights
from ragnb.diagnostics.rules import (
    RULES,
    SLACK,
    TABLE,
    fitting,
    meets,
    past,
    rule_texts,
    target_of,
    warning_bars,
)
from ragnb.errors import RagnbError
from ragnb.markup import is_missing
from ragnb.readers.frames import as_called
from ragnb.schema import Metric, Rule, note_row, records

COLUMNS = (
    "metric",
    "severity",
    "value",
    "low",
    "high",
    "threshold",
    "certain",
    "n",
    "n_clusters",
    "cost",
    "causes",
    "actions",
    "worst",
    "rule",
)
_SHOWN = ("sample_id", "question", "answer", "ground_truth_answer")
_OF_MEAN = ("metric", "value", "low", "high", "n", "n_clusters")
# Rows whose lowest score stands for them, so that not all are sorted to find the worst.
_RUN = 1_000
Pairs = Sequence[tuple[Rule, Metric]]


def diagnose(
    scores: Any,
    *,
    metrics: weights.MetricsArgument = None,
    rules: Iterable[Rule] = RULES,
    metric_weights: Mapping[str, float] | None = None,
    doc_weights: Mapping[str, float] | None = None,
    doc: str = "doc_name",
    cluster: str | None = None,
    level: float = 0.95,
    orient: bool = True,
    rescale: bool = False,
    corpus: weights.Corpus = "sample",
    top: int = 3,
    lang: str = "en",
) -> pd.DataFrame:
    """Return a finding for each rule that a metric's mean violates.

    Parameters
    ----------
    scores : DataFrame
        One row per sample, one column per metric, nan or null where there is no score; of pandas, Polars, PyArrow,
        DuckDB or PySpark. Of a query only cells and the worst samples leave its engine.
    metrics : names or Metric objects, optional
        None takes the columns that METRICS declares; a metric without a rule gives no finding.
    rules : Rule objects
        Thresholds are strict, with a slack of 1e-9; critical wins over warning.
    metric_weights, doc_weights : mapping of name to weight, optional
        Document weights enter the means and the cost, metric weights the cost.
    doc, cluster, level, orient, rescale, corpus
        As in `weighted_means`.
    top : int
        How many worst samples to show, 0 or more.
    lang : {"en", "zh"}
        The language of causes and actions.

    Returns
    -------
    DataFrame
        Critical before warning, then the highest ``cost``, then the order of the rules:

        - ``metric, value, low, high, n, n_clusters``: the mean as `weighted_means` gives it.
        - ``severity``: ``critical`` or ``warning``; ``threshold``: the one that is violated.
        - ``certain``: whether the whole interval violates it (and, for a rule of two metrics, the other metric's
          whole interval meets its condition); False without an interval.
        - ``cost``: the potential gain of the weighted score if every sample met the warning threshold;
          nan for a metric outside the total. With ``orient=False`` a lower-is-better metric costs less than 0.
        - ``causes``: list of str; ``actions``: list of ``{"text", "setting"}``.
        - ``worst``: records of ``sample_id`` (the row's label where there is none), ``question``, ``answer``,
          ``ground_truth_answer``, ``score``, and ``system``, ``doc_name`` where there; the worst first, equal
          scores in input order. Rows of DuckDB and PySpark have no order: equal scores go by ``sample_id``.
        - ``rule``: the rule's name; ``weighted``: whether document weights change the means.

    Raises
    ------
    RagnbError
        As `weighted_means`, though metrics that cannot be combined leave the cost missing; for a negative `top`,
        another `lang`, and a rule whose critical threshold is on the good side of its warning threshold.

    Examples
    --------
    >>> scores = pd.DataFrame({"faithfulness": [0.2, 0.9, 0.4], "doc_name": ["a", "b", "c"]})
    >>> diagnose(scores)[["metric", "severity", "value", "threshold", "certain", "cost"]].round(3)
             metric  severity  value  threshold  certain   cost
    0  faithfulness   warning    0.5        0.7    False  0.267
    """
    texts.table(lang)
    if isinstance(top, bool) or not isinstance(top, int) or top < 0:
        raise RagnbError(f"top={top!r} must be a whole number, 0 or more")
    frame, chosen = weights.scored(scores, metrics, doc, cluster)
    weighing = weights.Weighing(
        metric_weights, doc_weights, doc, cluster, level, orient, rescale, corpus
    )
    pairs = list(fitting(rules, chosen))
    how: dict[str, Any] = {"doc": doc, "cluster": cluster, "corpus": corpus}
    weights.need_documents(weights.column_names(frame), **how)
    questions = weights.question_of(frame, **how)
    of_means = weights.moments_reduction(chosen, **how, questions=questions)
    reduced, gains = weights.reduce_batches(
        frame, chosen, [of_means, rule_gains(pairs, chosen, weighing)]
    )
    return findings(frame, pairs, reduced, gains, weighing, top=top, lang=lang)


def rule_gains(
    pairs: Pairs, metrics: Sequence[Metric], weighing: weights.Weighing
) -> weights.Reduction:
    """Return the reduction to the potential gain of each rule's metric at its warning threshold."""
    targets = [(metrics.index(metric), target_of(rule)) for rule, metric in pairs]
    return weights.gains_reduction(metrics, targets, weighing)


def findings(
    frame: Any,
    pairs: Pairs,
    reduced: weights.Moments,
    gains: Sequence[float],
    weighing: weights.Weighing,
    *,
    top: int,
    lang: str,
) -> pd.DataFrame:
    """Return the table of `diagnose` from the reduced rows."""
    means = {row["metric"]: row for row in records(weighing.means(reduced))}
    rows = list[dict[str, Any]]()
    metrics = list[Metric]()
    for (rule, metric), gain in zip(pairs, gains, strict=True):
        mean = means[metric.name]
        violation = _violation_of(rule, metric, means)
        if violation is None:
            continue
        # A metric outside the total has no weight, and raising it no gain.
        if pd.notna(mean["weight"]):
            cost = float(gain)
        else:
            cost = np.nan
        causes, actions = rule_texts(rule, lang)
        row = {name: mean[name] for name in _OF_MEAN}
        row |= violation._asdict()
        row |= {"rule": rule.name, "cost": cost, "causes": causes, "actions": actions}
        rows.append(row)
        metrics.append(metric)
    doc_weights = weights.check_weights(weighing.doc_weights, "doc_weights")
    weighted = any(doc_weights.get(name, 1.0) != 1 for name in reduced.docs)
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    worst = pd.Series(worst_samples(frame, metrics, top), dtype=object)
    table = table.assign(worst=worst, weighted=weighted)
    # Alphabetically "critical" comes before "warning"; equal costs stay in the order of the rules.
    return table.sort_values(
        ["severity", "cost"], ascending=[True, False], kind="stable", ignore_index=True
    )


class _Violation(NamedTuple):
    """How badly a mean violates a rule, which threshold, and whether its whole interval does."""

    severity: str
    threshold: float | None
    certain: bool


def _violation_of(
    rule: Rule, metric: Metric, means: Mapping[str, Mapping[Any, Any]]
) -> _Violation | None:
    """Return how the mean of a metric violates a rule; None if it does not."""
    mean = means[metric.name]
    better = metric.better
    # The critical threshold comes first: a mean past it is past that of the warning, too.
    if past(mean["value"], rule.critical, better):
        severity = "critical"
        threshold = rule.critical
    elif past(mean["value"], rule.warning, better):
        severity = "warning"
        threshold = rule.warning
    else:
        return None
    best_end = mean["high" if better == "higher" else "low"]
    certain = bool(past(best_end, threshold, better))
    if rule.also is not None:
        other = means[rule.also.metric]
        if not meets(other["value"], rule.also):
            return None
        worst_end_of_other = other["low" if rule.also.op == ">=" else "high"]
        certain &= meets(worst_end_of_other, rule.also)
    return _Violation(severity, threshold, certain)


def worst_samples(scores: Any, metrics: Sequence[Metric], top: int) -> list[list[dict[str, Any]]]:
    """Return for each metric the `top` samples with the worst scores as records, none without a score.

    For pass/fail metrics, samples at the good end are excluded too.
    Equal scores are in input order; where rows have none (DuckDB,
    PySpark), by ``sample_id``. A frame without ``sample_id`` gives the row's label, or None where rows have no
    order.

    Examples
    --------
    >>> frame = pd.DataFrame({"sample_id": ["a", "b", "c"], "faithfulness": [0.5, None, 0.1]})
    >>> [r["sample_id"] for r in worst_samples(frame, [Metric("faithfulness")], 2)[0]]
    ['c', 'a']
    """
    there = weights.column_names(scores)
    shown = [*_SHOWN, *(name for name in ("system", "doc_name") if name in there)]
    have = [name for name in shown if name in there]

    def record(row: dict[str, Any], label: Any, score: float) -> dict[str, Any]:
        cells = {"sample_id": label} | row  # the row's label where there is no sample_id
        return {name: _plain(cells.get(name)) for name in shown} | {"score": float(score)}

    worst_by_metric = []
    if weights.stays_lazy(scores):
        for metric in metrics:
            worst_rows = _on_engine(scores, metric, top, have)
            worst_by_metric.append(
                [record(row, row.get("__row"), row["__v0"]) for row in worst_rows]
            )
        return worst_by_metric

    def kernel(batch: weights.Batch) -> list[_Worst]:
        found = []
        for metric in metrics:
            x = batch.values(metric)
            at = _worst_places(metric, x, top)
            found.append(_Worst(at.tolist(), batch.frame.index[at].tolist(), x[at].tolist()))
        return found

    rows = nw.from_native(scores, eager_only=True).select(have)
    # An eager frame is one batch, so positions in the batch are those in the frame.
    for worst in weights.reduce_batches(scores, metrics, [weights.Reduction(kernel)])[0]:
        # Without any column there are no rows to take.
        cells = rows[worst.places].rows(named=True) if have else [{}] * len(worst.places)
        worst_by_metric.append(list(map(record, cells, worst.labels, worst.scores)))
    return worst_by_metric


class _Worst(NamedTuple):
    """The worst samples of a metric, worst first: their positions, the labels of their rows, their scores."""

    places: list[int]
    labels: list[Any]
    scores: list[float]


def _good(metric: Metric) -> float:
    """Return the good end of a pass/fail metric; infinity, which is not a score, for other metrics."""
    if metric.kind != "binary":
        return np.inf
    if metric.better == "higher":
        return metric.high
    return metric.low


def _worst_places(metric: Metric, x: npt.NDArray[np.float64], top: int) -> npt.NDArray[np.int64]:
    """Return the positions of the `top` worst scores, worst first, ties in their order, without nan."""
    if metric.kind == "binary":
        x = np.where(x == _good(metric), np.nan, x)
    if metric.better != "higher":
        x = -x  # from here on the lowest is the worst
    if len(x):
        lowest_of_run = np.fmin.reduceat(x, np.arange(0, len(x), _RUN))
    else:
        lowest_of_run = x  # `reduceat` takes no empty array
    # At least `top` runs hold a value as low as this, so none of the `top` lowest values is above it.
    if 0 < top <= len(lowest_of_run):
        limit = np.partition(lowest_of_run, top - 1)[top - 1]
    else:
        limit = np.nan
    # nan where there are fewer runs than values to find, or too few of them hold a score.
    if np.isnan(limit):
        candidates = np.flatnonzero(~np.isnan(x))
    else:
        candidates = np.flatnonzero(x <= limit)
    return candidates[np.argsort(x[candidates], kind="stable")][:top]


def _plain(cell: Any) -> Any:
    """Return a cell as a plain Python value, None if it is missing."""
    if is_missing(cell):
        return None
    if isinstance(cell, np.generic):
        return cell.item()
    return cell


def _on_engine(scores: Any, metric: Metric, top: int, have: Sequence[str]) -> list[dict[str, Any]]:
    """Let the engine sort and take the head: only these rows are collected, with their score and row number."""
    rows = weights.opened(scores).select(*have, metric.name)
    value = weights.score_of(metric.name, rows.collect_schema()[metric.name]).alias("__v0")
    if rows.implementation.is_polars():
        rows = nw.from_native(rows.to_native().with_row_index("__row"))
        tie_breakers = ["__row"]
    elif "sample_id" in have:
        tie_breakers = ["sample_id"]  # DuckDB's and PySpark's rows have no order
    else:
        tie_breakers = []
    is_score = ~nw.col("__v0").is_null()
    # Samples that pass are none of the worst; of metrics other than pass/fail this leaves out no score.
    is_bad = nw.col("__v0") != _good(metric)
    rows = rows.with_columns(value).filter(is_score, is_bad)
    descending = [metric.better == "lower", *(False for _ in tie_breakers)]
    worst = rows.sort("__v0", *tie_breakers, descending=descending, nulls_last=True).head(top)
    return weights.collected(worst).rows(named=True)


Rows = TypeVar("Rows")

# The metrics that a mode reads; a sample has the first mode with a metric that violates its threshold.
READS: Mapping[str, tuple[str, ...]] = {
    mode: tuple(names) for mode, names in TABLE["modes"].items()
}

# The failure modes, in the order in which they are tried.
MODES = ("not_enough_scores", *READS, "fine")

# Of a sample that lacks one of these scores no other mode is told.
NEEDED = ("faithfulness", "answer_relevancy")

# The least set of metrics to read together.
LEAST_SET = ("faithfulness", "context_relevance", "answer_relevancy")


def failure_modes(
    scores: Rows, *, metrics: weights.MetricsArgument = None, rules: Iterable[Rule] = RULES
) -> Rows:
    """Return the scores with a column ``failure_mode``: the first of `MODES` that fits the sample.

    Parameters
    ----------
    scores : DataFrame
        One row a sample, one column a metric; of pandas, Polars, PyArrow, DuckDB or PySpark. A frame of another
        engine than pandas comes back as its kind, and a lazy one lazy.
    metrics : names or Metric objects, optional
        The metrics to read; a metric that does not exist violates no threshold.
    rules : Rule objects
        Their warning thresholds define what is low.

    Returns
    -------
    DataFrame
        ``not_enough_scores`` without faithfulness or answer_relevancy; ``retrieval_miss`` where context_recall
        violates its threshold; ``noisy_retrieval`` where context_precision, context_relevance or noise_sensitivity
        is; ``unsupported_answer`` where faithfulness is; ``off_the_point`` where answer_relevancy is;
        ``faithful_but_wrong`` where answer_correctness or factual_correctness is; else ``fine``.

    Raises
    ------
    RagnbError
        For unknown metrics, and values outside their range (of a lazy frame when its query runs).

    Examples
    --------
    >>> scores = pd.DataFrame({"faithfulness": [0.9, 0.9, None], "answer_relevancy": [0.9, 0.2, 0.9]})
    >>> failure_modes(scores)["failure_mode"].tolist()
    ['fine', 'off_the_point', 'not_enough_scores']
    """
    frame, chosen = weights.scored(scores, metrics)
    mode = mode_of(chosen, warning_bars(rules, chosen), MODES)
    return cast(
        Rows, as_called(weights.add_columns(frame, chosen, {"failure_mode": mode}), frame, scores)
    )


def failure_summary(
    scores: Any,
    *,
    metrics: weights.MetricsArgument = None,
    rules: Iterable[Rule] = RULES,
    metric_weights: Mapping[str, float] | None = None,
    doc_weights: Mapping[str, float] | None = None,
    doc: str = "doc_name",
    cluster: str | None = None,
    level: float = 0.95,
    orient: bool = True,
    rescale: bool = False,
) -> pd.DataFrame:
    """Return the frequency of each failure mode and its potential gain in the weighted score.

    Parameters
    ----------
    scores : DataFrame
        One row per sample, one column per metric; of pandas, Polars, PyArrow, DuckDB or PySpark, whose rows stay
        where they are.
    metrics, rules
        As in `failure_modes`.
    metric_weights, doc_weights, doc, cluster, level, orient, rescale
        As in `weighted_means`.

    Returns
    -------
    DataFrame
        One row per mode, all of `MODES` in their order:

        - ``failure_mode``; ``n``: its samples; ``share``: their document-weighted share of all samples, with its
          clustered interval ``low, high``; ``n_clusters``: the clusters that all samples come from.
        - ``cost``: the potential gain of the weighted score if every score of the mode's samples met its warning
          threshold; the gains of all modes add up to that of all samples. nan without a total.
        - ``costliest``: True for the mode other than ``fine`` with the largest gain, if any has a gain.

    Raises
    ------
    RagnbError
        As `weighted_means`, though metrics that cannot be combined leave the cost missing.

    Examples
    --------
    >>> scores = pd.DataFrame({"faithfulness": [0.9, 0.9, 0.1], "answer_relevancy": [0.9, 0.2, 0.9]})
    >>> table = failure_summary(scores)
    >>> table.loc[table["n"] > 0, ["failure_mode", "n", "share", "cost"]].round(3)
             failure_mode  n  share   cost
    3  unsupported_answer  1  0.333  0.100
    4       off_the_point  1  0.333  0.083
    6                fine  1  0.333  0.000
    """
    frame, chosen = weights.scored(scores, metrics, doc, cluster)
    weighing = weights.Weighing(metric_weights, doc_weights, doc, cluster, level, orient, rescale)
    questions = weights.question_of(frame, doc=doc, cluster=cluster)
    reductions = mode_reductions(chosen, warning_bars(rules, chosen), weighing, questions)
    gains, shares = weights.reduce_batches(frame, chosen, reductions)
    return mode_summary(gains, shares, weighing)


def mode_reductions(
    metrics: Sequence[Metric],
    thresholds: Mapping[str, float],
    weighing: weights.Weighing,
    questions: str | None,
) -> list[weights.Reduction]:
    """Return the reductions to the potential gain of each mode and metric, and to each mode's share of samples."""
    code = mode_of(metrics, thresholds, range(len(MODES)))
    # A metric without a threshold is lifted to its bad end, which every score has reached: it gains nothing.
    lifts = []
    for place, metric in enumerate(metrics):
        bad_end = metric.low if metric.better == "higher" else metric.high
        lifts.append((place, thresholds.get(metric.name, bad_end)))
    flags = [Metric(mode, kind="binary") for mode in MODES]

    def flagged(batch: weights.Batch) -> weights.Batch:
        codes = weights.evaluated(code, batch, metrics)
        return batch.with_values({flag: (codes == k).astype(float) for k, flag in enumerate(flags)})

    # Each mode is a 0/1 metric, so its share of the samples is a mean like any other, with its interval.
    shares = weights.moments_reduction(
        flags,
        doc=weighing.doc,
        cluster=weighing.cluster,
        corpus=weighing.corpus,
        questions=questions,
        derive=flagged,
    )
    return [
        weights.gains_reduction(metrics, lifts, weighing, part=code, parts=len(MODES)),
        shares,
    ]


def mode_summary(
    gains: npt.NDArray[np.float64], shares: weights.Moments, weighing: weights.Weighing
) -> pd.DataFrame:
    """Return the table of `failure_summary` from the reduced rows."""
    # After the modes comes a row of their total, which has no meaning.
    means = shares.means(doc_weights=weighing.doc_weights, level=weighing.level).iloc[: len(MODES)]
    table = means[["metric", "value", "low", "high", "n_clusters"]]
    table = table.rename(columns={"metric": "failure_mode", "value": "share"})
    table.insert(1, "n", weights.plain_sums(shares)[0].round().astype(np.int64))
    table["cost"] = gains.sum(axis=1)  # over the metrics of each mode
    may_be_costliest = table["cost"].gt(0) & table["failure_mode"].ne("fine")
    candidates = table["cost"].where(may_be_costliest)
    if candidates.notna().any():
        return table.assign(costliest=table.index == candidates.idxmax())
    return table.assign(costliest=False)


def least_set_note(
    means: pd.DataFrame, metrics: Sequence[Metric], *, lang: str = "en"
) -> list[dict[str, Any]]:
    """Return a note row if faithfulness, context_relevance or answer_relevancy has no score at all.

    A table of means of rates or of a rubric alone gets no note: it is read in another way.

    Examples
    --------
    >>> from ragnb.schema import METRICS
    >>> means = pd.DataFrame({"metric": ["faithfulness", "answer_relevancy"], "n": [3, 3]})
    >>> least_set_note(means, [METRICS[name] for name in means["metric"]])[0]["about"]
    'context_relevance'
    """
    scored = set(means.loc[means["n"] > 0, "metric"])
    absent = [name for name in LEAST_SET if name not in scored]
    is_about_quality = any(
        metric.role == "quality" and metric.family != "rubric" for metric in metrics
    )
    if not absent or not is_about_quality:
        return []
    say = texts.load(lang)
    names = say("mode_note.join").join(absent)
    return [note_row("least_set", ", ".join(absent), say("mode_note.least_set", names=names))]


def mode_of(
    metrics: Sequence[Metric], thresholds: Mapping[str, float], modes: Sequence[str | int]
) -> nw.Expr:
    """Return which of `modes`, in the order of MODES, each row is of, read off the scores ``__v0`` …  ."""
    column_of = {metric.name: nw.col(f"__v{place}") for place, metric in enumerate(metrics)}
    better_of = {metric.name: metric.better for metric in metrics}
    if not all(name in column_of for name in NEEDED):
        return nw.lit(modes[0])

    def violates(name: str) -> nw.Expr:
        value = column_of[name]
        threshold = thresholds[name]
        if better_of[name] == "higher":
            is_past = value < threshold - SLACK
        else:
            is_past = value > threshold + SLACK
        return ~value.is_null() & is_past

    # A row has the first mode with a test that holds; the last mode, fine, has none.
    tests = [[column_of[name].is_null() for name in NEEDED]]
    tests += [[violates(name) for name in names if name in thresholds] for names in READS.values()]
    mode_so_far: nw.Expr = nw.lit(modes[-1])
    # From the last to the first: each condition wraps the expression of those that come after it.
    for any_of, mode in reversed(list(zip(tests, modes, strict=False))):
        if any_of:
            mode_so_far = nw.when(reduce(or_, any_of)).then(nw.lit(mode)).otherwise(mode_so_far)
    return mode_so_far
