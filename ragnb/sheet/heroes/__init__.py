"""What a page begins with: status, sentence, reason and what to run next, by the kind of the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from ragnb import texts
from ragnb.markup import (
    count,
)
from ragnb.markup.blocks import (
    Mark,
)
from ragnb.schema import DRAWN, records
from ragnb.sheet.account import (
    blocking_words,
    said_losses,
    worst_words,
)
from ragnb.sheet.formatter import GATE_TONES, OUTCOME, TOTAL, Formatter, Row, chance
from ragnb.sheet.gates import deciding
from ragnb.sheet.heroes.failed import of_failed
from ragnb.sheet.heroes.gates import of_gates
from ragnb.sheet.heroes.judge import of_judge, passing_row
from ragnb.sheet.heroes.log import of_log
from ragnb.sheet.heroes.score import means_of_systems, score_words
from ragnb.sheet.heroes.scores import of_scores
from ragnb.sheet.heroes.since import of_since
from ragnb.sheet.heroes.states import Hero
from ragnb.sheet.heroes.systems import of_systems
from ragnb.sheet.kinds import FAILED, JUDGE, LOG, SCORES, SYSTEMS, TRACES, kind_of
from ragnb.sheet.labels import counted, tally
from ragnb.sheet.ladder import is_open, ladder_finding, rungs_of
from ragnb.sheet.standing import standing


def hero_of(w: Formatter) -> Hero:
    """Return the first lines of a page, whose reason begins with all that was lost."""
    if kind_of(w) == FAILED:
        return of_failed(w)
    gates = deciding(w.whole.gates)
    row = passing_row(w)
    is_blocked = any(gate["blocks"] for gate in gates)
    kind = kind_of(w)
    of_change = None
    if kind in (JUDGE, TRACES, SCORES):
        of_change = of_since(w, gates)
    if of_change is not None:
        found = of_change
    elif kind == LOG and not gates:
        found = of_log(w)
    elif kind == JUDGE and row is not None and not is_blocked:
        found = of_judge(w, row, gates)
    else:
        of_pairs = of_systems(w, gates) if kind == SYSTEMS and not is_blocked else None
        found = of_pairs or (of_gates(w, gates) if gates else of_scores(w))
    if losses := said_losses(w):
        said = w.say("list.also").join(losses) + w.say("headline.end")
        found = found._replace(lead=w.say("headline.losses", losses=said, lead=found.lead))
    return found


def sentence(w: Formatter) -> str:
    """Return the verdict as text: status, reason, overall score with its n; of several systems each its own."""
    found = hero_of(w)
    several = () if w.shown is None else means_of_systems(w).items()
    scores = [f"{name}: {score_words(w, rows)}" for name, rows in several] or [
        score_words(w, w.rows)
    ]
    words = {
        "status": found.status,
        "title": found.title,
        "lead": found.lead,
        "score": w.list(scores, most=6),
    }
    notes = w.whole.notes
    repeats = notes.loc[notes["code"] == "repeats", "text"]
    return " ".join([*w.say("headline.sentence", **words).split(), *repeats])
