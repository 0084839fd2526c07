"""Tables of Inspect: letters for numbers, and the output of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ragnb.readers.raw import Lossy, Raw, from_records
from ragnb.readers.results import scored
from ragnb.readers.tools.failures import failed_with_error
from ragnb.readers.tools.known import TOOLS


def read_inspect(raw: Raw, report: Lossy) -> None:
    """Take letters for the numbers that inspect makes of them, and the text out of the model's output."""
    scores = [cell if isinstance(cell, dict) else {} for cell in raw.columns.pop("scores")]
    outputs = raw.columns.pop("answer", [None] * len(raw))
    raw.columns["answer"] = [
        _completion(output) or _scored_answer(row)
        for output, row in zip(outputs, scores, strict=True)
    ]
    grades = TOOLS["inspect"]["grades"]
    by_scorer = from_records(_values_and_reasons(row) for row in scores)
    for name, cells in by_scorer.items():
        # NaN without an error was not to be scored.
        failed = failed_with_error(raw.cells("error"), cells)
        pairs = [cell or _NOT_SCORED for cell in cells]
        values = [grades.get(str(pair.value), pair.value) for pair in pairs]
        reasons = [pair.reason for pair in pairs]
        scored(raw, name, values, failed, reasons)
        report.add("mapped", f"scores.{name}", "C, P, I and N are 1, 0.5, 0 and 0", len(cells))


class _Given(NamedTuple):
    """What a scorer gave a sample."""

    value: Any
    reason: Any


_NOT_SCORED = _Given(None, None)


def _values_and_reasons(scores: Mapping[str, Mapping[str, Any]]) -> dict[str, _Given]:
    """Return what each scorer gave a sample; a scorer of several values gives each under its own key."""
    given: dict[str, _Given] = {}
    for scorer, score in scores.items():
        value = score.get("value")
        reason = score.get("explanation")
        if not isinstance(value, dict):
            given[scorer] = _Given(value, reason)
            continue
        for key, part in value.items():
            given[f"{scorer}.{key}" if key else scorer] = _Given(part, reason)
    return given


def _scored_answer(scores: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return the first answer that a scorer took out of a model's output; None where none did."""
    return next((score["answer"] for score in scores.values() if score.get("answer")), None)


def _completion(output: Any) -> Any:
    """Return the text of a model's output: that of its first choice, all text parts of it."""
    if isinstance(output, dict):
        for choice in output.get("choices") or ():
            content = choice["message"].get("content")
            if isinstance(content, list):
                parts = content  # texts among images and reasoning
            else:
                parts = [{"text": content}]
            return "\n".join(part["text"] for part in parts if part.get("text"))
    if isinstance(output, str):
        return output
    return None
