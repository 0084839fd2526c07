"""The questions on which another system beats the best: what switching to it would make worse."""

from __future__ import annotations

from ragnb.markup.blocks import Section
from ragnb.sheet.formatter import Formatter
from ragnb.sheet.systems_table import losses as losses_of


def losses(w: Formatter) -> Section | None:
    """Return where the runner-up scores higher, the largest losses first; nothing where it never does."""
    found = None if w.whole.systems is None else losses_of(w)
    if found is None:
        return None
    finding, table = found
    return w.section("losses", finding, w.say("systems.losses_lead"), [table])
