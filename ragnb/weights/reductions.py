"""Row by row: weighted scores, potential gains, and the distribution of scores."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast, overload

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats
from ragnb.errors import RagnbError
from ragnb.readers.frames import as_called
from ragnb.schema import DRAWN, TOTAL, Metric
from ragnb.weights.batches import Batch, Reduction, reduce_batches
from ragnb.weights.cells import Keys
from ragnb.weights.clusters import document_column
from ragnb.weights.columns import (
    Codes,
    Frame,
    MetricsArgument,
    column_names,
    key_of,
    laid_out,
    scored,
)
from ragnb.weights.total import (
    Array,
    Flags,
    Weighing,
    check_weights,
    document_weights,
    nfc,
    total_of,
)

# Keeps 0.3 in the tenth that starts at 0.3, which floats put a hair above it.
_HAIR = 1e-9


def gains_reduction(
    metrics: Sequence[Metric],
    lifts: Sequence[tuple[int, float]],
    weighing: Weighing,
    *,
    part: nw.Expr | None = None,
    parts: int = 1,
) -> Reduction:
    """Return the reduction to the gain in the total if scores that miss a threshold were raised to it.

    The rows are summed by the weight of their document and the pattern of gaps, on which a lift's weight depends.

    Parameters
    ----------
    metrics : Metric objects
        All that are in the frame and count.
    lifts : pairs of (position of the metric, threshold)
        A threshold is below the good scores of a higher-is-better metric, above those of a lower-is-better one.
    part : expression, optional
        The part of the rows that a row is of, 0 to `parts` − 1, read off the scores ``__v0``, ``__v1`` … .

    Returns
    -------
    Reduction
        To a (L,) or, with `part`, (parts, L) array of float:
        Σ v · share · slope · (threshold − s) / Σ v over the rows that have a total; nan where none has one. Of a
        part the numerator is over its rows alone.

    Raises
    ------
    RagnbError
        As `moments`.

    Examples
    --------
    >>> import polars as pl
    >>> from ragnb.weights import reduce_batches
    >>> frame = pl.DataFrame({"faithfulness": [0.5, 1.0], "context_recall": [1.0, None]})
    >>> metrics = [Metric("faithfulness"), Metric("context_recall")]
    >>> reduce_batches(frame, metrics, [gains_reduction(metrics, [(0, 0.7)], Weighing())])[0].round(3)
    array([0.05])
    """
    checked = check_weights(weighing.doc_weights, "doc_weights")
    how = {"orient": weighing.orient, "rescale": weighing.rescale, "strict": False, "known": False}
    total = total_of(metrics, weighing.metric_weights, **how)

    def kernel(batch: Batch) -> _Lacking:
        values = [batch.values(metric) for metric in metrics]
        weights, weight_code = _row_weights(batch, weighing.doc, checked)
        if part is None:
            of_part = np.zeros(len(batch))
        else:
            of_part = evaluated(part, batch, metrics)
        place = np.asarray(of_part, dtype=np.int64)
        # The shape is given, so that there is a line for each row even without any metric.
        has_score = np.array([~np.isnan(x) for x in values], dtype=bool)
        present = has_score.reshape(len(values), len(batch)).T
        key = Keys.of([(weight_code, len(weights)), (place, parts)], present)
        lacking = np.empty((len(key.row), len(lifts)))
        for i, (k, threshold) in enumerate(lifts):
            distance = threshold - values[k]
            clip = np.fmax if metrics[k].better == "higher" else np.fmin
            lacking[:, i] = np.bincount(key.code, clip(distance, 0.0, out=distance))  # nan gives 0
        return _Lacking(
            n=np.bincount(key.code),
            doc_weight=weights[weight_code[key.row]],
            present=present[key.row],
            lacking=lacking,
            place=place[key.row],
        )

    def joined(cells: list[_Lacking]) -> _Lacking:
        return _Lacking(*(np.concatenate(column) for column in zip(*cells, strict=True)))

    def finish(cells: _Lacking) -> Array:
        weight = stats.relative(cells.doc_weight)
        share = total.shares(cells.present)
        has_total = share.sum(axis=1) > 0
        mass = float((weight * cells.n)[has_total].sum())
        lifted = [k for k, _ in lifts]
        # What a point of a metric adds to the total of a row.
        per_point = (share * total.slopes)[:, lifted]
        gains: Array = np.zeros((parts, len(lifts)))
        np.add.at(gains, cells.place, weight[:, None] * cells.lacking * per_point)
        if mass > 0:
            gains = gains / mass
        else:
            gains = np.full_like(gains, np.nan)
        of_all: Array = gains[0]
        return of_all if part is None else gains

    return Reduction(kernel, joined, [weighing.doc, DRAWN] if checked else [DRAWN], finish)


class _Lacking(NamedTuple):
    """Cells of rows alike in document weight, gaps and part, and what their scores lack to the thresholds."""

    n: Codes  # (cells,) rows
    doc_weight: Array  # (cells,)
    present: Flags  # (cells, K)
    lacking: Array  # (cells, L) Σ(threshold − score) over the scores that miss it
    place: Codes  # (cells,) the part of the rows


def _row_weights(batch: Batch, doc: str, doc_weights: Mapping[str, float]) -> tuple[Array, Codes]:
    """Return the distinct weights of rows, and which of them each row has."""
    docs = batch.labels(doc if doc_weights else None, compose=True)
    # The last is the weight of rows without a document, whose code is −1.
    of_documents = [*(doc_weights.get(name, 1.0) for name in docs.names), 1.0]
    weights, code_of_document = np.unique(of_documents, return_inverse=True)
    code = code_of_document[docs.codes]
    drawn = batch.weights()
    if drawn is not None:
        weights, code = np.unique(weights[code] * drawn, return_inverse=True)
    return weights, code


def histogram_reduction(metrics: Sequence[Metric], *, bins: int = 10) -> Reduction:
    """Return the reduction to ``metric, bin_low, bin_high, n, n_low, n_high``.

    The last two are how many lie at the low and at the high end, the same in every bin of a metric.

    Raises
    ------
    RagnbError
        For a metric without a finite range.
    """
    endless = [metric.name for metric in metrics if not metric.bounded]
    if endless:
        raise RagnbError(
            f"{endless[0]!r} has no finite range for binning; declare one, or leave it out"
        )

    def count(batch: Batch) -> npt.NDArray[np.int64]:
        """Metrics × bins, then how many lie at the low end and at the high end."""
        counts = np.zeros((len(metrics), bins + 2), dtype=np.int64)
        for k, metric in enumerate(metrics):
            batch.status(metric)  # refuses a number whose status is failed
            x = batch.values(metric)
            x = x[~np.isnan(x)]
            share = (x - metric.low) / (metric.high - metric.low)
            place = np.floor(share * bins + _HAIR).astype(np.int64)
            # The high end belongs to the last bin.
            counts[k, :bins] = np.bincount(np.clip(place, 0, bins - 1), minlength=bins)
            counts[k, bins] = (x == metric.low).sum()
            counts[k, bins + 1] = (x == metric.high).sum()
        return counts

    def finish(counts: npt.NDArray[np.int64]) -> pd.DataFrame:
        low = np.array([metric.low for metric in metrics], dtype=float)[:, None]
        high = np.array([metric.high for metric in metrics], dtype=float)[:, None]
        edges = low + (high - low) * np.arange(bins + 1) / bins
        names = np.repeat(np.array([m.name for m in metrics], dtype=object), bins)
        table = pd.DataFrame(
            {"metric": names, "bin_low": edges[:, :-1].ravel(), "bin_high": edges[:, 1:].ravel()}
        )
        table["n"] = counts[:, :bins].ravel()
        table[["n_low", "n_high"]] = counts[:, bins:].repeat(bins, axis=0)
        return table

    return Reduction(count, lambda parts: np.sum(parts, axis=0), finish=finish)


Rows = TypeVar("Rows")


@overload
def weighted_score(
    scores: pd.DataFrame,
    *,
    metrics: MetricsArgument = None,
    metric_weights: Mapping[str, float] | None = None,
    orient: bool = True,
    rescale: bool = False,
) -> pd.Series[float]: ...


@overload
def weighted_score(
    scores: Any,
    *,
    metrics: MetricsArgument = None,
    metric_weights: Mapping[str, float] | None = None,
    orient: bool = True,
    rescale: bool = False,
) -> Any: ...


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
        One row per sample, one column per metric; of pandas, Polars, PyArrow, DuckDB or PySpark.
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
    frame, chosen = scored(scores, metrics)
    score = total_of(chosen, metric_weights, orient=orient, rescale=rescale).expression()
    made = add_columns(frame, chosen, {TOTAL: score})
    if isinstance(made, pd.DataFrame):
        return made[TOTAL]
    return nw.from_native(made).select(TOTAL).to_native()


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
    """Return the scores with two more columns, ``weighted_score`` and ``sample_weight``.

    Columns of these names that are there already are replaced. A frame of another engine than pandas comes
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
    frame, chosen = scored(scores, metrics, doc)
    score = total_of(
        chosen, metric_weights, orient=orient, rescale=rescale, strict=strict
    ).expression()
    column = document_column(column_names(frame), doc)
    checked = check_weights(doc_weights, "doc_weights")

    def of_batch(batch: Batch) -> Array:
        labels = batch.labels(column, compose=True)
        return np.asarray(document_weights(checked, labels.names, labels.codes)[labels.codes])

    def of_query(rows: Frame) -> nw.Expr:
        """All forms of each name are tried, as the names of a query are unknown until it runs."""
        if column is None or not checked:
            document_weights(checked, (), np.empty(0, dtype=np.int64))  # warns
            return nw.lit(1.0)
        canonical = {
            form: checked[nfc(name)]
            for name in doc_weights or ()
            for form in (str(name), nfc(name), unicodedata.normalize("NFD", str(name)))
        }
        key = key_of(rows, column)
        text = key.cast(nw.String)
        digits = key.cast(nw.Int64).cast(nw.String)
        floats = rows.collect_schema()[column].is_float()
        if floats:
            key = nw.when(key == key.round()).then(digits).otherwise(text)
        else:
            key = text
        return key.replace_strict(
            list(canonical), list(canonical.values()), default=1.0, return_dtype=nw.Float64
        )

    beside = {"sample_weight": (column, of_batch, of_query)}
    return cast(
        Rows,
        as_called(add_columns(frame, chosen, {TOTAL: score}, beside), frame, scores),
    )


def evaluated(expression: nw.Expr, batch: Batch, metrics: Sequence[Metric]) -> npt.NDArray[Any]:
    """Return an expression over the scores ``__v0``, ``__v1`` … of a batch, whose statuses are checked too.

    Examples
    --------
    >>> evaluated(nw.col("__v0") * 2, Batch(pd.DataFrame({"faithfulness": [0.5]})), [Metric("faithfulness")])
    array([1.])
    """
    import polars as pl

    def make() -> npt.NDArray[Any]:
        for metric in metrics:
            batch.status(metric)
        values = {f"__v{k}": pl.Series(batch.values(metric)) for k, metric in enumerate(metrics)}
        rows = pl.LazyFrame({"__row": pl.Series(np.zeros(len(batch), np.int8)), **values}).fill_nan(
            None
        )
        made = (
            nw.from_native(rows)
            .select(made=nw.when(nw.col("__row") == 0).then(expression))
            .collect()
        )
        return made["made"].to_numpy()

    return batch.once(id(expression), make)


Beside = tuple[str | None, Callable[[Batch], Any], Callable[[Frame], nw.Expr]]


def add_columns(
    frame: Any,
    metrics: Sequence[Metric],
    of_scores: Mapping[str, nw.Expr],
    beside: Mapping[str, Beside] | None = None,
) -> Any:
    """Return the caller's kind of frame with more columns.

    Parameters
    ----------
    of_scores : mapping of name to expression
        Columns that are read off the scores ``__v0``, ``__v1`` …; a score that is refused makes a query fail.
    beside : mapping of name to (column, function of a Batch, function of a query), optional
        Those that are read off another column.

    Raises
    ------
    RagnbError
        For an eager frame; the query of a lazy one fails when it runs.

    Examples
    --------
    >>> frame = pd.DataFrame({"faithfulness": [0.25]})
    >>> add_columns(frame, [Metric("faithfulness")], {"twice": nw.col("__v0") * 2})
       faithfulness  twice
    0          0.25    0.5
    """
    beside = beside or {}
    rows: Frame = nw.from_native(frame)
    if isinstance(rows, nw.LazyFrame):
        laid, faults = laid_out(rows, metrics)
        message = nw.lit(None, dtype=nw.String)
        for fault, words in reversed(faults):
            message = nw.when(fault).then(nw.lit(words)).otherwise(message)
        right = message.cast(
            nw.Float64
        ).is_null()  # words are no number: the query fails with them once it runs
        new: dict[str, nw.Expr] = {
            name: nw.when(right).then(value) for name, value in of_scores.items()
        }
        new |= {name: of_query(rows) for name, (_, _, of_query) in beside.items()}
        return (
            laid.with_columns(**new)
            .select(*dict.fromkeys([*rows.collect_schema().names(), *new]))
            .to_native()
        )

    def kernel(batch: Batch) -> dict[str, Any]:
        made = {name: evaluated(value, batch, metrics) for name, value in of_scores.items()}
        return made | {name: of_batch(batch) for name, (_, of_batch, _) in beside.items()}

    columns = [column for column, _, _ in beside.values()]
    made = reduce_batches(frame, metrics, [Reduction(kernel, columns=columns)])[0]
    if isinstance(frame, pd.DataFrame):
        return frame.assign(**made)
    series = [
        nw.new_series(name, values, backend=rows.implementation) for name, values in made.items()
    ]
    return rows.with_columns(
        one.fill_nan(None) if one.dtype.is_float() else one for one in series
    ).to_native()
