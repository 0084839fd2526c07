"""Rows of CSV, TSV and Excel."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterable
from itertools import dropwhile, zip_longest
from typing import Any

from ragnb.errors import (
    RagnbError,
    listing,
    place,
    require,
)
from ragnb.polars import pl
from ragnb.readers.cells import as_id
from ragnb.readers.csv_text import GUARD_COLUMN
from ragnb.readers.documents import _HEAD, DAMAGED, Document, empty_file
from ragnb.readers.mean_rows import is_mean_row
from ragnb.readers.names import meanings
from ragnb.readers.raw import (
    MOST_COLUMNS,
    Lossy,
    Raw,
    check_width,
    refuse_twice,
    text_series,
)

NAMELESS = "a column without a name"
LONGEST_CELL = 1 << 27  # characters; csv's own 131,072 are fewer than a long passage has
# The most characters that Excel keeps of a cell.
_EXCEL_CELL = 32_767
_LARGE = 1 << 22  # characters
_UNNAMED = re.compile(r"\s*|Unnamed: \d+(_level_\d+)?")
_SEPARATOR_LINE = re.compile(r"sep=([,;|\t])(?=[\r\n])")


def separated(separators: str, document: Document, report: Lossy, strict: bool) -> Raw:
    """Read a file separated by the first of these, or by another that its first line tells of."""
    data = document.data()
    _check_first_line(data, separators, document)
    # The head of a large file is enough here, as long as only Polars has to look at the rest.
    may_be_quick = len(data) > _LARGE and document.is_utf8
    if may_be_quick:
        text = data[:_HEAD].decode("utf-8-sig", "replace")
    else:
        text = document.text(data)
    n_remarks = _remarks_above(text, separators)
    if n_remarks:
        may_be_quick = False
        lines = document.text(data).splitlines(keepends=True)
        # Each row keeps the number of its line.
        text = "\n" * n_remarks + "".join(lines[n_remarks:])
        report.add("left_out", None, "lines above the names that begin with #", n_remarks)
    separator_line = _SEPARATOR_LINE.match(text)  # Excel writes such a line, and does not show it
    separator = separator_line[1] if separator_line else _separator(text, separators)
    format = "tsv" if separator == "\t" else "csv"
    if may_be_quick and not separator_line:
        raw = _quick(document, data, separator, report, format)
        if raw:
            return raw
    if may_be_quick:
        text = document.text(data)
    if separator_line:
        # Its line break stays, so that each row keeps the number of its line.
        text = text[separator_line.end(1) :]
    rows = _rows(document, text, separator, report)
    return _laid(document, rows, format, report)


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
    n_remarks = next((nth for nth, line in enumerate(lines) if line[:1] != "#"), 0)
    remarks = lines[:n_remarks]
    n_in_remarks = max((line.count(sign) for line in remarks for sign in separators), default=0)
    n_in_names = 0
    if lines:
        n_in_names = max((lines[n_remarks].count(sign) for sign in separators), default=0)
    if n_in_remarks < n_in_names:
        return n_remarks
    return 0


def _check_first_line(data: bytes, separators: str, document: Document) -> None:
    """Refuse a first line of too many columns before anything is parsed: a million cells take gigabytes."""
    line = data[: data.find(b"\n") + 1 or len(data)]
    if len(line) > MOST_COLUMNS:  # a column takes at least its separator
        without_quoted = re.sub(rb'"[^"]*+"', b"", line)
        n_columns = max(without_quoted.count(sign.encode()) for sign in separators) + 1
        check_width(range(n_columns), document.path)


def _separator(text: str, separators: str) -> str:
    """Return the separator by which the first line has most names that are known, else the most cells."""
    without_quoted = re.sub(r'"[^"]*"', "", text[:_HEAD])
    lines = without_quoted.lstrip("\r\n").splitlines()
    names = lines[0] if lines else ""

    def names_told(separator: str) -> tuple[int, int]:
        return len(meanings(names.split(separator))), names.count(separator)

    return max(separators, key=names_told)


def _rows(document: Document, text: str, separator: str, report: Lossy) -> list[tuple[int, Any]]:
    """Return the cells of each row, with its line."""
    # A setting of the whole process, which is put back below.
    limit_before = csv.field_size_limit(LONGEST_CELL)
    lines = list(io.StringIO(text, newline=""))
    rows: list[tuple[int, Any]] = []
    at = 0  # the line at which the next row begins, from 0
    n_closed_early = 0
    try:
        while at < len(lines):
            # Not a slice: each quote that closes early would copy all the lines that are left.
            rest = (lines[number] for number in range(at, len(lines)))
            start = at
            reader = csv.reader(rest, delimiter=separator, strict=True)
            try:
                for row in reader:
                    check_width(row, document.path)
                    rows.append((at + 1, row))
                    at = start + reader.line_num
            except csv.Error as error:
                # A quote may close before its cell ends, as pandas allows, but not stay open: then csv reads the
                # end of the line as part of the cell.
                row = next(csv.reader([lines[at].rstrip("\r\n") + "\n"], delimiter=separator))
                if separator != "\t" or row[-1].endswith("\n"):
                    raise RagnbError(
                        f"{place(document.path, at + 1)}the row that starts here is not valid CSV ({error}); "
                        "look for a quote that is not closed, or one within a quoted cell, which is written twice"
                    ) from error
                at += 1
                n_closed_early += 1
                rows.append((at, row))
    finally:
        csv.field_size_limit(limit_before)
    why = "rows with a quote that closes before its cell ends, read as pandas reads them"
    report.add("mapped", None, why, n_closed_early)
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
    cell = pl.all()
    needs_quotes = cell.str.contains(rf'["\r\n{re.escape(separator)}]') | (cell == "")
    summary = frame.select(
        pl.sum_horizontal(cell.str.len_bytes().sum()).alias("bytes"),
        pl.sum_horizontal(cell.str.count_matches('"', literal=True).sum()).alias("quotes"),
        pl.sum_horizontal(cell.str.count_matches("\r", literal=True).sum()).alias("returns"),
        pl.sum_horizontal(needs_quotes.sum()).alias("quoted"),
    )
    # Of a frame without a cell the sums are None.
    n_bytes, n_quotes, n_returns, n_quoted = (n or 0 for n in summary.row(0))
    n_returns_in_data = data.count(b"\r")
    # A line ends in one byte, or in two where a return goes with it; the last may have no end.
    n_line_ends = len(frame) - (not data.endswith(b"\n")) + n_returns_in_data - n_returns
    n_separators = (frame.width - 1) * len(frame)
    # A quote in a cell is written twice, and two are around a cell that needs them.
    n_expected = n_bytes + n_quotes + 2 * n_quoted + n_separators + n_line_ends
    if n_expected != len(data) or data.count(b'"') != 2 * (n_quotes + n_quoted):
        return None
    # Blank lines are no rows to csv, and a return alone ends a line.
    if frame.width == 1 or n_returns_in_data > data.count(b"\r\n") or b"\0" in data:
        return None
    return frame.fill_null("")


def _quick(
    document: Document, data: bytes, separator: str, report: Lossy, format: str
) -> Raw | None:
    """Return the columns of a large text, ten times as fast as `_laid`; None where that has more to look at."""
    frame = quick_cells(data.removeprefix(b"\xef\xbb\xbf"), separator)
    if frame is None or len(frame) < 2:
        return None
    names = [name.strip() for name in frame.row(0)]
    body = frame[1:]
    is_blank = ~pl.any_horizontal(pl.all().str.contains(r"[^\s.…]"))  # or elided
    first = list(body.row(0))
    last = list(body.row(-1))
    if body.select(is_blank.any()).item() or is_mean_row(last) or _index_names(names, first):
        return None
    # A row begins as many lines after its own number as there are line breaks in the cells above it.
    breaks_in_row = pl.sum_horizontal(pl.all().str.count_matches("\n", literal=True))
    breaks_above = breaks_in_row.cum_sum().shift(1, fill_value=0)
    row_number = pl.int_range(1, len(frame) + 1)
    lines = frame.select(breaks_above + row_number).to_series()[1:].to_list()
    columns = _named(document, names, map(text_series, body.iter_columns()), report)
    return Raw(columns, format, str(document.path), lines, typed=False)


def read_workbook(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read the one sheet of a workbook whose first row names most columns that are known, as its CSV would be."""
    calamine = require("python_calamine", extra="readers")
    path = document.path
    if path.name.startswith("~$"):
        name = path.name.removeprefix("~$")
        raise RagnbError(
            f"{place(path)}is the lock file of an open workbook, not the workbook; read {name!r}"
        )
    try:
        _check_packed(document)
        book = calamine.CalamineWorkbook.from_path(path)
        cells_of = {
            name: book.get_sheet_by_name(name).to_python(skip_empty_area=False)
            for name in book.sheet_names
        }
    except (*DAMAGED, calamine.CalamineError) as error:
        raise RagnbError(
            f"{place(path)}is not a readable workbook ({error}), or is damaged; open it in a spreadsheet and "
            "save it as CSV, or take another copy"
        ) from error
    # A sheet counts from its first row on, its cells as text.
    sheets: dict[str, list[list[str]]] = {}
    n_known: dict[str, int] = {}  # names of columns in the first row that is not blank
    for name, cells in cells_of.items():
        if cells:
            sheets[name] = [[as_id(cell) or "" for cell in row] for row in cells]
            names = next((row for row in sheets[name] if any(row)), [])
            n_known[name] = len(meanings(names))
    best = [name for name, n in n_known.items() if n == max(n_known.values())]
    if len(best) > 1:
        raise RagnbError(
            f"{place(document.path)}the sheets {listing(best)} could each be the table; pass one of them as "
            f"pandas.read_excel(path, sheet_name={best[0]!r}, engine='calamine'), or save it as CSV"
        )
    report.add("left_out", None, f"sheets beside {listing(best)}", len(sheets) - 1)
    # Blank rows as csv gives them; of a workbook without a cell there is no best sheet.
    rows = [row if any(row) else [] for name in best for row in sheets[name]]
    n_cut = sum(len(cell) >= _EXCEL_CELL for row in rows for cell in row)
    report.add("kept", None, f"cells of {_EXCEL_CELL:,} characters, where Excel cuts", n_cut)
    return _laid(document, list(enumerate(rows, 1)), "excel", report)


def _check_packed(document: Document) -> None:
    """Refuse a workbook that would take too much memory, or whose parts are damaged.

    Raises
    ------
    RagnbError
        For one that is larger than it may be when it is unpacked.
    BadZipFile
        For a part with a wrong checksum.
    """
    path = document.path
    # The older .xls is no archive.
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as packed:
        size = sum(member.file_size for member in packed.infolist())
        if size > document.most_unpacked:
            raise RagnbError(
                f"{place(path)}unpacks to {size >> 20} MB; save the sheet as CSV if you trust it"
            )
        damaged = packed.testzip()  # calamine does not compare checksums
        if damaged:
            raise zipfile.BadZipFile(f"{damaged} has a wrong checksum")


def _laid(
    document: Document, table: list[tuple[int, list[str]]], format: str, report: Lossy
) -> Raw:
    """Return rows of texts, each with its line, as columns under the names of the first that is not blank."""
    if not table:
        raise empty_file(document.path)
    (_, names), *rows = list(dropwhile(lambda row: not row[1], table)) or table
    header = [name.strip() for name in names]
    width = len(names)
    # Lines without any text are no rows, and are not counted either.
    rows = [(line, row) for line, row in rows if row]
    kept = [(line, row) for line, row in rows if not all(cell in ("...", "…") for cell in row)]
    report.add("left_out", None, "rows that a printed table elides", len(rows) - len(kept))
    filled = [(line, row) for line, row in kept if any(cell.strip() for cell in row)]
    report.add("left_out", None, "blank rows", len(kept) - len(filled))
    while len(filled) > 1 and is_mean_row(filled[-1][1]):
        line, _ = filled.pop()
        report.add("left_out", None, f"line {line}, which names no sample but a mean or total")
    if filled:
        _, first_row = filled[0]
        index_names = _index_names(header, first_row)
        if index_names:
            header = [index_names.get(nth, name) for nth, name in enumerate(header)]
            report.add("left_out", None, "second header row", 1)
            del filled[0]
    # A blank row of the header's width in front gives each name a column even where there is no row.
    cells = zip_longest([""] * width, *(row for _, row in filled), fillvalue="")
    columns = _named(document, header, (list(column[1:]) for column in cells), report)
    lines = [line for line, _ in filled]
    uneven = _uneven_row(document, filled, width)
    return Raw(columns, format, str(document.path), lines, uneven, typed=False)


def _uneven_row(
    document: Document, rows: Iterable[tuple[int, list[str]]], width: int
) -> RagnbError | None:
    """Return the refusal of the first row of another width than the header; blank cells behind it do not count."""
    for line, row in rows:
        if len(row) < width or "".join(row[width:]).strip():
            return RagnbError(
                f"{place(document.path, line)}found {len(row)} cells, expected {width}; "
                "a cell with a comma in it needs quotes around it"
            )
    return None


def _named(
    document: Document, header: list[str], columns: Iterable[Any], report: Lossy
) -> dict[str, Any]:
    """Return columns of texts under their names, without guards against formulas and indexes without a name."""
    named = [name for name in header if not _UNNAMED.fullmatch(name)]
    if not named:
        raise RagnbError(f"{place(document.path, 1)}the first line names no column")
    refuse_twice(named, place(document.path, 1))
    # ragnb writes this column where it put a ' before cells that a spreadsheet would run.
    is_guarded = GUARD_COLUMN in named
    by_name: dict[str, Any] = {}
    # Cells beyond the header have no name; they are refused elsewhere if they hold something.
    for nth, (name, cells) in enumerate(zip(header, columns, strict=False), 1):
        if is_guarded:
            name = name.removeprefix("'")
            cells = [cell.removeprefix("'") for cell in cells]
        if name == GUARD_COLUMN:
            report.add("left_out", GUARD_COLUMN, "guards against formulas, taken off", len(cells))
        elif not _UNNAMED.fullmatch(name):
            by_name[name] = cells
        elif all(re.fullmatch(r"[-+]?\d*(\.0)?", cell.strip()) for cell in cells):
            report.add("left_out", "", f"unnamed index, column {nth}", len(cells))
        else:
            by_name[f"column_{nth}"] = cells
            report.add("kept", f"column_{nth}", NAMELESS, len(cells))
    return by_name


def _index_names(header: list[str], first: list[str]) -> dict[int, str]:
    """Return the index names that pandas writes in a second header row, by position."""
    unnamed = {nth for nth, name in enumerate(header) if _UNNAMED.fullmatch(name)}
    filled = {nth for nth, cell in enumerate(first) if cell.strip() not in ("", "...", "…")}
    if not filled or not filled <= unnamed or len(header) <= len(filled):
        return {}
    # A row with numbers under columns without a name is one of cells, not of names.
    if any(re.fullmatch(r"[-+.\d\s]+", first[nth]) for nth in filled):
        return {}
    return {nth: first[nth] for nth in filled}
