"""Tables of TruLens: versions of an app, and -1 for a reply that could not be parsed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ragnb.readers.raw import Lossy, Raw, absent, unpacked
from ragnb.readers.results import scored
from ragnb.readers.tools.failures import is_empty

_HIGHER_IS_BETTER = {"true": "higher", "false": "lower"}


def read_trulens(raw: Raw, report: Lossy) -> None:
    """Take texts out of JSON quotes, versions of an app for systems, and -1, an unparsed reply, for failed."""
    columns = raw.columns
    for name in [name for name in columns if name in ("input", "output")]:
        before = columns[name]
        columns[name] = [unpacked(cell, '".*"') for cell in before]
        n_changed = sum(old is not new for old, new in zip(before, columns[name], strict=True))
        report.add("mapped", name, "taken out of its JSON quotes", n_changed)
    apps = columns.get("app_name", ())
    versions = [
        f"{app} {version}"
        for app, version in zip(apps, columns.get("app_version", ()), strict=False)
    ]
    # One version of each app says no more than the app's name, which is the system already.
    if len(set(versions)) > len({*map(str, apps)}):
        columns["system"] = versions
        report.add("mapped", "app_version", "system, behind app_name", len(raw))
    for name in [name for name in columns if f"{name}_calls" in columns]:
        failed = _failed(columns[name], columns[f"{name}_calls"])
        scale = {"better": _direction(columns.get(f"{name} direction", ()))}
        scored(raw, name, columns[name], failed, scale=scale)
        report.add("mapped", name, "-1 and calls without a score are failed", sum(failed))


def _failed(scores: Iterable[Any], calls: Iterable[Any]) -> list[bool]:
    """Return which scores are failures: -1 for a reply that could not be parsed, or calls without a score."""
    failed = []
    for score, cell in zip(scores, calls, strict=True):
        called = not absent(cell) and len(str(cell)) > 2  # an empty list is two characters
        failed.append(str(score).strip() in ("-1", "-1.0") or (is_empty(score) and called))
    return failed


def _direction(cells: Iterable[Any]) -> str | None:
    """Return which end is better, if all rows that say whether higher is better agree; else None."""
    words = {str(cell).casefold() for cell in cells} - {"none", "nan"}
    if len(words) != 1:
        return None
    return _HIGHER_IS_BETTER.get(words.pop())
