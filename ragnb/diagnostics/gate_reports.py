"""What gates say: sentences for people, JSON and JUnit XML for CI."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from ragnb import texts
from ragnb.diagnostics.gates import COLUMNS
from ragnb.files import json_text
from ragnb.markup import count, number, percent, with_interval
from ragnb.schema import NOTE_COLUMNS

_MARKS = {"pass": "✓", "fail": "✗", "undecided": "?", "no_data": "—"}


def gate_mark(row: Mapping[Any, Any]) -> str:
    """Return the sign of a gate's outcome; what blocks is marked as failed, as the exit code says.

    Examples
    --------
    >>> gate_mark({"outcome": "undecided", "blocks": False}), gate_mark({"outcome": "pass", "blocks": False})
    ('?', '✓')
    """
    return _MARKS["fail" if row["blocks"] else row["outcome"]]


def gate_sentences(gates: pd.DataFrame, *, lang: str = "en") -> list[str]:
    """Return one sentence a gate: what it asks, what was seen, what follows; rates are percentages.

    Parameters
    ----------
    gates : DataFrame
        What `check_gates` returns.
    lang : {"en", "zh"}

    Examples
    --------
    >>> from ragnb.diagnostics import check_gates
    >>> from ragnb.schema import Gate
    >>> gate_sentences(check_gates(pd.DataFrame({"metric": []}), gates=[Gate("G", "compliance", ">=", 0.9)]))
    ['G: compliance ≥ 90.0 %. No data. It blocks.']
    """
    say = texts.load(lang)
    out = []
    for row in gates.to_dict("records"):
        name = row["gate"] if row["system"] is None else f"{row['gate']} ({row['system']})"
        if row["role"] == "completeness":
            words = [f"{name}: {input_words(row, lang)}. "]
        else:
            words = _decision_words(row | {"gate": name}, say)
        words += [say("gate.blocks")] if row["blocks"] else []
        out.append("".join(words).rstrip())
    return out


def _decision_words(row: Mapping[Any, Any], say: Callable[..., str]) -> list[str]:
    rate = row["role"] == "rate"
    written = percent if rate else number
    asked = {"gate": row["gate"], "metric": row["metric"], "at": written(row["threshold"])}
    words = [say("gate.asks", op="≥" if row["op"] == ">=" else "≤", **asked)]
    if row["outcome"] != "no_data":
        key = "gate.no_interval" if math.isnan(row["low"]) else "gate.seen"
        whole = with_interval(row["value"], row["low"], row["high"], percent=rate)
        seen = written(row["value"]) if math.isnan(row["low"]) else whole
        words.append(say(key, value=seen, n=count(row["n"])))
    words.append(say(f"outcome.{row['outcome']}"))
    if row["outcome"] == "undecided" and not pd.isna(row["more_needed"]):
        words.append(say("gate.more_needed", n=count(row["more_needed"])))
    return words


def input_words(row: Mapping[Any, Any], lang: str) -> str:
    """Say what a completeness gate counted, such as "50 of 101 input lines are damaged or lost"."""
    say = texts.load(lang)
    good = 0 if row["n"] == 0 else round(row["value"] * row["n"])
    key = row["gate"] if row["n"] else "no_scores"
    text = say(f"verdict.{key}", good=count(good), bad=count(row["n"] - good), n=count(row["n"]))
    return text if row["system"] is None else say("verdict.of_system", system=row["system"], text=text)


def gates_json(gates: pd.DataFrame, *, notes: pd.DataFrame | None = None) -> str:
    """Return the gates as JSON: same gates, same bytes; numbers to 12 significant digits, null where missing.

    The notes of the run, where they are given, follow with their code, subject and text.

    Examples
    --------
    >>> import json
    >>> from ragnb.diagnostics import check_gates
    >>> from ragnb.schema import Gate
    >>> gates = check_gates(pd.DataFrame({"metric": []}), gates=[Gate("G", "compliance", ">=", 0.9)])
    >>> json.loads(gates_json(gates))["blocked"]
    True
    """
    told = {} if notes is None else {"notes": notes[list(NOTE_COLUMNS)].to_dict("records")}
    return json_text({"blocked": bool(gates["blocks"].any()), "gates": records(gates[list(COLUMNS)])} | told)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as JSON holds them: numbers to 12 significant digits, null where missing or infinite.

    Examples
    --------
    >>> records(pd.DataFrame({"value": [0.1 + 0.2, float("nan")]}))
    [{'value': 0.3}, {'value': None}]
    """
    return [{str(name): _plain(value) for name, value in row.items()} for row in frame.to_dict("records")]


def _plain(value: Any) -> Any:
    if isinstance(value, str | bool):
        return value
    if pd.isna(value) or math.isinf(value):
        return None
    return float(f"{value:.12g}") if isinstance(value, float) else int(value)


def gates_junit(gates: pd.DataFrame, *, name: str = "ragnb gates", lang: str = "en") -> str:
    """Return the gates as a JUnit XML test suite: a gate that blocks fails, one that is not decided is skipped.

    Examples
    --------
    >>> from ragnb.diagnostics import check_gates
    >>> from ragnb.schema import Gate
    >>> gates_junit(check_gates(pd.DataFrame({"metric": []}), gates=[Gate("<G>", "compliance", ">=", 0.9)]))[:22]
    '<?xml version="1.0" en'
    """
    open_ = gates["outcome"].isin(["no_data", "undecided"]) & ~gates["blocks"] & (gates["reason"] == "")
    cases, sentences = [], gate_sentences(gates, lang=lang)
    for row, sentence, skipped in zip(gates.to_dict("records"), sentences, open_, strict=True):
        system = "" if row["system"] is None else f" ({row['system']})"
        title = f"{row['gate']}{system}: {row['metric']} {row['op']} {row['threshold']:g}"
        kind = "failure" if row["blocks"] else "skipped" if skipped else "system-out"
        cases.append((title, kind, row["outcome"], sentence))
    return junit(name, cases)


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
    failures, skipped = (str(sum(kind == word for _, kind, *_ in cases)) for word in ("failure", "skipped"))
    counts = {"tests": str(len(cases)), "failures": failures, "errors": "0", "skipped": skipped}
    suite = ET.Element("testsuite", {"name": _xml(name), **counts})
    for title, kind, outcome, sentence in cases:
        case = ET.SubElement(suite, "testcase", {"classname": _xml(name), "name": _xml(title)})
        told = {"type": outcome, "message": _xml(sentence)} if kind != "system-out" else {}
        # Some readers show the message, others the text.
        ET.SubElement(case, kind, told).text = _xml(sentence)
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    """Replace what XML 1.0 cannot hold, even escaped."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)
