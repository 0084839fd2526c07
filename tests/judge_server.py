"""A simulated judge: it reads the prompts that ragnb sends and answers as a strict examiner would, by plain rules.

It knows no language. An answer whose figures and words all stand in the passages is right; one that says that the
sources do not say is right where the question's own figures are not in them; else it is an invention.
"""

from __future__ import annotations

import json
import re
from typing import Any

from llm_server import Request

HONEST = ("sources do not say", "资料中没有")
SOURCE = ["The pump has a warranty of 730 days."]
CASES = [
    {
        "sample_id": "a",
        "question": "How long is the warranty?",
        "answer": SOURCE[0],
        "retrieved_contexts": SOURCE,
    },
    {
        "sample_id": "b",
        "question": "How long is it?",
        "answer": "Ten years, 4711.",
        "retrieved_contexts": SOURCE,
    },
]


def block(request: Request) -> dict[str, Any]:
    """The material of a request: the JSON between the two tagged lines."""
    found = re.search(r"<data-(\w+)>\n(.*)\n</data-\1>", request.body["messages"][1]["content"])
    assert found, request.body["messages"][1]["content"]
    return json.loads(found[2])


def words(text: str) -> set[str]:
    """Latin words and numbers, and pairs of Chinese characters."""
    runs = re.findall(r"[\u4e00-\u9fff]+", text)
    pairs = {run[i : i + 2] for run in runs for i in range(len(run) - 1)}
    return pairs | set(re.findall(r"[a-z]+|\d+(?:\.\d+)?", text.lower()))


def scores(given: dict[str, Any]) -> dict[str, Any]:
    """The verdict of the simulated examiner."""
    answer = given["answer"]
    sources = words(
        " ".join(part["text"] for part in given.get("contexts", [])) + given["question"]
    )
    honest = any(phrase in answer for phrase in HONEST)
    figures = [word for word in words(answer) if word[0].isdigit() and word not in sources]
    figures += [
        word
        for word in re.findall(r"[一二三四五六七八九十百]+(?=[年天元])", answer)
        if word not in sources
    ]
    support = len(words(answer) & sources) / max(1, len(words(answer)))
    accuracy = (
        2.0
        if figures or (support < 0.3 and not honest)
        else 9.5
        if honest or support > 0.4
        else 6.0
    )
    return {
        "analysis": f"Not in sources: {figures}",
        "accuracy": accuracy,
        "completeness": min(10, accuracy + 0.5),
        "clarity": 9,
        "reason": "by rule",
        "suggestion": "quote the passage with the figure",
    }


def examiner(request: Request) -> str:
    """A script for `LlmServer`: rubric verdicts, and passages by shared words."""
    given = block(request)
    if "answer" in given:
        return json.dumps(scores(given), ensure_ascii=False)
    asked = words(given["question"])
    found = [
        {"n": part["n"], "relevant": len(words(part["text"]) & asked) > 1}
        for part in given["contexts"]
    ]
    return json.dumps({"passages": found})
