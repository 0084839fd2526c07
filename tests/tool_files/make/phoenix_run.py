"""Evaluate a table with the evaluators of Arize Phoenix. It writes the files phoenix_evals_*.

python make/phoenix_run.py
"""

from __future__ import annotations

from importlib.metadata import version

import pandas as pd
from phoenix.evals import Score, create_evaluator, evaluate_dataframe
from phoenix.evals.metrics import exact_match
from phoenix.evals.utils import to_annotation_dataframe
from questions import FOLDER, rows
from scores import THRESHOLD, overlap, support


@create_evaluator(name="token_overlap", kind="code")
def token_overlap(output: str, reference: str) -> Score:
    """Return a score with a label and an explanation."""
    score = overlap(output, reference)
    label = "pass" if score >= THRESHOLD else "fail"
    return Score(score=score, label=label, explanation=f"{score:.0%} of the reference's words")


@create_evaluator(name="context_support", kind="code")
def context_support(output: str, context: list[str]) -> float:
    """Return a number; an error without contexts."""
    return support(output, context)


@create_evaluator(name="missing_share", kind="code", direction="minimize")
def missing_share(output: str, reference: str) -> float:
    """Return a number of which less is better."""
    return 1 - overlap(output, reference)


names = {
    "question": "input",
    "answer": "output",
    "reference": "reference",
    "retrieved_contexts": "context",
}
data = pd.DataFrame(rows()[2:10]).set_index("sample_id")[list(names)].rename(columns=names)
exact_match.bind({"expected": "reference"})
evaluators = [exact_match, token_overlap, context_support, missing_share]
stem = FOLDER / f"phoenix_evals_{version('arize-phoenix-evals')}"

result = evaluate_dataframe(
    dataframe=data, evaluators=evaluators, exit_on_error=False, max_retries=0
)
result.to_csv(f"{stem}_evaluate_dataframe.csv")
to_annotation_dataframe(result.rename_axis("span_id")).to_csv(f"{stem}_annotations.csv")

# By default the first error ends the run.
stopped = evaluate_dataframe(dataframe=data, evaluators=evaluators, max_retries=0)
stopped.to_json(f"{stem}_stopped.jsonl", orient="records", lines=True, force_ascii=False)
