"""What a judge said by its rubric, beside metrics of another scale: never part of their overall score."""

from __future__ import annotations

from typing import Any

from ragnb.markup import MISSING, count, ends, number, percent
from ragnb.markup.blocks import Block, Section, Table, Text
from ragnb.sheet.formatter import Formatter, Row
from ragnb.sheet.passing import verdict_of
from ragnb.sheet.passing_pictures import pass_mark, passing_row, passing_share, radar_of_passing
from ragnb.sheet.sections.metrics import measures
from ragnb.sheet.sections.suggestions import suggestions_table
from ragnb.sheet.suggestions import suggested

_MOST_SUGGESTIONS = 5


def judged(w: Formatter) -> Section | None:
    """Return how many answers pass, the dimensions, the most frequent suggestions, and whether people checked it.

    Nothing where the rubric is all there is: then it has the whole page.
    """
    row = passing_row(w)
    if row is None or not w.dimensions:
        return None
    finding = w.say(
        "judged.finding",
        k=count(row["k"]),
        n=count(row["n"]),
        dimension=w.name(row["metric"]),
        at=f"{row['threshold']:g}",
    )
    blocks: list[Block | None] = [
        Text((*_share(w, row), *_score(w, row))),
        _dimensions(w),
        pass_mark(w, row),
        radar_of_passing(w, row),
    ]
    found = suggested(w)
    if found:
        caption = w.say("judged.suggestions")
        blocks.append(suggestions_table(w, row, found, most=_MOST_SUGGESTIONS, caption=caption))
    blocks.append(Text((_trust(w, row),), "note"))
    return w.section("judged", finding, w.say("judged.lead"), blocks)


def _share(w: Formatter, row: Row) -> tuple[object, ...]:
    """Return the share that passes with its interval and n, then each gate on it with its outcome."""
    _, _, facts = passing_share(w, row)
    share = w.say("judged.share", share=percent(row["share"]))
    texts = [fact for fact in facts if isinstance(fact, str)]
    gates = [fact for fact in facts if not isinstance(fact, str)]
    return (" · ".join([share, *texts]), *gates)


def _dimensions(w: Formatter) -> Table | None:
    """Return the dimensions with the weights that they have in the rubric."""
    rubric = w.sheet.scenario.rubric
    table = measures(w, w.dimensions)
    if table is None or rubric is None:
        return table
    weights = {one.name: f"{one.weight:g}" for one in rubric.dimensions}
    found: Any = table.rows
    rows = tuple(one._replace(weight=weights[one.code]) for one in found)
    return table._replace(rows=rows)


def _score(w: Formatter, row: Row) -> tuple[str, ...]:
    """Return the weighted score of the rubric on its scale; nothing where it has none."""
    written = number(row["score"])
    if written == MISSING:
        return ()
    low, high = w.scales[row["metric"]]
    interval = ends(row["score_low"], row["score_high"])
    said = w.say(
        "judged.score",
        score=written,
        ends=interval,
        level=w.level,
        low=f"{low:g}",
        high=f"{high:g}",
    )
    return (said,)


def _trust(w: Formatter, row: Row) -> str:
    """Return a line of the calibration card on the dimension that decides; without one, that nobody checked."""
    card = w.sheet.calibration
    verdict = verdict_of(card, row["metric"])
    if card is None or verdict is None:
        return w.say("judged.unchecked")
    words = {"verdict": verdict["verdict"], "share": percent(verdict["share"])}
    words |= {"target": percent(card.target), "n": count(verdict["n"])}
    return w.say("judged.checked", **words, dimension=w.name(row["metric"]))
