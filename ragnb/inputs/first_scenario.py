"""The scenario that `ragnb init` writes: the file and what reading it needs; as comments, what may be added."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import pandas as pd

from ragnb import texts
from ragnb.diagnostics import RULES, warning_bars
from ragnb.scenario.source import block, flow
from ragnb.schema import METRICS, Gate, Metric

_OFFERED = {
    "scores": ("gates", "baseline", "weights", "ratings"),
    "traces": ("refusal", "gold", "gates_of_traces", "baseline"),
    "ratings": ("labels",),
    "cases": ("judge",),
}
_SHARE = 0.8
"""Of a scale, the place of a threshold that is offered where neither a tool nor a rule names one."""


def scenario_text(
    kind: str,
    path: str,
    metrics: pd.DataFrame,
    settings: Mapping[str, Any],
    choices: list[dict[str, Any]],
    facts: Iterable[Mapping[str, Any]],
    *,
    lang: str,
) -> str:
    """Return a scenario as text: settings that hold, gates, then, as comments, choices and what may be added."""
    say = texts.load(lang)
    lines = [
        f"# {say('card.head', kind=say(f'card.{kind}'))}",
        block({kind: path}).rstrip(),
    ]
    lines += [block({key: value}).rstrip() for key, value in settings.items()]
    if lang != "en":
        lines.append(f"lang: {lang}")
    if choices:
        names = ", ".join(choice["name"] for choice in choices)
        every = [*settings.get("metrics", ()), *choices]
        lines += ["", *_comment(say("card.open", names=names)), f"# metrics: {flow(every)}"]
    for key in _OFFERED[kind]:
        lines.append("")
        if key == "gates":
            lines += _gates(metrics, choices, say)
        else:
            first = next((str(name) for name in metrics["metric"]), "faithfulness")
            lines += _comment(say(f"card.offer.{key}", metric=flow(first)))
    return "\n".join(lines) + "\n"


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in text.splitlines()]


def _gates(
    metrics: pd.DataFrame, choices: list[dict[str, Any]], say: Callable[..., str]
) -> list[str]:
    """Return a gate for each metric at the threshold that a run shows, and as a comment at a place to change.

    Without any threshold that a run shows all of them are comments.
    """
    to_choose = {choice["name"] for choice in choices}
    known = metrics[metrics["better"].isin(["higher", "lower"])]
    shown = []
    offered = []
    for row in known.to_dict("records"):
        if row["metric"] in to_choose:
            continue
        gate, is_shown = _gate(row)
        if is_shown:
            shown.append(_line(gate))
        else:
            offered.append(_line(gate))
    if shown:
        commented = [f"# {line}" for line in offered]
        return [*_comment(say("card.offer.gates_shown")), "gates:", *shown, *commented]
    if not offered:
        offered = [_line(Gate("quality", "faithfulness", ">=", _SHARE))]
    return [f"# {line}" for line in (say("card.offer.gates"), "gates:", *offered)]


def _line(gate: Gate) -> str:
    """Return a gate as a line of YAML."""
    row = {"name": gate.name, "metric": gate.metric, "op": gate.op, "threshold": gate.threshold}
    return f"- {flow(row)}"


def _gate(row: Mapping[Any, Any]) -> tuple[Gate, bool]:
    """Return the gate of a metric, and whether a run shows its threshold."""
    name = str(row["metric"])
    low = float(row["low"])
    high = float(row["high"])
    metric = Metric(name, low, high, row["better"], role="quality")
    known = METRICS.get(name)
    threshold = None
    # The thresholds of the rules are on the scale that METRICS gives the metric.
    if known is not None and (known.scale, known.better) == (metric.scale, metric.better):
        threshold = warning_bars(RULES, [known]).get(name)
    is_shown = threshold is not None
    if threshold is None:
        share = _SHARE if metric.better == "higher" else 1 - _SHARE
        threshold = round(low + share * (high - low), 6)
    op: Literal[">=", "<="] = ">=" if metric.better == "higher" else "<="
    return Gate(name, name, op, threshold), is_shown
