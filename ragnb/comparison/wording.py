"""How differences are written: a change, its interval, its outcome."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

from ragnb.comparison.estimates import outcome_of
from ragnb.comparison.people import BY_PEOPLE
from ragnb.markup import MISSING, amount, percent, signed
from ragnb.markup.blocks import Mark

TONES = {
    "better": "good",
    "better_within": "good",
    "same": "good",
    "undecided": "none",
    "worse_within": "watch",
    "worse": "bad",
}


def change(row: Mapping[Any, Any], say: Any, name: str = "value") -> str:
    """Write a difference in a column of a row: that of a rate in percentage points."""
    share = row["role"] == "rate"
    text = signed(row[name], share)
    if share and text != MISSING:
        return str(say("gates.points", n=text))
    return text


def difference(row: Mapping[Any, Any], say: Any, name: str = "{}") -> str:
    """Write a difference with its interval where there is one, ``+0.113 (+0.036 to +0.191)``.

    `name` makes the three columns: ``{}_without`` takes ``value_without, low_without, high_without``.

    Examples
    --------
    >>> from ragnb import texts
    >>> row = {"value": 0.113, "low": 0.036, "high": 0.191, "role": "rate"}
    >>> difference(row, texts.load("en"))
    '+11.3 points (+3.6 to +19.1)'
    """
    share = row["role"] == "rate"
    low = signed(row[name.format("low")], share)
    high = signed(row[name.format("high")], share)
    text = change(row, say, name.format("value"))
    if MISSING in (low, text):
        return text
    return f"{text} ({say('sheet.from_to', low=low, high=high)})"


def outcome_mark(row: Mapping[Any, Any], say: Any) -> Mark:
    """Return the outcome of a comparison in words."""
    return Mark(TONES[row["outcome"]], say(f"compared.{row['outcome']}"))


def outcome_word(row: Mapping[Any, Any], say: Any) -> str:
    """Return the outcome in words; what the judge alone sees and people do not is not shown."""
    if row.get("people") in BY_PEOPLE:
        judged = outcome_of(
            row["judge_low"], row["judge_high"], margin=row["margin"], better=row["better"]
        )
        side = judged.removesuffix("_within")
        is_open = row["outcome"] in ("same", "undecided")
        if is_open and side in ("better", "worse"):
            return str(say(f"compared.not_shown_{side}"))
    return str(say(f"compared.{row['outcome']}"))


def scored_questions(row: Mapping[Any, Any]) -> int:
    """Return how many questions the baseline scored, of those that the metric applies to on both sides."""
    return int(row["n_common"] + row["n_lost"])


def signed_amount(value: float) -> str:
    """Write a difference of amounts with its sign."""
    if pd.isna(value):
        return MISSING
    return f"{_sign(value)}{amount(abs(value))}"


def percent_change(share: float) -> str:
    """Write a relative change with its sign."""
    if pd.isna(share):
        return MISSING
    return f"{_sign(share)}{share_of(share)}"


def _sign(value: float) -> str:
    # The minus sign, as `markup.signed` writes it, not a hyphen.
    if value < 0:
        return "−"
    return "+"


def share_of(share: float) -> str:
    """Write how large a relative change is; a small one with a decimal."""
    decimals = 0 if abs(share) >= 0.1 else 1
    return percent(abs(share), decimals)


def ends_of(low: str, high: str, say: Any) -> str:
    """Write an interval from its ends as they are written, empty where one is missing."""
    if MISSING in (low, high):
        return ""
    return str(say("sheet.from_to", low=low, high=high))


def why_left_out(left_out: str, say: Any) -> str:
    """Return why questions are excluded, in a language: ``new: 3 failed, 2 absent``."""

    def translated(match: re.Match[str]) -> str:
        return f"{match[1]} {say(f'compare.state.{match[2]}')}"

    # Only a number and a state between the marks that `left_out` is made with: a system may be called "2 failed".
    pattern = r"(?<=[:,] )(\d+) (failed|not_applicable|missing|absent)(?=[,;]|$)"
    return re.sub(pattern, translated, left_out)
