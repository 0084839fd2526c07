"""The texts of answers and passages: cut to fit, each sentence marked by whether its passages hold it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ragnb.markup import Safe, escape
from ragnb.traces.claims import Standing, sentences_of, standing_of


def longest(sizes: Sequence[int], budget: int) -> int:
    """Return at what length texts are cut so that all of them together fit: short ones stay whole.

    Examples
    --------
    >>> longest([10, 10, 500, 500], 1000), longest([10, 20], 1000)
    (490, 1000)
    """
    ordered = np.sort(np.array(sizes, dtype=int))
    # What is left of the budget for each of those that are left.
    room = (budget - np.cumsum(ordered) + ordered) // np.arange(len(ordered), 0, -1)
    return int(next(iter(room[ordered > room]), budget))


def cut(value: object, most: int) -> str:
    """Return a stranger's text of at most so many bytes, with an ellipsis where it goes on."""
    held = str(value).encode("utf-8", "replace")
    if len(held) <= most:
        return str(value)
    return held[:most].decode("utf-8", "ignore") + " …"


_FEWEST_WORDS = 3  # "Yes." claims nothing that wording could show
_CLASSES = {"supported": "", "partly": ' class="rg-partly"', "not found": ' class="rg-absent"'}


def marked(answer: str, passages: Sequence[str], say: Any) -> Safe:
    """Return an answer as HTML, each sentence marked by how much of it is found in its passages.

    What is not found is said in words behind the sentence, with the figures and names that no passage has.

    Examples
    --------
    >>> from ragnb.texts import load
    >>> passages = ["Rooms cost at most 450 yuan a night."]
    >>> marked("Rooms cost at most 450 yuan a night.", passages, load("en"))
    '<mark>Rooms cost at most 450 yuan a night.</mark>'
    >>> marked("Rooms cost at most 9,999 yuan a night.", passages, load("en"))
    '<mark class="rg-absent">Rooms cost at most 9,999 yuan a night.</mark> <small>(not found: 9,999)</small>'
    """
    # At use: scoring brings the client of a model, which a sheet of scores does without.
    from ragnb.scoring.lexical import words_of

    parts = list[str]()
    last = 0
    for sentence in sentences_of(answer):
        start = answer.find(sentence, last)
        if start < 0:
            continue
        standing = standing_of(sentence, passages)
        is_short = len(words_of(sentence)) < _FEWEST_WORDS and not standing.missing
        if standing.verdict not in _CLASSES or is_short:
            continue
        stop = start + len(sentence)
        parts.append(escape(answer[last:start]))
        parts.append(f"<mark{_CLASSES[standing.verdict]}>{escape(answer[start:stop])}</mark>")
        if standing.verdict != "supported":
            parts.append(f" <small>({escape(_said(standing, say))})</small>")
        last = stop
    return Safe("".join([*parts, escape(answer[last:])]))


def _said(found: Standing, say: Any) -> str:
    if found.verdict == "partly":
        key = "questions.partly"
    else:
        key = "questions.not_found"
    if not found.missing:
        return str(say(key))
    return str(say(f"{key}_of", what=say("list.join").join(found.missing[:5])))
