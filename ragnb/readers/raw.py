"""The raw table of a file or frame, before names and cells are canonical, and the report of changes."""

from __future__ import annotations

import gc
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError, listing, place
from ragnb.readers.facts import Direction, Fact, FactName, fact_row
from ragnb.schema import METRICS

# Of a table: what has more is none, such as a matrix or a file in another format.
MOST_COLUMNS = 10_000
LISTED_LINES = 100  # by number; the rest are counted
# The formats whose rows have the number of a line; those of any other are numbered from 1.
_WITH_LINES = ("csv", "tsv", "jsonl")
# The cells of a column: a list, or a series of one simple type, which is worked on as a whole.
Values = Any
# The types of cells that are never missing.
_PRESENT = {str, int, bool, list, dict}
# What pandas makes of texts: with PyArrow installed a dtype that Polars can share, else texts of Python.
TEXT: Any = pd.Series(["a"]).dtype
_IN_ARROW = getattr(TEXT, "storage", None) == "pyarrow"
# The dtype of a column of one simple type, by what `pandas.api.types.infer_dtype` calls it.
_SIMPLE = {
    "integer": "int64",
    "floating": "float64",
    "mixed-integer-float": "float64",
    "boolean": "bool",
    "string": TEXT,
}
# What such cells are where some are missing or cannot be written; pandas finds the kind of a date.
_GAPPED: dict[str, Any] = {
    "integer": "float64",
    "boolean": "boolean",
    "string": TEXT,
    "date": None,
    "datetime": None,
    "datetime64": None,
}


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
        if n > 0:
            column = None if column is None else str(column)
            self.rows.append({"what": what, "column": column, "detail": detail, "n": n})

    def expect(self, lines: int, damaged: int = 0) -> None:
        """Note how many records a file should hold and how many are damaged.

        Of several files the worst stays noted; as long as none is damaged, all records are counted.
        """
        if not self.damaged and not damaged:
            self.lines += lines
            return
        # damaged / lines > self.damaged / self.lines, without a division by an empty file's 0.
        is_worse = damaged * self.lines > self.damaged * lines
        if not self.lines or is_worse:
            self.lines = lines
            self.damaged = damaged

    def of_file(self, file: str | None, other: Lossy) -> None:
        """Add what became of one file; where there are several, bad lines name it."""
        self.expect(other.lines, other.damaged)
        for row in other.rows:
            detail = row["detail"]
            if file and row["what"] == "bad_line":
                detail = f"{file}, {detail}"
            self.rows.append({**row, "detail": detail})


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
    if isinstance(cells, pd.Series):
        values = cells
    else:
        values = pd.Series(cells, dtype=object)
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(values.cat.categories.dtype)
    if isinstance(values.dtype, pd.StringDtype):
        kind = "string"
    else:
        kind = pd.api.types.infer_dtype(values, skipna=True)
    # Without an error, a large uint64 would become a negative int64, and a missing cell True or False.
    is_unsigned = "uint64" in str(values.dtype).lower()
    is_gapped_boolean = kind == "boolean" and values.isna().any()
    if kind in _SIMPLE and not (is_unsigned or is_gapped_boolean):
        with suppress(ValueError, TypeError, OverflowError):  # gaps, large numbers, lone surrogates
            return values.astype(_SIMPLE[kind]).reset_index(drop=True)
    return list(cells)


def is_text(cells: Values) -> bool:
    """Whether the cells are a series of texts."""
    return isinstance(cells, pd.Series) and cells.dtype == TEXT


def is_arrow(cells: Values) -> bool:
    """Whether the cells are a series of texts that Polars can share."""
    return is_text(cells) and _IN_ARROW


def text_series(cells: Any) -> Any:
    """Return texts, a list or a column that narwhals holds, as a pandas series; None is missing."""
    # Straight from Arrow: a Python text for each cell would take most of the time and memory.
    if hasattr(cells, "to_arrow") and _IN_ARROW:
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
    lines : list or None
        The line each row starts on, where the file has lines. Where there are several files, the file of each row,
        and its line or row there.
    uneven : RagnbError or None
        The refusal of the first row that has more or fewer cells than the header.
    typed : bool
        False where every cell is text (CSV), so that numbers have to be read out of it.
    scales : dict of column to mapping
        What the layout of a tool knows of its metrics: range, direction and pass threshold.
    verdicts : dict of column to Direction
        Which end of a metric is better, as verdicts beside its scores say.
    spans : dict of metric to (low, high)
        The values of a metric outside its range and of those beside it, from which a scale is proposed.
    facts : list of Fact
        What was found out about metrics, rows and owners, with the evidence.
    graded : set of str
        Columns of grades that are no plain numbers and no metrics yet.

    Examples
    --------
    >>> Raw({"a": ["1", "2"]}, "csv", "s.csv", [2, 4]).where(1)
    's.csv, line 4: '
    """

    columns: dict[str, Values]
    format: str
    file: str = "the frame"
    lines: Sequence[Any] | None = None
    uneven: RagnbError | None = None
    typed: bool = True
    scales: dict[str, dict[str, Any]] = field(default_factory=dict)
    verdicts: dict[str, Direction] = field(default_factory=dict)
    spans: dict[str, tuple[float, float]] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    graded: set[str] = field(default_factory=set)
    _codes: dict[int, tuple[Values, npt.NDArray[np.intp], int]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def fact(
        self, metric: str | None, fact: FactName, value: Any, evidence: str, *, open: bool = False
    ) -> None:
        """Record a fact of a metric, or of the table, with its evidence."""
        self.facts.append(fact_row(metric, fact, value, evidence, open=open))

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
        cells_of_rows = zip(*(self.columns[name] for name in names), strict=True)
        for row, cells in enumerate(cells_of_rows):
            if _differ(cells):
                return self.where(row)
        return None

    def distinct(self, *names: str) -> int:
        """Count the distinct rows of some columns."""
        codes, n_distinct = self._coded(self.columns[names[0]])
        for name in names[1:]:
            other_codes, n_others = self._coded(self.columns[name])
            # Each pair of codes as one number, renumbered after each column so that no product overflows.
            codes, pairs = pd.factorize(codes * n_others + other_codes)
            n_distinct = len(pairs)
        return n_distinct

    def _coded(self, column: Values) -> tuple[npt.NDArray[np.intp], int]:
        """Return the cells of a column as codes 0 … n − 1, and n; those of a series are kept."""
        if not isinstance(column, pd.Series):
            # As texts, since lists and objects have no hash.
            codes, values = pd.factorize(pd.Series([*map(str, column)], dtype=object))
            return codes, len(values)
        if id(column) not in self._codes:
            codes, values = pd.factorize(column, use_na_sentinel=False)
            # With the series itself, whose number another would have once it is gone.
            self._codes[id(column)] = (column, codes, len(values))
        _, codes, n_values = self._codes[id(column)]
        return codes, n_values

    def blanks(self, name: str) -> int:
        """Count the cells of a column that hold nothing."""
        return sum(not _filled(cell) for cell in self.columns[name])

    def is_count(self, name: str) -> bool:
        """Whether all cells of a column are whole numbers."""
        distinct_cells = set(map(str, self.columns[name]))
        # pandas writes whole numbers beside a missing one as 1.0.
        return all(re.fullmatch(r"\d+(\.0)?", cell) for cell in distinct_cells)

    def counts_up(self, name: str) -> bool:
        """Whether a column holds the numbers 1, 2, … to its greatest, at least two of them, and nothing else."""
        if not self.is_plain(name) or not self.is_count(name):
            return False
        numbers = {int(float(cell)) for cell in map(str, self.columns[name])}
        return len(numbers) > 1 and numbers == {*range(1, len(numbers) + 1)}

    def is_plain(self, name: str) -> bool:
        """Whether no cell of a column is a list or an object."""
        cells = self.columns[name]
        return isinstance(cells, pd.Series) or not any(isinstance(c, list | dict) for c in cells)

    def holds_words(self, name: str) -> bool:
        """Whether all cells of a column are texts, and not all of them numbers."""
        cells = self.columns[name]
        if isinstance(cells, pd.Series) and not is_text(cells):
            return False
        if not all(isinstance(cell, str) for cell in cells):
            return False
        distinct_texts = {cell.strip() for cell in cells}
        return not all(re.fullmatch(r"[-+.,\d\s%]*", text) for text in distinct_texts)

    def joined(self, names: Sequence[str]) -> Values:
        """Return the cells of some columns as one text a row, such as ``300 / 0.2``."""
        rows = zip(*(self.columns[name] for name in names), strict=True)
        return [" / ".join(_short(cell) for cell in row) for row in rows]

    def merged(self, target: str, names: Sequence[str], report: Lossy) -> Values:
        """Return the first cell of some columns that holds something, and count what is taken and what is not."""
        cells = list(self.columns[names[0]])
        for name in names[1:]:
            pairs = list(zip(cells, self.columns[name], strict=True))
            n_used = sum(_filled(other) and not _filled(cell) for cell, other in pairs)
            n_lost = sum(map(_differ, pairs))
            report.add("mapped", name, f"{target}, where {names[0]!r} is empty", n_used)
            report.add("left_out", name, f"another column was picked for {target}", n_lost)
            cells = [cell if _filled(cell) else other for cell, other in pairs]
        return cells

    def cells(self, name: str) -> Values:
        """Return the cells of a column, Nones where there is none."""
        return self.columns.get(name, [None] * len(self))

    def where(self, row: int | None = None) -> str:
        """Return the file and the line (or row, counted from 1) for a message."""
        if row is None:
            return place(self.file)
        file = self.file
        number = row + 1 if self.lines is None else self.lines[row]
        # Of several files that are read as one, each row knows its own; see `stacked`.
        if isinstance(number, tuple):
            file, number = number
        if self.lines and self.format in _WITH_LINES:
            return place(file, number)
        return f"{file}, row {number}: "

    def keep(self, rows: Iterable[int]) -> None:
        """Keep only these rows."""
        chosen = list(rows)
        self.columns = {
            name: [cells[row] for row in chosen] for name, cells in self.columns.items()
        }
        if self.lines:
            self.lines = [self.lines[row] for row in chosen]

    def drop(
        self, out: Iterable[bool], column: str, why: str, report: Lossy, *, need: bool = False
    ) -> None:
        """Drop rows and count them; refuse a table of which nothing is left, if required."""
        kept = [row for row, gone in enumerate(out) if not gone]
        report.add("left_out", column, why, len(self) - len(kept))
        if need and not kept:
            raise RagnbError(f"{self.where()}contains no score except {why}")
        self.keep(kept)

    def lose(self, rows: Collection[int], why: str | Mapping[int, str], report: Lossy) -> None:
        """Leave out damaged records, and count and list them with their places as lost.

        Examples
        --------
        >>> raw, report = Raw({"a": [1, "x"]}, "json", "s.json"), Lossy()
        >>> raw.lose([1], "a is no number", report)
        >>> raw.columns, report.damaged, report.rows[0]["detail"]
        ({'a': [1]}, 1, 's.json, row 2: the record is damaged: a is no number')
        """
        for row in list(rows)[:LISTED_LINES]:
            reason = why if isinstance(why, str) else why[row]
            report.add("bad_line", None, f"{self.where(row)}the record is damaged: {reason}")
        report.add("bad_line", None, "further bad lines", len(rows) - LISTED_LINES)
        report.damaged += len(rows)
        if rows:
            lost = set(rows)
            self.keep(row for row in range(len(self)) if row not in lost)

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

    def rename(
        self, names: Mapping[str, str], report: Lossy, read: Callable[..., Any] | None = None
    ) -> None:
        """Call columns by names that are not taken; `read` makes a cell anew, given the new name."""
        for name, ours in names.items():
            if name not in self.columns or ours in self.columns:
                continue
            cells = self.columns.pop(name)
            report.add("mapped", name, ours, len(cells))
            if read is not None:
                cells = [read(cell, ours) for cell in cells]
            self.columns[ours] = cells


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
    columns: dict[str, Values] = {name: [] for raw in raws for name in raw.columns}
    lines: list[tuple[str, Any]] = []
    for raw in raws:
        for name, cells in columns.items():
            # Not +=, to which a series would answer with a sum of each of its cells.
            cells.extend(raw.cells(name))
        numbers = raw.lines or range(1, len(raw) + 1)
        lines += [(raw.file, number) for number in numbers]
    uneven = next((raw.uneven for raw in raws if raw.uneven), None)
    return Raw(columns, first.format, file, lines, uneven, first.typed)


def agree(
    file: str, columns: Collection[str], other: str, found: Collection[str], format: str
) -> None:
    """Refuse a file whose columns are not those of the first one; the keys of JSON lines may come and go,
    save those of metrics.

    Examples
    --------
    >>> agree("a.csv", ["q", "faithfulness"], "b.csv", ["q"], "csv")
    Traceback (most recent call last):
    ragnb.errors.RagnbError: b.csv: has no column 'faithfulness', which a.csv has; files read as one need the \
same columns
    """
    needed = set(columns)
    present = set(found)
    if format == "jsonl":
        metrics = {name for metric in METRICS.values() for name in (metric.name, *metric.aliases)}
        needed &= metrics
        present &= metrics
    for lacking, having, names in (
        (other, file, needed - present),
        (file, other, present - needed),
    ):
        if names:
            raise RagnbError(
                f"{place(lacking)}has no column {min(names)!r}, which {having} has; "
                "files read as one need the same columns"
            )


def absent(value: object) -> bool:
    """Whether a cell is missing: None, NaN, NA or NaT (an empty text or list is not)."""
    if type(value) in _PRESENT:  # which is quicker
        return False
    return (
        value is None
        or value is pd.NA
        or value is pd.NaT
        or (isinstance(value, float) and math.isnan(value))
    )


def _short(cell: Any) -> str:
    """Return a cell as a part of a name: a whole float without its ``.0``."""
    if absent(cell):
        return "—"
    whole = isinstance(cell, float) and cell.is_integer()
    if whole:
        return str(int(cell))
    return str(cell).strip()


def _filled(cell: Any) -> bool:
    """Return whether a cell holds something: it is neither missing nor a blank text."""
    if isinstance(cell, str):
        return bool(cell.strip())
    return not absent(cell)


def _differ(row: Iterable[Any]) -> bool:
    """Whether several cells hold something, and they are not one text (or whole number)."""
    filled = [cell for cell in row if _filled(cell)]
    if len(filled) < 2:
        return False
    # Only texts and whole numbers are compared: two lists or fractions count as different, even if they are equal.
    if not all(isinstance(cell, str | int) for cell in filled):
        return True
    return len({str(cell).strip() for cell in filled}) > 1


def unpacked(cell: Any, form: str) -> Any:
    r"""Return what the JSON in a text of some form holds; any other cell as it is.

    Examples
    --------
    >>> unpacked('{"a": 1}', r"\{.*"), unpacked("{a}", r"\{.*"), unpacked(7, r"\{.*")
    ({'a': 1}, '{a}', 7)
    """
    if isinstance(cell, str) and re.fullmatch(form, cell, re.DOTALL):
        with suppress(ValueError):
            return json.loads(cell)
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
        # Nearly all rows have the keys of those before them.
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
        cells = clean_text(cells)
    return pd.Series(cells, dtype=_GAPPED.get(kind, object))


def clean_text(value: Any) -> Any:
    """Replace lone surrogates, which cannot be written to files, by U+FFFD.

    Examples
    --------
    >>> clean_text({"a": ["x\\ud800"]}) == {"a": ["x\ufffd"]}
    True
    """
    if isinstance(value, str):
        # Two surrogates that make a pair become their character; one alone cannot be decoded.
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {clean_text(key): clean_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clean_text(item) for item in value]
    return value
