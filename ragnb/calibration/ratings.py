"""Ratings frame → arrays: scores checked, raters side by side, rows of any engine counted first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.calibration.raters import (
    OUTSIDE,
    SLACK,
    Array,
    Asked,
    as_list,
    mean_of,
    numbers,
    raters_of,
    side_by_side,
)
from ragnb.errors import RagnbError, did_you_mean, listing
from ragnb.weights import collected, column_names
from ragnb.weights.columns import Labels, as_pandas
from ragnb.weights.columns import coded as labelled
from ragnb.weights.engines import opened, swift

_COUNT = "__rows"


@dataclass(frozen=True)
class Ratings:
    """One judge's scores beside the humans', a row each or a row for many.

    Attributes
    ----------
    x, y : (n,) float
        The judge's and the humans' score, nan where there is none.
    raters : (n, k) float or None
        The single humans, where they are known.
    counts : (n,) float
        How many ratings a row stands for.
    keys : dict of column name to Labels
        The columns that group: dimension, system and others; `groups` are those whose bias is looked at.
    cluster : (n,) int or None
        What moves together; None where every rating stands alone.
    sizes : dict of column name to (n,) float
        Columns of numbers that are cut into groups, such as an answer's length.
    scale : (float, float)
        The lowest and the highest label; `guessed` from what was seen where nobody gave it.
    """

    x: Array
    y: Array
    raters: Array | None
    counts: Array
    keys: dict[str, Labels]
    cluster: npt.NDArray[np.int64] | None
    scale: tuple[float, float]
    guessed: bool
    cluster_names: tuple[str, ...] = ()
    groups: dict[str, Labels] = field(default_factory=dict)
    sizes: dict[str, Array] = field(default_factory=dict)

    @cached_property
    def coded(self) -> tuple[tuple[npt.NDArray[np.int64], Array], ...]:
        """The judge's and the humans' scores as codes into their distinct values, −1 where there is none."""
        return tuple((codes.astype(np.int64), np.asarray(v)) for codes, v in map(pd.factorize, (self.x, self.y)))

    @cached_property
    def both(self) -> npt.NDArray[np.bool_]:
        """Which rows have a judge's and a human's score."""
        return ~(np.isnan(self.x) | np.isnan(self.y))


def open_ratings(frame: Any, judge: str, asked: Asked) -> Ratings:
    """Check a frame of any engine and lay it out for one judge.

    Raises
    ------
    RagnbError
        For columns that are not there, text among the scores, infinite values, values outside the scale, an
        undeclared −1, and a rater who rated an item twice.

    Examples
    --------
    >>> frame = pd.DataFrame({"judge": [4, 2], "human": [5, 2], "cluster": ["a", "b"]})
    >>> open_ratings(frame, "judge", Asked()).scale
    (2.0, 5.0)
    """
    columns = column_names(frame)
    raters = raters_of(columns, asked.human)
    human = as_list(asked.human) if isinstance(asked.human, str) and asked.human in columns else []
    long = asked.rater in columns
    needs = [judge, *(human or raters or as_list(asked.human)), *raters]
    defaults = {"dimension", "cluster"}
    keys = [*asked.keys, *([] if asked.cluster is None else [asked.cluster])]
    needs += [name for name in keys if name in columns or name not in defaults]
    needs += [name for name in ("system",) if name in columns]
    for name in needs:
        if name not in columns:
            raise RagnbError(f"column={name!r} is not there; {did_you_mean(name, columns)}")
    used = list(dict.fromkeys([*needs, *(g for g in asked.groups if g in columns)]))
    table = _pandas(frame, used, long, asked)
    if long and not raters:
        table = side_by_side(table, judge, needs[1], asked)
        raters = [name for name in table.columns if str(name).startswith("__rater")]
    return _laid_out(table, judge, human, raters, asked)


def _pandas(frame: Any, used: list[str], long: bool, asked: Asked) -> pd.DataFrame:
    """The columns as pandas; rows of another engine are counted there, unless raters must first be paired."""
    more = [c for c in (asked.rater, asked.item, "system") if c not in used] if long else []
    if isinstance(frame, pd.DataFrame):
        return frame[[*used, *(c for c in more if c in frame.columns)]]
    rows = opened(frame)
    if long:
        have = rows.collect_schema().names()
        return as_pandas(collected(rows.select(*used, *(c for c in more if c in have))).to_native())
    counted = swift(rows.select(*used)).group_by(*used).agg(nw.len().alias(_COUNT))
    return as_pandas(collected(counted).to_native())


def _laid_out(table: pd.DataFrame, judge: str, human: list[str], raters: list[str], asked: Asked) -> Ratings:
    x = numbers(table, judge, asked.missing)
    grid = np.column_stack([numbers(table, name, asked.missing) for name in raters]) if raters else None
    own = next(iter(human or as_list(asked.human)))
    y = numbers(table, own, asked.missing) if own in table.columns and (human or grid is None) else None
    named = {judge: x} | ({} if y is None else {own: y})
    named |= {name: grid[:, k] for k, name in enumerate(raters) if grid is not None}
    if asked.missing == OUTSIDE:
        _without_outside(named.values(), asked.scale)
    if y is None:
        y = mean_of(np.empty((len(x), 0)) if grid is None else grid)
    scale, guessed = _scale(named, table.index, asked.scale)
    counts = table[_COUNT].to_numpy(dtype=float) if _COUNT in table.columns else np.ones(len(table))
    cluster = labelled(table[asked.cluster], compose=True) if asked.cluster in table.columns else None
    if cluster is not None and (cluster.codes < 0).any():
        row = table.index[int(np.argmax(cluster.codes < 0))]
        raise RagnbError(f"column {asked.cluster!r} is empty in row {row!r}; every rating needs its cluster")
    keys = {name: _labels(table, name) for name in dict.fromkeys([*asked.keys, *asked.groups, "system"])}
    sizes = {
        name: table[name].to_numpy(dtype=float, na_value=np.nan)
        for name in asked.groups
        if name in table.columns and _is_amount(table[name])
    }
    found = {name: labels for name, labels in keys.items() if labels is not None}
    groups = {name: found[name] for name in asked.groups if name in found and name not in sizes}
    codes, names = (None, ()) if cluster is None else (cluster.codes, cluster.names)
    return Ratings(x, y, grid, counts, found, codes, scale, guessed, names, groups, sizes)


def _without_outside(columns: Iterable[Array], scale: tuple[float, float] | None) -> None:
    if scale is None:
        raise RagnbError('missing="outside" needs the scale; give its lowest and highest label, such as (1, 5)')
    for values in columns:
        values[(values < scale[0] - SLACK) | (values > scale[1] + SLACK)] = np.nan


def _is_amount(column: pd.Series) -> bool:
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return False
    return bool(column.nunique() > 6)


def _labels(table: pd.DataFrame, name: str) -> Labels | None:
    return labelled(table[name]) if name in table.columns else None


def _scale(
    named: Mapping[str, Array], index: pd.Index, scale: tuple[float, float] | None
) -> tuple[tuple[float, float], bool]:
    """The scale as given or as seen; what lies outside it, or looks like a mark for "not parsed", is refused."""
    seen = np.concatenate([values[~np.isnan(values)] for values in named.values()])
    if scale is None:
        _refuse_marks(named)
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
                f"column {name!r}, row {index[at]!r}: {values[at]:g} lies outside scale=({low:g}, {high:g}); "
                f"if it marks an answer that could not be parsed, say missing={values[at]:g}; else widen the scale"
            )
    return (low, high), False


def _refuse_marks(named: Mapping[str, Array]) -> None:
    for name, values in named.items():
        below = values[values < 0]
        if len(below) and (below == -1).all() and all((v[v < 0] == -1).all() for v in named.values()):
            raise RagnbError(
                f"column {name!r} holds −1 in {len(below)} rows and no other value below 0: a mark for an answer "
                "that could not be parsed? Say missing=-1; or give scale=(-1, …) if −1 is a rating"
            )
    judge, *others = named.values()
    top = max((float(np.nanmax(v)) for v in others if not np.isnan(v).all()), default=0.0)
    inner = judge[(judge > 0) & (judge < 1)]
    if len(inner) and np.nanmax(judge) <= 1 and top > 1:
        raise RagnbError(
            f"the judge's scores lie in 0..1 and the humans' go up to {top:g}: bring both onto one scale first "
            "(low + (high − low)·score), or give scale= if they already are"
        )


def group_columns(columns: Iterable[str], groups: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns by which bias is looked at: those asked for, or the usual ones that are there.

    Examples
    --------
    >>> group_columns(["system", "response_words", "judge"], None)
    ('system', 'response_words')
    """
    have = list(columns)
    if groups is None:
        usual = re.compile(r"system|answerab\w*|length|\w+_(?:words|length|tokens|chars)")
        return tuple(name for name in have if usual.fullmatch(name))
    for name in groups:
        if name not in have:
            raise RagnbError(f"groups={list(groups)}: no column {name!r} (have: {listing(have)})")
    return tuple(groups)
