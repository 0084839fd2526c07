"""The one frame contract: the names of columns, rows as mappings, and picks of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ragnb.errors import unknown

if TYPE_CHECKING:
    import pandas as pd


CASE_COLUMNS = (
    "sample_id",
    "question",
    "ground_truth_answer",
    "ground_truth_contexts",
    "answer",
    "retrieved_contexts",
    "doc_name",
    "system",
    "persona",
    "source_units",
    "generation_params",
)
# The weighted mean of the metrics of a row, and of a run.
TOTAL = "weighted_score"
DERIVED_COLUMNS = (TOTAL, "sample_weight", "is_passing")
DRAWN = "inclusion_probability"
"""The column of the chance with which a row was drawn: numbers are weighted by its inverse."""
NOT_METRICS = frozenset(
    {*CASE_COLUMNS, *DERIVED_COLUMNS, DRAWN, "citations", "chunks", "ts", "ok", "repeat"}
)
RESULT_COLUMNS = (
    "metric",
    "weight",
    "value",
    "low",
    "high",
    "se",
    "n",
    "n_missing",
    "n_failed",
    "n_not_applicable",
    "n_clusters",
    "n_eff",
)
STOPPED_EARLY = "stopped early"
"""Why a question has no score that a judge left out, as the rest could not change the side of any gate."""


def records(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows of a small frame as mappings; pandas' own ``to_dict`` takes many times as long.

    Examples
    --------
    >>> import pandas as pd
    >>> records(pd.DataFrame({"metric": ["a", "b"], "n": [1, 2]}))
    [{'metric': 'a', 'n': 1}, {'metric': 'b', 'n': 2}]
    """
    names = frame.columns.tolist()
    return [dict(zip(names, row, strict=True)) for row in frame.to_numpy(object).tolist()]


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

    _seen: Mapping[str, None] = MappingProxyType({})

    def of(self, columns: Sequence[str]) -> dict[str, str]:
        """Return the picks of a file with these columns."""
        self._seen = {**self._seen, **dict.fromkeys(columns)}
        return {name: target for name, target in self.items() if name in columns}

    def need_all(self) -> None:
        """Refuse a pick that no file had."""
        for name in self:
            if name not in self._seen:
                raise unknown(
                    "columns",
                    name,
                    list(self._seen),
                    "columns= maps a column of a file to its meaning",
                )
