"""The loop over paid cells: many at a time, each kept as it is done, and at any moment able to stop and go on."""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragnb.errors import RagnbWarning
from ragnb.store.bar import bar_of
from ragnb.store.cells import Cell
from ragnb.store.client import Client
from ragnb.store.job import Job, Work
from ragnb.store.store import Store


class Stopped(KeyboardInterrupt):
    """Ctrl-C came: what is done is in the store, and the message says how to go on."""


@dataclass(frozen=True)
class Run:
    """What a run came to.

    Parameters
    ----------
    id : str
        Of the run in the store.
    frame : DataFrame
        One row a cell, in the order of the cells; see `Store.frame`.
    stopped : str or None
        Why it ended early.
    """

    id: str
    frame: pd.DataFrame
    stopped: str | None = None

    @property
    def counts(self) -> dict[str, int]:
        """Cells by status, all four words, 0 among them."""
        found = Counter(self.frame["status"])
        return {word: found[word] for word in ("ok", "not_applicable", "failed", "pending")}


def run_cells(
    cells: Sequence[Cell],
    work: Work,
    store: Store,
    *,
    clients: Sequence[Client] = (),
    concurrency: int | None = None,
    name: str = "",
    about: Mapping[str, Any] | None = None,
    progress: bool | None = None,
) -> Run:
    """Do the cells that are not done yet, keep each outcome durably, and return the run as it stands.

    It runs in a thread of its own, so that it can be called from a script and from a notebook alike. The first
    Ctrl-C starts no further cell and waits for those under way; a second one gives them up.

    Parameters
    ----------
    cells : sequence of Cell
        In the order of the result. A cell whose key stands there twice is done once. One with `missing` fields
        becomes ``not_applicable`` without a call.
    work : coroutine function, Cell → Outcome
        What to do with one cell. What it raises becomes a ``failed`` cell with the exception as its reason and
        the replies that came; `Stop` leaves the cell pending and ends the run.
    store : Store
        Cells that are ``ok`` or ``not_applicable`` in it are not done again, ``failed`` ones are. Cells that
        another process has under way are waited for.
    clients : sequence of Client
        Those that `work` uses; they are opened for the run, and their budgets end it.
    concurrency : int, optional
        Cells under way at a time; by default the clients' largest, or 8.
    name, about
        Of the run, for `Store.runs`.
    progress : bool, optional
        A progress bar; by default in a terminal and in a notebook.

    Returns
    -------
    Run
        With a RagnbWarning where a budget ended it or cells failed.

    Raises
    ------
    Stop
        Where the endpoint refuses every call (key, model). What was done before is kept.
    Stopped
        After Ctrl-C; a KeyboardInterrupt.
    RagnbError
        Where the store cannot be written.

    Examples
    --------
    >>> from ragnb.store import Outcome
    >>> async def shout(cell):
    ...     return Outcome.of(cell.inputs["text"].upper())
    >>> with Store(None) as store:
    ...     run = run_cells([Cell("s1", "shout", {"text": "hi"}), Cell("s2", "shout", {}, missing=("text",))],
    ...                     shout, store)
    >>> run.frame[["sample_id", "status", "value", "reason"]]
      sample_id          status value   reason
    0        s1              ok    HI     None
    1        s2  not_applicable  None  no text
    """
    most = concurrency or max((client.concurrency for client in clients), default=8)
    job = Job(list(cells), work, store, tuple(clients), most, store.plan(cells, name=name, about=about))
    thread = threading.Thread(target=job.main, name="ragnb-work", daemon=True)
    interrupts = 0
    with bar_of(len(job.cells), job.open, progress) as advance:
        thread.start()
        while thread.is_alive():
            try:
                job.ended.wait(0.1)
                advance(job.done)
                _warn(job)
                if job.ended.is_set():
                    thread.join()
            except KeyboardInterrupt:
                interrupts += 1
                job.stop(at_once=interrupts > 1)
        advance(job.done)
    _warn(job)
    if job.error is not None:
        raise job.error
    run = Run(job.run, store.frame(job.run), str(job.stopping) if job.stopping else None)
    _say(run, store, interrupts)
    return run


def _warn(job: Job) -> None:
    """Pass on what the job has to say while it runs; where a warning is an error, the run stops."""
    while job.notices:
        try:
            warnings.warn(job.notices.popleft(), RagnbWarning, stacklevel=3)
        except RagnbWarning:
            job.stop(at_once=True)
            raise


def _say(run: Run, store: Store, interrupts: int) -> None:
    counts = run.counts
    where = f"{len(run.frame) - counts['pending']} of {len(run.frame)} cells are kept in {store.path or 'memory'}"
    if interrupts:
        raise Stopped(f"stopped; {where}. Run the same again to go on")
    if run.stopped:
        warnings.warn(f"{run.stopped}. {where}", RagnbWarning, stacklevel=3)
    if counts["failed"]:
        reasons = Counter(run.frame.loc[run.frame["status"] == "failed", "reason"]).most_common(3)
        listed = "; ".join(f"{n} × {reason}" for reason, n in reasons)
        warnings.warn(
            f"{counts['failed']} of {len(run.frame)} cells failed ({listed}). Their replies are in the store; "
            "run the same again to try them anew",
            RagnbWarning,
            stacklevel=3,
        )
