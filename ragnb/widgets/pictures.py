"""What the editor shows, as HTML: the total, the radar, systems in order, gates that flip, the weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import pandas as pd

from ragnb import markup
from ragnb.assessment import Assessment, tables
from ragnb.assessment.parts import TOTAL, Writer
from ragnb.markup import Column, Safe, element, join, one_line
from ragnb.scenario import Scenario
from ragnb.widgets.weighing import Weighing


@dataclass(frozen=True)
class _Run:
    """As much of an assessment as its writer needs."""

    scenario: Scenario
    means: pd.DataFrame


def writer(model: Weighing) -> Writer:
    """Return what writes the model's numbers, the same as on the report."""
    return Writer(cast(Assessment, _Run(model.scenario, model.now.means)), linked=False)


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
    table = model.now.systems
    if not axes:
        return Safe("")
    names = {name: f"{name} {percent(model.share(name))}" for name in axes}
    values: dict[str, list[Any]] = {}
    if table is not None and table[table.columns[0]].nunique() <= len(markup.SYSTEM_COLOURS):
        by = str(table.columns[0])
        for group, rows in table.groupby(by, sort=False):
            found = rows.set_index("metric")["value"]
            values[str(group)] = [found[name] for name in axes]
    else:
        values[model.say("editor.now")] = [w.rows[name]["value"] for name in axes]
    return markup.figure(
        markup.radar_svg(
            list(names.values()), values, radius=105, lang=w.lang,
            ranges={names[n]: w.scales[n] for n in axes}, better={names[n]: w.better[n] for n in axes},
            label=model.say("editor.radar"),
        ),
        model.say("editor.radar"),
    )  # fmt: skip


def percent(share: float) -> str:
    """Write a share of the total without decimals."""
    return markup.MISSING if math.isnan(share) else f"{100 * share:.0f} %"


def systems(model: Weighing, w: Writer) -> Safe:
    """Systems by their weighted score, the best first, with the place that the file's weights give."""
    if model.now.systems is None or model.base.systems is None:
        return Safe("")
    before = {name: place for place, (name, _) in enumerate(_order(model.base.systems), 1)}
    rows = [
        {
            "place": join([str(place), _was(model, before[name], before[name] != place)]),
            "system": element("span", one_line(name, 60), class_="rg-name"),
            "score": Safe(w.interval(TOTAL, row)),
            "n": row["n"],
        }
        for place, (name, row) in enumerate(_order(model.now.systems), 1)
    ]
    columns = {
        "place": Column("#"),
        "system": Column(w.say("column.system")),
        "score": Column(w.say("column.mean", level=w.level), "number"),
        "n": Column(w.say("column.n"), "count"),
    }
    return w.section("systems", w.table(rows, columns))


def _order(table: pd.DataFrame) -> list[tuple[str, Mapping[Any, Any]]]:
    own = table[table["metric"] == TOTAL].sort_values("value", ascending=False, kind="stable", na_position="last")
    return [(str(row[table.columns[0]]), row) for row in own.to_dict("records")]


def gates(model: Weighing, w: Writer) -> Safe:
    """Every gate with its outcome; one that these weights flip says what it was and comes first."""
    now, before = model.now.gates.to_dict("records"), model.base.gates.to_dict("records")
    rows = []
    for row, old in zip(now, before, strict=True):
        flips = (row["outcome"], row["blocks"]) != (old["outcome"], old["blocks"])
        outcome = markup.badge(tables.gate_tone(row), tables.outcome(w, row))
        rows.append({
            "asks": element("span", w.asks(row), class_="rg-name"),
            "seen": Safe(w.interval(str(row["metric"]), row)),
            "n": row["n"],
            "outcome": join([outcome, _was(model, tables.outcome(w, old), flips)]),
            "flips": flips,
        })  # fmt: skip
    if not rows:
        return Safe("")
    columns = {
        "asks": Column(w.say("column.gate")),
        "seen": Column(w.say("column.mean", level=w.level), "number"),
        "n": Column(w.say("column.n"), "count"),
        "outcome": Column(w.say("column.outcome")),
    }
    rows.sort(key=lambda row: not row["flips"])
    return w.section("gates", w.table(rows, columns))


def _was(model: Weighing, what: object, differs: bool) -> Safe:
    """Say what the file's weights give, where that differs."""
    return join([Safe("<br>"), element("strong", model.say("editor.was", what=what))]) if differs else Safe("")


def weights(model: Weighing, w: Writer) -> Safe:
    """The weights as a table: what the editor is where nothing can be moved."""
    rows = [
        {"name": name, "weight": Safe(f"{weight:g}"), "share": Safe(percent(model.share(name))),
         "mean": Safe(w.interval(name, w.rows[name])), "n": w.rows[name]["n"]}
        for name, weight in model.metric_weights.items()
    ]  # fmt: skip
    columns = {
        "name": Column(w.say("column.metric")),
        "weight": Column(w.say("column.weight"), "number"),
        "share": Column(w.say("column.share"), "number"),
        "mean": Column(w.say("column.mean", level=w.level), "number"),
        "n": Column(w.say("column.n"), "count"),
    }
    parts = [w.table(rows, columns)]
    if found := model.doc_weights:
        docs = [{"name": name, "weight": Safe(f"{value:g}")} for name, value in found.items()]
        named = {"name": Column(w.say("column.document")), "weight": Column(w.say("column.weight"), "number")}
        parts.append(w.table(docs, named))
    return join(parts)


def static(model: Weighing) -> Safe:
    """The editor as a picture and tables, for where no kernel runs."""
    w = writer(model)
    parts = [total(model, w), radar(model, w), weights(model, w), systems(model, w), gates(model, w)]
    return join([element("h3", title(model)), element("p", model.say("editor.static"), class_="rg-note"), *parts])


def title(model: Weighing) -> str:
    """Name what is weighed."""
    return model.say("editor.title", name=model.scenario.title or model.scenario.name)
