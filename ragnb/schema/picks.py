"""The columns that a caller picks for all files of a run: scores, traces and gold share one mapping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragnb.errors import unknown


class SharedPicks(dict[str, str]):
    """Column → the name it means. A file takes those that it has; one that no file has is refused in the end.

    Examples
    --------
    >>> picks = SharedPicks({"可答": "answerable", "答": "answer"})
    >>> picks.of(["问", "可答"])
    {'可答': 'answerable'}
    >>> picks.of(["答"])
    {'答': 'answer'}
    >>> picks.need_all()
    """

    def __init__(self, picks: Mapping[str, str]) -> None:
        super().__init__(picks)
        self._seen: dict[str, None] = {}

    def of(self, columns: Sequence[str]) -> dict[str, str]:
        """Return the picks of a file with these columns."""
        self._seen |= dict.fromkeys(columns)
        return {name: target for name, target in self.items() if name in columns}

    def need_all(self) -> None:
        """Refuse a pick that no file had."""
        for name in self:
            if name not in self._seen:
                raise unknown("columns", name, list(self._seen), "columns= maps a column of a file to its meaning")
