"""Whether the order of several systems depends on the weights of the metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from ragnb.markup import one_line, percent
from ragnb.markup.blocks import Section, Table
from ragnb.schema import records
from ragnb.sheet.formatter import Formatter, Write, table_of
from ragnb.sheet.systems_table import MOST_COLUMNS

if TYPE_CHECKING:
    from ragnb.comparison.simplex import WeightMap


def weights(w: Formatter) -> Section | None:
    """Return at which weights another system leads; nothing where the metrics do not add up.

    A weight is a share of all of them, and the others keep their proportions while it moves.
    """
    maps = w.whole.weightings[: MOST_COLUMNS - 1]
    if not maps:
        return None
    flips = {found.baseline: _by_metric(found) for found in maps}
    table = _table(w, maps, flips)
    return w.section("weights", _finding(w, maps, flips), _lead(w, maps), [table])


def _by_metric(found: WeightMap) -> dict[str, Mapping[str, float]]:
    return {str(row["metric"]): row for row in records(found.flips)}


def _finding(
    w: Formatter,
    maps: tuple[WeightMap, ...],
    flips: Mapping[str, Mapping[str, Mapping[str, float]]],
) -> str:
    """Say the nearest change of one weight at which another system leads, or that there is none."""
    near = [
        (row["distance"], other, metric)
        for other, rows in flips.items()
        for metric, row in rows.items()
        if not pd.isna(row["flip"])
    ]
    first = maps[0].candidate
    if near:
        _, other, metric = min(near)
        row = flips[other][metric]
        side = "below" if row["flip"] < row["today"] else "above"
        words = {"metric": w.name(metric), "today": percent(row["today"])}
        words |= {"flip": percent(row["flip"]), "other": one_line(other, 40)}
        return w.say(f"lead.{side}", first=one_line(first, 40), **words)
    always = all(found.shares["candidate"] == 1 for found in maps)
    return w.say("lead.always" if always else "lead.alone", first=one_line(first, 40))


def _lead(w: Formatter, maps: tuple[WeightMap, ...]) -> str:
    """Say of how many of all weightings the first system leads each other one."""
    said = []
    for found in maps:
        shares = found.shares
        words = {"leads": percent(shares["candidate"]), "other": one_line(found.baseline, 40)}
        said.append(
            w.say("lead.share", conclusive=percent(shares["candidate_conclusive"]), **words)
        )
    listed = w.say("list.also").join(said)
    n = len(maps[0].metrics)
    return w.say("lead.shares", first=one_line(maps[0].candidate, 40), shares=listed, n=n)


def _table(
    w: Formatter,
    maps: tuple[WeightMap, ...],
    flips: Mapping[str, Mapping[str, Mapping[str, float]]],
) -> Table:
    """Return for each metric its weight, and the one at which each other system leads."""
    first = maps[0]
    today = dict(zip(first.metrics, first.today, strict=True))

    def leads_at(other: str) -> Write:
        def cell(metric: str) -> str:
            row = flips[other].get(metric)
            if row is None or pd.isna(row["flip"]):
                return w.say("lead.never")
            side = "to" if row["flip"] < row["today"] else "from"
            return w.say(f"lead.{side}", share=percent(row["flip"]))

        return cell

    columns: list[tuple[str, Write]] = [
        (w.say("column.metric"), w.title),
        (w.head(">lead.today"), lambda metric: percent(today[metric])),
    ]
    columns += [
        (w.say("lead.leads", other=one_line(other, 40)), leads_at(other)) for other in flips
    ]
    return table_of(first.metrics, columns, caption=w.say("lead.caption"))
