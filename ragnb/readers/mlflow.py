"""MLflow: the table of an evaluation, one row a request, with ``<scorer>/value`` and the scorer's reason."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from ragnb.readers.lossy import Lossy
from ragnb.readers.names import meanings
from ragnb.readers.raw import Raw, absent, unpacked

_SCORES = ("/value", "/v1/score")
_REASONS = ("/rationale", "/v1/justification")
_SIDES = {"inputs": "question", "outputs": "answer", "expectations": "ground_truth_answer"}
_VERDICTS = {"yes": 1.0, "no": 0.0}


def sniff(columns: Set[str]) -> bool:
    """Whether some column is the value of a scorer.

    Examples
    --------
    >>> sniff({"inputs", "outputs", "correctness/value"}), sniff({"inputs", "outputs"})
    (True, False)
    """
    return any(name.endswith(_SCORES) for name in columns)


def read(raw: Raw, report: Lossy) -> None:
    """Name the scorers' columns after them, yes is 1 and no is 0, and take texts out of inputs and outputs."""
    raw.rename(_SIDES, report, _text)
    raw.rename({"request_id": "sample_id"}, report)
    for name in [name for name in raw.columns if name.endswith(_SCORES)]:
        scorer = name.removesuffix(_SCORES[0]).removesuffix(_SCORES[1])
        cells = [_VERDICTS.get(str(cell).strip().casefold(), cell) for cell in raw.columns.pop(name)]
        report.add("mapped", name, scorer, len(cells))
        raw.columns[scorer] = cells
        for end in _REASONS:
            if scorer + end in raw.columns:
                raw.columns[f"{scorer}__reason"] = raw.columns.pop(scorer + end)
                report.add("mapped", scorer + end, f"{scorer}__reason", len(cells))
        errors = raw.columns.pop(f"{scorer}/error_message", [None] * len(cells))
        failed = [not absent(e) and e != "" and _empty(c) for e, c in zip(errors, cells, strict=True)]
        if any(failed):
            raw.columns[f"{scorer}__status"] = ["failed" if bad else None for bad in failed]
        report.add("mapped", f"{scorer}/error_message", f"{scorer}__status", len(errors) * any(failed))


def _empty(cell: Any) -> bool:
    return absent(cell) or cell == ""


def _text(cell: Any, canonical: str) -> Any:
    """Return the text in an object of inputs or outputs: the one that is named so, or the only one."""
    cell = unpacked(cell, r"\s*\{.*")
    if not isinstance(cell, Mapping):
        return cell
    named = meanings(cell).get(canonical, "expected_response")
    held = cell[named] if named in cell else next(iter(cell.values())) if len(cell) == 1 else cell
    return held if isinstance(held, str) else cell
