"""Ratings: what people and judges gave the same items, as one frame whatever the layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ragnb.errors import RagnbError, listing, place, unknown
from ragnb.ratings.beside import beside, is_sheet, sheet
from ragnb.ratings.tables import NAMES, Table, tidy
from ragnb.readers import langfuse, phoenix
from ragnb.readers.cells import as_id
from ragnb.readers.contract import case_cells
from ragnb.readers.formats import Source, load
from ragnb.readers.lossy import Lossy
from ragnb.readers.names import CASE_ALIASES, apply_names, clashing, name_system, rename_map
from ragnb.readers.raw import Raw

RATING_ALIASES: Mapping[str, tuple[str, ...]] = {
    **{name: aliases for name, aliases in CASE_ALIASES.items() if name != "sample_id"},
    **{name: tuple(aliases) for name, aliases in NAMES["columns"].items()},
}
"""Canonical columns of ratings and what files call them."""

_SIDES: dict[str, str] = NAMES["sides"]
"""Who gave a score, in the words of tools; neither people nor a judge where it is empty."""

RATING_LAYOUTS = {"langfuse": langfuse, "phoenix": phoenix}
Names = str | Sequence[str] | None


def read_ratings(
    source: Source,
    *,
    judge: Names = None,
    human: Names = None,
    judged: Source | None = None,
    missing: float | str | Sequence[float | str] | None = None,
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
        frame, lossy = beside(table, other), table.report.rows + other.report.rows
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
    missing: float | str | Sequence[float | str] | None = None,
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
        raise _without_people(table, frame, joined=False)
    return frame


def _listed(value: Any) -> list[Any]:
    """Return one value or several as a list; nothing is none."""
    return [] if value is None else [value] if isinstance(value, str | float | int) else list(value)


def _open(
    source: Source, judge: Names, human: Names, *, missing: Any = None, scale: tuple[float, float] | None = None,
    side: str = "", format: str | None = None, strict: bool = False, encoding: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> tuple[Table, dict[str, object]]:  # fmt: skip
    """Return a table under canonical names, one that is asked for as ``judge`` or ``human`` included."""
    report, judges, humans = Lossy(), _listed(judge), _listed(human)
    raw, origin = load(source, report, format=format, strict=strict, encoding=encoding)
    origin["layout"] = "table"
    for name, layout in RATING_LAYOUTS.items():
        if layout.sniff(set(raw.columns)):
            layout.read(raw, report)
            origin["layout"] = name
    _told_apart(raw, report)
    picks = dict(columns or {})
    if "item_id" in raw.columns and "item_id" not in picks.values():
        picks["item_id"] = "item_id"  # a sample_id beside it says of what the item was drawn
    for role, asked in (("judge", judges), ("human", humans)):
        if len(asked) == 1 and asked[0] in raw.columns:
            picks[asked[0]] = role
    clash = clashing(raw.columns, raw.where)
    names = rename_map(list(raw.columns), picks=picks, file=raw.file, aliases=RATING_ALIASES, clash=clash)
    raw.columns = name_system(apply_names(raw.columns, names, report), report)
    if raw.uneven:
        line, found = raw.uneven[0]
        raise RagnbError(f"{place(raw.file, line)}found {found} cells, expected {raw.width}")
    case_cells(raw, report)
    for name in ("dimension", "rater"):
        if name in raw.columns:
            raw.columns[name] = [as_id(value) for value in raw.columns[name]]
    known = {*raw.columns, *picks, *(name for name in raw.columns.get("rater", []) if name is not None)}
    for role, asked in (("judge", judges), ("human", humans)):
        for name in asked:
            if name not in known:
                raise unknown(role, name, sorted(map(str, known)))
    return Table(raw, report, judges, humans, _listed(missing), scale, side), origin


def _told_apart(raw: Raw, report: Lossy) -> None:
    """Take a column that says for each score whether a person gave it, such as ``source`` and ``source_type``."""
    for name in ("annotator_kind", "source", "source_type"):
        words = [str(cell).casefold() for cell in raw.columns.get(name, [])]
        if words and "rater_kind" not in raw.columns and set(words) <= {*_SIDES}:
            raw.columns["rater_kind"] = [_SIDES[word] for word in words]
            del raw.columns[name]
            kept = [i for i, word in enumerate(words) if _SIDES[word]]
            report.add("left_out", name, "scores that neither a person nor a judge gave", len(words) - len(kept))
            raw.keep(kept)


def _without_people(table: Table, frame: pd.DataFrame, joined: bool) -> RagnbError:
    have = listing(table.raw.columns)
    if joined:
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
