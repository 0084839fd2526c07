"""Which columns of a table measure operation: latency, tokens and cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ragnb.inputs.streams import head_of
from ragnb.schema import METRICS, Metric, is_operation

ERRORS = "errors"
"""The share of answers that failed, where the rows say which did."""


def operation_names(frame: Any, metrics: Iterable[Metric]) -> list[str]:
    """Return the numeric columns that measure operation, those declared as such first.

    Examples
    --------
    >>> import pandas as pd
    >>> operation_names(pd.DataFrame({"latency_ms": [1.0], "faithfulness": [0.5]}), [])
    ['latency_ms']
    """
    roles = {metric.name: metric.role for metric in metrics}
    declared = [name for name, role in roles.items() if role == "operation"]
    numeric = head_of(frame).select_dtypes("number", exclude="timedelta").columns
    named = [name for name in map(str, numeric) if "__" not in name and is_operation(name)]
    free = [name for name in named if name not in roles and name not in METRICS]
    return [*declared, *free]
