"""Files on disk: found, unpacked, decoded, and each format of them parsed to a raw table.

Of JSON lines a bad line loses only itself. Python's parser tells a key given twice, and where a line is no JSON.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, count, dropwhile, islice, zip_longest
from pathlib import Path
from typing import IO, Any

import narwhals as nw

from ragnb.errors import (
    MissingExtraError,
    RagnbError,
    did_you_mean,
    listing,
    place,
    require,
    unknown,
)
from ragnb.files import digest, matched
from ragnb.polars import pl
from ragnb.readers.cells import GUARD_COLUMN, as_id
from ragnb.readers.encodings import likely_encoding
from ragnb.readers.failures import failure_columns
from ragnb.readers.frames import from_engine, in_memory
from ragnb.readers.names import meanings, plain
from ragnb.readers.owner import stacked_lists, unlisted
from ragnb.readers.parquet import text_bytes, unpacked_bytes
from ragnb.readers.raw import (
    LISTED_LINES,
    MOST_COLUMNS,
    Lossy,
    Raw,
    check_width,
    clean_text,
    from_records,
    refuse_twice,
    stacked,
    text_series,
)
from ragnb.readers.rows import check_list, counts_all, is_mean_row, is_selection, totals_error
from ragnb.schema import METRICS

LARGEST_UNPACKED = 1 << 30
LARGEST_RATIO = 200
_UNSUSPECTED = 1 << 26
_KINDS = {
    b"PK\x03\x04": "is a zip archive, or an Excel workbook: unpack it, or name it .xlsx",
    b"\xd0\xcf\x11\xe0": "is an old Excel workbook; save it as .xlsx",
    b"SQLite format 3": "is a SQLite database; export the table in it as CSV",
    b"%PDF": "is a PDF; read the table it was printed from",
    **{
        bytes([0x80, n]): "is a pickle, which can run commands; save the table as CSV"
        for n in range(2, 6)
    },
}
# The folder in a zip archive that tells what wrote it.
_ZIPPED = {
    b"xl/": "is an Excel workbook: name it .xlsx",
    b"word/": "is a Word document; save the table in it as .csv or .xlsx",
    b"ppt/": "is a PowerPoint file; save the table in it as .csv or .xlsx",
    b"META-INF/manifest.xml": "is an OpenDocument file; save its table as .csv or .xlsx",
}
_UTF8 = {"utf8", "utf8sig", "u8", "utf"}
LONGEST_LINE = 16 * 1024 * 1024
NAMELESS = "a column without a name"
BLOCK = 1 << 24
_LOOKED_AT, _MOST_PLACES = (
    1 << 20,
    100,
)  # bytes of a bad line, and places in it, so that none takes long
_FIRST_KEY = re.compile(r'\{\s*"[^"\\]*"\s*:')
_TOKEN = re.compile(
    r'(?P<key>"[^"\\]*(?:\\.[^"\\]*)*")\s*:|"[^"\\]*(?:\\.[^"\\]*)*"|[{}]', re.DOTALL
)
_SURROGATE = re.compile(rb"\\u[dD]")
_REPLACED = "records with lone surrogates, replaced by U+FFFD"
LONGEST_CELL = 1 << 27
# The most characters that Excel keeps of a cell.
_EXCEL_CELL = 32_767
_HEAD = 1 << 16
_LARGE = 1 << 22  # characters
_ZSTD = 93  # of the methods of zip archives
_UNNAMED = re.compile(r"\s*|Unnamed: \d+(_level_\d+)?")
_SEPARATOR_LINE = re.compile(r"sep=([,;|\t])(?=[\r\n])")
_SAMPLE = {"question", "answer"}
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, UnicodeError, RuntimeError)

# Files of tools without results, by a key of theirs: what they are, and where the results are.
NO_RESULTS = {
    "testRunLink": (
        "the link of DeepEval to a page",
        "the results are in .deepeval/.latest_run_full.json",
    ),
    "test_cases_lookup_map": (
        "the cache of DeepEval",
        "the results are in .deepeval/.latest_run_full.json",
    ),
}

# A file before it is parsed


@dataclass(frozen=True)
class Document:
    """A readable file.

    Parameters
    ----------
    path : Path
    encoding : str or None
        None is strict UTF-8, with or without a byte order mark.

    Examples
    --------
    >>> Document(Path("a/scores.CSV.gz")).suffix
    '.csv'
    """

    path: Path
    encoding: str | None = None

    @property
    def suffix(self) -> str:
        """The extension that names the format, lower case, without ``.gz``."""
        return Path(self.path.name.lower().removesuffix(".gz")).suffix

    @cached_property
    def is_utf8(self) -> bool:
        """Whether the bytes are to be read as UTF-8."""
        return (
            self.encoding is None
            or self.encoding.lower().replace("-", "").replace("_", "") in _UTF8
        )

    @property
    def most_unpacked(self) -> int:
        """To how many bytes the file may unpack, so that a small one is not a huge one in disguise."""
        return min(LARGEST_UNPACKED, max(_UNSUSPECTED, LARGEST_RATIO * self.path.stat().st_size))

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the unpacked bytes; a damaged archive is reported as such."""
        try:
            with self.path.open("rb") as file:
                packed = file.peek(2)[:2] == b"\x1f\x8b"
                stream = io.BufferedReader(_Unpacked(file, self), 1 << 17) if packed else file
                head = stream.peek(16)[:16]
                for mark, kind in _KINDS.items():
                    if head.startswith(mark):
                        kind = self._zipped() if mark == b"PK\x03\x04" else kind
                        raise RagnbError(f"{place(self.path)}{kind or _KINDS[mark]}")
                yield stream
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise RagnbError(
                f"{place(self.path)}the gzip file is damaged ({error}); compress it again"
            ) from error

    def _zipped(self) -> str:
        """Return what a zip archive is, by the names at its end; empty where they do not tell."""
        with self.path.open("rb") as file:
            file.seek(max(0, self.path.stat().st_size - _HEAD))
            names = file.read(_HEAD)
        return next((kind for folder, kind in _ZIPPED.items() if folder in names), "")

    def data(self) -> bytes:
        """Return all unpacked bytes."""
        with self.open() as stream:  # read at once if nothing is packed
            return stream.read(self.path.stat().st_size) + stream.read()

    def text(self, data: bytes | None = None) -> str:
        """Return the decoded text without a byte order mark; bytes of another encoding are refused."""
        data = self.data() if data is None else data
        with suppress(UnicodeError):
            # Text of another encoding holds no character of three bytes by chance and is UTF-8 besides.
            if (
                not self.is_utf8
                and b"\0" not in data
                and re.search("[^\0-\u07ff]", data.decode("utf-8"))
            ):
                raise RagnbError(
                    f"{place(self.path)}is UTF-8, which {self.encoding} would garble; leave out encoding="
                )
        try:
            text = data.decode("utf-8-sig" if self.is_utf8 else str(self.encoding))
        except LookupError as error:
            raise RagnbError(
                f"encoding={self.encoding!r} is not known; try 'utf-8' or 'gb18030'"
            ) from error
        except UnicodeError as error:
            at = getattr(error, "start", 0)
            where = place(self.path, data.count(b"\n", 0, at) + 1)
            raise RagnbError(
                f"{where}byte {at} is not {self.encoding or 'UTF-8'} text; {likely_encoding(data)}"
            ) from error
        if "\0" in text:
            where = place(self.path, text.count("\n", 0, text.index("\0")) + 1)
            raise RagnbError(
                f"{where}contains a NUL byte, so it is damaged, not text, or UTF-16 without a byte order mark "
                "(encoding='utf-16-le')"
            )
        return text


class _Unpacked(gzip.GzipFile):
    """The bytes in a gzip file, counted, so that a small file that unpacks to a huge one is refused early."""

    def __init__(self, file: IO[bytes], document: Document) -> None:
        super().__init__(fileobj=file)
        self._path, self._most = document.path, document.most_unpacked

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(
            size if size and size > 0 else 1 << 20
        )  # whoever wants all of it asks again
        if self.tell() > self._most:
            raise RagnbError(
                f"{place(self._path)}unpacks to more than {self._most >> 20} MB out of "
                f"{self._path.stat().st_size / 2**20:.1f}; unpack it yourself if you trust it"
            )
        return data


def find_documents(source: str | os.PathLike[str], encoding: str | None) -> list[Document]:
    """Return the files that a path, a pattern such as ``scores/*.parquet`` or a folder matches, by name.

    Raises
    ------
    RagnbError
        If there is no such file (with the near names of its folder), or it is empty; for a pattern that nothing
        fits, and a folder without Parquet and JSONL files.
    """
    with _naming_its_folder(source):
        paths = _paths_of(source)
    return [Document(path, encoding) for path in paths]


def _empty(path: Path) -> RagnbError:
    """Return the refusal of a file that holds nothing."""
    return RagnbError(
        f"{place(path)}the file is empty; write the results to it again, or name another file"
    )


def _paths_of(source: str | os.PathLike[str]) -> list[Path]:
    """Return the files that a path, a pattern or a folder matches, each with something in it."""
    paths = matched(source)
    if not paths and Path(source).is_dir():
        raise RagnbError(
            f"{place(source)}is a folder without Parquet or JSONL files; name a file in it"
        )
    if not paths:
        raise RagnbError(f"{place(source)}no file matches this pattern")
    for path in paths:
        if not path.parent.is_dir():
            raise RagnbError(f"{place(path)}there is no such file, nor its folder")
        if not path.is_file():
            names = [entry.name for entry in sorted(path.parent.iterdir()) if entry.is_file()]
            raise RagnbError(
                f"{place(path)}there is no such file; {did_you_mean(path.name, names)}"
            )
        if not path.stat().st_size:
            raise _empty(path)
    return paths


# JSON


class _Twice(LookupError):
    """A key that an object holds twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _Twice
    return made


def _parsed(text: str) -> Any:
    """Return what JSON holds; `_Twice` is raised for a key twice in an object, of which parsers use the last."""
    return json.loads(text, parse_constant=float, object_pairs_hook=_object)


def _second_of_two(document: Document, text: str, line: int = 1) -> RagnbError:
    """Return the refusal of the first key that stands again in its object, in JSON that starts on a line."""
    open_keys: list[set[str]] = []
    for token in _TOKEN.finditer(text):
        if token[0] == "{":
            open_keys.append(set())
        elif token[0] == "}":
            open_keys.pop()
        elif token["key"] is not None:
            key = json.loads(token["key"], strict=False)
            if key in open_keys[-1]:
                line += text.count("\n", 0, token.start())
                break
            open_keys[-1].add(key)
    return RagnbError(
        f"{place(document.path, line, key)}appears twice in one object; keep one of the two"
    )


def record_blocks(
    document: Document, report: Lossy, strict: bool = False
) -> Iterator[tuple[list[int], list[dict[str, Any]]]]:
    """Yield the records of JSON lines, and the line of each, in blocks; bad lines are listed once all is read.

    Raises
    ------
    RagnbError
        For the first bad line where `strict`; if no more lines are good than bad; for a key that a record holds
        twice.
    """
    bad: list[tuple[int, str]] = []
    good = size = lost = replaced = 0
    step = "name a JSON file of another form .json (format='json')"
    numbers, records = list[int](), list[dict[str, Any]]()
    for number, line in _lines(document):
        try:
            record, why, marked = _record(line)
        except _Twice:
            raise _second_of_two(document, (line or b"").decode(), number) from None
        if record is not None and line is not None:
            numbers.append(number)
            records.append(record)
            good, size, replaced = good + 1, size + len(line), replaced + marked
            if size > BLOCK:
                yield numbers, records
                numbers, records, size = [], [], 0
            continue
        if strict:
            raise RagnbError(f"{place(document.path, number)}{why}, expected one JSON object")
        held = 1 if line is None else records_in(line)
        lost += held
        if line is not None and "UTF-8" in why and "encoding" not in step:
            step = likely_encoding(line)
        bad.append((number, f"{held} records on one line" if held > 1 else why))
    yield numbers, records
    if not good and not bad:
        raise _empty(document.path)
    if len(bad) >= good:
        number, why = bad[0]
        raise RagnbError(
            f"{place(document.path, number)}{why}; {len(bad)} of {len(bad) + good} lines contain no record; {step}"
        )
    for number, why in bad[:LISTED_LINES]:
        report.add("bad_line", None, f"line {number}: {why}")
    report.add("bad_line", None, "further bad lines", len(bad[LISTED_LINES:]))
    report.add("unparsed", None, _REPLACED, replaced)
    report.expect(good + lost, replaced + lost)


def _lines(document: Document) -> Iterator[tuple[int, bytes | None]]:
    """Yield the numbers and lines that hold something; None for a line over the limit."""
    text = (
        None if document.is_utf8 else io.BytesIO(document.text().encode("utf-8", "surrogatepass"))
    )
    with document.open() if text is None else text as stream:
        for number in count(1):
            line = rest = stream.readline(LONGEST_LINE + 1)
            if not line:
                return
            while len(rest) > LONGEST_LINE and not rest.endswith(b"\n"):
                rest = stream.readline(LONGEST_LINE + 1)
            if stripped := (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).strip():
                yield number, stripped if len(line.removesuffix(b"\n")) <= LONGEST_LINE else None


def _record(line: bytes | None) -> tuple[dict[str, Any] | None, str, bool]:
    """Return the object of a line, or why there is none, and whether lone surrogates in it were replaced."""
    if line is None:
        return None, f"longer than {LONGEST_LINE >> 20} MB", False
    try:
        found = _parsed(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return None, f"byte {error.start} is not UTF-8", False
    except json.JSONDecodeError as error:
        return None, f"no JSON at character {error.pos + 1} ({error.msg})", False
    except (ValueError, RecursionError) as error:
        return None, f"no JSON that can be read ({str(error)[:80]})", False
    if not isinstance(found, dict):
        return None, f"found {type(found).__name__}", False
    value = clean_text(found) if _SURROGATE.search(line) else found
    return value, "", value != found


def records_in(line: bytes) -> int:
    """Return how many records a line that is no record holds: glued together, cut short, or both.

    A record is taken to begin where another one ends, and where the first key of the line stands again.

    Examples
    --------
    >>> records_in(b'{"q": 1}{"q": 2} {"q": 3}'), records_in(b'{"q": "cut sho{"q": 2}'), records_in(b'{"q": "cut')
    (3, 2, 1)
    >>> records_in(b'{"id": 1, "chunks": [{"id": 2}, {"id": 3}], "answer": "cut')
    1
    """
    text = line[:_LOOKED_AT].decode("utf-8", "replace")
    first = _FIRST_KEY.match(text)
    start = re.compile(rf"{re.escape(first[0])}|(?<=\}})\s*\{{" if first else r"(?<=\})\s*\{")
    return 1 + sum(
        _begins_record(text, place.start())
        for place in islice(start.finditer(text, 1), _MOST_PLACES)
    )


def _begins_record(text: str, start: int) -> bool:
    """Whether a record begins in the midst of a line: after what cannot stand before a nested object, or whole."""
    if text[max(start - 20, 0) : start].rstrip()[-1:] not in (",", ":", "[", ""):
        return True
    with suppress(ValueError, RecursionError):
        end = json.JSONDecoder().raw_decode(text, start)[1]
        return text[end:].lstrip()[:1] in ("", "{")
    return False


# The other formats


def _separated(separators: str, document: Document, report: Lossy, strict: bool) -> Raw:
    """Read a file separated by the first of these, or by another that its first line tells of."""
    data = document.data()
    _check_first_line(data, separators, document)
    quick = len(data) > _LARGE and document.is_utf8
    text = data[:_HEAD].decode("utf-8-sig", "replace") if quick else document.text(data)
    n_remarks = _remarks_above(text, separators)
    if n_remarks:
        quick = False
        lines = document.text(data).splitlines(keepends=True)
        text = "\n" * n_remarks + "".join(
            lines[n_remarks:]
        )  # each row keeps the number of its line
        report.add("left_out", None, "lines above the names that begin with #", n_remarks)
    line = _SEPARATOR_LINE.match(text)  # Excel writes such a line, and does not show it
    separator = line[1] if line else _separator(text, separators)
    format = "tsv" if separator == "\t" else "csv"
    if quick and not line and (raw := _quick(document, data, separator, report, format)):
        return raw
    text = document.text(data) if quick else text
    return _laid(
        document,
        _rows(document, text[line.end(1) if line else 0 :], separator, report),
        format,
        report,
    )


def _remarks_above(text: str, separators: str) -> int:
    """Return how many lines above the names of the columns are remarks: with a # and fewer cells than the names.

    Examples
    --------
    >>> _remarks_above("# run 12\\n# model, b\\nquestion,answer,score\\n", ",;")
    2
    >>> _remarks_above("#,question\\n1,Who?\\n", ",;")
    0
    """
    lines = text[:_HEAD].splitlines()
    first = next((place for place, line in enumerate(lines) if line[:1] != "#"), 0)
    most = max((line.count(sign) for line in lines[:first] for sign in separators), default=0)
    named = max((lines[first].count(sign) for sign in separators), default=0) if lines else 0
    return first if most < named else 0


def _check_first_line(data: bytes, separators: str, document: Document) -> None:
    """Refuse a first line of too many columns before anything is parsed: a million cells take gigabytes."""
    line = data[: data.find(b"\n") + 1 or len(data)]
    if len(line) > MOST_COLUMNS:
        bare = re.sub(rb'"[^"]*+"', b"", line)
        check_width(range(max(bare.count(sign.encode()) for sign in separators) + 1), document.path)


def _separator(text: str, separators: str) -> str:
    head = re.sub(r'"[^"]*"', "", text[:_HEAD]).lstrip("\r\n").splitlines()[:1] or [""]
    return max(separators, key=lambda s: (len(meanings(head[0].split(s))), head[0].count(s)))


def _rows(document: Document, text: str, separator: str, report: Lossy) -> list[tuple[int, Any]]:
    """Return the cells of each row, with its line."""
    before = csv.field_size_limit(LONGEST_CELL)
    lines = list(io.StringIO(text, newline=""))
    rows: list[tuple[int, Any]] = []
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


def quick_cells(data: bytes, separator: str) -> pl.DataFrame | None:
    """Return the cells as Polars parses them, rows without names; None where csv might find other cells.

    Every byte must be accounted for, with quotes around just those cells that need them.

    Examples
    --------
    >>> quick_cells(b'a,b\\n"x, y",1\\n', ",").rows(), quick_cells(b'a,b\\n5" disk,1\\n', ",")
    ([('a', 'b'), ('x, y', '1')], None)
    """
    try:
        frame = pl.read_csv(data, has_header=False, separator=separator, infer_schema=False)
    except pl.exceptions.PolarsError:
        return None
    every = pl.all()
    quoted = every.str.contains(rf'["\r\n{re.escape(separator)}]') | (every == "")
    parts = [
        every.str.len_bytes(),
        *(every.str.count_matches(c, literal=True) for c in '"\r'),
        quoted,
    ]
    counts = frame.select(
        pl.sum_horizontal(p.sum()).alias(str(i)) for i, p in enumerate(parts)
    ).row(0)
    size, quotes, returns, around = (n or 0 for n in counts)
    bare = b"\r" in data and data.count(b"\r")
    ends = len(frame) - (not data.endswith(b"\n")) + bare - returns
    whole = size + quotes + 2 * around + (frame.width - 1) * len(frame) + ends == len(data)
    lone = frame.width == 1 or (
        bare and bare > data.count(b"\r\n")
    )  # blank lines are no rows to csv
    odd = lone or not whole or b"\0" in data or data.count(b'"') != 2 * (quotes + around)
    return None if odd else frame.fill_null("")


def _quick(
    document: Document, data: bytes, separator: str, report: Lossy, format: str
) -> Raw | None:
    """Return the columns of a large text, ten times as fast as `_laid`; None where that has more to look at."""
    frame = quick_cells(data.removeprefix(b"\xef\xbb\xbf"), separator)
    if frame is None or len(frame) < 2:
        return None
    names, body = [name.strip() for name in frame.row(0)], frame[1:]
    blank = ~pl.any_horizontal(pl.all().str.contains(r"[^\s.…]"))
    first, last = [*body.row(0)], [*body.row(-1)]
    if body.select(blank.any()).item() or is_mean_row(last) or _index_names(names, first):
        return None
    before = (
        pl.sum_horizontal(pl.all().str.count_matches("\n", literal=True))
        .cum_sum()
        .shift(1, fill_value=0)
    )
    lines = frame.select(before + pl.int_range(1, len(frame) + 1)).to_series()[1:].to_list()
    columns = _named(document, names, map(text_series, body.iter_columns()), report)
    return Raw(columns, format, str(document.path), lines, typed=False)


def _read_workbook(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read the one sheet of a workbook whose first row names most columns that are known, as its CSV would be."""
    calamine, path = require("python_calamine", extra="readers"), document.path
    if path.name.startswith("~$"):
        name = path.name.removeprefix("~$")
        raise RagnbError(
            f"{place(path)}is the lock file of an open workbook, not the workbook; read {name!r}"
        )
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
        cells = {
            name: book.get_sheet_by_name(name).to_python(skip_empty_area=False)
            for name in book.sheet_names
        }
    except (*_DAMAGED, calamine.CalamineError) as error:
        raise RagnbError(
            f"{place(path)}is not a readable workbook ({error}), or is damaged; open it in a spreadsheet and "
            "save it as CSV, or take another copy"
        ) from error
    # A sheet counts from its first row on, its cells as text.
    sheets = {
        name: [[as_id(cell) or "" for cell in row] for row in rows]
        for name, rows in cells.items()
        if rows
    }
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


def _laid(
    document: Document, table: list[tuple[int, list[str]]], format: str, report: Lossy
) -> Raw:
    """Return rows of texts, each with its line, as columns under the names of the first that is not blank."""
    if not table:
        raise _empty(document.path)
    (_, names), *rows = list(dropwhile(lambda row: not row[1], table)) or table
    header, width = [name.strip() for name in names], len(names)
    kept = [row for row in rows if row[1] and not all(cell in ("...", "…") for cell in row[1])]
    report.add(
        "left_out",
        None,
        "rows that a printed table elides",
        sum(bool(row) for _, row in rows) - len(kept),
    )
    filled = [(line, row) for line, row in kept if any(cell.strip() for cell in row)]
    report.add("left_out", None, "blank rows", len(kept) - len(filled))
    while len(filled) > 1 and is_mean_row(filled[-1][1]):
        report.add(
            "left_out", None, f"line {filled.pop()[0]}, which names no sample but a mean or total"
        )
    if filled and (index := _index_names(header, filled[0][1])):
        header = [index.get(i, name) for i, name in enumerate(header)]
        report.add("left_out", None, "second header row", 1)
        del filled[0]
    cells = zip_longest(*([""] * width, *(row for _, row in filled)), fillvalue="")
    columns = _named(document, header, ([*column[1:]] for column in cells), report)
    odd = [(line, row) for line, row in filled if len(row) < width or "".join(row[width:]).strip()]
    uneven = (
        RagnbError(
            f"{place(document.path, odd[0][0])}found {len(odd[0][1])} cells, expected {width}; "
            "a cell with a comma in it needs quotes around it"
        )
        if odd
        else None
    )
    return Raw(
        columns, format, str(document.path), [line for line, _ in filled], uneven, typed=False
    )


def _named(
    document: Document, header: list[str], columns: Iterable[Any], report: Lossy
) -> dict[str, Any]:
    """Return columns of texts under their names, without guards against formulas and indexes without a name."""
    named = [name for name in header if not _UNNAMED.fullmatch(name)]
    if not named:
        raise RagnbError(f"{place(document.path, 1)}the first line names no column")
    refuse_twice(named, place(document.path, 1))
    guarded = GUARD_COLUMN in named
    made: dict[str, Any] = {}
    for i, (name, cells) in enumerate(zip(header, columns, strict=False), 1):
        if guarded:
            name, cells = name.removeprefix("'"), [cell.removeprefix("'") for cell in cells]
        if name == GUARD_COLUMN:
            report.add("left_out", GUARD_COLUMN, "guards against formulas, taken off", len(cells))
        elif not _UNNAMED.fullmatch(name):
            made[name] = cells
        elif all(re.fullmatch(r"[-+]?\d*(\.0)?", cell.strip()) for cell in cells):
            report.add("left_out", "", f"unnamed index, column {i}", len(cells))
        else:
            made[f"column_{i}"] = cells
            report.add("kept", f"column_{i}", NAMELESS, len(cells))
    return made


def _index_names(header: list[str], first: list[str]) -> dict[int, str]:
    """Return the index names that pandas writes in a second header row, by position."""
    unnamed = {i for i, name in enumerate(header) if _UNNAMED.fullmatch(name)}
    filled = {i for i, cell in enumerate(first) if cell.strip() not in ("", "...", "…")}
    words = filled and all(not re.fullmatch(r"[-+.\d\s]+", first[i]) for i in filled)
    return (
        {i: first[i] for i in filled}
        if words and filled <= unnamed and len(header) > len(filled)
        else {}
    )


def _read_lines(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read JSON lines; a file that begins as a JSON list, and is one, as that list."""
    with suppress(RagnbError), document.open() as stream:
        if stream.read(1 << 10).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
            return _read_json(document, report, strict)
    blocks = list(record_blocks(document, report, strict))
    lines, records = (list(chain.from_iterable(parts)) for parts in zip(*blocks, strict=True))
    return Raw(from_records(records), "jsonl", str(document.path), lines)


def _read_json(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read a list of records, a dict of columns, or a split table (``columns`` and ``data``)."""
    text = document.text()
    if not text.strip():
        raise _empty(document.path)
    try:
        value = _parsed(text)
    except _Twice:
        raise _second_of_two(document, text) from None
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and text.lstrip().startswith("{") and "\n" in text.strip():
            return _read_lines(document, report, strict)
        raise RagnbError(
            f"{place(document.path, error.lineno)}is not valid JSON ({error.msg}); write it again if it is cut "
            "off; if each line is a record, name it .jsonl (format='jsonl')"
        ) from error
    except (RecursionError, ValueError) as error:
        raise RagnbError(f"{place(document.path)}is not readable JSON ({error})") from error
    cleaned = clean_text(value) if r"\ud" in text.lower() else value
    lost = list[int]()
    columns = _columns_of(document, cleaned, report, lost, strict)
    rows = list(zip(*columns.values(), strict=True))
    replaced = 0 if cleaned == value else sum("\ufffd" in str(row) for row in rows)
    report.add("unparsed", None, _REPLACED, replaced)
    report.expect(len(rows) + len(lost), replaced + len(lost))
    return Raw(columns, "json", str(document.path))


def _columns_of(
    document: Document, value: Any, report: Lossy, lost: list[int], strict: bool
) -> dict[str, list[Any]]:
    """Return the columns of a JSON value; `lost` gets the places of what is no record among records."""
    if isinstance(value, dict) and isinstance(value.get("data"), list):
        rows, names = value["data"], value.get("columns")
        if isinstance(names, list) and all(
            isinstance(r, list) and len(r) == len(names) for r in rows
        ):
            return {str(name): [row[i] for row in rows] for i, name in enumerate(names)}
        if isinstance(value.get("schema"), dict):
            index = value["schema"].get("primaryKey")
            value = [
                {k: v for k, v in r.items() if [k] != index} if isinstance(r, dict) else r
                for r in rows
            ]
    for sign, (what, step) in NO_RESULTS.items():
        if isinstance(value, dict) and sign in value and "testRunData" not in value:
            raise RagnbError(f"{place(document.path)}is {what} and has no samples; {step}")
    if (
        isinstance(value, dict)
        and isinstance(value.get("eval"), dict)
        and isinstance(value.get("samples"), list)
    ):
        value = _of_inspect(value, value["samples"], report)
    if isinstance(value, dict):
        damaged = list[tuple[Any, Any]]()
        found_in = _records_in(document, _without_damage(value, damaged), report)
        if found_in is None:
            value = _columns_by_section(value) or value
        else:
            value = next((given for made, given in damaged if made is found_in), found_in)
    if isinstance(value, list):
        records = _without_damage(value, [])
        for i, row in enumerate(value, 1):
            if isinstance(row, dict):
                continue
            if strict or records is value:
                raise RagnbError(
                    f"{document.path}, record {i}: found {type(row).__name__}, expected an object"
                )
            lost.append(i)
            if len(lost) <= LISTED_LINES:
                why = f"found {type(row).__name__}, expected an object"
                report.add("bad_line", None, f"record {i}: {why}")
        report.add("bad_line", None, "further bad lines", len(lost[LISTED_LINES:]))
        return from_records(records, document.path)
    cells = value.values() if isinstance(value, dict) else ()
    shapes = {
        tuple(c) if isinstance(c, dict) else len(c) if isinstance(c, list) else None for c in cells
    }
    shape = shapes.pop() if len(shapes) == 1 else None
    if isinstance(shape, int) or (shape is not None and (meanings(value) or not meanings(shape))):
        return {
            str(name): list(c.values() if isinstance(c, dict) else c) for name, c in value.items()
        }
    totals = totals_error(document.path, value) if isinstance(value, dict) else None
    if totals is not None:
        raise totals
    found = (
        f"an object with the keys {listing(value)}"
        if isinstance(value, dict)
        else type(value).__name__
    )
    raise RagnbError(
        f"{place(document.path)}found {found}; expected a list of records (also under a key of its own), an "
        "object of columns of one length, or an object with 'columns' and 'data'"
    )


def _without_damage(value: Any, damaged: list[tuple[Any, Any]]) -> Any:
    """Return lists of records, also in objects, without what is none among them.

    `damaged` gets each such list, as it is made and as it was given.

    Examples
    --------
    >>> _without_damage([{"q": "Who?"}, "cut", {"q": "When?"}], [])
    [{'q': 'Who?'}, {'q': 'When?'}]
    >>> _without_damage({"results": [{"q": "Who?"}, "a", "b"]}, [])
    {'results': [{'q': 'Who?'}, 'a', 'b']}
    """
    if isinstance(value, dict):
        return {key: _without_damage(cell, damaged) for key, cell in value.items()}
    if not isinstance(value, list):
        return value
    records = [row for row in value if isinstance(row, dict)]
    mostly = len(value) / 2 < len(records) < len(value)
    if not mostly or not any(map(_is_sample, records)):
        return value
    damaged.append((records, value))
    return records


def _columns_by_section(value: Mapping[str, Any]) -> dict[str, list[Any]] | None:
    """Return columns that stand in sections, such as inputs and metrics; None where the lists are no columns.

    A metric may be an object that holds, beside its mean, the list of its scores.

    Examples
    --------
    >>> inputs = {"question": ["Who?", "When?"]}
    >>> metrics = {"faithfulness": {"score": 0.5, "individual_scores": [0, 1]}}
    >>> _columns_by_section({"inputs": inputs, "metrics": metrics})
    {'question': ['Who?', 'When?'], 'faithfulness': [0, 1]}
    """
    columns: dict[str, list[Any]] = {}
    sections = [section for section in value.values() if isinstance(section, dict)]
    for section in sections:
        for name, cell in section.items():
            inner = cell.values() if isinstance(cell, dict) else [cell]
            lists = [one for one in inner if isinstance(one, list)]
            if len(lists) != 1 or name in columns:
                return None
            columns[name] = lists[0]
    sizes = {len(cells) for cells in columns.values()}
    are_samples = len(sizes) == 1 and bool(_SAMPLE & meanings(columns).keys())
    return columns if are_samples else None


def _records_in(
    document: Document, value: dict[str, Any], report: Lossy, nested: bool = False
) -> list[Any] | None:
    """Return the records that an object holds: itself, those under the one key with samples, or those by id."""
    told = meanings(value)
    if not nested and isinstance(value.get(told.get("question", "")), str):
        return [value]
    lists = {
        k: v
        for k, v in value.items()
        if isinstance(v, list) and v and all(isinstance(r, dict) for r in v)
    }
    keys = [key for key, rows in lists.items() if len(lists) == 1 or _is_sample(rows[0])]
    if len(keys) > 1 and all(
        "score" in row for key in keys for row in lists[key]
    ):  # a list a metric
        return [{**row, "metric": key} for key in keys for row in lists[key]]
    whole = [key for key in keys if not is_selection(key)]
    if (
        len(whole) == 1
    ):  # failures beside all results are among them, else they are the rest of the run
        parts = [key for key in lists if is_selection(key) and _is_outcome(lists[key][0])]
        records = lists[whole[0]]
        counted = counts_all(value, len(records))
        rest = [] if counted else unlisted(records, [row for key in parts for row in lists[key]])
        if rest:
            value = {k: v for k, v in value.items() if k not in parts}
            value[whole[0]] = lists[whole[0]] = records + rest
            why = f"records of the same run that {whole[0]!r} does not hold"
            report.add("mapped", None, f"{listing(parts)}: {why}", len(rest))
        keys = whole
    if len(keys) > 1:
        return _of_systems(document, {key: lists[key] for key in keys}, report)
    if keys and {told[name] for name in _SAMPLE & told.keys()} <= {*lists}:
        check_list(document.path, value, keys[0], report)
        others = [key for key in value if key != keys[0]]
        report.add("left_out", None, f"keys beside {keys[0]!r}: {listing(others)}", len(others))
        return lists[keys[0]]
    inner = {} if nested or told else {k: v for k, v in value.items() if isinstance(v, dict)}
    if (
        inner
        and len(inner) == len(value)
        and all(_SAMPLE & meanings(record).keys() for record in inner.values())
    ):
        return [{"sample_id": name, **record} for name, record in value.items()]
    found = {name: _records_in(document, one, report, True) for name, one in inner.items()}
    held = {name: records for name, records in found.items() if records}
    if len(held) > 1:
        return _of_systems(document, held, report)
    return next(iter(held.values()), None)


def _is_outcome(record: Mapping[str, Any]) -> bool:
    """Return whether a record says what came of a question: scores or an error, unlike an example of a prompt."""
    scored = METRICS.keys() & meanings(record).keys()
    return bool(scored) or "error" in failure_columns(record).values()


def _is_sample(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a question or an answer, or an id and a score."""
    found = meanings(record).keys()
    ids = "sample_id" in found or any(plain(name).endswith("id") for name in record)
    return bool(_SAMPLE & found or (ids and METRICS.keys() & found))


def _of_systems(
    document: Document, lists: Mapping[str, list[Any]], report: Lossy
) -> list[dict[str, Any]]:
    """Return lists of records under the names of systems as one; lists of different questions are refused."""
    for name in lists:
        check_list(document.path, lists, name, report)
    records = stacked_lists(lists)
    if records is None:
        raise RagnbError(
            f"{place(document.path)}contains records under {listing(lists)}; keep one of these lists"
        )
    for name, rows in lists.items():
        report.add("mapped", name, "the system of the records under this key", len(rows))
    return records


def _read_parquet(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read a Parquet file, unless it is a small one that unpacks to a huge one."""
    data = document.data()
    _check_unpacked(document, unpacked_bytes(data) or 0)
    try:
        frame = pl.read_parquet(io.BytesIO(data), use_pyarrow=False)
    except pl.exceptions.PolarsError as error:
        raise RagnbError(
            f"{place(document.path)}is not a Parquet file ({str(error)[:120]})"
        ) from error
    _check_unpacked(document, text_bytes(frame))
    columns = from_engine(nw.from_native(frame))
    for name in [n for n in columns if re.fullmatch(r"__index_level_\d+__", n)]:
        report.add("left_out", name, "index", len(columns.pop(name)))
    return Raw(columns, "parquet", str(document.path))


def _check_unpacked(document: Document, unpacked: int) -> None:
    """Refuse a Parquet file that unpacks to more bytes than a file of its size may."""
    most = document.most_unpacked
    if unpacked > most:
        raise RagnbError(
            f"{place(document.path)}unpacks to {unpacked >> 20:,} MB out of "
            f"{document.path.stat().st_size / 2**20:.1f}, the most is {most >> 20:,}; if you trust it, pass it as "
            "a frame of Polars"
        )


def _read_eval(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read the summaries of a log of inspect, a zip archive: the samples without their transcripts.

    A part that is damaged is lost with its samples, and counted; the others are read.
    """
    path = document.path
    damage = list[tuple[str, str]]()
    try:
        with zipfile.ZipFile(path) as packed:
            names = packed.namelist()
            journal = sorted(
                (name for name in names if name.startswith("_journal/summaries/")),
                key=lambda n: (len(n), n),
            )
            records = list[dict[str, Any]]()
            if "summaries.json" in names:
                records = _rows_of_part(packed, "summaries.json", damage)
            if not records and journal:  # of a run that did not end, or damaged
                damage.clear()
                records = [row for name in journal for row in _rows_of_part(packed, name, damage)]
            head = next(
                (name for name in ("header.json", "_journal/start.json") if name in names), None
            )
            about = json.loads(_member(packed, head), parse_constant=float) if head else {}
            if not isinstance(about, dict):
                raise ValueError(f"{head} is a {type(about).__name__}")
    except (*_DAMAGED, ValueError, TypeError) as error:
        raise RagnbError(
            f"{place(path)}is not a readable log of inspect ({error}); take another copy"
        ) from error
    if damage and (strict or not records):
        first = ": ".join(damage[0])
        raise RagnbError(
            f"{place(path)}is not a readable log of inspect ({first}); take another copy"
        )
    samples = _of_inspect(about, records, report)
    for part, why in damage[:LISTED_LINES]:
        report.add("bad_line", None, f"{place(part)}the record is damaged: {why}")
    report.add("bad_line", None, "further bad lines", len(damage[LISTED_LINES:]))
    # How many samples a lost part had is known where the log says how many were asked.
    missing = max(len(damage) - report.damaged, 0)
    report.lines += missing
    report.damaged += missing
    return Raw(from_records(samples), "eval", str(path))


def _rows_of_part(
    packed: zipfile.ZipFile, name: str, damage: list[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Return the samples of a member of a log; `damage` gets what is wrong with it, or with some of them."""
    try:
        rows = json.loads(_member(packed, name), parse_constant=float)
        if not isinstance(rows, list):
            raise ValueError(f"found {type(rows).__name__}, expected a list")
    except MissingExtraError:
        raise
    except Exception as error:  # each unpacker raises its own
        damage.append((name, f"{type(error).__name__}: {str(error)[:200]}"))
        return []
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            why = f"found {type(row).__name__}, expected an object"
            damage.append((f"{name}, record {number}", why))
    return [row for row in rows if isinstance(row, dict)]


def _of_inspect(
    about: dict[str, Any], records: list[dict[str, Any]], report: Lossy
) -> list[dict[str, Any]]:
    """Return the samples of a log of inspect with their model, and count those that an unfinished run lacks."""
    run = _object_in(about, "eval")
    ids = _object_in(run, "dataset").get("sample_ids") or ()
    config = _object_in(run, "config")
    asked = (
        len(ids) * (config.get("epochs") or 1)
        or _object_in(about, "results").get("total_samples")
        or 0
    )
    if about.get("status") not in (None, "success") and not asked:
        asked = len(records) + 1  # nobody knows how many
    report.expect(max(asked, len(records)), max(asked - len(records), 0))
    why = f"samples that the run (status {about.get('status')}) lacks"
    report.add("bad_line", None, why, asked - len(records))
    return [{"system": run["model"], **row} if run.get("model") else row for row in records]


def _object_in(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the object under a key; an empty one where there is something else."""
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _member(packed: zipfile.ZipFile, name: str) -> bytes:
    """Return an unpacked member; zipfile knows method 93, zstd, from Python 3.14 on only."""
    info = packed.getinfo(name)
    if info.compress_type != _ZSTD:
        return packed.read(name)
    zstandard, stream = require("zstandard", extra="readers"), packed.fp
    assert stream is not None
    stream.seek(info.header_offset + 26)
    stream.seek(sum(struct.unpack("<2H", stream.read(4))), os.SEEK_CUR)
    data: bytes = (
        zstandard.ZstdDecompressor().decompressobj().decompress(stream.read(info.compress_size))
    )
    if zlib.crc32(data) != info.CRC:
        raise zipfile.BadZipFile(f"{name} has a wrong checksum")
    return data


def _read_qrels(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read relevance judgements as TREC writes them: query, iteration, passage, relevance."""
    rows = [
        (line, text.split())
        for line, text in enumerate(document.text().splitlines(), 1)
        if text.strip()
    ]
    for line, row in rows:
        if len(row) != 4 or not re.fullmatch(r"-?\d+", row[3]):
            raise RagnbError(
                f"{place(document.path, line)}found {' '.join(row)[:80]!r}, expected query, iteration, passage "
                "and relevance, as TREC writes qrels; if it is a table, rename it "
                f"{document.path.stem}.csv (format='csv')"
            )
    lists = [list(cells) for cells in zip(*(row for _, row in rows), strict=True)] or [[]] * 4
    columns = dict(zip(("query_id", "iteration", "passage_id", "relevance"), lists, strict=True))
    return Raw(columns, "qrels", str(document.path), [line for line, _ in rows], typed=False)


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
# What single tools write, in a form of their own.
_FORMATS = (
    *FORMATS,
    Format("eval", (".eval",), _read_eval),
    Format("qrels", (".qrels", ".qrel", ".txt"), _read_qrels),
)

# A path (also a pattern or a folder of files of one format), a frame of any engine, an object with
# ``to_pandas()``, or records (mappings or EvalCase).
Source = Any


@contextmanager
def _naming_its_folder(source: str | os.PathLike[str]) -> Iterator[None]:
    """Say of a refusal in a folder that its files were read as one: the caller may have meant one of them."""
    try:
        yield
    except RagnbError as error:
        files = matched(source) if Path(source).is_dir() else []
        if len(files) < 2:
            raise
        names = listing(path.name for path in files)
        raise RagnbError(
            f"{error}. {source} is a folder, and its {len(files)} files were read as one table ({names}); name "
            f"one of them, such as {files[0]}"
        ) from error


def load(
    source: Source, report: Lossy, *, format: str | None, strict: bool, encoding: str | None
) -> tuple[Raw, dict[str, object]]:
    """Return the raw table of a source, and where it came from: ``path, format, sha256, rows, lines, damaged``."""
    if isinstance(source, str | os.PathLike):
        raws = []
        documents = find_documents(source, encoding)
        with _naming_its_folder(source):
            reader = format_of(documents, format)
            for document in documents:
                lossy = Lossy()
                raws.append(reader.read(document, lossy, strict))
                lossy.expect(0 if lossy.lines else len(raws[-1]))
                report.of_file(document.path.name if len(documents) > 1 else None, lossy)
            raw = stacked(raws, str(source)) if len(raws) > 1 else raws[0]
        origin: dict[str, object] = {
            "path": str(source),
            "sha256": digest([one.path for one in documents]),
        }
    else:
        if format is not None:
            raise RagnbError(
                f"format={format!r} is for files; this source is a {type(source).__name__}"
            )
        raw = Raw(in_memory(source, report), "frame")
        origin = {"path": None, "sha256": None}
        # A frame that a reader of ours made remembers what its file lost; of any other nothing is known.
        read = getattr(source, "attrs", {}).get("source")
        if isinstance(read, Mapping):
            report.expect(int(read.get("lines", 0)), int(read.get("damaged", 0)))
    check_width(raw.columns, raw.file)
    if not len(raw):
        raise RagnbError(f"{place(raw.file)}has no rows (columns: {listing(raw.columns)})")
    told = {
        "format": raw.format,
        "rows": len(raw),
        "lines": report.lines,
        "damaged": report.damaged,
    }
    return raw, {**origin, **told}


def format_of(documents: list[Document], name: str | None) -> Format:
    """Return the format of some documents, which must all be of one."""
    if name not in (None, *(row.name for row in _FORMATS)):
        raise unknown("format", name, [row.name for row in _FORMATS])
    formats: dict[Format, Document] = {}
    for document in documents:
        rows = [
            row
            for row in _FORMATS
            if row.name == name or (name is None and document.suffix in row.suffixes)
        ]
        if not rows:
            if document.suffix in (".yaml", ".yml"):
                raise RagnbError(
                    f"{place(document.path)}is a scenario, which names the files to read; run ragnb check "
                    f"{document.path}, or rn.load_scenario"
                )
            with document.open():  # tells a workbook or a database by its first bytes
                known = listing(suffix for row in _FORMATS for suffix in row.suffixes)
            raise RagnbError(
                f"{place(document.path)}files that end in {document.suffix or 'nothing'!r} are not read; ragnb "
                f"reads {known} (each also .gz); rename the file by its format, such as "
                f"{Path(document.path.name).stem}.csv (format='csv')"
            )
        formats.setdefault(rows[0], document)
    if len(formats) > 1:
        first, second, *_ = formats.values()
        raise RagnbError(
            f"{place(second.path)}is of another format than {first.path.name}; "
            "files read as one need the same, such as 'scores/*.parquet'"
        )
    return next(iter(formats))
