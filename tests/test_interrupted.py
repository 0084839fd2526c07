"""Runs that a signal or a full disk ends: what was paid is kept, and the last line says how to go on."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from llm_server import Answer
from pipeline_server import model

from ragnb.cli import main
from ragnb.schema import Profile
from ragnb.scoring import answer_cases
from ragnb.store import Client, Stop, Store

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="signals are sent otherwise on Windows"),
    pytest.mark.filterwarnings("ignore::ragnb.errors.RagnbWarning"),
]

ROOT = Path(__file__).resolve().parents[1]
WORDS = ["red", "green", "blue", "white", "black", "brown", "pink", "grey"]
STAGES = {
    "judge": ["judge", "asked.yaml", "--no-probes"],
    "evaluate": ["evaluate", "asked.yaml", "--metric", "context_relevance"],
    "answer": ["answer", "asked.yaml"],
    "generate": ["generate", "made.yaml", "-p", "generation={questions: 8, unanswerable: 0}"],
}


def write_project(folder, server):
    folder.mkdir(exist_ok=True)
    cases = [
        {"sample_id": f"s{n}", "question": f"Is the {word} pump heavy?", "answer": "It is."}
        | {"retrieved_contexts": [f"The {word} pump is heavy."]}
        for n, word in enumerate(WORDS)
    ]
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    (folder / "cases.jsonl").write_text(lines, encoding="utf-8")
    (folder / "docs").mkdir(exist_ok=True)
    for word in WORDS:
        text = f"The {word} pump weighs {len(word)} kg. It runs for {len(word)} days."
        (folder / "docs" / f"{word}.md").write_text(text, encoding="utf-8")
    profile = f"{{base_url: '{server.base_url}', model: small}}"
    profiles = f"llm_profiles: {{judge: {profile}, answer: {profile}, dataset: {profile}}}\n"
    (folder / "asked.yaml").write_text(f"cases: cases.jsonl\n{profiles}", encoding="utf-8")
    (folder / "made.yaml").write_text(f"documents: docs\n{profiles}", encoding="utf-8")


def served(request):
    """Answer a question that comes without passages, too."""
    return model(request) if "<data-" in request.prompt else "It is heavy."


def slowly(request):
    return Answer(served(request), seconds=0.2)


def start(folder, words, terminal=None, **more):
    code = "import sys; from ragnb.cli import main; sys.exit(main())"
    return subprocess.Popen(
        [sys.executable, "-c", code, *words, "--concurrency", "2"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        text=True,
        preexec_fn=lambda: _as_from_a_shell(terminal),
        **more,
    )


def _as_from_a_shell(terminal):
    """Die of SIGHUP by default: where the suite runs under nohup, its children would ignore it."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if terminal is not None:
        import fcntl
        import termios

        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def wait_for(server, n, process):
    while len(server.log) < n and process.poll() is None:
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("stage", "sent"),
    [
        ("judge", signal.SIGTERM),
        ("judge", signal.SIGHUP),
        ("evaluate", signal.SIGHUP),
        ("answer", signal.SIGTERM),
        ("generate", signal.SIGHUP),
    ],
)
def test_a_signal_stops_as_ctrl_c_does_and_nothing_is_paid_twice(
    tmp_path, llm_server, monkeypatch, stage, sent
):
    write_project(tmp_path / "once", llm_server)
    write_project(tmp_path / "twice", llm_server)
    llm_server.script = served
    monkeypatch.chdir(tmp_path / "once")
    assert main(STAGES[stage]) == 0
    needed = len(llm_server.log)
    llm_server.log.clear()

    llm_server.script = slowly
    process = start(tmp_path / "twice", STAGES[stage], stderr=subprocess.PIPE)
    wait_for(llm_server, 3, process)
    process.send_signal(sent)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 128 + sent, said
    (last,) = re.findall(
        r"ragnb: stopped; (\d+) of (\d+) cells are saved in .*\.sqlite\. Run the same again to go on",
        said,
    )
    paid = len(llm_server.log)
    assert 3 <= paid < needed
    assert 0 < int(last[0]) < int(last[1])

    llm_server.script = served
    monkeypatch.chdir(tmp_path / "twice")
    assert main(STAGES[stage]) == 0
    assert len(llm_server.log) == needed


def test_a_terminal_that_goes_away_is_a_signal_too(tmp_path, llm_server, monkeypatch):
    import pty

    write_project(tmp_path, llm_server)
    llm_server.script = slowly
    ours, theirs = pty.openpty()
    process = start(
        tmp_path,
        STAGES["judge"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        terminal=theirs,
    )
    os.close(theirs)
    wait_for(llm_server, 3, process)
    os.close(ours)
    assert process.wait(timeout=120) == 128 + signal.SIGHUP
    paid = len(llm_server.log)
    monkeypatch.chdir(tmp_path)
    llm_server.script = served
    assert main(STAGES["judge"]) == 0
    assert len(llm_server.log) == len(WORDS) > paid


def test_a_signal_before_any_work_has_its_exit_code_and_an_ignored_one_is_left_ignored(tmp_path):
    code = """
import os, signal, sys
from unittest.mock import patch
import ragnb.cli
signal.signal(signal.SIGHUP, signal.SIG_IGN)
def killed(*args, **more):
    os.kill(os.getpid(), signal.SIGHUP)
    os.kill(os.getpid(), signal.SIGTERM)
ragnb.cli.cli.main = killed
sys.exit(ragnb.cli.main(["check"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (143, "ragnb: stopped\n")


# The time of an answer


def test_the_time_and_tokens_of_an_answer_stay_with_the_call_that_was_paid(tmp_path, llm_server):
    llm_server.script = lambda request: Answer(f"to {request.prompt}", seconds=0.4)
    client = Client(Profile(base_url=llm_server.base_url, model="small"))
    cases = [{"sample_id": "a", "question": "Who?"}, {"sample_id": "b", "question": "When?"}]
    dies = True

    async def generate(question, passages):
        reply = await client.chat([{"role": "user", "content": question}], temperature=0)
        if dies:
            raise Stop("the process ends after its call, before its answer")
        return reply

    def answered():
        how = {"generate": generate, "system": "mine", "client": client}
        return answer_cases(cases, store=tmp_path / "a.sqlite", **how)

    first = answered()
    assert first["latency_s"].isna().all()
    paid = len(llm_server.log)
    dies = False
    second, third = answered(), answered()
    assert len(llm_server.log) == paid == 2
    assert second["answer"].tolist() == ["to Who?", "to When?"]
    assert second["latency_s"].between(0.4, 30).all()
    assert second[["tokens_in", "tokens_out"]].to_numpy().tolist() == [[10, 5], [10, 5]]
    pd.testing.assert_frame_equal(second, third)
    with Store(tmp_path / "a.sqlite") as store:
        seconds = [row[0] for row in store._query("SELECT seconds FROM calls ORDER BY id")]
    assert all(0.4 <= one < 30 for one in seconds)


# A full disk

FULL = """
import resource, sys
from pathlib import Path
from ragnb.cli import main
# No file may grow beyond this: writing fails as on a full disk.
most = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
sys.exit(main(sys.argv[2:]))
"""


def on_full_disk(folder, most, words):
    return subprocess.run(
        [sys.executable, "-c", FULL, str(most), *words, "--concurrency", "1"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_full_disk_says_what_is_kept_and_how_to_go_on(tmp_path, llm_server, monkeypatch):
    write_project(tmp_path, llm_server)
    llm_server.script = served
    done = on_full_disk(tmp_path, 150_000, STAGES["judge"])
    assert done.returncode == 2, done.stderr
    (saved,) = re.findall(
        r"what was saved before is kept\. Make room on the disk, then run the same again to go on\. "
        r"(\d+) of 8 cells are saved",
        done.stderr,
    )
    assert len(done.stderr.splitlines()) == 1
    assert 0 < int(saved) < 8
    paid = len(llm_server.log)
    monkeypatch.chdir(tmp_path)
    assert main(STAGES["judge"]) == 0
    # Only the one call whose reply could not be saved is sent again.
    assert len(llm_server.log) <= len(WORDS) + 1
    assert paid <= int(saved) + 1


def test_a_table_that_does_not_fit_on_the_disk_is_named_and_what_was_paid_is_kept(
    tmp_path, llm_server, monkeypatch
):
    write_project(tmp_path, llm_server)
    llm_server.script = served
    monkeypatch.chdir(tmp_path)
    assert main([*STAGES["judge"], "--store", "kept.sqlite"]) == 0
    table = Path("reports/asked/judged.csv")
    before = table.read_bytes()
    # The store is whole and only read; no table is written any more.
    done = on_full_disk(tmp_path, 100, [*STAGES["judge"], "--store", "kept.sqlite"])
    assert done.returncode == 2
    assert "Make room" in done.stderr
    assert table.read_bytes() == before
    assert len(llm_server.log) == len(WORDS)
