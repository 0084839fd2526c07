"""How much of an answer's wording stands in the retrieved passages."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from ragnb.errors import RagnbError

_CJK = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)
_CJK += "\U00020000-\U0003ffff"
_RUN = re.compile(f"([{_CJK}]+)|([^\\W_{_CJK}]+)")
_SENTENCE_END = re.compile(r"[。！？；\r\n]+|[.!?;]+(?=\s|$)")


def support_lexical(answer: str | None, contexts: Sequence[str] | None) -> float:
    """Say how much of an answer's wording stands in the passages that were retrieved for it.

    For each sentence of the answer, the mean of three precisions: the share of its tokens that occur in the
    contexts, the share of its pairs of neighbouring tokens that do, and ROUGE-L precision, the longest common
    subsequence with one context (the best one) over the sentence's length. The score is the mean over the
    sentences. Tokens are case-folded words and numbers (NFKC), and overlapping pairs of characters in runs
    of Chinese or Japanese, where a lone character stands for itself. A sentence of one token has no pairs:
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
    passages = [tokens for text in texts if (tokens := _tokens(text))]
    sentences = [tokens for part in _SENTENCE_END.split(given) if (tokens := _tokens(part))]
    if not passages or not sentences:
        return math.nan
    words = {token for passage in passages for token in passage}
    pairs = {pair for passage in passages for pair in pairwise(passage)}
    scores = [_sentence_support(sentence, passages, words, pairs) for sentence in sentences]
    return math.fsum(scores) / len(scores)


def pair_of(answer: str | None, contexts: Sequence[str] | None) -> tuple[str, list[str]]:
    """Return an answer and its passages, an empty answer where either is missing."""
    if isinstance(contexts, str):
        raise RagnbError(f"contexts={contexts[:40]!r} is one string; pass a list of passages: [text, ...]")
    if not isinstance(answer, str) or contexts is None or isinstance(contexts, float):
        return "", []
    return answer, [text for text in contexts if isinstance(text, str)]


def _sentence_support(
    sentence: list[str], passages: list[list[str]], words: set[str], pairs: set[tuple[str, str]]
) -> float:
    """Mean of token, pair and ROUGE-L precision of one sentence."""
    from rapidfuzz.distance import LCSseq

    own = list(pairwise(sentence))
    parts = [sum(token in words for token in sentence) / len(sentence)]
    parts += [sum(pair in pairs for pair in own) / len(own)] if own else []
    parts.append(max(LCSseq.similarity(sentence, passage) for passage in passages) / len(sentence))
    return math.fsum(parts) / len(parts)


def _tokens(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", text).casefold()
    tokens: list[str] = []
    for run, word in _RUN.findall(folded):
        tokens += [word] if word else [run[i : i + 2] for i in range(max(len(run) - 1, 1))]
    return tokens
