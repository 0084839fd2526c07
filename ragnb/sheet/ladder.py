"""The best of several systems beside the others, in words."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ragnb.comparison.view import change, difference
from ragnb.markup import count
from ragnb.schema import records
from ragnb.sheet.formatter import Formatter

LEAST_COMMON = 20  # questions that both systems answered; fewer are no comparison


def best_first(means: pd.DataFrame, metric: str) -> list[str]:
    """Return the systems by a metric."""
    rows = means[means["metric"] == metric].sort_values("value", ascending=False, kind="stable")
    return rows["system"].tolist()


def rungs_of(w: Formatter) -> list[dict[Any, Any]]:
    """Return the differences that decide between the best of several systems and the others."""
    table = w.whole.ladder
    return [] if table is None else records(table[table["primary"]])


def ladder_finding(w: Formatter, rungs: list[dict[Any, Any]]) -> str:
    """Return in one sentence whether the best of several systems is better than the others."""
    nearest = next((row for row in rungs if row["outcome"] != "better"), rungs[0])
    words = {
        "first": nearest["candidate"],
        "other": nearest["baseline"],
        "difference": difference(nearest, w.say),
        "margin": f"{nearest['margin']:g}",
        "n": count(nearest["n_common"]),
    }
    if nearest["n_common"] < LEAST_COMMON:
        return w.say("ladder.few", **words)
    if nearest["outcome"] == "better":
        words["others"] = w.list(f"{row['baseline']} ({change(row, w.say)})" for row in rungs)
        return w.say("ladder.better", **words)
    key = nearest["outcome"] if nearest["outcome"] in ("better_within", "same") else "open"
    needed = nearest["questions_needed"]
    if key == "open" and not pd.isna(needed) and needed > nearest["n_common"]:
        words["more"] = count(needed - nearest["n_common"])
        key = "open_more"
    return w.say(f"ladder.{key}", **words)
