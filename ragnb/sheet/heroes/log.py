"""The first lines of a log without gold: what changed, and what to label."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from ragnb import stats
from ragnb.markup import count, number, percent, signed
from ragnb.markup.blocks import Action
from ragnb.schema import records
from ragnb.sheet.actions import action
from ragnb.sheet.formatter import Formatter, Row
from ragnb.sheet.heroes.states import Hero, State, first_state, say_state
from ragnb.traces.changes import LAST_DAYS, first_of_last

_MANY_FAILED = 0.05  # of the answers; fewer are told below, not first
_MANY_UNSUPPORTED = 0.1  # of the answers that were looked at
_LOWER_END = 0.05  # of the share of unsupported answers
# The text of a change by its measure.
_CHANGED = {
    "refused": "hero.log_refused",
    "failed": "hero.log_failed_share",
    "unsupported": "hero.log_unsupported_share",
    "latency": "hero.log_latency",
}


class _Facts(NamedTuple):
    """The measures of a log by name, what changed most, and how many replies are refusals by wording alone."""

    measures: Mapping[str, Row]
    changed: Row | None
    unsupported: tuple[int, int, float]
    worded: int
    is_compared: bool

    @property
    def failed_share(self) -> float:
        row = self.measures.get("failed")
        if row is not None and row["now_n"]:
            return float(row["now"])
        return 0.0

    @property
    def many_unsupported(self) -> bool:
        k, n, low = self.unsupported
        return n > 0 and k / n >= _MANY_UNSUPPORTED and low > _LOWER_END


STATES = (
    State("log_failed_on", "bad", lambda f: _failed(f) and f.is_compared and _has_day(f)),
    State("log_failed", "bad", lambda f: _failed(f)),
    State("log_changed", "watch", lambda f: f.changed is not None),
    State("log_unsupported", "watch", lambda f: f.many_unsupported),
    State("log_worded", "watch", lambda f: f.worded > 0),
    State("log_steady", "none", lambda f: f.is_compared),
    State("log_short", "none", lambda f: True),
)
"""What a log without gold begins with, the first that holds."""


def _failed(facts: _Facts) -> bool:
    return facts.failed_share >= _MANY_FAILED


def _has_day(facts: _Facts) -> bool:
    return not pd.isna(facts.measures["failed"]["most_day"])


def of_log(w: Formatter) -> Hero:
    """Return what changed in a log, and what to run next."""
    log = w.whole.log
    measures = {row["measure"]: row for row in records(log.changes)}
    moved = [row for row in measures.values() if row["outcome"] in ("rose", "fell")]
    # Shares and seconds have no common unit: what counts is the change in widths of its own interval.
    moved.sort(key=lambda row: -abs(row["difference"]) / (row["high"] - row["low"]))
    worded = _worded(w)
    facts = _Facts(
        measures=measures,
        changed=moved[0] if moved else None,
        unsupported=_unsupported(log.changes),
        worded=worded,
        is_compared=any(row["outcome"] != "all" for row in measures.values()),
    )
    state = first_state(STATES, facts)
    failed = measures.get("failed", {"now_k": 0, "now_n": 0, "most_k": 0, "most_day": pd.NaT})
    k, n, low = facts.unsupported
    words: dict[str, Any] = {
        "n": count(failed["now_n"]),
        "k": count(failed["now_k"]),
        "most_k": count(failed["most_k"]),
        "most_day": day_words(failed["most_day"]),
        "rows": count(w.whole.rows),
        "unsupported": count(k),
        "figures": count(n),
        "low": percent(low),
        "worded": count(worded),
        "changed": _changed(w, facts),
        "rates": _rates(w, measures),
        "days": LAST_DAYS,
    }
    return say_state(w, state, words, _next(w, worded))


def _worded(w: Formatter) -> int:
    """Return how many replies are worded as refusals where none is counted as one; else 0."""
    rows = w.whole.scores
    if "refusal_rate_proposed" not in rows or "refusal_rate" not in rows:
        return 0
    if rows["refusal_rate"].sum():
        return 0  # how this system refuses is known; what else looks like it has a section
    return int(rows["refusal_rate_proposed"].sum())


def _unsupported(table: pd.DataFrame) -> tuple[int, int, float]:
    """Return how many of how many answers state a figure in no passage, and the lower end of the share."""
    rows = table[table["measure"] == "unsupported"]
    if rows.empty:
        return 0, 0, math.nan
    k = int(rows[["before_k", "now_k"]].to_numpy().sum())
    n = int(rows[["before_n", "now_n"]].to_numpy().sum())
    if not n:
        return k, n, math.nan
    values = [1.0] * k + [0.0] * (n - k)
    return k, n, stats.clustered_mean(values, ends=(0.0, 1.0)).low


def _changed(w: Formatter, facts: _Facts) -> str:
    row = facts.changed
    if row is None:
        return ""
    since = first_of_last(w.whole.log.days["day"])
    write = number if row["measure"] == "latency" else percent
    words = {"now": write(row["now"]), "before": write(row["before"]), "since": day_words(since)}
    return w.say(_CHANGED[row["measure"]], **words)


def difference_words(w: Formatter, row: Row) -> tuple[str, str]:
    """Write a difference and its interval: shares in percentage points, latency in seconds."""
    if pd.isna(row["difference"]):
        return "", ""
    share = row["measure"] != "latency"
    value, low, high = (signed(row[name], share) for name in ("difference", "low", "high"))
    text = w.say("gates.points" if share else "daily.seconds", n=value)
    if pd.isna(row["low"]):
        return text, ""
    return text, w.say("sheet.from_to", low=low, high=high)


def _rates(w: Formatter, measures: Mapping[str, Row]) -> str:
    """Return the shares of all requests: refused, and failed where a column speaks of it."""
    shares = []
    for name in ("refused", "failed"):
        row = measures.get(name)
        if row is not None:
            n = row["before_n"] + row["now_n"]
            share = (row["before_k"] + row["now_k"]) / n if n else math.nan
            shares.append(w.say(f"hero.log_share_{name}", share=percent(share)))
    return w.list(shares)


def day_words(day: Any) -> str:
    """Write a day as ISO 8601 does, which every language reads alike."""
    if pd.isna(day):
        return ""
    return f"{day:%Y-%m-%d}"


def _next(w: Formatter, worded: int) -> Action | None:
    """Return the patterns that count the worded refusals, else the draw of questions to label."""
    if worded:
        table = w.whole.log.patterns
        most = table[table["n"] == table["n"].max()]
        pattern = min(most["pattern"], key=len)
        # A list of one text as YAML writes it, where an apostrophe is doubled.
        value = "patterns=['" + pattern.replace("'", "''") + "']"
        command = f"ragnb check {{source}} -p {_quoted(value)}"
        return action(w, "patterns", command, n=count(table["n"].max()))
    return action(w, "to_label", "ragnb check {source} --to-label gold.csv")


def _quoted(value: str) -> str:
    """Quote for a shell, by double quotes where it would change nothing between them."""
    if re.search(r'[$`"!]|\\\\', value):
        return shlex.quote(value)
    return f'"{value}"'
