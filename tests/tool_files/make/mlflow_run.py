"""Evaluate with MLflow: mlflow.genai.evaluate from 3 on, mlflow.evaluate before. It writes the files mlflow_*.

MLFLOW_DISABLE_TELEMETRY=true python make/mlflow_run.py
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

os.environ |= {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "USER": "user",
    "LOGNAME": "user",
}

import mlflow
import pandas as pd
from questions import FOLDER, rows
from relative import relative
from scores import THRESHOLD, contains, exact, overlap, support

stem = FOLDER / f"mlflow_{mlflow.__version__}"


def genai(folder: Path) -> None:
    """Evaluate with scorers, and write the table of results in three formats."""
    from mlflow.entities import Feedback
    from mlflow.genai.scorers import scorer

    @scorer
    def exact_match(outputs: str, expectations: dict[str, Any]) -> bool:
        """Return yes or no as a bool."""
        return bool(exact(outputs, expectations["expected_response"]))

    @scorer
    def answer_contains(outputs: str, expectations: dict[str, Any]) -> str:
        """Return yes or no as a word."""
        return "yes" if contains(outputs, expectations["expected_response"]) else "no"

    @scorer
    def token_overlap(outputs: str, expectations: dict[str, Any]) -> list[Feedback]:
        """Return a number and whether it reaches the threshold."""
        score = overlap(outputs, expectations["expected_response"])
        return [
            Feedback(
                name="token_overlap", value=score, rationale=f"{score:.0%} of the reference's words"
            ),
            Feedback(name="token_overlap_passes", value=score >= THRESHOLD),
        ]

    @scorer
    def context_support(outputs: str, inputs: dict[str, Any]) -> float:
        """Return a number; an error without contexts."""
        return support(outputs, inputs["contexts"])

    data = [
        {
            "inputs": {"question": row["question"], "contexts": row["retrieved_contexts"]},
            "outputs": row["answer"],
            "expectations": {"expected_response": row["reference"]},
            "tags": {"sample_id": row["sample_id"]},
        }
        for row in rows()
    ]
    result = mlflow.genai.evaluate(
        data, scorers=[exact_match, answer_contains, token_overlap, context_support]
    )
    table: pd.DataFrame = result.result_df
    # The nested columns repeat every text several times: all of them for two rows, the other columns for all rows.
    whole = table[table["trace_id"].isin(table["trace_id"].iloc[[5, 8]])].to_csv(index=False)
    Path(f"{stem}_result_df.csv").write_text(
        relative(whole.replace(str(folder), ".")), encoding="utf-8"
    )
    flat = table.drop(columns=["trace", "spans", "assessments", "trace_metadata", "tags"])
    flat.to_json(f"{stem}_result_df.json", orient="records", force_ascii=False)
    flat.to_parquet(f"{stem}_result_df.parquet")


def legacy(folder: Path) -> None:
    """Evaluate a static table, and keep the artifact with the results. An error of a metric would end this run."""
    from mlflow.metrics import MetricValue, exact_match, make_metric

    def token_overlap(predictions: pd.Series, targets: pd.Series, metrics: Any) -> MetricValue:
        """Compare the answers with the references."""
        return MetricValue(
            scores=[overlap(*pair) for pair in zip(predictions, targets, strict=True)]
        )

    def context_support(predictions: pd.Series, metrics: Any, contexts: pd.Series) -> MetricValue:
        """Compare the answers with the contexts; None without contexts."""
        pairs = zip(predictions, contexts, strict=True)
        return MetricValue(scores=[support(*pair) if pair[1] else None for pair in pairs])

    data = pd.DataFrame(rows())[
        ["sample_id", "question", "answer", "reference", "retrieved_contexts"]
    ]
    ours = [
        make_metric(eval_fn=function, greater_is_better=True, name=function.__name__)
        for function in (token_overlap, context_support)
    ]
    with mlflow.start_run():
        mlflow.evaluate(
            data=data,
            targets="reference",
            predictions="answer",
            extra_metrics=[exact_match(), *ours],
            evaluator_config={"col_mapping": {"contexts": "retrieved_contexts"}},
        )
    made = next(folder.rglob("eval_results_table.json"))
    Path(f"{stem}_eval_results_table.json").write_text(
        made.read_text(encoding="utf-8"), encoding="utf-8"
    )


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    mlflow.set_tracking_uri(
        "sqlite:///mlflow.db" if mlflow.__version__ >= "3" else (Path(work) / "runs").as_uri()
    )
    mlflow.set_experiment("quickstart")
    if mlflow.__version__ >= "3":
        genai(Path(work))
    else:
        legacy(Path(work))
