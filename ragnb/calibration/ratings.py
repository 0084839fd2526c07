"""Ratings of people beside the scores of judges, side by side: what was asked, and how it is read."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats
from ragnb.errors import (
    RagnbError,
    did_you_mean,
    need_columns,
    not_a_frame,
)
from ragnb.readers.frames import is_frame
from ragnb.stats import SLACK, Array, Estimate
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
MOST_CLUSTERS = 1000  # that a jackknife leaves out one by one; more are put together at random
FEW_NUMBERS = 6  # a column of more numbers is an amount, such as a length, and no group
USUAL_GROUPS = re.compile(r"system|answerab\w*|length|\w+_(?:words|length|tokens|chars)")


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
    if values is None:
        return []
    if np.ndim(values) == 0:
        return [values]
    return list(values)


def need_pandas(frame: object, reader: str) -> None:
    """Refuse what is no pandas frame, with the function that reads one."""
    if not isinstance(frame, pd.DataFrame):
        raise not_a_frame(frame, reader)


def opened_blocks(
    ratings: Any, judge: Names, asked: Asked, judged: Any = None
) -> list[tuple[dict[str, Any], pd.DataFrame, Asked]]:
    """Return the labels (the judge first) and the rows of each judge's groups, and what was asked of them."""
    blocks = []
    for name in as_list(judge):
        table, opened_as = open_ratings(ratings, name, asked, judged)
        by = [f":{column}" for column in as_list(asked.by) if f":{column}" in table]
        parts: Iterable[tuple[Any, pd.DataFrame]] = [((), table)]
        if by:
            parts = table.groupby(by, sort=not asked.whole, observed=True, dropna=False)
        for labels, rows in parts:
            if asked.whole or not rows["further"].all():
                named = {column[1:]: label for column, label in zip(by, labels, strict=True)}
                blocks.append(({"judge": name} | named, rows, opened_as))
    return blocks


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
    if asked.usual and (low, high) == (0, 1) and are_verdicts(table):
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
    if asked.whole:
        by = []
    else:
        by = [f":{name}" for name in as_list(asked.by)]
    parts = [part.assign(**{name: ALL for name in by if name not in part}) for part in parts]
    if "cluster" in (table := pd.concat(parts, ignore_index=True)):
        codes = coded(table["cluster"], compose=True).codes
        if not (codes < 0).all():
            # Where others have a cluster, a row without one is its own.
            codes = stats.lone_apart(codes)
        table["cluster"] = codes
    elif len(table) and np.ptp(table["weight"]) > 0:
        # Lone ratings of unequal weights are their own clusters.
        table["cluster"] = np.arange(len(table))
    else:
        table["cluster"] = -1
    if asked.whole:
        refuse_twice(table, asked.item)
    else:
        for name, column in table.filter(regex="^:").items():
            number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(
                column
            )
            if name in by or not number or column.nunique() <= FEW_NUMBERS:
                table[name] = _labels(column)
        table = _counted(table)
    if asked.delta is None:
        delta = (high - low) / 18
    else:
        delta = asked.delta
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
    if label.names[:1] == ("",):
        names = label.names
    else:
        names = ("", *label.names)
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


class _Sides(NamedTuple):
    """The columns of people: of one score a row, of a column for each rater, or of a row for each rater."""

    human: Sequence[str]
    raters: Sequence[str]
    is_long: bool


def _sides_of(columns: Sequence[str], asked: Asked) -> _Sides:
    """Return which columns hold what people gave: ``human``, or ``human1, human2, …``, or as they are named."""
    people = as_list(asked.human)
    if len(people) > 1:
        raters = people
    else:
        numbered = (f"{name}{k}" for name in people for k in itertools.count(1))
        raters = list(itertools.takewhile(columns.__contains__, numbered))
    if len(raters) <= 1:
        raters = []
    # Where there is a column for each rater, one of all of them would be their mean.
    if len(people) > 1 or (raters and people[0] not in columns):
        human = []
    else:
        human = people
    is_long = asked.rater in columns and bool(people) and not raters
    return _Sides(human, raters, is_long)


def _table_of(
    frame: Any, wanted: Sequence[str], kept: Sequence[str], sides: _Sides, asked: Asked
) -> pd.DataFrame:
    """Return the columns of a frame that are looked at; equal rows of a query are counted where they are."""
    columns = columns_of(frame)
    more = {*kept, *as_list(asked.cluster)}
    if as_list(asked.human):
        more.add(PROBABILITY)
    if sides.is_long:
        more |= {asked.rater, asked.item}
    used = [*dict.fromkeys([*wanted, *(name for name in columns if name in more)])]
    if isinstance(frame, pd.DataFrame):
        return frame[used]
    part = opened(frame).select(*used)
    if not (asked.whole or sides.is_long or PROBABILITY in used):
        part = swift(part).group_by(*used).agg(nw.len().alias(_COUNT))
    return as_pandas(collected(part).to_native())


def _checked(
    frame: Any, judge: str, asked: Asked, needs: Sequence[str] = (), where: str = ""
) -> tuple[pd.DataFrame, dict[str, Array]]:
    """Return a frame's rows with their scores in their scale and their weights; and the scores by column."""
    columns = columns_of(frame)
    sides = _sides_of(columns, asked)
    human = sides.human
    raters = sides.raters
    by = as_list(asked.by)
    clusters = as_list(asked.cluster)
    named = [name for name in (*by, *clusters) if name not in USUAL]
    wanted = [judge, *human, *raters, *named, *needs]
    for name in wanted:
        if name not in columns:
            raise RagnbError(
                f"{where}column={name!r} does not exist; {did_you_mean(name, columns)}"
            )
    kept = [*([asked.item] * asked.whole), "system", *by, *asked.groups]
    table = _table_of(frame, wanted, kept, sides, asked)
    if sides.is_long:
        table = side_by_side(table, judge, human[0], asked)
        human = []
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
        alone = rows["cluster"].isna()
        # Without people, and of whole items, a row without a cluster is one of its own.
        if as_list(asked.human) and not asked.whole and alone.any():
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
    score = numbers(table, human)
    rated = table[asked.rater].notna().to_numpy()
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
    same_for_all_raters = [name for name in (judge, PROBABILITY) if name in table.columns]
    for column in same_for_all_raters:
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
        row = table.index[int(np.argmax(wrong))]
        value = chance[int(np.argmax(wrong))]
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
        below = values < 0
        off = (values < low - SLACK) | (values > high + SLACK)
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
    if not len(seen):
        return 0.0, 1.0
    low = float(np.floor(seen.min()))
    high = float(np.ceil(seen.max()))
    # Of scores that are all equal, a scale of no length would divide by 0.
    return low, max(high, low + 1.0)


def design(cells: pd.DataFrame, *, of_sums: bool = False) -> dict[str, Any]:
    """Return the keyword arguments of the means in `ragnb.stats`.

    Functions of sums take no weights: for them a weight is a fraction of a row.
    """
    if (cells["cluster"] < 0).all():
        clusters = None
    else:
        clusters = cells["cluster"].to_numpy()
    counts = cells["count"].to_numpy()
    weights = cells["weight"].to_numpy()
    if of_sums:
        by_row = {"counts": counts * weights}
    else:
        by_row = {"counts": counts, "weights": weights}
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
    rng = np.random.default_rng(seed)
    code = stats.packed(cells["cluster"].to_numpy())
    if (cells["cluster"] >= 0).all():
        many = code.max(initial=-1) + 1
        few = many <= MOST_CLUSTERS
        if few:
            return cells
        return cells.assign(cluster=rng.permutation(many)[code] % MOST_CLUSTERS)
    at = np.repeat(np.arange(len(cells)), cells["count"].astype(int))
    groups = min(MOST_CLUSTERS, len(at))
    pairs, sizes = np.unique(at * groups + rng.permutation(len(at)) % groups, return_counts=True)
    return cells.take(pairs // groups).assign(cluster=pairs % groups, count=sizes.astype(float))


def fingerprint(parts: Mapping[str, pd.DataFrame]) -> str:
    """Return the SHA-256 of the cells, the same whatever the engine and the order of the rows."""
    digest = hashlib.sha256()
    for name, cells in parts.items():
        digest.update(name.encode())
        lone = (cells["cluster"] < 0).all()
        alike = np.ptp(cells["weight"]) == 0
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


def are_verdicts(table: pd.DataFrame) -> bool:
    """Whether all scores are 0 or 1, as pass and fail are read."""
    scores = table[["judge", "human"]].to_numpy(dtype=float)
    return bool(np.isin(scores[~np.isnan(scores)], (0, 1)).all())


def refuse_twice(table: pd.DataFrame, item: str) -> None:
    """Refuse an item that appears twice."""
    keys = table.filter(regex="^:").rename(columns=lambda name: name[1:])
    further = table["further"]
    again = keys.assign(further=further).duplicated()
    both = keys.astype(str).duplicated() & further
    for first in keys[again & (item in keys)][:1].to_dict("records"):
        raise RagnbError(
            f"{first} appears twice; give one row per item, or a column 'rater' that distinguishes them"
        )
    for first in keys[both & (item in keys)][:1].to_dict("records"):
        raise RagnbError(
            f"{int(both.sum())} rows of judged are in ratings too, the first {first}: they would count "
            "twice; keep only unlabelled rows in judged"
        )


# Where Σ 1/p of the labels is a smaller part of the population, rows with small chances are missing.
LEAST_REPRESENTED = 0.8
ROUGH = 20  # fewer clusters make intervals that are themselves rough
