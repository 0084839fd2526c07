"""What looks like a key: refused in what is sent with a call, masked in what is shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ragnb.errors import RagnbError

_HEX = r"(?<![A-Za-z0-9])(?=[0-9]*[a-fA-F])[0-9a-fA-F]{32,}(?![A-Za-z0-9])"
_MARKED = re.compile(
    r"(?<![A-Za-z0-9])(?:sk[-_][^\s'\x22,;(){}\[\]]{8,}|(?:pk|rk|gsk)[-_][\w\-]{8,})"
    r"|(?<![A-Za-z0-9])(?:hf_|gh[pousr]_|github_pat_|glpat-|xox[abprs]-|xai-|pplx-|nvapi-|AKIA|ASIA|AIza|ya29\.)"
    r"[\w\-]{12,}"
    r"|(?<![A-Za-z0-9])eyJ[\w\-]{10,400}\.[\w\-.]*"
    r"|(?i:bearer)\s+\S{8,}"
    r"|(?i:basic)\s+[A-Za-z0-9+/]{8,}={1,2}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|://[^/\s:@]+:[^/\s@]+@"
)
_SECRET = re.compile(f"{_MARKED.pattern}|{_HEX}")
_RUN = re.compile(r"[A-Za-z0-9+/_=~.\-]{20,}")

# Names are compared without case and separators, so that apiKey, api-key and API_KEY are one.
_NAME = re.compile(
    r"apikey|jwt|secret|passw|passphrase|pwd$|credential|authori[sz]ation|bearer|cookie|headers?$|^x?o?auth$"
    r"|(?:access|private|auth|subscription|account)keys?$"
    r"|(?:api|access|auth|bearer|refresh|session|security|personal|id)tokens$|token$"
)
_OF_A_MODEL = re.compile(
    r"(?:[bu]os|eo[sdtm]|pad|unk|sep|cls|mask|stop|start|begin|end|special|image|audio|video|vision|think|thinking"
    r"|reasoning|tool|first|next|last|new|max|min|per|prefix|suffix|fill|fim|middle|bad|forced|decoder|budget"
    r"|delimiter|separator|trigger|placeholder)token$"
)
_KEY = re.compile(r"(?:[^a-zA-Z](?i:key)|[a-z]Key)s?\W*$")
_OF_A_ROW = re.compile(r"(?:cache|sort|primary|foreign|partition|group|routing|idempotency)keys?$")
_IDENTIFIER = re.compile(r"(?:^|[_-])(?:id|ids|user|identifier|cache_key|cache_salt|fingerprint|hash|revision)$")
_SCHEMA = ("properties", "$defs", "definitions", "patternProperties")


def holds_secret(text: str) -> bool:
    """Whether the text holds something of the form of a key.

    Examples
    --------
    >>> holds_secret("sk-" + "a1" * 8), holds_secret("task-force-report-2024.pdf")
    (True, False)
    """
    return _SECRET.search(text) is not None


def masked(text: str) -> str:
    """Put ``***`` where the text holds something of the form of a key.

    Examples
    --------
    >>> masked("https://host/?k=sk-" + "a1" * 8)
    'https://host/?k=***'
    """
    return _SECRET.sub("***", text)


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name holds a key: ``api_key``, ``auth_token``, not ``max_tokens``.

    Examples
    --------
    >>> is_secret_name("x-goog-apiKey"), is_secret_name("pad_token")
    (True, False)
    """
    flat = re.sub(r"[^a-z]", "", name.lower())
    named = _NAME.search(flat) or (_KEY.search(name) and not _OF_A_ROW.search(flat))
    return bool(named) and _OF_A_MODEL.search(flat) is None


def refuse_secrets(sent: Mapping[str, Any], where: str) -> None:
    """Refuse keys among what is sent with a call, nested ones too: by their names, and by what they look like.

    Parameters
    ----------
    sent : mapping
        Parameters of a call, such as ``temperature``, ``stop`` or ``response_format``.
    where : str
        What the message calls them, such as ``--send``.

    Raises
    ------
    RagnbError
        With the name alone, never the value, and where to put a key instead.

    Examples
    --------
    >>> refuse_secrets({"seed": 7, "stop": ["###"], "max_tokens": 900}, "--send")
    >>> refuse_secrets({"extra_body": {"api-key": "mine"}}, "--send")
    Traceback (most recent call last):
    ragnb.errors.RagnbError: --send extra_body.api-key: this looks like a key, and what is sent with a call is \
kept in the store; put it in an environment variable and name that in the profile: api_key_env: VARIABLE for \
the endpoint's key, headers_env: {api-key: VARIABLE} for a header
    """
    paths: list[tuple[str, ...]] = []
    _cleaned(sent, (), paths)
    if paths:
        name = ".".join(map(_without_keys, paths[0]))
        raise RagnbError(
            f"{where} {name}: this looks like a key, and what is sent with a call is kept in the store; put it in "
            "an environment variable and name that in the profile: api_key_env: VARIABLE for the endpoint's key, "
            "headers_env: {api-key: VARIABLE} for a header"
        )


def without_secrets(value: Any) -> Any:
    """Return a JSON value with ``***`` in place of all that `refuse_secrets` would refuse.

    Examples
    --------
    >>> without_secrets({"seed": 7, "api_key": "mine", "texts": ["Bearer " + "a1" * 8]})
    {'seed': 7, 'api_key': '***', 'texts': ['***']}
    """
    return _cleaned(value, (), [])


def _cleaned(value: Any, path: tuple[str, ...], paths: list[tuple[str, ...]]) -> Any:
    """Return a value without what looks like a key; the places of that are added to `paths`."""
    if isinstance(value, Mapping):
        made = {}
        for name, item in value.items():
            here, clean = (*path, str(name)), _without_keys(str(name))
            # A JSON schema may describe a field of any name; below the top, {"key": …} is an ordinary one.
            described = path[-1:] and path[-1] in _SCHEMA and isinstance(item, Mapping | bool)
            named = not described and (here == ("key",) or is_secret_name(str(name))) and _may_be_key(name, item)
            if named or clean != str(name):
                paths.append(here)
            made[clean] = "***" if named else _cleaned(item, here, paths)
        return made
    if isinstance(value, list | tuple):
        return [_cleaned(item, path, paths) for item in value]
    if not isinstance(value, str):
        return value
    # The ids of users and caches are often hashes.
    clean = _without_keys(value, random=not (path and _IDENTIFIER.search(path[-1].lower())))
    if clean != value:
        paths.append(path)
    return clean


def _may_be_key(name: Any, value: Any) -> bool:
    """Nothing, true and false are no key; nor is a number that is called a token."""
    number = isinstance(value, int | float) and str(name).lower().endswith("token")
    return not (value is None or value == "" or isinstance(value, bool) or number)


def _without_keys(text: str, *, random: bool = True) -> str:
    if not random:
        return _MARKED.sub("***", text)
    return _RUN.sub(lambda run: "***" if is_random(run[0]) else run[0], masked(text))


def is_random(text: str) -> bool:
    """Whether an unbroken text changes between letters, digits and cases as only random ones do.

    Of 3,000 random keys of 32 characters it finds 99 % in base 62 and 94 % in base 64; of 46,000 names and texts
    in the sources of six libraries it takes 40 for random, all of them hashes and ids.

    Examples
    --------
    >>> is_random("q7Rk2ZpX9vB4mT6wY1cN8dL3"), is_random("meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8")
    (True, False)
    """
    parts = [part for part in re.split(r"[^A-Za-z0-9]+", text) if part]
    longest, length = max(parts, key=len, default=""), sum(map(len, parts))
    turns = len(re.findall(r"(?<=\d)(?=[A-Za-z])|(?<=[A-Za-z])(?=\d)", longest))
    if len(longest) >= 20 and turns >= 3 and _changes(longest) >= len(longest) / 5:
        return True
    return length >= 28 and len(parts) - 1 <= length / 12 and sum(map(_changes, parts)) >= length / 4


def _changes(text: str) -> int:
    """How often a text changes between digits, capitals and small letters; a capitalised word is no change."""
    return len(re.findall(r"(?<=\d)(?=\D)|(?<=\D)(?=\d)|(?<=[a-z])(?=[A-Z])", text))
