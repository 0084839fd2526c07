"""Row by row: the weighted score of each sample and its document's weight, as columns."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.readers.frames import as_called
from ragnb.schema import Metric
from ragnb.weights.batches import Batch, Reduction, reduce_batches
from ragnb.weights.check import check_metric_weights, check_weights, nfc, refuse_all_zero, warn_unused
from ragnb.weights.columns import Array
from ragnb.weights.engines import Frame, column_names, key_of, laid_out, opened, stays_lazy
from ragnb.weights.estimates import intercepts, plan_total, weight_vector
from ragnb.weights.reduction import document_column
from ragnb.weights.scored import MetricsArgument, scored

Rows = TypeVar("Rows")


def weighted_score(
    scores: Any,
    *,
    metrics: MetricsArgument = None,
    metric_weights: Mapping[str, float] | None = None,
    orient: bool = True,
    rescale: bool = False,
) -> Any:
    """Return each sample's weighted score, Σ w·s / Σ w over the metrics that have a score.

    Parameters
    ----------
    scores : DataFrame
        One row a sample, one column a metric; of pandas, Polars, PyArrow, DuckDB or PySpark.
    metric_weights : mapping of metric to weight, optional
        Finite, ≥ 0; 0 leaves the metric out. A metric that is not named counts 1.0 (a rubric dimension: the
        rubric's).
    metrics : names or Metric objects, optional
        None takes the columns that METRICS declares; a rate enters only when `metric_weights` names it.
    orient : bool
        Whether a lower-is-better metric enters as low + high − s of its range.
    rescale : bool
        Whether metrics are first brought to 0–1 by their ranges, so that different ranges can be added up.

    Returns
    -------
    Series
        Named ``weighted_score``, on the index of `scores`; nan where no metric with weight has a score. For
        another engine than pandas a frame of its kind with this one column, null where there is no score: a
        lazy one stays lazy (and has no order to be joined by: see `weigh`).

    Raises
    ------
    RagnbError
        For weights that are none, unknown metrics, values outside their range, and metrics of different ranges.
        What is wrong in the rows of a lazy frame makes its query fail when it runs, in the engine's own way.

    Examples
    --------
    >>> scores = pd.DataFrame({"faithfulness": [1.0, None], "context_recall": [0.5, 0.25]})
    >>> weighted_score(scores, metric_weights={"faithfulness": 3}).tolist()
    [0.875, 0.25]
    """
    frame, total = _total(scores, (), metrics, metric_weights, orient=orient, rescale=rescale)
    return _weighed(frame, total)


def weigh(
    scores: Rows,
    *,
    metrics: MetricsArgument = None,
    metric_weights: Mapping[str, float] | None = None,
    doc_weights: Mapping[str, float] | None = None,
    doc: str = "doc_name",
    orient: bool = True,
    rescale: bool = False,
    strict: bool = True,
) -> Rows:
    """Return the scores with two columns more, ``weighted_score`` and ``sample_weight``.

    Columns of these names that are there already are made anew. A frame of another engine than pandas comes
    back as its kind, and a lazy one lazy, see `weighted_score`. ``sample_weight`` is 1.0 for a document that is
    not named and a row without one. On a lazy frame no query is run: document names match in the Unicode forms
    NFC and NFD and as they are written in `doc_weights`, and a weight for a document that does not occur brings
    no warning.

    Parameters
    ----------
    metrics, metric_weights, orient, rescale
        As in `weighted_score`.
    doc_weights, doc
        As in `weighted_means`.
    strict : bool
        Whether metrics that cannot be added up raise; else there is no weighted score.

    Raises
    ------
    RagnbError
        As `weighted_score`.

    Examples
    --------
    >>> weigh(pd.DataFrame({"faithfulness": [0.5]}))[["weighted_score", "sample_weight"]].values.tolist()
    [[0.5, 1.0]]
    """
    how = {"orient": orient, "rescale": rescale, "strict": strict}
    frame, total = _total(scores, (doc,), metrics, metric_weights, **how)
    return cast(Rows, as_called(_weighed(frame, total, doc, doc_weights), frame, scores))


@dataclass(frozen=True)
class Total:
    """How the scores add up: Σ weight · (intercept + slope · score) / Σ weight over the scores that are there."""

    metrics: tuple[Metric, ...]
    weights: Array
    slopes: Array
    intercepts: Array

    def expression(self) -> nw.Expr:
        """Return the weighted score over ``__v0``, ``__v1`` …, null where nothing with a weight has a score."""
        numerator, denominator = [], []
        for k, terms in enumerate(zip(self.weights, self.slopes, self.intercepts, strict=True)):
            weight, slope, intercept = map(float, terms)
            if weight > 0:
                value = nw.col(f"__v{k}")
                gone = value.is_null()
                numerator.append(nw.when(gone).then(nw.lit(0.0)).otherwise((value * slope + intercept) * weight))
                denominator.append(nw.when(gone).then(nw.lit(0.0)).otherwise(nw.lit(weight)))
        if not numerator:
            return nw.lit(None, dtype=nw.Float64)
        total = nw.sum_horizontal(*denominator)
        return nw.when(total > 0).then(nw.sum_horizontal(*numerator) / total)


def _total(
    scores: Any,
    kept: Sequence[str],
    metrics: MetricsArgument,
    weights: Mapping[str, float] | None,
    *,
    orient: bool,
    rescale: bool,
    strict: bool = True,
) -> tuple[Any, Total]:
    frame, chosen = scored(scores, metrics, *kept)
    checked = check_metric_weights(weights, [m.name for m in chosen], stacklevel=4)
    plan = plan_total(chosen, weight_vector(chosen, checked), orient=orient, rescale=rescale, strict=strict)
    return frame, Total(chosen, plan.weights, plan.slopes, intercepts(chosen, plan.slopes, rescale=rescale))


def _weighed(
    frame: Any, total: Total, doc: str | None = None, doc_weights: Mapping[str, float] | None = None
) -> Any:
    """Return the frame with both columns; without `doc` the weighted score alone."""
    metrics, score = total.metrics, total.expression()
    column = None if doc is None else document_column(column_names(frame), doc)
    checked = check_weights(doc_weights, "doc_weights")

    def of_batch(batch: Batch) -> dict[str, Any]:
        made: dict[str, Any] = {"weighted_score": evaluated(score, batch, metrics)}
        if doc is not None:
            labels = batch.labels(column, compose=True)
            warn_unused(checked, labels.names, "doc_weights", stacklevel=8)
            weights: Array = np.array([checked.get(name, 1.0) for name in labels.names] + [1.0])
            made["sample_weight"] = weights[labels.codes]
            refuse_all_zero(bool(made["sample_weight"].any()) or not len(batch), "doc_weights")
        return made

    def of_query(rows: Frame) -> dict[str, nw.Expr]:
        return {"sample_weight": _weight_of_name(rows, column, doc_weights or {}, checked)} if doc else {}

    only = "weighted_score" if doc is None else None
    return add_columns(frame, metrics, [column], of_batch, {"weighted_score": score}, of_query, only=only)


def _weight_of_name(
    rows: Frame, column: str | None, weights: Mapping[str, float], checked: Mapping[str, float]
) -> nw.Expr:
    """The weight of a query's documents, whose names are unknown until it runs: all forms of each are tried."""
    if column is None:
        warn_unused(checked, [], "doc_weights", stacklevel=7)
    if column is None or not checked:
        return nw.lit(1.0)
    forms = {name: (str(name), nfc(name), unicodedata.normalize("NFD", str(name))) for name in weights}
    spelt = {form: checked[nfc(name)] for name, own in forms.items() for form in own}
    key = key_of(rows, column)
    text, digits = key.cast(nw.String), key.cast(nw.Int64).cast(nw.String)
    floats = rows.collect_schema()[column].is_float()
    key = nw.when(key == key.round()).then(digits).otherwise(text) if floats else text
    return key.replace_strict(list(spelt), list(spelt.values()), default=1.0, return_dtype=nw.Float64)


def evaluated(expression: nw.Expr, batch: Batch, metrics: Sequence[Metric]) -> npt.NDArray[Any]:
    """Return an expression over the scores ``__v0``, ``__v1`` … of a batch, whose statuses are checked too.

    Examples
    --------
    >>> evaluated(nw.col("__v0") * 2, Batch(pd.DataFrame({"faithfulness": [0.5]})), [Metric("faithfulness")])
    array([1.])
    """
    import polars as pl

    batch.statuses(metrics)
    values = {f"__v{k}": pl.Series(batch.values(metric)) for k, metric in enumerate(metrics)}
    rows = pl.LazyFrame({"__row": pl.Series(np.zeros(len(batch), np.int8)), **values}).fill_nan(None)
    made = nw.from_native(rows).select(made=nw.when(nw.col("__row") == 0).then(expression)).collect()
    return made["made"].to_numpy()


def add_columns(
    frame: Any,
    metrics: Sequence[Metric],
    columns: Sequence[str | None],
    of_batch: Callable[[Batch], dict[str, Any]],
    of_scores: Mapping[str, nw.Expr],
    of_query: Callable[[Frame], dict[str, nw.Expr]] = lambda rows: {},
    *,
    only: str | None = None,
) -> Any:
    """Return the caller's kind of frame with more columns, or with one of them only.

    Parameters
    ----------
    of_batch : function of a Batch
        The new columns of an eager frame; `columns` are those it reads beside the metrics.
    of_scores : mapping of name to expression
        Those of a query that are read off the scores ``__v0``, ``__v1`` …; a score that is refused makes it fail.
    of_query : function of the query's frame
        Those that are not.

    Raises
    ------
    RagnbError
        For an eager frame; the query of a lazy one fails when it runs.

    Examples
    --------
    >>> frame = pd.DataFrame({"doc_name": ["a"]})
    >>> add_columns(frame, [], ["doc_name"], lambda batch: {"rows": [len(batch)]}, {}).columns.tolist()
    ['doc_name', 'rows']
    """
    if isinstance(frame, pd.DataFrame):
        made = reduce_batches(frame, metrics, [Reduction(of_batch, columns=columns)])[0][0]
        return frame.assign(**made) if only is None else pd.Series(made[only], frame.index, name=only)
    rows = opened(frame)
    have = rows.collect_schema().names()
    if stays_lazy(frame):
        laid, faults = laid_out(rows, metrics)
        new = {name: _guarded(value, faults) for name, value in of_scores.items()} | of_query(rows)
        kept = list(dict.fromkeys([*have, *new])) if only is None else [only]
        return laid.with_columns(**new).select(*kept).to_native()
    made = reduce_batches(frame, metrics, [Reduction(of_batch, columns=columns)])[0][0]
    eager = nw.from_native(frame, eager_only=True)
    series = [nw.new_series(name, values, backend=eager.implementation) for name, values in made.items()]
    gaps = [
        nw.when(~nw.col(one.name).is_nan()).then(nw.col(one.name)).alias(one.name) if one.dtype.is_float() else one
        for one in series
    ]
    whole = eager.with_columns(*series).with_columns(*gaps)
    return (whole if only is None else whole.select(only)).to_native()


def _guarded(value: nw.Expr, faults: Sequence[tuple[nw.Expr, str]]) -> nw.Expr:
    """Return the value, or make the query fail with the fault's words once it runs: words are no number."""
    message = nw.lit(None, dtype=nw.String)
    for fault, words in reversed(faults):
        message = nw.when(fault).then(nw.lit(words)).otherwise(message)
    return nw.when(message.cast(nw.Float64).is_null()).then(value)
