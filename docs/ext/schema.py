"""The JSON schema of a scenario, for editors: from the model, with the meaning of each key as its description.

`python docs/ext/schema.py` writes ``docs/scenario.schema.json``; a test says when that is due.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from markdown import HERE, prose
from pydantic.fields import FieldInfo

import ragnb as rn
from ragnb import texts
from ragnb.scenario.fields import SOURCES
from ragnb.scenario.model import Scenario
from ragnb.scenario.refusals import OWNERS

FILE = HERE.parent / "scenario.schema.json"
CLASSES = {"": Scenario} | {
    path: owner for path, owner in OWNERS.items() if path != "rubric.passing"
}
"""The models by the key that they are below; what passes a rubric is a gate."""

_NOT_BLANK, _VARIABLE = r"\S", r"^[A-Z_][A-Z0-9_]{0,63}$"
_PLAIN = ["string", "number", "boolean"]
# What validators of the model ask for, where a schema can say it too.
_NARROWER: dict[str, dict[str, Any]] = {
    "where": {"additionalProperties": {"type": _PLAIN}},
    "sample": {
        "anyOf": [{"type": "boolean"}, {"type": "number", "exclusiveMinimum": 0, "maximum": 1}]
    },
    "patterns": {"items": {"type": "string", "pattern": _NOT_BLANK}},
    "partial": {"items": {"type": "string", "pattern": _NOT_BLANK}},
    "refusal": {"items": {"type": "string", "pattern": _NOT_BLANK}},
    "llm_profiles.base_url": {"pattern": r"^https?://[^/@\s?#]+(/[^?#\s]*)?$"},
    "llm_profiles.api_key_env": {"type": ["string", "null"], "pattern": _VARIABLE},
    "llm_profiles.headers_env": {
        "type": ["object", "null"],
        "additionalProperties": {"type": "string", "pattern": _VARIABLE},
    },
}
_OF_BASELINE = {
    "required": ["not_worse_than"],
    "properties": {"not_worse_than": {"const": "baseline"}},
}
_GATE_ASKS = {
    "anyOf": [
        {"required": ["op", "threshold"], "not": _OF_BASELINE},
        _OF_BASELINE | {"not": {"anyOf": [{"required": [key]} for key in ("op", "threshold")]}},
    ]
}


def fields() -> Iterator[tuple[str, FieldInfo]]:
    """Yield every key of a scenario, dotted, with its field."""
    for path, owner in CLASSES.items():
        for name, field in owner.__pydantic_fields__.items():
            yield f"{path}.{name}".lstrip("."), field


def schema() -> dict[str, Any]:
    """Return the schema, in the draft that editors know best."""
    made = rn.Scenario.model_json_schema()
    meaning, definitions = prose("reference", "en"), made["$defs"]
    for path, owner in CLASSES.items():
        part = definitions[owner.__name__] if path else made
        part["description"] = str(owner.__doc__).partition("\n\n")[0].replace("\n    ", " ")
        for name, field in part["properties"].items():
            key = f"{path}.{name}".lstrip(".")
            field.pop("title", None)
            field.pop("default", None) if field.get("default") is None else None
            field |= _NARROWER.get(key, {})
            if "type" in field and field["type"] != "array":
                field.pop("anyOf", None)
            if key not in meaning["scenario"]:
                raise SystemExit(f"docs/ext/reference.en.toml, [scenario]: {key!r} is missing")
            field["description"] = meaning["scenario"][key]
            if key in meaning["example"]:
                field["examples"] = [meaning["example"][key]]
            if not path:
                _nullable(field)
                if field.get("type") == ["string", "null"] and "enum" not in field:
                    field["pattern"] = _NOT_BLANK
    gate = definitions["Gate"]
    gate |= _GATE_ASKS
    definitions["Rubric"]["properties"]["passing"] = {
        "description": meaning["scenario"]["rubric.passing"],
        "type": "object",
        "additionalProperties": False,
        "required": ["metric", "op"],
        "properties": gate["properties"],
    }
    any_word = {"type": "string", "pattern": _NOT_BLANK}
    known = {
        "anyOf": [{"enum": [*rn.METRICS]}, any_word]
    }  # an editor completes these, and takes others
    made["properties"]["metrics"]["items"] = {
        "anyOf": [*known["anyOf"], {"$ref": "#/$defs/Metric"}]
    }
    made["properties"]["metrics"].pop("anyOf", None)
    gate["properties"]["metric"].pop("type")
    gate["properties"]["metric"]["anyOf"] = [
        {"enum": ["weighted_score", *rn.METRICS]},
        {"type": "string"},
    ]
    gloss = {name: about.get("gloss", name) for name, about in texts.entry("en", "metrics").items()}
    made["properties"]["metric_weights"]["properties"] = {
        name: {"type": "number", "minimum": 0, "description": gloss.get(name, metric.variant)}
        for name, metric in rn.METRICS.items()
    }
    made["title"] = "ragnb scenario"
    made["anyOf"] = [
        {"required": [name], "properties": {name: {"not": {"type": "null"}}}} for name in SOURCES
    ]
    return {"$schema": "http://json-schema.org/draft-07/schema#", **made}


def _nullable(field: dict[str, Any]) -> None:
    """Let a key of the scenario stand without a value, which the model takes for a key left out."""
    if isinstance(field.get("type"), str):
        field["type"] = [field["type"], "null"]
        if "enum" in field:
            field["enum"] = [*field["enum"], None]
    elif "$ref" in field:
        field["anyOf"] = [{"$ref": field.pop("$ref")}, {"type": "null"}]
    elif {"type": "null"} not in field.get("anyOf", []):
        field["anyOf"] = [*field["anyOf"], {"type": "null"}]
    inner = [one for one in field.get("anyOf", []) if one != {"type": "null"}]
    if len(inner) == 1 and isinstance(
        inner[0].get("type"), str
    ):  # one type or null, said in one line
        field.pop("anyOf")
        field |= inner[0] | {"type": [inner[0]["type"], "null"]}


def text() -> str:
    """Return the schema as the file holds it."""
    return json.dumps(schema(), ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
