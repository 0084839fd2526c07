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


_Flip = Mapping[str, float]
"""The weight of a metric today, the one at which another system leads (``flip``), and how far that is."""
_LONGEST_NAME = 40  # characters of the name of a system


def weights(w: Formatter) -> Section | None:
    """Return at which weights another system leads; nothing where the metrics do not add up.

    A weight is a share of all of them, and the others keep their proportions while it moves.
    """
    # As many systems as other tables have beside one another: the first, and another one a map.
    maps = w.whole.weightings[: MOST_COLUMNS - 1]
    if not maps:
        return None
    flips = {weight_map.baseline: _by_metric(weight_map) for weight_map in maps}
    table = _table(w, maps, flips)
    return w.section("weights", _finding(w, maps, flips), _lead(w, maps), [table])


def _by_metric(weight_map: WeightMap) -> dict[str, _Flip]:
    """Return for each metric at which of its weights another system leads; nan where at none."""
    return {str(row["metric"]): row for row in records(weight_map.flips)}


def _finding(
    w: Formatter, maps: tuple[WeightMap, ...], flips: Mapping[str, Mapping[str, _Flip]]
) -> str:
    """Say the nearest change of one weight at which another system leads, or that there is none."""
    first = one_line(maps[0].candidate, _LONGEST_NAME)
    changes = []
    for other, flip_of in flips.items():
        for metric, row in flip_of.items():
            if not pd.isna(row["flip"]):
                # The names break a tie of distances, so that the order of the rows does not.
                changes.append((row["distance"], other, metric))
    if not changes:
        always = all(weight_map.shares["candidate"] == 1 for weight_map in maps)
        # No weight alone is enough: either none of all weightings is, or several weights together are.
        return w.say("lead.always" if always else "lead.alone", first=first)
    _, other, metric = min(changes)
    row = flips[other][metric]
    side = "below" if row["flip"] < row["today"] else "above"
    return w.say(
        f"lead.{side}",
        first=first,
        metric=w.name(metric),
        today=percent(row["today"]),
        flip=percent(row["flip"]),
        other=one_line(other, _LONGEST_NAME),
    )


def _lead(w: Formatter, maps: tuple[WeightMap, ...]) -> str:
    """Say of how many of all weightings the first system leads each other one."""
    shares_of_others = [
        w.say(
            "lead.share",
            leads=percent(weight_map.shares["candidate"]),
            conclusive=percent(weight_map.shares["candidate_conclusive"]),
            other=one_line(weight_map.baseline, _LONGEST_NAME),
        )
        for weight_map in maps
    ]
    return w.say(
        "lead.shares",
        first=one_line(maps[0].candidate, _LONGEST_NAME),
        shares=w.say("list.also").join(shares_of_others),
        n=len(maps[0].metrics),
    )


def _table(
    w: Formatter, maps: tuple[WeightMap, ...], flips: Mapping[str, Mapping[str, _Flip]]
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
    for other in flips:
        head = w.say("lead.leads", other=one_line(other, _LONGEST_NAME))
        columns.append((head, leads_at(other)))
    return table_of(first.metrics, columns, caption=w.say("lead.caption"))
