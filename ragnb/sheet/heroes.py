"""The sentence that a page begins with: status, reason, and the overall score."""

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
from ragnb.sheet.labels import counted, tally
from ragnb.sheet.ladder import is_open, ladder_finding, rungs_of
from ragnb.sheet.standing import standing


def deciding(gates: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the gates that decide: not those of the input, of advice, and of others than the candidate."""
    return records(gates[(gates["reason"] == "") & (gates["role"] != "completeness")])


def by_outcome(w: Formatter, gates: list[dict[Any, Any]]) -> tuple[Mark, ...]:
    """Return how many gates came out which way, the worst first."""
    counts = {outcome: sum(row["outcome"] == outcome for row in gates) for outcome in GATE_TONES}
    return tuple(
        Mark(GATE_TONES[key], f"{n} {w.say(f'sheet.gate_{key}')}") for key, n in counts.items() if n
    )


def sentence(w: Formatter) -> str:
    """Return the verdict as text: status, reason, overall score with its n; of several systems each its own."""
    _, status, title, lead = words_of(w, deciding(w.whole.gates))
    several = () if w.shown is None else means_of_systems(w).items()
    scores = [f"{name}: {_said(w, rows)}" for name, rows in several] or [_said(w, w.rows)]
    words = {
        "status": w.say(f"status.{status}"),
        "title": title,
        "lead": lead,
        "score": w.list(scores, most=6),
    }
    notes = w.whole.notes
    repeats = notes.loc[notes["code"] == "repeats", "text"]
    return " ".join([*w.say("headline.sentence", **words).split(), *repeats])


def means_of_systems(w: Formatter) -> dict[str, dict[str, Row]]:
    """Return the means of each system by metric."""
    parts = w.whole.systems.groupby("system", sort=False)
    return {name: {row["metric"]: row for row in records(part)} for name, part in parts}


def _said(w: Formatter, rows: Mapping[str, Row]) -> str:
    """Write the overall score, else the share of answers that ended right."""
    if (metric := headline_metric(rows)) is None:
        return w.say("headline.no_score") + (parts_of_total(w, {}) if w.quality else "")
    low, high = (f"{rows[metric][end]:g}" for end in ("range_low", "range_high"))
    scale = "" if (low, high) == ("0", "1") else w.say("headline.scale", low=low, high=high)
    row = rows[metric]
    said = f"{w.title(metric)} {w.interval(metric, row)}{scale}, {w.counted(row)}"
    said += worst_words(w, metric, row)
    return said + (parts_of_total(w, rows) if metric == TOTAL else "")


def parts_of_total(w: Formatter, rows: Mapping[str, Row]) -> str:
    """Say which metrics the total is of, and what the table offers beside them; nothing where that is all."""
    offered: Mapping[str, str] = w.whole.left_out
    if not offered:
        return ""
    of = [name for name, row in rows.items() if row["role"] != "total" and row["weight"] > 0]
    why = {code: w.say(f"headline.left_out_{code}") for code in set(offered.values())}
    names = [w.say("headline.left_out_name", name=n, why=why[code]) for n, code in offered.items()]
    of_which = w.say("headline.of", names=w.list(map(w.name, of), most=6)) if of else ""
    return of_which + w.say("headline.left_out", names=w.list(names, most=6))


def headline_metric(rows: Mapping[str, Row]) -> str | None:
    return next((m for m in (TOTAL, OUTCOME) if m in rows and not pd.isna(rows[m]["value"])), None)


# The rates that are 0 where no citation is read.
_OF_CITATIONS = ("answer_precision", "citation_hit_rate", "correct_outcome", "compliance")


def words_of(w: Formatter, gates: list[dict[Any, Any]]) -> tuple[str, str, str, str]:
    """Return the tone, the status, the sentence and its reason, which begins with all that was lost."""
    if blocking := blocking_words(w):
        title = w.list(blocking) + w.say("headline.end")
        return "bad", "incomplete", title, w.say("headline.incomplete")
    tone, status, title, lead = _decided(w, gates)
    if losses := said_losses(w):
        said = w.say("list.also").join(losses) + w.say("headline.end")
        lead = w.say("headline.losses", losses=said, lead=lead)
    return tone, status, title, lead


def _decided(w: Formatter, gates: list[dict[Any, Any]]) -> tuple[str, str, str, str]:
    """Return the tone, the status, the sentence and its reason of input that is complete enough."""
    if not gates:
        if w.whole.log is not None or not any(map(w.known, w.quality)):
            return "none", "no_gates" if w.whole.log is None else "log", *_without_gates(w)
        found = standing(w)
        if is_open(rungs_of(w)):
            return "watch", "undecided", *_without_gates(w)
        return found.tone, f"standing_{found.status}", *_without_gates(w)
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
    flip = "" if pd.isna(nearest["p_flip"]) else w.say("headline.flip", p=chance(nearest["p_flip"]))
    return "good", "passed", title, lead + flip


def blocked(w: Formatter, gate: Row) -> tuple[str, str]:
    """Return which gate blocks and why in two sentences, never stronger than its interval."""
    metric, at, fails = gate["metric"], gate["threshold"], gate["outcome"] == "fail"
    said = w.said(gate) | {"asks": w.requirement(gate)}
    if gate["outcome"] == "no_data":
        return w.say("headline.no_value", **said), w.say("headline.no_value_why")
    if fails and (none_found := _no_citations(w, gate)):
        return none_found, w.say("headline.asks", **said)
    sentence, (k, n) = (
        w.about(metric).get("headline"),
        counted(w, metric) if w.shown == gate["system"] else (0, 0),
    )
    key = "open" if not fails else "differs" if gate["role"] == "difference" else "metric"
    title = w.say(f"headline.{key}", **said)
    lead = w.say("headline.asks" if fails else "headline.seen", **said)
    if (
        sentence and n and gate["role"] == "rate" and DRAWN not in w.sheet.scores
    ):  # a weighted rate is no count
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
    return str(rows["text"].iloc[0]) if len(rows) else ""


def _undecided(w: Formatter, gates: list[dict[Any, Any]], n: int) -> tuple[str, str]:
    title = w.say("headline.undecided", n=len(gates), all=n)
    if not (needed := [row for row in gates if not pd.isna(row["more_needed"])]):
        return title, w.say("headline.too_close")
    most = max(needed, key=lambda row: row["more_needed"])
    return title, w.say("headline.more", n=count(most["more_needed"]), asks=w.requirement(most))


def _without_gates(w: Formatter) -> tuple[str, str]:
    """Return what the metrics, or the log, say where no gate decides."""
    if any(map(w.known, w.quality)):
        finding = standing(w).finding + w.say("headline.end")
        if w.shown is None:
            return finding, w.say("headline.no_gates")
        if rungs := rungs_of(w):
            title = ladder_finding(w, rungs) + w.say("headline.end")
            lead = w.say("ladder.of", name=w.shown, finding=finding) + w.say("headline.no_gates")
            return title, lead + w.say("headline.shown", name=w.shown)
        return f"{w.shown}: {finding}", w.say("headline.no_gates") + w.say(
            "headline.shown", name=w.shown
        )
    names = w.list(
        f"{w.name(name)} {w.value(name, w.rows[name]['value'])}"
        for name in w.rates
        if w.known(name)
    )
    if not names:
        return w.say("measures.nothing") + w.say("headline.end"), w.say("headline.nothing_why")
    key = "headline.no_gates" if tally(w) else "headline.no_gold"
    said = w.say("headline.log", n=count(w.answers), rates=names)
    return said, w.say(key)
