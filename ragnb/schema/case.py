"""An evaluation case, and which metrics its fields allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import compress
from operator import not_
from typing import Any, Literal

import narwhals as nw
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field

from ragnb.errors import RagnbError, unknown
from ragnb.schema.known import METRICS, MetricLike, metric_list
from ragnb.schema.metric import Metric


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
    """Return for each case which of the fields it lacks; the rule of `applicable_metrics`, case by case.

    Examples
    --------
    >>> missing_fields(pd.DataFrame({"answer": ["Ann.", None]}), ["answer", "question"])
    [('question',), ('answer', 'question')]
    """
    present = {field: _present(cases, field).tolist() for field in needs}
    return [tuple(field for field, there in present.items() if not there[i]) for i in range(len(cases))]


def applicable_metrics(
    cases: pd.DataFrame | Iterable[EvalCase], *, metrics: Iterable[MetricLike] | None = None
) -> pd.DataFrame:
    """Say which metrics the cases allow, and which fields are missing where one does not apply.

    Parameters
    ----------
    cases : DataFrame or iterable of EvalCase
        One row a case, canonical column names, of any engine.
    metrics : iterable of str or Metric, optional
        Which to look at; by default those of METRICS that need fields and are neither rubric dimensions nor
        checks of wording.

    Returns
    -------
    DataFrame
        One row a metric and pattern of missing fields: ``metric, missing_fields`` (tuple, empty where it
        applies), ``n_cases``, ``applies``.

    Raises
    ------
    RagnbError
        For a name that METRICS does not know, and for what holds no cases.

    Examples
    --------
    >>> table = applicable_metrics([EvalCase(question="Who?", answer="Ann.", retrieved_contexts=["Ann."])])
    >>> sorted(table.loc[table.applies, "metric"])
    ['answer_relevancy', 'context_relevance', 'faithfulness']
    """
    frame = _case_frame(cases)
    named = metric_list(metrics)
    chosen = (
        [_declared(m) for m in named]
        if named is not None
        else [m for m in METRICS.values() if m.needs and m.family not in ("rubric", "wording")]
    )
    fields = sorted({field for metric in chosen for field in metric.needs})
    present = {field: _present(frame, field).tolist() for field in fields}
    rows = []
    for metric in chosen:
        needs = metric.needs
        flags = Counter(zip(*(present[field] for field in needs), strict=True)) if needs else {(): len(frame)}
        patterns = {tuple(compress(needs, map(not_, there))): n for there, n in flags.items()}
        rows += [
            {"metric": metric.name, "missing_fields": missing, "n_cases": n, "applies": not missing}
            for missing, n in sorted(patterns.items(), key=lambda item: (len(item[0]), item[0]))
        ]
    return pd.DataFrame(rows, columns=["metric", "missing_fields", "n_cases", "applies"])


def _case_frame(cases: Any) -> pd.DataFrame:
    from ragnb.readers.frames import native  # readers read by the schema
    from ragnb.readers.raw import check_columns

    if isinstance(cases, pd.DataFrame):
        check_columns(cases)
        return cases
    found = native(cases) if hasattr(cases, "column_names") else nw.from_native(cases, pass_through=True)
    if isinstance(found, nw.LazyFrame):
        found = found.collect()
    if isinstance(found, nw.DataFrame):
        return pd.DataFrame(found.to_dict(as_series=False))
    rows = list(cases) if isinstance(cases, Iterable) and not isinstance(cases, str | Mapping) else [cases]
    if not all(isinstance(row, EvalCase) for row in rows):
        found, path = (repr(cases), repr(cases)) if isinstance(cases, str) else (type(cases).__name__, "path")
        raise RagnbError(
            f"{found} is neither a frame of cases nor a list of EvalCase; "
            f"rn.read_cases({path}) makes a frame of a file, or of a list of records"
        )
    return pd.DataFrame([case.model_dump() for case in rows], columns=list(EvalCase.model_fields))


def _declared(item: MetricLike) -> Metric:
    if isinstance(item, Metric):
        return item
    if item not in METRICS:
        raise unknown("metric", item, list(METRICS))
    return METRICS[item]
