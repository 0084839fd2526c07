"""Which file is of which format, and all of them read as columns."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import narwhals as nw

from ragnb.errors import (
    RagnbError,
    listing,
    place,
    unknown,
)
from ragnb.files import digest
from ragnb.polars import pl
from ragnb.readers.documents import Document, find_documents, naming_its_folder
from ragnb.readers.evallog import check_unpacked, read_eval
from ragnb.readers.frames import from_engine, in_memory
from ragnb.readers.jsons import read_json, read_lines
from ragnb.readers.parquet import text_bytes, unpacked_bytes
from ragnb.readers.raw import (
    Lossy,
    Raw,
    check_width,
    stacked,
)
from ragnb.readers.reading import remembered
from ragnb.readers.tables import read_workbook, separated


def _read_parquet(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read a Parquet file, unless it is a small one that unpacks to a huge one."""
    data = document.data()
    check_unpacked(document, unpacked_bytes(data) or 0)
    try:
        frame = pl.read_parquet(io.BytesIO(data), use_pyarrow=False)
    except pl.exceptions.PolarsError as error:
        raise RagnbError(
            f"{place(document.path)}is not a Parquet file ({str(error)[:120]})"
        ) from error
    check_unpacked(document, text_bytes(frame))
    columns = from_engine(nw.from_native(frame))
    # The names that pandas gives the levels of an index without names.
    unnamed_levels = [name for name in columns if re.fullmatch(r"__index_level_\d+__", name)]
    for name in unnamed_levels:
        cells = columns.pop(name)
        report.add("left_out", name, "index", len(cells))
    return Raw(columns, "parquet", str(document.path))


def _read_qrels(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read relevance judgements as TREC writes them: query, iteration, passage, relevance."""
    rows: list[list[str]] = []
    lines: list[int] = []
    for line, text in enumerate(document.text().splitlines(), 1):
        row = text.split()
        if not row:
            continue
        # Any text may be called .txt: four fields with a whole number at the end tell qrels.
        if len(row) != 4 or not re.fullmatch(r"-?\d+", row[3]):
            raise RagnbError(
                f"{place(document.path, line)}found {' '.join(row)[:80]!r}, expected query, iteration, passage "
                "and relevance, as TREC writes qrels; if it is a table, rename it "
                f"{document.path.stem}.csv (format='csv')"
            )
        rows.append(row)
        lines.append(line)
    names = ("query_id", "iteration", "passage_id", "relevance")
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    return Raw(columns, "qrels", str(document.path), lines, typed=False)


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


# Where the first line does not decide between the separators of a table, the first counts: that of the extension.
FORMATS: tuple[Format, ...] = (
    Format("csv", (".csv",), partial(separated, ",;\t|")),
    Format("tsv", (".tsv", ".tab"), partial(separated, "\t,;|")),
    Format("excel", (".xlsx", ".xlsm"), read_workbook),
    Format("json", (".json",), read_json),
    Format("jsonl", (".jsonl", ".ndjson"), read_lines),
    Format("parquet", (".parquet", ".pq"), _read_parquet),
)
# What single tools write, in a form of their own.
_FORMATS = (
    *FORMATS,
    Format("eval", (".eval",), read_eval),
    Format("qrels", (".qrels", ".qrel", ".txt"), _read_qrels),
)

# A path (also a pattern or a folder of files of one format), a frame of any engine, an object with
# ``to_pandas()``, or records (mappings or EvalCase).
Source = Any


def load(
    source: Source,
    report: Lossy,
    *,
    format: str | None = None,
    strict: bool = False,
    encoding: str | None = None,
) -> tuple[Raw, dict[str, object]]:
    """Return the raw table of a source, and where it came from: ``path, format, sha256, rows, lines, damaged``."""
    origin: dict[str, object]
    if isinstance(source, str | os.PathLike):
        documents = find_documents(source, encoding)
        raw = _read_documents(source, documents, report, format=format, strict=strict)
        origin = {
            "path": str(source),
            "sha256": digest([document.path for document in documents]),
        }
    else:
        if format is not None:
            raise RagnbError(
                f"format={format!r} is for files; this source is a {type(source).__name__}"
            )
        raw = Raw(in_memory(source, report), "frame")
        origin = {"path": None, "sha256": None}
        # A frame that a reader of ours made remembers what its file lost, and what its tool declares; of any other
        # nothing is known.
        reading = remembered(source)
        if reading.origin:
            lines = int(reading.origin.get("lines", 0))
            damaged = int(reading.origin.get("damaged", 0))
            report.expect(lines, damaged)
        raw.scales = reading.scales(raw.columns)
    check_width(raw.columns, raw.file)
    if not len(raw):
        raise RagnbError(f"{place(raw.file)}has no rows (columns: {listing(raw.columns)})")
    origin |= {
        "format": raw.format,
        "rows": len(raw),
        "lines": report.lines,
        "damaged": report.damaged,
    }
    return raw, origin


def _read_documents(
    source: str | os.PathLike[str],
    documents: list[Document],
    report: Lossy,
    *,
    format: str | None,
    strict: bool,
) -> Raw:
    """Return the files of a source, which all are of one format, as one table."""
    raws = []
    with naming_its_folder(source):
        reader = format_of(documents, format)
        for document in documents:
            lossy = Lossy()
            raw = reader.read(document, lossy, strict)
            raws.append(raw)
            # A reader that does not count records has lost none: each record is a row.
            if not lossy.lines:
                lossy.expect(len(raw))
            name = document.path.name if len(documents) > 1 else None
            report.of_file(name, lossy)
        if len(raws) == 1:
            return raws[0]
        return stacked(raws, str(source))


def format_of(documents: list[Document], name: str | None) -> Format:
    """Return the format of some documents, which must all be of one."""
    names = [row.name for row in _FORMATS]
    if name is not None and name not in names:
        raise unknown("format", name, names)
    formats: dict[Format, Document] = {}  # with the first document of each
    for document in documents:
        formats.setdefault(_format_of_one(document, name), document)
    if len(formats) > 1:
        first, second, *_ = formats.values()
        raise RagnbError(
            f"{place(second.path)}is of another format than {first.path.name}; "
            "files read as one need the same, such as 'scores/*.parquet'"
        )
    return next(iter(formats))


def _format_of_one(document: Document, name: str | None) -> Format:
    """Return the format that is named, else that of the extension."""
    for row in _FORMATS:
        if row.name == name or (name is None and document.suffix in row.suffixes):
            return row
    if document.suffix in (".yaml", ".yml"):
        raise RagnbError(
            f"{place(document.path)}is a scenario, which names the files to read; run ragnb check "
            f"{document.path}, or rn.load_scenario"
        )
    # Opening it refuses a workbook or a database by its first bytes, with better advice.
    with document.open():
        known = listing(suffix for row in _FORMATS for suffix in row.suffixes)
    ending = document.suffix or "nothing"
    raise RagnbError(
        f"{place(document.path)}files that end in {ending!r} are not read; ragnb "
        f"reads {known} (each also .gz); rename the file by its format, such as "
        f"{Path(document.path.name).stem}.csv (format='csv')"
    )
