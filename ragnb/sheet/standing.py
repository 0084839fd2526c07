"""How the means stand against their thresholds: one state, its sentence and its mark, for a page without gates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from ragnb import texts
from ragnb.sheet.account import incomplete_metrics
from ragnb.sheet.formatter import Formatter, Row, once

# How a whole interval lies beside a threshold, by its tone.
MET = "good"
OPEN = "watch"
MISSED = "bad"


class Standing(NamedTuple):
    """How the means stand.

    Attributes
    ----------
    tone, status : str
        The mark, and the key of its words below ``standing.status``.
    finding : str
        One sentence without its full stop.
    low : int
        How many means are on the wrong side of their threshold, conclusively or not.
    short : str
        The mean that decides, with its threshold.
    judged : int
        How many means have a threshold.
    """

    tone: str
    status: str
    finding: str
    low: int
    short: str = ""
    judged: int = 0


class _Mean(NamedTuple):
    """A mean beside its milder threshold: the side of its interval, and its own.

    `spare` is the distance on the right side, as a share of the range.
    """

    name: str
    row: Row
    at: float
    is_low: bool
    side: str
    spare: float


@once
def standing(w: Formatter) -> Standing:
    """Return how the means stand; one of which too much is missing judges nothing."""
    say = w.say
    incomplete = incomplete_metrics(w)
    offered = w.quality or w.rates
    scored = [name for name in offered if w.known(name)]
    if incomplete:
        finding = say("measures.incomplete", names=w.list(map(w.name, incomplete)))
        return Standing("none", "no_gates", finding, 0)
    if not scored:
        return Standing("none", "no_gates", say("measures.nothing"), 0)
    judged = [_beside(w, name) for name in scored if w.thresholds(name)]
    if not judged:
        return _without_thresholds(w, scored)
    missed = [one for one in judged if one.side == MISSED]
    low = [one for one in judged if one.is_low]
    words: dict[str, Any] = {"n": len(missed), "all": len(judged)}
    if missed:
        furthest = min(missed, key=lambda one: one.spare)
        every = len(missed) == len(judged) > 1
        if every:
            key = "missed_all"
        elif len(missed) == 1:
            key = "missed_one"
        else:
            key = "missed"
        finding = _said(w, f"standing.{key}", furthest, words)
        return Standing("bad", "missed", finding, len(low), _short(w, furthest), len(judged))
    if low:
        furthest = min(low, key=lambda one: one.spare)
        has_ends = bool(w.ends(furthest.name, furthest.row))
        if has_ends:
            key = "standing.open"
        else:
            key = "standing.open_without_ends"
        finding = _said(w, key, furthest, words)
        return Standing("watch", "open", finding, len(low), _short(w, furthest), len(judged))
    closest = min(judged, key=lambda one: one.spare)
    lacking = [name for name in offered if w.thresholds(name) and not w.known(name)]
    key = "met_one" if len(judged) == 1 else "met"
    if lacking:
        key = "met_lacking"
        words |= {"asked": len(judged) + len(lacking), "names": w.list(map(w.name, lacking))}
    elif len(judged) < len(scored):
        key = "met_some_one" if len(judged) == 1 else "met_some"
    finding = _said(w, f"standing.{key}", closest, words)
    unsure = [one for one in judged if one.side != MET]
    if unsure:
        nearest = min(unsure, key=lambda one: one.spare)
        return Standing("watch", "met_unsure", finding, 0, _short(w, nearest), len(judged))
    tone = "watch" if lacking else "good"
    return Standing(tone, "met", finding, 0, _short(w, closest), len(judged))


def _beside(w: Formatter, name: str) -> _Mean:
    """Return a mean beside its threshold."""
    row = w.rows[name]
    at = w.thresholds(name)[0][1]
    span = w.span(name)
    width = span[1] - span[0] if span else max(abs(at), 1.0)
    sign = 1 if w.better[name] == "higher" else -1
    spare = (row["value"] - at) * sign / width
    return _Mean(name, row, at, w.is_low(name, row["value"]), side_of(w, name, row), spare)


def side_of(w: Formatter, metric: str, row: Row) -> str:
    """Return the tone of a mean beside its threshold: the whole interval meets it, includes it, or misses it."""
    if not w.thresholds(metric) or pd.isna(row["value"]):
        return ""
    worst_first = [row["low"], row["high"]]
    if w.better[metric] == "lower":
        worst_first.reverse()
    worst, best = worst_first
    if pd.isna(worst) or pd.isna(best):
        return OPEN
    if w.is_low(metric, best):
        return MISSED
    if w.is_low(metric, worst):
        return OPEN
    return MET


def _short(w: Formatter, one: _Mean) -> str:
    """Write a mean beside its threshold as a part of a sentence."""
    beside = {**one.row, "threshold": one.at}
    return w.say(
        "standing.short",
        metric=w.name(one.name),
        value=w.value(one.name, one.row["value"], beside),
        limit=w.limit(one.name, one.at),
    )


def _said(w: Formatter, key: str, one: _Mean, words: Mapping[str, Any]) -> str:
    """Write a sentence on a mean beside its threshold, with the digits that tell the two apart."""
    beside = {**one.row, "threshold": one.at}
    is_upward = w.better[one.name] == "higher"
    text = w.say(
        key,
        metric=w.name(one.name),
        value=w.value(one.name, one.row["value"], beside),
        ends=w.ends(one.name, beside),
        limit=w.limit(one.name, one.at),
        side=w.say("headline.below" if is_upward else "headline.above"),
        **words,
    )
    return text[:1].upper() + text[1:]


def _without_thresholds(w: Formatter, scored: list[str]) -> Standing:
    """Return what can be said where no metric has a threshold: which one is worst on its own range."""
    placed = {}
    for name in scored:
        if (span := w.span(name)) and w.rows[name]["role"] == "quality":
            share = (w.rows[name]["value"] - span[0]) / (span[1] - span[0])
            placed[name] = share if w.better[name] == "higher" else 1 - share
    finding = texts.counted(w.say, "measures.no_thresholds", len(scored))
    if placed and len(scored) > 1:
        worst = min(placed, key=lambda name: placed[name])
        words = {"metric": w.name(worst), "value": w.value(worst, w.rows[worst]["value"])}
        finding = w.say("standing.worst", n=len(scored), **words)
    return Standing("none", "no_thresholds", finding, 0)
