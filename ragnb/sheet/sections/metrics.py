"""Every metric in one row, and where it is weak: documents by their pull on the overall score, and slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ragnb import markup, texts
from ragnb.markup import one_line
from ragnb.markup.blocks import Block, Histogram, Mark, Measure, Measures, Picture, Section, Small, Table
from ragnb.schema import records
from ragnb.sheet.formatter import TOTAL, Formatter, Row
from ragnb.sheet.sections.outcomes import label_stack
from ragnb.weights import why_no_total

_MOST_DOCUMENTS, _MOST_GROUPS, _MOST_METRICS = 30, 8, 8
_WIDELY = 0.8  # of the documents: where a metric is low nearly everywhere, its head says so once


def documents(w: Formatter) -> Section | None:
    """Return documents by metrics and the slices; nothing where there is one document and no slice."""
    table, finding = w.sheet.documents, w.say("section.documents")
    blocks: list[Block] = []
    n = 0 if table is None else table["document"].nunique()
    if table is not None and n > 1:
        order, finding = _order(w, table)
        blocks.append(_table(w, table, order[:_MOST_DOCUMENTS]))
    blocks += _slices(w)
    if not blocks:
        return None
    lead = w.say("documents.lead") if n > 1 else ""
    if n > _MOST_DOCUMENTS:
        lead += w.say("documents.rest", n=markup.count(n - _MOST_DOCUMENTS))
    badge = markup.count(n) if n else ""
    return Section("documents", w.say("section.documents"), finding, lead, tuple(blocks), badge, w.lang)


def _order(w: Formatter, table: pd.DataFrame) -> tuple[list[str], str]:
    """Return the documents, those that pull the overall score down most first, and what that shows."""
    totals = table[table["metric"] == TOTAL]
    if totals["pull"].notna().any():
        rows = totals.sort_values("pull", kind="stable", na_position="last")
        order, pull = rows["document"].tolist(), float(rows["pull"].iloc[0])
        key = "documents.pulls" if pull < 0 else "documents.alike"
        return order, w.say(key, name=one_line(order[0], 60), pull=_signed(pull))
    return sorted(table["document"].unique()), w.say("section.documents")


def _signed(value: float) -> str:
    return ("−" if value < 0 else "+") + markup.number(abs(value))


def _table(w: Formatter, table: pd.DataFrame, order: list[str]) -> Table:
    cells = {(row["document"], row["metric"]): row for row in records(table)}
    there = set(table.loc[table["value"].notna(), "metric"])
    names = [name for name in w.quality or w.rates if name in there][:_MOST_METRICS]
    means = {name: table.loc[table["metric"] == name, "value"].dropna() for name in names}
    low = {name: sum(w.tone(name, value) in ("watch", "bad") for value in some) for name, some in means.items()}
    widely = {name for name in names if low[name] >= _WIDELY * len(means[name])}
    counts = w.sheet.label_counts
    labels = {} if counts is None else dict(list(counts[counts["slice"] == w.sheet.scenario.doc].groupby("group")))
    pulled = TOTAL in there
    heads = [w.say("column.document")] + [f">{w.say('documents.share')}"] * pulled
    heads += [w.say("section.outcomes")] * bool(labels)
    marks = {name: " ↓" * (w.better[name] == "lower") + " ■" * (name in widely) for name in names}
    heads += [f">{w.title(name)}{mark}" for name, mark in marks.items()]
    heads += [f">{w.title(TOTAL)}", f">{w.say('documents.pull')}"] * pulled
    rows = []
    for one in order:
        cell, total = {name: cells[one, name] for name in names}, cells[one, TOTAL]
        row: list[object] = [one_line(one, 80)]
        row += [f"{100 * total['share']:.0f} %" if total["share"] == total["share"] else ""] * pulled
        row += [label_stack(w, labels[one]) if one in labels else ""] * bool(labels)
        row += [_cell(w, name, cell[name], name in widely) for name in names]
        if pulled:
            row += [_cell(w, TOTAL, total, False), "" if pd.isna(total["pull"]) else _signed(float(total["pull"]))]
        rows.append(tuple(row))
    return Table(tuple(heads), tuple(rows))


def _cell(w: Formatter, metric: str, row: Row, plain: bool) -> object:
    """Write a mean; marked where it is below its threshold, unless the head says that nearly all are."""
    if pd.isna(row["value"]):
        return Small(w.kind_of_gap(row))
    tone = "" if plain else w.tone(metric, row["value"])
    text = w.value(metric, row["value"])
    return Mark(tone, text) if tone in ("watch", "bad") else text


def _slices(w: Formatter) -> list[Block]:
    """Return one table a slice: the metrics by its groups, each mean with its interval and n."""
    out: list[Block] = []
    if w.sheet.slices is None:
        return out
    for name, table in w.sheet.slices.fillna({"group": markup.MISSING}).groupby("slice", sort=False):
        cells = {(row["group"], row["metric"]): row for row in records(table)}
        groups = table["group"].unique().tolist()
        there = set(table.loc[table["value"].notna(), "metric"])
        names = [one for one in [*w.total, *w.quality, *w.rates] if one in there]
        shown = groups[:_MOST_GROUPS]
        rows = tuple((w.title(one), *(mean(w, one, cells[group, one]) for group in shown)) for one in names)
        rest = w.say("documents.groups_rest", n=len(groups) - _MOST_GROUPS) if len(groups) > _MOST_GROUPS else ""
        title = w.say("documents.slice", name=name, level=w.level) + rest
        out.append(Table((w.say("column.metric"), *(f">{group}" for group in shown)), rows, folded=title))
    return out


def mean(w: Formatter, metric: str, row: Row) -> tuple[object, ...]:
    """Return a mean with its interval and n below it."""
    n = w.say("chart.n", n=markup.count(row["n"]))
    if pd.isna(row["value"]):
        return markup.MISSING, Small(w.kind_of_gap(row))
    return w.value(metric, row["value"]), Small(" · ".join(filter(None, [w.ends(metric, row), n])))


def metrics(w: Formatter) -> Section | None:
    """Return the metrics with the overall score first, the rates folded below."""
    names = [*w.total, *w.quality]
    keys = ("metric", "weight", "n", "mean", "scale", "bins")
    heads = tuple(w.say(f"measures.{key}", level=w.level) for key in keys)
    blocks: list[Block] = [Measures(heads, tuple(measure(w, name) for name in names))] if names else []
    ring = radar(w) if w.whole.systems is None and w.sheet.comparison is None else None
    blocks += [ring] if isinstance(ring, Picture) else []
    # Without gold most rates say nothing; they are rows only where all do.
    told = [name for name in w.rates if not pd.isna(w.rows[name]["value"])] or w.rates
    rates = tuple(measure(w, name) for name in told)
    folded = w.say("measures.rates", n=len(rates)) if names else ""
    blocks += [Measures(heads, rates, folded)] if rates else []
    if not blocks:
        return None
    finding, low = metrics_finding(w)
    lead = w.say("measures.lead_weighted" if w.sheet.scenario.doc_weights else "measures.lead", level=w.level)
    badge = Mark("bad", w.say("measures.low", n=low)) if low else ""
    return Section("metrics", w.say("section.metrics"), finding, lead, tuple(blocks), badge, w.lang)


def measure(w: Formatter, metric: str) -> Measure:
    """Return the row of one metric."""
    row, about = w.rows[metric], w.gloss(metric)
    lower, why = w.say("chart.lower") if w.better[metric] == "lower" else "", w.kind_of_gap(row)
    if metric == TOTAL:
        why = why_no_total(w.sheet.means, lang=w.lang) or w.say("sheet.nothing_to_add")
        bands = ", ".join(f"{name} ≥ {at:g}" for name, at in w.thresholds(TOTAL))
        about = "; ".join(filter(None, [w.say("measures.total"), bands]))
    missing = pd.isna(row["value"])
    return Measure(
        w.title(metric), metric, " ".join(filter(None, [about, lower])),
        "" if pd.isna(row["weight"]) else f"{row['weight']:g}", w.coverage(row),
        w.estimate(metric, row, thresholds=w.thresholds(metric)), histogram(w, metric),
        why if missing else "", "" if missing else w.counted(row),
    )  # fmt: skip


def histogram(w: Formatter, metric: str) -> Histogram | None:
    """Return how the scores of a metric spread over its range; a bar below its threshold is marked."""
    rows = w.sheet.spread[w.sheet.spread["metric"] == metric]
    if not len(rows) or not rows["n"].sum():
        return None
    low, high = int(rows["n_low"].iloc[0]), int(rows["n_high"].iloc[0])
    between = rows["n"].to_list()
    between[0] -= low
    between[-1] -= high
    limit, ends = next((at for _, at in w.thresholds(metric)), None), rows[["bin_low", "bin_high"]].to_numpy()
    higher, limit = w.better[metric] == "higher", np.nan if limit is None else limit
    below = ends[:, 1] <= limit + 1e-9 if higher else ends[:, 0] >= limit - 1e-9
    return Histogram(low, tuple(map(int, between)), high, tuple(below.tolist()))


def metrics_finding(w: Formatter) -> tuple[str, int]:
    """Return the finding and how many metrics are beyond their threshold; conclusive where whole intervals are."""
    scored = [name for name in w.quality or w.rates if not pd.isna(w.rows[name]["value"])]
    judged = [name for name in scored if w.thresholds(name)]
    low = [name for name in judged if w.tone(name, w.rows[name]["value"]) in ("watch", "bad")]
    if not scored:
        return w.say("measures.nothing"), 0
    if not judged:
        return texts.counted(w.say, "measures.no_thresholds", len(scored)), 0
    if not low:
        return w.say("measures.none_low"), 0
    near = {name: w.rows[name]["high" if w.better[name] == "higher" else "low"] for name in low}
    sides = {name: 1 if w.better[name] == "higher" else -1 for name in low}
    sure = [name for name in low if sides[name] * (w.thresholds(name)[0][1] - near[name]) > 0]
    if not sure:
        return w.say("measures.maybe", names=w.list(map(w.title, low))), len(low)
    key = "only" if len(sure) == len(low) == 1 and len(judged) > 1 else "one" if len(sure) == 1 else "some"
    finding = w.say(f"measures.{key}", names=w.list(map(w.name, sure)), n=len(sure))
    return finding[:1].upper() + finding[1:], len(low)


def radar(w: Formatter) -> Picture | None:
    """Return the means as a radar; none where it shows nothing that the table does not."""
    values: dict[str, list[Any]]
    changed = w.sheet.comparison
    axes = [name for name in w.axes if not pd.isna(w.rows[name]["value"])]
    if w.whole.systems is not None:
        table = w.whole.systems if w.whole.common is None else w.whole.common
        cells = {(row["system"], row["metric"]): row["value"] for row in records(table)}
        values = {str(one): [cells[one, name] for name in axes] for one in dict.fromkeys(table["system"])}
    elif changed is not None and changed["candidate"].nunique() == 1:
        rows = {row["metric"]: row for row in records(changed) if row["n_common"]}
        axes = [name for name in axes if name in rows]
        names = [changed[role].iloc[0] for role in ("candidate", "baseline")]
        parts = zip(names, ("candidate_mean", "baseline_mean"), strict=True)
        values = {name: [rows[axis][key] for axis in axes] for name, key in parts}
    else:
        axes = [name for name in axes if w.thresholds(name)]
        means = [w.rows[name]["value"] for name in axes]
        values = {w.say("radar.means"): means, w.say("radar.thresholds"): [w.thresholds(n)[0][1] for n in axes]}
    if len(axes) < 3 or len(values) > len(markup.SYSTEM_COLOURS):
        return None
    label = w.say("radar.label", names=w.list(values, most=5))
    picture = markup.radar_svg(
        [w.title(name) for name in axes], values, label=label, radius=105, lang=w.lang,
        ranges={w.title(name): w.scales[name] for name in axes},
        better={w.title(name): w.better[name] for name in axes},
    )  # fmt: skip
    return Picture(picture, label)
