"""Ratings of people beside the scores of judges: what was asked, and the one table that every layout becomes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats
from ragnb.calibration.scores import (
    Missing,
    are_verdicts,
    as_list,
    guess_scale,
    numbers,
    settled,
    without_marks,
)
from ragnb.errors import RagnbError, did_you_mean, need_columns, not_a_frame
from ragnb.readers.frames import is_frame
from ragnb.stats import SLACK, Array, Estimate
from ragnb.weights import collected, column_names
from ragnb.weights.columns import as_pandas, coded, opened, swift

Names = str | Sequence[str]
PROBABILITY = "inclusion_probability"
ALL = "all"
USUAL = ("dimension", "cluster")  # columns that need not be there
_COUNT = "__rows"  # how many equal rows of a query one row stands for
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
            # A dimension that only the judge scored has no row on a card; a corrected mean (`whole`) says that it
            # has no labels.
            if not asked.whole and rows["further"].all():
                continue
            head = {"judge": name}
            head |= {column[1:]: label for column, label in zip(by, labels, strict=True)}
            blocks.append((head, rows, opened_as))
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
    rated, scores = _checked(frame, judge, asked)
    low, high = map(float, asked.scale or guess_scale(scores))
    # Pass and fail are a point apart, as far as the usual tolerance goes.
    if asked.usual and (low, high) == (0, 1) and are_verdicts(rated):
        asked = replace(asked, tolerance=0.0)
    if not 0 <= asked.tolerance < high - low:
        raise RagnbError(
            f"tolerance={asked.tolerance:g} on a scale of {low:g}..{high:g}: every score lies within it; give "
            f"points of the scale, such as tolerance={(high - low) / 10:g}"
        )
    parts = [rated.assign(further=False)]
    if judged is not None:
        needs = as_list(asked.cluster) if "cluster" in rated else []
        # Whole rows are matched by item, dimension and system: what the ratings have of these, `judged` needs too.
        if asked.whole:
            needs = [str(name)[1:] for name in rated if str(name)[0] == ":"] + needs
        more, _ = _checked(judged, judge, replace(asked, human=()), needs, "judged: ")
        parts.append(more.assign(further=True))
    by = [] if asked.whole else [f":{name}" for name in as_list(asked.by)]
    # Only `dimension` may be missing (see `USUAL`); one label then stands for all rows.
    parts = [part.assign(**{name: ALL for name in by if name not in part}) for part in parts]
    table = pd.concat(parts, ignore_index=True)
    table["cluster"] = _cluster_codes(table)
    if asked.whole:
        refuse_twice(table, asked.item)
    else:
        table = counted(_with_labels(table, by))
    if asked.delta is None:
        delta = (high - low) / 18  # half a point on 1–10
    else:
        delta = asked.delta
    return table, replace(asked, scale=(low, high), delta=delta)


def _cluster_codes(table: pd.DataFrame) -> Any:
    """Return the cluster of each row as a code; −1, for every row, where each stands alone."""
    if "cluster" in table:
        codes = coded(table["cluster"], compose=True).codes
        if (codes < 0).all():
            return codes
        # Where others have a cluster, a row without one is its own.
        return stats.lone_apart(codes)
    if len(table) and np.ptp(table["weight"]) > 0:
        # Lone ratings of unequal weights are their own clusters.
        return np.arange(len(table))
    return -1


def _with_labels(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return a table whose columns of groups hold labels; amounts, such as lengths, stay numbers."""
    columns = {}
    for name, column in table.filter(regex="^:").items():
        # Pandas counts bool among the numeric dtypes; yes and no are labels.
        is_number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
        if name in by or not is_number or column.nunique() <= FEW_NUMBERS:
            columns[str(name)] = _labels(column)
    return table.assign(**columns)


def counted(table: pd.DataFrame) -> pd.DataFrame:
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
    shift = len(names) - len(label.names)  # 1 where "" was put before the others
    codes = np.maximum(label.codes + shift, 0)  # a missing label, −1, is "" too
    return pd.Categorical.from_codes(codes, pd.Index(names))


def brought_ratings(ratings: Any, judge: Names, human: Names) -> tuple[Any, Names, Names]:
    """Return a frame as it is, else what `read_ratings` reads; and what the columns of scores are called there."""
    if ratings is None or is_frame(ratings):
        return ratings, judge, human
    # The readers of ratings stand on this module.
    from ragnb.calibration.labels import read_ratings

    named: dict[str, Any] = {"judge": judge, "human": human}
    # Under their usual names `read_ratings` looks for columns itself, by all the names that files give them.
    frame = read_ratings(ratings, **{role: name for role, name in named.items() if name != role})
    # It renames a single column to its role.
    named |= {
        role: role
        for role, name in named.items()
        if isinstance(name, str) and name not in frame.columns
    }
    return frame, named["judge"], named["human"]


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
        # human1, human2, … as far as they go; of nobody, as for rows that a judge alone scored, there are none.
        numbered = (f"{name}{k}" for name in people for k in itertools.count(1))
        raters = list(itertools.takewhile(columns.__contains__, numbered))
    if len(raters) == 1:
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
    if_there = {*kept, *as_list(asked.cluster)}
    # Rows that a judge alone scored are nobody's labels, and need no chance of having been drawn.
    if as_list(asked.human):
        if_there.add(PROBABILITY)
    if sides.is_long:
        if_there |= {asked.rater, asked.item}
    # A column may be asked for twice, as a group and as the cluster.
    used = [*dict.fromkeys([*wanted, *(name for name in columns if name in if_there)])]
    if isinstance(frame, pd.DataFrame):
        return frame[used]
    part = opened(frame).select(*used)
    needs_single_rows = asked.whole or sides.is_long or PROBABILITY in used
    if not needs_single_rows:
        part = swift(part).group_by(*used).agg(nw.len().alias(_COUNT))
    return as_pandas(collected(part).to_native())


def _checked(
    frame: Any, judge: str, asked: Asked, needs: Sequence[str] = (), where: str = ""
) -> tuple[pd.DataFrame, dict[str, Array]]:
    """Return a frame's rows with their scores in their scale and their weights; and the scores by column."""
    columns = columns_of(frame)
    sides = _sides_of(columns, asked)
    by = as_list(asked.by)
    named = [name for name in (*by, *as_list(asked.cluster)) if name not in USUAL]
    wanted = [judge, *sides.human, *sides.raters, *named, *needs]
    for name in wanted:
        if name not in columns:
            raise RagnbError(
                f"{where}column={name!r} does not exist; {did_you_mean(name, columns)}"
            )
    kept = ["system", *by, *asked.groups]
    if asked.whole:
        kept = [asked.item, *kept]
    table = _table_of(frame, wanted, kept, sides, asked)
    human = sides.human
    raters = sides.raters
    if sides.is_long:
        table = side_by_side(table, judge, human[0], asked)
        human = []
        raters = [name for name in table.columns if str(name).startswith("__rater")]
    scores = {name: numbers(table, name, where) for name in (judge, *human, *raters)}
    scores = settled(
        scores, asked.scale, asked.missing, lambda at: f"{where}row {table.index[at]!r}: "
    )
    # The caller's columns are prefixed: one may be called count or weight, as ours are.
    kept_there = [name for name in dict.fromkeys(kept) if name in table]
    rows = table[kept_there].add_prefix(":").reset_index(drop=True)
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
    if human:
        rows["human"] = scores[human[0]]
    else:
        # Where there are no raters either, as of rows that a judge alone scored, the mean of no column is nan.
        rows["human"] = grid.mean(axis=1).to_numpy(dtype=float)
    if _COUNT in table:
        rows["count"] = table[_COUNT].to_numpy(dtype=float)
    else:
        rows["count"] = 1.0
    has_both = rows[["judge", "human"]].notna().all(axis=1).to_numpy()
    rows["weight"] = _sampling_weights(table, has_both, where)
    return rows.join(grid), scores


def side_by_side(table: pd.DataFrame, judge: str, human: str, asked: Asked) -> pd.DataFrame:
    """Return one row per item, its raters in columns ``__rater0`` …"""
    need_columns(
        table.columns,
        [asked.item],
        f"It says which rows of column {asked.rater!r} belong to one item.",
    )
    score = numbers(table, human)
    # A row without a rater is an item that nobody rated; a score on it would be nobody's.
    rated = table[asked.rater].notna().to_numpy()
    by_nobody = ~rated & ~np.isnan(without_marks(score, asked.missing))
    if by_nobody.any():
        raise RagnbError(
            f"column {asked.rater!r} is empty in row {table.index[int(np.argmax(by_nobody))]!r}"
        )
    keys = [asked.item, "system", *as_list(asked.by), asked.cluster]
    same = [name for name in keys if name in table.columns]
    item = table.groupby(same, sort=False, dropna=False).ngroup().to_numpy()
    given = pd.Series(score[rated], [item[rated], table.loc[rated, asked.rater]], dtype=float)
    # `unstack` below needs one score for each item and rater.
    if given.index.has_duplicates:
        row = table[rated].iloc[int(np.argmax(given.index.duplicated()))]
        raise RagnbError(
            f"rater {row[asked.rater]!r} rated item {row[asked.item]} twice; keep one rating per item, "
            "dimension and rater"
        )
    same_for_all_raters = [name for name in (judge, PROBABILITY) if name in table.columns]
    for column in same_for_all_raters:
        scores = pd.Series(table[column].to_numpy(dtype=float, na_value=np.nan)).groupby(item)
        differs = scores.max() - scores.min() > SLACK
        if differs.any():
            name = table[asked.item].iloc[int(np.argmax(item == differs.idxmax()))]
            raise RagnbError(
                f"item {name} has several scores in column {column!r}; give one score per item"
            )
    # Numbers of items are given in order of appearance, in which `drop_duplicates` leaves the items, too.
    n_items = int(item.max(initial=-1)) + 1
    grid = given.unstack().reindex(range(n_items))
    grid = grid.set_axis([f"__rater{k}" for k in range(grid.shape[1])], axis=1)
    items = table.drop_duplicates(same).drop(columns=human).reset_index(drop=True)
    return items.join(grid)


def _sampling_weights(table: pd.DataFrame, rated: npt.NDArray[np.bool_], where: str) -> Array:
    """Return 1 / inclusion probability of the rated rows; 1 for other rows and where none is recorded."""
    if PROBABILITY not in table.columns:
        return np.ones(len(table))
    chance = numbers(table, PROBABILITY, where)
    # Written so that a missing chance, nan, is wrong, too.
    wrong = rated & ~((chance > 0) & (chance <= 1))
    if wrong.any():
        first = int(np.argmax(wrong))
        row = table.index[first]
        value = chance[first]
        raise RagnbError(
            f"{where}column {PROBABILITY!r}, row {row!r}: {value:g} is not in (0, 1]; give every labelled row the "
            "chance with which it was drawn, or leave the column out"
        )
    return 1 / np.where(rated, chance, 1.0)


def with_ends(found: Estimate, name: str = "value", ends: str = "") -> dict[str, float]:
    """Return an estimate as the columns ``name, low, high``, the ends under their prefix.

    Examples
    --------
    >>> with_ends(Estimate(0.5, 0.4, 0.6, 0.05, 100, 100), "bias", "bias_")
    {'bias': 0.5, 'bias_low': 0.4, 'bias_high': 0.6}
    """
    return {name: found.value, f"{ends}low": found.low, f"{ends}high": found.high}


def refuse_twice(table: pd.DataFrame, item: str) -> None:
    """Refuse an item that appears twice."""
    keys = table.filter(regex="^:").rename(columns=lambda name: name[1:])
    further = table["further"]
    again = keys.assign(further=further).duplicated()
    # As text: an id may be a number in one of the two tables and a word in the other.
    in_both = keys.astype(str).duplicated() & further
    # Without a column of items, rows that look alike may be of different items.
    if item not in keys:
        return
    if again.any():
        first = keys[again][:1].to_dict("records")[0]
        raise RagnbError(
            f"{first} appears twice; give one row per item, or a column 'rater' that distinguishes them"
        )
    if in_both.any():
        first = keys[in_both][:1].to_dict("records")[0]
        raise RagnbError(
            f"{int(in_both.sum())} rows of judged are in ratings too, the first {first}: they would count "
            "twice; keep only unlabelled rows in judged"
        )
