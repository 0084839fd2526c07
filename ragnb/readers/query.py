"""A query as readers see a table: what they ask of its columns, answered by the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ragnb.polars import pl
from ragnb.readers.raw import Lossy, Raw


class Query(Raw):
    """A query whose columns are given names as those of a table in memory are.

    Examples
    --------
    >>> import polars as pl
    >>> query = Query(pl.LazyFrame({"q": ["Who?", ""], "question": ["Who?", "When?"]}), 2)
    >>> query.clash("q", "question"), query.distinct("q")
    (None, 2)
    """

    def __init__(self, frame: pl.LazyFrame, rows: int, file: str = "the frame") -> None:
        self.frame = frame
        self.rows = rows
        self.kinds = frame.collect_schema()
        super().__init__({name: pl.col(name) for name in self.kinds}, "query", file)

    def __len__(self) -> int:
        return self.rows

    def named(self) -> pl.LazyFrame:
        """Return the query with its columns as they are called now."""
        return self.frame.select(cells.alias(name) for name, cells in self.columns.items())

    def clash(self, *names: str) -> str | None:
        """Return where the first record is that fills several columns with different values."""
        cells = []
        for name in names:
            # As in memory, only texts and whole numbers are compared; other cells differ by their columns.
            if self.kinds[name] in (pl.String, pl.Int64):
                text = pl.col(name).cast(pl.String).str.strip_chars()
            else:
                text = pl.lit(name)
            cells.append(pl.when(self._filled(name)).then(text))
        n_different = pl.concat_list(cells).list.drop_nulls().list.n_unique()
        row = item_of(self.frame, (n_different > 1).arg_true().first())
        if row is None:
            return None
        return self.where(row)

    def distinct(self, *names: str) -> int:
        """Count the distinct rows of some columns."""
        row = pl.struct(self.columns[name].alias(name) for name in names)
        _, n_distinct = count_distinct(self.frame, row)
        return n_distinct

    def blanks(self, name: str) -> int:
        """Count the cells of a column that hold nothing."""
        cell = self.columns[name]
        empty = cell.is_null()
        if self._kind(name) == pl.String:
            empty |= cell.str.strip_chars() == ""
        return int(item_of(self.frame, empty.sum()))

    def is_count(self, name: str) -> bool:
        """Whether all cells of a column are whole numbers."""
        odd = ~self.columns[name].cast(pl.String).str.contains(r"^\d+(\.0)?$")
        return not item_of(self.frame, odd.fill_null(True).any())

    def counts_up(self, name: str) -> bool:
        """Whether a column holds the numbers 1, 2, … to its greatest, at least two of them, and nothing else."""
        if not self.is_plain(name) or not self.is_count(name):
            return False
        number = self.columns[name].cast(pl.Float64, strict=False)
        summary = self.frame.select(
            number.min().alias("low"),
            number.max().alias("high"),
            number.n_unique().alias("n_distinct"),
        )
        low, high, n_distinct = summary.collect(engine="streaming").row(0)
        # As many different whole numbers as there are from 1 to the greatest: none is left out.
        return bool(low == 1 and high == n_distinct and n_distinct > 1)

    def is_plain(self, name: str) -> bool:
        """Whether no cell of a column is a list or an object."""
        return not (self._kind(name).is_nested() or self._kind(name) == pl.Object)

    def holds_words(self, name: str) -> bool:
        """Whether all cells of a column are texts, and not all of them numbers."""
        if self._kind(name) != pl.String:
            return False
        cell = self.columns[name]
        is_number = cell.str.contains(r"^[-+.,\d\s%]*$")
        return not item_of(self.frame, cell.is_null().any() | is_number.all())

    def joined(self, names: Sequence[str]) -> pl.Expr:
        """Return the cells of some columns as one text a row."""
        texts = (self.columns[name].cast(pl.String).fill_null("—") for name in names)
        return pl.concat_str(texts, separator=" / ")

    def _kind(self, name: str) -> Any:
        """Return the dtype of a column as it is called now; `kinds` has those of the names in the file."""
        return self.frame.select(self.columns[name]).collect_schema().dtypes()[0]

    def merged(self, target: str, names: Sequence[str], report: Lossy) -> pl.Expr:
        """Return the first cell of some columns that holds something."""
        report.add(
            "mapped", ", ".join(names[1:]), f"{target}, where {names[0]!r} is empty", self.rows
        )
        return pl.coalesce(pl.when(self._filled(name)).then(pl.col(name)) for name in names)

    def _filled(self, name: str) -> pl.Expr:
        """Return whether a cell is neither missing nor a blank text."""
        cell = pl.col(name)
        if self.kinds[name] == pl.String:
            return cell.is_not_null() & (cell.str.strip_chars() != "")
        return cell.is_not_null()


def item_of(frame: pl.LazyFrame, what: pl.Expr) -> Any:
    """Return the one value that an expression over a query gives."""
    return frame.select(what).collect(engine="streaming").item()


# Repeated hashes that a second query confirms; with more of them, a chance of 3e-6 of a wrong count is accepted.
_MOST_CONFIRMED = 10_000


def count_distinct(frame: pl.LazyFrame, key: pl.Expr) -> tuple[int, int]:
    """Count the rows of a query and its distinct keys; sorted hashes take less memory than a set of them.

    Two of 10⁷ different keys share a hash with a chance of 3e-6: hashes that occur again are confirmed, where few.

    Examples
    --------
    >>> import polars as pl
    >>> count_distinct(pl.LazyFrame({"a": ["x", "y", "x", None]}), pl.col("a"))
    (4, 3)
    """
    batches = frame.select(hash=key.hash()).collect_batches(maintain_order=False)
    parts = [batch["hash"].to_numpy() for batch in batches]
    # With an empty part in front, as `concatenate` refuses an empty list.
    hashes = np.concatenate([np.empty(0, np.uint64), *parts])
    hashes.sort()
    repeated = hashes[1:][hashes[1:] == hashes[:-1]]
    shared = np.unique(repeated)
    n_distinct = len(hashes) - len(repeated)
    if 0 < len(shared) <= _MOST_CONFIRMED:
        # Of the keys behind each shared hash one is counted already.
        rows_of_shared = frame.filter(key.hash().is_in(pl.Series(shared).implode()))
        n_distinct += item_of(rows_of_shared, key.n_unique()) - len(shared)
    return len(hashes), n_distinct
