"""Bars that a run's means must reach, decided with their intervals, and told to people and to CI."""

from __future__ import annotations

import math
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbError, RagnbWarning, did_you_mean, unknown
from ragnb.files import json_text
from ragnb.schema import DEFAULT_GATES, METRICS, Gate

SLACK = 1e-9
COLUMNS = ["gate", "metric", "op", "at", "value", "low", "high", "n", "outcome", "more_needed", "blocks"]
Range = tuple[float, float]


def check_gates(
    means: pd.DataFrame, gates: Iterable[Gate] = DEFAULT_GATES, *, no_data: Literal["fail", "skip"] = "fail"
) -> pd.DataFrame:
    """Hold means against gates.

    Parameters
    ----------
    means : DataFrame
        One row a metric: ``metric, value, low, high, n``, as `ragnb.weighted_means` and `ragnb.refusal_metrics`
        give them, of one group. ``attrs["ranges"]`` (metric → low, high) tells the ranges; else METRICS does.
    gates : iterable of Gate
    no_data : {"fail", "skip"}
        Whether a gate over nothing blocks.

    Returns
    -------
    DataFrame
        ``gate, metric, op, at, value, low, high, n, outcome, more_needed, blocks``. ``outcome`` is ``pass`` or
        ``fail`` where the whole interval lies on that side, ``undecided`` where it straddles the bar or there is
        none, ``no_data`` without a value. ``blocks``: the value itself misses the bar, or there is no data under
        ``no_data="fail"``. ``more_needed``: how many more scored rows, at this value and design effect, make the
        interval exclude the bar; 0 when decided, missing where the value equals the bar or there is no interval.

    Raises
    ------
    RagnbError
        For a bar outside the metric's range, a metric with several rows, and a metric of unknown range.

    Notes
    -----
    On the metric's range as 0–1, Wilson's bounds b solve (p − b)² = k b(1 − b), k = t²/n. The bound seen gives k;
    the bar is excluded when (p − bar)² > k′ bar(1 − bar); n′ = n k/k′, t kept. Where the range is not finite, or
    the interval is not Wilson's, its half-width shrinks as √(n/n′).

    Examples
    --------
    >>> means = pd.DataFrame(
    ...     {"metric": ["compliance"], "value": [0.95], "low": [0.863], "high": [0.983], "n": [60]}
    ... )
    >>> check_gates(means, [Gate("G", "compliance", ">=", 0.9)])[["outcome", "more_needed", "blocks"]]
         outcome  more_needed  blocks
    0  undecided           79   False
    """
    if no_data not in ("fail", "skip"):
        raise unknown("no_data", no_data, ["fail", "skip"])
    ranges = dict(means.attrs.get("ranges", {}))
    repeated = means["metric"][means["metric"].duplicated()]
    rows = {str(row["metric"]): row for row in means.to_dict("records")}
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
    return pd.DataFrame(out, columns=COLUMNS).astype({"more_needed": "Int64", "blocks": bool, "n": "int64"})


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
        outcome, more = "undecided", _more_needed(gate.at, value, low, high, n, _range(gate, row, ranges))
    return out | {"outcome": outcome, "more_needed": more, "blocks": sign * (value - gate.at) < -SLACK}


def _more_needed(at: float, value: float, low: float, high: float, n: int, span: Range) -> int | None:
    """Return n′ − n for the smallest n′ whose interval excludes the bar."""
    if math.isnan(low) or math.isnan(high) or abs(value - at) <= SLACK:
        return None
    times = _wilson_times(at, value, low, high, span) if all(map(math.isfinite, span)) else None
    if times is None:
        half = value - low if at < value else high - value
        times = (half / (value - at)) ** 2
    return max(math.floor(n * times) + 1 - n, 1)


def _wilson_times(at: float, value: float, low: float, high: float, span: Range) -> float | None:
    """Return n′/n of a Wilson interval; None where the interval is not Wilson's."""
    p, b, lower, upper = ((x - span[0]) / (span[1] - span[0]) for x in (value, at, low, high))
    inner = [x for x in (lower, upper) if SLACK < x < 1 - SLACK]
    if not inner or not 0 < b < 1:
        return None
    near = lower if b < p else upper
    bound = near if near in inner else inner[0]
    k = [(p - x) ** 2 / (x * (1 - x)) for x in (bound, *inner)]
    symmetric = abs(lower + upper - 2 * p) <= SLACK
    if symmetric and max(k) - min(k) > 1e-6 * max(k):
        return None
    return k[0] * b * (1 - b) / (p - b) ** 2


def gate_sentences(gates: pd.DataFrame, *, lang: str = "en") -> list[str]:
    """Return one sentence a gate: what it asks, what was seen, what follows.

    Parameters
    ----------
    gates : DataFrame
        What `check_gates` returns.
    lang : {"en", "zh"}

    Examples
    --------
    >>> gate_sentences(check_gates(pd.DataFrame({"metric": []}), [Gate("G", "compliance", ">=", 0.9)]))
    ['G: compliance ≥ 0.900. No data. It blocks.']
    """
    say = texts.load(lang)
    out = []
    for row in gates.to_dict("records"):
        asked = {"gate": row["gate"], "metric": row["metric"], "at": f"{row['at']:.3f}"}
        words = [say("gate.asks", op="≥" if row["op"] == ">=" else "≤", **asked)]
        if row["outcome"] != "no_data":
            value, low, high = (f"{row[c]:.3f}" for c in ("value", "low", "high"))
            seen = {"value": value, "low": low, "high": high, "n": row["n"]}
            words.append(say("gate.no_interval" if math.isnan(row["low"]) else "gate.seen", **seen))
        words.append(say(f"outcome.{row['outcome']}"))
        if row["outcome"] == "undecided" and not pd.isna(row["more_needed"]):
            words.append(say("gate.more_needed", n=row["more_needed"]))
        words += [say("gate.blocks")] if row["blocks"] else []
        out.append("".join(words).rstrip())
    return out


def gates_json(gates: pd.DataFrame) -> str:
    """Return the gates as JSON: same gates, same bytes; numbers to 12 significant digits, null where missing.

    Examples
    --------
    >>> import json
    >>> gates = check_gates(pd.DataFrame({"metric": []}), [Gate("G", "compliance", ">=", 0.9)])
    >>> json.loads(gates_json(gates))["blocked"]
    True
    """
    rows = [{name: _plain(row[name]) for name in COLUMNS} for row in gates.to_dict("records")]
    return json_text({"blocked": bool(gates["blocks"].any()), "gates": rows})


def _plain(value: Any) -> Any:
    if isinstance(value, str | bool):
        return value
    if pd.isna(value):
        return None
    return float(f"{value:.12g}") if isinstance(value, float) else int(value)


def gates_junit(gates: pd.DataFrame, *, name: str = "ragnb gates", lang: str = "en") -> str:
    """Return the gates as a JUnit XML test suite: a gate that blocks is a failure, one with no data is skipped.

    Examples
    --------
    >>> gates_junit(check_gates(pd.DataFrame({"metric": []}), [Gate("<G>", "compliance", ">=", 0.9)]))[:22]
    '<?xml version="1.0" en'
    """
    blocked = int(gates["blocks"].sum())
    skipped = int(((gates["outcome"] == "no_data") & ~gates["blocks"]).sum())
    counts = {"tests": str(len(gates)), "failures": str(blocked), "errors": "0", "skipped": str(skipped)}
    suite = ET.Element("testsuite", {"name": _xml(name), **counts})
    for row, sentence in zip(gates.to_dict("records"), gate_sentences(gates, lang=lang), strict=True):
        title = f"{row['gate']}: {row['metric']} {row['op']} {row['at']:g}"
        case = ET.SubElement(suite, "testcase", {"classname": _xml(name), "name": _xml(title)})
        if row["blocks"]:
            ET.SubElement(case, "failure", {"type": row["outcome"], "message": _xml(sentence)})
        elif row["outcome"] == "no_data":
            ET.SubElement(case, "skipped", {"message": _xml(sentence)})
        else:
            ET.SubElement(case, "system-out").text = _xml(sentence)
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    """Replace what XML 1.0 cannot hold, even escaped."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)
