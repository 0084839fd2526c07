"""Who gave which score: wide and long tables become one row an item, dimension and rater."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, listing, place
from ragnb.readers.lossy import Lossy
from ragnb.readers.numbers import metric_values, other_values
from ragnb.readers.raw import Raw, settle
from ragnb.schema import CASE_COLUMNS, CLIP, Metric

FIRST = ("item_id", "dimension", "judge", "human", "rater", "system", "cluster")
KEYS = ("item_id", "dimension", "system")
OUTSIDE = "outside"
CHANCE = "inclusion_probability"
NAMES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("names.toml").read_text(encoding="utf-8"))
_PATTERNS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in NAMES["patterns"].items()}
_NUMBERED, _JUDGE = _PATTERNS["numbered"], _PATTERNS["judge"]
_TEXTS = {*CASE_COLUMNS, "item_id", "dimension", "rater", "cluster"}


@dataclass
class Table:
    """A table under canonical names, what the caller said of it, and what became of it.

    `judges` and `humans` are the columns or raters that the caller named, `missing` the numbers that are none;
    ``"outside"`` among them is whatever lies outside the scale. `side` says whose the scores are where the table
    does not: ``human`` or ``judge``.
    """

    raw: Raw
    report: Lossy
    judges: list[str]
    humans: list[str]
    missing: list[float | str]
    scale: tuple[float, float] | None
    side: str = ""

    def scores(self, names: list[str]) -> dict[str, pd.Series[float]]:
        """Return columns of scores as numbers in their scale; NaN where there is none.

        Raises
        ------
        RagnbError
            For what is no number, lies outside the scale, or is -1 and nobody said what that means.
        """
        found = {}
        low, high = self.scale or (-np.inf, np.inf)
        outside = OUTSIDE in self.missing
        if outside and self.scale is None:
            raise RagnbError('missing="outside" needs the scale, its lowest and highest score: scale=(1, 5)')
        marks = [mark for mark in self.missing if mark != OUTSIDE]
        said = listing([*(f"{mark:g}" for mark in marks), *(["what lies outside the scale"] if outside else [])])
        for name in names:
            values = metric_values(self.raw, Metric(name, -np.inf, np.inf), self.report)
            ends = values.clip(low, high)
            near = (values != ends) & ((values - ends).abs() <= CLIP)
            self.report.add("clipped", name, f"within {CLIP:g} of an end of the scale", near.sum())
            values = values.mask(near, ends)
            none = values.isin(marks) | (outside & ((values < low) | (values > high)))
            self.report.add("mapped", name, f"{said} is missing", none.sum())
            found[name] = values.mask(none)
        negative = {name: values[values < 0] for name, values in found.items()}
        unsaid = self.scale is None and all((values == -1).all() for values in negative.values())
        for name, values in found.items():
            if unsaid and len(negative[name]):
                where, n = self.raw.where(negative[name].index[0]), len(negative[name])
                raise RagnbError(
                    f"{where}column {name!r}: found -1 in {n} of {len(values)} rows, and no other number below 0; "
                    "say missing=-1 if it stands for a reply that could not be read, or the scale, such as "
                    "scale=(-1, 1), if it is a score"
                )
            off = np.flatnonzero((values < low) | (values > high))
            if len(off):
                where, first, n = self.raw.where(off[0]), f"{values[off[0]]:g}", len(off)
                raise RagnbError(
                    f"{where}column {name!r}: {first} lies outside the scale {low:g} to {high:g} ({n} of "
                    f"{values.count()} scores do); say missing={first} if it stands for no score, "
                    'missing="outside" if all of them do, or widen it'
                )
        return found

    def frame(self, scored: list[str]) -> pd.DataFrame:
        """Return the table as a frame; the columns `scored` are numbers."""
        numbers = self.scores(scored)
        if CHANCE in self.raw.columns:
            numbers[CHANCE] = metric_values(self.raw, Metric(CHANCE, 0, 1), self.report)
        columns = {
            name: numbers[name] if name in numbers
            else settle(cells) if name in _TEXTS else other_values(cells, self.raw.typed)
            for name, cells in self.raw.columns.items()
        }  # fmt: skip
        return pd.DataFrame(columns)

    def is_number(self, name: str) -> bool:
        """Whether a column holds numbers and nothing else."""
        return pd.api.types.is_numeric_dtype(other_values(self.raw.columns[name], self.raw.typed))


def looks_like_ratings(columns: Sequence[str]) -> bool:
    """Whether columns are those of people's scores beside a judge's, or of single raters.

    Examples
    --------
    >>> looks_like_ratings(["item_id", "judge", "human1"]), looks_like_ratings(["question", "faithfulness"])
    (True, False)
    """
    people = {"human", "rater", "score"} & set(columns) or any(_NUMBERED.fullmatch(name) for name in columns)
    judge = {"rater", "score"} <= set(columns) or any(n == "judge" or _JUDGE.fullmatch(n) for n in columns)
    return bool(people) and judge


def judge_columns(ratings: pd.DataFrame, named: Sequence[str] = ()) -> list[str]:
    """Return the columns of numbers that hold judges' scores: ``judge``, else ``judge_<name>``; and those named.

    Examples
    --------
    >>> judge_columns(pd.DataFrame({"judge_a": [1.0], "judge_b": [2.0], "judge_note": ["x"], "human": [1.0]}))
    ['judge_a', 'judge_b']
    """
    found = [str(c) for c in ratings if c == "judge" or c in named or str(c).startswith("judge_")]
    found = ["judge"] if "judge" in found and not named else found
    return [name for name in found if pd.api.types.is_numeric_dtype(ratings[name])]


def tidy(table: Table) -> pd.DataFrame:
    """Return one row an item, dimension and rater, from a wide or a long table."""
    humans, judges = humans_of(table), judges_of(table)
    is_long = "score" in table.raw.columns and not humans
    frame = _long(table, judges) if is_long else _wide(table, humans, judges)
    return finished(frame, table)


def humans_of(table: Table) -> list[str]:
    """Return the columns that hold people's scores in a wide table."""
    columns = table.raw.columns
    if len(table.humans) > 1 and set(table.humans) <= set(columns):
        return table.humans
    if len(table.humans) == 1 and "human" in columns:
        return ["human"]
    numbered: dict[str, list[tuple[int, str]]] = {}
    for name in columns:
        if found := _NUMBERED.fullmatch(name):
            numbered.setdefault(found[1].casefold(), []).append((int(found[2]), name))
    for found_ in numbered.values():
        if sorted(n for n, _ in found_) == list(range(1, len(found_) + 1)):
            return [name for _, name in sorted(found_)]
    return ["human"] if "human" in columns else []


def judges_of(table: Table) -> list[str]:
    """Return the columns that hold the judges' scores."""
    columns = table.raw.columns
    if len(table.judges) > 1 and set(table.judges) <= set(columns):
        return table.judges
    if "judge" in columns:
        return ["judge"]
    return [n for n in columns if _JUDGE.fullmatch(n) and "__" not in n and table.is_number(n)]


def _wide(table: Table, humans: list[str], judges: list[str]) -> pd.DataFrame:
    frame = table.frame([*judges, *humans])
    if len(judges) == 1 and judges != ["judge"]:
        table.report.add("mapped", judges[0], "judge", len(frame))
        frame = frame.rename(columns={judges[0]: "judge"})
    if "item_id" not in frame:
        frame.insert(0, "item_id", [str(i + 1) for i in range(len(frame))])
        table.report.add("made", "item_id", "position of the row", len(frame))
    if not humans or humans == ["human"]:
        return frame
    if "human" in frame:
        table.report.add("left_out", "human", f"the raters' own scores are taken: {listing(humans)}", len(frame))
    given = frame[humans].notna().to_numpy(copy=True)
    given[~given.any(axis=1), 0] = True  # an item that nobody rated stays, as one row
    rows, raters = np.nonzero(given)
    said = frame[humans].to_numpy()[rows, raters]
    out = frame.drop(columns=[*humans, "human", "rater"], errors="ignore").iloc[rows].reset_index(drop=True)
    names = pd.Series(humans, dtype=object).to_numpy()[raters]
    return out.assign(human=said, rater=pd.Series(names).where(~np.isnan(said), None))


def _long(table: Table, judges: list[str]) -> pd.DataFrame:
    """Part the rows of judges from those of people, and set them side by side."""
    raw = table.raw
    if "item_id" not in raw.columns:
        raise RagnbError(
            f"{place(raw.file)}holds one score a row (columns {listing(raw.columns)}) and no item that they are "
            "about; say which column it is: columns={'…': 'item_id'}"
        )
    kinds = raw.columns.pop("rater_kind", None)
    named = table.humans or table.judges or any(name is not None for name in raw.columns.get("rater", []))
    side = "human" if kinds is not None or named else table.side
    if not side:
        was = next((r["column"] for r in table.report.rows if r["detail"] == "score"), "score")
        raise RagnbError(
            f"{place(raw.file)}column {was!r} does not say who gave the scores; automatic ones look the same; "
            f"if people gave them, say human={was!r}, or bring a column that names the rater: "
            "columns={'…': 'rater'}; if a judge did, bring the table of people's scores with this one as judged="
        )
    frame = table.frame([*judges, "score"]).rename(columns={"score": side})
    if side == "judge" or judges:
        return frame
    if "rater" not in frame:
        frame["rater"] = pd.Series(None, index=frame.index, dtype=object)
    raters = frame["rater"]
    if kinds is not None:
        is_judge = np.array([kind == "judge" for kind in kinds], dtype=bool)
    elif table.judges:
        is_judge = raters.isin(table.judges).to_numpy()
    else:
        is_judge = np.array([bool(_PATTERNS["judge_rater"].fullmatch(str(name))) for name in raters], dtype=bool)
        is_judge &= ~raters.isin(table.humans).to_numpy(dtype=bool)  # whom the caller calls a person is one
    people, judged = frame[~is_judge].reset_index(drop=True), frame[is_judge]
    if table.humans:
        people = people[people["rater"].isin(table.humans)].reset_index(drop=True)
    return _with_judges(people, judged, table.report) if len(judged) else people


def _with_judges(people: pd.DataFrame, judged: pd.DataFrame, report: Lossy) -> pd.DataFrame:
    """Set the rows of judges beside those of people; what only a judge scored follows, unrated."""
    keys = [key for key in KEYS if key in people]
    names = judged["rater"].fillna("judge")
    report.add("mapped", "rater", f"judges: {listing(names.unique())}", len(judged))
    again = int(judged[keys].assign(rater=names).duplicated().sum())
    report.add("mapped", "judge", "several scores of one judge on an item are averaged", again)
    several = names.nunique() > 1
    scores = judged[keys].assign(score=judged["human"])
    scores["judge"] = [n if n.startswith("judge") else f"judge_{n}" for n in names] if several else "judge"
    means = (
        scores.groupby([*keys, "judge"], dropna=False, sort=False)["score"].mean().unstack("judge").reset_index()
    )
    about = judged.drop(columns=["human", "rater", "comment", "timestamp"], errors="ignore").drop_duplicates(keys)
    alone = about[~pd.MultiIndex.from_frame(about[keys]).isin(pd.MultiIndex.from_frame(people[keys]))]
    whole = pd.concat([people, alone], ignore_index=True) if len(alone) else people
    return whole.merge(means.rename_axis(columns=None), on=keys, how="left")


def finished(frame: pd.DataFrame, table: Table) -> pd.DataFrame:
    """Put the columns in order, take documents for clusters, and refuse two scores of one rater on one item."""
    if "rater" in frame and frame["rater"].nunique() < 2:
        frame = frame.drop(columns="rater")
    if "cluster" not in frame and "doc_name" in frame:
        frame["cluster"] = frame["doc_name"]
        table.report.add("made", "cluster", "doc_name", len(frame))
    keys = [key for key in (*KEYS, "rater") if key in frame]
    again = frame.duplicated(keys, keep=False)
    if again.any():
        row = frame[again].iloc[0]
        said = ", ".join(f"{key} {row[key]!r}" for key in keys)
        raise RagnbError(
            f"{place(table.raw.file)}{said} stands there more than once; a row is one rater's score of one item: "
            "keep one of them, or name the column that tells them apart, such as columns={'…': 'rater'}"
        )
    first = [c for c in (*FIRST[:2], *judge_columns(frame), *FIRST[3:]) if c in frame]
    return frame[[*first, *(c for c in frame if c not in first)]].reset_index(drop=True)
