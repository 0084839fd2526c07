"""Write logs of chats and of steps, in shapes that many systems use. No tool wrote them, this script did.

    python make/chat_log.py

The messages are those of OpenAI's chat completions, with the call of a retrieval tool; the steps are a chain's.
"""

from __future__ import annotations

import json
from typing import Any

from questions import FOLDER, rows

FAILED = {"zh-03": "timeout", "en-28": "429 rate limit exceeded"}


def messages(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a chat: two turns, of which the last is the question, a call of the search, and the answer."""
    call = {"name": "search", "arguments": json.dumps({"q": row["question"]}, ensure_ascii=False)}
    found = [
        {"id": f"{row['sample_id']}-{place}", "text": text}
        for place, text in enumerate(row["retrieved_contexts"])
    ]
    chat: list[dict[str, Any]] = [
        {"role": "system", "content": "Answer from the documents only."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hello. What would you like to know?"},
        {"role": "user", "content": row["question"]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": call}],
        },
        {
            "role": "tool",
            "tool_call_id": "call_1",
            "content": json.dumps(found, ensure_ascii=False),
        },
    ]
    if row["sample_id"] not in FAILED:
        chat.append({"role": "assistant", "content": row["answer"]})
    return chat


def of_messages(place: int, row: dict[str, Any]) -> dict[str, Any]:
    """Return a line of the log of chats."""
    error = FAILED.get(row["sample_id"])
    return {
        "id": f"chatcmpl-{place}",
        "created_at": f"2026-03-{2 + place // 4:02}T09:{place:02}:00Z",
        "model": "model-a",
        "messages": messages(row),
        "finish_reason": "error" if error else "stop",
        "error": error,
        "latency_ms": 800 + 150 * place,
    }


def of_steps(place: int, row: dict[str, Any]) -> dict[str, Any]:
    """Return a line of the log of steps: rewrite, retrieve twice, generate."""
    failed = row["sample_id"] in FAILED
    documents = [{"page_content": text} for text in row["retrieved_contexts"]]
    return {
        "trace_id": f"t{place}",
        "timestamp": f"2026-03-{2 + place // 4:02}T09:{place:02}:00Z",
        "input": row["question"],
        "output": None if failed else row["answer"],
        "status": 504 if failed else 200,
        "steps": [
            {"name": "rewrite", "output": row["question"]},
            {"name": "retrieve", "documents": documents[:1]},
            {"name": "retrieve", "documents": documents[1:]},
            {"name": "generate", "output": None if failed else row["answer"]},
        ],
    }


for name, line in {"messages": of_messages, "steps": of_steps}.items():
    lines = [json.dumps(line(n, row), ensure_ascii=False) for n, row in enumerate(rows())]
    (FOLDER / f"chat_log_{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
