"""The loop over paid cells: many at a time, each kept as it is done, and at any moment able to stop and resume."""

from __future__ import annotations

import asyncio
import math
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

import pandas as pd

from ragnb.errors import RagnbWarning, listing
from ragnb.store.cells import METER, Call, CallFailed, Cell, Meter, Outcome, Send, Stop
from ragnb.store.client import Client
from ragnb.store.store import Store

Work = Callable[[Cell], Awaitable[Outcome]]
_LOOK = 0.25  # seconds between looks at what another process holds
_QUIET = 2.0  # seconds of such a wait before it is told


class Stopped(KeyboardInterrupt):
    """Ctrl-C came: what is done is in the store, and the message says how to resume."""


@dataclass(frozen=True)
class Estimate:
    """A dry run: how many cells there are, how many are to be done, and what they are expected to need.

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


def estimate(cells: Iterable[Cell], store: Store | None = None) -> Estimate:
    """Count what a run of these cells would need; nothing is sent, and nothing is written.

    Examples
    --------
    >>> estimate([Cell("s1", "rubric", {}, calls=2, tokens=900), Cell("s2", "rubric", {}, missing=("answer",))])
    Estimate(cells=2, done=0, not_applicable=1, calls=2, tokens=900)
    """
    distinct = {cell.key: cell for cell in cells}
    done = store.settled(distinct.values()) if store is not None else set()
    still = [cell for key, cell in distinct.items() if key not in done]
    paid = [cell for cell in still if not cell.missing]
    calls, tokens = sum(cell.calls for cell in paid), sum(cell.tokens for cell in paid)
    return Estimate(len(distinct), len(done), len(still) - len(paid), calls, tokens)


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
        counts = Counter(self.frame["status"])
        return {word: counts[word] for word in ("ok", "not_applicable", "failed", "pending")}


def run_cells(
    cells: Sequence[Cell], work: Work, store: Store, *, clients: Sequence[Client] = (), name: str = "",
    concurrency: int | None = None, about: Mapping[str, Any] | None = None, progress: bool | None = None,
) -> Run:  # fmt: skip
    """Do the cells that are not done yet, keep each outcome durably, and return the run as it stands.

    It runs in a thread of its own, so that it can be called from a script and from a notebook alike. The first
    Ctrl-C starts no further cell and waits for those under way; a second one gives them up.

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
    from tqdm.auto import tqdm
    from tqdm.notebook import tqdm_notebook

    most = concurrency or max((client.concurrency for client in clients), default=8)
    job = _Job(list(cells), work, store, tuple(clients), most, store.plan(cells, name=name, about=about))
    hidden = not progress if progress is not None else (False if issubclass(tqdm, tqdm_notebook) else None)
    interrupts = 0
    bar = tqdm(total=job.open, disable=hidden, unit="cell", dynamic_ncols=True)
    with bar, ThreadPoolExecutor(1, "ragnb-run") as pool:
        ending = pool.submit(asyncio.run, job.all())
        while not ending.done():
            try:
                wait([ending], timeout=0.1)
                bar.update(job.done - bar.n)
                job.warn()
            except KeyboardInterrupt:
                interrupts += 1
                job.stop(at_once=interrupts > 1)
        bar.update(job.done - bar.n)
    job.warn()
    ending.result()
    run = Run(job.run, store.frame(job.run), str(job.stopping) if job.stopping else None)
    _report(run, store, interrupts)
    return run


def _report(run: Run, store: Store, interrupts: int) -> None:
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
            "run the same again to try them anew", RagnbWarning, stacklevel=3,
        )  # fmt: skip


class _Job:
    """One run while it is under way: workers take cells, one writer keeps what they bring."""

    def __init__(
        self, cells: list[Cell], work: Work, store: Store, clients: tuple[Client, ...], most: int, run: str
    ) -> None:
        self.cells, self.work, self.store, self.clients = cells, work, store, clients
        self.most, self.run = most, run
        self.mark = store.mark()
        self.open = len({cells[position].key for position in store.pending(run, self.mark)})
        self.done = 0
        self.notices: deque[str] = deque()  # for the caller's thread, which warns
        self.stopping: Stop | None = None
        self._taken: deque[int] = deque()
        self._next = 0
        self._under_way: dict[int, Meter] = {}
        self._given_up = False
        self._unwritten: deque[tuple[Call | tuple[Cell, Outcome], tuple[int, ...], Future[int]]] = deque()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._workers: list[asyncio.Task[None]] = []

    def stop(self, *, at_once: bool) -> None:
        """Start no further cell; `at_once` gives up those under way too."""
        self.stopping = self.stopping or Stop("stopped by hand")
        self._given_up = at_once
        if at_once and self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(lambda: [worker.cancel() for worker in self._workers])

    def warn(self) -> None:
        """Pass on what the job has to say while it runs; where a warning is an error, the run stops."""
        while self.notices:
            try:
                warnings.warn(self.notices.popleft(), RagnbWarning, stacklevel=3)
            except RagnbWarning:
                self.stop(at_once=True)
                raise

    async def all(self) -> None:
        """Run to the end."""
        self._loop = asyncio.get_running_loop()
        self._disk = ThreadPoolExecutor(1, "ragnb-store")
        self._dealing, self._freed = asyncio.Lock(), asyncio.Event()
        async with AsyncExitStack() as stack:
            for client in self.clients:
                await stack.enter_async_context(client.open())
            renewer = asyncio.create_task(self._renew())
            self._workers = [asyncio.create_task(self._worker()) for _ in range(min(self.most, len(self.cells)))]
            results = await asyncio.gather(*self._workers, return_exceptions=True)
            renewer.cancel()
            await self._on_disk(self.store.release)  # after what was paid for is kept, in this order
            self._disk.shutdown()
        for error in results:
            if isinstance(error, Exception):
                raise error
        if self.stopping is not None and self.stopping.refused:
            raise self.stopping

    async def _on_disk(self, call: Callable[..., Any], *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._disk, call, *args)

    # Cells

    async def _worker(self) -> None:
        while (cell := await self._deal()) is not None:
            started, meter = time.perf_counter(), Meter(cell, cell.tokens // max(1, cell.calls), self._once)
            self._under_way[id(meter)] = meter
            try:
                outcome = await self._outcome(cell, meter)
                if outcome is None:
                    return
                outcome = replace(
                    outcome, replies=outcome.replies or tuple(meter.replies), calls=meter.calls,
                    tokens_in=meter.tokens_in, tokens_out=meter.tokens_out, seconds=time.perf_counter() - started,
                )  # fmt: skip
                value, reason, replies = self._redacted([outcome.value, outcome.reason, outcome.replies])
                outcome = replace(outcome, value=value, reason=reason, replies=tuple(replies))
                await self._keep((cell, outcome), meter.latest.values() if outcome.status == "failed" else ())
                self.done += 1
            finally:
                del self._under_way[id(meter)]
                self._freed.set()

    async def _outcome(self, cell: Cell, meter: Meter) -> Outcome | None:
        """Do one cell; None where the run stops and the cell stays pending."""
        if cell.missing:
            return Outcome.lacking(cell.missing)
        token = METER.set(meter)
        try:
            outcome = await self.work(cell)
            if not isinstance(outcome, Outcome):
                raise TypeError(f"the work returned a {type(outcome).__name__}, not an Outcome")
            return outcome
        except (Exception, asyncio.CancelledError) as error:
            if self._given_up:
                raise
            stops = [error if isinstance(error, Stop) else None, *(client.stopped for client in self.clients)]
            stop = next(filter(None, stops), None)
            if stop is not None:
                self.stopping = self.stopping or stop
                return None
            if isinstance(error, CallFailed):
                return Outcome.failed(str(error), *filter(None, [error.reply]))
            where = traceback.extract_tb(error.__traceback__)[-1]
            return Outcome.failed(f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})")
        finally:
            METER.reset(token)

    async def _deal(self) -> Cell | None:
        """Hand out the next cell; None when there is none, or none may be started."""
        async with self._dealing:
            while self.stopping is None:
                if not self._taken:
                    await self._claim()
                if not self._taken:
                    return None
                cell = self.cells[self._taken[0]]
                full = None if cell.missing else self._full(cell)
                if full is None and not cell.missing and self._full(cell, reserved=True):
                    # What is reserved for cells under way may not all be needed: the end of one makes room.
                    self._freed.clear()
                    await self._freed.wait()
                elif full is None:
                    self._taken.popleft()
                    return cell
                else:
                    self.stopping = full
        return None

    async def _claim(self) -> None:
        """Claim the next cells; at the end, wait for those that another process holds."""
        notice_at = time.monotonic() + _QUIET
        while self.stopping is None:
            claimed = await self._on_disk(self._claimed)
            self._taken.extend(claimed)
            if claimed or not (held := await self._on_disk(self._held)):
                return
            if time.monotonic() >= notice_at:
                notice_at = math.inf
                rows = (await self._on_disk(self.store.claims)).to_dict("records")
                names = (f"process {r['process'] or '?'} on {r['host']} (until {r['until']})" for r in rows)
                self.notices.append(
                    f"waiting for {held} cells that another process holds: {listing(names)}. A holder that gives "
                    f"no sign of life for {self.store.lease:g} s loses them to this run"
                )
            self._next = 0
            await asyncio.sleep(_LOOK)

    def _claimed(self) -> list[int]:
        claimed = self.store.claim(self.run, 2 * self.most, mark=self.mark, start=self._next)
        while self.store.taken_over:
            self.notices.append(self.store.taken_over.pop())
        self._next = claimed[-1] + 1 if claimed else self._next
        return claimed

    def _held(self) -> int:
        """Count the cells that are open and that none of our workers has under way."""
        ours = {meter.cell.key for meter in list(self._under_way.values()) if meter.cell}
        return sum(self.cells[place].key not in ours for place in self.store.pending(self.run, self.mark))

    def _full(self, cell: Cell, *, reserved: bool = False) -> Stop | None:
        """Whether a budget has no room for this cell, or none beside what those under way may still need."""
        calls, tokens = cell.calls, cell.tokens
        for meter in self._under_way.values() if reserved else ():
            if meter.cell is not None:
                calls += max(0, meter.cell.calls - meter.calls - meter.reused)
                tokens += max(0, meter.cell.tokens - (meter.tokens_in or 0) - (meter.tokens_out or 0))
        return next((full for client in self.clients if (full := client.budget.full(calls, tokens))), None)

    # What is kept

    async def _once(self, meter: Meter, key: str, send: Send) -> Any:
        """Return the reply to a request, from the store or paid for; it is on the disk before its cell goes on."""
        task = asyncio.current_task()
        meter.latest.pop(task, None)  # if no reply comes, the one before is not at fault
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            known = await self._on_disk(self.store.get, key)
            if known is not None:
                number, call = known
                meter.reused += 1
            else:
                call = await send()
                if isinstance(call.reply, str):
                    call = replace(call, reply=self._redacted(call.reply))
                number = await self._keep(call)
        meter.latest[task] = number
        if not isinstance(call.reply, str):
            return call.reply
        meter.replies.append(number)
        return call.reply.replace(call.tag, meter.tag) if call.tag and meter.tag else call.reply

    def _redacted(self, value: Any) -> Any:
        """Take out the keys that an endpoint or a library may have echoed."""
        for client in self.clients:
            value = client.redact.value(value)
        return value

    async def _keep(self, what: Call | tuple[Cell, Outcome], refused: Iterable[int] = ()) -> int:
        """Wait until something is on the disk, and return its number; only then it counts as done."""
        kept: Future[int] = Future()
        self._unwritten.append((what, tuple(refused), kept))
        self._disk.submit(self._write)
        return await asyncio.shield(asyncio.wrap_future(kept))

    def _write(self) -> None:
        """Keep all that has come since the last commit in one commit."""
        items = [self._unwritten.popleft() for _ in range(len(self._unwritten))]
        try:
            numbers = self.store.put([what for what, *_ in items], [n for _, refused, _ in items for n in refused])
        except BaseException as error:
            self.stopping = self.stopping or Stop("the store cannot be written")
            for *_, kept in items:
                kept.set_exception(error)
        else:
            for number, (*_, kept) in zip(numbers, items, strict=True):
                kept.set_result(number)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self.store.lease / 3)
            await self._on_disk(self.store.renew)
