"""Ratings frame → arrays: scores checked, raters side by side, equal rows of any engine counted as cells."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, product, takewhile
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError, did_you_mean, listing, not_a_frame
from ragnb.stats import Estimate
from ragnb.stats.means import Array
from ragnb.weights import collected, column_names
from ragnb.weights.columns import Labels, as_pandas
from ragnb.weights.columns import coded as labelled
from ragnb.weights.engines import opened, swift

Codes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Names = str | Sequence[str]
Missing = float | str | Sequence[float | str] | None
OUTSIDE = "outside"
PROBABILITY = "inclusion_probability"
ALL = "all"
SLACK = 1e-9
MOST_CLUSTERS = 1000
_COUNT = "__rows"


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
        return as_list(self.by)


def as_list(values: Any) -> list[Any]:
    """Return one name or number, or several, as a list; None is none."""
    return [] if values is None else [values] if np.ndim(values) == 0 else list(values)


@dataclass(frozen=True)
class Scores:
    """A table of ratings with its checked scores: the judge's, the humans', the single raters' where known.

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
    """

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
    cluster: Codes | None
    cluster_names: tuple[str, ...]

    @cached_property
    def coded(self) -> list[Codes]:
        """The judge's scores, the humans' and the weights as codes, −1 for a gap."""
        return [pd.factorize(values)[0].astype(np.int64) for values in (self.x, self.y, self.weights)]

    @cached_property
    def both(self) -> Flags:
        """Which rows have a judge's and a human's score."""
        return ~(np.isnan(self.x) | np.isnan(self.y))

    def blocks(self, keys: Sequence[str]) -> Iterator[tuple[dict[str, str], Flags]]:
        """Yield the labels and the rows of every block that `keys` make, in the labels' order; empty ones not."""
        have = [key for key in keys if key in self.keys]
        for codes in product(*(range(-1, len(self.keys[key].names)) for key in have)):
            chosen = np.ones(len(self.x), dtype=bool)
            for key, code in zip(have, codes, strict=True):
                chosen &= self.keys[key].codes == code
            if chosen.any():
                named = {k: self.keys[k].names[c] if c >= 0 else "" for k, c in zip(have, codes, strict=True)}
                yield {key: named.get(key, ALL) for key in keys}, chosen


def open_ratings(frame: Any, judge: str, asked: Asked, tolerance: float = 0.0) -> Ratings:
    """Check a frame of any engine and lay it out for one judge.

    Raises
    ------
    RagnbError
        For columns that are not there, text among the scores, infinite values, values outside the scale, an
        undeclared −1, a rater who rated an item twice, and a tolerance as wide as the scale.

    Examples
    --------
    >>> frame = pd.DataFrame({"judge": [4, 2], "human": [5, 2], "cluster": ["a", "b"]})
    >>> open_ratings(frame, "judge", Asked()).scale
    (2.0, 5.0)
    """
    scores = scores_of(frame, judge, asked)
    table, (low, high) = scores.table, scores.scale
    if not 0 <= tolerance < high - low:
        raise RagnbError(
            f"tolerance={tolerance:g} on a scale of {low:g}..{high:g}: every score lies within it; give points of "
            f"the scale, such as {(high - low) / 10:g}"
        )
    cluster = labelled(table[asked.cluster], compose=True) if asked.cluster in table.columns else None
    if cluster is not None and (cluster.codes < 0).any():
        row = table.index[int(np.argmax(cluster.codes < 0))]
        raise RagnbError(f"column {asked.cluster!r} is empty in row {row!r}; every rating needs its cluster")
    keys = dict.fromkeys([*asked.keys, *asked.groups, asked.system])
    labels = {name: labelled(table[name]) for name in keys if name in table.columns}
    amounts = [name for name in asked.groups if name in labels and _is_amount(table[name])]
    codes, names = (None, ()) if cluster is None else (cluster.codes, cluster.names)
    if cluster is None and len(table) and np.ptp(scores.weights) > 0:
        codes = np.arange(len(table))
    return Ratings(
        **vars(scores),
        counts=table[_COUNT].to_numpy(dtype=float) if _COUNT in table.columns else np.ones(len(table)),
        keys=labels,
        groups={name: labels[name] for name in asked.groups if name in labels and name not in amounts},
        sizes={name: table[name].to_numpy(dtype=float, na_value=np.nan) for name in amounts},
        cluster=codes,
        cluster_names=names,
    )


def _is_amount(column: pd.Series) -> bool:
    number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    return number and column.nunique() > 6


def columns_of(frame: Any) -> list[str]:
    """Return the columns of a frame of any engine; what is no data frame, such as a path, raises RagnbError."""
    try:
        return column_names(frame)
    except RagnbError:
        raise not_a_frame(frame, "rn.read_ratings") from None


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
    keys = [*asked.keys, *as_list(asked.cluster)]
    usual = [name for name in keys if name in columns or name not in {"dimension", "cluster"}]
    wanted = [judge, *(human or raters or people), *raters, *usual, *needs]
    for name in wanted:
        if name not in columns:
            raise RagnbError(f"{where}column={name!r} is not there; {did_you_mean(name, columns)}")
    more = (asked.system, *asked.groups, *([PROBABILITY] if people else []))
    more += (asked.rater, asked.item) if rows or long else ()
    wanted += [name for name in more if name in columns]
    table = _pandas(frame, list(dict.fromkeys(wanted)), counted=not (rows or long or PROBABILITY in wanted))
    if long and not raters:
        table = side_by_side(table, judge, wanted[1], asked)
        raters = [name for name in table.columns if str(name).startswith("__rater")]
    return _checked(table, judge, human, raters, asked, where)


def _pandas(frame: Any, used: list[str], *, counted: bool) -> pd.DataFrame:
    """Return the columns as pandas; rows of another engine are counted there where that is asked for."""
    if isinstance(frame, pd.DataFrame):
        return frame[used]
    part = opened(frame).select(*used)
    part = swift(part).group_by(*used).agg(nw.len().alias(_COUNT)) if counted else part
    return as_pandas(collected(part).to_native())


def side_by_side(table: pd.DataFrame, judge: str, human: str, asked: Asked) -> pd.DataFrame:
    """Return one row an item, its raters in columns ``__rater0`` …"""
    if asked.item not in table.columns:
        raise RagnbError(f"a {asked.rater!r} column needs {asked.item!r} beside it: which rows are one item?")
    score, rated = numbers(table, human), table[asked.rater].notna().to_numpy()
    nobody = ~rated & ~np.isnan(without_marks(score, asked.missing))
    if nobody.any():
        raise RagnbError(f"column {asked.rater!r} is empty in row {table.index[int(np.argmax(nobody))]!r}")
    same = [c for c in (asked.item, asked.system, *asked.keys, asked.cluster) if c in table.columns]
    item = table.groupby(same, sort=False, dropna=False).ngroup().to_numpy()
    given = pd.Series(score[rated], [item[rated], table.loc[rated, asked.rater]], dtype=float)
    if given.index.has_duplicates:
        row = table[rated].iloc[int(np.argmax(given.index.duplicated()))]
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
    grid = given.unstack().reindex(range(int(item.max(initial=-1)) + 1))
    out = table.drop_duplicates(same).drop(columns=human).reset_index(drop=True)
    return out.join(grid.set_axis([f"__rater{k}" for k in range(grid.shape[1])], axis=1))


def _checked(
    table: pd.DataFrame, judge: str, human: list[str], raters: list[str], asked: Asked, where: str
) -> Scores:
    """Return the table with its scores in their scale, and how the labelled rows are weighted."""
    own = next(iter(human or as_list(asked.human)), "")
    alone = own in table.columns and bool(human or not raters)
    named = {judge: numbers(table, judge, where)}
    named |= {name: numbers(table, name) for name in ([own] if alone else []) + raters}
    named = settled(named, asked.scale, asked.missing, lambda at: f"{where}row {table.index[at]!r}: ")
    grid = np.column_stack([named[name] for name in raters]) if raters else None
    x, y = named[judge], named.get(own)
    if y is None or not alone:
        y = pd.DataFrame(grid, range(len(x))).mean(axis=1).to_numpy(dtype=float)
    scale = asked.scale or _guess_scale(named)
    weights = sampling_weights(table, ~(np.isnan(x) | np.isnan(y)), where)
    return Scores(table, x, y, grid, (float(scale[0]), float(scale[1])), asked.scale is None, weights)


def sampling_weights(table: pd.DataFrame, rated: Flags, where: str) -> Array:
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
    chance = numbers(table, PROBABILITY, where)
    wrong = rated & ~((chance > 0) & (chance <= 1))
    if wrong.any():
        row, value = table.index[int(np.argmax(wrong))], chance[int(np.argmax(wrong))]
        raise RagnbError(
            f"{where}column {PROBABILITY!r}, row {row!r}: {value:g} is not in (0, 1]; give every labelled row the "
            "chance with which it was drawn, or leave the column out"
        )
    return np.where(rated, chance[rated].min(initial=1.0) / np.where(rated, chance, 1.0), 1.0)


def numbers(table: pd.DataFrame, name: str, where: str = "") -> Array:
    """Return a column of scores as floats, nan where there is none; text and infinite values raise RagnbError."""
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
    if np.isinf(values).any():
        raise RagnbError(f"{where}column {name!r} holds an infinite value; a rating is a finite number or missing")
    return values


def without_marks(values: Array, missing: Missing) -> Array:
    """Return scores with nan for the numbers that stand for no score."""
    for mark in as_list(missing):
        if mark != OUTSIDE:
            values = np.where(np.abs(values - float(mark)) <= SLACK, np.nan, values)
    return values


def settled(
    named: Mapping[str, Array], scale: tuple[float, float] | None, missing: Missing, where: Callable[[int], str]
) -> dict[str, Array]:
    """Return columns of scores in their scale, nan for what is declared to be no score.

    Parameters
    ----------
    missing : number or several, optional
        Marks; ``"outside"`` among them is whatever lies outside the scale.
    where : callable
        The place of a row, in the words before a refusal.

    Raises
    ------
    RagnbError
        For what lies outside the scale, and for −1 as the only number below 0 without a word about it.

    Examples
    --------
    >>> settled({"judge": np.array([4.0, -1.0])}, (1, 5), "outside", str)
    {'judge': array([ 4., nan])}
    """
    low, high = (-np.inf, np.inf) if scale is None else scale
    outside = OUTSIDE in as_list(missing)
    if outside and scale is None:
        raise RagnbError('missing="outside" needs the scale, its lowest and highest score: scale=(1, 5)')
    if scale is not None and not (low < high and np.isfinite([low, high]).all()):
        raise RagnbError(f"scale={scale} is no scale; give its lowest and highest label, such as (1, 5)")
    found = {name: without_marks(values, missing) for name, values in named.items()}
    if outside:
        found = {name: np.where(_off(values, low, high), np.nan, values) for name, values in found.items()}
    unsaid = scale is None and all((values[values < 0] == -1).all() for values in found.values())
    for name, values in found.items():
        below, off = values < 0, _off(values, low, high)
        if unsaid and below.any():
            raise RagnbError(
                f"{where(int(np.argmax(below)))}column {name!r}: found -1 in {below.sum()} of {len(values)} rows, "
                "and no other number below 0; say missing=-1 if it stands for a reply that could not be read, or "
                "the scale, such as scale=(-1, 1), if it is a score"
            )
        if off.any():
            first = f"{values[off][0]:g}"
            raise RagnbError(
                f"{where(int(np.argmax(off)))}column {name!r}: {first} lies outside the scale {low:g} to {high:g} "
                f"({off.sum()} of {(~np.isnan(values)).sum()} scores do); say missing={first} if it stands for no "
                'score, missing="outside" if all of them do, or widen it'
            )
    return found


def _off(values: Array, low: float, high: float) -> Flags:
    return (values < low - SLACK) | (values > high + SLACK)


def _guess_scale(named: Mapping[str, Array]) -> tuple[float, float]:
    """Return the whole numbers around what is seen; a judge on 0–1 beside humans on a longer scale is refused."""
    judge, *others = named.values()
    top = max((float(np.nanmax(v)) for v in others if not np.isnan(v).all()), default=0.0)
    inner = judge[(judge > 0) & (judge < 1)]
    if len(inner) and np.nanmax(judge) <= 1 and top > 1:
        raise RagnbError(
            f"the judge's scores lie in 0..1 and the humans' go up to {top:g}: bring both onto one scale first "
            "(low + (high − low)·score), or give scale= if they already are"
        )
    seen = np.concatenate([values[~np.isnan(values)] for values in named.values()])
    low, high = (float(np.floor(seen.min())), float(np.ceil(seen.max()))) if len(seen) else (0.0, 1.0)
    return low, high if high > low else low + 1.0


@dataclass(frozen=True)
class Cells:
    """Rated pairs of one judge on one dimension, each distinct one once; `counts` says how many it stands for.

    `cluster` is None where every rating stands alone. `group` holds one column more, where asked for. `weights`
    are 1 / inclusion probability, on average 1; where they differ, every rating has a cluster, its own at least.
    """

    x: Array
    y: Array
    cluster: Codes | None
    counts: Array
    group: Codes
    weights: Array

    @property
    def how(self) -> dict[str, Any]:
        """What the means of `ragnb.stats` take beside the values."""
        return {"clusters": self.cluster, "counts": self.counts, "weights": self.weights}

    @property
    def sums(self) -> dict[str, Any]:
        """What its functions of sums take, for which a weight is a fraction of a row."""
        return {"clusters": self.cluster, "counts": self.counts * self.weights}

    @property
    def n(self) -> int:
        """How many ratings there are."""
        return round(float(self.counts.sum()))

    @property
    def n_clusters(self) -> int:
        """How many clusters they come from."""
        return self.n if self.cluster is None else len(np.unique(self.cluster))

    def where(self, chosen: Any) -> Cells:
        """Return some of the cells, by flags or by places."""
        return replace(self, **{name: part[chosen] for name, part in vars(self).items() if part is not None})


def cells_of(ratings: Ratings, chosen: Flags, group: Codes | None = None) -> Cells:
    """Return the distinct pairs among the chosen rows, within clusters and groups.

    Examples
    --------
    >>> rows = open_ratings(pd.DataFrame({"judge": [4, 4, 2], "human": [5, 5, 2]}), "judge", Asked())
    >>> cells_of(rows, rows.both).counts.tolist()
    [1.0, 2.0]
    """
    rows = np.flatnonzero(chosen & ratings.both)
    none = np.zeros(len(rows), dtype=np.int64)
    cluster, group = (none if codes is None else codes[rows] for codes in (ratings.cluster, group))
    key = none
    for codes in (*(codes[rows] for codes in ratings.coded), cluster, group):
        key = key * (int(codes.max(initial=0)) + 1) + codes
    at = pd.factorize(key)[0]
    total = np.bincount(at, weights=ratings.counts[rows]).astype(float)
    one = np.zeros(len(total), dtype=np.intp)
    one[at] = np.arange(len(rows))  # any row of a cell shows what it holds
    x, y, w = (values[rows[one]] for values in (ratings.x, ratings.y, ratings.weights))
    w, cluster, group = w * total.sum() / max(total @ w, 1e-300), cluster[one], group[one]
    cells = Cells(x, y, None if ratings.cluster is None else cluster, total, group, w)
    return cells.where(np.lexsort((w, x, y, cluster, group)))


def random_groups(cells: Cells, seed: int) -> Cells:
    """Return the cells with at most 1,000 clusters: lone ratings and surplus clusters are put into groups.

    Random groups of clusters are clusters themselves (Wolter 2007, Introduction to Variance Estimation,
    chapter 2); a bootstrap over 1,000 of them costs the same for a thousand ratings and for a million.
    """
    rng = np.random.default_rng(seed)
    if cells.cluster is not None:
        names, code = np.unique(cells.cluster, return_inverse=True)
        of = rng.permutation(len(names)) % MOST_CLUSTERS if len(names) > MOST_CLUSTERS else np.arange(len(names))
        return replace(cells, cluster=of[code].astype(np.int64))
    counts = cells.counts.astype(np.int64)
    groups = int(min(MOST_CLUSTERS, counts.sum()))
    if cells.n <= 50_000:
        at = np.repeat(np.arange(len(counts)), counts)
        return replace(cells.where(at), cluster=rng.permutation(len(at)) % groups, counts=np.ones(len(at)))
    drawn = rng.multinomial(counts, np.full(groups, 1 / groups))
    at, own = np.nonzero(drawn)
    return replace(cells.where(at), cluster=own.astype(np.int64), counts=drawn[at, own].astype(float))


def fingerprint(parts: list[tuple[str, Cells]]) -> str:
    """Return the SHA-256 of the cells, the same whatever the engine and the order of the rows."""
    digest = hashlib.sha256()
    for name, cells in parts:
        digest.update(name.encode())
        weights = cells.weights if np.ptp(cells.weights) > 0 else None
        for column in (cells.x, cells.y, cells.cluster, cells.counts, weights):
            digest.update(np.round(np.asarray([] if column is None else column, dtype="<f8"), 9).tobytes())
    return digest.hexdigest()


def with_ends(name: str, found: Estimate) -> dict[str, float]:
    """Return an estimate as ``name, name_low, name_high``."""
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
