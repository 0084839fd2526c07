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
