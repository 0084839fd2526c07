"""Keys and headers of a profile: where they are read from, and how they are kept out of every text."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from pydantic import SecretStr

from ragnb.errors import RagnbError
from ragnb.schema import Profile

NO_KEY = "no-key"
_SCHEME = re.compile(r"(?i)^(?:bearer|basic|token|key)\s+")


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
        if isinstance(value, str):
            for secret in self._keys:
                value = _without_key(value, secret.get_secret_value())
        return value


def _without_key(text: str, key: str) -> str:
    """Return a text with ``[key]`` in the place of a key, whole, as it is written elsewhere, or its beginning."""
    if len(key) < 8:
        return re.sub(rf"(?<!\w){re.escape(key)}(?!\w)", "[key]", text)
    for form in {json.dumps(key)[1:-1], quote(key, safe=""), quote(key)} - {key}:
        text = text.replace(form, "[key]")
    # Endpoints quote a key with its end replaced by stars, or cut: take out as much as follows of it.
    before, *parts = text.split(key[:8])
    rests = []
    for part in parts:
        # Of any texts, sign by sign; paths play no role here.
        following = os.path.commonprefix([part, key[8:]])  # noqa: RUF071
        rests.append(part[len(following) :])
    return "[key]".join([before, *rests])


def headers_of(profile: Profile) -> dict[str, SecretStr]:
    """Return the headers that a profile names, with their values from the environment."""
    headers = {}
    if profile.api_key_env is not None:
        key = _variable("api_key_env", profile.api_key_env).get_secret_value()
        headers["Authorization"] = SecretStr(f"Bearer {key}")
    for name, variable in (profile.headers_env or {}).items():
        # A header of this name takes the place of the key's.
        header = "Authorization" if name.lower() == "authorization" else name
        headers[header] = _variable(f"headers_env.{name}", variable)
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
