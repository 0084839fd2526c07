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
    metric = headline_metric(rows)
    if metric is None:
        # Without quality metrics there is no total that columns could have been left out of.
        left_out = parts_of_total(w, {}) if w.quality else ""
        return w.say("headline.no_score") + left_out
    row = rows[metric]
    low = f"{row['range_low']:g}"
    high = f"{row['range_high']:g}"
    scale = ""
    if (low, high) != ("0", "1"):
        scale = w.say("headline.scale", low=low, high=high)
    text = f"{w.title(metric)} {w.interval(metric, row)}{scale}, {w.counted(row)}"
    text += worst_words(w, metric, row)
    if metric == TOTAL:
        text += parts_of_total(w, rows)
    return text


def parts_of_total(w: Formatter, rows: Mapping[str, Row]) -> str:
    """Say which metrics the total is of, and what the table offers beside them; nothing where that is all."""
    offered: Mapping[str, str] = w.whole.left_out
    if not offered:
        return ""
    weighed = [name for name, row in rows.items() if row["role"] != "total" and row["weight"] > 0]
    weighed_words = ""
    if weighed:
        weighed_words = w.say("headline.of", names=w.list(map(w.name, weighed), most=6))
    left_out = []
    for name, code in offered.items():
        why = w.say(f"headline.left_out_{code}")
        left_out.append(w.say("headline.left_out_name", name=name, why=why))
    return weighed_words + w.say("headline.left_out", names=w.list(left_out, most=6))


def headline_metric(rows: Mapping[str, Row]) -> str | None:
    """Return the metric that the headline states: the total, else the share of answers that ended right."""
    for metric in (TOTAL, OUTCOME):
        if metric in rows and not pd.isna(rows[metric]["value"]):
            return metric
    return None
