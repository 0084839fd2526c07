"""Human labels: read in any layout beside a judge's scores, drawn, written as a sheet, and the golden set.

The judge's scores and the systems are in a separate key file, so that annotators do not see them. A golden set is
three hard questions that every judge must get right, a quick check before a calibration: its nine numbers prove
nothing about a judge, but one of them off by more than a point is reason enough to improve its prompt.
"""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import texts
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
    RagnbWarning,
    did_you_mean,
    listing,
    need_columns,
    need_known,
    need_whole,
)
from ragnb.files import write_whole
from ragnb.readers import to_csv_text
from ragnb.readers.cells import as_id, case_cells, metric_values, other_values
from ragnb.readers.facts import verdict_value
from ragnb.readers.formats import Source, load
from ragnb.readers.layouts import lay_out
from ragnb.readers.names import CASE_ALIASES, loose, name_columns
from ragnb.readers.owner import name_by_name
from ragnb.readers.raw import Lossy, Raw, absent, settle
from ragnb.schema import CASE_COLUMNS, CLIP, METRICS, Metric, Rubric
from ragnb.stats import within

BANDS = ("low", "middle", "high")
SHOWN = ("question", "ground_truth_answer", "answer", "retrieved_contexts")
_BOM = "\ufeff"  # without it a spreadsheet shows Chinese as rubbish
FIRST = ("item_id", "dimension", "judge", "human", "rater", "system", "cluster")
KEYS = ("item_id", "dimension", "system")
NAMES: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("reading.toml").read_text(encoding="utf-8")
)
_PATTERNS = {
    name: re.compile(pattern, re.IGNORECASE) for name, pattern in NAMES["patterns"].items()
}
_NUMBERED, _JUDGE = _PATTERNS["numbered"], _PATTERNS["judge"]
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
        frame = tidy(table := _open(source, judge, human, **files, **how))
    else:
        table = _open(source, None, human, side="human", **files, **how)
        frame = joined(table, _open(judged, judge, None, side="judge", **how))
    if "human" not in frame or not frame["human"].notna().any():
        raise _without_people(table, frame, judged is not None)
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
    table = _open(
        source, judge, None, side="judge", encoding=encoding, missing=missing, scale=scale
    )
    columns, wanted = list(table.raw.columns), list(dimensions or [])
    if table.is_sheet:
        wanted = wanted or [d.name for d in Rubric().dimensions if d.name in columns]
        absent = next((name for name in wanted if name not in columns), None)
        if absent or not wanted:
            fault = (
                f"dimension {absent!r} is not a column" if absent else "contains no judge scores"
            )
            raise RagnbError(
                f"{table.raw.where()}{fault}; {did_you_mean(absent or 'judge', columns)}. Name the column "
                "of its scores: judge='…', or one that is a dimension: dimensions=['…']"
            )
    return finish(tidy(table, wanted), table)


def read_golden(source: Source, *, human: Names | None = None, **how: Any) -> pd.DataFrame:
    """Read a golden set as `read_ratings` does; an unfilled one has only missing scores.

    Examples
    --------
    >>> read_golden([{"item_id": "G1", "judge": None, "human": None}])["human"].tolist()
    [nan]
    """
    if "human" not in (frame := tidy(table := _open(source, how.pop("judge", None), human, **how))):
        raise _without_people(table, frame, both=False)
    return finish(frame, table)


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
        raw, report = self.raw, self.report
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
        for raters in numbered.values() if len(self.humans) != 1 or "human" not in columns else ():
            if set(raters) == set(range(1, len(raters) + 1)):
                return [raters[k] for k in sorted(raters)]
        return ["human"] if "human" in columns else []

    @cached_property
    def judge_columns(self) -> list[str]:
        """The columns with judge scores."""
        columns = self.raw.columns
        if len(self.judges) > 1 and set(self.judges) <= set(columns):
            return self.judges
        named = [n for n in columns if _JUDGE.fullmatch(n) and "__" not in n and self.is_number(n)]
        return ["judge"] if "judge" in columns else named

    @property
    def is_sheet(self) -> bool:
        """Whether no column of scores has a known name, so that the dimensions are the columns."""
        return "score" not in self.raw.columns and not self.human_columns + self.judge_columns


def _open(
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
    report, asked = Lossy(), {"judge": as_list(judge), "human": as_list(human)}
    raw, origin = load(source, report, format=format, strict=strict, encoding=encoding)
    origin["layout"] = lay_out(raw, report, ("langfuse", "phoenix"))
    if origin["layout"] != "table":
        raw.drop(
            [kind is None for kind in raw.columns["rater_kind"]], "annotator_kind", _NEITHER, report
        )
    for name in (
        "annotator_kind",
        "source",
        "source_type",
    ):  # which say whether a person gave a score
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


def _without_people(table: Table, frame: pd.DataFrame, both: bool) -> RagnbError:
    place, columns = table.raw.where(), table.raw.columns
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
    found = [str(c) for c in ratings if c == "judge" or c in named or str(c).startswith("judge_")]
    found = ["judge"] if "judge" in found and not named else found
    return [name for name in found if pd.api.types.is_numeric_dtype(ratings[name])]


def tidy(table: Table, dimensions: Sequence[str] = ()) -> pd.DataFrame:
    """Return one row per item, dimension and rater, of a sheet with `dimensions`, a long table or a wide one."""
    humans, judges, report = table.human_columns, table.judge_columns, table.report
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
    rated, item = out["human"].notna(), np.arange(len(out)) // len(humans)
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
    if not (side := "human" if kinds is not None or named else table.side):
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
    return _with_judges(people, frame[is_judge], table.report) if is_judge.any() else people


def _with_judges(people: pd.DataFrame, judged: pd.DataFrame, report: Lossy) -> pd.DataFrame:
    """Join the rows of judges to those of humans; items scored only by a judge follow, unrated."""
    keys, names = [key for key in KEYS if key in people], judged["rater"].fillna("judge")
    report.add("mapped", "rater", f"judges: {listing(names.unique())}", len(judged))
    again = int(judged[keys].assign(rater=names).duplicated().sum())
    report.add("mapped", "judge", "several scores of one judge on an item are averaged", again)
    columns = (
        [n if n.startswith("judge") else f"judge_{n}" for n in names]
        if names.nunique() > 1
        else "judge"
    )
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
    dimensions, report = _dimensions(people, judged), people.report
    left, right = tidy(people, dimensions), tidy(judged, dimensions)
    report.add("left_out", "human", "cells that nobody filled in", int(left["human"].isna().sum()))
    left = left[left["human"].notna()]
    keys = [key for key in KEYS if key in left and key in right]
    again = right.duplicated(keys)
    if "item_id" not in keys or again.any():
        twice = (
            f"item {right.loc[again, 'item_id'].iloc[0]!r} appears more than once"
            if again.any()
            else ""
        )
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
    alone, nobody = ~_found(left, right, keys), ~_found(right, left, keys)
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


# Sampling, the annotation sheet, the golden set


def draw_labels(
    judged: pd.DataFrame,
    *,
    n: int = 120,
    dimensions: Sequence[str] | None = None,
    cluster: str = "cluster",
    seed: int = 0,
    pairs: bool = False,
) -> pd.DataFrame:
    """Draw the answers that people should rate, each with the same chance.

    Parameters
    ----------
    judged : DataFrame
        One row per answer with one column per dimension, as `judge` gives it; or one row per answer and dimension,
        as `read_judged` gives it. ``system`` and the cluster (or ``doc_name``) are used where they are there.
    n : int
        How many answers.
    dimensions : sequence of str, optional
        The columns (or values of ``dimension``) to rate; by default those there of the rubric's.
    cluster : str
        The column of answers that resemble each other; ``doc_name`` where it is absent.
    seed : int
        The same seed draws the same answers, in whatever order the rows come.
    pairs : bool
        Draw `n` questions that all systems answered, at random within each document in turn, and every system's
        answer to each: the ratings then decide `ragnb.compare`.

    Returns
    -------
    DataFrame
        One row per answer, in the order in which raters see them: ``item_id`` (new, so that it tells a rater
        nothing), ``sample_id, system, cluster, band`` (``low, middle, high``: thirds of the range of the judge's
        mean over the dimensions), what raters read, the judge's score by dimension, and the
        ``inclusion_probability``, n/N, by which estimates are weighted.
        ``attrs["dimensions"]`` names those; ``attrs["population"]`` counts what was drawn from.

    Raises
    ------
    RagnbError
        Where no dimension is known, or an answer appears more than once.

    Warns
    -----
    RagnbWarning
        Where there are fewer answers than `n`, or answers without a score are left out.

    Notes
    -----
    Systematic sampling with a random start from the list ordered by system, band and (in random order) cluster:
    every answer has the chance n/N, so a share over the labels is one of all answers; each system, band and
    cluster gets its part of the labels, to the nearest one or two (Cochran, Sampling Techniques, 1977, ch. 8).
    Rate all of them: answers left out, or picked, by their human score make every estimate wrong without a trace.

    Examples
    --------
    >>> scores = pd.DataFrame({"sample_id": list("abcd"), "accuracy": [9.0, 2.0, 8.0, 3.0]})
    >>> drawn = draw_labels(scores, n=2, seed=1)
    >>> sorted(drawn["band"])
    ['high', 'low']
    """
    need_pandas(judged, "ragnb.calibration.read_judged")
    items, names = _items(judged, dimensions, cluster)
    mean = items[names].mean(axis=1)
    if unscored := int(mean.isna().sum()):
        warnings.warn(
            f"{unscored} answers without a judge score are excluded", RagnbWarning, stacklevel=2
        )
    items, mean = items[mean.notna()], mean[mean.notna()]
    need_whole("n", n)
    if pairs:
        return _with_ids(*_drawn_pairs(items, mean, n, seed), names, seed)
    if n > len(items):
        text = f"n={n}, but there are only {len(items)} judged answers; all are drawn"
        warnings.warn(text, RagnbWarning, stacklevel=2)
    third = np.clip(
        np.ceil(3 * (mean - mean.min()) / (mean.max() - mean.min() or 1)) - 1, 0, 2
    ).astype(int)
    rng = np.random.default_rng(seed)
    place = {
        name: rank for rank, name in enumerate(rng.permutation(sorted(items["cluster"].unique())))
    }
    system, size = pd.factorize(items["system"], sort=True)[0], min(n, len(items))
    order = np.lexsort((rng.random(len(items)), items["cluster"].map(place), third, system))
    steps = ((np.arange(size) + rng.random()) * len(items) / max(size, 1)).astype(int)
    items = items.assign(band=np.array(BANDS, dtype=object)[third])
    drawn: pd.DataFrame = items.iloc[order[np.minimum(steps, len(items) - 1)]]
    drawn = drawn.assign(**{PROBABILITY: size / len(items)}).iloc[rng.permutation(size)]
    return _with_ids(drawn, len(items), names, seed)


def _drawn_pairs(
    items: pd.DataFrame, mean: pd.Series[float], n: int, seed: int
) -> tuple[pd.DataFrame, int]:
    """Return the answers of all systems to drawn questions in random order, and how many answers there were.

    Never by what the judge saw: of pairs picked where it sees a gain, people seem to see one, too.
    """
    systems = items["system"].nunique()
    if systems < 2:
        raise RagnbError(
            "pairs=True draws questions that two or more systems answered, and the table has one; give a table "
            "with a column system"
        )
    times = items["sample_id"].map(items["sample_id"].value_counts())
    items = items[times == systems]
    if items.empty:
        raise RagnbError(
            "no question has a judged answer of every system; check the column sample_id"
        )
    questions = items.drop_duplicates("sample_id")
    if n > len(questions):
        text = f"n={n}, but there are only {len(questions)} questions of all systems; all are drawn"
        warnings.warn(text, RagnbWarning, stacklevel=3)
    rng = np.random.default_rng(seed)
    place = {
        name: rank
        for rank, name in enumerate(rng.permutation(sorted(questions["cluster"].unique())))
    }
    order = np.lexsort((rng.random(len(questions)), questions["cluster"].map(place)))
    size = min(n, len(questions))
    steps = ((np.arange(size) + rng.random()) * len(questions) / max(size, 1)).astype(int)
    chosen = questions["sample_id"].iloc[order[np.minimum(steps, len(questions) - 1)]]
    scale = mean.max() - mean.min() or 1.0
    third = np.clip(np.ceil(3 * (mean[items.index] - mean.min()) / scale) - 1, 0, 2).astype(int)
    items = items.assign(
        band=np.array(BANDS, dtype=object)[third], **{PROBABILITY: size / len(questions)}
    )
    drawn = items[items["sample_id"].isin(chosen)]
    return drawn.iloc[rng.permutation(len(drawn))], len(items)


def _with_ids(drawn: pd.DataFrame, population: int, names: list[str], seed: int) -> pd.DataFrame:
    """Return drawn answers with ids that tell a rater nothing."""
    drawn = drawn.reset_index(drop=True)
    width = max(3, len(str(len(drawn))))
    drawn.insert(0, "item_id", [f"L{i + 1:0{width}d}" for i in range(len(drawn))])
    drawn.attrs = {"dimensions": names, "population": population, "seed": seed}
    return drawn


def _items(
    frame: pd.DataFrame, dimensions: Sequence[str] | None, cluster: str
) -> tuple[pd.DataFrame, list[str]]:
    """Return one row per answer in an order that the caller's does not change, and the dimensions."""
    frame = frame.rename(columns={"item_id": "sample_id"} if "sample_id" not in frame else {})
    rubric, there = (
        [d.name for d in Rubric().dimensions if d.name in frame],
        [str(name) for name in frame],
    )
    if "judge" in frame:  # one row per dimension
        frame, there = _spread(frame)
        rubric = there
    names = rubric if dimensions is None else list(dimensions)
    missing = next((name for name in names if name not in there), None)
    if missing or not names or "sample_id" not in frame:
        what = (
            f"dimension {missing!r} does not exist"
            if missing
            else "there is no judge score to sample by"
        )
        what = what if "sample_id" in frame else "no column says which answer a row is"
        raise RagnbError(f"{what}; {did_you_mean(missing or 'judge', there)}")
    group = frame.get(cluster, frame.get("doc_name", frame["sample_id"])).fillna(frame["sample_id"])
    system = frame["system"].astype(str) if "system" in frame else ""
    frame = frame.assign(system=system, cluster=group.astype(str)).sort_values(
        ["sample_id", "system"]
    )
    _once(frame, ["sample_id", "system"])
    first = ["sample_id", "system", "cluster", *(c for c in SHOWN if c in frame)]
    return frame[[*first, *names]].reset_index(drop=True), names


def _spread(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Pivot one row per dimension (and rater) into one row per answer."""
    if "dimension" not in frame:
        frame = frame.assign(dimension="overall")
    keys = [c for c in ("sample_id", "system") if c in frame]
    if "rater" in frame:
        frame = frame.drop_duplicates([*keys, "dimension"])
    _once(frame, [*keys, "dimension"])
    names = [str(name) for name in frame["dimension"].unique()]
    wide = frame.set_index([*keys, "dimension"])["judge"].unstack("dimension").reset_index()
    about = frame.drop(
        columns=["dimension", "judge", "human", "rater"], errors="ignore"
    ).drop_duplicates(keys)
    return about.merge(wide.rename_axis(columns=None), on=keys), names


def _once(frame: pd.DataFrame, keys: list[str]) -> None:
    if (again := frame.duplicated(keys)).any():
        raise RagnbError(
            f"answer {frame.loc[again, 'sample_id'].iloc[0]!r} appears more than once; keep one row per "
            "answer, or name the column 'system' that distinguishes them"
        )


def write_labels(drawn: pd.DataFrame, path: str | PathLike[str]) -> tuple[Path, Path]:
    """Write the sheet that raters fill in, and apart from it the key with the judge's scores.

    Parameters
    ----------
    drawn : DataFrame
        From `draw_labels`.
    path : path
        The raters' sheet, a ``.csv``: what they read, an empty column a dimension, ``rater`` and ``comment``. It
        holds neither the judge's scores nor the system, and opens in a spreadsheet with Chinese intact.

    Returns
    -------
    (Path, Path)
        The sheet, and ``<name>.judge.csv`` beside it: ``item_id, sample_id, system, cluster, band,
        inclusion_probability`` and the judge's scores. Raters do not get it; ``read_labels(sheet, key)`` joins
        the two.

    Raises
    ------
    RagnbError
        Where a file of either name is there already: it may hold ratings.

    Examples
    --------
    >>> import tempfile
    >>> from ragnb.calibration import draw_labels
    >>> scores = pd.DataFrame({"sample_id": ["a"], "accuracy": [9.0], "answer": ["w"]})
    >>> sheet, key = write_labels(draw_labels(scores, n=1), Path(tempfile.mkdtemp()) / "labels.csv")
    >>> print(sheet.read_text(encoding="utf-8-sig"), key.name, end="")
    item_id,answer,accuracy,rater,comment
    L001,w,,,
     labels.judge.csv
    """
    sheet, names = Path(path), drawn.attrs["dimensions"]
    key = sheet.with_name(f"{sheet.stem}.judge.csv")
    shown = drawn[["item_id", *(c for c in SHOWN if c in drawn)]]
    shown = shown.assign(**dict.fromkeys([*names, "rater", "comment"], None))
    if "retrieved_contexts" in shown:
        shown["retrieved_contexts"] = shown["retrieved_contexts"].map(_numbered)
    systems = ["system"] if drawn["system"].any() else []
    hidden = drawn[["item_id", "sample_id", *systems, "cluster", "band", PROBABILITY, *names]]
    _write_new({key: hidden, sheet: shown})
    return sheet, key


def write_golden(template: pd.DataFrame, path: str | PathLike[str]) -> Path:
    """Write a golden set to fill in, as `write_labels` writes a sheet; a file that is there is not written over.

    Examples
    --------
    >>> import tempfile
    >>> from ragnb.calibration import golden_template
    >>> write_golden(golden_template(), Path(tempfile.mkdtemp()) / "golden.csv").name
    'golden.csv'
    """
    _write_new({Path(path): template})
    return Path(path)


def _write_new(sheets: Mapping[Path, pd.DataFrame]) -> None:
    """Write sheets that spreadsheets can open, none of them over a file that is there."""
    for file in (file for file in sheets if file.exists()):
        raise RagnbError(
            f"{file}: already exists and may contain ratings; choose another file, or move it"
        )
    for file, frame in sheets.items():
        write_whole(file, _BOM + to_csv_text(frame))


def _numbered(contexts: Any) -> Any:
    """Write passages as a person reads them."""
    if not isinstance(contexts, list | tuple | np.ndarray):
        return contexts
    return "\n\n".join(f"[{i}] {text}" for i, text in enumerate(contexts, 1))


def read_rated(file: str | PathLike[str], **options: Any) -> pd.DataFrame:
    """Read ratings as `read_ratings` does; a drawn sheet together with the key that was written beside it.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = write_whole(folder / "ann.csv", "item_id,accuracy\\nL001,8\\n")
    >>> _ = write_whole(folder / "ann.judge.csv", "item_id,system,accuracy\\nL001,new,9\\n")
    >>> read_rated(folder / "ann.csv")[["system", "judge", "human"]].values.tolist()
    [['new', 9.0, 8.0]]
    """
    key = Path(file).with_name(f"{Path(file).stem}.judge.csv")
    if options.get("judged") is None and key.is_file():
        options["judged"] = key
    return read_ratings(file, **options)


def read_labels(
    sheets: str | PathLike[str] | Iterable[str | PathLike[str]],
    key: str | PathLike[str] | None,
    **options: Any,
) -> pd.DataFrame:
    """Read filled-in sheets, one or one a rater, with the judge's scores of their key.

    Parameters
    ----------
    sheets : path or several
        Where the column ``rater`` is empty and there are several sheets, the name of the file is the rater's.
    key : path or None
        The file that `write_labels` left beside the sheet; None where the sheets hold the judge's scores.
    **options
        As `read_ratings` takes them, such as ``encoding="gb18030"``.

    Returns
    -------
    DataFrame
        As `read_ratings` returns.

    Raises
    ------
    RagnbError
        As `read_ratings`; and where two sheets are of one rater.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> files = {"ann.csv": "item_id,accuracy\\nL001,8\\n", "key.csv": "item_id,accuracy\\nL001,9\\n"}
    >>> paths = [write_whole(folder / name, text) for name, text in files.items()]
    >>> read_labels(*paths)
      item_id dimension  judge  human
    0    L001  accuracy    9.0    8.0
    """
    paths = [sheets] if isinstance(sheets, str | PathLike) else list(sheets)
    if len(frames := [read_ratings(path, judged=key, **options) for path in paths]) == 1:
        return frames[0]
    for path, frame in zip(paths, frames, strict=True):
        if "rater" not in frame:
            frame.insert(list(frame).index("human") + 1, "rater", Path(path).stem)
    whole = pd.concat(frames, ignore_index=True)
    again = whole.duplicated(
        [name for name in (*KEYS, "rater") if all(name in frame for frame in frames)]
    )
    if again.any():
        names = listing(whole.loc[again, "rater"].unique())
        raise RagnbError(
            f"{listing(paths)}: rater {names} rated an item twice; fill in the column 'rater'"
        )
    lossy = [row for frame in frames for row in frame.attrs["lossy"]]
    whole.attrs = {"lossy": lossy, "source": {**frames[0].attrs["source"], "rows": len(whole)}}
    return whole


def golden_template(*, lang: str = "en", dimensions: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the empty sheet of a golden set: three documents, a hard question to each, one row per dimension.

    Parameters
    ----------
    lang : {"en", "zh"}
        The language of the hints.
    dimensions : sequence of str, optional
        By default those of `Rubric`.

    Returns
    -------
    DataFrame
        ``item_id, hint`` (what makes a question hard: a figure among others, two passages, no answer in the
        document), ``doc_name, question, answer, dimension`` (of the rubric), ``judge, human, comment``; what is to
        be filled in is empty.

    Examples
    --------
    >>> golden_template()[["item_id", "dimension"]].shape, golden_template()["item_id"].nunique()
    ((9, 2), 3)
    """
    columns = (
        "item_id",
        "hint",
        "doc_name",
        "question",
        "answer",
        "dimension",
        "judge",
        "human",
        "comment",
    )
    rows = [
        {"item_id": f"G{i}", "hint": texts.entry(lang, f"golden.{kind}"), "dimension": dimension}
        for i, kind in enumerate(("figure", "two_passages", "not_there"), 1)
        for dimension in dimensions or [one.name for one in Rubric().dimensions]
    ]
    return pd.DataFrame(rows, columns=columns, dtype=object).replace({np.nan: None})


def check_golden(ratings: pd.DataFrame, *, tolerance: float = 1.0) -> pd.DataFrame:
    """Check for every item of a golden set whether judge and human agree within the tolerance.

    Parameters
    ----------
    ratings : DataFrame
        As `read_ratings` returns it; the scores of several raters are averaged.
    tolerance : float
        In points of the scale; 1e-9 is added.

    Returns
    -------
    DataFrame
        ``item_id, dimension, judge, human, difference`` (judge − human) and ``within``: nullable, missing where
        a score is missing. All are within the tolerance when ``within.all(skipna=False)`` is True.

    Raises
    ------
    RagnbError
        For a column that is not there.

    Examples
    --------
    >>> golden = pd.DataFrame({"item_id": ["G1", "G2"], "judge": [9.0, 6.0], "human": [8.0, 4.0]})
    >>> check_golden(golden)["within"].tolist()
    [True, False]
    """
    need_pandas(ratings, "rn.read_ratings")
    need_columns(ratings, ["judge", "human"])
    keys = [name for name in KEYS if name in ratings]
    frame = ratings.groupby(keys, sort=False, dropna=False)[["judge", "human"]].mean().reset_index()
    frame["difference"] = frame["judge"] - frame["human"]
    flags = within(frame["judge"], frame["human"], tolerance)
    return frame.assign(within=pd.Series(flags == 1, dtype="boolean").mask(np.isnan(flags)))
