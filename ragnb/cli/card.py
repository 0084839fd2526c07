"""A calibration card as a page of its own: the verdict, the charts of every judge and dimension, every number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragnb import markup, texts
from ragnb.markup import Safe, join

if TYPE_CHECKING:
    from ragnb.calibration import CalibrationCard


def card_page(card: CalibrationCard) -> Safe:
    """Return a card with its charts as a document that opens from a file, without network and without script."""
    from ragnb.assessment.judge import card_numbers, card_verdict, row_name, row_reasons
    from ragnb.report import card_pictures

    say = texts.load(card.lang)
    head = say("sheet.judge")
    parts: list[object] = [markup.heading(head, level=1, anchor="verdict"), card_verdict(card)]
    contents = [("verdict", head)]
    rows = card.verdicts.to_dict("records")
    for number, row in enumerate(rows, 1):
        name = row_name(row) if len(rows) > 1 else say("sheet.charts")
        parts += [markup.heading(name, anchor=f"part-{number}"), row_reasons(row) if len(rows) > 1 else ""]
        parts.append(card_pictures(card, row["judge"], row["dimension"]))
        contents.append((f"part-{number}", name))
    parts += [markup.heading(say("sheet.numbers"), anchor="numbers"), card_numbers(card)]
    return markup.page(head, join(parts), lang=card.lang, contents=[*contents, ("numbers", say("sheet.numbers"))])
