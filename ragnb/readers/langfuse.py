"""Langfuse: exported scores, one row a score; people annotate, evaluators judge."""

from __future__ import annotations

from collections.abc import Set

from ragnb.readers.cells import as_id
from ragnb.readers.lossy import Lossy
from ragnb.readers.raw import Raw, Values, absent

_KINDS = {"ANNOTATION": "human", "EVAL": "judge"}
_NUMBERS = ("NUMERIC", "BOOLEAN")


def sniff(columns: Set[str]) -> bool:
    """Whether these are the columns of exported scores.

    Examples
    --------
    >>> sniff({"traceId", "name", "value", "dataType", "source"}), sniff({"traceId", "input"})
    (True, False)
    """
    return {"name", "value", "source", "dataType"} <= columns


def scored_ids(raw: Raw) -> Values:
    """Return of each row the trace that was scored, and the observation in it, if any."""
    traces, spans = (raw.columns.get(name, [None] * len(raw)) for name in ("traceId", "observationId"))
    return [":".join(filter(None, map(as_id, pair))) for pair in zip(traces, spans, strict=True)]


def read(raw: Raw, report: Lossy) -> None:
    """Take annotations for human scores and evaluators' for the judge's; text and API scores are left out."""
    sources, types = raw.columns["source"], raw.columns["dataType"]
    said = [i for i, source in enumerate(sources) if str(source) in _KINDS]
    report.add("left_out", "source", "scores that neither a person nor an evaluator gave", len(raw) - len(said))
    kept = [i for i in said if str(types[i]) in _NUMBERS]
    report.add("left_out", "dataType", "scores that are no numbers", len(said) - len(kept))
    raw.keep(kept)
    columns = raw.columns
    authors = columns.get("authorUserId", [None] * len(raw))
    raw.columns = {
        "item_id": scored_ids(raw),
        "dimension": columns["name"],
        "rater": ["judge" if s == "EVAL" else as_id(a) for s, a in zip(columns["source"], authors, strict=True)],
        "rater_kind": [_KINDS[source] for source in columns["source"]],
        "score": columns["value"],
        **{name: columns[name] for name in ("comment", "timestamp") if name in columns},
    }
    if all(absent(rater) or rater == "judge" for rater in raw.columns["rater"]) or "authorUserId" not in columns:
        raw.columns["rater"] = ["judge" if kind == "judge" else "human" for kind in raw.columns["rater_kind"]]
