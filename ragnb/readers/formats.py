"""The table of formats, and the way from any source to a raw table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import pandas as pd

from ragnb.errors import RagnbError, listing, place, unknown
from ragnb.files import digest
from ragnb.readers import jsonl, table
from ragnb.readers.document import Document, find_documents
from ragnb.readers.lossy import Lossy
from ragnb.readers.raw import Raw, Values, check_width, column, from_frame, from_records, stacked, text_series
from ragnb.schema import EvalCase


@dataclass(frozen=True)
class Format:
    """A file format: its name, the extensions it is known by, and its reader.

    Examples
    --------
    >>> [format.name for format in FORMATS]
    ['csv', 'tsv', 'excel', 'json', 'jsonl', 'parquet']
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Document, Lossy, bool], Raw]


FORMATS: tuple[Format, ...] = (
    Format("csv", (".csv",), table.read_csv),
    Format("tsv", (".tsv", ".tab"), table.read_tsv),
    Format("excel", (".xlsx", ".xlsm"), table.read_workbook),
    Format("json", (".json",), table.read_json),
    Format("jsonl", (".jsonl", ".ndjson"), jsonl.read),
    Format("parquet", (".parquet", ".pq"), table.read_parquet),
)

# A path (also a pattern or a folder of files of one format), a frame of any engine, an object with
# ``to_pandas()``, or records (mappings or EvalCase).
Source = Any


def load(
    source: Source, report: Lossy, *, format: str | None, strict: bool, encoding: str | None
) -> tuple[Raw, dict[str, object]]:
    """Return the raw table of a source, and where it came from: ``path, format, sha256, rows, lines, damaged``."""
    if format is not None and format not in {row.name for row in FORMATS}:
        raise unknown("format", format, [row.name for row in FORMATS])
    if isinstance(source, str | os.PathLike):
        documents = find_documents(source, encoding)
        raw = _read(documents, report, format, strict, str(source))
        origin: dict[str, object] = {"path": str(source), "sha256": digest([one.path for one in documents])}
    else:
        if format is not None:
            raise RagnbError(f"format={format!r} is for files; this source is a {type(source).__name__}")
        raw = Raw(_in_memory(source, report), "frame")
        origin = {"path": None, "sha256": None}
        # A frame that a reader of ours made remembers what its file lost; of any other nothing is known.
        read = getattr(source, "attrs", {}).get("source")
        if isinstance(read, Mapping):
            report.expect(int(read.get("lines", 0)), int(read.get("damaged", 0)))
    check_width(raw.columns, raw.file)
    if not len(raw):
        raise RagnbError(f"{place(raw.file)}holds no rows (columns: {listing(raw.columns)})")
    told = {"format": raw.format, "rows": len(raw), "lines": report.lines, "damaged": report.damaged}
    return raw, {**origin, **told}


def _read(documents: list[Document], report: Lossy, format: str | None, strict: bool, file: str) -> Raw:
    """Read one file, or several of one format as one table."""
    one = format_of(documents, format)
    raws = []
    for document in documents:
        own = Lossy()
        raws.append(one.read(document, own, strict))
        own.expect(0 if own.lines else len(raws[-1]))
        report.of_file(document.path.name if len(documents) > 1 else None, own)
    return stacked(raws, file) if len(raws) > 1 else raws[0]


def format_of(documents: list[Document], name: str | None) -> Format:
    """Return the format of some documents, which must all be of one."""
    formats = {one.name: (one, document) for document in documents for one in [_format_of(document, name)]}
    if len(formats) > 1:
        (_, first), (_, second) = list(formats.values())[:2]
        raise RagnbError(
            f"{place(second.path)}is of another format than {first.path.name}; "
            "files read as one need the same, such as 'scores/*.parquet'"
        )
    return next(iter(formats.values()))[0]


def _format_of(document: Document, name: str | None) -> Format:
    for row in FORMATS:
        if row.name == name or (name is None and document.suffix in row.suffixes):
            return row
    with document.open():  # tells a workbook or a database by its first bytes
        known = listing(suffix for row in FORMATS for suffix in row.suffixes)
    raise RagnbError(
        f"{place(document.path)}files that end in {document.suffix or 'nothing'!r} are not read; ragnb reads "
        f"{known} (each also .gz), or name the format: format='csv'"
    )


def _in_memory(source: Source, report: Lossy) -> dict[str, list[Any]]:
    if isinstance(source, pd.DataFrame):
        unnamed = source.index.nlevels == 1 and source.index.name is None
        numbered = pd.api.types.is_integer_dtype(source.index)
        report.add("left_out", "", "index without a name", len(source) * (unnamed and not numbered))
        return from_frame(source)
    frame = nw.from_native(source, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, nw.DataFrame):
        return {str(name): _cells(frame[name]) for name in frame.columns}
    if callable(getattr(source, "to_pandas", None)):
        return _in_memory(source.to_pandas(), report)
    if isinstance(source, Iterable) and not isinstance(source, Mapping | bytes):
        rows = list(source)
        if all(isinstance(row, EvalCase | Mapping) for row in rows):
            return from_records([r.model_dump() if isinstance(r, EvalCase) else r for r in rows])
    raise RagnbError(
        f"cannot read a {type(source).__name__}; expected a path, a frame, an object with to_pandas(), or a "
        "list of dicts or EvalCase"
    )


def _cells(cells: nw.Series[Any]) -> Values:
    """Return a column of another engine than pandas: whole where it is of one simple type, else as cells."""
    kind, values = cells.dtype, None
    if kind in (nw.String, nw.Categorical, nw.Enum):
        values = text_series(cells.cast(nw.String))
    elif (kind.is_numeric() or kind == nw.Boolean) and kind != nw.Decimal and kind not in (nw.Int128, nw.UInt128):
        values = pd.Series(cells.to_numpy()) if kind.is_float() or not cells.null_count() else None
    return cells.to_list() if values is None else column(values)
