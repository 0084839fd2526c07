"""Gates on the input itself: damaged lines, gold questions without a trace, and failed cells must not pass."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import pandas as pd

from ragnb.gates.check import gate_frame
from ragnb.schema import Gate, records

INPUT_LINES = "input_lines"
GOLD_COVERAGE = Gate("gold_coverage", "gold_coverage", ">=", 0.95)
SCORED_CELLS = Gate("scored_cells", "scored_cells", ">=", 0.9)
SLACK = 1e-9


def completeness(
    means: pd.DataFrame,
    *,
    lines: Iterable[Mapping[str, Any]] = (),
    coverage: Mapping[Any, tuple[int, int]] | None = None,
    allow: float = 0.0,
    no_data: Literal["fail", "skip"] = "fail",
) -> pd.DataFrame:
    """Return one row for each completeness gate that applies, with the columns of `check_gates`.

    Parameters
    ----------
    means : DataFrame
        What `weighted_means` returns, with the column ``system`` where there are several.
    lines : iterable of mapping
        ``lines, damaged`` of each input file: the records it should hold, and those damaged or lost.
    coverage : mapping of system to (int, int), optional
        Gold questions with a trace, and those that should have one.
    allow : float in [0, 1]
        The share of damaged or lost lines that is accepted.
    no_data : {"fail", "skip"}
        Whether a run without a single score blocks.

    Returns
    -------
    DataFrame
        ``input_lines`` = 1 − damaged/lines of the worst file, at least 1 − `allow`; ``gold_coverage``, at least
        .95; ``scored_cells`` = 1 − failed/(ok + failed), at least .9, of the quality metrics or the rates,
        whichever is lower. ``n`` is the denominator. These are counts, not samples, so they have no interval.
        ``blocks`` where the value is below the threshold; the reason of ``input_lines`` is then ``incomplete``.

    Examples
    --------
    >>> means = pd.DataFrame({"metric": ["faithfulness"], "role": ["quality"], "n": [10], "n_failed": [91]})
    >>> completeness(means)[["gate", "value", "n", "blocks"]].round(3)
               gate  value    n  blocks
    0  scored_cells  0.099  101    True
    """
    rows = []
    counted = [(int(one["lines"]), int(one["damaged"])) for one in lines if one["lines"]]
    if counted:
        total, damaged = max(counted, key=lambda pair: pair[1] / pair[0])
        row = _decided(Gate(INPUT_LINES, INPUT_LINES, ">=", 1 - allow), None, total - damaged, total)
        rows.append(row | {"reason": "incomplete" if row["blocks"] else ""})
    rows += [_decided(GOLD_COVERAGE, system, *pair) for system, pair in (coverage or {}).items() if pair[1]]
    cells: dict[Any, dict[str, list[int]]] = {}
    for row in records(means):
        if row["role"] in ("quality", "rate"):
            part = cells.setdefault(row.get("system"), {}).setdefault(row["role"], [0, 0])
            part[0] += int(row["n"])
            part[1] += int(row["n"]) + int(row["n_failed"])
    for system, parts in cells.items():
        some = [(ok, tried) for ok, tried in parts.values() if tried] or [(0, 0)]
        row = _decided(SCORED_CELLS, system, *min(some, key=lambda pair: pair[0] / max(pair[1], 1)))
        rows.append(row | ({} if row["n"] else {"outcome": "no_data", "blocks": no_data == "fail"}))
    return gate_frame(rows)


def _decided(gate: Gate, system: Any, good: int, total: int) -> dict[str, Any]:
    value = good / total if total else math.nan
    misses = value < gate.threshold - SLACK
    return {
        "gate": gate.name, "system": system, "metric": gate.metric, "op": gate.op, "threshold": gate.threshold,
        "value": value, "low": math.nan, "high": math.nan, "n": total, "outcome": "fail" if misses else "pass",
        "more_needed": 0, "blocks": misses, "role": "completeness", "reason": "",
    }  # fmt: skip
