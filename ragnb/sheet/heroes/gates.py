"""The first lines of a run that gates decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from ragnb import texts
from ragnb.markup import count
from ragnb.schema import DRAWN
from ragnb.sheet.formatter import Formatter, Row, chance
from ragnb.sheet.heroes.states import Hero
from ragnb.sheet.labels import counted

# The rates that are 0 where no citation is read.
_OF_CITATIONS = ("answer_precision", "citation_hit_rate", "correct_outcome", "compliance")


def of_gates(w: Formatter, gates: list[dict[Any, Any]]) -> Hero:
    """Return what the gates that decide say."""
    tone, status, title, lead = _decided(w, gates)
    return Hero(f"gates_{status}", tone, w.say(f"status.{status}"), title, lead)


def _decided(w: Formatter, gates: list[dict[Any, Any]]) -> tuple[str, str, str, str]:
    """Return the tone, the status, the sentence and its reason."""
    blocking = [row for row in gates if row["blocks"]]
    blocking.sort(key=lambda row: row["outcome"] != "fail")  # a gate that failed is said first
    if blocking:
        return "bad", "failed", *_blocking(w, gates, blocking)
    still_open = [row for row in gates if row["outcome"] == "undecided"]
    if still_open:
        return "watch", "undecided", *_undecided(w, still_open, len(gates))
    passed = [row for row in gates if row["outcome"] == "pass"]
    if passed:
        return "good", "passed", *_passed(w, gates, passed)
    return "none", "no_data", w.say("headline.no_data"), w.say("headline.no_data_why")


def _blocking(w: Formatter, gates: Sequence[Row], blocking: Sequence[Row]) -> tuple[str, str]:
    """Return which systems gates block, where there are several, else which gate blocks and why."""
    every = _systems_of(gates)
    stopped = _systems_of(blocking)
    if len(every) < 2 or not stopped:
        return blocked(w, blocking[0])
    names = w.list(stopped)
    title = w.say("headline.systems", n=len(stopped), all=len(every), names=names)
    return title, w.say("headline.shown", name=w.shown)


def _systems_of(gates: Sequence[Row]) -> list[str]:
    """Return the systems that gates are of; a difference from the baseline is of no single one."""
    return list(dict.fromkeys(row["system"] for row in gates if row["system"] is not None))


def _passed(w: Formatter, gates: Sequence[Row], passed: Sequence[Row]) -> tuple[str, str]:
    """Return how many gates passed, and which of them would most likely come out otherwise next time."""
    nearest = max(passed, key=lambda row: -1.0 if pd.isna(row["p_flip"]) else row["p_flip"])
    key = "passed" if len(passed) == len(gates) else "passed_some"
    title = texts.counted(w.say, f"headline.{key}", len(passed), all=len(gates))
    lead = w.say(
        "headline.nearest",
        asks=w.requirement(nearest),
        value=w.interval(nearest["metric"], nearest),
    )
    if not pd.isna(nearest["p_flip"]):
        lead += w.say("headline.flip", p=chance(nearest["p_flip"]))
    return title, lead


def blocked(w: Formatter, gate: Row) -> tuple[str, str]:
    """Return which gate blocks and why in two sentences, never stronger than its interval."""
    metric = gate["metric"]
    at = gate["threshold"]
    fails = gate["outcome"] == "fail"
    said = w.said(gate) | {"asks": w.requirement(gate)}
    if gate["outcome"] == "no_data":
        return w.say("headline.no_value", **said), w.say("headline.no_value_why")
    no_citations = _no_citations(w, gate) if fails else ""
    if no_citations:
        return no_citations, w.say("headline.asks", **said)
    if not fails:
        key = "open"
    elif gate["role"] == "difference":
        key = "differs"
    else:
        key = "metric"
    title = w.say(f"headline.{key}", **said)
    lead = w.say("headline.asks" if fails else "headline.seen", **said)
    # The labels are counted of the system that is shown alone.
    k, n = counted(w, metric) if w.shown == gate["system"] else (0, 0)
    sentence = w.about(metric).get("headline")
    # A weighted rate is no count.
    if sentence and n and gate["role"] == "rate" and DRAWN not in w.sheet.scores:
        title = sentence.format(k=count(k), n=count(n))
        key = "headline.weighted" if w.sheet.scenario.doc_weights else "headline.rate"
        lead = w.say(key, **said)
    if not said["ends"]:
        return title, lead + w.say("headline.no_interval")
    if fails and gate["op"] == "<=" and at > 0 and gate["low"] / at >= 2:
        # By how many times even the milder end is above the limit, rounded down to a tenth.
        times = f"{10 * gate['low'] / at // 1 / 10:g}"
        return title, lead + w.say("headline.times", times=times, **said)
    key = "headline.conclusive" if fails else "headline.inconclusive"
    return title, lead + w.say(key, **said)


def _no_citations(w: Formatter, gate: Row) -> str:
    """Return the sentence that no answer cites anything, for a rate that would say so by a 0; else nothing."""
    if gate["metric"] not in _OF_CITATIONS:
        return ""
    notes = w.whole.notes
    rows = notes[
        (notes["code"] == "no_citations") & notes["about"].isin([gate["system"], "traces"])
    ]
    if len(rows):
        return str(rows["text"].iloc[0])
    return ""


def _undecided(w: Formatter, gates: list[dict[Any, Any]], n: int) -> tuple[str, str]:
    """Return how many gates are undecided, and how many more questions would decide all that questions decide."""
    title = w.say("headline.undecided", n=len(gates), all=n)
    needed = [row for row in gates if not pd.isna(row["more_needed"])]
    if not needed:
        return title, w.say("headline.too_close")
    most = max(needed, key=lambda row: row["more_needed"])
    return title, w.say("headline.more", n=count(most["more_needed"]), asks=w.requirement(most))
