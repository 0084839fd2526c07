"""Phoenix: annotations of spans, one row an annotation; people, models and code annotate alike."""

from __future__ import annotations

from collections.abc import Set

from ragnb.readers.lossy import Lossy
from ragnb.readers.raw import Raw, absent

_KINDS = {"HUMAN": "human", "LLM": "judge"}


def sniff(columns: Set[str]) -> bool:
    """Whether these are the columns of annotations.

    Examples
    --------
    >>> sniff({"context.span_id", "score", "annotation_name", "annotator_kind"}), sniff({"score"})
    (True, False)
    """
    return "annotator_kind" in columns and bool({"score", "result.score"} & columns)


def read(raw: Raw, report: Lossy) -> None:
    """Take rows of people for human scores and rows of models for the judge's; those of code are left out."""
    kinds = [str(kind).upper() for kind in raw.columns["annotator_kind"]]
    kept = [i for i, kind in enumerate(kinds) if kind in _KINDS]
    report.add("left_out", "annotator_kind", "annotations by code", len(raw) - len(kept))
    raw.keep(kept)
    raw.columns["rater_kind"] = [_KINDS[str(kind).upper()] for kind in raw.columns.pop("annotator_kind")]
    for name in ("result.score", "result.label", "result.explanation"):
        if name in raw.columns:
            raw.columns.setdefault(name.removeprefix("result."), raw.columns.pop(name))
    who = raw.columns.pop("user_id", raw.columns.pop("identifier", [None] * len(raw)))
    raw.columns["rater"] = [
        kind if absent(name) or name == "" else str(name)
        for kind, name in zip(raw.columns["rater_kind"], who, strict=True)
    ]
