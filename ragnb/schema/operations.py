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
