"""Evaluate with DeepEval's own Hallucination, Bias and Toxicity, once failing, once passing.

    DEEPEVAL_TELEMETRY_OPT_OUT=YES python make/deepeval_safety.py

It writes the files deepeval_*_safety_*.json of the installed version: 2.9.7, 3.7.0 and 4.3.1 were used. In place
of the judge a class returns fixed verdicts, five for each metric and case; DeepEval computes score and success.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

work = tempfile.TemporaryDirectory()
os.chdir(work.name)
os.environ |= {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "DEEPEVAL_NO_INSPECT_PROMPT": "1",
    "DEEPEVAL_RESULTS_FOLDER": "results",
}

import deepeval  # noqa: E402
from deepeval import evaluate  # noqa: E402
from deepeval.evaluate.configs import AsyncConfig, CacheConfig, DisplayConfig  # noqa: E402
from deepeval.metrics import BiasMetric, HallucinationMetric, ToxicityMetric  # noqa: E402
from deepeval.models import DeepEvalBaseLLM  # noqa: E402
from deepeval.test_case import LLMTestCase  # noqa: E402
from questions import FOLDER, rows  # noqa: E402

CHOSEN = [row for row in rows() if row["language"] == "en"]
STATEMENTS = 5
THRESHOLD = 0.5
BAD = {  # of the five statements of each answer, by metric: how many hallucinate, are biased, are toxic
    "failing": {
        "hallucination": [5, 4, 4, 3, 5, 1],
        "bias": [4, 3, 5, 4, 3, 4],
        "toxicity": [3, 4, 3, 5, 2, 4],
    },
    "passing": {
        "hallucination": [0, 1, 0, 2, 1, 0],
        "bias": [0, 0, 1, 0, 2, 0],
        "toxicity": [0, 0, 0, 1, 0, 0],
    },
}


class FixedVerdicts(DeepEvalBaseLLM):
    """A judge without a model: the statements of an answer, and a fixed verdict on each."""

    def __init__(self, metric: str, bad: list[int]) -> None:
        self.metric, self.bad = metric, bad
        super().__init__("fixed-verdicts")

    def load_model(self, *args: Any, **kwargs: Any) -> FixedVerdicts:
        """Load nothing."""
        return self

    def get_model_name(self, *args: Any, **kwargs: Any) -> str:
        """Return the name that DeepEval writes into the file."""
        return "fixed-verdicts"

    def generate(self, prompt: str) -> str:
        """Return what the prompt asks for, as JSON: the statements of an answer, or verdicts."""
        place = self.place(prompt)
        if self.metric != "hallucination" and "statement 1 of answer" not in prompt:
            names = [f"statement {n + 1} of answer {place}" for n in range(STATEMENTS)]
            return json.dumps({"opinions": names})
        bad, good = ("no", "yes") if self.metric == "hallucination" else ("yes", "no")
        words = [bad] * self.bad[place] + [good] * (STATEMENTS - self.bad[place])
        return json.dumps({"verdicts": [{"verdict": word, "reason": "fixed"} for word in words]})

    async def a_generate(self, prompt: str) -> str:
        """Do the same."""
        return self.generate(prompt)

    def place(self, prompt: str) -> int:
        """Return which case the prompt is about."""
        if found := re.search(r"statement 1 of answer (\d+)", prompt):
            return int(found[1])
        [place] = [n for n, row in enumerate(CHOSEN) if row["answer"] in prompt]
        return place


def metrics(bad: dict[str, list[int]]) -> list[Any]:
    """Return DeepEval's three metrics with the fixed verdicts."""
    kinds = {"hallucination": HallucinationMetric, "bias": BiasMetric, "toxicity": ToxicityMetric}
    options = {"threshold": THRESHOLD, "include_reason": False, "async_mode": False}
    return [kinds[name](model=FixedVerdicts(name, bad[name]), **options) for name in kinds]


for outcome, bad in BAD.items():
    shutil.rmtree("results", ignore_errors=True)
    cases = [
        LLMTestCase(
            name=row["sample_id"],
            input=row["question"],
            actual_output=row["answer"],
            expected_output=row["reference"],
            context=row["ground_truth_contexts"] or ["Nothing in the documents answers this."],
        )
        for row in CHOSEN
    ]
    evaluate(
        cases,
        metrics(bad),
        async_config=AsyncConfig(run_async=False),
        display_config=DisplayConfig(show_indicator=False, print_results=False),
        cache_config=CacheConfig(write_cache=True),
    )
    [made] = [path for path in Path("results").iterdir() if path.suffix != ".lock"]
    shutil.copy(made, FOLDER / f"deepeval_{deepeval.__version__}_safety_{outcome}.json")
