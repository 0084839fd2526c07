"""Tables of Haystack, in which systems stand side by side."""

from __future__ import annotations

from collections.abc import Iterable

from ragnb.readers.owner import stack_systems
from ragnb.readers.raw import Lossy, Raw

_HAYSTACK = "_metric_"


def systems_beside(columns: Iterable[str]) -> list[str]:
    places = ((name, name.find(_HAYSTACK, 1)) for name in columns)
    return list(
        dict.fromkeys(name[:at] for name, at in places if 0 < at < len(name) - len(_HAYSTACK))
    )


def read_haystack(raw: Raw, report: Lossy) -> None:
    """Stack the systems of ``comparative_scores``; columns that name no system are repeated for each."""
    systems = sorted(systems_beside(raw.columns), key=len, reverse=True)
    placed: dict[str, tuple[str, str]] = {}
    for name in raw.columns:
        system = next((system for system in systems if name.startswith(f"{system}_")), None)
        if system is not None:
            short = name.removeprefix(f"{system}_").removeprefix("metric_")
            placed[name] = (system, short)
    stack_systems(raw, placed, report)
