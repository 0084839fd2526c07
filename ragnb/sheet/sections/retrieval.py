"""Retrieval by rank: how far down the passages that gold names were found, and in which search."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd

from ragnb.markup import MISSING, count, ends, percent
from ragnb.markup.blocks import Block, Estimate, Section, Small, Table
from ragnb.schema import MEASURES, records
from ragnb.sheet.formatter import Formatter, Row, Write

# What is drawn; the other measures are written beside it.
_DRAWN = "recall"
_MOST_STEPS = 12


def retrieval(w: Formatter) -> Section | None:
    """Return the measures at each depth; nothing where gold names no passages."""
    table = w.sheet.retrieval
    if table is None:
        return None
    recall = [row for row in records(table) if row["measure"] == _DRAWN]  # by depth, deepest last
    if not recall or pd.isna(recall[-1]["value"]):
        return None
    blocks: list[Block | None] = [_by_depth(w, table), _by_step(w, w.sheet.retrieval_by_step)]
    return w.section(
        "retrieval", _finding(w, recall), w.say("retrieval.lead", level=w.level), blocks
    )


def _finding(w: Formatter, recall: Sequence[Row]) -> str:
    """Say which share of the relevant passages is listed first, and which among the first few."""
    first = recall[0]
    last = recall[-1]
    interval = ends(last["low"], last["high"], percent=True)
    value = percent(last["value"])
    if interval:
        value = f"{value} ({interval})"
    words = {"value": value, "k": count(last["k"]), "n": count(last["n"])}
    if len(recall) == 1:
        return w.say("retrieval.one", **words)
    return w.say("retrieval.finding", **words, first=percent(first["value"]))


def _by_depth(w: Formatter, table: pd.DataFrame) -> Table:
    """Return all measures, one row a depth."""
    cells = {(row["k"], row["measure"]): row for row in records(table)}
    depths = sorted({k for k, _ in cells})

    def written(measure: str) -> Write:
        return lambda k: _written(cells[k, measure])

    columns: dict[str, Write] = {
        "retrieval.k": lambda k: f"k = {k}",
        f">retrieval.{_DRAWN}": written(_DRAWN),
        "measures.scale": lambda k: _drawn(w, cells[k, _DRAWN]),
    }
    others = [measure for measure in MEASURES if measure != _DRAWN]
    columns |= {f">retrieval.{measure}": written(measure) for measure in others}
    return w.table(depths, columns, cards=True)


def _by_step(w: Formatter, table: pd.DataFrame | None) -> Table | None:
    """Return the recall of each search alone: in which one the passages were lost."""
    if table is None:
        return None
    depth = table["k"].max()  # which holds every list of passages whole
    deepest = table[(table["measure"] == _DRAWN) & (table["k"] == depth)]
    columns: dict[str, Write] = {
        "retrieval.step": lambda row: str(row["step"]),
        f">retrieval.{_DRAWN}": _written,
        "measures.scale": partial(_drawn, w),
        ">column.n": lambda row: count(row["n"]),
    }
    caption = w.say("retrieval.steps", k=count(depth))
    return w.table(records(deepest)[:_MOST_STEPS], columns, caption=caption)


def _written(row: Row) -> object:
    """Write a measure, its interval below it."""
    if pd.isna(row["value"]):
        return MISSING
    return percent(row["value"]), Small(ends(row["low"], row["high"], percent=True))


def _drawn(w: Formatter, row: Row) -> Estimate | str:
    """Return a measure on its scale."""
    if pd.isna(row["value"]):
        return MISSING
    return Estimate(
        percent(row["value"]),
        ends(row["low"], row["high"], percent=True),
        row["value"],
        row["low"],
        row["high"],
        text=w.say("retrieval.recall"),
    )
