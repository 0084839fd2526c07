"""One form for every text: composed and lower-cased, where only the texts that change are worked on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import polars as pl

# Characters that every text in Unicode form NFC may hold in any order, in the ranges that answers are written in.
_SETTLED = (
    r"\x{0}-\x{2FF}\x{400}-\x{482}\x{2010}-\x{2027}\x{2030}-\x{205E}\x{20A0}-\x{20CF}\x{2190}-\x{21FF}"
    r"\x{2500}-\x{27BF}\x{3000}-\x{3029}\x{3031}-\x{3098}\x{309B}-\x{312F}\x{3400}-\x{4DBF}\x{4E00}-\x{9FFF}"
    r"\x{AC00}-\x{D7A3}\x{FF00}-\x{FFEF}\x{1F300}-\x{1FAFF}"
)


_UNSETTLED = rf"[[^{_SETTLED}]\p{{Changes_When_Lowercased}}\p{{Unassigned}}]"


def unsettled(texts: pl.Series) -> pl.Series:
    """Return which texts hold a character that `composed` or `lowered` may change.

    Examples
    --------
    >>> import polars as pl
    >>> unsettled(pl.Series(["Yes", "e\\u0301", "資料", None])).to_list()
    [True, True, False, False]
    """
    return texts.str.contains(_UNSETTLED).fill_null(False)


def composed(series: pl.Series, among: pl.Series | None = None) -> pl.Series:
    """Return texts in Unicode form NFC; only those that may change, all of them `among` the given, are worked on.

    Examples
    --------
    >>> import polars as pl
    >>> composed(pl.Series(["e\\u0301", "e"])).to_list() == ["\\u00e9", "e"]
    True
    """
    wide = series.str.len_bytes() != series.str.len_chars()
    wide = wide if among is None else wide & among
    if not wide.any():
        return series
    rows = wide.fill_null(False).arg_true()
    rows = rows.filter(series.gather(rows).str.contains(f"[^{_SETTLED}]"))
    return changed(series, rows, lambda texts: texts.str.normalize("NFC"))


def changed(series: pl.Series, rows: pl.Series, change: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Return a series with some of its rows changed; the others are not worked on.

    Examples
    --------
    >>> import polars as pl
    >>> changed(pl.Series(["a", "b"]), pl.Series([1]), lambda texts: texts + "!").to_list()
    ['a', 'b!']
    """
    import polars as pl

    if not len(rows):
        return series
    place = np.arange(len(series))
    place[rows.to_numpy()] = len(series) + np.arange(len(rows))
    return pl.concat([series, change(series.gather(rows))]).gather(place)


def lowered(texts: pl.Series, among: pl.Series | None = None) -> pl.Series:
    """Return texts lower-cased; only those that may change, all of them `among` the given, are worked on.

    Examples
    --------
    >>> import polars as pl
    >>> lowered(pl.Series(["Yes", "資料", None, "no"])).to_list()
    ['yes', '資料', None, 'no']
    """
    rows = (unsettled(texts) if among is None else among).arg_true()
    return changed(texts, rows, lambda found: found.str.to_lowercase())
