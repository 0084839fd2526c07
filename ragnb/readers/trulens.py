"""TruLens: ``get_records_and_feedback()``, one row a record."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from ragnb.readers.lossy import Lossy
from ragnb.readers.raw import Raw, unpacked

UNPARSABLE = -1.0


def sniff(columns: Set[str]) -> bool:
    """Whether these are the columns of a table of records.

    Examples
    --------
    >>> sniff({"record_id", "input", "output", "record_json"}), sniff({"app_name", "Groundedness"})
    (True, False)
    """
    known = {"app_json", "record_json", "app_id"} & columns or any(name.endswith("_calls") for name in columns)
    return {"record_id", "input"} <= columns and bool(known)


def read(raw: Raw, report: Lossy) -> None:
    """Take texts out of JSON quotes, versions of an app for systems, and -1, an unparsed reply, for failed."""
    for name in ("input", "output"):
        if name in raw.columns:
            found, raw.columns[name] = raw.columns[name], [unpacked(cell, '".*"') for cell in raw.columns[name]]
            n = sum(a is not b for a, b in zip(found, raw.columns[name], strict=True))
            report.add("mapped", name, "taken out of its JSON quotes", n)
    names, versions = raw.columns.get("app_name"), raw.columns.get("app_version")
    both = [f"{name} {version}" for name, version in zip(names or [], versions or [], strict=False)]
    if both and len(set(both)) > len({*map(str, names or [])}):
        raw.columns["system"] = both
        report.add("mapped", "app_version", "system, behind app_name", len(raw))
    for name in [name for name in raw.columns if f"{name}_calls" in raw.columns]:
        failed = [_is_sentinel(cell) for cell in raw.columns[name]]
        if any(failed):
            pairs = list(zip(raw.columns[name], failed, strict=True))
            raw.columns[name] = [None if bad else cell for cell, bad in pairs]
            raw.columns[f"{name}__status"] = ["failed" if bad else None for bad in failed]
            report.add("mapped", name, "-1 is failed", sum(failed))


def _is_sentinel(cell: Any) -> bool:
    try:
        return not isinstance(cell, bool) and float(cell) == UNPARSABLE
    except (TypeError, ValueError):
        return False
