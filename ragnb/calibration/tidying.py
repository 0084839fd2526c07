"""Ratings of any layout as one row per item, dimension and rater, joined with scores of a judge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.calibration.rating_table import FIRST, KEYS, PATTERNS, Table, judge_columns
from ragnb.calibration.ratings import PROBABILITY
from ragnb.errors import RagnbError, listing
from ragnb.readers.raw import Lossy
from ragnb.readers.reading import Reading
from ragnb.schema import CASE_COLUMNS

_NO_SCORES = {*FIRST, *CASE_COLUMNS, "score", "rater_kind", "repeat", "n_raters", PROBABILITY}


def tidy(table: Table, dimensions: Sequence[str] = ()) -> pd.DataFrame:
    """Return one row per item, dimension and rater, of a sheet with `dimensions`, a long table or a wide one."""
    humans = table.human_columns
    judges = table.judge_columns
    report = table.report
    if table.is_sheet and dimensions:
        frame = table.frame(list(dimensions))
        report.add("mapped", listing(dimensions), f"{table.side}, a row a dimension", len(frame))
        return _melted(frame, dimensions, "dimension", table.side)
    if "score" in table.raw.columns and not humans:
        return _long(table, judges)
    frame = table.frame([*judges, *humans])
    if len(judges) == 1 and judges != ["judge"]:
        report.add("mapped", judges[0], "judge", len(frame))
        frame = frame.rename(columns={judges[0]: "judge"})
    if "item_id" not in frame:
        frame.insert(0, "item_id", [str(i + 1) for i in range(len(frame))])
        report.add("made", "item_id", "position of the row", len(frame))
    if humans in ([], ["human"]):
        return frame
    if "human" in frame:
        detail = f"the raters' own scores are taken: {listing(humans)}"
        report.add("left_out", "human", detail, len(frame))
    # Melting makes columns of these names, unless one of them is a rater's.
    in_the_way = {"human", "rater"}.difference(humans) & {*frame}
    long = _melted(frame.drop(columns=in_the_way), humans, "rater", "human")
    rated = long["human"].notna()
    # `_melted` leaves the raters of an item side by side.
    item = np.arange(len(long)) // len(humans)
    is_unrated_item = ~rated.groupby(item).transform("any")
    is_first_of_item = ~pd.Series(item).duplicated()
    long["rater"] = long["rater"].astype(object).where(rated, None)
    return long[rated | (is_unrated_item & is_first_of_item)]  # an unrated item stays, as one row


def _melted(frame: pd.DataFrame, columns: Sequence[str], name: str, value: str) -> pd.DataFrame:
    """Melt one column per `name` into one row per `name`, grouped by item."""
    rest = [column for column in frame if column not in columns]
    # The index, by which rows are sorted, is each item's; it would be lost without `ignore_index=False`.
    rows = frame.melt(rest, list(columns), var_name=name, value_name=value, ignore_index=False)
    return rows.sort_index(kind="stable", ignore_index=True)


def _long(table: Table, judges: list[str]) -> pd.DataFrame:
    """Split the rows of judges from those of humans, and join them."""
    raw = table.raw
    if "item_id" not in raw.columns:
        raise RagnbError(
            f"{raw.where()}has one score per row (columns {listing(raw.columns)}) and no item id; "
            "name the column: columns={'…': 'item_id'}"
        )
    kinds = raw.columns.pop("rater_kind", None)
    raters_are_named = any(name is not None for name in raw.cells("rater"))
    # Where something says whose each score is, judges are told apart below; the rest are of people.
    if kinds is not None or table.humans or table.judges or raters_are_named:
        side = "human"
    else:
        side = table.side
    if not side:
        # The column as the file calls it, which the report of renamed columns knows.
        was = next((r["column"] for r in table.report.rows if r["detail"] == "score"), "score")
        raise RagnbError(
            f"{raw.where()}column {was!r} does not say who gave the scores; automatic ones look the same; "
            f"if annotators gave them, set human={was!r}, or add a column that names the rater: "
            "columns={'…': 'rater'}; if a judge did, read the table of human ratings with this one as judged="
        )
    frame = table.frame([*judges, "score"]).rename(columns={"score": side})
    if side == "judge" or judges:
        return frame
    raters = frame.get("rater", pd.Series(None, frame.index, dtype=object))
    frame["rater"] = raters
    is_named_human = raters.isin(table.humans)
    if kinds is not None:
        is_judge = pd.Series(kinds, frame.index) == "judge"
    elif table.judges:
        is_judge = raters.isin(table.judges)
    else:
        looks_like_judge = PATTERNS["judge_rater"].fullmatch
        is_judge = raters.map(lambda name: bool(looks_like_judge(str(name)))).astype(bool)
        is_judge &= ~is_named_human  # whatever the name
    if table.humans:
        people = frame[~is_judge & is_named_human]
    else:
        people = frame[~is_judge]
    if is_judge.any():
        return _with_judges(people, frame[is_judge], table.report)
    return people


def _with_judges(people: pd.DataFrame, judged: pd.DataFrame, report: Lossy) -> pd.DataFrame:
    """Join the rows of judges to those of humans; items scored only by a judge follow, unrated."""
    keys = [key for key in KEYS if key in people]
    names = judged["rater"].fillna("judge")
    report.add("mapped", "rater", f"judges: {listing(names.unique())}", len(judged))
    again = int(judged[keys].assign(rater=names).duplicated().sum())
    report.add("mapped", "judge", "several scores of one judge on an item are averaged", again)
    columns: str | list[str] = "judge"
    if names.nunique() > 1:
        columns = [name if name.startswith("judge") else f"judge_{name}" for name in names]
    # All scores of a long table are in one column, also those of judges; so far it is called `human`.
    by_judge = judged.assign(judge=columns).groupby([*keys, "judge"], dropna=False, sort=False)
    means = by_judge["human"].mean().unstack("judge").reset_index().rename_axis(columns=None)
    # What belongs to a score rather than to its item goes; the item's own columns stay.
    of_score = ["human", "rater", "comment", "timestamp"]
    items = judged.drop(columns=of_score, errors="ignore").drop_duplicates(keys)
    unrated = items[~about_the_same(items, people, keys)]
    return pd.concat([people, unrated], ignore_index=True).merge(means, on=keys, how="left")


def about_the_same(
    rows: pd.DataFrame, others: pd.DataFrame, keys: list[str]
) -> npt.NDArray[np.bool_]:
    """Return which rows are about what one of the others is about."""
    return pd.MultiIndex.from_frame(rows[keys]).isin(pd.MultiIndex.from_frame(others[keys]))


def finish(frame: pd.DataFrame, table: Table) -> Reading:
    """Order the columns, use documents as clusters, and refuse two scores by one rater on one item."""
    if "rater" in frame and frame["rater"].nunique() < 2:
        frame = frame.drop(columns="rater")
    if "cluster" not in frame and "doc_name" in frame:
        frame = frame.assign(cluster=frame["doc_name"])
        table.report.add("made", "cluster", "doc_name", len(frame))
    keys = [key for key in (*KEYS, "rater") if key in frame]
    for row in frame[frame.duplicated(keys, keep=False)][:1].to_dict("records"):
        place_of = ", ".join(f"{key} {row[key]!r}" for key in keys)
        raise RagnbError(
            f"{table.raw.where()}{place_of} appears more than once; a row is one rater's score of one item: keep "
            "one of them, or name the column that distinguishes them, such as columns={'…': 'rater'}"
        )
    before_judge, after_judge = FIRST[:2], FIRST[3:]  # there may be several judges
    order = (*before_judge, *judge_columns(frame), *after_judge)
    first = [name for name in order if name in frame]
    others = [name for name in frame if name not in first]
    frame = frame[[*first, *others]].reset_index(drop=True)
    return Reading(frame, table.origin | {"rows": len(frame)}, table.report.rows)


def joined(people: Table, judged: Table) -> pd.DataFrame:
    """Return human scores with the judge's from another table; unrated items are excluded.

    Either table may hold one column per dimension.

    Raises
    ------
    RagnbError
        Where the tables share no dimension, or the judge's holds an item more than once.
    """
    dimensions = _dimensions(people, judged)
    report = people.report
    left = tidy(people, dimensions)
    right = tidy(judged, dimensions)
    report.add("left_out", "human", "cells that nobody filled in", int(left["human"].isna().sum()))
    left = left[left["human"].notna()]
    keys = [key for key in KEYS if key in left and key in right]
    again = right.duplicated(keys)
    if "item_id" not in keys or again.any():
        if again.any():
            fault = f"item {right.loc[again, 'item_id'].iloc[0]!r} appears more than once"
        else:
            fault = "that names no item"
        raise RagnbError(
            f"{judged.raw.where()}scores are joined by {listing(keys)}; {fault}; both "
            f"tables need the columns that identify an item (columns: {listing(judged.raw.columns)}; "
            f"{people.raw.file}: {listing(people.raw.columns)})"
        )
    if "judge" in left:
        report.add("left_out", "judge", "the scores of the judge's own table are taken", len(left))
    judges = judge_columns(right)
    left = left.drop(columns=judges, errors="ignore")
    # The rest of what the judge's table says of an item comes along, where the people's does not say it.
    taken = [name for name in right if name in keys or name not in (*left, "human", "rater")]
    is_unjudged = ~about_the_same(left, right, keys)
    is_unrated = ~about_the_same(right, left, keys)
    if len(left) and is_unjudged.all():
        raise RagnbError(
            f"{people.raw.where()}no item in it is in {judged.raw.file}, by {listing(keys)}; items there "
            f"look like {listing(right['item_id'].unique(), 3)}, here {listing(left['item_id'].unique(), 3)}"
        )
    n_unjudged = int(is_unjudged.sum())
    report.add("kept", "judge", "ratings of items that the judge did not score", n_unjudged)
    report.rows += judged.report.rows
    report.add("left_out", "judge", "scores of items that nobody rated", int(is_unrated.sum()))
    report.expect(judged.report.lines, judged.report.damaged)
    people.origin |= {"judged": judged.origin, "lines": report.lines, "damaged": report.damaged}
    return left.merge(right[taken], on=keys, how="left")


def _dimensions(people: Table, judged: Table) -> list[str]:
    """Return the columns of sheets that are dimensions: those that the other table knows, too."""
    sheets = [table for table in (people, judged) if table.is_sheet]
    if not sheets:
        return []
    shared = set.intersection(*(set(table.raw.columns) for table in sheets)) - _NO_SCORES
    if len(sheets) == 1:
        # The other table has a row a dimension, and its cells say which there are.
        (other,) = (table for table in (people, judged) if table not in sheets)
        shared &= set(other.raw.columns.get("dimension", []))
    # Of two sheets the judge's decides: of a column that nobody has filled in yet `is_number` says no.
    sheet = sheets[-1]
    found = [
        name
        for name in sheet.raw.columns
        if name in shared and "__" not in name and sheet.is_number(name)
    ]
    if not found:
        raise RagnbError(
            f"{people.raw.where()}no dimension is in both tables (columns: {listing(people.raw.columns)}; "
            f"{judged.raw.file}: {listing(judged.raw.columns)}); give them the same names, or say which columns "
            "hold the scores: human='…', judge='…'"
        )
    return found
