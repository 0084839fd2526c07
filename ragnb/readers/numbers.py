"""Cells → numbers: strict for metrics, with their ranges; careful for other columns that look like numbers."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, listing
from ragnb.readers.cells import IDS, LISTS, MISSING_WORDS, NO_NUMBER
from ragnb.readers.lossy import Lossy
from ragnb.readers.raw import Raw, Values, absent, column, is_text, settle
from ragnb.schema import CASE_COLUMNS, CLIP, METRICS, Metric, declare_step

# How far below the high end of its range a value is taken for it: 0.9999999999 is a 1.
ROUNDED = 1e-9
NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d{1,4})?")
_SIMPLE = re.compile(r"-?\d{1,40}(\.\d{0,40})?(e-?\d\d)?")
_CODE = re.compile(r"[-+]?(0\d|\d{19})")
_SETTLED = {*CASE_COLUMNS, *IDS, *LISTS, "gold_claim", "raw_answer"}
_WHOLE = re.compile(r"[-+]?\d{1,18}")
_TRUTH = {"true": 1.0, "false": 0.0}
_VERDICTS = {**_TRUTH, "yes": 1.0, "no": 0.0, "是": 1.0, "否": 0.0}
_SAID_TRUE = "True and yes are 1, False and no 0"
_DECIMAL_COMMA = re.compile(r"[-+]?(0,\d{1,18}|\d{1,9},(?!\d{3}(?:\s{0,3}%)?$)\d{1,18})(\s{0,3}%)?")
_PERCENT = re.compile(r"[-+]?(\d{1,9}(\.\d{0,18})?|\.\d{1,18})\s{0,3}%")


def metric_values(raw: Raw, metric: Metric, report: Lossy) -> pd.Series[float]:
    """Return a metric's column as floats in its range; missing cells are NaN.

    Raises
    ------
    RagnbError
        For a text that is no number, and for a value outside the range, with the place.

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
    elif set(map(type, cells)) == {str} and all(map(_SIMPLE.fullmatch, filter(None, cells))):
        values = np.array([float(cell or "nan") for cell in cells])
    else:
        values = np.array(_numbers(raw, metric, report), dtype=float)
    below = (values < metric.low) & (values >= metric.low - CLIP)
    above = (values != metric.high) & (values >= metric.high - ROUNDED) & (values <= metric.high + CLIP)
    for near, end in ((below, metric.low), (above & math.isfinite(metric.high), metric.high)):
        report.add("clipped", metric.name, f"within {CLIP:g} of {end:g}", int(near.sum()))
        values[near] = end
    outside = (values < metric.low) | (values > metric.high)
    if outside.any():
        row, present = int(np.flatnonzero(outside)[0]), values[~np.isnan(values)]
        raise RagnbError(
            f"{raw.where(row)}column {metric.name!r}: {values[row]:.12g} lies outside "
            f"{metric.low:g}..{metric.high:g} ({int(outside.sum())} of {len(present)} values do); "
            f"{declare_step(metric.name, present.min(), present.max())}"
        )
    return pd.Series(values)


def _numbers(raw: Raw, metric: Metric, report: Lossy) -> list[float]:
    """Return the numbers of cells, and list what is not written as programs write numbers.

    A comma is a decimal one only in a file of texts, and where it can set off no thousands. Percent signs count
    where every number has one, so that no column is of two scales.
    """
    name, given = metric.name, raw.columns[metric.name]
    cells = [unicodedata.normalize("NFKC", cell).strip() if isinstance(cell, str) else cell for cell in given]
    commas = [i for i, cell in enumerate(cells) if isinstance(cell, str) and _DECIMAL_COMMA.fullmatch(cell)]
    for i in commas * (not raw.typed):
        cells[i] = cells[i].replace(",", ".")
    report.add("mapped", name, "decimal commas", len(commas) * (not raw.typed))
    words = [str(cell).casefold() if isinstance(cell, str | bool) else None for cell in cells]
    report.add("mapped", name, _SAID_TRUE, sum(w in _VERDICTS for w in words))
    marks = [word for word in words if word in NO_NUMBER - MISSING_WORDS]
    report.add("mapped", name, f"missing: {listing(dict.fromkeys(marks))}", len(marks))
    present = [i for i, cell in enumerate(cells) if not absent(cell) and words[i] not in NO_NUMBER]
    if metric.high in (1, 100) and all(_PERCENT.fullmatch(str(cells[i])) for i in present):
        for i in present:
            cells[i] = float(Decimal(cells[i].rstrip("% ")) / (1 if metric.high == 100 else 100))
        report.add("mapped", name, f"percent signs, read as {metric.low:g} to {metric.high:g}", len(present))
    values = [math.nan] * len(cells)
    for i in present:
        cell, word = cells[i], words[i]
        number = isinstance(cell, Real | Decimal | np.bool_) or (word is not None and NUMBER.fullmatch(word))
        values[i] = _VERDICTS[word] if word in _VERDICTS else float(cell) if number else math.inf
        if math.isinf(values[i]):
            percent = "; write 0.87 for 87%" if str(given[i]).strip().endswith("%") else ""
            raise RagnbError(
                f"{raw.where(i)}column {name!r}: found {repr(given[i])[:80]}, "
                f"expected a number or an empty cell{percent}"
            )
    return values


def other_values(cells: Values, typed: bool) -> pd.Series[Any]:
    """Return a column that nobody declared: numbers and truth values out of text only where all cells are such.

    Leading zeros make an identifier, so such a column stays text.

    Examples
    --------
    >>> other_values(["1", "", "2.5"], False).tolist(), other_values(["007", "1"], False).tolist()
    ([1.0, nan, 2.5], ['007', '1'])
    """
    if typed or not set(map(type, cells)) <= {str, type(None)}:
        return settle(cells)
    cells = ["" if cell is None else cell for cell in cells]
    words = [None if cell.strip().casefold() in NO_NUMBER else cell.strip() for cell in cells]
    present = [word for word in words if word is not None]
    if present and all(word.casefold() in _TRUTH for word in present):
        return settle([None if word is None else word.casefold() == "true" for word in words])
    if present and all(NUMBER.fullmatch(word) and not _CODE.match(word) for word in present):
        kind = int if all(_WHOLE.fullmatch(word) for word in present) else float
        return settle([None if word is None else kind(word) for word in words])
    return settle([None if cell.strip() in ("", "NaN", "<NA>") else cell for cell in cells])


def declared(metrics: Sequence[Metric | str] | None, columns: Sequence[str]) -> dict[str, Metric]:
    """Return the metrics whose columns are there: the caller's, and those that ragnb knows unless names select."""
    own = {m.name: m for m in metrics or () if isinstance(m, Metric)}
    named = [m for m in metrics or () if isinstance(m, str)]
    pool = {name: METRICS[name] for name in named if name in METRICS} if named else METRICS
    return {name: metric for name, metric in {**pool, **own}.items() if name in columns}


def to_frame(
    raw: Raw, report: Lossy, origin: Mapping[str, object], metrics: Mapping[str, Metric] = MappingProxyType({})
) -> pd.DataFrame:
    """Return the columns as a frame that remembers where it came from and what became of it."""
    columns = {
        name: metric_values(raw, metrics[name], report) if name in metrics
        else settle(cells) if name in _SETTLED
        else other_values(cells, raw.typed)
        for name, cells in raw.columns.items()
    }  # fmt: skip
    frame = pd.DataFrame(columns)
    frame.attrs |= {"lossy": report.rows, "source": {**origin, "rows": len(frame)}}
    return frame
