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
        kinds = (pl.String, pl.Int64)
        text = {
            n: pl.col(n).cast(pl.String).str.strip_chars() for n in names if self.kinds[n] in kinds
        }
        # Cells without a text are told apart by their columns.
        cells = [pl.when(self._filled(n)).then(text.get(n, pl.lit(n))) for n in names]
        row = item_of(
            self.frame,
            (pl.concat_list(cells).list.drop_nulls().list.n_unique() > 1).arg_true().first(),
        )
        if row is None:
            return None
        return self.where(row)

    def distinct(self, *names: str) -> int:
        """Count the distinct rows of some columns."""
        return count_distinct(
            self.frame, pl.struct(self.columns[name].alias(name) for name in names)
        )[1]

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
        ends = self.frame.select(
            number.min().alias("low"), number.max().alias("high"), number.n_unique().alias("n")
        )
        low, high, n = ends.collect(engine="streaming").row(0)
        return bool(low == 1 and high == n > 1)

    def is_plain(self, name: str) -> bool:
        """Whether no cell of a column is a list or an object."""
        return not (self._kind(name).is_nested() or self._kind(name) == pl.Object)

    def holds_words(self, name: str) -> bool:
        """Whether all cells of a column are texts, and not all of them numbers."""
        if self._kind(name) != pl.String:
            return False
        number = self.columns[name].str.contains(r"^[-+.,\d\s%]*$")
        return not item_of(self.frame, (self.columns[name].is_null().any() | number.all()))

    def joined(self, names: Sequence[str]) -> pl.Expr:
        """Return the cells of some columns as one text a row."""
        texts = (self.columns[name].cast(pl.String).fill_null("—") for name in names)
        return pl.concat_str(texts, separator=" / ")

    def _kind(self, name: str) -> Any:
        return self.frame.select(self.columns[name]).collect_schema().dtypes()[0]

    def merged(self, target: str, names: Sequence[str], report: Lossy) -> pl.Expr:
        """Return the first cell of some columns that holds something."""
        report.add(
            "mapped", ", ".join(names[1:]), f"{target}, where {names[0]!r} is empty", self.rows
        )
        return pl.coalesce(pl.when(self._filled(name)).then(pl.col(name)) for name in names)

    def _filled(self, name: str) -> pl.Expr:
        cell = pl.col(name)
        text = self.kinds[name] == pl.String
        return cell.is_not_null() & (cell.str.strip_chars() != "" if text else pl.lit(True))


def item_of(frame: pl.LazyFrame, what: pl.Expr) -> Any:
    return frame.select(what).collect(engine="streaming").item()


def count_distinct(frame: pl.LazyFrame, key: pl.Expr) -> tuple[int, int]:
    """Count the rows of a query and its distinct keys; sorted hashes take less memory than a set of them.

    Two of 10⁷ different keys share a hash with a chance of 3e-6: hashes that occur again are confirmed, where few.

    Examples
    --------
    >>> import polars as pl
    >>> count_distinct(pl.LazyFrame({"a": ["x", "y", "x", None]}), pl.col("a"))
    (4, 3)
    """
    parts = frame.select(hash=key.hash()).collect_batches(maintain_order=False)
    hashes = np.concatenate([np.empty(0, np.uint64), *(part["hash"].to_numpy() for part in parts)])
    hashes.sort()
    again = hashes[1:][hashes[1:] == hashes[:-1]]
    shared = np.unique(again)
    n_distinct = len(hashes) - len(again)
    if 0 < len(shared) <= 10_000:
        n_distinct += item_of(
            frame.filter(key.hash().is_in(pl.Series(shared).implode())), key.n_unique()
        ) - len(shared)
    return len(hashes), n_distinct
