"""The questions of a log to label first, which turn it into a test set."""

from __future__ import annotations

from ragnb.markup import count, one_line, percent
from ragnb.markup.blocks import Section, Text
from ragnb.schema import DRAWN, records
from ragnb.sheet.formatter import Formatter, Write

_MOST = 12


def label(w: Formatter) -> Section | None:
    """Return the first of the questions that were drawn, each with why; nothing but for a log."""
    log = w.whole.log
    if log is None or log.to_label.empty:
        return None
    columns: dict[str, Write] = {
        "column.question": lambda row: one_line(row["question"], 120),
        "log.reason": lambda row: w.say(f"log.reasons.{row['reason']}"),
        ">log.chance": lambda row: percent(row[DRAWN]),
    }
    rows = records(log.to_label.head(_MOST))
    table = w.table(rows, columns, caption=w.say("log.to_label"), cards=True)
    n = len(log.to_label)
    note = Text((w.say("log.next", n=count(n)),), "note")
    return w.section("label", w.say("log.label_finding", n=count(n)), "", [table, note], count(n))
