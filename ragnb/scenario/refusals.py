"""What pydantic found, in one message a user can act on: file, line, key, value, choices, near names."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ragnb.errors import did_you_mean, listing, place
from ragnb.scenario.source import Source
from ragnb.scenario.words import Where, dotted, shown
from ragnb.schema import masked

MOST = 10
_WORDS = tomllib.loads(Path(__file__).with_name("refusals.toml").read_text(encoding="utf-8"))


def word(error: ValidationError, owners: Mapping[str, type[Any]], source: Source | None) -> str:
    """Word all that a validation found, one line a finding.

    Parameters
    ----------
    error : ValidationError
    owners : mapping of str to class
        By dotted key, the class whose fields stand below it; ``""`` for the scenario itself.
    source : Source, optional
        The file the settings came from.
    """
    lines: dict[str, None] = {}
    for item in error.errors(include_url=False):
        where = tuple(part for part in item["loc"] if not str(part).startswith("<"))
        where = where[:-1] if where[-1:] == ("[key]",) else where
        where += tuple(item.get("ctx", {}).get("below", ()))
        file, line = (source.file, source.line(where)) if source else (None, None)
        lines[f"{place(file, line, dotted(where) or None)}{_reason(item, where, owners)}"] = None
    rest = [f"… and {len(lines) - MOST} more"] if len(lines) > MOST else []
    return "\n".join([*list(lines)[:MOST], *rest])


def _reason(item: Any, where: Where, owners: Mapping[str, type[Any]]) -> str:
    kind, context = item["type"], item.get("ctx", {})
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        above = ".".join(part for part in where[:-1] if isinstance(part, str))
        owner = owners.get(above) or owners.get(str(where[0]), owners[""])
        fields = list(getattr(owner, "__pydantic_fields__", ()))
        return f"is not known; {did_you_mean(masked(str(where[-1])), fields)}"
    if kind == "missing":
        return "is needed and not there"
    if kind == "ragnb":
        return masked(str(context["reason"]))
    if kind == "value_error":
        return masked(str(context["error"]))
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", context["expected"])
        given = item["input"]
        hint = did_you_mean(given, choices) if isinstance(given, str) else f"(have: {listing(choices)})"
        return f"{_value(item, where)}is not known; {masked(hint)}"
    if kind == "float_type" and isinstance(item["input"], int) and not isinstance(item["input"], bool):
        return "the number is too large"
    return f"{_value(item, where)}{_WORDS[kind].format(**context) if kind in _WORDS else masked(item['msg'])}"


def _value(item: Any, where: Where) -> str:
    """Show the value, except below llm_profiles, where a key may have strayed."""
    return "" if where[:1] == ("llm_profiles",) else f"{shown(item['input'])} "
