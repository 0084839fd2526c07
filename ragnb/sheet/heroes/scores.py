"""The first lines of a run without gates: what its means, or the rates of its log, say."""

from __future__ import annotations

from ragnb.markup import (
    count,
)
from ragnb.sheet.actions import action
from ragnb.sheet.formatter import Formatter
from ragnb.sheet.heroes.states import Hero
from ragnb.sheet.labels import tally
from ragnb.sheet.standing import standing


def of_scores(w: Formatter) -> Hero:
    """Return how the means stand, of several systems how the best stands beside the others."""
    title, lead = _without_gates(w)
    if w.whole.log is not None or not any(map(w.known, w.quality)):
        status = "no_gates" if w.whole.log is None else "log"
        return Hero(status, "none", w.say(f"status.{status}"), title, lead)
    found = standing(w)
    files = [file["path"] for file in w.whole.inputs]
    is_alone = len(files) == 1 and w.whole.scenario.path is None and found.judged
    write = action(w, "init", "ragnb init {source}") if is_alone else None
    return Hero(
        found.status, found.tone, w.say(f"status.standing_{found.status}"), title, lead, write
    )


def _without_gates(w: Formatter) -> tuple[str, str]:
    """Return what the metrics, or the log, say where no gate decides."""
    if any(map(w.known, w.quality)):
        finding = standing(w).finding + w.say("headline.end")
        if w.shown is None:
            return finding, w.say("headline.no_gates")
        return f"{w.shown}: {finding}", w.say("headline.no_gates") + w.say(
            "headline.shown", name=w.shown
        )
    names = w.list(
        f"{w.name(name)} {w.value(name, w.rows[name]['value'])}"
        for name in w.rates
        if w.known(name)
    )
    if not names:
        return w.say("measures.nothing") + w.say("headline.end"), w.say("headline.nothing_why")
    key = "headline.no_gates" if tally(w) else "headline.no_gold"
    said = w.say("headline.log", n=count(w.answers), rates=names)
    return said, w.say(key)
