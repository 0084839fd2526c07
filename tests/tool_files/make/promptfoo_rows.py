"""What promptfooconfig.yaml refers to: a provider that plays back answers, the tests, and an assertion."""

from __future__ import annotations

from typing import Any

from questions import rows
from scores import THRESHOLD, overlap, support

CHOSEN = ["zh-01", "zh-03", "zh-34", "en-11", "en-35"]  # promptfoo writes each test three times


def call_api(prompt: str, options: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the recorded answer of a system; for zh-03 an error, as if the system had been down."""
    answers = {row["sample_id"]: row["answer"] for row in rows(options["config"]["system"])}
    name = context["vars"]["sample_id"]
    if name == "zh-03":
        raise ConnectionError("the system did not answer")
    return {"output": answers[name]}


def all_tests(config: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return a test for each row."""
    return [
        {
            "description": row["sample_id"],
            "vars": {
                "sample_id": row["sample_id"],
                "question": row["question"],
                "reference": row["reference"],
                "contexts": row["retrieved_contexts"],
            },
            "metadata": {"doc_name": row["doc_name"]},
        }
        for row in rows()
        if row["sample_id"] in CHOSEN
    ]


def overlap_with_reference(output: str, context: dict[str, Any]) -> dict[str, Any]:
    """Score the words of the reference, and pass from the threshold on."""
    score = overlap(output, context["vars"]["reference"])
    return {
        "pass": score >= THRESHOLD,
        "score": score,
        "reason": f"{score:.0%} of the reference's words",
    }


def support_by_contexts(output: str, context: dict[str, Any]) -> float:
    """Score the words of the answer; without contexts this raises an error."""
    return support(output, context["vars"]["contexts"])
