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
    if rubric or name not in spans:
        return Scale(scale_of_metric, "a scale that ragnb knows by the metric's name")
    low, high, whole = spans[name]
    if metric.family == RUBRIC:
        return _rubric_scale(name, spans)
    if not whole or scale_of_metric != (0, 1) or high > 1 or low < 0:
        return Scale(scale_of_metric, "a scale that ragnb knows by the metric's name")
    beyond = {
        other: span
        for other, span in spans.items()
        if other != name and span[2] and 1 < span[1] <= _UNIT_NEIGHBOUR and span[0] >= 0
    }
    if not beyond:
        return Scale(scale_of_metric, "a scale that ragnb knows by the metric's name")
    widest = max(beyond, key=lambda other: beyond[other][1])
    lowest = min(low, *(span[0] for span in beyond.values()))
    return Scale(
        None,
        f"{widest!r} beside it goes up to {beyond[widest][1]:g}",
        range_of(lowest, beyond[widest][1]),
    )


def _rubric_scale(name: str, spans: Mapping[str, tuple[float, float, bool]]) -> Scale:
    """Return the scale of a dimension of the usual rubric, which another judge may have scored."""
    judged = [span for other, span in spans.items() if other == name or _is_rubric(other)]
    low = min(span[0] for span in judged)
    high = max(span[1] for span in judged)
    scale_of_metric = (METRICS[name].low, METRICS[name].high)
    if (
        scale_of_metric[0] - CLIP <= low
        and high <= scale_of_metric[1] + CLIP
        and range_of(scale_of_metric[0], min(high, scale_of_metric[1])) == scale_of_metric
    ):
        return Scale(scale_of_metric, f"values up to {high:g}, on the scale of ragnb's rubric")
    alone = spans[name]
    fractions = alone[0] >= 0 and alone[1] <= 1 and not (alone[2] and alone[0] == 1)
    if fractions and high <= 1:
        return Scale((0, 1), "values from 0 to 1")
    return Scale(
        None,
        f"values from {alone[0]:g} to {alone[1]:g} may be on several scales",
        range_of(low, high),
    )


def _is_rubric(name: str) -> bool:
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
            given = (as_number(cell) for cell in cells)
            numbers = np.array([number for number in given if number is not None], dtype=float)
        if len(numbers):
            whole = bool((numbers == np.floor(numbers)).all())
            spans[name] = (float(numbers.min()), float(numbers.max()), whole)
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
