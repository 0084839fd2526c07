"""Ratings of people, beside the scores of a judge or alone, read in any layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ragnb.calibration.rating_table import JUDGE_NAME, KEYS, NAMES, NUMBERED, Table, judge_columns
from ragnb.calibration.ratings import Names, need_pandas
from ragnb.calibration.scores import Missing, Scale, as_list
from ragnb.calibration.tidying import about_the_same, finish, joined, tidy
from ragnb.errors import RagnbError, did_you_mean, listing, need_known
from ragnb.readers.cells import as_id
from ragnb.readers.columns import case_cells
from ragnb.readers.formats import Source, load
from ragnb.readers.layouts import lay_out
from ragnb.readers.names import CASE_ALIASES, loose, name_columns
from ragnb.readers.owner import name_by_name
from ragnb.readers.raw import Lossy
from ragnb.readers.reading import Reading
from ragnb.schema import METRICS, Rubric

BANDS = ("low", "middle", "high")
SHOWN = ("question", "ground_truth_answer", "answer", "retrieved_contexts")
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
    reading = reading_of_ratings(
        source,
        judge=judge,
        human=human,
        judged=judged,
        missing=missing,
        scale=scale,
        format=format,
        strict=strict,
        columns=columns,
        encoding=encoding,
    )
    return reading.with_attrs()


def reading_of_ratings(
    source: Source,
    *,
    judge: Names | None = None,
    human: Names | None = None,
    judged: Source | None = None,
    missing: Missing = None,
    scale: Scale | None = None,
    **files: Any,
) -> Reading:
    """Read as `read_ratings` does; `files` are its other arguments."""
    how: dict[str, Any] = {"missing": missing, "scale": scale}
    if judged is None:
        table = open_ratings(source, judge, human, **files, **how)
        frame = tidy(table)
    else:
        # `judge` names a column of the judge's own table, and `files` are about the people's.
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
        fault = ""
        if absent:
            fault = f"dimension {absent!r} is not a column"
        elif not wanted:
            fault = "contains no judge scores"
        if fault:
            raise RagnbError(
                f"{table.raw.where()}{fault}; {did_you_mean(absent or 'judge', columns)}. Name the column "
                "of its scores: judge='…', or one that is a dimension: dimensions=['…']"
            )
    return finish(tidy(table, wanted), table).with_attrs()


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
    named = {"judge": as_list(judge), "human": as_list(human)}
    raw, origin = load(source, report, format=format, strict=strict, encoding=encoding)
    origin["layout"] = lay_out(raw, report, ("langfuse", "phoenix"))
    if origin["layout"] != "table":
        raw.drop(
            [kind is None for kind in raw.columns["rater_kind"]], "annotator_kind", _NEITHER, report
        )
    # Columns in which tools say whether a person gave a score; one with other words means something else.
    for name in ("annotator_kind", "source", "source_type"):
        words = [str(cell).casefold() for cell in raw.columns.get(name, [])]
        if words and "rater_kind" not in raw.columns and set(words) <= {*_SIDES}:
            raw.columns["rater_kind"] = [_SIDES[word] for word in words]
            del raw.columns[name]
            raw.drop([not _SIDES[word] for word in words], name, _NEITHER, report)
    picks = dict(columns or {})
    # A sample_id beside it, an alias of items elsewhere, names the sample that the item was drawn from.
    if "item_id" in raw.columns and "item_id" not in picks.values():
        picks["item_id"] = "item_id"
    for role, names in named.items():
        if len(names) == 1 and names[0] in raw.columns:
            picks[names[0]] = role
    name_columns(raw, report, picks=picks, aliases=RATING_ALIASES)
    name_by_name(raw, report)
    raw.check_even()
    case_cells(raw, report)
    for name in ("dimension", "rater"):
        if name in raw.columns:
            raw.columns[name] = [as_id(value) for value in raw.columns[name]]
    # Only now are the raters of a long table known, whom `judge` and `human` may name in place of columns.
    raters = [name for name in raw.columns.get("rater", []) if name is not None]
    known = {*raw.columns, *picks, *raters}
    for role, names in named.items():
        for name in names:
            need_known(role, name, sorted(map(str, known)))
    return Table(raw, report, origin, named["judge"], named["human"], as_list(missing), scale, side)


def without_people(table: Table, frame: pd.DataFrame, both: bool) -> RagnbError:
    """Return the error for a table without human scores, with the next step; `both`: a judge's table was given."""
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
        scored = [name for name in columns if name in METRICS]
        if scored:
            return RagnbError(
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
    roles = {_SCORER[loose(name)] for name in columns if loose(name) in _SCORER}
    names = {*columns, *roles}
    has_people = any(
        name in ("human", "rater", "score") or NUMBERED.fullmatch(name) for name in names
    )
    # In a long table one of the raters may be the judge.
    is_long = {"rater", "score"} <= names
    has_judge = is_long or any(name == "judge" or JUDGE_NAME.fullmatch(name) for name in names)
    return has_people and has_judge


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
    have_ids = "item_id" in ratings and "item_id" in judged
    have_own_ids = have_ids and not judged["item_id"].isin(ratings["item_id"]).any()
    # Drawn labels have new ids, which tell a rater nothing; the sample's is the one that the judge's table has.
    if have_own_ids and "sample_id" in ratings and "sample_id" not in judged:
        ratings = ratings.assign(item_id=ratings["sample_id"])
    keys = [key for key in KEYS if key in judged and key in ratings]
    # A row of the ratings that nobody rated counts as judged where it stands, if the judge's score is in it.
    scored = ratings[["human", *judge_columns(ratings)]].notna().any(axis=1)
    return judged[~about_the_same(judged, ratings[scored], keys)].reset_index(drop=True)
