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
from ragnb.errors import RagnbError, did_you_mean, listing, need_columns, need_known, need_whole, not_a_frame
from ragnb.markup import count, number, percent, with_interval
from ragnb.markup.blocks import Block, Mark, Section, Table, Text
from ragnb.markup.rendering import render_fragment, render_markdown
from ragnb.schema import note_frame, note_row
from ragnb.stats import NONE, SLACK, Array, Estimate, LabelsNeeded, complete_rows, ratio
from ragnb.texts import entry, load
from ragnb.weights import collected, column_names
from ragnb.weights.columns import Codes, as_pandas, coded, opened, swift

Names = str | Sequence[str]
Missing = float | str | Sequence[float | str] | None
Scale = tuple[float, float]
OUTSIDE = "outside"
PROBABILITY = "inclusion_probability"
ALL = "all"
_COUNT = "__rows"
MOST_CLUSTERS = 1000
FEW_NUMBERS = 6  # a column of more numbers is an amount, such as a length, and no group
_USUAL_GROUPS = re.compile(r"system|answerab\w*|length|\w+_(?:words|length|tokens|chars)")


@dataclass(frozen=True)
class Asked:
    """The arguments of a public function; no `human` means judge scores only.

    `whole` keeps every row with its item and its labels as they are; else labels become sorted text, and engines
    other than pandas count equal rows. Opened ratings hold their scale here, one judge's labels on one dimension
    also their `fraction` of those planned.
    """

    human: Names = "human"
    by: Names | None = "dimension"
    scale: Scale | None = None
    cluster: str | None = "cluster"
    missing: Missing = None
    rater: str = "rater"
    item: str = "item_id"
    system: str = "system"
    groups: tuple[str, ...] = ()
    whole: bool = False
    tolerance: float = 0.0
    level: float = 0.95
    digits: int | None = 10
    target: float = 0.8
    delta: float | None = None
    labels_planned: int | None = None
    fraction: float | None = None
    seed: int = 0
    lang: str = "en"

    @property
    def ends(self) -> Scale:
        """The scale, which opened ratings always have."""
        return self.scale or (-np.inf, np.inf)

    @property
    def acceptable_bias(self) -> float:
        """The acceptable bias: the given one, else 1/18 of the scale."""
        return (self.ends[1] - self.ends[0]) / 18 if self.delta is None else self.delta

    @property
    def goal(self) -> dict[str, Any]:
        """The keyword arguments of `stats.labels_needed`."""
        return {"target": self.target, "alpha": 1 - self.level, "labels_planned": self.labels_planned}

    def accepts(self, bias: Estimate) -> bool:
        """Whether the whole interval of a bias is acceptable."""
        return bias.low >= -self.acceptable_bias and bias.high <= self.acceptable_bias


def as_list(values: Any) -> list[Any]:
    """Return one name or number, or several, as a list; None is none."""
    return [] if values is None else [values] if np.ndim(values) == 0 else list(values)


def blocks(table: pd.DataFrame, asked: Asked) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Yield the labels and the rows of every group of opened ratings that has some, in the labels' order."""
    by = [f":{name}" for name in as_list(asked.by) if f":{name}" in table]
    parts = table.groupby(by, sort=not asked.whole, observed=True, dropna=False) if by else [((), table)]
    for labels, rows in parts:
        if asked.whole or not rows["further"].all():
            yield {name[1:]: label for name, label in zip(by, labels, strict=True)}, rows


def need_pandas(frame: object, reader: str) -> None:
    """Refuse what is no pandas frame, with the function that reads one."""
    if not isinstance(frame, pd.DataFrame):
        raise not_a_frame(frame, reader)


def opened_blocks(
    ratings: Any, judge: Names, asked: Asked, judged: Any = None
) -> list[tuple[dict[str, Any], pd.DataFrame, Asked]]:
    """Return the labels (the judge first) and the rows of each judge's groups, and what was asked of them."""
    opened = [(name, *open_ratings(ratings, name, asked, judged)) for name in as_list(judge)]
    return [({"judge": name, **one}, rows, own) for name, table, own in opened for one, rows in blocks(table, own)]


def open_ratings(frame: Any, judge: str, asked: Asked, judged: Any = None) -> tuple[pd.DataFrame, Asked]:
    """Check a frame of any engine, and one of further rows that this judge alone scored, as one table.

    Returns
    -------
    DataFrame
        ``judge, human`` (nan: no score), ``count`` (how many ratings a row represents), ``weight`` (1 / inclusion
        probability, the largest 1), ``cluster`` (a code, −1: alone), ``further`` (a row of `judged`), ``rater0`` …
        (single humans, where they are known), and the caller's columns as ``:name``.
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
    if not 0 <= asked.tolerance < high - low:
        raise RagnbError(
            f"tolerance={asked.tolerance:g} on a scale of {low:g}..{high:g}: every score lies within it; give "
            f"points of the scale, such as {(high - low) / 10:g}"
        )
    parts = [table.assign(further=False)]
    if judged is not None:
        keys = [str(name)[1:] for name in table if str(name)[0] == ":"] if asked.whole else []
        needs = [*keys, *as_list(asked.cluster if "cluster" in table else None)]
        more, _ = _checked(judged, judge, replace(asked, human=()), needs, "judged: ")
        parts.append(more.assign(further=True))
    by = [] if asked.whole else [f":{name}" for name in as_list(asked.by)]
    parts = [part.assign(**{name: ALL for name in by if name not in part}) for part in parts]
    if "cluster" in (table := pd.concat(parts, ignore_index=True)):
        codes = coded(table["cluster"], compose=True).codes
        lone = codes < 0  # where others have a cluster, a row without one is its own
        table["cluster"] = codes if lone.all() else np.where(lone, codes.max() + np.cumsum(lone), codes)
    else:  # lone ratings of unequal weights are their own clusters
        table["cluster"] = np.arange(len(table)) if len(table) and np.ptp(table["weight"]) > 0 else -1
    if not asked.whole:
        for name, column in table.filter(regex="^:").items():
            number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
            if name in by or not number or column.nunique() <= FEW_NUMBERS:
                table[name] = _labels(column)
        table = _counted(table)
    return table, replace(asked, scale=(low, high))


def _counted(table: pd.DataFrame) -> pd.DataFrame:
    """Return the distinct rows of a table with the number of ratings that each represents."""
    rows = table.groupby(list(table.columns.drop("count")), sort=False, dropna=False, observed=True)["count"]
    return rows.sum().reset_index()[list(table)]


def _labels(column: pd.Series) -> Any:
    """Return labels as text in the order of code points, after "", which means none."""
    label = coded(column)
    names = label.names if label.names[:1] == ("",) else ("", *label.names)
    return pd.Categorical.from_codes(np.maximum(label.codes + len(names) - len(label.names), 0), pd.Index(names))


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
    raters = people if len(people) > 1 else list(itertools.takewhile(columns.__contains__, numbered))
    raters = raters if len(raters) > 1 else []
    human = [] if len(people) > 1 or (raters and people[0] not in columns) else people
    long = asked.rater in columns and bool(people) and not raters
    by, clusters = as_list(asked.by), as_list(asked.cluster)
    usual = [name for name in (*by, *clusters) if name not in ("dimension", "cluster")]
    wanted = [judge, *human, *raters, *usual, *needs]
    for name in (name for name in wanted if name not in columns):
        raise RagnbError(f"{where}column={name!r} does not exist; {did_you_mean(name, columns)}")
    kept = [*([asked.item] * asked.whole), asked.system, *by, *asked.groups]
    more = [*kept, *clusters, *([PROBABILITY] * bool(people)), *([asked.rater, asked.item] * long)]
    used = list(dict.fromkeys([*wanted, *(name for name in more if name in columns)]))
    if isinstance(frame, pd.DataFrame):
        table = frame[used]
    else:  # equal rows are counted where they are
        part = opened(frame).select(*used)
        if not (asked.whole or long or PROBABILITY in used):
            part = swift(part).group_by(*used).agg(nw.len().alias(_COUNT))
        table = as_pandas(collected(part).to_native())
    if long:
        table = side_by_side(table, judge, human[0], asked)
        human, raters = [], [name for name in table.columns if str(name).startswith("__rater")]
    scores = {name: numbers(table, name, where) for name in (judge, *human, *raters)}
    scores = settled(scores, asked.scale, asked.missing, lambda at: f"{where}row {table.index[at]!r}: ")
    rows = table[[name for name in dict.fromkeys(kept) if name in table]].add_prefix(":").reset_index(drop=True)
    if asked.cluster in table:
        rows["cluster"] = table[asked.cluster].to_numpy()
        if (alone := rows["cluster"].isna() & bool(people and not asked.whole)).any():
            row = table.index[int(np.argmax(alone))]
            raise RagnbError(f"column {asked.cluster!r} is empty in row {row!r}; every rating needs a cluster")
    grid = pd.DataFrame({f"rater{k}": scores[name] for k, name in enumerate(raters)}, rows.index)
    rows["judge"] = scores[judge]
    rows["human"] = scores[human[0]] if human else grid.mean(axis=1).to_numpy(dtype=float)
    rows["count"] = table[_COUNT].to_numpy(dtype=float) if _COUNT in table else 1.0
    rows["weight"] = _sampling_weights(table, rows[["judge", "human"]].notna().all(axis=1).to_numpy(), where)
    return rows.join(grid), scores


def side_by_side(table: pd.DataFrame, judge: str, human: str, asked: Asked) -> pd.DataFrame:
    """Return one row per item, its raters in columns ``__rater0`` …"""
    need_columns(table.columns, [asked.item], f"It says which rows of column {asked.rater!r} belong to one item.")
    score, rated = numbers(table, human), table[asked.rater].notna().to_numpy()
    if (nobody := ~rated & ~np.isnan(without_marks(score, asked.missing))).any():
        raise RagnbError(f"column {asked.rater!r} is empty in row {table.index[int(np.argmax(nobody))]!r}")
    same = [c for c in (asked.item, asked.system, *as_list(asked.by), asked.cluster) if c in table.columns]
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
            raise RagnbError(f"item {name} has several scores in column {column!r}; give one score per item")
    grid = given.unstack().reindex(range(int(item.max(initial=-1)) + 1))
    out = table.drop_duplicates(same).drop(columns=human).reset_index(drop=True)
    return out.join(grid.set_axis([f"__rater{k}" for k in range(grid.shape[1])], axis=1))


def _sampling_weights(table: pd.DataFrame, rated: npt.NDArray[np.bool_], where: str) -> Array:
    """Return 1 / inclusion probability of the rated rows, the largest 1; all 1 where none is recorded."""
    if PROBABILITY not in table.columns:
        return np.ones(len(table))
    chance = numbers(table, PROBABILITY, where)
    if (wrong := rated & ~((chance > 0) & (chance <= 1))).any():
        row, value = table.index[int(np.argmax(wrong))], chance[int(np.argmax(wrong))]
        raise RagnbError(
            f"{where}column {PROBABILITY!r}, row {row!r}: {value:g} is not in (0, 1]; give every labelled row the "
            "chance with which it was drawn, or leave the column out"
        )
    return np.where(rated, chance[rated].min(initial=1.0) / np.where(rated, chance, 1.0), 1.0)


def numbers(table: pd.DataFrame, name: str, where: str = "") -> Array:
    """Return a column of scores as floats, nan if missing; text and infinite values raise RagnbError."""
    if not pd.api.types.is_numeric_dtype(column := table[name]):
        for at in (at for at, value in enumerate(column) if isinstance(value, str)):
            raise RagnbError(
                f"{where}column {name!r}, row {column.index[at]!r}: {column.iloc[at]!r} is text, not a score; "
                "read the file with rn.read_ratings, or convert the column to numbers"
            )
    if np.isinf(values := np.array(column.to_numpy(dtype=float, na_value=np.nan), dtype=float)).any():
        raise RagnbError(f"{where}column {name!r} holds an infinite value; a rating is a finite number or missing")
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
        raise RagnbError('missing="outside" needs the scale, its lowest and highest score: scale=(1, 5)')
    if scale is not None and not (low < high and np.isfinite([low, high]).all()):
        raise RagnbError(f"scale={scale} is not a scale; give its lowest and highest label, such as (1, 5)")
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
    low, high = (float(np.floor(seen.min())), float(np.ceil(seen.max()))) if len(seen) else (0.0, 1.0)
    return low, high if high > low else low + 1.0


@dataclass(frozen=True)
class Cells:
    """Distinct rated pairs of one judge on one dimension; `counts` is the number of ratings of each.

    `cluster` is None where every rating stands alone. `group` holds one column more, where asked for. `weights`
    are 1 / inclusion probability, on average 1; where they differ, every rating has a cluster, its own at least.
    """

    judge: Array
    human: Array
    cluster: Codes | None
    counts: Array
    group: Codes
    weights: Array

    @property
    def how(self) -> dict[str, Any]:
        """The keyword arguments of the means in `ragnb.stats`."""
        return {"clusters": self.cluster, "counts": self.counts, "weights": self.weights}

    @property
    def sums(self) -> dict[str, Any]:
        """The keyword arguments of functions of sums, for which a weight is a fraction of a row."""
        return {"clusters": self.cluster, "counts": self.counts * self.weights}

    @property
    def n(self) -> int:
        """How many ratings there are."""
        return round(float(self.counts.sum()))

    @property
    def n_clusters(self) -> int:
        """How many clusters they come from."""
        return self.n if self.cluster is None else len(np.unique(self.cluster))

    def flags(self, tolerance: float) -> Array:
        """Which pairs agree within the tolerance."""
        return stats.within(self.judge, self.human, tolerance)

    def share(self, tolerance: float, **options: Any) -> Estimate:
        """Return the share within the tolerance."""
        return stats.within_share(self.judge, self.human, tolerance=tolerance, **self.how, **options)

    def bias(self, **options: Any) -> Estimate:
        """Return the mean of judge − human."""
        return stats.bias(self.judge, self.human, **self.how, **options)

    def where(self, chosen: Any) -> Cells:
        """Return some of the cells, by flags or by places."""
        return replace(self, **{name: part[chosen] for name, part in vars(self).items() if part is not None})


def cells_of(rows: pd.DataFrame, group: Any = 0) -> Cells:
    """Return the distinct pairs among rows of opened ratings, within clusters and groups.

    Examples
    --------
    >>> rows = open_ratings(pd.DataFrame({"judge": [4, 4, 2], "human": [5, 5, 2]}), "judge", Asked())[0]
    >>> cells_of(rows).counts.tolist()
    [1.0, 2.0]
    """
    keys = ["group", "cluster", "human", "judge", "weight"]
    pairs = rows[[*keys[1:], "count"]].assign(group=group).dropna(subset=["human", "judge"])
    cells = _counted(pairs).sort_values(keys)
    cluster, counts, weights = (cells[name].to_numpy() for name in ("cluster", "count", "weight"))
    return Cells(
        judge=cells["judge"].to_numpy(), human=cells["human"].to_numpy(),
        cluster=None if (rows["cluster"] < 0).all() else cluster,
        counts=counts, group=cells["group"].to_numpy(dtype=np.int64),
        weights=weights * counts.sum() / max(counts @ weights, 1e-300),
    )  # fmt: skip


def random_groups(cells: Cells, seed: int) -> Cells:
    """Return the cells with at most 1,000 clusters; single ratings and surplus clusters are grouped.

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
        cluster = None if cells.cluster is None else np.unique(cells.cluster, return_inverse=True)[1]
        for column in (cells.judge, cells.human, cluster, cells.counts, weights):
            digest.update(np.round(np.asarray([] if column is None else column, dtype="<f8"), 9).tobytes())
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
MAP_COLUMNS = ["map", "mae", "mae_low", "mae_high", "share", "low", "high", "gain", "gain_low", "gain_high"]
MAP_COLUMNS += ["helps", "passes"]
# Every measure, in reading order.
MEASURES = (
    "within", "floor", "constant", "constant_score", "over_constant", "ceiling", "within_rounded", "exact",
    "mean_judge", "mean_human", "mae", "bias", "slope", "loa_low", "loa_high", "kendall", "kendall_by_system",
    "qwk", "alpha", "raters", "n_missing",
)  # fmt: skip


def agreement(
    ratings: Any, *, judge: Names = "judge", human: Names = "human", by: Names | None = "dimension",
    tolerance: float = 1.0, scale: tuple[float, float] | None = None, cluster: str | None = "cluster",
    level: float = 0.95, missing: Missing = None, rater: str = "rater", digits: int | None = 10,
) -> pd.DataFrame:  # fmt: skip
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
    tolerance : float
        In points of the scale.
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
    digits : int, optional
        Decimals to which correlations round first: means that differ in the last bit are ties. None ranks them
        as they are, as scipy and most papers do; that moves ρ and τ-b in the second or third decimal.

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
        ``kendall``            Kendall's τ-b of the ratings; ``kendall_by_system`` of the systems' means
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
    asked = Asked(human, by, scale, cluster, missing, rater, tolerance=tolerance, level=level, digits=digits)
    parts = opened_blocks(ratings, judge, asked)
    frames = [measure_rows(labels, measured(rows, cells_of(rows), own)) for labels, rows, own in parts]
    frame = pd.concat(frames, ignore_index=True)
    frame.attrs["scale"] = parts[-1][2].scale
    return frame


def measure_rows(head: dict[str, Any], measures: dict[str, Estimate]) -> pd.DataFrame:
    """Return the rows of one judge and dimension."""
    parts = ("value", "low", "high", "n", "n_clusters")
    rows = [{"measure": name, **{part: getattr(one, part) for part in parts}} for name, one in measures.items()]
    return pd.DataFrame([head | row for row in rows])


def measured(rows: pd.DataFrame, cells: Cells, asked: Asked) -> dict[str, Estimate]:
    """Return every measure of one judge on one dimension that applies, by name."""
    x, y, scale = cells.judge, cells.human, asked.ends
    how: dict[str, Any] = {**cells.how, "level": asked.level}
    sums: dict[str, Any] = {**cells.sums, "level": asked.level}
    near: dict[str, Any] = {**how, "tolerance": asked.tolerance}

    def plain(value: float) -> Estimate:
        return Estimate(value, np.nan, np.nan, np.nan, cells.n, cells.n_clusters)

    score, constant = stats.best_constant(y, **near)
    low, high = stats.limits_of_agreement(x, y, **sums)
    measures = {
        "within": cells.share(asked.tolerance, level=asked.level),
        "floor": plain(stats.chance_floor(x, y, tolerance=asked.tolerance, counts=sums["counts"])),
        "constant": constant, "constant_score": plain(score),
        "over_constant": over_constant(cells, score, asked.tolerance, level=asked.level),
        "mean_judge": stats.clustered_mean(x, ends=scale, **how),
        "mean_human": stats.clustered_mean(y, ends=scale, **how), "mae": stats.mae(x, y, scale=scale, **how),
        "bias": cells.bias(level=asked.level), "loa_low": low, "loa_high": high,
        "slope": stats.slope_on_mean(x, y, **sums), "kendall": stats.kendall(x, y, digits=asked.digits, **sums),
        "n_missing": plain(round(float(rows["count"].sum())) - cells.n),
    }
    if scale[1] - scale[0] >= 2:
        rounded = stats.round_half_up(x), stats.round_half_up(y)
        measures["within_rounded"] = stats.within_share(*rounded, **near)
        measures["exact"] = stats.within_share(*rounded, **near | {"tolerance": 0})
        measures["qwk"] = stats.quadratic_kappa(x, y, (np.floor(scale[0]), np.ceil(scale[1])), **sums)
    if ":system" in rows:
        few = random_groups(cells_of(rows[rows[":system"] != ""], rows[":system"].cat.codes), seed=0)
        scores, system = (few.judge, few.human), few.group
        if len(np.unique(system)) > 1:
            measures["kendall_by_system"] = stats.kendall_of_means(*scores, system, **few.sums, level=asked.level)
    if "rater0" in rows:
        rows = rows.loc[rows.index.repeat(rows["count"].astype(int))]
        grid = rows.filter(regex="^rater").to_numpy()
        of = None if cells.cluster is None else rows["cluster"]
        measures["raters"] = plain(float(np.sum(~np.isnan(grid), axis=1).mean()))
        ceiling: dict[str, Any] = {"tolerance": asked.tolerance, "weights": rows["weight"], "level": asked.level}
        measures["ceiling"] = stats.human_ceiling(grid, of, **ceiling)
        measures["alpha"] = stats.krippendorff_alpha(grid, of, level=asked.level)
    return {name: measures[name] for name in MEASURES if name in measures}


def over_constant(cells: Cells, score: float, tolerance: float, **options: Any) -> Estimate:
    """Return the paired difference between the judge's agreement and that of a constant `score`."""
    theirs = stats.within(np.full(len(cells.human), score), cells.human, tolerance)
    return stats.clustered_mean(cells.flags(tolerance) - theirs, **cells.how, **options)


def _band_of(x: Array, low: float, high: float) -> tuple[Codes, dict[int, str]]:
    """Return a band a score, the label it rounds to or a tenth of a scale without labels, and the bands' names."""
    if 2 <= high - low <= WIDEST:
        code = stats.round_half_up(x).astype(np.int64)
        return code, {int(c): str(int(c)) for c in np.unique(code)}
    step = (high - low) / 10
    code = np.clip(np.floor((x - low) / step + 1e-9), 0, 9).astype(np.int64)
    return code, {int(c): f"{low + c * step:g}–{low + (c + 1) * step:g}" for c in np.unique(code)}


def bands(cells: Cells, asked: Asked) -> pd.DataFrame:
    """Return one row per band of the judge's score, its verdict adjusted by Holm over the bands that have one."""
    code, names = _band_of(cells.judge, *asked.ends)
    rows = []
    for band, name in names.items():
        part = cells.where(code == band)
        share = part.share(asked.tolerance, level=asked.level)
        above = stats.p_above(share, asked.target, share=True, fraction=asked.fraction)
        above = above if part.n_clusters >= LEAST_CLUSTERS else np.nan
        row = {"band": name, "start": float(part.judge.min()), "end": float(part.judge.max())}
        row |= with_ends(share, "share") | with_ends(part.bias(level=asked.level), "bias", "bias_")
        row |= {"n": part.n, "n_clusters": part.n_clusters, "p": min(above, 1 - above)}
        rows.append(row | {"verdict": "TRUST" if above <= 0.5 else "REJECT"})
    frame = pd.DataFrame(rows)
    frame["p"] = stats.holm(frame["p"])
    frame["verdict"] = frame["verdict"].where(frame["p"] <= 1 - asked.level, "NOT PROVEN")
    frame["verdict"] = frame["verdict"].mask(frame["n_clusters"] < LEAST_CLUSTERS, "too few")
    return frame


def inflation(rows: pd.DataFrame, cells: Cells, asked: Asked) -> pd.DataFrame:
    """Return one row per group: its bias with interval, and the difference from the bias of the other groups."""
    found = [_biased("overall", "", cells, NONE, asked)]
    for kind, codes, names in _groupings(rows, asked):
        split = cells_of(rows[codes >= 0], codes[codes >= 0])
        groups = np.unique(split.group)
        for group in groups if len(groups) > 1 else []:
            inside = split.group == group
            rest = _beside(split, inside, asked.level)
            found.append(_biased(kind, names[group], split.where(inside), rest, asked))
    frame = pd.DataFrame(found)
    frame["p"] = frame.groupby("kind", sort=False)["p"].transform(stats.holm)
    return frame.assign(inflated=(frame["value"] > 0) & (frame["p"] <= 1 - asked.level))


def _biased(kind: str, group: str, cells: Cells, rest: Estimate, asked: Asked) -> dict[str, Any]:
    bias, decisive = (cells.bias(level=asked.level, fraction=fraction) for fraction in (None, asked.fraction))
    one_sided = stats.p_above(bias, 0.0)
    row = {"kind": kind, "group": group, **with_ends(bias), "upper": decisive.high}
    row |= {**with_ends(rest, "beside", "beside_"), "p": 2 * min(one_sided, 1 - one_sided)}
    return row | {"n": bias.n, "n_clusters": bias.n_clusters}


def _beside(cells: Cells, inside: Any, level: float) -> Estimate:
    """Return the bias in the group less the bias outside it, by the jackknife over clusters."""
    rows = complete_rows([cells.judge - cells.human], **cells.how)
    sides = [rows.weights * side for side in (inside, ~inside)]
    parts = rows.sums(*(part for side in sides for part in (side, side * rows.columns[0])))
    return stats.jackknife(gap, parts, parts[:, 0] + parts[:, 2], times=rows.times, level=level)


def gap(sums: Array) -> Array:
    """Return the difference of two means, of the sums of the weights and the weighted values of each."""
    return ratio(sums[..., :2]) - ratio(sums[..., 2:])


def _groupings(rows: pd.DataFrame, asked: Asked) -> Iterator[tuple[str, Any, Any]]:
    """Yield each column by which bias is looked at: its name, its groups as codes (−1: none), their names."""
    columns = {name: rows[f":{name}"] for name in asked.groups}
    amounts = {name: column for name, column in columns.items() if pd.api.types.is_numeric_dtype(column)}
    for name in (name for name in columns if name not in amounts):
        yield name, columns[name].cat.codes.to_numpy(np.int64) - 1, columns[name].cat.categories[1:]
    for name, column in amounts.items():
        values = column.to_numpy(dtype=float, na_value=np.nan)
        if (seen := ~np.isnan(values) & rows[["judge", "human"]].notna().all(axis=1).to_numpy()).any():
            order = np.flatnonzero(seen)[np.argsort(values[seen], kind="stable")]
            upto = np.cumsum(rows["count"].to_numpy()[order])
            low, high = values[order][np.searchsorted(upto, upto[-1] * np.array([1 / 3, 2 / 3]) - 1e-9)]
            codes = np.where(np.isnan(values), -1, (values > low).astype(np.int64) + (values > high))
            yield name, codes, [f"≤ {low:g}", f"{low:g} – {high:g}", f"> {high:g}"]


def recalibration(cells: Cells, asked: Asked) -> pd.DataFrame:
    """Return raw scores, a constant, a line and a rising curve side by side, each judged out of fold."""
    own = cells if cells.cluster is not None else random_groups(cells, asked.seed)
    maps, rows, how = {}, [], {**own.how, "level": asked.level}
    if own.n_clusters > 1:
        scores = stats.recalibrate(own.judge, own.human, own.how["clusters"], counts=own.counts)
        maps = {name: replace(own, judge=predicted) for name, predicted in scores.items()}
    errors = {name: np.abs(mapped.judge - own.human) for name, mapped in maps.items()}
    mae = {name: stats.clustered_mean(error, **how) for name, error in errors.items()}
    shares = {name: mapped.share(asked.tolerance, level=asked.level) for name, mapped in maps.items()}
    for name, mapped in maps.items():
        low = mapped.share(asked.tolerance, level=2 * asked.level - 1, fraction=asked.fraction).low
        helps = name in stats.MAPS and mae[name].value < min(mae["raw"].value, mae["constant"].value)
        passes = helps and low >= asked.target and shares[name].value > shares["constant"].value
        passes = bool(passes and asked.accepts(mapped.bias(level=asked.level, fraction=asked.fraction)))
        gain = stats.clustered_mean(errors["raw"] - errors[name], **how) if name in stats.MAPS else NONE
        row = {"map": name, **with_ends(mae[name], "mae", "mae_"), **with_ends(shares[name], "share")}
        rows.append(row | with_ends(gain, "gain", "gain_") | {"helps": helps, "passes": passes})
    return pd.DataFrame(rows, columns=MAP_COLUMNS)


def reliability(cells: Cells, asked: Asked) -> pd.DataFrame:
    """Return E[human | judge] at each score with its interval, and the isotonic map.

    A point is a score of the judge, or one of twenty equal parts of the ratings.
    """
    from scipy.optimize import isotonic_regression

    values, place = np.unique(np.round(cells.judge, 9), return_inverse=True)
    if len(values) > MOST_POINTS:
        before = np.cumsum(np.bincount(place, weights=cells.counts))
        part_of = np.floor((before - 1e-9) / before[-1] * MOST_POINTS).astype(np.int64)
        place = np.unique(part_of, return_inverse=True)[1][place]
    rows = []
    for k in range(int(place.max(initial=-1)) + 1):
        part = cells.where(place == k)
        mean = stats.clustered_mean(part.human, **part.how, ends=asked.ends, level=asked.level)
        score = float(np.average(part.judge, weights=part.sums["counts"]))
        rows.append({"judge_score": score, **with_ends(mean, "human"), "n": mean.n, "n_clusters": mean.n_clusters})
    frame = pd.DataFrame(rows)
    weights = np.bincount(place, weights=cells.sums["counts"])
    frame.insert(4, "isotonic", isotonic_regression(frame["human"], weights=weights).x)
    return frame


def counts(cells: Cells, asked: Asked) -> pd.DataFrame:
    """Return judge × human cells and their counts, rounded to a hundredth of the scale where they are many."""
    low, high = asked.ends
    frame = pd.DataFrame({"judge_score": cells.judge, "human_score": cells.human, "n": cells.counts.astype(int)})
    scores = ["judge_score", "human_score"]
    if len(frame[scores].drop_duplicates()) > MOST_CELLS:
        step = (high - low) / 100
        frame[scores] = ((frame[scores] - low) / step).round() * step + low
    return frame.groupby(scores, as_index=False)[["n"]].sum()


def budget(cells: Cells, asked: Asked) -> pd.DataFrame:
    """Return the label budget: interval width and probability of showing the target by number of labels.

    ``labels``; ``share``, as seen now, and its ``low, high`` expected at so many labels;
    ``probability`` of showing the target, were the seen share the true one, and ``cautious``, were its lower 80 %
    bound; ``target``; ``n`` labels now.
    """
    curve = stats.label_budget(cells.flags(asked.tolerance), **cells.how, **asked.goal, level=asked.level)
    frame = pd.DataFrame(curve).astype({"labels": int})
    frame.insert(1, "share", cells.share(asked.tolerance).value)
    return frame.assign(target=asked.target, n=cells.n)


# Each makes the frame of its name on a card.
FRAMES = (bands, recalibration, counts, reliability, budget)


_FEW = 20
_ESTIMATE = ("value", "low", "high")
WAYS = {"judge": "judge_", "human": "human_", "corrected": ""}
DRAW = ["judge_labelled", "judge_rest", "draw_z", "draw_p"]
DRAW_LEVEL = 0.01
COLUMNS = [*_ESTIMATE, "se", "n", "n_judged", "n_clusters", "weight"]
COLUMNS += [f"{way}_{name}" for way in ("human", "judge") for name in _ESTIMATE]
COLUMNS += ["bias", "bias_low", "bias_high", *DRAW, "note"]


def corrected_mean(
    ratings: Any, *, judged: Any = None, judge: str = "judge", human: Names = "human",
    by: Names | None = "dimension", cluster: str | None = "cluster", item: str = "item_id",
    scale: Scale | None = None, missing: Missing = None, level: float = 0.95, lang: str = "en",
) -> pd.DataFrame:  # fmt: skip
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
    0   3.46  1.47   4.8     0.7  0.75
    """
    asked = Asked(human, by, scale, cluster, missing, item=item, whole=True, level=level, lang=lang)
    if not 0 < level < 1:
        raise RagnbError(f"level={level} is not between 0 and 1; give a share such as 0.95")
    load(lang)
    table, opened = open_ratings(ratings, judge, asked, judged)
    _refuse_twice(table, item)
    if not table["human"].notna().any():
        raise RagnbError(
            "no row has a human score: the judge's bias cannot be estimated from its own scores; label some items"
        )
    found = [*blocks(table, opened)]
    rows = [head | corrected_row(of, _ends(of) if scale is None else opened.ends, asked) for head, of in found]
    for row, p in zip(rows, stats.holm([row.get("draw_p", np.nan) for row in rows]), strict=True):
        row["draw_p"] = float(p)
        if not_random(p):
            row["note"] = _joined([row["note"], draw_text(row, lang)], lang)
    return pd.DataFrame(rows, columns=[*found[0][0], *COLUMNS])


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
    heads = list(means.columns[: means.columns.get_loc("value")])
    frames = []
    for way, prefix in WAYS.items():
        names = {f"{prefix}{name}": name for name in _ESTIMATE}
        columns = [*heads, "way", *names, "weight", "n", "n_judged", "n_clusters"]
        frames.append(means.assign(way=way)[columns].rename(columns=names))
    return pd.concat(frames).sort_index(kind="stable", ignore_index=True)


def _refuse_twice(table: pd.DataFrame, item: str) -> None:
    """Refuse an item that appears twice."""
    keys, further = table.filter(regex="^:").rename(columns=lambda name: name[1:]), table["further"]
    if item not in keys:
        return
    again, both = keys.assign(further=further).duplicated(), keys.astype(str).duplicated() & further
    first = keys[again if again.any() else both][:1].to_dict("records")
    if again.any():
        raise RagnbError(
            f"{first[0]} appears twice; give one row per item, or a column 'rater' that distinguishes them"
        )
    if first:
        raise RagnbError(
            f"{int(both.sum())} rows of judged are in ratings too, the first {first[0]}: they would count "
            "twice; keep only unlabelled rows in judged"
        )


def _ends(part: pd.DataFrame) -> Scale:
    """Return the lowest and highest observed score; identical scores have no range."""
    low, high = (float(end) for end in np.nanquantile(part[["judge", "human"]].to_numpy(), [0, 1]))
    return (low, high) if low < high else (-np.inf, np.inf)


def corrected_row(part: pd.DataFrame, ends: Scale, asked: Asked) -> dict[str, Any]:
    """Return one row of the result: the three means with their intervals, the bias, and a note."""
    cells, seen, labelled = cells_of(part), part["judge"].notna(), part["human"].notna()
    n_judged, unjudged = (int(part.loc[rows, "count"].sum()) for rows in (seen & ~labelled, labelled & ~seen))
    out: dict[str, Any] = {"n": cells.n, "n_judged": n_judged, "n_clusters": cells.n_clusters}
    if cells.n < 2:
        return out | {"note": load(asked.lang)("corrected.no_labels", n=cells.n)}
    how: dict[str, Any] = {"ends": ends, "level": asked.level}
    bias = cells.bias(level=asked.level)
    judge, human = (stats.clustered_mean(scores, **cells.how, **how) for scores in (cells.judge, cells.human))
    found = stats.Corrected(*astuple(human))
    if n_judged:  # all rows together are the population that the labels were sampled from
        rows = part.loc[part.index.repeat(part["count"].astype(int))]
        alone = None if cells.cluster is None else rows["cluster"]
        judge = stats.clustered_mean(rows["judge"], alone, **how)
        mine, more = (rows[rows["judge"].notna() & (rows["human"].notna() == known)] for known in (True, False))
        of = (None, None) if alone is None else (mine["cluster"], more["cluster"])
        weights, scores = mine["weight"], (mine["judge"], more["judge"])
        found = stats.ppi_jackknife(mine["human"], *scores, *of, weights=weights, **how)
        if np.ptp(weights) == 0:
            out |= zip(DRAW, stats.draw_test(*scores, *of), strict=True)
    out |= with_ends(found) | {"se": found.se, "weight": found.weight} | with_ends(bias, "bias", "bias_")
    out |= with_ends(judge, "judge_value", "judge_") | with_ends(human, "human_value", "human_")
    out["note"] = _note(found, bias, cells.n_clusters, unjudged, asked.lang)
    return out | {"n_clusters": found.n_clusters}


def _joined(sentences: list[str], lang: str) -> str:
    return ("" if lang == "zh" else " ").join(sentences)


def not_random(p: float) -> bool:
    """Whether labels do not look like a random sample, at the 1 % level over all rows of a table."""
    return bool(p <= DRAW_LEVEL)


def draw_text(row: Mapping[Any, Any], lang: str) -> str:
    """Return a sentence on labels that do not look like a random sample, with the judge's means on both parts."""
    means = {"labelled": number(row["judge_labelled"], 2), "rest": number(row["judge_rest"], 2)}
    return load(lang)("corrected.not_random", **means, z=number(abs(row["draw_z"]), 1))


def _note(found: stats.Corrected, bias: stats.Estimate, labelled: int, unjudged: int, lang: str) -> str:
    """Return the notes on a corrected mean, the judge's bias first."""
    say = load(lang)
    ends = {"bias": number(bias.value), "low": number(bias.low), "high": number(bias.high)}
    side = "above" if bias.low > 0 else "below" if bias.high < 0 else "open" if bias.low <= 0 else "unknown"
    told = {
        f"judge_{side}": True, "no_judged": not found.n_judged,
        "no_weight": found.n_judged and found.weight == 0, "one_cluster": labelled == 1,
        "few_clusters": 1 < labelled < _FEW, "unjudged": unjudged,
    }
    n = {"few_clusters": labelled, "unjudged": unjudged}
    return _joined([say(f"corrected.{key}", **ends, n=n.get(key)) for key, holds in told.items() if holds], lang)


WORST_LAST = TRUST, NOT_PROVEN, REJECT = ("TRUST", "NOT PROVEN", "REJECT")
SIDES = RECALIBRATE, RANKING_ONLY, INFLATED = ("RECALIBRATE", "RANKING ONLY", "INFLATED")
TONES = {TRUST: "good", NOT_PROVEN: "watch", REJECT: "bad"}
ABOUT = ("judge_id", "prompt_sha256", "rater_protocol", "drawn_at_random")
ROUGH = 20  # fewer clusters make intervals that are themselves rough
Measures = Mapping[str, Estimate]
LAYOUT: dict[str, Any] = tomllib.loads(Path(__file__).with_name("card.toml").read_text(encoding="utf-8"))


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
        frames: dict[str, Any] = {key: part for key, part in vars(self).items() if isinstance(part, pd.DataFrame)}
        del frames["notes"]
        for name, value in (("judge", judge), ("dimension", dimension)):
            if value is not None:
                need_known(name, value, sorted(set(self.verdicts[name])))
                frames = {key: part[part[name] == value].reset_index(drop=True) for key, part in frames.items()}
        return replace(self, **summary(frames["verdicts"], self.tolerance, self.lang), **frames)

    def sections(self) -> list[Section]:
        """Return the verdict with its reasons, then each table that has rows, the notes and what made the card."""
        (first, *rest), say = self.reasons, load(self.lang)
        marks = Mark(TONES[self.verdict], self.verdict), *(Mark("watch", side) for side in self.sides)
        blocks = Text((marks,)), Text(tuple(rest), "list")
        return [Section("verdict", say("section.judge"), first, blocks=blocks, lang=self.lang), *parts(self)]

    def _repr_html_(self) -> str:
        return render_fragment(self.sections())

    def to_markdown(self) -> str:
        """Return the card as Markdown, without times and machine paths: equal input gives equal text."""
        return render_markdown(self.sections())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: frames as lists of records, None for a missing value."""

        def plain(value: Any) -> Any:
            if isinstance(value, pd.DataFrame):
                return json.loads(value.to_json(orient="records", double_precision=12))
            return list(value) if isinstance(value, tuple) else value

        return {name: plain(value) for name, value in vars(self).items()}


def parts(card: CalibrationCard) -> Iterator[Section]:
    """Yield the tables of a card that have rows in reading order, then its notes and its footer."""
    say, words = load(card.lang), entry(card.lang, "calibration.word")
    whole = words["overall"]
    frames = {
        "verdicts": card.verdicts.assign(sides=[", ".join(sides) for sides in card.verdicts["sides"]]),
        "bands": card.bands.replace({"verdict": {"too few": words["too_few"]}}),
        "inflation": card.inflation.replace({"kind": {"overall": whole}}),
        "recalibration": card.recalibration.replace({"map": words}),
        "corrected": card.corrected.replace({"system": {"": whole}, "way": words}), "table": _measures(card),
    }
    heads = {"judge": card.verdicts, "dimension": card.verdicts, "system": card.corrected}
    alone = {name for name, frame in heads.items() if frame[name].nunique() < 2}
    alone |= {"labels_planned", "widened"} if card.verdicts["labels_planned"].isna().all() else set()
    for key, columns in LAYOUT["tables"].items():
        labels, written, rows = [], [], frames[key].to_dict("records")
        for name, own in ({"judge": {}, "dimension": {}} | columns).items():
            how = {"label": name, "kind": "text"} | LAYOUT["columns"].get(name, {}) | own
            label, kind = say(f"calibration.column.{how['label']}"), how["kind"]
            interval = (key, name) == ("table", "value") or "interval" in kind
            if name not in alone:
                labels.append(">" * (kind != "text") + label + f" [{card.level:.0%}]" * interval)
                written.append([_cell(row, name, **how) for row in rows])
        if rows:
            yield _part(key, Table(tuple(labels), tuple(zip(*written, strict=True))), say)
    for key, lines in {"notes": tuple(card.notes["text"]), "footer": tuple(_footer(card))}.items():
        if lines:
            yield _part(key, Text(lines, "list"), say)


def _cell(
    row: Mapping[Any, Any], name: str, *, kind: str, low: str = "low", high: str = "high", digits: int = 3,
    **_: str
) -> str:
    """Write one cell of a card; an interval reads the columns of its ends."""
    if pd.isna(value := row[name]):
        return ""
    if "interval" in kind:
        return with_interval(value, row[low], row[high], kind != "interval", digits)
    write = {"percent": percent, "count": count}.get(kind, str)
    return number(value, digits) if kind == "number" else write(value)


def _part(key: str, block: Block, say: Any) -> Section:
    title = say(f"calibration.title.{key}")
    return Section(key, title, title, blocks=(block,))


def _measures(card: CalibrationCard) -> pd.DataFrame:
    """Return the agreement table with its measures named and their values written out."""
    rows = card.table[card.table["value"].notna()].to_dict("records")
    for row in rows:
        share, value = row["measure"] in LAYOUT["shares"], row["value"]
        alone = count if row["measure"] == "n_missing" else percent if share else number
        whole = np.isfinite(row["low"])
        text = with_interval(value, row["low"], row["high"], percent=share) if whole else alone(value)
        row |= {"measure": entry(card.lang, "calibration.measure")[row["measure"]], "value": text}
    return pd.DataFrame(rows)


def _footer(card: CalibrationCard) -> Iterator[str]:
    """Yield what made the card, label and value."""
    say = load(card.lang)
    for name, label in entry(card.lang, "calibration.footer").items():
        if name in card.footer:
            if isinstance((value := card.footer[name]), bool):
                value = say("column.yes" if value else "column.no")
            elif isinstance(value, float):
                value = number(value, 2)
            yield f"{label}: {say('calibration.footer.unsaid') if value is None else value}"


def summary(verdicts: pd.DataFrame, tolerance: float, lang: str) -> dict[str, Any]:
    """Return the summary of all rows of a card: the worst verdict, the side verdicts and the sentences."""
    rows, words = verdicts.to_dict("records"), verdicts["verdict"]
    verdict, reasons = max(words, key=WORST_LAST.index), tuple(rows[0]["reasons"])
    if len(rows) > 1:
        say, alone = load(lang), verdicts["judge"].nunique() == 1
        sums = ((words == word).sum() for word in WORST_LAST)
        counts = dict(zip(("trust", "open", "reject"), sums, strict=True))
        best = max(rows, key=lambda row: (-WORST_LAST.index(row["verdict"]), row["share"]))
        nearest = say("calibration.best", what=name_of(best, lang, alone=alone))
        drawn = [name_of(row, lang, alone=alone) for row in rows if not_random(row["draw_p"])]
        spent = [name_of(row, lang, alone=alone) for row in rows if np.isnan(row["widened"])]
        looks = "look_once" if pd.isna(rows[0]["labels_planned"]) else "look_spent_rows" if spent else "look_rows"
        reasons = (
            say(f"calibration.many_{_slug(verdict)}", n=len(rows), **counts),
            f"{nearest} {share_line(best, tolerance, lang)}",
            *([say("calibration.draws", what=listing(drawn))] if drawn else []),
            say(f"calibration.{looks}", what=listing(spent), labels=rows[0]["labels_planned"]),
        )
    sides = tuple(side for side in SIDES if any(side in row["sides"] for row in rows))
    return {"verdict": verdict, "sides": sides, "reasons": reasons}


def name_of(row: Mapping[Any, Any], lang: str, *, alone: bool) -> str:
    """Return how sentences call the judge: by name if there are several."""
    key = "both" if not alone else "one" if row["dimension"] == ALL else "dimension"
    return load(lang)(f"calibration.what_{key}", judge=row["judge"], dimension=row["dimension"])


def share_line(row: Mapping[Any, Any], tolerance: float, lang: str) -> str:
    """Return one sentence on the agreement, its target and the best constant score."""
    values = {"share": percent(row["share"]), "constant": percent(row["constant"])}
    values |= {"tolerance": f"{tolerance:g}", "score": f"{row['constant_score']:.3g}"}
    if not np.isfinite(row["low"]):
        return load(lang)("calibration.no_interval", **values)
    ends = {name: percent(row[name]) for name in ("low", "high", "target")}
    return load(lang)("calibration.share", **values, **ends)


def signed(value: float) -> str:
    """Return a difference with its sign.

    Examples
    --------
    >>> signed(0.594), signed(-0.405), signed(float("nan"))
    ('+0.59', '−0.41', '—')
    """
    written = number(value, 2)
    return f"+{written}" if value > 0 and float(written) else written.replace("-", "−")


def calibrate(
    ratings: Any, *, judge: Names = "judge", human: Names = "human", by: str | None = "dimension",
    tolerance: float = 1.0, target: float = 0.8, delta: float | None = None,
    scale: tuple[float, float] | None = None, cluster: str | None = "cluster", level: float = 0.95,
    missing: Missing = None, rater: str = "rater", judged: Any = None, groups: Sequence[str] | None = None,
    labels_planned: int | None = None, about: Mapping[str, Any] | None = None, seed: int = 0, lang: str = "en",
) -> CalibrationCard:  # fmt: skip
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
        if value is not None and not low < value < high:
            raise RagnbError(f"{name}={value} is not between {low:g} and {high:g}")
    for name in about or {}:
        need_known("about", name, ABOUT)
    if labels_planned is not None:
        need_whole("labels_planned", labels_planned)
    load(lang)
    columns = columns_of(ratings)
    need_columns(columns, groups or ())
    groups = tuple(filter(_USUAL_GROUPS.fullmatch, columns) if groups is None else groups)
    asked = Asked(
        human, by, scale, cluster, missing, rater, groups=groups, tolerance=tolerance, level=level,
        target=target, delta=delta, labels_planned=labels_planned, seed=seed, lang=lang,
    )  # fmt: skip
    found = opened_blocks(ratings, judge, asked, judged)
    lows, highs = zip(*(own.ends for *_, own in found), strict=True)
    heads = [dict(zip(("judge", "dimension"), [*labels.values(), ALL], strict=False)) for labels, *_ in found]
    pieces = [_piece(head, rows, own) for head, (_, rows, own) in zip(heads, found, strict=True)]
    rows, tables, cells = zip(*pieces, strict=True)
    for row, p in zip(rows, stats.holm([row["draw_p"] for row in rows]), strict=True):
        row["draw_p"] = float(p)
        if not_random(p):
            row["reasons"] = (*row["reasons"][:2], draw_text(row, lang), *row["reasons"][2:])
    parts = {key: [table[key] for table in tables] for key in tables[0]}
    frames: dict[str, Any] = {key: pd.concat(part, ignore_index=True) for key, part in parts.items()}
    frames["table"].attrs["scale"] = ends = min(lows), max(highs)
    verdicts = pd.DataFrame(rows).astype({"labels_planned": "Int64"})
    given = {name: (about or {}).get(name) for name in ABOUT}
    if any(not_random(row["draw_p"]) for row in rows):
        given["drawn_at_random"] = False
    elif PROBABILITY in columns and given["drawn_at_random"] is None:
        given["drawn_at_random"] = True
    named = [(f"{row['judge']}\n{row['dimension']}", part) for row, part in zip(rows, cells, strict=True)]
    values = frames["table"].groupby("measure")["value"]
    footer = given | {
        "data_sha256": fingerprint(named), "seed": seed, "labels_planned": labels_planned,
        "n": sum(part.n for part in cells), "n_clusters": max(part.n_clusters for part in cells),
        "raters": values.mean().get("raters"), "n_missing": int(values.sum()["n_missing"]),
    }
    source = getattr(ratings, "attrs", {}).get("source") or {}  # of a frame that a reader made of a file
    notes = _notes(verdicts, cells, footer, source, ends if scale is None else None, cluster in columns, lang)
    return CalibrationCard(
        **summary(verdicts, tolerance, lang), verdicts=verdicts, **frames, notes=notes, footer=footer,
        tolerance=tolerance, target=target, delta=replace(asked, scale=ends).acceptable_bias, level=level,
        scale=ends, lang=lang,
    )  # fmt: skip


def _piece(
    head: dict[str, Any], rows: pd.DataFrame, asked: Asked
) -> tuple[dict[str, Any], dict[str, pd.DataFrame], Cells]:
    """Measure and decide one judge on one dimension: its row of the verdicts and its part of every frame."""
    rated = rows[~rows["further"]]
    if not (cells := cells_of(rated)).n:
        raise RagnbError(f"{head}: no row has both a judge score and a human score; label some of its items")
    asked = replace(asked, fraction=cells.n / asked.labels_planned if asked.labels_planned else None)
    measures, groups = measured(rated, cells, asked), inflation(rated, cells, asked)
    frames = {"inflation": groups} | {make.__name__: make(cells, asked) for make in FRAMES}
    row = head | verdict_row(cells, measures, groups, asked)
    if row["verdict"] == TRUST:  # then each of these biases is shown to be acceptable
        groups.loc[groups["kind"].isin(["overall", "system"]), "inflated"] = False
    parts = {"": rows}  # all, and each system
    if ":system" in rows and rated[":system"].nunique() > 1:
        parts |= {str(name): part for name, part in rows.groupby(":system", observed=True) if name}
    found = [{"system": name, **corrected_row(part, asked.ends, asked)} for name, part in parts.items()]
    means = pd.DataFrame([mean for mean in found if mean["n"]], columns=["system", *COLUMNS])
    frames["corrected"], ranks = corrected_ways(means), NONE
    if cells.cluster is not None:
        ranks = stats.kendall_within(cells.judge, cells.human, **cells.sums, digits=10, level=asked.level)
    row |= {name: found[0].get(name, np.nan) for name in DRAW}
    row |= {"sides": _sides(row["verdict"], ranks, frames["recalibration"], groups)}
    needs = stats.labels_needed(cells.flags(asked.tolerance), **cells.how, **asked.goal)
    text = _labels_line(needs, row, asked)
    whole = dict.fromkeys(("total", "more", "independent"), "Int64")
    frames["labels_needed"] = pd.DataFrame([asdict(needs) | {"text": text}]).astype(whole)
    row["reasons"] = _reasons(row, measures, ranks, frames, text, asked)
    frames = {name: frame.assign(**head)[[*head, *frame]] for name, frame in frames.items()}
    return row, frames | {"table": measure_rows(head, measures)}, cells


def verdict_row(cells: Cells, measures: Measures, groups: pd.DataFrame, asked: Asked) -> dict[str, Any]:
    """Return the verdict and the interval that it is based on.

    TRUST needs three things at once, each at `level`: the share's one-sided lower bound reaches the target, the
    judge agrees more often than the best constant (one-sided, pair by pair), and the interval of the bias lies
    inside ±delta; so must that of every system which the judge inflates. REJECT: the share's one-sided upper
    bound misses the target. Where labels are planned, each bound holds at every look together.
    """
    target, delta, score = asked.target, asked.acceptable_bias, measures["constant_score"].value
    once = 2 * asked.level - 1  # the two-sided interval whose ends are one-sided bounds at `level`
    plan: dict[str, Any] = {"level": once, "fraction": asked.fraction}
    share, bias = cells.share(asked.tolerance, **plan), cells.bias(**plan | {"level": asked.level})
    beats = over_constant(cells, score, asked.tolerance, **plan).low > 0
    favoured = groups.loc[groups["inflated"] & (groups["kind"] == "system"), "upper"].max()
    unbiased = asked.accepts(bias) and not favoured > delta
    widened = 1.0 if asked.fraction is None else stats.widening(asked.fraction, share.df, level=once)
    trusted = share.low >= target and beats and unbiased
    return {
        "verdict": TRUST if trusted else REJECT if share.high < target else NOT_PROVEN,
        **with_ends(measures["within"], "share"), "lower": share.low, "upper": share.high, "target": target,
        "constant": measures["constant"].value, "constant_score": score, "beats_constant": bool(beats),
        **with_ends(measures["bias"], "bias", "bias_"), "bias_lower": bias.low, "bias_upper": bias.high,
        "delta": delta, "unbiased": bool(unbiased), "n": cells.n, "labels_planned": asked.labels_planned,
        "widened": np.nan if (asked.fraction or 0) > 1 else widened, "n_clusters": cells.n_clusters,
    }  # fmt: skip


def _sides(verdict: str, ranks: Estimate, maps: pd.DataFrame, groups: pd.DataFrame) -> tuple[str, ...]:
    """Return the side verdicts, in the order of `SIDES`; TRUST has none."""
    holds = {
        RECALIBRATE: verdict != TRUST and maps["passes"].any(), RANKING_ONLY: verdict != TRUST and ranks.low > 0,
        INFLATED: groups.loc[groups["kind"].isin(["overall", "system"]), "inflated"].any(),
    }
    return tuple(side for side, held in holds.items() if held)


def _hopeless(row: Mapping[str, Any]) -> str | None:
    """Return why more labels alone will not lead to TRUST, other than an agreement at or below the target."""
    if row["bias_lower"] > row["delta"] or row["bias_upper"] < -row["delta"]:
        return "bias"
    return "constant" if np.isfinite(row["share"]) and row["share"] <= row["constant"] else None


def _labels_line(needs: LabelsNeeded, row: Mapping[str, Any], asked: Asked) -> str:
    """Return how many more labels are needed, or why more of them will not help."""
    say, reason = load(asked.lang), _hopeless(row)
    if row["verdict"] == TRUST:
        return say("calibration.labels_done")
    if needs.reason != "share_at_or_below_target" and reason:
        return say(f"calibration.labels_{reason}")
    key = "enough" if needs.more == 0 else needs.reason
    values = _written(percent, {"seen": needs.seen, "planned": needs.planned, "target": asked.target})
    counts = {"n": row["n"], "total": needs.total, "more": needs.more, "labels": asked.labels_planned}
    return say(f"labels.{key}", deff=number(needs.deff, 2), **values, **counts)


def _written(form: Callable[[Any], str], values: Mapping[str, Any]) -> dict[str, str]:
    return {name: form(value) for name, value in values.items()}


def _reasons(
    row: Mapping[str, Any], measures: Measures, ranks: Estimate, frames: Mapping[str, pd.DataFrame], needs: str,
    asked: Asked,
) -> tuple[str, ...]:  # fmt: skip
    """Return the sentences of one judge and dimension, the two that decide first."""
    say, two, what = load(asked.lang), partial(number, digits=2), name_of(row, asked.lang, alone=True)
    gain, delta = measures["over_constant"], row["delta"]

    def tell(key: str, **values: Any) -> str:
        return say(f"calibration.{key}", **values)

    beats = "beats" if row["beats_constant"] else "beats_open" if gain.value > 0 else "beats_not"
    where = "inside" if row["unbiased"] else "outside" if _hopeless(row) == "bias" else "open"
    if not row["unbiased"] and row["bias_lower"] >= -delta and row["bias_upper"] <= delta:
        where = "system"
    looks = "once" if asked.fraction is None else "spent" if asked.fraction > 1 else "planned"
    plan = {"n": row["n"], "labels": asked.labels_planned, "times": two(row["widened"])}
    plan["least"] = two(row["widened"] * (asked.fraction or 1) ** 0.25)
    plan |= _written(percent, {end: row[end] for end in ("lower", "upper")})
    plan |= _written(signed, {end: row[end] for end in ("bias_lower", "bias_upper")})
    out = [
        tell(f"headline_{'spent' if looks == 'spent' else _slug(row['verdict'])}", what=what),
        share_line(row, asked.tolerance, asked.lang), tell(f"look_{looks}", **plan),
        tell(beats, **_written(percent, with_ends(gain, "gain"))),
        tell(f"bias_{where}", **_written(signed, with_ends(measures["bias"], "bias")), delta=f"{delta:.3g}"),
    ]
    if RECALIBRATE in row["sides"]:
        best = frames["recalibration"].query("passes").sort_values("mae").iloc[0]
        shares = _written(percent, {name: best[name] for name in ("share", "low", "high")})
        out.append(tell("recalibrate", map=tell(f"word.{best['map']}"), **shares))
    if RANKING_ONLY in row["sides"]:
        out.append(tell("ranking", **_written(two, with_ends(ranks))))
    for part in frames["inflation"].query("inflated and kind in ['overall', 'system']").to_dict("records"):
        values = _written(signed, {end: part[end] for end in ("low", "high")})
        key = "inflated" if part["kind"] == "overall" else "inflated_system"
        out.append(tell(key, bias=two(part["value"]), system=part["group"], **values))
    for word in (TRUST, REJECT):
        named = frames["bands"].loc[frames["bands"]["verdict"] == word, "band"]
        out += [tell(f"bands_{_slug(word)}", bands=", ".join(named))] if len(named) else []
    low, high = asked.ends
    width = _written("{:g}".format, {"low": low, "high": high, "tolerance": asked.tolerance})
    shares = _written(percent, {"part": asked.tolerance / (high - low), "floor": measures["floor"].value})
    out += [needs, tell("width", **width, **shares)]
    ceiling = measures["ceiling"].value if "ceiling" in measures else np.nan
    return (*out, tell("ceiling", ceiling=percent(ceiling))) if np.isfinite(ceiling) else tuple(out)


def _slug(word: str) -> str:
    return word.lower().replace(" ", "_")


def _notes(
    verdicts: pd.DataFrame, cells: Sequence[Cells], footer: Mapping[str, Any], source: Mapping[str, Any],
    guessed: Scale | None, clustered: bool, lang: str,
) -> pd.DataFrame:  # fmt: skip
    """Return the caveats of the numbers."""
    say, fewest, drawn = load(lang), int(verdicts["n_clusters"].min()), footer["drawn_at_random"]
    low, high = guessed or (0.0, 0.0)
    tested = [row for row in verdicts.to_dict("records") if not_random(row["draw_p"])]
    found: Sequence[tuple[str, Any, dict[str, Any]]] = [
        ("damaged", source.get("damaged"), {"n": source.get("damaged"), "lines": source.get("lines")}),
        ("rows_are_clusters", not clustered, {}), ("few_clusters", clustered and fewest < ROUGH, {"n": fewest}),
        ("guessed_scale", guessed, {"low": f"{low:g}", "high": f"{high:g}"}),
        ("missing", footer["n_missing"], {"n": footer["n_missing"]}),
        ("one_rater", footer["raters"] is None, {}),
        ("weighted", any(np.ptp(part.weights) > 0 for part in cells), {}),
        ("not_random", drawn is False and not tested, {}), ("unknown_draw", drawn is None, {}),
    ]
    rows = [note_row(code, "", say(f"calibration.note.{code}", **values)) for code, held, values in found if held]
    for row in tested:
        name = name_of(row, lang, alone=verdicts["judge"].nunique() == 1)
        rows.append(note_row("not_random", name, say("calibration.about", what=name, text=draw_text(row, lang))))
    return note_frame(rows)
