"""Cases and what metrics gave for them, as objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
)

if TYPE_CHECKING:
    import pandas as pd
from ragnb.schema.columns import records


class EvalResult(BaseModel):
    """What a metric gave for a case: a score, or why there is none.

    Examples
    --------
    >>> EvalResult(score=0.5, status="ok").reason is None
    True
    """

    model_config = ConfigDict(extra="allow")
    score: float | None = None
    status: Literal["ok", "not_applicable", "failed", "missing"] = "missing"
    reason: str | None = None


class EvalCase(BaseModel):
    """A question put to a system: the reference side, the system side, and where it came from.

    ``results`` has for a metric its `EvalResult`; `evaluate` and `judge` write theirs into the cases of a list.
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
    persona: str | dict[str, Any] | None = None
    source_units: list[str | dict[str, Any]] | None = None
    generation_params: dict[str, Any] | None = None
    results: dict[str, EvalResult] = Field(default_factory=dict)


def keep_results(cases: Any, table: pd.DataFrame) -> None:
    """Write the results of a table into the cases that it is of, in their order, where they are `EvalCase`.

    Examples
    --------
    >>> import pandas as pd
    >>> case = EvalCase(question="Who?")
    >>> keep_results([case], pd.DataFrame({"tone": [0.5], "tone__status": ["ok"]}))
    >>> case.results["tone"].score
    0.5
    """
    held = [cases] if isinstance(cases, EvalCase) else cases
    if not isinstance(held, list | tuple) or len(held) != len(table):
        return
    ends = [str(name) for name in table.columns if str(name).endswith("__status")]
    names = [end.removesuffix("__status") for end in ends]
    for case, row in zip(held, records(table), strict=True):
        if not isinstance(case, EvalCase):
            continue
        for name in (name for name in names if name in row):
            reason = row.get(f"{name}__reason")
            case.results[name] = EvalResult(
                score=None if _is_gone(row[name]) else float(row[name]),
                status=row[f"{name}__status"],
                reason=None if _is_gone(reason) else str(reason),
            )


def _is_gone(value: Any) -> bool:
    return value is None or value != value or str(value) == "<NA>"


def _is_there(cell: Any, least: int) -> bool:
    """Whether a cell holds a text, or a list of at least so many."""
    if isinstance(cell, str):
        return bool(cell.strip())
    return hasattr(cell, "__len__") and len(cell) >= least


def missing_fields(cases: pd.DataFrame, needs: Iterable[str]) -> list[tuple[str, ...]]:
    """Return for each case which of the fields it lacks; text that is blank counts as lacking.

    Examples
    --------
    >>> import pandas as pd
    >>> missing_fields(pd.DataFrame({"answer": ["Ann.", None]}), ["answer", "question"])
    [('question',), ('answer', 'question')]
    """
    present = {}
    for field in needs:
        cells: Any = cases.get(field, [None] * len(cases))
        least = 0 if field == "retrieved_contexts" else 1  # which are there also as an empty list
        present[field] = [_is_there(cell, least) for cell in cells]
    return [
        tuple(field for field, there in present.items() if not there[i]) for i in range(len(cases))
    ]
