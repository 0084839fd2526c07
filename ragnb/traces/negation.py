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
    others = [sentence for sentence in sentences if is_negated(sentence) != negated]
    if not others:
        return False
    words = _words(claim)
    alike = [sentence for sentence in sentences if is_negated(sentence) == negated]
    return _most_shared(words, others) > _most_shared(words, alike)


def _most_shared(words: frozenset[str], sentences: Sequence[str]) -> int:
    return max((len(words & _words(sentence)) for sentence in sentences), default=0)


# The passages of an answer are looked through for each of its claims.
@lru_cache(maxsize=10_000)
def _words(sentence: str) -> frozenset[str]:
    return frozenset(words_of(sentence))
