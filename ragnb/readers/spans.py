"""Phoenix: raw spans, and retrieved documents, one row each, whose ``document`` is a text and not a name."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from ragnb.readers.cells import parse_list
from ragnb.readers.lossy import Lossy
from ragnb.readers.names import WORDS
from ragnb.readers.raw import Raw


def sniff(columns: Set[str]) -> bool:
    """Whether these are the columns of retrieved documents or of raw spans.

    Examples
    --------
    >>> sniff({"context.span_id", "document_position", "document"}), sniff({"question", "document"})
    (True, False)
    """
    documents = "document" in columns and bool({"document_position", "document_score"} & columns)
    return documents or "attributes.input.value" in columns


def read(raw: Raw, report: Lossy) -> None:
    """Call documents of a row each passages, which `read_cases` folds to one row a span; name what spans hold."""
    raw.rename(WORDS["spans"], report, lambda cell, _: _texts(cell))


def _texts(cell: Any) -> Any:
    """Return the texts of a list of documents; anything else as it is."""
    held = parse_list(cell) if isinstance(cell, str) else cell if isinstance(cell, list) else None
    found = [one.get("document.content") if isinstance(one, dict) else None for one in held or []]
    return found if found and None not in found else cell
