"""Whether the judge can be trusted, by labels of people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragnb import markup
from ragnb.calibration.card import parts
from ragnb.calibration.words import TONES
from ragnb.markup import MISSING, number, percent
from ragnb.markup.blocks import Estimate, Mark, Section, Small, Table, Text
from ragnb.schema import records
from ragnb.sheet.formatter import Formatter, Row


def judge(w: Formatter) -> Section | None:
    """Return the verdict of the calibration; nothing without labels of people, which a note says."""
    card = w.sheet.calibration
    if card is None:
        return None
    first, *rest = card.reasons
    rows = records(card.verdicts)
    target = ((w.say("judge_trust.target"), card.target),)

    def ends(row: Row) -> str:
        return markup.ends(row["low"], row["high"], percent=True)

    def drawn(row: Row) -> Estimate:
        values = (row["share"], row["low"], row["high"])
        span = (0.0, 1.0)
        return Estimate(percent(row["share"]), ends(row), *values, span, target, text=row_name(row))

    def bias(row: Row) -> tuple[Any, ...]:
        low = number(row["bias_low"])
        high = number(row["bias_high"])
        return number(row["bias"]), Small("" if low == MISSING else f"{low} … {high}")

    table = w.table(
        rows,
        {
            "judge_trust.dimension": row_name,
            "judge_trust.verdict": lambda row: Mark(
                TONES[row["verdict"]], ", ".join([row["verdict"], *row["sides"]])
            ),
            ">judge_trust.within": lambda row: (percent(row["share"]), Small(ends(row))),
            "measures.scale": drawn,
            ">judge_trust.bias": bias,
            ">judge_trust.n": lambda row: str(row["n"]),
        },
        cards=True,
    )
    why = tuple(
        (f"{row_name(row)}: {row['verdict']}", Small(" ".join(row["reasons"]))) for row in rows
    )
    bands = [
        (part.name, block) for part in parts(card) if part.key == "bands" for block in part.blocks
    ]
    shown = [
        Text(tuple(rest), "list") if rest else None,
        table,
        Text(why, "list") if len(rows) > 1 else None,
        *(block._replace(folded=name) for name, block in bands if isinstance(block, Table)),
        Text((w.say("judge_trust.rest"),), "note"),
    ]
    return w.section(
        "judge", first, w.say("judge_trust.lead"), shown, Mark(TONES[card.verdict], card.verdict)
    )


def row_name(row: Mapping[Any, Any]) -> str:
    """Return what a row of the verdicts is called; a judge that is only called ``judge`` needs no name."""
    names = [row["judge"]] * (row["judge"] != "judge") + [row["dimension"]] * (
        row["dimension"] != "all"
    )
    return " · ".join(map(str, names)) or str(row["judge"])
