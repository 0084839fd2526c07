"""Where the run is weak: documents by their pull on the overall score, and the slices."""

from __future__ import annotations

import pandas as pd

from ragnb import markup
from ragnb.markup import one_line
from ragnb.markup.blocks import Block, Mark, Section, Small, Table
from ragnb.schema import records
from ragnb.sheet.formatter import TOTAL, Formatter, Row
from ragnb.sheet.sections.outcomes import label_stack

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
