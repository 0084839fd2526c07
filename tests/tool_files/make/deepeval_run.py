"""Evaluate with DeepEval: one metric of its own, three of ours. It writes the files deepeval_*.

DEEPEVAL_TELEMETRY_OPT_OUT=YES python make/deepeval_run.py
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "DEEPEVAL_NO_INSPECT_PROMPT": "1"}
work = tempfile.TemporaryDirectory()
os.chdir(work.name)

import deepeval  # noqa: E402
from deepeval import evaluate  # noqa: E402
from deepeval.evaluate.configs import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig  # noqa: E402
from deepeval.metrics import BaseMetric, ExactMatchMetric  # noqa: E402
from deepeval.test_case import LLMTestCase  # noqa: E402
from deepeval.test_run import global_test_run_manager  # noqa: E402
from questions import FOLDER, rows  # noqa: E402
from scores import THRESHOLD, overlap, support  # noqa: E402

CHOSEN = [
    "zh-01",
    "zh-03",
    "zh-20",
    "zh-34",
    "en-01",
    "en-11",
    "en-13",
    "en-35",
]  # the texts are escaped, so long


class Ours(BaseMetric):
    """A metric whose score is computed from the texts."""

    label = ""

    def __init__(self, threshold: float | None = None) -> None:
        self.threshold, self.async_mode = threshold, False

    def compute(self, case: LLMTestCase) -> float:
        """Compute the score of a test case."""
        raise NotImplementedError

    def measure(self, case: LLMTestCase, *args: Any, **kwargs: Any) -> float:
        """Set the score, the reason and, with a threshold, the verdict."""
        self.score = self.compute(case)
        self.reason = f"{self.score:.0%} of the words were found"
        self.success = None if self.threshold is None else self.score >= self.threshold
        return self.score

    async def a_measure(self, case: LLMTestCase, *args: Any, **kwargs: Any) -> float:
        """Do the same."""
        return self.measure(case)

    def is_successful(self) -> bool | None:
        """Return the verdict."""
        return self.success

    @property
    def __name__(self) -> str:
        return self.label


class Overlap(Ours):
    """Share of the reference's words in the answer."""

    label = "Token Overlap"

    def compute(self, case: LLMTestCase) -> float:
        """Compare the answer with the reference."""
        return overlap(case.actual_output, case.expected_output)


class Support(Ours):
    """Share of the answer's words in the contexts."""

    label = "Context Support"

    def compute(self, case: LLMTestCase) -> float:
        """Compare the answer with the contexts; without contexts an error."""
        return support(case.actual_output, case.retrieval_context)


cases = [
    LLMTestCase(
        name=row["sample_id"],
        input=row["question"],
        actual_output=row["answer"],
        expected_output=row["reference"],
        retrieval_context=row["retrieved_contexts"],
        context=row["ground_truth_contexts"],
        metadata={"doc_name": row["doc_name"]},
        tags=[row["language"]],
    )
    for row in rows()
    if row["sample_id"] in CHOSEN
]
evaluate(
    cases,
    [ExactMatchMetric(), Overlap(THRESHOLD), Support()],
    identifier="quickstart strong",
    hyperparameters={"system": "strong", "top_k": 2},
    async_config=AsyncConfig(run_async=False),
    display_config=DisplayConfig(
        show_indicator=False, print_results=False, results_folder="results"
    ),
    cache_config=CacheConfig(write_cache=True),
    error_config=ErrorConfig(ignore_errors=True),
)
hidden = Path(".deepeval")
made = {
    "test_run": next(Path("results").glob("test_run_*.json")),
    "latest_run_full": hidden / ".latest_run_full.json",
    "latest_test_run": hidden / ".latest_test_run.json",
    "cache": hidden / ".deepeval-cache.json",
}
for name, path in made.items():
    shutil.copy(path, FOLDER / f"deepeval_{deepeval.__version__}_{name}.json")

# After an upload the same file contains a link alone.
global_test_run_manager.save_final_test_run_link(
    "https://app.confident-ai.com/project/example/test-runs/example"
)
shutil.copy(
    made["latest_test_run"], FOLDER / f"deepeval_{deepeval.__version__}_latest_test_run_link.json"
)
