"""Ratings frame → arrays: scores checked, raters side by side, rows of any engine counted first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.calibration.raters import (
    OUTSIDE,
    PROBABILITY,
    Array,
    Asked,
    as_list,
    numbers,
    raters_of,
    sampling_weights,
    scale_of,
    side_by_side,
    without_outside,
)
from ragnb.errors import RagnbError, did_you_mean, listing, not_a_frame
from ragnb.weights import collected, column_names
from ragnb.weights.columns import Labels, as_pandas
from ragnb.weights.columns import coded as labelled
from ragnb.weights.engines import opened, swift

_COUNT = "__rows"


@dataclass(frozen=True)
class Scores:
    """A table of ratings with its checked scores: the judge's, the humans', the single raters' where known."""

    table: pd.DataFrame
    x: Array
    y: Array
    raters: Array | None
    scale: tuple[float, float]
    guessed: bool
    weights: Array


@dataclass(frozen=True)
class Ratings(Scores):
    """One judge's scores beside the humans', a row each or a row for many.

    Attributes
    ----------
    x, y : (n,) float
        The judge's and the humans' score, nan where there is none.
    raters : (n, k) float or None
        The single humans, where they are known.
    scale : (float, float)
        The lowest and the highest label; `guessed` from what was seen where nobody gave it.
    weights : (n,) float
        1 / inclusion probability, the largest 1; all 1 where none is recorded.
    counts : (n,) float
        How many ratings a row stands for.
    keys : dict of column name to Labels
        The columns that group: dimension, system and others; `groups` are those whose bias is looked at.
    sizes : dict of column name to (n,) float
        Columns of numbers that are cut into groups, such as an answer's length.
    cluster : (n,) int or None
        What moves together; None where every rating stands alone. Lone ratings of unequal weights are their own
        clusters, without names.
    """

    counts: Array
    keys: dict[str, Labels]
    groups: dict[str, Labels]
    sizes: dict[str, Array]
    cluster: npt.NDArray[np.int64] | None
    cluster_names: tuple[str, ...]

    @cached_property
    def coded(self) -> list[tuple[npt.NDArray[np.int64], int]]:
        """The judge's scores, the humans' and the weights as codes, −1 for a gap, and how many distinct ones."""
        found = map(pd.factorize, (self.x, self.y, self.weights))
        return [(codes.astype(np.int64), len(values)) for codes, values in found]

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
    found = scores_of(frame, judge, asked)
    table = found.table
    counts = table[_COUNT].to_numpy(dtype=float) if _COUNT in table.columns else np.ones(len(table))
    cluster = labelled(table[asked.cluster], compose=True) if asked.cluster in table.columns else None
    if cluster is not None and (cluster.codes < 0).any():
        row = table.index[int(np.argmax(cluster.codes < 0))]
        raise RagnbError(f"column {asked.cluster!r} is empty in row {row!r}; every rating needs its cluster")
    keys = dict.fromkeys([*asked.keys, *asked.groups, asked.system])
    labels = {name: labelled(table[name]) for name in keys if name in table.columns}
    amounts = [name for name in asked.groups if name in labels and _is_amount(table[name])]
    codes, names = (None, ()) if cluster is None else (cluster.codes, cluster.names)
    if cluster is None and len(table) and np.ptp(found.weights) > 0:
        codes = np.arange(len(table))
    return Ratings(
        **vars(found),
        counts=counts,
        keys=labels,
        groups={name: labels[name] for name in asked.groups if name in labels and name not in amounts},
        sizes={name: table[name].to_numpy(dtype=float, na_value=np.nan) for name in amounts},
        cluster=codes,
        cluster_names=names,
    )


def columns_of(frame: Any) -> list[str]:
    """Return the columns of a frame of any engine.

    Raises
    ------
    RagnbError
        For what is no data frame, such as the path of a file.
    """
    try:
        return column_names(frame)
    except RagnbError:
        raise not_a_frame(frame, "rn.read_ratings") from None


def scores_of(
    frame: Any, judge: str, asked: Asked, *, rows: bool = False, needs: Sequence[str] = (), where: str = ""
) -> Scores:
    """Check the scores of a frame of any engine, and set single raters side by side.

    Parameters
    ----------
    rows : bool
        Whether each row is kept as it stands, items and systems with it; else other engines count equal rows.
    needs, where
        Further columns that must be there; the words before a refusal.

    Examples
    --------
    >>> scores_of(pd.DataFrame({"judge": [4, -1], "human": [5, 2]}), "judge", Asked(missing=-1)).x
    array([ 4., nan])
    """
    columns = columns_of(frame)
    people, raters = as_list(asked.human), raters_of(columns, asked.human)
    human = people if isinstance(asked.human, str) and asked.human in columns else []
    long = asked.rater in columns and bool(people)
    keys = [*asked.keys, *([] if asked.cluster is None else [asked.cluster])]
    usual = [name for name in keys if name in columns or name not in {"dimension", "cluster"}]
    wanted = [judge, *(human or raters or people), *raters, *usual, *needs]
    for name in wanted:
        if name not in columns:
            raise RagnbError(f"{where}column={name!r} is not there; {did_you_mean(name, columns)}")
    more = (asked.system, *asked.groups, *([PROBABILITY] if people else []))
    wanted += [name for name in more if name in columns]
    if rows or long:
        wanted += [name for name in (asked.rater, asked.item) if name in columns]
    table = _pandas(frame, list(dict.fromkeys(wanted)), counted=not (rows or long or PROBABILITY in wanted))
    if long and not raters:
        table = side_by_side(table, judge, wanted[1], asked)
        raters = [name for name in table.columns if str(name).startswith("__rater")]
    return _checked(table, judge, human, raters, asked, where)


def _pandas(frame: Any, used: list[str], *, counted: bool) -> pd.DataFrame:
    """The columns as pandas; rows of another engine are counted there where that is asked for."""
    if isinstance(frame, pd.DataFrame):
        return frame[used]
    part = opened(frame).select(*used)
    part = swift(part).group_by(*used).agg(nw.len().alias(_COUNT)) if counted else part
    return as_pandas(collected(part).to_native())


def _checked(
    table: pd.DataFrame, judge: str, human: list[str], raters: list[str], asked: Asked, where: str
) -> Scores:
    x = numbers(table, judge, asked.missing, where)
    grid = np.column_stack([numbers(table, name, asked.missing) for name in raters]) if raters else None
    own = next(iter(human or as_list(asked.human)), "")
    y = numbers(table, own, asked.missing) if own in table.columns and (human or grid is None) else None
    named = {judge: x} | ({} if y is None else {own: y})
    named |= {name: grid[:, k] for k, name in enumerate(raters) if grid is not None}
    if asked.missing == OUTSIDE:
        without_outside(named.values(), asked.scale)
    if y is None:
        y = pd.DataFrame(grid, index=range(len(x))).mean(axis=1).to_numpy(dtype=float)
    scale, guessed = scale_of(named, table.index, asked.scale, where)
    weights = sampling_weights(table, ~(np.isnan(x) | np.isnan(y)), where)
    return Scores(table, x, y, grid, scale, guessed, weights)


def _is_amount(column: pd.Series) -> bool:
    number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    return number and column.nunique() > 6


def group_columns(columns: Sequence[str], groups: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns by which bias is looked at: those asked for, or the usual ones that are there.

    Examples
    --------
    >>> group_columns(["system", "response_words", "judge"], None)
    ('system', 'response_words')
    """
    if groups is None:
        usual = re.compile(r"system|answerab\w*|length|\w+_(?:words|length|tokens|chars)")
        return tuple(name for name in columns if usual.fullmatch(name))
    for name in groups:
        if name not in columns:
            raise RagnbError(f"groups={list(groups)}: no column {name!r} (have: {listing(columns)})")
    return tuple(groups)
