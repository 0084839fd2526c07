"""What a page begins with: status, sentence, reason and what to run next, by the kind of the run."""

from __future__ import annotations

from typing import Any

from ragnb.sheet.account import said_losses
from ragnb.sheet.formatter import Formatter
from ragnb.sheet.gates import deciding
from ragnb.sheet.heroes.failed import of_failed
from ragnb.sheet.heroes.gates import of_gates
from ragnb.sheet.heroes.judge import of_judge
from ragnb.sheet.heroes.log import of_log
from ragnb.sheet.heroes.score import means_of_systems, score_words
from ragnb.sheet.heroes.scores import of_scores
from ragnb.sheet.heroes.since import of_since
from ragnb.sheet.heroes.states import Hero
from ragnb.sheet.heroes.systems import of_systems
from ragnb.sheet.kinds import FAILED, JUDGE, LOG, SCORES, SYSTEMS, TRACES, kind_of
from ragnb.sheet.passing_pictures import passing_row


def hero_of(w: Formatter) -> Hero:
    """Return the first lines of a page, whose reason begins with all that was lost."""
    kind = kind_of(w)
    if kind == FAILED:
        return of_failed(w)
    gates = deciding(w.whole.gates)
    hero = _of_kind(w, kind, gates)
    if hero is None:
        hero = of_gates(w, gates) if gates else of_scores(w)
    losses = said_losses(w)
    if losses:
        sentence_on_losses = w.say("list.also").join(losses) + w.say("headline.end")
        lead = w.say("headline.losses", losses=sentence_on_losses, lead=hero.lead)
        hero = hero._replace(lead=lead)
    return hero


def _of_kind(w: Formatter, kind: str, gates: list[dict[Any, Any]]) -> Hero | None:
    """Return what a run of its kind begins with; None where the gates, or the means, say it."""
    is_blocked = any(gate["blocks"] for gate in gates)
    if kind in (JUDGE, TRACES, SCORES):
        changed = of_since(w, gates)
        if changed is not None:
            return changed
    if kind == LOG and not gates:
        return of_log(w)
    if kind == JUDGE and not is_blocked:
        row = passing_row(w)
        if row is None:
            return None
        return of_judge(w, row, gates)
    if kind == SYSTEMS and not is_blocked:
        return of_systems(w, gates)
    return None


def sentence(w: Formatter) -> str:
    """Return the verdict as text: status, reason, overall score with its n; of several systems each its own."""
    hero = hero_of(w)
    if w.shown is None:
        scores = [score_words(w, w.rows)]
    else:
        systems = means_of_systems(w)
        scores = [f"{name}: {score_words(w, rows)}" for name, rows in systems.items()]
    text = w.say(
        "headline.sentence",
        status=hero.status,
        title=hero.title,
        lead=hero.lead,
        score=w.list(scores, most=6),
    )
    notes = w.whole.notes
    repeats = notes.loc[notes["code"] == "repeats", "text"]
    # Split and joined: a part that is empty would leave two spaces.
    return " ".join([*text.split(), *repeats])
