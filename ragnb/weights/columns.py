"""Scores frame → arrays: numeric columns with gaps, checked against their metric's range and status words."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError, RagnbWarning, listing, outside, place
from ragnb.readers.frames import native
from ragnb.schema import CLIP, STATUS_WORDS, Metric, declare_step
from ragnb.weights.total import canonical_name, nfc

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Labels:
    """Codes into labels; −1 if missing. For groups, None is the name of rows without one."""

    codes: Codes
    names: tuple[Any, ...]


def as_pandas(frame: Any) -> pd.DataFrame:
    """Return a pandas frame; other engines' frames are collected.

    Examples
    --------
    >>> as_pandas(pd.DataFrame({"a": [1]})).shape
    (1, 1)
    """
    if isinstance(frame, pd.DataFrame):
        return frame
    found = native(frame)
    eager = found.collect() if isinstance(found, nw.LazyFrame) else found
    floats = [name for name, kind in eager.schema.items() if kind == nw.Float64]
    return pd.DataFrame(
        {name: eager[name].to_numpy() if name in floats else eager[name].to_list() for name in eager.columns}
    )


def score_of(name: str, kind: Any) -> nw.Expr:
    """Return a column of this type as floats, null for every gap."""
    if not kind.is_numeric() and kind != nw.Boolean:
        return nw.lit(None, dtype=nw.Float64)
    value = nw.col(name).cast(nw.Float64)
    return nw.when(~value.is_nan()).then(value) if kind.is_float() else value


def numeric(frame: pd.DataFrame, metric: Metric) -> Array:
    """Return a metric's column as floats, nan if there is no score.

    A value within 1e-6 of an end of the range, beyond it, is that end; a warning says so.

    Raises
    ------
    RagnbError
        For text, infinity, or a value outside the metric's range, with the row.

    Examples
    --------
    >>> numeric(pd.DataFrame({"faithfulness": [1, None]}), Metric("faithfulness"))
    array([ 1., nan])
    """
    column = frame[metric.name]
    if getattr(column.dtype, "kind", "O") in "mMc":
        raise RagnbError(
            f"column {metric.name!r} holds {column.dtype}, which is not a score; convert it to numbers in "
            f"{metric.low:g}..{metric.high:g}"
        )
    if not pd.api.types.is_numeric_dtype(column.dtype):
        odd = np.array([not _is_score(v) for v in column], dtype=bool)
        if odd.any():
            at = int(np.argmax(odd))
            kind = "text" if isinstance(column.iloc[at], str) else f"of type {type(column.iloc[at]).__name__}"
            raise RagnbError(
                f"column {metric.name!r}, row {column.index[at]!r}: {column.iloc[at]!r} is {kind}, not a score; "
                "read the file with rn.read_scores, or convert the column to numbers"
            )
    plain = column.dtype == np.float64
    values: Array = column.to_numpy() if plain else column.to_numpy(dtype=float, na_value=np.nan)
    least, most = np.fmin.reduce(values, initial=np.nan), np.fmax.reduce(values, initial=np.nan)
    if np.isinf(least) or np.isinf(most) or least < metric.low - CLIP or most > metric.high + CLIP:
        wrong = np.isinf(values) | (values < metric.low - CLIP) | (values > metric.high + CLIP)
        position = int(np.argmax(wrong))
        raise RagnbError(
            f"column {metric.name!r}, row {frame.index[position]!r}: {float(values[position])!r} lies outside "
            f"{metric.low:g}..{metric.high:g}; {declare_step(metric.name, least, most)}"
        )
    if least < metric.low or most > metric.high:
        beyond = least if least < metric.low else most
        warnings.warn(
            f"column {metric.name!r}: {float(beyond)!r} and other values within {CLIP:g} of an end of "
            f"{metric.low:g}..{metric.high:g} are set to that end",
            RagnbWarning,
            stacklevel=outside(),
        )
        values = np.clip(values, metric.low, metric.high)
    return values


def _is_score(cell: Any) -> bool:
    """Whether a cell is a real number or missing."""
    if isinstance(cell, int | float | Decimal | np.floating | np.integer | np.bool_):
        return not isinstance(cell, np.timedelta64)  # which NumPy calls an integer
    return cell is None or (pd.api.types.is_scalar(cell) and bool(pd.isna(cell)))


def status_codes(frame: pd.DataFrame, metric: Metric, values: Array) -> npt.NDArray[np.int8]:
    """Return for every row 0 (ok or missing), 1 (failed) or 2 (not applicable).

    Raises
    ------
    RagnbError
        For a status that is no status word, and for a number whose status is failed or not_applicable.

    Examples
    --------
    >>> frame = pd.DataFrame({"faithfulness": [None], "faithfulness__status": ["failed"]})
    >>> status_codes(frame, Metric("faithfulness"), np.array([np.nan]))
    array([1], dtype=int8)
    """
    name = f"{metric.name}__status"
    if name not in frame.columns:
        return np.zeros(len(frame), dtype=np.int8)
    label = coded(frame[name])
    meaning = {"ok": 0, "missing": 0, "failed": 1, "not_applicable": 2}
    codes = np.array([meaning.get(word, -1) for word in label.names] + [0], dtype=np.int8)[label.codes]
    if (codes < 0).any():
        at = int(np.argmin(codes))
        raise RagnbError(
            f"column {name!r}, row {frame.index[at]!r}: {label.names[label.codes[at]]!r} is not a status "
            f"(have: {listing(STATUS_WORDS)})"
        )
    clash = (codes > 0) & ~np.isnan(values)
    if clash.any():
        at = int(np.argmax(clash))
        raise RagnbError(
            f"column {metric.name!r}, row {frame.index[at]!r}: {float(values[at])!r} has "
            f"status {frame[name].iloc[at]!r}; a score that failed or is not applicable has no number"
        )
    return codes


def coded(values: Any, *, compose: bool = False) -> Labels:
    """Return values as codes into their sorted names, −1 if missing.

    Parameters
    ----------
    values : array of labels
    compose : bool
        Whether names are equal under Unicode form NFC.

    Raises
    ------
    RagnbError
        For lists and mappings.

    Examples
    --------
    >>> coded(pd.Series(["b", None, "a"]))
    Labels(codes=array([ 1, -1,  0]), names=('a', 'b'))
    """
    if isinstance(values, pd.Series) and isinstance(values.dtype, pd.CategoricalDtype):
        codes, uniques = values.cat.codes.to_numpy(), values.cat.categories
        there = np.bincount(codes + np.int64(1), minlength=len(uniques) + 1)[1:] > 0
        uniques, codes = uniques[there], np.append(np.cumsum(there) - 1, -1).take(codes)
    else:
        try:
            codes, uniques = pd.factorize(values)
        except TypeError:
            where = place(key=getattr(values, "name", None))
            raise RagnbError(
                f"{where}lists and mappings cannot name a group, document or cluster; convert them to text"
            ) from None
    named = nfc if compose else canonical_name
    plain = [name if type(name) is str and name.isascii() else named(name) for name in np.asarray(uniques, object)]
    # One name may be spelt in two ways.
    names, ranks = np.unique(np.array(plain, dtype=object), return_inverse=True)
    return Labels(np.append(ranks, -1).take(codes), tuple(names.tolist()))
