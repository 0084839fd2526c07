"""Evaluate a JSON Lines file with the Azure AI Evaluation SDK, locally. It writes the files azure_ai_evaluation_*.

python make/azure_run.py
"""

from __future__ import annotations

import json
import os
import tempfile
from importlib.metadata import version
from pathlib import Path

import pandas as pd
from azure.ai.evaluation import F1ScoreEvaluator, evaluate
from questions import FOLDER, rows
from relative import relative
from scores import THRESHOLD, exact, overlap, support


class Overlap:
    """Return several values, in the way of the built-in evaluators."""

    def __call__(self, *, response: str, ground_truth: str) -> dict[str, float | str]:
        """Score the words of the reference."""
        score = overlap(response, ground_truth)
        passes = "pass" if score >= THRESHOLD else "fail"
        return {
            "token_overlap": score,
            "token_overlap_result": passes,
            "token_overlap_threshold": THRESHOLD,
        }


class Exact:
    """Return a single number."""

    def __call__(self, *, response: str, ground_truth: str) -> float:
        """Compare the answer with the reference."""
        return exact(response, ground_truth)


class Support:
    """Return a single number; an error without contexts."""

    def __call__(self, *, response: str, context: list[str]) -> float:
        """Score the words of the answer."""
        return support(response, context)


class Broken:
    """Return nothing: an error for every row."""

    def __call__(self, *, response: str) -> float:
        """Raise an error."""
        raise RuntimeError("this evaluator always fails")


names = {
    "sample_id": "sample_id",
    "question": "query",
    "answer": "response",
    "reference": "ground_truth",
    "retrieved_contexts": "context",
}
stem = FOLDER / f"azure_ai_evaluation_{version('azure-ai-evaluation')}"
if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        data = pd.DataFrame(rows()[2:10])[list(names)].rename(columns=names)
        data.to_json("data.jsonl", orient="records", lines=True, force_ascii=False)
        evaluate(
            data="data.jsonl",
            evaluators={
                "f1": F1ScoreEvaluator(threshold=0.4),
                "overlap": Overlap(),
                "exact": Exact(),
                "support": Support(),
                "broken": Broken(),
            },
            output_path="result.json",
        )
        text = relative(Path("result.json").read_text(encoding="utf-8"))
    Path(f"{stem}_evaluate.json").write_text(text, encoding="utf-8")
    lines = [json.dumps(row, ensure_ascii=False) for row in json.loads(text)["rows"]]
    Path(f"{stem}_rows.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
