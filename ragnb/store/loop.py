"""The loop over cells: concurrent, each saved as it finishes, can be interrupted and resumed at any time."""

from __future__ import annotations

import asyncio
import math
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import (
    AsyncExitStack,
    suppress,
)
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any
from weakref import WeakValueDictionary

import pandas as pd

from ragnb.errors import RagnbError, RagnbWarning, listing
from ragnb.progress import is_hidden
from ragnb.signals import Interrupted, interruptible, number_of
from ragnb.store.budget import METER, Meter, Send
from ragnb.store.calls import Call, CallFailed, Cell, Outcome, Stop
from ragnb.store.client import Client
from ragnb.store.file import DiskFull
from ragnb.store.store import Store, StoreLike, date_of, opened

Work = Callable[[Cell], Awaitable[Outcome]]
_LOOK = 0.25  # seconds between checks of cells claimed by another process
_QUIET = 2.0  # seconds of waiting before a note is printed


class Stopped(Interrupted):
    """Ctrl-C, or a signal that ends a process: finished cells are in the store, the message says how to resume."""


@dataclass(frozen=True)
class Estimate:
    """A dry run: number of cells, how many are pending, and the calls and tokens they are expected to need.

    Parameters
    ----------
    cells : int
        Distinct cells.
    done : int
        Those that the store has already.
    not_applicable : int
        Further ones that lack a field, and need no call.
    calls, tokens : int
        Expected of the rest, without retries; tokens of prompts and replies, right to about a third. Calls of
        a cell that the store has already are among them, though they will not be sent.
    """

    cells: int
    done: int
    not_applicable: int
    calls: int
    tokens: int


def estimate(cells: Iterable[Cell], store: StoreLike = None) -> Estimate:
    """Estimate what a run of these cells would need; nothing is sent or written.

    Examples
    --------
    >>> estimate([Cell("s1", "rubric", {}, calls=2, tokens=900), Cell("s2", "rubric", {}, missing=("answer",))])
    Estimate(cells=2, done=0, not_applicable=1, calls=2, tokens=900)
    """
    distinct = {cell.key: cell for cell in cells}
    with opened(store, new=False) as kept:
        pending = kept.pending(distinct.values())
    to_pay = [cell for cell in pending.values() if not cell.missing]
    return Estimate(
        cells=len(distinct),
        done=len(distinct) - len(pending),
        not_applicable=len(pending) - len(to_pay),
        calls=sum(cell.calls for cell in to_pay),
        tokens=sum(cell.tokens for cell in to_pay),
    )


@dataclass(frozen=True)
class Run:
    """The result of a run.

    Parameters
    ----------
    id : str
        Of the run in the store.
    frame : DataFrame
        One row per cell, in the order of the cells; see `Store.frame`.
    stopped : str or None
        Why it ended early.
    account : dict
        ``asked`` cells = ``done`` by this run + ``reused`` + ``not_applicable`` + ``failed`` + ``pending``, and
        the requests that it ``sent``, retries among them.
    """

    id: str
    frame: pd.DataFrame
    stopped: str | None = None
    account: Mapping[str, int] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """Cells by status, all four words, 0 among them."""
        counts = Counter(self.frame["status"])
        return {word: counts[word] for word in ("ok", "not_applicable", "failed", "pending")}


def run_cells(
    cells: Sequence[Cell],
    work: Work,
    store: Store,
    *,
    clients: Sequence[Client] = (),
    name: str = "",
    concurrency: int | None = None,
    about: Mapping[str, Any] | None = None,
    progress: bool | None = None,
    rounds: Iterable[Iterable[Cell]] | None = None,
    label: str = "",
) -> Run:
    """Run the pending cells, save each outcome durably, and return the run.

    It runs in a thread of its own, so that it can be called from a script and from a notebook alike. The first
    Ctrl-C (or SIGTERM or SIGHUP) starts no further cell and waits for those under way; a second one gives them up.

    Parameters
    ----------
    cells : sequence of Cell
        In the order of the result. A cell whose key appears twice is done once. One with `missing` fields
        becomes ``not_applicable`` without a call.
    work : coroutine function, Cell → Outcome
        What to do with one cell. What it raises becomes a ``failed`` cell with the exception as its reason and
        the replies that came; `Stop` leaves the cell pending and ends the run.
    store : Store
        Cells that are ``ok`` or ``not_applicable`` in it are not done again, ``failed`` ones are. Calls that were
        answered are not sent again, but for the last one of a cell that failed by its reply. Cells that another
        process has under way are waited for.
    clients : sequence of Client
        Those that `work` uses; they are opened for the run, and their budgets end it.
    concurrency : int, optional
        Cells under way at a time; by default the clients' largest, or 8.
    name, about
        Of the run, for `Store.runs`.
    progress : bool, optional
        A progress bar; by default in a terminal and in a notebook.
    rounds : iterable of cells, optional
        The cells in the order of the work, a round at a time; by default all, as they come. A round is asked for
        when the one before has its outcomes in the store; cells of a round that never comes stay pending.
    label : str
        Of the progress bar, such as the stage of a scenario; by default the name.

    Returns
    -------
    Run
        With a RagnbWarning where a budget ended it or cells failed.

    Raises
    ------
    Stop
        Where the endpoint refuses every call (key, model). What was done before is kept.
    Stopped
        After Ctrl-C, SIGTERM or SIGHUP; a KeyboardInterrupt.
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
    most = _most_at_once(cells, clients, concurrency)
    plan = store.plan(cells, name=name, about=about)
    job = _Job(cells, work, store, clients, most, rounds)
    sent_before = sum(client.sent for client in clients)
    signals: list[int] = []
    bar = _bar(job.total, label or name, progress)
    with interruptible(), bar, ThreadPoolExecutor(1, "ragnb-run") as pool:
        ending = pool.submit(asyncio.run, job.all())
        # Python raises KeyboardInterrupt in the main thread alone, so that one only waits, in short naps.
        while not ending.done():
            try:
                wait([ending], timeout=0.1)
                bar.update(job.done - bar.n)
            except KeyboardInterrupt as stop:
                signals.append(number_of(stop))
                job.stop(at_once=len(signals) > 1)
        bar.update(job.done - bar.n)
    try:
        ending.result()
    except DiskFull as error:
        raise RagnbError(f"{error}. {_saved(store, plan)}") from error
    stopped = None
    if job.stopping:
        # Cells in progress finish when a run stops, so the usage is known only here.
        used = "; ".join(str(client.budget) for client in clients)
        stopped = f"{job.stopping} (used: {used or 0})"
    run = Run(plan, store.frame(plan), stopped)
    sent = sum(client.sent for client in clients) - sent_before
    run = replace(run, account=_account(run.counts, job.answered, sent))
    counts = run.counts
    n = len(run.frame)
    where = f"{n - counts['pending']} of {n} cells are saved in {store.path or 'memory'}"
    if signals:
        raise Stopped(f"stopped; {where}. Run the same again to go on", signals[0])
    if run.stopped:
        warnings.warn(f"{run.stopped}. {where}", RagnbWarning, stacklevel=2)
    if counts["failed"]:
        reasons = Counter(run.frame.loc[run.frame["status"] == "failed", "reason"]).most_common(3)
        listed = "; ".join(f"{count} × {reason}" for reason, count in reasons)
        warnings.warn(
            f"{counts['failed']} of {n} cells failed ({listed}). What was received is in the store; "
            "run the same command again to retry them",
            RagnbWarning,
            stacklevel=2,
        )
    return run


def _most_at_once(cells: Sequence[Cell], clients: Sequence[Client], concurrency: int | None) -> int:
    """Return how many cells may be under way at a time."""
    most = concurrency or max((client.concurrency for client in clients), default=8)
    # A cell that needs no call, such as one that is computed, takes no room.
    calls_of_a_cell = max([1, *(cell.calls for cell in cells)])
    # No more cells at a time than a budget of calls has room for, so that it is spent on whole ones.
    for client in clients:
        if client.budget.max_calls:
            calls_left = client.budget.max_calls - client.budget.calls
            most = min(most, calls_left // calls_of_a_cell)
    return max(1, most)  # also where no whole cell fits in: the budget then says so


def _bar(total: int, label: str, progress: bool | None) -> Any:
    """Return the progress bar of a run, which may be a hidden one."""
    from tqdm.auto import tqdm
    from tqdm.notebook import tqdm_notebook

    # `is_hidden` leaves it to standard error, which in a notebook is no terminal.
    if progress is None and issubclass(tqdm, tqdm_notebook):
        progress = True
    return tqdm(
        total=total,
        desc=label or None,
        disable=is_hidden(progress),
        unit="cell",
        dynamic_ncols=True,
    )


def _account(counts: Mapping[str, int], answered: int, sent: int) -> dict[str, int]:
    """Return the account of a run; rows of equal input share a cell, which is done once and then reused."""
    return {
        "asked": sum(counts.values()),
        "done": answered,
        "reused": counts["ok"] - answered,
        **{status: counts[status] for status in ("not_applicable", "failed", "pending")},
        "sent": sent,
    }


def total_account(accounts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add up the accounts of runs.

    Examples
    --------
    >>> total_account([{"asked": 6, "sent": 7}, {"asked": 2, "sent": 0}])
    {'asked': 8, 'sent': 7}
    """
    total = Counter[str]()
    for account in accounts:
        total.update(account)  # `+` would leave out what is 0
    return dict(total)


def _saved(store: Store, run: str) -> str:
    """Say how much of a run is saved where its end could not be."""
    statuses = store.frame(run)["status"]
    saved = int((statuses != "pending").sum())
    return (
        f"{saved} of {len(statuses)} cells are saved; replies that came after them are not, and their calls "
        "are sent again"
    )


class _Job:
    """A run in progress: workers take cells, and continue once their outcome is on disk.

    All but `stop` and `_deal` runs in one event loop, so no other worker interrupts what is between two awaits.
    The workers call the store in threads, one call at a time.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        work: Work,
        store: Store,
        clients: Sequence[Client],
        most: int,
        rounds: Iterable[Iterable[Cell]] | None,
    ) -> None:
        self.work = work
        self.store = store
        self.clients = clients
        self.most = most
        self.mark = store.mark()
        self.rounds = iter([cells] if rounds is None else rounds)
        self.left = store.pending(cells)  # by key, those whose round has not come
        self.open = deque[Cell]()  # of this round, not claimed yet
        self.total = len(self.left)
        self.done = 0
        self.answered = 0  # of those done, the ones that are ok
        self.stopping: Stop | None = None
        self._taken: deque[Cell] = deque()  # claimed by this run, and not begun
        # What the next commit writes, each with the numbers of the calls that it refuses.
        self._batch: list[tuple[Call | tuple[Cell, Outcome], Iterable[int]]] = []
        # By the key of a call. A lock that nobody holds or waits for is forgotten.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._workers: list[asyncio.Task[None]] = []
        self._given_up = False

    def stop(self, *, at_once: bool) -> None:
        """Start no further cell; `at_once` gives up those under way too."""
        self.stopping = self.stopping or Stop("interrupted by the user")
        self._given_up = at_once
        if at_once:
            for worker in self._workers:
                with suppress(RuntimeError):  # the loop has ended meanwhile
                    worker.get_loop().call_soon_threadsafe(worker.cancel)

    async def all(self) -> None:
        """Run to the end."""
        self._dealing = asyncio.Lock()
        self._disk = asyncio.Lock()
        async with AsyncExitStack() as stack:
            for client in self.clients:
                await stack.enter_async_context(client.open())
            renewer = asyncio.create_task(self._renew())
            results = list[BaseException | None]()
            while not any(results) and self.stopping is None:
                # In a thread: whoever gives the rounds may read the store and compute for long (see `judge`), and
                # claims have to be renewed meanwhile.
                has_further_round = await asyncio.to_thread(self._deal)
                if not has_further_round:
                    break
                workers = range(min(self.most, len(self.open)))
                self._workers = [asyncio.create_task(self._worker()) for _ in workers]
                results = await asyncio.gather(*self._workers, return_exceptions=True)
            renewer.cancel()
            # After what was paid for is kept, in this order.
            await self._on_disk(self.store.release)
        # Workers that were given up have ended with a CancelledError, which is no Exception.
        for error in results:
            if isinstance(error, Exception):
                raise error
        if self.stopping is not None and self.stopping.refused:
            raise self.stopping

    def _deal(self) -> bool:
        """Schedule the pending cells of the next round; False if there are none."""
        cells = next(self.rounds, None)
        keys = dict.fromkeys(cell.key for cell in cells or ())  # each once, in their order
        self.open.extend(self.left.pop(key) for key in keys if key in self.left)
        return cells is not None

    async def _on_disk(self, call: Callable[..., Any], *args: Any) -> Any:
        """Call the store in a thread, after all calls before."""
        async with self._disk:
            return await asyncio.to_thread(call, *args)

    # Cells

    async def _worker(self) -> None:
        while (cell := await self._next()) is not None:
            started = time.perf_counter()
            meter = Meter(cell, self._once)
            outcome = await self._outcome(cell, meter)
            if outcome is None:
                return
            contents = [outcome.value, outcome.reason, outcome.replies or meter.replies]
            value, reason, replies = self._redacted(contents)
            tokens_in, tokens_out = meter.tokens
            seconds = time.perf_counter() - started
            outcome = Outcome(
                outcome.status,
                value,
                reason,
                tuple(replies),
                meter.calls,
                tokens_in,
                tokens_out,
                seconds,
            )
            # The replies that made the cell fail must not answer the same requests of the next run.
            refused = meter.latest.values() if outcome.status == "failed" else ()
            await self._keep((cell, outcome), refused)
            self.done += 1
            self.answered += outcome.status == "ok"

    async def _outcome(self, cell: Cell, meter: Meter) -> Outcome | None:
        """Do one cell; None where the run stops and the cell stays pending."""
        if cell.missing:
            return Outcome.lacking(cell.missing)
        METER.set(meter)
        try:
            outcome = await self.work(cell)
            if not isinstance(outcome, Outcome):
                raise TypeError(f"the work returned a {type(outcome).__name__}, not an Outcome")
            return outcome
        # Work may raise a CancelledError of its own, from a library: then it fails as by any other error.
        except (Exception, asyncio.CancelledError) as error:
            if self._given_up:
                raise
            # Code between the client and here, such as a library, may have raised another error in its place.
            stops = [client.stopped for client in self.clients]
            if isinstance(error, Stop):
                stops.insert(0, error)
            stop = next(filter(None, stops), None)
            if stop is not None:
                self.stopping = self.stopping or stop
                return None
            if isinstance(error, CallFailed):
                return Outcome.failed(str(error), *filter(None, [error.reply]))
            where = traceback.extract_tb(error.__traceback__)[-1]
            return Outcome.failed(
                f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
            )

    async def _next(self) -> Cell | None:
        """Return the next cell, claimed; at the end, wait for those claimed by another process."""
        async with self._dealing:
            notice_at = time.monotonic() + _QUIET
            while self.stopping is None and (self._taken or self.open):
                if self._taken:
                    return self._taken.popleft()
                is_waiting = await self._claim_some()
                if is_waiting and time.monotonic() >= notice_at:
                    notice_at = math.inf  # once is enough
                    await self._warn_of_wait()
                await asyncio.sleep(_LOOK if is_waiting else 0)
        return None

    async def _claim_some(self) -> bool:
        """Claim a few of the open cells; return whether all that need work are claimed by another process."""
        # Two for each worker; what nobody has claimed yet is open to other processes on the same store.
        batch = [self.open.popleft() for _ in range(min(2 * self.most, len(self.open)))]
        keys = [cell.key for cell in batch]
        claimed, held = await self._on_disk(self.store.claim, keys, self.mark)
        self._taken.extend(cell for cell in batch if cell.key in claimed)
        # At the end of the queue. Those in neither set have been done, or have failed, in another process.
        self.open.extend(cell for cell in batch if cell.key in held)
        while self.store.taken_over:
            warnings.warn(self.store.taken_over.pop(0), RagnbWarning, stacklevel=3)
        return bool(held and not claimed)

    async def _warn_of_wait(self) -> None:
        """Say which processes have claimed the cells that this run waits for."""
        holders = await self._on_disk(self.store.holders)
        names = (f"{holder} (until {date_of(until)})" for holder, _, until in holders)
        waiting = (
            f"waiting for {len(self.open)} cells claimed by another process: {listing(names)}. If it "
            f"shows no activity for {self.store.lease:g} s, this run takes them over"
        )
        warnings.warn(waiting, RagnbWarning, stacklevel=3)

    # Storage

    async def _once(self, meter: Meter, key: str, send: Send) -> Any:
        """Return the reply to a request, from store or endpoint; it is on disk before its cell continues."""
        task = asyncio.current_task()
        meter.latest.pop(task, None)  # if no reply comes, the one before is not at fault
        # Whoever makes the same request at the same time waits here, and finds the reply in the store.
        async with self._locks.setdefault(key, asyncio.Lock()):
            known = await self._on_disk(self.store.get, key)
            if known is not None:
                number, call = known
                meter.recalled.append(call)
            else:
                call = await send()
                number = await self._keep(call)
        meter.latest[task] = number
        if not isinstance(call.reply, str):  # the vectors of an embedding
            return call.reply
        meter.replies.append(number)
        # A reply repeats the tag of its request. One from the store has the tag that was sent then; whoever
        # reads it now looks for that of this cell.
        if call.tag and meter.tag:
            return call.reply.replace(call.tag, meter.tag)
        return call.reply

    def _redacted(self, value: Any) -> Any:
        """Remove keys that an endpoint or a library may have echoed."""
        for client in self.clients:
            value = client.redact(value)
        return value

    async def _keep(self, what: Call | tuple[Cell, Outcome], refused: Iterable[int] = ()) -> int:
        """Wait until something is on the disk, and return its number; only then it counts as done.

        All that comes while the disk is busy is kept by one commit.
        """
        if not self._batch:
            self._writing = asyncio.create_task(self._write())
        place = len(self._batch)
        writing = self._writing
        self._batch.append((what, refused))
        # Shielded: a worker that is given up must not take the others' replies with it.
        numbers = await asyncio.shield(writing)
        return numbers[place]

    async def _write(self) -> list[int]:
        """Write the batch, as it is once the disk is free, and return the number of each of its items."""
        async with self._disk:
            batch = self._batch
            self._batch = []  # what comes from now on is of the next commit
            items, refused = zip(*batch, strict=True)
            refused_numbers = list(chain.from_iterable(refused))
            try:
                return await asyncio.to_thread(self.store.put, items, refused_numbers)
            except BaseException:
                self.stopping = self.stopping or Stop("the store cannot be written")
                raise

    async def _renew(self) -> None:
        """Renew the claims of this run until it is cancelled."""
        while True:
            # Two renewals may be late before another process takes the cells over.
            await asyncio.sleep(self.store.lease / 3)
            await self._on_disk(self.store.renew)
