"""Completeness gates: what was lost of the lines, the questions and the cells, compared with what may be."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import pandas as pd

from ragnb.diagnostics.gates import BETTER, gate_frame, gate_row
from ragnb.diagnostics.rules import past
from ragnb.schema import Gate, records

INPUT_LINES = "input_lines"
GOLD_COVERAGE = "gold_coverage"
ANSWERS = "answers"
SCORED_CELLS = "scored_cells"
COMPLETENESS = (INPUT_LINES, GOLD_COVERAGE, ANSWERS, SCORED_CELLS)
ALLOWED = {
    INPUT_LINES: "lines",
    GOLD_COVERAGE: "questions",
    ANSWERS: "questions",
    SCORED_CELLS: "cells",
}
"""The share of the scenario's ``allow:`` that a gate goes by."""

Row = Mapping[Any, Any]


def completeness(
    account: pd.DataFrame,
    *,
    allow: Mapping[str, float],
    no_data: Literal["fail", "skip"] = "fail",
) -> pd.DataFrame:
    """Return one row for each completeness gate that applies, with the columns of `check_gates`.

    Parameters
    ----------
    account : DataFrame
        What `ragnb.inputs.make_account` returns.
    allow : mapping of {"lines", "questions", "cells"} to float in [0, 1]
        The shares that may be lost.
    no_data : {"fail", "skip"}
        Whether a run without a single score blocks.

    Returns
    -------
    DataFrame
        ``input_lines``, of the file that lost most; for each system ``gold_coverage``, of gold, cases, baseline or
        count that lost most, ``answers``, of the answers where nothing else is expected, and ``scored_cells``, of
        the metric that lost most among those that a gate or the total uses. ``value`` is the share that came and
        ``n`` what was expected. These are counts, not samples, so they have no interval. ``blocks`` where the
        value is below the threshold; the reason of ``input_lines`` is then ``incomplete``.

    Examples
    --------
    >>> cells = {"stage": "cells", "subject": "faithfulness", "system": None, "expected": 101, "seen": 10}
    >>> cells |= {"lost": 91, "failed": 91, "not_applicable": 0, "decides": True}
    >>> completeness(pd.DataFrame([cells]), allow={"cells": 0.1})[["gate", "value", "n", "blocks"]].round(3)
               gate  value    n  blocks
    0  scored_cells  0.099  101    True
    """
    parts_of = _by_system(account)
    rows = []
    # By gate, and within a gate by system, as the frame is read.
    for gate in COMPLETENESS:
        for system, parts in parts_of.items():
            judged = judged_by(gate, parts)
            # A run without a single score has a row even where no metric applies to any answer.
            has_no_scores = gate == SCORED_CELLS and system is not _FILES and _without_scores(parts)
            if judged or has_no_scores:
                rows.append(_gate(gate, system, judged, allow, no_data))
    return gate_frame(rows)


def reopen_incomplete(
    gates: pd.DataFrame, account: pd.DataFrame, *, allow: Mapping[str, float]
) -> pd.DataFrame:
    """Return the gates, undecided where they pass only on what is left of a metric that lost too much.

    They pass still if they would with every lost score at the worst end of its range.

    Parameters
    ----------
    gates : DataFrame
        What `check_gates` returns.
    account, allow
        As for `completeness`.

    Examples
    --------
    >>> gate = {"system": None, "metric": "faithfulness", "op": ">=", "threshold": 0.7, "outcome": "pass"}
    >>> gate |= {"p_flip": 0.0, "more_needed": 0}
    >>> lost = {"stage": "cells", "subject": "faithfulness", "system": None, "expected": 10, "lost": 4}
    >>> account = pd.DataFrame([lost | {"worst": 0.5}])
    >>> reopen_incomplete(pd.DataFrame([gate]), account, allow={"cells": 0.1})["outcome"].tolist()
    ['undecided']
    """
    # By system and metric: the mean with every lost score at the worst end, of those that lost too much.
    worst_means = {
        (_named(row["system"]), row["subject"]): row["worst"]
        for row in records(account)
        if row["stage"] in ("cells", "total") and too_much(row, allow.get("cells", 0.0))
    }
    reopened = []
    for row in records(gates):
        worst = worst_means.get((_named(row["system"]), row["metric"]))
        if worst is None:
            is_unproven = False
        elif pd.isna(worst):
            is_unproven = True  # a metric without a range has no worst end
        else:
            is_unproven = bool(past(worst, row["threshold"], BETTER[row["op"]]))
        reopened.append(row["outcome"] == "pass" and is_unproven)
    open_now = pd.Series(reopened, index=gates.index, dtype=bool)
    return gates.assign(
        outcome=gates["outcome"].mask(open_now, "undecided"),
        p_flip=gates["p_flip"].mask(open_now),
        more_needed=gates["more_needed"].mask(open_now),
    )


def _named(system: Any) -> Any:
    """Return a system as a key: a frame that was stored may hold nan in place of None, and nan equals nothing."""
    if pd.isna(system):
        return None
    return system


def _without_scores(rows: Iterable[Row]) -> bool:
    """Whether no metric has a single score."""
    return not any(row["seen"] for row in rows if row["stage"] == "cells")


_FILES = object()  # in the place of a system: the files are of all of them


def _by_system(account: pd.DataFrame) -> dict[Any, list[Row]]:
    """Return the rows of the account by system, those of the files first."""
    parts: dict[Any, list[Row]] = {}
    for row in records(account):
        system = _FILES if row["stage"] == "lines" else row["system"]
        parts.setdefault(system, []).append(row)
    return parts


def judged_by(gate: str, rows: Iterable[Row]) -> list[Row]:
    """Return the rows of the account that a gate judges, the one with the largest share of losses first.

    In a log without gold, failed requests are what the log measures, not lost input.
    """
    rows = [row for row in rows if row["expected"] > 0]
    sets = [row for row in rows if row["stage"] == "questions"]
    answers = [row for row in rows if row["stage"] == "answers"]
    # Where a set says which questions there are, its own gate covers the answers, too.
    has_set = any(row["subject"] in ("gold", "cases") for row in sets)
    if gate == INPUT_LINES:
        judged = [row for row in rows if row["stage"] == "lines"]
    elif gate == GOLD_COVERAGE and has_set:
        judged = sets + answers
    elif gate == GOLD_COVERAGE:
        judged = sets
    elif gate == ANSWERS and has_set:
        judged = []
    elif gate == ANSWERS:
        judged = [_without_failures(row) for row in answers if row["lost"]]
    else:
        judged = [row for row in rows if row["stage"] == "cells" and row["decides"]]
    return sorted(judged, key=lambda row: row["lost"] / row["expected"], reverse=True)


def _without_failures(row: Row) -> Row:
    """Return a row of answers in which failed ones have come, too."""
    lost = row["lost"] - row["failed"]
    return {**row, "lost": lost, "seen": row["expected"] - lost, "failed": 0}


def too_much(row: Row, allowed: float) -> bool:
    """Whether a row of the account lost more than the share that is allowed.

    Examples
    --------
    >>> too_much({"lost": 1, "expected": 10}, 0.1), too_much({"lost": 2, "expected": 10}, 0.1)
    (False, True)
    """
    return bool(row["lost"] > allowed * row["expected"] + _SLACK)


_SLACK = 1e-9  # what a share such as .1 × 30 is off by rounding


def _gate(
    name: str, system: Any, judged: list[Row], allow: Mapping[str, float], no_data: str
) -> dict[str, Any]:
    """Return the row of one completeness gate, by the first of the rows that it judges."""
    allowed = allow.get(ALLOWED[name], 0.0)
    gate = Gate(name, name, ">=", 1 - allowed)
    if system is _FILES:
        system = None
    if not judged:
        # No metric applies to any row, so nothing was measured.
        return gate_row(gate, math.nan, 0, system=system) | {"blocks": no_data == "fail"}
    worst = judged[0]
    row = gate_row(gate, worst["seen"] / worst["expected"], int(worst["expected"]), system=system)
    blocks = too_much(worst, allowed)
    # By `too_much`, as everywhere else that losses are judged.
    row["blocks"] = blocks
    row["outcome"] = "fail" if blocks else "pass"
    row["reason"] = "incomplete" if blocks and name == INPUT_LINES else ""
    return row
