"""Columns of scores as numbers within their scale, and what is refused among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError
from ragnb.stats import SLACK, Array

Missing = float | str | Sequence[float | str] | None
Scale = tuple[float, float]
OUTSIDE = "outside"


def as_list(values: Any) -> list[Any]:
    """Return one name or number, or several, as a list; None is none."""
    if values is None:
        return []
    if np.ndim(values) == 0:
        return [values]
    return list(values)


def numbers(table: pd.DataFrame, name: str, where: str = "") -> Array:
    """Return a column of scores as floats, nan if missing; text and infinite values raise RagnbError."""
    column = table[name]
    # A column of objects may still hold nothing but numbers and gaps; only text in it is refused.
    if not pd.api.types.is_numeric_dtype(column):
        for position, value in enumerate(column):
            if isinstance(value, str):
                raise RagnbError(
                    f"{where}column {name!r}, row {column.index[position]!r}: {value!r} is text, not a score; "
                    "read the file with rn.read_ratings, or convert the column to numbers"
                )
    values = np.array(column.to_numpy(dtype=float, na_value=np.nan), dtype=float)
    if np.isinf(values).any():
        raise RagnbError(
            f"{where}column {name!r} holds an infinite value; a rating is a finite number or missing"
        )
    return values


def without_marks(values: Array, missing: Missing) -> Array:
    """Return scores with nan for the numbers that mean no score."""
    for mark in as_list(missing):
        if mark != OUTSIDE:
            values = np.where(np.abs(values - float(mark)) <= SLACK, np.nan, values)
    return values


def without_missing(values: Array, scale: Scale | None, missing: Missing) -> Array:
    """Return scores with nan for all that was declared to be no score; nothing is refused.

    Examples
    --------
    >>> without_missing(np.array([4.0, -1.0, 99.0]), (1, 5), ["outside", -1])
    array([ 4., nan, nan])
    """
    values = without_marks(values, missing)
    if OUTSIDE in as_list(missing) and scale is not None:
        return np.where(_outside(values, *scale), np.nan, values)
    return values


def _outside(values: Array, low: float, high: float) -> npt.NDArray[np.bool_]:
    """Return which scores lie outside a scale; missing ones do not."""
    return np.asarray((values < low - SLACK) | (values > high + SLACK))


def settled(
    named: Mapping[str, Array], scale: Scale | None, missing: Missing, where: Callable[[int], str]
) -> dict[str, Array]:
    """Return columns of scores within their scale, nan for values declared as missing.

    Parameters
    ----------
    missing : number or several, optional
        Marks; ``"outside"`` among them is whatever is outside the scale.
    where : callable
        The place of a row, in the words before a refusal.

    Raises
    ------
    RagnbError
        For what is outside the scale, and for −1 as the only number below 0 without a word about it.

    Examples
    --------
    >>> settled({"judge": np.array([4.0, -1.0])}, (1, 5), "outside", str)
    {'judge': array([ 4., nan])}
    """
    outside_is_missing = OUTSIDE in as_list(missing)
    if outside_is_missing and scale is None:
        raise RagnbError(
            'missing="outside" needs the scale, its lowest and highest score: scale=(1, 5)'
        )
    if scale is None:
        low = -np.inf
        high = np.inf
    else:
        low, high = scale
        if not (low < high and np.isfinite([low, high]).all()):
            raise RagnbError(
                f"scale={scale} is not a scale; give its lowest and highest label, such as (1, 5)"
            )
    scores = {name: without_marks(values, missing) for name, values in named.items()}
    # Tools write -1 for a reply that could not be parsed. On a scale that has other numbers below 0, or that the
    # caller gave, it may be a score.
    may_be_mark = scale is None and all(
        (values[values < 0] == -1).all() for values in scores.values()
    )
    for name, values in scores.items():
        below_zero = values < 0
        is_outside = _outside(values, low, high)
        if may_be_mark and below_zero.any():
            place = where(int(np.argmax(below_zero)))
            raise RagnbError(
                f"{place}column {name!r}: found -1 in {below_zero.sum()} of {len(values)} rows, "
                "and no other number below 0; set missing=-1 if it means a reply that could not be parsed, or "
                "the scale, such as scale=(-1, 1), if it is a score"
            )
        if outside_is_missing:
            scores[name] = np.where(is_outside, np.nan, values)
        elif is_outside.any():
            place = where(int(np.argmax(is_outside)))
            first = f"{values[is_outside][0]:g}"
            n_scores = (~np.isnan(values)).sum()
            raise RagnbError(
                f"{place}column {name!r}: {first} lies outside the scale {low:g} to {high:g} "
                f"({is_outside.sum()} of {n_scores} scores do); set missing={first} if it means no "
                'score, missing="outside" if all of them do, or widen it'
            )
    return scores


def guess_scale(named: Mapping[str, Array]) -> Scale:
    """Return the whole numbers around the observed scores; refuse a judge on 0–1 with humans on a longer scale.

    The judge's scores come first in `named`.
    """
    judge, *others = named.values()
    top = max((float(np.nanmax(v)) for v in others if not np.isnan(v).all()), default=0.0)
    # A fraction shows that the judge's scale is 0..1; labels 0 and 1 alone could be of any scale.
    has_fraction = ((judge > 0) & (judge < 1)).any()
    if has_fraction and np.nanmax(judge) <= 1 and top > 1:
        raise RagnbError(
            f"the judge's scores lie in 0..1 and the human scores go up to {top:g}: rescale both to one scale "
            "first (low + (high − low)·score), or give scale= if they already are"
        )
    seen = np.concatenate([values[~np.isnan(values)] for values in named.values()])
    if not len(seen):
        return 0.0, 1.0
    low = float(np.floor(seen.min()))
    high = float(np.ceil(seen.max()))
    # Of scores that are all equal, a scale of no length would divide by 0.
    return low, max(high, low + 1.0)


def are_verdicts(table: pd.DataFrame) -> bool:
    """Whether all scores are 0 or 1, as pass and fail are read."""
    scores = table[["judge", "human"]].to_numpy(dtype=float)
    return bool(np.isin(scores[~np.isnan(scores)], (0, 1)).all())
