"""Ratings of any layout as one frame: what people gave items, beside what a judge gave them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragnb.calibration.ratings import OUTSIDE, PROBABILITY, as_list, settled
from ragnb.errors import RagnbError, did_you_mean, listing, not_a_frame, place, unknown
from ragnb.readers import langfuse, phoenix
from ragnb.readers.cells import as_id, case_cells, metric_values, other_values
from ragnb.readers.formats import Source, load
from ragnb.readers.names import CASE_ALIASES, name_columns, name_system
from ragnb.readers.raw import Lossy, Raw, settle
from ragnb.schema import CASE_COLUMNS, CLIP, Metric, Rubric
from ragnb.stats.means import Array

FIRST = ("item_id", "dimension", "judge", "human", "rater", "system", "cluster")
KEYS = ("item_id", "dimension", "system")
NAMES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("reading.toml").read_text(encoding="utf-8"))
_PATTERNS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in NAMES["patterns"].items()}
_NUMBERED, _JUDGE = _PATTERNS["numbered"], _PATTERNS["judge"]
_TEXTS = {*CASE_COLUMNS, "item_id", "dimension", "rater", "cluster"}
_NO_SCORES = {*FIRST, *CASE_COLUMNS, "score", "rater_kind", "repeat", "n_raters", PROBABILITY}
_SIDES: dict[str, str] = NAMES["sides"]
"""Who gave a score, in the words of tools; neither people nor a judge where it is empty."""

RATING_ALIASES: Mapping[str, tuple[str, ...]] = {
    **{name: aliases for name, aliases in CASE_ALIASES.items() if name != "sample_id"},
    **{name: tuple(aliases) for name, aliases in NAMES["columns"].items()},
}
"""Canonical columns of ratings and what files call them."""

RATING_LAYOUTS = {"langfuse": langfuse, "phoenix": phoenix}
Names = str | Sequence[str] | None
Marks = float | str | Sequence[float | str] | None


def read_ratings(
    source: Source,
    *,
    judge: Names = None,
    human: Names = None,
    judged: Source | None = None,
    missing: Marks = None,
    scale: tuple[float, float] | None = None,
    format: str | None = None,
    strict: bool = False,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
) -> pd.DataFrame:
    """Read ratings: the scores that people gave to items, beside those of a judge.

    Parameters
    ----------
    source : path, frame, or records
        As for `read_scores`. Wide: ``judge`` and ``human``, or ``human1, human2, …``, or ``judge_<name>`` for
        several judges. Long: ``rater`` and ``score``, where a rater called ``judge`` (or ``llm``) is the judge.
        Exports of Langfuse (annotations beside evaluations) and Phoenix (annotations) are known by their columns.
        A ``score`` without a rater may be a tool's: say ``human="score"`` if people gave it.
    judge, human : str or sequence of str, optional
        The columns (in a long layout, the raters) that hold the judge's or the people's scores, where their
        names do not say it. One is renamed to ``judge`` or ``human``; several columns of ``human`` are raters.
    judged : path, frame, or records, optional
        Where `source` holds people's scores alone: the table with the judge's, joined by item, by dimension and
        by system where both have one. Either table may hold one column a dimension.
    missing : number or several, optional
        Numbers that stand for "no score", such as -1; ``"outside"`` is whatever lies outside `scale`, such as a
        mean over runs one of which is -1.
    scale : (low, high), optional
        The lowest and the highest score there can be.
    format, strict, columns, encoding
        As for `read_scores`; they are about `source`.

    Returns
    -------
    DataFrame
        One row an item, a dimension (where there is such a column) and a rater: ``item_id, dimension, judge``
        (or ``judge_<name>``), ``human, rater, system, cluster`` and every other column. ``rater`` is there where
        there are several; ``cluster`` is the document where the file has no cluster of its own;
        ``inclusion_probability``, the chance with which an item was drawn, weighs estimates. A missing score
        is NaN; an item that nobody rated is one row. A file of people's scores alone has no ``judge``.
        ``attrs`` as `read_scores`.

    Raises
    ------
    RagnbError
        As `read_scores`; for a file without people's scores, or that does not say who gave them; for a score
        outside `scale`; for -1 as the only number below 0 that neither `missing` nor `scale` declares; for two
        scores of one rater on one item.

    Examples
    --------
    >>> rows = [{"item_id": "a", "judge": 9, "human1": 8, "human2": 7}, {"item_id": "b", "judge": 5, "human1": 5}]
    >>> read_ratings(rows)[["item_id", "judge", "human", "rater"]]
      item_id  judge  human   rater
    0       a    9.0    8.0  human1
    1       a    9.0    7.0  human2
    2       b    5.0    5.0  human1
    """
    how: dict[str, Any] = {"missing": missing, "scale": scale}
    files: dict[str, Any] = {"format": format, "strict": strict, "encoding": encoding, "columns": columns}
    if judged is None:
        table, origin = _open(source, judge, human, **files, **how)
        frame, lossy = tidy(table), table.report.rows
    else:
        table, origin = _open(source, None, human, side="human", **files, **how)
        other, origin["judged"] = _open(judged, judge, None, side="judge", **how)
        frame, lossy = joined(table, other), table.report.rows + other.report.rows
        table.report.expect(other.report.lines, other.report.damaged)
        origin |= {"lines": table.report.lines, "damaged": table.report.damaged}
    if "human" not in frame or not frame["human"].notna().any():
        raise _without_people(table, frame, judged is not None)
    frame.attrs["lossy"] = lossy
    frame.attrs["source"] = {**origin, "rows": len(frame)}
    return frame


def read_judged(
    source: Source,
    *,
    judge: Names = None,
    dimensions: Sequence[str] | None = None,
    missing: Marks = None,
    scale: tuple[float, float] | None = None,
    encoding: str | None = None,
) -> pd.DataFrame:
    """Read what a judge scored, whether people rated it or not.

    Parameters
    ----------
    source, judge, missing, scale, encoding
        As for `read_ratings`.
    dimensions : sequence of str, optional
        Where each dimension is a column: which; by default those there of the rubric's.

    Returns
    -------
    DataFrame
        As `read_ratings`, one row an item and dimension, with people's scores where there are some.

    Raises
    ------
    RagnbError
        As `read_ratings`; where there is no judge's score.

    Examples
    --------
    >>> read_judged([{"sample_id": "a", "accuracy": 9, "clarity": 7}])
      item_id dimension  judge
    0       a  accuracy    9.0
    1       a   clarity    7.0
    """
    table, origin = _open(source, judge, None, side="judge", encoding=encoding, missing=missing, scale=scale)
    frame = sheet(table, dimensions) if is_sheet(table) else tidy(table)
    frame.attrs["lossy"], frame.attrs["source"] = table.report.rows, {**origin, "rows": len(frame)}
    return frame


def read_golden(source: Source, *, human: Names = None, **how: Any) -> pd.DataFrame:
    """Read a golden set as `read_ratings` does; one that nobody has filled in yet is all missing scores.

    Examples
    --------
    >>> read_golden([{"item_id": "G1", "judge": None, "human": None}])["human"].tolist()
    [nan]
    """
    table, _ = _open(source, how.pop("judge", None), human, **how)
    frame = tidy(table)
    if "human" not in frame:
        raise _without_people(table, frame, both=False)
    return frame


def _open(
    source: Source, judge: Names, human: Names, *, missing: Any = None, scale: tuple[float, float] | None = None,
    side: str = "", format: str | None = None, strict: bool = False, encoding: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> tuple[Table, dict[str, object]]:  # fmt: skip
    """Return a table under canonical names, one that is asked for as ``judge`` or ``human`` included."""
    report, judges, humans = Lossy(), as_list(judge), as_list(human)
    raw, origin = load(source, report, format=format, strict=strict, encoding=encoding)
    origin["layout"] = "table"
    for name, layout in RATING_LAYOUTS.items():
        if layout.sniff(set(raw.columns)):
            layout.lay_out(raw, report)
            origin["layout"] = name
    _take_rater_kinds(raw, report)
    picks = dict(columns or {})
    if "item_id" in raw.columns and "item_id" not in picks.values():
        picks["item_id"] = "item_id"  # a sample_id beside it says of what the item was drawn
    for role, asked in (("judge", judges), ("human", humans)):
        if len(asked) == 1 and asked[0] in raw.columns:
            picks[asked[0]] = role
    name_columns(raw, report, picks=picks, aliases=RATING_ALIASES)
    name_system(raw, report)
    raw.check_even()
    case_cells(raw, report)
    for name in ("dimension", "rater"):
        if name in raw.columns:
            raw.columns[name] = [as_id(value) for value in raw.columns[name]]
    known = {*raw.columns, *picks, *(name for name in raw.columns.get("rater", []) if name is not None)}
    for role, asked in (("judge", judges), ("human", humans)):
        for name in asked:
            if name not in known:
                raise unknown(role, name, sorted(map(str, known)))
    return Table(raw, report, judges, humans, as_list(missing), scale, side), origin


def _take_rater_kinds(raw: Raw, report: Lossy) -> None:
    """Take a column that says for each score whether a person gave it, such as ``source`` and ``source_type``."""
    for name in ("annotator_kind", "source", "source_type"):
        words = [str(cell).casefold() for cell in raw.columns.get(name, [])]
        if words and "rater_kind" not in raw.columns and set(words) <= {*_SIDES}:
            raw.columns["rater_kind"] = [_SIDES[word] for word in words]
            del raw.columns[name]
            kept = [i for i, word in enumerate(words) if _SIDES[word]]
            report.add("left_out", name, "scores that neither a person nor a judge gave", len(words) - len(kept))
            raw.keep(kept)


def _without_people(table: Table, frame: pd.DataFrame, both: bool) -> RagnbError:
    have = listing(table.raw.columns)
    if both:
        step = "fill in people's scores under the dimensions that the judge's table has, or a column 'human'"
    elif "score" in table.raw.columns:
        step = "all scores in it are a judge's; bring the table of people's scores, with this one as judged=…"
    elif "human" in frame:
        step = "every cell for people's scores is empty; fill some in first"
    else:
        step = (
            "say which column holds them: human='…'; or, where each dimension is a column, "
            "bring the judge's table beside it: judged='…'"
        )
    return RagnbError(f"{place(table.raw.file)}holds no scores by people (columns: {have}); {step}")


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
        low, high = self.scale or (-np.inf, np.inf)
        found: dict[str, Array] = {}
        for name in names:
            values = metric_values(self.raw, Metric(name, -np.inf, np.inf), self.report)
            ends = values.clip(low, high)
            near = (values != ends) & ((values - ends).abs() <= CLIP)
            self.report.add("clipped", name, f"within {CLIP:g} of an end of the scale", near.sum())
            found[name] = np.asarray(values.mask(near, ends), dtype=float)
        kept = settled(found, self.scale, self.missing, self.raw.where)
        marks = sorted(self.missing, key=lambda mark: mark == OUTSIDE)
        said = listing("what lies outside the scale" if mark == OUTSIDE else f"{mark:g}" for mark in marks)
        for name, scores in kept.items():
            blanked = int((np.isnan(scores) & ~np.isnan(found[name])).sum())
            self.report.add("mapped", name, f"{said} is missing", blanked)
        return {name: pd.Series(scores) for name, scores in kept.items()}

    def frame(self, scored: list[str]) -> pd.DataFrame:
        """Return the table as a frame; the columns `scored` are numbers."""
        numbers = self.scores(scored)
        if PROBABILITY in self.raw.columns:
            numbers[PROBABILITY] = metric_values(self.raw, Metric(PROBABILITY, 0, 1), self.report)
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
    people = any(name in ("human", "rater", "score") or _NUMBERED.fullmatch(name) for name in columns)
    judge = {"rater", "score"} <= set(columns) or any(n == "judge" or _JUDGE.fullmatch(n) for n in columns)
    return people and judge


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
    return finish(frame, table)


def humans_of(table: Table) -> list[str]:
    """Return the columns that hold people's scores in a wide table."""
    columns = table.raw.columns
    if len(table.humans) > 1 and set(table.humans) <= set(columns):
        return table.humans
    if len(table.humans) == 1 and "human" in columns:
        return ["human"]
    numbered: dict[str, list[tuple[int, str]]] = {}
    for name in columns:
        if match := _NUMBERED.fullmatch(name):
            numbered.setdefault(match[1].casefold(), []).append((int(match[2]), name))
    for raters in numbered.values():
        if sorted(n for n, _ in raters) == list(range(1, len(raters) + 1)):
            return [name for _, name in sorted(raters)]
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
    scores = frame[humans].to_numpy()[rows, raters]
    out = frame.drop(columns=[*humans, "human", "rater"], errors="ignore").iloc[rows].reset_index(drop=True)
    names = pd.Series(humans, dtype=object).to_numpy()[raters]
    return out.assign(human=scores, rater=pd.Series(names).where(~np.isnan(scores), None))


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


def finish(frame: pd.DataFrame, table: Table) -> pd.DataFrame:
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
        place_of = ", ".join(f"{key} {row[key]!r}" for key in keys)
        raise RagnbError(
            f"{place(table.raw.file)}{place_of} stands there more than once; a row is one rater's score of one "
            "item: keep one of them, or name the column that tells them apart, such as columns={'…': 'rater'}"
        )
    first = [c for c in (*FIRST[:2], *judge_columns(frame), *FIRST[3:]) if c in frame]
    return frame[[*first, *(c for c in frame if c not in first)]].reset_index(drop=True)


def joined(people: Table, judged: Table) -> pd.DataFrame:
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
    return finish(out, people)


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
    for frame, reader in ((judged, "ragnb.calibration.read_judged"), (ratings, "rn.read_ratings")):
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
        fault = f"dimension {absent[0]!r} is no column" if absent else "holds no score of a judge"
        raise RagnbError(
            f"{place(judged.raw.file)}{fault}; {did_you_mean(absent[0] if absent else 'judge', columns)}. Name "
            "the column of its scores (judge), or the columns that are dimensions (dimensions)"
        )
    return finish(_melted(judged, wanted, "judge"), judged)


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
