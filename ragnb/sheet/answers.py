"""Two answers to one question beside one another, what differs marked word by word."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Any

from ragnb.markup import MISSING, is_missing
from ragnb.markup.blocks import Marked
from ragnb.sheet.wording import cut

# A word with the white space after it; of Chinese and Japanese a character is one.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]+\s*|\s+")
_MOST_BYTES = 600  # of an answer beside another
_LEAST_ALIKE = 0.4


def differing(before: Any, now: Any) -> tuple[Marked, Marked]:
    """Return two texts in parts, those that the other one lacks marked.

    Examples
    --------
    >>> [part for part in differing("within 14 days", "within 30 days")[1].parts if part[1]]
    [('30 ', True)]
    """
    texts = [MISSING if is_missing(one) else cut(one, _MOST_BYTES) for one in (before, now)]
    words = [_WORD.findall(text) for text in texts]
    bare = [[word.strip() for word in side] for side in words]
    matcher = SequenceMatcher(None, bare[0], bare[1], autojunk=False)
    if matcher.ratio() < _LEAST_ALIKE:  # two texts of their own: every word would be marked
        return Marked(((texts[0], False),)), Marked(((texts[1], False),))
    sides: tuple[list[tuple[str, bool]], list[tuple[str, bool]]] = ([], [])
    for kind, first, end, other_first, other_end in matcher.get_opcodes():
        places = ((first, end), (other_first, other_end))
        for parts, side, (start, stop) in zip(sides, words, places, strict=True):
            if start < stop:
                parts.append(("".join(side[start:stop]), kind != "equal"))
    return Marked(tuple(sides[0])), Marked(tuple(sides[1]))
