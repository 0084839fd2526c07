"""The best of several systems beside the others, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from ragnb.comparison.wording import change, difference
from ragnb.markup import count
from ragnb.schema import records
from ragnb.sheet.formatter import Formatter, Row

LEAST_COMMON = 20  # questions that both systems answered; fewer are no comparison


def best_first(means: pd.DataFrame, metric: str) -> list[str]:
    """Return the systems by a metric."""
    rows = means[means["metric"] == metric].sort_values("value", ascending=False, kind="stable")
    return rows["system"].tolist()


def rungs_of(w: Formatter) -> list[dict[Any, Any]]:
    """Return the differences that decide between the best of several systems and the others."""
    table = w.whole.ladder
    if table is None:
        return []
    return records(table[table["primary"]])


def nearest_of(rungs: Sequence[Row]) -> Row:
    """Return the difference that decides least: the first that shows no advantage, else that to the runner-up."""
    for row in rungs:
        if row["outcome"] != "better":
            return row
    return rungs[0]


def more_needed(row: Row) -> int:
    """Return how many more questions would decide a difference; 0 where they would not, or it is decided."""
    needed = row["questions_needed"]
    if pd.isna(needed):
        return 0
    return max(0, int(needed - row["n_common"]))


def ladder_finding(w: Formatter, rungs: list[dict[Any, Any]]) -> str:
    """Return in one sentence whether the best of several systems is better than the others."""
    nearest = nearest_of(rungs)
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
    if nearest["outcome"] in ("better_within", "same"):
        return w.say(f"ladder.{nearest['outcome']}", **words)
    more = more_needed(nearest)
    if more:
        return w.say("ladder.open_more", more=count(more), **words)
    return w.say("ladder.open", **words)
