"""Evaluate with LangSmith, without an upload. It writes the files langsmith_*.

LANGSMITH_TRACING=false python make/langsmith_run.py
"""

from __future__ import annotations

import os
import uuid
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

os.environ |= {"LANGSMITH_TRACING": "false", "LANGSMITH_API_KEY": "none"}
os.environ["LANGSMITH_ENDPOINT"] = "http://127.0.0.1:9"

import langsmith
from langsmith import Client, evaluate
from langsmith.schemas import Example
from questions import FOLDER, rows
from relative import relative
from scores import THRESHOLD, contains, exact, overlap, support

data = {row["question"]: row for row in rows()}


def target(inputs: dict[str, Any]) -> dict[str, Any]:
    """Play back the answer; for zh-03 an error, as if the system had been down."""
    row = data[inputs["question"]]
    if row["sample_id"] == "zh-03":
        raise ConnectionError("the system did not answer")
    return {"answer": row["answer"], "contexts": row["retrieved_contexts"]}


def exact_match(outputs: dict[str, Any], reference_outputs: dict[str, Any]) -> bool:
    """Return a bool."""
    return bool(exact(outputs.get("answer", ""), reference_outputs["answer"]))


def token_overlap(outputs: dict[str, Any], reference_outputs: dict[str, Any]) -> dict[str, Any]:
    """Return a score with a comment."""
    score = overlap(outputs.get("answer", ""), reference_outputs["answer"])
    return {
        "key": "token_overlap",
        "score": score,
        "comment": "passes" if score >= THRESHOLD else "fails",
    }


def verdict(outputs: dict[str, Any], reference_outputs: dict[str, Any]) -> str:
    """Return a word."""
    return (
        "contained"
        if contains(outputs.get("answer", ""), reference_outputs["answer"])
        else "not contained"
    )


def context_support(outputs: dict[str, Any]) -> float:
    """Return a number; an error without contexts."""
    return support(outputs.get("answer", ""), outputs.get("contexts", []))


examples = [
    Example(
        id=uuid.uuid5(uuid.NAMESPACE_URL, row["sample_id"]),
        dataset_id=uuid.uuid5(uuid.NAMESPACE_URL, "quickstart"),
        inputs={"question": row["question"]},
        outputs={"answer": row["reference"]},
        metadata={"sample_id": row["sample_id"], "doc_name": row["doc_name"]},
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    for row in data.values()
]
client = Client(api_url="http://127.0.0.1:9", api_key="none", auto_batch_tracing=False)
with patch.object(Client, "request_with_retries", side_effect=ConnectionError):
    results = evaluate(
        target,
        data=examples,
        evaluators=[exact_match, token_overlap, verdict, context_support],
        upload_results=False,
        client=client,
        max_concurrency=0,
    )
    table = results.to_pandas()
table["error"] = [relative(error) if isinstance(error, str) else error for error in table["error"]]
table.to_csv(FOLDER / f"langsmith_{langsmith.__version__}_to_pandas.csv")
path = FOLDER / f"langsmith_{langsmith.__version__}_to_pandas.jsonl"
table.to_json(path, orient="records", lines=True, force_ascii=False, default_handler=str)
