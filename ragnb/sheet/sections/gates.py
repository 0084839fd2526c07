"""Every gate with what was seen beside its limit."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd

from ragnb import texts
from ragnb.diagnostics import if_documents_fail
from ragnb.markup import MISSING, count, number, one_line
from ragnb.markup.blocks import Code, Estimate, Section, Small, Table
from ragnb.markup.rendering import cell
from ragnb.schema import records
from ragnb.sheet.account import gate_words, incomplete_metrics
from ragnb.sheet.formatter import GATE_TONES, Formatter, Row, Write, chance
from ragnb.sheet.gates import by_outcome, deciding
from ragnb.sheet.systems_table import gate_by_system


def gates(w: Formatter) -> Section | None:
    """Return every gate; nothing where there is none."""
    rows = records(w.gates)
    judging = deciding(w.whole.gates)
    by_system = None
    if w.whole.systems is not None:
        by_system = gate_by_system(w, rows)
    # Those of no system, on a difference or on the input lines, have no place in a table by system.
    rest = [row for row in rows if by_system is None or row["system"] is None]
    ordered = tuple(_row(w, row) for row in sorted(rest, key=_urgency))
    table = None
    if ordered:
        table = Table(tuple(w.head(key) for key in _HEADS), ordered, cards=True)
    lead = w.say("gates.lead", level=w.level)
    badge = next(iter(by_outcome(w, judging)), "")
    if rows:
        return w.section("gates", _finding(w, judging), lead, [by_system, table], badge)
    return None


def cases(w: Formatter) -> list[tuple[str, str, str, str]]:
    """Return every gate as a case of `ragnb.diagnostics.junit`, with the words of its row in the table."""
    cases = []
    for gate in records(w.whole.gates):
        is_open = gate["outcome"] in ("no_data", "undecided") and gate["reason"] == ""
        if gate["blocks"]:
            kind = "failure"
        elif is_open:
            kind = "skipped"
        else:
            kind = "system-out"
        system = "" if gate["system"] is None else f" ({gate['system']})"
        title = f"{gate['gate']}{system}: {gate['metric']} {gate['op']} {gate['threshold']:g}"
        row = _row(w, gate)
        written = [cell(part, one_line) for part in (row.asks, row.outcome, row.seen)]
        # In the table these two stand below their heads; here their heads come along.
        for key, part in (("gates.flip", row.flip), ("gates.more", row.more)):
            text = cell(part, one_line)
            if text != MISSING:
                written.append(f"{w.say(key)}: {text}")
        words = w.say("list.also").join(text for text in written if text != MISSING)
        cases.append((title, kind, gate["outcome"], words))
    return cases


def gate_list(w: Formatter) -> Table | None:
    """Return every gate for a terminal, without the picture, what is asked last; None where there is none."""
    rows = [_row(w, row) for row in sorted(records(w.gates), key=_urgency)]
    columns: dict[str, Write] = {
        "gates.outcome": lambda row: row.outcome,
        ">gates.seen": lambda row: row.seen,
        ">gates.flip": lambda row: row.flip,
        ">gates.more": lambda row: row.more,
        "gates.asks": lambda row: row.asks,
    }
    if rows:
        return w.table(rows, columns)
    return None


class _Row(NamedTuple):
    """The cells of a gate."""

    asks: Any
    outcome: Any
    seen: Any
    place: Any
    flip: str
    more: str


_HEADS = ("gates.asks", "gates.outcome", ">gates.seen", "gates.limit", ">gates.flip", ">gates.more")


def _urgency(row: Row) -> tuple[int, int, float]:
    """Order gates by outcome, the advisory ones last; within one the least firm first."""
    is_aside = int(row["reason"] != "")
    severity = 0  # of what blocks, however it came out
    if not row["blocks"]:
        severity = [*GATE_TONES].index(row["outcome"])
    firmness: float = 0.0 if pd.isna(row["p_flip"]) else -row["p_flip"]
    return is_aside, severity, firmness


def _finding(w: Formatter, rows: list[dict[str, object]]) -> str:
    """Return how many of the gates that decide came out which way, else what the others say."""
    if not rows:
        of_input = [gate for gate in records(w.whole.gates) if gate["role"] == "completeness"]
        n_blocking = sum(bool(gate["blocks"]) for gate in of_input)
        if n_blocking:
            return texts.counted(w.say, "gates.incomplete", n_blocking)
        return w.say("gates.advisory_only")
    n = {key: sum(row["outcome"] == key for row in rows) for key in GATE_TONES}
    if n["fail"]:
        key = "failed"
    elif n["undecided"]:
        key = "open"
    elif not n["pass"]:
        key = "no_data"
    elif n["pass"] == len(rows):
        key = "passed"
    else:
        key = "passed_some"
    if n["fail"] and n["undecided"]:
        key += "_open"
    if key == "passed":
        return texts.counted(w.say, "gates.finding_passed", len(rows))
    counts = {"fail": n["fail"], "open": n["undecided"], "passed": n["pass"], "n": len(rows)}
    return w.say(f"gates.finding_{key}", **counts)


# Why a gate decides nothing, and the text that says so below its outcome.
_ASIDE = {"advisory": "gates.advisory", "not the candidate": "gates.other_system"}


def _row(w: Formatter, gate: Row) -> _Row:
    """Return the cells of a gate; of one on completeness what was counted instead of a value with its interval."""
    metric = gate["metric"]
    outcome: tuple[Any, ...] = (w.outcome(gate),)
    if gate["reason"] in _ASIDE:
        outcome = (*outcome, Small(w.say(_ASIDE[gate["reason"]])))
    if gate["role"] == "completeness":
        return _Row(w.requirement(gate), outcome, gate_words(w, gate), "", "", "")
    asks = (w.requirement(gate), Code(w.code(gate)))
    seen: tuple[Any, ...] = ("",)
    place: tuple[Estimate | str, Small] = ("", Small(""))
    if not pd.isna(gate["value"]):
        evidence = [part for part in (w.ends(metric, gate), w.n(gate)) if part]
        seen = (w.value(metric, gate["value"], gate), Small(", ".join(evidence)))
        place = _place(w, gate)
    flip = "" if pd.isna(gate["p_flip"]) else chance(gate["p_flip"])
    return _Row(asks, outcome, seen, place, flip, _more(w, gate))


def _place(w: Formatter, gate: Row) -> tuple[Estimate | str, Small]:
    """Return where the value stands beside the limit, drawn and in words: by how much it meets or misses it."""
    metric = gate["metric"]
    at = float(gate["threshold"])
    above = gate["op"] == ">="
    gap = (
        gate["value"] - at if above else at - gate["value"]
    )  # below 0 where the value misses the limit
    digits = w.digits(metric, gate)
    if w.is_share(metric):
        by = w.say("gates.points", n=f"{abs(100 * gap):.{digits}f}")
    else:
        by = number(abs(gap), digits)
    words = Small(w.say("gates.meets" if gap >= 0 else "gates.misses", by=by))
    # A difference lies on another scale than its metric, and a quantile on none.
    if metric not in w.rows or gate["role"] == "difference":
        return "", words
    span = w.span(metric)
    if span is None:
        return "", words
    shaded = (at, span[1]) if above else (span[0], at)  # where the limit is met
    thresholds = ((w.limit(metric, at), at),)
    return w.estimate(metric, gate, thresholds=thresholds, shaded=shaded), words


def _more(w: Formatter, gate: Row) -> str:
    """Say how many more questions would decide a gate; a number beyond reach is said as such."""
    if gate["outcome"] != "undecided" or pd.isna(gate["low"]):
        return ""
    if gate["metric"] in incomplete_metrics(w):  # what is lost would decide it, not more questions
        return ""
    if pd.isna(gate["more_needed"]):
        return w.say("gates.more_documents" if if_documents_fail(gate) else "gates.too_close")
    return w.say("gates.about", n=count(gate["more_needed"]))
