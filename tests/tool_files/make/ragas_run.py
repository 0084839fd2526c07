"""Evaluate with ragas, by evaluate() and as an experiment. It writes the files ragas_*.

RAGAS_DO_NOT_TRACK=true python make/ragas_run.py
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ["RAGAS_DO_NOT_TRACK"] = "true"

import ragas
from questions import FOLDER, rows
from ragas import Dataset, EvaluationDataset, SingleTurnSample, evaluate, experiment
from ragas.metrics import MetricResult, discrete_metric, numeric_metric
from ragas.metrics._context_recall import NonLLMContextRecall
from ragas.metrics._rouge_score import RougeScore
from ragas.metrics._string import ExactMatch, NonLLMStringSimilarity
from ragas.metrics.base import MetricType, SingleTurnMetric
from ragas.run_config import RunConfig
from scores import THRESHOLD, overlap, support


@dataclass
class ContextSupport(SingleTurnMetric):
    """Share of the answer's words in the contexts."""

    name: str = "context_support"
    _required_columns: dict[MetricType, set[str]] = field(
        default_factory=lambda: {MetricType.SINGLE_TURN: {"response", "retrieved_contexts"}}
    )

    def init(self, run_config: RunConfig) -> None:
        """Nothing to prepare."""

    async def _single_turn_ascore(self, sample: SingleTurnSample, callbacks: Any) -> float:
        return support(sample.response, sample.retrieved_contexts)


samples = [
    SingleTurnSample(
        user_input=row["question"],
        response=row["answer"],
        reference=row["reference"],
        retrieved_contexts=row["retrieved_contexts"],
        reference_contexts=row["ground_truth_contexts"],
    )
    for row in rows()
]
stem = FOLDER / f"ragas_{ragas.__version__}"


@discrete_metric(name="passes", allowed_values=["pass", "fail"])
def passes(response: str, reference: str) -> MetricResult:
    """Compare the overlap with the threshold."""
    score = overlap(response, reference)
    return MetricResult(
        value="pass" if score >= THRESHOLD else "fail", reason=f"{score:.0%} of the words"
    )


@numeric_metric(name="token_overlap", allowed_values=(0.0, 1.0))
def token_overlap(response: str, reference: str) -> MetricResult:
    """Compare the answer with the reference."""
    return MetricResult(value=overlap(response, reference), reason="words were counted")


@numeric_metric(name="context_support", allowed_values=(0.0, 1.0))
def context_support(response: str, contexts: list[str]) -> MetricResult:
    """Compare the answer with the contexts; an error without contexts."""
    return MetricResult(value=support(response, contexts), reason="words were counted")


@experiment()
async def run(row: dict[str, Any]) -> dict[str, Any]:
    """Return the scores of a row, beside its texts."""
    pair = {"response": row["answer"], "reference": row["reference"]}
    found = await context_support.ascore(response=row["answer"], contexts=row["retrieved_contexts"])
    return {
        **{
            key: row[key]
            for key in ("sample_id", "question", "answer", "reference", "retrieved_contexts")
        },
        "passes": (await passes.ascore(**pair)).value,
        "token_overlap": (await token_overlap.ascore(**pair)).value,
        "context_support": found.value,
        "context_support_reason": found.reason,
    }


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    dataset = Dataset(name="quickstart", backend="local/csv", root_dir=work)
    for row in rows():
        dataset.append(row)
    asyncio.run(run.arun(dataset, name="strong"))
    shutil.copy(Path(work) / "experiments" / "strong.csv", f"{stem}_experiment.csv")

# evaluate() changes how event loops are run, so it comes last.
metrics = [
    ExactMatch(),
    NonLLMStringSimilarity(),
    RougeScore(),
    NonLLMContextRecall(),
    ContextSupport(),
]
result = evaluate(EvaluationDataset(samples), metrics, raise_exceptions=False, show_progress=False)
result.to_pandas().to_csv(f"{stem}_evaluate.csv", index=False)
result.to_pandas().to_json(f"{stem}_evaluate.json", orient="records", force_ascii=False)
