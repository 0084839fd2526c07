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
    # A single file without a scenario whose means have thresholds: a scenario would make gates of them.
    write_scenario = None
    if len(w.whole.inputs) == 1 and w.whole.scenario.path is None and found.judged:
        write_scenario = action(w, "init", "ragnb init {source}")
    status = w.say(f"status.standing_{found.status}")
    return Hero(found.status, found.tone, status, title, lead, write_scenario)


def _without_gates(w: Formatter) -> tuple[str, str]:
    """Return what the metrics, or the rates, say where no gate decides."""
    if any(map(w.known, w.quality)):
        finding = standing(w).finding + w.say("headline.end")
        lead = w.say("headline.no_gates")
        if w.shown is None:
            return finding, lead
        return f"{w.shown}: {finding}", lead + w.say("headline.shown", name=w.shown)
    names = w.list(
        f"{w.name(name)} {w.value(name, w.rows[name]['value'])}"
        for name in w.rates
        if w.known(name)
    )
    if not names:
        return w.say("measures.nothing") + w.say("headline.end"), w.say("headline.nothing_why")
    title = w.say("headline.rates", n=count(w.answers), rates=names)
    return title, w.say("headline.no_gates")
