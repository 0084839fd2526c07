"""What the answers of a run took: latency, tokens, cost and errors, which are shown and never enter the total."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats
from ragnb.inputs.operations import ERRORS
from ragnb.readers.executors import on_spark
from ragnb.schema import Gate, Metric, quantile_of, records
from ragnb.schema.operations import better_of_name
from ragnb.stats import Estimate
from ragnb.weights import Batch, Reduction, collected, opened
from ragnb.weights.clusters import question_clusters

STATISTICS = ("mean", "median", "p95")
OPERATION_COLUMNS = (
    "metric",
    "n",
    *(f"{name}{end}" for name in STATISTICS for end in ("", "_low", "_high")),
)
# Codes of a status, as `Batch.status` gives them.
_FAILED = 1
_NOT_APPLICABLE = 2
# What a column ``ok`` holds of an answer that failed, as text in lower case: 0.0 is a 0 beside a gap.
_NO = ("false", "0", "0.0")


class Measured(NamedTuple):
    """The measures of operation of rows, with the clusters that the rows are of.

    Attributes
    ----------
    values : DataFrame
        One column a measure, nan where there is none; last `ERRORS`, where the rows say which answers failed.
    lost : DataFrame of bool
        Where a value is missing that should be there.
    clusters : (N,) int
    """

    values: pd.DataFrame
    lost: pd.DataFrame
    clusters: npt.NDArray[np.intp]

    def mean(self, name: str, level: float) -> Estimate:
        """Return the mean of a measure; every answer counts alike."""
        values = self.values[name]
        ends = (0.0, 1.0) if name == ERRORS else (0.0, np.inf)
        estimate = stats.clustered_mean(values, self.clusters, ends=ends, level=level)
        # A symmetric interval may reach below 0, and no answer takes less than nothing.
        if estimate.low < 0 <= values.min():
            return replace(estimate, low=0.0)
        return estimate

    def quantile(self, name: str, q: float, level: float) -> Estimate:
        """Return a quantile of a measure; a lost value may lie at either end."""
        values = self.values[name]
        lost = self.lost[name]
        estimate = stats.quantile_interval(values, q, self.clusters, lost=lost, level=level)
        if estimate.low == -np.inf:
            return replace(estimate, low=0.0)
        return estimate


def measured_reduction(
    names: list[str],
    metrics: Iterable[Metric],
    *,
    doc: str,
    cluster: str | None = None,
    questions: str | None = None,
) -> Reduction:
    """Return the reduction to the measures of operation that columns hold.

    Parameters
    ----------
    names : list of str
        Of the columns.
    metrics : Metric objects
        An answer failed whose ``ok`` is false, or of which every quality metric failed.
    doc, cluster, questions : str, optional
        What the clusters are, as for `ragnb.weights.moments_reduction`.

    Examples
    --------
    >>> from ragnb.weights import reduce_batches
    >>> frame = pd.DataFrame({"latency_s": [1.0, None], "doc_name": ["a", "b"]})
    >>> (found,) = reduce_batches(frame, [], [measured_reduction(["latency_s"], [], doc="doc_name")])
    >>> found.lost["latency_s"].tolist()
    [False, True]
    """
    quality = [metric for metric in metrics if metric.role == "quality"]

    def kernel(batch: Batch) -> pd.DataFrame:
        table = {name: _numbers(batch.frame, name) for name in names}
        failed = _failed(batch, quality)
        if failed is not None and ERRORS not in table:
            table[ERRORS] = failed
        docs = batch.labels(doc, compose=True)
        if cluster is None:
            clusters = question_clusters(batch, docs, questions)
        else:
            clusters = batch.labels(cluster)
        lost = {f"{name}__lost": _is_lost(batch.frame, name, table[name]) for name in names}
        # Clusters go by name, as each batch numbers its own; their column is called "", as no measure is.
        labels = pd.Categorical.from_codes(clusters.codes, pd.Index(clusters.names, dtype=object))
        return pd.DataFrame({**table, **lost, "": labels})

    def merge(parts: list[pd.DataFrame]) -> pd.DataFrame:
        if len(parts) == 1:
            return parts[0]
        labels = pd.api.types.union_categoricals([part[""] for part in parts])
        return pd.concat(parts, ignore_index=True).assign(**{"": labels})

    def finish(table: pd.DataFrame) -> Measured:
        codes = stats.lone_apart(np.array(table[""].cat.codes, dtype=np.intp))
        measures = list(names)
        if ERRORS in table and ERRORS not in names:
            measures.append(ERRORS)
        values = table[measures]
        lost = pd.DataFrame({name: table[f"{name}__lost"] for name in names})
        return Measured(values, lost, codes)

    columns = [part for name in names for part in (name, f"{name}__status")]
    return Reduction(kernel, merge, (*columns, "ok", doc, cluster, questions), finish)


def _numbers(frame: pd.DataFrame, name: str) -> npt.NDArray[np.float64]:
    """Return a column as finite numbers, nan for anything else."""
    numbers = pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _is_lost(
    frame: pd.DataFrame, name: str, values: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    """Return where a value is missing and no status says that it does not apply."""
    status = f"{name}__status"
    if status not in frame:
        return np.isnan(values)
    return np.isnan(values) & (frame[status] != "not_applicable").to_numpy()


def _failed(batch: Batch, quality: list[Metric]) -> npt.NDArray[np.float64] | None:
    """Return which answers failed, as 0 and 1; None where no column speaks of failures."""
    if "ok" in batch.frame:
        words = batch.frame["ok"].astype(str).str.lower()
        return np.asarray(words.isin(_NO), dtype=float)
    if not any(f"{metric.name}__status" in batch.frame for metric in quality):
        return None
    codes = np.stack(
        [batch.status(metric) for metric in quality]
    )  # a row a metric, a column an answer
    applies = codes != _NOT_APPLICABLE
    all_failed = ((codes == _FAILED) | ~applies).all(axis=0)
    # An answer to which no metric applies did not fail.
    return np.asarray(all_failed & applies.any(axis=0), dtype=float)


def measure_operations(
    found: Measured | None, level: float = 0.95, *, columns: Iterable[str] = ()
) -> pd.DataFrame | None:
    """Return the mean, the median and the 95th percentile of measures of operation with their intervals.

    Parameters
    ----------
    found : Measured or None
    level : float
        Of the intervals.
    columns : iterable of str
        The measures; none makes no table.

    Returns
    -------
    DataFrame or None
        ``metric, n`` and for each of ``mean, median, p95`` its value and ``_low, _high``; of errors the mean
        alone. Every answer counts alike. See `ragnb.stats.quantile_interval` for ends that are infinite.

    Examples
    --------
    >>> rows = pd.DataFrame({"latency_ms": [100.0, 200.0, None]})
    >>> found = Measured(rows, rows.isna(), np.arange(3))
    >>> measure_operations(found, columns=rows)[["metric", "n", "mean", "median", "p95"]].values.tolist()
    [['latency_ms', 2, 150.0, 150.0, 195.0]]
    """
    names = [*columns]
    if found is None or not names:
        return None
    if ERRORS in found.values and ERRORS not in names:
        names.append(ERRORS)
    rows = []
    for name in names:
        mean = found.mean(name, level)
        row: dict[str, Any] = {"metric": name, "n": mean.n, **_with_ends("mean", mean)}
        if name != ERRORS:
            row |= _with_ends("median", found.quantile(name, 0.5, level))
            row |= _with_ends("p95", found.quantile(name, 0.95, level))
        rows.append(row)
    return operation_frame(rows)


def operation_frame(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Return rows as the frame of operations, of one dtype each."""
    table = pd.DataFrame(list(rows), columns=list(OPERATION_COLUMNS))
    kinds = dict.fromkeys(OPERATION_COLUMNS[2:], float)
    return table.astype({"n": "int64", **kinds})


def _with_ends(name: str, found: Estimate) -> dict[str, float]:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}


def means_on_spark(frame: Any, names: list[str]) -> pd.DataFrame | None:
    """Return the means of measures of operation of rows on Spark, which stay there; None of other rows.

    Their quantiles and intervals would need the rows themselves, and are missing.
    """
    if not names or not on_spark(frame):
        return None
    # Columns of the answer are told by position: the name of a measure may be anything.
    expressions = []
    for position, name in enumerate(names):
        number = nw.col(name).cast(nw.Float64)
        value = nw.when(~number.is_nan()).then(number)
        expressions.append(value.count().alias(f"n{position}"))
        expressions.append(value.mean().alias(f"mean{position}"))
    row = collected(opened(frame).select(*expressions)).to_pandas().iloc[0]
    return operation_frame(
        {"metric": name, "n": row[f"n{position}"], "mean": row[f"mean{position}"]}
        for position, name in enumerate(names)
    )


def is_asked(metric: str) -> bool:
    """Whether a gate on this asks for a quantile of a measure of operation, or for the errors."""
    return metric == ERRORS or quantile_of(metric) is not None


def rows_for_gates(
    found: Measured | None, gates: Iterable[Gate], level: float = 0.95
) -> pd.DataFrame | None:
    """Return what gates such as ``p95(latency_s) <= 2`` compare, in the form of means; None of nothing.

    Examples
    --------
    >>> rows = pd.DataFrame({"latency_s": np.arange(1.0, 101.0)})
    >>> found = Measured(rows, rows.isna(), np.arange(100))
    >>> gates = [Gate("fast", "p50(latency_s)", "<=", 60)]
    >>> rows_for_gates(found, gates)[["metric", "value", "low", "high"]].values.tolist()
    [['p50(latency_s)', 50.5, 41.0, 60.0]]
    """
    if found is None:
        return None
    rows = []
    for name in dict.fromkeys(gate.metric for gate in gates):
        q, column = quantile_of(name) or (None, name)
        if column not in found.values:
            continue
        if q is None:
            estimate = found.mean(column, level)
        else:
            estimate = found.quantile(column, q, level)
        rows.append(
            {
                "metric": name,
                "value": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "n": estimate.n,
                "level": level,
                "range_low": 0.0,
                "range_high": 1.0 if column == ERRORS else np.inf,
                "better": "lower" if column == ERRORS else better_of_name(column),
                "role": "operation",
            }
        )
    if rows:
        return pd.DataFrame(rows)
    return None


def with_questions_needed(
    gates: pd.DataFrame, measured: Mapping[Any, Measured | None], level: float = 0.95
) -> pd.DataFrame:
    """Return gates with how many more questions decide those on a quantile, or on errors, that are undecided.

    The 95th percentile is at most a limit exactly where 95 % of the answers are within it, so that share decides.

    Parameters
    ----------
    gates : DataFrame
        What `ragnb.check_gates` returns.
    measured : mapping of system to Measured
    """
    needed = []
    for row in records(gates):
        found = measured.get(None if pd.isna(row["system"]) else row["system"])
        is_open = row["outcome"] == "undecided" and row["role"] == "operation"
        if found is not None and is_open and is_asked(row["metric"]):
            needed.append(_more_needed(found, row, level))
        else:
            needed.append(row["more_needed"])
    return gates.assign(more_needed=pd.array(needed, dtype="Int64"))


def _more_needed(found: Measured, row: Mapping[Any, Any], level: float) -> int | None:
    """Return how many more questions decide, documents in proportion; None where that is too many."""
    metric = row["metric"]
    at = row["threshold"]
    q, column = quantile_of(metric) or (None, metric)
    values = found.values[column]
    if q is None:  # errors, which are a share already
        within = values.to_numpy(float)
        target = float(at)
    else:
        is_upper_limit = row["op"] == "<="
        is_within = values <= at if is_upper_limit else values >= at
        within = is_within.to_numpy().astype(float)
        # A lost value counts as one beyond the limit; one that does not apply counts as none.
        within[(values.isna() & ~found.lost[column]).to_numpy()] = np.nan
        target = q if is_upper_limit else 1 - q
    share = stats.clustered_mean(within, found.clusters, ends=(0.0, 1.0), level=level)
    if share.n_clusters < 2 or share.value == target:
        return None
    if share.value in (0.0, 1.0):
        # All alike have no standard error. With the true share at the limit, n independent answers are all alike
        # with the probability nearest ** n, which must come down to one tail; those at hand are worth `alike`.
        alike = float(stats.size_if_alike(share.df + 1, share.n_eff))
        nearest = target if share.value == 1.0 else 1 - target
        times = np.log((1 - level) / 2) / np.log(nearest) / alike
        return max(int(np.ceil(share.n * (times - 1))), 1)
    size = stats.wilson_size(share.value, share.low, share.high, share.df, level)
    if np.isnan(size):  # fewer degrees of freedom near an end: the size that the error itself tells
        size = share.value * (1 - share.value) / share.se**2
    return stats.questions_to_decide(share.value, target, share.n, share.df, level, size=size)
