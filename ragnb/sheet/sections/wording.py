"""Refusals by their wording, which nobody declared: patterns to propose."""

from __future__ import annotations

from ragnb.markup import count, one_line
from ragnb.markup.blocks import Code, Section
from ragnb.schema import records
from ragnb.sheet.formatter import Formatter, Write


def wording(w: Formatter) -> Section | None:
    """Return the patterns with how many answers each matches; nothing where no answer is worded as a refusal."""
    log = w.whole.log
    if log is None or log.patterns.empty:
        return None
    columns: dict[str, Write] = {
        "log.pattern": lambda row: Code(one_line(row["pattern"], 80)),
        ">column.n": lambda row: count(row["n"]),
        "log.example": lambda row: one_line(row["example"], 120),
    }
    table = w.table(records(log.patterns), columns, caption=w.say("log.patterns"))
    n = int(log.patterns["n"].max())
    finding = w.say("log.finding", n=count(n))
    return w.section("wording", finding, w.say("log.lead"), [table], count(n))
