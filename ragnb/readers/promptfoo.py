"""promptfoo: the results of an evaluation, one record a test, prompt and provider."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from ragnb.readers.lossy import Lossy
from ragnb.readers.raw import Raw, absent


def sniff(columns: Set[str]) -> bool:
    """Whether these are results: the variables of a test beside the response.

    Examples
    --------
    >>> sniff({"vars", "testIdx", "response", "namedScores"}), sniff({"vars", "response"})
    (True, False)
    """
    return {"vars", "testIdx"} <= columns


def read(raw: Raw, report: Lossy) -> None:
    """Spread the variables and the named scores, and take the provider (and prompt) for the system.

    The caller says which variable is the question, where its name does not: ``columns={"prompt": "question"}``.
    """
    columns, rows = raw.columns, len(raw)
    named = [c.get("label") or c.get("id") if isinstance(c, dict) else c for c in columns.pop("provider", [])]
    taken = {"sample_id": columns.pop("testIdx"), "system": named}
    prompts = columns.get("promptIdx", [])
    if len(set(map(str, prompts))) > 1:
        taken["system"] = [f"{a} prompt {b}" for a, b in zip(taken["system"] or [""] * rows, prompts, strict=True)]
    outputs = [cell.get("output") if isinstance(cell, dict) else cell for cell in columns.pop("response", [])]
    errors = columns.get("error", [None] * rows)
    failed = _errored(columns, errors, outputs, rows)
    spread = {name: _spread(columns.pop(name, [])) for name in ("vars", "namedScores")}
    columns.pop("id", None)
    columns.update({name: cells for name, cells in (*taken.items(), ("answer", outputs)) if cells})
    metrics = ["score"] if "score" in columns else []
    for name, found in spread.items():
        for key, cells in found.items():
            made = f"{name}.{key}" if key in columns else key
            columns[made] = cells
            metrics += [made] if name == "namedScores" else []
        report.add("mapped", name, "a column each", rows * bool(found))
    for name in metrics if any(failed) else ():
        columns[name] = [None if bad else cell for bad, cell in zip(failed, columns[name], strict=True)]
        columns[f"{name}__status"] = ["failed" if bad else None for bad in failed]
        columns[f"{name}__reason"] = [error if bad else None for bad, error in zip(failed, errors, strict=True)]
        report.add("mapped", name, "the answer was not made or not scored (failureReason 2): failed", sum(failed))
    for name, canonical in (("testIdx", "sample_id"), ("provider", "system"), ("response", "answer")):
        report.add("mapped", name, canonical, rows * (canonical in columns))


def _errored(columns: dict[str, list[Any]], errors: list[Any], outputs: list[Any], rows: int) -> list[bool]:
    """Whether a row has no score; a file without reasons tells by an error beside no answer."""
    reasons = columns.get("failureReason", [None] * rows)
    silent = [absent(output) or output == "" for output in outputs] or [True] * rows
    return [
        str(reason) in ("2", "2.0") or (absent(reason) and none and not absent(error) and error != "")
        for reason, error, none in zip(reasons, errors, silent, strict=True)
    ]


def _spread(cells: list[Any]) -> dict[str, list[Any]]:
    held = [cell if isinstance(cell, dict) else {} for cell in cells]
    return {key: [cell.get(key) for cell in held] for key in dict.fromkeys(k for cell in held for k in cell)}
