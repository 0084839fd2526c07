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
_LEAST_ALIKE = 0.4  # share of words, from 0 of none in common to 1 of equal texts


def differing(before: Any, now: Any) -> tuple[Marked, Marked]:
    """Return two texts in parts, those that the other one lacks marked.

    Examples
    --------
    >>> [part for part in differing("within 14 days", "within 30 days")[1].parts if part[1]]
    [('30 ', True)]
    """
    text_before = _shown(before)
    text_now = _shown(now)
    words_before = _WORD.findall(text_before)
    words_now = _WORD.findall(text_now)
    # The white space after a word makes it no other word. Without autojunk, by which `difflib` skips words that
    # are frequent in a text of 200 words and more.
    matcher = SequenceMatcher(
        None,
        [word.strip() for word in words_before],
        [word.strip() for word in words_now],
        autojunk=False,
    )
    if matcher.ratio() < _LEAST_ALIKE:  # two texts of their own: every word would be marked
        return Marked(((text_before, False),)), Marked(((text_now, False),))
    parts_before = []
    parts_now = []
    for kind, start, stop, start_now, stop_now in matcher.get_opcodes():
        differs = kind != "equal"
        # Empty on one side where the other one has something more.
        if start < stop:
            parts_before.append(("".join(words_before[start:stop]), differs))
        if start_now < stop_now:
            parts_now.append(("".join(words_now[start_now:stop_now]), differs))
    return Marked(tuple(parts_before)), Marked(tuple(parts_now))


def _shown(answer: Any) -> str:
    """Return the text of an answer cut to what fits beside another, a dash of one that is missing."""
    if is_missing(answer):
        return MISSING
    return cut(answer, _MOST_BYTES)
