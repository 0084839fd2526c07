"""The raw table of a file or frame, before names and cells are canonical, and the report of changes."""

from __future__ import annotations

import csv
import gc
import io
import json
import math
import os
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import dropwhile, zip_longest
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, listing, place, require, unknown
from ragnb.files import digest
from ragnb.polars import pl
from ragnb.readers import jsonl
from ragnb.readers.cells import NUMBER
from ragnb.readers.document import Document, find_documents
from ragnb.readers.export import GUARD_COLUMN
from ragnb.readers.frames import from_engine, in_memory
from ragnb.readers.names import meanings
from ragnb.schema import METRICS

MOST_COLUMNS = 10_000
_WITH_LINES = ("csv", "tsv", "jsonl")
# The cells of a column: a list, or a series of one simple type, which is worked on as a whole.
Values = Any
_PRESENT = {str, int, bool, list, dict}
TEXT: Any = pd.Series(["a"]).dtype
_SIMPLE = {"integer": "int64", "boolean": "bool", "string": TEXT}
_SIMPLE |= dict.fromkeys(("floating", "mixed-integer-float"), "float64")


@dataclass
class Lossy:
    """The rows of a lossy report, ``what, column, detail, n``, and how much of the input arrived.

    Attributes
    ----------
    rows : list of dict
        ``what``: ``mapped`` to a canonical name or value; ``made`` by the reader; ``clipped`` to an end of its
        range, which it all but is; ``kept`` as it was; ``unparsed`` text, kept as text; ``left_out``; a
        ``bad_line``, which holds no record.
    lines, damaged : int
        The records that a file should hold, and how many of them are damaged or lost; of several files, those of
        the one with the largest share of damaged records.

    Examples
    --------
    >>> report = Lossy()
    >>> report.add("mapped", "user_input", "question", 3)
    >>> report.rows
    [{'what': 'mapped', 'column': 'user_input', 'detail': 'question', 'n': 3}]
    """

    rows: list[dict[str, object]] = field(default_factory=list)
    lines: int = 0
    damaged: int = 0

    def add(self, what: str, column: object, detail: str, n: int = 1) -> None:
        """Add a row; `n` counts the cells, rows or lines it is about, and nothing is added for none."""
        if n:
            self.rows.append(
                {"what": what, "column": None if column is None else str(column), "detail": detail, "n": n}
            )

    def expect(self, lines: int, damaged: int = 0) -> None:
        """Note how many records a file should hold and how many are damaged.

        Of several files the worst stays noted; as long as none is damaged, all records are counted.
        """
        if not self.damaged and not damaged:
            self.lines += lines
        elif not self.lines or damaged * self.lines > self.damaged * lines:
            self.lines, self.damaged = lines, damaged

    def of_file(self, file: str | None, other: Lossy) -> None:
        """Add what became of one file; where there are several, bad lines name it."""
        self.expect(other.lines, other.damaged)
        for row in other.rows:
            named = f"{file}, {row['detail']}" if file and row["what"] == "bad_line" else row["detail"]
            self.rows.append({**row, "detail": named})


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector while cells are created; they contain no cycles."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def column(cells: Any) -> Values:
    """Return cells of one type as a series of ``float64``, ``int64``, ``bool`` or text; any others as a list.

    Examples
    --------
    >>> column(pd.Series([1, 2], dtype="int32")).dtype.name, column([None, 0.5]).tolist(), column([1, "a"])
    ('int64', [nan, 0.5], [1, 'a'])
    """
    values = cells if isinstance(cells, pd.Series) else pd.Series(cells, dtype=object)
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(values.cat.categories.dtype)
    texts = isinstance(values.dtype, pd.StringDtype)
    kind = "string" if texts else pd.api.types.infer_dtype(values, skipna=True)
    wraps = "uint64" in str(values.dtype).lower() or (kind == "boolean" and values.isna().any())
    with suppress(ValueError, TypeError, OverflowError):  # gaps, large numbers, lone surrogates
        if kind in _SIMPLE and not wraps:
            return values.astype(_SIMPLE[kind]).reset_index(drop=True)
    return list(cells)


def is_text(cells: Values) -> bool:
    """Whether the cells are a series of texts."""
    return isinstance(cells, pd.Series) and cells.dtype == TEXT


def text_series(cells: Any) -> Any:
    """Return texts, a list or a column that narwhals holds, as a pandas series; None is missing."""
    if hasattr(cells, "to_arrow") and getattr(TEXT, "storage", None) == "pyarrow":
        return pd.Series(pd.array(cells.to_arrow(), dtype=TEXT))
    return pd.Series(np.array(list(cells), dtype=object), dtype=TEXT)


@dataclass
class Raw:
    """Columns of cells as they were found.

    Parameters
    ----------
    columns : dict of str to list
        All of one length.
    format : str
        What the cells came from, such as ``csv`` or ``frame``.
    file : str
        The name used in messages.
    lines : list of int or None
        The line each row starts on, where the file has lines; its row in its file, where there are several.
    files : list of str or None
        The file of each row, where there are several.
    uneven : RagnbError or None
        The refusal of the first row that has more or fewer cells than the header.
    typed : bool
        False where every cell is text (CSV), so that numbers have to be read out of it.
    scales : dict of column to mapping
        What the layout of a tool knows of its metrics: range, direction and pass threshold.

    Examples
    --------
    >>> Raw({"a": ["1", "2"]}, "csv", "s.csv", [2, 4]).where(1)
    's.csv, line 4: '
    """

    columns: dict[str, Values]
    format: str
    file: str = "the frame"
    lines: list[int] | None = None
    uneven: RagnbError | None = None
    typed: bool = True
    files: list[str] | None = None
    scales: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def clash(self, *names: str) -> str | None:
        """Return where the first record is that fills several columns with different values.

        Examples
        --------
        >>> raw = Raw({"q": ["Who?", None], "question": ["Who? ", "When?"], "input": ["x", "y"]}, "frame")
        >>> raw.clash("q", "question"), raw.clash("question", "input")
        (None, 'the frame, row 1: ')
        """
        rows = enumerate(zip(*(self.columns[name] for name in names), strict=True))
        return next((self.where(i) for i, row in rows if _differ(row)), None)

    def distinct(self, *names: str) -> int:
        """Count the distinct rows of some columns."""
        cells = {name: self.columns[name] for name in names}
        keys = {n: held if isinstance(held, pd.Series) else list(map(str, held)) for n, held in cells.items()}
        return int((~pd.DataFrame(keys, dtype=object).duplicated()).sum())

    def is_count(self, name: str) -> bool:
        """Whether all cells of a column are whole numbers."""
        return all(re.fullmatch(r"\d+(\.0)?", cell) for cell in set(map(str, self.columns[name])))

    def merged(self, target: str, names: Sequence[str], report: Lossy) -> Values:
        """Return the first cell of some columns that holds something, and count what is taken and what is not."""
        cells = list(self.columns[names[0]])
        for name in names[1:]:
            pairs = list(zip(cells, self.columns[name], strict=True))
            used = sum(_filled(other) and not _filled(cell) for cell, other in pairs)
            report.add("mapped", name, f"{target}, where {names[0]!r} is empty", used)
            report.add("left_out", name, f"another column was picked for {target}", sum(map(_differ, pairs)))
            cells = [cell if _filled(cell) else other for cell, other in pairs]
        return cells

    def cells(self, name: str) -> Values:
        """Return the cells of a column, Nones where there is none."""
        return self.columns.get(name, [None] * len(self))

    def where(self, row: int | None = None) -> str:
        """Return the file and the line (or row, counted from 1) for a message."""
        if row is None:
            return place(self.file)
        file = self.file if self.files is None else self.files[row]
        if self.lines is not None and self.format in _WITH_LINES:
            return place(file, self.lines[row])
        return f"{file}, row {row + 1 if self.lines is None else self.lines[row]}: "

    def keep(self, rows: Iterable[int]) -> None:
        """Keep only these rows."""
        chosen = list(rows)
        self.columns = {name: [cells[i] for i in chosen] for name, cells in self.columns.items()}
        if self.lines is not None:
            self.lines = [self.lines[i] for i in chosen]
        if self.files is not None:
            self.files = [self.files[i] for i in chosen]

    def drop(self, out: Iterable[bool], column: str, why: str, report: Lossy, *, need: bool = False) -> None:
        """Drop rows and count them; refuse a table of which nothing is left, if required."""
        kept = [row for row, gone in enumerate(out) if not gone]
        report.add("left_out", column, why, len(self) - len(kept))
        if need and not kept:
            raise RagnbError(f"{self.where()}contains no score except {why}")
        self.keep(kept)

    def need(self, name: str) -> None:
        """Refuse a table without a column."""
        if name not in self.columns:
            raise RagnbError(
                f"{self.where()}has no {name!r} (columns: {listing(self.columns)}); "
                f"name the column: columns={{'…': {name!r}}}"
            )

    def check_even(self) -> None:
        """Refuse a row that has more or fewer cells than the header."""
        if self.uneven:
            raise self.uneven

    def rename(self, names: Mapping[str, str], report: Lossy, read: Callable[..., Any] | None = None) -> None:
        """Call columns by names that are not taken; `read` makes a cell anew, given the new name."""
        for name, ours in names.items():
            if name in self.columns and ours not in self.columns:
                cells = self.columns.pop(name)
                self.columns[ours] = cells if read is None else [read(cell, ours) for cell in cells]
                report.add("mapped", name, ours, len(cells))


def stacked(raws: Sequence[Raw], file: str) -> Raw:
    """Return the tables of several files as one, called `file`.

    Raises
    ------
    RagnbError
        For a file whose columns are not those of the first one.
    """
    first = raws[0]
    for raw in raws[1:]:
        agree(first.file, list(first.columns), raw.file, list(raw.columns), first.format)
    names = dict.fromkeys(name for raw in raws for name in raw.columns)
    columns = {name: [c for raw in raws for c in raw.columns.get(name, [None] * len(raw))] for name in names}
    lines = [at for raw in raws for at in (raw.lines or range(1, len(raw) + 1))]
    files = [raw.file for raw in raws for _ in range(len(raw))]
    uneven = next((raw.uneven for raw in raws if raw.uneven), None)
    return Raw(columns, first.format, file, lines, uneven, first.typed, files)


def agree(file: str, columns: Collection[str], other: str, found: Collection[str], format: str) -> None:
    """Refuse a file whose columns are not those of the first one; the keys of JSON lines may come and go,
    save those of metrics.

    Examples
    --------
    >>> agree("a.csv", ["q", "faithfulness"], "b.csv", ["q"], "csv")
    Traceback (most recent call last):
    ragnb.errors.RagnbError: b.csv: has no column 'faithfulness', which a.csv has; files read as one need the \
same columns
    """
    known = {name for metric in METRICS.values() for name in (metric.name, *metric.aliases)}
    both = [known & set(some) if format == "jsonl" else set(some) for some in (columns, found)]
    for there, has, names in ((other, file, both[0] - both[1]), (file, other, both[1] - both[0])):
        if names:
            raise RagnbError(
                f"{place(there)}has no column {min(names)!r}, which {has} has; "
                "files read as one need the same columns"
            )


def absent(value: object) -> bool:
    """Whether a cell is missing: None, NaN, NA or NaT (an empty text or list is not)."""
    if type(value) in _PRESENT:
        return False
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    return isinstance(value, float) and math.isnan(value)


def _filled(cell: Any) -> bool:
    return not absent(cell) and not (isinstance(cell, str) and not cell.strip())


def _differ(row: Iterable[Any]) -> bool:
    """Whether several cells hold something, and they are not one text (or whole number)."""
    given = filter(_filled, row)
    return len({str(cell).strip() if isinstance(cell, str | int) else object() for cell in given}) > 1


def unpacked(cell: Any, form: str) -> Any:
    r"""Return what the JSON in a text of some form holds; any other cell as it is.

    Examples
    --------
    >>> unpacked('{"a": 1}', r"\{.*"), unpacked("{a}", r"\{.*"), unpacked(7, r"\{.*")
    ({'a': 1}, '{a}', 7)
    """
    with suppress(ValueError):
        return json.loads(cell) if isinstance(cell, str) and re.fullmatch(form, cell, re.DOTALL) else cell
    return cell


def check_width(names: Sized, file: object = None) -> None:
    """Refuse a table with more columns than any tool writes, before its cells fill the memory."""
    if len(names) > MOST_COLUMNS:
        raise RagnbError(
            f"{place(file)}has {len(names):,} columns or more, the most is {MOST_COLUMNS:,}; "
            "a table has one row per sample and one column per metric: transpose it, or split it"
        )


def from_records(records: Iterable[Mapping[str, Any]], file: object = None) -> dict[str, Values]:
    """Turn records into columns in the order their keys appear; an absent key is None.

    Examples
    --------
    >>> from_records([{"a": 1}, {"b": 2}])
    {'a': [1, None], 'b': [None, 2]}
    """
    rows = list(records)
    names: dict[str, None] = {}
    for row in rows:
        if not row.keys() <= names.keys():
            names.update(dict.fromkeys(row))
            check_width(names, file)
    return {str(name): [row.get(name) for row in rows] for name in names}


def check_columns(frame: pd.DataFrame) -> None:
    """Refuse columns in levels, and two columns of one name.

    Examples
    --------
    >>> check_columns(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    Traceback (most recent call last):
    ragnb.errors.RagnbError: column 'a' appears twice; rename one of them
    """
    if frame.columns.nlevels > 1:
        raise RagnbError(
            f"the columns have {frame.columns.nlevels} levels, such as {frame.columns[0]!r}; make them one level: "
            "frame.columns = frame.columns.get_level_values(-1), or join the names: "
            "frame.columns = ['_'.join(map(str, name)) for name in frame.columns]"
        )
    if not frame.columns.is_unique:
        refuse_twice(map(str, frame.columns))


def refuse_twice(names: Iterable[str], where: str = "") -> None:
    """Refuse a name that two columns have."""
    for name, n in Counter(names).items():
        if n > 1:
            raise RagnbError(f"{where}column {name!r} appears twice; rename one of them")


def settle(values: Values) -> pd.Series[Any]:
    """Return typed cells as a column: numbers, nullable booleans, text, or objects as they are.

    Examples
    --------
    >>> [str(settle(values).dtype) for values in ([True, None], [True], [1, 2], [1, None])]
    ['boolean', 'bool', 'int64', 'float64']
    """
    whole = column(values)
    if isinstance(whole, pd.Series) and whole.notna().any():
        return whole
    cells = [None if absent(value) else value for value in whole]
    kind = pd.api.types.infer_dtype(cells, skipna=True)
    if kind == "string":
        return pd.Series(clean_text(cells))
    if kind in ("date", "datetime", "datetime64"):
        return pd.Series(values)
    return pd.Series(cells, dtype={"boolean": "boolean", "integer": "float64"}.get(kind, object))


def clean_text(value: Any) -> Any:
    """Replace lone surrogates, which cannot be written to files, by U+FFFD.

    Examples
    --------
    >>> clean_text({"a": ["x\\ud800"]}) == {"a": ["x\ufffd"]}
    True
    """
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {clean_text(key): clean_text(item) for key, item in value.items()}
    return [clean_text(item) for item in value] if isinstance(value, list) else value


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
