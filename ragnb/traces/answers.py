"""What an answer says, in one place for every engine: refusals, cited ids, and whether it holds the claim.

These texts are strangers': every regular expression here runs on an engine that takes linear time (Rust's
``regex``), which has no look-around and no back-references.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Literal

import numpy as np

from ragnb.errors import RagnbError
from ragnb.traces.columns import Flags, Lists, Positions, as_series
from ragnb.traces.forms import composed, unsettled

if TYPE_CHECKING:
    import polars as pl

Split = Literal["space", "comma"]
PARTING: dict[Split, str] = {"space": r"[\s，、]+", "comma": "，"}
FEW = 2_000
LONGEST_LIST, FARTHEST_BRACKET = 2_000, 200
# The list, whether a bracket closes it, and what follows on the line up to a further bracket.
CITATIONS = r"(?i)citations\s*[:：]\s*\[([^\[\]]*)(\]?)([^\[\]\n]*\]?)"
QUOTED = r"""(?s)^(?:"(.*)"|'(.*)'|`(.*)`)$"""
PHRASE = r"[a-z0-9][a-z0-9\-\s]{4,}"
_PHRASE = re.compile(PHRASE)


def trimmed(texts: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return texts in Unicode form NFC, trimmed, and which are `unsettled`; both halves at once."""
    import polars as pl

    middle = len(texts) // 2
    if middle < FEW:
        return _trimmed(texts)
    with ThreadPoolExecutor(2) as pool:
        (head, first), (tail, second) = pool.map(_trimmed, [texts[:middle], texts[middle:]])
    return pl.concat([head, tail]), pl.concat([first, second])


def _trimmed(texts: pl.Series) -> tuple[pl.Series, pl.Series]:
    odd = unsettled(texts)
    return composed(texts, odd).str.strip_chars(), odd


def tidy(texts: pl.Series) -> pl.Series:
    """Return texts as they are compared: Unicode form NFC, trimmed, lower-cased.

    Examples
    --------
    >>> tidy(as_series([" Not in Context "])).to_list()
    ['not in context']
    """
    return composed(texts).str.strip_chars().str.to_lowercase()


def equal(answers: pl.Series, tokens: Sequence[str]) -> Flags:
    """Return for each answer, trimmed, whether, tidied, it is one of the tokens.

    Examples
    --------
    >>> equal(as_series(["Not in context", "yes", None]), ["not in context"])
    array([ True, False, False])
    """
    out = np.zeros(len(answers), dtype=bool)
    if not tokens:
        return out
    wanted = tidy(as_series(list(tokens)))
    # Composing and lower-casing shorten a text less than twelvefold.
    longest = 12 * max(1, *map(len, (token.encode("utf-8") for token in wanted)))
    near = (answers.str.len_bytes() <= longest).fill_null(False)
    out[near.to_numpy()] = tidy(answers.filter(near)).is_in(wanted.implode()).to_numpy()
    return out


def found(answers: pl.Series, patterns: Sequence[str], option: str = "patterns") -> Flags:
    """Return for each answer, trimmed and in NFC, whether one of the patterns is found in it; case is ignored.

    Raises
    ------
    RagnbError
        For a pattern that is empty or that the engine does not take; `option` is what it is called in words.

    Examples
    --------
    >>> found(as_series(["I cannot say", None]), ["^i CANNOT"])
    array([ True, False])
    """
    import polars as pl

    out = np.zeros(len(answers), dtype=bool)
    for pattern in patterns:
        if not pattern.strip():
            raise RagnbError(f"{option}={list(patterns)!r} holds an empty pattern, which every answer matches")
        try:
            out |= answers.str.contains(f"(?i)(?:{pattern})").fill_null(False).to_numpy()
        except pl.exceptions.PolarsError as error:
            raise RagnbError(
                f"{option}: {pattern!r} is not taken ({str(error).splitlines()[-1].strip()}); "
                "look-around and back-references are left out so that no pattern can hang"
            ) from None
    return out


def cited(answers: pl.Series, split: Split) -> tuple[Lists, Flags]:
    """Return the ids of the first ``citations: [...]`` of each answer, and which lists could not be taken.

    Parameters
    ----------
    answers : series of str
    split : {"space", "comma"}
        What parts ids: commas (also ``，、``) and white space, or commas alone (also ``，``).

    Returns
    -------
    (Lists, (N,) bool)
        No list where none stands. True where a list opens that cannot be taken whole: it never closes within
        2,000 characters, or a bracket stands inside it. It is never cut.

    Examples
    --------
    >>> lists, flagged = cited(as_series(["Yes. citations: [a, b c]", "citations: [a[1], b]", "no"]), "space")
    >>> lists.distinct().nested().to_list(), flagged.tolist()
    ([['a', 'b', 'c'], None, None], [False, True, False])
    """
    groups = answers.str.extract_groups(CITATIONS)
    inside, closed, after = (groups.struct.field(name) for name in groups.struct.fields)
    # A second `]` on the line, with no `[` before it, means that an id holds a bracket.
    inner = after.str.ends_with("]") & (after.str.len_chars() <= FARTHEST_BRACKET + 1)
    whole = (closed == "]") & ~inner & (inside.str.len_chars() <= LONGEST_LIST)
    there = whole.fill_null(False).to_numpy()
    parts = inside.filter(there).str.replace_all(PARTING[split], ",").str.split(",")
    flat = parts.explode().str.strip_chars()
    if flat.str.contains("""^["'`]""").any():
        flat = flat.str.replace(QUOTED, "$1$2$3").str.strip_chars()
    lengths = np.zeros(len(answers), dtype=np.int64)
    lengths[there] = parts.list.len().to_numpy()
    lists = Lists.laid(there, lengths, composed(flat.set(flat == "", None)))
    return lists, inside.is_not_null().to_numpy() & ~there


def phrases_of(claim: str) -> list[str]:
    """Return the distinct phrases of a tidy claim: runs of ≥ 5 of ``a-z 0-9 -`` and white space, trimmed.

    Examples
    --------
    >>> phrases_of("for 30 days; paid in full, 8")
    ['for 30 days', 'paid in full']
    """
    return list(dict.fromkeys(phrase.strip() for phrase in _PHRASE.findall(claim)))


def holds(answers: pl.Series, claims: pl.Series, row: Positions, whole: bool) -> Flags:
    """Return for each answer whether it holds a phrase of its claim, or, under `whole`, the claim as it is.

    The Latin rule sees nothing in ``歐洲`` or in ``60%``; such claims count when they occur whole, and not
    inside a longer Latin word or number.

    Parameters
    ----------
    answers : (N,) series of str
        Tidy, none missing.
    claims : (M,) series of str
        Tidy, each once.
    row : (N,) int
        The claim of each answer.
    whole : bool

    Examples
    --------
    >>> holds(as_series(["在歐洲開創", "12350"]), as_series(["歐洲", "235"]), np.array([0, 1]), True)
    array([ True, False])
    """
    import polars as pl

    texts = claims.to_list()
    phrases = [phrases_of(claim) for claim in texts]
    sought = [(at, phrase) for at, listed in enumerate(phrases) for phrase in listed]
    if whole:
        own = [(at, c) for at, c in enumerate(texts) if c and (not phrases[at] or not c.isascii())]
        sought += own
    out = np.zeros(len(answers), dtype=bool)
    if not sought:
        return out
    table = pl.DataFrame(
        {
            "claim": np.array([at for at, _ in sought], dtype=np.int64),
            "text": as_series([text for _, text in sought]),
            "own": np.arange(len(sought)) >= len(sought) - (len(own) if whole else 0),
        }
    )
    pairs = pl.DataFrame({"at": np.arange(len(answers)), "claim": row}).join(table, on="claim", how="inner")
    pairs = pairs.with_columns(answers.gather(pairs["at"]).alias("answer"))
    pairs = pairs.filter(pl.col("answer").str.contains(pl.col("text"), literal=True))
    joined = pairs["own"] & pairs["text"].str.contains(r"^[a-z0-9]|[a-z0-9]$")
    out[pairs.filter(~joined)["at"].to_numpy()] = True
    for at, text, answer in pairs.filter(joined).select("at", "text", "answer").iter_rows():
        out[at] |= occurs_whole(text, answer)
    return out


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
