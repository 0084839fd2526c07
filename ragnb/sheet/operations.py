"""What the answers of a run took: latency, tokens and cost, which are shown and never enter the total."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import pandas as pd

from ragnb.inputs.streams import head_of
from ragnb.readers.executors import on_spark
from ragnb.schema import METRICS, Metric, is_operation
from ragnb.weights import collected, opened

OPERATION_COLUMNS = ("metric", "n", "mean", "median", "p95")


def operation_names(frame: Any, metrics: list[Metric]) -> list[str]:
    """Return the numeric columns that measure operation, those declared as such first.

    Examples
    --------
    >>> operation_names(pd.DataFrame({"latency_ms": [1.0], "faithfulness": [0.5]}), [])
    ['latency_ms']
    """
    declared = [metric.name for metric in metrics if metric.role == "operation"]
    other_roles = {metric.name for metric in metrics} - set(declared)
    numeric = head_of(frame).select_dtypes("number", exclude="timedelta").columns
    named = [name for name in map(str, numeric) if "__" not in name and is_operation(name)]
    free = [name for name in named if name not in {*declared, *other_roles, *METRICS}]
    return [*declared, *free]


def measure_operations(frame: Any, names: list[str]) -> pd.DataFrame | None:
    """Return the mean, the median and the 95th percentile of measures of operation; None where there are none.

    Every row counts alike. Rows on Spark stay there, so their median and percentile are missing.

    Examples
    --------
    >>> measure_operations(pd.DataFrame({"latency_ms": [100.0, 200.0, None]}), ["latency_ms"]).values.tolist()
    [['latency_ms', 2, 150.0, 150.0, 195.0]]
    """
    if not names:
        return None
    quantiles = not on_spark(frame)
    asked = []
    for position, name in enumerate(names):
        number = nw.col(name).cast(nw.Float64)
        value = nw.when(~number.is_nan()).then(number)
        asked.append(value.count().alias(f"n{position}"))
        asked.append(value.mean().alias(f"mean{position}"))
        if quantiles:
            asked.append(value.median().alias(f"median{position}"))
            percentile = value.quantile(0.95, interpolation="linear")
            asked.append(percentile.alias(f"p95{position}"))
    found = collected(opened(frame).select(*asked)).to_pandas().iloc[0]
    rows = [
        [name, *(found.get(f"{key}{position}") for key in OPERATION_COLUMNS[1:])]
        for position, name in enumerate(names)
    ]
    table = pd.DataFrame(rows, columns=list(OPERATION_COLUMNS))
    return table.astype({"n": "int64", "mean": float, "median": float, "p95": float})
