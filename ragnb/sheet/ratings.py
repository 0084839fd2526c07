"""The card of a run's ratings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from ragnb.calibration import CalibrationCard, calibrate, judge_columns
from ragnb.errors import RagnbError, listing
from ragnb.scenario import Scenario
from ragnb.schema import METRICS


def calibrated(
    scenario: Scenario,
    ratings: pd.DataFrame | None,
    *,
    judge: Sequence[str] = (),
    scale: Any = None,
    **asked: Any,
) -> CalibrationCard | None:
    """Return the card of a run's ratings; by default on the scale of the metrics that their dimensions are."""
    if ratings is None:
        return None
    judges = judge_columns(ratings, judge)
    if not judges:
        raise RagnbError(
            f"ratings: {scenario.ratings} holds no scores of a judge (columns: {listing(ratings.columns)}); "
            "join them first, and name what ragnb.read_ratings(…, judged=…) gives"
        )
    # Ratings of a sheet that `draw_labels` made have their documents in the column "cluster".
    cluster = scenario.cluster if scenario.cluster in ratings else "cluster"
    return calibrate(
        ratings,
        judge=judges,
        scale=scale or _scale_of_metrics(scenario, ratings),
        cluster=cluster,
        labels_planned=scenario.labels_planned,
        level=scenario.level,
        lang=scenario.lang,
        **asked,
    )


def _scale_of_metrics(scenario: Scenario, ratings: pd.DataFrame) -> Any:
    """Return the range that all rated dimensions have as metrics; None where one is unknown, or two differ."""
    if "dimension" not in ratings:
        return None
    ranges = set()
    for name in ratings["dimension"].unique().tolist():
        # What the scenario declares goes before a metric of ragnb of the same name.
        metric = scenario.declared.get(name) or METRICS.get(name)
        ranges.add((metric.low, metric.high) if metric else None)
    if len(ranges) == 1:
        return ranges.pop()
    return None
