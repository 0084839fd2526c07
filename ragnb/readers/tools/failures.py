"""What tools say of a score: that it failed, by an error beside it, and the threshold that all results share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ragnb.readers.raw import absent


def is_empty(cell: Any) -> bool:
    """Return whether a cell is missing or an empty text, as CSV writes what is missing."""
    return absent(cell) or cell == ""


def failed_with_error(errors: Iterable[Any], cells: Iterable[Any]) -> list[bool]:
    """Return which scores are failures: those that are not there beside an error."""
    return [
        is_empty(cell) and not is_empty(error) for error, cell in zip(errors, cells, strict=True)
    ]


def shared_threshold(results: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the threshold that all results of a metric share, if they do."""
    cells = (result.get("threshold") for result in results)
    thresholds = {cell for cell in cells if not absent(cell)}
    # A metric has one gate: thresholds that differ from row to row make none.
    shared = thresholds.pop() if len(thresholds) == 1 else None
    return {"threshold": shared}
