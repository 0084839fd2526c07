"""Every metric in one row, the overall score first, and what the answers took."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragnb.inputs.operations import ERRORS
from ragnb.markup import amount, amounts, blocks, count
from ragnb.markup.blocks import Mark, Section, Small, Table
from ragnb.schema import TOTAL, records
from ragnb.sheet.formatter import Formatter, Row, Write
from ragnb.sheet.kinds import FAILED, kind_of
from ragnb.sheet.operations import STATISTICS
from ragnb.sheet.standing import standing
from ragnb.weights import why_no_total


def metrics(w: Formatter) -> Section | None:
    """Return the metrics with the overall score first, the rates folded below."""
    names = [*w.total, *w.quality]
    # Without gold most rates say nothing; they are rows only where all do.
    rates_shown = [name for name in w.rates if w.known(name)] or w.rates
    if not names and not rates_shown:
        return None
    folded = w.say("measures.rates", n=len(rates_shown)) if names else ""
    shown = [
        measures(w, names),
        measures(w, rates_shown, folded),
        _operations(w),
    ]
    key = "measures.lead_weighted" if w.sheet.scenario.doc_weights else "measures.lead"
    lead = w.say(key, level=w.level)
    if kind_of(w) == FAILED:  # what is left of the scores is no verdict
        if not any(map(w.known, names or rates_shown)):
            return None
        return w.section("metrics", w.say("measures.so_far"), lead, shown)
    found = standing(w)
    badge: Mark | str = ""
    if found.low:
        badge = Mark(found.tone, w.say("measures.low", n=found.low))
    return w.section("metrics", found.finding, lead, shown, badge)


def _operations(w: Formatter) -> Table | None:
    """Return what the answers took: latency, tokens, cost, errors. A log has its own table by day."""
    table = w.sheet.operations
    if table is None or w.sheet.log is not None:
        return None

    def estimate(statistic: str) -> Write:
        def written(row: Row) -> tuple[str, Small]:
            ends = amounts(row[f"{statistic}_low"], row[f"{statistic}_high"])
            return amount(row[statistic]), Small(ends)

        return written

    def name(row: Row) -> tuple[str, Small]:
        if row["metric"] != ERRORS:
            return row["metric"], Small("")
        return row["metric"], Small(w.say("operations.errors"))

    columns: dict[str, Write] = {
        "operations.column": name,
        ">column.n": lambda row: count(row["n"]),
        **{f">operations.{statistic}": estimate(statistic) for statistic in STATISTICS},
    }
    caption = w.say("operations.caption", level=w.level)
    return w.table(records(table), columns, caption=caption)


def measures(w: Formatter, names: list[str], folded: str = "") -> Table | None:
    """Return a table of metrics, a row each; nothing where there is none."""
    if not names:
        return None
    keys = ("metric", "weight", "n", "mean", "scale", "bins")
    heads = tuple(w.head(f"measures.{key}") for key in keys)
    return Table(heads, tuple(measure(w, name) for name in names), folded=folded)


def measure(w: Formatter, metric: str) -> blocks.Measure:
    """Return the row of one metric."""
    row = w.rows[metric]
    about = [w.gloss(metric)]
    if metric == TOTAL:
        bands = ", ".join(f"{name} ≥ {at:g}" for name, at in w.thresholds(TOTAL))
        about = ["; ".join(part for part in (w.say("measures.total"), bands) if part)]
    if w.better[metric] == "lower":
        about.append(w.say("chart.lower"))
    lacking = {kind: int(row[f"n_{kind}"]) for kind in ("missing", "failed", "not_applicable")}
    rest = w.list(f"{count(n)} {w.say(f'column.{kind}')}" for kind, n in lacking.items() if n)
    why = _why_no_mean(w, metric)
    return blocks.Measure(
        name=w.title(metric),
        code=metric,
        gloss=" ".join(part for part in about if part),
        weight="" if pd.isna(row["weight"]) else f"{row['weight']:g}",
        n=int(row["n"]),
        all=int(row["n"]) + sum(lacking.values()),
        rest=rest,
        estimate=w.estimate(metric, row, thresholds=w.thresholds(metric)),
        histogram=histogram(w, metric),
        missing=why,
        counted="" if why else w.counted(row),
    )


def _why_no_mean(w: Formatter, metric: str) -> str:
    """Return why a metric has no mean; nothing where it has one."""
    if w.known(metric):
        return ""
    if metric == TOTAL:
        return why_no_total(w.sheet.means, lang=w.lang) or w.say("sheet.nothing_to_add")
    return w.kind_of_gap(w.rows[metric])


def histogram(w: Formatter, metric: str) -> blocks.Histogram | None:
    """Return how the scores of a metric spread over its range; a bar below its threshold is marked."""
    rows = w.sheet.spread[w.sheet.spread["metric"] == metric]
    if not rows["n"].sum():
        return None
    low = int(rows["n_low"].iloc[0])
    high = int(rows["n_high"].iloc[0])
    # The tenths hold the very ends, too, which have bars of their own.
    between = rows["n"].tolist()
    between[0] -= low
    between[-1] -= high
    # The slack is for edges that are not exact in binary; nan, without a threshold, marks no bar.
    limit = next((at for _, at in w.thresholds(metric)), np.nan)
    if w.better[metric] == "higher":
        below = rows["bin_high"] <= limit + 1e-9
    else:
        below = rows["bin_low"] >= limit - 1e-9
    return blocks.Histogram(low, tuple(between), high, tuple(below.tolist()))
