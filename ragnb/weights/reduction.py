"""Moments: the rows reduced once, every weighted mean from them for any weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError
from ragnb.schema import RESULT_COLUMNS, Metric
from ragnb.weights import bootstrap, storage
from ragnb.weights.batches import Batch, Reduction, reduce_batches
from ragnb.weights.cells import Cells, add_up, recentred, reduce_rows
from ragnb.weights.check import check_metric_weights, check_weights, warn_unused
from ragnb.weights.clusters import question_clusters, question_columns, repeated_question
from ragnb.weights.columns import Array, Codes, Labels
from ragnb.weights.engines import column_names, need_columns
from ragnb.weights.estimates import document_weights, finish, plan_total, result_table, weight_vector
from ragnb.weights.scored import MetricsArgument, scored

Counts = npt.NDArray[np.int64]
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

    bootstrap = bootstrap.bootstrap
    to_parquet = storage.to_parquet
    from_parquet = classmethod(storage.from_parquet)

    @property
    def unit(self) -> str:
        """What the clusters are: ``cluster`` (the caller's), ``document``, ``question`` or ``row``."""
        if self.cluster is not None:
            return "cluster" if self.clusters else "row"
        if self.docs and self.by != self.doc:
            return "document"
        return "question" if self.questions else "row"

    def merge(self, other: Moments) -> Moments:
        """Return the moments of both sets of rows together, as if they had been reduced at once.

        Parameters
        ----------
        other : Moments
            Of other rows, with the same metrics, `by`, `doc` and `cluster`. Documents, clusters and groups of one
            name are one; rows without a cluster stay clusters of their own.

        Raises
        ------
        RagnbError
            For moments that were made in another way, also where questions repeat in one of them only. Parts that
            share questions, such as repeats, need ``moments(..., cluster="sample_id")``: a part alone cannot know.

        Examples
        --------
        >>> one = moments(pd.DataFrame({"faithfulness": [1.0, 0.5], "doc_name": ["a", "b"]}))
        >>> two = moments(pd.DataFrame({"faithfulness": [0.0, 0.5], "doc_name": ["a", "c"]}))
        >>> one.merge(two)
        Moments(4 rows in 3 cells: 1 metrics, 3 documents, 1 groups)
        """
        parts = (self, other)
        for what in ("metrics", "by", "doc", "cluster"):
            mine, theirs = getattr(self, what), getattr(other, what, None)
            if mine != theirs:
                raise RagnbError(
                    f"moments of different {what} cannot be merged: {_shown(mine)} and {_shown(theirs)}; "
                    f"make both with moments(..., {what}=...) alike"
                )
        told = [part.questions for part in parts if part.questions or (_single_rows(part) and not part.cluster)]
        if len(set(told)) > 1:
            key = next(name for name in told if name)
            raise RagnbError(
                f"rows without a document are clustered by {key!r} in one part and are independent in the other, "
                f"as questions repeat in one only; make both with moments(..., cluster={key!r})"
            )
        return replace(_combined(parts), questions=told[0] if told else None)

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


@dataclass(frozen=True)
class Weighing:
    """How means are weighed: the settings that every function of weighted means shares, see `weighted_means`.

    Examples
    --------
    >>> found = moments(pd.DataFrame({"faithfulness": [1.0, 0.5], "doc_name": ["a", "b"]}))
    >>> Weighing(doc_weights={"a": 3}).means(found).loc[0, "value"].item()
    0.875
    """

    metric_weights: Mapping[str, float] | None = None
    doc_weights: Mapping[str, float] | None = None
    doc: str = "doc_name"
    cluster: str | None = None
    level: float = 0.95
    orient: bool = True
    rescale: bool = False

    def means(self, found: Moments) -> pd.DataFrame:
        """Return the table of means; metrics that do not add up leave the weighted score missing."""
        return found.means(**self.of_total, level=self.level, strict=False)

    @property
    def of_total(self) -> dict[str, Any]:
        """The settings of the weighted score, as keywords of `Moments.means` and `weigh`."""
        names = ("metric_weights", "doc_weights", "orient", "rescale")
        return {name: getattr(self, name) for name in names}


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
        DuckDB or PySpark. Of a query only so many rows are held at once as a batch has.
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
    Rows are read once, batch by batch. Whether questions repeat costs a query more, which counts the distinct
    values of a column; it is not asked where every row has a document or `cluster` is named.

    Examples
    --------
    >>> moments(pd.DataFrame({"faithfulness": [1.0, 0.5, None], "doc_name": ["a", "a", "b"]}))
    Moments(3 rows in 3 cells: 1 metrics, 2 documents, 1 groups)
    """
    if by in (*RESULT_COLUMNS, "numerator"):
        raise RagnbError(f"by={by!r} is a column of the result too; give the frame's column another name")
    frame, chosen = scored(scores, metrics, doc, cluster, by)
    return moments_of(frame, chosen, doc=doc, cluster=cluster, by=by)


def moments_of(
    frame: Any, metrics: tuple[Metric, ...], *, doc: str, cluster: str | None = None, by: str | None = None
) -> Moments:
    """Return the moments of a frame under canonical names.

    Examples
    --------
    >>> moments_of(pd.DataFrame({"faithfulness": [1.0]}), (Metric("faithfulness"),), doc="doc_name")
    Moments(1 rows in 1 cells: 1 metrics, 0 documents, 1 groups)
    """
    questions = question_of(frame, doc=doc, cluster=cluster, by=by)
    shape: dict[str, Any] = {"doc": doc, "cluster": cluster, "by": by, "questions": questions}
    found: Moments = reduce_batches(frame, metrics, [moments_reduction(metrics, **shape)])[0]
    return found


def question_of(frame: Any, *, doc: str, cluster: str | None = None, by: str | None = None) -> str | None:
    """Return the column of questions that are clusters, as they repeat among rows without a document.

    Raises
    ------
    RagnbError
        For a column that is not there.

    Examples
    --------
    >>> question_of(pd.DataFrame({"question": ["a", "a", "b"]}), doc="doc_name")
    'question'
    """
    have = column_names(frame)
    document = document_column(have, doc)
    need_columns(have, cluster, by)
    return repeated_question(frame, question_columns(have, cluster), without=None if by == doc else document)


def moments_reduction(
    metrics: Sequence[Metric],
    *,
    doc: str,
    cluster: str | None = None,
    by: str | None = None,
    questions: str | None = None,
    derive: Callable[[Batch], Batch] = lambda batch: batch,
) -> Reduction:
    """Return the reduction to moments of metrics, which a function may derive from each batch.

    Examples
    --------
    >>> metrics, frame = [Metric("faithfulness")], pd.DataFrame({"faithfulness": [1.0]})
    >>> reduce_batches(frame, metrics, [moments_reduction(metrics, doc="doc_name")])
    [Moments(1 rows in 1 cells: 1 metrics, 0 documents, 1 groups)]
    """
    shape: dict[str, Any] = {"metrics": tuple(metrics), "by": by, "doc": doc, "cluster": cluster}
    shape["questions"] = questions
    return Reduction(lambda batch: _of_batch(derive(batch), **shape), _combined, (by, doc, cluster, questions))


def document_column(have: Sequence[str], doc: str) -> str | None:
    """Return the document column; a frame without ``doc_name`` has no documents.

    Raises
    ------
    RagnbError
        For any other column that is not there.

    Examples
    --------
    >>> document_column(["question"], "doc_name") is None
    True
    """
    need_columns(have, None if doc == "doc_name" else doc)
    return doc if doc in have else None


def _of_batch(
    batch: Batch,
    metrics: tuple[Metric, ...],
    by: str | None,
    doc: str,
    cluster: str | None,
    questions: str | None,
) -> Moments:
    docs = batch.labels(doc if doc in batch.frame else None, compose=True)
    if cluster is not None:
        clusters = batch.labels(cluster)
    else:
        clusters = question_clusters(batch, batch.labels(None) if by == doc else docs, questions)
    group = with_unnamed(None if by is None else batch.labels(by, compose=by == doc), len(batch))
    size = len(group.names)
    values = [batch.values(metric) for metric in metrics]
    counts = np.zeros((size, len(metrics), 2), dtype=np.int64)
    for k, status in enumerate(batch.statuses(metrics).T):
        for word in (1, 2) if status.any() else ():
            counts[:, k, word - 1] = np.bincount(group.codes[status == word], minlength=size)
    return Moments(
        metrics,
        reduce_rows(values, metrics, group, docs, clusters),
        by,
        doc,
        cluster,
        groups=() if by is None else group.names,
        docs=docs.names,
        clusters=clusters.names,
        counts=counts,
        rows=np.bincount(group.codes, minlength=size),
        questions=questions,
    )


def with_unnamed(found: Labels | None, rows: int) -> Labels:
    """Return the groups, all rows as one for None, with one more, the last, for rows without a group's name.

    Examples
    --------
    >>> with_unnamed(Labels(np.array([0, -1]), ("a",)), 2)
    Labels(codes=array([0, 1]), names=('a', None))
    """
    if found is None:
        return Labels(np.zeros(rows, dtype=np.int64), ("",))
    if not (found.codes < 0).any():
        return found
    return Labels(np.where(found.codes < 0, len(found.names), found.codes), (*found.names, None))


def _combined(parts: Sequence[Moments]) -> Moments:
    """Return the moments of several sets of rows, cells matched by the names of groups, documents and clusters."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    docs, clusters = _union(p.docs for p in parts), _union(p.clusters for p in parts)
    named = _union([name for name in p.groups if name is not None] for p in parts)
    groups = (*named, *([None] if any(None in p.groups for p in parts) else []))  # rows without one come last
    size = len(groups) if first.by is not None else 1
    counts, rows = np.zeros((size, len(first.metrics), 2), dtype=np.int64), np.zeros(size, dtype=np.int64)
    centre = _middle(parts)
    moved = []
    for part in parts:
        group = _recode(part.groups, groups)[:-1] if first.by is not None else np.zeros(1, dtype=np.int64)
        np.add.at(counts, group, part.counts)
        np.add.at(rows, group, part.rows)
        c = part.cells
        own = np.where(c.cluster < len(part.clusters), c.cluster, -1)
        codes = (group[c.group], _recode(part.clusters, clusters)[own], _recode(part.docs, docs)[c.doc])
        moved.append((recentred(c, centre), np.column_stack(codes)))
    names: dict[str, Any] = {"groups": groups, "docs": docs, "clusters": clusters}
    return replace(first, cells=add_up(moved), counts=counts, rows=rows, **names)


def _single_rows(part: Moments) -> bool:
    """Whether a row is a cluster of its own."""
    cluster = part.cells.cluster
    return bool(((cluster < 0) | (cluster >= len(part.clusters))).any())


def _middle(parts: Sequence[Moments]) -> Array:
    """The centre of all parts together: their own where it is one, else the mean of theirs."""
    one, *rest = (part.cells.centre for part in parts)
    counts = np.array([part.cells.n @ part.cells.present for part in parts])
    total = counts.sum(axis=0)
    mean = (counts * [one, *rest]).sum(axis=0) / np.where(total > 0, total, 1.0)
    alike = np.all([one == other for other in rest], axis=0) | (total == 0)
    return np.where(alike, one, mean)


def _shown(value: object) -> str:
    return ", ".join(f"{m.name} {m.low:g}..{m.high:g}" for m in value) if isinstance(value, tuple) else repr(value)


def _union(names: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(sorted(set().union(*names)))


def _recode(names: Sequence[str | None], into: Sequence[str | None]) -> Codes:
    """The new code of each old one, last −1, so that −1 stays what it is."""
    position = {name: index for index, name in enumerate(into)}
    return np.array([position[name] for name in names] + [-1], dtype=np.int64)
