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
    taken = {"sample_id": columns.pop("testIdx"), "system": [_name(cell) for cell in columns.pop("provider", [])]}
    prompts = columns.get("promptIdx", [])
    if len(set(map(str, prompts))) > 1:
        taken["system"] = [f"{a} prompt {b}" for a, b in zip(taken["system"] or [""] * rows, prompts, strict=True)]
    outputs = [_part(cell, "output") for cell in columns.pop("response", [])]
    spread = {name: _spread(columns.pop(name, [])) for name in ("vars", "namedScores")}
    errors = [not absent(cell) and cell != "" for cell in columns.pop("error", [])]
    columns.pop("id", None)
    columns.update({name: cells for name, cells in (*taken.items(), ("answer", outputs)) if cells})
    for name, found in spread.items():
        for key, cells in found.items():
            columns[f"{name}.{key}" if key in columns else key] = cells
        report.add("mapped", name, "a column each", rows * bool(found))
    for metric, cells in spread["namedScores"].items():
        failed = [bad and absent(cell) for bad, cell in zip(errors, cells, strict=True)] if errors else []
        if any(failed):
            columns[f"{metric}__status"] = ["failed" if bad else None for bad in failed]
    for name, canonical in (("testIdx", "sample_id"), ("provider", "system"), ("response", "answer")):
        report.add("mapped", name, canonical, rows * (canonical in columns))


def _name(cell: Any) -> Any:
    return cell.get("label") or cell.get("id") if isinstance(cell, dict) else cell


def _part(cell: Any, key: str) -> Any:
    return cell.get(key) if isinstance(cell, dict) else cell


def _spread(cells: list[Any]) -> dict[str, list[Any]]:
    held = [cell if isinstance(cell, dict) else {} for cell in cells]
    return {key: [cell.get(key) for cell in held] for key in dict.fromkeys(k for cell in held for k in cell)}
