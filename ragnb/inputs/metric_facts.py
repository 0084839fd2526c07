"""The metrics of a table and the columns that may be some, each with what is known of it and the evidence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from ragnb.inputs.candidates import is_number, why_no_candidate
from ragnb.readers.failures import tells_if_answered
from ragnb.readers.metrics import open_facts
from ragnb.readers.reading import Reading
from ragnb.readers.scores import two_scales
from ragnb.readers.verdicts import name_is_verdict
from ragnb.schema import CLIP, METRICS, is_operation, range_of
from ragnb.weights.conversations import conversation_column, turn_column

FACT_COLUMNS = (
    "metric",
    "low",
    "high",
    "better",
    "kind",
    "seen_low",
    "seen_high",
    "n",
    "n_missing",
    "n_failed",
    "n_not_applicable",
    "known",
    "declare",
    "open",
    "scale_evidence",
    "direction_evidence",
)

Facts = Mapping[tuple[str | None, str], Mapping[str, Any]]


def by_name(facts: Iterable[Mapping[str, Any]]) -> dict[tuple[str | None, str], Mapping[str, Any]]:
    """Return facts by metric and kind of fact; of several the last, which is the most that is known.

    Examples
    --------
    >>> by_name([{"metric": "bias", "fact": "scale", "value": (0, 1)}])["bias", "scale"]["value"]
    (0, 1)
    """
    return {(fact["metric"], fact["fact"]): fact for fact in facts}


def metric_table(reading: Reading) -> pd.DataFrame:
    """Return one row for each metric of a table that `read_table` gave, then for each column that may be one.

    Returns
    -------
    DataFrame
        ``metric, low, high, better, kind`` as they are known or proposed (nan and ``?`` where nothing says them),
        ``seen_low, seen_high, n, n_missing, n_failed, n_not_applicable`` of the cells, ``known`` (counts without a
        declaration, or only with its scale), ``declare`` (has to be declared), ``open`` (the facts that somebody
        has to say), and the evidence of scale and direction in words.
    """
    frame = reading.frame
    facts = by_name(reading.facts)
    with_open_fact = open_facts(reading.facts)
    of_tool = {row["metric"]: row for row in reading.metrics}
    rows = []
    for name in map(str, frame.columns):
        cells = frame[name]
        if "__" in name or not is_number(cells):
            continue
        if "answer" in frame and tells_if_answered(list(cells), name, list(frame["answer"])):
            continue
        values = pd.to_numeric(cells).astype(float).dropna()
        # Whether the column counts as a metric without a declaration.
        counts = name in of_tool or (name in METRICS and name not in with_open_fact)
        if not len(values) or (not counts and why_no_candidate(name, values)):
            continue
        row = _row(name, values, counts, facts, of_tool.get(name), reading.spans)
        rows.append(row | _gaps(frame, name, len(values)))
    if any(row["known"] for row in rows):
        # A verdict beside scores sums them up, or is one of them again.
        rows = [row for row in rows if row["known"] or not _sums_up(frame, row)]
    kinds = {"known": bool, "declare": bool, "low": float, "high": float}
    table = pd.DataFrame(rows, columns=list(FACT_COLUMNS)).astype(kinds)
    _share_scale(table)
    is_other_scale = (table["low"] != 0) | (table["high"] != 1)
    ordered = table.assign(later=~table["known"], other=is_other_scale)
    ordered = ordered.sort_values(["later", "other"], kind="stable", ignore_index=True)
    return ordered.drop(columns=["later", "other"])


def _row(
    name: str,
    values: pd.Series,
    counts: bool,
    facts: Facts,
    tool: Mapping[str, Any] | None,
    spans: Mapping[str, tuple[float, float]],
) -> dict[str, Any]:
    """Return what is known of one column, and what has to be declared or said."""
    seen = (float(values.min()), float(values.max()))
    scale = facts.get((name, "scale"), {})
    direction = facts.get((name, "direction"), {})
    metric = METRICS.get(name)
    known_better = metric.better if metric else "?"
    better = direction.get("value") or known_better
    scale_evidence = scale.get("evidence", "")
    ends: tuple[float, float] | None = scale.get("value") or range_of(*seen)
    # What a tool declares in its file is nearer to these scores than what ragnb knows of the name.
    if counts and tool is not None:
        ends = (tool["low"], tool["high"])
        better = tool["better"] or better
    elif counts and metric is not None:
        ends = (metric.low, metric.high)
    # A score outside what is known shows that this file has another scale: that of its values is proposed.
    fits = ends is not None and ends[0] - CLIP <= seen[0] and seen[1] <= ends[1] + CLIP
    if not fits:
        ends = range_of(*spans.get(name, seen))
        scale_evidence = f"values from {seen[0]:g} to {seen[1]:g}"
    mixed = two_scales(values.to_numpy(dtype=float))
    if mixed:
        # Some rows from 0 to 1 and others to 100, say: no one range is right for both.
        ends = None
        scale_evidence = mixed
    low, high = ends or (math.nan, math.nan)
    open_names = []
    if ends is None:
        open_names.append("scale")
    if better == "?":
        open_names.append("direction")
    kind = None
    if tool is not None:
        kind = tool.get("kind")
    if not kind and metric is not None and counts:
        kind = metric.kind
    if not kind:
        is_binary = bool(values.isin([0, 1]).all()) and (low, high) == (0, 1)
        kind = "binary" if is_binary else "continuous"
    return {
        "metric": name,
        "low": low,
        "high": high,
        "better": better,
        "kind": kind,
        "seen_low": seen[0],
        "seen_high": seen[1],
        "n": len(values),
        "known": counts,
        "declare": not (counts and fits),
        "open": ", ".join(open_names),
        "scale_evidence": scale_evidence,
        "direction_evidence": direction.get("evidence", ""),
    }


def _gaps(frame: pd.DataFrame, name: str, n: int) -> dict[str, int]:
    """Return how many cells of a metric failed, do not apply, and are missing without a reason."""
    n_failed = 0
    n_not_applicable = 0
    if f"{name}__status" in frame:
        status = frame[f"{name}__status"]
        n_failed = int(status.eq("failed").sum())
        n_not_applicable = int(status.eq("not_applicable").sum())
    # Not below 0: a cell with a number may have such a status, too.
    n_missing = max(len(frame) - n - n_failed - n_not_applicable, 0)
    return {"n_missing": n_missing, "n_failed": n_failed, "n_not_applicable": n_not_applicable}


def _sums_up(frame: pd.DataFrame, row: Mapping[str, Any]) -> bool:
    """Whether a column holds flags or verdicts, and its name says that they are on the whole answer."""
    is_flag = pd.api.types.is_bool_dtype(frame[row["metric"]])
    # `passed` beside scores is computed of them, and would count them twice.
    is_verdict = is_flag or row["scale_evidence"] == "all its cells are verdicts"
    return is_verdict and name_is_verdict(row["metric"])


def _share_scale(table: pd.DataFrame) -> None:
    """Give scales that are proposed side by side one low end, in place: 0..10 and 1..10 are one judge's."""
    proposed = table["declare"] & table["low"].notna()
    for high in table.loc[proposed, "high"].unique():
        shared = proposed & (table["high"] == high)
        if high > 1:
            table.loc[shared, "low"] = table.loc[shared, "low"].min()


def unused_columns(frame: pd.DataFrame, used: Iterable[str]) -> dict[str, list[str]]:
    """Return the columns that are no metrics, by why: a code of `why_no_candidate`, ``flag, text`` or ``list``.

    ``conversation`` is the column of conversations, and ``turn`` that of their turns.

    Examples
    --------
    >>> frame = pd.DataFrame({"tone": [4], "language": ["en"], "top_k": [3], "recall": [None]})
    >>> unused_columns(frame, ["tone"])
    {'question': ['language'], 'measure': ['top_k'], 'empty': ['recall']}
    """
    taken = set(used)
    unused: dict[str, list[str]] = {}
    conversation = conversation_column(frame)
    if conversation is not None:
        read_as = {conversation: "conversation", turn_column(frame): "turn"}
        unused = {code: [name] for name, code in read_as.items() if name is not None}
        taken |= {name for name in read_as if name is not None}
    for name in map(str, frame.columns):
        if name not in taken and "__" not in name:
            unused.setdefault(_why_unused(name, frame[name]), []).append(name)
    unused.pop("mapped", None)
    return unused


def _why_unused(name: str, cells: pd.Series) -> str:
    """Return the code of why a column is not used."""
    filled = cells.dropna()
    if not len(filled):
        return "empty"
    if is_number(cells):
        values = pd.to_numeric(cells).astype(float).dropna()
        # What could be a metric and is none here is a verdict that sums the others up.
        return why_no_candidate(name, values) or "flag"
    # By the name alone, as if its cells were numbers.
    code = why_no_candidate(name, pd.Series([0.0]))
    if code in ("mapped", "question"):
        return code
    if is_operation(name):
        return "not_numbers"
    nested = filled.map(lambda cell: isinstance(cell, list | dict | tuple)).any()
    if nested:
        return "list"
    return "text"
