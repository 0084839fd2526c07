"""Several systems side by side: the first screen's table, the best first, and each metric or gate by system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ragnb.comparison.wording import difference, outcome_mark
from ragnb.markup import one_line
from ragnb.markup.blocks import Mark, Small, Table
from ragnb.schema import TOTAL, records
from ragnb.sheet.formatter import GATE_TONES, Formatter, Row, Write, table_of
from ragnb.sheet.gates import by_outcome
from ragnb.sheet.heroes.score import headline_metric, means_of_systems
from ragnb.sheet.ladder import best_first, rungs_of
from ragnb.sheet.standing import MET, MISSED, OPEN, side_of

MOST_COLUMNS = 6  # systems side by side: more are rows


def systems_table(w: Formatter) -> Table:
    """Return one row a system: its score, its difference from the first, its gates, or else its thresholds."""
    means = means_of_systems(w)
    rungs = {row["baseline"]: row for row in rungs_of(w)}
    gates = w.whole.gates
    of_means = gates[gates["role"] != "completeness"]
    judging = of_means[of_means["reason"] != "advisory"]
    # What failed stops a system before what is only not decided.
    stopping = of_means[of_means["blocks"]]
    stopping = stopping.sort_values("outcome", key=lambda outcome: outcome != "fail", kind="stable")
    order = best_first(w.whole.systems, TOTAL)

    def score(name: str) -> str:
        metric = headline_metric(means[name]) or TOTAL
        return w.interval(metric, means[name][metric])

    def beside(name: str) -> tuple[Any, ...] | str:
        row = rungs.get(name)
        if row is None:
            if rungs and name == order[0]:
                return w.say("systems.reference")
            return ""
        # The row is of the first system beside this one: read from this one, the sign turns.
        turned = turned_row(row)
        wins = w.say("systems.counts", wins=row["losses"], ties=row["ties"], losses=row["wins"])
        return difference(turned, w.say), outcome_mark(turned, w.say), Small(wins)

    def marks(name: str) -> Any:
        judgements = records(judging[judging["system"] == name])
        return by_outcome(w, judgements) or _thresholds(w, means[name]) or w.say("status.no_gates")

    def blocked_by(name: str) -> tuple[Any, ...]:
        rows = records(stopping[stopping["system"] == name])
        if not rows:
            return "", Small("")
        first = rows[0]
        # The row names the system already.
        asks = w.requirement({**first, "system": None})
        return asks, Small(w.interval(first["metric"], first))

    columns: list[tuple[str, Write]] = [
        (w.say("column.system"), lambda name: one_line(name, 60)),
        (f">{w.title(TOTAL)}", score),
    ]
    if rungs:
        columns.append((w.say("systems.beside", name=one_line(order[0], 40)), beside))
    key = "section.gates" if len(judging) else "systems.thresholds"
    columns.append((w.say(key), marks))
    if len(stopping):
        columns.append((w.say("sheet.blocked_by"), blocked_by))
    note = w.say("systems.note", level=w.level) if rungs else ""
    return table_of(order, columns, cards=True, caption=note)


def turned_row(row: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return a difference read from its other side."""
    turned = {
        "better": "worse",
        "worse": "better",
        "better_within": "worse_within",
        "worse_within": "better_within",
    }
    outcome = turned.get(row["outcome"], row["outcome"])
    return {
        **row,
        "value": -row["value"],
        "low": -row["high"],
        "high": -row["low"],
        "outcome": outcome,
    }


def _thresholds(w: Formatter, rows: Mapping[str, Row]) -> tuple[Mark, ...]:
    """Return how many means meet their threshold, include it, and miss it."""
    tones = [side_of(w, name, rows[name]) for name in w.quality if name in rows]
    names = {MISSED: "missed", OPEN: "open", MET: "met"}
    return tuple(
        Mark(tone, w.say(f"systems.{name}", n=tones.count(tone)))
        for tone, name in names.items()
        if tone in tones
    )


def metric_by_system(w: Formatter) -> Table | None:
    """Return the means of each metric by system with the side of its threshold; None of many systems."""
    means = means_of_systems(w)
    order = best_first(w.whole.systems, TOTAL)
    # Means on different questions are not put side by side, see `comparison._systems`.
    if len(order) > MOST_COLUMNS or w.whole.common is not None:
        return None
    table = w.whole.ladder
    rungs = [] if table is None else records(table)
    names = [name for name in [*w.total, *w.quality, *w.rates] if name in w.rows]

    def cell(metric: str, system: str) -> tuple[Any, ...]:
        row = means[system][metric]
        value, *below = w.mean_cell(row)
        tone = side_of(w, metric, row) if metric != TOTAL else ""
        if tone:
            return (Mark(tone, str(value)), *below)
        return (value, *below)

    def head(metric: str) -> tuple[Any, ...]:
        known = w.thresholds(metric)
        if metric == TOTAL or not known:
            return w.title(metric), Small("")
        return w.title(metric), Small(w.bound(w.better[metric], w.limit(metric, known[0][1])))

    def leads(metric: str) -> str:
        better = [row for row in rungs if row["metric"] == metric and row["outcome"] == "better"]
        if not better:
            return ""
        others = w.list(one_line(row["baseline"], 40) for row in better)
        return w.say("systems.better_than", names=others)

    rows = []
    for metric in names:
        cells: list[Any] = [head(metric), *(cell(metric, system) for system in order)]
        if rungs:
            cells.append(leads(metric))
        rows.append(tuple(cells))
    heads = [w.say("column.metric"), *(f">{one_line(system, 40)}" for system in order)]
    if rungs:
        heads.append(w.say("systems.first_is", name=one_line(order[0], 40)))
    caption = w.say("systems.by_metric", level=w.level)
    return Table(tuple(heads), tuple(rows), caption=caption)


def gate_by_system(w: Formatter, rows: Sequence[Row]) -> Table | None:
    """Return each gate with what came out for each system; None of many systems, and of gates of no system."""
    systems = best_first(w.whole.systems, TOTAL)
    rows_shown = [row for row in rows if row["system"] in systems]
    if not rows_shown or len(systems) > MOST_COLUMNS:
        return None
    cells = {(row["gate"], row["metric"], row["system"]): row for row in rows_shown}
    gates = {(row["gate"], row["metric"]): row for row in rows_shown}
    worst_first = [*GATE_TONES]

    def urgency(key: tuple[str, str]) -> tuple[bool, int]:
        rows_of_gate = [cells[*key, system] for system in systems if (*key, system) in cells]
        worst = min(worst_first.index(row["outcome"]) for row in rows_of_gate)
        return gates[key]["reason"] == "advisory", worst

    def cell(key: tuple[str, str], system: str) -> tuple[Any, ...] | str:
        row = cells.get((*key, system))
        if row is None:
            return ""
        value = ""
        if not pd.isna(row["value"]):
            value = w.interval(row["metric"], row)
        return w.outcome(row), Small(value)

    def asks(key: tuple[str, str]) -> tuple[Any, ...]:
        row = {**gates[key], "system": None}  # the row is of all systems
        kind = w.say("gates.advisory") if row["reason"] == "advisory" else ""
        return w.requirement(row), Small(kind)

    heads = (w.say("gates.asks"), *(one_line(system, 40) for system in systems))
    rows_of_table = tuple(
        (asks(key), *(cell(key, system) for system in systems))
        for key in sorted(gates, key=urgency)
    )
    return Table(heads, rows_of_table, cards=True)
