"""The failure modes in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

import narwhals as nw

from ragnb.diagnostics.rules import SLACK, TABLE
from ragnb.schema import Metric

READS: Mapping[str, tuple[str, ...]] = {mode: tuple(names) for mode, names in TABLE["modes"].items()}
"""The metrics that a mode reads; a sample is of the first mode of which one metric is past its warning bar."""

MODES = ("not_enough_scores", *READS, "fine")
"""The failure modes, in the order in which they are tried."""

NEEDED = ("faithfulness", "answer_relevancy")


def mode_of(metrics: Sequence[Metric], thresholds: Mapping[str, float], modes: Sequence[str | int]) -> nw.Expr:
    """Return which of `modes`, in the order of MODES, each row is of, read off the scores ``__v0`` …  ."""
    places = {metric.name: k for k, metric in enumerate(metrics)}

    def violates(name: str) -> nw.Expr:
        value, threshold = nw.col(f"__v{places[name]}"), thresholds[name]
        higher = metrics[places[name]].better == "higher"
        return ~value.is_null() & (value < threshold - SLACK if higher else value > threshold + SLACK)

    gone = [nw.col(f"__v{places[name]}").is_null() for name in NEEDED if name in places]
    if len(gone) < len(NEEDED):
        return nw.lit(modes[0])
    tests = [gone, *([violates(name) for name in names if name in thresholds] for names in READS.values())]
    found: nw.Expr = nw.lit(modes[-1])
    for any_of, mode in reversed(list(zip(tests, modes, strict=False))):
        if any_of:
            found = nw.when(reduce(or_, any_of)).then(nw.lit(mode)).otherwise(found)
    return found
