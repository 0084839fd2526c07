"""How many answers pass a rubric, in pictures: the share, the scores beside the pass mark, both groups."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.markup import blocks, count, ends, percent
from ragnb.markup.blocks import Estimate, Mark
from ragnb.schema import records
from ragnb.sheet.formatter import Formatter, Row, once
from ragnb.sheet.gates import deciding

_ROUNDING = 1e-9  # what sums of a part's width are off by
_PARTS = 10  # of a scale with decimals
_MOST_STEPS = 12  # of a scale that has a bar a step
_LEAST_AXES = 3  # a polygon of two dimensions is a line


@once
def passing_row(w: Formatter) -> Row | None:
    """Return how many answers of the shown system pass."""
    if w.whole.passing is None:
        return None
    for row in records(w.whole.passing):
        if w.shown is None or row["system"] == w.shown:
            return row
    return None


def passing_share(w: Formatter, row: Row) -> tuple[Estimate, str, tuple[Any, ...]]:
    """Return the share that passes for the side of the first screen, with the gates on the same dimension."""
    name = w.say("passing.share")
    # Without its interval as a text, which the first note says in words.
    estimate = Estimate(percent(row["share"]), "", row["share"], row["low"], row["high"], text=name)
    notes: list[Any] = [
        w.say("sheet.ci", level=w.level, ends=ends(row["low"], row["high"], percent=True)),
        w.say("chart.n", n=count(row["n"])),
    ]
    for gate in deciding(w.whole.gates):
        if gate["metric"] == row["metric"] and gate["system"] in (None, w.shown):
            outcome = w.outcome(gate)
            result = f"{w.requirement(gate)}: {w.interval(gate['metric'], gate)}"
            notes.append((Mark(outcome.tone, outcome.text), result))
    return estimate, name, tuple(notes)


def _scores(w: Formatter, row: Row) -> pd.Series | None:
    """Return the scores of the shown system on the dimension that decides; None of rows that are not all held."""
    if w.whole.streamed:
        return None
    scores: pd.Series = w.whole.scores[row["metric"]].astype(float)[w.own]
    return scores


def _steps(w: Formatter, row: Row, values: npt.NDArray[np.float64]) -> list[tuple[str, int, bool]]:
    """Return how many scores each step of the scale has, or each part of it, cut at the pass mark."""
    low, high = w.scales[row["metric"]]
    at = row["threshold"]
    is_whole = bool((values == np.round(values)).all()) and float(at).is_integer()
    if is_whole and high - low < _MOST_STEPS:
        scores = np.arange(low, high + 1)
        return [(f"{score:g}", int((values == score).sum()), bool(score >= at)) for score in scores]
    # From the pass mark to both ends, so that no part has scores of both sides; at the ends parts may be narrower.
    width = (high - low) / _PARTS
    below = np.arange(at, low - _ROUNDING, -width)[::-1]
    above = np.arange(at, high + _ROUNDING, width)[1:]
    edges = np.unique(np.clip([low, *below, *above, high], low, high))
    parts = []
    for left, right in pairwise(edges):
        # The highest score belongs to the last part.
        inside = (values >= left) & ((values < right) | (right == high))
        parts.append((f"{left:.3g}", int(inside.sum()), bool(left >= at - _ROUNDING)))
    return parts


def pass_mark(w: Formatter, row: Row) -> blocks.PassMark | None:
    """Return how the judge scored the dimension that decides, beside the pass mark."""
    scores = _scores(w, row)
    if scores is None or w.span(row["metric"]) is None:
        return None
    values = scores.dropna().to_numpy()
    words = {
        "dimension": w.name(row["metric"]),
        "at": f"{row['threshold']:g}",
        "k": count(row["k"]),
        "others": count(row["n"] - row["k"]),
    }
    return blocks.PassMark(
        w.say("passing.histogram", **words),
        w.say("passing.fails", **words),
        w.say("passing.passes", **words),
        tuple(_steps(w, row, values)),
    )


def radar_of_passing(w: Formatter, row: Row) -> blocks.Picture | None:
    """Return the means of passing answers beside those of the others; nothing of fewer than three dimensions."""
    scores = _scores(w, row)
    names = w.dimensions or w.quality
    axes = [name for name in names if w.span(name) and w.known(name)]
    if scores is None or len(axes) < _LEAST_AXES:
        return None
    # Where all answers pass, or none does, there is one group and nothing to compare.
    if not 0 < row["k"] < row["n"]:
        return None
    passes = scores >= row["threshold"]
    fails = ~passes & scores.notna()
    table = w.whole.scores.loc[w.own, axes].astype(float)
    values = {
        w.say("passing.n_pass", n=count(row["k"])): table[passes].mean().tolist(),
        w.say("passing.n_others", n=count(row["n"] - row["k"])): table[fails].mean().tolist(),
    }
    label = w.say("radar.label", names=w.list(values, most=2))
    return w.radar({w.title(name): name for name in axes}, values, label)
