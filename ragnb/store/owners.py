"""Who holds a cell: a process that can be asked whether it still lives."""

from __future__ import annotations

import importlib
import json
import os
import socket
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@cache
def _place() -> str:
    """A name of the space in which process ids mean something: host, boot and container."""
    words = [socket.gethostname(), f"{uuid.getnode():x}"]
    with suppress(OSError):
        words += [Path("/proc/sys/kernel/random/boot_id").read_text().strip(), os.readlink("/proc/self/ns/pid")]
    return " ".join(words)


def new_owner() -> str:
    """Return a name for one holder in this process, by which others can tell whether the process lives."""
    pid = os.getpid()
    return json.dumps([_place(), pid, _born(pid), uuid.uuid4().hex, time.time()])


@dataclass(frozen=True)
class Holder:
    """A process that holds cells, as its name in the store describes it.

    Parameters
    ----------
    place : str
        Host, boot and container.
    process : int or None
        Its id; None where the name cannot be read.
    born, since : float or None
        Seconds since 1970: when the process started, and when it opened the store.

    Examples
    --------
    >>> Holder.of(new_owner()).is_gone
    False
    >>> print(Holder.of('["build-7 ab12", 4711, 1.0, "f00"]'))
    process 4711 on build-7
    """

    place: str
    process: int | None = None
    born: float | None = None
    since: float | None = None

    @classmethod
    def of(cls, owner: str) -> Holder:
        """Read the name of a holder; stores of earlier versions do not say since when."""
        try:
            place, process, born, _, *since = json.loads(owner)
            return cls(str(place), int(process), born, float(since[0]) if since else None)
        except (TypeError, ValueError):
            return cls(owner)

    @property
    def host(self) -> str:
        """The name of its machine or container; ``?`` where the name of the holder cannot be read."""
        return self.place.partition(" ")[0] if self.process is not None else "?"

    @property
    def is_gone(self) -> bool:
        """Whether its process is known to have ended; False for one on another machine or container."""
        # Elsewhere, its process id means something else.
        return self.place == _place() and self.process is not None and _born(self.process) != self.born

    def __str__(self) -> str:
        return f"process {self.process or '?'} on {self.host}"


def _born(pid: int) -> float | None:
    """When a process started; None for one that has ended (a zombie has)."""
    psutil = importlib.import_module("psutil")
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else float(process.create_time())
    except (psutil.Error, ValueError, OverflowError):
        return None
