"""What is known of the tables of tools: their columns, names, words and the scales of their metrics."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ragnb.readers.results import UNIT_SCALE

_FILE = Path(__file__).parents[1] / "layouts.toml"
TOOLS = tomllib.loads(_FILE.read_text(encoding="utf-8"))


def matches(name: str, row: Mapping[str, Any]) -> bool:
    """Return whether a metric is one of those that a row of a layout describes."""
    return any(fnmatchcase(name, sign) for sign in row["match"])


def scale_in(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row of a layout says of the scale of its metrics."""
    return {key: row[key] for key in UNIT_SCALE if key in row}
