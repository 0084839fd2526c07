"""The first lines of a run that gates decide."""

from __future__ import annotations

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
    if blocking := sorted(
        (row for row in gates if row["blocks"]), key=lambda row: row["outcome"] != "fail"
    ):
        # A difference from the baseline is of no single system.
        every, stopped = (
            list(dict.fromkeys(row["system"] for row in rows if row["system"] is not None))
            for rows in (gates, blocking)
        )
        if len(every) < 2 or not stopped:
            return "bad", "failed", *blocked(w, blocking[0])
        words = {"n": len(stopped), "all": len(every), "names": w.list(stopped)}
        return (
            "bad",
            "failed",
            w.say("headline.systems", **words),
            w.say("headline.shown", name=w.shown),
        )
    if still_open := [row for row in gates if row["outcome"] == "undecided"]:
        return "watch", "undecided", *_undecided(w, still_open, len(gates))
    if not (passed := [row for row in gates if row["outcome"] == "pass"]):
        return "none", "no_data", w.say("headline.no_data"), w.say("headline.no_data_why")
    nearest = max(passed, key=lambda row: -1.0 if pd.isna(row["p_flip"]) else row["p_flip"])
    key = "passed" if len(passed) == len(gates) else "passed_some"
    title = texts.counted(w.say, f"headline.{key}", len(passed), all=len(gates))
    lead = w.say(
        "headline.nearest",
        asks=w.requirement(nearest),
        value=w.interval(nearest["metric"], nearest),
    )
    if pd.isna(nearest["p_flip"]):
        flip = ""
    else:
        flip = w.say("headline.flip", p=chance(nearest["p_flip"]))
    return "good", "passed", title, lead + flip


def blocked(w: Formatter, gate: Row) -> tuple[str, str]:
    """Return which gate blocks and why in two sentences, never stronger than its interval."""
    metric = gate["metric"]
    at = gate["threshold"]
    fails = gate["outcome"] == "fail"
    said = w.said(gate) | {"asks": w.requirement(gate)}
    if gate["outcome"] == "no_data":
        return w.say("headline.no_value", **said), w.say("headline.no_value_why")
    if fails and (none_found := _no_citations(w, gate)):
        return none_found, w.say("headline.asks", **said)
    sentence, (k, n) = (
        w.about(metric).get("headline"),
        counted(w, metric) if w.shown == gate["system"] else (0, 0),
    )
    if not fails:
        key = "open"
    elif gate["role"] == "difference":
        key = "differs"
    else:
        key = "metric"
    title = w.say(f"headline.{key}", **said)
    lead = w.say("headline.asks" if fails else "headline.seen", **said)
    # A weighted rate is no count.
    if sentence and n and gate["role"] == "rate" and DRAWN not in w.sheet.scores:
        title = sentence.format(k=count(k), n=count(n))
        lead = w.say(
            "headline.weighted" if w.sheet.scenario.doc_weights else "headline.rate", **said
        )
    if not said["ends"]:
        return title, lead + w.say("headline.no_interval")
    if fails and gate["op"] == "<=" and at > 0 and gate["low"] / at >= 2:
        return title, lead + w.say(
            "headline.times", times=f"{10 * gate['low'] / at // 1 / 10:g}", **said
        )
    return title, lead + w.say("headline.conclusive" if fails else "headline.inconclusive", **said)


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
    title = w.say("headline.undecided", n=len(gates), all=n)
    if not (needed := [row for row in gates if not pd.isna(row["more_needed"])]):
        return title, w.say("headline.too_close")
    most = max(needed, key=lambda row: row["more_needed"])
    return title, w.say("headline.more", n=count(most["more_needed"]), asks=w.requirement(most))
