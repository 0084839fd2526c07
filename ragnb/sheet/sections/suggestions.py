"""What the judge suggests for the answers that do not pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragnb.markup import count, number, one_line
from ragnb.markup.blocks import Section, Table
from ragnb.sheet.formatter import Formatter, Row, Write, text_of
from ragnb.sheet.passing_pictures import passing_row
from ragnb.sheet.suggestions import Suggestion, suggested

_MOST = 12


def suggestions(w: Formatter) -> Section | None:
    """Return the suggestions, the most frequent first; nothing where the judge made none for them."""
    row = passing_row(w)
    found = suggested(w)
    if row is None or not found:
        return None
    finding = w.say("suggestions.finding", text=one_line(found[0].text, 80))
    lead = w.say("suggestions.lead", n=count(row["n"] - row["k"]))
    table = suggestions_table(w, row, found)
    return w.section("suggestions", finding, lead, [table], count(len(found)))


def suggestions_table(
    w: Formatter, row: Row, found: Sequence[Suggestion], *, most: int = _MOST, caption: str = ""
) -> Table:
    """Return the first suggestions, with the answers that each is for and how many would pass with them."""

    def example(one: Suggestion) -> tuple[Any, ...]:
        name = text_of(one.example, "sample_id")
        link = w.link(one.example["sample_id"]) if name else ""
        return link, one_line(text_of(one.example, "question"), 80)

    def followed(one: Suggestion) -> str:
        return w.say("suggestions.passing", k=count(row["k"] + one.n), n=count(row["n"]))

    columns: dict[str, Write] = {
        "suggestions.text": lambda one: one.text,
        ">suggestions.answers": lambda one: count(one.n),
        ">suggestions.mean": lambda one: number(one.mean),
        ">suggestions.followed": followed,
        "suggestions.example": example,
    }
    return w.table(found[:most], columns, cards=True, caption=caption)
