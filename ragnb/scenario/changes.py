"""What a patch makes of the settings in a file: the tree they should be, and where it differs."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ragnb.errors import RagnbError, unknown
from ragnb.scenario.model import SOURCES, Scenario
from ragnb.schema import METRICS

Weights = Mapping[str, float | None]
Tree = dict[str, Any]
_WEIGHTS = ("metric_weights", "doc_weights")


def merged(old: Tree, given: Mapping[str, Any], drop: Mapping[str, Iterable[str]], scenario: Scenario) -> Tree:
    """Return the settings with what is given put in and what is dropped taken out."""
    new = dict(old)
    for name, values in given.items():
        if values is None:
            continue
        if not isinstance(values, Mapping):
            raise RagnbError(f"{name}={values!r} is no mapping; write {{name: value}}")
        own = dict(old.get(name) or {})
        own |= _weights(name, values, own, scenario) if name in _WEIGHTS else _profiles(values, own)
        new[name] = own
    for name, keys in drop.items():
        if name not in (*_WEIGHTS, "llm_profiles"):
            raise unknown("drop", name, [*_WEIGHTS, "llm_profiles"])
        gone = {_nfc(key) for key in keys}
        if new.get(name) is not None:
            new[name] = {key: value for key, value in new[name].items() if _nfc(key) not in gone}
    empty = {key: value for key, value in old.items() if not value and not new[key]}  # None and {} say the same
    return {key: value for key, value in new.items() if value or key in old} | empty


def _weights(name: str, values: Weights, own: Tree, scenario: Scenario) -> Tree:
    spelled = {_nfc(key): key for key in own}
    declared = scenario.declared
    made: Tree = {}
    for key, value in values.items():
        if value is None or (isinstance(value, str) and not value.strip()):
            continue
        number = isinstance(value, Real) and not isinstance(value, bool | int)
        metric = declared.get(key) or METRICS.get(key) if name == "metric_weights" else None
        usual = 1.0 if metric is None else metric.weight if metric.role == "quality" else None
        if _nfc(key) in spelled or isinstance(value, bool) or value != usual:
            made[spelled.get(_nfc(key), key)] = float(value) if number else value
    return made


def _profiles(values: Mapping[str, Any], own: Tree) -> Tree:
    made: Tree = {}
    for role, profile in values.items():
        given = profile.model_dump() if isinstance(profile, BaseModel) else profile
        if not isinstance(given, Mapping | None):
            raise RagnbError(f"llm_profiles.{role} is no profile; write base_url, model and api_key_env")
        if kept := {key: value for key, value in (given or {}).items() if value not in (None, "")}:
            made[role] = (own.get(role) or {}) | kept
    return made


def moved(old: Tree, scenario: Scenario, folder: Path) -> Tree:
    """Return the input paths that have to be spelled anew for a file in another folder."""
    paths = {key: getattr(scenario, key) for key in (*SOURCES, "gold") if old.get(key) is not None}
    relative = {key: path for key, path in paths.items() if not Path(old[key]).is_absolute()}
    return {key: Path(os.path.relpath(path, folder)).as_posix() for key, path in relative.items()}


def _nfc(key: str) -> str:
    return unicodedata.normalize("NFC", key)


def different(old: Any, new: Any, where: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the places of all leaves that are not the same, in the order of the file, new ones last."""
    if isinstance(old or {}, Mapping) and isinstance(new or {}, Mapping) and (old or new):
        for key in dict.fromkeys([*(old or {}), *(new or {})]):
            yield from different((old or {}).get(key), (new or {}).get(key), (*where, key))
    elif old != new:
        yield where


def comparable(tree: Any) -> Any:
    """Return a tree to compare: a mapping without a key is the same as none."""
    if isinstance(tree, Mapping):
        return {key: comparable(value) for key, value in tree.items() if value not in (None, {})}
    return tree
