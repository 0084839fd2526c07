"""Which metrics the fields of some cases allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import narwhals as nw
import pandas as pd

from ragnb.errors import RagnbError, unknown
from ragnb.readers.frames import native
from ragnb.readers.raw import check_columns
from ragnb.schema import METRICS, EvalCase, Metric, MetricLike, metric_list, missing_fields


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
    rows = [
        {"metric": metric.name, "missing_fields": missing, "n_cases": n, "applies": not missing}
        for metric in chosen
        for missing, n in sorted(
            Counter(missing_fields(frame, metric.needs)).items(), key=lambda item: (len(item[0]), item[0])
        )
    ]
    return pd.DataFrame(rows, columns=["metric", "missing_fields", "n_cases", "applies"])


def _case_frame(cases: Any) -> pd.DataFrame:
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
