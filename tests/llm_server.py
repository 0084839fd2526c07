"""A real HTTP server on 127.0.0.1 that speaks the chat-completions and embeddings API, with faults on request.

A script is a function of a request that says what to answer. It is given a `Request` and returns a text (the
reply's content), an `Answer` (the same with other parts), a `Raw` (any status, headers and body) or `DROP` (the
connection is closed without a reply). Every request is in `server.log`, in the order it came.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DROP = object()


@dataclass
class Request:
    """One request: its path, its JSON body, its headers, and how many came before it."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    number: int

    @property
    def prompt(self) -> str:
        """The text of the last message."""
        return str(self.body["messages"][-1]["content"])


@dataclass
class Answer:
    """A chat completion. `content` None is sent as null; `usage` None leaves it out; `seconds` is waited first."""

    content: str | None
    finish_reason: str = "stop"
    usage: tuple[int, int] | None = (10, 5)
    seconds: float = 0.0
    message: dict[str, Any] = field(default_factory=dict)


@dataclass
class Raw:
    """Any reply at all."""

    status: int = 200
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


Script = Callable[[Request], Any]


class LlmServer:
    """The server, under way in a thread from `__enter__` to `__exit__`; `script` may be changed at any time."""

    def __init__(
        self,
        script: Script = lambda request: "ok",
        embed: Callable[[str], list[float]] | None = None,
    ):
        self.script = script
        self.embed = embed or (lambda text: [float(len(text)), 1.0])
        self.log: list[Request] = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self._server = _Listener(("127.0.0.1", 0), _Handler)
        self._server.owner = self

    def __enter__(self) -> LlmServer:
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def take(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> Request:
        with self._lock:
            request = Request(path, body, headers, len(self.log))
            self.log.append(request)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        return request

    def leave(self) -> None:
        with self._lock:
            self._at_once -= 1


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    owner: LlmServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is gone is no error here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        owner = self.server.owner
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = owner.take(
            self.path, body, {name.lower(): text for name, text in self.headers.items()}
        )
        try:
            reply = (
                embeddings(owner, body)
                if self.path.endswith("/embeddings")
                else owner.script(request)
            )
            if reply is not DROP:
                raw = reply if isinstance(reply, Raw) else completion(request, reply)
                time.sleep(raw.seconds)
        finally:
            owner.leave()
        if reply is DROP:
            self.close_connection = True
            self.connection.close()
            return
        data = raw.body.encode("utf-8", "surrogatepass")
        head = {"Content-Type": "application/json", "Content-Length": str(len(data))} | raw.headers
        lines = [f"HTTP/1.1 {raw.status} X", *(f"{name}: {text}" for name, text in head.items())]
        self.wfile.write("\r\n".join([*lines, "", ""]).encode() + data)

    def log_message(self, *args: object) -> None:
        """Nothing on stderr."""


def embeddings(owner: LlmServer, body: dict[str, Any]) -> Raw:
    """One vector a text, as floats or, where the caller asks for it, as base64."""
    import array
    import base64

    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    vectors: list[Any] = [owner.embed(text) for text in texts]
    if body.get("encoding_format") == "base64":
        vectors = [
            base64.b64encode(array.array("f", vector).tobytes()).decode() for vector in vectors
        ]
    data = [
        {"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": 3 * len(texts), "total_tokens": 3 * len(texts)}
    return Raw(
        body=json.dumps({"object": "list", "model": body["model"], "data": data, "usage": usage})
    )


def completion(request: Request, reply: str | Answer) -> Raw:
    """A chat completion as an endpoint writes it."""
    answer = reply if isinstance(reply, Answer) else Answer(reply)
    message = {"role": "assistant", "content": answer.content} | answer.message
    body: dict[str, Any] = {
        "id": f"c{request.number}",
        "object": "chat.completion",
        "created": 0,
        "model": request.body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": answer.finish_reason}],
    }
    if answer.usage is not None:
        sent, made = answer.usage
        body["usage"] = {
            "prompt_tokens": sent,
            "completion_tokens": made,
            "total_tokens": sent + made,
        }
    return Raw(body=json.dumps(body), seconds=answer.seconds)
