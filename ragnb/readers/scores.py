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
    cells = raw.columns[metric.name]
    whole = column(cells)
    if isinstance(whole, pd.Series) and not is_text(whole) and not np.isinf(whole).any():
        values = whole.to_numpy(dtype=float, copy=True)
        report.add("mapped", metric.name, _SAID_TRUE, len(cells) * (whole.dtype == bool))
    elif (
        is_arrow(cells)
        and (text := pl.Series(cells)).str.contains(f"^(?:{SIMPLE.pattern})?$").all()
    ):
        values = text.cast(pl.Float64, strict=False).to_numpy(writable=True)
    elif set(map(type, cells)) == {str} and all(map(SIMPLE.fullmatch, filter(None, cells))):
        values = np.array([float(cell or "nan") for cell in cells])
    else:
        values = np.array(_numbers(raw, metric, report), dtype=float)
    for end, near in near_ends(values, metric):
        report.add("clipped", metric.name, f"within {CLIP:g} of {end:g}", int(near.sum()))
        values[near] = end
    outside = (values < metric.low) | (values > metric.high)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        present = values[~np.isnan(values)]
        low, high = raw.spans.get(metric.name, (present.min(), present.max()))
        mixed = two_scales(present)
        step = mixed or declare_step(metric.name, low, high)
        raise RagnbError(
            f"{raw.where(row)}column {metric.name!r}: {values[row]:.12g} lies outside "
            f"{metric.low:g}..{metric.high:g} ({int(outside.sum())} of {len(present)} values do); {step}"
        )
    if metric.high > 1:
        mixed = two_scales(values[~np.isnan(values)])
        report.add("kept", metric.name, mixed, len(values) * bool(mixed))
    return pd.Series(values)


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
    fractions = int(((small > 0) & (small < 1)).sum())
    least = max(2, _FEW_OF_A_SCALE * len(values))
    few = fractions < least or len(large) < least
    if few or large.min() < _GAP or large.max() > _MOST_PERCENT or values.min() < 0:
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
    return [(end, near) for end, near in ((low, below), (high, above)) if math.isfinite(end)]


def _numbers(raw: Raw, metric: Metric, report: Lossy) -> list[float]:
    """Return the numbers of cells, and list those in unusual notation.

    A comma is a decimal one only in a file of texts, and where it can set off no thousands. Percent signs count
    where every number has one, so that no column is of two scales.
    """
    name = metric.name
    given = raw.columns[metric.name]
    cells = [
        unicodedata.normalize("NFKC", cell).strip() if isinstance(cell, str) else cell
        for cell in given
    ]
    commas = [
        i for i, cell in enumerate(cells) if isinstance(cell, str) and DECIMAL_COMMA.fullmatch(cell)
    ]
    for i in commas * (not raw.typed):
        cells[i] = cells[i].replace(",", ".")
    report.add("mapped", name, "decimal commas", len(commas) * (not raw.typed))
    words = [str(cell).casefold() if isinstance(cell, str | bool) else None for cell in cells]
    report.add("mapped", name, _SAID_TRUE, sum(w in VERDICTS for w in words))
    marks = [word for word in words if word in NO_NUMBER - MISSING_WORDS]
    report.add("mapped", name, f"missing: {listing(dict.fromkeys(marks))}", len(marks))
    present = [i for i, cell in enumerate(cells) if not absent(cell) and words[i] not in NO_NUMBER]
    verdicts = [verdict_value(cells[i]) for i in present]
    if None not in verdicts:  # in words of merit too, as PASS and FAIL
        values = [math.nan] * len(cells)
        for i, verdict in zip(present, verdicts, strict=True):
            values[i] = verdict[0] if verdict else math.nan
        return values
    if metric.high in (1, 100) and all(PERCENT.fullmatch(str(cells[i])) for i in present):
        for i in present:
            cells[i] = float(Decimal(cells[i].rstrip("% ")) / (1 if metric.high == 100 else 100))
        report.add(
            "mapped",
            name,
            f"percent signs, read as {metric.low:g} to {metric.high:g}",
            len(present),
        )
    values = [math.nan] * len(cells)
    for i in present:
        cell = cells[i]
        word = words[i]
        number = isinstance(cell, Real | Decimal | np.bool_) or (
            word is not None and NUMBER.fullmatch(word)
        )
        if word in VERDICTS:
            values[i] = VERDICTS[word]
        elif number:
            values[i] = float(cell)
        else:
            values[i] = math.inf
        if math.isinf(values[i]):
            is_percent = str(given[i]).strip().endswith("%")
            if is_percent:
                step = "; write 0.87 for 87%"
            else:
                step = (
                    "; write a number in its place, or keep the column as text: "
                    f"columns={{{name!r}: '{name}_text'}}"
                )
            raise RagnbError(
                f"{raw.where(i)}column {name!r}: found {repr(given[i])[:80]}, "
                f"expected a number or an empty cell{step}"
            )
    return values
