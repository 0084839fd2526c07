"""The diagnostic rules: thresholds by metric. The rules are in a table, their texts in the texts room."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ragnb import texts
from ragnb.errors import RagnbError, RagnbWarning, outside
from ragnb.schema import METRICS, Gate, Metric, Rule
from ragnb.schema.shown import Listed

# Tolerance of a comparison: the float mean of three 0.7s is not below 0.7.
SLACK = 1e-9

TABLE = tomllib.loads(files(__package__).joinpath("rules.toml").read_text(encoding="utf-8"))
RULES: tuple[Rule, ...] = Listed("RULES", (Rule(**row) for row in TABLE["rule"]))
"""The rules of metrics and rates, each with means that fire it."""


def past(
    values: npt.ArrayLike, at: float | None, better: Literal["higher", "lower"]
) -> npt.NDArray[np.bool_]:
    """Return which values violate a threshold, strictly and by more than `SLACK`.

    Parameters
    ----------
    values : array
        In the metric's units; nan violates nothing.
    at : float or None
        The threshold; None is one that nothing violates.
    better : {"higher", "lower"}
        The metric's good end.

    Examples
    --------
    >>> past([0.69, 0.7, float("nan")], 0.7, "higher").tolist()
    [True, False, False]
    """
    x = np.asarray(values, dtype=float)
    if at is None:
        return np.zeros(x.shape, dtype=bool)
    if better == "higher":
        return np.asarray(x < at - SLACK)
    return np.asarray(x > at + SLACK)


def meets(value: float, gate: Gate) -> bool:
    """Return whether a value is on the good side of a gate's threshold, or less than `SLACK` from it."""
    is_nan = value != value  # nan violates nothing, and meets nothing
    better: Literal["higher", "lower"] = "higher" if gate.op == ">=" else "lower"
    return bool(not is_nan and not past(value, gate.threshold, better))


def fitting(rules: Iterable[Rule], metrics: Iterable[Metric]) -> Iterator[tuple[Rule, Metric]]:
    """Yield each rule with a threshold whose metrics are there, with the metric it reads.

    A rule of `RULES` for a metric that the caller declares on another scale or direction is left out with a
    warning: its thresholds would be meaningless there.

    Raises
    ------
    RagnbError
        For a critical threshold on the good side of the warning threshold.

    Examples
    --------
    >>> [rule.name for rule, _ in fitting(RULES, [METRICS["faithfulness"]])]
    ['faithfulness']
    """
    have = {metric.name: metric for metric in metrics}
    for rule in rules:
        needed = [rule.metric]
        if rule.also is not None:
            needed.append(rule.also.metric)
        has_threshold = rule.warning is not None or rule.critical is not None
        if not has_threshold or not all(name in have for name in needed):
            continue
        metric = have[rule.metric]
        # Thresholds of the caller's own rules are on the scale that the caller declares.
        if rule in RULES and not all(same_scale(have[name]) for name in needed):
            warnings.warn(
                f"the rule {rule.name!r} does not fit {rule.metric!r} on {metric.low:g}..{metric.high:g} "
                f"({metric.better} is better) and is left out; "
                f"pass rules=[Rule({rule.metric!r}, warning, critical)]",
                RagnbWarning,
                stacklevel=outside(),
            )
            continue
        if rule.warning is not None and past(rule.warning, rule.critical, metric.better):
            raise RagnbError(
                f"rule {rule.name!r}: critical={rule.critical:g} is on the good side of "
                f"warning={rule.warning:g} ({metric.better} is better); swap them"
            )
        yield rule, metric


def same_scale(metric: Metric) -> bool:
    """Whether a metric has the scale and direction that METRICS declares; without them a rule means nothing."""
    ours = METRICS.get(metric.name)
    return ours is not None and (metric.scale, metric.better) == (ours.scale, ours.better)


def warning_bars(rules: Iterable[Rule], metrics: Iterable[Metric]) -> dict[str, float]:
    """Return each metric's warning threshold: that of its first rule on this metric alone.

    Examples
    --------
    >>> warning_bars(RULES, [METRICS["faithfulness"], METRICS["compliance"]])
    {'faithfulness': 0.7}
    """
    thresholds: dict[str, float] = {}
    for rule, metric in fitting(rules, metrics):
        if rule.also is None:
            thresholds.setdefault(metric.name, target_of(rule))
    return thresholds


def target_of(rule: Rule) -> float:
    """Return the threshold that potential gains are computed to: warning, or critical if there is no other."""
    threshold = rule.critical if rule.warning is None else rule.warning
    return float(threshold)  # type: ignore[arg-type]  # `fitting` passes on no rule without either


def rule_texts(rule: Rule, lang: str) -> tuple[list[str], list[dict[str, str | None]]]:
    """Return a rule's causes and actions in a language.

    The rule's own texts come first (in `lang`, else in English, else in the first language it has), then
    those of the language file under ``rules.<name>``; a rule with neither has none.

    Returns
    -------
    (list of str, list of dict)
        Causes, and actions as ``{"text", "setting"}``; ``setting`` is None where no setting is named.

    Examples
    --------
    >>> rule_texts(RULES[0], "en")[1][1]
    {'text': 'Enable answer verification.', 'setting': 'answer_check'}
    """
    stored: Mapping[str, Any] = {}
    if rule.name in texts.table(lang)["rules"]:
        stored = texts.entry(lang, f"rules.{rule.name}")
    causes = _in_language(rule.causes, lang) or stored.get("causes", ())
    actions = []
    for action in _in_language(rule.actions, lang) or stored.get("actions", ()):
        # An action that changes no setting may be written as its text alone.
        if isinstance(action, str):
            actions.append({"text": action, "setting": None})
        else:
            actions.append({"text": action["text"], "setting": action.get("setting")})
    return list(causes), actions


def _in_language(texts_of: Mapping[str, Sequence[Any]], lang: str) -> Sequence[Any]:
    """Return a rule's own texts in a language, else in English, else in the first language that has some."""
    for key in (lang, "en", *texts_of):
        if texts_of.get(key):
            return texts_of[key]
    return ()
