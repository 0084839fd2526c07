"""The client for OpenAI-compatible endpoints: around every call are keys, limits, retries and budgets."""

from __future__ import annotations

import asyncio
import secrets
import time
import warnings
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

from pydantic import SecretStr

from ragnb.errors import RagnbError, RagnbWarning, listing, require
from ragnb.schema import Profile
from ragnb.schema.secrets import masked, refuse_secrets
from ragnb.store.budget import METER, MOST_TOKENS, Budget, Meter
from ragnb.store.calls import Call, CallFailed, Stop
from ragnb.store.redaction import NO_KEY, Redactor, headers_of
from ragnb.store.transport import (
    REPLY_BYTES,
    TRIP,
    Refused,
    Trip,
    http_client,
    proxy_passwords,
    unused_proxy,
)

# HTTP statuses after which no call will be answered; the same, but only of the first calls; a later try may work.
_REFUSED = (401, 402)
_REFUSED_AT_FIRST = (403, 404)
_PASSING = (408, 409, 425, 429)


def new_tag() -> str:
    """Return a random tag for the requests of a cell, which separates its replies from untrusted texts.

    A call's key leaves it out, and a reply that the store holds is given with it in place of the one sent then.

    Examples
    --------
    >>> len(new_tag())
    16
    """
    tag = secrets.token_hex(8)
    meter = METER.get()
    if meter is None:
        return tag
    meter.tag = meter.tag or tag
    return meter.tag


class Client:
    """A client for an OpenAI-compatible endpoint, with budgets.

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
        others count, also those that got no answer. When a further call would not fit in, the run stops, and
        a client with a larger budget takes it up, at the call where it stopped. `max_tokens` counts what the
        endpoint reports, or else what the cells expect, so that calls under way may pass it by the error of that
        estimate. A request whose connection was refused never left, and counts nowhere.
    reply_bytes : int
        The largest body of a reply that is read; a longer one fails its cell.

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
        reply_bytes: int = REPLY_BYTES,
    ) -> None:
        checks = (
            ("concurrency", concurrency, 1),
            ("timeout", timeout, 0.001),
            ("retries", retries, 0),
            ("reply_bytes", reply_bytes, 1),
        )
        for name, value, least in checks:
            if not value >= least:
                raise RagnbError(f"{name}={value!r}; give {least} or more")
        # The import takes two seconds, rather here than in the first cell of a run.
        self._openai = require("openai", extra="judge")
        self._tenacity = require("tenacity", extra="judge")
        self.profile = profile
        self.concurrency = concurrency
        self.timeout = timeout
        self.retries = retries
        self.patience = patience
        self.reply_bytes = reply_bytes
        self.budget = Budget(max_calls, max_tokens)
        self.sent = 0  # requests that left, whatever came back
        self.stopped: Stop | None = None
        self._headers = headers_of(profile)
        passwords = proxy_passwords() if profile.proxy_env else []
        self.redact = Redactor(*self._headers.values(), *passwords)
        self._sdk: Any = None
        self._quiet_until = 0.0  # on the monotonic clock; no call is sent before
        self._reserved = 0  # tokens that calls under way are expected to take
        self._answered = False
        self._odd_usage_told = False

    def __repr__(self) -> str:
        return f"Client({self.profile.model!r} at {self.profile.base_url!r}, concurrency={self.concurrency})"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Client]:
        """Open the connections for the running event loop; `run_cells` does it."""
        if self._sdk is not None:
            raise RagnbError("the client is in use; a client serves one run at a time")
        self.stopped = None
        self._places = asyncio.Semaphore(self.concurrency)
        # Local servers want a key; a gateway that takes a header of its own may refuse a placeholder.
        placeholder = {"Authorization": SecretStr(f"Bearer {NO_KEY}")}
        http = http_client(
            self._openai,
            self._headers or placeholder,
            reply_bytes=self.reply_bytes,
            environment=self.profile.proxy_env,
        )
        # The SDK wants a key, and would take one from the environment; the HTTP client sends the profile's alone.
        async with self._openai.AsyncOpenAI(
            api_key=NO_KEY,
            base_url=self.profile.base_url,
            max_retries=0,
            timeout=self.timeout,
            http_client=http,
        ) as self._sdk:
            try:
                yield self
            finally:
                self._sdk = None

    async def chat(self, messages: Sequence[Mapping[str, Any]], **parameters: Any) -> str:
        """Send one chat completion and return the text of its reply.

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
        return str(await self._paid(True, messages=list(messages), **parameters))

    async def embed(self, texts: Sequence[str], **parameters: Any) -> list[list[float]]:
        """Return one vector a text, in the order of the texts; it raises what `chat` raises."""
        return list(await self._paid(False, input=list(texts), **parameters))

    async def _paid(self, chat: bool, /, **parameters: Any) -> Any:
        """Return the reply to a request, from the store of the run where it is there already."""
        meter = METER.get()
        if self._sdk is None or meter is None:
            raise RagnbError("the client is not open; use it inside the work function of run_cells")
        if parameters.get("stream"):
            raise CallFailed("streaming is not supported here; leave stream out")
        # Without the texts, which may speak of keys.
        settings = {
            name: value for name, value in parameters.items() if name not in ("messages", "input")
        }
        headers = [masked(str(name)) for name in settings.pop("extra_headers", None) or ()]
        if headers:
            why = (
                f"extra_headers {listing(headers)}: only headers that the profile names are sent; name them "
                "there, each with the environment variable of its value: headers_env: {x-org: VARIABLE}"
            )
            raise self._stop(why, refused=True)
        try:
            refuse_secrets(settings, "a parameter of the call,")
        except RagnbError as error:
            raise self._stop(str(error), refused=True) from None
        request = {"model": self.profile.model} | parameters
        # Where no temperature is sent, the endpoint has one of its own.
        is_drawn = chat and parameters.get("temperature") != 0
        key = meter.key({"url": self.profile.base_url, **request}, drawn=is_drawn)
        return await meter.once(meter, key, partial(self._sent, meter, key, chat, request))

    async def _sent(self, meter: Meter, key: str, chat: bool, request: dict[str, Any]) -> Call:
        """Send a request, with retries after transient errors."""
        tenacity = self._tenacity
        tries = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(Again),
            stop=tenacity.stop_after_attempt(self.retries + 1),
            wait=self._pause,
            reraise=True,
        )
        started = time.perf_counter()
        try:
            response, counts = await tries(self._try, meter, request, chat)
            if chat:
                reply = self.redact(_text_of(response))
            else:
                reply = _vectors(response, len(request["input"]))
            tokens_in, tokens_out = counts
            seconds = time.perf_counter() - started
            return Call(key, reply, meter.tag, tokens_in, tokens_out, seconds)
        except Again as error:
            fault = CallFailed(f"{error} ({self.retries + 1} tries)")
        except CallFailed as error:
            # No call is kept for it, so its text goes with the cell.
            if error.reply:
                meter.replies.append(self.redact(error.reply))
            fault = CallFailed(self.redact(str(error)))
        raise fault  # here, as what the SDK raised holds its request

    async def _try(
        self, meter: Meter, request: dict[str, Any], chat: bool
    ) -> tuple[Any, Iterable[int | None]]:
        """Try once: wait for a slot, send, and return the reply and its counted tokens."""
        if chat:
            endpoint = self._sdk.chat.completions
        else:
            endpoint = self._sdk.embeddings
        async with self._places:
            # Another call's Retry-After may have moved the end while this one slept.
            while (rest := self._quiet_until - time.monotonic()) > 0:
                await asyncio.sleep(rest)
            expected = meter.cell.tokens // max(1, meter.cell.calls)  # tokens of one call
            while full := self.budget.full(self._reserved + expected):
                if not self._reserved:
                    raise self._stop(str(full))
                await asyncio.sleep(0.01)  # calls under way may need less than is reserved for them
            trip = Trip()
            TRIP.set(trip)
            # Nothing was awaited since the budget was checked, so no other call has taken the same room.
            self.budget.calls += 1
            self._reserved += expected
            try:
                async with asyncio.timeout(self.timeout):
                    response = await endpoint.create(**request)
            except Exception as error:
                fault = self._fault_of(error)
            else:
                self._answered = True
                return response, self._count(meter, response, chat, expected)
            finally:
                # `has_left` counts as 1 or 0.
                self._reserved -= expected
                meter.calls += trip.has_left
                self.sent += trip.has_left
                self.budget.calls -= not trip.has_left  # what never left is no call
        raise fault

    def _fault_of(self, error: Exception) -> Exception:
        """Translate an exception of the SDK into one of ours, without its request, key or traceback."""
        # The SDK wraps what its HTTP library or our own hooks raised into an error of its own.
        cause = error.__cause__ or error
        openai = self._openai
        text = self.redact(f"{type(cause).__name__}: {cause}")
        if isinstance(cause, Refused):
            reason = self.redact(str(cause))
            if cause.for_all and not self._answered:
                return self._stop(reason, refused=True)
            return CallFailed(reason)
        if isinstance(error, openai.APITimeoutError | TimeoutError):
            return Again(f"no reply within {self.timeout:g} s")
        # After the timeout, which is a kind of connection error to the SDK.
        if isinstance(error, openai.APIConnectionError):
            return Again(f"no connection: {text}{self._proxy_hint()}")
        if isinstance(error, openai.APIStatusError):
            return self._fault_of_status(int(error.status_code), error.response)
        if isinstance(error, openai.APIError | ValueError):
            return CallFailed(f"the reply is none of this API: {text[:300]}")
        return CallFailed(text[:300])

    def _fault_of_status(self, status: int, response: Any) -> Exception:
        """Return what a reply with another status than 200 means for its cell and for the run."""
        body = self.redact(response.text)
        reason = f"HTTP {status}: {' '.join(body.split())[:300]}"
        # OpenAI's code of an account without credit, which has the status of too many requests.
        if status == 429 and "insufficient_quota" in body:
            return self._stop(
                f"{reason}. The account has no credit left; run it again when it has", refused=True
            )
        if status in _PASSING or status >= 500:
            if status == 429:
                self.budget.calls -= 1  # rejected requests are free
            wait = retry_after(response.headers)
            if wait > self.patience:
                why = f"the endpoint asks to wait {wait:.0f} s ({reason}); run it again then to resume"
                return self._stop(why)
            self._quiet_until = max(self._quiet_until, time.monotonic() + wait)  # holds all calls
            return Again(reason)
        # Before anything is answered, what is forbidden or not found is so for every call.
        if status in _REFUSED or (status in _REFUSED_AT_FIRST and not self._answered):
            return self._stop(
                f"{reason}. Check the key, the account, the model and the base_url", refused=True
            )
        return CallFailed(reason, body)

    def _proxy_hint(self) -> str:
        """Name a proxy of the environment that is not used, as the connection may need it."""
        name = unused_proxy()
        if name is None or self.profile.proxy_env:
            return ""
        return f". {name} is set and not used; proxy_env: true in the profile uses it"

    def _pause(self, state: Any) -> float:
        """Seconds before the next try: as the endpoint requests, else exponential from 0.5 with jitter."""
        doubling = self._tenacity.wait_random_exponential(0.5, 30, min=0.1)(state)
        return float(max(self._quiet_until - time.monotonic(), doubling))

    def _stop(self, why: str, *, refused: bool = False) -> Stop:
        """Return a Stop to be raised, and remember the first of a run."""
        stop = Stop(why, refused=refused)
        self.stopped = self.stopped or stop
        return stop

    def _count(
        self, meter: Meter, response: Any, chat: bool, expected: int
    ) -> tuple[int | None, int | None]:
        """Count and return the tokens of a prompt and its reply."""
        usage = getattr(response, "usage", None)
        prompt = self._tokens(getattr(usage, "prompt_tokens", None))
        reply = self._tokens(getattr(usage, "completion_tokens", None))
        if not chat:
            reply = 0  # an embedding writes no text
        if prompt is None or reply is None:
            # A budget of tokens holds where the endpoint reports none, too.
            self.budget.tokens += expected
        else:
            self.budget.tokens += prompt + reply
        meter.counts.append((prompt, reply))
        return prompt, reply

    def _tokens(self, reported: object) -> int | None:
        """Return a number of tokens that a server tells, None if it is none; what cannot be is noted once."""
        # Some endpoints count in floats, which the SDK lets pass.
        if not isinstance(reported, int | float):
            return None
        if 0 <= reported <= MOST_TOKENS:
            return int(reported)
        if not self._odd_usage_told:
            self._odd_usage_told = True
            why = (
                f"the endpoint says that a call took {str(reported)[:20]} tokens, which cannot be; such counts "
                "are left out, budgets count what was expected, and the replies are kept"
            )
            warnings.warn(why, RagnbWarning, stacklevel=2)
        return None


def _vectors(response: Any, n: int) -> list[list[float]]:
    """Return the vectors of a reply in the order of their texts."""
    rows = sorted(response.data, key=lambda row: int(row.index))
    if [row.index for row in rows] != list(range(n)):
        raise CallFailed(f"{len(rows)} embeddings came back for {n} texts")
    return [list(row.embedding) for row in rows]


class Again(Exception):
    """A transient error."""


def retry_after(headers: Any) -> float:
    """Return how many seconds a reply asks to wait: ``Retry-After`` in seconds or as a date; 0 without.

    Examples
    --------
    >>> retry_after({"retry-after": "2.5"}), retry_after({})
    (2.5, 0.0)
    """
    text = headers.get("retry-after") or ""
    with suppress(ValueError):
        # In milliseconds, a header of some endpoints that is finer than the standard one.
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        else:
            seconds = float(text)
        return max(0.0, seconds)
    with suppress(ValueError, TypeError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return 0.0


def _text_of(response: Any) -> str:
    """Return the content of a chat completion that came with status 200, if it is whole."""
    # The SDK builds its objects without a check of what came, so any part may be missing.
    choice = (getattr(response, "choices", None) or [None])[0]
    message = getattr(choice, "message", None)
    content = getattr(message, "content", None)
    fault = _fault_in(response, choice, message)
    if fault is None:
        return str(content)
    if hasattr(response, "model_dump_json"):
        whole = response.model_dump_json(warnings=False)
    else:
        whole = str(response)
    raise CallFailed(fault, content or whole)


def _fault_in(response: Any, choice: Any, message: Any) -> str | None:
    """Say why a chat completion has no whole text; None where it has one."""
    if not hasattr(response, "choices"):
        return "the reply is no chat completion but text, perhaps a page of a proxy; check base_url"
    if choice is None:
        return "the reply has no choices"
    finish = getattr(choice, "finish_reason", None)
    if finish == "length":
        return "the reply is cut off (finish_reason=length); allow more max_tokens"
    if finish == "content_filter":
        return "the endpoint's content filter held the reply back"
    refusal = getattr(message, "refusal", None)
    if refusal:
        return f"the model refused: {str(refusal)[:300]}"
    if getattr(message, "content", None) is None:
        return "the reply has no content"
    return None
