"""What missing scores leave open, and where in the file they are missing."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragnb.markup import count, is_missing, one_line
from ragnb.markup.blocks import Block, Estimate, Mark, Section, Small, Strip, Table
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
    is_any_seen = any(bound.row["seen"] for bound in bounds)
    key = "missing.finding" if is_any_seen else "missing.nothing"
    shown: list[Block | None] = []
    # Where nothing came every mean can be anywhere, so that a table of bounds would say nothing.
    if is_any_seen:
        shown.append(_bounds(w, bounds))
    shown.append(_columns(w))
    n = sum(int(bound.row["expected"]) for bound in bounds)
    finding = w.say(key, lost=count(lost), n=count(n))
    return w.section("missing", finding, w.say("missing.lead"), shown, count(lost))


def _bounds(w: Formatter, bounds: list[Bound]) -> Table:
    """Return between which ends the mean of each metric lies, whatever is missing turns out to be."""

    def seen(bound: Bound) -> tuple[object, ...]:
        row = bound.row
        lacking = ""
        if row["lost"]:
            lacking = w.say("missing.lacking", n=count(row["lost"]))
        text = w.say("missing.seen", seen=count(row["seen"]), n=count(row["expected"]))
        return text, Small(lacking)

    def asked(bound: Bound) -> tuple[object, ...]:
        requirement = ""
        if not pd.isna(bound.at):
            limit = w.limit(bound.metric, bound.at)
            requirement = w.bound(w.better[bound.metric], limit)
        return name_of(w, bound, w.title), Small(requirement)

    def drawn(bound: Bound) -> Estimate | str:
        span = w.span(bound.metric)
        # Where lower is better the worst end is the high one.
        low, high = sorted((bound.row["worst"], bound.row["best"]))
        if span is None or pd.isna(low):
            return ""
        limits: tuple[tuple[str, float], ...] = ()
        if not pd.isna(bound.at):
            limits = ((w.limit(bound.metric, bound.at), bound.at),)
        # A point is drawn only where nothing is missing: within the bounds no value is likelier than another.
        point = low if low == high else float("nan")
        return Estimate(
            possible(bound),
            "",
            point,
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
        if bound.can_meet:
            return Mark("good", w.say("missing.meets"))
        return Mark("bad", w.say("missing.misses"))

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
    # Names with two underscores are notes on other columns, such as ``faithfulness__status``.
    others = [
        name
        for name in map(str, scores.columns)
        if name not in (*w.rows, *_MADE) and "__" not in name
    ]
    metrics = [name for name in w.quality if name in scores]
    names = [*metrics, *others][:_MOST_COLUMNS]
    n = len(scores)
    if not n:
        return None
    is_there = {
        name: np.array([not is_missing(cell) for cell in scores[name]], dtype=float)
        for name in names
    }

    def strip(name: str) -> Strip:
        filled = is_there[name]
        # Rows in the order of the file, so that what stopped half-way is seen as such.
        parts = tuple(float(part.mean()) for part in np.array_split(filled, min(_PARTS, n)))
        return Strip(parts, int(filled.sum()), n, one_line(name, 60))

    def with_value(name: str) -> str:
        return w.say("missing.seen", seen=count(is_there[name].sum()), n=count(n))

    columns: dict[str, Write] = {
        "missing.column": lambda name: one_line(name, 60),
        "missing.read_as": lambda name: w.title(name) if name in w.rows else "",
        "missing.rows": strip,
        ">missing.with_value": with_value,
    }
    return w.table(names, columns, caption=w.say("missing.columns"), cards=True)
