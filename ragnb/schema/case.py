"""An evaluation case, its results, and the fields it lacks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field


class Result(BaseModel):
    """One metric of one case: a score with status ``ok``, or a status and its reason without a score.

    Examples
    --------
    >>> Result(status="not_applicable", reason="no ground_truth_answer").score is None
    True
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    score: float | None = None
    status: Literal["ok", "not_applicable", "failed"] = "ok"
    reason: str | None = None


class EvalCase(BaseModel):
    """A question put to a system: the reference side, the system side, and where it came from.

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
    results: dict[str, Result] = Field(default_factory=dict)


def _present(frame: pd.DataFrame, field: str) -> pd.Series[bool]:
    """A text field is present when it holds text; retrieved_contexts also when it is an empty list."""
    if field not in frame.columns:
        return pd.Series(False, index=frame.index)
    values = frame[field]
    if field == "retrieved_contexts":
        return values.map(lambda v: isinstance(v, list | tuple) or (isinstance(v, str) and bool(v.strip())))
    return values.map(lambda v: bool(v.strip()) if isinstance(v, str) else hasattr(v, "__len__") and len(v) > 0)


def missing_fields(cases: pd.DataFrame, needs: Iterable[str]) -> list[tuple[str, ...]]:
    """Return for each case which of the fields it lacks; text that is blank counts as lacking.

    Examples
    --------
    >>> missing_fields(pd.DataFrame({"answer": ["Ann.", None]}), ["answer", "question"])
    [('question',), ('answer', 'question')]
    """
    present = {field: _present(cases, field).tolist() for field in needs}
    return [tuple(field for field, there in present.items() if not there[i]) for i in range(len(cases))]
