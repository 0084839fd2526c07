"""Tables of MLflow: a group of columns a scorer, and texts in objects of inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragnb.readers.names import meanings
from ragnb.readers.raw import Lossy, Raw, unpacked
from ragnb.readers.results import scored
from ragnb.readers.tools.failures import failed_with_error
from ragnb.readers.tools.known import TOOLS


def read_mlflow(raw: Raw, report: Lossy) -> None:
    """Name the scorers' columns after them, yes is 1 and no is 0, and take texts out of inputs and outputs."""
    raw.rename(TOOLS["mlflow"]["sides"], report, _text_of_a_side)
    for name in [name for name in raw.columns if name.endswith(("/value", "/score"))]:
        scorer = name.removesuffix("/value").removesuffix("/score").removesuffix("/v1")
        words = TOOLS["mlflow"]["words"]
        cells = [words.get(str(cell).strip().casefold(), cell) for cell in raw.columns.pop(name)]
        report.add("mapped", name, scorer, len(cells))
        # The metrics of MLflow 2 are named with their version, as in faithfulness/v1/score, and have a
        # justification; the scorers of MLflow 3 have a value and a rationale.
        ends = ("/rationale", "/v1/justification")
        raw.rename({f"{scorer}{end}": f"{scorer}__reason" for end in ends}, report)
        message = f"{scorer}/error_message"
        failed = failed_with_error(raw.columns.pop(message, [None] * len(cells)), cells)
        scored(raw, scorer, cells, failed)
        n_cells = len(cells) if any(failed) else 0
        report.add("mapped", message, f"{scorer}__status", n_cells)


def _text_of_a_side(cell: Any, canonical: str) -> Any:
    """Return the text in an object of inputs or outputs: the one that is named so, or the only one."""
    cell = unpacked(cell, r"\s*\{.*")
    if not isinstance(cell, Mapping):
        return cell
    only = next(iter(cell.values())) if len(cell) == 1 else None
    key = meanings(cell).get(canonical, "expected_response")
    text = cell.get(key, only)
    if isinstance(text, str):
        return text
    return cell
