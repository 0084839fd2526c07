"""The texts of answers and passages: cut to fit, marked where an answer is worded as a passage is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ragnb.markup import Safe, escape


def longest(sizes: Sequence[int], budget: int) -> int:
    """Return at what length texts are cut so that all of them together fit: short ones stay whole.

    Examples
    --------
    >>> longest([10, 10, 500, 500], 1000), longest([10, 20], 1000)
    (490, 1000)
    """
    ordered = np.sort(np.array(sizes, dtype=int))
    room = (budget - np.cumsum(ordered) + ordered) // np.arange(
        len(ordered), 0, -1
    )  # for each of those left
    return int(next(iter(room[ordered > room]), budget))


def cut(value: object, most: int) -> str:
    """Return a stranger's text of at most so many bytes, with an ellipsis where it goes on."""
    held = str(value).encode("utf-8", "replace")
    return str(value) if len(held) <= most else held[:most].decode("utf-8", "ignore") + " …"


_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|\w+")


_RUN = 4  # words or Chinese characters in a row that must be found for their wording to count as taken over


def _runs(text: str) -> list[tuple[str, ...]]:
    """Return the runs of tokens of a text in their order."""
    words = [token.casefold() for token in _TOKEN.findall(text)]
    return [tuple(words[i : i + _RUN]) for i in range(len(words) - _RUN + 1)]


@lru_cache(maxsize=4096)
def _known(passage: str) -> frozenset[tuple[str, ...]]:
    """Return the runs of a passage, which many questions may have retrieved."""
    return frozenset(_runs(passage))


def matched(answer: str, passages: Sequence[str]) -> Safe:
    """Return an answer as HTML with the wording marked that stands in its passages, four tokens or more at a time.

    Examples
    --------
    >>> matched("It costs at most 450 yuan a night.", ["Rooms cost at most 450 yuan a night in cities."])
    'It costs <mark>at most 450 yuan a night</mark>.'
    """
    places, known = [found.span() for found in _TOKEN.finditer(answer)], list(map(_known, passages))
    held = np.zeros(len(places) + 1, dtype=bool)
    for i, run in enumerate(_runs(answer)):
        held[i : i + _RUN] |= any(run in runs for runs in known)
    parts, last = [], 0
    edges = np.flatnonzero(np.diff(held.astype(int), prepend=0)).tolist()
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        first, stop = places[start][0], places[end - 1][1]
        parts += [escape(answer[last:first]), f"<mark>{escape(answer[first:stop])}</mark>"]
        last = stop
    return Safe("".join([*parts, escape(answer[last:])]))
