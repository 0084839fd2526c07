"""A simulated judge for the metrics of ragas: sentences are statements, and containment is support."""

from __future__ import annotations

import json
import re


def sentences(text):
    return [part.strip() for part in re.split(r"(?<=[.。])\s*", text) if part.strip()]


def judge(request):
    """A judge that takes sentences for statements, and containment for support: every reply is determined."""
    prompt = str(request.body["messages"][0]["content"])
    given = re.search(r"^input: (\{.*\})\nOutput: $", prompt, re.DOTALL | re.MULTILINE)
    if '"relevant"' in prompt:
        data = json.loads(re.search(r"<data-[0-9a-f]+>\n(.*)\n</data", prompt, re.DOTALL)[1])
        words = set(re.findall(r"\w{5,}", data["question"].lower()))
        verdicts = {
            n: bool(words & set(re.findall(r"\w+", text.lower())))
            for n, text in data["passages"].items()
        }
        return json.dumps({"relevant": verdicts})
    if given is None:
        return by_function_prompt(prompt)
    data = json.loads(given[1])
    return json.dumps(replied(data))


def replied(data):
    if "statements" in data:
        return {"statements": [verdict(s, data["context"]) for s in data["statements"]]}
    if "ground_truth" in data:
        return classified(data["answer"], data["ground_truth"])
    if "context" in data and "answer" in data:
        both = {
            "reason": "r",
            "verdict": int(data["answer"] in data["context"]),
            "classifications": [
                {"statement": s, "reason": "r", "attributed": int(s in data["context"])}
                for s in sentences(data["answer"])
            ],
        }
        return both
    if "atomicity" in data:
        return {"claims": sentences(data["response"])}
    if "response" in data:
        return {
            "question": "Asked again: " + data["response"],
            "noncommittal": int("know" in data["response"]),
        }
    return {"statements": sentences(data.get("answer", data.get("text", "")))}


def verdict(statement, context):
    return {"statement": statement, "reason": "r", "verdict": int(statement in context)}


def classified(answer, truth):
    def row(s):
        return {"statement": s, "reason": "r"}

    return {
        "TP": [row(s) for s in answer if s in truth],
        "FP": [row(s) for s in answer if s not in truth],
        "FN": [row(s) for s in truth if s not in answer],
    }


def by_function_prompt(prompt):
    raise AssertionError(prompt[-600:])


def embed(text):
    return [1.0, 0.0] if text.startswith("Asked again") or "?" in text else [0.6, 0.8]
