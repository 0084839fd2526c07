"""Phoenix: retrieved documents of spans, one row a document, whose ``document`` is its text and not its name."""

from __future__ import annotations

from collections.abc import Set

from ragnb.readers.lossy import Lossy
from ragnb.readers.raw import Raw

_NAMES = {"document": "passage", "document_position": "passage_id"}


def sniff(columns: Set[str]) -> bool:
    """Whether these are the columns of retrieved documents.

    Examples
    --------
    >>> sniff({"context.span_id", "document_position", "document"}), sniff({"question", "document"})
    (True, False)
    """
    return "document" in columns and bool({"document_position", "document_score"} & columns)


def read(raw: Raw, report: Lossy) -> None:
    """Call the documents passages, which `read_cases` folds to one row a span."""
    for name, ours in _NAMES.items():
        if name in raw.columns:
            raw.columns[ours] = raw.columns.pop(name)
            report.add("mapped", name, ours, len(raw))
