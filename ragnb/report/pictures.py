"""The pictures of a report: those that a sheet can fill, each under a sentence on how to read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ragnb.assessment.judge import row_name
from ragnb.assessment.parts import Writer
from ragnb.markup import Safe, details, figure, join
from ragnb.report.judged import card_pictures

if TYPE_CHECKING:
    from ragnb.assessment import Assessment


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
    w = Writer(sheet)
    axes = [name for name in w.quality or w.rates if w.span(name)]
    bounded: list[Any] = [w.metrics[name] or name for name in w.quality if w.span(name)]
    by = "system" if sheet.systems is not None else None
    return {
        "radar": _picture(w, "radar", lambda draw: draw.radar(sheet.means, metrics=axes, lang=w.lang))
        if len(axes) > 2
        else Safe(""),
        "intervals": _picture(
            w,
            "intervals",
            lambda draw: draw.intervals(
                sheet.means, metrics=[*axes, *w.total], bars={name: w.bars(name) for name in axes}, lang=w.lang
            ),
        )
        if axes
        else Safe(""),
        "distribution": _picture(
            w, "distribution", lambda draw: draw.distribution(sheet.spread, bounded, by=by, lang=w.lang)
        )
        if bounded
        else Safe(""),
        "weights": _picture(
            w,
            "weights",
            lambda draw: draw.by_weight(sheet.documents, sheet.scenario.doc_weights, lang=w.lang),
        )
        if sheet.documents is not None and sheet.scenario.doc_weights and w.total
        else Safe(""),
        "judge": _judged(sheet.calibration),
    }


def _judged(card: Any) -> Safe:
    """The ±1 heat map and the bands of every judge and dimension; several unfold one by one."""
    if card is None:
        return Safe("")
    rows = card.verdicts.to_dict("records")
    drawn = [
        card_pictures(card, row["judge"], row["dimension"], charts=("judge_human", "band_shares")) for row in rows
    ]
    if len(rows) == 1:
        return drawn[0]
    named = enumerate(zip(rows, drawn, strict=True))
    return join(details(row_name(row), picture, opened=not i) for i, (row, picture) in named)


def _picture(w: Writer, key: str, draw: Callable[[Any], Any]) -> Safe:
    from ragnb import plots

    return figure(plots.svg(draw(plots)), w.say(f"report.{key}"))
