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
    quick = len(data) > _LARGE and document.is_utf8
    if quick:
        text = data[:_HEAD].decode("utf-8-sig", "replace")
    else:
        text = document.text(data)
    n_remarks = _remarks_above(text, separators)
    if n_remarks:
        quick = False
        lines = document.text(data).splitlines(keepends=True)
        # Each row keeps the number of its line.
        text = "\n" * n_remarks + "".join(lines[n_remarks:])
        report.add("left_out", None, "lines above the names that begin with #", n_remarks)
    line = _SEPARATOR_LINE.match(text)  # Excel writes such a line, and does not show it
    separator = line[1] if line else _separator(text, separators)
    format = "tsv" if separator == "\t" else "csv"
    if quick and not line and (raw := _quick(document, data, separator, report, format)):
        return raw
    if quick:
        text = document.text(data)
    if line:
        text = text[line.end(1) :]
    return _laid(document, _rows(document, text, separator, report), format, report)


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
    if lines:
        named = max((lines[first].count(sign) for sign in separators), default=0)
    else:
        named = 0
    if most < named:
        return first
    return 0


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
                # A quote may close before its cell ends, as pandas takes it, but not stay open.
                row = next(csv.reader([lines[at].rstrip("\r\n") + "\n"], delimiter=separator))
                if separator != "\t" or row[-1].endswith("\n"):
                    raise RagnbError(
                        f"{place(document.path, at + 1)}the row that starts here is not valid CSV ({error}); "
                        "look for a quote that is not closed, or one within a quoted cell, which is written twice"
                    ) from error
                at = at + 1
                early = early + 1
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
    # Blank lines are no rows to csv.
    lone = frame.width == 1 or (bare and bare > data.count(b"\r\n"))
    odd = lone or not whole or b"\0" in data or data.count(b'"') != 2 * (quotes + around)
    if odd:
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
    blank = ~pl.any_horizontal(pl.all().str.contains(r"[^\s.…]"))
    first = [*body.row(0)]
    last = [*body.row(-1)]
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
    except (*DAMAGED, calamine.CalamineError) as error:
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
        raise empty_file(document.path)
    (_, names), *rows = list(dropwhile(lambda row: not row[1], table)) or table
    header = [name.strip() for name in names]
    width = len(names)
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
    if odd:
        uneven = RagnbError(
            f"{place(document.path, odd[0][0])}found {len(odd[0][1])} cells, expected {width}; "
            "a cell with a comma in it needs quotes around it"
        )
    else:
        uneven = None
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
            name = name.removeprefix("'")
            cells = [cell.removeprefix("'") for cell in cells]
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
    if words and filled <= unnamed and len(header) > len(filled):
        return {i: first[i] for i in filled}
    return {}
