"""A command of ragnb in a process of its own, followed while it runs."""

from __future__ import annotations

import codecs
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ragnb.progress import SHOWN

# A bar of tqdm: "judge:  33%|███▎      | 6/18 [00:01<00:02,  5.00cell/s]".
_BAR = re.compile(r"(?P<stage>[\w: ]+?): +\d+%\|.*?\| (?P<done>\d+)/(?P<total>\d+) \[")
_TERMINAL_CODE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Progress(NamedTuple):
    """How far a stage is, in cells."""

    done: int
    total: int


class Command:
    """A command that runs beside this process.

    Parameters
    ----------
    words : sequence of str
        What follows ``ragnb`` on a command line.
    folder : path
        Its working directory.
    changed : callable
        Called, from another thread, after each line, each step of a bar, and the end.

    Attributes
    ----------
    lines : list of str
        What it printed, without the bars.
    stages : dict of str to Progress
        The bars, in the order in which they began.
    code : int or None
        Its exit code; None while it runs.
    """

    def __init__(
        self, words: Sequence[str], *, folder: str | Path, changed: Callable[[], object]
    ) -> None:
        self.words = list(words)
        self.lines: list[str] = []
        self.stages: dict[str, Progress] = {}
        self.code: int | None = None
        self._changed = changed
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ragnb.cli.attended", *self.words],
            cwd=folder,
            env=os.environ | {SHOWN: "1", "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a kernel that is killed takes its own session with it
        )
        self._reader = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()

    def stop(self) -> None:
        """Stop it as Ctrl-C does: what is being asked is finished and saved."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the end and return the exit code; None where it has not come within `timeout` seconds."""
        self._reader.join(timeout)
        return self.code

    def _follow(self) -> None:
        output = self._process.stdout
        assert output is not None
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        rest = ""
        while chunk := os.read(output.fileno(), 65536):
            # A bar is drawn over and over, from one carriage return to the next.
            *complete, rest = re.split(r"[\r\n]", rest + decoder.decode(chunk))
            self._take(complete)
        self._take([rest])
        output.close()
        self.code = self._process.wait()
        self.stop()
        self._changed()

    def _take(self, texts: Sequence[str]) -> None:
        for text in texts:
            plain = _TERMINAL_CODE.sub("", text).rstrip()
            bar = _BAR.match(plain)
            if bar:
                self.stages[bar["stage"]] = Progress(int(bar["done"]), int(bar["total"]))
            elif plain:
                self.lines.append(plain)
        self._changed()
