"""What the editor shows, as HTML: the total, the radar, systems in order, gates that flip, the weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pandas as pd

from ragnb import markup
from ragnb.assessment import tables
from ragnb.assessment.parts import TOTAL, Writer
from ragnb.markup import Column, Safe, element, join, one_line
from ragnb.widgets.weighing import Weighing

_KINDS: Any = {"weight": "number", "share": "number", "mean": "number", "n": "count"}


def writer(model: Weighing) -> Writer:
    """Return what writes the model's numbers, the same as on the report."""
    sheet: Any = SimpleNamespace(scenario=model.scenario, means=model.now.means)
    return Writer(sheet, linked=False)


def total(model: Weighing, w: Writer) -> Safe:
    """The weighted score with its interval, what the file's weights give, and the notes."""
    say, row = model.say, w.rows[TOTAL]
    tone = w.tone(TOTAL, row["value"])
    before = model.base.means.iloc[-1].to_dict()
    note = join([w.counted(row), element("br"), say("editor.before", value=w.interval(TOTAL, before))])
    missing = pd.isna(row["value"])
    card = markup.card(
        say("sheet.overall"),
        w.interval(TOTAL, row),
        mark=markup.badge(tone, lang=w.lang) if tone else "",
        picture="" if missing else w.drawn(TOTAL, row, width=260),
        note=w.why_missing(TOTAL) if missing else note,
    )
    wrong = [text for (_, name), text in model.problems.items() if not name]
    said = [element("p", text, role="alert", class_="rg-bad") for text in wrong]
    said += [element("li", text) for text in model.now.notes["text"]]
    return join([card, element("ul", *said, class_="rg-notes") if said else Safe("")])


def radar(model: Weighing, w: Writer) -> Safe:
    """Means by metric, one outline a system; each axis says how much it counts."""
    axes = [name for name in model.metrics if w.span(name)]
    if not axes:
        return Safe("")
    parts: Any = [(model.say("editor.now"), model.now.means)]
    table, label = model.now.systems, model.say("editor.radar")
    if table is not None and table[table.columns[0]].nunique() <= len(markup.SYSTEM_COLOURS):
        parts = table.groupby(str(table.columns[0]), sort=False)
    values = {str(name): rows.set_index("metric")["value"][axes].tolist() for name, rows in parts}
    names = {name: f"{name} {percent(model.share(name))}" for name in axes}
    about: Any = {"ranges": w.scales, "better": w.better}
    about = {key: {names[name]: held[name] for name in axes} for key, held in about.items()}
    picture = markup.radar_svg(list(names.values()), values, radius=105, lang=w.lang, label=label, **about)
    return markup.figure(picture, label)


def percent(share: float) -> str:
    """Write a share of the total without decimals."""
    return markup.MISSING if math.isnan(share) else f"{100 * share:.0f} %"


def _table(w: Writer, rows: list[dict[str, Any]]) -> Safe:
    """Write records under the sheet's own names of their columns; no table for no records."""
    if not rows:
        return Safe("")
    heads = {key: key if key == "#" else w.term(key) for key in rows[0]}
    return w.table(rows, {key: Column(head, _KINDS.get(key, "text")) for key, head in heads.items()})


def systems(model: Weighing, w: Writer) -> Safe:
    """Systems by their weighted score, the best first, with the place that the file's weights give."""
    if model.now.systems is None or model.base.systems is None:
        return Safe("")
    before = {name: place for place, (name, _) in enumerate(_order(model.base.systems), 1)}
    rows = [
        {
            "#": join([str(place), _was(model, before[name], before[name] != place)]),
            "system": element("span", one_line(name, 60), class_="rg-name"),
            "mean": Safe(w.interval(TOTAL, row)),
            "n": row["n"],
        }
        for place, (name, row) in enumerate(_order(model.now.systems), 1)
    ]
    return w.section("systems", _table(w, rows))


def _order(table: pd.DataFrame) -> list[tuple[str, Mapping[Any, Any]]]:
    own = table[table["metric"] == TOTAL].sort_values("value", ascending=False, kind="stable", na_position="last")
    return [(str(row[table.columns[0]]), row) for row in own.to_dict("records")]


def gates(model: Weighing, w: Writer) -> Safe:
    """Every gate with its outcome; one that these weights flip says what it was and comes first."""
    rows = []
    for row, old in zip(model.now.gates.to_dict("records"), model.base.gates.to_dict("records"), strict=True):
        flips = (row["outcome"], row["blocks"]) != (old["outcome"], old["blocks"])
        outcome = markup.badge(tables.gate_tone(row), tables.outcome(w, row))
        shown = {
            "gate": element("span", w.asks(row), class_="rg-name"),
            "mean": Safe(w.interval(str(row["metric"]), row)),
            "n": row["n"],
            "outcome": join([outcome, _was(model, tables.outcome(w, old), flips)]),
        }
        rows.append((not flips, shown))
    return w.section("gates", _table(w, [shown for _, shown in sorted(rows, key=lambda row: row[0])]))


def _was(model: Weighing, what: object, differs: bool) -> Safe:
    """Say what the file's weights give, where that differs."""
    return join([Safe("<br>"), element("strong", model.say("editor.was", what=what))]) if differs else Safe("")


def weights(model: Weighing, w: Writer) -> Safe:
    """The weights as a table: what the editor is where nothing can be moved."""
    rows = [
        {"metric": name, "weight": Safe(f"{weight:g}"), "share": Safe(percent(model.share(name))),
         "mean": Safe(w.interval(name, w.rows[name])), "n": w.rows[name]["n"]}
        for name, weight in model.metric_weights.items()
    ]  # fmt: skip
    docs = [{"document": name, "weight": Safe(f"{weight:g}")} for name, weight in model.doc_weights.items()]
    return join([_table(w, rows), _table(w, docs)])


def static(model: Weighing) -> Safe:
    """The editor as a picture and tables, for where no kernel runs."""
    w = writer(model)
    parts = [total(model, w), radar(model, w), weights(model, w), systems(model, w), gates(model, w)]
    return join([element("h3", title(model)), element("p", model.say("editor.static"), class_="rg-note"), *parts])


def title(model: Weighing) -> str:
    """Name what is weighed."""
    return model.say("editor.title", name=model.scenario.title or model.scenario.name)
