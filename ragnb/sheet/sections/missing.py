"""What missing scores leave open, and where in the file they are missing."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragnb.markup import count, is_missing, one_line
from ragnb.markup.blocks import Estimate, Mark, Section, Small, Strip, Table
from ragnb.schema import TOTAL
from ragnb.sheet.bounds import Bound, bounds_of
from ragnb.sheet.formatter import Formatter, Write
from ragnb.sheet.heroes.failed import name_of

_PARTS = 60  # of a strip: more rows share a part
_MOST_COLUMNS = 12
_MADE = ("sample_id", TOTAL, "sample_weight", "label", "system")


def missing(w: Formatter) -> Section | None:
    """Return the bounds of the means, and which rows have a score; nothing where no cell of a metric is lost."""
    bounds = bounds_of(w)
    lost = sum(int(bound.row["lost"]) for bound in bounds)
    if not lost:
        return None
    is_nothing = all(not bound.row["seen"] for bound in bounds)
    shown = [None if is_nothing else _bounds(w, bounds), _columns(w)]
    key = "missing.nothing" if is_nothing else "missing.finding"
    n = sum(int(bound.row["expected"]) for bound in bounds)
    finding = w.say(key, lost=count(lost), n=count(n))
    return w.section("missing", finding, w.say("missing.lead"), shown, count(lost))


def _bounds(w: Formatter, bounds: list[Bound]) -> Table:
    def seen(bound: Bound) -> tuple[object, ...]:
        row = bound.row
        said = w.say("missing.seen", seen=count(row["seen"]), n=count(row["expected"]))
        if row["lost"]:
            lacking = w.say("missing.lacking", n=count(row["lost"]))
        else:
            lacking = ""
        return said, Small(lacking)

    def asked(bound: Bound) -> tuple[object, ...]:
        if pd.isna(bound.at):
            return name_of(w, bound, w.title), Small("")
        limit = w.limit(bound.metric, bound.at)
        return name_of(w, bound, w.title), Small(w.bound(w.better[bound.metric], limit))

    def at_point(low: float, high: float) -> float:
        if low == high:
            return low
        return float("nan")

    def drawn(bound: Bound) -> Estimate | str:
        span = w.span(bound.metric)
        low, high = sorted((bound.row["worst"], bound.row["best"]))
        if span is None or pd.isna(low):
            return ""
        if pd.isna(bound.at):
            limits = ()
        else:
            limits = ((w.limit(bound.metric, bound.at), bound.at),)
        return Estimate(
            possible(bound),
            "",
            at_point(low, high),
            low,
            high,
            span,
            limits,
            text=name_of(w, bound),
        )

    def possible(bound: Bound) -> str:
        low, high = sorted((bound.row["worst"], bound.row["best"]))
        if pd.isna(low):
            return ""
        ends = [w.value(bound.metric, end) for end in (low, high)]
        if not bound.row["lost"]:
            return ends[0]
        return w.say("missing.between", low=ends[0], high=ends[1])

    def result(bound: Bound) -> Mark | str:
        if pd.isna(bound.at):
            return ""
        if bound.is_open:
            return Mark("watch", w.say("missing.open"))
        tone, key = ("good", "meets") if bound.can_meet else ("bad", "misses")
        return Mark(tone, w.say(f"missing.{key}"))

    columns: dict[str, Write] = {
        "column.metric": asked,
        "missing.scored": seen,
        "measures.scale": drawn,
        "missing.possible": possible,
        "missing.result": result,
    }
    return w.table(bounds, columns, caption=w.say("missing.bounds"), cards=True)


def _columns(w: Formatter) -> Table | None:
    """Return which rows of each column have a value; nothing of rows that are not all held."""
    scores: pd.DataFrame = w.whole.scores
    if w.whole.streamed:
        return None
    others = [
        name
        for name in map(str, scores.columns)
        if name not in (*w.rows, *_MADE) and "__" not in name
    ]
    names = [*(name for name in w.quality if name in scores), *others][:_MOST_COLUMNS]
    n = len(scores)
    if not n:
        return None
    there = {
        name: np.array([not is_missing(cell) for cell in scores[name]], dtype=float)
        for name in names
    }

    def strip(name: str) -> Strip:
        filled = there[name]
        parts = tuple(float(part.mean()) for part in np.array_split(filled, min(_PARTS, n)))
        return Strip(parts, int(filled.sum()), n, one_line(name, 60))

    def with_value(name: str) -> str:
        return w.say("missing.seen", seen=count(there[name].sum()), n=count(n))

    columns: dict[str, Write] = {
        "missing.column": lambda name: one_line(name, 60),
        "missing.read_as": lambda name: w.title(name) if name in w.rows else "",
        "missing.rows": strip,
        ">missing.with_value": with_value,
    }
    return w.table(names, columns, caption=w.say("missing.columns"), cards=True)
