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
    n_failing = row["n"] - row["k"]
    lead = w.say("suggestions.lead", n=count(n_failing))
    table = suggestions_table(w, row, found)
    return w.section("suggestions", finding, lead, [table], count(len(found)))


def suggestions_table(
    w: Formatter, row: Row, found: Sequence[Suggestion], *, most: int = _MOST, caption: str = ""
) -> Table:
    """Return the first suggestions, with the answers that each is for and how many would pass with them."""

    def example(suggestion: Suggestion) -> tuple[Any, ...]:
        answer = suggestion.example
        # A link needs an id, which rows of scores need not have.
        link = w.link(answer["sample_id"]) if text_of(answer, "sample_id") else ""
        return link, one_line(text_of(answer, "question"), 80)

    def followed(suggestion: Suggestion) -> str:
        # At most, as nobody knows whether the suggestion is enough for each of its answers.
        k = row["k"] + suggestion.n
        return w.say("suggestions.passing", k=count(k), n=count(row["n"]))

    columns: dict[str, Write] = {
        "suggestions.text": lambda one: one.text,
        ">suggestions.answers": lambda one: count(one.n),
        ">suggestions.mean": lambda one: number(one.mean),
        ">suggestions.followed": followed,
        "suggestions.example": example,
    }
    return w.table(found[:most], columns, cards=True, caption=caption)
