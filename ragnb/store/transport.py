"""The HTTP client below every call: what leaves, where it goes, and how much may come back.

Every stage asks its model through `ragnb.store.Client`, which hands `http_client` to the SDK in place of the SDK's
own. That one would follow redirects with all headers, take proxies and headers from the environment, and read a
reply of any size.
"""

from __future__ import annotations

import importlib
import logging
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urljoin, urlsplit

from pydantic import SecretStr

from ragnb import __version__
from ragnb.schema.secrets import masked

LOG = logging.getLogger("ragnb")
"""Each request with its address, status and time, at level DEBUG; never a text, a header or a key."""
LOG.addHandler(logging.NullHandler())

REPLY_BYTES = 8_000_000
"""The largest body of a reply that is read, in bytes."""

_OF_HTTP = ("host", "connection", "content-type", "content-length", "accept")
"""Headers that a request with a JSON body needs; all others are ours or the profile's."""

_PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")


class Refused(Exception):
    """A reply that is not read; the message says why.

    Parameters
    ----------
    message : str
    for_all : bool
        Whether the endpoint would answer any request in this way.
    """

    def __init__(self, message: str, *, for_all: bool = False) -> None:
        super().__init__(message)
        self.for_all = for_all


@dataclass
class Trip:
    """Whether a request has left for the endpoint; one whose connection was refused never does."""

    has_left: bool = False


TRIP: ContextVar[Trip] = ContextVar("TRIP")
"""The request that the current task sends."""


def http_client(
    openai: Any, headers: Mapping[str, SecretStr], *, reply_bytes: int, environment: bool
) -> Any:
    """Return the HTTP client for one endpoint.

    Parameters
    ----------
    openai : module
        The SDK, whose kind of client it is.
    headers : mapping
        All headers that are sent beside those of HTTP itself.
    reply_bytes : int
        The largest body of a reply that is read.
    environment : bool
        Whether proxies and certificates of the environment are used.
    """
    # The SDK changed its HTTP library in version 3 (httpx to httpx2); a stream has to be of the same one.
    name = openai.DefaultAsyncHttpxClient.__base__.__module__.partition(".")[0]
    http = importlib.import_module(name)
    stream_class = _capped_stream(http.AsyncByteStream)

    async def before(request: Any) -> None:
        _keep_named_headers(request, headers)
        request.extensions["trace"] = _note_departure
        request.extensions["ragnb_started"] = time.monotonic()

    async def after(response: Any) -> None:
        if LOG.isEnabledFor(logging.DEBUG):
            request = response.request
            seconds = time.monotonic() - request.extensions["ragnb_started"]
            address = shown_url(str(request.url))
            LOG.debug("%s %s: %s, %.2f s", request.method, address, response.status_code, seconds)
        _refuse_redirect(response)
        _refuse_compressed(response)
        _refuse_announced(response, reply_bytes)
        response.stream = stream_class(response.stream, reply_bytes)

    # True makes the library read its certificates from the environment (SSL_CERT_FILE), too.
    verify = True if environment else _certificates(http)
    return openai.DefaultAsyncHttpxClient(
        follow_redirects=False,
        trust_env=environment,
        verify=verify,
        event_hooks={"request": [before], "response": [after]},
    )


@cache
def _certificates(http: Any) -> Any:
    """Return the TLS settings with the certificates that come with the HTTP library; reading them takes 70 ms."""
    return http.create_ssl_context(trust_env=False)


def _keep_named_headers(request: Any, headers: Mapping[str, SecretStr]) -> None:
    """Leave only what the profile names: the SDK adds headers of the environment and of this machine."""
    for name in list(request.headers):
        if name.lower() not in _OF_HTTP:
            del request.headers[name]
    # A compressed body of 8 MB may unpack to gigabytes.
    request.headers["Accept-Encoding"] = "identity"
    request.headers["User-Agent"] = f"ragnb/{__version__}"
    for name, value in headers.items():
        request.headers[name] = value.get_secret_value()


async def _note_departure(event: str, info: Mapping[str, Any]) -> None:
    """Note when the request begins to be written; the CONNECT that a proxy is asked first is not the request."""
    if event.endswith(".send_request_headers.started") and info["request"].method != b"CONNECT":
        TRIP.get().has_left = True


def _refuse_redirect(response: Any) -> None:
    if not 300 <= response.status_code < 400:
        return
    target = shown_url(response.headers.get("location") or "", str(response.request.url))
    raise Refused(
        f"HTTP {response.status_code}: the endpoint redirects to {target}, and nothing was sent there. "
        "If that is the address of your endpoint, set base_url to it",
        for_all=True,
    )


def shown_url(url: str, base: str = "") -> str:
    """Return an address for a message: without user, query and fragment, where keys and questions may be.

    It may be relative to a `base`.

    Examples
    --------
    >>> shown_url("https://me:secret@other.example:8443/v1/chat?q=Who#x")
    'https://other.example:8443/v1/chat'
    """
    try:
        parts = urlsplit(urljoin(base, url))
        host = (parts.hostname or "") + (f":{parts.port}" if parts.port else "")
    except ValueError:  # an address that is none
        return "an address that cannot be read"
    return masked(f"{parts.scheme}://{host}{parts.path}")[:200]


def _refuse_compressed(response: Any) -> None:
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise Refused(
            f"the reply is compressed ({masked(encoding[:40])}) although plain text was asked for; turn "
            "compression off at the endpoint or its proxy"
        )


def _refuse_announced(response: Any, most: int) -> None:
    """Refuse a reply that says that it is too large; any other is capped while it is read."""
    announced = response.headers.get("content-length", "")
    # Python refuses to make a number of a text of thousands of digits.
    if announced.isdecimal() and int(announced[:20]) > most:
        raise _too_large(most)


def _too_large(most: int) -> Refused:
    return Refused(
        f"the reply is larger than {most / 1e6:g} MB and was not read to its end; a larger reply_bytes of the "
        "Client allows it"
    )


def _capped_stream(stream: Any) -> Any:
    """Return a class of streams that end with an error at a number of bytes."""

    class Capped(stream):  # type: ignore[misc]
        def __init__(self, inner: Any, most: int) -> None:
            self.inner = inner
            self.most = most

        async def __aiter__(self) -> AsyncIterator[bytes]:
            read = 0
            async for part in self.inner:
                read += len(part)
                if read > self.most:
                    raise _too_large(self.most)
                yield part

        async def aclose(self) -> None:
            await self.inner.aclose()

    return Capped


def unused_proxy() -> str | None:
    """Return the name of an environment variable that sets a proxy; None where there is none.

    Examples
    --------
    >>> unused_proxy() is None or unused_proxy().upper() in _PROXIES
    True
    """
    names = [spelt for name in _PROXIES for spelt in (name, name.lower())]
    return next((name for name in names if os.environ.get(name)), None)


def proxy_passwords() -> list[SecretStr]:
    """Return the passwords in the addresses of proxies, as text and as a proxy is sent them.

    Examples
    --------
    >>> all(isinstance(password, SecretStr) for password in proxy_passwords())
    True
    """
    import base64

    passwords = []
    for name in _PROXIES:
        for address in (os.environ.get(name), os.environ.get(name.lower())):
            user_and_password = urlsplit(address or "").netloc.rpartition("@")[0]
            _, _, password = user_and_password.partition(":")
            if password:
                encoded = base64.b64encode(user_and_password.encode()).decode()
                passwords += [SecretStr(password), SecretStr(encoded)]
    return passwords
