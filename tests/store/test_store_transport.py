"""What leaves for a model and what comes back: nothing goes elsewhere, and nothing is read without an end."""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from judge_server import examiner
from llm_server import LlmServer, Raw
from pipeline_server import model

from ragnb.cli import main
from ragnb.errors import RagnbError
from ragnb.schema import Profile
from ragnb.store import Cell, Client, Outcome, Stop, Store, run_cells
from ragnb.store.transport import shown_url

KEY = "canary-key-5f1d0c7e9b"
HEADER = "canary-header-83ac41f2"
QUESTION = "Who signs the Canary contract?"
PASSAGE = "The Canary contract is signed by Ada."

pytestmark = pytest.mark.filterwarnings("ignore::ragnb.errors.RagnbWarning")


@contextmanager
def stranger():
    """A server that gives full marks, and counts every connection that is opened to it."""
    with LlmServer(lambda request: '{"accuracy": 10, "completeness": 10, "clarity": 10}') as server:
        server.connections = 0

        def count(request, address):
            server.connections += 1
            return True

        server._server.verify_request = count
        yield server


@pytest.fixture
def elsewhere():
    with stranger() as server:
        yield server


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    monkeypatch.setenv("THE_KEY", KEY)
    monkeypatch.setenv("THE_HEADER", HEADER)


def ask(server, n=1, base_url=None, **settings):
    """Ask once a cell; return the frame of the run, and the client."""
    named = {"api_key_env": "THE_KEY", "headers_env": {"api-key": "THE_HEADER"}}
    client_settings = {"retries": 0, "concurrency": 1}
    for name in [*settings]:
        if name in ("retries", "timeout", "reply_bytes", "concurrency"):
            client_settings[name] = settings.pop(name)
    profile = Profile(base_url=base_url or server.base_url, model="small", **named | settings)
    client = Client(profile, **client_settings)

    async def work(cell):
        reply = await client.chat([{"role": "user", "content": f"{QUESTION} {cell.sample_id}"}])
        return Outcome.of(reply)

    cells = [Cell(f"s{i}", "ask", {}) for i in range(n)]
    with Store(None) as store:
        try:
            run_cells(cells, work, store, clients=[client])
            error = None
        except Stop as stop:
            error = str(stop)
        frame = store.frame(store.runs()["run"][0])
    return frame, client, error


# Redirects


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 305, 307, 308])
def test_no_redirect_is_followed_and_the_target_is_named_without_what_it_may_hold(
    llm_server, elsewhere, status
):
    target = f"{elsewhere.base_url}/chat/completions?key={KEY}&q=Canary#{HEADER}"
    llm_server.script = lambda request: Raw(status, "", {"Location": target})
    frame, client, error = ask(llm_server, n=3)
    assert (elsewhere.connections, elsewhere.log) == (0, [])
    assert f"HTTP {status}: the endpoint redirects to {elsewhere.base_url}/chat" in error
    assert not any(word in error for word in (KEY, HEADER, "Canary"))
    assert list(frame["status"]) == ["pending"] * 3
    assert len(llm_server.log) == client.budget.calls == 1


@pytest.mark.parametrize(
    "location", ["", "/v1/chat/completions", "http://[half", "//evil.invalid/x"]
)
def test_a_loop_of_redirects_is_one_request_and_odd_targets_are_only_named(llm_server, location):
    llm_server.script = lambda request: Raw(307, "", {"Location": location} if location else {})
    _, client, error = ask(llm_server)
    assert len(llm_server.log) == client.budget.calls == 1
    assert "HTTP 307" in error


def test_a_redirect_after_good_replies_fails_its_cell_alone(llm_server, elsewhere):
    def script(request):
        moved = Raw(308, "", {"Location": f"{elsewhere.base_url}/chat/completions"})
        return moved if request.number == 1 else "fine"

    llm_server.script = script
    frame, client, error = ask(llm_server, n=3)
    assert error is None
    assert list(frame["status"]) == ["ok", "failed", "ok"]
    assert "redirects to" in frame["reason"][1]
    assert len(llm_server.log) == client.budget.calls == frame["calls"].sum() == 3
    assert elsewhere.connections == 0


@pytest.fixture
def project(tmp_path, monkeypatch, llm_server):
    """A scenario with every stage that asks a model, at one endpoint."""
    monkeypatch.chdir(tmp_path)
    case = {"question": QUESTION, "retrieved_contexts": [PASSAGE], "answer": "Ada signs it."}
    cases = [
        case | {"sample_id": f"{system}{n}", "system": system, "ground_truth_answer": "Ada."}
        for system in ("old", "new")
        for n in range(2)
    ]
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    (tmp_path / "cases.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(PASSAGE, encoding="utf-8")
    profile = (
        f"{{base_url: '{llm_server.base_url}', model: small, api_key_env: THE_KEY, "
        "headers_env: {api-key: THE_HEADER}}"
    )
    profiles = "".join(f"  {role}: {profile}\n" for role in ("judge", "answer", "dataset"))
    for name, more in (("asked", "cases: cases.jsonl"), ("made", "documents: docs")):
        (tmp_path / f"{name}.yaml").write_text(
            f"{more}\nname: {name}\nwhere: {{}}\nllm_profiles:\n{profiles}", encoding="utf-8"
        )
    return tmp_path


STAGES = {
    "judge": ["judge", "asked.yaml", "-p", "where={system: old}"],
    "arena": ["judge", "asked.yaml", "--arena"],
    "improve": ["judge", "asked.yaml", "-p", "where={system: old}", "--improve", "1"],
    "ragas": ["evaluate", "asked.yaml", "--metric", "faithfulness"],
    "embeddings": [
        *["evaluate", "asked.yaml", "--metric", "answer_relevancy", "--embeddings", "small"],
    ],
    "our own metric": ["evaluate", "asked.yaml", "--metric", "context_relevance"],
    "answer": ["answer", "asked.yaml"],
    "generate": ["generate", "made.yaml"],
}


@pytest.mark.parametrize("stage", STAGES)
def test_no_stage_follows_a_redirect_and_keeps_marks_of_a_stranger(
    project, llm_server, elsewhere, capsys, stage
):
    llm_server.script = lambda request: Raw(
        307, "", {"Location": f"{elsewhere.base_url}/chat/completions"}
    )
    assert main([*STAGES[stage], "--concurrency", "1"]) == 2
    said = capsys.readouterr()
    assert (elsewhere.connections, elsewhere.log) == (0, [])
    assert "HTTP 307: the endpoint redirects to" in said.err
    assert len(llm_server.log) == 1
    assert not list(project.rglob("reports/*/*.csv"))


@pytest.mark.parametrize("stage", STAGES)
def test_the_calls_that_a_stage_counts_are_the_requests_that_arrived(
    project, llm_server, capsys, stage
):
    llm_server.script = model
    main([*STAGES[stage], "--concurrency", "2"])
    stores = [*project.rglob("*.sqlite")]
    calls = 0
    for path in stores:
        with Store(path, new=False) as store:
            calls += sum(
                int(store.frame(run, attempts="all")["calls"].sum()) for run in store.runs()["run"]
            )
    assert calls == len(llm_server.log) > 0, capsys.readouterr()


# The environment

NAMED = {"authorization", "api-key"}
OF_HTTP = {
    *["host", "connection", "content-type", "content-length", "accept", "accept-encoding"],
    "user-agent",
}


@pytest.fixture
def strange_environment(elsewhere, monkeypatch):
    """An environment in which every variable that an SDK knows leads elsewhere, or adds a header."""
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Canary: custom-canary\nCookie: a=custom-canary")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-canary")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-canary")
    monkeypatch.setenv("OPENAI_BASE_URL", elsewhere.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "api-canary")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "admin-canary")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, elsewhere.base_url.removesuffix("/v1"))
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", "no-such-file.pem")


def check_sent(requests):
    """Check that requests have the headers that the profile names, and those of HTTP."""
    for request in requests:
        assert set(request.headers) == NAMED | OF_HTTP
        assert "canary" not in json.dumps(request.headers).replace(KEY, "").replace(HEADER, "")


@pytest.mark.usefixtures("strange_environment")
def test_only_what_the_profile_names_is_sent(llm_server, elsewhere):
    llm_server.script = lambda request: json.dumps(request.headers)
    frame, _, error = ask(llm_server, n=2)
    assert error is None
    assert elsewhere.connections == 0
    check_sent(llm_server.log)
    assert KEY not in frame.to_json()
    assert HEADER not in frame.to_json()


@pytest.mark.usefixtures("strange_environment")
@pytest.mark.parametrize("stage", STAGES)
def test_no_stage_sends_what_only_the_environment_names_or_anything_elsewhere(
    project, llm_server, elsewhere, stage
):
    llm_server.script = model
    main([*STAGES[stage], "--concurrency", "2"])
    assert llm_server.log
    assert elsewhere.connections == 0
    check_sent(llm_server.log)
    secrets = [
        KEY,
        HEADER,
        *(f"{name}-canary" for name in ("custom", "org", "project", "api", "admin")),
    ]
    for path in filter(os.path.isfile, project.rglob("*")):
        held = path.read_bytes()
        assert not [secret for secret in secrets if secret.encode() in held], path


def test_a_proxy_of_the_environment_is_used_where_the_profile_asks_for_it(
    llm_server, elsewhere, monkeypatch
):
    user = elsewhere.base_url.removesuffix("/v1").replace("//", "//me:proxy-canary-pass@")
    monkeypatch.setenv("HTTP_PROXY", user)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    elsewhere.script = lambda request: json.dumps(request.headers)
    frame, client, _ = ask(llm_server, proxy_env=True)
    assert (elsewhere.connections, len(llm_server.log), client.budget.calls) == (1, 0, 1)
    assert elsewhere.log[0].headers["proxy-authorization"].startswith("Basic ")
    sent = elsewhere.log[0].headers["proxy-authorization"].removeprefix("Basic ")
    assert sent not in frame["value"][0]
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    ask(llm_server, proxy_env=True)
    assert (elsewhere.connections, len(llm_server.log)) == (1, 1)


def test_headers_of_a_caller_are_refused_with_the_place_for_them(llm_server):
    client = Client(Profile(base_url=llm_server.base_url, model="small"))

    async def work(cell):
        message = [{"role": "user", "content": "hi"}]
        return Outcome.of(await client.chat(message, extra_headers={"X-Title": "mine"}))

    with Store(None) as store, pytest.raises(Stop, match=r"X-Title.*headers_env: \{x-org"):
        run_cells([Cell("a", "b", {})], work, store, clients=[client])
    assert not llm_server.log


# Large and endless replies


class Endless(BaseHTTPRequestHandler):
    """Sends spaces in chunks without an end, and counts them."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        head = (
            "HTTP/1.1 200 X\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        try:
            self.wfile.write(head.encode())
            while True:
                self.wfile.write(chunk)
                self.server.sent += 0x10000
                time.sleep(self.server.pause)
        except OSError:
            self.close_connection = True

    def log_message(self, *args):
        pass


@contextmanager
def endless(pause):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endless)
    server.daemon_threads = True
    server.sent, server.pause = 0, pause
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    server.base_url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def test_an_endless_reply_ends_by_the_cap():
    with endless(0) as server:
        frame, client, _ = ask(server, reply_bytes=1_000_000, timeout=30)
        assert frame["reason"][0].startswith("the reply is larger than 1 MB")
        assert client.budget.calls == frame["calls"][0] == 1
        time.sleep(0.3)
        # What lies in the buffers of the sockets was never read.
        assert server.sent < 12_000_000


def test_an_endless_reply_ends_by_the_timeout():
    with endless(0.05) as server:
        started = time.monotonic()
        frame, *_ = ask(server, timeout=1.0)
        assert frame["reason"][0].startswith("no reply within 1 s")
        assert time.monotonic() - started < 8


def test_the_cap_is_counted_to_the_byte(llm_server):
    reply = "x" * 3000
    frame, *_ = ask_for(llm_server, reply, reply_bytes=10_000)
    size = len(json.dumps(completion_of(llm_server, reply)))
    assert frame["status"][0] == "ok"
    assert ask_for(llm_server, reply, reply_bytes=size)[0]["status"][0] == "ok"
    frame, *_ = ask_for(llm_server, reply, reply_bytes=size - 1)
    assert "was not read to its end" in frame["reason"][0]


def ask_for(server, reply, **settings):
    server.log.clear()
    server.script = lambda request: reply
    return ask(server, **settings)


def completion_of(server, reply):
    from llm_server import completion

    return json.loads(completion(server.log[-1], reply).body)


def test_a_large_error_is_not_read_either_and_a_compressed_reply_is_refused(llm_server):
    frame, *_ = ask_for(llm_server, Raw(500, "x" * 50_000), reply_bytes=10_000)
    assert "larger than 0.01 MB" in frame["reason"][0]
    frame, *_ = ask_for(llm_server, Raw(200, "", {"Content-Encoding": "gzip"}))
    assert "the reply is compressed (gzip)" in frame["reason"][0]
    assert llm_server.log[-1].headers["accept-encoding"] == "identity"


def test_a_cap_of_nothing_is_refused(llm_server):
    with pytest.raises(RagnbError, match="reply_bytes=0; give 1 or more"):
        ask(llm_server, reply_bytes=0)


# What never left


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid"])
def test_a_request_that_never_left_is_no_call(host, monkeypatch):
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    frame, client, _ = ask(None, base_url=f"http://{host}:{free_port()}/v1", retries=1)
    assert frame["status"][0] == "failed"
    assert frame["reason"][0].startswith("no connection")
    assert (frame["calls"][0], client.budget.calls) == (0, 0)
    assert "PROXY" not in frame["reason"][0]
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    frame, *_ = ask(None, base_url=f"http://{host}:{free_port()}/v1")
    assert "HTTPS_PROXY is set and not used; proxy_env: true" in frame["reason"][0]


def test_a_request_that_left_and_got_no_answer_is_a_call(llm_server):
    from llm_server import DROP

    frame, client, _ = ask_for(llm_server, DROP, retries=2)
    assert frame["calls"][0] == client.budget.calls == len(llm_server.log) == 3


def test_an_address_in_a_message_holds_neither_user_nor_query():
    assert shown_url("https://u:p@h/x?a=1#b") == "https://h/x"
    assert shown_url("http://[half") == "an address that cannot be read"
    assert len(shown_url("https://h/" + "x" * 900)) == 200


def test_the_judge_of_the_simulated_server_is_no_stranger(project, llm_server):
    llm_server.script = examiner
    assert main(STAGES["judge"]) == 0


def test_requests_are_logged_with_address_and_status_and_nothing_of_what_they_say(
    llm_server, keys, caplog
):
    """Off by default: no handler writes, and the level of the logger is that of the root."""
    llm_server.script = lambda request: "fine"
    with caplog.at_level(logging.DEBUG, logger="ragnb"):
        ask(llm_server, n=2)
    said = [record.getMessage() for record in caplog.records if record.name == "ragnb"]
    assert len(said) == len(llm_server.log) == 2
    for line in said:
        assert line.startswith(f"POST {llm_server.base_url}/chat/completions: 200, ")
    caplog.clear()
    ask(llm_server, n=1)
    assert not [record for record in caplog.records if record.name == "ragnb"]
