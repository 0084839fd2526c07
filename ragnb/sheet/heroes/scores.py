"""The first lines of a run without gates: what its means, or its rates, say."""

from __future__ import annotations

from ragnb.markup import count
from ragnb.sheet.actions import action
from ragnb.sheet.formatter import Formatter
from ragnb.sheet.heroes.states import Hero
from ragnb.sheet.standing import standing


def of_scores(w: Formatter) -> Hero:
    """Return how the means stand, of several systems how the best stands beside the others."""
    title, lead = _without_gates(w)
    if not any(map(w.known, w.quality)):
        return Hero("no_gates", "none", w.say("status.no_gates"), title, lead)
    found = standing(w)
    files = [file["path"] for file in w.whole.inputs]
    is_alone = len(files) == 1 and w.whole.scenario.path is None and found.judged
    if is_alone:
        write = action(w, "init", "ragnb init {source}")
    else:
        write = None
    return Hero(
        found.status, found.tone, w.say(f"status.standing_{found.status}"), title, lead, write
    )


def _without_gates(w: Formatter) -> tuple[str, str]:
    """Return what the metrics, or the rates, say where no gate decides."""
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
    said = w.say("headline.rates", n=count(w.answers), rates=names)
    return said, w.say("headline.no_gates")
