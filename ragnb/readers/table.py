"""CSV, TSV, JSON and Parquet as plain tables."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from typing import Any

from ragnb.errors import RagnbError, listing, place
from ragnb.readers import jsonl
from ragnb.readers.document import Document
from ragnb.readers.export import GUARD_COLUMN, undo_guard
from ragnb.readers.lossy import Lossy
from ragnb.readers.raw import Raw, Values, check_width, clean_text, from_records, refuse_twice

LONGEST_CELL = 1 << 27
_UNNAMED = re.compile(r"\s*|Unnamed: \d+(_level_\d+)?")


def read_csv(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read a comma-separated file; one that is separated by ``;`` or tabs says so in its first line."""
    text = document.text()
    head = text[: text.find("\n")] if "\n" in text else text
    if "," in head:
        return _separated(document, text, ",", report)
    return _separated(document, text, max(";\t,", key=head.count), report)


def read_tsv(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read a tab-separated file."""
    return _separated(document, document.text(), "\t", report)


def _separated(document: Document, text: str, separator: str, report: Lossy) -> Raw:
    rows, lines = _rows(document, text, separator)
    if not rows:
        raise RagnbError(f"{place(document.path)}the file is empty")
    header, rows, lines = [name.strip() for name in rows[0]], rows[1:], lines[1:]
    elided = {i for i, row in enumerate(rows) if row and set(row) <= {"...", "…"}}
    report.add("left_out", None, "rows that a printed table elides", len(elided))
    filled = [i for i, row in enumerate(rows) if i not in elided and any(cell.strip() for cell in row)]
    report.add("left_out", None, "blank rows", sum(map(bool, rows)) - len(elided) - len(filled))
    rows, lines = [rows[i] for i in filled], [lines[i] for i in filled]
    if rows and (names := _index_names(header, rows[0])):
        header = [names.get(i, name) for i, name in enumerate(header)]
        report.add("left_out", None, "second header row", 1)
        rows, lines = rows[1:], lines[1:]
    _check_header(document, header)
    columns: dict[str, Values] = {}
    for i, name in enumerate(_named(header)):
        columns[name] = [row[i] if i < len(row) else "" for row in rows]
    report.add("left_out", GUARD_COLUMN, "guards against formulas, taken off", len(columns.get(GUARD_COLUMN, [])))
    columns = undo_guard(columns)
    _drop_unnamed(columns, report)
    uneven = [(line, len(row)) for line, row in zip(lines, rows, strict=True) if len(row) != len(header)]
    format = "tsv" if separator == "\t" else "csv"
    return Raw(columns, format, str(document.path), lines, uneven, len(header), typed=False)


def _rows(document: Document, text: str, separator: str) -> tuple[list[list[str]], list[int]]:
    before = csv.field_size_limit(LONGEST_CELL)
    rows, lines, start = [], [], 1
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        for row in reader:
            check_width(row, document.path)
            rows.append(row)
            lines.append(start)
            start = reader.line_num + 1
    except csv.Error as error:
        raise RagnbError(
            f"{place(document.path, start)}the row that starts here is no CSV ({error}); "
            "look for a quote that is not closed"
        ) from error
    finally:
        csv.field_size_limit(before)
    return rows, lines


def _index_names(header: list[str], first: list[str]) -> dict[int, str]:
    """Return the index names that pandas writes in a second header row, by position."""
    unnamed = {i for i, name in enumerate(header) if _UNNAMED.fullmatch(name)}
    filled = {i for i, cell in enumerate(first) if cell.strip() not in ("", "...", "…")}
    words = filled and all(not re.fullmatch(r"[-+.\d\s]+", first[i]) for i in filled)
    return {i: first[i] for i in filled} if words and filled <= unnamed and len(header) > len(filled) else {}


def _check_header(document: Document, header: list[str]) -> None:
    named = [name for name in header if not _UNNAMED.fullmatch(name)]
    if not named:
        raise RagnbError(f"{place(document.path, 1)}the first line names no column")
    refuse_twice(named, place(document.path, 1))


def _named(header: list[str]) -> list[str]:
    return [f"\0{i}" if _UNNAMED.fullmatch(name) else name for i, name in enumerate(header)]


def _drop_unnamed(columns: dict[str, Values], report: Lossy) -> None:
    """Drop index columns and empty ones; keep an unnamed column of texts under a made name."""
    for name in [name for name in columns if name.startswith("\0")]:
        cells = columns[name]
        number = int(name[1:]) + 1
        if all(re.fullmatch(r"[-+]?\d*(\.0)?", cell.strip()) for cell in cells):
            report.add("left_out", "", f"unnamed index, column {number}", len(cells))
            del columns[name]
        else:
            made = f"column_{number}"
            columns[made] = columns.pop(name)
            report.add("kept", made, "a column without a name", len(cells))


def read_json(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read a list of records, a dict of columns, or a split table (``columns`` and ``data``)."""
    text = document.text()
    if not text.strip():
        raise RagnbError(f"{place(document.path)}the file is empty")
    try:
        value = json.loads(text, parse_constant=lambda word: math.nan if word == "NaN" else float(word))
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and text.lstrip().startswith("{") and "\n" in text.strip():
            return jsonl.read(document, report, strict)
        raise RagnbError(
            f"{place(document.path, error.lineno)}is no JSON ({error.msg}); one record a line is format='jsonl'"
        ) from error
    except (RecursionError, ValueError) as error:
        raise RagnbError(f"{place(document.path)}is no JSON that can be read ({error})") from error
    if r"\ud" in text.lower():
        value, n = clean_text(value)
        report.add("unparsed", None, "lone surrogates, replaced by U+FFFD", n)
    return Raw(_columns_of(document, value), "json", str(document.path))


def _columns_of(document: Document, value: Any) -> dict[str, Values]:
    if isinstance(value, dict) and isinstance(value.get("data"), list):
        rows, names = value["data"], value.get("columns")
        if isinstance(names, list) and all(isinstance(r, list) and len(r) == len(names) for r in rows):
            return {str(name): [row[i] for row in rows] for i, name in enumerate(names)}
        if isinstance(value.get("schema"), dict):
            index = value["schema"].get("primaryKey")
            value = [{k: v for k, v in r.items() if [k] != index} if isinstance(r, dict) else r for r in rows]
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
    if cells and all(isinstance(c, dict) for c in cells) and len({tuple(c) for c in cells}) == 1:
        return {str(name): list(column.values()) for name, column in value.items()}
    found = f"an object with the keys {listing(value)}" if isinstance(value, dict) else type(value).__name__
    raise RagnbError(
        f"{place(document.path)}found {found}; expected a list of records, an object of columns of one "
        "length, or an object with 'columns' and 'data'"
    )


def read_parquet(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read a Parquet file."""
    import polars as pl

    try:
        frame = pl.read_parquet(io.BytesIO(document.data()), use_pyarrow=False)
    except pl.exceptions.PolarsError as error:
        raise RagnbError(f"{place(document.path)}is no Parquet file ({str(error)[:120]})") from error
    columns = {name: frame[name].to_list() for name in frame.columns}
    for name in [n for n in columns if re.fullmatch(r"__index_level_\d+__", n)]:
        report.add("left_out", name, "index", len(columns.pop(name)))
    return Raw(columns, "parquet", str(document.path))
