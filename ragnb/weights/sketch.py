"""How scores spread, for charts of any number of rows: counts by equal bins, and weighted quantiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats
from ragnb.errors import RagnbError
from ragnb.schema import Metric
from ragnb.weights.cells import reduce_rows
from ragnb.weights.check import check_weights, warn_unused
from ragnb.weights.columns import Array, Labels, coded, labels, score_columns
from ragnb.weights.engines import BAD, explain, grouped, opened, patterned, scored_columns
from ragnb.weights.finish import finish, plan_total, relative
from ragnb.weights.grouped import with_nameless
from ragnb.weights.reduced import MetricsArgument
from ragnb.weights.scored import scored


def histogram(
    scores: Any, *, metrics: MetricsArgument = None, by: str | None = None, bins: int = 10
) -> pd.DataFrame:
    """Return how many samples score in each of equal bins of a metric's range.

    Parameters
    ----------
    scores : DataFrame
        One row a sample, one column a metric, nan where there is no score; of pandas, Polars, PyArrow, DuckDB or
        PySpark. Other engines than pandas count in one query.
    metrics : names or Metric objects, optional
        None takes the columns that METRICS declares.
    by : str, optional
        A column to group by; its empty cells are the group None, the last one.
    bins : int

    Returns
    -------
    DataFrame
        ``[by,] metric, bin_low, bin_high, n``, every bin of every metric, empty ones too. A bin holds its lower
        end, the last one both. Histograms of parts of the rows merge by adding ``n`` over equal other columns.

    Raises
    ------
    RagnbError
        For a metric without a finite range, values outside it, and unknown metrics or columns.

    Examples
    --------
    >>> histogram(pd.DataFrame({"faithfulness": [0.2, 0.5, 1.0, None]}), bins=2)
             metric  bin_low  bin_high  n
    0  faithfulness      0.0       0.5  1
    1  faithfulness      0.5       1.0  2
    """
    if bins < 1:
        raise RagnbError(f"bins={bins!r} must be a number of bins, such as 10")
    scores, chosen = scored(scores, metrics, by)
    endless = [metric.name for metric in chosen if not metric.bounded]
    if endless:
        raise RagnbError(f"{endless[0]!r} has no finite range to put in bins; declare one, or leave it out")
    count = _counts if isinstance(scores, pd.DataFrame) else _counts_on_engine
    names, counts = count(scores, chosen, by, bins)
    low, high = (np.array([getattr(m, end) for m in chosen], dtype=float)[:, None] for end in ("low", "high"))
    edges = low + (high - low) * np.arange(bins + 1) / bins
    columns = {
        "metric": np.repeat(np.array([m.name for m in chosen], dtype=object), bins),
        "bin_low": edges[:, :-1].ravel(),
        "bin_high": edges[:, 1:].ravel(),
    }
    table = pd.DataFrame({name: np.tile(column, len(names)) for name, column in columns.items()})
    if by is not None:
        table.insert(0, by, np.repeat(np.array(names, dtype=object), len(chosen) * bins))
    return table.assign(n=counts.ravel())


# The slack keeps 0.3 in the tenth that starts at 0.3, which floats put a hair above it.
_HAIR = 1e-9
Counts = tuple[tuple[str | None, ...], npt.NDArray[np.int64]]


def _counts(frame: pd.DataFrame, metrics: Sequence[Metric], by: str | None, bins: int) -> Counts:
    """The groups, and groups × metrics × bins."""
    values, _ = score_columns(frame, metrics)
    none = Labels(np.zeros(len(frame), dtype=np.int64), ("",))
    group = none if by is None else with_nameless(labels(frame, by))
    size = len(group.names)
    counts = np.zeros((size, len(metrics), bins), dtype=np.int64)
    for k, (metric, x) in enumerate(zip(metrics, values, strict=True)):
        scored = ~np.isnan(x)
        place = np.floor((x[scored] - metric.low) / (metric.high - metric.low) * bins + _HAIR).astype(np.int64)
        cell = group.codes[scored] * bins + np.clip(place, 0, bins - 1)
        counts[:, k] = np.bincount(cell, minlength=size * bins).reshape(-1, bins)
    return group.names, counts


def _counts_on_engine(scores: Any, metrics: Sequence[Metric], by: str | None, bins: int) -> Counts:
    """The same by a query a metric, which reads its column alone."""
    tables = [_table_of(scores, metric, by, bins) for metric in metrics]
    keys = [table["__k0"] if by is not None else np.zeros(len(table["__n"])) for table in tables]
    ends = np.cumsum([0, *map(len, keys)])
    every = np.concatenate(keys) if keys else np.empty(0)
    group = with_nameless(coded(every)) if by is not None else Labels(np.zeros(len(every), dtype=np.int64), ("",))
    counts = np.zeros((len(group.names), len(metrics), bins), dtype=np.int64)
    for k, table in enumerate(tables):
        codes, place = group.codes[ends[k] : ends[k + 1]], table["__place"]
        scored = place >= 0
        np.add.at(counts[:, k], (codes[scored], place[scored]), table["__n"][scored].astype(np.int64))
    return group.names, counts


def _table_of(scores: Any, metric: Metric, by: str | None, bins: int) -> dict[str, npt.NDArray[Any]]:
    """How many rows of each group are in each bin, −1 without a score."""
    value = nw.col("__v0")
    place = ((value - metric.low) / (metric.high - metric.low) * bins + _HAIR).floor()
    inside = nw.when(place > bins - 1).then(nw.lit(bins - 1.0)).otherwise(place)
    inside = nw.when(place < 0).then(nw.lit(0.0)).otherwise(inside)
    scored = nw.when(value.is_null()).then(nw.lit(-1.0)).otherwise(inside)
    rows = patterned(opened(scores), [metric], {} if by is None else {"__k0": by})
    rows = rows.with_columns(__place=scored.cast(nw.Int64))
    table = grouped(rows, [*([] if by is None else ["__k0"]), "__place"], [BAD])
    if table[BAD].any():
        explain(scores, [metric])
    return table


def quantiles(
    scores: Any,
    *,
    metrics: MetricsArgument = None,
    q: Sequence[float] = (0.1, 0.5, 0.9),
    doc_weights: Mapping[str, float] | None = None,
    doc: str = "doc_name",
    level: float = 0.95,
) -> pd.DataFrame:
    """Return document-weighted quantiles of each metric, with clustered intervals.

    Parameters
    ----------
    scores : DataFrame
        One row a sample, one column a metric, nan where there is no score; of pandas, Polars, PyArrow, DuckDB or
        PySpark. The columns of scores and documents are sorted in memory, whatever engine holds them.
    metrics : names or Metric objects, optional
        None takes the columns that METRICS declares.
    q : sequence of float
        In (0, 1).
    doc_weights : mapping of document to weight, optional
    doc : str
        The document column; documents are the clusters.
    level : float
        Of the intervals, in (0, 1).

    Returns
    -------
    DataFrame
        ``metric, q, value, low, high, n, n_clusters``. ``value`` is the inverse of the weighted distribution
        function: the least score x with Σ v over scores ≤ x of at least q Σ v; nan where nothing is scored.

    Raises
    ------
    RagnbError
        For weights that are none, a q outside (0, 1), unknown metrics or columns, values outside their range.

    Notes
    -----
    The interval is Woodruff's (1952), J. Am. Stat. Assoc. 47, 635–646: q ± what the share of scores ≤ x is
    uncertain by (here Wilson's interval at its jackknife error), read off the distribution function again.

    Examples
    --------
    >>> scores = pd.DataFrame({"faithfulness": [0.1, 0.2, 0.9], "doc_name": ["a", "b", "c"]})
    >>> quantiles(scores, q=[0.5], doc_weights={"c": 3})[["metric", "q", "value", "n"]]
             metric    q  value  n
    0  faithfulness  0.5    0.9  3
    """
    shares = np.array(q, dtype=float)
    if not ((shares > 0) & (shares < 1)).all() or not 0 < level < 1:
        raise RagnbError(f"q={q!r} and level={level!r} must lie between 0 and 1, such as 0.5")
    scores, chosen = scored(scores, metrics, doc)
    frame = scored_columns(scores, chosen, doc)
    values, _ = score_columns(frame, chosen)
    docs = labels(frame, doc, optional=doc == "doc_name", compose=True)
    v = check_weights(doc_weights, "doc_weights")
    warn_unused(v, docs.names, "doc_weights")
    weight = relative(np.array([v.get(name, 1.0) for name in docs.names] + [1.0]))
    found = [_spread(x, docs, weight, shares, level) for x in values]
    blocks = [part.assign(metric=m.name, q=shares) for m, part in zip(chosen, found, strict=True)]
    columns = ["metric", "q", "value", "low", "high", "n", "n_clusters"]
    return pd.concat(blocks, ignore_index=True)[columns] if blocks else pd.DataFrame(columns=columns)


def _spread(x: Array, docs: Labels, weight: Array, shares: Array, level: float) -> pd.DataFrame:
    """The quantiles of one metric, their intervals, n and clusters."""
    used = ~np.isnan(x) & (weight[docs.codes] > 0)
    order = np.argsort(x[used], kind="stable")
    ordered, below = x[used][order], np.cumsum(weight[docs.codes][used][order])
    below /= below[-1:]

    def inverse(p: Array) -> Array:
        known = ~np.isnan(p) & (len(ordered) > 0)
        at = np.minimum(np.searchsorted(below, p), len(ordered) - 1)
        return np.where(known, np.append(ordered, np.nan)[at], np.nan)

    value = inverse(shares)
    flags = [np.where(np.isnan(x), np.nan, x <= share) for share in value]
    each = [Metric(f"share {j}") for j in range(len(shares))]
    cells = reduce_rows(flags, each, Labels(np.zeros(len(x), dtype=np.int64), ()), docs, docs)
    plan = plan_total(each, np.ones(len(shares)), orient=True, rescale=False)
    got = finish(cells, 1, each, plan, weight, level)
    se, g_eff, n_eff, n, g = (part[0, :-1] for part in (got.se, got.g_eff, got.n_eff, got.n, got.n_clusters))
    ends = (np.zeros_like(se), np.ones_like(se))
    low, high = stats.mean_interval(np.where(n > 0, shares, np.nan), se, g_eff, n_eff, ends, level=level)
    whole = {"n": n.astype(np.int64), "n_clusters": g.astype(np.int64)}
    return pd.DataFrame({"value": value, "low": inverse(low), "high": inverse(high), **whole})
