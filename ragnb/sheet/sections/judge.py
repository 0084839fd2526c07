"""Whether the judge can be trusted: the verdict of its calibration against human labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from ragnb import markup
from ragnb.calibration import CalibrationCard, calibrate, judge_columns
from ragnb.calibration.card import TONES, parts
from ragnb.errors import RagnbError, listing
from ragnb.markup.blocks import Block, Estimate, Mark, Section, Small, Table, Text
from ragnb.scenario import Scenario
from ragnb.schema import METRICS, records
from ragnb.sheet.formatter import Formatter, Row


def judge(w: Formatter) -> Section | None:
    """Return the verdict of the calibration; without human labels, that nobody can say."""
    card = w.sheet.calibration
    if card is None:
        if not w.quality:
            return None
        known = [METRICS[name].family for name in w.quality if name in METRICS]
        lexical = len(known) == len(w.quality) and set(known) == {"wording"}
        finding = w.say("judge_trust.no_judge" if lexical else "judge_trust.unvalidated")
        text = () if lexical else (Text((w.say("judge_trust.unvalidated_why"),)),)
        badge = w.say("judge_trust.no_labels")
        return Section("judge", w.say("section.judge"), finding, "", text, badge, w.lang)
    first, *rest = card.reasons
    rows = records(card.verdicts)
    heads = [w.say(f"judge_trust.{key}", level=w.level) for key in ("dimension", "verdict", "within", "bias", "n")]
    table = Table(
        (heads[0], heads[1], f">{heads[2]}", w.say("measures.scale"), f">{heads[3]}", f">{heads[4]}"),
        tuple(_row(w, row) for row in rows), cards=True,
    )  # fmt: skip
    blocks: list[Block] = [Text(tuple(rest), "list"), table] if rest else [table]
    if len(rows) > 1:
        why = tuple((f"{row_name(row)}: {row['verdict']}", Small(" ".join(row["reasons"]))) for row in rows)
        blocks.append(Text(why, "list"))
    bands = [(part.name, block) for part in parts(card) if part.key == "bands" for block in part.blocks]
    blocks += [replace(block, folded=name) for name, block in bands if isinstance(block, Table)]
    blocks.append(Text((w.say("judge_trust.rest"),), "note"))
    mark = Mark(TONES[card.verdict], card.verdict)
    return Section("judge", w.say("section.judge"), first, w.say("judge_trust.lead"), tuple(blocks), mark, w.lang)


def _row(w: Formatter, row: Row) -> tuple[Any, ...]:
    card = w.sheet.calibration
    value, low, high = (float(row[key]) for key in ("share", "low", "high"))
    ends = "" if pd.isna(low) else f"{markup.percent(low).removesuffix(' %')}–{markup.percent(high)}"
    target = ((w.say("judge_trust.target"), card.target),)
    drawn = Estimate(markup.percent(value), ends, value, low, high, (0, 1), target, text=row_name(row))
    bias = markup.number(row["bias"])
    beside = f"{markup.number(row['bias_low'])} … {markup.number(row['bias_high'])}"
    mark = Mark(TONES[row["verdict"]], ", ".join([row["verdict"], *row["sides"]]))
    off = (bias, Small("" if pd.isna(row["bias_low"]) else beside))
    return row_name(row), mark, (markup.percent(value), Small(ends)), drawn, off, str(row["n"])


def calibrated(
    scenario: Scenario, ratings: pd.DataFrame | None, *, judge: Sequence[str] = (), scale: Any = None, **asked: Any
) -> CalibrationCard | None:
    """Return the card of a run's ratings; by default on the scale of the metrics that their dimensions are."""
    if ratings is None:
        return None
    judges = judge_columns(ratings, judge)
    if not judges:
        raise RagnbError(
            f"ratings: {scenario.ratings} holds no scores of a judge (columns: {listing(ratings.columns)}); "
            "join them first, and name what ragnb.read_ratings(…, judged=…) gives"
        )
    names: list[str] = ratings["dimension"].unique().tolist() if "dimension" in ratings else []
    known = [scenario.declared.get(name) or METRICS.get(name) for name in names]
    ranges = {(metric.low, metric.high) if metric else None for metric in known}
    scale = scale or (ranges.pop() if len(ranges) == 1 else None)
    cluster = scenario.cluster if scenario.cluster in ratings else "cluster"
    how: dict[str, Any] = {name: getattr(scenario, name) for name in ("labels_planned", "level", "lang")}
    return calibrate(ratings, judge=judges, scale=scale, cluster=cluster, **how, **asked)


def row_name(row: Mapping[Any, Any]) -> str:
    """Return what a row of the verdicts is called; a judge that is only called ``judge`` needs no name."""
    names = [row["judge"]] * (row["judge"] != "judge") + [row["dimension"]] * (row["dimension"] != "all")
    return " · ".join(map(str, names)) or str(row["judge"])
