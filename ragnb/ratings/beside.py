"""People's scores in one table, the judge's in another: joined by item, dimension and system."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ragnb.errors import RagnbError, did_you_mean, listing, not_a_frame, place
from ragnb.ratings.tables import CHANCE, FIRST, KEYS, Table, finished, humans_of, judges_of, tidy
from ragnb.schema import CASE_COLUMNS, Rubric

_NO_SCORES = {*FIRST, *CASE_COLUMNS, "score", "rater_kind", "repeat", "n_raters", CHANCE}


def beside(people: Table, judged: Table) -> pd.DataFrame:
    """Return people's scores with the judge's of another table; items that nobody rated are left out.

    Either table may hold one column a dimension.

    Raises
    ------
    RagnbError
        Where the tables share no dimension, or the judge's holds an item more than once.
    """
    dimensions = _dimensions(people, judged)
    left = _melted(people, dimensions, "human") if is_sheet(people) else tidy(people)
    right = _melted(judged, dimensions, "judge") if is_sheet(judged) else tidy(judged)
    people.report.add("left_out", "human", "cells that nobody filled in", int(left["human"].isna().sum()))
    left = left[left["human"].notna()]
    keys = [key for key in KEYS if key in left and key in right]
    again = right.duplicated(keys)
    if "item_id" not in keys or again.any():
        twice = f"item {right.loc[again, 'item_id'].iloc[0]!r} stands there more than once" if again.any() else ""
        raise RagnbError(
            f"{place(judged.raw.file)}scores are joined by {listing(keys)}; {twice or 'that names no item'}; both "
            f"tables need the columns that tell items apart (columns: {listing(judged.raw.columns)}; "
            f"{people.raw.file}: {listing(people.raw.columns)})"
        )
    if "judge" in left:
        people.report.add("left_out", "judge", "the scores of the judge's own table are taken", len(left))
    judges = [str(c) for c in right if c == "judge" or str(c).startswith("judge_")]
    more = [c for c in right if c not in left and c not in ("human", "rater")]
    about = right[list(dict.fromkeys([*keys, *judges, *more]))]
    out = left.drop(columns=judges, errors="ignore").merge(about, on=keys, how="left", indicator="judged")
    alone = int((out.pop("judged") == "left_only").sum())
    if len(out) and alone == len(out):
        raise RagnbError(
            f"{place(people.raw.file)}no item in it is in {judged.raw.file}, by {listing(keys)}; items there are "
            f"such as {listing(right['item_id'].unique(), 3)}, here {listing(left['item_id'].unique(), 3)}"
        )
    people.report.add("kept", "judge", "ratings of items that the judge did not score", alone)
    rated = pd.MultiIndex.from_frame(right[keys]).isin(pd.MultiIndex.from_frame(left[keys]))
    judged.report.add("left_out", "judge", "scores of items that nobody rated", int((~rated).sum()))
    return finished(out, people)


def unrated(judged: pd.DataFrame, ratings: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a judge's table that nobody rated: what a corrected mean takes beside the ratings.

    Parameters
    ----------
    judged, ratings : DataFrame
        As `read_judged` and `read_ratings` return them; matched by item (where the labels were drawn, by the
        ``sample_id`` that they were drawn from), dimension and system.

    Examples
    --------
    >>> judged = pd.DataFrame({"item_id": ["a", "b"], "judge": [9.0, 5.0]})
    >>> unrated(judged, pd.DataFrame({"item_id": ["a"], "human": [8.0]}))["item_id"].tolist()
    ['b']
    """
    for frame, reader in ((judged, "ragnb.ratings.read_judged"), (ratings, "rn.read_ratings")):
        if not isinstance(frame, pd.DataFrame):
            raise not_a_frame(frame, reader)
    own_ids = "item_id" in ratings and "item_id" in judged and not judged["item_id"].isin(ratings["item_id"]).any()
    if own_ids and "sample_id" in ratings and "sample_id" not in judged:  # of drawn labels
        ratings = ratings.assign(item_id=ratings["sample_id"])
    keys = [key for key in KEYS if key in judged and key in ratings]
    rated = pd.MultiIndex.from_frame(ratings.loc[ratings["human"].notna(), keys])
    return judged[~pd.MultiIndex.from_frame(judged[keys]).isin(rated)].reset_index(drop=True)


def sheet(judged: Table, dimensions: Sequence[str] | None) -> pd.DataFrame:
    """Return a judge's table with one column a dimension as one row a dimension."""
    columns = list(judged.raw.columns)
    wanted = [d.name for d in Rubric().dimensions if d.name in columns] if dimensions is None else list(dimensions)
    absent = [name for name in wanted if name not in columns]
    if absent or not wanted:
        said = f"dimension {absent[0]!r} is no column" if absent else "holds no score of a judge"
        raise RagnbError(
            f"{place(judged.raw.file)}{said}; {did_you_mean(absent[0] if absent else 'judge', columns)}. Name the "
            "column of its scores (judge), or the columns that are dimensions (dimensions)"
        )
    return finished(_melted(judged, wanted, "judge"), judged)


def is_sheet(table: Table) -> bool:
    """Whether a table has no column of scores by name, so that its dimensions are its columns."""
    return not {"score", "judge", "human"} & set(table.raw.columns) and not humans_of(table) + judges_of(table)


def _dimensions(people: Table, judged: Table) -> list[str]:
    """Return the columns of sheets that are dimensions: those that the other table knows, too."""
    sheets = [table for table in (people, judged) if is_sheet(table)]
    if not sheets:
        return []
    shared = set.intersection(*(set(table.raw.columns) for table in sheets)) - _NO_SCORES
    if len(sheets) == 1:
        (other,) = (table for table in (people, judged) if table not in sheets)
        shared &= set(other.raw.columns.get("dimension", []))
    found = [n for n in sheets[-1].raw.columns if n in shared and "__" not in n and sheets[-1].is_number(n)]
    if not found:
        raise RagnbError(
            f"{place(people.raw.file)}no dimension is in both tables (columns: {listing(people.raw.columns)}; "
            f"{judged.raw.file}: {listing(judged.raw.columns)}); give them the same names, or say which columns "
            "hold the scores: human='…', judge='…'"
        )
    return found


def _melted(table: Table, dimensions: list[str], name: str) -> pd.DataFrame:
    """Turn one column a dimension into one row a dimension, the dimensions of an item beside each other."""
    frame = table.frame(dimensions)
    table.report.add("mapped", listing(dimensions), f"{name}, a row a dimension", len(frame))
    rest = [c for c in frame if c not in dimensions]
    return frame.melt(rest, dimensions, var_name="dimension", value_name=name, ignore_index=False).sort_index(
        kind="stable", ignore_index=True
    )
