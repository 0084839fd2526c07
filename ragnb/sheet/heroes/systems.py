"""The first lines of several systems: which one is better, and whether it is good enough."""

from __future__ import annotations

import shlex
from typing import Any, NamedTuple

from ragnb.comparison.wording import change, difference
from ragnb.markup import count
from ragnb.sheet.actions import action
from ragnb.sheet.formatter import Formatter, Row
from ragnb.sheet.heroes.states import Hero, State, first_state, say_state
from ragnb.sheet.ladder import LEAST_COMMON, more_needed, nearest_of, rungs_of
from ragnb.sheet.standing import Standing, standing

_MOST_SAID = 3
# On the questions that both answered the system with the best mean is not the better one.
_REVERSED = ("worse", "worse_within")


class _Facts(NamedTuple):
    """The pair that decides least, how the means of the first system stand, how many more questions are needed."""

    nearest: Row
    standing: Standing
    more_needed: int


STATES = (
    State("systems_few", "bad", lambda f: f.nearest["n_common"] < LEAST_COMMON),
    State("systems_reversed", "watch", lambda f: f.nearest["outcome"] in _REVERSED),
    State("systems_better_within", "watch", lambda f: f.nearest["outcome"] == "better_within"),
    State("systems_same", "none", lambda f: f.nearest["outcome"] == "same"),
    State("systems_open_more", "watch", lambda f: _is_open(f) and f.more_needed > 0),
    State("systems_open", "watch", lambda f: _is_open(f)),
    State("systems_missed", "bad", lambda f: f.standing.status == "missed"),
    State("systems_unsure", "watch", lambda f: f.standing.status in ("open", "met_unsure")),
    State("systems_lacking", "watch", lambda f: f.standing.status == "no_gates"),
    State("systems_met", "good", lambda f: f.standing.status == "met"),
    State("systems_better", "good", lambda f: True),
)
"""What several systems begin with, the first that holds."""


def _is_open(facts: _Facts) -> bool:
    return bool(facts.nearest["outcome"] != "better")


def of_systems(w: Formatter, gates: list[dict[Any, Any]]) -> Hero | None:
    """Return which of several systems is better; None where they cannot be paired."""
    rungs = rungs_of(w)
    if not rungs:
        return None
    nearest = nearest_of(rungs)
    more = more_needed(nearest)
    gates_shown = [gate for gate in gates if gate["system"] in (None, w.shown)]
    # Where nobody set a gate, the thresholds of the rules say whether the means are good enough.
    means_stand = _by_gates(w, gates_shown) if gates_shown else standing(w)
    state = first_state(STATES, _Facts(nearest, means_stand, more))
    first = nearest["candidate"]
    pairs = [f"{row['baseline']} {difference(row, w.say)}" for row in rungs]
    words: dict[str, Any] = {
        "first": first,
        "other": nearest["baseline"],
        "beats": _beaten(w, rungs),
        "by": _size(w, nearest),
        "difference": difference(nearest, w.say),
        "margin": f"{nearest['margin']:g}",
        "n": count(nearest["n_common"]),
        "more": count(more),
        "finding": means_stand.finding,
        "short": means_stand.short,
        "k": means_stand.judged,
        "pairs": w.list(pairs, most=_MOST_SAID),
    }
    if not gates:
        words["finding"] += w.say("hero.no_gates")
    command = f"ragnb check {{source}} -p {shlex.quote(f'candidate={first}')}"
    return say_state(w, state, words, action(w, "candidate", command, name=first))


def _by_gates(w: Formatter, gates: list[dict[Any, Any]]) -> Standing:
    """Return how the first system stands beside the gates, which are the thresholds that somebody named."""
    by_outcome: dict[str, list[Row]] = {}
    for gate in gates:
        by_outcome.setdefault(gate["outcome"], []).append(gate)
    n_gates = len(gates)
    # The worst outcome that a gate has speaks for all.
    for outcome, tone, status in (
        ("fail", "bad", "missed"),
        ("undecided", "watch", "open"),
        ("no_data", "none", "no_gates"),
    ):
        if outcome not in by_outcome:
            continue
        n = len(by_outcome[outcome])
        # Without the system, which the sentence around it names.
        asks = w.requirement({**by_outcome[outcome][0], "system": None})
        finding = w.say(f"hero.gates_{outcome}", n=n, all=n_gates, asks=asks)
        return Standing(tone, status, finding, low=n, short=asks, judged=n_gates)
    finding = w.say("hero.gates_pass", all=n_gates)
    return Standing("good", "met", finding, low=0, judged=n_gates)


def _beaten(w: Formatter, rungs: list[dict[Any, Any]]) -> str:
    """List the other systems, each with by how much the first is better."""
    each = [w.say("hero.beats", name=row["baseline"], by=_size(w, row)) for row in rungs]
    if 1 < len(each) <= _MOST_SAID:
        return w.list(each[:-1]) + w.say("list.and") + each[-1]
    return w.list(each, most=_MOST_SAID)


def _size(w: Formatter, row: Row) -> str:
    """Write by how much the first system is better, without its sign."""
    return change(row, w.say).lstrip("+−-")
