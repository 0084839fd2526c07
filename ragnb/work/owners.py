"""Who holds a cell: a process that can be asked whether it still lives."""

from __future__ import annotations

import importlib
import json
import os
import socket
import uuid
from contextlib import suppress
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
    return json.dumps([_place(), pid, _born(pid), uuid.uuid4().hex])


def is_gone(owner: str) -> bool:
    """Whether the holder's process is known to have ended; False for one on another machine or container.

    Examples
    --------
    >>> is_gone(new_owner())
    False
    """
    place, pid, born, _ = json.loads(owner)
    return bool(place == _place() and _born(pid) != born)


def _born(pid: int) -> float | None:
    """When a process started; None for one that has ended (a zombie has)."""
    psutil = importlib.import_module("psutil")
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else float(process.create_time())
    except psutil.Error:
        return None
