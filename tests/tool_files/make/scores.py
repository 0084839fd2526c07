"""The scores that the runs share. They are computed from the texts alone, so every run gives the same numbers."""

from __future__ import annotations

import re

THRESHOLD = 0.6  # of token_overlap, where a tool has thresholds


def words(text: str) -> list[str]:
    """Part a text into words and numbers; a Chinese character is a word."""
    return re.findall(r"[a-z]+|\d+|[一-鿿]", text.lower())


def exact(answer: str, reference: str) -> float:
    """Return 1 if the answer is the reference, apart from spaces around it."""
    return float(answer.strip() == reference.strip())


def contains(answer: str, reference: str) -> float:
    """Return 1 if the answer contains the reference without its full stop."""
    return float(reference.strip().rstrip("。.") in answer)


def overlap(answer: str, reference: str) -> float:
    """Return the share of the reference's words that the answer contains."""
    wanted, given = set(words(reference)), set(words(answer))
    return len(wanted & given) / len(wanted)


def support(answer: str, contexts: list[str]) -> float:
    """Return the share of the answer's words that the contexts contain; an error without contexts."""
    if not contexts:
        raise ValueError("no contexts were retrieved")
    return overlap("\n".join(contexts), answer)
