"""Moments: the rows reduced once, every weighted mean from them for any weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError
from ragnb.schema import RESULT_COLUMNS, Metric
from ragnb.weights import merging, resampling, storing
from ragnb.weights.cells import Cells, reduce_rows
from ragnb.weights.check import check_metric_weights, check_weights, warn_unused
from ragnb.weights.clusters import cluster_labels
from ragnb.weights.columns import labels, score_columns
from ragnb.weights.finish import document_weights, finish, plan_total, weight_vector
from ragnb.weights.grouped import Reduced, grouped_by, reduce_query
from ragnb.weights.held import held
from ragnb.weights.scored import scored
from ragnb.weights.table import result_table

Counts = npt.NDArray[np.int64]
MetricsArgument = str | Metric | Iterable[str | Metric] | None
SAME = "__same__"


@dataclass(frozen=True, repr=False)
class Moments:
    """Rows reduced to cells: group × document × cluster × pattern of gaps, with counts and sums.

    Weights never enter the cells, so every weighted mean, its clustered interval and the overall weighted score
    follow from them exactly, for any weights. Made by `moments`.

    Attributes
    ----------
    metrics : tuple of Metric
    cells : Cells
    by : str or None
        The grouping column, and `groups` its values; rows without one are the group None, the last.
    doc : str
        The document column.
    cluster : str or None
        The cluster column that the caller named.
    docs, clusters : tuple of str
    counts : (groups, K, 2) int
        Failed and not applicable cells.
    rows : (groups,) int
    questions : str or None
        The column of the questions, where rows without a document go by question because questions repeat.
    """

    metrics: tuple[Metric, ...]
    cells: Cells
    by: str | None
    doc: str
    cluster: str | None
    groups: tuple[str | None, ...]
    docs: tuple[str, ...]
    clusters: tuple[str, ...]
    counts: Counts
    rows: Counts
    questions: str | None = None

    merge = merging.merge
    bootstrap = resampling.bootstrap
    to_parquet = storing.to_parquet
    from_parquet = classmethod(storing.from_parquet)

    @property
    def unit(self) -> str:
        """What the clusters are: ``cluster`` (the caller's), ``document``, ``question`` or ``row``."""
        if self.cluster is not None:
            return "cluster" if self.clusters else "row"
        if self.docs and self.by != self.doc:
            return "document"
        return "question" if self.questions else "row"

    def __repr__(self) -> str:
        return (
            f"Moments({int(self.rows.sum())} rows in {self.cells.size} cells: {len(self.metrics)} metrics, "
            f"{len(self.docs)} documents, {max(len(self.groups), 1)} groups)"
        )

    def means(
        self,
        *,
        metric_weights: Mapping[str, float] | None = None,
        doc_weights: Mapping[str, float] | None = None,
        by: str | None = SAME,
        level: float = 0.95,
        orient: bool = True,
        rescale: bool = False,
        strict: bool = True,
    ) -> pd.DataFrame:
        """Return the table of `weighted_means` for these weights.

        Parameters
        ----------
        metric_weights, doc_weights : mapping of name to weight, optional
        by : str or None
            The column that the moments are grouped by; None pools the groups.
        level : float
            Of the intervals, in (0, 1).
        orient, rescale : bool
            As in `weighted_means`.
        strict : bool
            Whether metrics that cannot be added up raise; else the weighted score is missing and its ``reason``
            says why.

        Raises
        ------
        RagnbError
            For weights that are none, another `by`, and metrics of different ranges.

        Examples
        --------
        >>> scores = pd.DataFrame({"faithfulness": [1.0, 0.5], "doc_name": ["a", "b"]})
        >>> moments(scores).means(doc_weights={"a": 3}).loc[0, "value"].item()
        0.875
        """
        if by not in (SAME, self.by, None):
            raise RagnbError(f"by={by!r}, but the rows were reduced by {self.by!r}; make moments(by={by!r})")
        if not 0 < level < 1:
            raise RagnbError(f"level={level!r} must lie between 0 and 1, such as 0.95")
        source = self.pooled() if by is None and self.by is not None else self
        w = check_metric_weights(metric_weights, [m.name for m in self.metrics])
        v = check_weights(doc_weights, "doc_weights")
        warn_unused(v, self.docs, "doc_weights")
        vector = weight_vector(self.metrics, w)
        plan = plan_total(self.metrics, vector, orient=orient, rescale=rescale, strict=strict)
        doc_weight = document_weights(self.cells, self.docs, v)
        found = finish(source.cells, len(source.rows), self.metrics, plan, doc_weight, level)
        return result_table(source, found, plan, vector, level)

    def pooled(self) -> Moments:
        """Return the moments of all groups together, as `means(by=None)` takes them.

        Examples
        --------
        >>> scores = pd.DataFrame({"faithfulness": [1.0, 0.5], "system": ["a", "b"]})
        >>> moments(scores, by="system").pooled()
        Moments(2 rows in 2 cells: 1 metrics, 0 documents, 1 groups)
        """
        c, cluster, clusters = self.cells, self.cells.cluster, self.clusters
        if self.by == self.doc and self.cluster is None:  # within a document rows are clusters, across it is one
            cluster = np.where(c.doc >= 0, c.doc, np.where(cluster < 0, -1, cluster + len(self.docs)))
            clusters = (*self.docs, *clusters)
        order = np.argsort(cluster, kind="stable")
        alone = order[cluster[order] < 0]
        rank = np.cumsum(c.cluster < 0) - 1
        moved: dict[str, Any] = {name: getattr(c, name)[order] for name in ("doc", "present", "n", "sums")}
        moved |= {"group": np.zeros_like(c.group), "cluster": cluster[order], "cross": c.cross[rank[alone]]}
        rows = self.rows.sum(axis=0, keepdims=True)
        counts = self.counts.sum(axis=0, keepdims=True)
        cells = replace(c, **moved)
        return replace(self, cells=cells, by=None, groups=(), clusters=clusters, counts=counts, rows=rows)


def moments(
    scores: Any,
    *,
    metrics: MetricsArgument = None,
    doc: str = "doc_name",
    cluster: str | None = None,
    by: str | None = None,
) -> Moments:
    """Reduce a scores frame to the cells from which all weighted means follow.

    Parameters
    ----------
    scores : DataFrame
        One row a sample, one column a metric, nan or null where there is no score; of pandas, Polars, PyArrow,
        DuckDB or PySpark. A query reduces the rows itself: only cells leave its engine.
    metrics : names or Metric objects, optional
        None takes the columns that METRICS declares.
    doc : str
        The document column: weights apply to it, and documents are the clusters. Rows without a document (all,
        where the frame has no ``doc_name``) are clustered by question (``sample_id``, else ``question``) if one
        of them repeats anywhere in the frame; else each row is a cluster.
    cluster : str, optional
        Another column whose rows move together, such as a conversation; it alone decides.
    by : str, optional
        A column to group by; rows without a value are the group None, the last. By the document column itself
        questions that repeat, else rows, are the clusters: a document alone has no interval.

    Raises
    ------
    RagnbError
        For unknown metrics or columns, text or values outside a metric's range, and a number whose status is
        ``failed``.

    Notes
    -----
    On a query of another engine, whether questions repeat costs one more query, which counts the distinct values
    of one column; it is not asked where every row has a document or `cluster` is named. A metric without a finite
    range is centred on its mean, which costs a query too.

    Examples
    --------
    >>> moments(pd.DataFrame({"faithfulness": [1.0, 0.5, None], "doc_name": ["a", "a", "b"]}))
    Moments(3 rows in 3 cells: 1 metrics, 2 documents, 1 groups)
    """
    if by in (*RESULT_COLUMNS, "numerator"):
        raise RagnbError(f"by={by!r} is a column of the result too; give the frame's column another name")
    scores, chosen = scored(scores, metrics, doc, cluster, by)
    rows = scores if isinstance(scores, pd.DataFrame) else held(scores, chosen, doc, cluster, by)
    shape: dict[str, Any] = {"doc": doc, "cluster": cluster, "by": by}
    found = reduce_query(scores, chosen, **shape) if rows is None else _reduce_frame(rows, chosen, **shape)
    return Moments(chosen, **shape, **found._asdict())


def _reduce_frame(
    frame: pd.DataFrame, metrics: tuple[Metric, ...], *, doc: str, cluster: str | None, by: str | None
) -> Reduced:
    values, status = score_columns(frame, metrics)
    docs = labels(frame, doc, optional=doc == "doc_name", compose=True)
    clusters, questions = cluster_labels(frame, docs, cluster, within=by == doc)
    group = grouped_by(None if by is None else labels(frame, by, compose=by == doc), len(frame))
    names, size = () if by is None else group.names, len(group.names)
    cells, counts = reduce_rows(values, metrics, group, docs, clusters), _count(status, group.codes, size)
    rows = np.bincount(group.codes, minlength=size)
    return Reduced(cells, names, docs.names, clusters.names, counts, rows, questions)


def _count(status: npt.NDArray[np.int8], group: npt.NDArray[np.int64], size: int) -> Counts:
    """How many cells failed and did not apply, groups × metrics × 2."""
    counts = np.zeros((size, status.shape[1], 2), dtype=np.int64)
    for k, column in enumerate(status.T):
        for word in (1, 2) if column.any() else ():
            counts[:, k, word - 1] = np.bincount(group[column == word], minlength=size)
    return counts
