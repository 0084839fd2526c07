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
    taken = np.cumsum(ordered) - ordered  # by the shorter ones, whole
    others = np.arange(len(ordered), 0, -1)  # this one and those that are longer
    # What is left of the budget for each of those that are left.
    room = (budget - taken) // others
    too_long = room[ordered > room]
    if len(too_long):
        return int(too_long[0])
    return budget


def cut(value: object, most: int) -> str:
    """Return a stranger's text of at most so many bytes, with an ellipsis where it goes on."""
    # A lone surrogate, as a broken log may have it, has no bytes.
    encoded = str(value).encode("utf-8", "replace")
    if len(encoded) <= most:
        return str(value)
    # A character of several bytes that is cut in two is left out.
    return encoded[:most].decode("utf-8", "ignore") + " …"


_FEWEST_WORDS = 3  # "Yes." claims nothing that wording could show
# The verdicts that are marked, with the attribute of the mark; of any other nothing is known.
_CLASSES = {"supported": "", "partly": ' class="rg-partly"', "not found": ' class="rg-absent"'}
_MOST_NAMED = 5  # figures and names that no passage has


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
    written_to = 0  # the place in the answer up to which `parts` hold it
    for sentence in sentences_of(answer):
        start = answer.find(sentence, written_to)
        if start < 0:
            continue
        standing = standing_of(sentence, passages)
        is_short = len(words_of(sentence)) < _FEWEST_WORDS and not standing.missing
        if standing.verdict not in _CLASSES or is_short:
            continue
        stop = start + len(sentence)
        # Every piece of the answer is escaped by itself, as the marks around it are ours.
        parts.append(escape(answer[written_to:start]))
        parts.append(f"<mark{_CLASSES[standing.verdict]}>{escape(answer[start:stop])}</mark>")
        if standing.verdict != "supported":
            parts.append(f" <small>({escape(_remark(standing, say))})</small>")
        written_to = stop
    parts.append(escape(answer[written_to:]))
    return Safe("".join(parts))


def _remark(standing: Standing, say: Any) -> str:
    """Say that a sentence is not found or only in part, with the figures and names that are missing."""
    key = "questions.partly" if standing.verdict == "partly" else "questions.not_found"
    if not standing.missing:
        return str(say(key))
    missing = say("list.join").join(standing.missing[:_MOST_NAMED])
    return str(say(f"{key}_of", what=missing))
