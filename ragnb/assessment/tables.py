"""The tables of a sheet: means, gates, documents, systems. They choose rows and order, no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from ragnb import markup
from ragnb.assessment.parts import TOTAL, Row, Writer, gap, paragraph
from ragnb.diagnostics import if_documents_fail
from ragnb.markup import MISSING, TONES, Column, Safe, element, join, one_line

MOST_DOCUMENTS = 30
MOST_GROUPS = 8
_GATE_TONES = {"pass": "good", "fail": "bad", "undecided": "watch", "no_data": "none"}


def means(w: Writer) -> Safe:
    """The means of the metrics with the total, then the rates."""
    metrics = _means_table(w, [*w.quality, *w.total], w.of_shown(w.say("sheet.means_caption", level=w.level)))
    rates = _means_table(w, w.rates, w.of_shown(w.say("sheet.rates_caption", level=w.level)))
    return w.section("means", metrics, rates)


def _means_table(w: Writer, names: list[str], caption: str) -> Safe:
    if not names:
        return Safe("")
    lower = [" ", element("span", w.say("chart.lower"), class_="rg-why")]
    rows = []
    for name in names:
        row, title = w.rows[name], element("strong" if name == TOTAL else "span", w.name(name), class_="rg-name")
        none = gap(w.why_missing(name), w.say("column.missing"))
        rows.append({
            **row, "metric": join([title, *(lower if w.better[name] == "lower" else [])]),
            "weight": None if pd.isna(row["weight"]) else Safe(f"{row['weight']:g}"),
            "estimate": none if pd.isna(row["value"]) else Safe(w.interval(name, row)),
            "picture": w.drawn(name, row),
        })  # fmt: skip
    weight = "" if all(row["weight"] is None for row in rows) else "weight:number"
    estimate = "estimate=rate:number" if names[0] in w.rates else "estimate=mean:number"
    clusters = "" if w.unit == "row" else f"n_clusters={w.unit}s:count"
    absent = "n_missing=missing:count n_failed=failed:count n_not_applicable=not_applicable:count"
    return w.table(rows, f"metric {weight} {estimate} picture=on_scale n:count {clusters} {absent}", caption)


def gates(w: Writer) -> Safe:
    """Each gate: what it asks, what was seen, and what follows in words."""
    none = gap(w.say("outcome.no_data").strip())
    rows = [
        row | {
            "gate": element("span", one_line(row["gate"], 40), class_="rg-name"),
            "asks": element("span", row["asks"], class_="rg-name"),
            "seen": none if pd.isna(row["value"]) else row["seen"],
            "picture": w.drawn(m, row, bars=[row["threshold"]]) if (m := row["metric"]) in w.ranges else "",
            "outcome": markup.badge(row["tone"], row["outcome"]),
        }
        for row in gate_rows(w)
    ]  # fmt: skip
    columns = "gate asks seen=mean:number picture=on_scale n:count outcome p_flip:percent more:number"
    return w.section("gates", w.table(rows, columns) if rows else "")


def gate_rows(w: Writer) -> list[dict[Any, Any]]:
    """Return each gate in words: what it asks, what was seen, what came out, and how many more would decide."""
    return [
        row | {
            "asks": w.asks(row), "seen": Safe(w.interval(row["metric"], row)), "more": Safe(_more(w, row)),
            "outcome": outcome(w, row), "tone": gate_tone(row),
        }
        for row in w.gates.to_dict("records")
    ]  # fmt: skip


def gate_tone(row: Row) -> str:
    """Return the mark of a gate; what blocks is bad, however it was decided."""
    return "bad" if row["blocks"] else _GATE_TONES[row["outcome"]]


def outcome(w: Writer, row: Row) -> str:
    """Say in two words what came out of a gate, and whether it blocks."""
    return w.say(f"sheet.gate_{row['outcome']}") + w.say("sheet.and_blocks") * bool(row["blocks"])


def _more(w: Writer, row: Row) -> str:
    """Say how many more samples would decide a gate; a number beyond reach is said as such."""
    needed = row["more_needed"]
    if row["reason"] == "advisory":
        return w.say("sheet.advisory")
    if row["outcome"] != "undecided" or pd.isna(row["low"]):
        return MISSING
    if pd.isna(needed):
        return w.say("sheet.more_documents" if if_documents_fail(row) else "sheet.on_the_bar")
    return w.say("sheet.about", n=markup.count(needed))


def where(w: Writer) -> Safe:
    """Documents by metrics, then the slices."""
    return w.section("where", _documents(w), _slices(w))


def _documents(w: Writer) -> Safe:
    """Documents by metrics, the lowest first, with words and shades; the rest is counted."""
    table = w.sheet.documents
    if table is None or table["document"].nunique() < 2:
        return Safe("")
    names = _with_values(table, [*w.total, *w.quality] or w.rates)
    # By their total, else by the first metric that is there; those without one come last.
    column = table[table["metric"] == names[0]] if names else table.drop_duplicates("document")
    order = column.sort_values("value", kind="stable", na_position="last")["document"].tolist()
    marks = join([markup.badge(tone, lang=w.lang) for tone in ("good", "watch", "bad")], " ")
    parts = [
        paragraph(w.say("sheet.where_lowest", names=w.say("mode_note.join").join(map(str, order[:3])))),
        paragraph(join([marks, " ", w.say("sheet.where_legend", level=w.level)]), "rg-note"),
        _crossed(w, table, "document", order[:MOST_DOCUMENTS], names, _heat),
        paragraph(rest(w, "where_rest", len(order) - MOST_DOCUMENTS)),
    ]
    return join(parts)


def _by_name(table: pd.DataFrame, by: str) -> dict[tuple[Any, str], Row]:
    return {(row[by], row["metric"]): row for row in table.to_dict("records")}


def _with_values(table: pd.DataFrame, names: list[str]) -> list[str]:
    there = set(table.loc[table["value"].notna(), "metric"])
    return [name for name in names if name in there]


def _crossed(
    w: Writer, table: pd.DataFrame, by: str, order: list[Any], names: list[str],
    write: Callable[[Writer, str, Row], Safe], caption: str | None = None,
) -> Safe:  # fmt: skip
    """One row a document or system, one column a metric."""
    cells = _by_name(table, by)
    rows = [{by: one, **{name: write(w, name, cells[one, name]) for name in names}} for one in order]
    return w.table(rows, w.columns(by) | metric_columns(w, names), caption)


def _slices(w: Writer) -> Safe:
    """One table a slice: the metrics by its groups, each mean with interval and n; all-missing ones left out."""
    if w.sheet.slices is None:
        return Safe("")
    tables = []
    for name, table in w.sheet.slices.fillna({"group": MISSING}).groupby("slice", sort=False):
        cells, groups = _by_name(table, "group"), table["group"].unique().tolist()[:MOST_GROUPS]
        there = _with_values(table[table["group"].isin(groups)], [*w.total, *w.quality, *w.rates])
        rows = [{"metric": w.name(m), **{one: _estimate(w, m, cells[one, m]) for one in groups}} for m in there]
        columns = {"metric": Column(str(name)), **{one: Column(one, "number") for one in groups}}
        caption = w.say("sheet.slice_caption", name=name, level=w.level)
        more_groups = paragraph(rest(w, "slice_rest", table["group"].nunique() - MOST_GROUPS))
        tables.append(markup.details(caption, join([w.table(rows, columns), more_groups])))
    return join(tables)


def metric_columns(w: Writer, names: list[str]) -> dict[str, Column]:
    """Return one column a metric, marked where lower is better."""
    lower = {name: " ↓" if w.better[name] == "lower" else "" for name in names}
    # A long name may break after its underscores, so that many metrics fit beside each other.
    said = {name: join((w.name(name) + lower[name]).split("_"), Safe("_<wbr>")) for name in names}
    return {name: Column(said[name], "number") for name in names}


def _heat(w: Writer, name: str, row: Row) -> Safe:
    if pd.isna(row["value"]):
        return gap(w.kind_of_gap(row))
    said, tone = w.value(name, row["value"]), w.tone(name, row["value"])
    title = f"{w.interval(name, row)}, n = {markup.count(row['n'])}"
    if not tone:
        return element("span", said, title=title)
    mark = element("span", TONES[tone], aria_hidden="true")
    word = element("span", w.say(f"mark.{tone}"), class_="rg-hidden")
    return element("span", mark, " ", word, " ", said, class_=f"rg-heat rg-{tone}", title=title)


def rest(w: Writer, key: str, n: int) -> str:
    """Say how many more there are than are shown; nothing where all are."""
    return w.say(f"sheet.{key}", n=markup.count(n)) if n > 0 else ""


COMPARED = "candidate metric outcome=compared difference p common:count wins"
"""The columns of the table of differences."""


def compared(w: Writer) -> list[dict[Any, Any]]:
    """Return the rows of the table of differences in words; none without a baseline."""
    rows = [] if w.sheet.comparison is None else w.sheet.comparison.to_dict("records")
    return [
        row | {
            "metric": w.name(row["metric"]), "outcome": w.say(f"compared.{row['outcome']}"),
            "difference": Safe(markup.with_interval(row["value"], row["low"], row["high"])),
            "p": markup.p_value(row["p"] if pd.isna(row["p_holm"]) else row["p_holm"]), "common": row["n_common"],
            "wins": f"{row['wins']} / {row['ties']} / {row['losses']}",
        }
        for row in rows if row["n_common"]
    ]  # fmt: skip


def systems(w: Writer) -> Safe:
    """Systems side by side, the best total first, and their shape as a radar; what changed since the baseline."""
    table, common, changed = w.sheet.systems, w.sheet.common, Safe("")
    if rows := compared(w):
        title = element("h3", w.say("sheet.comparison"))
        changed = join([title, w.table(rows, COMPARED, w.say("sheet.comparison_caption", level=w.level))])
    if table is None:
        return w.section("systems", changed) if changed else changed
    names = [*w.total, *w.quality, *w.rates]
    # Systems that answered different questions are ranked by those that all of them answered.
    ranked = table if common is None else common
    column = ranked[ranked["metric"] == names[0]].sort_values("value", ascending=False, kind="stable")
    order = column["system"].tolist()
    n = markup.count(w.sheet.common_questions)
    tables = [
        _crossed(w, rows, "system", order, names, _estimate, w.say(f"sheet.{key}_caption", n=n, level=w.level))
        for key, rows in (("common", common), ("systems", table))
        if rows is not None
    ]
    return w.section("systems", _radar(w, order, _by_name(ranked, "system")), *tables, changed)


def _estimate(w: Writer, name: str, row: Row) -> Safe:
    if pd.isna(row["value"]):
        return gap(w.kind_of_gap(row))
    said = (w.ends(name, row), w.say("chart.n", n=markup.count(row["n"])))
    small = [element("span", one, class_="rg-why") for one in said]
    return join([w.value(name, row["value"]), *small], Safe("<br>"))


def _radar(w: Writer, order: list[Any], cells: Mapping[Any, Row]) -> Safe:
    if not w.axes or len(order) > len(markup.SYSTEM_COLOURS):
        return Safe("")
    values = {str(one): [cells[one, name]["value"] for name in w.axes] for one in order}
    label = w.say("sheet.systems_radar", names=w.say("mode_note.join").join(map(str, order)))
    how: dict[str, Any] = {"ranges": w.scales, "better": w.better, "lang": w.lang}
    return markup.figure(markup.radar_svg(w.axes, values, label=label, radius=110, **how), label)
