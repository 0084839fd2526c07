"""Haystack: ``comparative_scores``, one row a question with columns a system, becomes one row a sample."""

from __future__ import annotations

from collections.abc import Set

from ragnb.readers.lossy import Lossy
from ragnb.readers.raw import Raw

_METRIC = "_metric_"


def _systems(columns: Set[str] | list[str]) -> list[str]:
    found = ((name, name.find(_METRIC, 1)) for name in columns)
    return list(dict.fromkeys(name[:at] for name, at in found if 0 < at < len(name) - len(_METRIC)))


def sniff(columns: Set[str]) -> bool:
    """Whether metric columns of at least two systems stand beside each other.

    Examples
    --------
    >>> sniff({"questions", "a_metric_sas", "b_metric_sas"}), sniff({"a_metric_sas"})
    (True, False)
    """
    return len(_systems(columns)) > 1


def read(raw: Raw, report: Lossy) -> None:
    """Stack the systems under each other, in column order; columns that name no system go to each of them."""
    wide, rows = raw.columns, len(raw)
    systems = sorted(_systems(list(wide)), key=len, reverse=True)
    owner = {name: next((s for s in systems if name.startswith(f"{s}_")), None) for name in wide}
    order = [s for s in dict.fromkeys(owner.values()) if s is not None]
    short = {n: n.removeprefix(f"{owner[n]}_").removeprefix("metric_") for n in wide if owner[n]}
    shared = [name for name in wide if owner[name] is None]
    long = {name: wide[name] * len(order) for name in shared}
    long["system"] = [system for system in order for _ in range(rows)]
    for column in dict.fromkeys(short.values()):
        cells: list[object] = []
        for system in order:
            name = next((n for n, s in short.items() if s == column and owner[n] == system), None)
            cells += wide[name] if name else [None] * rows
        long[column] = cells
    for name in short:
        report.add("mapped", name, f"{short[name]} of system {owner[name]}", rows)
    for name in shared:
        report.add("kept", name, "one column for every system", rows)
    raw.keep([*range(rows)] * len(order))
    raw.columns = long
