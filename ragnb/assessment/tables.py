"""The tables of a sheet: means, gates, documents, systems. They choose rows and order, no more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from ragnb import markup
from ragnb.assessment.parts import TOTAL, Row, Writer, gap, paragraph
from ragnb.markup import MISSING, TONES, Column, Safe, element, join, one_line

MOST_DOCUMENTS = 30
MOST_GROUPS = 8
_GATE_TONES = {"pass": "good", "fail": "bad", "undecided": "watch", "no_data": "none"}
_COUNTS = ("n_missing", "n_failed", "n_not_applicable")


def means(w: Writer) -> Safe:
    """The means of the metrics with the total, then the rates."""
    metrics = _means_table(w, [*w.quality, *w.total], w.of_shown(w.say("sheet.means_caption", level=w.level)))
    rates = _means_table(w, w.rates, w.of_shown(w.say("sheet.rates_caption", level=w.level)))
    return w.section("means", metrics, rates)


def _means_table(w: Writer, names: list[str], caption: str) -> Safe:
    if not names:
        return Safe("")
    rows = [_mean_row(w, name) for name in names]
    unit = w.unit
    columns = {
        "metric": Column(w.say("column.metric")),
        "weight": Column(w.term("weight"), "number"),
        "estimate": Column(w.term("rate" if names[0] in w.rates else "mean"), "number"),
        "picture": Column(w.say("column.on_scale")),
        "n": Column(w.term("n"), "count"),
        "n_clusters": Column(w.term(f"{unit}s"), "count"),
        **{key: Column(w.term(key.removeprefix("n_")), "count") for key in _COUNTS},
    }
    if all(row["weight"] is None for row in rows):
        del columns["weight"]
    if unit == "row":
        del columns["n_clusters"]
    return w.table(rows, columns, caption)


def _mean_row(w: Writer, name: str) -> dict[str, Any]:
    row = w.rows[name]
    lower = Safe("")
    if w.better[name] == "lower":
        lower = join([" ", element("span", w.say("chart.lower"), class_="rg-why")])
    missing = pd.isna(row["value"])
    return {
        "metric": join([element("strong" if name == TOTAL else "span", w.name(name), class_="rg-name"), lower]),
        "weight": None if pd.isna(row["weight"]) else Safe(f"{row['weight']:g}"),
        "estimate": gap(w.why_missing(name), w.say("column.missing")) if missing else Safe(w.interval(name, row)),
        "picture": w.thin(name, row),
        **{key: row[key] for key in ("n", "n_clusters", *_COUNTS)},
    }


def gates(w: Writer) -> Safe:
    """Each gate: what it asks, what was seen, and what follows in words."""
    table = w.gates
    if not len(table):
        return Safe("")
    rows = [
        {
            "gate": element("span", one_line(row["gate"], 40), class_="rg-name"),
            "asks": element("span", w.asks(row), class_="rg-name"),
            "seen": gap(w.say("outcome.no_data").strip())
            if pd.isna(row["value"])
            else Safe(w.interval(metric, row)),
            "picture": w.thin(metric, row, bars=[row["threshold"]]) if metric in w.ranges else "",
            "n": row["n"],
            "outcome": markup.badge(gate_tone(row), outcome(w, row)),
            "more": Safe(more(w, row)),
        }
        for row in table.to_dict("records")
        for metric in [str(row["metric"])]
    ]
    columns = {
        "gate": Column(w.term("gate")),
        "asks": Column(w.say("column.asks")),
        "seen": Column(w.term("mean"), "number"),
        "picture": Column(w.say("column.on_scale")),
        "n": Column(w.term("n"), "count"),
        "outcome": Column(w.term("outcome")),
        "more": Column(w.term("more"), "number"),
    }
    return w.section("gates", w.table(rows, columns))


def gate_tone(row: Row) -> str:
    """Return the mark of a gate; what blocks is bad, however it was decided."""
    return "bad" if row["blocks"] else _GATE_TONES[row["outcome"]]


def outcome(w: Writer, row: Row) -> str:
    """Say in two words what came out of a gate, and whether it blocks."""
    said = w.say(f"sheet.gate_{row['outcome']}")
    return said + w.say("sheet.and_blocks") if row["blocks"] else said


def more(w: Writer, row: Row) -> str:
    """Say how many more samples would decide a gate; a number beyond reach is said as such."""
    needed = row["more_needed"]
    if row["reason"] == "advisory":
        return w.say("sheet.advisory")
    if row["outcome"] != "undecided" or pd.isna(row["low"]):
        return MISSING
    if pd.isna(needed) or needed > 100 * max(int(row["n"]), 1):
        return w.say("sheet.on_the_bar")
    return w.say("sheet.about", n=markup.count(needed))


def where(w: Writer) -> Safe:
    """Documents by metrics, then the slices."""
    return w.section("where", _documents(w), _slices(w))


def _documents(w: Writer) -> Safe:
    """Documents by metrics, the lowest first, with words and shades; the rest is counted."""
    table = w.sheet.documents
    if table is None or table["document"].nunique() < 2:
        return Safe("")
    names = [*w.total, *w.quality] or w.rates
    cells = {(row["document"], row["metric"]): row for row in table.to_dict("records")}
    names = [name for name in names if any(_has(cells, doc, name) for doc in table["document"].unique())]
    order = _lowest_first(table, names)
    rows = [
        {"document": doc, **{name: _heat(w, name, cells[doc, name]) for name in names}}
        for doc in order[:MOST_DOCUMENTS]
    ]
    columns = {"document": Column(w.say("column.document")), **metric_columns(w, names)}
    parts = [
        paragraph(w.say("sheet.where_lowest", names=w.say("mode_note.join").join(map(str, order[:3])))),
        paragraph(_legend(w), "rg-note"),
        w.table(rows, columns),
        paragraph(rest(w, "where_rest", len(order) - MOST_DOCUMENTS)),
    ]
    return join(parts)


def _slices(w: Writer) -> Safe:
    """One table a slice: the metrics by its groups, each mean with interval and n; all-missing ones left out."""
    if w.sheet.slices is None:
        return Safe("")
    tables = []
    for name, table in w.sheet.slices.fillna({"group": MISSING}).groupby("slice", sort=False):
        cells = {(row["group"], row["metric"]): row for row in table.to_dict("records")}
        groups = list(dict.fromkeys(table["group"]))[:MOST_GROUPS]
        there = [m for m in (*w.total, *w.quality, *w.rates) if any(_has(cells, one, m) for one in groups)]
        rows = [{"metric": w.name(m), **{one: _estimate(w, m, cells[one, m]) for one in groups}} for m in there]
        columns = {"metric": Column(str(name)), **{one: Column(one, "number") for one in groups}}
        caption = w.say("sheet.slice_caption", name=name, level=w.level)
        shown = w.table(rows, columns)
        more_groups = paragraph(rest(w, "slice_rest", table["group"].nunique() - MOST_GROUPS))
        tables.append(markup.details(caption, join([shown, more_groups])))
    return join(tables)


def _has(cells: Mapping[Any, Row], doc: Any, name: str) -> bool:
    return not pd.isna(cells[doc, name]["value"])


def _lowest_first(table: pd.DataFrame, names: list[str]) -> list[Any]:
    """Order documents by their total, else by the first metric that is there; those without one come last."""
    if not names:
        return list(table["document"].unique())
    column = table[table["metric"] == names[0]]
    return column.sort_values("value", kind="stable", na_position="last")["document"].tolist()


def metric_columns(w: Writer, names: list[str]) -> dict[str, Column]:
    """Return one column a metric, marked where lower is better."""
    lower = {name: " ↓" if w.better[name] == "lower" else "" for name in names}
    # A long name may break after its underscores, so that many metrics fit beside each other.
    said = {name: join((w.name(name) + lower[name]).split("_"), Safe("_<wbr>")) for name in names}
    return {name: Column(said[name], "number") for name in names}


def _heat(w: Writer, name: str, row: Row) -> Safe:
    if pd.isna(row["value"]):
        return gap(w.kind_of_gap(row))
    tone = w.tone(name, row["value"])
    said = w.value(name, row["value"])
    title = f"{w.interval(name, row)}, n = {markup.count(row['n'])}"
    if not tone:
        return element("span", said, title=title)
    mark = element("span", TONES[tone], aria_hidden="true")
    word = element("span", w.say(f"mark.{tone}"), class_="rg-hidden")
    return element("span", mark, " ", word, " ", said, class_=f"rg-heat rg-{tone}", title=title)


def _legend(w: Writer) -> Safe:
    marks = join([markup.badge(tone, lang=w.lang) for tone in ("good", "watch", "bad")], " ")
    return join([marks, " ", w.say("sheet.where_legend", level=w.level)])


def rest(w: Writer, key: str, n: int) -> str:
    """Say how many more there are than are shown; nothing where all are."""
    return w.say(f"sheet.{key}", n=markup.count(n)) if n > 0 else ""


def systems(w: Writer) -> Safe:
    """Systems side by side, the best total first, and their shape as a radar."""
    table, common = w.sheet.systems, w.sheet.common
    if table is None:
        return Safe("")
    names = [*w.total, *w.quality, *w.rates]
    # Systems that answered different questions are ranked by those that all of them answered.
    ranked = table if common is None else common
    column = ranked[ranked["metric"] == names[0]].sort_values("value", ascending=False, kind="stable")
    order = column["system"].tolist()
    tables = [_systems_table(w, table, order, names, w.say("sheet.systems_caption", level=w.level))]
    if common is not None:
        n = markup.count(w.sheet.common_questions)
        tables.insert(
            0, _systems_table(w, common, order, names, w.say("sheet.common_caption", n=n, level=w.level))
        )
    return w.section("systems", _radar(w, order, _by_name(ranked)), *tables)


def _by_name(table: pd.DataFrame) -> dict[tuple[Any, Any], Row]:
    return {(row["system"], row["metric"]): row for row in table.to_dict("records")}


def _systems_table(w: Writer, table: pd.DataFrame, order: list[Any], names: list[str], caption: str) -> Safe:
    cells = _by_name(table)
    rows = [{"system": one, **{name: _estimate(w, name, cells[one, name]) for name in names}} for one in order]
    columns = {"system": Column(w.say("column.system")), **metric_columns(w, names)}
    return w.table(rows, columns, caption)


def _estimate(w: Writer, name: str, row: Row) -> Safe:
    if pd.isna(row["value"]):
        return gap(w.kind_of_gap(row))
    small = [
        element("span", said, class_="rg-why")
        for said in (w.ends(name, row), w.say("chart.n", n=markup.count(row["n"])))
    ]
    return join([w.value(name, row["value"]), *small], Safe("<br>"))


def _radar(w: Writer, order: list[Any], cells: Mapping[Any, Row]) -> Safe:
    if not w.axes or len(order) > len(markup.SYSTEM_COLOURS):
        return Safe("")
    values = {str(one): [cells[one, name]["value"] for name in w.axes] for one in order}
    label = w.say("sheet.systems_radar", names=w.say("mode_note.join").join(map(str, order)))
    picture = markup.radar_svg(
        w.axes, values, label=label, ranges=w.scales, better=w.better, lang=w.lang, radius=110
    )
    return markup.figure(picture, label)
