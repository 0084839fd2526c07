"""Means of rates of traces, each system apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from ragnb.schema import Metric
from ragnb.weights import weighted_means


def rates_by_system(
    rows: pd.DataFrame, metrics: Iterable[Metric], *, by: str | None = None, **how: Any
) -> pd.DataFrame:
    """Return the rows of `weighted_means` that are rates, with the column ``system`` first where there is one.

    Parameters
    ----------
    rows : DataFrame
    metrics : Metric objects
    by, **how
        As `weighted_means`.

    Examples
    --------
    >>> rows = pd.DataFrame({"system": ["a", "b"], "hit": [1.0, 0.0]})
    >>> rates_by_system(rows, [Metric("hit", role="rate")])[["system", "metric", "value"]].values.tolist()
    [['a', 'hit', 1.0], ['b', 'hit', 0.0]]
    """
    parts: Iterable[tuple[Any, pd.DataFrame]] = [(None, rows)]
    if "system" in rows:
        parts = rows.groupby("system", sort=False)
    out = []
    for system, part in parts:
        means = weighted_means(part.reset_index(drop=True), metrics=list(metrics), by=by, **how)
        table = means[means["role"] == "rate"].reset_index(drop=True)
        if system is not None:
            table.insert(0, "system", system)
        out.append(table)
    return pd.concat(out, ignore_index=True)
