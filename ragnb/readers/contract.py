"""The cells of a table of samples, made what the frame contract says: texts, identifiers, lists, results."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from ragnb.readers.cells import as_id, as_text, joined_texts, parse_list, text_lists
from ragnb.readers.lossy import Lossy
from ragnb.readers.raw import Raw, Values, absent

CONTEXTS = ("retrieved_contexts", "ground_truth_contexts")
IDS = ("sample_id", "doc_name", "system", "repeat", "persona", "cluster", "item_id")
LISTS = ("source_units", "generation_params", "chunks", "citations", "gold_ids", "passage_id")


def made_ids(raw: Raw) -> Values:
    """Number the samples as they appear; the same question of another system or repeat is the same sample."""
    runs = [raw.columns[name] for name in ("system", "repeat") if name in raw.columns]
    if not runs:
        return [str(i + 1) for i in range(len(raw))]
    questions = raw.columns.get("question", [None] * len(raw))
    asked: Counter[tuple[str, ...]] = Counter()
    ids: dict[tuple[str, int], str] = {}
    made: Values = []
    for row in zip(questions, *runs, strict=True):
        key = tuple(map(str, row))
        asked[key] += 1
        made.append(ids.setdefault((key[0], asked[key]), str(len(ids) + 1)))
    return made


def case_cells(raw: Raw, report: Lossy) -> None:
    """Make the cells of the case columns what the frame contract says: texts, identifiers, lists."""
    for name in CONTEXTS:
        if name in raw.columns:
            text_lists(raw, name, report)
    if "ground_truth_answer" in raw.columns:
        joined_texts(raw, "ground_truth_answer", report)
    readers: dict[str, Callable[[Any], Any]] = dict.fromkeys(
        ("question", "answer", "ground_truth_answer"), as_text
    )
    readers |= dict.fromkeys(IDS, as_id)
    if not raw.typed:
        readers |= dict.fromkeys(("question", "answer", "ground_truth_answer"), _text_of_csv)
        readers |= dict.fromkeys(LISTS, _parsed)
    for name, read in readers.items():
        if name in raw.columns:
            raw.columns[name] = [read(value) for value in raw.columns[name]]


def _text_of_csv(value: Any) -> str | None:
    return as_text(value) or None


def _parsed(value: Any) -> Any:
    """Return the list or object of a cell of text; other text as it is; None for an empty cell."""
    if not isinstance(value, str) or not value.strip():
        return None if absent(value) or isinstance(value, str) else value
    if value.lstrip().startswith("{"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    parsed = parse_list(value)
    return value if parsed is None else parsed


def spread_results(raw: Raw, report: Lossy) -> None:
    """Turn a column ``results`` (metric → score, status, reason) into columns a metric."""
    cells = raw.columns.get("results")
    if cells is None or not all(absent(c) or isinstance(c, Mapping) for c in cells):
        return
    held = [{} if absent(c) else c for c in cells]
    if not all(isinstance(r, Mapping) and {"score", "status"} & set(r) for c in held for r in c.values()):
        return
    del raw.columns["results"]
    report.add("mapped", "results", "a column a metric", len(held))
    for metric in dict.fromkeys(name for cell in held for name in cell):
        found = [cell.get(metric) or {} for cell in held]
        scores: dict[str, Values] = {
            str(metric): [r.get("score") for r in found],
            f"{metric}__status": [r.get("status") for r in found],
            f"{metric}__reason": [r.get("reason") for r in found],
        }
        raw.columns.update({n: v for n, v in scores.items() if not all(map(absent, v)) or n == metric})
