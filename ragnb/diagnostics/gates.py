"""Gates: means against thresholds, and the input against what it should hold; what blocks."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats
from ragnb.diagnostics.rules import SLACK
from ragnb.errors import RagnbError, RagnbWarning, did_you_mean, listing, unknown
from ragnb.schema import DEFAULT_GATES, KNOWN_RATES, METRICS, Gate, records
from ragnb.weights import metric_name

INPUT_LINES = "input_lines"
GOLD_COVERAGE = Gate("gold_coverage", "gold_coverage", ">=", 0.95)
SCORED_CELLS = Gate("scored_cells", "scored_cells", ">=", 0.9)
COLUMNS = (
    "gate", "system", "metric", "op", "threshold", "value", "low", "high", "n", "outcome", "more_needed", "blocks",
    "role", "reason",
)  # fmt: skip
Range = tuple[float, float]
Sizes = npt.NDArray[np.float64]


def check_gates(
    means: pd.DataFrame, *, gates: Iterable[Gate] = DEFAULT_GATES, no_data: Literal["fail", "skip"] = "fail"
) -> pd.DataFrame:
    """Compare means with the thresholds of gates.

    Parameters
    ----------
    means : DataFrame
        One row a metric, and system where it has the column ``system``: ``metric, value, low, high, n``, as
        `ragnb.weighted_means` and `ragnb.refusal_metrics` give them. ``range_low, range_high`` tell the range of a
        metric; else METRICS does. With their ``se, n_eff, df, kind, level`` too, ``more_needed`` is exact.
    gates : iterable of Gate
    no_data : {"fail", "skip"}
        Whether a gate over nothing blocks.

    Returns
    -------
    DataFrame
        ``gate, system, metric, op, threshold, value, low, high, n, outcome, more_needed, blocks, role,
        reason``, one row a gate and system. ``outcome`` is ``pass`` or ``fail`` where the whole interval lies
        on that side, ``undecided`` where it contains the threshold or there is none, ``no_data`` without a
        value. ``blocks``: the value itself misses the threshold, or there is no data under ``no_data="fail"``;
        never for an advisory gate, whose ``reason`` is ``advisory``. ``more_needed``: how many more scored
        rows, at this value and design effect (so with documents in proportion), make the interval exclude the
        threshold; 0 when decided, missing where the value equals the threshold or there is no interval.

    Raises
    ------
    RagnbError
        For a threshold outside the metric's range, a metric with several rows, a metric of unknown range, and a
        frame that holds no means.

    Notes
    -----
    At n′ rows se is se √(n/n′), and clusters and Kish's n grow by n′/n; n′ is searched in the estimator's own
    interval. Means without those columns tell less: on the metric's range as 0–1, Wilson's bounds b solve
    (p − b)² = k b(1 − b), k = t²/n; the threshold is excluded when (p − threshold)² > k′ threshold(1 − threshold),
    n′ = n k/k′, t kept. Where the range is not finite, or the interval is not Wilson's, its half-width shrinks as
    √(n/n′).

    Examples
    --------
    >>> means = pd.DataFrame(
    ...     {"metric": ["compliance"], "value": [0.95], "low": [0.863], "high": [0.983], "n": [60]}
    ... )
    >>> check_gates(means, gates=[Gate("G", "compliance", ">=", 0.9)])[["outcome", "more_needed", "blocks"]]
         outcome  more_needed  blocks
    0  undecided           79   False
    """
    if no_data not in ("fail", "skip"):
        raise unknown("no_data", no_data, ["fail", "skip"])
    _check_means(means)
    there = list(dict.fromkeys(means["metric"]))
    asked = [replace(gate, metric=metric_name(gate.metric, there)) for gate in gate_list(gates)]
    by_system: dict[Any, dict[str, Mapping[Any, Any]]] = {}
    for row in records(means):
        own = by_system.setdefault(row.get("system"), {})
        if row["metric"] in own and any(gate.metric == row["metric"] for gate in asked):
            raise RagnbError(
                f"means hold {row['metric']!r} more than once; pass the rows of one group, "
                "or name the groups' column 'system'"
            )
        own[str(row["metric"])] = row
    for gate in asked:
        if gate.metric not in {*METRICS, "weighted_score", *there}:
            near = did_you_mean(gate.metric, there)
            text = f"gate {gate.name!r} finds no metric {gate.metric!r}; {near}"
            warnings.warn(text, RagnbWarning, stacklevel=2)
    out = []
    for system, rows in (by_system or {None: {}}).items():
        for gate in asked:
            found = rows.get(gate.metric)
            span = _range(gate, found)
            _check_threshold(gate, span)
            out.append({"system": system, **_decide(gate, found, span, no_data)})
    return gate_frame(out)


def gate_frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows of gates as a frame with all columns, of one dtype each however few the rows are.

    Examples
    --------
    >>> gate_frame([]).columns[:4].tolist()
    ['gate', 'system', 'metric', 'op']
    """
    kinds: dict[str, Any] = {"more_needed": "Int64", "blocks": bool, "n": "int64"}
    kinds |= dict.fromkeys(("threshold", "value", "low", "high"), "float64")
    out = list(rows)
    return pd.DataFrame(
        {name: pd.Series([row[name] for row in out], dtype=kinds.get(name, object)) for name in COLUMNS}
    )


def gate_list(gates: Any) -> list[Gate]:
    """Return gates as a list, or refuse what is none with how to write one.

    Examples
    --------
    >>> gate_list([Gate("G", "faithfulness", ">=", 0.7)])[0].name
    'G'
    """
    found = list(gates) if isinstance(gates, Iterable) and not isinstance(gates, str | Mapping) else [gates]
    for gate in found:
        if not isinstance(gate, Gate):
            raise RagnbError(f"gates={gate!r} is no gate; write gates=[rn.Gate('G', 'faithfulness', '>=', 0.7)]")
    return found


def _check_means(means: Any) -> None:
    wanted = ("metric", "value", "low", "high", "n")
    there = set(means.columns) if isinstance(means, pd.DataFrame) else set()
    if not (set(wanted) <= there or there == {"metric"}):
        have = listing(means.columns) if isinstance(means, pd.DataFrame) else type(means).__name__
        raise RagnbError(
            f"gates compare means, not scores: need the columns {listing(wanted)} (have: {have}); pass "
            "rn.weighted_means(scores) or rn.refusal_metrics(labelled)"
        )


def _check_threshold(gate: Gate, span: Range) -> None:
    low, high = span
    at = gate.threshold
    if not low - SLACK <= at <= high + SLACK:
        hint = f"; write {at / 100:g}" if high == 1 and 1 < at <= 100 else ""
        raise RagnbError(f"gate {gate.name!r}: {at:g} lies outside {gate.metric}'s {low:g}..{high:g}{hint}")


def _range(gate: Gate, row: Mapping[Any, Any] | None) -> Range:
    if row is not None and "range_low" in row:
        low, high = float(row["range_low"]), float(row["range_high"])
        # Metrics of several ranges have no total, and so no range of it.
        return (-math.inf, math.inf) if math.isnan(low) else (low, high)
    if gate.metric in METRICS:
        return METRICS[gate.metric].low, METRICS[gate.metric].high
    if row is None:
        return -math.inf, math.inf
    seen = [row[c] for c in ("value", "low", "high") if not pd.isna(row[c])]
    if all(0 <= v <= 1 for v in [*seen, gate.threshold]):
        return 0.0, 1.0
    raise RagnbError(
        f"gate {gate.name!r}: the range of {gate.metric!r} is not known; "
        "declare the metric, or give the means its range in the columns range_low and range_high"
    )


def _decide(gate: Gate, row: Mapping[Any, Any] | None, span: Range, no_data: str) -> dict[str, Any]:
    seen = dict.fromkeys(("value", "low", "high"), math.nan) if row is None else row
    value, low, high = (math.nan if pd.isna(seen[c]) else float(seen[c]) for c in ("value", "low", "high"))
    n = 0 if row is None else int(row["n"])
    known = "rate" if gate.metric in KNOWN_RATES else "quality"
    out = {"gate": gate.name, "metric": gate.metric, "op": gate.op, "threshold": gate.threshold, "value": value}
    out |= {"low": low, "high": high, "n": n, "role": seen.get("role", known)}
    out["reason"] = "advisory" if gate.advisory else ""
    if n == 0 or math.isnan(value):
        return out | {"outcome": "no_data", "more_needed": None, "blocks": no_data == "fail" and not gate.advisory}
    sign = 1 if gate.op == ">=" else -1
    more: int | None = 0
    nearest, farthest = (low, high) if sign > 0 else (high, low)
    if sign * (nearest - gate.threshold) >= -SLACK:
        outcome = "pass"
    elif sign * (farthest - gate.threshold) < -SLACK:
        outcome = "fail"
    else:
        outcome, more = "undecided", _more_needed(gate.threshold, seen, span)
    misses = sign * (value - gate.threshold) < -SLACK
    return out | {"outcome": outcome, "more_needed": more, "blocks": misses and not gate.advisory}


def _more_needed(at: float, row: Mapping[Any, Any], span: Range) -> int | None:
    """Return n′ − n for the smallest n′ whose interval excludes the threshold."""
    value, low, high, n = (float(row[c]) for c in ("value", "low", "high", "n"))
    if math.isnan(low) or math.isnan(high) or abs(value - at) <= SLACK:
        return None
    ends = _ends_at(row, span)
    if ends is None:
        enough = n * _times(at, value, low, high, span)
        return _smallest(n, lambda sizes: sizes > enough)
    return _smallest(n, lambda sizes: ends(sizes)[0] > at if at < value else ends(sizes)[1] < at)


def _ends_at(row: Mapping[Any, Any], span: Range) -> Callable[[Sizes], tuple[Sizes, Sizes]] | None:
    """Return the interval as a function of n at this row's design; None where the row does not tell it."""
    if not {"se", "n_eff", "df", "kind", "level"} <= row.keys():
        return None
    low, high, value, se, kish = map(np.asarray, (*span, *(row[c] for c in ("value", "se", "n_eff"))))
    clusters, binary = np.asarray(row["df"] + 1), row["kind"] == "binary"

    def ends(sizes: Sizes) -> tuple[Sizes, Sizes]:
        r = sizes / row["n"]
        return stats.mean_interval(
            value, se / np.sqrt(r), clusters * r, kish * r, (low, high), binary=binary, level=row["level"]
        )

    # The interval of a bootstrap, or of another estimator, is not the one that this formula gives.
    now = ends(np.array([row["n"]], dtype=np.float64))
    return ends if np.allclose(now, [[row["low"]], [row["high"]]], SLACK, SLACK) else None


def _smallest(n: float, excludes: Callable[[Sizes], npt.NDArray[np.bool_]]) -> int | None:
    """Return how far above n the least whole size lies that excludes the threshold, by ever finer steps."""
    below, sizes = n, (n + 2.0 ** np.arange(50)).astype(np.float64)
    while True:
        met = excludes(sizes)
        if not met.any():
            return None
        first = int(np.argmax(met))
        below, found = (sizes[first - 1] if first else below), sizes[first]
        if found - below <= 1:
            return int(found - n)
        sizes = np.unique(np.linspace(below, found, 65).round()[1:])


def _times(at: float, value: float, low: float, high: float, span: Range) -> float:
    """Return n′/n of a row that does not tell its design."""
    p, b, lower, upper = ((x - span[0]) / (span[1] - span[0]) for x in (value, at, low, high))
    inner = [x for x in ((lower, upper) if b < p else (upper, lower)) if SLACK < x < 1 - SLACK]
    k = [(p - x) ** 2 / (x * (1 - x)) for x in inner]
    uneven = abs(lower + upper - 2 * p) > SLACK
    if k and 0 < b < 1 and (uneven or max(k) - min(k) <= 1e-6 * max(k)):
        return k[0] * b * (1 - b) / (p - b) ** 2
    half = value - low if at < value else high - value
    return (half / (value - at)) ** 2


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
