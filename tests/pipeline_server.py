"""A simulated model for the whole pipeline: it writes questions, answers and judges by plain rules."""

from __future__ import annotations

import json
import re
from typing import Any

from judge_server import examiner, words
from llm_server import Request
from ragas_server import judge

REFUSAL = "not in context"


def data(request: Request) -> dict[str, Any]:
    found = re.search(r"<data-(\w+)>\n(.*)\n</data-\1>", request.prompt, re.DOTALL)
    assert found, request.prompt
    return json.loads(found[2])


def sentences(text: str) -> list[str]:
    return [one.strip() for one in re.split(r"(?<=[.。])\s*", text) if one.strip()]


def model(request: Request) -> str:
    """A script for `LlmServer`."""
    if len(request.body["messages"]) > 1:
        return examiner(request)
    if request.prompt.endswith("\nOutput: "):
        return judge(request)
    prompt, given = request.prompt, data(request)
    if '"answered"' in prompt:
        asked = words(given["question"])
        return json.dumps(
            {"answered": all(asked <= words(text) for text in given["passages"].values())}
        )
    if '"relevant"' in prompt:
        asked = words(given["question"])
        return json.dumps(
            {"relevant": {n: len(words(t) & asked) > 1 for n, t in given["passages"].items()}}
        )
    if "question" in given:
        return answer(given["question"], [*given["passages"].values()])
    return question([*given["passages"].values()], prompt)


def question(passages: list[str], prompt: str) -> str:
    nth = re.search(r"(?:fact number|第) (\d+)", prompt)
    quotes = [
        sentences(text)[(int(nth[1]) - 1 if nth else 0) % len(sentences(text))] for text in passages
    ]
    if '"evidence"' not in prompt:
        return json.dumps(
            {"question": f"Who signed off on this: {quotes[0][:30]}?"}, ensure_ascii=False
        )
    made = {"question": "What about " + " and ".join(one[:40] for one in quotes) + "?"}
    return json.dumps(made | {"answer": " ".join(quotes), "evidence": quotes}, ensure_ascii=False)


def answer(asked: str, passages: list[str]) -> str:
    if asked.startswith("Who signed"):
        return REFUSAL
    every = [one for text in passages for one in sentences(text)]
    return max(every, key=lambda one: len(words(one) & words(asked)))
