"""Where the uncertainty comes from, of a run that answered its questions, or judged its answers, several times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from ragnb.markup import count, ends, number, one_line, percent
from ragnb.markup.blocks import Block, Mark, Section
from ragnb.schema import TOTAL, records
from ragnb.sheet.formatter import Formatter, Write, table_of

if TYPE_CHECKING:
    from ragnb.weights import Noise


def noise(w: Formatter) -> Section | None:
    """Return the share of each source of uncertainty, and what to buy next; nothing without repeats."""
    split: Noise | None = w.whole.noise
    if split is None:
        return None
    # Of one metric alone: of the total where there is one, else of the first.
    metric = split.shares["metric"].iloc[0]
    if (split.shares["metric"] == TOTAL).any():
        metric = TOTAL
    shares = split.shares[split.shares["metric"] == metric]
    if shares["share"].isna().all():
        return None
    steps = split.steps[split.steps["metric"] == metric]
    blocks: list[Block | None] = [_shares(w, shares), _steps(w, steps, metric)]
    return w.section("noise", split.summary, _flickering(w, split), blocks)


def _system(w: Formatter, table: pd.DataFrame) -> list[tuple[str, Write]]:
    """Return the column of systems, as a list to put before others; empty where there are not several."""
    if "system" not in table:
        return []
    return [(w.say("column.system"), lambda row: one_line(row["system"], 60))]


def _shares(w: Formatter, table: pd.DataFrame) -> Block:
    """Return what part of the uncertainty comes from each source."""
    columns: list[tuple[str, Write]] = [
        *_system(w, table),
        (w.say("noise.source"), lambda row: w.say(f"noise.{row['source']}")),
        (w.head(">column.n"), lambda row: count(row["n"])),
        (w.head(">noise.share"), lambda row: percent(row["share"])),
        (w.head(">noise.interval"), lambda row: ends(row["low"], row["high"], percent=True)),
    ]
    return table_of(records(table), columns, caption=w.say("noise.caption"))


def _steps(w: Formatter, table: pd.DataFrame, metric: str) -> Block:
    """Return what more of each source would bring, the best mark on the one that brings most."""

    def after(row: dict[str, float]) -> object:
        written = number(row["se_after"])
        if row["best"]:
            return Mark("good", written)
        return written

    columns: list[tuple[str, Write]] = [
        *_system(w, table),
        (w.say("noise.spend_on"), lambda row: w.say(f"noise.{row['spend_on']}")),
        (w.head(">noise.more"), lambda row: count(round(row["more"]))),
        (w.head(">noise.se_now"), lambda row: number(row["se_now"])),
        (w.head(">noise.se_after"), after),
    ]
    caption = w.say("noise.steps_caption", metric=w.name(metric))
    return table_of(records(table), columns, caption=caption)


def _flickering(w: Formatter, split: Noise) -> str:
    """Say how many questions are right in some runs only, of the first metric whose right answers are known."""
    table = split.questions.dropna(subset=["n_right"])
    if table.empty:
        return w.say("noise.lead")
    metric = table["metric"].iloc[0]
    rows_of_metric = table[table["metric"] == metric]
    n = int(rows_of_metric["flickers"].sum())
    words = {"n": count(n), "all": count(len(rows_of_metric)), "metric": w.name(metric)}
    return w.say("noise.lead") + w.say("noise.flicker", **words)
