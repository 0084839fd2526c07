"""Means against bars: on which side the interval lies, how many rows would decide it, what blocks."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats
from ragnb.errors import RagnbError, RagnbWarning, did_you_mean, listing, unknown
from ragnb.schema import DEFAULT_GATES, KNOWN_RATES, METRICS, Gate, records

SLACK = 1e-9
COLUMNS = ["gate", "metric", "op", "at", "value", "low", "high", "n", "outcome", "more_needed", "blocks"]
Range = tuple[float, float]
Sizes = npt.NDArray[np.float64]


def check_gates(
    means: pd.DataFrame, *, gates: Iterable[Gate] = DEFAULT_GATES, no_data: Literal["fail", "skip"] = "fail"
) -> pd.DataFrame:
    """Hold means against gates.

    Parameters
    ----------
    means : DataFrame
        One row a metric: ``metric, value, low, high, n``, as `ragnb.weighted_means` and `ragnb.refusal_metrics`
        give them, of one group. ``attrs["ranges"]`` (metric → low, high) tells the ranges; else METRICS does.
        With their ``se, n_eff`` and ``attrs`` too, ``more_needed`` is exact.
    gates : iterable of Gate
    no_data : {"fail", "skip"}
        Whether a gate over nothing blocks.

    Returns
    -------
    DataFrame
        ``gate, metric, op, at, value, low, high, n, outcome, more_needed, blocks``. ``outcome`` is ``pass`` or
        ``fail`` where the whole interval lies on that side, ``undecided`` where it straddles the bar or there is
        none, ``no_data`` without a value. ``blocks``: the value itself misses the bar, or there is no data under
        ``no_data="fail"``. ``more_needed``: how many more scored rows, at this value and design effect (so with
        documents in proportion), make the interval exclude the bar; 0 when decided, missing where the value
        equals the bar or there is no interval.

    Raises
    ------
    RagnbError
        For what is no table of means, a bar outside the metric's range, a metric with several rows, and a metric
        of unknown range.

    Notes
    -----
    At n′ rows se is se √(n/n′), and clusters and Kish's n grow by n′/n; n′ is searched in the estimator's own
    interval. Means without those columns tell less: on the metric's range as 0–1, Wilson's bounds b solve
    (p − b)² = k b(1 − b), k = t²/n; the bar is excluded when (p − bar)² > k′ bar(1 − bar), n′ = n k/k′, t kept.
    Where the range is not finite, or the interval is not Wilson's, its half-width shrinks as √(n/n′).

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
    means = _checked(means)
    ranges = dict(means.attrs.get("ranges", {}))
    repeated = means["metric"][means["metric"].duplicated()]
    g_eff, level = pd.Series(means.attrs.get("g_eff", ()), dtype=float), means.attrs.get("level", 0.95)
    rows = {str(row["metric"]): row for row in records(means.assign(g_eff=g_eff, level=level))}
    out = []
    for gate in gates:
        if gate.metric in set(repeated):
            raise RagnbError(
                f"gate {gate.name!r}: means hold {gate.metric!r} more than once; pass the rows of one group"
            )
        row = rows.get(gate.metric)
        if row is None and gate.metric not in {*METRICS, *ranges, "weighted_score"}:
            warnings.warn(
                f"gate {gate.name!r} finds no metric {gate.metric!r}; {did_you_mean(gate.metric, list(rows))}",
                RagnbWarning,
                stacklevel=2,
            )
        _check_bar(gate, row, ranges)
        out.append(_decide(gate, row, ranges, no_data))
    kinds: dict[str, Any] = {"more_needed": "Int64", "blocks": bool, "n": "int64"}
    found = pd.DataFrame({name: pd.Series([row[name] for row in out], dtype=kinds.get(name)) for name in COLUMNS})
    found.attrs["rates"] = list(means.attrs.get("rates", KNOWN_RATES))
    return found


def _checked(means: Any) -> pd.DataFrame:
    """Refuse what is no table of means."""
    if not isinstance(means, pd.DataFrame):
        kind = repr(means) if isinstance(means, str) else f"a {type(means).__name__}"
        raise RagnbError(
            f"{kind} is no table of means; make one of scores: rn.check_gates(rn.weighted_means(scores)), or of "
            "labelled traces: rn.check_gates(rn.refusal_metrics(labelled))"
        )
    lacking = [name for name in ("metric", "value", "low", "high", "n") if name not in means]
    if "metric" in lacking or (lacking and len(means)):
        raise RagnbError(
            f"this is no table of means: it has no column {lacking[0]!r} (columns: {listing(means.columns)}); "
            "average scores first: rn.check_gates(rn.weighted_means(scores)), or rn.refusal_metrics(labelled)"
        )
    return means


def _check_bar(gate: Gate, row: Mapping[Any, Any] | None, ranges: Mapping[str, Range]) -> None:
    low, high = _range(gate, row, ranges)
    if not low - SLACK <= gate.at <= high + SLACK:
        hint = f"; write {gate.at / 100:g}" if low == 0 and high == 1 and 1 < gate.at <= 100 else ""
        raise RagnbError(f"gate {gate.name!r}: {gate.at:g} lies outside {gate.metric}'s {low:g}..{high:g}{hint}")


def _range(gate: Gate, row: Mapping[Any, Any] | None, ranges: Mapping[str, Range]) -> Range:
    if gate.metric in ranges:
        low, high = ranges[gate.metric]
        return float(low), float(high)
    if gate.metric in METRICS:
        return METRICS[gate.metric].low, METRICS[gate.metric].high
    if row is None:
        return -math.inf, math.inf
    seen = [row[c] for c in ("value", "low", "high") if not pd.isna(row[c])]
    if all(0 <= v <= 1 for v in [*seen, gate.at]):
        return 0.0, 1.0
    raise RagnbError(
        f"gate {gate.name!r}: the range of {gate.metric!r} is not known; "
        f"declare the metric, or set means.attrs['ranges'] = {{{gate.metric!r}: (low, high)}}"
    )


def _decide(
    gate: Gate, row: Mapping[Any, Any] | None, ranges: Mapping[str, Range], no_data: str
) -> dict[str, Any]:
    seen = dict.fromkeys(("value", "low", "high"), math.nan) if row is None else row
    value, low, high = (math.nan if pd.isna(seen[c]) else float(seen[c]) for c in ("value", "low", "high"))
    n = 0 if row is None else int(row["n"])
    out = {"gate": gate.name, "metric": gate.metric, "op": gate.op, "at": gate.at, "value": value}
    out |= {"low": low, "high": high, "n": n}
    if n == 0 or math.isnan(value):
        return out | {"outcome": "no_data", "more_needed": None, "blocks": no_data == "fail"}
    sign = 1 if gate.op == ">=" else -1
    more: int | None = 0
    nearest, farthest = (low, high) if sign > 0 else (high, low)
    if sign * (nearest - gate.at) >= -SLACK:
        outcome = "pass"
    elif sign * (farthest - gate.at) < -SLACK:
        outcome = "fail"
    else:
        outcome, more = "undecided", _more_needed(gate.at, seen, _range(gate, row, ranges))
    return out | {"outcome": outcome, "more_needed": more, "blocks": sign * (value - gate.at) < -SLACK}


def _more_needed(at: float, row: Mapping[Any, Any], span: Range) -> int | None:
    """Return n′ − n for the smallest n′ whose interval excludes the bar."""
    value, low, high, n = (float(row[c]) for c in ("value", "low", "high", "n"))
    if math.isnan(low) or math.isnan(high) or abs(value - at) <= SLACK:
        return None
    ends = _ends_at(row, span)
    if ends is None:
        enough = n * _times(at, value, low, high, span)
        return _smallest(n, lambda sizes: sizes > enough)
    return _smallest(n, lambda sizes: ends(sizes)[0] > at if at < value else ends(sizes)[1] < at)


def _ends_at(row: Mapping[Any, Any], span: Range) -> Callable[[Sizes], tuple[Sizes, Sizes]] | None:
    """Return the interval as a function of n at this row's design; None where that is not the interval seen."""
    if not {"se", "n_eff"} <= row.keys():
        return None
    low, high, value, se, g, kish = map(np.asarray, (*span, *(row[c] for c in ("value", "se", "g_eff", "n_eff"))))

    def ends(sizes: Sizes, binary: bool) -> tuple[Sizes, Sizes]:
        r = sizes / row["n"]
        design = {"binary": binary, "level": row["level"]}
        return stats.mean_interval(value, se / np.sqrt(r), g * r, kish * r, (low, high), **design)

    now, seen = np.array([row["n"]], dtype=np.float64), [[row["low"]], [row["high"]]]
    fits = (binary for binary in (True, False) if np.allclose(ends(now, binary), seen, SLACK, SLACK))
    return next((partial(ends, binary=binary) for binary in fits), None)


def _smallest(n: float, excludes: Callable[[Sizes], npt.NDArray[np.bool_]]) -> int | None:
    """Return how far above n the least whole size lies that excludes the bar, by ever finer steps."""
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
