"""Evaluate two systems with Haystack, and write its reports. It writes the files haystack_*.

HAYSTACK_TELEMETRY_ENABLED=False python make/haystack_run.py
"""

from __future__ import annotations

import math
import os
from typing import Any

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

from haystack import Document, Pipeline, __version__, component
from haystack.components.evaluators import (
    AnswerExactMatchEvaluator,
    DocumentMRREvaluator,
    DocumentRecallEvaluator,
)
from haystack.evaluation import EvaluationRunResult
from questions import FOLDER, rows
from scores import overlap, support


def documents(texts: list[str] | None) -> list[Document]:
    """Return a document for each text."""
    return [Document(content=text) for text in texts or []]


@component
class TokenOverlapEvaluator:
    """Compare the answers with the references."""

    @component.output_types(score=float, individual_scores=list[float])
    def run(self, ground_truth_answers: list[str], predicted_answers: list[str]) -> dict[str, Any]:
        """Return a score for each answer, and their mean."""
        scores = [
            overlap(*pair) for pair in zip(predicted_answers, ground_truth_answers, strict=True)
        ]
        return {"score": sum(scores) / len(scores), "individual_scores": scores}


@component
class ContextSupportEvaluator:
    """Compare the answers with the contexts; NaN after an error, as in the evaluators with a language model."""

    @component.output_types(score=float, individual_scores=list[float])
    def run(self, predicted_answers: list[str], contexts: list[list[str]]) -> dict[str, Any]:
        """Return a score for each answer, and the mean of the numbers."""
        scores = []
        for answer, texts in zip(predicted_answers, contexts, strict=True):
            try:
                scores.append(support(answer, texts))
            except ValueError:
                scores.append(math.nan)
        numbers = [score for score in scores if not math.isnan(score)]
        return {"score": sum(numbers) / len(numbers), "individual_scores": scores}


def evaluated(system: str) -> EvaluationRunResult:
    """Evaluate the answers of a system."""
    given = rows(system)
    answers = {
        "ground_truth_answers": [row["reference"] for row in given],
        "predicted_answers": [row["answer"] for row in given],
    }
    found = {
        "ground_truth_documents": [documents(row["ground_truth_contexts"]) for row in given],
        "retrieved_documents": [documents(row["retrieved_contexts"]) for row in given],
    }
    contexts = [row["retrieved_contexts"] for row in given]
    pipeline = Pipeline()
    inputs = {
        "exact_match": (AnswerExactMatchEvaluator(), answers),
        "token_overlap": (TokenOverlapEvaluator(), answers),
        "document_recall": (DocumentRecallEvaluator(), found),
        "document_mrr": (DocumentMRREvaluator(), found),
        "context_support": (
            ContextSupportEvaluator(),
            {"predicted_answers": answers["predicted_answers"], "contexts": contexts},
        ),
    }
    for name, (evaluator, _) in inputs.items():
        pipeline.add_component(name, evaluator)
    results = pipeline.run({name: given for name, (_, given) in inputs.items()})
    texts = {"question": [row["question"] for row in given], "contexts": contexts}
    return EvaluationRunResult(system, texts | answers, results)


strong, weak = evaluated("strong"), evaluated("weak")
stem = FOLDER / f"haystack_{__version__}"
strong.detailed_report("csv", f"{stem}_detailed_report.csv")
strong.aggregated_report("csv", f"{stem}_aggregated_report.csv")
kept, path = ["predicted_answers"], f"{stem}_comparative_detailed_report.csv"
strong.comparative_detailed_report(weak, kept, "csv", path)
