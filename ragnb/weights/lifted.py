"""What lifting scores would do to the total, exactly: of rows that are held, and of rows on their engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb.schema import Metric
from ragnb.weights.cells import Flags, Keys, bits
from ragnb.weights.check import check_weights
from ragnb.weights.columns import Array, Codes, coded, labels, numeric
from ragnb.weights.effective import shares
from ragnb.weights.engines import BAD, doc_there, explain, grouped, opened, patterned, words_of
from ragnb.weights.finish import plan_total, relative, weight_vector
from ragnb.weights.grouped import columns_of, pattern_of

Lift = tuple[int, float]


class Moved(NamedTuple):
    """How far the scores of a cell are past their bars, Σ over its rows.

    Attributes
    ----------
    n, weight : (C,) float
        Rows, and the weight of their documents.
    present : (C, K) bool
    sums : (C, L) float
    part : (C,) int
    """

    n: Array
    weight: Array
    present: Flags
    sums: Array
    part: Codes


def total_rises(
    scores: Any,
    metrics: Sequence[Metric],
    lifts: Sequence[Lift],
    *,
    metric_weights: Mapping[str, float] | None = None,
    doc_weights: Mapping[str, float] | None = None,
    doc: str = "doc_name",
    orient: bool = True,
    rescale: bool = False,
    part: Any = None,
    parts: int = 1,
) -> Array:
    """Return by how much the total rises if a metric's scores past a bar were lifted to it.

    The rows are summed by the weight of their document and the pattern of gaps, on which a lift's weight depends.

    Parameters
    ----------
    scores : DataFrame
        Checked by `moments`; of another engine than pandas, one query.
    metrics : Metric objects
        All that are in the frame and count.
    lifts : pairs of (position of the metric, bar)
        A bar lies below the good scores of a higher-is-better metric, above those of a lower-is-better one.
    part : (N,) int, or expression, optional
        The part of the rows that a row is of, 0 to `parts` − 1; of another engine read off the scores ``__v0``,
        ``__v1`` … .

    Returns
    -------
    (L,) or, with `part`, (parts, L) float
        Σ v · share · slope · (bar − s) / Σ v over the rows that have a total; nan where none has one. Of a part
        the upper sum is over its rows alone.

    Raises
    ------
    RagnbError
        As `moments`.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"faithfulness": [0.5, 1.0], "context_recall": [1.0, None]})
    >>> total_rises(frame, [Metric("faithfulness"), Metric("context_recall")], [(0, 0.7)]).round(3)
    array([0.05])
    """
    checked = check_weights(doc_weights, "doc_weights")
    move = _moved if isinstance(scores, pd.DataFrame) else _moved_on_engine
    found = move(scores, metrics, lifts, checked, doc, part, parts)
    named = check_weights(metric_weights, "metric_weights", names=[m.name for m in metrics])
    vector = weight_vector(tuple(metrics), named)
    plan = plan_total(metrics, vector, orient=orient, rescale=rescale, strict=False)
    share, weight = shares(found.present, plan.weights), relative(found.weight)
    total = float((weight * found.n)[share.sum(axis=1) > 0].sum())
    places = [k for k, _ in lifts]
    rises: Array = np.zeros((parts, len(lifts)))
    np.add.at(rises, found.part, weight[:, None] * found.sums * share[:, places] * plan.slopes[places])
    rises = rises / total if total > 0 else np.full_like(rises, np.nan)
    return rises[0] if part is None else rises


def _moved(
    scores: pd.DataFrame, metrics: Sequence[Metric], lifts: Sequence[Lift], weights: Mapping[str, float],
    doc: str, part: Codes | None, parts: int,
) -> Moved:  # fmt: skip
    values = [numeric(scores, metric) for metric in metrics]
    docs = labels(scores, doc if weights else None, optional=doc == "doc_name", compose=True)
    each, kind = np.unique([*(weights.get(name, 1.0) for name in docs.names), 1.0], return_inverse=True)
    kinds = kind[docs.codes]
    key = Keys.of([(kinds, len(each)), *([] if part is None else [(part, parts)])], values, len(scores))
    sums = {}
    for i, (k, bar) in enumerate(lifts):
        way = bar - values[k]
        clip = np.fmax if metrics[k].better == "higher" else np.fmin
        sums[f"__l{i}"] = key.sums(clip(way, 0.0, out=way))  # nan gives 0
    place = np.zeros(len(key.n), dtype=np.int64) if part is None else part[key.row]
    return Moved(key.n, each[kinds[key.row]], key.present(values), columns_of(sums, sums, len(key.n)), place)


def _moved_on_engine(
    scores: Any, metrics: Sequence[Metric], lifts: Sequence[Lift], weights: Mapping[str, float],
    doc: str, part: nw.Expr | None, parts: int,
) -> Moved:  # fmt: skip
    source = opened(scores)
    column = doc_there(source, doc)
    keys = {} if column is None else {"__k0": column}
    new = {f"__l{i}": _way(metrics[k], nw.col(f"__v{k}"), bar) for i, (k, bar) in enumerate(lifts)}
    names = list(new)
    new |= {} if part is None else {"__part": part}
    by = [*keys, *words_of(len(metrics)), *([] if part is None else ["__part"])]
    rows = patterned(source, metrics, keys)
    table = grouped(rows.with_columns(**new) if new else rows, by, [BAD, *names])
    if table[BAD].any():
        explain(scores, metrics)
    size = len(table["__n"])
    weight = np.ones(size)
    if keys:
        docs = coded(table["__k0"], compose=True)
        weight = np.array([weights.get(name, 1.0) for name in docs.names] + [1.0])[docs.codes]
    present = bits(pattern_of(table, len(metrics)), len(metrics))
    place = np.zeros(size, dtype=np.int64) if part is None else table["__part"]
    return Moved(table["__n"], weight, present, columns_of(table, names, size), place)


def _way(metric: Metric, value: nw.Expr, bar: float) -> nw.Expr:
    past = value < bar if metric.better == "higher" else value > bar
    return nw.when(past).then(nw.lit(bar) - value).otherwise(nw.lit(0.0))
