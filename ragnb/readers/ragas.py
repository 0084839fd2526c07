"""ragas: what ``to_pandas()`` prints, as CSV, JSONL or a frame, from June 2023 on.

A missing score of ragas is a failure or a metric that does not apply; its tables do not tell which.
"""

from __future__ import annotations

from collections.abc import Set

from ragnb.readers.lossy import Lossy
from ragnb.readers.raw import Raw

_TODAY = {"response", "retrieved_contexts", "reference"}
_BEFORE = {"question", "answer", "contexts"}


def sniff(columns: Set[str]) -> bool:
    """Whether these are the columns of a ragas table.

    Examples
    --------
    >>> sniff({"user_input", "response"}), sniff({"question", "answer"})
    (True, False)
    """
    return ("user_input" in columns and bool(_TODAY & columns)) or columns >= _BEFORE


def read(raw: Raw, report: Lossy) -> None:
    """Leave the table as it is: a row is a sample already."""
