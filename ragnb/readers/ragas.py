"""ragas: what ``to_pandas()`` prints, as CSV, JSONL or a frame, from June 2023 on.

A missing score of ragas is a failure or a metric that does not apply; its tables do not tell which.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from ragnb.readers.cells import parse_list
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
    turns = {i: messages for i, cell in enumerate(cells) if (messages := _messages(cell)) is not None}
    for i, messages in turns.items():
        cells[i] = _last_human(messages)
    report.add("mapped", "user_input", "last human message of a conversation", len(turns))
    printed = sum(isinstance(cell, str) and cell.startswith("[HumanMessage(") for cell in cells)
    report.add("unparsed", "user_input", "printed conversations, kept as text", printed)


def _messages(cell: Any) -> list[Any] | None:
    """Return the messages of a conversation, also of one in a cell of text; None for a plain question."""
    if isinstance(cell, str):
        found = parse_list(cell) if cell.startswith("[{") else None
        return found if found and all(isinstance(m, Mapping) and "content" in m for m in found) else None
    return list(cell) if isinstance(cell, list | tuple | np.ndarray) else None


def _last_human(messages: list[Any]) -> str | None:
    found = [m for m in messages if isinstance(m, Mapping) and m.get("type", m.get("role")) in ("human", "user")]
    return str(found[-1].get("content")) if found else None
