"""Metrics read together: one failure mode a sample, how often each occurs, and which costs most."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import texts
from ragnb.diagnostics.lifts import lifts
from ragnb.diagnostics.rules import RULES, past, warning_bars
from ragnb.schema import METRICS, Metric, Rule, note_row
from ragnb.weights import Effective, MetricsArgument, effective_weights, moments, sample_weight

READS: Mapping[str, tuple[str, ...]] = {
    "retrieval_miss": ("context_recall",),
    "noisy_retrieval": ("context_precision", "context_relevance", "noise_sensitivity"),
    "unsupported_answer": ("faithfulness",),
    "off_the_point": ("answer_relevancy",),
    "faithful_but_wrong": ("answer_correctness", "factual_correctness"),
}
"""The metrics that a mode reads; a sample is of the first mode of which one metric is past its warning bar."""

MODES = ("not_enough_scores", *READS, "fine")
"""The failure modes, in the order in which they are tried."""

_NEEDED = ("faithfulness", "answer_relevancy")
LEAST_SET = ("faithfulness", "context_relevance", "answer_relevancy")
"""The least set of metrics to read together."""


def failure_modes(
    scores: pd.DataFrame, metrics: MetricsArgument = None, *, rules: Iterable[Rule] = RULES
) -> pd.DataFrame:
    """Return the scores with a column ``failure_mode``: the first of `MODES` that fits the sample.

    Parameters
    ----------
    scores : DataFrame
        One row a sample, one column a metric.
    metrics : names or Metric objects, optional
        The metrics to read; a metric that is not there is past no bar.
    rules : Rule objects
        Their warning bars say what is low.

    Returns
    -------
    DataFrame
        ``not_enough_scores`` without faithfulness or answer_relevancy; ``retrieval_miss`` where context_recall
        is past its bar; ``noisy_retrieval`` where context_precision, context_relevance or noise_sensitivity
        is; ``unsupported_answer`` where faithfulness is; ``off_the_point`` where answer_relevancy is;
        ``faithful_but_wrong`` where answer_correctness or factual_correctness is; else ``fine``.

    Raises
    ------
    RagnbError
        For unknown metrics, and values outside their range.

    Examples
    --------
    >>> scores = pd.DataFrame({"faithfulness": [0.9, 0.9, None], "answer_relevancy": [0.9, 0.2, 0.9]})
    >>> failure_modes(scores)["failure_mode"].tolist()
    ['fine', 'off_the_point', 'not_enough_scores']
    """
    parts = effective_weights(scores, metrics=metrics, strict=False)
    codes = _codes(parts, warning_bars(rules, parts.metrics))
    return scores.assign(failure_mode=np.array(MODES, dtype=object)[codes])


def _codes(parts: Effective, bars: Mapping[str, float]) -> npt.NDArray[np.int64]:
    """The position in MODES of each sample's mode."""
    columns = {m.name: parts.values[:, k] for k, m in enumerate(parts.metrics)}
    better = {m.name: m.better for m in parts.metrics}
    empty = np.full(len(parts.values), np.nan)
    tests = [np.any([np.isnan(columns.get(name, empty)) for name in _NEEDED], axis=0)]
    for names in READS.values():
        low = [past(columns[name], bars[name], better[name]) for name in names if name in bars]
        tests.append(np.any(low, axis=0) if low else np.zeros(len(empty), dtype=bool))
    tests.append(np.ones(len(empty), dtype=bool))
    return np.asarray(np.argmax(tests, axis=0), dtype=np.int64)


def failure_summary(
    scores: pd.DataFrame,
    metrics: MetricsArgument = None,
    *,
    rules: Iterable[Rule] = RULES,
    metric_weights: Mapping[str, float] | None = None,
    doc_weights: Mapping[str, float] | None = None,
    doc: str = "doc_name",
    cluster: str | None = None,
    level: float = 0.95,
    orient: bool = True,
    rescale: bool = False,
) -> pd.DataFrame:
    """Return how often each failure mode occurs, and what it costs the weighted score.

    Parameters
    ----------
    scores : DataFrame
        One row a sample, one column a metric.
    metrics, rules
        As in `failure_modes`.
    metric_weights, doc_weights, doc, cluster, level, orient, rescale
        As in `weighted_means`.

    Returns
    -------
    DataFrame
        One row a mode, all of `MODES` in their order:

        - ``failure_mode``; ``n``: its samples; ``share``: their document-weighted share of all samples, with its
          clustered interval ``low, high``; ``n_clusters``: the clusters that all samples come from.
        - ``cost``: the rise of the total weighted score if every score of the mode's samples that is past its
          warning bar were lifted to the bar; the costs of all modes add up to the rise from lifting them
          everywhere. nan where there is no total.

        ``attrs["costliest"]`` is the mode other than ``fine`` that costs most, None where none costs anything.

    Raises
    ------
    RagnbError
        As `weighted_means`, though metrics that do not add up leave the cost missing.

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
    weight = sample_weight(scores, doc_weights, doc=doc)
    rows = lifts(scores, metrics, weight, metric_weights=metric_weights, orient=orient, rescale=rescale)
    bars = warning_bars(rules, rows.parts.metrics)
    codes = _codes(rows.parts, bars)
    flags = {mode: (codes == position).astype(float) for position, mode in enumerate(MODES)}
    frame = scores[[name for name in scores.columns if name not in METRICS]].assign(**flags)
    shares = moments(frame, [Metric(mode, kind="binary") for mode in MODES], doc=doc, cluster=cluster)
    means = shares.means(None, doc_weights, level=level).iloc[: len(MODES)]
    rise = np.zeros(len(scores)) if rows.total > 0 else np.full(len(scores), np.nan)
    for metric in rows.parts.metrics:
        if metric.name in bars and rows.total > 0:
            rise = rise + rows.rises(metric, bars[metric.name])
    cost = [float(rise[codes == k].sum()) if rows.total > 0 else np.nan for k in range(len(MODES))]
    table = pd.DataFrame(
        {
            "failure_mode": list(MODES),
            "n": np.bincount(codes, minlength=len(MODES)),
            "share": means["value"].to_numpy(),
            "low": means["low"].to_numpy(),
            "high": means["high"].to_numpy(),
            "n_clusters": means["n_clusters"].to_numpy(),
            "cost": cost,
        }
    )
    table.attrs["costliest"] = _costliest(cost)
    return table


def _costliest(cost: list[float]) -> str | None:
    bad = {mode: c for mode, c in zip(MODES, cost, strict=True) if mode != "fine" and c > 0}
    return max(bad, key=lambda mode: bad[mode]) if bad else None


def least_set_note(
    scores: pd.DataFrame, metrics: MetricsArgument = None, *, lang: str = "en"
) -> list[dict[str, Any]]:
    """Return a note row if faithfulness, context_relevance or answer_relevancy has no score at all.

    A frame of rates or of a rubric alone gets no note: it is read in another way.

    Examples
    --------
    >>> least_set_note(pd.DataFrame({"faithfulness": [0.5], "answer_relevancy": [0.5]}))[0]["about"]
    'context_relevance'
    """
    parts = effective_weights(scores, metrics=metrics, strict=False)
    scored = {m.name for k, m in enumerate(parts.metrics) if not np.isnan(parts.values[:, k]).all()}
    absent = [name for name in LEAST_SET if name not in scored]
    if not absent or not any(m.role == "quality" and m.family != "rubric" for m in parts.metrics):
        return []
    say = texts.load(lang)
    names = say("mode_note.join").join(absent)
    return [note_row("least_set", ", ".join(absent), say("mode_note.least_set", names=names))]
