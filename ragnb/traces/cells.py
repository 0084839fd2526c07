"""One cell of a trace or of the gold set: ids, citations, refusals, phrases of a claim.

These texts are strangers': every regular expression here takes time linear in its text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError

Split = Literal["space", "comma"]
SPLITS: dict[Split, re.Pattern[str]] = {"space": re.compile(r"[,，\s]+"), "comma": re.compile("[,，]")}
_OPENING = re.compile(r"citations\s*[:：]\s*\[", re.IGNORECASE)
# A second `]` on the line, with no `[` before it, means that an id holds a bracket: the list would be cut.
_LIST = re.compile(r"([^\[\]]{0,2000})\](?![^\[\]\n]{0,200}\])")
_PHRASE = re.compile(r"[a-z0-9][a-z0-9\-\s]{4,}")


def absent(value: Any) -> bool:
    """Whether a cell holds nothing (None, NaN, NA); a list never does.

    Examples
    --------
    >>> absent(float("nan")), absent([])
    (True, False)
    """
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value)


def name_of(value: Any) -> str | None:
    """Return an id as text in Unicode form NFC; a chunk gives its ``id``; None where there is none.

    Examples
    --------
    >>> name_of({"id": 12}), name_of(12.0), name_of(" a ")
    ('12', '12', 'a')
    """
    value = value.get("id") if isinstance(value, dict) else value
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value).strip()
    if absent(value):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


def column(frame: pd.DataFrame, name: str) -> list[Any]:
    """Return a column as a list, all None where it is not there.

    Examples
    --------
    >>> column(pd.DataFrame({"a": [1, 2]}), "b")
    [None, None]
    """
    values = frame[name].to_numpy(dtype=object) if name in frame else np.full(len(frame), None)
    out: list[Any] = values.tolist()
    return out


def names_of(value: Any, column: str, row: object) -> list[str | None] | None:
    """Return the ids of a list cell, None where the cell is absent.

    Raises
    ------
    RagnbError
        If the cell is no list.

    Examples
    --------
    >>> names_of([{"id": "a"}, {"id": "b"}], "chunks", 0)
    ['a', 'b']
    """
    if absent(value):
        return None
    if not isinstance(value, list | tuple | np.ndarray):
        raise RagnbError(
            f"column {column!r}, row {row!r}: {str(value)[:60]!r} is no list of ids; "
            "read the file with rn.read_traces or rn.read_gold"
        )
    return [name_of(item) for item in value]


def citations_in(answer: str, split: Split) -> tuple[list[str] | None, bool]:
    """Return the ids of the first ``citations: [...]`` of an answer, and whether it could not be taken.

    Parameters
    ----------
    answer : str
    split : {"space", "comma"}
        What parts ids: commas and white space, or commas alone.

    Returns
    -------
    (list of str or None, bool)
        None where there is no list. True where a list opens that cannot be taken whole: it never closes
        within 2,000 characters, or a bracket stands inside it. It is never cut.

    Examples
    --------
    >>> citations_in("Yes. citations: [a, b c]", "space")
    (['a', 'b', 'c'], False)
    >>> citations_in("Yes. citations: [a[1], b]", "space")
    (None, True)
    """
    opening = _OPENING.search(answer)
    if opening is None:
        return None, False
    found = _LIST.match(answer, opening.end())
    if found is None:
        return None, True
    parts = (_unquoted(part.strip()) for part in SPLITS[split].split(found[1]))
    return [unicodedata.normalize("NFC", part) for part in parts if part], False


def _unquoted(part: str) -> str:
    return part[1:-1].strip() if len(part) > 1 and part[0] == part[-1] and part[0] in "\"'`" else part


def tidy(text: Any) -> str:
    """Return a text as it is compared: Unicode form NFC, trimmed, lower-cased.

    Examples
    --------
    >>> tidy(" Not in Context ")
    'not in context'
    """
    return unicodedata.normalize("NFC", str(text)).strip().lower()


def refusals(answers: Sequence[str], tokens: Sequence[str], patterns: Sequence[str]) -> np.ndarray[Any, Any]:
    """Return for each tidy answer whether it is a refusal.

    Parameters
    ----------
    answers : sequence of str
        As `tidy` leaves them.
    tokens : sequence of str
        An answer equal to one of them is a refusal.
    patterns : sequence of str
        An answer in which one of them is found is a refusal; case is ignored. They run on a linear-time
        engine (Rust's ``regex``), which takes no look-around and no back-references.

    Raises
    ------
    RagnbError
        For a pattern that is empty or that the engine does not take.

    Examples
    --------
    >>> refusals(["not in context", "i cannot say"], ["not in context"], ["^I cannot"])
    array([ True,  True])
    """
    wanted = {tidy(token) for token in tokens}
    refused = np.fromiter((answer in wanted for answer in answers), dtype=bool, count=len(answers))
    if not patterns:
        return refused
    import polars as pl

    texts = pl.Series([a.encode("utf-8", "replace").decode("utf-8") for a in answers], dtype=pl.String)
    for pattern in patterns:
        if not pattern.strip():
            raise RagnbError(f"patterns={list(patterns)!r} holds an empty pattern, which every answer matches")
        try:
            refused |= texts.str.contains(f"(?i)(?:{pattern})").to_numpy()
        except pl.exceptions.PolarsError as error:
            raise RagnbError(
                f"patterns: {pattern!r} is not taken ({str(error).splitlines()[-1].strip()}); "
                "look-around and back-references are left out so that no pattern can hang"
            ) from None
    return refused


def phrases_of(claim: str) -> list[str]:
    """Return the distinct phrases of a tidy claim: runs of ≥ 5 of ``a-z 0-9 -`` and white space, trimmed.

    Examples
    --------
    >>> phrases_of("for 30 days; paid in full, 8")
    ['for 30 days', 'paid in full']
    """
    return list(dict.fromkeys(phrase.strip() for phrase in _PHRASE.findall(claim)))


def occurs_whole(claim: str, answer: str) -> bool:
    """Whether a claim stands in an answer, and not inside a longer Latin word or number.

    Examples
    --------
    >>> occurs_whole("235", "因235朔望月"), occurs_whole("235", "12350")
    (True, False)
    """
    start = answer.find(claim) if claim else -1
    while start >= 0:
        end = start + len(claim)
        if not (_joins(answer[start - 1 : start], claim[0]) or _joins(claim[-1], answer[end : end + 1])):
            return True
        start = answer.find(claim, start + 1)
    return False


def _joins(left: str, right: str) -> bool:
    pair = left + right
    return len(pair) == 2 and pair.isascii() and pair.isalnum()


def contains_claim(claim: str, phrases: Sequence[str], answer: str, whole: bool) -> bool:
    """Whether an answer holds a phrase of the claim, or, under `whole`, a claim of another script whole.

    The Latin rule sees nothing in ``歐洲`` or in ``60%``; such claims count when they occur whole.

    Examples
    --------
    >>> contains_claim("歐洲", [], "在歐洲開創", True), contains_claim("歐洲", [], "在歐洲開創", False)
    (True, False)
    """
    if any(phrase in answer for phrase in phrases):
        return True
    return whole and (not phrases or not claim.isascii()) and occurs_whole(claim, answer)
