"""The answer to "is it good enough?" in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from ragnb.diagnostics import input_words
from ragnb.errors import listing
from ragnb.markup import number, percent, with_interval
from ragnb.scenario import Scenario
from ragnb.schema import records
from ragnb.texts import counted, entry, load

Say = Callable[..., str]


def verdict(scenario: Scenario, means: pd.DataFrame, gates: pd.DataFrame) -> str:
    """Return the answer to "is it good enough?" in one sentence, with the headline, its n and documents."""
    say = load(scenario.lang)
    of_input = gates["role"] == "completeness"
    lost, imperfect = (
        [input_words(row, scenario.lang) for row in records(gates[of_input & rows])]
        for rows in (gates["blocks"], ~gates["blocks"] & (gates["value"] < 1))
    )
    if lost:
        head = say("verdict.incomplete", what=say("note.join").join(lost))
    else:
        head = _gate_words(gates[~of_input], scenario.lang)
    tail = _headline(means, say) if "system" not in means else _headlines(means, say)
    return say("verdict.part").join([head, *imperfect]) + tail + say("verdict.end")


def _gate_words(gates: pd.DataFrame, lang: str) -> str:
    say = load(lang)
    deciding = gates[gates["reason"] == ""]
    blocking, open_ = deciding[deciding["blocks"]], int((deciding["outcome"] == "undecided").sum())
    skipped, n = int((deciding["outcome"] == "no_data").sum()), len(deciding)
    if not n:
        advisory = gates[gates["reason"] == "advisory"]
        missed = int((advisory["outcome"] == "fail").sum())
        return say("verdict.advisory", n=missed, all=len(advisory)) if missed else say("verdict.no_gates")
    if len(blocking):
        blocking = blocking.sort_values("outcome", key=lambda words: words != "fail", kind="stable")
        words, several = _why_blocked(records(blocking)[0], lang), deciding["system"].nunique()
        if several < 2:
            return counted(say, "verdict.not_yet", n, blocking=len(blocking), first=words)
        failing = blocking["system"].unique().tolist()
        names = listing(failing, most=4)
        return say("verdict.systems_fail", n=len(failing), all=several, names=names, first=words)
    if open_:
        return say("verdict.undecided", undecided=open_, gates=n)
    if skipped:
        return say("verdict.no_data" if skipped == n else "verdict.passed_some", n=n - skipped, gates=n)
    return counted(say, "verdict.passed", n)


def _why_blocked(row: Mapping[Any, Any], lang: str) -> str:
    """Say which gate fails in words: "answered although unanswerable 35.6 %, at most 5.0 %"."""
    say, written = load(lang), percent if row["role"] == "rate" else number
    what = entry(lang, "metrics").get(row["metric"], {}).get("name", row["metric"])
    what = load(lang)("gate.difference", metric=what) if row["role"] == "difference" else what
    value = say("word.missing") if pd.isna(row["value"]) else written(row["value"])
    key = "verdict.at_least" if row["op"] == ">=" else "verdict.at_most"
    text = say(key, metric=what, value=value, threshold=written(row["threshold"]))
    text += say("verdict.inconclusive") if row["outcome"] == "undecided" else ""
    return text if row["system"] is None else say("verdict.of_system", system=row["system"], text=text)


def _headline(means: pd.DataFrame, say: Say) -> str:
    """Say the share of correct outcomes where gold tells what is answerable, else the weighted score."""
    rows = {row["metric"]: row for row in records(means)}
    total, outcome = rows["weighted_score"], rows.get("correct_outcome")
    widest = max(rows.values(), key=lambda row: row["n"])
    if outcome is not None and not pd.isna(outcome["value"]):
        score = with_interval(outcome["value"], outcome["low"], outcome["high"], percent=True)
        tail = counted(say, "verdict.outcome", int(outcome["n"]), score=score)
    elif pd.isna(total["value"]):
        tail = counted(say, "verdict.without_total", int(widest["n"]))
    else:
        score = with_interval(total["value"], total["low"], total["high"])
        low, high = (f"{total[end]:g}" for end in ("range_low", "range_high"))
        score += "" if (low, high) == ("0", "1") else say("verdict.scale", low=low, high=high)
        tail = counted(say, "verdict.total", int(total["n"]), score=score)
    unit = total["cluster_unit"]
    return tail + (counted(say, f"verdict.{unit}s", int(widest["n_clusters"])) if unit != "row" else "")


def _headlines(means: pd.DataFrame, say: Say) -> str:
    """Say the headline of each system; systems are never pooled."""
    outcomes = means[(means["metric"] == "correct_outcome") & means["value"].notna()]
    rows = records(outcomes if len(outcomes) else means[means["metric"] == "weighted_score"])
    return say("verdict.outcomes" if len(outcomes) else "verdict.totals") + listed(rows, bool(len(outcomes)))


def listed(rows: list[dict[Any, Any]], rates: bool) -> str:
    told = (f"{row['system']} {with_interval(row['value'], row['low'], row['high'], rates)}" for row in rows)
    return listing(told, most=6)
