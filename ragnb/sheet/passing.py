"""How many answers pass the rubric of a judge, with the interval of their share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import narwhals as nw
import pandas as pd

from ragnb import weights
from ragnb.calibration import CalibrationCard
from ragnb.inputs import streams
from ragnb.scenario import Scenario
from ragnb.schema import DRAWN, TOTAL, Gate, Metric, Rubric, records
from ragnb.weights.columns import count_where

COLUMNS = (
    "system",
    "metric",
    "threshold",
    "k",
    "n",
    "share",
    "low",
    "high",
    "bias",
    "k_unbiased",
    "score",
    "score_low",
    "score_high",
)
_PASSES = Metric("passing", kind="binary")


class _Counts(NamedTuple):
    """How many answers of a system have a score, pass, and pass once the bias of the judge is taken off."""

    n: int
    k: int
    k_unbiased: int


def passing(
    scenario: Scenario, frame: Any, names: Sequence[Any], card: CalibrationCard | None
) -> pd.DataFrame | None:
    """Return how many answers of each system pass; None without a rubric whose metric is a column.

    Every answer counts once, without the weights of documents, so that the share is that of a count. Where labels
    of people show a bias of the judge, ``k_unbiased`` is how many pass once it is taken off every score.
    """
    rubric = scenario.rubric
    if rubric is None or rubric.passing.metric not in weights.column_names(frame):
        return None
    gate = rubric.passing
    bias = bias_of(card, gate.metric)
    rows = []
    for system in names:
        rows_of_system = streams.of_system(frame, system)
        counts = _counts(rows_of_system, gate, bias or 0.0)
        if not counts.n:
            continue
        interval = _interval_of_share(scenario, gate, rows_of_system)
        rows.append(
            {
                "system": system,
                "metric": gate.metric,
                "threshold": gate.threshold,
                "k": counts.k,
                "n": counts.n,
                "share": counts.k / counts.n,
                "low": interval["low"],
                "high": interval["high"],
                "bias": bias,
                # Without labels nobody knows whether the judge is biased.
                "k_unbiased": None if bias is None else counts.k_unbiased,
                **_weighted(scenario, rubric, rows_of_system),
            }
        )
    if not rows:
        return None
    # A column of nothing but None would be of objects; Int64 has whole numbers and gaps.
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"bias": float, "k_unbiased": "Int64"})


def _counts(rows_of_system: Any, gate: Gate, bias: float) -> _Counts:
    """Count the answers of one system, in the engine that holds the rows."""
    score = nw.col(gate.metric).cast(nw.Float64)
    has_score = ~(score.is_null() | score.is_nan())
    queries = [
        count_where(score >= gate.threshold, "k"),
        count_where(score - bias >= gate.threshold, "k_unbiased"),
        count_where(has_score, "n"),
    ]
    only_row = weights.collected(weights.opened(rows_of_system).select(*queries))
    counted = only_row.to_dict(as_series=False)

    return _Counts(*(int(counted[name][0] or 0) for name in _Counts._fields))


def _interval_of_share(scenario: Scenario, gate: Gate, rows_of_system: Any) -> dict[Any, Any]:
    """Return the row of `Weighing.means` on the share that passes, without the weights of documents."""
    score = nw.col(gate.metric).cast(nw.Float64)
    # Null where there is no score, so that such an answer is missing and does not fail.
    flag = nw.when(score >= gate.threshold).then(1.0).when(score < gate.threshold).then(0.0)
    # Other columns may have the name of a metric that is known on another scale.
    of_rows = (scenario.doc, scenario.cluster, *streams.QUESTIONS, DRAWN)
    have = weights.column_names(rows_of_system)
    kept = [name for name in dict.fromkeys(of_rows) if name is not None and name in have]
    flagged = nw.from_native(rows_of_system).select(*kept, flag.alias(_PASSES.name)).to_native()
    moments = weights.moments(flagged, metrics=[_PASSES], **clustering(scenario))
    means = weights.Weighing(doc=scenario.doc, level=scenario.level).means(moments)
    return next(row for row in records(means) if row["metric"] == _PASSES.name)


def _weighted(scenario: Scenario, rubric: Rubric, rows_of_system: Any) -> dict[str, Any]:
    """Return the weighted score of the rubric on its own scale, documents weighed as in the means."""
    have = weights.column_names(rows_of_system)
    dimensions = [metric for metric in rubric.metrics if metric.name in have]
    moments = weights.moments(rows_of_system, metrics=dimensions, **clustering(scenario))
    weight_of = {
        metric.name: scenario.metric_weights.get(metric.name, metric.weight)
        for metric in dimensions
    }
    # Beside metrics of another scale all of them are given weight 0 (see `ragnb.inputs.rubric`).
    if not any(weight_of.values()):
        weight_of = {metric.name: metric.weight for metric in dimensions}
    weighing = weights.Weighing(
        metric_weights=weight_of,
        doc_weights=scenario.doc_weights,
        doc=scenario.doc,
        level=scenario.level,
    )
    total = next(row for row in records(weighing.means(moments)) if row["metric"] == TOTAL)
    return {"score": total["value"], "score_low": total["low"], "score_high": total["high"]}


def clustering(scenario: Scenario) -> dict[str, Any]:
    """Return the columns of documents and clusters, and what is known of all documents."""
    return {"doc": scenario.doc, "cluster": scenario.cluster, "corpus": scenario.corpus}


def bias_of(card: CalibrationCard | None, dimension: str) -> float | None:
    """Return by how much the judge is above people on a dimension; None where no label says."""
    row = verdict_of(card, dimension)
    if row is None or pd.isna(row["bias"]):
        return None
    return float(row["bias"])


def verdict_of(card: CalibrationCard | None, dimension: str) -> dict[Any, Any] | None:
    """Return the verdict on the judge for a dimension; of several judges none speaks for the scores."""
    if card is None:
        return None
    rows = [row for row in records(card.verdicts) if row["dimension"] in (dimension, "all")]
    if len(rows) == 1:
        return rows[0]
    return None
