"""Evaluate a RAG system: is it good enough, what to fix first, and can its judge be trusted?

Frames go in and small frames come out; `assess` lays them all on one sheet.
"""

from __future__ import annotations

import importlib
import re
import warnings
from importlib.resources import files
from typing import Any

__version__ = "0.2.0"

# One list of public names: the stub that type checkers read.
_STUB = files("ragnb").joinpath("__init__.pyi").read_text(encoding="utf-8")
_ROOM_OF = {
    name: room for room, name in re.findall(r"(?m)^from ragnb\.(\w+) import (\w+) as \2$", _STUB)
}

_ROOMS = ("plots", "stats", "widgets")

# Old name → new name: the old one works for one minor version, and says which to write.
_RENAMED: dict[str, str] = {}

__all__ = sorted(_ROOM_OF)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"ragnb.{name}")
    if name in _RENAMED:
        new = _RENAMED[name]
        warnings.warn(
            f"ragnb.{name} is now ragnb.{new}; the old name goes with the next minor version",
            DeprecationWarning,
            stacklevel=2,
        )
        return __getattr__(new)
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'ragnb' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"ragnb.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *_ROOMS, "__version__"]
