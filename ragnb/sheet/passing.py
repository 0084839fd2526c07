"""How many answers pass the rubric of a judge, with the interval of their share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import pandas as pd

from ragnb import weights
from ragnb.calibration import CalibrationCard
from ragnb.inputs import streams
from ragnb.scenario import Scenario
from ragnb.schema import DRAWN, TOTAL, Metric, Rubric, records
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
    for name in names:
        rows_of_system = streams.of_system(frame, name)
        score = nw.col(gate.metric).cast(nw.Float64)
        counts = [
            count_where(score >= gate.threshold, "k"),
            count_where(score - (bias or 0.0) >= gate.threshold, "k_unbiased"),
            count_where(~(score.is_null() | score.is_nan()), "n"),
        ]
        counted = weights.collected(weights.opened(rows_of_system).select(*counts)).to_dict(
            as_series=False
        )
        n = int(counted["n"][0] or 0)
        k = int(counted["k"][0] or 0)
        if not n:
            continue
        flag = nw.when(score >= gate.threshold).then(1.0).when(score < gate.threshold).then(0.0)
        # Other columns may have the name of a metric that is known on another scale.
        of_rows = (scenario.doc, scenario.cluster, *streams.QUESTIONS, DRAWN)
        have = weights.column_names(rows_of_system)
        kept = [one for one in dict.fromkeys(of_rows) if one is not None and one in have]
        marked = nw.from_native(rows_of_system).select(*kept, flag.alias(_PASSES.name)).to_native()
        means = weights.moments(marked, metrics=[_PASSES], **clustering(scenario))
        table = weights.Weighing(doc=scenario.doc, level=scenario.level).means(means)
        ends = table.set_index("metric").loc[_PASSES.name]
        rows.append(
            {
                "system": name,
                "metric": gate.metric,
                "threshold": gate.threshold,
                "k": k,
                "n": n,
                "share": k / n,
                "low": ends["low"],
                "high": ends["high"],
                "bias": bias,
                "k_unbiased": None if bias is None else int(counted["k_unbiased"][0] or 0),
                **_weighted(scenario, rubric, rows_of_system),
            }
        )
    if not rows:
        return None
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"bias": float, "k_unbiased": "Int64"})


def _weighted(scenario: Scenario, rubric: Rubric, own: Any) -> dict[str, Any]:
    """Return the weighted score of the rubric on its own scale, documents weighed as in the means."""
    have = weights.column_names(own)
    dimensions = [metric for metric in rubric.metrics if metric.name in have]
    reduced = weights.moments(own, metrics=dimensions, **clustering(scenario))
    own_weights = {
        one.name: scenario.metric_weights.get(one.name, one.weight) for one in dimensions
    }
    if not any(own_weights.values()):  # they stand apart from metrics of another scale
        own_weights = {one.name: one.weight for one in dimensions}
    weighing = weights.Weighing(
        metric_weights=own_weights,
        doc_weights=scenario.doc_weights,
        doc=scenario.doc,
        level=scenario.level,
    )
    total = next(row for row in records(weighing.means(reduced)) if row["metric"] == TOTAL)
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
