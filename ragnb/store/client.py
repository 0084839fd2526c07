"""The one way to an OpenAI-compatible endpoint: limits, retries and budgets around every paid call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from ragnb.errors import RagnbError, require
from ragnb.schema import Profile, refuse_secrets
from ragnb.store.budget import Budget
from ragnb.store.cells import METER, CallFailed, Meter, Stop
from ragnb.store.faults import (
    Again,
    Redactor,
    chat_fault,
    headers_of,
    key_of,
    pause,
    raw_text,
    sorted_fault,
)


@dataclass(frozen=True)
class Reply:
    """The text of a reply."""

    text: str


class Client:
    """An OpenAI-compatible endpoint, called with care for the bill.

    Parameters
    ----------
    profile : Profile
        Base URL, model, and the names of the environment variables that hold the key (None: no key is sent
        but a placeholder, as local servers want) and a gateway's headers.
    concurrency : int
        Calls under way at a time.
    timeout : float
        Seconds for one call.
    retries : int
        Further tries of a call after 429, 5xx, a timeout or a lost connection, with waits that double from half
        a second on, or as long as ``Retry-After`` asks.
    patience : float
        Seconds. An endpoint that asks for a longer wait stops the run.
    max_calls, max_tokens : int, optional
        Budgets of this client over all its runs. Calls that the endpoint turned away with 429 are free; all
        others count, also those that got no answer. When a further cell would not fit in, the run stops, and
        a client with a larger budget takes it up. `max_tokens` counts what the endpoint reports, or else what
        the cells expect, so that calls under way may pass it by the error of that estimate.

    Raises
    ------
    RagnbError
        For settings that make no sense, and where a variable of the profile is not set.
    MissingExtraError
        Without the extra ``judge``.

    Examples
    --------
    >>> local = Profile(base_url="http://127.0.0.1:8080/v1", model="small")
    >>> Client(local, max_calls=500)
    Client('small' at 'http://127.0.0.1:8080/v1', concurrency=8)
    """

    def __init__(
        self,
        profile: Profile,
        *,
        concurrency: int = 8,
        timeout: float = 60.0,
        retries: int = 4,
        patience: float = 60.0,
        max_calls: int | None = None,
        max_tokens: int | None = None,
    ) -> None:
        checks = (("concurrency", concurrency, 1), ("timeout", timeout, 0.001), ("retries", retries, 0))
        for name, value, least in checks:
            if not value >= least:
                raise RagnbError(f"{name}={value!r}; give {least} or more")
        self._openai = require("openai", extra="judge")  # two seconds, rather here than in the run's first cell
        self.profile = profile
        self.concurrency, self.timeout, self.retries, self.patience = concurrency, timeout, retries, patience
        self.budget = Budget(max_calls, max_tokens)
        self.stopped: Stop | None = None
        self._key = key_of(profile)
        self._headers = headers_of(profile)
        self.redact = Redactor(self._key, *self._headers.values())
        self._sdk: Any = None
        self._places = asyncio.Semaphore(concurrency)
        self._quiet_until = 0.0
        self._answered = False

    def __repr__(self) -> str:
        return f"Client({self.profile.model!r} at {self.profile.base_url!r}, concurrency={self.concurrency})"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Client]:
        """Open the connections for the running event loop; `run_cells` does it."""
        if self._sdk is not None:
            raise RagnbError("the client is in use; a client serves one run at a time")
        self.stopped = None
        self._places = asyncio.Semaphore(self.concurrency)
        key = self._key.get_secret_value() if self._key is not None else "no-key"
        async with self._openai.AsyncOpenAI(
            api_key=key, base_url=self.profile.base_url, max_retries=0, timeout=self.timeout,
            default_headers={name: value.get_secret_value() for name, value in self._headers.items()},
        ) as self._sdk:  # fmt: skip
            try:
                yield self
            finally:
                self._sdk = None

    async def chat(self, messages: Sequence[Mapping[str, Any]], **parameters: Any) -> Reply:
        """Send one chat completion and return its reply.

        Parameters
        ----------
        messages : sequence of mappings
            ``role`` and ``content``.
        **parameters
            As the endpoint takes them: temperature, seed, max_tokens, response_format, extra_body … Keys among
            them are refused; they belong into the profile's `api_key_env` and `headers_env`.

        Raises
        ------
        CallFailed
            For a reply that is none: HTML, no choices, no content, cut off (``finish_reason=length``), refused
            or filtered; for a request the endpoint calls wrong; when the last retry has failed. The loop keeps
            the raw reply.
        Stop
            When a budget is used up, the key or model is refused, the wait is longer than `patience`, or a
            parameter looks like a key.
        """
        got = await self._paid(True, model=self.profile.model, messages=list(messages), **parameters)
        return Reply(self.redact(got.choices[0].message.content))

    async def embed(self, texts: Sequence[str], **parameters: Any) -> list[list[float]]:
        """Return one vector a text, in the order of the texts; it raises what `chat` raises."""
        got = await self._paid(False, model=self.profile.model, input=list(texts), **parameters)
        rows = sorted(got.data, key=lambda row: int(row.index))
        if [row.index for row in rows] != list(range(len(texts))):
            raise CallFailed(f"{len(rows)} embeddings came back for {len(texts)} texts")
        return [list(row.embedding) for row in rows]

    async def _paid(self, chat: bool, /, **asked: Any) -> Any:
        """Call the SDK within our limits."""
        if self._sdk is None:
            raise RagnbError("the client is not open; use it in the work of run_cells, or within client.open()")
        tenacity = require("tenacity", extra="judge")
        if asked.get("stream"):
            raise CallFailed("streaming is not supported here; leave stream out")
        self._refuse_keys(asked)
        tries = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(Again),
            stop=tenacity.stop_after_attempt(self.retries + 1),
            wait=pause,
            reraise=True,
        )
        try:
            return await tries(self._once, chat, asked)
        except Again as again:
            fault = CallFailed(f"{again} ({self.retries + 1} tries)")
        raise fault

    def _refuse_keys(self, asked: Mapping[str, Any]) -> None:
        """Stop the run before anything is sent that looks like a key."""
        parameters = {k: v for k, v in asked.items() if k not in ("messages", "input", "model")}
        headers = parameters.pop("extra_headers", None) or {}  # the SDK's own way of sending a header
        try:
            refuse_secrets(parameters, "a parameter of the call,")
            refuse_secrets(headers, "extra_headers,")
        except RagnbError as error:
            refused = str(error)
        else:
            return
        raise self._stop(Stop(refused, refused=True))

    async def _once(self, chat: bool, asked: dict[str, Any]) -> Any:
        """One try: wait for a place, pay, and sort what comes back."""
        async with self._places:
            while (rest := self._quiet_until - time.monotonic()) > 0:
                await asyncio.sleep(rest)
            if full := self.budget.full(1, 0):
                raise self._stop(full)
            self.budget.calls += 1
            METER.get(Meter()).calls += 1
            fault: Exception | None = None
            try:
                if self._headers and self._key is None and "Authorization" not in self._headers:
                    # A gateway that takes a header of its own may refuse the placeholder.
                    none = {"Authorization": self._openai.Omit()}
                    asked = asked | {"extra_headers": none | dict(asked.get("extra_headers") or {})}
                async with asyncio.timeout(self.timeout):
                    got = await (self._sdk.chat.completions if chat else self._sdk.embeddings).create(**asked)
            except Exception as error:
                fault = sorted_fault(error, self.redact, self.timeout, fresh=not self._answered)
            if fault is not None:
                raise self._told(fault)
        self._answered = True
        self._count(got, chat)
        fault = chat_fault(got, self.redact) if chat else None
        if fault is not None:
            raise fault
        return got

    def _told(self, fault: Exception) -> Exception:
        """Take account of a fault: a stop is remembered, a wait holds all calls, a call turned away is free."""
        if isinstance(fault, Again):
            if fault.free:
                self.budget.calls -= 1
            if fault.wait > self.patience:
                fault = Stop(f"the endpoint asks to wait {fault.wait:.0f} s ({fault}); run it again then to go on")
            else:
                self._quiet_until = max(self._quiet_until, time.monotonic() + fault.wait)
        elif isinstance(fault, CallFailed) and fault.reply:
            METER.get(Meter()).replies.append(fault.reply)
        return self._stop(fault) if isinstance(fault, Stop) else fault

    def _stop(self, stop: Stop) -> Stop:
        self.stopped = self.stopped or stop
        return stop

    def _count(self, got: Any, chat: bool) -> None:
        """Count a reply's tokens and keep its text."""
        usage = getattr(got, "usage", None)
        taken = (getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None if chat else 0))
        meter = METER.get(Meter())
        self.budget.tokens += meter.expected if None in taken else sum(filter(None, taken))
        meter.add(*taken)
        if chat:
            meter.replies.append(raw_text(got))
