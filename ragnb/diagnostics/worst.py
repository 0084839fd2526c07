"""Where to look first: the samples with the worst scores, as records."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb.schema import Metric
from ragnb.weights import collected, column_names, numbered, numeric, score_of

_SHOWN = ("sample_id", "question", "answer", "ground_truth_answer")
_SHOWN_IF_THERE = ("system", "doc_name")


def worst_samples(scores: Any, metric: Metric, top: int) -> list[dict[str, Any]]:
    """Return the `top` samples with the worst scores as records; samples without a score are never among them.

    Equal scores stand in input order; where rows have none (DuckDB, PySpark), by ``sample_id``. A frame without
    ``sample_id`` gives the row's label, or None where rows have no order.

    Examples
    --------
    >>> frame = pd.DataFrame({"sample_id": ["a", "b", "c"], "faithfulness": [0.5, None, 0.1]})
    >>> [r["sample_id"] for r in worst_samples(frame, Metric("faithfulness"), 2)]
    ['c', 'a']
    """
    if not isinstance(scores, pd.DataFrame):
        return _on_engine(scores, metric, top)
    x = numeric(scores, metric)
    key = x if metric.better == "higher" else -x
    some = min(top, int((~np.isnan(x)).sum()))
    near = np.flatnonzero(key <= np.partition(key, some - 1)[some - 1]) if some else np.empty(0, dtype=np.int64)
    positions = near[np.argsort(key[near], kind="stable")][:some]
    shown = [*_SHOWN, *(name for name in _SHOWN_IF_THERE if name in scores.columns)]
    return [
        {name: _cell(scores, position, name) for name in shown} | {"score": float(x[position])}
        for position in positions
    ]


def _cell(scores: pd.DataFrame, position: int, name: str) -> Any:
    if name in scores.columns:
        return _plain(scores[name].iloc[position])
    return _plain(scores.index[position]) if name == "sample_id" else None


def _plain(cell: Any) -> Any:
    if pd.api.types.is_scalar(cell) and pd.isna(cell):
        return None
    return cell.item() if isinstance(cell, np.generic) else cell


def _on_engine(scores: Any, metric: Metric, top: int) -> list[dict[str, Any]]:
    """Let the engine sort and take the head: a few rows leave it."""
    there = column_names(scores)
    have = [name for name in (*_SHOWN, *_SHOWN_IF_THERE) if name in there]
    rows, number = numbered(scores, [*have, metric.name])
    schema = rows.collect_schema()
    value = score_of(metric.name, schema[metric.name]).alias("__v0")
    scored = rows.with_columns(value).filter(~nw.col("__v0").is_null())
    tie = number or ("sample_id" if "sample_id" in have else None)
    order = ["__v0"] if tie is None else ["__v0", tie]
    downwards = [metric.better == "lower", False][: len(order)]
    worst = scored.sort(*order, descending=downwards, nulls_last=True).head(top)
    shown = [*_SHOWN, *(name for name in _SHOWN_IF_THERE if name in have)]
    records = []
    for row in collected(worst).rows(named=True):
        label = {} if number is None else {"sample_id": row[number]}
        cells = label | {name: row[name] for name in have}
        records.append({name: _plain(cells.get(name)) for name in shown} | {"score": float(row["__v0"])})
    return records
