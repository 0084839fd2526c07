"""The first lines of a judged run: how many answers pass, why others do not, and what people say of the judge."""

from __future__ import annotations

import shlex
from typing import Any, NamedTuple

from ragnb.markup import count, ends, percent, signed
from ragnb.markup.blocks import Action
from ragnb.sheet.actions import action, file_of, source_of
from ragnb.sheet.formatter import Formatter, Row
from ragnb.sheet.heroes.states import Hero, State, first_state, say_state
from ragnb.sheet.passing import verdict_of
from ragnb.sheet.suggestions import suggested

_MOST_LABELS = 120  # answers that a person rates in an afternoon


class _Facts(NamedTuple):
    """`verdict` is that of the labels of people on the dimension that passes, empty without labels."""

    verdict: str
    is_open: bool
    is_gated: bool


STATES = (
    State("judge_rejected", "bad", lambda f: f.verdict == "REJECT"),
    State("judge_unvalidated", "watch", lambda f: not f.verdict),
    State("judge_unproven", "watch", lambda f: f.verdict != "TRUST"),
    State("judge_open", "watch", lambda f: f.is_open),
    State("judge_passed", "good", lambda f: f.is_gated),
    State("judge_trusted", "none", lambda f: True),
)
"""What a judged run that no gate stops begins with, the first that holds."""


def of_judge(w: Formatter, row: Row, gates: list[dict[Any, Any]]) -> Hero:
    """Return how many answers pass, and what labels of people say of the judge."""
    verdict = verdict_of(w.whole.calibration, row["metric"])
    outcomes = {gate["outcome"] for gate in gates}
    facts = _Facts(
        verdict="" if verdict is None else verdict["verdict"],
        is_open=bool(outcomes - {"pass"}),
        is_gated=outcomes == {"pass"},
    )
    state = first_state(STATES, facts)
    words: dict[str, Any] = {
        "k": count(row["k"]),
        "n": count(row["n"]),
        "dimension": w.name(row["metric"]),
        "at": f"{row['threshold']:g}",
        "share": percent(row["share"]),
        "ends": ends(row["low"], row["high"], percent=True),
        "level": w.level,
        "why": _why(w, row),
        "judge": judge_line(w, row),
        "within": "" if verdict is None else percent(verdict["share"]),
        "target": "" if verdict is None else percent(verdict["target"]),
    }
    return say_state(w, state, words, _next(w, row, verdict is not None))


def _why(w: Formatter, row: Row) -> str:
    """Return what the judge suggests most often for the answers that do not pass, where it suggests anything."""
    found = suggested(w)
    others = row["n"] - row["k"]
    if not found or not others:
        return ""
    first = found[0]
    return w.say("hero.judge_why", n=count(first.n), others=count(others), text=first.text)


def judge_line(w: Formatter, row: Row) -> str:
    """Return what labels of people say: verdict, agreement, target, bias, and how many pass without it."""
    verdict = verdict_of(w.whole.calibration, row["metric"])
    if verdict is None:
        return w.say("hero.judge_no_labels")
    return w.say(
        "hero.judge_labels",
        verdict=verdict["verdict"],
        within=percent(verdict["share"]),
        ends=ends(verdict["low"], verdict["high"], percent=True),
        target=percent(verdict["target"]),
        dimension=w.name(row["metric"]),
        bias=signed(verdict["bias"]),
        k=count(row["k_unbiased"]),
        n=count(row["n"]),
    )


def _next(w: Formatter, row: Row, has_labels: bool) -> Action | None:
    """Return the card behind the line on the judge, or the sheet with which people label answers."""
    scenario = w.whole.scenario
    if has_labels:
        name = file_of(w, "ratings")
        if name is None:
            return None
        rubric = scenario.rubric
        command = (
            f"ragnb calibrate {name} --dimension {shlex.quote(row['metric'])}"
            f" --scale {rubric.low:g} {rubric.high:g} --html card.html"
        )
        return Action(command, w.say("action.card"))
    name = file_of(w, "scores")
    if name is None or source_of(w) is None:
        return None
    n = min(_MOST_LABELS, int(row["n"]))
    command = f"ragnb calibrate --sample {n} {name} --out labels.csv"
    return action(w, "labels", command, n=count(n))
