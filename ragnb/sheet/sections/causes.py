"""Why every score of a run may be missing."""

from __future__ import annotations

from ragnb import texts
from ragnb.markup.blocks import Section, Text
from ragnb.sheet.bounds import bounds_of
from ragnb.sheet.formatter import Formatter


def causes(w: Formatter) -> Section | None:
    """Return the usual causes where no score came; nothing where some did, whose pattern says more."""
    bounds = bounds_of(w)
    if not bounds or any(bound.row["seen"] for bound in bounds):
        return None
    usual = texts.entry(w.lang, "causes")["usual"]
    lines = [(cause["what"], cause["how"]) for cause in usual]
    listed = Text(tuple(lines), "list")
    return w.section("causes", w.say("causes.finding"), "", [listed], str(len(lines)))
