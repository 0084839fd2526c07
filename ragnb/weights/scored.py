"""Entry point for frames: canonical column names, and the metrics of a frame."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import narwhals as nw

from ragnb.errors import RagnbError, listing
from ragnb.readers.frames import canonical, native
from ragnb.readers.names import rename_map
from ragnb.schema import (
    CASE_COLUMNS,
    DERIVED_COLUMNS,
    METRICS,
    TRACE_COLUMNS,
    Metric,
    declare_step,
    metric_list,
    resolve_metrics,
)
from ragnb.weights.engines import column_names

MetricsArgument = str | Metric | Iterable[str | Metric] | None
_NO_SCORE = re.compile(r"(time|stamp|latency|duration|second|cost|price|token|index|id|count|length|rank)s?$")


def scored(
    scores: Any, metrics: MetricsArgument, *kept: str | None
) -> tuple[Any, tuple[Metric, ...]]:
    """Return a frame under canonical names, and its selected metrics.

    Parameters
    ----------
    scores : DataFrame of any engine
    metrics : names or Metric objects, or None
        As `resolve_metrics` takes them; a name may be what a tool calls the metric.
    *kept : str or None
        Columns that the caller names; they stay what they are.

    Raises
    ------
    RagnbError
        As `canonical` and `resolve_metrics`; for None where no column is a metric that ragnb knows.

    Examples
    --------
    >>> import pandas as pd
    >>> frame, chosen = scored(pd.DataFrame({"Faithfulness": [1.0]}), None)
    >>> frame.columns.tolist(), [metric.name for metric in chosen]
    (['faithfulness'], ['faithfulness'])
    """
    given = metric_list(metrics)
    own = [item for item in given or () if isinstance(item, Metric)]
    if own and own == given and any(METRICS.get(m.name) == m for m in own):
        have = column_names(scores)
        if {m.name for m in own} <= set(have):
            kept = (*kept, *have)  # metrics that were resolved before come with a frame that was named before
    frame = canonical(scores, *kept, metrics=own)
    columns = column_names(frame)
    for i, item in enumerate(given or ()):
        if given and isinstance(item, str) and item not in columns:
            given[i] = rename_map([item], metrics=own).get(item, item)
    chosen = resolve_metrics(given, columns)
    if given is None and not chosen:
        raise _no_metric(frame)
    return frame, chosen


def _no_metric(frame: Any) -> RagnbError:
    """Return the error for a frame without a metric: what may be one, and how to declare it."""
    rows = native(frame)
    skip = {*CASE_COLUMNS, *DERIVED_COLUMNS, *TRACE_COLUMNS}
    kinds = {str(name): kind for name, kind in rows.collect_schema().items()}
    numbers = [name for name, kind in kinds.items() if kind.is_numeric() and name not in skip and "__" not in name]
    numbers.sort(key=lambda name: bool(_NO_SCORE.search(name.casefold())))
    step = "score the answers first, with rn.evaluate or rn.judge, or read the file that holds the scores"
    if numbers:
        step = f"declare those that are scores: metrics=[rn.Metric({numbers[0]!r}, low, high)]"
        if isinstance(rows, nw.DataFrame):
            column = rows[numbers[0]].drop_nulls()
            low, high = (float(column.min()), float(column.max())) if len(column) else (0.0, 1.0)
            unit = f"declare its scale: metrics=[rn.Metric({numbers[0]!r})] if it is 0..1"
            step = unit if low >= 0 and high <= 1 else declare_step(numbers[0], low, high)
    return RagnbError(
        f"no column is a metric that ragnb knows (columns: {listing(kinds)}; numeric: {listing(numbers)}); {step}"
    )
