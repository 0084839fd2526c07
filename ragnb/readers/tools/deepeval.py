"""Tables of DeepEval: a list of metrics in each row."""

from __future__ import annotations

from typing import Any

from ragnb.readers.lists import parse_list
from ragnb.readers.raw import Lossy, Raw, from_records
from ragnb.readers.results import scored
from ragnb.readers.tools.failures import failed_with_error, is_empty, shared_threshold
from ragnb.readers.verdicts import note_verdicts


def read_deepeval(raw: Raw, report: Lossy) -> None:
    """Take the name of a test case for its id, and spread its metrics."""
    # The name of a test case may be given by hand, and then occur again.
    if "name" in raw.columns and len({*map(str, raw.columns["name"])}) == len(raw):
        raw.rename({"name": "sample_id"}, report)
    # The key in the JSON of a test run, and the field of its objects in Python.
    name = next((name for name in ("metricsData", "metrics_data") if name in raw.columns), "")
    lists = [_metrics_in(cell) for cell in raw.columns.get(name, ())]
    if lists and all(row is None for row in lists):
        report.add("unparsed", name, "no lists of metrics, kept as they are", len(lists))
        return
    damaged = [row for row, metrics in enumerate(lists) if metrics is None]
    raw.lose(damaged, f"{name} is no list of metrics", report)
    lists = [row for row in lists if row is not None]
    columns = raw.columns
    columns.pop(name, None)
    why = "a column a metric; thresholds become gates, verdicts are left out"
    report.add("mapped", name, why, len(lists))
    # Of two metrics of one name the first in the list counts: in reverse it is set last.
    by_name = [
        {str(metric.get("name")): metric for metric in reversed(metrics or [])} for metrics in lists
    ]
    for metric, cells in from_records(by_name).items():
        results: list[Any] = [result or {} for result in cells]
        scores = [result.get("score") for result in results]
        errors = [result.get("error") for result in results]
        verdicts = [result.get("success") for result in results]
        limits = [result.get("threshold") for result in results]
        reasons = [result.get("error") or result.get("reason") for result in results]
        # A case that did not pass and has no score was not measured.
        unmeasured = [
            is_empty(score) and verdict is False
            for score, verdict in zip(scores, verdicts, strict=True)
        ]
        has_error = failed_with_error(errors, scores)
        failed = [either or other for either, other in zip(unmeasured, has_error, strict=True)]
        note_verdicts(raw, metric, scores, limits, verdicts)
        scored(raw, metric, scores, failed, reasons, shared_threshold(results))


def _metrics_in(cell: Any) -> list[dict[str, Any]] | None:
    """Return the metrics in a cell, none of an empty one; None for what is no list of objects."""
    if is_empty(cell):
        return []
    items = parse_list(cell) if isinstance(cell, str) else cell
    listed = isinstance(items, list) and all(isinstance(metric, dict) for metric in items)
    if listed:
        return items
    return None
