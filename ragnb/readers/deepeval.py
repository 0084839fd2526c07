"""DeepEval: test runs, one record a test case with its metrics in a list, and its data sets."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from ragnb.readers.cells import parse_list
from ragnb.readers.lossy import Lossy
from ragnb.readers.raw import Raw, absent

_RETRIEVED = {"retrievalContext", "retrieval_context"}
_METRICS = ("metricsData", "metrics_data")


def sniff(columns: Set[str]) -> bool:
    """Whether these are test cases: their context is what should be retrieved, not what was.

    Examples
    --------
    >>> sniff({"input", "actualOutput", "metricsData"}), sniff({"input", "context", "retrieval_context"})
    (True, True)
    >>> sniff({"input", "context"})
    False
    """
    return bool({*_METRICS} & columns) or ("context" in columns and bool(_RETRIEVED & columns))


def read(raw: Raw, report: Lossy) -> None:
    """Take ``context`` for the reference contexts, the name of a test case for its id, and spread its metrics."""
    columns = raw.columns
    raw.rename({"context": "ground_truth_contexts"}, report)
    name = next((name for name in _METRICS if name in columns), None)
    if name is None:
        return
    if "name" in columns and len({*map(str, columns["name"])}) == len(raw):
        columns["sample_id"] = columns.pop("name")
        report.add("mapped", "name", "sample_id", len(raw))
    cells = [parse_list(cell) if isinstance(cell, str) else cell for cell in columns[name]]
    given = [cell for cell in cells if not absent(cell)]
    if not all(isinstance(cell, list) and all(isinstance(m, dict) for m in cell) for cell in given):
        report.add("unparsed", name, "no lists of metrics, kept as they are", len(cells))
        return
    del columns[name]
    held: list[list[dict[str, Any]]] = [cell if isinstance(cell, list) else [] for cell in cells]
    report.add("mapped", name, "a column a metric; thresholds and verdicts are left out", len(held))
    for metric in dict.fromkeys(str(m.get("name")) for cell in held for m in cell):
        found = [next((m for m in cell if m.get("name") == metric), {}) for cell in held]
        columns[metric] = [m.get("score") for m in found]
        failed = [bool(m.get("error")) and absent(m.get("score")) for m in found]
        if any(failed):
            columns[f"{metric}__status"] = ["failed" if bad else None for bad in failed]
        columns[f"{metric}__reason"] = [m.get("error") or m.get("reason") for m in found]
