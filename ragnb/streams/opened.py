"""Scores too many to hold: a query over their files under the canonical names, instead of a frame.

Parquet is scanned where it lies. JSON lines are read once and written as Parquet into a temporary folder, which
lives as long as the stream.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragnb.errors import RagnbError, place
from ragnb.files import digest
from ragnb.readers import haystack, trulens
from ragnb.readers.document import Document, find_documents
from ragnb.readers.formats import format_of
from ragnb.readers.lossy import Lossy
from ragnb.readers.names import apply_names, rename_map, system_names, tell_repeats
from ragnb.readers.numbers import declared
from ragnb.readers.raw import agree
from ragnb.schema import Metric, metric_list
from ragnb.streams.spilled import spill, spread
from ragnb.streams.typed import typed

if TYPE_CHECKING:
    import polars as pl

ROWS, BYTES = 200_000, 1 << 27
"""What is held in memory at most: rows of a query or of Parquet files, bytes of JSON lines."""


@dataclass
class Stream:
    """Rows as a query, and what a reader says about them.

    Attributes
    ----------
    frame : polars.LazyFrame
    rows : int
    origin : dict
        ``path, sha256, format, rows, lines, damaged``.
    lossy : list of dict
    folder : Path or None
        Where the rows lie, if not in the caller's own files; removed with the stream, or by `close`.
    """

    frame: pl.LazyFrame
    rows: int
    origin: dict[str, Any]
    lossy: list[dict[str, Any]] = field(default_factory=list)
    folder: Path | None = None

    def __post_init__(self) -> None:
        self._end = weakref.finalize(self, shutil.rmtree, self.folder, True) if self.folder else None

    def close(self) -> None:
        """Remove the folder that was made for the rows; the query cannot run any more."""
        if self._end is not None:
            self._end()


def stream_scores(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    metrics: Iterable[str | Metric] | None = None,
) -> Stream | None:
    """Return scores that are too many to hold as a query under their canonical names; None for all others.

    Parameters
    ----------
    source
        The path of Parquet or JSONL files (also a pattern or a folder), or a Polars LazyFrame. More than 200,000
        rows, of JSON lines more than 128 MB, are too many to hold.
    columns, encoding, metrics
        As for `read_scores`.

    Returns
    -------
    Stream or None
        Rows as `read_scores` gives them, with these differences: ``sample_id`` is made by the row's place; a
        cell that holds a list as text is parsed only where it is shown; ranges are checked in use.

    Raises
    ------
    RagnbError
        As `read_scores`; for files that differ in columns, and for tables of haystack and TruLens, which are
        laid out anew in memory only.

    Examples
    --------
    >>> stream_scores([{"faithfulness": 0.5}]) is None
    True
    """
    report = Lossy()
    stream = _opened(source, encoding, report)
    if stream is None:
        return None
    chosen = metric_list(metrics)
    _canonical(stream, report, columns, chosen)
    stream.lossy += report.rows
    report.expect(0 if report.lines else stream.rows)
    stream.origin |= {"lines": report.lines, "damaged": report.damaged}
    return stream


def _opened(source: Any, encoding: str | None, report: Lossy) -> Stream | None:
    """Return a query over the rows as they stand, if they are too many to hold."""
    if not isinstance(source, str | os.PathLike):
        import polars as pl

        rows = _count(source) if isinstance(source, pl.LazyFrame) else 0
        origin = {"path": None, "sha256": None, "format": "frame", "rows": rows}
        return Stream(source, rows, origin) if rows > ROWS else None
    documents = find_documents(source, encoding)
    stream = large(documents, report)
    if stream is not None:
        sha256 = digest([one.path for one in documents])
        stream.origin |= {"path": str(source), "sha256": sha256, "rows": stream.rows}
    return stream


def large(documents: Sequence[Document], report: Lossy) -> Stream | None:
    """Return a query over files that are too large to hold; None where they are not, or of another format."""
    import polars as pl

    if not any(one.suffix in (".parquet", ".pq", ".jsonl", ".ndjson") for one in documents):
        return None
    format = format_of(list(documents), None).name
    grown = [8 if one.path.name.lower().endswith(".gz") else 1 for one in documents]
    if format == "parquet" and max(grown) == 1:
        frame = scan_parquet([one.path for one in documents])
        rows = _count(frame)
        return Stream(frame, rows, {"format": format}) if rows > ROWS else None
    size = sum(one.path.stat().st_size * times for one, times in zip(documents, grown, strict=True))
    if format != "jsonl" or size <= BYTES:
        return None
    folder = Path(tempfile.mkdtemp(prefix="ragnb-"))
    stream = Stream(pl.LazyFrame(), 0, {"format": format}, folder=folder)
    parts = spill(documents, folder, report)
    try:
        stream.frame = pl.concat([pl.scan_parquet(part) for part in parts], how="diagonal_relaxed")
        stream.rows = _count(stream.frame)
        return stream
    except pl.exceptions.PolarsError as error:
        where = place(documents[0].path.parent)
        raise RagnbError(f"{where}a key holds values of types that do not go together ({error})") from error


def scan_parquet(paths: Sequence[Path]) -> pl.LazyFrame:
    """Return a query over Parquet files with the same columns.

    Raises
    ------
    RagnbError
        For a file that is no Parquet file, and one whose columns are not those of the first.
    """
    import polars as pl

    scans: list[pl.LazyFrame] = []
    for path in paths:
        scan = pl.scan_parquet(path)
        try:
            names = scan.collect_schema().names()
        except pl.exceptions.PolarsError as error:
            raise RagnbError(f"{place(path)}is no Parquet file ({str(error)[:120]})") from error
        if scans:
            agree(str(paths[0]), scans[0].collect_schema().names(), str(path), names, "parquet")
        scans.append(scan)
    if len({tuple(scan.collect_schema().items()) for scan in scans}) == 1:
        return pl.scan_parquet(list(paths))
    return pl.concat(scans, how="diagonal_relaxed")


def _item(frame: pl.LazyFrame, what: pl.Expr) -> Any:
    return frame.select(what).collect(engine="streaming").item()


def _count(frame: pl.LazyFrame) -> int:
    import polars as pl

    return int(_item(frame, pl.len()))


def _canonical(
    stream: Stream, report: Lossy, picks: Mapping[str, str] | None, metrics: Sequence[str | Metric] | None
) -> None:
    """Give the query the canonical names, and cells of the types that the frame contract says."""
    import polars as pl

    file = str(stream.origin["path"] or "the frame")
    frame = stream.frame
    if isinstance(results := frame.collect_schema().get("results"), pl.Struct):
        frame = frame.with_columns(spread(results)).drop("results")
    kinds = frame.collect_schema()
    have = kinds.names()
    if haystack.sniff(set(have)) or trulens.sniff(set(have)):
        raise RagnbError(
            f"{place(file)}{stream.rows:,} rows of a table of TruLens or haystack are more than is laid out anew "
            "at once; read its parts with rn.read_scores and write them as Parquet"
        )
    own = [metric for metric in metrics or () if isinstance(metric, Metric)]

    def filled(name: str) -> pl.Expr:
        cell = pl.col(name)
        return cell.is_not_null() & (cell.str.strip_chars() != "" if kinds[name] == pl.String else pl.lit(True))

    def clash(*some: str) -> str | None:
        text = {n: pl.col(n).cast(pl.String).str.strip_chars() for n in some if kinds[n] in (pl.String, pl.Int64)}
        cells = [pl.when(filled(n)).then(text.get(n, pl.lit(n))) for n in some]  # two cells of no text differ
        row = _item(frame, (pl.concat_list(cells).list.drop_nulls().list.n_unique() > 1).arg_true().first())
        return None if row is None else f"{file}, row {row + 1}: "

    names = rename_map(have, picks=picks, metrics=own, file=file, clash=clash)
    for target in [target for target, n in Counter(names.values()).items() if n > 1]:
        first, *others = (name for name in names if names[name] == target)
        cells = pl.coalesce(pl.when(filled(name)).then(pl.col(name)) for name in (first, *others))
        frame = frame.with_columns(cells.alias(first)).drop(others)
        report.add("mapped", ", ".join(others), f"{target}, where {first!r} is empty", stream.rows)
        have = [name for name in have if name not in others]
        names = {name: meant for name, meant in names.items() if name in have}
    renamed = Lossy()
    named = apply_names({name: [name] for name in have}, names, renamed)
    report.rows += [{**row, "n": stream.rows} for row in renamed.rows]
    frame = frame.select(pl.col(str(was[0])).alias(name) for name, was in named.items())
    columns = list(named)

    def distinct(*some: str) -> int:
        return int(_item(frame, pl.struct(some).hash().n_unique()))

    def is_count(name: str) -> bool:
        odd = ~pl.col(name).cast(pl.String).str.contains(r"^\d+(\.0)?$")
        return not _item(frame, odd.fill_null(True).any())

    told = system_names(columns, stream.rows, distinct, is_count, report)
    frame, columns = frame.rename(told), [told.get(name, name) for name in columns]
    tell_repeats(columns, stream.rows, distinct, report)
    if "sample_id" not in columns:
        made = (pl.int_range(pl.len(), dtype=pl.Int64) + 1).cast(pl.String).alias("sample_id")
        frame, columns = frame.with_columns(made).select("sample_id", *columns), ["sample_id", *columns]
        report.add("made", "sample_id", "position of the row", stream.rows)
    stream.frame = typed(frame, declared(metrics, columns), file, report)
