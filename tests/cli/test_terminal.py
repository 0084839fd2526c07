"""What a terminal sees: a named progress bar and no colours; a pipe sees neither."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CASE = {
    "sample_id": "a",
    "question": "Long?",
    "answer": "730 days.",
    "retrieved_contexts": ["It is 730 days."],
}
WORDS = [sys.executable, "-m", "ragnb", "evaluate", "cases.jsonl", "--metric", "number_support"]


@pytest.fixture
def cases(tmp_path) -> Path:
    (tmp_path / "cases.jsonl").write_text(json.dumps(CASE), encoding="utf-8")
    return tmp_path


def on_terminal(folder: Path) -> str:
    """Run the command in a terminal of 100 columns that knows colours, and return what appears."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    env = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
    process = subprocess.Popen(
        WORDS, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=env
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # the end of a terminal is an error on Linux
        while part := os.read(ours, 65536):
            shown += part
    os.close(ours)
    assert process.wait() == 0, shown
    return shown.decode()


def test_a_terminal_sees_one_named_bar_and_no_colours(cases):
    shown = on_terminal(cases)
    bars = {
        line.partition(":")[0] for line in shown.replace("\n", "\r").split("\r") if "%|" in line
    }
    assert bars == {"evaluate"}
    assert "\x1b" not in shown


def test_a_pipe_sees_neither(cases):
    env = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
    done = subprocess.run(WORDS, capture_output=True, cwd=cases, env=env, check=False)
    assert done.returncode == 0
    assert [mark for mark in (b"\x1b", b"\r", b"%|") if mark in done.stdout + done.stderr] == []
