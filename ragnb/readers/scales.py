"""The scale of scores, as a rubric beside them or their values tell it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np
import pandas as pd

from ragnb.readers.facts import WORDS, direction_of_name
from ragnb.readers.kinds import as_number, count_cells
from ragnb.readers.raw import Raw, is_text
from ragnb.schema import CLIP, METRICS, RUBRIC, range_of

_UNIT_NEIGHBOUR = 10  # the top of a scale beside which a metric up to 1 is not taken for a share


def has_rubric(columns: Iterable[str]) -> bool:
    """Whether a table has columns that ragnb's own judge writes.

    Examples
    --------
    >>> has_rubric(["accuracy", "judge__mode"]), has_rubric(["accuracy", "clarity"])
    (True, False)
    """
    signs = WORDS["rubric"]["columns"]
    return any(fnmatchcase(column, sign) for column in columns for sign in signs)


class Scale(NamedTuple):
    """The ends of a metric's scale, None where it is open, and the evidence; `proposed` may be confirmed."""

    ends: tuple[float, float] | None
    evidence: str
    proposed: tuple[float, float] | None = None


def judged_scale(
    name: str, spans: Mapping[str, tuple[float, float, bool]], *, rubric: bool
) -> Scale:
    """Return the scale of a metric of METRICS, given the values of its neighbours.

    Parameters
    ----------
    name : str
        Of a metric in METRICS.
    spans : mapping of column to (low, high, whole)
        The least and greatest value of each column that a judge may have scored, and whether all are whole.
    rubric : bool
        Whether the table is one that ragnb's judge wrote.

    Examples
    --------
    >>> judged_scale("accuracy", {"accuracy": (4, 5, True)}, rubric=False).ends is None
    True
    >>> judged_scale("accuracy", {"accuracy": (4, 9, True)}, rubric=False).ends
    (1.0, 10.0)
    >>> judged_scale("faithfulness", {"faithfulness": (0, 1, True), "correctness": (0, 9, True)}, rubric=False)
    Scale(ends=None, evidence="'correctness' beside it goes up to 9", proposed=(0, 10))
    """
    metric = METRICS[name]
    scale_of_metric = (metric.low, metric.high)
    usual = Scale(scale_of_metric, "a scale that ragnb knows by the metric's name")
    if rubric or name not in spans:
        return usual
    low, high, is_whole = spans[name]
    if metric.family == RUBRIC:
        return _rubric_scale(name, spans)
    # Values that are only 0 and 1 may also be the low end of a scale that the neighbours use up to 5 or 10.
    if not is_whole or scale_of_metric != (0, 1) or high > 1 or low < 0:
        return usual
    neighbours: dict[str, tuple[float, float]] = {}
    for other, (other_low, other_high, other_is_whole) in spans.items():
        on_wider_scale = 1 < other_high <= _UNIT_NEIGHBOUR and other_low >= 0
        if other != name and other_is_whole and on_wider_scale:
            neighbours[other] = (other_low, other_high)
    if not neighbours:
        return usual
    widest = max(neighbours, key=lambda other: neighbours[other][1])
    _, greatest = neighbours[widest]
    least = min(low, *(other_low for other_low, _ in neighbours.values()))
    evidence = f"{widest!r} beside it goes up to {greatest:g}"
    return Scale(None, evidence, range_of(least, greatest))


def _rubric_scale(name: str, spans: Mapping[str, tuple[float, float, bool]]) -> Scale:
    """Return the scale of a dimension of the usual rubric, which another judge may have scored."""
    # All dimensions of a rubric are on one scale.
    judged = [span for other, span in spans.items() if other == name or _is_rubric(other)]
    low = min(span[0] for span in judged)
    high = max(span[1] for span in judged)
    metric = METRICS[name]
    is_within = metric.low - CLIP <= low and high <= metric.high + CLIP
    # Values that fit a narrower scale as well do not show that the scale is that of the rubric.
    if is_within and range_of(metric.low, min(high, metric.high)) == (metric.low, metric.high):
        evidence = f"values up to {high:g}, on the scale of ragnb's rubric"
        return Scale((metric.low, metric.high), evidence)
    own_low, own_high, own_is_whole = spans[name]
    # All 1, which is the low end of a scale from 1 to 5 or the high end of a share.
    only_ones = own_is_whole and own_low == 1
    is_share = own_low >= 0 and own_high <= 1 and not only_ones
    if is_share and high <= 1:
        return Scale((0, 1), "values from 0 to 1")
    evidence = f"values from {own_low:g} to {own_high:g} may be on several scales"
    return Scale(None, evidence, range_of(low, high))


def _is_rubric(name: str) -> bool:
    """Return whether a column is a dimension of the usual rubric."""
    return name in METRICS and METRICS[name].family == RUBRIC


def spans_of(raw: Raw, names: Iterable[str]) -> dict[str, tuple[float, float, bool]]:
    """Return the least and greatest number of columns without words, and whether all are whole."""
    spans = {}
    for name in names:
        cells = raw.columns[name]
        if isinstance(cells, pd.Series) and not is_text(cells):
            numbers = cells.dropna().to_numpy(dtype=float)
        else:
            counts, _ = count_cells(cells)
            if counts.words or not counts.numbers:
                continue
            read = [as_number(cell) for cell in cells]
            numbers = np.array([number for number in read if number is not None], dtype=float)
        if len(numbers):
            is_whole = bool((numbers == np.floor(numbers)).all())
            spans[name] = (float(numbers.min()), float(numbers.max()), is_whole)
    return spans


def is_judged(name: str) -> bool:
    """Whether a judge may have scored a column: a metric that ragnb knows, or a name with a word for good.

    Examples
    --------
    >>> is_judged("readability"), is_judged("faithfulness"), is_judged("top_k"), is_judged("total_tokens")
    (True, True, False, False)
    """
    if name in METRICS:
        return METRICS[name].role == "quality"
    named = direction_of_name(name)
    return named is not None and named.better == "higher"
