"""Tables of Haystack, in which systems stand side by side."""

from __future__ import annotations

from collections.abc import Iterable

from ragnb.readers.owner import stack_systems
from ragnb.readers.raw import Lossy, Raw

_HAYSTACK = "_metric_"


def systems_beside(columns: Iterable[str]) -> list[str]:
    """Return the systems whose names stand before ``_metric_`` in the names of columns."""
    systems: dict[str, None] = {}
    for name in columns:
        at = name.find(_HAYSTACK, 1)
        if 0 < at < len(name) - len(_HAYSTACK):
            systems[name[:at]] = None
    return list(systems)


def read_haystack(raw: Raw, report: Lossy) -> None:
    """Stack the systems of ``comparative_scores``; columns that name no system are repeated for each."""
    # The longest first, as the name of one system may begin with that of another: rag and rag_large.
    systems = sorted(systems_beside(raw.columns), key=len, reverse=True)
    placed: dict[str, tuple[str, str]] = {}
    for name in raw.columns:
        system = next((system for system in systems if name.startswith(f"{system}_")), None)
        if system is not None:
            short = name.removeprefix(f"{system}_").removeprefix("metric_")
            placed[name] = (system, short)
    stack_systems(raw, placed, report)
