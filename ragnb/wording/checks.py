"""Which figures and names of an answer stand nowhere in the retrieved passages."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from ragnb.wording.lexical import pair_of

_LIST_MARK = re.compile(r"^\s{0,8}\(?\d{1,2}[.)、]\s{0,4}(?!\d)", re.MULTILINE)
_CITATION = re.compile(r"\[[\d,\s]{1,40}\]")
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9.])(?<![A-Za-z]-)(\d{1,3}(?:,\d{3}){1,6}|\d{1,30})(\.\d{1,20})?(?![A-Za-z0-9]{0,20}[A-Za-z]\d)"
    r"\s{0,2}(%|per ?cent\b|[\u4e00-\u9fff])?",
    re.IGNORECASE,
)
_CODE = r"(?:[A-Za-z]{1,20}-?\d[A-Za-z0-9-]{0,30}|\d{1,10}-?[A-Z]{1,20}[A-Za-z0-9-]{0,30})"
_PROPER = r"[A-Z][A-Za-zÀ-ɏ'’-]{1,40}"
_NAME = re.compile(
    rf"《([^《》]{{1,80}})》|(?<![A-Za-z0-9])({_CODE}|{_PROPER}(?: {_PROPER}){{0,5}})(?![A-Za-z0-9])"
)
_OPENER = re.compile(
    r"(?:all|an?|as|at|by|each|for|from|if|in|its?|no|of|on|our|that|the|this|to|when|your)", re.IGNORECASE
)
_START = re.compile(r"(?:^|[.!?:;。！？：；\n])[\s\"'“”‘’(*#-]*$")
_SENTENCE_WORD = re.compile(r"[A-Z]?[a-zÀ-ɏ'’-]+")
Found = tuple[str, tuple[Any, ...]]


def number_support(answer: str | None, contexts: Sequence[str] | None) -> tuple[float, list[str]]:
    """Say which share of an answer's figures stands in the passages that were retrieved for it.

    A figure is written in digits; 1,000 equals 1000 and 2.50 equals 2.5. Where a percent sign or a Chinese
    character follows on both sides, it has to be the same (3天 is not 3周). Marks of a list and citations in
    brackets are no figures.

    It is blind to a figure that stands in the passages about something else, and to figures in words.

    Parameters
    ----------
    answer : str or None
    contexts : sequence of str, or None
        The retrieved passages.

    Returns
    -------
    float, list of str
        The share, in [0, 1], and the figures that stand nowhere; NaN and none where the answer holds no figure,
        or where the answer or the contexts are missing. Without passages no figure is supported.

    Raises
    ------
    RagnbError
        For contexts that are one string instead of a list.

    Examples
    --------
    >>> number_support("36 months, 1,000 hours.", ["The warranty is 24 months or 1000 hours."])
    (0.5, ['36'])
    >>> number_support("年假为10天。", ["年假为10天，病假为15天。"])
    (1.0, [])
    """
    return _share(answer, contexts, _numbers, _number_stands)


def name_support(answer: str | None, contexts: Sequence[str] | None) -> tuple[float, list[str]]:
    """Say which share of the names in an answer stands in the passages that were retrieved for it.

    Names are capitalised words that do not open a sentence, runs of such words, model numbers such as CT-300,
    capitals such as WHO, and Chinese titles in 《》. A name stands in the passages if it does whole, case aside,
    or if each of its words does.

    It knows no Chinese names without 《》, and is blind to a name that stands in the passages in another role.

    Parameters
    ----------
    answer : str or None
    contexts : sequence of str, or None
        The retrieved passages.

    Returns
    -------
    float, list of str
        As `number_support` has them.

    Raises
    ------
    RagnbError
        For contexts that are one string instead of a list.

    Examples
    --------
    >>> name_support("The pump was sold by Carl Orff to the WHO.", ["Sold to the WHO by Clara Orff."])
    (0.5, ['Carl Orff'])
    """
    return _share(answer, contexts, _names, _name_stands)


def _share(
    answer: str | None,
    contexts: Sequence[str] | None,
    find: Callable[[str], list[Found]],
    stands: Callable[[tuple[Any, ...], str, list[Found]], bool],
) -> tuple[float, list[str]]:
    given, texts = pair_of(answer, contexts)
    found = find(unicodedata.normalize("NFKC", given))
    if not found:
        return math.nan, []
    text = unicodedata.normalize("NFKC", "\n".join(texts))
    there = find(text)
    absent = [words for words, what in found if not stands(what, text, there)]
    return 1 - len(absent) / len(found), list(dict.fromkeys(absent))


def _numbers(text: str) -> list[Found]:
    """Each figure as written, with its value and the unit that follows."""
    bare = _CITATION.sub(" ", _LIST_MARK.sub("\n", text))
    found: list[Found] = []
    for hit in _NUMBER.finditer(bare):
        whole, part, unit = hit.group(1), hit.group(2) or "", (hit.group(3) or "").casefold()
        value = Decimal(whole.replace(",", "") + part).normalize()
        shown = unit if unit == "%" or not unit.isascii() else ""
        found.append((f"{whole}{part}{shown}", (value, "%" if unit.startswith("per") else unit)))
    return found


def _number_stands(what: tuple[Any, ...], text: str, there: list[Found]) -> bool:
    value, unit = what
    same = [other for _, (number, other) in there if number == value]
    return any(not unit or not other or unit == other for other in same)


def _names(text: str) -> list[Found]:
    found: list[Found] = []
    for hit in _NAME.finditer(text):
        name = hit.group(1) or hit.group(2)
        words = name.split()
        words = words[1:] if _OPENER.fullmatch(words[0]) else words
        if words and hit.group(2) and _START.search(text[max(0, hit.start() - 40) : hit.start()]):
            # The first word of a sentence is capitalised anyway; what follows it may be a name.
            words = words[1:] if _SENTENCE_WORD.fullmatch(words[0]) and len(words) != 2 else words
        if words:
            found.append((" ".join(words), tuple(word.casefold() for word in words)))
    return found


def _name_stands(what: tuple[Any, ...], text: str, there: list[Found]) -> bool:
    folded = text.casefold()
    return all(re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", folded) for word in what)
