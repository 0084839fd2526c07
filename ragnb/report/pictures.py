"""The pictures of a report: those that a sheet or a card can fill, each under a sentence on how to read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ragnb import texts
from ragnb.sheet import Assessment
from ragnb.sheet.judge import row_name
from ragnb.sheet.parts import Writer
from ragnb.markup import Safe, details, figure, join

CHARTS = {
    "judge_human": "counts",
    "band_shares": "bands",
    "bias_by": "inflation",
    "reliability": "reliability",
    "bland_altman": "counts",
    "corrected_means": "corrected",
    "label_budget": "budget",
}
"""A function of `ragnb.plots` → the frame of the card that it draws, in reading order."""


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


def card_pictures(card: Any, judge: str, dimension: str, *, charts: Sequence[str] = tuple(CHARTS)) -> Safe:
    """Return charts of one judge on one dimension as HTML; a chart without rows is left out.

    Parameters
    ----------
    card : CalibrationCard
    judge, dimension : str
        A row of ``card.verdicts``.
    charts : sequence of str
        Which, by the names of the functions in `ragnb.plots`.

    Examples
    --------
    >>> import pandas as pd
    >>> from ragnb import calibrate
    >>> card = calibrate(pd.DataFrame({"judge": [4, 5, 2, 1] * 5, "human": [5, 5, 2, 1] * 5}), scale=(1, 5))
    >>> card_pictures(card, "judge", "all", charts=["judge_human"])[:8]
    '<figure>'
    """
    from ragnb import plots

    say = texts.load(card.lang)
    parts = []
    for name in charts:
        frame = getattr(card, CHARTS[name])
        if ((frame["judge"] == judge) & (frame["dimension"] == dimension)).any():
            draw: Callable[..., Any] = getattr(plots, name)
            picture = plots.svg(draw(card, judge=judge, dimension=dimension))
            parts.append(figure(picture, say(f"report.{name}")))
    return join(parts)
