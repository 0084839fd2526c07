"""Whether the judge can be trusted, by labels of people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragnb import markup
from ragnb.calibration.card import parts
from ragnb.calibration.words import TONES
from ragnb.markup import MISSING, number, percent
from ragnb.markup.blocks import Block, Estimate, Mark, Section, Small, Table, Text
from ragnb.schema import records
from ragnb.sheet.formatter import Formatter, Row, Write


def judge(w: Formatter) -> Section | None:
    """Return the verdict of the calibration; nothing without labels of people, which a note says."""
    card = w.sheet.calibration
    if card is None:
        return None
    finding, *rest = card.reasons
    rows = records(card.verdicts)
    table = _verdict_table(w, rows, card.target)
    shown: list[Block | None] = []
    if rest:
        shown.append(Text(tuple(rest), "list"))
    shown.append(table)
    # Of a single judge and dimension the reasons of the card are all there is.
    if len(rows) > 1:
        reasons = [
            (f"{row_name(row)}: {row['verdict']}", Small(" ".join(row["reasons"]))) for row in rows
        ]
        shown.append(Text(tuple(reasons), "list"))
    for part in parts(card):
        if part.key == "bands":
            tables = [block for block in part.blocks if isinstance(block, Table)]
            shown += [block._replace(folded=part.name) for block in tables]
    shown.append(Text((w.say("judge_trust.rest"),), "note"))
    badge = Mark(TONES[card.verdict], card.verdict)
    return w.section("judge", finding, w.say("judge_trust.lead"), shown, badge)


def _verdict_table(w: Formatter, rows: list[dict[Any, Any]], at: float) -> Table:
    """Return the verdicts: agreement beside the target `at`, and bias, of each judge and dimension."""
    target = ((w.say("judge_trust.target"), at),)

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

    def verdict(row: Row) -> Mark:
        return Mark(TONES[row["verdict"]], ", ".join([row["verdict"], *row["sides"]]))

    columns: dict[str, Write] = {
        "judge_trust.dimension": row_name,
        "judge_trust.verdict": verdict,
        ">judge_trust.within": lambda row: (percent(row["share"]), Small(ends(row))),
        "measures.scale": drawn,
        ">judge_trust.bias": bias,
        ">judge_trust.n": lambda row: str(row["n"]),
    }
    return w.table(rows, columns, cards=True)


def row_name(row: Mapping[Any, Any]) -> str:
    """Return what a row of the verdicts is called; a judge that is only called ``judge`` needs no name."""
    names = []
    if row["judge"] != "judge":
        names.append(str(row["judge"]))
    if row["dimension"] != "all":
        names.append(str(row["dimension"]))
    return " · ".join(names) or str(row["judge"])
