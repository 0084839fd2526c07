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
        environment = os.environ | {
            SHOWN: "1",  # bars are drawn although nobody sees a terminal
            "PYTHONUNBUFFERED": "1",
            "PYTHONIOENCODING": "utf-8",
        }
        self._process = subprocess.Popen(
            # -P: a file of the folder that is named like a module of Python is not imported in its place.
            [sys.executable, "-P", "-m", "ragnb.cli.attended", *self.words],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a kernel that is killed takes its own session with it
        )
        self._reader = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()

    @property
    def is_stopping(self) -> bool:
        """Whether it was told to stop and still runs."""
        stdin = self._process.stdin
        return self.code is None and stdin is not None and stdin.closed

    def stop(self) -> None:
        """Stop it as Ctrl-C does: what is being asked is finished and saved."""
        # `ragnb.cli.attended` takes the end of its input for Ctrl-C.
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the end and return the exit code; None where it has not come within `timeout` seconds."""
        self._reader.join(timeout)
        return self.code

    def _follow(self) -> None:
        """Read what the command prints until it ends; the thread of this object."""
        output = self._process.stdout
        assert output is not None
        # A chunk may end in the middle of a character.
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        rest = ""  # of a line that is not complete yet
        # os.read returns what there is; a read of the file would wait until the chunk is full.
        while chunk := os.read(output.fileno(), 65536):
            # A bar is drawn over and over, from one carriage return to the next.
            *complete, rest = re.split(r"[\r\n]", rest + decoder.decode(chunk))
            self._take(complete)
        self._take([rest])
        output.close()
        self.code = self._process.wait()
        self.stop()  # closes the pipe of its input
        self._changed()

    def _take(self, texts: Sequence[str]) -> None:
        """Sort lines into bars and what was printed."""
        for text in texts:
            plain = _TERMINAL_CODE.sub("", text).rstrip()
            bar = _BAR.match(plain)
            if bar:
                self.stages[bar["stage"]] = Progress(int(bar["done"]), int(bar["total"]))
            elif plain:
                self.lines.append(plain)
        self._changed()
