"""Scores and who gave them: numbers on one scale, several humans on one item side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, takewhile

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError

Array = npt.NDArray[np.float64]
Names = str | Sequence[str]
Missing = float | Sequence[float] | str | None
OUTSIDE = "outside"
PROBABILITY = "inclusion_probability"
SLACK = 1e-9


@dataclass(frozen=True)
class Asked:
    """What the caller asked for, as the public functions take it; no `human` means a judge's scores alone."""

    human: Names = "human"
    by: Names | None = "dimension"
    scale: tuple[float, float] | None = None
    cluster: str | None = "cluster"
    missing: Missing = None
    rater: str = "rater"
    item: str = "item_id"
    system: str = "system"
    groups: tuple[str, ...] = ()

    @property
    def keys(self) -> list[str]:
        """The columns that group the rows, by name."""
        return [] if self.by is None else as_list(self.by)


def as_list(names: Names) -> list[str]:
    """Return one name or several as a list."""
    return [names] if isinstance(names, str) else list(names)


def raters_of(columns: Sequence[str], human: Names) -> list[str]:
    """Return the columns of single raters: those named, or ``human1, human2, …`` beside the default.

    Examples
    --------
    >>> raters_of(["human", "human1", "human2", "human10"], "human"), raters_of(["human10"], "human10")
    (['human1', 'human2'], [])
    """
    if not isinstance(human, str):
        return list(human) if len(human) > 1 else []
    found = list(takewhile(columns.__contains__, (f"{human}{k}" for k in count(1))))
    return found if len(found) > 1 else []


def side_by_side(table: pd.DataFrame, judge: str, human: str, asked: Asked) -> pd.DataFrame:
    """Return one row an item, its raters in columns ``__rater0`` …, their mean as the human score."""
    if asked.item not in table.columns:
        raise RagnbError(f"a {asked.rater!r} column needs {asked.item!r} beside it: which rows are one item?")
    raters, people = pd.factorize(table[asked.rater])
    said = numbers(table, human, asked.missing)
    nobody = (raters < 0) & ~np.isnan(said)
    if nobody.any():
        raise RagnbError(f"column {asked.rater!r} is empty in row {table.index[int(np.argmax(nobody))]!r}")
    same = [c for c in (asked.item, asked.system, *asked.keys, asked.cluster) if c in table.columns]
    item = table.groupby(same, sort=False, dropna=False).ngroup().to_numpy()
    pair = item.astype(np.int64) * len(people) + raters
    first = pd.Series(pair).duplicated().to_numpy() & (raters >= 0)
    if first.any():
        row = table.iloc[int(np.argmax(first))]
        raise RagnbError(
            f"rater {row[asked.rater]!r} rated item {row[asked.item]} twice; keep one rating an item, "
            "a dimension and a rater"
        )
    for column in (judge, PROBABILITY) if PROBABILITY in table.columns else (judge,):
        scores = pd.Series(table[column].to_numpy(dtype=float, na_value=np.nan)).groupby(item)
        apart = scores.max() - scores.min() > SLACK
        if apart.any():
            name = table[asked.item].iloc[int(np.argmax(item == apart.idxmax()))]
            raise RagnbError(f"item {name} has several scores in column {column!r}; give one score an item")
    grid = np.full((int(item.max(initial=-1)) + 1, len(people)), np.nan)
    grid[item[raters >= 0], raters[raters >= 0]] = said[raters >= 0]
    out = table.drop_duplicates(same).drop(columns=human).reset_index(drop=True)
    return pd.concat([out, pd.DataFrame(grid).add_prefix("__rater")], axis=1)


def sampling_weights(table: pd.DataFrame, rated: npt.NDArray[np.bool_], where: str) -> Array:
    """Return 1 / inclusion probability of the rated rows, the largest 1; all 1 where none is recorded.

    Raises
    ------
    RagnbError
        For a rated row without a probability, or one that is no number in (0, 1].

    Examples
    --------
    >>> table = pd.DataFrame({"inclusion_probability": [0.1, 0.4, None]})
    >>> sampling_weights(table, np.array([True, True, False]), "").tolist()
    [1.0, 0.25, 1.0]
    """
    if PROBABILITY not in table.columns:
        return np.ones(len(table))
    chance = numbers(table, PROBABILITY, None, where)
    wrong = rated & ~((chance > 0) & (chance <= 1))
    if wrong.any():
        row, value = table.index[int(np.argmax(wrong))], chance[int(np.argmax(wrong))]
        raise RagnbError(
            f"{where}column {PROBABILITY!r}, row {row!r}: {value:g} is not in (0, 1]; give every labelled row the "
            "chance with which it was drawn, or leave the column out"
        )
    return np.where(rated, chance[rated].min(initial=1.0) / np.where(rated, chance, 1.0), 1.0)


def numbers(table: pd.DataFrame, name: str, missing: Missing, where: str = "") -> Array:
    """Return a column of scores as floats, nan where there is none or where it holds a mark for missing.

    Raises
    ------
    RagnbError
        For text and for infinite values.
    """
    column = table[name]
    if not pd.api.types.is_numeric_dtype(column):
        text = np.array([isinstance(value, str) for value in column], dtype=bool)
        if text.any():
            at = int(np.argmax(text))
            raise RagnbError(
                f"{where}column {name!r}, row {column.index[at]!r}: {column.iloc[at]!r} is text, not a score; "
                "read the file with rn.read_ratings, or convert the column to numbers"
            )
    values = np.array(column.to_numpy(dtype=float, na_value=np.nan), dtype=float)
    for word in [] if missing is None or missing == OUTSIDE else np.atleast_1d(np.asarray(missing, dtype=float)):
        values[np.abs(values - word) <= SLACK] = np.nan
    if np.isinf(values).any():
        raise RagnbError(f"{where}column {name!r} holds an infinite value; a rating is a finite number or missing")
    return values


def without_outside(columns: Iterable[Array], scale: tuple[float, float] | None) -> None:
    """Blank, in place, what lies outside the scale."""
    if scale is None:
        raise RagnbError('missing="outside" needs the scale; give its lowest and highest label, such as (1, 5)')
    for values in columns:
        values[(values < scale[0] - SLACK) | (values > scale[1] + SLACK)] = np.nan


def scale_of(
    named: Mapping[str, Array], index: pd.Index, scale: tuple[float, float] | None, where: str
) -> tuple[tuple[float, float], bool]:
    """Return the scale as given or as seen, and whether it is a guess; marks and what lies outside are refused."""
    seen = np.concatenate([values[~np.isnan(values)] for values in named.values()])
    if scale is None:
        _refuse_marks(named, where)
        low, high = (float(np.floor(seen.min())), float(np.ceil(seen.max()))) if len(seen) else (0.0, 1.0)
        return (low, high if high > low else low + 1.0), True
    low, high = float(scale[0]), float(scale[1])
    if not low < high or not np.isfinite([low, high]).all():
        raise RagnbError(f"scale={scale} is no scale; give its lowest and highest label, such as (1, 5)")
    for name, values in named.items():
        wrong = (values < low - SLACK) | (values > high + SLACK)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise RagnbError(
                f"{where}column {name!r}, row {index[at]!r}: {values[at]:g} lies outside "
                f"scale=({low:g}, {high:g}); if it marks an answer that could not be parsed, "
                f"say missing={values[at]:g}; else widen the scale"
            )
    return (low, high), False


def _refuse_marks(named: Mapping[str, Array], where: str) -> None:
    for name, values in named.items():
        below = values[values < 0]
        if len(below) and (below == -1).all() and all((v[v < 0] == -1).all() for v in named.values()):
            raise RagnbError(
                f"{where}column {name!r} holds −1 in {len(below)} rows and no other value below 0: a mark for an "
                "answer that could not be parsed? Say missing=-1; or give scale=(-1, …) if −1 is a rating"
            )
    judge, *others = named.values()
    top = max((float(np.nanmax(v)) for v in others if not np.isnan(v).all()), default=0.0)
    inner = judge[(judge > 0) & (judge < 1)]
    if len(inner) and np.nanmax(judge) <= 1 and top > 1:
        raise RagnbError(
            f"the judge's scores lie in 0..1 and the humans' go up to {top:g}: bring both onto one scale first "
            "(low + (high − low)·score), or give scale= if they already are"
        )
