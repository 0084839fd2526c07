"""Failure modes: metrics combined into one failure mode per sample, their frequency and potential gain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, TypeVar, cast

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import texts
from ragnb.diagnostics.rules import RULES, SLACK, TABLE, warning_bars
from ragnb.readers.frames import as_called
from ragnb.schema import Metric, Rule, note_row
from ragnb.weights import (
    Batch,
    MetricsArgument,
    Moments,
    Reduction,
    Weighing,
    add_columns,
    evaluated,
    gains_reduction,
    moments_reduction,
    plain_sums,
    question_of,
    reduce_batches,
    scored,
)

Rows = TypeVar("Rows")

READS: Mapping[str, tuple[str, ...]] = {mode: tuple(names) for mode, names in TABLE["modes"].items()}
"""The metrics that a mode reads; a sample has the first mode with a metric that violates its threshold."""

MODES = ("not_enough_scores", *READS, "fine")
"""The failure modes, in the order in which they are tried."""

NEEDED = ("faithfulness", "answer_relevancy")

LEAST_SET = ("faithfulness", "context_relevance", "answer_relevancy")
"""The least set of metrics to read together."""


def failure_modes(scores: Rows, *, metrics: MetricsArgument = None, rules: Iterable[Rule] = RULES) -> Rows:
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
    frame, chosen = scored(scores, metrics)
    thresholds = warning_bars(rules, chosen)
    mode = mode_of(chosen, thresholds, MODES)
    return cast(Rows, as_called(add_columns(frame, chosen, {"failure_mode": mode}), frame, scores))


def failure_summary(
    scores: Any,
    *,
    metrics: MetricsArgument = None,
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
    frame, chosen = scored(scores, metrics, doc, cluster)
    weighing = Weighing(metric_weights, doc_weights, doc, cluster, level, orient, rescale)
    questions = question_of(frame, doc=doc, cluster=cluster)
    reductions = mode_reductions(chosen, warning_bars(rules, chosen), weighing, questions)
    gains, shares = reduce_batches(frame, chosen, reductions)
    return mode_summary(gains, shares, weighing)


def mode_reductions(
    metrics: Sequence[Metric], thresholds: Mapping[str, float], weighing: Weighing, questions: str | None
) -> list[Reduction]:
    """Return the reductions to the potential gain of each mode and metric, and to each mode's share of samples."""
    code = mode_of(metrics, thresholds, range(len(MODES)))
    lifts = [(k, thresholds.get(m.name, m.low if m.better == "higher" else m.high)) for k, m in enumerate(metrics)]
    flags = [Metric(mode, kind="binary") for mode in MODES]

    def flagged(batch: Batch) -> Batch:
        codes = evaluated(code, batch, metrics)
        return batch.with_values({flag: (codes == k).astype(float) for k, flag in enumerate(flags)})

    how: dict[str, Any] = {name: getattr(weighing, name) for name in ("doc", "cluster", "corpus")}
    return [
        gains_reduction(metrics, lifts, weighing, part=code, parts=len(MODES)),
        moments_reduction(flags, **how, questions=questions, derive=flagged),
    ]


def mode_summary(gains: npt.NDArray[np.float64], shares: Moments, weighing: Weighing) -> pd.DataFrame:
    """Return the table of `failure_summary` from the reduced rows."""
    means = shares.means(doc_weights=weighing.doc_weights, level=weighing.level).iloc[: len(MODES)]
    table = means[["metric", "value", "low", "high", "n_clusters"]].set_axis(
        ["failure_mode", "share", "low", "high", "n_clusters"], axis=1
    )
    table.insert(1, "n", plain_sums(shares)[0].round().astype(np.int64))
    table["cost"] = gains.sum(axis=1)
    bad = table["cost"].where(table["cost"].gt(0) & table["failure_mode"].ne("fine"))
    return table.assign(costliest=table.index == (bad.idxmax() if bad.notna().any() else None))


def least_set_note(means: pd.DataFrame, metrics: Sequence[Metric], *, lang: str = "en") -> list[dict[str, Any]]:
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
    if not absent or not any(m.role == "quality" and m.family != "rubric" for m in metrics):
        return []
    say = texts.load(lang)
    names = say("mode_note.join").join(absent)
    return [note_row("least_set", ", ".join(absent), say("mode_note.least_set", names=names))]


def mode_of(metrics: Sequence[Metric], thresholds: Mapping[str, float], modes: Sequence[str | int]) -> nw.Expr:
    """Return which of `modes`, in the order of MODES, each row is of, read off the scores ``__v0`` …  ."""
    places = {metric.name: k for k, metric in enumerate(metrics)}

    def violates(name: str) -> nw.Expr:
        value, threshold = nw.col(f"__v{places[name]}"), thresholds[name]
        higher = metrics[places[name]].better == "higher"
        return ~value.is_null() & (value < threshold - SLACK if higher else value > threshold + SLACK)

    gone = [nw.col(f"__v{places[name]}").is_null() for name in NEEDED if name in places]
    if len(gone) < len(NEEDED):
        return nw.lit(modes[0])
    tests = [gone, *([violates(name) for name in names if name in thresholds] for names in READS.values())]
    found: nw.Expr = nw.lit(modes[-1])
    for any_of, mode in reversed(list(zip(tests, modes, strict=False))):
        if any_of:
            found = nw.when(reduce(or_, any_of)).then(nw.lit(mode)).otherwise(found)
    return found
