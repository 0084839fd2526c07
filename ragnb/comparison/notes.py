"""What to know before believing a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ragnb.comparison.estimates import OFTEN, Verdict, gate_verdict, pass_chance
from ragnb.comparison.people import APART, BY_PEOPLE, UNCHECKED
from ragnb.comparison.wording import change, difference, scored_questions, why_left_out
from ragnb.markup import MISSING, count, percent
from ragnb.schema import records

Rows = Sequence[dict[Any, Any]]


def comparison_notes(table: pd.DataFrame, say: Any) -> Iterator[str]:
    """Yield what to know before believing the numbers, a sentence or two each."""
    if not table["primary"].any():
        yield say("compare.no_primary")
    several = table["candidate"].nunique() > 1
    for name, rows in table.groupby("candidate", sort=False):
        for text in _notes_of(records(rows), say):
            if several:
                yield f"{name}: {text}"
            else:
                yield text


def _notes_of(rows: Rows, say: Any) -> Iterator[str]:
    """Yield the notes on one candidate, what is missing before what is found."""
    # Where no metric decides, the notes are about each of them.
    decisive = [row for row in rows if row["primary"]] or rows
    yield from _one_sided(rows, decisive, say)
    yield from _little_overlap(decisive, say)
    yield from _noisy(rows, say)
    yield from _people_notes(rows, say)
    yield from _held_back(rows, say)
    yield from _incomplete(decisive, say)
    for row in decisive:
        if not row["incomplete"] and row.get("people") != UNCHECKED:
            yield from _on_outcome(row, say)
    yield from _chance_to_pass(decisive, say)


def _one_sided(rows: Rows, decisive: Rows, say: Any) -> Iterator[str]:
    """Yield which questions only one side scored, and the difference if those that were lost were the worst."""
    partly = [row for row in rows if row["left_out"]]
    if not partly:
        return
    listed = []
    for row in partly:
        why = why_left_out(row["left_out"], say)
        listed.append(f"{row['metric']} {count(row['n_left_out'])} ({why})")
    text = say("compare.one_side", metrics="; ".join(listed))
    bounds = []
    for row in decisive:
        worst = change(row, say, "worst_case")
        # Compared as they are written: a difference that rounding hides is no news.
        if worst not in (change(row, say), MISSING):
            bounds.append(f"{row['metric']} {worst}")
    if bounds:
        text += say("compare.worst", values=", ".join(bounds))
    yield text


def _little_overlap(decisive: Rows, say: Any) -> Iterator[str]:
    """Yield the difference over all questions, where few are common."""
    for row in decisive:
        if pd.notna(row["all_value"]):
            yield say(
                "compare.overlap",
                metric=row["metric"],
                n=count(row["n_common"]),
                asked=count(row["n_common"] + row["n_left_out"]),
                value=difference(row, say, "all_{}"),
            )


def _noisy(rows: Rows, say: Any) -> Iterator[str]:
    """Yield the differences that repeats of one system show, too."""
    noisy = []
    for row in rows:
        if row["below_noise"]:
            noise = change(row, say, "noise").lstrip("+")
            noisy.append(f"{row['metric']} {change(row, say)} (±{noise})")
    if noisy:
        yield say("compare.noise", metrics=", ".join(noisy))


def _held_back(rows: Rows, say: Any) -> Iterator[str]:
    """Yield the metrics whose own interval excludes 0, and which Holm's correction leaves undecided."""
    held_back = []
    for row in rows:
        is_open = row["outcome"] == "undecided" and not row["incomplete"]
        excludes_0 = row["low"] * row["high"] > 0
        if is_open and excludes_0 and row.get("people") != UNCHECKED:
            held_back.append(row["metric"])
    if held_back:
        yield say("compare.holm", metrics=", ".join(held_back))


def _incomplete(decisive: Rows, say: Any) -> Iterator[str]:
    """Yield of which metrics so many questions are lost that they decide nothing."""
    for row in decisive:
        if row["incomplete"]:
            yield say(
                "compare.incomplete",
                metric=row["metric"],
                new=row["candidate"],
                lost=count(row["n_lost"]),
                n=count(scored_questions(row)),
            )


def _on_outcome(row: Mapping[Any, Any], say: Any) -> Iterator[str]:
    """Yield what an outcome leaves open: how small a difference shows, and how many questions would decide."""
    more = row["questions_needed"] - row["n_common"]  # nan where no number of questions would do
    words = {
        "metric": row["metric"],
        "value": change(row, say),
        "margin": f"{row['margin']:g}",
        "n": count(row["n_common"]),
        "detectable": change(row, say, "detectable").lstrip("+"),
    }
    outcome = row["outcome"]
    if outcome == "same":
        yield say("compare.within", more=count(more), **words)
    elif outcome == "undecided":
        if np.isnan(row["low"]):
            key = "no_interval"
        elif np.isnan(more):
            key = "no_difference"
        else:
            key = "needed"
        yield say(f"compare.{key}", more=count(more), **words)
    elif outcome.endswith("_within"):
        yield say(f"compare.{outcome}", **words)
    elif gate_verdict(row) == Verdict.NOT_PROVEN:
        yield say("compare.worse_unsure", metric=row["metric"])


def _chance_to_pass(decisive: Rows, say: Any) -> Iterator[str]:
    """Yield how often an equal system would pass a gate on such a comparison, where that is rarely."""
    for row in decisive:
        # More ratings help, too, not questions alone.
        if row.get("people") in BY_PEOPLE:
            continue
        chance, needed = pass_chance(row)
        if chance < OFTEN:
            words = {"n": count(row["n_common"]), "needed": count(needed)}
            yield say("compare.pass_chance", chance=percent(chance), **words)


def _people_notes(rows: Rows, say: Any) -> Iterator[str]:
    """Yield what people's ratings made of each metric that they rated."""
    for row in rows:
        words = {"metric": row["metric"], "n": count(row.get("n_human", 0))}
        if row.get("people") == UNCHECKED:
            yield say("compare.unchecked", new=row["candidate"], base=row["baseline"], **words)
        elif row.get("people") in BY_PEOPLE:
            yield say("compare.people_decide", words=judge_and_people(row, say), **words)


def judge_and_people(row: Mapping[Any, Any], say: Any) -> str:
    """Write what the judge and what people found, and whom the judge favours."""
    words = {"judge": change(row, say, "judge_value"), "n": count(row["n_human"])}
    if row["people"] == APART:
        key = "judge_and_people_apart"
    else:
        key = "judge_and_people"
    text = str(say(f"compare.{key}", people=difference(row, say, "human_{}"), **words))
    # An interval whose ends have the same sign excludes 0.
    if row["judge_bias_low"] * row["judge_bias_high"] > 0:
        # The bias is judge − people: above 0 it is in favour of the candidate only where higher is better.
        favours_new = (row["judge_bias"] > 0) == (row["better"] == "higher")
        who = row["candidate"] if favours_new else row["baseline"]
        bias = change(row, say, "judge_bias").lstrip("+−-")
        text += str(say("compare.judge_favours", system=who, bias=bias))
    return text
