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
        ends = [_object_of(cell).get("status") for cell in raw.columns.pop(name)]
        scores = [
            _object_of(cell) for cell in raw.columns.pop(f"{metric}_score", [None] * len(ends))
        ]
        directions = {str(score.get("direction")) for score in scores if score.get("direction")}
        failed = [end == "FAILED" for end in ends]
        reasons = [score.get("explanation") for score in scores]
        lower = "lower" if "minimize" in directions else "higher"
        scale = {"better": lower if directions else None}
        scored(raw, metric, [score.get("score") for score in scores], failed, reasons, scale)
        report.add("mapped", f"{metric}_score", "the score of an object, and its reason", len(ends))


def _object_of(cell: Any) -> Mapping[str, Any]:
    if isinstance(cell, str):
        items = parse_list(f"[{cell}]")
    else:
        items = [cell]
    if items and isinstance(items[0], Mapping):
        return items[0]
    return {}


def read_annotations(raw: Raw, report: Lossy) -> None:
    """Say what was scored, and who by, a person or a judge; leave out scores that are not numbers."""
    if "traceId" in raw.columns:
        texts = [str(kind) not in ("NUMERIC", "BOOLEAN") for kind in raw.columns.pop("dataType")]
        spans = zip(
            raw.columns.pop("traceId"),
            raw.columns.pop("observationId", [None] * len(texts)),
            strict=True,
        )
        raw.columns["item_id"] = [":".join(filter(None, map(as_id, pair))) for pair in spans]
        raw.drop(texts, "dataType", "scores that are not numbers", report, need=True)
    columns = raw.columns
    who = TOOLS["phoenix"]["annotators"]
    columns["rater_kind"] = kinds = [
        who.get(str(kind).upper()) for kind in columns.pop("annotator_kind")
    ]
    names = columns.pop("user_id", [None] * len(raw))
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
    words = {"minimize": "lower", "maximize": "higher"}
    said: dict[str, set[str]] = {}
    for metric, cell in zip(raw.cells("dimension"), raw.cells("metadata"), strict=True):
        direction = str(_object_of(cell).get("direction"))
        if direction in words:
            said.setdefault(clean_text(metric), set()).add(direction)
    for metric, found in said.items():
        if len(found) == 1:
            word = found.pop()
            raw.verdicts[metric] = Direction(words[word], f"its metadata say {word}")
