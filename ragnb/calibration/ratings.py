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
from ragnb.errors import RagnbError, did_you_mean, listing, need_columns, not_a_frame
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
    for role, names in (("judge", judge), ("human", asked.human)):
        if not as_list(names):
            raise RagnbError(
                f"{role}={names!r} names no column of scores; name one: {role}='{role}'"
            )
    blocks = []
    for name in as_list(judge):
        table, opened_as = open_ratings(ratings, name, asked, judged)
        by = [f":{column}" for column in as_list(asked.by) if f":{column}" in table]
        if not asked.whole:
            _refuse_ungrouped(table, by)
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


def _refuse_ungrouped(table: pd.DataFrame, by: Sequence[str]) -> None:
    """Refuse rows of `judged` that no card would count: without a dimension, or all of dimensions nobody rated."""
    rated = table[~table["further"]]
    further = table[table["further"]]
    for column in by:
        name = column[1:]
        groups = [str(group) for group in rated[column].unique()]
        counts = further.groupby(column, observed=True)["count"].sum()
        n_rows = int(counts.sum())
        # A judge may score more dimensions than people rate, so some rows of others are nothing to refuse.
        unrated = counts[~counts.index.isin(groups)]
        if "" in unrated.index:
            raise RagnbError(
                f"judged: column {name!r} is empty in {int(unrated[''])} of {n_rows} rows; fill it in, as in the "
                f"ratings ({listing(groups)})"
            )
        if n_rows and int(unrated.sum()) == n_rows:
            raise RagnbError(
                f"judged: column {name!r} of its {n_rows} rows says {listing(unrated.index)}, the ratings say "
                f"{listing(groups)}; write both alike, or leave judged out"
            )


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
        For ratings without a row, columns that are not there, text among the scores, infinite values, values
        outside the scale, an undeclared −1, a rater who rated an item twice, and a tolerance as wide as the scale.

    Examples
    --------
    >>> frame = pd.DataFrame({"judge": [4, 2], "human": [5, 2], "cluster": ["a", "b"]})
    >>> open_ratings(frame, "judge", Asked())[1].scale
    (2.0, 5.0)
    """
    rated, scores = _checked(frame, judge, asked)
    if rated.empty:
        raise RagnbError(
            "the ratings have no rows; give a row for each item, with a human score and the judge's; if rows were "
            "filtered, check the filter"
        )
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
        needs = _needs_of_judged(rated, asked)
        more, _ = _checked(judged, judge, replace(asked, human=()), needs, "judged: ")
        for name in as_list(asked.by):
            if f":{name}" in more and f":{name}" not in rated:
                raise RagnbError(
                    f"column {name!r} is in judged and not in the ratings; add it to the ratings, or, where all "
                    "rows of judged are of what people rated, leave it out of judged"
                )
        if asked.whole:
            _refuse_in_both(_unprefixed(rated), _unprefixed(more), asked.item)
        else:
            _refuse_in_both(_keys_of(frame, asked), _keys_of(judged, asked), asked.item)
        parts.append(more.assign(further=True))
    by = [] if asked.whole else [f":{name}" for name in as_list(asked.by)]
    # Only `dimension` may be missing (see `USUAL`); one label then stands for all rows.
    parts = [part.assign(**{name: ALL for name in by if name not in part}) for part in parts]
    table = pd.concat(parts, ignore_index=True)
    table["cluster"] = _cluster_codes(table)
    if asked.whole:
        for column in as_list(asked.by):
            if f":{column}" in table:
                table[f":{column}"] = _one_spelling(table[f":{column}"])
        _refuse_twice(table, asked.item)
    else:
        table = counted(_with_labels(table, by))
    if asked.delta is None:
        delta = (high - low) / 18  # half a point on 1–10
    else:
        delta = asked.delta
    return table, replace(asked, scale=(low, high), delta=delta)


def _needs_of_judged(rated: pd.DataFrame, asked: Asked) -> list[str]:
    """Return the columns of checked ratings without which rows of `judged` would belong to none of them."""
    there = [str(name)[1:] for name in rated if str(name)[0] == ":"]
    if asked.whole:
        # Whole rows are matched by item, dimension and system.
        needs = there
    else:
        needs = [name for name in as_list(asked.by) if name in there]
        # Of several systems each has a corrected mean of its own.
        if "system" in there and rated[":system"].nunique() > 1:
            needs.append("system")
    if "cluster" in rated:
        needs += as_list(asked.cluster)
    return needs


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
            columns[str(name)] = text_labels(column)
    return table.assign(**columns)


def counted(table: pd.DataFrame) -> pd.DataFrame:
    """Return the distinct rows of a table with the number of ratings that each represents."""
    rows = table.groupby(
        list(table.columns.drop("count")), sort=False, dropna=False, observed=True
    )["count"]
    return rows.sum().reset_index()[list(table)]


def text_labels(column: pd.Series) -> Any:
    """Return labels as text in the order of code points, after "", which means none."""
    label = coded(column)
    if label.names[:1] == ("",):
        names = label.names
    else:
        names = ("", *label.names)
    shift = len(names) - len(label.names)  # 1 where "" was put before the others
    codes = np.maximum(label.codes + shift, 0)  # a missing label, −1, is "" too
    return pd.Categorical.from_codes(codes, pd.Index(names))


class Brought(NamedTuple):
    """Ratings as a frame, and what the columns of scores are called there."""

    ratings: Any
    judge: Names
    human: Names


def brought_ratings(
    ratings: Any,
    judge: Names,
    human: Names,
    *,
    missing: Missing = None,
    scale: Any = None,
    rater: str = "rater",
    named: Iterable[str] = (),
) -> Brought:
    """Return a frame as it is, else what `read_ratings` reads, with the columns that the caller named.

    `named` are those of groups, clusters and items: `read_ratings` gives many columns names of its own.
    """
    if ratings is None or is_frame(ratings):
        return Brought(ratings, judge, human)
    # The readers of ratings stand on this module.
    from ragnb.calibration.labels import read_ratings

    # Under their usual names `read_ratings` looks for columns itself, by all the names that files give them.
    roles = {"judge": judge, "human": human}
    picks: dict[str, Any] = {role: name for role, name in roles.items() if name != role}
    frame = read_ratings(ratings, missing=missing, scale=scale, **picks)
    frame = _under_names(frame, [rater, *named])
    if "rater" in frame and rater not in frame and _were_columns(frame["rater"], human):
        frame = frame.assign(**{rater: frame["rater"]})
    frame, judge = _with_judges_named(frame, judge)
    # A single column of people was renamed, and several became the rows of raters.
    return Brought(frame, judge, "human")


def _were_columns(raters: pd.Series, human: Names) -> bool:
    """Whether raters who have a row each now had a column each in the file: the caller's, or human1, human2, …"""
    from ragnb.calibration.rating_table import NUMBERED  # which stands on this module

    names = raters.dropna().astype(str)
    return all(name in as_list(human) or NUMBERED.fullmatch(name) for name in names.unique())


def brought_judged(
    judged: Any,
    judge: Names,
    called: Names,
    *,
    missing: Missing = None,
    scale: Any = None,
    named: Iterable[str] = (),
) -> Any:
    """Return further rows of a judge as a frame; `called` is what its columns are called in the ratings."""
    if judged is None or is_frame(judged):
        return judged
    from ragnb.calibration.labels import read_judged

    picked = None if judge == "judge" else judge
    frame = read_judged(judged, judge=picked, missing=missing, scale=scale)
    frame = _under_names(frame, named)
    frame, read_as = _with_judges_named(frame, judge)
    # The column of a single judge was renamed; in ratings that came as a frame it was not.
    pairs = zip(as_list(called), as_list(read_as), strict=True)
    return frame.rename(columns={name: wanted for wanted, name in pairs})


def _under_names(frame: pd.DataFrame, named: Iterable[str]) -> pd.DataFrame:
    """Return what a reader made of a file, with the columns that it renamed also under the names that they had."""
    now_called = {
        row["column"]: row["detail"] for row in frame.attrs["lossy"] if row["what"] == "mapped"
    }
    renamed = {name: now_called.get(name) for name in named if name not in frame}
    # Copied, not renamed: the layout of raters is read by the usual names.
    return frame.assign(**{name: frame[now] for name, now in renamed.items() if now in frame})


def _with_judges_named(frame: pd.DataFrame, judge: Names) -> tuple[pd.DataFrame, Names]:
    """Return what a reader made of a file, and its columns of judges: a single one was renamed ``judge``."""
    names = as_list(judge)
    if len(names) > 1:
        # Judges that were raters in rows have columns ``judge_<name>`` now.
        return frame.rename(
            columns={f"judge_{name}": name for name in names if name not in frame}
        ), judge
    if names and names[0] not in frame:
        return frame, "judge"
    return frame, judge


def columns_of(frame: Any) -> list[str]:
    """Return the columns of a frame of any engine; anything else, such as a path, raises RagnbError."""
    try:
        return column_names(frame)
    except RagnbError:
        raise not_a_frame(frame, "rn.read_ratings") from None


class Sides(NamedTuple):
    """The columns of people: of one score a row, of a column for each rater, or of a row for each rater."""

    human: Sequence[str]
    raters: Sequence[str]
    is_long: bool


def sides_of(columns: Sequence[str], asked: Asked) -> Sides:
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
    return Sides(human, raters, is_long)


def _table_of(
    frame: Any, wanted: Sequence[str], kept: Sequence[str], sides: Sides, asked: Asked
) -> pd.DataFrame:
    """Return the columns of a frame that are looked at; equal rows of a query are counted where they are."""
    columns = columns_of(frame)
    if_there = {*kept, *as_list(asked.cluster)}
    # Rows that a judge alone scored are nobody's labels, and need no chance of having been drawn.
    if as_list(asked.human):
        if_there.add(PROBABILITY)
    if sides.is_long:
        if_there |= {asked.rater, asked.item, "dimension"}
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
    sides = sides_of(columns, asked)
    by = as_list(asked.by)
    named = [name for name in (*by, *as_list(asked.cluster)) if name not in USUAL]
    wanted = [judge, *sides.human, *sides.raters, *named, *needs]
    for name in (*wanted, *_named_of_people(sides, asked)):
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


def _named_of_people(sides: Sides, asked: Asked) -> list[str]:
    """Return the columns of raters and of items that the caller named; the usual ones need not be there.

    Without the column of raters each of their ratings would count as an item, and without that of items nothing
    would be found twice.
    """
    named = []
    # Rows that a judge alone scored have no raters, and raters with a column each need none that names them.
    if as_list(asked.human) and not sides.raters:
        named.append(asked.rater)
    if as_list(asked.human):
        named.append(asked.item)
    usual = (Asked.rater, Asked.item)
    return [name for name in named if name not in usual]


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
    # A rater scores an item once on each dimension, also where `by` does not part them.
    keys = [asked.item, "system", "dimension", *as_list(asked.by), asked.cluster]
    same = [name for name in dict.fromkeys(keys) if name in table.columns]
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


def _refuse_twice(table: pd.DataFrame, item: str) -> None:
    """Refuse an item that one of the two tables holds twice."""
    keys = _unprefixed(table)
    # Without a column of items, rows that look alike may be of different items.
    if item not in keys:
        return
    again = keys.assign(further=table["further"]).duplicated()
    if again.any():
        first = keys[again][:1].to_dict("records")[0]
        raise RagnbError(
            f"{first} appears twice; give one row per item, or a column 'rater' that distinguishes them"
        )


def _refuse_in_both(rated: pd.DataFrame, further: pd.DataFrame, item: str) -> None:
    """Refuse rows of `judged` that are in the ratings, too, by the keys that both have."""
    names = [name for name in rated if name in further]
    if item not in names:
        return
    n_rated = len(rated)
    codes = {}
    for name in names:
        column = pd.concat([rated[name], further[name]], ignore_index=True)
        # As text: an id may be a number in one of the two tables and a word in the other.
        codes[name] = text_labels(column).codes
    keys = pd.MultiIndex.from_frame(pd.DataFrame(codes))
    # An empty cell names no item.
    has_item = further[item].notna().to_numpy()
    in_both = keys[n_rated:].isin(keys[:n_rated]) & has_item
    if in_both.any():
        first = further.loc[in_both, names][:1].to_dict("records")[0]
        raise RagnbError(
            f"{int(in_both.sum())} rows of judged are in ratings too, the first {first}: they would count "
            "twice; keep only unlabelled rows in judged"
        )


def _keys_of(frame: Any, asked: Asked) -> pd.DataFrame:
    """Return the columns of a frame of any engine that say which item, of which group, a row is about."""
    columns = columns_of(frame)
    names = dict.fromkeys([asked.item, "system", *as_list(asked.by), "dimension"])
    there = [name for name in names if name in columns]
    # Without items nothing can be matched, and no row needs to be brought from an engine.
    if asked.item not in there:
        return pd.DataFrame()
    if isinstance(frame, pd.DataFrame):
        return frame[there]
    return as_pandas(collected(opened(frame).select(*there)).to_native())


def _unprefixed(table: pd.DataFrame) -> pd.DataFrame:
    """Return the caller's columns of a checked table under the caller's names (see `_checked`)."""
    return table.filter(regex="^:").rename(columns=lambda name: name[1:])


def _one_spelling(column: pd.Series) -> pd.Series:
    """Return labels that a card takes for one, such as 1 and "1", as the first of them; gaps stay."""
    if pd.api.types.is_numeric_dtype(column):
        return column
    codes = text_labels(column).codes
    cells = column.astype(object)
    labels, firsts = np.unique(codes, return_index=True)
    first_spelling = cells.iloc[firsts].to_numpy()[np.searchsorted(labels, codes)]
    is_label = codes > 0  # 0 is "", which a gap is, too
    return cells.where(~is_label, pd.Series(first_spelling, column.index, dtype=object))
