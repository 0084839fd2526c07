"""The words of a card: verdicts, their tones, and texts filled with figures."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ragnb.markup import number, percent
from ragnb.texts import entry

BETWEEN = {"en": " ", "zh": ""}  # sentences

WORST_LAST = TRUST, NOT_PROVEN, REJECT = ("TRUST", "NOT PROVEN", "REJECT")
SIDES = RECALIBRATE, RANKING_ONLY, INFLATED = ("RECALIBRATE", "RANKING ONLY", "INFLATED")
TONES = {TRUST: "good", NOT_PROVEN: "watch", REJECT: "bad"}
LAYOUT: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("card.toml").read_text(encoding="utf-8")
)


class Written(float):
    """A number in a text, which says how it is written: ``{n:2}`` (decimals), ``percent``, ``bare``, ``signed``.

    Examples
    --------
    >>> "{:percent}, {:bare}, {:signed}, {:signed}".format(*map(Written, (0.886, 0.8, 0.594, -0.405)))
    '88.6 %, 80.0, +0.59, −0.41'
    """

    def __format__(self, form: str) -> str:
        value = float(self)
        if form in ("percent", "bare"):
            return percent(value).removesuffix(" %" * (form == "bare"))
        if form == "signed":
            written = number(value, 2)
            if value > 0 and float(written):
                return f"+{written}"
            return written.replace("-", "−")
        if form.isdigit():
            return number(value, int(form))
        return format(value, form)


def filled(text: str, facts: Mapping[Any, Any]) -> str:
    """Return a text filled with the facts of a row."""
    # Only floats have forms of their own; a count is written as Python writes it.
    numbers = {
        name: Written(fact) for name, fact in facts.items() if isinstance(fact, float | np.floating)
    }
    return text.format(**{**facts, **numbers})


def told(lang: str, key: str, facts: Mapping[Any, Any], **more: Any) -> str:
    """Return a text of a language filled with the facts of a row."""
    return filled(entry(lang, key), {**facts, **more})


def text_key(word: str) -> str:
    """Return a verdict as the keys of texts write it.

    Examples
    --------
    >>> text_key("NOT PROVEN")
    'not_proven'
    """
    return word.lower().replace(" ", "_")
