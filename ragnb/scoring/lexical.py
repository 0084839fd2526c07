"""Lexical checks: how much of an answer's wording, figures and names is found in the retrieved passages.

No model, no key, no judgement: it says what stands where, not what is true.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from string import ascii_lowercase, digits
from typing import Any

from ragnb.errors import RagnbError
from ragnb.files import patterns_of

pattern = patterns_of(Path(__file__).with_name("lexical.toml"))
# A figure or a name as it is written, and by what it is compared: its value and unit, or its words.
Found = tuple[str, tuple[Any, ...]]
_LATIN = frozenset(ascii_lowercase + digits)


def support_lexical(answer: str | None, contexts: Sequence[str] | None) -> float:
    """Return how much of an answer's wording is found in the retrieved passages.

    For each sentence of the answer, the mean of three precisions: the share of its tokens that occur in the
    contexts, the share of its pairs of neighbouring tokens that do, and ROUGE-L precision, the longest common
    subsequence with one context (the best one) over the sentence's length. The score is the mean over the
    sentences. Tokens are case-folded words and numbers (NFKC), and overlapping pairs of characters in runs
    of Chinese or Japanese, where a single character is its own token. A sentence of one token has no pairs:
    the other two precisions are averaged.

    It speaks of wording alone. It is blind to negation (an inserted "not" hardly moves it), to truth, to
    completeness and to relevance, and it undervalues a paraphrase. It ranks answers; a threshold found on one
    data set does not hold on another. It is not faithfulness, and not a mark from 1 to 10.

    Parameters
    ----------
    answer : str or None
        The text of the answer, without its list of citations.
    contexts : sequence of str, or None
        The retrieved passages. None and NaN are missing, as for the answer.

    Returns
    -------
    float
        In [0, 1]; NaN where the answer or the contexts hold no token.

    Raises
    ------
    RagnbError
        For contexts that are one string instead of a list.

    Notes
    -----
    ROUGE-L: Lin (2004), "ROUGE: A Package for Automatic Evaluation of Summaries".

    Examples
    --------
    >>> support_lexical("The warranty is 24 months.", ["The standard warranty is 24 months."])
    0.9166666666666666
    >>> support_lexical("年假为10天。", ["年假为10天，须提前申请。"])
    1.0
    >>> support_lexical("Ask the vendor.", [])
    nan
    """
    given, texts = pair_of(answer, contexts)
    passages = [words for words in map(words_of, texts) if words]
    parts = pattern("sentence_end").split(given)
    sentences = [words for words in map(words_of, parts) if words]
    if not passages or not sentences:
        return math.nan
    words = {token for passage in passages for token in passage}
    pairs = {pair for passage in passages for pair in pairwise(passage)}
    scores = [_sentence_support(sentence, passages, words, pairs) for sentence in sentences]
    return math.fsum(scores) / len(scores)


def pair_of(answer: str | None, contexts: Sequence[str] | None) -> tuple[str, list[str]]:
    """Return an answer and its passages, an empty answer where either is missing."""
    if isinstance(contexts, str):
        raise RagnbError(
            f"contexts={contexts[:40]!r} is one string; pass a list of passages: [text, ...]"
        )
    if not isinstance(answer, str) or contexts is None or isinstance(contexts, float):
        return "", []
    return answer, [text for text in contexts if isinstance(text, str)]


def _sentence_support(
    sentence: list[str], passages: list[list[str]], words: set[str], pairs: set[tuple[str, str]]
) -> float:
    """Mean of token, pair and ROUGE-L precision of one sentence."""
    from rapidfuzz.distance import LCSseq

    precisions = [sum(token in words for token in sentence) / len(sentence)]
    own_pairs = list(pairwise(sentence))
    if own_pairs:
        precisions.append(sum(pair in pairs for pair in own_pairs) / len(own_pairs))
    longest_common = max(LCSseq.similarity(sentence, passage) for passage in passages)
    precisions.append(longest_common / len(sentence))
    return math.fsum(precisions) / len(precisions)


def words_of(text: str) -> list[str]:
    """Return the words of a text, case-folded and without punctuation.

    A run of Chinese or Japanese gives its pairs of neighbouring characters.

    Examples
    --------
    >>> words_of("Ｔhe fee: 年假10天")
    ['the', 'fee', '年假', '10', '天']
    """
    tokens: list[str] = []
    for run, word in pattern("run").findall(unicodedata.normalize("NFKC", text).casefold()):
        if word:
            tokens.append(word)
        else:
            # A single character has no neighbour to pair with, and is a token itself.
            tokens += [run[i : i + 2] for i in range(max(len(run) - 1, 1))]
    return tokens


def number_support(answer: str | None, contexts: Sequence[str] | None) -> tuple[float, list[str]]:
    """Return the share of an answer's figures that is found in the retrieved passages.

    A figure is written in digits; 1,000 equals 1000 and 2.50 equals 2.5. Where a percent sign or a Chinese
    character follows on both sides, it has to be the same (3天 is not 3周). Marks of a list and citations in
    brackets are no figures.

    It is blind to a figure that occurs in the passages about something else, and to figures in words.

    Parameters
    ----------
    answer : str or None
    contexts : sequence of str, or None
        The retrieved passages.

    Returns
    -------
    float, list of str
        The share, in [0, 1], and the figures that are found nowhere; NaN and none if the answer has no figure,
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
    given, texts = pair_of(answer, contexts)
    numbers = _numbers(unicodedata.normalize("NFKC", given))
    if not numbers:
        return math.nan, []
    in_passages = _numbers(unicodedata.normalize("NFKC", "\n".join(texts)))
    absent = [written for written, figure in numbers if not _number_stands(figure, in_passages)]
    return _share(numbers, absent)


def name_support(answer: str | None, contexts: Sequence[str] | None) -> tuple[float, list[str]]:
    """Return the share of the names in an answer that is found in the retrieved passages.

    Names are capitalised words that do not open a sentence, runs of such words, model numbers such as CT-300,
    capitals such as WHO, and Chinese titles in 《》. A name occurs in the passages if it does whole, case aside,
    or if each of its words does.

    It knows no Chinese names without 《》, and is blind to a name that occurs in the passages in another role.

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
    given, texts = pair_of(answer, contexts)
    names = _names(unicodedata.normalize("NFKC", given))
    if not names:
        return math.nan, []
    text = unicodedata.normalize("NFKC", "\n".join(texts)).casefold()
    absent = [name for name, words in names if not all(_occurs(word, text) for word in words)]
    return _share(names, absent)


def _share(found: Sequence[Found], absent: list[str]) -> tuple[float, list[str]]:
    """Return the share of what was found in an answer that is not absent, and what is, each once."""
    return 1 - len(absent) / len(found), list(dict.fromkeys(absent))


def _numbers(text: str) -> list[Found]:
    """Return each figure as written, with its value and the unit that follows."""
    bare = pattern("citation").sub(" ", pattern("list_mark").sub("\n", text))
    numbers: list[Found] = []
    for hit in pattern("number").finditer(bare):
        whole = hit.group(1)
        fraction = hit.group(2) or ""
        unit = (hit.group(3) or "").casefold()
        # Exact, and without zeros at the end: 2.50 equals 2.5.
        value = Decimal(whole.replace(",", "") + fraction).normalize()
        # A unit in Latin letters stands apart from its figure, and is not shown with it.
        shown_unit = unit if unit == "%" or not unit.isascii() else ""
        if unit.startswith("per"):  # per cent, percent
            unit = "%"
        numbers.append((f"{whole}{fraction}{shown_unit}", (value, unit)))
    return numbers


def same_figures(text: str, other: str) -> bool:
    """Say whether all figures of a text are in another.

    Examples
    --------
    >>> same_figures("24 months", "2 years or 24 months"), same_figures("36 months", "24 months")
    (True, False)
    """
    in_other = _numbers(unicodedata.normalize("NFKC", other))
    figures = _numbers(unicodedata.normalize("NFKC", text))
    return all(_number_stands(figure, in_other) for _, figure in figures)


def _number_stands(figure: tuple[Any, ...], others: list[Found]) -> bool:
    """Say whether a figure is among others: of the same value, and of the same unit where both have one."""
    value, unit = figure
    units = [other_unit for _, (other_value, other_unit) in others if other_value == value]
    return any(not unit or not other_unit or unit == other_unit for other_unit in units)


def _names(text: str) -> list[Found]:
    """Return each name as it is written, with its words in small letters."""
    names: list[Found] = []
    for hit in pattern("name").finditer(text):
        name = hit.group(1) or hit.group(2)
        words = name.split()
        if pattern("opener").fullmatch(words[0]):
            words = words[1:]
        # Enough to tell whether a sentence begins here; the whole text before would take quadratic time.
        before = text[max(0, hit.start() - 40) : hit.start()]
        begins_sentence = bool(words and hit.group(2) and pattern("start").search(before))
        # The first word of a sentence is capitalised anyway; what follows it may be a name.
        if begins_sentence and pattern("sentence_word").fullmatch(words[0]) and len(words) != 2:
            words = words[1:]
        if words:
            names.append((" ".join(words), tuple(word.casefold() for word in words)))
    return names


def _occurs(word: str, text: str) -> bool:
    """Whether a text has a word between what is no Latin letter and no digit; both are case-folded."""
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        # Of the very ends of a text the sign beside is an empty one.
        if text[start - 1 : start] not in _LATIN and text[end : end + 1] not in _LATIN:
            return True
        start = text.find(word, start + 1)
    return False
