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
    names: list[str] = []
    if "dimension" in ratings:
        names = ratings["dimension"].unique().tolist()
    known = [scenario.declared.get(name) or METRICS.get(name) for name in names]
    ranges = {(metric.low, metric.high) if metric else None for metric in known}
    scale = scale or (ranges.pop() if len(ranges) == 1 else None)
    if scenario.cluster in ratings:
        cluster = scenario.cluster
    else:
        cluster = "cluster"
    how: dict[str, Any] = {
        name: getattr(scenario, name) for name in ("labels_planned", "level", "lang")
    }
    return calibrate(ratings, judge=judges, scale=scale, cluster=cluster, **how, **asked)
