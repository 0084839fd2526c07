"""What gold wants of every trace: a row of gold at a time, reached through the row that each trace met."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError
from ragnb.traces import answers, columns
from ragnb.traces.columns import Lists, Positions, absent

if TYPE_CHECKING:
    import polars as pl

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Gold:
    """What gold says, a row of gold at a time, and the row that each trace met (−1 for none).

    Attributes
    ----------
    row : (N,) int
    answerable : (M,) float
    ids : Lists, or None where gold has answerable questions and names no ids anywhere
    claims : (M,) series of str
    """

    row: Positions
    answerable: Floats
    ids: Lists | None
    claims: pl.Series

    @classmethod
    def of(cls, gold: Any, row: Positions) -> Gold:
        """Read gold's columns."""
        ids, able = Lists.of(gold, "gold_ids").distinct(), answerable(gold)
        told = len(ids.names) > 0 or (ids.there.any() and not (able == 1).any())
        claims = answers.tidy(columns.texts(gold, "gold_claim"))
        return cls(row, able, ids if told else None, claims)

    def answerable_rows(self) -> Floats:
        """Return `answerable` for each trace, nan where it met no gold."""
        return np.append(self.answerable, np.nan)[self.row]

    def members(self, lists: Lists) -> tuple[Positions, Positions]:
        """Return which entries of the traces' lists are gold ids of their row, and a number for each such id."""
        import polars as pl

        nothing = np.empty(0, dtype=np.int64)
        if self.ids is None or not len(self.ids.names) or not len(lists.names):
            return nothing, nothing
        known, wanted = self._pairs
        own = lists.names.replace_strict(known, np.arange(len(known)), default=None, return_dtype=pl.Int64)
        at = own.is_not_null().arg_true().to_numpy()
        row = self.row[lists.rows[at]]
        at, row = at[row >= 0], row[row >= 0]
        number = own.gather(at).to_numpy()
        met = pl.Series(row * len(known) + number).is_in(wanted).to_numpy()
        return at[met], number[met]

    @cached_property
    def _pairs(self) -> tuple[pl.Series, pl.Series]:
        """The distinct ids, and a number for each pair of a row of gold and one of its ids, all in one list."""
        import polars as pl

        ids = Lists.none(0) if self.ids is None else self.ids
        known = ids.names.unique(maintain_order=True)
        numbers = ids.names.replace_strict(known, np.arange(len(known)), return_dtype=pl.Int64)
        return known, pl.Series(ids.rows * len(known) + numbers.to_numpy()).implode()


def answerable(gold: Any) -> Floats:
    """Return gold's `answerable` as 1, 0 or nan.

    Raises
    ------
    RagnbError
        For a value that is not true or false.

    Examples
    --------
    >>> answerable(pd.DataFrame({"answerable": [True, False, None]}))
    array([ 1.,  0., nan])
    """
    out = np.full(len(gold), np.nan)
    for at, value in enumerate(columns.column(gold, "answerable")):
        if absent(value):
            continue
        if not isinstance(value, bool | np.bool_ | int | float | np.number) or value not in (0, 1):
            row = gold.index[at] if isinstance(gold, pd.DataFrame) else at
            raise RagnbError(f"column 'answerable', row {row!r}: {value!r} is neither true nor false")
        out[at] = float(value)
    return out
