"""Retrieved passages against the gold passages of a case: by id where both sides have ids, else by text. No model.

Two passages are the same by text where their words are equal after normalisation, where one contains the other,
or where they share at least 80 % of the words of the shorter one, whose figures are all in the other.
A fragment of fewer than three words matches no longer gold passage: it would be found in almost any.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragnb.schema import missing_fields
from ragnb.scoring.lexical import same_figures, words_of

# Of a gold passage's words: chunks are cut elsewhere, and lose a sentence at an end.
LEAST_OVERLAP = 0.8
LEAST_WORDS = 3  # of a passage: one or two words occur anywhere
PASSAGES = ("retrieved_contexts", "ground_truth_contexts")
_IDS = {
    "retrieved_contexts": ("chunks", "retrieved_context_ids"),
    "ground_truth_contexts": ("gold_ids", "reference_context_ids"),
}
_FIELDS = {"retrieved_contexts": "retrieved_fields", "ground_truth_contexts": "ground_truth_fields"}


@dataclass(frozen=True)
class Match:
    """What the retrieved passages of one case have of its gold passages.

    Parameters
    ----------
    relevant : sequence of bool
        For each retrieved passage in its rank whether it is a gold passage; a repeated passage is left out.
    found : sequence of bool
        For each gold passage whether it was retrieved.
    how : mapping of str to int
        How many retrieved passages were matched by each means: ``id, equal, contained, overlap``.
    """

    relevant: Sequence[bool]
    found: Sequence[bool]
    how: Mapping[str, int]


def precision(match: Match) -> float:
    """Return the mean, over the ranks with a gold passage, of the precision up to that rank; 0 without any.

    Examples
    --------
    >>> precision(by_text(["Lunch is at noon.", "The warranty is 24 months."], ["The warranty is 24 months."]))
    0.5
    """
    hits = 0
    precisions = []
    for rank, relevant in enumerate(match.relevant, start=1):
        if relevant:
            hits += 1
            precisions.append(hits / rank)
    if precisions:
        return math.fsum(precisions) / len(precisions)
    return 0.0


def recall(match: Match) -> float:
    """Return the share of the gold passages that were retrieved.

    Examples
    --------
    >>> recall(by_id(["a", "b"], ["b", "c"]))
    0.5
    """
    return sum(match.found) / len(match.found)


def by_id(retrieved: Sequence[Any], gold: Sequence[Any]) -> Match:
    """Match passages by their ids.

    Examples
    --------
    >>> by_id(["a", "b", "b"], ["b"])
    Match(relevant=[False, True], found=[True], how={'id': 1})
    """
    ranked = _distinct(retrieved)
    wanted = _distinct(gold)
    relevant = [key in wanted for key in ranked]
    found = [key in ranked for key in wanted]
    return Match(relevant, found, {"id": sum(relevant)})


def _distinct(ids: Iterable[Any]) -> list[str]:
    """Return ids as texts, each once at its first place: 7 and "7" are one."""
    return list(dict.fromkeys(map(str, ids)))


def by_text(retrieved: Sequence[str], gold: Sequence[str]) -> Match:
    """Match passages by their texts.

    A gold passage is found where the retrieved passages that match it hold at least 80 % of its words together: a
    short piece of a long gold passage is relevant, and yet does not make the passage found.

    Examples
    --------
    >>> by_text(["Chapter 2. The fee is 5 euros! It is due in May."], ["the fee is 5 Euros"])
    Match(relevant=[True], found=[True], how={'contained': 1})
    >>> by_text(["The warranty is 36 months."], ["The warranty is 24 months."]).relevant
    [False]
    """
    ranked = _distinct_texts(retrieved)
    wanted = [passage for passage in _distinct_texts(gold) if passage.words]
    how: Counter[str] = Counter()
    relevant = []
    # The words of each gold passage that were retrieved. Of each word the most that one passage has counts (|=),
    # so that overlapping pieces are not counted twice.
    held: list[Counter[str]] = [Counter() for _ in wanted]
    for passage in ranked:
        means = [_means(passage, gold_passage) for gold_passage in wanted]
        relevant.append(any(means))
        if any(means):
            first_means = next(filter(None, means))
            how[first_means] += 1
        for place, matched in enumerate(means):
            if matched:
                held[place] |= Counter(passage.words)
    found = [
        _overlap(Counter(gold_passage.words), words) >= LEAST_OVERLAP
        for gold_passage, words in zip(wanted, held, strict=True)
    ]
    return Match(relevant, found, dict(how))


@dataclass(frozen=True)
class _Passage:
    text: str
    words: tuple[str, ...]


def _distinct_texts(texts: Iterable[str]) -> list[_Passage]:
    """Return passages that differ in a word; those without a word are equal to none."""
    passages = (_Passage(text, tuple(words_of(text))) for text in texts)
    return list({passage.words: passage for passage in passages}.values())


def _means(retrieved: _Passage, gold: _Passage) -> str:
    """Return by what means a retrieved passage is a gold passage; an empty text where it is not."""
    if not retrieved.words or not gold.words:
        return ""
    if retrieved.words == gold.words:
        return "equal"
    gold_is_shorter = len(gold.words) <= len(retrieved.words)
    if gold_is_shorter:
        shorter, longer = gold, retrieved
    else:
        shorter, longer = retrieved, gold
    # A gold passage may be a word or two and counts where it is contained; so short a retrieved one is a fragment.
    if len(shorter.words) < LEAST_WORDS and not gold_is_shorter:
        return ""
    if _joined(shorter.words) in _joined(longer.words):
        return "contained"
    if len(shorter.words) < LEAST_WORDS:
        return ""
    overlap = _overlap(Counter(shorter.words), Counter(longer.words))
    if overlap >= LEAST_OVERLAP and same_figures(shorter.text, longer.text):
        return "overlap"
    return ""


def _joined(words: Sequence[str]) -> str:
    """Return words as a text in which a run of them is found at whole words only."""
    return f" {' '.join(words)} "


def _overlap(words: Counter[str], others: Counter[str]) -> float:
    """Return the share of words, each as often as it occurs, that others hold."""
    total = words.total()
    if total:
        return (words & others).total() / total
    return 0.0


def has_gold(cases: pd.DataFrame) -> bool:
    """Say whether some case has gold passages, as ids beside retrieved ids or as texts.

    Examples
    --------
    >>> has_gold(pd.DataFrame({"ground_truth_contexts": [None, ["The fee is 5 euros."]]}))
    True
    """
    with_texts = any(not lacking for lacking in missing_fields(cases, PASSAGES[1:]))
    return with_texts or any(ids_of(cases))


def ids_of(cases: pd.DataFrame) -> list[tuple[list[Any], list[Any]] | None]:
    """Return for each case its retrieved ids and its gold ids, None where a side has none.

    Ids of two kinds (numbers of chunks against names of files, say) have nothing in common in any case: then the
    texts decide, where a case has them, and it is None. Without texts nothing in common is nothing found.

    Examples
    --------
    >>> ids_of(pd.DataFrame({"chunks": [["a", "b"], ["c"]], "gold_ids": [["b"], None]}))
    [(['a', 'b'], ['b']), None]
    >>> ids_of(pd.DataFrame({"chunks": [["a"]], "gold_ids": [["b"]]}))
    [(['a'], ['b'])]
    """
    retrieved, gold = (_side(cases, side) for side in PASSAGES)
    pairs: list[tuple[list[Any], list[Any]] | None] = []
    are_of_one_kind = False
    for retrieved_ids, gold_ids in zip(retrieved, gold, strict=True):
        if retrieved_ids is None or not gold_ids:
            pairs.append(None)
            continue
        # An empty list of retrieved ids is a result; without a gold id there is nothing to find.
        pairs.append((retrieved_ids, gold_ids))
        if {*map(str, retrieved_ids)} & {*map(str, gold_ids)}:
            are_of_one_kind = True
    if are_of_one_kind:
        return pairs
    lacking = missing_fields(cases, PASSAGES)
    return [pair if lacks else None for pair, lacks in zip(pairs, lacking, strict=True)]


def _side(cases: pd.DataFrame, side: str) -> list[list[Any] | None]:
    """Return the ids of one side for each case: of its column of ids, else of the objects of its passages."""
    for name in (*_IDS[side], _FIELDS[side]):
        if name in cases:
            return [_ids_in(cell) for cell in cases[name]]
    return [None] * len(cases)


def _ids_in(cell: Any) -> list[Any] | None:
    """Return the ids of a list of ids or of objects; None for what is no list, and where one of them has no id."""
    if not hasattr(cell, "__len__") or isinstance(cell, str):
        return None
    ids = [item.get("id") if isinstance(item, Mapping) else item for item in cell]
    if any(key is None for key in ids):
        return None
    return ids
