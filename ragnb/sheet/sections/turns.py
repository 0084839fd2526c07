"""Turns of conversations: the means of each, and by how much quality changes from one to the next."""

from __future__ import annotations

import pandas as pd

from ragnb.markup import count, p_value, signed
from ragnb.markup.blocks import Block, Section, Small, Table
from ragnb.schema import TOTAL, records
from ragnb.sheet.formatter import Formatter, Row, Write, table_of
from ragnb.weights.conversations import turn_column

_MOST_TURNS = 15
_MOST_METRICS = 6
_FLAT = 1e-9  # a slope of rounding alone


def turns(w: Formatter) -> Section | None:
    """Return quality by turn; nothing where rows name no turns of conversations."""
    trends = w.sheet.turns
    if trends is None:
        return None
    rows = {row["metric"]: row for row in records(trends)}
    names = [name for name in [*w.total, *w.quality, *w.rates] if name in rows]
    if not names:
        return None
    lead = w.say("turns.lead", level=w.level)
    means, left_out = _by_turn(w, names[:_MOST_METRICS])
    if left_out:
        lead += " " + w.say("turns.rest", n=count(left_out))
    blocks: list[Block | None] = [means, _changes(w, [rows[name] for name in names])]
    return w.section("turns", _finding(w, rows[names[0]]), lead, blocks)


def _finding(w: Formatter, row: Row) -> str:
    """Say how the metric that decides changes; that a rate changes, in percentage points."""
    metric = row["metric"]
    if pd.isna(row["low"]):
        is_flat = abs(row["slope"]) < _FLAT
        return w.say("turns.flat" if is_flat else "turns.none", metric=w.title(metric))
    share = w.is_share(metric)
    low, high = (signed(row[end], share) for end in ("low", "high"))
    words = {
        "metric": w.title(metric),
        "ends": w.say("sheet.from_to", low=low, high=high),
        "value": signed(row["slope"], share),
        "size": signed(abs(row["slope"]), share).lstrip("+"),
    }
    if row["low"] <= 0 <= row["high"]:
        return w.say("turns.open", **words)
    return w.say("turns.falls" if row["slope"] < 0 else "turns.rises", **words)


def _by_turn(w: Formatter, names: list[str]) -> tuple[Table | None, int]:
    """Return the means of each turn with their intervals, and how many turns are left out."""
    slices = w.sheet.slices
    if slices is None:
        return None, 0
    table = slices[slices["slice"] == turn_column(w.whole.scores)].dropna(subset="group")
    cells = {(row["group"], row["metric"]): w.mean_cell(row) for row in records(table)}
    groups = list(dict.fromkeys(table["group"]))

    def mean_of(name: str) -> Write:
        return lambda group: cells.get((group, name), "")

    columns: list[tuple[str, Write]] = [(w.say("turns.turn"), str)]
    columns += [(f">{w.title(name)}", mean_of(name)) for name in names]
    if not groups:
        return None, 0
    return table_of(groups[:_MOST_TURNS], columns), max(len(groups) - _MOST_TURNS, 0)


def _changes(w: Formatter, rows: list[Row]) -> Table:
    """Return by how much each metric changes from one turn to the next."""

    def change(row: Row) -> tuple[str, Small]:
        share = w.is_share(row["metric"])
        interval = ""
        if not pd.isna(row["low"]):
            low = signed(row["low"], share)
            high = signed(row["high"], share)
            interval = w.say("sheet.from_to", low=low, high=high)
        return signed(row["slope"], share), Small(interval)

    columns: dict[str, Write] = {
        "column.metric": lambda row: w.title(row["metric"]),
        ">turns.change": change,
        ">compare.p": lambda row: "" if row["metric"] == TOTAL else p_value(row["p_holm"]),
        ">turns.conversations": lambda row: count(row["n_conversations"]),
    }
    return w.table(rows, columns, caption=w.say("turns.caption"))
