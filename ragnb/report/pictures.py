"""The pictures of a report: those that a sheet can fill, each under a sentence on how to read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ragnb.assessment import Assessment
from ragnb.assessment.judge import row_name
from ragnb.assessment.parts import Writer
from ragnb.markup import Safe, details, figure, join
from ragnb.report.judged import card_pictures


def pictures(sheet: Assessment) -> dict[str, Safe]:
    """Return the pictures of a sheet as HTML.

    Parameters
    ----------
    sheet : Assessment

    Returns
    -------
    dict of str to Safe
        ``radar, intervals, distribution, weights, judge``; empty where there is nothing to draw.

    Examples
    --------
    >>> import pandas as pd
    >>> from ragnb import assess
    >>> drawn = pictures(assess(pd.DataFrame({"faithfulness": [1.0, 0.8], "doc_name": ["a", "b"]})))
    >>> [bool(drawn[name]) for name in ("radar", "intervals", "distribution")]
    [False, True, True]
    """
    from ragnb import plots

    w = Writer(sheet)
    bounded = [w.metrics[name] or name for name in w.quality if w.span(name)]
    by = "system" if sheet.systems is not None else None
    doc_weights, documents = sheet.scenario.doc_weights, w.sheet.documents
    bars = {name: w.bars(name) for name in w.axes}
    rows: list[tuple[str, bool, Callable[..., Any], Any, dict[str, Any]]] = [
        ("radar", len(w.axes) > 2, plots.radar, w.sheet.means, {"metrics": w.axes}),
        ("intervals", bool(bars), plots.intervals, w.sheet.means, {"metrics": [*w.axes, *w.total], "bars": bars}),
        ("distribution", bool(bounded), plots.distribution, sheet.spread, {"metrics": bounded, "by": by}),
        ("weights", bool(doc_weights and w.total), plots.by_weight, documents, {"doc_weights": doc_weights}),
    ]
    drawn = {
        key: figure(plots.svg(draw(frame, lang=w.lang, **how)), w.say(f"report.{key}"))
        if there and frame is not None
        else Safe("")
        for key, there, draw, frame, how in rows
    }
    return drawn | {"judge": _judged(sheet.calibration)}


def _judged(card: Any) -> Safe:
    """The ±1 heat map and the bands of every judge and dimension; several unfold one by one."""
    if card is None:
        return Safe("")
    rows, charts = card.verdicts.to_dict("records"), ("judge_human", "band_shares")
    drawn = [card_pictures(card, row["judge"], row["dimension"], charts=charts) for row in rows]
    if len(rows) == 1:
        return drawn[0]
    return join(details(row_name(row), drawn[i], opened=not i) for i, row in enumerate(rows))
