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
    incomplete = incomplete_metrics(w)
    if incomplete:
        finding = w.say("measures.incomplete", names=w.list(map(w.name, incomplete)))
        return Standing("none", "no_gates", finding, 0)
    offered = w.quality or w.rates
    scored = [name for name in offered if w.known(name)]
    if not scored:
        return Standing("none", "no_gates", w.say("measures.nothing"), 0)
    judged = [_beside(w, name) for name in scored if w.thresholds(name)]
    if not judged:
        return _without_thresholds(w, scored)
    # The worst that is conclusive is said first, then what is low by its value alone.
    missed = [mean for mean in judged if mean.side == MISSED]
    if missed:
        return _missed(w, judged, missed)
    low = [mean for mean in judged if mean.is_low]
    if low:
        return _open(w, judged, low)
    lacking = [name for name in offered if w.thresholds(name) and not w.known(name)]
    return _met(w, judged, lacking, n_scored=len(scored))


def _spare(mean: _Mean) -> float:
    return mean.spare


def _missed(w: Formatter, judged: list[_Mean], missed: list[_Mean]) -> Standing:
    """Return what is said where whole intervals are on the wrong side: the mean furthest from its threshold."""
    furthest = min(missed, key=_spare)
    if len(missed) == len(judged) > 1:
        key = "standing.missed_all"
    elif len(missed) == 1:
        key = "standing.missed_one"
    else:
        key = "standing.missed"
    finding = _said(w, key, furthest, {"n": len(missed), "all": len(judged)})
    n_low = sum(mean.is_low for mean in judged)
    return Standing("bad", "missed", finding, n_low, _short(w, furthest), len(judged))


def _open(w: Formatter, judged: list[_Mean], low: list[_Mean]) -> Standing:
    """Return what is said where means are on the wrong side and their intervals include the threshold."""
    furthest = min(low, key=_spare)
    key = "standing.open"
    if not w.ends(furthest.name, furthest.row):
        key = "standing.open_without_ends"
    finding = _said(w, key, furthest, {"n": 0, "all": len(judged)})
    return Standing("watch", "open", finding, len(low), _short(w, furthest), len(judged))


def _met(w: Formatter, judged: list[_Mean], lacking: list[str], *, n_scored: int) -> Standing:
    """Return what is said where every mean is on the right side; `lacking` have a threshold and no mean."""
    closest = min(judged, key=_spare)
    words: dict[str, Any] = {"n": 0, "all": len(judged)}
    key = "met_one" if len(judged) == 1 else "met"
    if lacking:
        key = "met_lacking"
        words |= {"asked": len(judged) + len(lacking), "names": w.list(map(w.name, lacking))}
    elif len(judged) < n_scored:  # some metrics have no threshold
        key = "met_some_one" if len(judged) == 1 else "met_some"
    finding = _said(w, f"standing.{key}", closest, words)
    unsure = [mean for mean in judged if mean.side != MET]
    if unsure:
        nearest = min(unsure, key=_spare)
        return Standing("watch", "met_unsure", finding, 0, _short(w, nearest), len(judged))
    tone = "watch" if lacking else "good"
    return Standing(tone, "met", finding, 0, _short(w, closest), len(judged))


def _beside(w: Formatter, name: str) -> _Mean:
    """Return a mean beside its threshold."""
    row = w.rows[name]
    at = w.thresholds(name)[0][1]
    span = w.span(name)
    # Without ends, such as of a latency, the threshold itself is the unit, and at least 1.
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
    side = "headline.below" if w.better[one.name] == "higher" else "headline.above"
    text = w.say(
        key,
        metric=w.name(one.name),
        value=w.value(one.name, one.row["value"], beside),
        ends=w.ends(one.name, beside),
        limit=w.limit(one.name, one.at),
        side=w.say(side),
        **words,
    )
    return text[:1].upper() + text[1:]


def _without_thresholds(w: Formatter, scored: list[str]) -> Standing:
    """Return what can be said where no metric has a threshold: which one is worst on its own range."""
    placed = {}  # 0 at the worst end of the range, 1 at the best
    for name in scored:
        row = w.rows[name]
        span = w.span(name)
        if span and row["role"] == "quality":
            share = (row["value"] - span[0]) / (span[1] - span[0])
            placed[name] = share if w.better[name] == "higher" else 1 - share
    finding = texts.counted(w.say, "measures.no_thresholds", len(scored))
    if placed and len(scored) > 1:
        worst = min(placed, key=lambda name: placed[name])
        words = {"metric": w.name(worst), "value": w.value(worst, w.rows[worst]["value"])}
        finding = w.say("standing.worst", n=len(scored), **words)
    return Standing("none", "no_thresholds", finding, 0)
