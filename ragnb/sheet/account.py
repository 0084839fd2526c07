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
    # Files belong to all systems; every other row is of one.
    if gate["gate"] != INPUT_LINES:
        rows = [row for row in rows if row["stage"] != "lines"]
        rows = [row for row in rows if _same(row["system"], gate["system"])]
    return judged_by(gate["gate"], rows)


def _same(system: Any, other: Any) -> bool:
    """Whether two rows are of one system; a run that names none has None, or nan in a frame that was stored."""
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
    phrases: list[str] = []
    named: list[Row] = []  # the rows of the account that the phrases are about, of all gates so far
    for gate in records(gates[(gates["role"] == "completeness") & gates["blocks"]]):
        allowed = allow[ALLOWED[gate["gate"]]]
        beyond = [row for row in rows_of(w, gate) if too_much(row, allowed)]
        if not beyond:
            # A gate blocks without such a row where it found nothing to judge at all.
            phrases.append(gate_words(w, gate))
            continue
        # Gold that has no answer says it already of the answers.
        shown = [row for row in beyond if row is beyond[0] or row["stage"] != "answers"]
        shown = [row for row in shown if not _repeats_a_loss(row, named)]
        named += shown
        # Empty where a gate before this one has named all of its losses.
        if not shown:
            continue
        if gate["gate"] == SCORED_CELLS and _nothing_came(w, gate):
            n = sum(row["expected"] for row in shown)
            phrases.append(_with_system(w, gate["system"], w.say("account.all", n=count(n))))
        else:
            phrases += loss_words(w, shown)
    return phrases


def _repeats_a_loss(row: Row, named: Iterable[Row]) -> bool:
    """Whether the lost cells of a row are those of answers or questions that a phrase names already.

    An answer that never came has no score of any metric, and each metric would say the same number again.
    """
    if row["stage"] != "cells":
        return False
    return any(
        other["stage"] in ("questions", "answers")
        and _same(other["system"], row["system"])
        and other["lost"] == row["lost"]
        and other["expected"] == row["expected"]
        for other in named
    )


def _nothing_came(w: Formatter, gate: Row) -> bool:
    """Whether no metric that a gate judges has a single score."""
    return all(row["seen"] == 0 for row in rows_of(w, gate))


def said_losses(w: Formatter) -> list[str]:
    """Return all that was lost and that a verdict says: lines, questions, answers, and cells of metrics.

    Of an answer that is missing, gold or the cases say it; rates that no gate uses say it with the answers.
    """
    rows = [row for row in records(w.whole.account) if row["lost"]]
    questions = [row for row in rows if row["stage"] == "questions"]
    lost_questions_of = {row["system"] for row in questions if row["subject"] != "baseline"}
    shown: list[Row] = []
    for row in rows:
        if row["stage"] == "total":
            continue
        if row["stage"] == "answers" and row["system"] in lost_questions_of:
            continue
        if row["stage"] == "cells" and not row["decides"] and _is_rate(w, row["subject"]):
            continue
        # The account has questions and answers before cells, so `shown` holds what a cell may repeat.
        if not _repeats_a_loss(row, shown):
            shown.append(row)
    return loss_words(w, shown)


def _is_rate(w: Formatter, metric: str) -> bool:
    """Whether a metric is a rate, whose lost cells are most often those of lost answers."""
    return metric in w.rates


def loss_words(w: Formatter, rows: Iterable[Row]) -> list[str]:
    """Return phrases such as "240 of 300 answers have no faithfulness score".

    Metrics that lost the same number of cells are said together.
    """
    phrases: list[str] = []
    metrics_of: dict[tuple[Any, int, int], list[str]] = {}  # by system, lost cells, expected cells
    for row in rows:
        lost = int(row["lost"])
        if row["stage"] == "cells":
            alike = (row["system"], lost, int(row["expected"]))
            metrics_of.setdefault(alike, []).append(w.name(row["subject"]))
        elif row["stage"] == "answers":
            failed = int(row["failed"])  # among those that are lost
            phrases += _phrase(w, row, "answers_failed", failed)
            phrases += _phrase(w, row, "answers_missing", lost - failed)
        elif row["stage"] == "lines":
            phrases += _phrase(w, row, "lines", lost)
        else:
            phrases += _phrase(w, row, row["subject"], lost)
    # Last, as only now it is known which metrics lost the same number.
    for (system, lost, n), names in metrics_of.items():
        key = "account.cells_one" if len(names) == 1 else "account.cells"
        text = w.say(key, lost=count(lost), n=count(n), names=w.list(names))
        phrases.append(_with_system(w, system, text))
    return phrases


def _phrase(w: Formatter, row: Row, key: str, lost: int) -> list[str]:
    """Say how many of what a row expected are lost; nothing, as an empty list, where none is."""
    if not lost:
        return []
    expected = int(row["expected"])
    words = {"lost": count(lost), "n": count(expected)}
    if key == "answers_failed":
        words["share"] = percent(lost / expected)
    text = w.say(f"account.{key}", **words)
    return [_with_system(w, row["system"], text)]


def _with_system(w: Formatter, system: Any, text: str) -> str:
    """Say which system a phrase is about, where the run has several."""
    if pd.isna(system):
        return text
    return w.say("account.of_system", system=system, text=text)


def worst_words(w: Formatter, metric: str, row: Row, key: str = "account.worst") -> str:
    """Return ", and 0.186 if all lost answers were wrong" of a mean; nothing where nothing is lost.

    `key` is the text, ``account.worst_alone`` where it stands on a line of its own.
    """
    account = w.whole.account
    system = row.get("system", w.shown)
    rows_of_metric = records(account[account["subject"] == metric])
    worst_means = [entry["worst"] for entry in rows_of_metric if _same(entry["system"], system)]
    # A metric without a range has no worst end, and so nan for its worst mean.
    if not worst_means or pd.isna(worst_means[0]):
        return ""
    worst = worst_means[0]
    if abs(worst - row["value"]) <= _SAME:
        return ""
    return w.say(key, value=w.value(metric, worst))


def incomplete_metrics(w: Formatter) -> list[str]:
    """Return the shown metrics of which more cells are lost than is allowed."""
    allowed = w.whole.scenario.allow.cells
    rows = records(w.whole.account)
    cells = [row for row in rows if row["stage"] == "cells" and row["subject"] in w.rows]
    if w.shown is not None:
        cells = [row for row in cells if row["system"] == w.shown]
    return [row["subject"] for row in cells if row["decides"] and too_much(row, allowed)]


def account_table(w: Formatter) -> Table | None:
    """Return what was expected and what came, without the rates of which nothing is lost."""
    rows = []
    for row in records(w.whole.account):
        is_rate = row["stage"] == "cells" and _is_rate(w, row["subject"])
        if row["lost"] or not is_rate:
            rows.append(row)
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
    """Name what a row of the account counts."""
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
    """Say why something is lost; nothing where it is not, whose reason is an empty text."""
    codes = [code for code in row["reason"].split(", ") if code]
    return w.list(w.say(f"account.because_{code}") for code in codes)


def _if_wrong(w: Formatter, row: Row) -> str:
    """Return the mean with every lost score at the worst end of its range; a dash of what has no mean."""
    if row["stage"] not in ("cells", "total") or pd.isna(row["worst"]):
        return MISSING
    return w.value(row["subject"], row["worst"])
