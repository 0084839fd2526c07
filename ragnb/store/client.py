"""Judge calls: cells, outcomes, and the client for OpenAI-compatible endpoints.

Around every call stand keys, limits, retries and budgets.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import secrets
import time
import warnings
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cached_property, lru_cache, partial
from typing import Any, Literal
from urllib.parse import quote

from pydantic import SecretStr

from ragnb.errors import RagnbError, RagnbWarning, listing, require
from ragnb.schema import Profile
from ragnb.schema.secrets import masked, refuse_secrets
from ragnb.store.transport import (
    REPLY_BYTES,
    TRIP,
    Refused,
    Trip,
    http_client,
    proxy_passwords,
    unused_proxy,
)

_REFUSED = (401, 402)
_REFUSED_AT_FIRST = (403, 404)
_NO_KEY = "no-key"
MOST_TOKENS = 10**9  # of one call; a server's larger count is no count
_PASSING = (408, 409, 425, 429)
_SCHEME = re.compile(r"(?i)^(?:bearer|basic|token|key)\s+")


class CallFailed(RagnbError):
    """A call or its reply gives no result: the cell becomes ``failed`` with this reason.

    Parameters
    ----------
    message : str
        The reason.
    reply : str, optional
        The raw text that came, where the client has not kept it as a reply.
    """

    def __init__(self, message: str, reply: str | None = None) -> None:
        super().__init__(message)
        self.reply = reply


class Stop(RagnbError):
    """The run cannot continue for a reason outside of the cells: unfinished cells stay pending.

    Parameters
    ----------
    message : str
        Why, and what to do before the run is taken up again.
    refused : bool
        True where the endpoint would refuse every call (a bad key, an unknown model): then `run_cells` raises
        it. False for a used-up budget or a long wait: then `run_cells` returns what there is, with a warning.
    """

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


def canonical(value: Any) -> str:
    """Return the canonical JSON of a value for keys: sorted, ASCII, arrays as lists.

    Raises
    ------
    RagnbError
        For what JSON cannot hold, NaN and infinity among it.

    Examples
    --------
    >>> canonical({"b": 1, "a": ["甲"]})
    '{"a":["\\\\u7532"],"b":1}'
    """
    try:
        return json.dumps(
            value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_plain
        )
    except (TypeError, ValueError) as error:
        raise RagnbError(f"a {type(value).__name__} cannot be stored as JSON: {error}") from None


def _plain(value: Any) -> Any:
    """NumPy scalars and arrays, tuples' kin and pydantic models as plain values."""
    for name in ("tolist", "model_dump"):
        if hasattr(value, name):
            return getattr(value, name)()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


def digest(text: str) -> str:
    """Return 32 hexadecimal digits of the SHA-256 of a text; lone surrogates count as they are."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, eq=False)
class Cell:
    """One piece of work: this metric or rubric, of this sample, by this model and prompt.

    Parameters
    ----------
    sample_id : str or int
    what : str
        The metric, or the rubric and its mode: ``faithfulness``, ``rubric/peek``.
    inputs : mapping
        All that the work reads of the case, as JSON values (question, answer, contexts …). Only their hash is
        stored.
    model : str
        The model that does the work, or the name and version of a function.
    parameters : mapping
        Temperature, variant, seed: all that may change the result, as JSON values.
    prompt : str
        The text of the prompt, or of all prompts of the work, without the inputs; its hash enters the key.
    repeat : int
        Which of several judgements of the same thing, from 0; see `judge`.
    missing : tuple of str
        Fields that the work needs and the case lacks. Not empty: the cell is ``not_applicable``, and no call
        is made.
    calls, tokens : int
        How many calls, and about how many tokens (prompt and reply), are expected: for budgets and `estimate`.
        Not in the key.
    cluster : str, optional
        The document of the sample, for intervals. Not in the key.

    Examples
    --------
    >>> one = Cell("s1", "faithfulness", {"answer": "Ja."}, model="small")
    >>> one.key == Cell("s1", "faithfulness", {"answer": "Ja."}, model="large").key
    False
    """

    sample_id: str | int
    what: str
    inputs: Mapping[str, Any]
    model: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    prompt: str = ""
    repeat: int = 0
    missing: tuple[str, ...] = ()
    calls: int = 1
    tokens: int = 0
    cluster: str | None = None

    @cached_property
    def about(self) -> dict[str, Any]:
        """What the key is made of: the hashes of inputs and prompt, the rest in clear.

        Raises
        ------
        RagnbError
            For a key of an endpoint among the parameters; see `refuse_secrets`.
        """
        _refuse_keys(canonical(self.parameters))
        hashes = {"inputs": digest(canonical(self.inputs)), "prompt": digest(self.prompt)}
        named = {
            "sample_id": self.sample_id,
            "what": self.what,
            "model": self.model,
            "repeat": self.repeat,
        }
        return named | hashes | {"parameters": self.parameters, "missing": list(self.missing)}

    @cached_property
    def key(self) -> str:
        """32 hexadecimal digits; cells with equal keys are the same work and computed once."""
        return digest(canonical(self.about))


@lru_cache(maxsize=64)
def _refuse_keys(parameters: str) -> None:
    """Look at parameters once, as thousands of cells have the same."""
    refuse_secrets(json.loads(parameters), "parameters")


@dataclass(frozen=True)
class Outcome:
    """The outcome of a cell: ``ok`` and a value, ``not_applicable``, or ``failed`` and a reason.

    The work makes it by `of`, `failed` or `lacking`; the loop adds what the calls of the cell took.

    Parameters
    ----------
    status : {"ok", "not_applicable", "failed"}
    value : JSON value
        Of an ``ok`` cell: a finite number, a text, or a list or mapping of such. None otherwise.
    reason : str, optional
        Why there is no value.
    replies : tuple of str or int
        The raw texts of all replies, in the order they came, or the numbers of their calls in the store.
    calls : int
        Calls that were sent, retries among them.
    tokens_in, tokens_out : int or None
        Of all calls; None where the endpoint did not say.
    seconds : float
        From the start of the cell to its end, waits for a place and for retries among it.

    Examples
    --------
    >>> Outcome.of(0.5).status, Outcome.lacking(["ground_truth_answer"]).reason
    ('ok', 'no ground_truth_answer')
    """

    status: Literal["ok", "not_applicable", "failed"]
    value: Any = None
    reason: str | None = None
    replies: tuple[str | int, ...] = ()
    calls: int = 0
    tokens_in: int | None = 0
    tokens_out: int | None = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if (self.status == "ok") != (self.value is not None):
            raise RagnbError(f"an outcome of status {self.status!r} has the value {self.value!r}")
        canonical(self.value)

    @classmethod
    def of(cls, value: Any) -> Outcome:
        """The work is done: a value."""
        return cls("ok", value)

    @classmethod
    def failed(cls, reason: str, *replies: str) -> Outcome:
        """The work gave no value. `replies` only where they are not those of the client's calls."""
        return cls("failed", None, reason, replies)

    @classmethod
    def lacking(cls, missing: Iterable[str]) -> Outcome:
        """The case lacks fields that the work needs."""
        return cls("not_applicable", None, f"no {', '.join(missing)}")


@dataclass(frozen=True)
class Call:
    """One request that was answered.

    Parameters
    ----------
    key : str or None
        Hash of the request, and of an ordinal where equal requests differ on purpose; see `Meter.key`.
    reply : JSON value
        The text, or the vectors of an embedding.
    tag : str, optional
        The random tag that the request held; see `new_tag`.
    tokens_in, tokens_out : int or None
        None where the endpoint did not say.
    seconds : float
        From the request to its reply, waits for a place and for retries among it.
    """

    key: str | None
    reply: Any
    tag: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    seconds: float = 0.0


Send = Callable[[], Awaitable[Call]]


@dataclass(eq=False)
class Meter:
    """What the calls of one cell have taken so far, and how each is made `once`.

    `replies` holds numbers of calls in the store, and texts of replies that were none; `latest` the last call of
    each asyncio task, at fault if the cell fails; `recalled` calls whose replies came from the store.
    """

    cell: Cell
    once: Callable[[Meter, str, Send], Awaitable[Any]]
    tag: str | None = None
    calls: int = 0
    counts: list[tuple[int | None, int | None]] = field(default_factory=list)
    replies: list[str | int] = field(default_factory=list)
    latest: dict[Any, int] = field(default_factory=dict)
    recalled: list[Call] = field(default_factory=list)
    _asked: Counter[str] = field(default_factory=Counter)

    @property
    def tokens(self) -> list[int | None]:
        """Tokens of the prompts and of the replies; an unreported one makes the sum unknown."""
        return _sums(self.counts)

    @property
    def tokens_of_all(self) -> list[int | None]:
        """The same with those of calls whose replies came from the store."""
        return _sums([*self.counts, *((call.tokens_in, call.tokens_out) for call in self.recalled)])

    def key(self, request: Mapping[str, Any], *, drawn: bool) -> str:
        """Return the key of a call: equal for requests that need to be paid for once.

        The random tag is left out. Replies that are `drawn` (at a temperature) differ on purpose: the key tells
        the cell and the ordinal among its equal requests. Others are shared by all cells of the same repeat.
        """
        text = canonical(request).replace(self.tag or "\0", "")
        self._asked[text] += 1
        return digest(
            canonical(
                [text, self.cell.key, self._asked[text]] if drawn else [text, self.cell.repeat]
            )
        )


def _sums(counts: Iterable[tuple[int | None, int | None]]) -> list[int | None]:
    columns = zip((0, 0), *counts, strict=True)
    return [None if None in column else sum(column) for column in columns]


METER: ContextVar[Meter | None] = ContextVar("METER", default=None)


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


def count_tokens(text: str) -> int:
    """Estimate the number of tokens of a text without the model's tokenizer.

    Four ASCII characters count as one token, and so does each other character: right to about a third for
    English and Chinese.

    Examples
    --------
    >>> count_tokens("Who pays for it?"), count_tokens("谁来付款？")
    (4, 5)
    """
    ascii_ = sum(map(str.isascii, text))
    return -(-ascii_ // 4) + len(text) - ascii_


# The endpoint


@dataclass
class Budget:
    """Calls and tokens: spent so far, and at most.

    Examples
    --------
    >>> budget = Budget(max_calls=2)
    >>> budget.calls += 2
    >>> print(f"{budget}: {budget.full(0)}")
    2 of 2 calls and 0 tokens: the budget of 2 calls is used up; run it again with a larger max_calls \
(--max-calls) to resume
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    calls: int = 0
    tokens: int = 0

    def __str__(self) -> str:
        used = ((self.calls, self.max_calls, "calls"), (self.tokens, self.max_tokens, "tokens"))
        return " and ".join(
            f"{n:,}{'' if most is None else f' of {most:,}'} {what}" for n, most, what in used
        )

    def full(self, tokens: int) -> Stop | None:
        """Say why one further call, of so many tokens, does not fit in; None if it does."""
        for what, used, most, further in (
            ("calls", self.calls, self.max_calls, 1),
            ("tokens", self.tokens, self.max_tokens, tokens),
        ):
            if most is not None and (used + further > most or used >= most):
                room = f"is too small for the next call, which needs about {further:,}"
                state = "is used up" if used >= most else room
                return Stop(
                    f"the budget of {most:,} {what} {state}; run it again with a larger max_{what} "
                    f"(--max-{what}) to resume"
                )
        return None


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
        self._openai = require(
            "openai", extra="judge"
        )  # two seconds, rather here than in the run's first cell
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
        self._quiet_until = 0.0
        self._reserved = 0
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
        placeholder = {"Authorization": SecretStr(f"Bearer {_NO_KEY}")}
        http = http_client(
            self._openai,
            self._headers or placeholder,
            reply_bytes=self.reply_bytes,
            environment=self.profile.proxy_env,
        )
        # The SDK wants a key, and would take one from the environment; the HTTP client sends the profile's alone.
        async with self._openai.AsyncOpenAI(
            api_key=_NO_KEY,
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
        if self._sdk is None or (meter := METER.get()) is None:
            raise RagnbError("the client is not open; use it inside the work function of run_cells")
        if parameters.get("stream"):
            raise CallFailed("streaming is not supported here; leave stream out")
        named = {
            name: value for name, value in parameters.items() if name not in ("messages", "input")
        }
        headers = [masked(str(name)) for name in named.pop("extra_headers", None) or ()]
        if headers:
            why = (
                f"extra_headers {listing(headers)}: only headers that the profile names are sent; name them "
                "there, each with the environment variable of its value: headers_env: {x-org: VARIABLE}"
            )
            raise self._stop(why, refused=True)
        try:
            refuse_secrets(named, "a parameter of the call,")
        except RagnbError as error:
            raise self._stop(str(error), refused=True) from None
        asked = {"model": self.profile.model} | parameters
        key = meter.key(
            {"url": self.profile.base_url, **asked},
            drawn=chat and parameters.get("temperature") != 0,
        )
        return await meter.once(meter, key, partial(self._sent, meter, key, chat, asked))

    async def _sent(self, meter: Meter, key: str, chat: bool, asked: dict[str, Any]) -> Call:
        """Send a request, with retries after transient errors."""
        again = self._tenacity
        tries = again.AsyncRetrying(
            retry=again.retry_if_exception_type(Again),
            stop=again.stop_after_attempt(self.retries + 1),
            wait=self._pause,
            reraise=True,
        )
        started = time.perf_counter()
        try:
            got, counts = await tries(self._try, meter, asked, chat)
            if chat:
                reply = self.redact(_text_of(got))
            else:
                reply = _vectors(got, len(asked["input"]))
            tokens_in, tokens_out = counts
            seconds = time.perf_counter() - started
            return Call(key, reply, meter.tag, tokens_in, tokens_out, seconds)
        except Again as error:
            fault = CallFailed(f"{error} ({self.retries + 1} tries)")
        except CallFailed as error:
            meter.replies += filter(None, [error.reply and self.redact(error.reply)])
            fault = CallFailed(self.redact(str(error)))
        raise fault  # here, as what the SDK raised holds its request

    async def _try(
        self, meter: Meter, asked: dict[str, Any], chat: bool
    ) -> tuple[Any, Iterable[int | None]]:
        """Try once: wait for a slot, send, and return the reply and its counted tokens."""
        if chat:
            endpoint = self._sdk.chat.completions
        else:
            endpoint = self._sdk.embeddings
        async with self._places:
            while (rest := self._quiet_until - time.monotonic()) > 0:
                await asyncio.sleep(rest)
            expected = meter.cell.tokens // max(1, meter.cell.calls)
            while full := self.budget.full(self._reserved + expected):
                if not self._reserved:
                    raise self._stop(str(full))
                await asyncio.sleep(0.01)  # calls under way may need less than is reserved for them
            trip = Trip()
            TRIP.set(trip)
            self.budget.calls += 1
            self._reserved += expected
            try:
                async with asyncio.timeout(self.timeout):
                    got = await endpoint.create(**asked)
            except Exception as error:
                fault = self._fault_of(error)
            else:
                self._answered = True
                return got, self._count(meter, got, chat, expected)
            finally:
                self._reserved -= expected
                meter.calls += trip.has_left
                self.sent += trip.has_left
                self.budget.calls -= not trip.has_left  # what never left is no call
        raise fault

    def _fault_of(self, error: Exception) -> Exception:
        """Translate an exception of the SDK into one of ours, without its request, key or traceback."""
        cause = error.__cause__ or error
        openai = self._openai
        text = self.redact(f"{type(cause).__name__}: {cause}")
        if isinstance(cause, Refused):
            reason = self.redact(str(cause))
            is_for_all = cause.for_all and not self._answered
            if is_for_all:
                return self._stop(reason, refused=True)
            return CallFailed(reason)
        if isinstance(error, openai.APITimeoutError | TimeoutError):
            return Again(f"no reply within {self.timeout:g} s")
        if isinstance(error, openai.APIConnectionError):
            return Again(f"no connection: {text}{self._proxy_hint()}")
        if not isinstance(error, openai.APIStatusError):
            known = isinstance(error, openai.APIError | ValueError)
            return CallFailed(
                f"the reply is none of this API: {text[:300]}" if known else text[:300]
            )
        status = int(error.status_code)
        body = self.redact(error.response.text)
        reason = f"HTTP {status}: {' '.join(body.split())[:300]}"
        if status == 429 and "insufficient_quota" in body:
            return self._stop(
                f"{reason}. The account has no credit left; run it again when it has", refused=True
            )
        if status in _PASSING or status >= 500:
            self.budget.calls -= status == 429  # rejected requests are free
            if (wait := retry_after(error.response.headers)) > self.patience:
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
        stop = Stop(why, refused=refused)
        self.stopped = self.stopped or stop
        return stop

    def _count(
        self, meter: Meter, got: Any, chat: bool, expected: int
    ) -> tuple[int | None, int | None]:
        """Count and return the tokens of a prompt and its reply."""
        usage = getattr(got, "usage", None)
        prompt = self._tokens(getattr(usage, "prompt_tokens", None))
        reply = self._tokens(getattr(usage, "completion_tokens", None))
        if not chat:
            reply = 0
        if prompt is None or reply is None:
            self.budget.tokens += expected
        else:
            self.budget.tokens += prompt + reply
        meter.counts.append((prompt, reply))
        return prompt, reply

    def _tokens(self, told: object) -> int | None:
        """Return a number of tokens that a server tells, None if it is none; what cannot be is noted once."""
        # Some endpoints count in floats, which the SDK lets pass.
        if not isinstance(told, int | float):
            return None
        if 0 <= told <= MOST_TOKENS:
            return int(told)
        if not self._odd_usage_told:
            self._odd_usage_told = True
            why = (
                f"the endpoint says that a call took {str(told)[:20]} tokens, which cannot be; such counts are "
                "left out, budgets count what was expected, and the replies are kept"
            )
            warnings.warn(why, RagnbWarning, stacklevel=2)
        return None


def _vectors(got: Any, n: int) -> list[list[float]]:
    """Return the vectors of a reply in the order of their texts."""
    rows = sorted(got.data, key=lambda row: int(row.index))
    if [row.index for row in rows] != list(range(n)):
        raise CallFailed(f"{len(rows)} embeddings came back for {n} texts")
    return [list(row.embedding) for row in rows]


# Keys


class Redactor:
    """Takes keys out of texts: whole, as JSON or a URL writes them, and their beginnings of 8 characters and more.

    A header's value of fewer than 8 characters is taken out where it stands as a word of its own.

    Examples
    --------
    >>> Redactor(SecretStr("k-123456789"))("Incorrect API key: k-12345678***")
    'Incorrect API key: [key]***'
    """

    def __init__(self, *keys: SecretStr | None) -> None:
        # An endpoint may echo what follows "Bearer" alone. Longest first, as one key may begin another.
        plain = {_SCHEME.sub("", key.get_secret_value()) for key in keys if key is not None}
        self._keys = [SecretStr(key) for key in sorted(plain, key=len, reverse=True)]

    def __call__(self, value: Any) -> Any:
        """Return a text, or a JSON value, with ``[key]`` in the place of each key in its texts."""
        if isinstance(value, Mapping):
            return {self(str(name)): self(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self(item) for item in value]
        for secret in self._keys if isinstance(value, str) else ():
            if len(key := secret.get_secret_value()) < 8:
                value = re.sub(rf"(?<!\w){re.escape(key)}(?!\w)", "[key]", value)
                continue
            for form in {json.dumps(key)[1:-1], quote(key, safe=""), quote(key)} - {key}:
                value = value.replace(form, "[key]")
            head, *pieces = value.split(key[:8])
            pieces = [piece[len(os.path.commonprefix([piece, key[8:]])) :] for piece in pieces]  # noqa: RUF071
            value = "[key]".join([head, *pieces])
        return value


def headers_of(profile: Profile) -> dict[str, SecretStr]:
    """Return the headers that a profile names, with their values from the environment."""
    headers = {}
    if profile.api_key_env is not None:
        key = _variable("api_key_env", profile.api_key_env).get_secret_value()
        headers["Authorization"] = SecretStr(f"Bearer {key}")
    for name, variable in (profile.headers_env or {}).items():
        # A header of this name takes the place of the key's.
        is_authorization = name.lower() == "authorization"
        headers["Authorization" if is_authorization else name] = _variable(
            f"headers_env.{name}", variable
        )
    return headers


def _variable(where: str, name: str) -> SecretStr:
    """Read a value that is to be sent as a header."""
    value = os.environ.get(name, "").strip()
    if not value:
        raise RagnbError(
            f"{where}={name!r}: this environment variable is not set; set it where ragnb runs "
            f"(export {name}=…), and never write the key into a file"
        )
    if not re.fullmatch(r"[\x20-\x7e\t]+", value):
        raise RagnbError(
            f"{where}={name!r}: the value of this environment variable contains a line break or non-ASCII "
            "characters, which a header cannot; set it again"
        )
    return SecretStr(value)


# Faults


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
        return max(
            0.0,
            float(headers["retry-after-ms"]) / 1000 if "retry-after-ms" in headers else float(text),
        )
    with suppress(ValueError, TypeError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return 0.0


def _text_of(got: Any) -> str:
    """Return the content of a chat completion that came with status 200, if it is whole."""
    choice = (getattr(got, "choices", None) or [None])[0]
    message = getattr(choice, "message", None)
    finish = getattr(choice, "finish_reason", None)
    content = getattr(message, "content", None)
    refusal = getattr(message, "refusal", None)
    page = "the reply is no chat completion but text, perhaps a page of a proxy; check base_url"
    faults = {
        page: not hasattr(got, "choices"),
        "the reply has no choices": choice is None,
        "the reply is cut off (finish_reason=length); allow more max_tokens": finish == "length",
        "the endpoint's content filter held the reply back": finish == "content_filter",
        f"the model refused: {str(refusal)[:300]}": refusal,
        "the reply has no content": content is None,
    }
    if fault := next((words for words, is_so in faults.items() if is_so), None):
        if hasattr(got, "model_dump_json"):
            whole = got.model_dump_json(warnings=False)
        else:
            whole = str(got)
        raise CallFailed(fault, content or whole)
    return str(content)
