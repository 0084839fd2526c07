"""A judge's endpoint on 127.0.0.1 that plays back judge_replies.jsonl: simulated, no model is behind it.

It also plays the system that is asked for a better answer, with the rows "retried".

    python judge_server.py --log calls.jsonl

The first line printed is the base URL. Each request is a line of the log. It ends when its standard input is
closed, so also with the program that started it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

REPLIES = Path(__file__).resolve().with_name("judge_replies.jsonl")


class Player(ThreadingHTTPServer):
    """The replies by question and answer, the next one of each at every call."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, log: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        rows = [json.loads(line) for line in REPLIES.read_text(encoding="utf-8").splitlines()]
        self.rows = {(row["question"], row["answer"]): row for row in rows}
        self.calls = dict.fromkeys(self.rows, 0)
        self.log, self.lock = log, threading.Lock()

    def reply(self, messages: list[dict[str, str]]) -> str | None:
        """The next reply to these messages; None where none is recorded."""
        if len(messages) == 1:
            return self.answer(messages[0]["content"])
        found = re.search(r"<data-(\w+)>\n(.*)\n</data-\1>", messages[1]["content"])
        given = json.loads(found[2]) if found else {}
        key = given.get("question"), given.get("answer")
        row = self.rows.get(key)
        named = {name: row[name] if row else None for name in ("sample_id", "system")}
        with self.lock, self.log.open("a", encoding="utf-8") as log:
            number = self.calls.get(key, 0)
            log.write(json.dumps(named | {"call": number, "again": len(messages) > 2}) + "\n")
            if row is None:
                return None
            self.calls[key] += 1
        text: str = row["replies"][number % len(row["replies"])]
        return text

    def answer(self, asked: str) -> str | None:
        """The first retried answer to the question that is not the earlier one, else the last again."""
        rows = [
            row
            for row in self.rows.values()
            if row["system"] == "retried" and row["question"] in asked
        ]
        if not rows:
            return None
        row = next((row for row in rows if row["answer"] not in asked), rows[-1])
        with self.lock, self.log.open("a", encoding="utf-8") as log:
            log.write(
                json.dumps({"sample_id": row["sample_id"], "system": "retry", "again": False})
                + "\n"
            )
        text: str = row["answer"]
        return text


class Handler(BaseHTTPRequestHandler):
    """Chat completions, as far as a judge needs them."""

    protocol_version = "HTTP/1.1"
    server: Player

    def do_POST(self) -> None:
        """Answer with what is recorded, or 422."""
        asked: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = self.server.reply(asked["messages"])
        message = {"role": "assistant", "content": text}
        good = {
            "id": "recorded",
            "object": "chat.completion",
            "created": 0,
            "model": asked["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        }
        bad = {
            "error": {
                "message": "no reply is recorded for this question and answer",
                "code": "not_recorded",
            }
        }
        data = json.dumps(bad if text is None else good).encode()
        self.send_response(422 if text is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        """Nothing on stderr."""


def serve(kind: type[Player] = Player) -> None:
    """Serve until standard input is closed."""
    parser = argparse.ArgumentParser(description="Answer as a simulated judge.")
    parser.add_argument("--log", type=Path, required=True, help="file to which each call is added")
    with kind(parser.parse_args().log) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
        sys.stdin.read()
        server.shutdown()


if __name__ == "__main__":
    serve()
