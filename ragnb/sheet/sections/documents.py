"""Where the run is weak: documents by their pull on the overall score, and slices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ragnb.diagnostics.rules import past
from ragnb.markup import MISSING, count, one_line, signed
from ragnb.markup.blocks import Block, Mark, Section, Small, Table
from ragnb.schema import TOTAL, records
from ragnb.sheet.documents import DocumentMeans
from ragnb.sheet.formatter import Formatter, Row, Write, table_of
from ragnb.sheet.labels import label_stack
from ragnb.weights.conversations import turn_column

_MOST_DOCUMENTS = 30
_MOST_GROUPS = 8
_MOST_METRICS = 8


_LEAST_DOCUMENTS = 2  # below a threshold, that are a pattern
_LEAST_PULL = 0.01  # of a single document, that is worth a look
_WIDELY = 0.8  # of the documents: where a metric is low nearly everywhere, its head says so once


def documents(w: Formatter) -> Section | None:
    """Return documents by metrics, those that pull the overall score down most first, and the slices.

    Nothing where there is one document and no slice.
    """
    finding = w.say("section.documents")
    shown = _slices(w)
    means = next(iter(w.sheet.of_documents.values()), None)
    n = 0
    if means is not None and means.values[means.metrics].notna().any(axis=None):
        n = len(means.values)
    if means is not None and n > 1:
        pulls = means.pulls.head(_MOST_DOCUMENTS)
        first = str(pulls.index[0])
        finding = _pattern(w, means.values) or _single(w, first, pulls.iloc[0]) or finding
        shown = [_table(w, means, pulls.index.tolist()), *shown]
    if not shown:
        return None
    lead = w.say("documents.lead") if n > 1 else ""
    if n > _MOST_DOCUMENTS:
        lead += w.say("documents.rest", n=count(n - _MOST_DOCUMENTS))
    return w.section("documents", finding, lead, shown, count(n) if n else "")


def _pattern(w: Formatter, values: pd.DataFrame) -> str:
    """Return which metric is below its threshold in most documents; nothing where that is one document or none."""
    lows = {}
    for name in w.quality:
        means = values.get(name, pd.Series(dtype=float)).dropna()
        if w.thresholds(name) and len(means):
            is_low = past(means.to_numpy(), w.thresholds(name)[0][1], w.better[name])
            lows[name] = (int(np.sum(is_low)), len(means))
    name = max(lows, key=lambda one: lows[one][0], default="")
    if not name or lows[name][0] < _LEAST_DOCUMENTS:
        return ""
    low, n = lows[name]
    side = w.say("headline.below" if w.better[name] == "higher" else "headline.above")
    limit = w.limit(name, w.thresholds(name)[0][1])
    return w.say(
        "documents.pattern",
        metric=w.title(name),
        side=side,
        limit=limit,
        n=count(low),
        all=count(n),
    )


def _single(w: Formatter, name: str, pull: float) -> str:
    """Return how far the weakest document pulls the overall score down, where that is worth a look."""
    if pd.isna(pull):
        return ""
    if pull > -_LEAST_PULL:
        return w.say("documents.alike", by=f"{_LEAST_PULL:g}")
    return w.say("documents.pulls", name=one_line(name, 60), pull=signed(pull))


def _table(w: Formatter, of_documents: DocumentMeans, order: Sequence[str]) -> Table:
    """Return documents by their means."""
    # There may be a million documents: rows are made of those that are shown.
    rows = records(of_documents.table(set(order)))
    cells = {(row["document"], row["metric"]): row for row in rows}
    values = of_documents.values
    means = {name: values[name].dropna() for name in of_documents.metrics}
    means = {name: known for name, known in means.items() if len(known)}
    names = [name for name in w.quality or w.rates if name in means][:_MOST_METRICS]
    widely = {name for name in names if w.share_low(name, means[name]) >= _WIDELY}
    marks = {name: " ↓" * (w.better[name] == "lower") + " ■" * (name in widely) for name in names}
    counts = w.sheet.label_counts
    labels = {}
    if counts is not None:
        of_shown = (counts["slice"] == w.sheet.scenario.doc) & counts["group"].isin(order)
        labels = dict(iter(counts[of_shown].groupby("group")))

    def mean_of(name: str) -> Write:
        return lambda one: _cell(w, cells[one, name], name in widely)

    columns: list[tuple[str, Write]] = [(w.say("column.document"), lambda one: one_line(one, 80))]
    if TOTAL in means:
        columns.append((w.head(">documents.share"), lambda one: _share(cells[one, TOTAL]["share"])))
    if labels:
        stacks = {one: label_stack(w, rows) for one, rows in labels.items()}
        columns.append((w.say("section.outcomes"), lambda one: stacks.get(one, "")))
    columns += [(f">{w.title(name)}{mark}", mean_of(name)) for name, mark in marks.items()]
    if TOTAL in means:
        columns += [(f">{w.title(TOTAL)}", mean_of(TOTAL))]
        columns += [(w.head(">documents.pull"), lambda one: signed(cells[one, TOTAL]["pull"]))]
    return table_of(order, columns)


def _share(value: float) -> str:
    if pd.isna(value):
        return ""
    return f"{100 * value:.0f} %"


def _cell(w: Formatter, row: Row, plain: bool) -> object:
    """Write a mean; marked where it is below its threshold, unless the head says that nearly all are."""
    metric = row["metric"]
    value = row["value"]
    if pd.isna(value):
        return Small(w.kind_of_gap(row))
    text = w.value(metric, value)
    if not plain and w.is_low(metric, value):
        return Mark(w.tone(metric, value), text)
    return text


def _slices(w: Formatter) -> list[Block]:
    """Return one table a slice: the metrics by its groups, each mean with its interval and n."""
    shown = list[Block]()
    slices = w.sheet.slices
    if slices is None:
        return shown
    # Turns have a section of their own, where there are conversations.
    if w.sheet.turns is None:
        turn = None
    else:
        turn = turn_column(w.whole.scores)
    rest = slices[slices["slice"] != turn].fillna({"group": MISSING})
    for name, table in rest.groupby("slice", sort=False):
        groups = table["group"].unique().tolist()
        there = set(table.dropna(subset="value")["metric"])
        in_order = table["group"].isin(groups[:_MOST_GROUPS])
        cells = {
            (row["group"], row["metric"]): w.mean_cell(row) for row in records(table[in_order])
        }
        if len(groups) > _MOST_GROUPS:
            more = w.say("documents.groups_rest", n=len(groups) - _MOST_GROUPS)
        else:
            more = ""
        title = w.say("documents.slice", name=name, level=w.level) + more
        rows = tuple(
            (w.title(one), *(cells[group, one] for group in groups[:_MOST_GROUPS]))
            for one in [*w.total, *w.quality, *w.rates]
            if one in there
        )
        heads = (w.say("column.metric"), *(f">{group}" for group in groups[:_MOST_GROUPS]))
        shown.append(Table(heads, rows, folded=title))
    return shown
