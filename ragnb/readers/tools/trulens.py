"""Tables of TruLens: versions of an app, and -1 for a reply that could not be parsed."""

from __future__ import annotations

from ragnb.readers.raw import Lossy, Raw, absent, unpacked
from ragnb.readers.results import scored
from ragnb.readers.tools.failures import is_empty

_HIGHER_IS_BETTER = {"true": "higher", "false": "lower"}


def read_trulens(raw: Raw, report: Lossy) -> None:
    """Take texts out of JSON quotes, versions of an app for systems, and -1, an unparsed reply, for failed."""
    columns = raw.columns
    for name in [name for name in columns if name in ("input", "output")]:
        before, columns[name] = columns[name], [unpacked(cell, '".*"') for cell in columns[name]]
        n = sum(a is not b for a, b in zip(before, columns[name], strict=True))
        report.add("mapped", name, "taken out of its JSON quotes", n)
    apps = columns.get("app_name", ())
    versions = [
        f"{app} {version}"
        for app, version in zip(apps, columns.get("app_version", ()), strict=False)
    ]
    if len(set(versions)) > len({*map(str, apps)}):
        columns["system"] = versions
        report.add("mapped", "app_version", "system, behind app_name", len(raw))
    for name in [name for name in columns if f"{name}_calls" in columns]:
        # An empty list is two characters.
        calls = (not absent(cell) and len(str(cell)) > 2 for cell in columns[f"{name}_calls"])
        pairs = zip(columns[name], calls, strict=True)
        failed = [
            str(cell).strip() in ("-1", "-1.0") or (is_empty(cell) and called)
            for cell, called in pairs
        ]
        better = {str(cell).casefold() for cell in columns.get(f"{name} direction", ())} - {
            "none",
            "nan",
        }
        scored(
            raw,
            name,
            columns[name],
            failed,
            scale={
                "better": _HIGHER_IS_BETTER.get(next(iter(better), ""))
                if len(better) == 1
                else None
            },
        )
        report.add("mapped", name, "-1 and calls without a score are failed", sum(failed))
