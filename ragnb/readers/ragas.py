"""ragas: what ``to_pandas()`` prints, as CSV, JSONL or a frame, from June 2023 on.

A missing score of ragas is a failure or a metric that does not apply; its tables do not tell which.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import numpy as np

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
    """Take the last human message of a conversation for the question."""
    cells = raw.columns.get("user_input", [])
    turns = [i for i, cell in enumerate(cells) if isinstance(cell, list | tuple | np.ndarray)]
    for i in turns:
        cells[i] = _last_human(list(cells[i]))
    report.add("mapped", "user_input", "last human message of a conversation", len(turns))


def _last_human(messages: list[Any]) -> str | None:
    found = [m for m in messages if isinstance(m, Mapping) and m.get("type", m.get("role")) in ("human", "user")]
    return str(found[-1].get("content")) if found else None
