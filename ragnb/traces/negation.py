"""Whether a claim negates what its passages affirm, or affirms what they negate, in the words that say so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ragnb.scoring.lexical import words_of

_NEGATION = re.compile(
    r"\b(?:not|no(?!\.)|never|none|nor|neither|cannot|without|nobody|nothing)\b|n['’]t\b"
    # Chinese, without the words in which these characters negate nothing: 不同, 不仅, 未来, 无论.
    r"|不(?![同仅但过断久])|没(?!收)|未(?!来)|无(?![论线])|勿|[并而]非",
    re.IGNORECASE,
)


def is_negated(text: str) -> bool:
    """Whether a sentence holds a word of negation, in English or Chinese.

    Examples
    --------
    >>> [is_negated(text) for text in ("Seals aren't covered.", "Seals are covered.", "不予报销", "不同城市")]
    [True, False, True, False]
    """
    return bool(_NEGATION.search(text))


def is_reversed(claim: str, sentences: Sequence[str]) -> bool:
    """Whether just one of a claim and the sentence that is nearest to it in wording is negated.

    Examples
    --------
    >>> sentences = ["Seals are replaced within 14 days.", "The pump is not covered."]
    >>> claims = ("Seals are not replaced within 14 days.", "The pump is covered.", "Seals are replaced.")
    >>> [is_reversed(claim, sentences) for claim in claims]
    [True, True, False]
    """
    negated = is_negated(claim)
    differs = [is_negated(sentence) != negated for sentence in sentences]
    if not any(differs):
        return False
    words = _words(claim)
    nearest = {True: 0, False: 0}  # words in common, of those that differ and of those that do not
    for sentence, other in zip(sentences, differs, strict=True):
        nearest[other] = max(nearest[other], len(words & _words(sentence)))
    return nearest[True] > nearest[False]


# The passages of an answer are looked through for each of its claims.
@lru_cache(maxsize=10_000)
def _words(sentence: str) -> frozenset[str]:
    return frozenset(words_of(sentence))
