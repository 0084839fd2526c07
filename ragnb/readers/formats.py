"""File formats, and the conversion of any source to a raw table."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import dropwhile, zip_longest
from typing import Any

import narwhals as nw

from ragnb.errors import RagnbError, listing, place, require, unknown
from ragnb.files import digest
from ragnb.polars import pl
from ragnb.readers import jsonl
from ragnb.readers.cells import GUARD_COLUMN, NUMBER
from ragnb.readers.document import Document, find_documents
from ragnb.readers.frames import from_engine, in_memory
from ragnb.readers.names import meanings
from ragnb.readers.raw import Lossy, Raw, Values, check_width, clean_text, from_records, refuse_twice, stacked

LONGEST_CELL = 1 << 27
# The most characters that Excel keeps of a cell.
_EXCEL_CELL = 32_767
_HEAD = 1 << 16
_UNNAMED = re.compile(r"\s*|Unnamed: \d+(_level_\d+)?")
_SEPARATOR_LINE = re.compile(r"sep=([,;|\t])(?=[\r\n])")
_SAMPLE = {"question", "answer"}
_MEANS = {"average", "mean", "avg", "overall", "total", "平均", "平均值", "均值", "总计", "合计", "合計"}
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, UnicodeError, RuntimeError)


def _separated(separators: str, document: Document, report: Lossy, strict: bool) -> Raw:
    """Read a file separated by the first of these, or by another that its first line tells of."""
    text = document.text()
    if line := _SEPARATOR_LINE.match(text):  # Excel writes such a line, and does not show it
        text, separators = text[line.end(1) :], line[1]
    head = re.sub(r'"[^"]*"', "", text[:_HEAD]).lstrip("\r\n").splitlines()[:1] or [""]
    separator = max(separators, key=lambda s: (len(meanings(head[0].split(s))), head[0].count(s)))
    rows = _rows(document, text, separator, report)
    return _laid(document, rows, "tsv" if separator == "\t" else "csv", report)


def _rows(document: Document, text: str, separator: str, report: Lossy) -> list[tuple[int, list[str]]]:
    """Return the cells of each row, with its line."""
    before = csv.field_size_limit(LONGEST_CELL)
    lines = list(io.StringIO(text, newline=""))
    rows: list[tuple[int, list[str]]] = []
    at = early = 0
    try:
        while at < len(lines):
            rest, start = map(lines.__getitem__, range(at, len(lines))), at
            reader = csv.reader(rest, delimiter=separator, strict=True)
            try:
                for row in reader:
                    check_width(row, document.path)
                    rows.append((at + 1, row))
                    at = start + reader.line_num
            except csv.Error as error:
                # A quote may close before its cell ends, as pandas takes it, but not stay open.
                row = next(csv.reader([lines[at].rstrip("\r\n") + "\n"], delimiter=separator))
                if separator != "\t" or row[-1].endswith("\n"):
                    raise RagnbError(
                        f"{place(document.path, at + 1)}the row that starts here is not valid CSV ({error}); "
                        "look for a quote that is not closed, or one within a quoted cell, which is written twice"
                    ) from error
                at, early = at + 1, early + 1
                rows.append((at, row))
    finally:
        csv.field_size_limit(before)
    why = "rows with a quote that closes before its cell ends, read as pandas reads them"
    report.add("mapped", None, why, early)
    return rows


def _read_workbook(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read the one sheet of a workbook whose first row names most columns that are known, as its CSV would be."""
    cells = _sheets(document)
    sheets = {name: [list(map(_excel_text, row)) for row in rows] for name, rows in cells.items()}
    known = {name: len(meanings(next(filter(any, rows), []))) for name, rows in sheets.items()}
    best = [name for name, n in known.items() if n == max(known.values())]
    if len(best) > 1:
        raise RagnbError(
            f"{place(document.path)}the sheets {listing(best)} could each be the table; pass one of them as "
            f"pandas.read_excel(path, sheet_name={best[0]!r}, engine='calamine'), or save it as CSV"
        )
    report.add("left_out", None, f"sheets beside {listing(best)}", len(sheets) - 1)
    rows = [row if any(row) else [] for name in best for row in sheets[name]]
    cut = sum(len(cell) >= _EXCEL_CELL for row in rows for cell in row)
    report.add("kept", None, f"cells of {_EXCEL_CELL:,} characters, where Excel cuts", cut)
    return _laid(document, list(enumerate(rows, 1)), "excel", report)


def _excel_text(cell: Any) -> str:
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _sheets(document: Document) -> dict[str, list[list[Any]]]:
    """Return the rows of each sheet that is not empty, from the first row on."""
    calamine, path = require("python_calamine", extra="readers"), document.path
    if path.name.startswith("~$"):
        name = path.name.removeprefix("~$")
        raise RagnbError(f"{place(path)}is the lock file of an open workbook, not the workbook; read {name!r}")
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                size = sum(member.file_size for member in packed.infolist())
                if size > document.most_unpacked:
                    raise RagnbError(
                        f"{place(path)}unpacks to {size >> 20} MB; save the sheet as CSV if you trust it"
                    )
                if damaged := packed.testzip():  # calamine does not compare checksums
                    raise zipfile.BadZipFile(f"{damaged} has a wrong checksum")
        book = calamine.CalamineWorkbook.from_path(path)
        sheets = {name: book.get_sheet_by_name(name).to_python(skip_empty_area=False) for name in book.sheet_names}
    except (*_DAMAGED, calamine.CalamineError) as error:
        raise RagnbError(
            f"{place(path)}is not a readable workbook ({error}), or is damaged; open it in a spreadsheet and "
            "save it as CSV, or take another copy"
        ) from error
    return {name: rows for name, rows in sheets.items() if rows}


def _laid(document: Document, table: list[tuple[int, list[str]]], format: str, report: Lossy) -> Raw:
    """Return rows of texts, each with its line, as columns under the names of the first that is not blank."""
    if not table:
        raise RagnbError(f"{place(document.path)}the file is empty")
    (_, names), *rows = list(dropwhile(lambda row: not row[1], table)) or table
    header, width = [name.strip() for name in names], len(names)
    kept = [row for row in rows if row[1] and not all(cell in ("...", "…") for cell in row[1])]
    report.add("left_out", None, "rows that a printed table elides", sum(bool(row) for _, row in rows) - len(kept))
    filled = [(line, row) for line, row in kept if any(cell.strip() for cell in row)]
    report.add("left_out", None, "blank rows", len(kept) - len(filled))
    while len(filled) > 1 and _is_mean(filled[-1][1]):
        report.add("left_out", None, f"line {filled.pop()[0]}, which names no sample but a mean or total")
    if filled and (index := _index_names(header, filled[0][1])):
        header = [index.get(i, name) for i, name in enumerate(header)]
        report.add("left_out", None, "second header row", 1)
        del filled[0]
    named = [name for name in header if not _UNNAMED.fullmatch(name)]
    if not named:
        raise RagnbError(f"{place(document.path, 1)}the first line names no column")
    refuse_twice(named, place(document.path, 1))
    guarded = GUARD_COLUMN in named
    report.add("left_out", GUARD_COLUMN, "guards against formulas, taken off", len(filled) * guarded)
    columns: dict[str, Values] = {}
    for i, (name, *cells) in enumerate(zip_longest(header, *(row for _, row in filled), fillvalue="")):
        if guarded:
            name, cells = name.removeprefix("'"), [cell.removeprefix("'") for cell in cells]
        if i < width and not _UNNAMED.fullmatch(name):
            columns[name] = cells
        elif i < width and all(re.fullmatch(r"[-+]?\d*(\.0)?", cell.strip()) for cell in cells):
            report.add("left_out", "", f"unnamed index, column {i + 1}", len(cells))
        elif i < width:
            columns[f"column_{i + 1}"] = cells
            report.add("kept", f"column_{i + 1}", "a column without a name", len(cells))
    columns.pop(GUARD_COLUMN, None)
    uneven = None
    for line, row in filled:
        if len(row) < width or "".join(row[width:]).strip():
            uneven = uneven or RagnbError(
                f"{place(document.path, line)}found {len(row)} cells, expected {width}; "
                "a cell with a comma in it needs quotes around it"
            )
    return Raw(columns, format, str(document.path), [line for line, _ in filled], uneven, typed=False)


def _is_mean(row: list[str]) -> bool:
    """Whether all that a row has beside numbers is a word for a mean or a total."""
    words = [cell.strip().casefold() for cell in row if cell.strip()]
    named = [word for word in words if word in _MEANS]
    return len(named) == 1 < len(words) and all(NUMBER.fullmatch(w.rstrip("%")) for w in words if w not in named)


def _index_names(header: list[str], first: list[str]) -> dict[int, str]:
    """Return the index names that pandas writes in a second header row, by position."""
    unnamed = {i for i, name in enumerate(header) if _UNNAMED.fullmatch(name)}
    filled = {i for i, cell in enumerate(first) if cell.strip() not in ("", "...", "…")}
    words = filled and all(not re.fullmatch(r"[-+.\d\s]+", first[i]) for i in filled)
    return {i: first[i] for i in filled} if words and filled <= unnamed and len(header) > len(filled) else {}


def _read_lines(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read JSON lines; a file that begins as a JSON list, and is one, as that list."""
    with document.open() as stream:
        listed = stream.read(1 << 10).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    with suppress(RagnbError):
        if listed:
            return _read_json(document, report, strict)
    return jsonl.read(document, report, strict)


def _read_json(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read a list of records, a dict of columns, or a split table (``columns`` and ``data``)."""
    text = document.text()
    if not text.strip():
        raise RagnbError(f"{place(document.path)}the file is empty")
    try:
        value = json.loads(text, parse_constant=float)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and text.lstrip().startswith("{") and "\n" in text.strip():
            return jsonl.read(document, report, strict)
        raise RagnbError(
            f"{place(document.path, error.lineno)}is not valid JSON ({error.msg}); JSON Lines is format='jsonl'"
        ) from error
    except (RecursionError, ValueError) as error:
        raise RagnbError(f"{place(document.path)}is not readable JSON ({error})") from error
    if found := jsonl.repeated_key(text.encode("utf-8", "surrogatepass"), value):
        line = text.count("\n", 0, found[1]) + 1
        raise RagnbError(f"{place(document.path, line, found[0])}appears twice in one object; keep one of the two")
    cleaned = clean_text(value) if r"\ud" in text.lower() else value
    columns = _columns_of(document, cleaned, report)
    rows = list(zip(*columns.values(), strict=True))
    replaced = 0 if cleaned == value else sum("\ufffd" in str(row) for row in rows)
    report.add("unparsed", None, "records with lone surrogates, replaced by U+FFFD", replaced)
    report.expect(len(rows), replaced)
    return Raw(columns, "json", str(document.path))


def _columns_of(document: Document, value: Any, report: Lossy) -> dict[str, Values]:
    if isinstance(value, dict) and isinstance(value.get("data"), list):
        rows, names = value["data"], value.get("columns")
        if isinstance(names, list) and all(isinstance(r, list) and len(r) == len(names) for r in rows):
            return {str(name): [row[i] for row in rows] for i, name in enumerate(names)}
        if isinstance(value.get("schema"), dict):
            index = value["schema"].get("primaryKey")
            value = [{k: v for k, v in r.items() if [k] != index} if isinstance(r, dict) else r for r in rows]
    if isinstance(value, dict):
        value = _records_in(document, value, report) or value
    if isinstance(value, list):
        for i, row in enumerate(value):
            if not isinstance(row, dict):
                raise RagnbError(
                    f"{document.path}, record {i + 1}: found {type(row).__name__}, expected an object"
                )
        return from_records(value, document.path)
    cells = list(value.values()) if isinstance(value, dict) else []
    if cells and all(isinstance(c, list) for c in cells) and len({len(c) for c in cells}) == 1:
        return {str(name): list(column) for name, column in value.items()}
    indexed = cells and all(isinstance(c, dict) for c in cells) and len({tuple(c) for c in cells}) == 1
    if indexed and (meanings(value) or not meanings(cells[0])):
        return {str(name): list(column.values()) for name, column in value.items()}
    found = f"an object with the keys {listing(value)}" if isinstance(value, dict) else type(value).__name__
    raise RagnbError(
        f"{place(document.path)}found {found}; expected a list of records (also under a key of its own), an "
        "object of columns of one length, or an object with 'columns' and 'data'"
    )


def _records_in(
    document: Document, value: dict[str, Any], report: Lossy, nested: bool = False
) -> list[Any] | None:
    """Return the records that an object holds: itself, those under the one key with samples, or those by id."""
    told = meanings(value)
    if not nested and isinstance(value.get(told.get("question", "")), str):
        return [value]
    lists = {k: v for k, v in value.items() if isinstance(v, list) and v and all(isinstance(r, dict) for r in v)}
    keys = [key for key, rows in lists.items() if len(lists) == 1 or _SAMPLE & meanings(rows[0]).keys()]
    if len(keys) > 1:
        raise RagnbError(f"{place(document.path)}contains records under {listing(keys)}; keep one of these lists")
    if keys and {told[name] for name in _SAMPLE & told.keys()} <= {*lists}:
        rest = [key for key in value if key != keys[0]]
        report.add("left_out", None, f"keys beside {keys[0]!r}: {listing(rest)}", len(rest))
        return lists[keys[0]]
    inner = [] if nested or told else [v for v in value.values() if isinstance(v, dict)]
    if inner and len(inner) == len(value) and all(_SAMPLE & meanings(record).keys() for record in inner):
        return [{"sample_id": name, **record} for name, record in value.items()]
    return next((records for one in inner if (records := _records_in(document, one, report, True))), None)


def _read_parquet(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read a Parquet file."""
    try:
        frame = pl.read_parquet(io.BytesIO(document.data()), use_pyarrow=False)
    except pl.exceptions.PolarsError as error:
        raise RagnbError(f"{place(document.path)}is not a Parquet file ({str(error)[:120]})") from error
    columns = from_engine(nw.from_native(frame))
    for name in [n for n in columns if re.fullmatch(r"__index_level_\d+__", n)]:
        report.add("left_out", name, "index", len(columns.pop(name)))
    return Raw(columns, "parquet", str(document.path))


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
    Format("csv", (".csv",), partial(_separated, ",;\t|")),
    Format("tsv", (".tsv", ".tab"), partial(_separated, "\t,;|")),
    Format("excel", (".xlsx", ".xlsm"), _read_workbook),
    Format("json", (".json",), _read_json),
    Format("jsonl", (".jsonl", ".ndjson"), _read_lines),
    Format("parquet", (".parquet", ".pq"), _read_parquet),
)

# A path (also a pattern or a folder of files of one format), a frame of any engine, an object with
# ``to_pandas()``, or records (mappings or EvalCase).
Source = Any


def load(
    source: Source, report: Lossy, *, format: str | None, strict: bool, encoding: str | None
) -> tuple[Raw, dict[str, object]]:
    """Return the raw table of a source, and where it came from: ``path, format, sha256, rows, lines, damaged``."""
    if isinstance(source, str | os.PathLike):
        documents = find_documents(source, encoding)
        reader, raws = format_of(documents, format), []
        for document in documents:
            lossy = Lossy()
            raws.append(reader.read(document, lossy, strict))
            lossy.expect(0 if lossy.lines else len(raws[-1]))
            report.of_file(document.path.name if len(documents) > 1 else None, lossy)
        raw = stacked(raws, str(source)) if len(raws) > 1 else raws[0]
        origin: dict[str, object] = {"path": str(source), "sha256": digest([one.path for one in documents])}
    else:
        if format is not None:
            raise RagnbError(f"format={format!r} is for files; this source is a {type(source).__name__}")
        raw = Raw(in_memory(source, report), "frame")
        origin = {"path": None, "sha256": None}
        # A frame that a reader of ours made remembers what its file lost; of any other nothing is known.
        read = getattr(source, "attrs", {}).get("source")
        if isinstance(read, Mapping):
            report.expect(int(read.get("lines", 0)), int(read.get("damaged", 0)))
    check_width(raw.columns, raw.file)
    if not len(raw):
        raise RagnbError(f"{place(raw.file)}has no rows (columns: {listing(raw.columns)})")
    told = {"format": raw.format, "rows": len(raw), "lines": report.lines, "damaged": report.damaged}
    return raw, {**origin, **told}


def format_of(documents: list[Document], name: str | None) -> Format:
    """Return the format of some documents, which must all be of one."""
    if name not in (None, *(row.name for row in FORMATS)):
        raise unknown("format", name, [row.name for row in FORMATS])
    formats: dict[Format, Document] = {}
    for document in documents:
        rows = [row for row in FORMATS if row.name == name or (name is None and document.suffix in row.suffixes)]
        if not rows:
            with document.open():  # tells a workbook or a database by its first bytes
                known = listing(suffix for row in FORMATS for suffix in row.suffixes)
            raise RagnbError(
                f"{place(document.path)}files that end in {document.suffix or 'nothing'!r} are not read; ragnb "
                f"reads {known} (each also .gz), or name the format: format='csv'"
            )
        formats.setdefault(rows[0], document)
    if len(formats) > 1:
        first, second, *_ = formats.values()
        raise RagnbError(
            f"{place(second.path)}is of another format than {first.path.name}; "
            "files read as one need the same, such as 'scores/*.parquet'"
        )
    return next(iter(formats))
