"""The first lines of a run beside an earlier one: what broke, and what was fixed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ragnb.comparison.wording import difference
from ragnb.markup import count, number
from ragnb.markup.blocks import Action
from ragnb.sheet.actions import shown_name, source_of
from ragnb.sheet.formatter import Formatter, Row
from ragnb.sheet.heroes.states import Hero, State, first_state, say_state
from ragnb.sheet.since import Since, changed_between, now_failing, since_of


class _Facts(NamedTuple):
    """How the metric that decides came out, and a gate that passed before and fails now."""

    outcome: str
    gate: Row | None


STATES = (
    State("since_gate", "bad", lambda f: f.gate is not None),
    State("since_worse", "bad", lambda f: f.outcome == "worse"),
    State("since_better", "good", lambda f: f.outcome == "better"),
    State("since_open", "watch", lambda f: f.outcome == "undecided"),
    State("since_same", "none", lambda f: True),
)
"""What a run beside an earlier one begins with, the first that holds."""


def of_since(w: Formatter, gates: list[dict[Any, Any]]) -> Hero | None:
    """Return what broke and what was fixed; None where that is not what the reader must know first.

    It is where somebody named the other run, where this one is worse, and where a gate that passed fails now. A
    gate that blocks is said before a change for the better.
    """
    since = since_of(w)
    if since is None:
        return None
    facts = _Facts(since.primary["outcome"], now_failing(w))
    state = first_state(STATES, facts)
    blocking = [gate for gate in gates if gate["blocks"]]
    if any(gate["role"] == "difference" for gate in blocking):
        return None  # somebody named how much worse is too much: that gate says it
    if state.tone != "bad" and (since.is_last_run or blocking):
        return None
    against = "hero.against_last" if since.is_last_run else "hero.against"
    words: dict[str, Any] = {
        "against": w.say(against, name=since.primary["baseline"]),
        "broke": count(since.n_of(True, False)),
        "fixed": count(since.n_of(False, True)),
        "was": count(since.n_of(True, True) + since.n_of(True, False)),
        "now": count(since.n_of(True, True) + since.n_of(False, True)),
        "n": count(len(since.rows)),
        "metric": w.title(since.primary["metric"]),
        "difference": difference(since.primary, w.say),
        "margin": f"{since.primary['margin']:g}",
        "right": _right(w, since),
        "on": _on(w, since),
    }
    if facts.gate is not None:
        words["asks"] = w.requirement({**facts.gate, "system": None})
        words["value"] = w.interval(facts.gate["metric"], facts.gate)
    hero = say_state(w, state, words, _next(w))
    if not blocking:
        return hero
    asks = w.list((w.requirement(gate) for gate in blocking), most=1)
    said = w.say("hero.since_blocked", n=count(len(blocking)), all=count(len(gates)), asks=asks)
    return hero._replace(lead=hero.lead + said)


def _right(w: Formatter, found: Since) -> str:
    """Say what right means where no label does."""
    if found.threshold is None:
        return ""
    name = w.name(found.primary["metric"])
    return w.say("hero.since_right", metric=name, at=number(found.threshold))


def _on(w: Formatter, found: Since) -> str:
    """Say on how many of the questions the runs are compared, where that is not all, and what else changed."""
    n = len(found.rows)
    every = w.answers
    changed = w.list(changed_between(w), most=4)
    if n < every:
        key = "hero.since_on_changed" if changed else "hero.since_on"
        return w.say(key, n=count(n), all=count(every), what=changed)
    if changed:
        return w.say("hero.since_changed", what=changed)
    return ""


def _next(w: Formatter) -> Action | None:
    """Return the comparison as a step of CI, where both runs are beside one another."""
    scenario = w.whole.scenario
    source = source_of(w)
    baseline = scenario.baseline
    # `compare` takes one file a run, not --traces and --gold.
    if source is None or source.startswith("--") or baseline is None:
        return None
    folder = Path.cwd() if scenario.path is None else scenario.path.parent
    path = Path(str(baseline))
    # Names on a page are without their folders: the line runs only where both lie in one.
    if path.parent.resolve() != folder.resolve():
        return None
    name = shown_name(path.name)
    if name is None or not path.exists():
        return None
    return Action(f"ragnb compare {source} {name} --gate", w.say("action.compare"))
