"""What is wrong with the settings of a scenario, in words, with the line and the key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from ragnb.errors import did_you_mean, listing, place
from ragnb.scenario.examples import EXAMPLES, KeyPath, bound_of, example_of, path_of
from ragnb.scenario.fields import Allow, Bands, Generation, System
from ragnb.scenario.source import REFUSALS, Source, dotted, flow
from ragnb.schema import Anchor, Dimension, Gate, Metric, Profile, Rubric
from ragnb.schema.secrets import masked, shown

_MOST_FINDINGS = 10  # that are listed of one scenario
_REASONS: Mapping[str, str] = REFUSALS["value"]


OWNERS: Mapping[str, type[Any]] = {
    "metrics": Metric,
    "gates": Gate,
    "bands": Bands,
    "allow": Allow,
    "generation": Generation,
    "system": System,
    "llm_profiles": Profile,
    "rubric": Rubric,
    "rubric.dimensions": Dimension,
    "rubric.anchors": Anchor,
    "rubric.passing": Gate,
}
"""The classes whose fields are the keys below a key of a scenario."""


def findings(error: ValidationError, source: Source | None, top: type[BaseModel]) -> str:
    """Word all that a validation found, one line per finding, with the file, line and key where they are known.

    `top` is the class that was validated.
    """
    lines = []
    for item in error.errors(include_url=False):
        # The tags of a union are in its places, such as <metric>, and no keys that anybody wrote.
        where = tuple(part for part in item["loc"] if not str(part).startswith("<"))
        # Pydantic appends this where the key itself is wrong, not its value.
        if where[-1:] == ("[key]",):
            where = where[:-1]
        # A check of a whole list or mapping says itself which entry it refuses, see `ragnb.schema.refuse`.
        where += tuple(item.get("ctx", {}).get("below", ()))
        reason = _reason(item, where, top, in_file=source is not None)
        key = dotted(where) or None
        if source:
            lines.append(f"{place(source.file, source.line(where), key)}{reason}")
        else:
            lines.append(f"{place(None, None, key)}{reason}")
    lines = list(dict.fromkeys(lines))  # each once
    shown_lines = lines[:_MOST_FINDINGS]
    if len(lines) > _MOST_FINDINGS:
        shown_lines.append(f"… and {len(lines) - _MOST_FINDINGS} more")
    return "\n".join(shown_lines)


def _reason(item: Any, where: KeyPath, top: type[BaseModel], *, in_file: bool) -> str:
    """Word one finding: what is wrong, and what the key takes, as it is written in a file or in Python."""
    kind = item["type"]
    context = item.get("ctx", {})
    value = item["input"]
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return _unknown_key(where, value, top, in_file=in_file)
    if kind == "missing":
        return "is required"
    if kind in ("ragnb", "value_error"):
        return masked(str(context["reason" if kind == "ragnb" else "error"]))
    # A strict float takes every int that a float can hold.
    if kind == "float_type" and isinstance(value, int) and not isinstance(value, bool):
        return "the number is too large"
    share = _share_meant(kind, context, value)
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", context["expected"])
        if isinstance(value, str):
            hint = did_you_mean(value, choices)
        else:
            hint = f"(have: {listing(choices)})"
        reason = f"is not known; {masked(hint)}"
    elif share:
        # The share replaces the advice after the semicolon.
        what = _REASONS[kind].format(**context).partition(";")[0]
        reason = f"{what}; write {share}"
    elif kind in _REASONS:
        reason = _REASONS[kind].format(**context, how=_how(where, value, in_file=in_file))
    else:
        reason = masked(item["msg"])
    # Below llm_profiles a key may have strayed: no value is repeated there.
    if where[:1] == ("llm_profiles",):
        return reason
    return f"{shown(value)} {reason}"


def _how(where: KeyPath, value: Any, *, in_file: bool) -> str:
    """Return how the value of a key is written; that of a key at the top with its key."""
    example = example_of(where, value)
    if example is None:
        return "'key: value' lines below the key"
    written = flow(example) if in_file else repr(example)
    if len(where) > 1:
        return written
    if in_file:
        return f"{where[0]}: {written}"
    return f"{where[0]}={written}"


def _unknown_key(where: KeyPath, value: Any, top: type[BaseModel], *, in_file: bool) -> str:
    """Word a key that no class has, with the near names, or how the whole is written where none is near."""
    above = ".".join(part for part in where[:-1] if isinstance(part, str))
    owner = OWNERS.get(above) or OWNERS.get(str(where[0]), top)
    hint = did_you_mean(masked(str(where[-1])), list(owner.__pydantic_fields__))
    op = bound_of(where, value)
    if op:
        threshold = float(value)  # a Fraction has no format of its own
        if in_file:
            meant = f'op: "{op}", threshold: {threshold:g}'
        else:
            meant = f"op='{op}', threshold={threshold:g}"
        return f"is not known; {hint}. Write {meant}"
    example = EXAMPLES.get(path_of(where[:-1]))
    has_near_name = not hint.startswith("(have")
    if example and not has_near_name:
        written = flow(example) if in_file else example
        return f"is not known; {hint}. Write, for example, {written}"
    return f"is not known; {hint}"


def _share_meant(kind: str, context: Mapping[str, Any], value: Any) -> str:
    """Return the share that a percentage means where a share is asked for: 0.95 for 95 or '95%'."""
    most = context.get("lt", context.get("le"))
    if kind in ("less_than", "less_than_equal") and most == 1 and 1 < value <= 100:
        return f"{value / 100:g}"
    if kind == "float_type":
        percentage = re.fullmatch(r"\s*(\d{1,3}(?:\.\d+)?)\s*%\s*", str(value))
        if percentage:
            return f"{float(percentage[1]) / 100:g}"
    return ""
