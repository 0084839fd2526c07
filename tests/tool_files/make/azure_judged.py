"""Evaluate with two evaluators of the Azure AI Evaluation SDK that ask a model. It writes azure_*_judged.json.

    python make/azure_judged.py

A server on this machine stands in for the model and gives fixed scores. For zh-34 it skips relevance, as a model
does where nothing can be rated; for en-13 its reply is no JSON, so the evaluator raises an error.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from azure.ai.evaluation import (
    GroundednessEvaluator,
    OpenAIModelConfiguration,
    RelevanceEvaluator,
    evaluate,
)
from questions import FOLDER, rows
from relative import relative

CHOSEN = rows()[4:10]
SCORES = {"groundedness": [5, 4, 1, 5, 2, 4], "relevance": [5, 3, 2, 4, 1, 5]}
SKIPPED, FAILED = ("relevance", "zh-34"), ("groundedness", "en-13")
NAMES = {
    "sample_id": "sample_id",
    "question": "query",
    "answer": "response",
    "retrieved_contexts": "context",
}


def reply(prompt: str) -> str:
    """Return the fixed reply of the model to a prompt."""
    metric = "groundedness" if "CONTEXT:" in prompt else "relevance"
    [place] = [n for n, row in enumerate(CHOSEN) if row["answer"] in prompt]
    asked = (metric, CHOSEN[place]["sample_id"])
    if asked == FAILED:
        return "I would rather not rate this."
    if asked == SKIPPED:
        return json.dumps({"reason": "nothing to rate", "score": None, "status": "skipped"})
    return json.dumps({"reason": "fixed", "score": SCORES[metric][place], "status": "completed"})


class Model(BaseHTTPRequestHandler):
    """Chat completions with fixed replies."""

    def do_POST(self) -> None:
        """Answer a chat completion."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = reply("\n".join(str(message["content"]) for message in asked["messages"]))
        message = {"role": "assistant", "content": text}
        body: dict[str, Any] = {
            "id": "chatcmpl-0",
            "object": "chat.completion",
            "created": 0,
            "model": "fixed-scores",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        }
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *values: object) -> None:
        """Print nothing."""


def without_prompts(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without the prompts and replies that the SDK repeats in it: 30 kB an evaluator."""
    ends = ("_sample_input", "_sample_output", "_properties")
    return {key: value for key, value in row.items() if not key.endswith(ends)}


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    model = OpenAIModelConfiguration(
        type="openai",
        model="fixed-scores",
        api_key="none",
        base_url=f"http://127.0.0.1:{server.server_port}/v1",
    )
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        data = pd.DataFrame(CHOSEN)[list(NAMES)].rename(columns=NAMES)
        data["context"] = [
            "\n".join(given) or "Nothing was retrieved." for given in data["context"]
        ]
        data.to_json("data.jsonl", orient="records", lines=True, force_ascii=False)
        evaluate(
            data="data.jsonl",
            evaluators={
                "groundedness": GroundednessEvaluator(model),
                "relevance": RelevanceEvaluator(model),
            },
            output_path="result.json",
        )
        result = json.loads(relative(Path("result.json").read_text(encoding="utf-8")))
    server.shutdown()
    result["rows"] = [without_prompts(row) for row in result["rows"]]
    path = FOLDER / f"azure_ai_evaluation_{version('azure-ai-evaluation')}_judged.json"
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
