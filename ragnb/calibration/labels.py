"""Ratings of people, beside the scores of a judge or alone, read in any layout."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.calibration.ratings import (
    OUTSIDE,
    PROBABILITY,
    Missing,
    Names,
    Scale,
    as_list,
    need_pandas,
    settled,
)
from ragnb.errors import (
    RagnbError,
    did_you_mean,
    listing,
    need_known,
)
from ragnb.readers.cells import as_id
from ragnb.readers.columns import case_cells, other_values
from ragnb.readers.facts import verdict_value
from ragnb.readers.formats import Source, load
from ragnb.readers.layouts import lay_out
from ragnb.readers.names import CASE_ALIASES, loose, name_columns
from ragnb.readers.owner import name_by_name
from ragnb.readers.raw import Lossy, Raw, absent, settle
from ragnb.readers.scores import metric_values
from ragnb.schema import CASE_COLUMNS, CLIP, METRICS, Metric, Rubric

BANDS = ("low", "middle", "high")
SHOWN = ("question", "ground_truth_answer", "answer", "retrieved_contexts")
BOM = "\ufeff"  # without it a spreadsheet shows Chinese as rubbish
FIRST = ("item_id", "dimension", "judge", "human", "rater", "system", "cluster")
KEYS = ("item_id", "dimension", "system")
NAMES: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("reading.toml").read_text(encoding="utf-8")
)
_PATTERNS = {
    name: re.compile(pattern, re.IGNORECASE) for name, pattern in NAMES["patterns"].items()
}
_NUMBERED = _PATTERNS["numbered"]
_JUDGE = _PATTERNS["judge"]
_TEXTS = {*CASE_COLUMNS, "item_id", "dimension", "rater", "cluster"}
_NO_SCORES = {*FIRST, *CASE_COLUMNS, "score", "rater_kind", "repeat", "n_raters", PROBABILITY}
# Who gave a score, in the words of tools; neither people nor a judge where it is empty.
_SIDES: dict[str, str] = NAMES["sides"]
_NEITHER = "scores that neither a person nor a judge gave"

RATING_ALIASES: Mapping[str, tuple[str, ...]] = {
    **{name: aliases for name, aliases in CASE_ALIASES.items() if name != "sample_id"},
    **{name: tuple(aliases) for name, aliases in NAMES["columns"].items()},
}
"""Canonical columns of ratings and what files call them."""
_SCORER = {loose(name): side for side in ("judge", "human") for name in RATING_ALIASES[side]}


def read_ratings(
    source: Source,
    *,
    judge: Names | None = None,
    human: Names | None = None,
    judged: Source | None = None,
    missing: Missing = None,
    scale: Scale | None = None,
    format: str | None = None,
    strict: bool = False,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
) -> pd.DataFrame:
    """Read ratings: human scores of items, and those of a judge.

    Parameters
    ----------
    source : path, frame, or records
        As for `read_scores`. Wide: ``judge`` and ``human``, or ``human1, human2, …``, or ``judge_<name>`` for
        several judges. Long: ``rater`` and ``score``, where a rater called ``judge`` (or ``llm``) is the judge.
        Exports of Langfuse (annotations beside evaluations) and Phoenix (annotations) are known by their columns.
        A ``score`` without a rater may be a tool's: say ``human="score"`` if people gave it.
    judge, human : str or sequence of str, optional
        The columns (in a long layout, the raters) that hold the judge's or the human scores, where their
        names do not say it. One is renamed to ``judge`` or ``human``; several columns of ``human`` are raters.
    judged : path, frame, or records, optional
        Where `source` holds human scores alone: the table with the judge's, joined by item, by dimension and
        by system where both have one. Either table may hold one column per dimension.
    missing : number or several, optional
        Numbers that represent "no score", such as -1; ``"outside"`` is whatever is outside `scale`, such as a
        mean over runs one of which is -1.
    scale : (low, high), optional
        The lowest and the highest score there can be.
    format, strict, columns, encoding
        As for `read_scores`; they are about `source`.

    Returns
    -------
    DataFrame
        One row per item, a dimension (where there is such a column) and a rater: ``item_id, dimension, judge``
        (or ``judge_<name>``), ``human, rater, system, cluster`` and every other column. ``rater`` is there where
        there are several; ``cluster`` is the document where the file has no cluster of its own;
        ``inclusion_probability``, the chance with which an item was drawn, weighs estimates. A missing score
        is NaN; an item that nobody rated is one row. A file of human scores alone has no ``judge``.
        ``attrs`` as `read_scores`.

    Raises
    ------
    RagnbError
        As `read_scores`; for a file without human scores, or that does not say who gave them; for a score
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
    files: dict[str, Any] = {
        "format": format,
        "strict": strict,
        "encoding": encoding,
        "columns": columns,
    }
    if judged is None:
        frame = tidy(table := open_ratings(source, judge, human, **files, **how))
    else:
        table = open_ratings(source, None, human, side="human", **files, **how)
        frame = joined(table, open_ratings(judged, judge, None, side="judge", **how))
    if "human" not in frame or not frame["human"].notna().any():
        raise without_people(table, frame, judged is not None)
    return finish(frame, table)


def read_judged(
    source: Source,
    *,
    judge: Names | None = None,
    dimensions: Sequence[str] | None = None,
    missing: Missing = None,
    scale: Scale | None = None,
    encoding: str | None = None,
) -> pd.DataFrame:
    """Read the scores of a judge, whether or not the items are rated by humans.

    Parameters
    ----------
    source, judge, missing, scale, encoding
        As for `read_ratings`.
    dimensions : sequence of str, optional
        Where each dimension is a column: which; by default those there of the rubric's.

    Returns
    -------
    DataFrame
        As `read_ratings`, one row per item and dimension, with human scores where there are some.

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
    table = open_ratings(
        source, judge, None, side="judge", encoding=encoding, missing=missing, scale=scale
    )
    columns = list(table.raw.columns)
    wanted = list(dimensions or [])
    if table.is_sheet:
        wanted = wanted or [d.name for d in Rubric().dimensions if d.name in columns]
        absent = next((name for name in wanted if name not in columns), None)
        if absent or not wanted:
            if absent:
                fault = f"dimension {absent!r} is not a column"
            else:
                fault = "contains no judge scores"
            raise RagnbError(
                f"{table.raw.where()}{fault}; {did_you_mean(absent or 'judge', columns)}. Name the column "
                "of its scores: judge='…', or one that is a dimension: dimensions=['…']"
            )
    return finish(tidy(table, wanted), table)


@dataclass
class Table:
    """A table under canonical names, with the caller's arguments and the read report.

    `judges` and `humans` are the columns or raters that the caller named, `missing` the numbers that are none;
    ``"outside"`` among them is whatever is outside the scale. `side` says whose the scores are where the table
    does not: ``human`` or ``judge``.
    """

    raw: Raw
    report: Lossy
    origin: dict[str, object]
    judges: list[str]
    humans: list[str]
    missing: list[float | str]
    scale: Scale | None
    side: str

    def frame(self, scored: list[str]) -> pd.DataFrame:
        """Return the table as a frame, with the columns `scored` as numbers within their scale, NaN if missing.

        Raises
        ------
        RagnbError
            For a score that is not a number, is outside the scale, or is -1 and nobody said what that means.
        """
        raw = self.raw
        report = self.report
        read = pd.DataFrame(
            {name: metric_values(raw, Metric(name, -np.inf, np.inf), report) for name in scored}
        )
        ends = read.clip(*(self.scale or (-np.inf, np.inf)))
        near = (read != ends) & ((read - ends).abs() <= CLIP)
        scores = {
            name: read[name].mask(near[name], ends[name]).to_numpy(dtype=float) for name in scored
        }
        kept = settled(scores, self.scale, self.missing, raw.where)
        marks = sorted(self.missing, key=lambda mark: mark == OUTSIDE)
        said = listing(
            "what lies outside the scale" if mark == OUTSIDE else f"{mark:g}" for mark in marks
        )
        for name in scored:
            report.add(
                "clipped", name, f"within {CLIP:g} of an end of the scale", int(near[name].sum())
            )
            blanked = int((np.isnan(kept[name]) > np.isnan(scores[name])).sum())
            report.add("mapped", name, f"{said} is missing", blanked)
        columns: dict[str, Any] = {}
        for name, cells in raw.columns.items():
            if name == PROBABILITY and name not in kept:
                columns[name] = metric_values(raw, Metric(name, 0, 1), report)
            elif name not in kept:
                columns[name] = settle(cells) if name in _TEXTS else other_values(cells, raw.typed)
            else:
                columns[name] = kept[name]
        return pd.DataFrame(columns)

    def is_number(self, name: str) -> bool:
        """Whether a column holds numbers, or verdicts in words, and nothing else."""
        cells = self.raw.columns[name]
        if pd.api.types.is_numeric_dtype(other_values(cells, self.raw.typed)):
            return True
        given = [cell for cell in cells if not absent(cell) and str(cell).strip()]
        return bool(given) and all(verdict_value(cell) is not None for cell in given)

    @cached_property
    def human_columns(self) -> list[str]:
        """The columns with human scores in a wide table."""
        columns = self.raw.columns
        if len(self.humans) > 1 and set(self.humans) <= set(columns):
            return self.humans
        numbered: dict[str, dict[int, str]] = {}
        for match in filter(None, map(_NUMBERED.fullmatch, columns)):
            numbered.setdefault(match[1].casefold(), {})[int(match[2])] = match[0]
        if len(self.humans) != 1 or "human" not in columns:
            for raters in numbered.values():
                if set(raters) == set(range(1, len(raters) + 1)):
                    return [raters[k] for k in sorted(raters)]
        if "human" in columns:
            return ["human"]
        return []

    @cached_property
    def judge_columns(self) -> list[str]:
        """The columns with judge scores."""
        columns = self.raw.columns
        if len(self.judges) > 1 and set(self.judges) <= set(columns):
            return self.judges
        named = [n for n in columns if _JUDGE.fullmatch(n) and "__" not in n and self.is_number(n)]
        if "judge" in columns:
            return ["judge"]
        return named

    @property
    def is_sheet(self) -> bool:
        """Whether no column of scores has a known name, so that the dimensions are the columns."""
        return "score" not in self.raw.columns and not self.human_columns + self.judge_columns


def open_ratings(
    source: Source,
    judge: Names | None,
    human: Names | None,
    *,
    missing: Missing = None,
    scale: Scale | None = None,
    side: str = "",
    format: str | None = None,
    strict: bool = False,
    encoding: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> Table:
    """Return a table under canonical names, including columns named by ``judge`` or ``human``."""
    report = Lossy()
    asked = {"judge": as_list(judge), "human": as_list(human)}
    raw, origin = load(source, report, format=format, strict=strict, encoding=encoding)
    origin["layout"] = lay_out(raw, report, ("langfuse", "phoenix"))
    if origin["layout"] != "table":
        raw.drop(
            [kind is None for kind in raw.columns["rater_kind"]], "annotator_kind", _NEITHER, report
        )
    # Columns that say whether a person gave a score.
    for name in (
        "annotator_kind",
        "source",
        "source_type",
    ):
        words = [str(cell).casefold() for cell in raw.columns.get(name, [])]
        if words and "rater_kind" not in raw.columns and set(words) <= {*_SIDES}:
            raw.columns["rater_kind"] = [_SIDES[word] for word in words]
            del raw.columns[name]
            raw.drop([not _SIDES[word] for word in words], name, _NEITHER, report)
    picks = dict(columns or {})
    if "item_id" in raw.columns and "item_id" not in picks.values():
        picks["item_id"] = (
            "item_id"  # with a sample_id, which names the sample that the item was drawn from
        )
    picks |= {
        names[0]: role
        for role, names in asked.items()
        if len(names) == 1 and names[0] in raw.columns
    }
    name_columns(raw, report, picks=picks, aliases=RATING_ALIASES)
    name_by_name(raw, report)
    raw.check_even()
    case_cells(raw, report)
    for name in [name for name in ("dimension", "rater") if name in raw.columns]:
        raw.columns[name] = [as_id(value) for value in raw.columns[name]]
    known = {
        *raw.columns,
        *picks,
        *(name for name in raw.columns.get("rater", []) if name is not None),
    }
    for role, wanted in asked.items():
        for name in wanted:
            need_known(role, name, sorted(map(str, known)))
    return Table(raw, report, origin, asked["judge"], asked["human"], as_list(missing), scale, side)


def without_people(table: Table, frame: pd.DataFrame, both: bool) -> RagnbError:
    place = table.raw.where()
    columns = table.raw.columns
    if both:
        step = "fill in human scores under the dimensions of the judge's table, or a column 'human'"
    elif "score" in columns:
        step = "all its scores come from a judge; read the table of human ratings, with this one as judged=…"
    elif "human" in frame:
        step = "every cell for human scores is empty; fill in some first"
    else:
        step = (
            "name the column that contains them: human='…'; if each dimension is a column, pass the judge's "
            "table as well: judged='…'"
        )
        if scored := [name for name in columns if name in METRICS]:
            raise RagnbError(
                f"{place}contains no human scores (columns: {listing(columns)}); {step}. If nobody has rated the "
                "answers yet, draw some for annotators (rn.draw_labels): ragnb calibrate --sample 120 "
                f"{place.removesuffix(': ')} --dimension {scored[0]} --out labels.csv"
            )
    return RagnbError(f"{place}contains no human scores (columns: {listing(columns)}); {step}")


def looks_like_ratings(columns: Sequence[str]) -> bool:
    """Whether columns are those of human and judge scores, or of single raters.

    Examples
    --------
    >>> looks_like_ratings(["item_id", "judge", "human1"]), looks_like_ratings(["question", "faithfulness"])
    (True, False)
    >>> looks_like_ratings(["input", "output", "Human Label", "llm_verdict"])
    True
    >>> looks_like_ratings(["id", "human_label", "judge_label"])
    True
    """
    named = {*columns, *(_SCORER[loose(name)] for name in columns if loose(name) in _SCORER)}
    people = any(name in ("human", "rater", "score") or _NUMBERED.fullmatch(name) for name in named)
    judge = {"rater", "score"} <= named or any(
        name == "judge" or _JUDGE.fullmatch(name) for name in named
    )
    return people and judge


def judge_columns(ratings: pd.DataFrame, named: Sequence[str] = ()) -> list[str]:
    """Return the numeric columns with judge scores: ``judge``, else ``judge_<name>``; and those named.

    Examples
    --------
    >>> judge_columns(pd.DataFrame({"judge_a": [1.0], "judge_b": [2.0], "judge_note": ["x"], "human": [1.0]}))
    ['judge_a', 'judge_b']
    """
    columns = [str(c) for c in ratings if c == "judge" or c in named or str(c).startswith("judge_")]
    if "judge" in columns and not named:
        columns = ["judge"]
    return [name for name in columns if pd.api.types.is_numeric_dtype(ratings[name])]


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
        report.add(
            "left_out", "human", f"the raters' own scores are taken: {listing(humans)}", len(frame)
        )
    out = _melted(
        frame.drop(columns={"human", "rater"}.difference(humans) & {*frame}),
        humans,
        "rater",
        "human",
    )
    rated = out["human"].notna()
    item = np.arange(len(out)) // len(humans)
    nobody = ~rated.groupby(item).transform("any") & ~pd.Series(item).duplicated()
    out["rater"] = out["rater"].astype(object).where(rated, None)
    return out[rated | nobody]  # an unrated item stays, as one row


def _melted(frame: pd.DataFrame, columns: Sequence[str], name: str, value: str) -> pd.DataFrame:
    """Melt one column per `name` into one row per `name`, grouped by item."""
    rest = [c for c in frame if c not in columns]
    rows = frame.melt(rest, list(columns), var_name=name, value_name=value, ignore_index=False)
    return rows.sort_index(kind="stable", ignore_index=True)


def _long(table: Table, judges: list[str]) -> pd.DataFrame:
    """Split the rows of judges from those of humans, and join them."""
    if "item_id" not in (raw := table.raw).columns:
        raise RagnbError(
            f"{table.raw.where()}has one score per row (columns {listing(raw.columns)}) and no item id; "
            "name the column: columns={'…': 'item_id'}"
        )
    kinds = raw.columns.pop("rater_kind", None)
    named = table.humans or table.judges or any(name is not None for name in raw.cells("rater"))
    if kinds is not None or named:
        side = "human"
    else:
        side = table.side
    if not side:
        was = next((r["column"] for r in table.report.rows if r["detail"] == "score"), "score")
        raise RagnbError(
            f"{table.raw.where()}column {was!r} does not say who gave the scores; automatic ones look the same; "
            f"if annotators gave them, set human={was!r}, or add a column that names the rater: "
            "columns={'…': 'rater'}; if a judge did, read the table of human ratings with this one as judged="
        )
    frame = table.frame([*judges, "score"]).rename(columns={"score": side})
    if side == "judge" or judges:
        return frame
    frame["rater"] = raters = frame.get("rater", pd.Series(None, frame.index, dtype=object))
    machine = _PATTERNS["judge_rater"].fullmatch
    if kinds is not None:
        is_judge = pd.Series(kinds, frame.index) == "judge"
    elif table.judges:
        is_judge = raters.isin(table.judges)
    else:  # a rater that the caller names as human is human
        is_judge = raters.map(lambda name: bool(machine(str(name)))).astype(bool) & ~raters.isin(
            table.humans
        )
    people = frame[~is_judge & (raters.isin(table.humans) | (not table.humans))]
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
        columns = [n if n.startswith("judge") else f"judge_{n}" for n in names]
    scores = judged.assign(judge=columns).groupby([*keys, "judge"], dropna=False, sort=False)[
        "human"
    ]
    means = scores.mean().unstack("judge").reset_index().rename_axis(columns=None)
    about = judged.drop(
        columns=["human", "rater", "comment", "timestamp"], errors="ignore"
    ).drop_duplicates(keys)
    whole = pd.concat([people, about[~_found(about, people, keys)]], ignore_index=True)
    return whole.merge(means, on=keys, how="left")


def _found(rows: pd.DataFrame, others: pd.DataFrame, keys: list[str]) -> npt.NDArray[np.bool_]:
    """Return which rows are about what one of the others is about."""
    return pd.MultiIndex.from_frame(rows[keys]).isin(pd.MultiIndex.from_frame(others[keys]))


def finish(frame: pd.DataFrame, table: Table) -> pd.DataFrame:
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
    first = [c for c in (*FIRST[:2], *judge_columns(frame), *FIRST[3:]) if c in frame]
    frame = frame[[*first, *(c for c in frame if c not in first)]].reset_index(drop=True)
    frame.attrs = {"lossy": table.report.rows, "source": {**table.origin, "rows": len(frame)}}
    return frame


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
            twice = f"item {right.loc[again, 'item_id'].iloc[0]!r} appears more than once"
        else:
            twice = ""
        raise RagnbError(
            f"{judged.raw.where()}scores are joined by {listing(keys)}; {twice or 'that names no item'}; both "
            f"tables need the columns that identify an item (columns: {listing(judged.raw.columns)}; "
            f"{people.raw.file}: {listing(people.raw.columns)})"
        )
    if "judge" in left:
        report.add("left_out", "judge", "the scores of the judge's own table are taken", len(left))
    judges = judge_columns(right)
    left = left.drop(columns=judges, errors="ignore")
    about = right[[c for c in right if c in keys or c not in (*left, "human", "rater")]]
    alone = ~_found(left, right, keys)
    nobody = ~_found(right, left, keys)
    if len(left) and alone.all():
        raise RagnbError(
            f"{people.raw.where()}no item in it is in {judged.raw.file}, by {listing(keys)}; items there "
            f"look like {listing(right['item_id'].unique(), 3)}, here {listing(left['item_id'].unique(), 3)}"
        )
    report.add("kept", "judge", "ratings of items that the judge did not score", int(alone.sum()))
    report.rows += judged.report.rows
    report.add("left_out", "judge", "scores of items that nobody rated", int(nobody.sum()))
    report.expect(judged.report.lines, judged.report.damaged)
    people.origin |= {"judged": judged.origin, "lines": report.lines, "damaged": report.damaged}
    return left.merge(about, on=keys, how="left")


def _dimensions(people: Table, judged: Table) -> list[str]:
    """Return the columns of sheets that are dimensions: those that the other table knows, too."""
    if not (sheets := [table for table in (people, judged) if table.is_sheet]):
        return []
    shared = set.intersection(*(set(table.raw.columns) for table in sheets)) - _NO_SCORES
    if len(sheets) == 1:
        (other,) = (table for table in (people, judged) if table not in sheets)
        shared &= set(other.raw.columns.get("dimension", []))
    found = [
        n
        for n in sheets[-1].raw.columns
        if n in shared and "__" not in n and sheets[-1].is_number(n)
    ]
    if not found:
        raise RagnbError(
            f"{people.raw.where()}no dimension is in both tables (columns: {listing(people.raw.columns)}; "
            f"{judged.raw.file}: {listing(judged.raw.columns)}); give them the same names, or say which columns "
            "hold the scores: human='…', judge='…'"
        )
    return found


def unrated(judged: pd.DataFrame, ratings: pd.DataFrame) -> pd.DataFrame:
    """Return the unrated rows of a judge's table, which a corrected mean needs in addition to the ratings.

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
    need_pandas(judged, "ragnb.calibration.read_judged")
    need_pandas(ratings, "rn.read_ratings")
    own_ids = (
        "item_id" in ratings
        and "item_id" in judged
        and not judged["item_id"].isin(ratings["item_id"]).any()
    )
    if own_ids and "sample_id" in ratings and "sample_id" not in judged:  # of drawn labels
        ratings = ratings.assign(item_id=ratings["sample_id"])
    keys = [key for key in KEYS if key in judged and key in ratings]
    return judged[~_found(judged, ratings[ratings["human"].notna()], keys)].reset_index(drop=True)
