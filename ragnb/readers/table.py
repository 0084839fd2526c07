"""CSV, TSV, workbooks, JSON and Parquet as plain tables; and frames as CSV text that no spreadsheet runs.

Texts that a spreadsheet would take for a formula are written with a ``'`` in front. A last column
``ragnb__guarded`` says that this was done; a reader of ours takes the ``'`` away again and drops the column.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import unicodedata
from collections.abc import Iterable
from functools import partial
from itertools import dropwhile, zip_longest
from typing import Any

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, listing, place
from ragnb.readers import jsonl, workbook
from ragnb.readers.document import Document
from ragnb.readers.lossy import Lossy
from ragnb.readers.names import meanings
from ragnb.readers.numbers import NUMBER
from ragnb.readers.raw import Raw, Values, check_width, clean_text, from_records, refuse_twice

LONGEST_CELL = 1 << 27
HEAD = 1 << 16
GUARD_COLUMN = "ragnb__guarded"
_FORMULA = "=+-@\t\r\n"
_NEEDS_QUOTES = re.compile(r'[",\r\n]|^\s|\s$')
_UNNAMED = re.compile(r"\s*|Unnamed: \d+(_level_\d+)?")
_SAID = re.compile(r"sep=([,;|\t])(?=[\r\n])")
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_SAMPLE = {"question", "answer"}
_MEANS = {"average", "mean", "avg", "overall", "total", "平均", "平均值", "均值", "总计", "合计", "合計"}


def _separated(separators: str, document: Document, report: Lossy, strict: bool) -> Raw:
    """Read a file separated by the first of these, or by another that its first line tells of."""
    text = document.text()
    if said := _SAID.match(text):  # Excel writes such a line, and does not show it
        text, separators = text[said.end(1) :], said[1]
    head = re.sub(r'"[^"]*"', "", text[:HEAD]).lstrip("\r\n").splitlines()[:1] or [""]
    separator = max(separators, key=lambda s: (len(meanings(head[0].split(s))), head[0].count(s)))
    rows = _rows(document, text, separator, report)
    return _laid(document, rows, "tsv" if separator == "\t" else "csv", report)


read_csv = partial(_separated, ",;\t|")
read_tsv = partial(_separated, "\t,;|")


def read_workbook(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read the one sheet of a workbook whose first row names most columns that are known."""
    held = workbook.sheets(document.path, document.most_unpacked)
    known = {name: len(meanings(next(filter(any, rows), []))) for name, rows in held.items()}
    best = [name for name, n in known.items() if n == max(known.values(), default=0)]
    if len(best) > 1:
        raise RagnbError(
            f"{place(document.path)}the sheets {listing(best)} could each be the table; pass one of them as "
            f"pandas.read_excel(path, sheet_name={best[0]!r}, engine='calamine'), or save it as CSV"
        )
    report.add("left_out", None, f"sheets beside {listing(best)}", len(held) - 1)
    rows = [row if any(row) else [] for name in best for row in held[name]]
    cut = sum(len(cell) >= workbook.LONGEST_CELL for row in rows for cell in row)
    report.add("kept", None, f"cells of {workbook.LONGEST_CELL:,} characters, where Excel cuts", cut)
    return _laid(document, list(enumerate(rows, 1)), "excel", report)


def _laid(document: Document, table: list[tuple[int, list[str]]], format: str, report: Lossy) -> Raw:
    """Return rows of texts, each with its line, as columns under the names of the first that is not blank."""
    if not table:
        raise RagnbError(f"{place(document.path)}the file is empty")
    (_, names), *rows = list(dropwhile(lambda row: not row[1], table)) or table
    header = [name.strip() for name in names]
    held = [row for row in rows if row[1] and not all(cell in ("...", "…") for cell in row[1])]
    report.add("left_out", None, "rows that a printed table elides", sum(bool(row) for _, row in rows) - len(held))
    filled = [(line, row) for line, row in held if any(cell.strip() for cell in row)]
    report.add("left_out", None, "blank rows", len(held) - len(filled))
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
    guarded = len(filled) * (GUARD_COLUMN in header)
    report.add("left_out", GUARD_COLUMN, "guards against formulas, taken off", guarded)
    told = {f"\0{i}" if _UNNAMED.fullmatch(name) else name: i for i, name in enumerate(header)}
    width = len(header)
    cells = list(zip_longest(header, *(row for _, row in filled), fillvalue=""))
    columns = undo_guard({name: list(cells[i][1:]) for name, i in told.items()})
    _drop_unnamed(columns, report)
    uneven = [(line, len(row)) for line, row in filled if len(row) < width or "".join(row[width:]).strip()]
    return Raw(columns, format, str(document.path), [line for line, _ in filled], uneven, width, typed=False)


def _quick_rows(text: str, separator: str) -> list[tuple[int, list[str]]] | None:
    """Return the lines and cells of rows found by their quotes; None for text that asks for a parser.

    Every other piece between quotes is the inside of a cell. That holds where quotes stand at the ends of cells
    only, and those written twice (NUL in the meantime, which no text holds) inside of cells only.

    Examples
    --------
    >>> _quick_rows('a,b\\n"x, ""y""\\nz",1\\n\\n2,3', ",")
    [(1, ['a', 'b']), (2, ['x, "y"\\nz', '1']), (4, []), (5, ['2', '3'])]
    >>> _quick_rows('a\\n6" long', ",") is None
    True
    """
    pieces = text.replace('""', "\0").split('"')
    last, edge = len(pieces) - 1, (separator, "\n")
    if last % 2 or "\r" in text or len(text) > LONGEST_CELL:
        return None
    rows: list[tuple[int, list[str]]] = []
    cells: list[str] = []
    line = start = 1
    for at, piece in enumerate(pieces):
        if at % 2:
            cells.append(piece.replace("\0", '"'))
            line += piece.count("\n")
            continue
        ends = (piece[:1] if at else "", piece[-1:] if at < last else "")
        if "\0" in piece or any(end and end not in edge for end in ends):
            return None
        for nth, words in enumerate(piece.split("\n")):
            if nth:
                rows.append((start, [] if cells == [""] else cells))
                cells, line = [], line + 1
                start = line
            cells += words.split(separator)[1 if at and not nth else 0 :]
        if at < last:
            cells.pop()  # what stands before an opening quote
    return [*rows, (start, cells)] if cells != [""] else rows


def _rows(document: Document, text: str, separator: str, report: Lossy) -> list[tuple[int, list[str]]]:
    if (quick := _quick_rows(text, separator)) is not None:
        for _, row in quick:
            check_width(row, document.path)
        return quick
    before = csv.field_size_limit(LONGEST_CELL)
    held = list(io.StringIO(text, newline=""))
    rows: list[tuple[int, list[str]]] = []
    at = early = 0
    try:
        while at < len(held):
            reader = csv.reader((held[k] for k in range(at, len(held))), delimiter=separator, strict=True)
            start = at
            try:
                for row in reader:
                    check_width(row, document.path)
                    rows.append((at + 1, row))
                    at = start + reader.line_num
            except csv.Error as error:
                found = _closed_early(held[at].rstrip("\r\n")) if separator == "\t" else None
                if found is None:
                    raise RagnbError(
                        f"{place(document.path, at + 1)}the row that starts here is no CSV ({error}); look for a "
                        "quote that is not closed, or for one within a quoted cell, which is written twice"
                    ) from error
                at, early = at + 1, early + 1
                rows.append((at, found))
    finally:
        csv.field_size_limit(before)
    why = "rows with a quote that closes before its cell ends, read as pandas reads them"
    report.add("mapped", None, why, early)
    return rows


def _closed_early(line: str) -> list[str] | None:
    """Return the cells of a line of tabs where each quote that opens a cell closes in the line, though too early.

    Examples
    --------
    >>> _closed_early('1\\t"So long" by Marvin\\t"a ""b"" c"')
    ['1', 'So long by Marvin', 'a "b" c']
    >>> _closed_early('1\\t"So long') is None
    True
    """
    cells: list[str] = []
    at = 0
    while at <= len(line):
        quoted = _QUOTED.match(line, at)
        if quoted is None and line.startswith('"', at):
            return None
        begin = at if quoted is None else quoted.end()
        end = line.find("\t", begin)
        end = len(line) if end < 0 else end
        cells.append(("" if quoted is None else quoted[1].replace('""', '"')) + line[begin:end])
        at = end + 1
    return cells


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
        value = json.loads(text, parse_constant=jsonl.constant)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and text.lstrip().startswith("{") and "\n" in text.strip():
            return jsonl.read(document, report, strict)
        raise RagnbError(
            f"{place(document.path, error.lineno)}is no JSON ({error.msg}); one record a line is format='jsonl'"
        ) from error
    except (RecursionError, ValueError) as error:
        raise RagnbError(f"{place(document.path)}is no JSON that can be read ({error})") from error
    if found := jsonl.repeated_key(text.encode("utf-8", "surrogatepass"), value):
        line = text.count("\n", 0, found[1]) + 1
        raise RagnbError(f"{place(document.path, line, found[0])}appears twice in one object; keep one of the two")
    n = 0
    if r"\ud" in text.lower():
        value, n = clean_text(value)
    columns = _columns_of(document, value, report)
    rows = list(zip(*columns.values(), strict=True))
    replaced = min(n, sum("\ufffd" in str(row) for row in rows)) if n else 0
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
        raise RagnbError(f"{place(document.path)}holds records under {listing(keys)}; keep one of these lists")
    if keys and {told[name] for name in _SAMPLE & told.keys()} <= {*lists}:
        rest = [key for key in value if key != keys[0]]
        report.add("left_out", None, f"keys beside {keys[0]!r}: {listing(rest)}", len(rest))
        return lists[keys[0]]
    inner = [] if nested or told else [v for v in value.values() if isinstance(v, dict)]
    if inner and len(inner) == len(value) and all(_SAMPLE & meanings(record).keys() for record in inner):
        return [{"sample_id": name, **record} for name, record in value.items()]
    return next((records for one in inner if (records := _records_in(document, one, report, True))), None)


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


def to_csv_text(frame: pd.DataFrame) -> str:
    """Write a frame as CSV text: UTF-8 characters, line feeds, 12 significant digits, lists as JSON.

    Parameters
    ----------
    frame : DataFrame
        The index is left out. Missing cells are empty; an empty text reads back as missing. A NUL, which no
        CSV reader agrees about, becomes U+FFFD.

    Returns
    -------
    str
        The same text for the same frame.

    Notes
    -----
    A text whose first visible character is, after NFKC, one of ``= + - @``, or that starts with a tab or a line
    end, gets ``'`` in front, and so does one that starts with ``'``; numbers never do.

    Examples
    --------
    >>> print(to_csv_text(pd.DataFrame({"a": ["=1+1", "x"], "b": [0.1 + 0.2, None]})), end="")
    a,b,ragnb__guarded
    '=1+1,0.3,1
    x,,1
    >>> print(to_csv_text(pd.DataFrame({"a": [["x", "y"]]})), end="")
    a
    "[""x"", ""y""]"
    """
    header = [str(name) for name in frame.columns]
    cells = [[_plain(value) for value in frame.iloc[:, i].tolist()] for i in range(len(header))]
    guarded = any(_is_formula(text) for text in header) or any(
        isinstance(value, str) and _is_formula(value) for column in cells for value in column
    )
    names = [_guard(name) for name in header] if guarded else header
    columns = [[_word(value, guarded) for value in column] for column in cells]
    if guarded:
        names, columns = [*names, GUARD_COLUMN], [*columns, ["1"] * len(frame)]
    return "".join(f"{_line(row)}\n" for row in [names, *zip(*columns, strict=True)])


def undo_guard(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Take the guards off the columns of a file that says it has them.

    Examples
    --------
    >>> undo_guard({"a": ["'=1", "x"], "ragnb__guarded": ["1", "1"]})
    {'a': ['=1', 'x']}
    >>> undo_guard({"a": ["'=1"]})
    {'a': ["'=1"]}
    """
    if GUARD_COLUMN not in columns:
        return columns
    return {
        name.removeprefix("'"): [cell.removeprefix("'") if isinstance(cell, str) else cell for cell in cells]
        for name, cells in columns.items()
        if name != GUARD_COLUMN
    }


def _plain(value: Any) -> Any:
    """Return a cell as a text, a number, a bool or None; everything else as text."""
    if isinstance(value, np.ndarray | set | frozenset):
        value = sorted(value) if isinstance(value, set | frozenset) else value.tolist()
    if isinstance(value, list | tuple | dict):
        value = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool | int | float):
        return value
    return str(value).encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def _word(value: Any, guarded: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return format(value + 0.0, ".12g")
    return _guard(value) if guarded and isinstance(value, str) else str(value)


def _line(cells: Iterable[str]) -> str:
    """Quote where needed: csv.writer leaves a lone carriage return bare."""
    words = [f'"{cell.replace(chr(34), chr(34) * 2)}"' if _NEEDS_QUOTES.search(cell) else cell for cell in cells]
    return ",".join(words) if words != [""] else '""'


def _guard(text: str) -> str:
    return f"'{text}" if text.startswith("'") or _is_formula(text) else text


def _is_formula(text: str) -> bool:
    """Whether a spreadsheet may run the text: its first visible character, folded, starts a formula."""
    visible = (c for c in text if unicodedata.category(c) not in ("Cf", "Zs", "Cc", "Zl", "Zp"))
    first = unicodedata.normalize("NFKC", next(visible, ""))[:1]
    return text[:1] in ("\t", "\r", "\n") or (first != "" and first in _FORMULA)
