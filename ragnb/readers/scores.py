"""The scores of a column as floats: verdicts, percentages, and what cannot be read."""

from __future__ import annotations

import math
import unicodedata
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError, listing
from ragnb.polars import pl
from ragnb.readers.cells import DECIMAL_COMMA, MISSING_WORDS, NO_NUMBER, NUMBER, PERCENT, SIMPLE
from ragnb.readers.facts import verdict_value
from ragnb.readers.raw import Lossy, Raw, absent, column, is_arrow, is_text
from ragnb.schema import CLIP, Metric, declare_step

# How far below the high end of its range a value is taken for it: 0.9999999999 is a 1.
ROUNDED = 1e-9
VERDICTS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "是": 1.0, "否": 0.0}
# What the report says of a column of flags.
_SAID_TRUE = "True and yes are 1, False and no 0"


def metric_values(raw: Raw, metric: Metric, report: Lossy) -> pd.Series[float]:
    """Return a metric's column as floats in its range; missing cells are NaN.

    Raises
    ------
    RagnbError
        For a text that is not a number, and for a value outside the range, with the place.

    Examples
    --------
    >>> raw = Raw({"faithfulness": ["0.5", "True", "", "0.9999999999"]}, "csv")
    >>> metric_values(raw, Metric("faithfulness"), Lossy()).tolist()
    [0.5, 1.0, nan, 1.0]
    """
    values = _simple_numbers(raw.columns[metric.name], metric.name, report)
    if values is None:
        values = np.array(_numbers(raw, metric, report), dtype=float)
    for end, near in near_ends(values, metric):
        report.add("clipped", metric.name, f"within {CLIP:g} of {end:g}", int(near.sum()))
        values[near] = end
    outside = (values < metric.low) | (values > metric.high)
    present = values[~np.isnan(values)]
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        # The proposed scale also spans the columns beside this one where one judge may have scored them all.
        low, high = raw.spans.get(metric.name, (present.min(), present.max()))
        step = two_scales(present) or declare_step(metric.name, low, high)
        raise RagnbError(
            f"{raw.where(row)}column {metric.name!r}: {values[row]:.12g} lies outside "
            f"{metric.low:g}..{metric.high:g} ({int(outside.sum())} of {len(present)} values do); {step}"
        )
    if metric.high > 1:
        mixed = two_scales(present)
        if mixed:
            report.add("kept", metric.name, mixed, len(values))
    return pd.Series(values)


def _simple_numbers(cells: Any, name: str, report: Lossy) -> npt.NDArray[np.float64] | None:
    """Return numbers, or texts of numbers in the usual notation, as floats at once; None where one is no such."""
    whole = column(cells)
    # An infinite number is left to `_numbers`, whose refusal names its cell.
    if isinstance(whole, pd.Series) and not is_text(whole) and not np.isinf(whole).any():
        if whole.dtype == bool:
            report.add("mapped", name, _SAID_TRUE, len(cells))
        return whole.to_numpy(dtype=float, copy=True)
    if is_arrow(cells):
        text = pl.Series(cells)
        if text.str.contains(f"^(?:{SIMPLE.pattern})?$").all():
            return text.cast(pl.Float64, strict=False).to_numpy(writable=True)
    if set(map(type, cells)) == {str} and all(map(SIMPLE.fullmatch, filter(None, cells))):
        return np.array([float(cell or "nan") for cell in cells])
    return None


def two_scales(values: npt.NDArray[np.float64]) -> str:
    """Return what says that scores are on two scales, some within 0 and 1 and some as percent; else nothing.

    Examples
    --------
    >>> two_scales(np.array([0.7, 0.8, 0.0, 75.0, 81.0]))
    'values on two scales: 3 from 0 to 0.8 and 2 from 75 to 81; bring them on one scale, such as 0.6 for 60'
    >>> two_scales(np.array([0.5, 2.0, 7.5])), two_scales(np.array([0.0, 50.0, 100.0]))
    ('', '')
    """
    small = values[(values >= 0) & (values <= 1)]
    large = values[values > 1]
    # 0 and 1 may be on either scale and tell nothing.
    n_fractions = int(((small > 0) & (small < 1)).sum())
    fewest = max(2, _FEW_OF_A_SCALE * len(values))
    if n_fractions < fewest or len(large) < fewest:
        return ""
    if large.min() < _GAP or large.max() > _MOST_PERCENT or values.min() < 0:
        return ""
    return (
        f"values on two scales: {len(small)} from {small.min():g} to {small.max():g} and {len(large)} from "
        f"{large.min():g} to {large.max():g}; bring them on one scale, such as 0.6 for 60"
    )


# A scale of more than 1 that is used has values between 1 and this; of another scale there are more than a few.
_GAP = 3
# Of the values: fewer that are far above the others are slips, not a second scale.
_FEW_OF_A_SCALE = 0.05
_MOST_PERCENT = 100  # what is larger is no percentage


def near_ends(values: Any, metric: Metric) -> list[tuple[float, Any]]:
    """Return the ends of a metric's range, and which values, of an array or a query, are taken for each."""
    low = float(metric.low)
    high = float(metric.high)
    below = (values < low) & (values >= low - CLIP)
    above = (values != high) & (values >= high - ROUNDED) & (values <= high + CLIP)
    # A count or a cost has no high end.
    return [(end, near) for end, near in ((low, below), (high, above)) if math.isfinite(end)]


def _numbers(raw: Raw, metric: Metric, report: Lossy) -> list[float]:
    """Return the numbers of cells, and list those in unusual notation.

    A comma is a decimal one only in a file of texts, and where it can set off no thousands. Percent signs count
    where every number has one, so that no column is of two scales.
    """
    name = metric.name
    given = raw.columns[name]
    # NFKC turns full-width digits, as Chinese and Japanese keyboards write them, into the usual ones.
    cells = [
        unicodedata.normalize("NFKC", cell).strip() if isinstance(cell, str) else cell
        for cell in given
    ]
    if not raw.typed:
        n_commas = 0
        for row, cell in enumerate(cells):
            if isinstance(cell, str) and DECIMAL_COMMA.fullmatch(cell):
                cells[row] = cell.replace(",", ".")
                n_commas += 1
        report.add("mapped", name, "decimal commas", n_commas)
    words = [str(cell).casefold() if isinstance(cell, str | bool) else None for cell in cells]
    report.add("mapped", name, _SAID_TRUE, sum(word in VERDICTS for word in words))
    marks_of_missing = NO_NUMBER - MISSING_WORDS
    marks = [word for word in words if word in marks_of_missing]
    report.add("mapped", name, f"missing: {listing(dict.fromkeys(marks))}", len(marks))
    present = [
        row for row, cell in enumerate(cells) if not absent(cell) and words[row] not in NO_NUMBER
    ]
    values = [math.nan] * len(cells)
    verdicts = [verdict_value(cells[row]) for row in present]
    if None not in verdicts:  # in words of merit too, as PASS and FAIL
        for row, verdict in zip(present, verdicts, strict=True):
            values[row] = verdict[0] if verdict else math.nan
        return values
    if metric.high in (1, 100) and all(PERCENT.fullmatch(str(cells[row])) for row in present):
        divisor = 1 if metric.high == 100 else 100
        for row in present:
            cells[row] = float(Decimal(cells[row].rstrip("% ")) / divisor)
        why = f"percent signs, read as {metric.low:g} to {metric.high:g}"
        report.add("mapped", name, why, len(present))
    for row in present:
        value = _number(cells[row], words[row])
        if math.isinf(value):
            raise _no_number(raw, name, row, given[row])
        values[row] = value
    return values


def _number(cell: Any, word: str | None) -> float:
    """Return the number in a cell, whose text in lower case is `word`; infinity for what is none."""
    if word in VERDICTS:
        return VERDICTS[word]
    if isinstance(cell, Real | Decimal | np.bool_):
        return float(cell)
    if word is not None and NUMBER.fullmatch(word):
        return float(cell)
    return math.inf


def _no_number(raw: Raw, name: str, row: int, cell: Any) -> RagnbError:
    """Return the refusal of a cell that is no number, with its place."""
    if str(cell).strip().endswith("%"):
        step = "; write 0.87 for 87%"
    else:
        step = (
            "; write a number in its place, or keep the column as text: "
            f"columns={{{name!r}: '{name}_text'}}"
        )
    return RagnbError(
        f"{raw.where(row)}column {name!r}: found {repr(cell)[:80]}, "
        f"expected a number or an empty cell{step}"
    )
