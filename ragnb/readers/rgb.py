"""RGB: questions with passages that hold the answer and others that do not; ``answer`` is the gold answer."""

from __future__ import annotations

from collections.abc import Set

from ragnb.readers.lossy import Lossy
from ragnb.readers.raw import Raw


def sniff(columns: Set[str]) -> bool:
    """Whether these are the columns of RGB's questions.

    Examples
    --------
    >>> sniff({"id", "query", "answer", "positive", "negative"}), sniff({"query", "answer"})
    (True, False)
    """
    return {"query", "answer", "positive", "negative"} <= columns


def read(raw: Raw, report: Lossy) -> None:
    """Take ``answer`` for the reference answer."""
    raw.columns = {"ground_truth_answer" if n == "answer" else n: cells for n, cells in raw.columns.items()}
    report.add("mapped", "answer", "ground_truth_answer", len(raw))
