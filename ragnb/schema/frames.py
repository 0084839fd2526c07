"""The frame contract: column and status names, notes, rows as mappings, and a case with what it lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from ragnb.errors import unknown

if TYPE_CHECKING:
    import pandas as pd

CASE_COLUMNS = (
    "sample_id", "question", "ground_truth_answer", "ground_truth_contexts", "answer", "retrieved_contexts",
    "doc_name", "system", "persona", "source_units", "generation_params",
)  # fmt: skip
DERIVED_COLUMNS = ("weighted_score", "sample_weight", "is_passing")
NOT_METRICS = frozenset({*CASE_COLUMNS, *DERIVED_COLUMNS, "citations", "chunks", "ts", "ok", "repeat"})
STATUS_WORDS = ("ok", "not_applicable", "failed", "missing")
RESULT_COLUMNS = (
    "metric", "weight", "value", "low", "high", "se", "n", "n_missing", "n_failed", "n_not_applicable",
    "n_clusters", "n_eff",
)  # fmt: skip
ABOUT_COLUMNS = (
    "df", "cluster_unit", "range_low", "range_high", "better", "kind", "role", "level", "low_if", "share_unseen",
    "top_share", "top_cluster", "reason",
)  # fmt: skip
"""What later functions need to know of a mean; where rows are grouped by a column of such a name, ``metric_`` goes
before it."""
NOTE_COLUMNS = ("code", "about", "text")
STOPPED_EARLY = "stopped early"
"""Why a question has no score that a judge left out, as the rest could not change the side of any gate."""


def note_row(code: str, about: str, text: str) -> dict[str, str]:
    """Return one row of a notes frame: a code to test on, what it is about, and the sentence.

    Examples
    --------
    >>> note_row("few_clusters", "faithfulness", "Only 3 documents.")["code"]
    'few_clusters'
    """
    return {"code": code, "about": about, "text": text}


def note_frame(rows: Iterable[dict[str, str]]) -> pd.DataFrame:
    """Return notes as a frame with the columns ``code, about, text``, each sentence once.

    Examples
    --------
    >>> len(note_frame([note_row("a", "b", "c"), note_row("a", "b", "c")]))
    1
    """
    import pandas as pd

    once = dict.fromkeys(tuple(row[name] for name in NOTE_COLUMNS) for row in rows)
    return pd.DataFrame(list(once), columns=list(NOTE_COLUMNS), dtype=object)


def records(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows of a small frame as mappings; pandas' own ``to_dict`` takes ten times as long.

    Examples
    --------
    >>> import pandas as pd
    >>> records(pd.DataFrame({"metric": ["a", "b"], "n": [1, 2]}))
    [{'metric': 'a', 'n': 1}, {'metric': 'b', 'n': 2}]
    """
    columns = [column.tolist() for _, column in frame.items()]
    return [dict(zip(frame.columns, row, strict=True)) for row in zip(*columns, strict=True)]


class EvalCase(BaseModel):
    """A question put to a system: the reference side, the system side, and where it came from.

    ``results`` has for a metric its ``score``, ``status`` and ``reason``.
    ``retrieved_contexts`` None means that the system has not run; an empty list that it retrieved nothing.

    Examples
    --------
    >>> EvalCase(question="Who pays?", answer="The buyer.").retrieved_contexts is None
    True
    """

    model_config = ConfigDict(extra="allow")
    question: str
    sample_id: str | None = None
    ground_truth_answer: str | None = None
    ground_truth_contexts: list[str] | None = None
    answer: str | None = None
    retrieved_contexts: list[str] | None = None
    doc_name: str | None = None
    system: str | None = None
    persona: str | None = None
    source_units: list[str] | None = None
    generation_params: dict[str, Any] | None = None
    results: dict[str, dict[str, Any]] = Field(default_factory=dict)


def _present(frame: pd.DataFrame, field: str) -> pd.Series[bool]:
    """A text field is present when it holds text; retrieved_contexts also when it is an empty list."""
    if field not in frame.columns:
        return frame.index.to_series().map(lambda _: False)
    may_be_empty = field == "retrieved_contexts"
    return frame[field].map(
        lambda v: bool(v.strip()) if isinstance(v, str) else hasattr(v, "__len__") and (may_be_empty or len(v) > 0)
    )



def missing_fields(cases: pd.DataFrame, needs: Iterable[str]) -> list[tuple[str, ...]]:
    """Return for each case which of the fields it lacks; text that is blank counts as lacking.

    Examples
    --------
    >>> import pandas as pd
    >>> missing_fields(pd.DataFrame({"answer": ["Ann.", None]}), ["answer", "question"])
    [('question',), ('answer', 'question')]
    """
    present = {field: _present(cases, field).tolist() for field in needs}
    return [tuple(field for field, there in present.items() if not there[i]) for i in range(len(cases))]


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
