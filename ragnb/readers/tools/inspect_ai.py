"""Tables of Inspect: letters for numbers, and the output of a model."""

from __future__ import annotations

from typing import Any

from ragnb.readers.raw import Lossy, Raw, from_records
from ragnb.readers.results import scored
from ragnb.readers.tools.failures import failed_with_error
from ragnb.readers.tools.known import TOOLS


def read_inspect(raw: Raw, report: Lossy) -> None:
    """Take letters for the numbers that inspect makes of them, and the text out of the model's output."""
    scores = [cell if isinstance(cell, dict) else {} for cell in raw.columns.pop("scores")]
    raw.columns["answer"] = [
        _completion(output)
        or next((score["answer"] for score in row.values() if score.get("answer")), None)
        for output, row in zip(raw.columns.pop("answer", [None] * len(raw)), scores, strict=True)
    ]
    spread = [
        {
            f"{scorer}.{key}" if key else scorer: (cell, score.get("explanation"))
            for scorer, score in row.items()
            for value in [score.get("value")]
            for key, cell in (value.items() if isinstance(value, dict) else [("", value)])
        }
        for row in scores
    ]
    for name, cells in from_records(spread).items():
        pairs = [cell or (None, None) for cell in cells]
        grades = TOOLS["inspect"]["grades"]
        failed = failed_with_error(
            raw.cells("error"), cells
        )  # NaN without an error was not to be scored
        scored(
            raw, name, [grades.get(str(v), v) for v, _ in pairs], failed, [why for _, why in pairs]
        )
        report.add("mapped", f"scores.{name}", "C, P, I and N are 1, 0.5, 0 and 0", len(cells))


def _completion(output: Any) -> Any:
    """Return the text of a model's output."""
    if isinstance(output, dict):
        for choice in output.get("choices") or ():
            content = choice["message"].get("content")
            if isinstance(content, list):
                parts = content
            else:
                parts = [{"text": content}]
            return "\n".join(part["text"] for part in parts if part.get("text"))
    if isinstance(output, str):
        return output
    return None
