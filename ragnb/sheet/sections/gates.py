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
    if w.whole.systems is None:
        by_system = None
    else:
        by_system = gate_by_system(w, rows)
    rest = [row for row in rows if by_system is None or row["system"] is None]
    ordered = tuple(_row(w, row) for row in sorted(rest, key=_urgency))
    heads = tuple(map(w.head, _HEADS))
    table = Table(heads, ordered, cards=True) if ordered else None
    lead = w.say("gates.lead", level=w.level)
    badge = next(iter(by_outcome(w, judging)), "")
    if rows:
        return w.section("gates", _finding(w, judging), lead, [by_system, table], badge)
    return None


def cases(w: Formatter) -> list[tuple[str, str, str, str]]:
    """Return every gate as a case of `ragnb.diagnostics.junit`, with the words of its row in the table."""
    out = []
    for gate in records(w.whole.gates):
        skipped = gate["outcome"] in ("no_data", "undecided") and gate["reason"] == ""
        if gate["blocks"]:
            kind = "failure"
        elif skipped:
            kind = "skipped"
        else:
            kind = "system-out"
        if gate["system"] is None:
            system = ""
        else:
            system = f" ({gate['system']})"
        title = f"{gate['gate']}{system}: {gate['metric']} {gate['op']} {gate['threshold']:g}"
        row = _row(w, gate)
        written = [cell(one, one_line) for one in (row.asks, row.outcome, row.seen)]
        for key, one in (("gates.flip", row.flip), ("gates.more", row.more)):
            text = cell(one, one_line)
            written.append(MISSING if text == MISSING else f"{w.say(key)}: {text}")
        words = w.say("list.also").join(text for text in written if text != MISSING)
        out.append((title, kind, gate["outcome"], words))
    return out


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
    firm: float = 0.0 if pd.isna(row["p_flip"]) else -row["p_flip"]
    return (
        int(row["reason"] != ""),
        0 if row["blocks"] else [*GATE_TONES].index(row["outcome"]),
        firm,
    )


def _finding(w: Formatter, rows: list[dict[str, object]]) -> str:
    n = {key: sum(row["outcome"] == key for row in rows) for key in GATE_TONES}
    if not rows:
        lost = [gate for gate in records(w.whole.gates) if gate["role"] == "completeness"]
        failed = sum(bool(gate["blocks"]) for gate in lost)
        if failed:
            return texts.counted(w.say, "gates.incomplete", failed)
        return w.say("gates.advisory_only")
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


def _row(w: Formatter, gate: Row) -> _Row:
    metric = gate["metric"]
    outcome = w.outcome(gate)
    key = {"advisory": "gates.advisory", "not the candidate": "gates.other_system"}.get(
        gate["reason"]
    )
    kind = [Small(w.say(key))] if key else []
    if gate["role"] == "completeness":
        return _Row(w.requirement(gate), (outcome, *kind), gate_words(w, gate), "", "", "")
    asks = (w.requirement(gate), Code(w.code(gate)))
    seen = ("",)
    place = ("", Small(""))
    if not pd.isna(gate["value"]):
        words = ", ".join(filter(None, [w.ends(metric, gate), w.n(gate)]))
        seen = (w.value(metric, gate["value"], gate), Small(words))
        place = _place(w, gate)
    if pd.isna(gate["p_flip"]):
        flip = ""
    else:
        flip = chance(gate["p_flip"])
    return _Row(asks, (outcome, *kind), seen, place, flip, _more(w, gate))


def _place(w: Formatter, gate: Row) -> tuple[Estimate | str, Small]:
    """Return where the value stands beside the limit, drawn and in words: by how much it meets or misses it."""
    metric = gate["metric"]
    at = float(gate["threshold"])
    above = gate["op"] == ">="
    gap = (gate["value"] - at) * (1 if above else -1)
    digits = w.digits(metric, gate)
    if w.is_share(metric):
        by = w.say("gates.points", n=f"{abs(100 * gap):.{digits}f}")
    else:
        by = number(abs(gap), digits)
    words = Small(w.say("gates.meets" if gap >= 0 else "gates.misses", by=by))
    if metric not in w.rows or gate["role"] == "difference" or (span := w.span(metric)) is None:
        return "", words
    shaded = (at, span[1]) if above else (span[0], at)
    return w.estimate(metric, gate, thresholds=((w.limit(metric, at), at),), shaded=shaded), words


def _more(w: Formatter, gate: Row) -> str:
    """Say how many more questions would decide a gate; a number beyond reach is said as such."""
    if gate["outcome"] != "undecided" or pd.isna(gate["low"]):
        return ""
    if gate["metric"] in incomplete_metrics(w):  # what is lost would decide it, not more questions
        return ""
    if pd.isna(gate["more_needed"]):
        return w.say("gates.more_documents" if if_documents_fail(gate) else "gates.too_close")
    return w.say("gates.about", n=count(gate["more_needed"]))
