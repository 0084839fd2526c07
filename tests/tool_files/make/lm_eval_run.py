"""Evaluate with the LM Evaluation Harness: a task of our own and recorded answers. It writes the files lm_eval_*.

HF_HUB_OFFLINE=1 python make/lm_eval_run.py
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
os.environ["HF_HOME"] = (work := tempfile.TemporaryDirectory()).name

import lm_eval
from lm_eval.api.model import LM
from lm_eval.api.task import ConfigurableTask
from lm_eval.loggers import EvaluationTracker
from questions import FOLDER, rows
from relative import relative
from scores import contains, exact, overlap

data = rows()[:8]
answers = {row["question"]: row["answer"] for row in data}


class Recorded(LM):
    """A model that plays back the answers."""

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        """Return the answer to each question."""
        return [answers[request.args[0]] for request in requests]

    def loglikelihood(
        self, requests: list[Any], disable_tqdm: bool = False
    ) -> list[tuple[float, bool]]:
        """Not asked for."""
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> list[float]:
        """Not asked for."""
        raise NotImplementedError


def scored(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
    """Return the scores of an answer."""
    pair = results[0], doc["reference"]
    return {"exact": exact(*pair), "contains": contains(*pair), "token_overlap": overlap(*pair)}


folder = Path(work.name)
os.chdir(folder)  # no repository, so that no commit is written
with open(folder / "data.json", "w", encoding="utf-8") as file:
    json.dump(
        [{key: row[key] for key in ("sample_id", "question", "reference")} for row in data], file
    )
config = {
    "task": "quickstart",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": str(folder / "data.json")}},
    "test_split": "test",
    "output_type": "generate_until",
    "doc_to_text": "{{question}}",
    "doc_to_target": "{{reference}}",
    "process_results": scored,
    "generation_kwargs": {"until": ["</s>"], "do_sample": False},
    "metric_list": [
        {"metric": name, "aggregation": "mean", "higher_is_better": True}
        for name in ("exact", "contains", "token_overlap")
    ],
}
tracker = EvaluationTracker(output_path=str(folder / "out"))
results = lm_eval.simple_evaluate(
    Recorded(),
    tasks=[ConfigurableTask(config=config)],
    evaluation_tracker=tracker,
    log_samples=True,
    bootstrap_iters=0,
)
samples = results.pop("samples")
tracker.save_results_aggregated(results=results, samples=samples)
for name, given in samples.items():
    tracker.save_results_samples(task_name=name, samples=given)
stem = FOLDER / f"lm_eval_{lm_eval.__version__}"
for kind, pattern in {
    "results.json": "results_*.json",
    "samples_quickstart.jsonl": "samples_*.jsonl",
}.items():
    made = next((folder / "out").rglob(pattern))
    shutil.copy(made, f"{stem}_{kind}")
    path = Path(f"{stem}_{kind}")
    path.write_text(
        relative(path.read_text(encoding="utf-8").replace(work.name, ".")), encoding="utf-8"
    )
