"""Where the run is weak: documents by their pull on the overall score, and slices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ragnb.diagnostics.rules import past
from ragnb.markup import MISSING, count, one_line, signed
from ragnb.markup.blocks import Block, Mark, Section, Small, Stack, Table
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
    # Of the one system that is shown, see `Assessment.of_system`.
    means = next(iter(w.sheet.of_documents.values()), None)
    n = 0
    if means is not None and means.values[means.metrics].notna().any(axis=None):
        n = len(means.values)
    if means is not None and n > 1:
        pulls = means.pulls.head(_MOST_DOCUMENTS)
        weakest = str(pulls.index[0])
        # A pattern over documents says more than the pull of one of them.
        finding = _pattern(w, means.values) or _single(w, weakest, pulls.iloc[0]) or finding
        shown = [_table(w, means, pulls.index.tolist()), *shown]
    if not shown:
        return None
    lead = w.say("documents.lead") if n > 1 else ""
    if n > _MOST_DOCUMENTS:
        lead += w.say("documents.rest", n=count(n - _MOST_DOCUMENTS))
    return w.section("documents", finding, lead, shown, count(n) if n else "")


def _pattern(w: Formatter, values: pd.DataFrame) -> str:
    """Return which metric is below its threshold in most documents; nothing where that is one document or none."""
    n_low = dict[str, int]()
    n_known = dict[str, int]()
    for name in w.quality:
        means = values.get(name, pd.Series(dtype=float)).dropna()
        if w.thresholds(name) and len(means):
            is_low = past(means.to_numpy(), w.thresholds(name)[0][1], w.better[name])
            n_low[name] = int(np.sum(is_low))
            n_known[name] = len(means)
    name = max(n_low, key=lambda metric: n_low[metric], default="")
    if not name or n_low[name] < _LEAST_DOCUMENTS:
        return ""
    side = "headline.below" if w.better[name] == "higher" else "headline.above"
    return w.say(
        "documents.pattern",
        metric=w.title(name),
        side=w.say(side),
        limit=w.limit(name, w.thresholds(name)[0][1]),
        n=count(n_low[name]),
        all=count(n_known[name]),
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
    stacks = _stacks(w, order)

    def head_of(name: str) -> str:
        turned = " ↓" if w.better[name] == "lower" else ""
        low = " ■" if name in widely else ""
        return f">{w.title(name)}{turned}{low}"

    def mean_of(name: str) -> Write:
        return lambda document: _cell(w, cells[document, name], name in widely)

    def share(document: str) -> str:
        return _share(cells[document, TOTAL]["share"])

    def pull(document: str) -> str:
        return signed(cells[document, TOTAL]["pull"])

    columns: list[tuple[str, Write]] = [
        (w.say("column.document"), lambda document: one_line(document, 80))
    ]
    if TOTAL in means:
        columns.append((w.head(">documents.share"), share))
    if stacks:
        columns.append((w.say("section.outcomes"), lambda document: stacks.get(document, "")))
    columns += [(head_of(name), mean_of(name)) for name in names]
    if TOTAL in means:
        columns.append((f">{w.title(TOTAL)}", mean_of(TOTAL)))
        columns.append((w.head(">documents.pull"), pull))
    return table_of(order, columns)


def _stacks(w: Formatter, documents: Sequence[str]) -> dict[str, Stack]:
    """Return the labels of the answers by document; empty where no answer has one."""
    counts = w.sheet.label_counts
    if counts is None:
        return {}
    of_shown = (counts["slice"] == w.sheet.scenario.doc) & counts["group"].isin(documents)
    return {name: label_stack(w, rows) for name, rows in counts[of_shown].groupby("group")}


def _share(value: float) -> str:
    """Write what a document weighs in the overall score, in whole per cent."""
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
    turn = None
    if w.sheet.turns is not None:
        turn = turn_column(w.whole.scores)
    rest = slices[slices["slice"] != turn].fillna({"group": MISSING})
    for name, table in rest.groupby("slice", sort=False):
        shown.append(_slice(w, str(name), table))
    return shown


def _slice(w: Formatter, name: str, means: pd.DataFrame) -> Table:
    """Return the means of one slice: a row a metric that has any, a column a group."""
    groups = means["group"].unique().tolist()
    groups_shown = groups[:_MOST_GROUPS]
    scored = set(means.dropna(subset="value")["metric"])
    is_shown = means["group"].isin(groups_shown)
    cells = {(row["group"], row["metric"]): w.mean_cell(row) for row in records(means[is_shown])}
    rows = tuple(
        (w.title(metric), *(cells[group, metric] for group in groups_shown))
        for metric in (*w.total, *w.quality, *w.rates)
        if metric in scored
    )
    heads = (w.say("column.metric"), *(f">{group}" for group in groups_shown))
    title = w.say("documents.slice", name=name, level=w.level)
    if len(groups) > _MOST_GROUPS:
        title += w.say("documents.groups_rest", n=len(groups) - _MOST_GROUPS)
    return Table(heads, rows, folded=title)
