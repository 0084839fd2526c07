"""What an incomplete run has to go by until it is repeated: the last complete one."""

from __future__ import annotations

from ragnb.markup.blocks import Code, Section, Text
from ragnb.sheet.formatter import Formatter
from ragnb.sheet.since import last_complete


def earlier(w: Formatter) -> Section | None:
    """Return the verdict of the last complete run of the scenario; nothing where there is none."""
    complete = last_complete(w)
    if complete is None:
        return None
    finding = w.say("earlier.finding", day=complete.day)
    folder = (w.say("earlier.folder"), Code(complete.name))
    return w.section("earlier", finding, complete.verdict, [Text((folder,), "note")])
