"""Endpoints of models, which hold the names of the variables of their keys, and never a key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    model_validator,
)

from ragnb.schema.base import Flag, Frozen
from ragnb.schema.secrets import (
    holds_secret,
    is_secret_name,
    masked,
    url_holds_secret,
)

# The small models that users pass around

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
_OURS = (
    "host",
    "connection",
    "content-length",
    "content-type",
    "transfer-encoding",
    "accept-encoding",
)
_LITERAL = "contains what looks like a key; put the key in an environment variable and its name in api_key_env"


def _endpoint(url: str) -> str:
    if not re.fullmatch(r"https?://[^/@\s?#]+(/[^?#\s]*)?", url):
        raise ValueError("base_url must be http(s)://host/… without a user, a key or a query in it")
    if url_holds_secret(url):
        raise ValueError(_LITERAL)
    return url


def _model_name(model: str) -> str:
    if holds_secret(model):
        raise ValueError(_LITERAL)
    return model


def _variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name) or holds_secret(name):
        raise ValueError(
            "api_key_env must be an environment variable's name (A-Z, 0-9, _), not a key"
        )
    return name


def _headers(headers: dict[str, str]) -> dict[str, str]:
    names = [header.lower() for header in headers]
    for header, variable in headers.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}", header) or holds_secret(header):
            raise ValueError(
                "headers_env contains an invalid header name; write {api-key: VARIABLE}"
            )
        if names.count(header.lower()) > 1 or header.lower() in _OURS:
            if header.lower() in _OURS:
                why = "is sent by ragnb itself"
            else:
                why = "appears twice"
            raise ValueError(f"headers_env.{header} {why}; leave it out")
        if not _VARIABLE.fullmatch(variable) or holds_secret(variable):
            raise ValueError(
                f"headers_env.{header} must be an environment variable's name (A-Z, 0-9, _), not the value"
            )
    return headers


class Profile(Frozen):
    """An OpenAI-compatible endpoint: base URL, model, and the NAMES of the variables that hold its keys.

    Parameters
    ----------
    base_url, model : str
    api_key_env : str, optional
        The environment variable of the key; without one a placeholder is sent, as local servers want.
    headers_env : mapping of str to str, optional
        Headers that a gateway wants, each with the environment variable that holds its value.
    proxy_env : bool
        Whether proxies (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY) and certificates (SSL_CERT_FILE,
        SSL_CERT_DIR) of the environment are used. By default nothing of the environment is.

    Examples
    --------
    >>> Profile(base_url="http://127.0.0.1:8080/v1", model="small", api_key_env="JUDGE_KEY").model
    'small'
    """

    base_url: Annotated[str, AfterValidator(_endpoint)]
    model: Annotated[str, AfterValidator(_model_name)]
    api_key_env: Annotated[str, AfterValidator(_variable)] | None = None
    headers_env: Annotated[dict[str, str], AfterValidator(_headers)] | None = None
    proxy_env: Flag = False

    @model_validator(mode="before")
    @classmethod
    def _no_key(cls, data: Any) -> Any:
        for name in map(str, data if isinstance(data, Mapping) else ()):
            if name not in cls.model_fields and (is_secret_name(name) or holds_secret(name)):
                raise ValueError(
                    f"{masked(name)!r} contains a key; put it in an environment variable, named in "
                    "'api_key_env', or for a header in 'headers_env: {api-key: VARIABLE}'"
                )
        return data

    @property
    def variables(self) -> list[str]:
        """The environment variables that hold its keys."""
        return [name for name in (self.api_key_env, *(self.headers_env or {}).values()) if name]
