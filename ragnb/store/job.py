"""One run while it is under way: workers take cells, one writer keeps what they bring."""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any

from ragnb.errors import listing
from ragnb.store.cells import METER, CallFailed, Cell, Meter, Outcome, Stop
from ragnb.store.client import Client
from ragnb.store.store import Store

Work = Callable[[Cell], Awaitable[Outcome]]
_LOOK = 0.25  # seconds between looks at what another process holds
_QUIET = 2.0  # seconds of such a wait before it is told


class Job:
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
        self.ended = threading.Event()
        self.error: BaseException | None = None
        self.stopping: Stop | None = None
        self._taken: deque[int] = deque()
        self._next = 0
        self._ahead: asyncio.Task[list[int]] | None = None
        self._under_way: dict[int, tuple[Cell, Meter]] = {}
        self._closing = self._given_up = False
        self._written: list[tuple[Cell, Outcome, asyncio.Future[None]]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._workers: list[asyncio.Task[None]] = []

    def main(self) -> None:
        """Run to the end in this thread; an error is left for the caller's."""
        try:
            asyncio.run(self._all())
        except BaseException as error:
            self.error = error
        finally:
            self.ended.set()

    def stop(self, *, at_once: bool) -> None:
        """Start no further cell; `at_once` gives up those under way too."""
        self.stopping = self.stopping or Stop("stopped by hand")
        self._given_up = at_once
        if at_once and self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(lambda: [worker.cancel() for worker in self._workers])

    async def _all(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._disk = ThreadPoolExecutor(1, "ragnb-store")
        self._dealing, self._news, self._freed = asyncio.Lock(), asyncio.Event(), asyncio.Event()
        async with AsyncExitStack() as stack:
            for client in self.clients:
                await stack.enter_async_context(client.open())
            writer, renewer = asyncio.create_task(self._write()), asyncio.create_task(self._renew())
            self._workers = [asyncio.create_task(self._worker()) for _ in range(min(self.most, len(self.cells)))]
            found = await asyncio.gather(*self._workers, return_exceptions=True)
            renewer.cancel()
            await asyncio.gather(*filter(None, [self._ahead]), return_exceptions=True)
            self._closing = True
            self._news.set()
            await writer  # what was paid for is kept, also where its worker was given up
            await self._on_disk(self.store.release)
            self._disk.shutdown()
        for error in found:
            if isinstance(error, Exception):
                raise error
        if self.stopping is not None and self.stopping.refused:
            raise self.stopping

    async def _on_disk(self, call: Callable[..., Any], *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._disk, call, *args)

    async def _worker(self) -> None:
        while (cell := await self._deal()) is not None:
            started, meter = time.perf_counter(), Meter(cell.tokens // max(1, cell.calls))
            place = id(meter)
            self._under_way[place] = cell, meter
            try:
                outcome = await self._outcome(cell, meter)
                if outcome is None:
                    return
                outcome = replace(
                    outcome, replies=outcome.replies or tuple(meter.replies), calls=meter.calls,
                    tokens_in=meter.tokens_in, tokens_out=meter.tokens_out, seconds=time.perf_counter() - started,
                )  # fmt: skip
                await self._keep(cell, self._without_keys(outcome))
            finally:
                del self._under_way[place]
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

    def _without_keys(self, outcome: Outcome) -> Outcome:
        """Take the clients' keys out of every text, wherever an endpoint or a library has echoed them."""
        for client in self.clients:
            value, reason, replies = client.redact.value([outcome.value, outcome.reason, outcome.replies])
            outcome = replace(outcome, value=value, reason=reason, replies=tuple(replies))
        return outcome

    async def _deal(self) -> Cell | None:
        """Hand out the next cell; None when there is none, or none may be started."""
        async with self._dealing:
            while self.stopping is None:
                if not self._taken:
                    await self._claim()
                if not self._taken:
                    return None
                cell = self.cells[self._taken[0]]
                if not cell.missing and self._full(cell, reserved=True) and not self._full(cell):
                    # What is reserved for cells under way may not all be needed: the end of one makes room.
                    self._freed.clear()
                    await self._freed.wait()
                    continue
                full = None if cell.missing else self._full(cell)
                if full is None:
                    self._taken.popleft()
                    if len(self._taken) < self.most and self._ahead is None:
                        self._ahead = asyncio.create_task(self._on_disk(self._claimed))
                    return cell
                self.stopping = full
        return None

    async def _claim(self) -> None:
        """Claim the next cells; at the end, wait for those that another process holds."""
        begun, told = time.monotonic(), False
        while self.stopping is None:
            found = await (self._ahead or self._on_disk(self._claimed))
            self._ahead = None
            self._taken.extend(found)
            if found or not (held := await self._on_disk(self._held)):
                return
            if not told and time.monotonic() - begun >= _QUIET:
                told = True
                self.notices.append(await self._on_disk(self._waiting, held))
            self._next = 0
            await asyncio.sleep(_LOOK)

    def _claimed(self) -> list[int]:
        found = self.store.claim(self.run, 2 * self.most, mark=self.mark, start=self._next)
        while self.store.taken_over:
            self.notices.append(self.store.taken_over.pop())
        self._next = found[-1] + 1 if found else self._next
        return found

    def _held(self) -> int:
        """How many cells are open that none of our workers has under way."""
        own = {cell.key for cell, _ in list(self._under_way.values())}
        return sum(self.cells[place].key not in own for place in self.store.pending(self.run, self.mark))

    def _waiting(self, n: int) -> str:
        """Say whom we wait for."""
        claims = self.store.claims()
        rows = claims.to_dict("records")
        names = listing(f"process {row['process'] or '?'} on {row['host']} (until {row['until']})" for row in rows)
        return (
            f"waiting for {n} cells that another process holds: {names}. A holder that gives no sign of life for "
            f"{self.store.lease:g} s loses them to this run"
        )

    def _full(self, cell: Cell, *, reserved: bool = False) -> Stop | None:
        """Whether a budget has no room for this cell, or none beside what those under way may still need."""
        others = list(self._under_way.values()) if reserved else []
        calls = cell.calls + sum(max(0, c.calls - meter.calls) for c, meter in others)
        tokens = cell.tokens + sum(
            max(0, c.tokens - (meter.tokens_in or 0) - (meter.tokens_out or 0)) for c, meter in others
        )
        return next((full for client in self.clients if (full := client.budget.full(calls, tokens))), None)

    async def _keep(self, cell: Cell, outcome: Outcome) -> None:
        """Wait until the outcome is on the disk; only then it counts as done."""
        written = asyncio.get_running_loop().create_future()
        self._written.append((cell, outcome, written))
        self._news.set()
        await asyncio.shield(written)

    async def _write(self) -> None:
        """Keep all that has come since the last commit in one commit."""
        while self._written or not self._closing:
            await self._news.wait()
            self._news.clear()
            batch, self._written = self._written, []
            try:
                await self._on_disk(self.store.append, [(cell, outcome) for cell, outcome, _ in batch])
            except Exception as error:
                self.stopping = self.stopping or Stop("the store cannot be written")
                for *_, written in batch:
                    written.set_exception(error)
                    written.exception()  # seen, should its worker be gone
                continue
            self.done += len(batch)
            for *_, written in batch:
                written.set_result(None)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self.store.lease / 3)
            await self._on_disk(self.store.renew)
