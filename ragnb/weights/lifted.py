"""What lifting scores would do to the total, exactly, for rows that stay on their engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from ragnb.schema import Metric
from ragnb.weights.cells import bits
from ragnb.weights.check import check_weights
from ragnb.weights.columns import Array, coded
from ragnb.weights.effective import shares
from ragnb.weights.engines import BAD, doc_there, explain, grouped, opened, patterned, words_of
from ragnb.weights.finish import plan_total, weight_vector
from ragnb.weights.grouped import columns_of, pattern_of

Lift = tuple[int, float]


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
    slack: float = 0.0,
    part: nw.Expr | None = None,
    parts: int = 1,
) -> Array:
    """Return by how much the total rises if a metric's scores past a bar were lifted to it.

    The rows are summed by document and pattern of gaps, on which the weight of a lift depends, in one query.

    Parameters
    ----------
    scores : DataFrame
        Of any engine, checked by `moments`.
    metrics : Metric objects
        All that are in the frame and count.
    lifts : pairs of (position of the metric, bar)
        A bar lies below the good scores of a higher-is-better metric, above those of a lower-is-better one.
    slack : float
        How far a score must be past the bar.
    part : expression, optional
        The part of the rows that a row is of, 0 to `parts` − 1, read off the scores ``__v0``, ``__v1`` … .

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
    source = opened(scores)
    column = doc_there(source, doc)
    keys = {} if column is None else {"__k0": column}
    moves = {f"__l{i}": _move(metrics[k], k, bar, slack) for i, (k, bar) in enumerate(lifts)}
    rows = patterned(source, metrics, keys)
    new = moves if part is None else moves | {"__part": part}
    by = [*keys, *words_of(len(metrics)), *([] if part is None else ["__part"])]
    table = grouped(rows.with_columns(**new) if new else rows, by, [BAD, *moves])
    if table[BAD].any():
        explain(scores, metrics)
    size = len(table["__n"])
    weight = np.ones(size)
    if keys:
        weights = check_weights(doc_weights, "doc_weights")
        docs = coded(table["__k0"], compose=True)
        weight = np.array([weights.get(name, 1.0) for name in docs.names] + [1.0])[docs.codes]
    vector = weight_vector(tuple(metrics), check_weights(metric_weights, "metric_weights"))
    plan = plan_total(metrics, vector, orient=orient, rescale=rescale, strict=False)
    share = shares(bits(pattern_of(table, len(metrics)), len(metrics)), plan.weights)
    total = float((weight * table["__n"])[share.sum(axis=1) > 0].sum())
    places = [k for k, _ in lifts]
    lifted = weight[:, None] * columns_of(table, moves, size) * share[:, places] * plan.slopes[places]
    rises: Array = np.zeros((parts, len(lifts)))
    np.add.at(rises, np.zeros(size, dtype=np.int64) if part is None else table["__part"], lifted)
    rises = rises / total if total > 0 else np.full_like(rises, np.nan)
    return rises[0] if part is None else rises


def _move(metric: Metric, k: int, bar: float, slack: float) -> nw.Expr:
    value = nw.col(f"__v{k}")
    past = value < bar - slack if metric.better == "higher" else value > bar + slack
    return nw.when(past).then(nw.lit(bar) - value).otherwise(nw.lit(0.0))
