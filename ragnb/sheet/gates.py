"""Which gates decide, and how many of them came out which way."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ragnb.markup.blocks import Mark
from ragnb.schema import records
from ragnb.sheet.formatter import GATE_TONES, Formatter


def deciding(gates: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the gates that decide: not those of the input, of advice, and of others than the candidate."""
    return records(gates[(gates["reason"] == "") & (gates["role"] != "completeness")])


def by_outcome(w: Formatter, gates: list[dict[Any, Any]]) -> tuple[Mark, ...]:
    """Return how many gates came out which way, the worst first."""
    marks = []
    for outcome, tone in GATE_TONES.items():
        n = sum(gate["outcome"] == outcome for gate in gates)
        if n:
            marks.append(Mark(tone, f"{n} {w.say(f'sheet.gate_{outcome}')}"))
    return tuple(marks)
