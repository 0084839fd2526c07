"""The account in words: what was lost in sentences, the worst case beside a mean, and the table of a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragnb.diagnostics.completeness import ALLOWED, INPUT_LINES, SCORED_CELLS, judged_by, too_much
from ragnb.markup import MISSING, count, percent
from ragnb.markup.blocks import Table
from ragnb.schema import records

if TYPE_CHECKING:
    from ragnb.sheet.formatter import Formatter

Row = Mapping[Any, Any]
_SAME = 1e-9  # two means alike up to rounding


def rows_of(w: Formatter, gate: Row) -> list[Row]:
    """Return the rows of the account that a completeness gate judges, the largest loss first."""
    rows = records(w.whole.account)
    if gate["gate"] != INPUT_LINES:
        rows = [
            row for row in rows if row["stage"] != "lines" and _same(row["system"], gate["system"])
        ]
    return judged_by(gate["gate"], rows)


def _same(system: Any, other: Any) -> bool:
    return bool(system == other) or (pd.isna(system) and pd.isna(other))


def gate_words(w: Formatter, gate: Row) -> str:
    """Return what a completeness gate counted, such as "50 of 101 input lines are damaged or lost"."""
    rows = rows_of(w, gate)
    if not rows:
        return _with_system(w, gate["system"], w.say("account.no_scores"))
    worst = rows[0]
    if not worst["lost"]:
        return _with_system(w, gate["system"], w.say("account.whole", n=count(worst["expected"])))
    return w.list(loss_words(w, [worst]))


def blocking_words(w: Formatter) -> list[str]:
    """Return what was lost beyond what is allowed, one phrase a kind of loss; nothing where nothing blocks."""
    gates = w.whole.gates
    allow = w.whole.scenario.allow.model_dump()
    out: list[str] = []
    lines: list[Row] = []
    for gate in records(gates[(gates["role"] == "completeness") & gates["blocks"]]):
        beyond = [row for row in rows_of(w, gate) if too_much(row, allow[ALLOWED[gate["gate"]]])]
        # Gold that has no answer says it already of the answers.
        rows = [row for row in beyond if row is beyond[0] or row["stage"] != "answers"]
        rows = [row for row in rows if not _is_told(row, lines)]
        lines += rows
        if beyond and not rows:
            continue
        if not rows:
            out.append(gate_words(w, gate))
        elif gate["gate"] == SCORED_CELLS and _nothing_came(w, gate):
            n = sum(row["expected"] for row in rows)
            out.append(_with_system(w, gate["system"], w.say("account.all", n=count(n))))
        else:
            out += loss_words(w, rows)
    return out


def _is_told(row: Row, told: Iterable[Row]) -> bool:
    """Whether the lost cells of a row are those of answers or questions that were told to be lost."""
    return row["stage"] == "cells" and any(
        one["stage"] in ("questions", "answers")
        and _same(one["system"], row["system"])
        and (one["lost"], one["expected"]) == (row["lost"], row["expected"])
        for one in told
    )


def _nothing_came(w: Formatter, gate: Row) -> bool:
    return all(row["seen"] == 0 for row in rows_of(w, gate))


def said_losses(w: Formatter) -> list[str]:
    """Return all that was lost and that a verdict says: lines, questions, answers, and cells of metrics.

    Of an answer that is missing, gold or the cases say it; rates that no gate uses say it with the answers.
    """
    rows = [row for row in records(w.whole.account) if row["lost"]]
    of_sets = {
        row["system"]
        for row in rows
        if row["stage"] == "questions" and row["subject"] != "baseline"
    }
    shown: list[Row] = []
    for row in rows:
        if row["stage"] == "answers" and row["system"] in of_sets:
            continue
        if row["stage"] == "cells" and not row["decides"] and _is_rate(w, row["subject"]):
            continue
        if _is_told(row, shown):
            continue
        if row["stage"] != "total":
            shown.append(row)
    return loss_words(w, shown)


def _is_rate(w: Formatter, metric: str) -> bool:
    return metric in w.rates


def loss_words(w: Formatter, rows: Iterable[Row]) -> list[str]:
    """Return phrases such as "240 of 300 answers have no faithfulness score".

    Metrics that lost the same number of cells are said together.
    """
    out: list[str] = []
    cells: dict[tuple[Any, int, int], list[str]] = {}
    for row in rows:
        if row["stage"] == "cells":
            place = (row["system"], int(row["lost"]), int(row["expected"]))
            cells.setdefault(place, []).append(w.name(row["subject"]))
        elif row["stage"] == "answers":
            failed = int(row["failed"])
            missing = int(row["lost"]) - int(row["failed"])
            out += _phrase(w, row, "answers_failed", failed)
            out += _phrase(w, row, "answers_missing", missing)
        else:
            key = "lines" if row["stage"] == "lines" else row["subject"]
            out += _phrase(w, row, key, int(row["lost"]))
    for (system, lost, n), names in cells.items():
        if len(names) == 1:
            key = "account.cells_one"
        else:
            key = "account.cells"
        text = w.say(key, lost=count(lost), n=count(n), names=w.list(names))
        out.append(_with_system(w, system, text))
    return out


def _phrase(w: Formatter, row: Row, key: str, lost: int) -> list[str]:
    if not lost:
        return []
    expected = int(row["expected"])
    words = {"lost": count(lost), "n": count(expected)}
    if key == "answers_failed":
        words["share"] = percent(lost / expected)
    text = w.say(f"account.{key}", **words)
    return [_with_system(w, row["system"], text)]


def _with_system(w: Formatter, system: Any, text: str) -> str:
    if pd.isna(system):
        return text
    return w.say("account.of_system", system=system, text=text)


def worst_words(w: Formatter, metric: str, row: Row, key: str = "account.worst") -> str:
    """Return ", and 0.186 if all lost answers were wrong" of a mean; nothing where nothing is lost.

    `key` is the text, ``account.worst_alone`` where it stands on a line of its own.
    """
    account = w.whole.account
    system = row.get("system", w.shown)
    rows_of_metric = account[account["subject"] == metric]
    worst = [entry["worst"] for entry in records(rows_of_metric) if _same(entry["system"], system)]
    if not worst or pd.isna(worst[0]) or abs(worst[0] - row["value"]) <= _SAME:
        return ""
    return w.say(key, value=w.value(metric, worst[0]))


def incomplete_metrics(w: Formatter) -> list[str]:
    """Return the shown metrics of which more cells are lost than is allowed."""
    allowed = w.whole.scenario.allow.cells
    rows = records(w.whole.account)
    cells = [row for row in rows if row["stage"] == "cells" and row["subject"] in w.rows]
    rows_shown = [row for row in cells if w.shown is None or row["system"] == w.shown]
    return [row["subject"] for row in rows_shown if row["decides"] and too_much(row, allowed)]


def account_table(w: Formatter) -> Table | None:
    """Return what was expected and what came, without the rates of which nothing is lost."""
    rows = [
        row
        for row in records(w.whole.account)
        if row["lost"] or not (row["stage"] == "cells" and _is_rate(w, row["subject"]))
    ]
    columns = {
        "account.what": lambda row: _label(w, row),
        ">account.expected": lambda row: count(row["expected"]),
        ">account.seen": lambda row: count(row["seen"]),
        ">account.lost": lambda row: count(row["lost"]),
        "account.reason": lambda row: _reasons(w, row),
        ">column.not_applicable": lambda row: count(row["not_applicable"]),
        ">account.if_wrong": lambda row: _if_wrong(w, row),
    }
    if rows:
        return w.table(rows, columns, folded=w.say("account.title"))
    return None


def _label(w: Formatter, row: Row) -> str:
    subject = row["subject"]
    if row["stage"] == "lines":
        text = w.say("account.row_lines", role=w.say(f"role.{subject}"))
    elif row["stage"] == "total":
        text = w.title(subject)
    elif row["stage"] == "cells":
        text = w.say("account.row_cells", metric=w.name(subject))
    else:
        text = w.say(f"account.row_{subject}")
    return _with_system(w, row["system"], text)


def _reasons(w: Formatter, row: Row) -> str:
    words = filter(None, row["reason"].split(", "))
    return w.list(w.say(f"account.because_{word}") for word in words)


def _if_wrong(w: Formatter, row: Row) -> str:
    if row["stage"] not in ("cells", "total") or pd.isna(row["worst"]):
        return MISSING
    return w.value(row["subject"], row["worst"])
