"""The review of a generated question set: its sheet, the decisions in it, and the cases that they leave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from ragnb.errors import RagnbError, did_you_mean, need_columns, place
from ragnb.readers.formats import load
from ragnb.readers.raw import Lossy, absent
from ragnb.schema import records

DECISIONS = ("keep", "edit", "drop")
WORDING = ["question", "ground_truth_answer"]
_SHEET = ("sample_id", "decision", *WORDING, "comment", "doc_name", "kind", "evidence")


def review_sheet(cases: pd.DataFrame) -> pd.DataFrame:
    """Return the sheet on which a person decides about each question of a set; no decision is taken yet.

    Parameters
    ----------
    cases : DataFrame
        With ``sample_id, question, ground_truth_answer`` and, where there are, ``doc_name`` and
        ``generation_params`` with ``kind`` and ``evidence`` (verbatim quotes).

    Returns
    -------
    DataFrame
        ``sample_id, decision, question, ground_truth_answer, comment, doc_name, kind, evidence``, all texts, in
        the order of the cases. ``decision`` is to become ``keep``, ``edit`` (the row then holds the new wording of
        question and answer) or ``drop``; blank is not reviewed.

    Raises
    ------
    RagnbError
        For a column that is not there, and two cases with one id.

    Examples
    --------
    >>> made = {"kind": "single", "evidence": ["Returns are free."]}
    >>> cases = pd.DataFrame({"sample_id": ["a"], "question": ["Who pays?"], "ground_truth_answer": ["The shop."],
    ...                       "generation_params": [made]})
    >>> review_sheet(cases).loc[0, ["decision", "kind", "evidence"]].tolist()
    ['', 'single', 'Returns are free.']
    """
    need_columns(cases.columns, ["sample_id", *WORDING])
    stated: Any = cases.get("generation_params", [{}] * len(cases))
    made = [one if isinstance(one, Mapping) else {} for one in stated]
    sheet = pd.DataFrame({name: cases.get(name, pd.Series("", cases.index)) for name in _SHEET}, dtype=object)
    sheet["kind"] = [one.get("kind", "") for one in made]
    sheet["evidence"] = ["\n\n".join(one.get("evidence") or []) for one in made]
    sheet = sheet.reset_index(drop=True).map(_text)
    if (again := sheet["sample_id"].duplicated()).any():
        twice = sheet.loc[again, "sample_id"].iloc[0]
        raise RagnbError(f"two cases have the id {twice!r}; each needs one of its own")
    return sheet


def _text(cell: Any) -> str:
    return "" if absent(cell) else str(cell).strip()


def with_decisions(cases: pd.DataFrame, decisions: Any, *, encoding: str | None = None) -> pd.DataFrame:
    """Return the sheet of some cases with the decisions, the new wordings and the comments of another sheet.

    Parameters
    ----------
    cases : DataFrame
        As for `review_sheet`.
    decisions : path or DataFrame
        A sheet, in any order of rows. Whatever is not in it has not been reviewed.
    encoding : str, optional
        Of a file; by default UTF-8.

    Raises
    ------
    RagnbError
        For a decision that is none, an id that no case has or that appears twice, an edit without a question,
        and a new wording whose decision is not ``edit``: each with its row.

    Examples
    --------
    >>> cases = pd.DataFrame({"sample_id": ["a", "b"], "question": ["q", "r"], "ground_truth_answer": ["s", "t"]})
    >>> decisions = review_sheet(cases).tail(1).assign(decision=" Drop ")
    >>> with_decisions(cases, decisions)["decision"].tolist()
    ['', 'drop']
    """
    cells = {row["sample_id"]: row for row in records(review_sheet(cases))}
    raw, _ = load(decisions, Lossy(), format=None, strict=True, encoding=encoding)
    need_columns(raw.columns, ["sample_id", "decision"])
    given = pd.DataFrame({name: list(map(_text, raw.columns[name])) for name in _SHEET[:5] if name in raw.columns})
    file, seen = place(raw.file), set[str]()
    for number, row in enumerate(records(given), 1 if raw.typed else 2):
        key, decision = row["sample_id"], row["decision"].casefold()
        if key not in cells:
            raise RagnbError(f"{file}row {number}: no case has the id {key!r}; is the sheet of another set?")
        if key in seen:
            raise RagnbError(f"{file}row {number}: the id {key!r} appears twice; keep one row for each question")
        if decision not in ("", *DECISIONS):
            hint = did_you_mean(decision, DECISIONS)
            raise RagnbError(f"{file}row {number}: the decision {row['decision']!r} is not known; {hint}")
        wording = {name: row[name] for name in WORDING if name in row}
        changed = [name for name, text in wording.items() if text.split() != cells[key][name].split()]
        if changed and decision in ("", "keep"):
            raise RagnbError(
                f"{file}row {number}: {changed[0]} was changed, but the decision is {decision!r}; write edit to "
                "use the new wording, or restore the old one"
            )
        if decision == "edit" and wording.get("question") == "":
            raise RagnbError(f"{file}row {number}: an edit needs a question; write one, or drop it")
        seen.add(key)
        cells[key] |= {"decision": decision, "comment": row.get("comment", "")}
        cells[key] |= wording if decision == "edit" else {}
    return pd.DataFrame(list(cells.values()), columns=list(_SHEET), dtype=object)


def reviewed(cases: pd.DataFrame, decisions: Any, *, encoding: str | None = None) -> pd.DataFrame:
    """Return the cases without those that were dropped, and with the edits.

    Parameters
    ----------
    cases : DataFrame
        As for `review_sheet`.
    decisions : path or DataFrame
        A sheet of `review_sheet` with decisions, as a person has left it.
    encoding : str, optional
        Of a file; by default UTF-8. Spreadsheets in Chinese may save ``"gb18030"``.

    Returns
    -------
    DataFrame
        Rows in the order and with the index and columns of `cases`. ``generation_params`` of a reviewed case says
        ``"reviewed": "keep"`` or ``"edit"`` besides; one that is not reviewed stays as it is.

    Raises
    ------
    RagnbError
        As `with_decisions`.

    Examples
    --------
    >>> cases = pd.DataFrame({"sample_id": ["a", "b"], "question": ["q", "r"], "ground_truth_answer": ["s", "t"]})
    >>> decisions = review_sheet(cases).assign(decision=["drop", "edit"], question=["q", "Why?"])
    >>> reviewed(cases, decisions).iloc[0].tolist()
    ['b', 'Why?', 't', {'reviewed': 'edit'}]
    """
    sheet = with_decisions(cases, decisions, encoding=encoding).set_index(cases.index)
    made = cases.get("generation_params", pd.Series(None, cases.index, dtype=object))
    stated = [
        {**(one if isinstance(one, Mapping) else {}), "reviewed": decision} if decision else one
        for one, decision in zip(made, sheet["decision"], strict=True)
    ]
    result = cases.assign(generation_params=pd.Series(stated, cases.index, dtype=object))
    edited = sheet["decision"] == "edit"
    for name in WORDING:
        result[name] = result[name].mask(edited, sheet[name].replace("", None))
    return result[sheet["decision"] != "drop"]
