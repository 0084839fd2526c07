"""An endpoint on 127.0.0.1 that answers the prompts of ragas by rule: simulated, no model is behind it.

    python ragas_server.py --log calls.jsonl

Every sentence is a statement, and a text supports a statement if it contains most of its words; a passage is
relevant to a question if it contains a good part of its words. It starts, logs and ends as judge_server.py does.
"""

from __future__ import annotations

import json
import re
from typing import Any

from judge_server import Player, serve

SUPPORTED, RELEVANT = 0.6, 0.3  # the share of the words that the text contains


class Rules(Player):
    """Replies that follow from the prompt alone."""

    def reply(self, messages: list[dict[str, str]]) -> str | None:
        """Return the reply to a prompt of ragas, or to ours of context relevance; None to any other."""
        prompt = "\n".join(message["content"] for message in messages)
        data = re.search(r"<data-(\w+)>\n(.*)\n</data-\1>", prompt, re.DOTALL)
        given = re.search(r"^input: (\{.*\})\nOutput: $", prompt, re.DOTALL | re.MULTILINE)
        if data:
            asked = json.loads(data[2])
            passages = asked["passages"].items()
            answer = {
                "relevant": {
                    n: overlap(asked["question"], text) >= RELEVANT for n, text in passages
                }
            }
        elif given:
            answer = verdicts(json.loads(given[1]))
        else:
            return None
        with self.lock, self.log.open("a", encoding="utf-8") as log:
            log.write(json.dumps({"asked": sorted(answer)}) + "\n")
        return json.dumps(answer, ensure_ascii=False)


def verdicts(given: dict[str, Any]) -> dict[str, Any]:
    """Answer one of the prompts: statements of an answer, their support, or what a context holds."""
    if "statements" in given:
        rows = [
            (text, int(overlap(text, given["context"]) >= SUPPORTED))
            for text in given["statements"]
        ]
        return {
            "statements": [
                {"statement": text, "reason": "", "verdict": verdict} for text, verdict in rows
            ]
        }
    if "context" in given and "answer" in given:
        context, answer = given["context"], sentences(given["answer"])
        supported = {text: int(overlap(text, context) >= SUPPORTED) for text in answer}
        rows = [
            {"statement": text, "reason": "", "attributed": verdict}
            for text, verdict in supported.items()
        ]
        return {"classifications": rows, "reason": "", "verdict": int(any(supported.values()))}
    return {"statements": sentences(given["answer"])}


def sentences(text: str) -> list[str]:
    """Part a text after its full stops."""
    return [part.strip() for part in re.split(r"(?<=[.。])\s*", text) if part.strip()]


def overlap(claim: str, text: str) -> float:
    """Return the share of a claim's words that a text contains; two characters make a Chinese word."""
    words = {*re.findall(r"[a-z]{4,}|\d+", claim.lower()), *re.findall(r"(?=([一-鿿]{2}))", claim)}
    return sum(word in text.lower() for word in words) / max(len(words), 1)


if __name__ == "__main__":
    serve(Rules)
