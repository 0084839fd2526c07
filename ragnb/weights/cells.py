"""Moments: rows reduced to cells, and every weighted mean, total and interval that follows from them."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats
from ragnb.errors import RagnbError
from ragnb.files import write_whole
from ragnb.schema import DRAWN, METRICS, RESULT_COLUMNS, Metric
from ragnb.stats import sums_by
from ragnb.weights.batches import Batch, Reduction, reduce_batches
from ragnb.weights.clusters import INSIDE, Corpus, need_documents, question_clusters, question_of
from ragnb.weights.columns import Codes, MetricsArgument, column_names, scored
from ragnb.weights.conversations import conversation_cluster, is_conversation
from ragnb.weights.total import (
    Array,
    Flags,
    Total,
    check_weights,
    document_weights,
    total_of,
)

Counts = npt.NDArray[np.int64]
Places = tuple[Codes, Codes, Codes]  # of groups, documents and clusters
VERSION = 4
_SMALL = 2**15  # codes that need no ranking, however few the rows are
_DESCRIPTION = (
    "family",
    "needs",
    "aliases",
    "variant",
)  # of a metric, which may change; its numbers stay
_NAMES = ("by", "doc", "cluster", "questions", "corpus", "groups", "docs", "clusters")


@dataclass(frozen=True)
class Cells:
    """The small table from which every weighted mean is computed exactly, in the order of group, then cluster.

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
    cross : (S, K, K) float
        Σxxᵀ of the cells that are `shared`, in their order.
    centre : (K,) float
        What each metric is centred on, see `centres`.
    weight : (C,) float
        Of each row, 1 / the chance with which it was drawn; 1 where none is recorded.
    """

    group: Codes
    doc: Codes
    cluster: Codes
    present: Flags
    n: Array
    sums: Array
    cross: Array
    centre: Array
    weight: Array

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.n)

    @property
    def shared(self) -> Flags:
        """Which cells hold several rows that are clusters of their own: their sums do not tell their spread."""
        return (self.cluster < 0) & (self.n > 1)


# A range so many times as large as its scores: about its middle they would lose all their digits.
_FAR = 1e6


def centres(metrics: Sequence[Metric], columns: Sequence[Array] = ()) -> Array:
    """Return the centre of each metric: the middle of its scale, else the mean of its scores.

    Sums of squares about 0 lose the variance of scores that are large compared with it, and scores of tens about
    the middle of a range of 2⁶³ vanish.

    Examples
    --------
    >>> columns = [np.array([score]) for score in (0.9, 2.0, 350.0)]
    >>> centres([Metric("a"), Metric("b", 1, 5), Metric("latency", 0, float("inf"))], columns)
    array([  0.5,   3. , 350. ])
    """
    with np.errstate(over="ignore"):
        middles = np.array([_middle(metric) for metric in metrics])
    for k, values in enumerate(columns):
        if _on_data(metrics[k], values):
            with np.errstate(over="ignore"):
                middles[k] = np.nanmean(values)
    return np.where(np.isfinite(middles), middles, 0.0)


def _middle(metric: Metric) -> float:
    low, high = metric.scale
    return low / 2 + high / 2 if metric.bounded else 0.0


def _on_data(metric: Metric, values: Array) -> bool:
    """Whether a metric is centred on its scores: without a range, or with one that is far larger than they are."""
    if np.isnan(values).all():
        return False
    width = metric.high - metric.low
    return not metric.bounded or (width > _FAR and width > _FAR * float(np.nanmax(np.abs(values))))


class Keys(NamedTuple):
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
        key, size = np.zeros(len(present), dtype=np.int64), 1
        for codes, count in (*parts, *((column, 2) for column in present.T)):
            if size * count > 2**62:
                key, size = _ranked(key)
            if count > 1:
                key *= count
                key += codes
                size *= count
        if size > max(4 * len(key), _SMALL):
            key, size = _ranked(key)
        row = np.full(size, -1, dtype=np.int64)
        row[key] = np.arange(len(key))
        used = row >= 0
        return cls((np.cumsum(used) - 1)[key], row[used])


def _ranked(key: Codes) -> tuple[Codes, int]:
    codes, uniques = pd.factorize(key, sort=True)
    return codes, len(uniques)


def cells_of(
    values: Sequence[Array], metrics: Sequence[Metric], codes: Places, weight: Array
) -> Cells:
    """Reduce rows, one column per metric, to cells; `codes` are their groups, documents and clusters.

    Examples
    --------
    >>> one, none = np.array([0, 0]), np.array([-1, -1])
    >>> cells_of([np.array([1.0, 0.0])], [Metric("a")], (one, none, none), np.ones(2)).n
    array([2.])
    """
    width, centre = len(values), centres(metrics, values)
    x = np.empty((len(weight), width), order="F")
    for k in range(width):
        np.subtract(values[k], centre[k], out=x[:, k])
    none = np.empty((0, width, width))
    return add_up(Cells(*codes, x == x, np.ones(len(weight)), x, none, centre, weight), *codes)


def add_up(cells: Cells, group: Codes, doc: Codes, cluster: Codes) -> Cells:
    """Add up the cells of equal codes, pattern and weight, in the order of group, cluster, document and pattern.

    Examples
    --------
    >>> zero, one, none = np.zeros(2, dtype=int), np.ones(2), np.empty((0, 1, 1))
    >>> sums = np.array([[0.5], [0.25]])
    >>> cells = Cells(zero, zero, zero, sums > 0, one, sums, none, np.array([0.5]), one)
    >>> add_up(cells, zero, zero, zero).sums
    array([[0.75]])
    """
    labels = [group, cluster + 1] if doc is cluster else [group, cluster + 1, doc + 1]
    if cells.size and cells.weight.min() < cells.weight.max():
        labels.append(np.unique(cells.weight, return_inverse=True)[1])
    key = Keys.of([(codes, int(codes.max(initial=0)) + 1) for codes in labels], cells.present)
    row, width = key.row, cells.sums.shape[1]
    codes, present, weight = (
        (group[row], doc[row], cluster[row]),
        cells.present[row],
        cells.weight[row],
    )
    sums = np.where(
        present, sums_by(key.code, cells.sums), 0.0
    )  # in a cell a column is all there, or all nan
    n = np.bincount(key.code, cells.n).astype(float)
    added = Cells(*codes, present, n, sums, cells.cross[:0], cells.centre, weight)
    shared, several = added.shared, np.flatnonzero(cells.shared)
    cross = np.zeros((int(shared.sum()), width, width))
    for i in range(width if len(cross) else 0):
        for j in range(i + 1):
            products = cells.sums[:, i] * cells.sums[:, j]  # right for cells of one row
            products[several] = cells.cross[:, i, j]
            summed, both = (
                np.bincount(key.code, products)[shared],
                present[shared, i] & present[shared, j],
            )
            cross[:, i, j] = cross[:, j, i] = np.where(both, summed, 0.0)
    return replace(added, cross=cross)


def recentred(cells: Cells, centre: Array) -> Cells:
    """Return the cells about another centre."""
    if np.array_equal(cells.centre, centre):
        return cells
    moved, shared = np.where(cells.present, cells.centre - centre, 0.0), cells.shared
    d, s, n = moved[shared], cells.sums[shared], cells.n[shared]
    both = np.einsum("ci,cj->cij", d, s)
    cross = (
        cells.cross
        + both
        + both.transpose(0, 2, 1)
        + n[:, None, None] * np.einsum("ci,cj->cij", d, d)
    )
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
            named = "conversation" if is_conversation(self.cluster) else "cluster"
            return named if self.clusters else "row"
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
        asked = {
            p.questions
            for p in parts
            if p.questions or not (p.cluster or (p.cells.cluster >= 0).all())
        }
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
        return _in_number_order(table, self.by)

    def pooled(self) -> Moments:
        """Return the moments of all groups together.

        Examples
        --------
        >>> scores = pd.DataFrame({"faithfulness": [1.0, 0.5], "system": ["a", "b"]})
        >>> moments(scores, by="system").pooled()
        Moments(2 rows in 1 cells: 1 metrics, 0 documents, 1 groups)
        """
        # Within a document rows are the clusters, across documents it is one.
        within = self.by == self.doc and self.cluster is None and self.corpus == "sample"
        whole = self.by_document() if within else self
        cells = add_up(
            whole.cells, np.zeros_like(whole.cells.group), whole.cells.doc, whole.cells.cluster
        )
        added = {
            name: getattr(self, name).sum(axis=0, keepdims=True)
            for name in ("rows", "counts", "at_ends")
        }
        return replace(whole, cells=cells, by=None, groups=(), **added)

    def by_document(self) -> Moments:
        """Return the moments with documents as the clusters, as of a corpus that is a sample."""
        c = self.cells
        others = np.where(c.cluster < 0, -1, c.cluster + len(self.docs))
        cells = add_up(c, c.group, c.doc, np.where(c.doc >= 0, c.doc, others))
        return replace(self, cells=cells, clusters=(*self.docs, *self.clusters), corpus="sample")

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

        arrays = {part.name: getattr(self.cells, part.name) for part in fields(Cells)}
        arrays |= {"counts": self.counts, "at_ends": self.at_ends, "rows": self.rows}
        about = {
            "ragnb": "moments",
            "sha256": "0" * 64,
            "version": VERSION,
            "metrics": [asdict(metric) for metric in self.metrics],
            **{name: getattr(self, name) for name in _NAMES},
            "shapes": {name: array.shape for name, array in arrays.items()},
        }
        columns = [pl.Series("about", [json.dumps(about)])]
        columns += [pl.Series(name, array.ravel()) for name, array in arrays.items()]
        height = max(map(len, columns))
        frame = pl.DataFrame(
            [column.extend_constant(None, height - len(column)) for column in columns]
        )
        buffer = io.BytesIO()
        frame.write_parquet(
            buffer, compression="uncompressed", statistics=False
        )  # else the seal cannot be found
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
            raise RagnbError(
                f"{path}: {error.strerror or error}; write it with Moments.to_parquet"
            ) from None
        place, digest = _seal(content)
        if content[place] != digest:  # before Parquet is decoded, which damage can make crash
            raise RagnbError(
                f"{path}: the file is damaged or has no moments; write it with Moments.to_parquet"
            )
        frame = pl.read_parquet(io.BytesIO(content))
        about = json.loads(frame["about"][0])
        if about["version"] != VERSION:
            raise RagnbError(
                f"{path}: moments of version {about['version']!r}; this ragnb reads version {VERSION}; "
                "write it again"
            )
        today = {
            name: {key: getattr(known, key) for key in _DESCRIPTION}
            for name, known in METRICS.items()
        }
        metrics = tuple(
            Metric(**metric | today.get(metric["name"], {})) for metric in about["metrics"]
        )
        arrays = {
            n: frame[n].drop_nulls().to_numpy().reshape(shape)
            for n, shape in about["shapes"].items()
        }
        names: dict[str, Any] = {name: about[name] for name in _NAMES if name in about}
        names |= {name: tuple(value) for name, value in names.items() if isinstance(value, list)}
        counts: dict[str, Any] = {n: arrays.pop(n) for n in ("counts", "at_ends", "rows")}
        return cls(metrics, Cells(**arrays), **names, **counts)

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
        if self.corpus == "complete":
            raise RagnbError(
                "the bootstrap resamples documents; corpus='complete' says that these are all of them"
            )
        if resamples < _FEWEST:
            raise RagnbError(
                f"resamples={resamples!r} are too few for an interval; take at least {_FEWEST}"
            )
        how = {"orient": orient, "rescale": rescale}
        table, units, total = means_table(self, metric_weights, doc_weights, level, **how)
        middles = np.append(self.cells.centre, total.centre(self.cells.centre))
        spans = np.array([[m.low, m.high] for m in self.metrics] + [[total.least, total.high]])
        usable = table["n_clusters"].to_numpy().reshape(len(self.rows), len(spans)) >= 2
        ends = np.full((*usable.shape, 3), np.nan)
        order = np.argsort(units.cluster < 0, kind="stable")
        for g in range(len(self.rows)):
            chosen = order[units.group[order] == g]
            sizes = units.size[chosen, 0].astype(np.int64)
            parts = (part[chosen] for part in (units.weight, units.sum, units.variance))
            means = stats.resampled_means(sizes, *parts, resamples=resamples, seed=seed)
            for k in np.flatnonzero(usable[g]):
                drawn = np.clip(means[:, k] + middles[k], *spans[k])
                ends[g, k] = [
                    *np.nanquantile(drawn, [0.5 - level / 2, 0.5 + level / 2]),
                    np.nanstd(drawn, ddof=1),
                ]
        # Without a range, identical scores contain no information about their variance.
        ends.reshape(-1, 3)[table["low"].isna().to_numpy(), :2] = np.nan
        table[["low", "high", "se"]] = ends.reshape(-1, 3)
        return table


def _seal(content: bytes | bytearray) -> tuple[slice, bytes]:
    """Where the digest of a file stands, and what it must be: that of everything but itself.

    Names cannot pretend to be it, as JSON escapes their quotes.
    """
    found = re.search(rb'"ragnb": "moments", "sha256": "([0-9a-f]{64})"', content)
    place = slice(*found.span(1)) if found else slice(0, 0)
    return place, hashlib.sha256(
        content[: place.start] + content[place.stop :]
    ).hexdigest().encode()


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
            apart = (
                by == doc or corpus == "complete"
            )  # questions are distinguished within a document
            clusters = question_clusters(batch, batch.labels(None) if apart else docs, questions)
        else:
            clusters = batch.labels(cluster)
        size, weight = len(group.names), batch.weights()
        if corpus == "complete" and weight is not None:
            raise RagnbError(
                f"corpus='complete' does not take rows drawn with unequal chances; leave it out, or drop {DRAWN!r}"
            )
        values = [batch.values(metric) for metric in metrics]
        counts = np.zeros((size, len(metrics), 2), dtype=np.int64)
        for k, metric in enumerate(metrics):
            status = batch.status(metric)
            for word in (1, 2) if status.any() else ():
                counts[:, k, word - 1] = np.bincount(group.codes[status == word], minlength=size)
        codes = group.codes, docs.codes, clusters.codes
        cells = cells_of(values, metrics, codes, np.ones(len(batch)) if weight is None else weight)
        rows = np.bincount(group.codes, minlength=size)
        names = () if by is None else group.names, docs.names, clusters.names
        at_ends = _at_ends(values, metrics, group.codes, size)
        return Moments(
            tuple(metrics),
            cells,
            by,
            doc,
            cluster,
            *names,
            counts,
            at_ends,
            rows,
            questions,
            corpus,
        )

    return Reduction(kernel, _combined, (by, doc, cluster, questions, DRAWN))


def _at_ends(
    values: Sequence[Array], metrics: Sequence[Metric], group: Codes, groups: int
) -> Counts:
    """Return how many scores are at the bad and the good end of each metric, and rows with all scores there."""
    found = np.zeros((groups, len(metrics) + 1, 2), dtype=np.int64)
    everywhere = [np.ones(len(group), dtype=bool) for _ in range(2)]
    has_score = np.zeros(len(group), dtype=bool)
    for k, metric in enumerate(metrics):
        bad_and_good = (metric.low, metric.high)
        if metric.better == "lower":
            bad_and_good = bad_and_good[::-1]
        for side, end in enumerate(bad_and_good):
            there = values[k] == end
            found[:, k, side] = np.bincount(group[there], minlength=groups)
            if metric.role == "quality":
                everywhere[side] &= there | np.isnan(values[k])
        if metric.role == "quality":
            has_score |= ~np.isnan(values[k])
    for side, rows in enumerate(everywhere):
        found[:, -1, side] = np.bincount(group[rows & has_score], minlength=groups)
    return found


def _combined(parts: Sequence[Moments]) -> Moments:
    """Return the moments of several sets of rows, cells matched by the names of groups, documents and clusters."""
    first = parts[0]
    if len(parts) == 1:
        return first
    docs, clusters, groups = (
        _union(getattr(part, of) for part in parts) for of in ("docs", "clusters", "groups")
    )
    size = len(groups) if first.by is not None else 1
    counts, at_ends, rows = (
        np.zeros((size, *shape), dtype=np.int64)
        for shape in ((len(first.metrics), 2), (len(first.metrics) + 1, 2), ())
    )
    # The centre of most scores: numbers far from it would lose precision.
    scored = np.array([part.cells.n @ part.cells.present for part in parts])
    centre = np.array([part.cells.centre for part in parts])[
        scored.argmax(axis=0), np.arange(len(first.metrics))
    ]
    moved = []
    for part in parts:
        c, group = recentred(part.cells, centre), np.zeros(1, dtype=np.int64)
        if first.by is not None:
            group = _recode(part.groups, groups)[:-1]
        np.add.at(counts, group, part.counts)
        np.add.at(at_ends, group, part.at_ends)
        np.add.at(rows, group, part.rows)
        doc, cluster = _recode(part.docs, docs)[c.doc], _recode(part.clusters, clusters)[c.cluster]
        moved.append(replace(c, group=group[c.group], doc=doc, cluster=cluster))
    stacked = {
        of.name: np.concatenate([getattr(c, of.name) for c in moved]) for of in fields(Cells)
    }
    whole = Cells(**(stacked | {"centre": centre}))
    cells = add_up(whole, whole.group, whole.doc, whole.cluster)
    added: dict[str, Any] = {"counts": counts, "at_ends": at_ends, "rows": rows}
    return replace(first, cells=cells, groups=groups, docs=docs, clusters=clusters, **added)


def _shown(value: object) -> str:
    return (
        ", ".join(f"{m.name} {m.low:g}..{m.high:g}" for m in value)
        if isinstance(value, tuple)
        else repr(value)
    )


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
    c = reduced.cells
    sums: Array = np.zeros((len(reduced.rows), len(reduced.metrics)))
    np.add.at(sums, c.group, c.sums + c.n[:, None] * c.present * c.centre)
    return sums


_FEWEST = 100
_MANY = 60  # documents: with more, those that could have failed unseen change little


@dataclass(frozen=True)
class Units:
    """Resampling units of bootstrap and jackknife: clusters, and the cells of single rows, by group.

    Attributes
    ----------
    group, cluster : (U,) int
        The cluster −1 of rows that are clusters of their own.
    size : (U, 1) float
        How many a unit represents: 1, or the rows of the cell.
    weight, sum, variance : (U, K + 1) float
        Σv, Σvx and Var(vx) of one of them, of every metric and, last, of the weighted score.
    """

    group: Codes
    cluster: Codes
    size: Array
    weight: Array
    sum: Array
    variance: Array

    @classmethod
    def of(cls, cells: Cells, v: Array, columns: tuple[Array, Array, Array]) -> Units:
        """Return the units of cells, which are sorted by group, then cluster."""
        sums, counts, squares = columns
        alone, shared = cells.cluster < 0, cells.shared
        changes = (np.diff(cells.group) != 0) | (np.diff(cells.cluster) != 0) | alone[1:]
        starts = np.flatnonzero(np.append(True, changes))[: cells.size]
        size = np.where(alone, cells.n, 1.0)[starts, None]
        weight, total = (
            np.add.reduceat(part, starts, axis=0) / size for part in (v * counts, v * sums)
        )
        variance, n = np.zeros_like(total), cells.n[shared, None]
        spread = squares - sums[shared] ** 2 / n
        spread[spread < 1e-13 * squares] = 0.0  # rounding error of identical values
        variance[shared[starts]] = v[shared] ** 2 * spread / n
        return cls(cells.group[starts], cells.cluster[starts], size, weight, total, variance)


def cell_columns(cells: Cells, total: Total) -> tuple[Array, Array, Array]:
    """Return Σx, n and (of shared cells) Σx² of every metric and, last, of the weighted score.

    Examples
    --------
    >>> from ragnb.schema import Metric
    >>> from ragnb.weights.cells import Cells
    >>> from ragnb.weights.total import total_of
    >>> code, one = np.array([0]), np.ones((1, 1))
    >>> cells = Cells(code, code, code, one > 0, np.array([4.0]), one, one[:0, None], np.array([0.5]), one[0])
    >>> [part.tolist() for part in cell_columns(cells, total_of([Metric("a")], None))]
    [[[1.0, 1.0]], [[4.0, 4.0]], []]
    """
    there, n = cells.present.astype(float), cells.n
    scale = there @ total.weights
    share = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    score, moved = cells.sums @ (total.weights * total.slopes) * share, np.zeros(cells.size)
    if total.weights.any() and not total.is_centred(cells.centre):
        own = total.weights * total.mapped(cells.centre)
        moved = (scale > 0) * ((there @ own) * share - total.centre(cells.centre))
        score += n * moved
    several = cells.shared
    inner = there[several] * (total.weights * total.slopes) * share[several, None]
    squares = np.einsum("ci,cij,cj->c", inner, cells.cross, inner)
    squares += moved[several] * (2 * score[several] - n[several] * moved[several])
    counts, of_metrics = (
        np.column_stack([there, scale > 0]) * n[:, None],
        np.einsum("ckk->ck", cells.cross),
    )
    return np.column_stack([cells.sums, score]), counts, np.column_stack([of_metrics, squares])


def _by(group: Codes, groups: int) -> Callable[..., Array]:
    """Return the function that reduces rows to their groups, sums by default; one without rows gives 0."""
    first, end = (
        np.searchsorted(group, np.arange(groups), side=side) for side in ("left", "right")
    )
    there = first < end

    def reduce(x: Array, how: np.ufunc = np.add) -> Array:
        reduced: Array = np.zeros((groups, x.shape[1]))
        reduced[there] = how.reduceat(x, first[there], axis=0)
        return reduced

    return reduce


def _in_number_order(table: pd.DataFrame, by: str | None) -> pd.DataFrame:
    """Return rows of groups that are all numbers, such as turns, in the order of these."""
    if by is None or by not in table:
        return table
    numbers = pd.to_numeric(table[by], errors="coerce")
    if numbers.isna().all() or (numbers.isna() & table[by].notna()).any():
        return table
    order = numbers.argsort(kind="stable")
    return table.iloc[order[order >= 0]].reset_index(drop=True)


def means_table(
    source: Moments,
    metric_weights: Mapping[str, float] | None,
    doc_weights: Mapping[str, float] | None,
    level: float,
    **how: bool,
) -> tuple[pd.DataFrame, Units, Total]:
    """Return the frame of `weighted_means` for one set of weights, the units behind its intervals, and the total.

    Raises
    ------
    RagnbError
        As `total_of`, and for weights of 0 that leave out every row.

    Notes
    -----
    With a_g = Σ v over a cluster's scored rows, A = Σ a_g, θ = Σ v s / A and u_g = Σ v (s − θ), the variance is
    (G−1)/G · Σ (u_g / (1 − a_g/A))² / A².
    """
    if not 0 < level < 1:
        raise RagnbError(f"level={level!r} must lie between 0 and 1, such as 0.95")
    complete, groups, doc = source.corpus == "complete", len(source.rows), source.cells.doc
    total = total_of(source.metrics, metric_weights, **how)
    each = document_weights(check_weights(doc_weights, "doc_weights"), source.docs, doc)
    each[-1] *= (doc < 0).any()  # what no row has is no measure of the others
    doc_weight = stats.relative(each)
    cells = source.by_document().cells if complete else source.cells
    columns = cell_columns(cells, total)
    v = (doc_weight[cells.doc] * cells.weight)[:, None]
    counts, of_cells = columns[1], _by(cells.group, groups)
    if len(v) and v[v > 0].min(initial=np.inf) <= stats.LOST_IN_ROUNDING * v.max():
        there = np.where(counts > 0, v, 0.0)
        largest = of_cells(there, np.maximum)[cells.group]
        v = np.divide(there, largest, out=np.zeros_like(there), where=largest > 0)
        v[v <= stats.LOST_IN_ROUNDING] = 0.0
    units = Units.of(cells, v, columns)
    by, group, size, scored = _by(units.group, groups), units.group, units.size, units.weight > 0
    mass, summed, n_clusters = by(size * units.weight), by(size * units.sum), by(size * scored)
    inverse, theta = (
        np.divide(x, mass, out=np.zeros_like(mass), where=mass > 0) for x in (1.0, summed)
    )
    h = units.weight * inverse[group]
    squared = ((units.sum - theta[group] * units.weight) ** 2 + units.variance) / np.where(
        h < 1, 1 - h, 1.0
    ) ** 2
    se, h2 = stats.jackknife_se(mass, n_clusters, by(size * squared)), by(size * h**2)
    h4 = by(size * h**4)
    middles = np.append(cells.centre, total.centre(cells.centre))
    value = np.where(mass > 0, theta + middles, np.nan)
    g_eff = np.divide(1.0, h2, out=np.zeros_like(h2), where=h2 > 0)
    n_eff, n = stats.kish(mass, of_cells(v**2 * counts)), of_cells(counts).astype(np.int64)
    whole = SimpleNamespace(
        name="weighted_score",
        low=total.low,
        high=total.high,
        better="higher",
        kind="continuous",
        role="total",
    )
    about: dict[str, Any] = {
        name: np.array([getattr(column, name) for column in (*source.metrics, whole)], dtype=object)
        for name in vars(whole)
    }
    least, high = (about[end].astype(float) for end in ("low", "high"))
    low = np.append(least[:-1], total.least)
    interval = partial(
        stats.mean_interval, value, g_eff=g_eff, n_kish=n_eff, ranges=(low, high), level=level
    )
    at_ends = _of_columns(source, total)
    elsewhere = n - at_ends.max(axis=2)
    binary = (at_ends.sum(axis=2) >= n) & (n > 0)
    ends = interval(se, binary=binary, sum_h4=h4, elsewhere=(elsewhere, n))
    df = g_eff - 1
    unit, (low_if, unseen) = (
        np.full(value.shape, source.unit, dtype=object),
        np.full((2, *value.shape), np.nan),
    )
    if complete:
        inner_se, inner_df, questions = _within_documents(source, total, doc_weight, mass)
        enough, inside = np.isfinite(inner_se) & np.isfinite(value), interval(inner_se, df=inner_df)
        ends = np.where(enough, inside[0], ends[0]), np.where(enough, inside[1], ends[1])
        se, df = np.where(enough, inner_se, se), np.where(enough, inner_df, df)
        n_clusters, unit[~enough] = np.where(enough, questions, n_clusters), "document"
    elif source.unit == "document" and (few := g_eff < _MANY - 1e-9).any():
        of_unit = np.divide(units.sum, units.weight, out=np.zeros_like(h), where=scored) + middles
        bad, good = np.where(about["better"] == "lower", (high, low), (low, high))
        with np.errstate(
            invalid="ignore"
        ):  # without a finite range a document cannot fail entirely
            worst = by(np.where(scored, (good - of_unit) / (good - bad), 0.0), np.maximum)
            lowest = np.minimum(*((end - bad) / (good - bad) for end in ends))
            few &= 1 - worst > (value - bad) / (good - bad) / 2 + 1e-9  # no document failed
            of_documents = (units.cluster >= 0) & (units.cluster < len(source.docs))
            few &= np.isfinite(lowest) & (n_clusters == by(of_documents[:, None] & scored))
            floor, share_unseen = stats.unseen_failures(
                lowest, np.maximum(g_eff, 1.0), alpha=1 - level
            )
            shown = few & (n_eff > (3 - 1e-9) * g_eff)
            low_if, unseen = np.where(shown, (bad + (good - bad) * floor, share_unseen), np.nan)
    alike = ~np.isfinite(high - low) & ~(
        se > np.finfo(float).eps * np.abs(value)
    )  # nothing gives a width
    # Only a cluster with most of the weight is worth a note, and none where questions are the units.
    row, column = np.nonzero((h > 0.5 + 1e-9) & (units.cluster >= 0)[:, None] & (not complete))
    top, top_share = np.full(value.shape, -1), np.full(value.shape, np.nan)
    top[group[row], column], top_share[group[row], column] = units.cluster[row], h[row, column]
    failed, absent = np.pad(source.counts, ((0, 0), (0, 1), (0, 0))).transpose(2, 0, 1)
    given = np.append(
        np.where((about["role"][:-1] == "quality") | (total.given > 0), total.given, np.nan), np.nan
    )
    made: dict[str, Any] = {
        "metric": about["name"],
        "weight": given,
        "value": value,
        "low": np.where(alike, np.nan, ends[0]),
        "high": np.where(alike, np.nan, ends[1]),
        "se": se,
        "n": n,
        "n_missing": source.rows[:, None] - n - failed - absent,
        "n_failed": failed,
        "n_not_applicable": absent,
        "n_clusters": n_clusters.astype(np.int64),
        "n_eff": n_eff,
        "df": df,
        "cluster_unit": unit,
        "range_low": least,
        "range_high": high,
        "better": about["better"],
        "kind": about["kind"],
        "role": about["role"],
        "level": level,
        "low_if": low_if,
        "share_unseen": unseen,
        "top_share": top_share,
        "top_cluster": np.array([*source.clusters, ""], dtype=object)[top],
        "reason": np.array([""] * len(source.metrics) + [total.reason], dtype=object),
    }
    # What is told of a metric holds in every group.
    table = pd.DataFrame({name: np.broadcast_to(made[name], value.shape).ravel() for name in made})
    if source.by is not None:
        table = table.rename(columns={source.by: f"metric_{source.by}"})
        table.insert(0, source.by, np.repeat(np.array(source.groups, dtype=object), value.shape[1]))
    return table, units, total


def _of_columns(source: Moments, total: Total) -> Counts:
    """Return how many scores of each metric and, last, of the total are at their bad and at their good end.

    Of a total of some metrics at most as many rows as of each of them: with fewer, its interval is no narrower.
    """
    found = source.at_ends.copy()
    used = np.flatnonzero(total.weights)
    quality = [k for k, metric in enumerate(source.metrics) if metric.role == "quality"]
    if len(used) and set(used) != set(quality):
        found[:, -1] = found[:, used].min(axis=1)
    return found


def _within_documents(
    source: Moments, total: Total, doc_weight: Array, mass: Array
) -> tuple[Array, ...]:
    """Return se, degrees of freedom and n for a complete corpus of documents, groups × columns.

    Repeats are averaged by question first. Where they are uneven, a document's variance rises by N Σr²/(Σr)².
    """
    cells = source.cells
    cells = add_up(cells, cells.group * len(doc_weight) + cells.doc + 1, cells.doc, cells.cluster)
    units = Units.of(cells, np.ones((cells.size, 1)), cell_columns(cells, total))
    strata, code = np.unique(units.group, return_inverse=True)
    r = units.weight
    mean = np.divide(units.sum, r, out=np.zeros_like(r), where=r > 0)
    of_questions = (r > 0, mean, mean**2 + units.variance, r, r**2)
    n, first, second, rows, rows2 = (sums_by(code, units.size * part) for part in of_questions)
    ones = np.where(n > 0, n, 1.0)
    left = second - first**2 / ones
    left[left < 1e-13 * second] = 0.0  # rounding error of identical values
    group, document = np.divmod(strata, len(doc_weight))
    ends = np.searchsorted(group, np.arange(len(mass) + 1))
    inverse = np.divide(1.0, mass, out=np.zeros_like(mass), where=mass > 0)
    share = np.roll(doc_weight, 1)[document][:, None] * rows * inverse[group]
    uneven = ones * rows2 / np.where(rows > 0, rows, 1.0) ** 2
    found = []
    for own in map(slice, ends, ends[1:]):
        se, df = stats.stratified_se(share[own], n[own], left[own], uneven[own])
        found.append((se, df, np.where(share[own] > 0, n[own], 0.0).sum(axis=0)))
    return tuple(np.array(part) for part in zip(*found, strict=True))
