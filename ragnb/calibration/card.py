"""Human ratings and judge scores → measures of agreement, corrected means, and the card with its verdict."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats
from ragnb.errors import (
    RagnbError,
    did_you_mean,
    listing,
    need_columns,
    need_known,
    need_whole,
    not_a_frame,
)
from ragnb.markup import number, percent
from ragnb.markup.blocks import Mark, Section, Table, Text
from ragnb.markup.rendering import render_fragment, render_markdown
from ragnb.readers.frames import is_frame
from ragnb.schema import note_frame, note_row
from ragnb.stats import NONE, SLACK, Array, Estimate, LabelsNeeded
from ragnb.texts import entry, load
from ragnb.weights import collected, column_names
from ragnb.weights.columns import as_pandas, coded, opened, swift

Names = str | Sequence[str]
Missing = float | str | Sequence[float | str] | None
Scale = tuple[float, float]
OUTSIDE = "outside"
PROBABILITY = "inclusion_probability"
ALL = "all"
USUAL = ("dimension", "cluster")  # columns that need not be there
_COUNT = "__rows"
MOST_CLUSTERS = 1000
FEW_NUMBERS = 6  # a column of more numbers is an amount, such as a length, and no group
_USUAL_GROUPS = re.compile(r"system|answerab\w*|length|\w+_(?:words|length|tokens|chars)")


@dataclass(frozen=True)
class Asked:
    """The arguments of a public function; no `human` means judge scores only.

    `whole` keeps every row with its item and its labels as they are; else labels become sorted text, and engines
    other than pandas count equal rows. Opened ratings hold their scale here, as its lowest and highest label, and
    the acceptable bias; one judge's labels on one dimension also their `fraction` of those planned.
    """

    human: Names = "human"
    by: Names | None = "dimension"
    scale: Any = None
    cluster: str | None = "cluster"
    missing: Missing = None
    rater: str = "rater"
    item: str = "item_id"
    groups: tuple[str, ...] = ()
    whole: bool = False
    tolerance: float = 0.0
    usual: bool = False  # nobody said the tolerance: labels that are 0 or 1 must be equal
    level: float = 0.95
    target: float = 0.8
    delta: Any = None
    labels_planned: int | None = None
    fraction: float | None = None
    seed: int = 0
    lang: str = "en"

    @property
    def goal(self) -> dict[str, Any]:
        """The keyword arguments of `stats.labels_needed`."""
        return {
            "target": self.target,
            "alpha": 1 - self.level,
            "labels_planned": self.labels_planned,
        }

    def accepts(self, bias: Estimate) -> bool:
        """Whether the whole interval of a bias is acceptable."""
        return bool(bias.low >= -self.delta and bias.high <= self.delta)


def as_list(values: Any) -> list[Any]:
    """Return one name or number, or several, as a list; None is none."""
    return [] if values is None else [values] if np.ndim(values) == 0 else list(values)


def need_pandas(frame: object, reader: str) -> None:
    """Refuse what is no pandas frame, with the function that reads one."""
    if not isinstance(frame, pd.DataFrame):
        raise not_a_frame(frame, reader)


def opened_blocks(
    ratings: Any, judge: Names, asked: Asked, judged: Any = None
) -> list[tuple[dict[str, Any], pd.DataFrame, Asked]]:
    """Return the labels (the judge first) and the rows of each judge's groups, and what was asked of them."""
    found = []
    for name in as_list(judge):
        table, opened_as = open_ratings(ratings, name, asked, judged)
        by = [f":{column}" for column in as_list(asked.by) if f":{column}" in table]
        parts = (
            table.groupby(by, sort=not asked.whole, observed=True, dropna=False)
            if by
            else [((), table)]
        )
        for labels, rows in parts:
            if asked.whole or not rows["further"].all():
                named = {column[1:]: label for column, label in zip(by, labels, strict=True)}
                found.append(({"judge": name} | named, rows, opened_as))
    return found


def open_ratings(
    frame: Any, judge: str, asked: Asked, judged: Any = None
) -> tuple[pd.DataFrame, Asked]:
    """Check a frame of any engine, and one of further rows that this judge alone scored, as one table.

    Returns
    -------
    DataFrame
        ``judge, human`` (nan: no score), ``count`` (how many ratings a row represents), ``weight`` (1 / inclusion
        probability, 1 where none is recorded), ``cluster`` (a code, −1: alone), ``further`` (a row of `judged`),
        ``rater0`` … (single humans, where they are known), and the caller's columns as ``:name``.
    Asked
        With the scale.

    Raises
    ------
    RagnbError
        For columns that are not there, text among the scores, infinite values, values outside the scale, an
        undeclared −1, a rater who rated an item twice, and a tolerance as wide as the scale.

    Examples
    --------
    >>> frame = pd.DataFrame({"judge": [4, 2], "human": [5, 2], "cluster": ["a", "b"]})
    >>> open_ratings(frame, "judge", Asked())[1].scale
    (2.0, 5.0)
    """
    table, scores = _checked(frame, judge, asked)
    low, high = map(float, asked.scale or _guess_scale(scores))
    if asked.usual and (low, high) == (0, 1) and _are_verdicts(table):
        asked = replace(asked, tolerance=0.0)
    if not 0 <= asked.tolerance < high - low:
        raise RagnbError(
            f"tolerance={asked.tolerance:g} on a scale of {low:g}..{high:g}: every score lies within it; give "
            f"points of the scale, such as tolerance={(high - low) / 10:g}"
        )
    parts = [table.assign(further=False)]
    if judged is not None:
        needs = [str(name)[1:] for name in table if asked.whole and str(name)[0] == ":"]
        needs += as_list(asked.cluster if "cluster" in table else None)
        more, _ = _checked(judged, judge, replace(asked, human=()), needs, "judged: ")
        parts.append(more.assign(further=True))
    by = [] if asked.whole else [f":{name}" for name in as_list(asked.by)]
    parts = [part.assign(**{name: ALL for name in by if name not in part}) for part in parts]
    if "cluster" in (table := pd.concat(parts, ignore_index=True)):
        codes = coded(table["cluster"], compose=True).codes
        lone = codes < 0  # where others have a cluster, a row without one is its own
        table["cluster"] = (
            codes if lone.all() else np.where(lone, codes.max() + np.cumsum(lone), codes)
        )
    else:  # lone ratings of unequal weights are their own clusters
        table["cluster"] = (
            np.arange(len(table)) if len(table) and np.ptp(table["weight"]) > 0 else -1
        )
    if asked.whole:
        _refuse_twice(table, asked.item)
    else:
        for name, column in table.filter(regex="^:").items():
            number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(
                column
            )
            if name in by or not number or column.nunique() <= FEW_NUMBERS:
                table[name] = _labels(column)
        table = _counted(table)
    delta = (high - low) / 18 if asked.delta is None else asked.delta
    return table, replace(asked, scale=(low, high), delta=delta)


def _counted(table: pd.DataFrame) -> pd.DataFrame:
    """Return the distinct rows of a table with the number of ratings that each represents."""
    rows = table.groupby(
        list(table.columns.drop("count")), sort=False, dropna=False, observed=True
    )["count"]
    return rows.sum().reset_index()[list(table)]


def _labels(column: pd.Series) -> Any:
    """Return labels as text in the order of code points, after "", which means none."""
    label = coded(column)
    names = label.names if label.names[:1] == ("",) else ("", *label.names)
    return pd.Categorical.from_codes(
        np.maximum(label.codes + len(names) - len(label.names), 0), pd.Index(names)
    )


def brought_ratings(ratings: Any, judge: Names, human: Names) -> tuple[Any, Names, Names]:
    """Return a frame as it is, else what `read_ratings` reads; and what the columns of scores are called there."""
    if ratings is None or is_frame(ratings):
        return ratings, judge, human
    # The readers of ratings stand on this module.
    from ragnb.calibration.labels import read_ratings

    asked: dict[str, Any] = {"judge": judge, "human": human}
    given: dict[str, Any] = {role: names for role, names in asked.items() if names != role}
    frame = read_ratings(ratings, **given)
    called = {
        role: role if isinstance(names, str) and names not in frame.columns else names
        for role, names in asked.items()
    }
    return frame, called["judge"], called["human"]


def columns_of(frame: Any) -> list[str]:
    """Return the columns of a frame of any engine; anything else, such as a path, raises RagnbError."""
    try:
        return column_names(frame)
    except RagnbError:
        raise not_a_frame(frame, "rn.read_ratings") from None


def _checked(
    frame: Any, judge: str, asked: Asked, needs: Sequence[str] = (), where: str = ""
) -> tuple[pd.DataFrame, dict[str, Array]]:
    """Return a frame's rows with their scores in their scale and their weights; and the scores by column."""
    columns, people = columns_of(frame), as_list(asked.human)
    numbered = (f"{name}{k}" for name in people[:1] for k in itertools.count(1))
    raters = (
        people if len(people) > 1 else list(itertools.takewhile(columns.__contains__, numbered))
    )
    raters = raters if len(raters) > 1 else []
    human = [] if len(people) > 1 or (raters and people[0] not in columns) else people
    by, clusters = as_list(asked.by), as_list(asked.cluster)
    long = asked.rater in columns and bool(people) and not raters
    wanted = [
        judge,
        *human,
        *raters,
        *(name for name in (*by, *clusters) if name not in USUAL),
        *needs,
    ]
    for name in (name for name in wanted if name not in columns):
        raise RagnbError(f"{where}column={name!r} does not exist; {did_you_mean(name, columns)}")
    kept = [*([asked.item] * asked.whole), "system", *by, *asked.groups]
    more = {
        *kept,
        *clusters,
        *([PROBABILITY] if people else []),
        *([asked.rater, asked.item] if long else []),
    }
    used = [*dict.fromkeys([*wanted, *(name for name in columns if name in more)])]
    if isinstance(frame, pd.DataFrame):
        table = frame[used]
    else:  # equal rows are counted where they are
        part = opened(frame).select(*used)
        if not (asked.whole or long or PROBABILITY in used):
            part = swift(part).group_by(*used).agg(nw.len().alias(_COUNT))
        table = as_pandas(collected(part).to_native())
    if long:
        table, human = side_by_side(table, judge, human[0], asked), []
        raters = [name for name in table.columns if str(name).startswith("__rater")]
    scores = {name: numbers(table, name, where) for name in (judge, *human, *raters)}
    scores = settled(
        scores, asked.scale, asked.missing, lambda at: f"{where}row {table.index[at]!r}: "
    )
    rows = (
        table[[name for name in dict.fromkeys(kept) if name in table]]
        .add_prefix(":")
        .reset_index(drop=True)
    )
    if asked.cluster in table:
        rows["cluster"] = table[asked.cluster].to_numpy()
        if (alone := rows["cluster"].isna() & bool(people and not asked.whole)).any():
            row = table.index[int(np.argmax(alone))]
            raise RagnbError(
                f"column {asked.cluster!r} is empty in row {row!r}; every rating needs a cluster"
            )
    grid = pd.DataFrame({f"rater{k}": scores[name] for k, name in enumerate(raters)}, rows.index)
    rows["judge"] = scores[judge]
    rows["human"] = scores[human[0]] if human else grid.mean(axis=1).to_numpy(dtype=float)
    rows["count"] = table[_COUNT].to_numpy(dtype=float) if _COUNT in table else 1.0
    rows["weight"] = _sampling_weights(
        table, rows[["judge", "human"]].notna().all(axis=1).to_numpy(), where
    )
    return rows.join(grid), scores


def side_by_side(table: pd.DataFrame, judge: str, human: str, asked: Asked) -> pd.DataFrame:
    """Return one row per item, its raters in columns ``__rater0`` …"""
    need_columns(
        table.columns,
        [asked.item],
        f"It says which rows of column {asked.rater!r} belong to one item.",
    )
    score, rated = numbers(table, human), table[asked.rater].notna().to_numpy()
    if (nobody := ~rated & ~np.isnan(without_marks(score, asked.missing))).any():
        raise RagnbError(
            f"column {asked.rater!r} is empty in row {table.index[int(np.argmax(nobody))]!r}"
        )
    same = [
        c for c in (asked.item, "system", *as_list(asked.by), asked.cluster) if c in table.columns
    ]
    item = table.groupby(same, sort=False, dropna=False).ngroup().to_numpy()
    given = pd.Series(score[rated], [item[rated], table.loc[rated, asked.rater]], dtype=float)
    if given.index.has_duplicates:
        row = table[rated].iloc[int(np.argmax(given.index.duplicated()))]
        raise RagnbError(
            f"rater {row[asked.rater]!r} rated item {row[asked.item]} twice; keep one rating per item, "
            "dimension and rater"
        )
    for column in (judge, PROBABILITY) if PROBABILITY in table.columns else (judge,):
        scores = pd.Series(table[column].to_numpy(dtype=float, na_value=np.nan)).groupby(item)
        if (apart := scores.max() - scores.min() > SLACK).any():
            name = table[asked.item].iloc[int(np.argmax(item == apart.idxmax()))]
            raise RagnbError(
                f"item {name} has several scores in column {column!r}; give one score per item"
            )
    grid = given.unstack().reindex(range(int(item.max(initial=-1)) + 1))
    out = table.drop_duplicates(same).drop(columns=human).reset_index(drop=True)
    return out.join(grid.set_axis([f"__rater{k}" for k in range(grid.shape[1])], axis=1))


def _sampling_weights(table: pd.DataFrame, rated: npt.NDArray[np.bool_], where: str) -> Array:
    """Return 1 / inclusion probability of the rated rows; 1 for other rows and where none is recorded."""
    if PROBABILITY not in table.columns:
        return np.ones(len(table))
    chance = numbers(table, PROBABILITY, where)
    if (wrong := rated & ~((chance > 0) & (chance <= 1))).any():
        row, value = table.index[int(np.argmax(wrong))], chance[int(np.argmax(wrong))]
        raise RagnbError(
            f"{where}column {PROBABILITY!r}, row {row!r}: {value:g} is not in (0, 1]; give every labelled row the "
            "chance with which it was drawn, or leave the column out"
        )
    return 1 / np.where(rated, chance, 1.0)


def numbers(table: pd.DataFrame, name: str, where: str = "") -> Array:
    """Return a column of scores as floats, nan if missing; text and infinite values raise RagnbError."""
    if not pd.api.types.is_numeric_dtype(column := table[name]):
        for at in (at for at, value in enumerate(column) if isinstance(value, str)):
            raise RagnbError(
                f"{where}column {name!r}, row {column.index[at]!r}: {column.iloc[at]!r} is text, not a score; "
                "read the file with rn.read_ratings, or convert the column to numbers"
            )
    if np.isinf(
        values := np.array(column.to_numpy(dtype=float, na_value=np.nan), dtype=float)
    ).any():
        raise RagnbError(
            f"{where}column {name!r} holds an infinite value; a rating is a finite number or missing"
        )
    return values


def without_marks(values: Array, missing: Missing) -> Array:
    """Return scores with nan for the numbers that mean no score."""
    for mark in (mark for mark in as_list(missing) if mark != OUTSIDE):
        values = np.where(np.abs(values - float(mark)) <= SLACK, np.nan, values)
    return values


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
    low, high = (-np.inf, np.inf) if scale is None else scale
    if (outside := OUTSIDE in as_list(missing)) and scale is None:
        raise RagnbError(
            'missing="outside" needs the scale, its lowest and highest score: scale=(1, 5)'
        )
    if scale is not None and not (low < high and np.isfinite([low, high]).all()):
        raise RagnbError(
            f"scale={scale} is not a scale; give its lowest and highest label, such as (1, 5)"
        )
    found = {name: without_marks(values, missing) for name, values in named.items()}
    unsaid = scale is None and all((values[values < 0] == -1).all() for values in found.values())
    for name, values in found.items():
        below, off = values < 0, (values < low - SLACK) | (values > high + SLACK)
        if unsaid and below.any():
            raise RagnbError(
                f"{where(int(np.argmax(below)))}column {name!r}: found -1 in {below.sum()} of {len(values)} rows, "
                "and no other number below 0; set missing=-1 if it means a reply that could not be parsed, or "
                "the scale, such as scale=(-1, 1), if it is a score"
            )
        if outside:
            found[name] = np.where(off, np.nan, values)
        elif off.any():
            first = f"{values[off][0]:g}"
            raise RagnbError(
                f"{where(int(np.argmax(off)))}column {name!r}: {first} lies outside the scale {low:g} to {high:g} "
                f"({off.sum()} of {(~np.isnan(values)).sum()} scores do); set missing={first} if it means no "
                'score, missing="outside" if all of them do, or widen it'
            )
    return found


def _guess_scale(named: Mapping[str, Array]) -> Scale:
    """Return the whole numbers around the observed scores; refuse a judge on 0–1 with humans on a longer scale."""
    judge, *others = named.values()
    top = max((float(np.nanmax(v)) for v in others if not np.isnan(v).all()), default=0.0)
    if ((judge > 0) & (judge < 1)).any() and np.nanmax(judge) <= 1 and top > 1:
        raise RagnbError(
            f"the judge's scores lie in 0..1 and the human scores go up to {top:g}: rescale both to one scale "
            "first (low + (high − low)·score), or give scale= if they already are"
        )
    seen = np.concatenate([values[~np.isnan(values)] for values in named.values()])
    low, high = (
        (float(np.floor(seen.min())), float(np.ceil(seen.max()))) if len(seen) else (0.0, 1.0)
    )
    return low, high if high > low else low + 1.0


def design(cells: pd.DataFrame, *, of_sums: bool = False) -> dict[str, Any]:
    """Return the keyword arguments of the means in `ragnb.stats`.

    Functions of sums take no weights: for them a weight is a fraction of a row.
    """
    clusters = None if (cells["cluster"] < 0).all() else cells["cluster"].to_numpy()
    counts, weights = cells["count"].to_numpy(), cells["weight"].to_numpy()
    by_row = {"counts": counts * weights} if of_sums else {"counts": counts, "weights": weights}
    return {"clusters": clusters, **by_row}


def flags(cells: pd.DataFrame, asked: Asked) -> Array:
    """Return which pairs agree within the tolerance."""
    return stats.within(cells["judge"], cells["human"], asked.tolerance)


def mean(values: Any, cells: pd.DataFrame, asked: Asked, **options: Any) -> Estimate:
    """Return the clustered mean of one value per cell."""
    return stats.clustered_mean(values, **{**design(cells), "level": asked.level} | options)


def share(cells: pd.DataFrame, asked: Asked, **options: Any) -> Estimate:
    """Return the share of pairs within the tolerance."""
    how = {**design(cells), "tolerance": asked.tolerance, "level": asked.level} | options
    return stats.within_share(cells["judge"], cells["human"], **how)


def bias(cells: pd.DataFrame, asked: Asked, **options: Any) -> Estimate:
    """Return the mean of judge − human."""
    return stats.bias(
        cells["judge"], cells["human"], **{**design(cells), "level": asked.level} | options
    )


def cells_of(rows: pd.DataFrame, group: Any = 0) -> pd.DataFrame:
    """Return the distinct pairs among rows of opened ratings, within clusters and groups.

    Returns
    -------
    DataFrame
        ``judge, human, cluster`` (−1 where every rating stands alone), ``count``, the ratings of each, ``weight``,
        1 / inclusion probability, on average 1 (where they differ, every rating has a cluster), ``group``.

    Examples
    --------
    >>> rows = open_ratings(pd.DataFrame({"judge": [4, 4, 2], "human": [5, 5, 2]}), "judge", Asked())[0]
    >>> cells_of(rows)["count"].tolist()
    [1.0, 2.0]
    """
    keys = ["group", "cluster", "human", "judge", "weight"]
    pairs = rows[[*keys[1:], "count"]].assign(group=group).dropna(subset=["human", "judge"])
    cells = _counted(pairs).sort_values(keys, ignore_index=True)
    counts = cells["count"].to_numpy()
    weights = cells["weight"].to_numpy() / cells["weight"].max()  # equal ones are exactly 1
    return cells.assign(weight=weights * counts.sum() / max(float(counts @ weights), 1e-300))


def random_groups(cells: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Return the cells with at most 1,000 clusters; single ratings and surplus clusters are grouped.

    Random groups of clusters are clusters themselves (Wolter 2007, Introduction to Variance Estimation,
    chapter 2); a bootstrap over 1,000 of them costs the same for a thousand ratings and for a million.
    """
    rng, code = np.random.default_rng(seed), stats.packed(cells["cluster"].to_numpy())
    if (cells["cluster"] >= 0).all():
        many = code.max(initial=-1) + 1
        few = many <= MOST_CLUSTERS
        return cells if few else cells.assign(cluster=rng.permutation(many)[code] % MOST_CLUSTERS)
    at = np.repeat(np.arange(len(cells)), cells["count"].astype(int))
    groups = min(MOST_CLUSTERS, len(at))
    pairs, sizes = np.unique(at * groups + rng.permutation(len(at)) % groups, return_counts=True)
    return cells.take(pairs // groups).assign(cluster=pairs % groups, count=sizes.astype(float))


def fingerprint(parts: Mapping[str, pd.DataFrame]) -> str:
    """Return the SHA-256 of the cells, the same whatever the engine and the order of the rows."""
    digest = hashlib.sha256()
    for name, cells in parts.items():
        digest.update(name.encode())
        lone, alike = (cells["cluster"] < 0).all(), np.ptp(cells["weight"]) == 0
        codes = cells.assign(cluster=stats.packed(cells["cluster"].to_numpy()))
        for column in (
            "judge",
            "human",
            *["cluster"] * (not lone),
            "count",
            *["weight"] * (not alike),
        ):
            digest.update(np.round(codes[column].to_numpy(dtype="<f8"), 9).tobytes())
    return digest.hexdigest()


def with_ends(found: Estimate, name: str = "value", ends: str = "") -> dict[str, float]:
    """Return an estimate as the columns ``name, low, high``, the ends under their prefix.

    Examples
    --------
    >>> with_ends(Estimate(0.5, 0.4, 0.6, 0.05, 100, 100), "bias", "bias_")
    {'bias': 0.5, 'bias_low': 0.4, 'bias_high': 0.6}
    """
    return {name: found.value, f"{ends}low": found.low, f"{ends}high": found.high}


LEAST_CLUSTERS = 5
WIDEST = 20  # a scale with more whole labels is cut into ten bands
MOST_POINTS = 20
MOST_CELLS = 5000


def _are_verdicts(table: pd.DataFrame) -> bool:
    """Whether all scores are 0 or 1, as pass and fail are read."""
    scores = table[["judge", "human"]].to_numpy(dtype=float)
    return bool(np.isin(scores[~np.isnan(scores)], (0, 1)).all())


def agreement(
    ratings: Any,
    *,
    judge: Names = "judge",
    human: Names = "human",
    by: Names | None = "dimension",
    tolerance: float | None = None,
    scale: tuple[float, float] | None = None,
    cluster: str | None = "cluster",
    level: float = 0.95,
    missing: Missing = None,
    rater: str = "rater",
) -> pd.DataFrame:
    """Return how well a judge agrees with humans, one row per judge, dimension and measure.

    Parameters
    ----------
    ratings : DataFrame
        One row per item and dimension (or one a rater, with ``item_id`` and a `rater` column), of pandas, Polars,
        PyArrow, DuckDB or PySpark; other engines than pandas count judge × human × cluster themselves, and rows
        stay where they are. Scores are numbers on one scale, nan or null where there is none.
    judge : str or sequence of str
        The judge's column; several judges give a block of rows each.
    human : str or sequence of str
        The humans' column. Several columns, ``human1, human2, …`` beside it, or a `rater` column are single
        raters: the human score is their mean (or the column itself, where it is there too), and the ceiling and
        alpha come from them.
    by : str or sequence of str or None
        What gets a row each, such as ``["dimension", "system"]``. Without a ``dimension`` column there is one
        row, ``all``.
    tolerance : float, optional
        In points of the scale. None is 1; 0, which is exact agreement, where every score is 0 or 1.
    scale : (float, float), optional
        The lowest and highest label, such as (1, 10). None takes the whole numbers around what is seen.
    cluster : str or None
        The column of clusters (documents, conversations). Absent or None: every row stands alone, which makes
        intervals too narrow wherever that is not so.
    level : float
        Of the intervals, in (0, 1).
    missing : float or sequence of float or "outside", optional
        Marks for an answer that could not be parsed, such as -1; they count as missing. ``"outside"`` declares
        whatever is outside `scale` such a mark: means over runs that hold a −1 are no ratings.
    rater : str
        The column that names the human of a row, in the long layout.

    Returns
    -------
    DataFrame
        ``judge``, the columns of `by`, ``measure, value, low, high, n, n_clusters``; ``low, high`` are missing
        where a measure has no interval. A measure that does not apply has no row. ``attrs["scale"]`` is the scale.

        =====================  ==========================================================================
        ``within``             share within ±tolerance; ``within_rounded`` with both rounded half up
        ``floor``              share of an independent judge with the same scores
        ``constant``           share of the best constant judge, which always answers ``constant_score``
        ``over_constant``      the judge's share less that one's, pair by pair
        ``ceiling``            share of one human against the mean of the others (single raters)
        ``exact``              share of equal scores, both rounded
        ``mae``                mean absolute error
        ``bias``               mean of judge − human, beside ``mean_judge`` and ``mean_human``
        ``loa_low, loa_high``  limits of agreement
        ``slope``              slope of the difference on the mean
        ``qwk``                quadratic weighted kappa over the whole scale
        ``kendall``            Kendall's τ-b of the ratings to ten decimals, so that means of raters that differ
                               in the last bit are ties; ``kendall_by_system`` of the systems' means
        ``alpha``              Krippendorff's α of the humans alone (single raters)
        ``raters``             human ratings per item
        ``n_missing``          rows left out, as a score is missing
        =====================  ==========================================================================

        ``exact, within_rounded`` and ``qwk`` need a scale of 2 points or more.

    Raises
    ------
    RagnbError
        For unknown columns, scores that are text, infinite or outside the scale, an undeclared −1, two scales in
        one frame, and a tolerance as wide as the scale.

    Notes
    -----
    Shares, exact agreement and bias are means by the one clustered estimator, correlations and the rest
    delete-one-cluster jackknives; each formula and its source is in `ragnb.stats`.

    Examples
    --------
    >>> frame = pd.DataFrame({"judge": [4, 5, 2, 1], "human": [5, 5, 4, 1]})
    >>> table = agreement(frame, scale=(1, 5)).set_index("measure")
    >>> table.loc[["within", "constant", "bias"], "value"].tolist()
    [0.75, 0.75, -0.75]
    """
    ratings, judge, human = brought_ratings(ratings, judge, human)
    asked = Asked(
        human,
        by,
        scale,
        cluster,
        missing,
        rater,
        tolerance=1.0 if tolerance is None else tolerance,
        usual=tolerance is None,
        level=level,
    )
    parts = opened_blocks(ratings, judge, asked)
    frames = [
        measure_rows(labels, measured(rows, cells_of(rows), own)) for labels, rows, own in parts
    ]
    frame = pd.concat(frames, ignore_index=True)
    frame.attrs["scale"] = parts[-1][2].scale
    return frame


def measure_rows(head: dict[str, Any], measures: dict[str, Estimate]) -> pd.DataFrame:
    """Return the rows of one judge and dimension."""
    rows = [head | {"measure": name} | asdict(one) for name, one in measures.items()]
    return pd.DataFrame(rows, columns=[*head, "measure", "value", "low", "high", "n", "n_clusters"])


def measured(rows: pd.DataFrame, cells: pd.DataFrame, asked: Asked) -> dict[str, Estimate]:
    """Return every measure of one judge on one dimension that applies, by name."""
    x, y, scale, within = cells["judge"], cells["human"], asked.scale, share(cells, asked)
    how: dict[str, Any] = {**design(cells), "level": asked.level}
    sums: dict[str, Any] = {**design(cells, of_sums=True), "level": asked.level}

    def plain(value: float) -> Estimate:
        return Estimate(value, np.nan, np.nan, np.nan, within.n, within.n_clusters)

    score, constant = stats.best_constant(y, tolerance=asked.tolerance, **how)
    low, high = stats.limits_of_agreement(x, y, **sums)
    measures = {
        "within": within,
        "constant": constant,
        "constant_score": plain(score),
        "floor": plain(stats.chance_floor(x, y, tolerance=asked.tolerance, counts=sums["counts"])),
        "over_constant": over_constant(cells, score, asked),
        "mean_judge": mean(x, cells, asked, ends=scale),
        "mean_human": mean(y, cells, asked, ends=scale),
        "mae": stats.mae(x, y, scale=scale, **how),
        "bias": bias(cells, asked),
        "loa_low": low,
        "loa_high": high,
        "slope": stats.slope_on_mean(x, y, **sums),
        "kendall": stats.kendall(x, y, digits=10, **sums),
        "n_missing": plain(round(float(rows["count"].sum())) - within.n),
    }
    if scale[1] - scale[0] >= 2:
        rounded = cells.assign(judge=stats.round_half_up(x), human=stats.round_half_up(y))
        measures["within_rounded"] = share(rounded, asked)
        measures["exact"] = share(rounded, replace(asked, tolerance=0.0))
        measures["qwk"] = stats.quadratic_kappa(
            x, y, (np.floor(scale[0]), np.ceil(scale[1])), **sums
        )
    if ":system" in rows:
        few = random_groups(cells_of(rows[rows[":system"] != ""], rows[":system"].cat.codes))
        how = design(few, of_sums=True) | {"level": asked.level}
        if few["group"].nunique() > 1:
            measures["kendall_by_system"] = stats.kendall_of_means(
                few["judge"], few["human"], few["group"], **how
            )
    if "rater0" in rows:
        rows = rows.loc[rows.index.repeat(rows["count"].astype(int))]
        grid, of = (
            rows.filter(regex="^rater").to_numpy(),
            None if sums["clusters"] is None else rows["cluster"],
        )
        how = {"tolerance": asked.tolerance, "weights": rows["weight"], "level": asked.level}
        measures["raters"] = plain(float(np.sum(~np.isnan(grid), axis=1).mean()))
        measures["ceiling"] = stats.human_ceiling(grid, of, **how)
        measures["alpha"] = stats.krippendorff_alpha(grid, of, level=asked.level)
    return {name: measures[name] for name in LAYOUT["measures"] if name in measures}


def over_constant(cells: pd.DataFrame, score: float, asked: Asked, **options: Any) -> Estimate:
    """Return the paired difference between the judge's agreement and that of a constant `score`."""
    gain = flags(cells, asked) - flags(cells.assign(judge=score), asked)
    return mean(gain, cells, asked, **options)


def bands(cells: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    """Return one row per band of the judge's score, its verdict adjusted by Holm over the bands that have one.

    A band is the label that a score rounds to, or a tenth of a scale without labels.
    """
    (low, high), rows = asked.scale, []
    labelled, step = 2 <= high - low <= WIDEST, (high - low) / 10
    tenth = np.clip(np.floor((cells["judge"].to_numpy() - low) / step + SLACK), 0, 9)
    code = stats.round_half_up(cells["judge"]) if labelled else tenth
    for band in np.unique(code):
        found = share(part := cells[code == band], asked)
        above = stats.p_above(found, asked.target, share=True, fraction=asked.fraction)
        above = above if found.n_clusters >= LEAST_CLUSTERS else np.nan
        name = f"{band:g}" if labelled else f"{low + band * step:g}–{low + (band + 1) * step:g}"
        row = {
            "band": name,
            "start": part["judge"].min(),
            "end": part["judge"].max(),
            **with_ends(found, "share"),
        }
        row |= with_ends(bias(part, asked), "bias", "bias_")
        row |= {"n": found.n, "n_clusters": found.n_clusters}
        rows.append(
            row | {"p": min(above, 1 - above), "verdict": TRUST if above <= 0.5 else REJECT}
        )
    frame = pd.DataFrame(rows)
    frame["p"] = stats.holm(frame["p"])
    frame["verdict"] = frame["verdict"].where(frame["p"] <= 1 - asked.level, NOT_PROVEN)
    frame["verdict"] = frame["verdict"].mask(frame["n_clusters"] < LEAST_CLUSTERS, "too few")
    return frame


def inflation(rows: pd.DataFrame, cells: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    """Return one row per group: its bias with interval, and the difference from the bias of the other groups."""
    found = [("overall", "", cells, NONE)]
    for kind, codes, names in _groupings(rows, asked):
        split = cells_of(rows[codes >= 0], codes[codes >= 0])
        for group in np.unique(split["group"]) if split["group"].nunique() > 1 else ():
            inside = split["group"] == group
            rest = stats.contrast(
                split["judge"] - split["human"], inside, **design(split), level=asked.level
            )
            found.append((kind, names[group], split[inside], rest))
    table = []
    for kind, name, part, rest in found:
        own, decisive = (
            bias(part, asked, fraction=fraction) for fraction in (None, asked.fraction)
        )
        above = stats.p_above(own, 0.0)
        row = {"kind": kind, "group": name, **with_ends(own), "upper": decisive.high}
        row |= {**with_ends(rest, "beside", "beside_"), "p": 2 * min(above, 1 - above)}
        table.append(row | {"n": own.n, "n_clusters": own.n_clusters})
    frame = pd.DataFrame(table)
    frame["p"] = frame.groupby("kind", sort=False)["p"].transform(stats.holm)
    return frame.assign(inflated=(frame["value"] > 0) & (frame["p"] <= 1 - asked.level))


def _groupings(rows: pd.DataFrame, asked: Asked) -> Iterator[tuple[str, Any, Any]]:
    """Yield each column by which bias is looked at: its name, its groups as codes (−1: none), their names."""
    rated = rows[["judge", "human"]].notna().all(axis=1).to_numpy()
    is_amount = {name: pd.api.types.is_numeric_dtype(rows[f":{name}"]) for name in asked.groups}
    for name in sorted(is_amount, key=is_amount.__getitem__):
        column = rows[f":{name}"]
        if not is_amount[name]:
            yield name, column.cat.codes.to_numpy(np.int64) - 1, column.cat.categories[1:]
        elif (seen := rated & column.notna().to_numpy()).any():
            values = column.to_numpy(dtype=float, na_value=np.nan)
            order = np.flatnonzero(seen)[np.argsort(values[seen], kind="stable")]
            upto = np.cumsum(rows["count"].to_numpy()[order])
            low, high = values[order][
                np.searchsorted(upto, upto[-1] * np.array([1 / 3, 2 / 3]) - 1e-9)
            ]
            codes = np.where(
                np.isnan(values), -1, (values > low).astype(np.int64) + (values > high)
            )
            yield name, codes, [f"≤ {low:g}", f"{low:g} – {high:g}", f"> {high:g}"]


def recalibration(cells: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    """Return raw scores, a constant, a line and a rising curve side by side, each judged out of fold."""
    own = random_groups(cells, asked.seed) if (cells["cluster"] < 0).all() else cells
    columns = own["judge"], own["human"], own["cluster"]
    mapped = (
        stats.recalibrate(*columns, counts=own["count"]) if own["cluster"].nunique() > 1 else {}
    )
    errors: dict[str, Array] = {
        name: np.abs(scores - own["human"]) for name, scores in mapped.items()
    }
    maes = {name: mean(error, own, asked) for name, error in errors.items()}
    shares = {name: share(own.assign(judge=scores), asked) for name, scores in mapped.items()}
    rows = []
    for name, scores in mapped.items():
        found, is_map = own.assign(judge=scores), name in stats.MAPS
        low = share(found, asked, level=2 * asked.level - 1, fraction=asked.fraction).low
        helps = is_map and maes[name].value < min(maes["raw"].value, maes["constant"].value)
        passes = helps and low >= asked.target and shares[name].value > shares["constant"].value
        passes = bool(passes and asked.accepts(bias(found, asked, fraction=asked.fraction)))
        gain = mean(errors["raw"] - errors[name], own, asked) if is_map else NONE
        row = {
            "map": name,
            **with_ends(maes[name], "mae", "mae_"),
            **with_ends(shares[name], "share"),
        }
        rows.append(row | with_ends(gain, "gain", "gain_") | {"helps": helps, "passes": passes})
    return pd.DataFrame(rows, columns=LAYOUT["frames"]["recalibration"])


def reliability(cells: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    """Return E[human | judge] at each score with its interval, and the isotonic map.

    A point is a score of the judge, or one of twenty equal parts of the ratings.
    """
    from scipy.optimize import isotonic_regression

    place = cells["judge"].round(9)
    if place.nunique() > MOST_POINTS:
        before = cells.groupby(place)["count"].sum().cumsum()
        place = place.map(np.floor((before - SLACK) / before.iloc[-1] * MOST_POINTS))
    rows, weights = [], []
    for _, part in cells.groupby(place):
        human, size = (
            mean(part["human"], part, asked, ends=asked.scale),
            part["count"] * part["weight"],
        )
        point = {
            "judge_score": np.average(part["judge"], weights=size),
            **with_ends(human, "human"),
        }
        rows.append(point | {"n": human.n, "n_clusters": human.n_clusters})
        weights.append(size.sum())
    frame = pd.DataFrame(rows)
    frame.insert(4, "isotonic", isotonic_regression(frame["human"], weights=weights).x)
    return frame


def counts(cells: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    """Return judge × human cells and their counts, rounded to a hundredth of the scale where they are many."""
    low, high = asked.scale
    scores = ["judge_score", "human_score"]
    frame = (
        cells[["judge", "human", "count"]].astype({"count": int}).set_axis([*scores, "n"], axis=1)
    )
    if len(frame[scores].drop_duplicates()) > MOST_CELLS:
        step = (high - low) / 100
        frame[scores] = ((frame[scores] - low) / step).round() * step + low
    return frame.groupby(scores, as_index=False)[["n"]].sum()


def budget(cells: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    """Return the label budget: interval width and probability of showing the target by number of labels.

    ``labels``; ``share``, as seen now, and its ``low, high`` expected at so many labels;
    ``probability`` of showing the target, were the seen share the true one, and ``chance`` of it when only the
    labels at hand are known of the truth; ``target``; ``n`` labels now.
    """
    curve = stats.label_budget(
        flags(cells, asked), **design(cells), **asked.goal, level=asked.level
    )
    frame, now = pd.DataFrame(curve).astype({"labels": int}), share(cells, asked)
    frame.insert(1, "share", now.value)
    return frame.assign(target=asked.target, n=now.n)


# Each makes the frame of its name on a card.
FRAMES = (bands, recalibration, counts, reliability, budget)


WAYS = {"judge": "judge_", "human": "human_", "corrected": ""}
DRAW = ("judge_labelled", "judge_rest", "draw_z", "draw_p")
DRAW_LEVEL = 0.01
BETWEEN = {"en": " ", "zh": ""}  # sentences


def corrected_mean(
    ratings: Any,
    *,
    judged: Any = None,
    judge: str = "judge",
    human: Names = "human",
    by: Names | None = "dimension",
    cluster: str | None = "cluster",
    item: str = "item_id",
    scale: Scale | None = None,
    missing: Missing = None,
    level: float = 0.95,
    lang: str = "en",
) -> pd.DataFrame:
    """Return the estimated human mean, from few labels and many scores of a judge.

    Parameters
    ----------
    ratings : frame of any engine
        As `agreement` takes them; rows without a human's score count as judged. Labels drawn with unequal chances
        need the column ``inclusion_probability``; labelled and judged rows together are then what was drawn from.
    judged : frame, optional
        Further rows with the judge's score alone, drawn from the same population; no item of `ratings`.
    by : str or sequence of str, optional
        One row of the result a dimension, or a dimension and system. None: one row.
    cluster : str
        Rows of one cluster are correlated; it may hold labelled and unlabelled rows. Without the column rows count
        as independent.
    scale : (float, float), optional
        The lowest and highest score there is. None takes the ends of the scores at hand.
    missing, human
        As in `agreement`.

    Returns
    -------
    DataFrame
        [by,] ``value, low, high, se``: the corrected mean; ``n`` labelled and ``n_judged`` further rows,
        ``n_clusters``; ``weight``, λ in 0–1: what the judge's scores were worth. Beside it ``human_value,
        human_low, human_high``, the labels alone; ``judge_value, judge_low, judge_high``, the judge's scores of
        all rows, with their ``bias, bias_low, bias_high`` (judge − human on labelled rows). ``judge_labelled,
        judge_rest, draw_z, draw_p``: whether the judge scores the labelled rows as it does the rest
        (`stats.draw_test`, Holm over the rows of the result; missing where chances are recorded and unequal).
        ``note``: what to know in words. Without two labelled rows a group has no mean, neither the judge's.

    Raises
    ------
    RagnbError
        For wrong columns or scores, an item twice or in both frames, no label at all.

    Notes
    -----
    Prediction-powered inference with λ tuned (Angelopoulos, Duchi and Zrnic 2023, arXiv 2311.01453), interval by
    delete-one-cluster jackknife: `ragnb.stats.ppi_jackknife`. It needs labels drawn at random, or recorded
    chances. A draw by the judge's score is found and noted; a draw by the human score cannot be detected.

    Examples
    --------
    >>> ratings = pd.DataFrame({"judge": [4, 5, 3, 5], "human": [3, 5, 2, 4], "cluster": [1, 1, 2, 3]})
    >>> judged = pd.DataFrame({"judge": [5, 4, 4, 3, 5], "cluster": [1, 2, 4, 4, 5]})
    >>> corrected_mean(ratings, judged=judged, scale=(1, 5))[["value", "low", "high", "weight", "bias"]].round(2)
       value   low  high  weight  bias
    0   3.46  1.84  4.63     0.7  0.75
    """
    judged = brought_ratings(judged, judge, human)[0]
    ratings, named, human = brought_ratings(ratings, judge, human)
    judge = str(named)
    asked = Asked(human, by, scale, cluster, missing, item=item, whole=True, level=level, lang=lang)
    if not 0 < level < 1:
        raise RagnbError(f"level={level} is not between 0 and 1; give a share such as 0.95")
    load(lang)
    found = opened_blocks(ratings, judge, asked, judged)
    if not any(part["human"].notna().any() for _, part, _ in found):
        raise RagnbError(
            "no row has a human score: the judge's bias cannot be estimated from its own scores; label some items"
        )
    rows = [labels | corrected_row(part, scale or _ends(part), asked) for labels, part, _ in found]
    for row in doubtful_draws(rows):
        row["note"] += BETWEEN[lang] + draw_text(row, lang)
    return pd.DataFrame(rows, columns=[*list(found[0][0])[1:], *LAYOUT["frames"]["means"]])


def corrected_ways(means: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of `corrected_mean` with one row per way of asking: the judge alone, humans alone, corrected.

    Returns
    -------
    DataFrame
        [by,] ``way, value, low, high, weight, n, n_judged, n_clusters``, for a forest chart.

    Examples
    --------
    >>> ratings = pd.DataFrame({"judge": [4, 5, 3, 5], "human": [3, 5, 2, 4]})
    >>> corrected_ways(corrected_mean(ratings))["way"].tolist()
    ['judge', 'human', 'corrected']
    """
    heads, frames = list(means)[: list(means).index("value")], []
    for way, prefix in WAYS.items():
        names = {f"{prefix}{name}": name for name in ("value", "low", "high")}
        columns = [*heads, "way", *names, "weight", "n", "n_judged", "n_clusters"]
        frames.append(means.assign(way=way)[columns].rename(columns=names))
    return pd.concat(frames).sort_index(kind="stable", ignore_index=True)


def _refuse_twice(table: pd.DataFrame, item: str) -> None:
    """Refuse an item that appears twice."""
    keys, further = table.filter(regex="^:").rename(columns=lambda name: name[1:]), table["further"]
    again, both = keys.assign(further=further).duplicated(), keys.astype(str).duplicated() & further
    for first in keys[again & (item in keys)][:1].to_dict("records"):
        raise RagnbError(
            f"{first} appears twice; give one row per item, or a column 'rater' that distinguishes them"
        )
    for first in keys[both & (item in keys)][:1].to_dict("records"):
        raise RagnbError(
            f"{int(both.sum())} rows of judged are in ratings too, the first {first}: they would count "
            "twice; keep only unlabelled rows in judged"
        )


def _ends(part: pd.DataFrame) -> Scale:
    """Return the lowest and highest observed score; identical scores have no range."""
    low, high = (float(end) for end in np.nanquantile(part[["judge", "human"]].to_numpy(), [0, 1]))
    return (low, high) if low < high else (-np.inf, np.inf)


def corrected_row(part: pd.DataFrame, ends: Scale, asked: Asked) -> dict[str, Any]:
    """Return one row of the result: the three means with their intervals, the bias, and a note."""
    cells, seen, labelled = cells_of(part), part["judge"].notna(), part["human"].notna()
    off, alone = bias(cells, asked), design(part)["clusters"] is None
    n_judged, unjudged = (
        int(part.loc[rows, "count"].sum()) for rows in (seen & ~labelled, labelled & ~seen)
    )
    out: dict[str, Any] = {"n": off.n, "n_judged": n_judged, "n_clusters": off.n_clusters}
    if off.n < 2:
        return out | {"note": load(asked.lang)("corrected.no_labels", n=off.n)}
    judge, human = (mean(cells[name], cells, asked, ends=ends) for name in ("judge", "human"))
    found = stats.Corrected(*astuple(human))
    if n_judged:  # all rows together are the population that the labels were sampled from
        how: dict[str, Any] = {"ends": ends, "level": asked.level}
        rows = part.loc[part.index.repeat(part["count"].astype(int))].dropna(subset="judge")
        judge = stats.clustered_mean(rows["judge"], None if alone else rows["cluster"], **how)
        mine, more = (rows[rows["human"].notna() == known] for known in (True, False))
        of = (None, None) if alone else (mine["cluster"], more["cluster"])
        scores, weights = (mine["judge"], more["judge"]), mine["weight"]
        shares = weights / weights.max()  # equal ones are exactly 1
        found = stats.ppi_jackknife(mine["human"], *scores, *of, weights=shares, **how)
        if np.ptp(weights) == 0:
            out |= zip(DRAW, stats.draw_test(*scores, *of), strict=True)
        else:
            out |= {"represented": float(weights.sum()), "population": len(rows)}
    out |= with_ends(found) | {
        "se": found.se,
        "weight": found.weight,
        **with_ends(off, "bias", "bias_"),
    }
    out |= with_ends(judge, "judge_value", "judge_") | with_ends(human, "human_value", "human_")
    return out | {
        "n_clusters": found.n_clusters,
        "note": _note(out, off.n_clusters, unjudged, asked.lang),
    }


def not_random(p: float) -> bool:
    """Whether labels do not look like a random sample, at the 1 % level over all rows of a table."""
    return bool(p <= DRAW_LEVEL)


def doubtful_draws(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Adjust the tests of the draw by Holm over the rows; return those whose labels do not look random."""
    for row, p in zip(rows, stats.holm([row.get("draw_p", np.nan) for row in rows]), strict=True):
        row["draw_p"] = float(p)
    return [row for row in rows if not_random(row["draw_p"])]


def draw_text(row: Mapping[Any, Any], lang: str) -> str:
    """Return a sentence on labels that do not look like a random sample, with the judge's means on both parts."""
    return told(lang, "corrected.not_random", row, distance=abs(row["draw_z"]))


def _note(row: Mapping[str, Any], labelled: int, unjudged: int, lang: str) -> str:
    """Return the notes on a corrected mean, the judge's bias first."""
    low, high = row["bias_low"], row["bias_high"]
    side = "above" if low > 0 else "below" if high < 0 else "open" if low <= 0 else "unknown"
    holding = {
        f"judge_{side}": True,
        "no_judged": not row["n_judged"],
        "no_weight": row["n_judged"] and row["weight"] == 0,
        "one_cluster": labelled == 1,
        "few_clusters": 1 < labelled < ROUGH,
        "rare_missing": row.get("represented", np.inf)
        < LEAST_REPRESENTED * row.get("population", 0),
        "unjudged": unjudged,
    }
    facts = {**row, "labelled": labelled, "unjudged": unjudged}
    return BETWEEN[lang].join(
        told(lang, f"corrected.{key}", facts) for key in holding if holding[key]
    )


WORST_LAST = TRUST, NOT_PROVEN, REJECT = ("TRUST", "NOT PROVEN", "REJECT")
SIDES = RECALIBRATE, RANKING_ONLY, INFLATED = ("RECALIBRATE", "RANKING ONLY", "INFLATED")
TONES = {TRUST: "good", NOT_PROVEN: "watch", REJECT: "bad"}
ABOUT = ("judge_id", "prompt_sha256", "rater_protocol", "drawn_at_random")
# Where Σ 1/p of the labels is a smaller part of the population, rows with small chances are missing.
LEAST_REPRESENTED = 0.8
ROUGH = 20  # fewer clusters make intervals that are themselves rough
Measures = Mapping[str, Estimate]
LAYOUT: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("card.toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True, repr=False)
class CalibrationCard:
    """The verdict on one or several judges, with every number behind it; created by `calibrate`.

    A *row* is one judge on one dimension. Every frame begins with ``judge, dimension``, so several judges and
    dimensions live in one frame; `only` cuts the card to some of them. Each row has its own verdict in
    ``verdicts``; the card's is the worst of them: TRUST only where every row is TRUST (each tested at its level,
    so that their conjunction keeps it), REJECT where one row is. Estimates are ``value`` or named, with
    ``low, high``, ``n`` and ``n_clusters``; missing is nan. Bias is judge − human, in points of the scale.

    Attributes
    ----------
    verdict : {"TRUST", "NOT PROVEN", "REJECT"}
        The worst of the rows.
    sides : tuple of str
        Side verdicts of any row, of ``RECALIBRATE``, ``RANKING ONLY``, ``INFLATED``, in this order.
    reasons : tuple of str
        Sentences in `lang`; the first two say all that a hurried reader needs.
    verdicts : DataFrame
        ``judge, dimension, verdict, sides`` (tuple), ``reasons`` (tuple of sentences), ``share, lower, upper``
        (the raw share within the tolerance and its one-sided bounds; ``low, high`` are two-sided), ``target,
        constant, constant_score`` (share and answer of the best constant judge), ``beats_constant, bias, bias_low,
        bias_high, bias_lower, bias_upper`` (the latter two for the verdict), ``delta, unbiased`` (they, and the
        upper one of every inflated system, are inside ±delta), ``n, labels_planned, widened`` (how many times as
        wide as for one look the share's margin is for the verdict; missing where the plan is spent, as ``lower,
        upper`` are), ``n_clusters, judge_labelled, judge_rest, draw_z, draw_p``: the judge's means on labelled
        rows and on the rest, and the test of a random draw (`stats.draw_test`, Holm over the rows).
    table : DataFrame
        What `agreement` gives: ``judge, dimension, measure, value, low, high, n, n_clusters``.
    bands : DataFrame
        By the judge's score: ``judge, dimension, band`` (label), ``start, end`` (both inside the band),
        ``share, low, high`` (within the tolerance), ``bias, bias_low, bias_high, n, n_clusters, p`` (Holm),
        ``verdict`` (``TRUST``, ``REJECT``, ``NOT PROVEN``, or ``too few`` under 5 clusters).
    inflation : DataFrame
        ``judge, dimension, kind`` (``overall``, ``system``, ``length``, ``answerability``, any group asked for),
        ``group, value`` (bias), ``low, high, upper`` (the one for the verdict), ``beside, beside_low,
        beside_high`` (bias less that of all other groups), ``p`` (of a bias of 0, Holm over the groups of its
        kind), ``n, n_clusters, inflated`` (the bias is shown to be above 0; beside TRUST no system's is, as each
        such bias is shown to be acceptable).
    recalibration : DataFrame
        ``judge, dimension, map`` (``raw``, ``constant``, ``linear``, ``isotonic``), ``mae, mae_low, mae_high,
        share, low, high`` (out of fold), ``gain, gain_low, gain_high`` (fall of MAE against raw), ``helps``
        (MAE below raw and constant), ``passes`` (would be TRUST).
    labels_needed : DataFrame
        ``judge, dimension, total, more, independent`` (Int64, missing where no number suffices), ``deff, rho,
        seen, planned, reason`` (``counted``, ``beyond_plan``, ``share_at_or_below_target``,
        ``too_close_to_tell``), ``text``.
    budget : DataFrame
        The label-budget curve: ``judge, dimension`` and the columns of `label_budget`.
    counts : DataFrame
        ``judge, dimension, judge_score, human_score, n``: cells for the heat map and Bland–Altman's points.
        Past 5,000 cells both scores are rounded to a hundredth of the scale.
    reliability : DataFrame
        ``judge, dimension, judge_score, human`` (mean of the humans at it), ``low, high, isotonic, n,
        n_clusters``; at most 20 points a row, equal parts of the ratings where the judge gave more scores.
    corrected : DataFrame
        ``judge, dimension, system`` ("" for all), ``way`` (``judge``, ``human``, ``corrected``), ``value, low,
        high, weight, n, n_judged, n_clusters``.
    notes : DataFrame
        ``code, about, text``: what a reader must know before believing the numbers.
    footer : dict
        ``judge_id, prompt_sha256, rater_protocol, drawn_at_random, data_sha256, seed, n, n_clusters, raters,
        n_missing``; None where the caller did not say.
    tolerance, target, delta, level : float
        As they were asked for; `delta`, the acceptable bias, is 1/18 of the scale by default.
    scale : (float, float)
        The lowest and highest label.
    lang : {"en", "zh"}

    Examples
    --------
    >>> card = calibrate(pd.DataFrame({"judge": [5, 1, 5, 2] * 40, "human": [5, 1, 4, 2] * 40}), scale=(1, 5))
    >>> card
    CalibrationCard('NOT PROVEN', sides=('INFLATED',), 1 rows)
    """

    verdict: str
    sides: tuple[str, ...]
    reasons: tuple[str, ...]
    verdicts: pd.DataFrame
    table: pd.DataFrame
    bands: pd.DataFrame
    inflation: pd.DataFrame
    recalibration: pd.DataFrame
    labels_needed: pd.DataFrame
    budget: pd.DataFrame
    counts: pd.DataFrame
    reliability: pd.DataFrame
    corrected: pd.DataFrame
    notes: pd.DataFrame
    footer: dict[str, Any]
    tolerance: float
    target: float
    delta: float
    level: float
    scale: tuple[float, float]
    lang: str = "en"

    def __repr__(self) -> str:
        return f"CalibrationCard({self.verdict!r}, sides={self.sides!r}, {len(self.verdicts)} rows)"

    def only(self, *, judge: str | None = None, dimension: str | None = None) -> CalibrationCard:
        """Return the card of one judge, one dimension, or one judge on one dimension.

        Raises
        ------
        RagnbError
            For a judge or a dimension that is not on the card.

        Examples
        --------
        >>> rows = pd.DataFrame({"judge": [4, 2] * 30, "human": [4, 2] * 30, "dimension": ["x", "x", "y"] * 20})
        >>> calibrate(rows, scale=(1, 5)).only(dimension="x").verdicts["dimension"].tolist()
        ['x']
        """
        frames = {key: part for key, part in vars(self).items() if isinstance(part, pd.DataFrame)}
        del frames["notes"]
        for name, value in {"judge": judge, "dimension": dimension}.items():
            if value is not None:
                need_known(name, value, sorted(set(self.verdicts[name])))
                frames = {
                    key: part[part[name] == value].reset_index(drop=True)
                    for key, part in frames.items()
                }
        found: dict[str, Any] = summary(frames["verdicts"], self.tolerance, self.lang) | frames
        return replace(self, **found)

    def sections(self) -> list[Section]:
        """Return the verdict with its reasons, then each table that has rows, the notes and what made the card."""
        (first, *rest), title = self.reasons, entry(self.lang, "section.judge")
        marks = (
            Mark(TONES[self.verdict], self.verdict),
            *(Mark("watch", side) for side in self.sides),
        )
        blocks = Text((marks,)), Text(tuple(rest), "list")
        return [Section("verdict", title, first, blocks=blocks, lang=self.lang), *parts(self)]

    def _repr_html_(self) -> str:
        return render_fragment(self.sections())

    def to_markdown(self) -> str:
        """Return the card as Markdown, without times and machine paths: equal input gives equal text."""
        return render_markdown(self.sections())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: frames as lists of records, None for a missing value."""
        found = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in vars(self).items()
        }
        for name, value in found.items():
            if isinstance(value, pd.DataFrame):
                found[name] = json.loads(value.to_json(orient="records", double_precision=12))
        return found


def parts(card: CalibrationCard) -> Iterator[Section]:
    """Yield the tables of a card that have rows in reading order, then its notes and its footer."""
    say, words = load(card.lang), entry(card.lang, "calibration.word")
    frames = {
        "verdicts": card.verdicts.assign(sides=card.verdicts["sides"].map(", ".join)),
        "bands": card.bands.replace({"verdict": {"too few": words["too_few"]}}),
        "inflation": card.inflation.replace({"kind": {"overall": words["overall"]}}),
        "recalibration": card.recalibration.replace({"map": words}),
        "corrected": card.corrected.replace({"system": {"": words["overall"]}, "way": words}),
        "table": _measures(card),
    }
    heads = {"judge": card.verdicts, "dimension": card.verdicts, "system": card.corrected}
    alone = {name for name, frame in heads.items() if frame[name].nunique() < 2}
    alone |= (
        {"labels_planned", "widened"} if card.verdicts["labels_planned"].isna().all() else set()
    )
    blocks: dict[str, Table | Text] = {}
    for key, columns in LAYOUT["tables"].items():
        rows, written = frames[key].to_dict("records"), {}
        for name in (name for name in ("judge", "dimension", *columns) if name not in alone):
            look = LAYOUT["columns"].get(name, {}) | columns.get(name, {})
            form, label = (
                look.get("form", f"{{{name}}}"),
                say(f"calibration.column.{look.get('label', name)}"),
            )
            level = f" [{card.level:.0%}]" if "[" in form or "interval" in look else ""
            cells = ["" if pd.isna(row[name]) else filled(form, row) for row in rows]
            written[">" * ("form" in look) + label + level] = cells
        blocks[key] = Table(tuple(written), tuple(zip(*written.values(), strict=True)))
    blocks |= {
        "notes": Text(tuple(card.notes["text"]), "list"),
        "footer": Text(tuple(_footer(card)), "list"),
    }
    for key, block in blocks.items():
        title = say(f"calibration.title.{key}")
        if block.rows if isinstance(block, Table) else block.lines:
            yield Section(key, title, title, blocks=(block,))


def _measures(card: CalibrationCard) -> pd.DataFrame:
    """Return the agreement table with its measures named and their values written out."""
    rows = card.table[card.table["value"].notna()].to_dict("records")
    for row in rows:
        forms = LAYOUT["forms"][LAYOUT["measures"][row["measure"]]]
        row["value"] = filled(forms[int(np.isfinite(row["low"]))], row)
        row["measure"] = entry(card.lang, "calibration.measure")[row["measure"]]
    return pd.DataFrame(rows)


def _footer(card: CalibrationCard) -> Iterator[str]:
    """Yield what made the card, label and value."""
    labels = entry(card.lang, "calibration.footer")
    for name in (name for name in labels if name in card.footer):
        if (value := card.footer[name]) is None or isinstance(value, bool):
            value = (
                labels["unsaid"]
                if value is None
                else load(card.lang)(f"column.{'yes' if value else 'no'}")
            )
        yield f"{labels[name]}: {number(value, 2) if isinstance(value, float) else value}"


def summary(verdicts: pd.DataFrame, tolerance: float, lang: str) -> dict[str, Any]:
    """Return the summary of all rows of a card: the worst verdict, the side verdicts and the sentences."""
    rows, words = verdicts.to_dict("records"), verdicts["verdict"]
    verdict, reasons = max(words, key=WORST_LAST.index), tuple(rows[0]["reasons"])
    if len(rows) > 1:
        say, named = load(lang), partial(name_of, lang=lang, alone=verdicts["judge"].nunique() == 1)
        counts = {_slug(word): (words == word).sum() for word in WORST_LAST}
        best = max(rows, key=lambda row: (-WORST_LAST.index(row["verdict"]), row["share"]))
        drawn = [named(row) for row in rows if not_random(row["draw_p"])]
        spent, planned = (
            [named(row) for row in rows if np.isnan(row["widened"])],
            rows[0]["labels_planned"],
        )
        looks = "look_once" if pd.isna(planned) else "look_spent_rows" if spent else "look_rows"
        reasons = (
            say(f"calibration.many_{_slug(verdict)}", n=len(rows), **counts),
            f"{say('calibration.best', what=named(best))} {share_line(best, tolerance, lang)}",
            *(say("calibration.draws", what=listing(drawn)) for _ in drawn[:1]),
            say(f"calibration.{looks}", what=listing(spent), labels_planned=planned),
        )
    sides = tuple(side for side in SIDES if any(side in row["sides"] for row in rows))
    return {"verdict": verdict, "sides": sides, "reasons": reasons}


def name_of(row: Mapping[Any, Any], lang: str, *, alone: bool) -> str:
    """Return how sentences call the judge: by name if there are several."""
    key = "both" if not alone else "one" if row["dimension"] == ALL else "dimension"
    return load(lang)(f"calibration.what_{key}", judge=row["judge"], dimension=row["dimension"])


def share_line(row: Mapping[Any, Any], tolerance: float, lang: str) -> str:
    """Return one sentence on the agreement, its target and the best constant score."""
    key = "share" if np.isfinite(row["low"]) else "no_interval"
    return told(lang, f"calibration.{key}{_if_exact(tolerance)}", row, tolerance=tolerance)


def _if_exact(tolerance: float) -> str:
    """Return the ending of texts for a tolerance of 0, as of labels that are yes or no."""
    return "" if tolerance else "_exact"


class Written(float):
    """A number in a text, which says how it is written: ``{n:2}`` (decimals), ``percent``, ``bare``, ``signed``.

    Examples
    --------
    >>> "{:percent}, {:bare}, {:signed}, {:signed}".format(*map(Written, (0.886, 0.8, 0.594, -0.405)))
    '88.6 %, 80.0, +0.59, −0.41'
    """

    def __format__(self, form: str) -> str:
        value = float(self)
        if form in ("percent", "bare"):
            return percent(value).removesuffix(" %" * (form == "bare"))
        if form == "signed":
            written = number(value, 2)
            return f"+{written}" if value > 0 and float(written) else written.replace("-", "−")
        return number(value, int(form)) if form.isdigit() else format(value, form)


def filled(text: str, facts: Mapping[Any, Any]) -> str:
    """Return a text filled with the facts of a row."""
    numbers = {
        name: Written(fact) for name, fact in facts.items() if isinstance(fact, float | np.floating)
    }
    return text.format(**{**facts, **numbers})


def told(lang: str, key: str, facts: Mapping[Any, Any], **more: Any) -> str:
    """Return a text of a language filled with the facts of a row."""
    return filled(entry(lang, key), {**facts, **more})


def calibrate(
    ratings: Any,
    *,
    judge: Names = "judge",
    human: Names = "human",
    by: str | None = "dimension",
    tolerance: float | None = None,
    target: float = 0.8,
    delta: float | None = None,
    scale: tuple[float, float] | None = None,
    cluster: str | None = "cluster",
    level: float = 0.95,
    missing: Missing = None,
    rater: str = "rater",
    judged: Any = None,
    groups: Sequence[str] | None = None,
    labels_planned: int | None = None,
    about: Mapping[str, Any] | None = None,
    seed: int = 0,
    lang: str = "en",
) -> CalibrationCard:
    """Decide whether a judge's scores can replace human ratings: TRUST, REJECT or NOT PROVEN.

    Parameters
    ----------
    ratings, judge, human, tolerance, scale, cluster, level, missing, rater
        As in `agreement`; estimates are weighted by a column ``inclusion_probability`` where it is there.
    by : str or None
        The column whose values get a verdict each.
    target : float
        The agreement within ±tolerance that must be shown, in (0, 1).
    delta : float, optional
        The acceptable bias, in points of the scale; None takes 1/18 of the scale: 0.5 on 1–10, 0.056 on 0–1.
    judged : DataFrame, optional
        Further rows with the judge's score alone, for the corrected mean. Rows of `ratings` without a human
        score count as such too. The judge's scores on them and on the labelled rows show whether the labels look
        like a random sample; selection by the *human* score cannot be detected, as the rest is unlabelled.
    groups : sequence of str, optional
        Columns to group bias by; None takes ``system``, answerability and lengths, as available.
        Columns of more than six numbers are cut into thirds.
    labels_planned : int, optional
        The maximum number of labels (items with a human score, per dimension), set before the first look.
        The verdict may then be checked repeatedly as labels come in: its margins are wider by the fourth root of
        planned ÷ labelled, and within 15 looks TRUST is false in at most 5.5 % of cases. ``low, high`` stay those
        of one look; ``lower, upper, bias_lower, bias_upper``, which decide, are the wider ones. Beyond the plan
        they are missing and the verdict is NOT PROVEN until a new plan with new labels. None: one look.
    about : mapping, optional
        For the footer: ``judge_id, prompt_sha256, rater_protocol, drawn_at_random``. The last is False on the card
        if the judge's scores contradict it, and True if probabilities are recorded and it is not given.
    seed : int
        Of the groups that ratings without clusters are put into, for maps that are judged out of fold.
    lang : {"en", "zh"}
        The language of the sentences.

    Returns
    -------
    CalibrationCard

    Raises
    ------
    RagnbError
        As `agreement`; for a target outside (0, 1), for `labels_planned` that is no whole number of 1 or more, and
        for ratings with no row that both rated.

    Notes
    -----
    The fourth-root rule is that of `stats.mean_interval`. A plan raised after looking is not valid: TRUST is then
    false in 7 % (1.5 times the plan) to 8.6 % (twice) of cases. More than 20 looks: slightly over 5 %.

    Examples
    --------
    >>> frame = pd.DataFrame({"judge": [4, 5, 2, 1] * 50, "human": [5, 4, 2, 1] * 50})
    >>> card = calibrate(frame, scale=(1, 5))
    >>> card.verdict, card.verdicts["share"].tolist()
    ('TRUST', [1.0])
    """
    limits = ("target", target, 0.0, 1.0), ("level", level, 0.5, 1.0), ("delta", delta, 0.0, np.inf)
    for name, value, low, high in limits:
        if value is not None and high == 1 and 1 < value <= 100:
            raise RagnbError(f"{name}={value} is not between {low:g} and 1; write {value / 100:g}")
        if value is not None and not low < value < high:
            raise RagnbError(f"{name}={value} is not between {low:g} and {high:g}")
    for name in about or {}:
        need_known("about", name, ABOUT)
    if labels_planned is not None:
        need_whole("labels_planned", labels_planned)
    load(lang)
    judged = brought_ratings(judged, judge, human)[0]
    ratings, judge, human = brought_ratings(ratings, judge, human)
    columns = columns_of(ratings)
    need_columns(columns, groups or ())
    groups = tuple(filter(_USUAL_GROUPS.fullmatch, columns) if groups is None else groups)
    asked = Asked(
        human,
        by,
        scale,
        cluster,
        missing,
        rater,
        groups=groups,
        tolerance=1.0 if tolerance is None else tolerance,
        usual=tolerance is None,
        level=level,
        target=target,
        delta=delta,
        labels_planned=labels_planned,
        seed=seed,
        lang=lang,
    )
    found = opened_blocks(ratings, judge, asked, judged)
    used = found[0][2].tolerance
    rows, tables, cells = zip(*(_piece(*one) for one in found), strict=True)
    doubtful = doubtful_draws(rows)
    for row in doubtful:
        row["reasons"] = (*row["reasons"][:2], draw_text(row, lang), *row["reasons"][2:])
    frames: dict[str, Any] = {
        key: pd.concat([table[key] for table in tables], ignore_index=True) for key in tables[0]
    }
    lows, highs = zip(*(own.scale for *_, own in found), strict=True)
    frames["table"].attrs["scale"] = ends = min(lows), max(highs)
    verdicts = pd.DataFrame(rows).astype({"labels_planned": "Int64"})
    footer: dict[str, Any] = {name: (about or {}).get(name) for name in ABOUT}
    if doubtful or (PROBABILITY in columns and footer["drawn_at_random"] is None):
        footer["drawn_at_random"] = not doubtful
    named = {
        f"{row['judge']}\n{row['dimension']}": part for row, part in zip(rows, cells, strict=True)
    }
    values = frames["table"].groupby("measure")["value"]
    footer |= {
        "data_sha256": fingerprint(named),
        "seed": seed,
        "labels_planned": labels_planned,
        "n": int(verdicts["n"].sum()),
        "n_clusters": int(verdicts["n_clusters"].max()),
        "raters": values.mean().get("raters"),
        "n_missing": int(values.sum()["n_missing"]),
    }
    source = (
        getattr(ratings, "attrs", {}).get("source") or {}
    )  # of a frame that a reader made of a file
    notes = _notes(
        verdicts, cells, footer, source, ends if scale is None else None, cluster in columns, lang
    )
    return CalibrationCard(
        **summary(verdicts, used, lang),
        verdicts=verdicts,
        **frames,
        notes=notes,
        footer=footer,
        scale=ends,
        delta=(ends[1] - ends[0]) / 18 if delta is None else delta,
        tolerance=used,
        target=target,
        level=level,
        lang=lang,
    )


def _piece(
    labels: dict[str, Any], rows: pd.DataFrame, asked: Asked
) -> tuple[dict[str, Any], dict[str, pd.DataFrame], pd.DataFrame]:
    """Measure and decide one judge on one dimension: its row of the verdicts and its part of every frame."""
    head = dict(zip(("judge", "dimension"), (*labels.values(), ALL), strict=False))
    rated, planned = rows[~rows["further"]], asked.labels_planned
    if (cells := cells_of(rated)).empty:
        raise RagnbError(
            f"{head}: no row has both a judge score and a human score; label some of its items"
        )
    asked = replace(
        asked, fraction=round(float(cells["count"].sum())) / planned if planned else None
    )
    measures, groups = measured(rated, cells, asked), inflation(rated, cells, asked)
    frames = {"inflation": groups} | {make.__name__: make(cells, asked) for make in FRAMES}
    row = head | verdict_row(cells, measures, groups, asked)
    if row["verdict"] == TRUST:  # then each of these biases is shown to be acceptable
        groups.loc[groups["kind"].isin(["overall", "system"]), "inflated"] = False
    parts = {"": rows}  # all, and each system
    if ":system" in rows and rated[":system"].nunique() > 1:
        parts |= {str(name): part for name, part in rows.groupby(":system", observed=True) if name}
    found = [
        {"system": name, **corrected_row(part, asked.scale, asked)} for name, part in parts.items()
    ]
    means = pd.DataFrame(
        [mean for mean in found if mean["n"]], columns=["system", *LAYOUT["frames"]["means"]]
    )
    frames["corrected"], ranks, how = corrected_ways(means), NONE, design(cells, of_sums=True)
    if how["clusters"] is not None:
        ranks = stats.kendall_within(
            cells["judge"], cells["human"], **how, digits=10, level=asked.level
        )
    row |= {name: found[0].get(name, np.nan) for name in DRAW}
    row |= {"sides": _sides(row["verdict"], ranks, frames["recalibration"], groups)}
    needs = stats.labels_needed(flags(cells, asked), **design(cells), **asked.goal)
    text, whole = (
        _labels_line(needs, row, asked.lang),
        dict.fromkeys(("total", "more", "independent", "likely"), "Int64"),
    )
    frames["labels_needed"] = pd.DataFrame([asdict(needs) | {"text": text}]).astype(whole)
    row["reasons"] = _reasons(row, measures, ranks, frames, text, asked)
    frames = {name: frame.assign(**head)[[*head, *frame]] for name, frame in frames.items()}
    return row, frames | {"table": measure_rows(head, measures)}, cells


def verdict_row(
    cells: pd.DataFrame, measures: Measures, groups: pd.DataFrame, asked: Asked
) -> dict[str, Any]:
    """Return the verdict and the interval that it is based on.

    TRUST needs three things at once, each at `level`: the share's one-sided lower bound reaches the target, the
    judge agrees more often than the best constant (one-sided, pair by pair), and the interval of the bias lies
    inside ±delta; so must that of every system which the judge inflates. REJECT: the share's one-sided upper
    bound misses the target. Where labels are planned, each bound holds at every look together.
    """
    score = measures["constant_score"].value
    once = 2 * asked.level - 1  # the two-sided interval whose ends are one-sided bounds at `level`
    plan: dict[str, Any] = {"level": once, "fraction": asked.fraction}
    agrees, off = share(cells, asked, **plan), bias(cells, asked, fraction=asked.fraction)
    beats = over_constant(cells, score, asked, **plan).low > 0
    favoured = groups.loc[groups["inflated"] & (groups["kind"] == "system"), "upper"].max()
    unbiased = asked.accepts(off) and not favoured > asked.delta
    widened = (
        1.0 if asked.fraction is None else stats.widening(asked.fraction, agrees.df, level=once)
    )
    trusted = agrees.low >= asked.target and beats and unbiased
    return {
        "verdict": TRUST if trusted else REJECT if agrees.high < asked.target else NOT_PROVEN,
        **with_ends(measures["within"], "share"),
        "lower": agrees.low,
        "upper": agrees.high,
        "target": asked.target,
        "constant": measures["constant"].value,
        "constant_score": score,
        "beats_constant": bool(beats),
        **with_ends(measures["bias"], "bias", "bias_"),
        "bias_lower": off.low,
        "bias_upper": off.high,
        "delta": asked.delta,
        "unbiased": bool(unbiased),
        "n": agrees.n,
        "labels_planned": asked.labels_planned,
        "widened": np.nan if (asked.fraction or 0) > 1 else widened,
        "n_clusters": agrees.n_clusters,
    }


def _sides(
    verdict: str, ranks: Estimate, maps: pd.DataFrame, groups: pd.DataFrame
) -> tuple[str, ...]:
    """Return the side verdicts, in the order of `SIDES`; TRUST has none."""
    holds = {
        RECALIBRATE: verdict != TRUST and maps["passes"].any(),
        RANKING_ONLY: verdict != TRUST and ranks.low > 0,
        INFLATED: groups.loc[groups["kind"].isin(["overall", "system"]), "inflated"].any(),
    }
    return tuple(side for side, held in holds.items() if held)


def _hopeless(row: Mapping[str, Any]) -> str | None:
    """Return why more labels alone will not lead to TRUST, other than an agreement at or below the target."""
    if row["bias_lower"] > row["delta"] or row["bias_upper"] < -row["delta"]:
        return "bias"
    return "constant" if np.isfinite(row["share"]) and row["share"] <= row["constant"] else None


def _labels_line(needs: LabelsNeeded, row: Mapping[str, Any], lang: str) -> str:
    """Return how many more labels are needed, or why more of them will not help."""
    hopeless = _hopeless(row)
    if row["verdict"] == TRUST:
        key = "calibration.labels_done"
    elif hopeless and needs.reason != "share_at_or_below_target":
        key = f"calibration.labels_{hopeless}"
    elif needs.reason != "counted":
        key = f"labels.{needs.reason}"
    elif needs.likely is None:
        key = "labels.counted_never_likely"
    elif needs.likely <= row["n"]:
        key = "labels.enough"
    else:
        key = "labels.counted"
    return told(lang, key, row, **asdict(needs))


def _reasons(
    row: Mapping[str, Any],
    measures: Measures,
    ranks: Estimate,
    frames: Mapping[str, pd.DataFrame],
    needs: str,
    asked: Asked,
) -> tuple[str, ...]:
    """Return the sentences of one judge and dimension, the two that decide first."""
    say, (low, high), delta, gain = (
        partial(told, asked.lang),
        asked.scale,
        row["delta"],
        measures["over_constant"],
    )
    beats = "beats" if row["beats_constant"] else "beats_open" if gain.value > 0 else "beats_not"
    where = "system" if row["bias_lower"] >= -delta and row["bias_upper"] <= delta else "open"
    where = "inside" if row["unbiased"] else "outside" if _hopeless(row) == "bias" else where
    looks = "once" if asked.fraction is None else "spent" if asked.fraction > 1 else "planned"
    headline = "spent" if looks == "spent" else _slug(row["verdict"])
    facts = {
        **row,
        **with_ends(gain, "gain", "gain_"),
        **with_ends(ranks, "rank", "rank_"),
        "what": name_of(row, asked.lang, alone=True),
        "least": row["widened"] * (asked.fraction or 1) ** 0.25,
        "tolerance": asked.tolerance,
        "part": asked.tolerance / (high - low),
        "scale_low": low,
        "scale_high": high,
        "floor": measures["floor"].value,
        "ceiling": measures.get("ceiling", NONE).value,
        "n_ceiling": measures.get("ceiling", NONE).n,
        "n_rated": measures.get("alpha", NONE).n,
    }
    told_first = (
        say(f"calibration.headline_{headline}", facts),
        share_line(row, asked.tolerance, asked.lang),
    )
    out = [
        *told_first,
        *(say(f"calibration.{key}", facts) for key in (f"look_{looks}", beats, f"bias_{where}")),
    ]
    for best in frames["recalibration"].query("passes").sort_values("mae").to_dict("records")[:1]:
        name = entry(asked.lang, "calibration.word")[best["map"]]
        out += [say("calibration.recalibrate", best, map=name)] * (RECALIBRATE in row["sides"])
    out += [say("calibration.ranking", facts)] * (RANKING_ONLY in row["sides"])
    for part in (
        frames["inflation"].query("inflated and kind in ['overall', 'system']").to_dict("records")
    ):
        out += [say("calibration.inflated" + "_system" * (part["kind"] == "system"), part)]
    for word in (TRUST, REJECT):
        named = ", ".join(frames["bands"].loc[frames["bands"]["verdict"] == word, "band"])
        out += [say(f"calibration.bands_{_slug(word)}", {"bands": named})] if named else []
    out += [needs, say(f"calibration.width{_if_exact(asked.tolerance)}", facts)]
    return (
        (*out, say("calibration.ceiling", facts)) if np.isfinite(facts["ceiling"]) else tuple(out)
    )


def _slug(word: str) -> str:
    return word.lower().replace(" ", "_")


def _notes(
    verdicts: pd.DataFrame,
    cells: Sequence[pd.DataFrame],
    footer: Mapping[str, Any],
    source: Mapping[str, Any],
    guessed: Scale | None,
    clustered: bool,
    lang: str,
) -> pd.DataFrame:
    """Return the caveats of the numbers."""
    doubtful = verdicts[verdicts["draw_p"].map(not_random)].to_dict("records")
    fewest, drawn, (low, high) = (
        verdicts["n_clusters"].min(),
        footer["drawn_at_random"],
        guessed or (0.0, 0.0),
    )
    facts = {**footer, **source, "fewest": fewest, "low": low, "high": high}
    holding = {
        "damaged": source.get("damaged"),
        "rows_are_clusters": not clustered,
        "few_clusters": clustered and fewest < ROUGH,
        "guessed_scale": guessed,
        "missing": footer["n_missing"],
        "one_rater": footer["raters"] is None,
        "weighted": any(np.ptp(part["weight"]) > 0 for part in cells),
        "not_random": drawn is False and not doubtful,
        "unknown_draw": drawn is None,
    }
    rows = [
        note_row(code, "", told(lang, f"calibration.note.{code}", facts))
        for code in holding
        if holding[code]
    ]
    for row in doubtful:
        name = name_of(row, lang, alone=verdicts["judge"].nunique() == 1)
        text = load(lang)("calibration.about", what=name, text=draw_text(row, lang))
        rows.append(note_row("not_random", name, text))
    return note_frame(rows)
