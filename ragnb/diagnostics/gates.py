"""Quality gates: means compared with thresholds, and the same for other programs."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
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
# How an interval was made, and so how more questions would narrow it.
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
    _need_means(means)
    metrics = list(dict.fromkeys(means["metric"]))
    of_one_run = _gates_of_one_run(gates, metrics)
    row_of = _means_by_system(means, {gate.metric for gate in of_one_run})
    _warn_of_unknown_metrics(of_one_run, metrics)
    # Without any mean every gate still has its row, in which it has no data.
    systems = list(dict.fromkeys(system for system, _ in row_of)) or [None]
    rows = []
    for system, gate in product(systems, of_one_run):
        row = row_of.get((system, gate.metric), {})
        rows.append(_decide(gate, row, no_data, documents_may_fail) | {"system": system})
    return gate_frame(rows)


def _need_means(means: object) -> None:
    """Refuse what is no frame of means; one of no metric at all may have the column ``metric`` alone."""
    if isinstance(means, pd.DataFrame):
        have = set(means.columns)
        shown = listing(means.columns)
    else:
        have = set()
        shown = type(means).__name__
    if not ({*_OF_MEANS} <= have or have == {"metric"}):
        raise RagnbError(
            f"gates compare means, not scores: need the columns {listing(_OF_MEANS)} (have: {shown}); pass "
            "rn.weighted_means(scores) or rn.refusal_metrics(labelled)"
        )


def _gates_of_one_run(gates: Any, metrics: Sequence[str]) -> list[Gate]:
    """Return gates with their metrics as the means call them; refuse what compares with a baseline."""
    if isinstance(gates, Iterable) and not isinstance(gates, str | Mapping):
        given = list(gates)
    else:
        # One gate alone, or what is none: refused below in words, not letter by letter.
        given = [gates]
    found = []
    for gate in given:
        if not isinstance(gate, Gate):
            raise RagnbError(
                f"gates={gate!r} is no gate; write gates=[rn.Gate('G', 'faithfulness', '>=', 0.7)]"
            )
        if gate.not_worse_than is not None:
            raise RagnbError(
                f"gate {gate.name!r} compares with a baseline, and means are of one run; name the baseline in the "
                "scenario, or run ragnb compare NEW BASE --gate"
            )
        found.append(replace(gate, metric=metric_name(gate.metric, metrics)))
    return found


def _means_by_system(means: pd.DataFrame, named: Collection[str]) -> dict[tuple[Any, Any], Row]:
    """Return the means by system and metric; one of a `named` metric that is there twice is refused."""
    row_of: dict[tuple[Any, Any], Row] = {}
    for row in records(means):
        key = row.get("system"), row["metric"]
        # Of metrics that no gate names, a table may hold the rows of several groups.
        if key in row_of and row["metric"] in named:
            raise RagnbError(
                f"the means contain {row['metric']!r} more than once; pass the rows of one group, "
                "or name the groups' column 'system'"
            )
        row_of[key] = row
    return row_of


def _warn_of_unknown_metrics(gates: Sequence[Gate], metrics: Sequence[str]) -> None:
    """Warn of gates on a metric that neither the means nor METRICS know."""
    for gate in gates:
        # A gate on a metric that this run lacks has no data, and blocks; a misspelt one shall not pass for that.
        if gate.metric in {TOTAL, *metrics} or known_metric(gate.metric) is not None:
            continue
        near = did_you_mean(gate.metric, metrics)
        text = f"gate {gate.name!r} refers to an unknown metric {gate.metric!r}; {near}"
        warnings.warn(text, RagnbWarning, stacklevel=outside())


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
    row_of = {}
    if compared is not None:
        row_of = {(row["candidate"], row["metric"]): row for row in records(compared)}
    systems = list(dict.fromkeys(system for system, _ in row_of)) or [None]
    rows = []
    for system, gate in product(systems, gates):
        row = row_of.get((system, gate.metric), {})
        decided = _decide(_as_threshold(gate, row), _as_mean(row), no_data)
        # One candidate needs no name.
        rows.append(decided | {"system": system if len(systems) > 1 else None})
    return gate_frame(rows)


def _as_threshold(gate: Gate, row: Row) -> Gate:
    """Return a gate on the difference from the baseline in place of one on being not worse than it."""
    op: Literal[">=", "<="]
    if row.get("better") == "lower":
        op = "<="
        threshold = gate.by
    else:
        op = ">="
        threshold = -gate.by or 0.0  # of by=0 not -0.0, which would be shown with its sign
    # The rest of the gate stays as it is written, whatever options gates will have.
    return replace(gate, op=op, threshold=threshold, not_worse_than=None, by=0.0)


def _as_mean(row: Row) -> dict[str, Any]:
    """Return a row of `ragnb.compare` as one of means: the difference, which may be a whole range either way."""
    width = row.get("range_high", math.inf) - row.get("range_low", 0.0)
    mean = {name: row.get(name) for name in ("value", "low", "high", *_OF_DESIGN)}
    return mean | {
        "range_low": -width,
        "range_high": width,
        "n": row.get("n_common", 0),
        "role": "difference",
    }


def gate_frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows of gates as a frame with all columns, of one dtype each however few the rows are.

    Examples
    --------
    >>> gate_frame([]).columns[:4].tolist()
    ['gate', 'system', 'metric', 'op']
    """
    dtypes: dict[str, Any] = {"more_needed": "Int64", "blocks": bool, "n": "int64"}
    dtypes |= dict.fromkeys(_NUMBERS, "float64")
    given = list(rows)
    columns = {}
    for name in COLUMNS:
        cells = [row.get(name, math.nan) for row in given]
        columns[name] = pd.Series(cells, dtype=dtypes.get(name, object))
    return pd.DataFrame(columns)


def _range(gate: Gate, row: Row) -> tuple[float, float]:
    """Return the lowest and highest value there can be of a gate's metric: by its means, else by METRICS."""
    if "range_low" in row:
        low = float(row["range_low"])
        high = float(row["range_high"])
        # Metrics of several ranges have no total, and so no range of it.
        if math.isnan(low):
            return (-math.inf, math.inf)
        return (low, high)
    known = known_metric(gate.metric)
    if known is not None:
        return known.low, known.high
    if not row:
        return -math.inf, math.inf
    seen = [row[name] for name in ("value", "low", "high") if not pd.isna(row[name])]
    # Means of another tool have no range beside them: shares are taken for what they look like.
    if all(0 <= number <= 1 for number in [*seen, gate.threshold]):
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
    """Return the row of one gate: its outcome by the interval of a mean, and whether it blocks."""
    span = _range(gate, row)
    _need_threshold_within(gate, span)
    names = ("value", "low", "high", "low_if", "share_unseen", *_OF_DESIGN)
    known = {name: _as_float(row.get(name)) for name in names}
    value = known["value"]
    better = BETTER[gate.op]
    # The ends of the interval on the gate's bad side and on its good side.
    if better == "higher":
        worst_end = known["low"]
        best_end = known["high"]
    else:
        worst_end = known["high"]
        best_end = known["low"]
    usual_role = "rate" if gate.metric in KNOWN_RATES else "quality"
    out = gate_row(
        gate,
        value,
        int(row.get("n", 0)),
        low=known["low"],
        high=known["high"],
        role=row.get("role", usual_role),
        reason="advisory" if gate.advisory else "",
    )
    if out["n"] == 0 or math.isnan(value):
        return out | {
            "outcome": "no_data",
            "more_needed": None,
            "blocks": no_data == "fail" and not gate.advisory,
        }
    # Documents that fail move the end on the metric's bad side; a gate the other way round does not go by it.
    if row.get("better", better) == better:
        out["low_if"] = known["low_if"]
        out["share_unseen"] = known["share_unseen"]
    if gate.undecided == "value":
        out["p_flip"] = stats.flip_probability(value, gate.threshold, known["se"], known["df"])
    # Decided by the whole interval, whatever the gate does with what is undecided.
    if past(best_end, gate.threshold, better):
        return out | {"outcome": "fail"}
    # A missing end violates nothing, and proves nothing: without an interval no gate passes.
    interval_passes = not math.isnan(worst_end) and not past(worst_end, gate.threshold, better)
    documents_stand_in = documents_may_fail and past(out["low_if"], gate.threshold, better)
    if interval_passes and not documents_stand_in:
        return out | {"outcome": "pass"}
    if gate.undecided == "value":
        blocks = out["blocks"]  # the value misses the threshold
    else:
        blocks = gate.undecided == "block" and not gate.advisory
    if interval_passes:
        # The interval passes already, so there is no number of questions after which it would.
        more_needed = None
    else:
        more_needed = _more_needed(gate.threshold, known, out["n"], span)
    return out | {"outcome": "undecided", "more_needed": more_needed, "blocks": blocks}


def _need_threshold_within(gate: Gate, span: tuple[float, float]) -> None:
    """Refuse a threshold outside the range of its metric."""
    low, high = span
    if low - SLACK <= gate.threshold <= high + SLACK:
        return
    # Written in percent, as people say it.
    if high == 1 and 1 < gate.threshold <= 100:
        hint = f"; write {gate.threshold / 100:g}"
    else:
        hint = ""
    raise RagnbError(
        f"gate {gate.name!r}: {gate.threshold:g} lies outside {gate.metric}'s {low:g}..{high:g}{hint}"
    )


def _as_float(cell: Any) -> float:
    """Return a cell of a table of means as a float, nan if it is missing or its column is not there."""
    if pd.isna(cell):
        return math.nan
    return float(cell)


def _more_needed(
    threshold: float, known: Mapping[str, float], n: int, span: tuple[float, float]
) -> int | None:
    """Return how many more questions decide with 80 % probability; None where that is too many, or unknown."""
    # A bootstrap's interval, and a table of another tool, do not say how they would narrow.
    if any(math.isnan(known[name]) for name in ("low", "high", *_OF_DESIGN)):
        return None
    # Wilson's interval is of shares, so a metric's range becomes 0..1.
    start = 0.0
    width = 1.0
    if math.isfinite(span[1] - span[0]):
        start = span[0]
        width = span[1] - span[0]
    value, low, high, at = (
        (number - start) / width
        for number in (known["value"], known["low"], known["high"], threshold)
    )
    df = known["df"]
    level = known["level"]
    size = stats.wilson_size(value, low, high, df, level)
    if not math.isnan(size):
        return stats.questions_to_decide(value, at, n, df, level, size=size)
    se = known["se"] / width
    half = float(stats.t_quantile(level, max(df, 1.0))) * known["se"] / width
    # Neither Wilson's nor value ± t·se is, say, a bootstrap's: how it would narrow is not known.
    is_t_interval = np.allclose([value - half, value + half], [low, high], SLACK, SLACK)
    if is_t_interval and se > 0:
        return stats.questions_to_decide(value, at, n, df, level, se=se)
    return None


def if_documents_fail(row: Mapping[Any, Any]) -> bool:
    """Whether the interval meets a gate, but would not if entire documents failed unobserved."""
    better = BETTER[row["op"]]
    if better == "higher":
        worst_end = row["low"]
    else:
        worst_end = row["high"]
    documents_stand_in = past(row["low_if"], row["threshold"], better)
    return bool(documents_stand_in and not past(worst_end, row["threshold"], better))


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
    """Return one cell for JSON: text and truth as they are, any other as a Python number or None."""
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

    kinds = [kind for _, kind, _, _ in cases]
    attributes_of_suite = {
        "name": _xml(name),
        "tests": str(len(cases)),
        "failures": str(kinds.count("failure")),
        "errors": "0",
        "skipped": str(kinds.count("skipped")),
    }
    suite = ElementTree.Element("testsuite", attributes_of_suite)
    for title, kind, outcome, sentence in cases:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": _xml(name), "name": _xml(title)}
        )
        attributes = {}
        if kind != "system-out":
            attributes = {"type": outcome, "message": _xml(sentence)}
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
