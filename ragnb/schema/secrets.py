"""Secrets: refused among call parameters, masked in output."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ragnb.errors import RagnbError

_TABLE = tomllib.loads(Path(__file__).with_name("secrets.toml").read_text(encoding="utf-8"))
_LOOKS = {name: re.compile("|".join(patterns)) for name, patterns in _TABLE.items()}
_SECRET = re.compile("|".join(_TABLE["marked"] + _TABLE["hex"]))
_SCHEMA = ("properties", "$defs", "definitions", "patternProperties")


def holds_secret(text: str) -> bool:
    """Whether a text contains something that looks like a key.

    Examples
    --------
    >>> holds_secret("sk-" + "a1" * 8), holds_secret("task-force-report-2024.pdf")
    (True, False)
    """
    return _SECRET.search(_folded(text)) is not None


def masked(text: str) -> str:
    """Mask whatever looks like a key in a text with ``***``.

    Examples
    --------
    >>> masked("https://host/?k=sk-" + "a1" * 8)
    'https://host/?k=***'
    """
    if not _SECRET.search(text) and holds_secret(text):
        # A key that is written in other forms of its characters.
        text = _folded(text)
    return _SECRET.sub("***", text)


def shown(value: object, most: int = 80) -> str:
    """Show a value in a message: short, escaped, masked; of a container only what it is.

    Examples
    --------
    >>> shown("0.3"), shown(True), shown([1, 2]), shown(None)
    ("'0.3'", 'true', 'a list', 'nothing')
    """
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple | set | frozenset):
        return "a list"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, str):
        text = masked(value)
        return repr(text if len(text) <= most else f"{text[:most]}…")
    if isinstance(value, int | float):
        return masked(repr(value))[:most]
    return f"a {type(value).__name__}"


def _folded(text: str) -> str:
    """Return a text with its characters in their plain forms: full-width letters are letters."""
    return unicodedata.normalize("NFKC", text)


def url_holds_secret(url: str) -> bool:
    """Whether the address of an endpoint holds a key: by its form, in a random part, or behind a name of a key.

    Examples
    --------
    >>> url_holds_secret("https://host/v1;key=mine"), url_holds_secret("https://host/openai/v1")
    (True, False)
    """
    text = _folded(unquote(url))
    # With the signs between the parts: the first six are the scheme, the host and the slashes behind them.
    parts = re.split(r"([/;&])", text)
    names = []
    for part in parts:
        name, sign, _ = part.partition("=")
        if sign:
            names.append(name)
    # A folder may be called auth; what follows a key's name there is one if it has digits.
    for name, next_part in zip(parts, parts[2:], strict=False):
        if name != "auth" and re.match(r"(?=.*\d).{6}", next_part):
            names.append(name)
    if holds_secret(text) or any(map(is_secret_name, names)):
        return True
    return any(map(is_random, parts[6:]))


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name holds a key: ``api_key``, ``auth_token``, not ``max_tokens``.

    Examples
    --------
    >>> is_secret_name("x-goog-apiKey"), is_secret_name("pad_token")
    (True, False)
    """
    name = _folded(name)
    if _LOOKS["chinese"].search(name):
        return True
    letters = re.sub(r"[^a-z]", "", name.lower())
    if _LOOKS["of_a_model"].search(letters):
        return False
    if _LOOKS["name"].search(letters):
        return True
    is_key = _LOOKS["key"].search(name) is not None
    return is_key and not _LOOKS["of_a_row"].search(letters)


def refuse_secrets(sent: Mapping[str, Any], where: str) -> None:
    """Refuse keys among call parameters, also nested: by their names, and by their form.

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
        is_in_schema = bool(path) and path[-1] in _SCHEMA
        cleaned = {}
        for name, item in value.items():
            here = (*path, str(name))
            clean_name = _without_keys(str(name))
            # A JSON schema may describe a field of any name.
            is_described = is_in_schema and isinstance(item, Mapping | bool)
            is_named = not is_described and is_secret_name(str(name)) and _may_be_key(here, item)
            if is_named or clean_name != str(name):
                paths.append(here)
            cleaned[clean_name] = "***" if is_named else _cleaned(item, here, paths)
        return cleaned
    if isinstance(value, list | tuple):
        return [_cleaned(item, path, paths) for item in value]
    if not isinstance(value, str):
        return value
    # The ids of users and caches are often hashes.
    is_identifier = bool(path) and _LOOKS["identifier"].search(path[-1].lower()) is not None
    clean = _without_keys(value, random=not is_identifier)
    if clean != value:
        paths.append(path)
    return clean


def _may_be_key(path: tuple[str, ...], value: Any) -> bool:
    """Nothing, true and false are no key; nor are numbers called tokens, nor words of a ``key`` below the top."""
    if value is None or value == "" or isinstance(value, bool):
        return False
    name = path[-1].lower()
    if name.endswith(("token", "tokens")):  # such as tokens: 512, or a list of them
        items = value if isinstance(value, list | tuple) else [value]
        if all(isinstance(item, int | float) for item in items):
            return False
    is_below_top = len(path) > 1
    is_word = name == "key" and re.fullmatch(r"[a-z_ ]{,12}", str(value)) is not None
    return not (is_below_top and is_word)


def _without_keys(text: str, *, random: bool = True) -> str:
    """Mask keys in a text: by a name before them, by their form, and, with `random`, by how they change."""

    def mask_assigned(match: re.Match[str]) -> str:
        return f"{match[1]}=***" if is_secret_name(match[1]) else match[0]

    def mask_random(match: re.Match[str]) -> str:
        return "***" if is_random(match[0]) else match[0]

    clean = _LOOKS["assigned"].sub(mask_assigned, text)
    if not random:
        return _LOOKS["marked"].sub("***", clean)
    clean = _LOOKS["unbroken"].sub(mask_random, masked(clean))
    if clean != text:
        return clean
    # A key may be written in other forms of its characters, such as full-width ones.
    folded = _folded(text)
    if folded != text:
        clean_folded = _without_keys(folded)
        if clean_folded != folded:
            return clean_folded
    return clean


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
    # One part alone, as in base 62.
    longest = max(parts, key=len, default="")
    turns = len(re.findall(r"(?<=\d)(?=[A-Za-z])|(?<=[A-Za-z])(?=\d)", longest))
    if len(longest) >= 20 and turns >= 3 and _changes(longest) >= len(longest) / 5:
        return True
    # A few signs in between, as in base 64.
    length = sum(map(len, parts))
    n_signs = len(parts) - 1
    n_changes = sum(map(_changes, parts))
    return length >= 28 and n_signs <= length / 12 and n_changes >= length / 4


def _changes(text: str) -> int:
    """How often a text changes between digits, capitals and small letters; a capitalised word is no change."""
    return len(re.findall(r"(?<=\d)(?=\D)|(?<=\D)(?=\d)|(?<=[a-z])(?=[A-Z])", text))
