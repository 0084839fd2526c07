"""The table of metrics that ragnb knows, and how a caller's names and columns become metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

import pandas as pd

from ragnb.errors import RagnbError, unknown
from ragnb.schema.columns import CASE_COLUMNS, DERIVED_COLUMNS, TRACE_COLUMNS
from ragnb.schema.metric import Metric
from ragnb.schema.rubric import RUBRIC, Rubric

_A, _R, _G, _C = "answer", "retrieved_contexts", "ground_truth_answer", "ground_truth_contexts"
_Q = "question"


def _wording(name: str, variant: str) -> Metric:
    return Metric(name, role="rate", family="wording", needs=(_A, _R), variant=variant)


def _rate(
    name: str, better: Literal["higher", "lower"] = "higher", family: str = "refusal", **more: str
) -> Metric:
    kind: Literal["continuous", "binary"] = "continuous" if more.get("kind") == "continuous" else "binary"
    return Metric(name, 0.0, 1.0, better, kind, role="rate", family=family, variant=more.get("variant", ""))


_ROWS = (
    Metric("faithfulness", family="generation", needs=(_A, _R),
           variant="supported statements / statements of the answer", aliases=(
            "Faithfulness", "groundedness", "Groundedness", "nv_response_groundedness", "response_groundedness",
            "faithfullness_evaluator", "answer_faithfulness",
            "groundedness_measure_with_cot_reasons", "忠实度", "忠實度")),
    Metric("answer_relevancy", family="generation", needs=(_A, _Q),
           variant="how far the answer speaks to the question", aliases=(
            "response_relevancy", "Answer Relevancy", "Answer Relevance", "answer_relevance", "relevancy",
            "答案相关性", "答案相关度", "回答相关性", "答案相關性")),
    Metric("context_recall", family="retrieval", needs=(_G, _R),
           variant="supported statements / statements of the reference answer",
           aliases=("Context Recall", "contextual_recall", "Contextual Recall", "上下文召回率", "上下文召回")),
    Metric("context_precision", family="retrieval", needs=(_C, _R),
           variant="average precision over ranks, against reference contexts or a reference answer", aliases=(
            "llm_context_precision_with_reference", "context_precision_with_reference", "Context Precision",
            "contextual_precision", "Contextual Precision", "上下文精确率", "上下文精确度", "上下文精確率")),
    Metric("context_relevance", family="retrieval", needs=(_R, _Q),
           variant="relevant passages / passages (the NVIDIA metric of ragas is a rating, not a share)", aliases=(
            "nv_context_relevance", "Context Relevance", "contextual_relevancy", "Contextual Relevancy",
            "context_relevance_with_cot_reasons", "上下文相关性", "上下文相關性")),
    Metric("context_relevancy", family="retrieval",  # without needs: nobody computes it any more
           variant="sentences that the answer needs / sentences of the passages (ragas of 2023)",
           aliases=("context_ relevancy", "context_relavency")),
    Metric("answer_correctness", family="end_to_end", needs=(_A, _G),
           variant="agreement of the answer with the reference answer",
           aliases=("Answer Correctness", "答案正确性", "答案正确度", "答案正確性")),
    Metric("answer_accuracy", family="end_to_end", needs=(_A, _G), aliases=("nv_accuracy",),
           variant="agreement with the reference answer, rated twice 0 / 0.5 / 1 (the NVIDIA metric of ragas)"),
    Metric("noise_sensitivity", better="lower", family="generation", needs=(_A, _G, _R),
           variant="false statements that retrieved passages led to / statements of the answer",
           aliases=("noise_sensitivity(mode=relevant)", "噪声敏感度", "噪声敏感性")),
    Metric("factual_correctness", family="end_to_end", needs=(_A, _G),
           variant="F1 of the statements of answer and reference answer",
           aliases=(
            "factual_correctness(mode=f1)", "factual_correctness_f1", "factuality", "事实正确性", "事实正确度")),
    Metric("semantic_similarity", low=-1.0, family="end_to_end", needs=(_A, _G),
           variant="cosine of the embeddings of answer and reference answer",
           aliases=("answer_similarity", "sas", "语义相似度", "語意相似度")),
    *Rubric().metrics,
    _wording("support_lexical", "wording of the answer that stands in the retrieved passages; not faithfulness"),
    _wording("number_support", "figures of the answer that stand in the retrieved passages / its figures"),
    _wording("name_support", "names of the answer that stand in the retrieved passages / its names"),
    _rate("correct_outcome", variant="answered with a right citation, or rightly refused / labelled"),
    _rate("answer_precision", variant="answered, answerable and hit / answered"),
    _rate("over_refusal", "lower", variant="refused / answerable"),
    _rate("under_refusal", "lower", variant="answered / unanswerable"),
    _rate("citation_hit_rate", family="citation", variant="answered and hit / answerable"),
    _rate("claim_containment", family="citation", variant="answer holds a phrase of the claim / answerable"),
    _rate("compliance", family="citation", variant="has a citations list or is a refusal / all"),
    _rate("retrieval_hit", family="retrieval", variant="some gold id among the chunks / answerable"),
    _rate("retrieval_recall", family="retrieval", kind="continuous", variant="gold ids among the chunks"),
    _rate("reciprocal_rank", family="retrieval", kind="continuous", variant="1 / rank of the first gold id"),
)  # fmt: skip

METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _ROWS})
KNOWN_RATES = frozenset(metric.name for metric in _ROWS if metric.role == "rate")
"""The metrics that ragnb knows, by name."""

MetricLike = str | Metric


def metric_list(metrics: MetricLike | Iterable[MetricLike] | None) -> list[MetricLike] | None:
    """Return what a caller gave as ``metrics=`` as a list, or refuse what names no metrics.

    Raises
    ------
    RagnbError
        For a mapping, which holds weights, and for anything but names and Metric objects.

    Examples
    --------
    >>> metric_list("faithfulness")
    ['faithfulness']
    """
    if metrics is None or isinstance(metrics, str | Metric):
        return None if metrics is None else [metrics]
    if isinstance(metrics, Mapping):
        raise RagnbError(
            f"metrics={dict(metrics)!r} is a mapping, and metrics= takes names; write metrics={list(metrics)!r}, "
            f"and hand weights to metric_weights={dict(metrics)!r}"
        )
    given: list[Any] = list(metrics) if isinstance(metrics, Iterable) else [metrics]
    for item in given:
        if not isinstance(item, str | Metric):
            raise RagnbError(
                f"metrics= holds {item!r}, which names no metric; write names such as 'faithfulness' or "
                "Metric objects; weights go into metric_weights={name: weight}"
            )
    return given


def resolve_metrics(
    metrics: MetricLike | Iterable[MetricLike] | None, columns: Sequence[str]
) -> tuple[Metric, ...]:
    """Turn what a caller named into metrics whose columns are there.

    Parameters
    ----------
    metrics : None, str, Metric, or several
        None takes every column that METRICS declares. Metric objects add to METRICS (and to the columns
        of METRICS when no name is given beside them); names, the Metric objects of METRICS, and the dimensions
        of a rubric select.
    columns : sequence of str
        The columns of the frame.

    Returns
    -------
    tuple of Metric
        In the order named; for None in the order of METRICS.

    Raises
    ------
    RagnbError
        For a name that neither METRICS nor the caller declares, that is not a column, or that is named twice.

    Examples
    --------
    >>> [m.name for m in resolve_metrics(None, ["faithfulness", "latency"])]
    ['faithfulness']
    """
    known = tuple(metric for name, metric in METRICS.items() if name in columns)
    given = metric_list(metrics)
    if given is None:
        return known
    own = {metric.name: metric for metric in given if isinstance(metric, Metric)}
    new = [m for m in own.values() if m.family != RUBRIC and METRICS.get(m.name) != m]
    if own and len(new) == len(given):
        given = [*(metric for metric in known if metric.name not in own), *given]
    chosen = [_resolve_one(item, own, columns) for item in given]
    names = [metric.name for metric in chosen]
    if len(set(names)) < len(names):
        raise RagnbError(f"metrics={names!r} names one metric twice; name each once")
    return tuple(chosen)


def _resolve_one(item: MetricLike, own: Mapping[str, Metric], columns: Sequence[str]) -> Metric:
    name = item if isinstance(item, str) else item.name
    metric = own.get(name) or METRICS.get(name)
    if metric is None:
        step = f"Declare it: Metric({name!r}, low, high)" if name in columns else ""
        raise unknown("metric", name, [*METRICS, *own], step)
    if name not in columns:
        raise unknown("metric", name, [c for c in columns if c in METRICS or c in own], "It is not a column.")
    return metric


def undeclared_columns(frame: pd.DataFrame) -> list[str]:
    """Return the numeric columns that no one declared: they are listed, never averaged.

    Examples
    --------
    >>> undeclared_columns(pd.DataFrame({"faithfulness": [1.0], "latency": [2.5], "question": ["a"]}))
    ['latency']
    """
    skip = {*METRICS, *CASE_COLUMNS, *DERIVED_COLUMNS, *TRACE_COLUMNS}
    return [
        str(name)
        for name in frame.columns
        if name not in skip
        and "__" not in str(name)
        and pd.api.types.is_numeric_dtype(frame[name])
        and not pd.api.types.is_bool_dtype(frame[name])
    ]
