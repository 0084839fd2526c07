"""The comment of a pull request: what it says, what it lets nobody do, and that there is one of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas as pd
import pytest
from composite import Composite
from small_tables import scratch_repository

import ragnb as rn
from ragnb.cli import main
from ragnb.comparison.comment import MARK, MOST, comment, harmless
from ragnb.comparison.view import View, compare_view

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".ci" / "comment.py"


def runs(folder: Path, answer: str = "It is {n}.", sample: str = "q{n}", n: int = 40) -> None:
    """Write a run and its baseline: all questions of the second half became worse, every fourth was fixed."""
    for name in ("base", "new"):
        rows = [
            {
                "sample_id": sample.format(n=k),
                "question": f"What is {k}?",
                "answer": f"{name}: {answer.format(n=k)}",
                "doc_name": f"{k % 9}.pdf",
                "faithfulness": {"base": 0.9, "new": 0.2 if k >= n // 2 else 0.95}[name],
            }
            for k in range(n)
        ]
        pd.DataFrame(rows).to_csv(folder / f"{name}.csv", index=False)


def text_of(folder: Path, lang: str = "en") -> str:
    words = ["compare", "new.csv", "base.csv", "--github", "comment.md", "--lang", lang]
    assert main(words) == 0
    return (folder / "comment.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_it_has_the_verdict_the_table_and_ten_questions(folder, lang):
    runs(folder)
    text = text_of(folder, lang)
    view, table, _ = compare_view("new.csv", "base.csv", settings={"lang": lang})
    assert text.startswith(f"{MARK}\n## ")
    assert all(head in text.replace("\u200b", "") for head in view.head)
    assert all(metric in text for metric in table["metric"])
    assert text.count("<details>") == text.count("</details>") == 10
    changed = rn.changed_questions("new.csv", baseline="base.csv", n=50)
    worse = changed[changed["change"].isin(["worse", "broken"])]
    assert len(worse) == 20
    for row in worse.head(10).to_dict("records"):
        assert f"```text\n{row['candidate_answer']}\n```" in text
        assert f"```text\n{row['baseline_answer']}\n```" in text
    assert ("and 10 more" if lang == "en" else "另有 10 个") in text


HOSTILE = [
    "<img src=x onerror=alert(1)> @octocat #12 https://evil.example/a?b www.evil.example",
    "```\n</details>\n<script>alert(1)</script>\n``````\n@team",
    "</details><h1>fine</h1>",
    "~~~\n@octocat\n~~~",
]


def outside_of_fences(text: str) -> str:
    """What GitHub renders: the text without its fenced blocks, read line by line as CommonMark does."""
    kept, fence = [], ""
    for line in text.split("\n"):
        opening = re.match(r" {0,3}(`{3,})[^`]*$", line)
        if not fence and opening:
            fence = opening[1]
        elif fence and re.fullmatch(rf" {{0,3}}`{{{len(fence)},}}[ \t]*", line):
            fence = ""
        elif not fence:
            kept.append(line)
    assert not fence
    return "\n".join(kept)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_nothing_of_an_answer_or_a_name_is_rendered_notifies_or_links(folder, hostile):
    runs(folder, answer=hostile.replace("{", ""), sample="{n} " + hostile.replace("\n", " "))
    shown = outside_of_fences(text_of(folder))
    tags = set(re.findall(r"</?\w+", shown))
    assert tags <= {"<details", "<summary", "</summary", "</details"}
    assert shown.count("<details>") == shown.count("</details>") == 10
    assert not re.search(r"@\w|#\d|\w://|www\.", shown)


def test_it_is_shorter_than_github_takes_and_counts_what_is_left_out(folder):
    runs(folder, answer="很长" * 5_000)
    text = text_of(folder)
    assert len(text) <= MOST < 65_536
    shown = text.count("<details>")
    assert f"and {20 - shown} more" in text
    long = View("en", "long", {}, [], ["a note, " * 20_000])
    cut = comment(long, pd.DataFrame({"change": []}))
    assert len(cut) <= MOST
    assert cut.endswith("…\n")


def test_ordinary_text_is_left_as_it_is():
    assert harmless("a @ b, 3 # 4, C#, me@") == "a @ b, 3 # 4, C#, me@"


# The action's script, against a stand-in of the API


class Api(BaseHTTPRequestHandler):
    comments: list[dict]
    status = 0
    seen: list[tuple[str, str, str]]

    def _send(self, body, status=200) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _answer(self) -> None:
        owner = self.server.owner
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        owner["seen"].append((self.command, self.path, self.headers["Authorization"]))
        if owner["status"]:
            return self._send({}, owner["status"])
        if self.command == "GET":
            page = int(re.search(r"&page=(\d+)", self.path)[1])
            return self._send(owner["comments"][100 * (page - 1) : 100 * page])
        if self.command == "POST":
            row = {"id": 1000 + len(owner["comments"]), "user": {"type": "Bot"}} | body
            owner["comments"].append(row)
            return self._send(row, 201)
        number = int(self.path.rsplit("/", 1)[1])
        row = next(row for row in owner["comments"] if row["id"] == number)
        if row.get("foreign"):
            return self._send({}, 403)
        row["body"] = body["body"]
        return self._send(row)

    do_GET = do_POST = do_PATCH = _answer

    def log_message(self, *words) -> None:
        pass


@pytest.fixture
def api(tmp_path):
    """A stand-in of GitHub's API for comments, on 127.0.0.1."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    server.owner = {"comments": [], "status": 0, "seen": []}
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}), encoding="utf-8")

    def run(text: str = f"{MARK}\nhello", **env: str) -> str:
        body = tmp_path / "body.md"
        body.write_text(text, encoding="utf-8")
        given = {
            **run.env,
            "GITHUB_TOKEN": "secret-token",
        }
        words = [sys.executable, str(SCRIPT), str(body)]
        done = subprocess.run(
            words, env=os.environ | given | env, capture_output=True, text=True, check=True
        )
        assert "secret-token" not in done.stdout + done.stderr
        return done.stdout

    run.owner = server.owner
    run.env = {
        "GITHUB_API_URL": f"http://127.0.0.1:{server.server_port}",
        "GITHUB_REPOSITORY": "a/b",
        "GITHUB_EVENT_PATH": str(event),
    }
    yield run
    server.shutdown()
    server.server_close()
    thread.join()


def test_there_is_one_comment_that_is_updated(api):
    chatter = [{"id": k, "user": {"type": "User"}, "body": "hm"} for k in range(150)]
    quoting = {"id": 500, "user": {"type": "User"}, "body": f"{MARK}\nquoted by a person"}
    api.owner["comments"] += [*chatter, quoting]
    assert "is written" in api()
    assert "is updated" in api(f"{MARK}\nsecond")
    own = [row for row in api.owner["comments"] if row["body"].startswith(MARK)]
    assert [row["body"] for row in own] == [quoting["body"], f"{MARK}\nsecond"]
    assert {method for method, *_ in api.owner["seen"]} == {"GET", "POST", "PATCH"}
    assert all(path.startswith("/repos/a/b/issues/") for _, path, _ in api.owner["seen"])


def test_a_comment_of_another_bot_is_left_alone(api):
    foreign = {"id": 3, "user": {"type": "Bot"}, "body": f"{MARK}\ntheirs", "foreign": True}
    api.owner["comments"].append(foreign)
    assert "is written" in api()
    assert foreign["body"] == f"{MARK}\ntheirs"


@pytest.mark.parametrize("status", [401, 403, 404, 500, 302])
def test_what_cannot_be_written_is_a_warning_and_no_failure(api, status):
    api.owner["status"] = status
    said = api()
    assert said.startswith("::warning::")
    assert str(status) in said
    assert ("pull-requests: write" in said) == (status in (401, 403))


def test_a_job_of_no_pull_request_and_a_server_that_is_gone_are_said(api, tmp_path):
    push = tmp_path / "push.json"
    push.write_text("{}", encoding="utf-8")
    assert "no pull request" in api(GITHUB_EVENT_PATH=str(push))
    assert not api.owner["seen"]
    assert api(GITHUB_API_URL="http://127.0.0.1:9").startswith("::warning::")


def test_the_action_writes_the_comment_only_where_it_is_asked_to(api, tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    repository = scratch_repository(theirs)
    for name, asked in (("off", "false"), ("on", "true")):
        temp = tmp_path / name
        (temp / "out").mkdir(parents=True)
        install = {"ragnb": str(Path(sys.executable).with_name("ragnb")), "folder": f"{temp}/out"}
        done = Composite(
            ROOT,
            workspace=repository,
            temp=temp,
            inputs={
                "scenario": "passing.yaml",
                "baseline": "undecided.csv",
                "report": "false",
                "comment": asked,
                "token": "secret-token",
            },
            given={"install": install},
            env={"PYTHONPATH": str(ROOT)} | api.env,
        ).run()
        assert done.steps["Comment"].outcome == ("success" if asked == "true" else "skipped")
    (row,) = api.owner["comments"]
    assert row["body"].startswith(MARK)
    assert "undecided" in row["body"]
