"""What may come back instead of a reply, sorted: try again, the cell failed, or the run must stop."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

from pydantic import SecretStr

from ragnb.errors import RagnbError, require
from ragnb.schema import Profile
from ragnb.store.cells import CallFailed, Stop

_REFUSED = (401, 402)
_REFUSED_AT_FIRST = (403, 404)
_PASSING = (408, 409, 425, 429)
_SCHEME = re.compile(r"(?i)^(?:bearer|basic|token|key)\s+")


class Again(Exception):
    """A fault that may pass.

    `wait` is what the endpoint asks for, in seconds; `free` says that it turned the call away unpaid.
    """

    def __init__(self, message: str, wait: float = 0.0, *, free: bool = False) -> None:
        super().__init__(message)
        self.wait, self.free = wait, free


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

    def __call__(self, text: str) -> str:
        """Return the text with ``[key]`` in the place of each key."""
        for secret in self._keys:
            key = secret.get_secret_value()
            if len(key) < 8:
                text = re.sub(rf"(?<!\w){re.escape(key)}(?!\w)", "[key]", text)
                continue
            for form in {json.dumps(key)[1:-1], quote(key, safe=""), quote(key)} - {key}:
                text = text.replace(form, "[key]")
            head, *pieces = text.split(key[:8])
            rest = [os.path.commonprefix([piece, key[8:]]) for piece in pieces]  # noqa: RUF071 - of characters
            pieces = [piece.removeprefix(more) for piece, more in zip(pieces, rest, strict=True)]
            text = "[key]".join([head, *pieces])
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON value with ``[key]`` in the place of each key in its texts."""
        if isinstance(value, Mapping):
            return {self(str(name)): self.value(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return self(value) if isinstance(value, str) else value


def key_of(profile: Profile) -> SecretStr | None:
    """Read the endpoint's key from the environment.

    Raises
    ------
    RagnbError
        Where the variable is not set or blank.

    Examples
    --------
    >>> key_of(Profile(base_url="http://127.0.0.1:8080/v1", model="small")) is None
    True
    """
    return None if profile.api_key_env is None else _variable("api_key_env", profile.api_key_env)


def headers_of(profile: Profile) -> dict[str, SecretStr]:
    """Read the values of a gateway's headers from the environment.

    Raises
    ------
    RagnbError
        Where a variable is not set or blank, or holds what no header can.

    Examples
    --------
    >>> headers_of(Profile(base_url="http://127.0.0.1:8080/v1", model="small"))
    {}
    """
    headers = {}
    for name, variable in (profile.headers_env or {}).items():
        where = f"headers_env.{name}"
        value = _variable(where, variable)
        if not re.fullmatch(r"[\x20-\x7e\t]+", value.get_secret_value()):
            raise RagnbError(
                f"{where}={variable!r}: the value of this environment variable holds a line break or characters "
                "beyond ASCII, which no header can; set it anew"
            )
        # The SDK sends its own under this spelling, which ours must take the place of.
        headers["Authorization" if name.lower() == "authorization" else name] = value
    return headers


def _variable(where: str, name: str) -> SecretStr:
    value = os.environ.get(name, "").strip()
    if not value:
        raise RagnbError(
            f"{where}={name!r}: this environment variable is not set; set it where ragnb runs "
            f"(export {name}=…), and never write the key into a file"
        )
    return SecretStr(value)


def sorted_fault(error: Exception, redact: Redactor, timeout: float, *, fresh: bool) -> Exception:
    """Turn what the SDK raises into one of our three words, without its request, its key or its traceback.

    `fresh`: nothing has been answered yet, so that what is forbidden or not found is so for every call.
    """
    openai = require("openai", extra="judge")
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        return Again(f"no reply within {timeout:g} s")
    if isinstance(error, openai.APIStatusError):
        return _of_status(error, redact, fresh)
    if isinstance(error, openai.APIConnectionError):
        return Again(f"no connection: {redact(_cause(error))}")
    if isinstance(error, openai.APIError | ValueError):
        return CallFailed(f"the reply is none of this API: {redact(_cause(error))[:300]}")
    return CallFailed(f"{type(error).__name__}: {redact(str(error))[:300]}")


def _cause(error: BaseException) -> str:
    cause = error.__cause__ or error
    return f"{type(cause).__name__}: {cause}"


def _of_status(error: Any, redact: Redactor, fresh: bool) -> Exception:
    status, body = int(error.status_code), redact(error.response.text)
    said = f"HTTP {status}: {' '.join(body.split())[:300]}"
    if status in _PASSING or status >= 500:
        if status == 429 and "insufficient_quota" in body:
            return Stop(f"{said}. The account has no credit left; run it again when it has", refused=True)
        return Again(said, retry_after(error.response.headers), free=status == 429)
    if status in _REFUSED or (fresh and status in _REFUSED_AT_FIRST):
        return Stop(f"{said}. Check the key, the account, the model and the base_url", refused=True)
    return CallFailed(said, body)


def pause(state: Any) -> float:
    """Seconds before the next try: what the endpoint asks for, or doubling from half a second, with a jitter."""
    tenacity = require("tenacity", extra="judge")
    doubling = tenacity.wait_random_exponential(0.5, 30, min=0.1)(state)
    return float(max(state.outcome.exception().wait, doubling))


def retry_after(headers: Any) -> float:
    """Return how many seconds a reply asks to wait: ``Retry-After`` in seconds or as a date; 0 without.

    Examples
    --------
    >>> retry_after({"retry-after": "2.5"}), retry_after({})
    (2.5, 0.0)
    """
    text = headers.get("retry-after") or ""
    with suppress(ValueError):
        return max(0.0, float(headers["retry-after-ms"]) / 1000 if "retry-after-ms" in headers else float(text))
    with suppress(ValueError, TypeError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return 0.0


def chat_fault(got: Any, redact: Redactor) -> CallFailed | None:
    """Say what is wrong with a chat completion that came with status 200; None if it is whole."""
    if isinstance(got, str) or not hasattr(got, "choices"):
        return CallFailed("the reply is no chat completion but text, perhaps a page of a proxy; check base_url")
    if not got.choices:
        return CallFailed("the reply has no choices")
    choice = got.choices[0]
    message = choice.message
    if choice.finish_reason == "length":
        return CallFailed("the reply is cut off (finish_reason=length); allow more max_tokens")
    if choice.finish_reason == "content_filter":
        return CallFailed("the endpoint's content filter held the reply back")
    if getattr(message, "refusal", None):
        return CallFailed(f"the model refused: {redact(message.refusal)[:300]}")
    if message is None or message.content is None:
        return CallFailed("the reply has no content")
    return None


def raw_text(got: Any) -> str:
    """The text of a reply as it came: the content, or else the whole reply as JSON."""
    if isinstance(got, str):
        return got
    choices = getattr(got, "choices", None) or []
    content = getattr(getattr(choices[0], "message", None), "content", None) if choices else None
    if isinstance(content, str):
        return content
    return str(got.model_dump_json()) if hasattr(got, "model_dump_json") else repr(got)
