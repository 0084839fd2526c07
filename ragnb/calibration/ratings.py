"""Ratings of any engine → one validated table, raters as columns; equal pairs → counted cells."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, takewhile
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats
from ragnb.errors import RagnbError, did_you_mean, need_columns, not_a_frame
from ragnb.stats import Estimate
from ragnb.stats.means import Array
from ragnb.weights import collected, column_names
from ragnb.weights.columns import as_pandas, coded
from ragnb.weights.engines import opened, swift

Codes = npt.NDArray[np.int64]
Names = str | Sequence[str]
Missing = float | str | Sequence[float | str] | None
Scale = tuple[float, float]
OUTSIDE = "outside"
PROBABILITY = "inclusion_probability"
ALL = "all"
SLACK = 1e-9
_COUNT = "__rows"
MOST_CLUSTERS = 1000
FEW_NUMBERS = 6  # a column of more numbers is an amount, such as a length, and no group


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
    def keys(self) -> list[str]:
        """The columns that group the rows, by name."""
        return as_list(self.by)

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
    by = [f":{name}" for name in asked.keys if f":{name}" in table]
    parts = table.groupby(by, sort=not asked.whole, observed=True, dropna=False) if by else [((), table)]
    for labels, rows in parts:
        if asked.whole or not rows["further"].all():
            yield {name[1:]: label for name, label in zip(by, labels, strict=True)}, rows


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
    by = [] if asked.whole else [f":{name}" for name in asked.keys]
    parts = [part.assign(**{name: ALL for name in by if name not in part}) for part in parts]
    table = pd.concat(parts, ignore_index=True)
    if "cluster" in table:
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


def group_columns(columns: Sequence[str], groups: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns to group bias by: the requested ones, or the usual ones that exist.

    Examples
    --------
    >>> group_columns(["system", "response_words", "judge"], None)
    ('system', 'response_words')
    """
    if groups is None:
        usual = re.compile(r"system|answerab\w*|length|\w+_(?:words|length|tokens|chars)")
        return tuple(name for name in columns if usual.fullmatch(name))
    need_columns(columns, groups)
    return tuple(groups)


def _checked(
    frame: Any, judge: str, asked: Asked, needs: Sequence[str] = (), where: str = ""
) -> tuple[pd.DataFrame, dict[str, Array]]:
    """Return a frame's rows with their scores in their scale and their weights; and the scores by column."""
    columns, people = columns_of(frame), as_list(asked.human)
    numbered = (f"{name}{k}" for name in people[:1] for k in count(1))
    raters = people if len(people) > 1 else list(takewhile(columns.__contains__, numbered))
    raters = raters if len(raters) > 1 else []
    human = [] if len(people) > 1 or (raters and people[0] not in columns) else people
    long = asked.rater in columns and bool(people) and not raters
    usual = [name for name in (*asked.keys, *as_list(asked.cluster)) if name not in ("dimension", "cluster")]
    wanted = [judge, *human, *raters, *usual, *needs]
    for name in wanted:
        if name not in columns:
            raise RagnbError(f"{where}column={name!r} does not exist; {did_you_mean(name, columns)}")
    kept = [*([asked.item] * asked.whole), asked.system, *asked.keys, *asked.groups]
    more = [*kept, *as_list(asked.cluster), *([PROBABILITY] * bool(people)), *([asked.rater, asked.item] * long)]
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
        alone = rows["cluster"].isna() & bool(people and not asked.whole)
        if alone.any():
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
    nobody = ~rated & ~np.isnan(without_marks(score, asked.missing))
    if nobody.any():
        raise RagnbError(f"column {asked.rater!r} is empty in row {table.index[int(np.argmax(nobody))]!r}")
    same = [c for c in (asked.item, asked.system, *asked.keys, asked.cluster) if c in table.columns]
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
        apart = scores.max() - scores.min() > SLACK
        if apart.any():
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
    wrong = rated & ~((chance > 0) & (chance <= 1))
    if wrong.any():
        row, value = table.index[int(np.argmax(wrong))], chance[int(np.argmax(wrong))]
        raise RagnbError(
            f"{where}column {PROBABILITY!r}, row {row!r}: {value:g} is not in (0, 1]; give every labelled row the "
            "chance with which it was drawn, or leave the column out"
        )
    return np.where(rated, chance[rated].min(initial=1.0) / np.where(rated, chance, 1.0), 1.0)


def numbers(table: pd.DataFrame, name: str, where: str = "") -> Array:
    """Return a column of scores as floats, nan if missing; text and infinite values raise RagnbError."""
    column = table[name]
    if not pd.api.types.is_numeric_dtype(column):
        for at in (at for at, value in enumerate(column) if isinstance(value, str)):
            raise RagnbError(
                f"{where}column {name!r}, row {column.index[at]!r}: {column.iloc[at]!r} is text, not a score; "
                "read the file with rn.read_ratings, or convert the column to numbers"
            )
    values = np.array(column.to_numpy(dtype=float, na_value=np.nan), dtype=float)
    if np.isinf(values).any():
        raise RagnbError(f"{where}column {name!r} holds an infinite value; a rating is a finite number or missing")
    return values


def without_marks(values: Array, missing: Missing) -> Array:
    """Return scores with nan for the numbers that mean no score."""
    for mark in as_list(missing):
        if mark != OUTSIDE:
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
    outside = OUTSIDE in as_list(missing)
    if outside and scale is None:
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
    inner = judge[(judge > 0) & (judge < 1)]
    if len(inner) and np.nanmax(judge) <= 1 and top > 1:
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
