"""Entries → weights → numbers: what a person typed, weights on a grid, and the frames that follow."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import pandas as pd

from ragnb.diagnostics import check_gates
from ragnb.scenario import Scenario
from ragnb.schema import Gate
from ragnb.weights import Moments, notes

GRID = 0.01
"""The step of a slider: normalised weights are multiples of it."""


class Numbers(NamedTuple):
    """What follows from one set of weights: frames as `Moments.means`, `check_gates` and `notes` give them."""

    means: pd.DataFrame
    systems: pd.DataFrame | None
    gates: pd.DataFrame
    notes: pd.DataFrame


def numbers(
    pooled: Moments,
    by_system: Moments | None,
    metric_weights: Mapping[str, float],
    doc_weights: Mapping[str, float],
    settings: Scenario,
    gates: Iterable[Gate],
) -> Numbers:
    """Return what follows from these weights.

    Examples
    --------
    >>> from ragnb.weights import moments
    >>> found = moments(pd.DataFrame({"faithfulness": [0.9, 0.4]}))
    >>> numbers(found, None, {}, {}, Scenario.without_files(), ()).means["value"].tolist()
    [0.65, 0.65]
    """
    how: dict[str, Any] = {"level": settings.level, "orient": settings.orient, "rescale": settings.rescale}
    how |= {"metric_weights": metric_weights, "doc_weights": doc_weights, "strict": False}
    means, systems = pooled.means(**how), by_system.means(**how) if by_system else None
    # Systems are never pooled into a decision.
    decided = check_gates(means if systems is None else systems, gates=gates, no_data=settings.no_data)
    return Numbers(means, systems, decided, notes(means, lang=settings.lang))


def normalised(weights: Mapping[str, float]) -> dict[str, float]:
    """Return weights in the same proportions, multiples of 0.01 that add up to 1 exactly.

    The largest remainders are rounded up; a weight above 0 keeps at least one hundredth where that is possible.

    Examples
    --------
    >>> normalised({"a": 1, "b": 1, "c": 1})
    {'a': 0.34, 'b': 0.33, 'c': 0.33}
    """
    units = round(1 / GRID)
    top = max(weights.values())
    shares = {name: weight / top for name, weight in weights.items()}  # else a sum could overflow
    total = math.fsum(shares.values())
    least = 1 if sum(weight > 0 for weight in weights.values()) <= units else 0
    exact = {name: units * share / total for name, share in shares.items()}
    whole = {name: max(math.floor(x), least * (weights[name] > 0)) for name, x in exact.items()}
    while (rest := units - sum(whole.values())) != 0:
        step = 1 if rest > 0 else -1
        free = [name for name, weight in weights.items() if weight > 0 and whole[name] + step >= least]
        whole[max(free, key=lambda name: step * (exact[name] - whole[name]))] += step
    return {name: count / units for name, count in whole.items()}


def read_entry(entry: str | float | None) -> tuple[float | None, str]:
    """Read a weight as a person types it, in any width: its value (None where blank), and what is wrong.

    Examples
    --------
    >>> read_entry(" ０．５ "), read_entry(""), read_entry("-1"), read_entry("nan")
    ((0.5, ''), (None, ''), (None, 'negative'), (None, 'not_number'))
    """
    said = "" if entry is None else unicodedata.normalize("NFKC", str(entry)).strip()
    if not said:
        return None, ""
    with suppress(ValueError):
        value = float(said.replace("_", "?"))
        if math.isfinite(value):
            return (value, "") if value >= 0 else (None, "negative")
    return None, "not_number"


def folded(text: str) -> str:
    """Return text without the differences of case and width.

    Examples
    --------
    >>> folded("ＣＴ手册.PDF")
    'ct手册.pdf'
    """
    return unicodedata.normalize("NFKC", text).casefold()
