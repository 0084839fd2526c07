"""Scores too many to hold: a query over their files under the canonical names, instead of a frame.

Parquet is scanned where it lies. JSON lines are read once, block by block, and written as Parquet into a temporary
folder, which lives as long as the stream. Cells are made what the frame contract says by the query.
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

import pandas as pd

from ragnb.errors import RagnbError, listing, place
from ragnb.files import digest
from ragnb.readers import jsonl
from ragnb.readers.cells import MISSING_WORDS, as_text
from ragnb.readers.contract import CONTEXTS, IDS, TEXTS, case_cells
from ragnb.readers.document import Document, find_documents
from ragnb.readers.formats import format_of
from ragnb.readers.layouts import haystack, trulens
from ragnb.readers.lossy import Lossy
from ragnb.readers.names import apply_names, rename_map, system_names, tell_repeats
from ragnb.readers.numbers import ROUNDED, declared, other_values
from ragnb.readers.raw import Raw, agree
from ragnb.schema import CLIP, Metric, metric_list

if TYPE_CHECKING:
    import polars as pl

# What is held in memory at most: rows of a query or of Parquet files, bytes of JSON lines.
ROWS, BYTES = 200_000, 1 << 27
_NUMBER = r"^[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d{1,4})?$"


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


def spill(documents: Sequence[Document], folder: Path, report: Lossy) -> list[Path]:
    """Write the records of JSONL files as Parquet files into a folder, in their order, and return them.

    Raises
    ------
    RagnbError
        As the reader of JSONL raises; for a file without a metric that the first one has.
    """
    parts: list[Path] = []
    first: list[str] | None = None
    for document in documents:
        own, names = Lossy(), dict[str, None]()
        for frame in map(_flat, jsonl.frames(document, own, {})):
            names.update(dict.fromkeys(frame.columns))
            parts.append(folder / f"{len(parts):06}.parquet")
            frame.write_parquet(parts[-1], compression="lz4")
        report.of_file(document.path.name, own)
        first = list(names) if first is None else first
        agree(str(documents[0].path), first, str(document.path), list(names), "jsonl")
    return parts


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Spread ``results`` over columns; write what else is nested as text, but for lists of texts."""
    import polars as pl

    if isinstance(frame.schema.get("results"), pl.Struct):
        frame = frame.with_columns(spread(frame.schema["results"])).drop("results")
    nested = [n for n, kind in frame.schema.items() if kind.is_nested() and kind != pl.List(pl.String)]
    return frame.with_columns(
        pl.Series(name, [as_text(cell) for cell in frame[name].to_list()], dtype=pl.String) for name in nested
    )


def spread(results: Any) -> list[pl.Expr]:
    """Return the columns that a struct ``results`` (metric → score, status, reason) stands for."""
    import polars as pl

    made = []
    for metric in results.fields:
        parts = [part.name for part in getattr(metric.dtype, "fields", [])]
        for part, name in (("score", ""), ("status", "__status"), ("reason", "__reason")):
            if part in parts:
                value = pl.col("results").struct.field(metric.name).struct.field(part)
                made.append(value.alias(f"{metric.name}{name}"))
    return made


def typed(frame: pl.LazyFrame, metrics: Mapping[str, Metric], file: str, report: Lossy) -> pl.LazyFrame:
    """Return a query whose metrics are floats, and whose identifiers and case texts are texts.

    Values that are taken for an end of their range are counted in the report, by one query over all metrics.

    Raises
    ------
    RagnbError
        For a text in a metric's column that is no number, with the sample.

    Examples
    --------
    >>> import polars as pl
    >>> from ragnb.schema import METRICS
    >>> query = pl.LazyFrame({"sample_id": [7.0], "faithfulness": ["True"]})
    >>> typed(query, {"faithfulness": METRICS["faithfulness"]}, "s.parquet", Lossy()).collect().rows()
    [('7', 1.0)]
    """
    import polars as pl

    made: list[pl.Expr] = []
    moved: dict[tuple[str, float], pl.Expr] = {}
    worded = []
    for name, kind in frame.collect_schema().items():
        if name in metrics:
            if isinstance(kind, pl.String | pl.Categorical | pl.Enum):
                worded.append(name)
            value = _number(name, kind)
            if metrics[name].bounded and (kind.is_numeric() or name in worded):
                low, high = float(metrics[name].low), float(metrics[name].high)
                moved[name, low] = (value < low) & (value >= low - CLIP)
                moved[name, high] = (value != high) & (value >= high - ROUNDED) & (value <= high + CLIP)
                value = pl.when(moved[name, low]).then(low).when(moved[name, high]).then(high).otherwise(value)
            made.append(value.alias(name))
        elif name in IDS or name in TEXTS:
            made.append(text_cells(name, kind).alias(name))
    for name in worded:
        lost = _number(name, pl.String()).is_null() & ~_word(name).is_in(list(MISSING_WORDS))
        found = frame.filter(lost).select(name, "sample_id").head(1).collect(engine="streaming")
        if len(found):
            raise RagnbError(
                f"{place(file)}column {name!r}: found {found[name][0]!r} (sample_id {found['sample_id'][0]!r}), "
                "expected a number or an empty cell"
            )
    counts = [near.sum().alias(str(i)) for i, near in enumerate(moved.values())]
    counted = frame.select(counts).collect(engine="streaming").row(0) if counts else ()
    for (name, end), n in zip(moved, counted, strict=True):
        report.add("clipped", name, f"within {CLIP:g} of {end:g}", n)
    return frame.with_columns(made)


def _word(name: str) -> pl.Expr:
    import polars as pl

    return pl.col(name).cast(pl.String).str.strip_chars().str.to_lowercase()


def _number(name: str, kind: pl.DataType) -> pl.Expr:
    """Return a column of numbers, truth values or words for them as floats; any other as it is."""
    import polars as pl

    value = pl.col(name)
    if isinstance(kind, pl.String | pl.Categorical | pl.Enum):
        word = _word(name)
        number = pl.when(word.str.contains(_NUMBER)).then(word).cast(pl.Float64, strict=False)
        value = pl.when(word == "true").then(1.0).when(word == "false").then(0.0).otherwise(number)
    elif kind.is_numeric() or kind in (pl.Boolean, pl.Null):
        value = value.cast(pl.Float64).fill_nan(None)
    return value


def text_cells(name: str, kind: pl.DataType) -> pl.Expr:
    """Return a column of identifiers or texts as texts; null where a cell holds none."""
    import polars as pl

    value = pl.col(name)
    text = value if kind == pl.String else value.cast(pl.String)
    if kind.is_nested():
        joined = pl.when(value.list.len() > 0).then(value.list.join("\n"))
        return joined if kind == pl.List(pl.String) and name in TEXTS else value
    if name in TEXTS:
        return pl.when(~text.str.contains(r"^\s*(?:NaN|<NA>)\s*$")).then(text)
    if kind.is_float():
        whole = value.cast(pl.Int64, strict=False).cast(pl.String)
        return pl.when(value.is_not_nan()).then(pl.when(value == value.round()).then(whole).otherwise(text))
    return pl.when(text != "").then(text) if kind == pl.String else text


def shown_rows(rows: pl.DataFrame) -> pd.DataFrame:
    """Return a few rows of a stream as a pandas frame whose cells are those that `read_scores` gives.

    Examples
    --------
    >>> import polars as pl
    >>> shown_rows(pl.DataFrame({"retrieved_contexts": ["['a', 'b']"]}))["retrieved_contexts"].tolist()
    [['a', 'b']]
    """
    raw = Raw({name: rows[name].to_list() for name in rows.columns}, "stream")
    case_cells(raw, Lossy())
    frame = pd.DataFrame({name: other_values(cells, True) for name, cells in raw.columns.items()})
    for name, kind in rows.schema.items():
        if kind.is_numeric() and name not in IDS and name not in CONTEXTS:
            frame[name] = pd.to_numeric(frame[name])
    return frame


def groups_listed(frame: pl.LazyFrame, column: str) -> str:
    """Word the values of a column of a stream, the first of them by name."""
    import polars as pl

    found = frame.select(pl.col(column).cast(pl.String).unique().drop_nulls().sort().head(1000))
    return listing(found.collect(engine="streaming")[column].to_list())
