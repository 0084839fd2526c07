"""The sentences that users read, one data file per language."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from ragnb.errors import unknown

LANGUAGES = ("en", "zh")


@cache
def table(lang: str) -> dict[str, Any]:
    """Return all texts of a language, nested as its file nests them.

    Raises
    ------
    RagnbError
        If there is no file for `lang`.

    Examples
    --------
    >>> sorted(table("en")) == sorted(table("zh"))
    True
    """
    if lang not in LANGUAGES:
        raise unknown("lang", lang, LANGUAGES)
    return tomllib.loads(files(__package__).joinpath(f"{lang}.toml").read_text(encoding="utf-8"))


def entry(lang: str, key: str) -> Any:
    """Return the text, list or table at a dotted key; a missing key is an error of ours.

    Examples
    --------
    >>> entry("en", "word.missing")
    'missing'
    """
    node: Any = table(lang)
    for part in key.split("."):
        node = node[part]
    return node


def load(lang: str) -> Callable[..., str]:
    """Return ``say(key, **values)``, which fills a text of that language.

    Values are only put in place: a brace in a value stays a brace.

    Examples
    --------
    >>> load("en")("note.few_clusters", n=3)[:12]
    'This result '
    """
    table(lang)

    def say(key: str, **values: object) -> str:
        return str(entry(lang, key)).format(**values)

    return say


def counted(say: Callable[..., str], key: str, n: object, **values: object) -> str:
    """Fill a text that counts something: ``<key>_one`` for one of it, ``<key>`` else.

    Examples
    --------
    >>> counted(load("en"), "verdict.documents", 1)
    ' from 1 document'
    """
    return say(f"{key}_one" if str(n) == "1" else key, n=n, **values)
