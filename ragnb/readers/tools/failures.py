"""What tools say of a score: that it failed, by an error beside it, and the threshold that all results share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ragnb.readers.raw import absent


def is_empty(cell: Any) -> bool:
    return absent(cell) or cell == ""


def failed_with_error(errors: Iterable[Any], cells: Iterable[Any]) -> list[bool]:
    """Return which scores are failures: those that are not there beside an error."""
    return [
        is_empty(cell) and not is_empty(error) for error, cell in zip(errors, cells, strict=True)
    ]


def shared_threshold(results: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the threshold that all results of a metric share, if they do."""
    limits = {cell for result in results if not absent(cell := result.get("threshold"))}
    return {"threshold": limits.pop() if len(limits) == 1 else None}
