"""The failure modes in the order in which they are tried, on arrays and as an expression for an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.diagnostics.rules import SLACK, TABLE, past
from ragnb.schema import Metric
from ragnb.weights import score_columns

READS: Mapping[str, tuple[str, ...]] = {mode: tuple(names) for mode, names in TABLE["modes"].items()}
"""The metrics that a mode reads; a sample is of the first mode of which one metric is past its warning bar."""

MODES = ("not_enough_scores", *READS, "fine")
"""The failure modes, in the order in which they are tried."""

NEEDED = ("faithfulness", "answer_relevancy")


def codes_of(scores: pd.DataFrame, metrics: Sequence[Metric], bars: Mapping[str, float]) -> npt.NDArray[np.int64]:
    """Return the position in MODES of each sample's mode.

    Examples
    --------
    >>> codes_of(pd.DataFrame({"faithfulness": [None]}), [Metric("faithfulness")], {"faithfulness": 0.7})
    array([0])
    """
    values, _ = score_columns(scores, metrics)
    columns = {m.name: column for m, column in zip(metrics, values, strict=True)}
    better = {m.name: m.better for m in metrics}
    empty = np.full(len(scores), np.nan)
    tests = [np.any([np.isnan(columns.get(name, empty)) for name in NEEDED], axis=0)]
    for names in READS.values():
        low = [past(columns[name], bars[name], better[name]) for name in names if name in bars]
        tests.append(np.any(low, axis=0) if low else np.zeros(len(empty), dtype=bool))
    tests.append(np.ones(len(empty), dtype=bool))
    return np.asarray(np.argmax(tests, axis=0), dtype=np.int64)


def first_mode(metrics: Sequence[Metric], bars: Mapping[str, float], words: Sequence[nw.Expr]) -> nw.Expr:
    """Return each row's mode, one of `words`, read off the scores ``__v0``, ``__v1`` … as `codes_of` does."""
    places = {metric.name: k for k, metric in enumerate(metrics)}

    def low(name: str) -> nw.Expr:
        value, bar = nw.col(f"__v{places[name]}"), bars[name]
        higher = metrics[places[name]].better == "higher"
        return ~value.is_null() & (value < bar - SLACK if higher else value > bar + SLACK)

    gone = [nw.col(f"__v{places[name]}").is_null() for name in NEEDED if name in places]
    if len(gone) < len(NEEDED):
        return words[0]
    tests = [[low(name) for name in names if name in bars] for names in READS.values()]
    found = words[-1]
    for any_of, word in reversed(list(zip([gone, *tests], words, strict=False))):
        if any_of:
            found = nw.when(reduce(or_, any_of)).then(word).otherwise(found)
    return found
