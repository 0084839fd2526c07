"""The first lines of a run whose input is incomplete: what is missing, and what that leaves open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from ragnb.diagnostics.completeness import SCORED_CELLS
from ragnb.markup import count, number
from ragnb.markup.blocks import Action
from ragnb.sheet.account import blocking_words, said_losses
from ragnb.sheet.actions import file_of
from ragnb.sheet.bounds import Bound, bounds_of
from ragnb.sheet.formatter import Formatter
from ragnb.sheet.heroes.states import Hero, State, first_state, say_state

_MOST_SAID = 3


class _Facts(NamedTuple):
    """`other` is whether more than cells of metrics is lost beyond what is allowed."""

    bounds: Sequence[Bound]
    lost: int
    expected: int
    other: bool

    @property
    def open_bounds(self) -> list[Bound]:
        return [bound for bound in self.bounds if bound.is_open]

    @property
    def is_asked(self) -> bool:
        return any(not pd.isna(bound.at) for bound in self.bounds if bound.row["lost"])


STATES = (
    State("nothing_scored", "bad", lambda f: f.lost == f.expected > 0),
    State("input_lost", "bad", lambda f: f.other or not f.lost),
    State("scores_lost", "bad", lambda f: bool(f.open_bounds)),
    State("scores_lost_settled", "bad", lambda f: f.is_asked),
    State("scores_lost_plain", "bad", lambda f: True),
)
"""What a run whose input is incomplete begins with, the first that holds."""


def of_failed(w: Formatter) -> Hero:
    """Return what is missing, what it leaves open, and how to find it."""
    bounds = bounds_of(w)
    gates = w.whole.gates
    stops = gates[(gates["role"] == "completeness") & gates["blocks"]]
    facts = _Facts(
        bounds=bounds,
        lost=sum(int(bound.row["lost"]) for bound in bounds),
        expected=sum(int(bound.row["expected"]) for bound in bounds),
        other=bool((stops["gate"] != SCORED_CELLS).any()),
    )
    state = first_state(STATES, facts)
    words: dict[str, Any] = {
        "losses": w.list(blocking_words(w)),
        "lost": count(facts.lost),
        "n": count(facts.expected),
        "rows": count(w.whole.rows),
        "metrics": count(len({bound.metric for bound in bounds})),
        "names": w.list(name_of(w, bound) for bound in facts.open_bounds),
        "bounds": "".join(_in_words(w, bound) for bound in facts.open_bounds[:_MOST_SAID]),
        "all_losses": w.say("list.also").join(said_losses(w)),
    }
    hero = say_state(w, state, words, _next(w))
    notes = w.whole.notes
    unread = notes.loc[notes["code"] == "bad_lines", "text"].tolist()
    for text in unread:  # which lines, the first with its reason
        hero = hero._replace(lead=w.say("headline.losses", losses=text, lead=hero.lead))
    return hero


def _next(w: Formatter) -> Action | None:
    """Return the look at the file of the scores, or of the traces, which says what it lacks."""
    name = file_of(w, "scores", "traces")
    if name is None:
        return None
    return Action(f"ragnb inspect {name}", w.say("action.inspect"))


def name_of(w: Formatter, bound: Bound, write: Callable[[str], str] | None = None) -> str:
    """Return the metric as `write` does, of several systems with its system."""
    name = (write or w.name)(bound.metric)
    if bound.system is None:
        return name
    return w.say("account.of_system", system=bound.system, text=name)


def _in_words(w: Formatter, bound: Bound) -> str:
    """Say where the mean of a metric would be if all that is lost were wrong, and right."""
    return w.say(
        "hero.bounds",
        metric=name_of(w, bound, w.title),
        worst=number(bound.row["worst"]),
        best=number(bound.row["best"]),
        at=w.limit(bound.metric, bound.at),
    )
