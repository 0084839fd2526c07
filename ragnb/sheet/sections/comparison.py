"""Is it better than before: paired differences with their intervals; and systems side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from ragnb.comparison.view import difference_table, operations_table, without_operations
from ragnb.comparison.wording import difference, outcome_mark
from ragnb.markup import count
from ragnb.markup.blocks import Block, Section, Table, Text
from ragnb.schema import records
from ragnb.sheet.formatter import Formatter
from ragnb.sheet.ladder import best_first, ladder_finding, rungs_of
from ragnb.sheet.radar import radar
from ragnb.sheet.systems_table import metric_by_system


def comparison(w: Formatter) -> Section | None:
    """Return how the run differs from its baseline, and several systems side by side; nothing without either."""
    table = w.whole.comparison
    rows = []
    if table is not None:
        table = table[table["n_common"] > 0]
        rows = records(table)
    sentences = list[str]()  # on the accepted run
    beside_anchor = list[Table]()
    accepted = w.whole.accepted
    if accepted is not None:
        accepted = accepted[accepted["n_common"] > 0]
        sentences = [*_beside_anchor(w, accepted)]
    if sentences:
        beside_anchor = [difference_table(accepted, w.lang, name=w.title)]
    if not rows and not sentences and w.whole.systems is None:
        return None
    # What the run is compared with decides what is said: its baseline, else the other systems, else the anchor.
    lead = w.say("compared.lead", level=w.level)
    lines = [Text((sentence,)) for sentence in sentences]
    rungs = rungs_of(w)
    if not rows and rungs:
        below: list[Block | None] = [
            *lines,
            *beside_anchor,
            *_systems(w),
            *_ladder(w, rungs),
        ]
        return w.section("comparison", ladder_finding(w, rungs), lead, below)
    others: list[Block | None] = [*beside_anchor, *_systems(w), radar(w)]
    if not rows and sentences:
        return w.section("comparison", sentences[0], lead, others)
    shown: list[Block | None] = [*lines, *others]
    if not rows:
        finding = w.say("compared.systems", n=w.whole.systems["system"].nunique())
        lead = w.say("compared.systems_lead", level=w.level)
        return w.section("comparison", finding, lead, shown)
    first, *more = [row for row in rows if row["primary"]] or rows
    # Of several differences none of which decides, the mark of the first would stand for all.
    badge = outcome_mark(first, w.say) if first["primary"] or not more else ""
    took = w.whole.operations_compared
    if took is not None:
        shown = [operations_table(took, w.lang), *shown]
    differences = difference_table(without_operations(table), w.lang, name=w.title)
    finding = _difference_finding(w, first)
    return w.section("comparison", finding, lead, [differences, *shown], badge)


def _difference_finding(w: Formatter, row: Mapping[Any, Any]) -> str:
    """Return a sentence on one difference."""
    words = {
        "name": row["baseline"],
        "metric": w.name(row["metric"]),
        "value": difference(row, w.say),
    }
    return w.say(f"compared.finding_{row['outcome']}", **words)


def _beside_anchor(w: Formatter, accepted: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on each candidate beside the accepted run."""
    if accepted["primary"].any():
        decisive = accepted[accepted["primary"]]
    else:
        decisive = accepted[:1]
    for row in records(decisive):
        yield w.say("compare.anchor", head=_difference_finding(w, row))


def _ladder(w: Formatter, rungs: list[dict[Any, Any]]) -> Iterator[Table]:
    """Yield the differences of the best system from each other one, the metric that decides first."""
    for row in rungs:
        of_pair = w.whole.ladder[w.whole.ladder["baseline"] == row["baseline"]]
        title = w.say("systems.pair", first=row["candidate"], other=row["baseline"])
        yield difference_table(of_pair, w.lang, name=w.title)._replace(folded=title)


def _systems(w: Formatter) -> Iterator[Table]:
    """Yield the means of all systems, on common questions first where they answered different ones."""
    if w.whole.systems is not None:
        side_by_side = metric_by_system(w)
        if side_by_side is not None:
            yield side_by_side
            return
    if w.shown is None:
        return
    names = [*w.total, *w.quality, *w.rates]
    n = count(w.whole.common_questions)
    for key, table in (("common", w.whole.common), ("all", w.whole.systems)):
        if table is None:
            continue
        cells = {(row["system"], row["metric"]): w.mean_cell(row) for row in records(table)}
        heads = (w.say("column.system"), *(f">{w.title(name)}" for name in names))
        rows = tuple(
            (system, *(cells[system, name] for name in names))
            for system in best_first(table, names[0])
        )
        yield Table(heads, rows, caption=w.say(f"compared.{key}_caption", n=n, level=w.level))
