"""Names of measures of operation: how long an answer took, how many tokens it needed, what it cost."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from typing import Literal

_TABLE = tomllib.loads(files(__package__).joinpath("operations.toml").read_text(encoding="utf-8"))
_WORDS = frozenset(_TABLE["words"])
_NEVER = frozenset(_TABLE["never"]["words"])
_SIGNS = tuple(_TABLE["signs"]["any"])
_BESIDE = {word: frozenset(others) for word, others in _TABLE["beside"].items()}
_HIGHER = frozenset(_TABLE["higher"]["words"])
_KINDS = {kind: frozenset(words) for kind, words in _TABLE["kinds"].items()}
_KIND_SIGNS = {kind: tuple(signs) for kind, signs in _TABLE["kind_signs"].items()}
_UNITS = {unit: frozenset(words) for unit, words in _TABLE["units"].items()}
_QUANTILE = re.compile(r"(?:p(\d{1,2}(?:\.\d{1,3})?)|(median))\((.+)\)")


def _words(name: str) -> list[str]:
    """Return the words of a name in lower case, in order; ``latencyMs`` has two."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return re.findall(r"[^\W\d_]+", apart.casefold())


def is_operation(name: str) -> bool:
    """Whether a name is that of a latency, a number of tokens or a cost.

    Examples
    --------
    >>> [is_operation(name) for name in ("latency_ms", "totalTokens", "time_sec", "耗时（秒）", "Kosten")]
    [True, True, True, True, True]
    >>> [is_operation(name) for name in ("token_overlap", "cost_effectiveness", "created_time", "timely")]
    [False, False, False, False]
    """
    words = set(_words(name))
    if words & _NEVER:
        return False
    if words & _WORDS or any(sign in name.casefold() for sign in _SIGNS):
        return True
    return any(word in words and words & others for word, others in _BESIDE.items())


def better_of_name(name: str) -> Literal["higher", "lower"]:
    """Return which end of a measure of operation is better: less time and money, more throughput.

    Examples
    --------
    >>> better_of_name("latency_ms"), better_of_name("tokens_per_second")
    ('lower', 'higher')
    """
    words = _words(name)
    phrase = " ".join(words)
    if _HIGHER & set(words) or any(part in phrase for part in _TABLE["higher"]["phrases"]):
        return "higher"
    return "lower"


def quantile_of(name: str) -> tuple[float, str] | None:
    """Return the quantile and the column that a name such as ``p95(latency_s)`` says; None for any other name.

    Examples
    --------
    >>> quantile_of("p95(latency_s)"), quantile_of("median(cost)"), quantile_of("p0(cost)"), quantile_of("p95")
    ((0.95, 'latency_s'), (0.5, 'cost'), None, None)
    """
    match = _QUANTILE.fullmatch(name)
    if match is None:
        return None
    percent, _, column = match.groups()
    q = 0.5 if percent is None else round(float(percent) / 100, 5)
    if q > 0:
        return (q, column)
    return None


def kind_of_operation(name: str) -> Literal["cost", "tokens", "rate", "time"]:
    """Return what a measure of operation measures; ``rate`` is how much is done in a time.

    Examples
    --------
    >>> [kind_of_operation(name) for name in ("latency_ms", "cost_usd", "total_tokens", "tokens_per_second")]
    ['time', 'cost', 'tokens', 'rate']
    """
    if better_of_name(name) == "higher":
        return "rate"
    words = set(_words(name))
    if words & _KINDS["cost"] or any(sign in name.casefold() for sign in _KIND_SIGNS["cost"]):
        return "cost"
    if words & _KINDS["tokens"] or any(sign in name.casefold() for sign in _KIND_SIGNS["tokens"]):
        return "tokens"
    return "time"


def unit_of(name: str) -> str:
    """Return the unit that a name ends in, ``s`` or ``ms``; empty where it names none.

    Examples
    --------
    >>> unit_of("latency_s"), unit_of("latencyMs"), unit_of("duration"), unit_of("耗时（秒）")
    ('s', 'ms', '', 's')
    """
    words = [*_words(name), *re.findall("毫秒|秒", name)]
    return next((unit for word in reversed(words) for unit in _UNITS if word in _UNITS[unit]), "")
