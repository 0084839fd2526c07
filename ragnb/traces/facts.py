"""Columns of facts: one array a question asked of every trace, 1 yes, 0 no, nan unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError
from ragnb.traces import cells
from ragnb.traces.cells import Split, absent

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Objects = npt.NDArray[np.object_]
Ids = list[str | None] | list[str] | None


def chosen(words: Mapping[str, Flags], size: int, other: str | None = None) -> Objects:
    """Return for each row the word whose flag is set (the last of several), else `other`.

    Examples
    --------
    >>> chosen({"a": np.array([True, False])}, 2)
    array(['a', None], dtype=object)
    """
    out = np.full(size, other, dtype=object)
    for word, flag in words.items():
        out[flag] = word
    return out


def refused(answers: Sequence[str | None], tokens: Sequence[str], patterns: Sequence[str]) -> dict[str, Floats]:
    """Return who answered and who refused; nan without an answer.

    Examples
    --------
    >>> refused(["no", None, "yes"], ["no"], [])["refused"]
    array([ 1., nan,  0.])
    """
    there = np.array([a is not None for a in answers], dtype=bool)
    out = np.full(len(answers), np.nan)
    out[there] = cells.refusals([a for a in answers if a is not None], tokens, patterns)
    return {"answered": 1 - out, "refused": out}


def citations(frame: pd.DataFrame, split: Split) -> tuple[list[list[str] | None], list[bool]]:
    """Return the cited ids of each row (its list field, else its text), and which texts could not be taken.

    Examples
    --------
    >>> citations(pd.DataFrame({"answer": ["citations: [a]", "b"], "citations": [None, ["b", "b"]]}), "space")
    ([['a'], ['b']], [False, False])
    """
    rows = frame.index, cells.column(frame, "citations"), cells.column(frame, "answer")
    predicted: list[list[str] | None] = []
    flagged = []
    for row, field, answer in zip(*rows, strict=True):
        given = cells.names_of(field, "citations", row)
        found: Ids = given
        flag = False
        if given is None and not absent(answer):
            found, flag = cells.citations_in(str(answer), split)
        predicted.append(None if found is None else [name for name in dict.fromkeys(found) if name])
        flagged.append(flag)
    return predicted, flagged


def gold_ids(frame: pd.DataFrame, matched: Flags) -> list[set[str] | None]:
    """Return the gold ids of each row; None where there is no gold, or where gold names no ids anywhere.

    Examples
    --------
    >>> gold_ids(pd.DataFrame({"gold_ids": [["a"], None, None]}), np.array([True, True, False]))
    [{'a'}, set(), None]
    """
    values = cells.column(frame, "gold_ids")
    if all(map(absent, values)):
        return [None] * len(frame)
    named = [cells.names_of(v, "gold_ids", row) for row, v in zip(frame.index, values, strict=True)]
    return [{n for n in ids or () if n} if known else None for ids, known in zip(named, matched, strict=True)]


def answerable(frame: pd.DataFrame) -> Floats:
    """Return gold's `answerable` as 1, 0 or nan.

    Raises
    ------
    RagnbError
        For a value that is not true or false.

    Examples
    --------
    >>> answerable(pd.DataFrame({"answerable": [True, False, None]}))
    array([ 1.,  0., nan])
    """
    out = np.full(len(frame), np.nan)
    for at, value in enumerate(cells.column(frame, "answerable")):
        if absent(value):
            continue
        if not isinstance(value, bool | np.bool_ | int | float | np.number) or value not in (0, 1):
            raise RagnbError(f"column 'answerable', row {frame.index[at]!r}: {value!r} is neither true nor false")
        out[at] = float(value)
    return out


def hits(predicted: Sequence[list[str] | None], gold: Sequence[set[str] | None]) -> Floats:
    """Return whether cited and gold ids have one in common; nan where gold's are unknown.

    Examples
    --------
    >>> hits([["a"], None, ["a"]], [{"a", "b"}, {"a"}, None])
    array([ 1.,  0., nan])
    """
    pairs = zip(predicted, gold, strict=True)
    return np.array([np.nan if g is None else float(not g.isdisjoint(p or ())) for p, g in pairs], dtype=float)


def contained(frame: pd.DataFrame, answers: Sequence[str | None], whole: bool) -> Floats:
    """Return whether each answer holds something of its claim; nan without an answer or a claim.

    Examples
    --------
    >>> contained(pd.DataFrame({"gold_claim": ["30 days", None]}), ["it is 30 days.", "yes"], True)
    array([ 1., nan])
    """
    out = np.full(len(frame), np.nan)
    read: dict[str, tuple[str, list[str]]] = {}
    for at, value in enumerate(cells.column(frame, "gold_claim")):
        answer = answers[at]
        if absent(value) or answer is None:
            continue
        text = str(value)
        if text not in read:
            claim = cells.tidy(text)
            read[text] = claim, cells.phrases_of(claim)
        claim, phrases = read[text]
        if claim:
            out[at] = cells.contains_claim(claim, phrases, answer, whole)
    return out


def compliant(predicted: Sequence[list[str] | None], refusal: Floats) -> Floats:
    """Return whether each row has a citations list, even an empty one, or is a refusal.

    Examples
    --------
    >>> compliant([[], None, None], np.array([0.0, 0.0, 1.0]))
    array([1., 0., 1.])
    """
    given = np.array([p is not None for p in predicted], dtype=float)
    return np.where(np.isnan(refusal), np.nan, np.maximum(given, refusal))


def rates(done: Mapping[str, Floats], answerable: Floats) -> dict[str, Floats]:
    """Return the columns whose means are the refusal and citation rates, nan outside the denominator.

    Examples
    --------
    >>> yes = np.array([1.0])
    >>> done = dict.fromkeys(["answered", "hit", "contained", "compliant"], yes) | {"refused": 1 - yes}
    >>> rates(done, yes)["citation_hit_rate"]
    array([1.])
    """
    answered, hit = done["answered"], done["hit"]
    yes = np.where(answerable == 1, 1.0, np.nan)
    return {
        "answer_precision": np.where(answered == 1, answerable * hit, np.nan),
        "over_refusal": yes * done["refused"],
        "under_refusal": np.where(answerable == 0, answered, np.nan),
        "citation_hit_rate": yes * answered * hit,
        "claim_containment": yes * answered * done["contained"],
        "compliance": done["compliant"].copy(),
    }


def statuses(
    frame: pd.DataFrame, scored: Mapping[str, Floats], done: Mapping[str, Floats], answerable: Floats
) -> dict[str, Objects]:
    """Return for each rate why a row has no number: it does not apply, the call failed, or something is missing.

    Examples
    --------
    >>> done, yes = {"refused": np.array([0.0])}, np.array([1.0])
    >>> statuses(pd.DataFrame({"answer": ["a"]}), {"under_refusal": np.array([np.nan])}, done, yes)
    {'under_refusal__status': array(['not_applicable'], dtype=object)}
    """
    refused = done["refused"]
    ok = cells.column(frame, "ok")
    failed = np.isnan(refused) & np.array([not absent(v) and not v for v in ok], dtype=bool)
    outside = dict.fromkeys(scored, answerable == 0)
    outside |= {"answer_precision": refused == 1, "under_refusal": answerable == 1}
    outside["compliance"] = np.zeros(len(frame), dtype=bool)
    return {
        f"{name}__status": chosen(
            {"failed": failed, "not_applicable": outside[name], "ok": ~np.isnan(values)}, len(frame), "missing"
        )
        for name, values in scored.items()
    }


def retrieval(frame: pd.DataFrame, gold: Sequence[set[str] | None], answerable: Floats) -> dict[str, Floats]:
    """Return what the chunk ids hold of the gold ids: any, the share, one over the rank of the first.

    Rows without chunks (None), without gold ids, or unanswerable are nan; an empty list of chunks is 0.

    Examples
    --------
    >>> frame = pd.DataFrame({"chunks": [[{"id": "b"}, {"id": "a"}]]})
    >>> {k: v.tolist() for k, v in retrieval(frame, [{"a", "c"}], np.array([1.0])).items()}
    {'retrieval_hit': [1.0], 'retrieval_recall': [0.5], 'reciprocal_rank': [0.5]}
    """
    out = {n: np.full(len(frame), np.nan) for n in ("retrieval_hit", "retrieval_recall", "reciprocal_rank")}
    for at, value in enumerate(cells.column(frame, "chunks")):
        chunks, wanted = cells.names_of(value, "chunks", frame.index[at]), gold[at]
        if chunks is None or not wanted or answerable[at] != 1:
            continue
        rank = next((place for place, name in enumerate(chunks, 1) if name in wanted), None)
        out["retrieval_hit"][at] = rank is not None
        out["retrieval_recall"][at] = len(wanted.intersection(c for c in chunks if c)) / len(wanted)
        out["reciprocal_rank"][at] = 1 / rank if rank else 0.0
    return out
