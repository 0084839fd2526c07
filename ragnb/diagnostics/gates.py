"""Quality gates: means compared with thresholds, and the same for other programs."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Literal

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.diagnostics.rules import SLACK, past
from ragnb.errors import RagnbError, RagnbWarning, did_you_mean, listing, need_known, outside
from ragnb.files import json_text
from ragnb.schema import (
    DEFAULT_GATES,
    KNOWN_RATES,
    NOTE_COLUMNS,
    TOTAL,
    Gate,
    known_metric,
    records,
)
from ragnb.weights import metric_name

COLUMNS = (
    "gate",
    "system",
    "metric",
    "op",
    "threshold",
    "value",
    "low",
    "high",
    "n",
    "outcome",
    "p_flip",
    "more_needed",
    "low_if",
    "share_unseen",
    "blocks",
    "role",
    "reason",
)
_OF_MEANS = ("metric", "value", "low", "high", "n")
_OF_DESIGN = ("se", "df", "level")
_NUMBERS = ("threshold", "value", "low", "high", "p_flip", "low_if", "share_unseen")
BETTER: Mapping[str, Literal["higher", "lower"]] = {">=": "higher", "<=": "lower"}
Row = Mapping[Any, Any]


def check_gates(
    means: pd.DataFrame,
    *,
    gates: Iterable[Gate] = DEFAULT_GATES,
    no_data: Literal["fail", "skip"] = "fail",
    documents_may_fail: bool = False,
) -> pd.DataFrame:
    """Compare means with the thresholds of gates.

    Parameters
    ----------
    means : DataFrame
        One row per metric, and system where it has the column ``system``: ``metric, value, low, high, n``, as
        `ragnb.weighted_means` and `ragnb.refusal_metrics` give them. ``range_low, range_high`` are the range of a
        metric; else that of METRICS. ``se, df, level`` are needed for ``p_flip`` and ``more_needed``.
    gates : iterable of Gate
    no_data : {"fail", "skip"}
        Whether a gate without data blocks.
    documents_may_fail : bool
        Whether a gate passes only if the mean would, should entire documents fail unobserved: by ``low_if``
        if the means have it.

    Returns
    -------
    DataFrame
        ``gate, system, metric, op, threshold, value, low, high, n, outcome, p_flip, more_needed, low_if,
        share_unseen, blocks, role, reason``, one row a gate and system. ``outcome`` is ``pass`` or ``fail`` where
        the whole interval is on that side, ``undecided`` where it contains the threshold or there is none,
        ``no_data`` without a value. ``blocks``: it failed, it is undecided and its policy (`Gate.undecided`) says
        so, or there is no data under ``no_data="fail"``; never for an advisory gate, whose ``reason`` is
        ``advisory``. ``p_flip``: probability that a repeat falls on the other side of the threshold, under
        the policy ``value``; missing under the others, where se is 0, and where the means do not provide it.
        ``more_needed``: how many more scored rows, documents in proportion, decide the gate with 80 %
        probability; 0 when decided, missing where more than 30 times those at hand would be needed or the means
        do not provide their design. ``low_if, share_unseen``: those of the means, see `ragnb.weighted_means`.

    Raises
    ------
    RagnbError
        For a threshold outside the metric's range, a metric with several rows, a metric of unknown range, and a
        frame that holds no means.

    Notes
    -----
    See ``stats.flip_probability`` and ``stats.questions_to_decide``. An interval that is neither Wilson's nor
    value ± t·se, such as a bootstrap's, has no design.

    Examples
    --------
    >>> means = pd.DataFrame(
    ...     {"metric": ["compliance"], "value": [0.95], "low": [0.863], "high": [0.983], "n": [60]}
    ... )
    >>> check_gates(means, gates=[Gate("G", "compliance", ">=", 0.9)])[["outcome", "value", "blocks"]]
         outcome  value  blocks
    0  undecided   0.95   False
    """
    need_known("no_data", no_data, ["fail", "skip"])
    if isinstance(means, pd.DataFrame):
        have = set(means.columns)
    else:
        have = set()
    if not ({*_OF_MEANS} <= have or have == {"metric"}):
        if isinstance(means, pd.DataFrame):
            shown = listing(means.columns)
        else:
            shown = type(means).__name__
        raise RagnbError(
            f"gates compare means, not scores: need the columns {listing(_OF_MEANS)} (have: {shown}); pass "
            "rn.weighted_means(scores) or rn.refusal_metrics(labelled)"
        )
    there = list(dict.fromkeys(means["metric"]))
    several = isinstance(gates, Iterable) and not isinstance(gates, str | Mapping)
    asked: list[Any] = list(gates) if several else [gates]
    for i, gate in enumerate(asked):
        if not isinstance(gate, Gate):
            raise RagnbError(
                f"gates={gate!r} is no gate; write gates=[rn.Gate('G', 'faithfulness', '>=', 0.7)]"
            )
        if gate.not_worse_than is not None:
            raise RagnbError(
                f"gate {gate.name!r} compares with a baseline, and means are of one run; name the baseline in the "
                "scenario, or run ragnb compare NEW BASE --gate"
            )
        asked[i] = replace(gate, metric=metric_name(gate.metric, there))
    named = {gate.metric for gate in asked}
    rows: dict[tuple[Any, Any], Row] = {}
    for row in records(means):
        key = row.get("system"), row["metric"]
        # Of metrics that no gate names, a table may hold the rows of several groups.
        if key in rows and row["metric"] in named:
            raise RagnbError(
                f"the means contain {row['metric']!r} more than once; pass the rows of one group, "
                "or name the groups' column 'system'"
            )
        rows[key] = row
    seen = {TOTAL, *there}
    for gate in asked:
        # A gate on a metric that this run lacks has no data, and blocks; a misspelt one shall not pass for that.
        if gate.metric in seen or known_metric(gate.metric) is not None:
            continue
        near = did_you_mean(gate.metric, there)
        text = f"gate {gate.name!r} refers to an unknown metric {gate.metric!r}; {near}"
        warnings.warn(text, RagnbWarning, stacklevel=outside())
    return gate_frame(
        _decide(gate, rows.get((system, gate.metric), {}), no_data, documents_may_fail)
        | {"system": system}
        for system, gate in product(dict.fromkeys(system for system, _ in rows) or [None], asked)
    )


def check_differences(
    compared: pd.DataFrame | None,
    *,
    gates: Iterable[Gate],
    no_data: Literal["fail", "skip"] = "fail",
) -> pd.DataFrame:
    """Compare differences from a baseline with what gates accept.

    Parameters
    ----------
    compared : DataFrame or None
        What `ragnb.compare` returns; None where there was nothing to compare with.
    gates : iterable of Gate
        With ``not_worse_than``: passes where the whole interval of candidate − baseline is above −`by` (of a
        lower-is-better metric below +`by`), fails where it is on the other side.
    no_data : {"fail", "skip"}

    Returns
    -------
    DataFrame
        The columns of `check_gates`: ``value, low, high`` of the difference, its bound as ``threshold``.

    Examples
    --------
    >>> row = {"candidate": ["new"], "metric": ["recall"], "value": [0.01], "low": [-0.01], "high": [0.03]}
    >>> row |= {"n_common": [90], "better": ["higher"], "range_low": [0.0], "range_high": [1.0]}
    >>> gate = Gate("recall", "recall", not_worse_than="baseline", by=0.02)
    >>> check_differences(pd.DataFrame(row), gates=[gate])[["op", "threshold", "outcome", "blocks"]]
       op  threshold outcome  blocks
    0  >=      -0.02    pass   False
    """
    rows = {}
    if compared is not None:
        rows = {(row["candidate"], row["metric"]): row for row in records(compared)}
    systems = list(dict.fromkeys(system for system, _ in rows)) or [None]
    out = []
    for system, gate in product(systems, gates):
        row = rows.get((system, gate.metric), {})
        lower = row.get("better") == "lower"
        width = row.get("range_high", math.inf) - row.get("range_low", 0.0)
        bound = gate.by if lower else -gate.by or 0.0
        op: Any = "<=" if lower else ">="
        # The rest of the gate stays as it is written, whatever options gates will have.
        plain = replace(gate, op=op, threshold=bound, not_worse_than=None, by=0.0)
        ends = {
            "range_low": -width,
            "range_high": width,
            "n": row.get("n_common", 0),
            "role": "difference",
        }
        numbers = {name: row.get(name) for name in ("value", "low", "high", *_OF_DESIGN)} | ends
        out.append(
            _decide(plain, numbers, no_data) | {"system": system if len(systems) > 1 else None}
        )
    return gate_frame(out)


def gate_frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows of gates as a frame with all columns, of one dtype each however few the rows are.

    Examples
    --------
    >>> gate_frame([]).columns[:4].tolist()
    ['gate', 'system', 'metric', 'op']
    """
    kinds: dict[str, Any] = {"more_needed": "Int64", "blocks": bool, "n": "int64"}
    kinds |= dict.fromkeys(_NUMBERS, "float64")
    given = list(rows)
    columns = {name: [row.get(name, math.nan) for row in given] for name in COLUMNS}
    return pd.DataFrame(
        {name: pd.Series(cells, dtype=kinds.get(name, object)) for name, cells in columns.items()}
    )


def _range(gate: Gate, row: Row) -> tuple[float, float]:
    if "range_low" in row:
        low = float(row["range_low"])
        high = float(row["range_high"])
        # Metrics of several ranges have no total, and so no range of it.
        if math.isnan(low):
            return (-math.inf, math.inf)
        return (low, high)
    if (known := known_metric(gate.metric)) is not None:
        return known.low, known.high
    if not row:
        return -math.inf, math.inf
    seen = [row[c] for c in ("value", "low", "high") if not pd.isna(row[c])]
    # Means of another tool have no range beside them: shares are taken for what they look like.
    if all(0 <= v <= 1 for v in [*seen, gate.threshold]):
        return 0.0, 1.0
    raise RagnbError(
        f"gate {gate.name!r}: the range of {gate.metric!r} is not known; "
        "declare the metric, or give the means its range in the columns range_low and range_high"
    )


def gate_row(gate: Gate, value: float, n: int, **more: Any) -> dict[str, Any]:
    """Return a row of the frame of gates with its outcome and whether it blocks."""
    misses = bool(past(value, gate.threshold, BETTER[gate.op]))
    if misses:
        outcome = "fail"
    elif n:
        outcome = "pass"
    else:
        outcome = "no_data"
    return {
        "gate": gate.name,
        "system": None,
        "metric": gate.metric,
        "op": gate.op,
        "threshold": gate.threshold,
        "value": value,
        "low": math.nan,
        "high": math.nan,
        "n": n,
        "outcome": outcome,
        "p_flip": math.nan,
        "more_needed": 0,
        "low_if": math.nan,
        "share_unseen": math.nan,
        "blocks": misses and not gate.advisory,
        "role": "completeness",
        "reason": "",
    } | more


def _decide(gate: Gate, row: Row, no_data: str, documents_may_fail: bool = False) -> dict[str, Any]:
    low, high = span = _range(gate, row)
    if not low - SLACK <= gate.threshold <= high + SLACK:
        # Written in percent, as people say it.
        if high == 1 and 1 < gate.threshold <= 100:
            hint = f"; write {gate.threshold / 100:g}"
        else:
            hint = ""
        raise RagnbError(
            f"gate {gate.name!r}: {gate.threshold:g} lies outside {gate.metric}'s {low:g}..{high:g}{hint}"
        )
    names = ("value", "low", "high", "low_if", "share_unseen", *_OF_DESIGN)
    known = {name: math.nan if pd.isna(x := row.get(name)) else float(x) for name in names}
    value = known["value"]
    better = BETTER[gate.op]
    if better == "higher":
        nearest = known["low"]
        farthest = known["high"]
    else:
        nearest = known["high"]
        farthest = known["low"]
    role = row.get("role", "rate" if gate.metric in KNOWN_RATES else "quality")
    out = gate_row(
        gate,
        value,
        int(row.get("n", 0)),
        low=known["low"],
        high=known["high"],
        role=role,
        reason="advisory" if gate.advisory else "",
    )
    if out["n"] == 0 or math.isnan(value):
        return out | {
            "outcome": "no_data",
            "more_needed": None,
            "blocks": no_data == "fail" and not gate.advisory,
        }
    if row.get("better", better) == better:  # the end that documents which fail would move
        out |= {name: known[name] for name in ("low_if", "share_unseen")}
    if gate.undecided == "value":
        out["p_flip"] = stats.flip_probability(value, gate.threshold, known["se"], known["df"])
    # Decided by the whole interval, whatever the gate does with what is undecided.
    if past(farthest, gate.threshold, better):
        return out | {"outcome": "fail"}
    clear = not (math.isnan(nearest) or past(nearest, gate.threshold, better))
    if clear and not (documents_may_fail and past(out["low_if"], gate.threshold, better)):
        return out | {"outcome": "pass"}
    if gate.undecided == "value":
        blocks = out["blocks"]
    else:
        blocks = gate.undecided == "block" and not gate.advisory
    if clear:
        more = None
    else:
        more = _more_needed(gate.threshold, known, out["n"], span)
    return out | {"outcome": "undecided", "more_needed": more, "blocks": blocks}


def _more_needed(
    at: float, known: Mapping[str, float], n: int, span: tuple[float, float]
) -> int | None:
    """Return how many more questions decide with 80 % probability; None where that is too many, or unknown."""
    # A bootstrap's interval, and a table of another tool, do not say how they would narrow.
    if any(math.isnan(known[name]) for name in ("low", "high", *_OF_DESIGN)):
        return None
    low = 0.0
    width = 1.0
    if math.isfinite(span[1] - span[0]):
        low = span[0]
        width = span[1] - span[0]
    value, first, last, at = (
        (x - low) / width for x in (known["value"], known["low"], known["high"], at)
    )
    df = known["df"]
    level = known["level"]
    if not math.isnan(size := stats.wilson_size(value, first, last, df, level)):
        return stats.questions_to_decide(value, at, n, df, level, size=size)
    half = float(stats.t_quantile(level, max(df, 1.0))) * known["se"] / width
    se = known["se"] / width
    plain = np.allclose([value - half, value + half], [first, last], SLACK, SLACK)
    if plain and se > 0:
        return stats.questions_to_decide(value, at, n, df, level, se=se)
    return None


def if_documents_fail(row: Mapping[Any, Any]) -> bool:
    """Whether the interval meets a gate, but would not if entire documents failed unobserved."""
    better = BETTER[row["op"]]
    nearest = row["low" if better == "higher" else "high"]
    return bool(
        past(row["low_if"], row["threshold"], better)
        and not past(nearest, row["threshold"], better)
    )


def gates_json(
    gates: pd.DataFrame,
    *,
    notes: pd.DataFrame | None = None,
    account: pd.DataFrame | None = None,
) -> str:
    """Return the gates as JSON: same gates, same bytes; numbers to 12 significant digits, null where missing.

    What was expected and what came, and the notes of the run with their code, subject and text, follow where they
    are given.

    Examples
    --------
    >>> import json
    >>> from ragnb.diagnostics import check_gates
    >>> from ragnb.schema import Gate
    >>> gates = check_gates(pd.DataFrame({"metric": []}), gates=[Gate("G", "compliance", ">=", 0.9)])
    >>> json.loads(gates_json(gates))["blocked"]
    True
    """
    content: dict[str, Any] = {"blocked": bool(gates["blocks"].any())}
    content["gates"] = plain_records(gates[list(COLUMNS)])
    if account is not None:
        content["account"] = plain_records(account)
    if notes is not None:
        content["notes"] = notes[list(NOTE_COLUMNS)].to_dict("records")
    return json_text(content)


def plain_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows for JSON: numbers to 12 significant digits, null if missing or infinite.

    Examples
    --------
    >>> plain_records(pd.DataFrame({"value": [0.1 + 0.2, float("nan")]}))
    [{'value': 0.3}, {'value': None}]
    """
    return [
        {str(name): _plain(value) for name, value in row.items()}
        for row in frame.to_dict("records")
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, str | bool):
        return value
    if pd.isna(value) or math.isinf(value):
        return None
    if isinstance(value, float):
        return float(f"{value:.12g}")
    return int(value)


def junit(name: str, cases: Sequence[tuple[str, str, str, str]]) -> str:
    """Return a JUnit XML test suite.

    Parameters
    ----------
    name : str
        Of the suite.
    cases : sequence of (title, kind, outcome, sentence)
        What was tested, the element that says how it went (``failure``, ``skipped`` or ``system-out``), the word
        for it, and a sentence for people.

    Examples
    --------
    >>> junit("gates", [("recall", "failure", "fail", "Recall is below its threshold.")]).count('failures="1"')
    1
    """
    from xml.etree import ElementTree

    failures, skipped = (
        str(sum(kind == word for _, kind, *_ in cases)) for word in ("failure", "skipped")
    )
    counts = {"tests": str(len(cases)), "failures": failures, "errors": "0", "skipped": skipped}
    suite = ElementTree.Element("testsuite", {"name": _xml(name), **counts})
    for title, kind, outcome, sentence in cases:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": _xml(name), "name": _xml(title)}
        )
        if kind != "system-out":
            attributes = {"type": outcome, "message": _xml(sentence)}
        else:
            attributes = {}
        # Some readers show the message, others the text.
        ElementTree.SubElement(case, kind, attributes).text = _xml(sentence)
    ElementTree.indent(suite)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        + ElementTree.tostring(suite, encoding="unicode")
        + "\n"
    )


def _xml(text: str) -> str:
    """Replace characters that XML 1.0 does not allow, even escaped."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)
