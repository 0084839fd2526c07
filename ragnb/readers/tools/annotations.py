"""Annotations of Langfuse and Phoenix: what was scored, and by whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragnb.readers.cells import as_id
from ragnb.readers.facts import Direction
from ragnb.readers.lists import parse_list
from ragnb.readers.raw import Lossy, Raw, clean_text
from ragnb.readers.results import scored
from ragnb.readers.tools.known import TOOLS
from ragnb.readers.tools.long import read_long


def read_phoenix(raw: Raw, report: Lossy) -> None:
    """Take the scores out of the objects of `evaluate_dataframe`, with their direction and how they ended."""
    for name in [name for name in raw.columns if name.endswith("_execution_details")]:
        metric = name.removesuffix("_execution_details")
        states = [_object_of(cell).get("status") for cell in raw.columns.pop(name)]
        cells = raw.columns.pop(f"{metric}_score", [None] * len(states))
        results = [_object_of(cell) for cell in cells]
        scores = [result.get("score") for result in results]
        reasons = [result.get("explanation") for result in results]
        failed = [state == "FAILED" for state in states]
        directions = {str(result["direction"]) for result in results if result.get("direction")}
        better = None
        if directions:
            better = "lower" if "minimize" in directions else "higher"
        scored(raw, metric, scores, failed, reasons, {"better": better})
        why = "the score of an object, and its reason"
        report.add("mapped", f"{metric}_score", why, len(states))


def _object_of(cell: Any) -> Mapping[str, Any]:
    """Return the object in a cell, or in its text; an empty one where there is none."""
    if isinstance(cell, str):
        # JSON, or a Python literal, as pandas writes an object to CSV: `parse_list` reads lists of either.
        items = parse_list(f"[{cell}]")
    else:
        items = [cell]
    if items and isinstance(items[0], Mapping):
        return items[0]
    return {}


def read_annotations(raw: Raw, report: Lossy) -> None:
    """Say what was scored, and who by, a person or a judge; leave out scores that are not numbers."""
    # A column that only Langfuse writes.
    if "traceId" in raw.columns:
        is_text = [str(kind) not in ("NUMERIC", "BOOLEAN") for kind in raw.columns.pop("dataType")]
        traces = raw.columns.pop("traceId")
        observations = raw.columns.pop("observationId", [None] * len(is_text))
        item_ids = []
        for trace, observation in zip(traces, observations, strict=True):
            # A score of a whole trace has no observation.
            ids = [as_id(trace), as_id(observation)]
            item_ids.append(":".join(id for id in ids if id))
        raw.columns["item_id"] = item_ids
        raw.drop(is_text, "dataType", "scores that are not numbers", report, need=True)
    columns = raw.columns
    kind_of = TOOLS["phoenix"]["annotators"]
    kinds = [kind_of.get(str(kind).upper()) for kind in columns.pop("annotator_kind")]
    columns["rater_kind"] = kinds
    names = columns.pop("user_id", [None] * len(raw))
    # Scores without a name count as those of one rater of their kind.
    columns["rater"] = [as_id(name) or kind for name, kind in zip(names, kinds, strict=True)]


def judged(raw: Raw, report: Lossy) -> None:
    """Pivot annotations to one row per sample; human scores are excluded, ratings have their own reader."""
    people = [kind == "human" for kind in raw.columns["rater_kind"]]
    raw.drop(
        people, "annotator_kind", "human annotations; read_ratings reads them", report, need=True
    )
    _keep_directions(raw)
    names = {"item_id": "sample_id", "dimension": "metric", "score": "score", "comment": "comment"}
    raw.columns = {new: raw.columns[name] for name, new in names.items() if name in raw.columns}
    read_long(raw, report)


def _keep_directions(raw: Raw) -> None:
    """Keep the direction that the metadata of annotations name, ``minimize`` or ``maximize``."""
    better_of = {"minimize": "lower", "maximize": "higher"}
    words_of: dict[str, set[str]] = {}
    for metric, cell in zip(raw.cells("dimension"), raw.cells("metadata"), strict=True):
        word = str(_object_of(cell).get("direction"))
        if word in better_of:
            # `read_long`, which comes next, cleans the names of metrics in the same way.
            words_of.setdefault(clean_text(metric), set()).add(word)
    for metric, words in words_of.items():
        if len(words) == 1:
            word = words.pop()
            raw.verdicts[metric] = Direction(better_of[word], f"its metadata say {word}")
