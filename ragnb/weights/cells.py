"""Moments: rows reduced to cells with counts and sums, sufficient for weighted means with any weights."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError
from ragnb.files import write_whole
from ragnb.schema import RESULT_COLUMNS, Metric
from ragnb.weights.clusters import INSIDE, Corpus, need_documents, question_clusters, question_of
from ragnb.weights.columns import Array, Codes, Flags, Labels, MetricsArgument, column_names, scored
from ragnb.weights.engines import Batch, Reduction, reduce_batches
from ragnb.weights.estimates import bootstrap, checked_weights, means_table

Counts = npt.NDArray[np.int64]
VERSION = 2  # 1 had neither questions nor centres
_NAMES = ("by", "doc", "cluster", "questions", "corpus", "groups", "docs", "clusters")
_SMALL = 2**15  # maximum number of sums in memory at once, regardless of the rows


@dataclass(frozen=True)
class Cells:
    """The small table from which every weighted mean is computed exactly.

    Attributes
    ----------
    group, doc, cluster : (C,) int
        Codes; doc −1 without a document, cluster −1 where each row is its own cluster.
    present : (C, K) bool
        The pattern of metrics that have a score.
    n : (C,) float
        Rows of the cell.
    sums : (C, K) float
        Σx, x centred.
    cross : (C₁, K, K) float
        Σxxᵀ of the cells with cluster −1, in their order.
    centre : (K,) float
        What each metric is centred on, see `centres`.
    """

    group: Codes
    doc: Codes
    cluster: Codes
    present: Flags
    n: Array
    sums: Array
    cross: Array
    centre: Array

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.n)


def centres(metrics: Sequence[Metric], columns: Sequence[Array] = ()) -> Array:
    """Return the centre of each metric: the middle of its scale, else the mean of its scores.

    Sums of squares about 0 lose the variance of scores that are large compared with it.

    Examples
    --------
    >>> columns = [np.array([score]) for score in (0.9, 2.0, 350.0)]
    >>> centres([Metric("a"), Metric("b", 1, 5), Metric("latency", 0, float("inf"))], columns)
    array([  0.5,   3. , 350. ])
    """
    middles = np.array([sum(metric.scale) / 2 if metric.bounded else 0.0 for metric in metrics])
    for k, values in enumerate(columns):
        if not metrics[k].bounded and not np.isnan(values).all():
            with np.errstate(over="ignore"):
                middles[k] = np.nanmean(values)
    return np.where(np.isfinite(middles), middles, 0.0)


@dataclass(frozen=True)
class Keys:
    """Which cell each row is of: a combination of codes and a pattern of gaps.

    Attributes
    ----------
    code : (N,) int
        The cell of each row.
    row : (C,) int
        A row of each cell.
    """

    code: Codes
    row: Codes

    @classmethod
    def of(cls, parts: Iterable[tuple[npt.NDArray[Any], int]], present: Flags) -> Keys:
        """Combine parts (codes from 0 and how many there may be), in their order, with the gaps of the rows."""
        rows, width = present.shape
        gaps = [(present[:, k], 2) for k in sorted(range(width), key=lambda k: (k // 8, -k))]  # as bytes of bits
        key, size = np.zeros(rows, dtype=np.int64), 1
        for codes, count in (*parts, *gaps):
            if count > 1:
                if size * count > 2**62:
                    key, size = _ranked(key)
                key *= count
                key += codes
                size *= count
        if size > max(4 * rows, _SMALL):
            key, size = _ranked(key)
        row = np.full(size, -1, dtype=np.int64)
        row[key] = np.arange(rows)
        used = row >= 0
        return cls((np.cumsum(used) - 1)[key], row[used])

    def sums(self, x: Array | None = None) -> Array:
        """Σx of each cell; without numbers its rows."""
        return np.asarray(np.bincount(self.code, weights=x, minlength=len(self.row)), dtype=float)


def _ranked(key: Codes) -> tuple[Codes, int]:
    codes, uniques = pd.factorize(key, sort=True)
    return codes, len(uniques)


def reduce_rows(
    values: Sequence[Array], metrics: Sequence[Metric], group: Labels, doc: Labels, cluster: Labels
) -> Cells:
    """Reduce rows, one column per metric, to cells, or keep one cell per row if that saves less than half.

    Examples
    --------
    >>> one, none = Labels(np.array([0, 0]), ("",)), Labels(np.array([-1, -1]), ())
    >>> reduce_rows([np.array([1.0, 0.0])], [Metric("a")], one, none, none).n
    array([2.])
    """
    rows, width = len(group.codes), len(values)
    centre = centres(metrics, values)
    x = np.empty((rows, width), order="F")
    for k in range(width):
        np.subtract(values[k], centre[k], out=x[:, k])
    none, codes = np.empty((0, width, width)), (group.codes, doc.codes, cluster.codes)
    whole = Cells(*codes, ~np.isnan(x), np.ones(rows), x, none, centre)
    key = _keys(*codes, whole.present)
    if len(key.row) <= rows / 2:
        return _added([whole], *codes, key)
    single = cluster.codes < 0
    alone = np.where(single, np.cumsum(single) - 1 + len(cluster.names), cluster.codes).astype(np.int64)
    order = np.lexsort((alone, group.codes))
    there = whole.present[order]
    moved = (group.codes[order], doc.codes[order], alone[order])
    return Cells(*moved, there, np.ones(rows), np.where(there, x[order], 0.0), none, centre)


def add_up(parts: Sequence[Cells], group: Codes, doc: Codes, cluster: Codes) -> Cells:
    """Add up the cells of equal codes and pattern, in the order of group, cluster, document and pattern.

    Examples
    --------
    >>> zero, none = np.zeros(2, dtype=int), np.empty((0, 1, 1))
    >>> sums = np.array([[0.5], [0.25]])
    >>> cells = Cells(zero, zero, zero, sums > 0, np.ones(2), sums, none, np.array([0.5]))
    >>> add_up([cells], zero, zero, zero).sums
    array([[0.75]])
    """
    present = np.vstack([cells.present for cells in parts])
    return _added(parts, group, doc, cluster, _keys(group, doc, cluster, present))


def _keys(group: Codes, doc: Codes, cluster: Codes, present: Flags) -> Keys:
    labels = [group, cluster + 1] if doc is cluster else [group, cluster + 1, doc + 1]
    return Keys.of([(codes, int(codes.max(initial=0)) + 1) for codes in labels], present)


def _added(parts: Sequence[Cells], group: Codes, doc: Codes, cluster: Codes, key: Keys) -> Cells:
    row, present = key.row, np.vstack([cells.present for cells in parts])[key.row]
    alone, width = cluster[row] < 0, present.shape[1]
    sums, cross = np.zeros(present.shape), np.zeros((int(alone.sum()), width, width))
    for i in range(width):  # the gaps are part of the key: in a cell a column is all there, or all nan
        sums[:, i] = np.where(present[:, i], key.sums(np.hstack([cells.sums[:, i] for cells in parts])), 0.0)
        for j in range(i + 1 if len(cross) else 0):
            both = key.sums(np.hstack([_products(cells, i, j) for cells in parts]))
            cross[:, i, j] = cross[:, j, i] = np.where(present[:, i] & present[:, j], both, 0.0)[alone]
    n = key.sums(np.hstack([cells.n for cells in parts]))
    return Cells(group[row], doc[row], cluster[row], present, n, sums, cross, parts[0].centre)


def _products(cells: Cells, i: int, j: int) -> Array:
    """Σxᵢxⱼ of cells without a cluster, and of cells that are one row; the others' are not used."""
    products: Array = cells.sums[:, i] * cells.sums[:, j]
    if len(cells.cross):
        products[cells.cluster < 0] = cells.cross[:, i, j]
    return products


def recentred(cells: Cells, centre: Array) -> Cells:
    """Return the cells about another centre."""
    moved = np.where(cells.present, cells.centre - centre, 0.0)
    alone = cells.cluster < 0 if len(cells.cross) else slice(0)
    d, s, n = moved[alone], cells.sums[alone], cells.n[alone]
    both = np.einsum("ci,cj->cij", d, s)
    cross = cells.cross + both + both.transpose(0, 2, 1) + n[:, None, None] * np.einsum("ci,cj->cij", d, d)
    return replace(cells, sums=cells.sums + cells.n[:, None] * moved, cross=cross, centre=centre)


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
    rows: Counts
    questions: str | None = None
    corpus: str = "sample"

    bootstrap = bootstrap

    @property
    def unit(self) -> str:
        """The kind of clusters: ``cluster`` (the caller's), ``document``, ``question`` or ``row``."""
        if self.corpus == "complete":
            return INSIDE
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
        for what in ("metrics", "by", "doc", "cluster", "corpus"):
            mine, theirs = getattr(self, what), getattr(other, what, None)
            if mine != theirs:
                raise RagnbError(
                    f"moments of different {what} cannot be merged: {_shown(mine)} and {_shown(theirs)}; "
                    f"make both with moments(..., {what}=...) alike"
                )
        parts = (self, other)
        asked = {part.questions for part in parts if part.questions or (_single_rows(part) and not part.cluster)}
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
        return means_table(self, *checked_weights(self, metric_weights, doc_weights, **how), level)[0]

    def pooled(self) -> Moments:
        """Return the moments of all groups together.

        Examples
        --------
        >>> scores = pd.DataFrame({"faithfulness": [1.0, 0.5], "system": ["a", "b"]})
        >>> moments(scores, by="system").pooled()
        Moments(2 rows in 2 cells: 1 metrics, 0 documents, 1 groups)
        """
        c, cluster, clusters = self.cells, self.cells.cluster, self.clusters
        if self.by == self.doc and self.cluster is None and self.corpus == "sample":
            cluster, clusters = self._document_clusters()  # within a document rows are clusters, across it is one
        cells = add_up([c], np.zeros_like(c.group), c.doc, cluster)
        rows, counts = (part.sum(axis=0, keepdims=True) for part in (self.rows, self.counts))
        return replace(self, cells=cells, by=None, groups=(), clusters=clusters, counts=counts, rows=rows)

    def _document_clusters(self) -> tuple[Codes, tuple[str, ...]]:
        """The cluster of each cell by its document, where it has one, and the names of all."""
        c = self.cells
        own = np.where(c.cluster < 0, -1, c.cluster + len(self.docs))
        return np.where(c.doc >= 0, c.doc, own), (*self.docs, *self.clusters)

    def by_document(self) -> Moments:
        """Return the moments with documents as the clusters, as of a corpus that is a sample."""
        cluster, clusters = self._document_clusters()
        cells = add_up([self.cells], self.cells.group, self.cells.doc, cluster)
        return replace(self, cells=cells, clusters=clusters, corpus="sample")

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
        import polars as pl

        arrays = {field.name: getattr(self.cells, field.name) for field in fields(Cells)}
        arrays |= {"counts": self.counts, "rows": self.rows}
        about = {
            "ragnb": "moments", "sha256": "0" * 64, "version": VERSION,
            "metrics": [asdict(metric) for metric in self.metrics],
            **{name: getattr(self, name) for name in _NAMES},
            "shapes": {name: array.shape for name, array in arrays.items()},
        }  # fmt: skip
        columns = [pl.Series("about", [json.dumps(about)])]
        columns += [pl.Series(name, array.ravel()) for name, array in arrays.items()]
        height = max(map(len, columns))
        frame = pl.DataFrame([column.extend_constant(None, height - len(column)) for column in columns])
        buffer = io.BytesIO()
        frame.write_parquet(buffer, compression="uncompressed", statistics=False)  # else the seal cannot be found
        content = bytearray(buffer.getvalue())
        place, digest = _seal(content)
        content[place] = digest
        return write_whole(Path(path), content)

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
        import polars as pl

        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise RagnbError(f"{path}: {error.strerror or error}; write it with Moments.to_parquet") from None
        place, digest = _seal(content)
        if content[place] != digest:  # before Parquet is decoded, which damage can make crash
            raise RagnbError(f"{path}: the file is damaged or has no moments; write it with Moments.to_parquet")
        frame = pl.read_parquet(io.BytesIO(content))
        about = json.loads(frame["about"][0])
        if about["version"] not in (1, VERSION):
            raise RagnbError(
                f"{path}: moments of version {about['version']!r}; this ragnb reads version {VERSION} and before; "
                "write it again"
            )
        metrics = tuple(Metric(**metric) for metric in about["metrics"])
        arrays = {n: frame[n].drop_nulls().to_numpy().reshape(shape) for n, shape in about["shapes"].items()}
        names: dict[str, Any] = {name: about[name] for name in _NAMES if name in about}
        names |= {name: tuple(value) for name, value in names.items() if isinstance(value, list)}
        counts: dict[str, Any] = {name: arrays.pop(name) for name in ("counts", "rows")}
        return cls(metrics, Cells(**({"centre": centres(metrics)} | arrays)), **names, **counts)


def _seal(content: bytes | bytearray) -> tuple[slice, bytes]:
    """Where the digest of a file stands, and what it must be: that of everything but itself.

    Names cannot pretend to be it, as JSON escapes their quotes.
    """
    found = re.search(rb'"ragnb": "moments", "sha256": "([0-9a-f]{64})"', content)
    place = slice(*found.span(1)) if found else slice(0, 0)
    return place, hashlib.sha256(content[: place.start] + content[place.stop :]).hexdigest().encode()


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
        Another cluster column, such as a conversation, instead of the document.
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
    Rows are read once, batch by batch. Whether questions repeat costs a query more, which counts the distinct
    values of a column; it is not asked where every row has a document or `cluster` is named.

    Examples
    --------
    >>> moments(pd.DataFrame({"faithfulness": [1.0, 0.5, None], "doc_name": ["a", "a", "b"]}))
    Moments(3 rows in 3 cells: 1 metrics, 2 documents, 1 groups)
    """
    if by in (*RESULT_COLUMNS, "numerator"):
        raise RagnbError(f"by={by!r} is also a column of the result; rename the frame's column")
    frame, chosen = scored(scores, metrics, doc, cluster, by)
    need_documents(column_names(frame), doc, cluster, corpus)
    how: dict[str, Any] = {"doc": doc, "cluster": cluster, "by": by, "corpus": corpus}
    asked = moments_reduction(chosen, **how, questions=question_of(frame, **how))
    return cast(Moments, reduce_batches(frame, chosen, [asked])[0])


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
        docs, group = batch.labels(doc, compose=True), batch.groups(by, compose=by == doc)
        if cluster is None:
            apart = by == doc or corpus == "complete"  # questions are distinguished within a document
            clusters = question_clusters(batch, batch.labels(None) if apart else docs, questions)
        else:
            clusters = batch.labels(cluster)
        size = len(group.names)
        values = [batch.values(metric) for metric in metrics]
        counts = np.zeros((size, len(metrics), 2), dtype=np.int64)
        for k, metric in enumerate(metrics):
            status = batch.status(metric)
            for word in (1, 2) if status.any() else ():
                counts[:, k, word - 1] = np.bincount(group.codes[status == word], minlength=size)
        cells, rows = reduce_rows(values, metrics, group, docs, clusters), np.bincount(group.codes, minlength=size)
        names = () if by is None else group.names, docs.names, clusters.names
        return Moments(tuple(metrics), cells, by, doc, cluster, *names, counts, rows, questions, corpus)

    return Reduction(kernel, _combined, (by, doc, cluster, questions))


def _combined(parts: Sequence[Moments]) -> Moments:
    """Return the moments of several sets of rows, cells matched by the names of groups, documents and clusters."""
    first, *others = parts
    if not others:
        return first
    docs, clusters = _union(p.docs for p in parts), _union(p.clusters for p in parts)
    groups = _union([name for name in p.groups if name is not None] for p in parts)
    groups += (None,) if any(None in p.groups for p in parts) else ()  # rows without one come last
    size = len(groups) if first.by is not None else 1
    counts, rows = np.zeros((size, len(first.metrics), 2), dtype=np.int64), np.zeros(size, dtype=np.int64)
    # The centre of most scores: numbers far from it would lose precision.
    scored = np.array([part.cells.n @ part.cells.present for part in parts])
    centre = np.array([part.cells.centre for part in parts])[scored.argmax(axis=0), np.arange(len(first.metrics))]
    codes = []
    for part in parts:
        group = _recode(part.groups, groups)[:-1] if first.by is not None else np.zeros(1, dtype=np.int64)
        np.add.at(counts, group, part.counts)
        np.add.at(rows, group, part.rows)
        c = part.cells
        named = np.where(c.cluster < len(part.clusters), c.cluster, -1)
        codes.append((group[c.group], _recode(part.docs, docs)[c.doc], _recode(part.clusters, clusters)[named]))
    moved = [recentred(part.cells, centre) for part in parts]
    cells = add_up(moved, *map(np.concatenate, zip(*codes, strict=True)))
    return replace(first, cells=cells, counts=counts, rows=rows, groups=groups, docs=docs, clusters=clusters)


def _single_rows(part: Moments) -> bool:
    """Whether a row is a cluster of its own."""
    cluster = part.cells.cluster
    return bool(((cluster < 0) | (cluster >= len(part.clusters))).any())


def _shown(value: object) -> str:
    return ", ".join(f"{m.name} {m.low:g}..{m.high:g}" for m in value) if isinstance(value, tuple) else repr(value)


def _union(names: Iterable[Iterable[Any]]) -> tuple[Any, ...]:
    return tuple(sorted(set().union(*names)))


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
    c = reduced.cells
    sums: Array = np.zeros((len(reduced.rows), len(reduced.metrics)))
    np.add.at(sums, c.group, c.sums + c.n[:, None] * c.present * c.centre)
    return sums
