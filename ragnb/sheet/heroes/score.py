"""The overall score in a sentence: of a run, and of each of its systems."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from ragnb.schema import TOTAL, records
from ragnb.sheet.account import worst_words
from ragnb.sheet.formatter import OUTCOME, Formatter, Row


def means_of_systems(w: Formatter) -> dict[str, dict[str, Row]]:
    """Return the means of each system by metric."""
    parts = w.whole.systems.groupby("system", sort=False)
    return {name: {row["metric"]: row for row in records(part)} for name, part in parts}


def score_words(w: Formatter, rows: Mapping[str, Row]) -> str:
    """Write the overall score, else the share of answers that ended right."""
    if (metric := headline_metric(rows)) is None:
        return w.say("headline.no_score") + (parts_of_total(w, {}) if w.quality else "")
    low, high = (f"{rows[metric][end]:g}" for end in ("range_low", "range_high"))
    if (low, high) == ("0", "1"):
        scale = ""
    else:
        scale = w.say("headline.scale", low=low, high=high)
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
    if of:
        of_which = w.say("headline.of", names=w.list(map(w.name, of), most=6))
    else:
        of_which = ""
    return of_which + w.say("headline.left_out", names=w.list(names, most=6))


def headline_metric(rows: Mapping[str, Row]) -> str | None:
    return next((m for m in (TOTAL, OUTCOME) if m in rows and not pd.isna(rows[m]["value"])), None)
