"""Evaluate with the batch runner of LlamaIndex. It writes the files llama_index_*.

python make/llama_index_run.py
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import pandas as pd
from llama_index.core.evaluation import BaseEvaluator, BatchEvalRunner, EvaluationResult
from llama_index.core.evaluation.eval_utils import get_results_df
from questions import FOLDER, rows
from scores import THRESHOLD, overlap, support


class Ours(BaseEvaluator):
    """An evaluator without a prompt."""

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: dict[str, Any]) -> None:
        """Nothing to update."""


class TokenOverlap(Ours):
    """Compare the answers with the references."""

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        reference: str = "",
        **kwargs: Any,
    ) -> EvaluationResult:
        """Return a score, and whether it reaches the threshold."""
        score = overlap(response or "", reference)
        feedback = f"{score:.0%} of the reference's words"
        return EvaluationResult(
            query=query,
            response=response,
            contexts=contexts,
            score=score,
            passing=score >= THRESHOLD,
            feedback=feedback,
        )


class ContextSupport(Ours):
    """Compare the answers with the contexts."""

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> EvaluationResult:
        """Return a score; without contexts an invalid result, as the evaluators with a language model do."""
        given: dict[str, Any] = {"query": query, "response": response, "contexts": contexts}
        try:
            return EvaluationResult(**given, score=support(response or "", list(contexts or [])))
        except ValueError as error:
            return EvaluationResult(**given, invalid_result=True, invalid_reason=str(error))


data = rows()[3:9]  # the texts are repeated for each metric
runner = BatchEvalRunner(
    {"token_overlap": TokenOverlap(), "context_support": ContextSupport()}, workers=1
)
results = asyncio.run(
    runner.aevaluate_response_strs(
        queries=[row["question"] for row in data],
        response_strs=[row["answer"] for row in data],
        contexts_list=[row["retrieved_contexts"] for row in data],
        reference=[row["reference"] for row in data],
    )
)
stem = FOLDER / f"llama_index_{version('llama-index-core')}"
dumped = {name: [result.model_dump() for result in given] for name, given in results.items()}
with open(f"{stem}_batch_results.json", "w", encoding="utf-8") as file:
    json.dump(dumped, file, ensure_ascii=False)
get_results_df([results], ["strong"], ["token_overlap", "context_support"]).to_csv(
    f"{stem}_results_df.csv"
)
pd.DataFrame(dumped["token_overlap"]).to_csv(f"{stem}_token_overlap.csv", index=False)
