"""Moments: cells that are kept, merged and saved, so that rows are read once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError
from ragnb.schema import DRAWN, RESULT_COLUMNS, Metric
from ragnb.weights.batches import Batch, Reduction, reduce_batches
from ragnb.weights.bootstrap import bootstrapped
from ragnb.weights.cells import (
    Cells,
    Counts,
    add_up,
    cells_of,
    recentred,
)
from ragnb.weights.clusters import INSIDE, Corpus, need_documents, question_clusters, question_of
from ragnb.weights.columns import ABSENT, FAILED, Codes, MetricsArgument, column_names, scored
from ragnb.weights.conversations import conversation_cluster, is_conversation
from ragnb.weights.file import read_moments, write_moments
from ragnb.weights.means import means_table, values_table
from ragnb.weights.total import (
    Array,
)


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
    at_ends : (groups, K + 1, 2) int
        Scores at the bad and at the good end of their range; last, rows all of whose scores of quality metrics are
        at their bad, and at their good end.
    rows : (groups,) int
    questions : str or None
        The column of the questions, where rows without a document go by question because questions repeat.
    corpus : {"sample", "complete"}
        Of a complete one the cells go by question within each document.
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
    at_ends: Counts
    rows: Counts
    questions: str | None = None
    corpus: str = "sample"

    @property
    def unit(self) -> str:
        """The kind of clusters: ``cluster`` (the caller's), ``conversation, document, question`` or ``row``."""
        if self.corpus == "complete":
            return INSIDE
        if self.cluster is not None:
            if not self.clusters:  # the column is there, and empty
                return "row"
            return "conversation" if is_conversation(self.cluster) else "cluster"
        if self.docs and self.by != self.doc:
            return "document"
        if self.questions:
            return "question"
        return "row"

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
        for what in ("metrics", "by", "doc", "cluster", "corpus"):
            mine = getattr(self, what)
            theirs = getattr(other, what, None)
            if mine != theirs:
                raise RagnbError(
                    f"moments of different {what} cannot be merged: {_shown(mine)} and {_shown(theirs)}; "
                    f"make both with moments(..., {what}=...) alike"
                )
        # Where every row has a document or a cluster, questions play no role: such a part fits any other.
        parts = (self, other)
        asked = set()
        for part in parts:
            is_clustered = part.cluster is not None or (part.cells.cluster >= 0).all()
            if part.questions or not is_clustered:
                asked.add(part.questions)
        key = next(filter(None, asked), None)
        if len(asked) > 1:
            raise RagnbError(
                f"rows without a document are clustered by {key!r} in one part and are independent in the other, "
                f"as questions repeat in one only; make both with moments(..., cluster={key!r})"
            )
        return replace(_combined(parts), questions=key)

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
        level: float = 0.95,
        orient: bool = True,
        rescale: bool = False,
        strict: bool = True,
    ) -> pd.DataFrame:
        """Return the table of `weighted_means` for these weights.

        Parameters
        ----------
        metric_weights, doc_weights : mapping of name to weight, optional
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
            For weights that are none, and metrics of different ranges.

        Examples
        --------
        >>> scores = pd.DataFrame({"faithfulness": [1.0, 0.5], "doc_name": ["a", "b"]})
        >>> moments(scores).means(doc_weights={"a": 3}).loc[0, "value"].item()
        0.875
        """
        how = {"orient": orient, "rescale": rescale, "strict": strict}
        table = means_table(self, metric_weights, doc_weights, level, **how)[0]
        return _in_number_order(table, self.by, self.groups)

    def values(
        self,
        *,
        metric_weights: Mapping[str, float] | None = None,
        orient: bool = True,
        rescale: bool = False,
    ) -> pd.DataFrame:
        """Return the means alone, a row a group, without weights of documents and without intervals.

        Parameters
        ----------
        metric_weights : mapping of name to weight, optional
        orient, rescale : bool
            As in `weighted_means`.

        Returns
        -------
        DataFrame
            By group: a column a metric, ``weighted_score``, and ``weighted_score__n``, how many rows it is of.

        Examples
        --------
        >>> scores = pd.DataFrame({"faithfulness": [1.0, 0.5, 0.0], "doc_name": ["b", "b", "a"]})
        >>> moments(scores, by="doc_name").values()
                  faithfulness  weighted_score  weighted_score__n
        doc_name
        a                 0.00            0.00                  1
        b                 0.75            0.75                  2
        """
        how = {"orient": orient, "rescale": rescale, "strict": False}
        table = values_table(self, metric_weights, **how)
        if self.by is None:
            return table
        table.index = pd.Index(self.groups, dtype=object, name=self.by)
        if not _are_numbers(self.groups):
            return table
        return table.iloc[pd.to_numeric(pd.Series(self.groups)).argsort(kind="stable")]

    def of_groups(self, names: Collection[str]) -> Moments:
        """Return the moments of some groups.

        Examples
        --------
        >>> scores = pd.DataFrame({"faithfulness": [1.0, 0.5, 0.0], "doc_name": ["b", "b", "a"]})
        >>> moments(scores, by="doc_name").of_groups(["b"]).groups
        ('b',)
        """
        is_kept = np.array([name in names for name in self.groups], dtype=bool)
        new_group = np.cumsum(is_kept) - 1
        cells = self.cells
        is_inside = is_kept[cells.group]
        by_cell = {
            of.name: getattr(cells, of.name)[is_inside]
            for of in fields(Cells)
            if of.name not in ("cross", "centre")
        }
        by_cell["group"] = new_group[by_cell["group"]]
        # Only shared cells have products, and a centre belongs to a metric, not to a cell.
        cross = cells.cross[is_inside[cells.shared]]
        return replace(
            self,
            cells=Cells(**by_cell, cross=cross, centre=cells.centre),
            groups=tuple(name for name in self.groups if name in names),
            rows=self.rows[is_kept],
            counts=self.counts[is_kept],
            at_ends=self.at_ends[is_kept],
        )

    def pooled(self) -> Moments:
        """Return the moments of all groups together.

        Examples
        --------
        >>> scores = pd.DataFrame({"faithfulness": [1.0, 0.5], "system": ["a", "b"]})
        >>> moments(scores, by="system").pooled()
        Moments(2 rows in 1 cells: 1 metrics, 0 documents, 1 groups)
        """
        # Within a document rows are the clusters, across documents it is one.
        whole = self
        if self.by == self.doc and self.cluster is None and self.corpus == "sample":
            whole = self.by_document()
        cells = whole.cells
        one_group = np.zeros_like(cells.group)
        return replace(
            whole,
            cells=add_up(cells, one_group, cells.doc, cells.cluster),
            by=None,
            groups=(),
            rows=self.rows.sum(axis=0, keepdims=True),
            counts=self.counts.sum(axis=0, keepdims=True),
            at_ends=self.at_ends.sum(axis=0, keepdims=True),
        )

    def by_document(self) -> Moments:
        """Return the moments with documents as the clusters, as of a corpus that is a sample."""
        cells = self.cells
        # Rows without a document keep their cluster, numbered after the documents; −1 stays a row by itself.
        others = np.where(cells.cluster < 0, -1, cells.cluster + len(self.docs))
        cluster = np.where(cells.doc >= 0, cells.doc, others)
        return replace(
            self,
            cells=add_up(cells, cells.group, cells.doc, cluster),
            clusters=(*self.docs, *self.clusters),
            corpus="sample",
        )

    def to_parquet(self, path: str | Path) -> Path:
        """Write the moments to a file, whole or not at all, and return its path.

        Parameters
        ----------
        path : str or Path
            A file of this name is replaced; folders that are not there are made.

        Examples
        --------
        >>> import tempfile
        >>> import pandas as pd
        >>> from ragnb.weights import Moments, moments
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = moments(pd.DataFrame({"faithfulness": [1.0, 0.5]})).to_parquet(f"{folder}/m.parquet")
        ...     Moments.from_parquet(path)
        Moments(2 rows in 1 cells: 1 metrics, 0 documents, 1 groups)
        """
        return write_moments(self, Path(path))

    @classmethod
    def from_parquet(cls, path: str | Path) -> Moments:
        """Return the moments that `to_parquet` wrote, with the same bits.

        Raises
        ------
        RagnbError
            For a file that is not there, holds something else, is damaged, or is of another version.

        Examples
        --------
        >>> from ragnb.weights import Moments
        >>> Moments.from_parquet("nowhere.parquet")
        Traceback (most recent call last):
        ragnb.errors.RagnbError: nowhere.parquet: No such file or directory; write it with Moments.to_parquet
        """
        return cls(**read_moments(Path(path)))

    def bootstrap(
        self,
        *,
        metric_weights: Mapping[str, float] | None = None,
        doc_weights: Mapping[str, float] | None = None,
        resamples: int = 2000,
        seed: int = 0,
        level: float = 0.95,
        orient: bool = True,
        rescale: bool = False,
    ) -> pd.DataFrame:
        """Return the table of `means` with percentile intervals and standard errors of the cluster bootstrap.

        Parameters
        ----------
        metric_weights, doc_weights : mapping of name to weight, optional
        resamples : int
            At least 100.
        seed : int
            The same seed gives the same numbers; a group's are those of its rows alone.
        level : float
            Of the intervals, in (0, 1).
        orient, rescale : bool
            As in `weighted_means`.

        Raises
        ------
        RagnbError
            As `means`, and for too few resamples.

        Notes
        -----
        Every resample draws as many clusters as the group has, with replacement. Clusters are drawn exactly. Rows
        that are their own clusters and share a cell are drawn by their number exactly and by their values in the
        first two moments, as normal, within the metric's range: cells hold no more. The percentile interval is a
        check of `means`, not a rival: with few clusters it is too narrow, and for values all equal it has no
        width. Efron (1979), Ann. Stat. 7, 1–26.

        Examples
        --------
        >>> from ragnb.weights import moments
        >>> values = {"faithfulness": [1.0, 0.5, 0.0, 0.6] * 9, "doc_name": list("abcdefghijkl") * 3}
        >>> scores = pd.DataFrame(values)
        >>> moments(scores).bootstrap()[["metric", "value", "low", "high", "n_clusters"]].round(1)
                   metric  value  low  high  n_clusters
        0    faithfulness    0.5  0.3   0.7          12
        1  weighted_score    0.5  0.3   0.7          12
        """
        how = {"orient": orient, "rescale": rescale}
        return bootstrapped(
            self,
            metric_weights,
            doc_weights,
            resamples=resamples,
            seed=seed,
            level=level,
            **how,
        )


def moments(
    scores: Any,
    *,
    metrics: MetricsArgument = None,
    doc: str = "doc_name",
    cluster: str | None = None,
    by: str | None = None,
    corpus: Corpus = "sample",
) -> Moments:
    """Reduce a scores frame to the cells from which all weighted means follow.

    Parameters
    ----------
    scores : DataFrame
        One row per sample, one column per metric, nan or null where there is no score; of pandas, Polars, PyArrow,
        DuckDB or PySpark. Of a query only one batch of rows is in memory at a time.
    metrics : names or Metric objects, optional
        None takes the columns that METRICS declares.
    doc : str
        The document column: weights apply to it, and documents are the clusters. Rows without a document (all,
        where the frame has no ``doc_name``) are clustered by question (``sample_id``, else ``question``) if one
        of them repeats anywhere in the frame; else each row is a cluster.
    cluster : str, optional
        Another cluster column instead of the document. By default a column of conversations (``conversation``,
        ``session_id``, ``thread_id`` and the like), where one of them has several rows.
    by : str, optional
        A column to group by; rows without a value are the group None, the last. By the document column itself
        questions that repeat, else rows, are the clusters: a document alone has no interval.
    corpus : {"sample", "complete"}
        Whether the documents are a sample of more, or the entire corpus: see `weighted_means`.

    Raises
    ------
    RagnbError
        For unknown metrics or columns, text or values outside a metric's range, and a number whose status is
        ``failed``.

    Notes
    -----
    Rows that were drawn with unequal chances, in the column ``inclusion_probability``, are weighted by its inverse
    (Hájek's mean; Horvitz and Thompson 1952); those without a chance were not drawn, and have no weight.

    Rows are read once, batch by batch. Whether questions repeat costs a query more, which counts the distinct
    values of a column; it is not asked where every row has a document or `cluster` is named.

    Examples
    --------
    >>> moments(pd.DataFrame({"faithfulness": [1.0, 0.5, None], "doc_name": ["a", "a", "b"]}))
    Moments(3 rows in 2 cells: 1 metrics, 2 documents, 1 groups)
    """
    if by in (*RESULT_COLUMNS, "numerator"):
        raise RagnbError(f"by={by!r} is also a column of the result; rename the frame's column")
    frame, chosen = scored(scores, metrics, doc, cluster, by)
    if cluster is None and corpus == "sample" and by != doc:
        cluster = conversation_cluster(frame, doc)
    need_documents(column_names(frame), doc, cluster, corpus)
    how: dict[str, Any] = {"doc": doc, "cluster": cluster, "by": by, "corpus": corpus}
    reduction = moments_reduction(chosen, **how, questions=question_of(frame, **how))
    return cast(Moments, reduce_batches(frame, chosen, [reduction])[0])


def moments_reduction(
    metrics: Sequence[Metric],
    *,
    doc: str,
    cluster: str | None = None,
    by: str | None = None,
    questions: str | None = None,
    corpus: str = "sample",
    derive: Callable[[Batch], Batch] = lambda batch: batch,
) -> Reduction:
    """Return the reduction to moments of metrics, which a function may derive from each batch.

    Examples
    --------
    >>> metrics, frame = [Metric("faithfulness")], pd.DataFrame({"faithfulness": [1.0]})
    >>> reduce_batches(frame, metrics, [moments_reduction(metrics, doc="doc_name")])
    [Moments(1 rows in 1 cells: 1 metrics, 0 documents, 1 groups)]
    """

    def kernel(batch: Batch) -> Moments:
        batch = derive(batch)
        docs = batch.labels(doc, compose=True)
        group = batch.groups(by, compose=by == doc)
        if cluster is not None:
            clusters = batch.labels(cluster)
        elif by == doc or corpus == "complete":
            # Within a document its questions are the clusters.
            clusters = question_clusters(batch, batch.labels(None), questions)
        else:
            clusters = question_clusters(batch, docs, questions)
        size = len(group.names)
        weight = batch.weights()
        if corpus == "complete" and weight is not None:
            raise RagnbError(
                f"corpus='complete' does not take rows drawn with unequal chances; leave it out, or drop {DRAWN!r}"
            )
        values = [batch.values(metric) for metric in metrics]
        counts = np.zeros((size, len(metrics), 2), dtype=np.int64)
        for k, metric in enumerate(metrics):
            status = batch.status(metric)
            if status.any():  # mostly there are scores alone
                counts[:, k, 0] = np.bincount(group.codes[status == FAILED], minlength=size)
                counts[:, k, 1] = np.bincount(group.codes[status == ABSENT], minlength=size)
        if weight is None:
            weight = np.ones(len(batch))
        codes = group.codes, docs.codes, clusters.codes
        return Moments(
            metrics=tuple(metrics),
            cells=cells_of(values, metrics, codes, weight),
            by=by,
            doc=doc,
            cluster=cluster,
            groups=() if by is None else group.names,
            docs=docs.names,
            clusters=clusters.names,
            counts=counts,
            at_ends=_at_ends(values, metrics, group.codes, size),
            rows=np.bincount(group.codes, minlength=size),
            questions=questions,
            corpus=corpus,
        )

    return Reduction(kernel, _combined, (by, doc, cluster, questions, DRAWN))


def _at_ends(
    values: Sequence[Array], metrics: Sequence[Metric], group: Codes, groups: int
) -> Counts:
    """Return how many scores are at the bad and the good end of each metric, and rows with all scores there."""
    at_ends = np.zeros((groups, len(metrics) + 1, 2), dtype=np.int64)
    # Of the weighted score: rows all of whose scores lie at the bad end, and all at the good one.
    all_at_end = [np.ones(len(group), dtype=bool) for _ in range(2)]
    has_score = np.zeros(len(group), dtype=bool)
    for k, metric in enumerate(metrics):
        is_missing = np.isnan(values[k])
        bad_and_good = (metric.low, metric.high)
        if metric.better == "lower":
            bad_and_good = (metric.high, metric.low)
        for side, end in enumerate(bad_and_good):
            is_at_end = values[k] == end
            at_ends[:, k, side] = np.bincount(group[is_at_end], minlength=groups)
            if metric.role == "quality":
                all_at_end[side] &= is_at_end | is_missing
        if metric.role == "quality":
            has_score |= ~is_missing
    for side, is_at_end in enumerate(all_at_end):
        at_ends[:, -1, side] = np.bincount(group[is_at_end & has_score], minlength=groups)
    return at_ends


def _combined(parts: Sequence[Moments]) -> Moments:
    """Return the moments of several sets of rows, cells matched by the names of groups, documents and clusters."""
    first = parts[0]
    if len(parts) == 1:
        return first
    docs = _union(part.docs for part in parts)
    clusters = _union(part.clusters for part in parts)
    groups = _union(part.groups for part in parts)
    size = len(groups) if first.by is not None else 1
    n_metrics = len(first.metrics)
    counts = np.zeros((size, n_metrics, 2), dtype=np.int64)
    at_ends = np.zeros((size, n_metrics + 1, 2), dtype=np.int64)
    rows = np.zeros(size, dtype=np.int64)
    # The centre of most scores: sums about one that is far from them would lose precision.
    n_scores = np.array([part.cells.n @ part.cells.present for part in parts])
    centres_of_parts = np.array([part.cells.centre for part in parts])
    centre = centres_of_parts[n_scores.argmax(axis=0), np.arange(n_metrics)]
    recoded = []
    for part in parts:
        cells = recentred(part.cells, centre)
        group = np.zeros(1, dtype=np.int64)
        if first.by is not None:
            # Without the −1 at the end: each row has a group.
            group = _recode(part.groups, groups)[:-1]
        np.add.at(counts, group, part.counts)
        np.add.at(at_ends, group, part.at_ends)
        np.add.at(rows, group, part.rows)
        doc = _recode(part.docs, docs)[cells.doc]
        cluster = _recode(part.clusters, clusters)[cells.cluster]
        recoded.append(replace(cells, group=group[cells.group], doc=doc, cluster=cluster))
    stacked = {
        of.name: np.concatenate([getattr(cells, of.name) for cells in recoded])
        for of in fields(Cells)
    }
    stacked["centre"] = centre
    whole = Cells(**stacked)
    return replace(
        first,
        cells=add_up(whole, whole.group, whole.doc, whole.cluster),
        groups=groups,
        docs=docs,
        clusters=clusters,
        counts=counts,
        at_ends=at_ends,
        rows=rows,
    )


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{m.name} {m.low:g}..{m.high:g}" for m in value)
    return repr(value)


def _union(names: Iterable[Iterable[Any]]) -> tuple[Any, ...]:
    """All names, sorted; None, of rows without one, comes last."""
    return tuple(sorted(set().union(*names), key=lambda name: (name is None, name)))


def _recode(names: Sequence[str | None], into: Sequence[str | None]) -> Codes:
    """The new code of each old one, last −1, so that −1 stays what it is."""
    position = {name: index for index, name in enumerate(into)}
    return np.array([position[name] for name in names] + [-1], dtype=np.int64)


def plain_sums(reduced: Moments) -> Array:
    """Return Σx of the scores as they are, groups × metrics, without any weight.

    Examples
    --------
    >>> plain_sums(moments(pd.DataFrame({"faithfulness": [1.0, 0.25, None]}))).tolist()
    [[1.25]]
    """
    cells = reduced.cells
    # Cells hold sums about the centre of each metric.
    as_they_are = cells.sums + cells.n[:, None] * cells.present * cells.centre
    sums: Array = np.zeros((len(reduced.rows), len(reduced.metrics)))
    np.add.at(sums, cells.group, as_they_are)
    return sums


def _in_number_order(
    table: pd.DataFrame, by: str | None, groups: Sequence[str | None]
) -> pd.DataFrame:
    """Return rows of groups that are all numbers, such as turns, in the order of these, those without one last."""
    if by is None or by not in table or not _are_numbers(groups):
        return table
    order = pd.to_numeric(table[by]).argsort(kind="stable")
    return table.iloc[order].reset_index(drop=True)


def _are_numbers(groups: Sequence[str | None]) -> bool:
    """Return whether the names of groups are all numbers, those of rows without a group aside."""
    names = pd.Series([name for name in groups if name is not None], dtype=object)
    # The first one tells for most columns: a million names of documents are not looked at one by one.
    parts = (names.head(1), names)
    return all(
        len(part) > 0 and pd.to_numeric(part, errors="coerce").notna().all() for part in parts
    )
