"""What the editor of weights shows in one cell."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ragnb.comparison.people import BY_PEOPLE
from ragnb.errors import RagnbError
from ragnb.markup import Safe, count, element, ends, is_missing, join, number, one_line
from ragnb.markup.blocks import Code, Mark, Small, Table, Text
from ragnb.markup.rendering import draw, render
from ragnb.schema import TOTAL, records
from ragnb.sheet.formatter import Row
from ragnb.sheet.gates import by_outcome
from ragnb.texts.errors import translated
from ragnb.weights import notes, why_no_total
from ragnb.widgets.base import NAMED, Html, button, field, hear, held, make, numbers
from ragnb.widgets.model import DOC, GRID, METRIC, Weighing

_NUMBERS = ("weight", "share", "mean", "n")
_NARROW = {"width": "250px"}
_SPACED = {"grid_gap": "8px 32px", "align_items": "flex-start"}
# Documents that are offered while a name is typed.
_HITS = 8


class EditorView:
    """The widgets of one model: they show it and pass on what a person does, no more.

    Parameters
    ----------
    model : Weighing
    """

    def __init__(self, model: Weighing) -> None:
        self.model = model
        self._rows = dict[tuple[str, str], WeightRow]()
        self.busy = False
        lang = model.lang
        say = model.say
        flow = {"flex_flow": "row wrap"}
        self.held, self.rest, self.diff, self.note = (
            Html(lang, live=live) for live in (False, False, True, True)
        )
        self.first = {part: Html(lang, live=part is _total) for part in FIRST_CELLS}
        self.boxes = {METRIC: make("VBox"), DOC: make("VBox")}
        self.pick = field(say, "editor.document", placeholder=say("editor.search"), style=NAMED)
        hear(self, self.pick, self._search)
        self.pick.on_msg(
            lambda _, sent, __: (
                self._add(self.pick.value) if sent.get("event") == "submit" else None
            )
        )
        self.hits = make(
            "ToggleButtons", style={"button_width": "auto"}, layout={"display": "none"}
        )
        hear(self, self.hits.add_class("rg-hits"), self._add)
        self.save = button(say, "editor.save", self._ask, button_style="primary")
        self.name = field(
            say, "editor.save_as", placeholder=say("editor.save_as_hint"), continuous_update=False
        )
        self.again = button(say, "editor.reload", partial(self._ask, model.reload, self._compare))
        write = button(say, "editor.write", partial(self._ask, self._write), button_style="primary")
        answers = make("HBox", [write, self.again, button(say, "editor.cancel", self._hide)])
        self.question = make("VBox", [self.name, answers], layout={"display": "none"})
        tools = [
            button(say, "editor.reset", model.reset),
            button(say, "editor.equal", model.equal),
            button(say, "editor.normalise", model.normalise),
        ]
        left = []
        for key, box in zip(("metrics", "documents"), self.boxes.values(), strict=True):
            hint = element("p", say(f"editor.{key}_hint"), class_="rg-note")
            left += [Html(lang, join([element("h4", say(f"editor.{key}")), hint])).widget, box]
        left += [
            self.pick,
            self.hits,
            self.note.widget,
            make("HBox", [*tools, self.save], layout=flow),
        ]
        left += [self.diff.widget, self.question, self.held.widget]
        title, *right = (html.widget for html in (*self.first.values(), self.rest))
        both = [
            make("VBox", side, layout={"flex": "1 1 400px", "min_width": "0"})
            for side in (left, right)
        ]
        self.box = make("VBox", [title, make("HBox", both, layout={**flow, **_SPACED})])
        self.refresh(model)
        model.watchers.append(self.refresh)

    def refresh(self, model: Weighing) -> None:
        """Show what the model holds now, the numbers first."""
        for part, html in self.first.items():
            html.show(part(model))
        places = [(METRIC, name) for name in model.metrics] + [
            (DOC, name) for name in model.doc_weights
        ]
        # Rows that stay are not made anew.
        self._rows = {place: self._rows.get(place) or WeightRow(model, *place) for place in places}
        for kind, box in self.boxes.items():
            box.children = [row.box for (own, _), row in self._rows.items() if own == kind]
        for row in self._rows.values():
            row.refresh()
        self.rest.show(join(part(model) for part in REST_CELLS))
        self.held.show(
            held([one.value for row in self._rows.values() for one in (row.text, row.slider)])
        )
        is_wrong = bool(model.problems)
        self.save.disabled = model.scenario.path is None or not model.is_changed() or is_wrong

    def _search(self, text: str) -> None:
        """Offer the documents whose names hold what is typed."""
        hits = self.model.find(text) if text.strip() else []
        self.busy = True  # options select their first one by themselves
        with self.hits.hold_sync():
            self.hits.options, self.hits.value = hits[:_HITS], None
        self.busy, self.hits.layout.display = False, "flex" if hits else "none"
        self.note.warn(
            self.model.say("editor.more", n=len(hits) - _HITS) if len(hits) > _HITS else "",
            "rg-said",
        )

    def _add(self, name: str) -> None:
        self.pick.value = self.pick.value if (problem := self.model.add(name)) else ""
        self.note.warn(problem)

    # Saving asks before it writes: the diff, another name, and what stands in the way.

    def _ask(self, *acts: Callable[[], None]) -> None:
        """Show what saving would change, or do what the answer says; or say why not, and offer to read again."""
        self.question.layout.display, self.again.layout.display = "flex", "none"
        try:
            for act in acts or (self._compare,):
                act()
        except RagnbError as error:
            self.diff.warn(translated(str(error), self.model.lang))
            self.again.layout.display = "inline-flex"

    def _hide(self, text: str = "") -> None:
        self.question.layout.display = "none"
        self.diff.warn(text, "rg-said", role="status")

    def _compare(self) -> None:
        patch = self.model.plan()
        say = self.model.say
        if not patch.changed:
            return self._hide(say("editor.same"))
        text = say("editor.will_change", file=patch.file.name, n=len(patch.changed))
        return self.diff.show(
            join([element("p", text), element("pre", patch.diff, class_="rg-diff", tabindex=0)])
        )

    def _write(self) -> None:
        name = self.name.value.strip()
        home = self.model.scenario.path
        changed = self.model.save(home.parent / Path(name) if name and home else None)
        self.name.value, file = "", self.model.scenario.path
        self._hide(
            self.model.say(
                "editor.saved", file=file.name if file else "", fields=", ".join(changed)
            )
        )


class WeightRow:
    """One weight as a row: a number to type, a slider to drag, its share, and what is wrong with it.

    Parameters
    ----------
    model : Weighing
    kind, name : str
        Which weight it shows.
    """

    def __init__(self, model: Weighing, kind: str, name: str) -> None:
        self.model = model
        self.place = (kind, name)
        self.busy = False
        # The right end of the slider; it moves when a greater weight is typed.
        if kind == DOC:
            top = 4.0
        elif max(model.metric_weights.values()) < 1:
            top = 1.0
        else:
            top = 2.0
        self.text = field(
            lambda _: name, "", tooltip=name, continuous_update=False, style=NAMED, layout=_NARROW
        )
        self.slider = self._make_slider(top)
        self.last: Any = make("Label", layout={"width": "46px", "justify_content": "flex-end"})
        if kind == DOC:
            self.last = button(model.say, "editor.remove", lambda: model.remove(name), name=name)
        self.said = Html(model.lang)
        self.mark = f"rg-flip-{next(numbers)}"
        self._line = make(
            "HBox", [self.text, self.slider, self.last], layout={"align_items": "center"}
        )
        self.box = (
            make("VBox", [self._line, self.said.widget]).add_class("rg-row").add_class(self.mark)
        )
        hear(self, self.text, partial(model.set, kind, name))

    def _make_slider(self, top: float, value: float = 0.0) -> Any:
        look = {"tooltip": self.place[1], "layout": {"flex": "1 1 90px"}}
        slider = make("FloatSlider", max=top, value=value, step=GRID, readout=False, **look)
        hear(self, slider, self._drag)
        return slider

    def _widen(self, top: int) -> None:
        # A slider whose end moves under it sends its old value back, as if a person had dragged it: a wider one
        # takes its place.
        self.slider = self._make_slider(top, float(top))
        self._line.children = (self.text, self.slider, self.last)

    def _drag(self, weight: float) -> None:
        # A slider snaps what it is given to its grid and sends that back; only a person moves it further.
        if abs(weight - self.model.weight(*self.place)) > GRID / 2 + 1e-9:
            self.model.set(*self.place, round(weight, 2))

    def refresh(self) -> None:
        """Show what the model holds."""
        model, (kind, name) = self.model, self.place
        weight = model.weight(kind, name)
        problem = model.problems.get(self.place, "")
        self.busy = True
        self.text.value = self.text.value if problem else f"{weight:.12g}"
        if weight > self.slider.max:
            self._widen(math.ceil(weight))
        self.slider.value = weight
        self.busy = False
        marks = {"weight": weight, "start": model.start(kind, name), "mark": self.mark}
        if kind == METRIC:
            self.last.value = _percent(model.share(name))
            # Beyond the slider's end it is only said.
            marks |= {
                "flip": _flip(model, name),
                "at": model.now.flips.get(name, math.inf) / self.slider.max,
            }
        elif name not in model.documents:
            problem = problem or model.say("editor.absent")
        self.said.show(render("weight.html", say=model.say, problem=problem, **marks))


# What the editor shows, as HTML


def _title(model: Weighing) -> Safe:
    return element(
        "h3", model.say("editor.title", name=model.scenario.title or model.scenario.name)
    )


def _total(model: Weighing) -> Safe:
    """The overall score with its interval, its place between the thresholds, and what it was; of each system."""
    if model.now.systems is not None:  # which are never pooled into one score
        return _systems(model)
    say = model.say
    w = model.now.write
    row = model.now.rows[TOTAL]
    if is_missing(row["value"]) or w.span(TOTAL) is None:
        why = why_no_total(model.now.means, lang=model.lang)
        return render("score.html", say=say, why=why if model.is_scored else say("editor.unscored"))
    failed = [gate for gate in records(model.now.gates) if gate["outcome"] == "fail"]
    tone, words = _judgement(model, is_failed=bool(failed))
    drawn = w.estimate(TOTAL, row, thresholds=w.thresholds(TOTAL))._replace(tone=tone)
    numbers = {
        "value": w.value(TOTAL, row["value"]),
        "ends": w.ends(TOTAL, row),
        "level": w.level,
        "n": w.n(row),
    }
    numbers |= {
        "before": w.value(TOTAL, model.base.rows[TOTAL]["value"]),
        "picture": draw(drawn, width=260),
    }
    gates = [draw(mark) for mark in by_outcome(w, records(model.now.gates))]
    mark = draw(Mark(tone, words)) if tone else ""
    return render("score.html", say=say, mark=mark, gates=gates, **numbers)


def _judgement(model: Weighing, *, is_failed: bool) -> tuple[str, str]:
    """Return the tone of the overall score and its words.

    Nothing is good above a gate that failed, nor where the interval includes a threshold.
    """
    w = model.now.write
    row = model.now.rows[TOTAL]
    tone = w.tone(TOTAL, row["value"])
    if not tone:
        return "", ""
    words = model.say(f"mark.{tone}")
    if is_failed and tone == "good":
        return "watch", model.say("editor.but_failed", mark=words)
    ends = {w.tone(TOTAL, row[name]) for name in ("low", "high") if not is_missing(row[name])}
    if ends - {tone, ""}:
        return "watch" if tone == "good" else tone, model.say("editor.but_open", mark=words)
    return tone, words


def _notes(model: Weighing) -> Safe:
    """What is wrong with the weights as a whole, and what to know before believing the numbers."""
    problems = [text for (_, name), text in model.problems.items() if not name]
    lines = [element("p", text, role="alert", class_="rg-bad") for text in problems]
    return join(
        [*lines, draw(Text(tuple(notes(model.now.means, lang=model.lang)["text"]), "note"))]
    )


def _radar(model: Weighing) -> Safe:
    """Means by metric, one outline a system; each axis says how much it counts."""
    if not model.is_scored:
        return Safe("")
    w = model.now.write
    own = model.now.rows
    axes = {f"{name} {_percent(model.share(name))}": name for name in model.metrics if w.span(name)}
    # More than five systems cannot be told apart.
    shown = {name: model.now.by_system[name] for name in model.now.ranking[:5]} or {
        model.say("editor.now"): own
    }
    values = {
        name: [rows[metric]["value"] for metric in axes.values()] for name, rows in shown.items()
    }
    if axes:
        return draw(w.radar(axes, values, model.say("editor.radar")))
    return Safe("")


def _percent(share: float) -> str:
    """Write a share of the total without decimals."""
    if math.isnan(share):
        return "—"
    return f"{100 * share:.0f} %"


def _table(model: Weighing, rows: list[dict[str, Any]], title: str = "") -> Safe:
    """Return records as a table, under a heading; nothing for no records."""
    if not rows:
        return Safe("")
    heads = tuple(">" * (key in _NUMBERS) + model.say(f"editor.column.{key}") for key in rows[0])
    cells = tuple(
        tuple(count(cell) if key == "n" else cell for key, cell in row.items()) for row in rows
    )
    heading = element("h4", model.say(f"editor.{title}")) if title else ""
    return join([heading, draw(Table(heads, cells), model.lang)])


def _flip(model: Weighing, name: str) -> str:
    """Say from which weight of a metric on, moved alone, the other system leads; nothing where none does."""
    if (found := model.now.found) is None or (at := model.now.flips.get(name)) is None:
        return ""
    side = "below" if at < model.weight(METRIC, name) else "above"
    return model.say(f"editor.flip_{side}", name=one_line(found.order[1], 40), weight=f"{at:.3g}")


def _lead(model: Weighing) -> Safe:
    """Say which of two systems leads at these weights, and whether one weight alone changes that."""
    if (found := model.now.found) is None:
        return Safe("")
    ahead, behind = (one_line(name, 40) for name in found.order)
    value, low, high = found.at(found.today).iloc[0]
    if value < 0:
        # Told of the one that is ahead.
        value, low, high = -value, -high, -low
    words = {"name": ahead, "other": behind, "value": number(value), "ends": ends(low, high)}
    lines = [model.say("editor.leads", **words)]
    if (row := model.now.by_people) is not None:
        lines.append(_lead_by_people(model, row))
    lines.append(model.say("editor.flips" if model.now.flips else "editor.no_flip"))
    return render("lead.html", lines=lines)


def _lead_by_people(model: Weighing, row: Row) -> str:
    """Say what the ratings of people make of the lead that the judge's scores give."""
    if row["people"] not in BY_PEOPLE:
        return model.say("editor.judge_alone")
    value = row["value"]
    low = row["low"]
    high = row["high"]
    names = row["candidate"], row["baseline"]
    if value < 0:
        value, low, high, names = -value, -high, -low, names[::-1]
    name, other = (one_line(one, 40) for one in names)
    words = {"name": name, "other": other, "value": number(value), "ends": ends(low, high)}
    return model.say("editor.leads_by_people", **words)


def _systems(model: Weighing) -> Safe:
    """Systems by their weighted score, the best first, with the place that the weights of the start give."""
    base = model.base.ranking
    rows = []
    for rank, name in enumerate(model.now.ranking, 1):
        row = model.now.by_system[name][TOTAL]
        was = model.say("editor.was", what=base.index(name) + 1)
        shown = {"place": (str(rank), *[was] * (base[rank - 1] != name))}
        rows.append(
            shown | {"system": one_line(name, 60), "mean": _mean(model, row), "n": row["n"]}
        )
    return _table(model, rows, "systems")


def _gates(model: Weighing) -> Safe:
    """Every gate with its outcome; one that these weights flip says what it was and comes first."""
    rows = []
    w = model.now.write
    for row, old in zip(records(model.now.gates), records(model.base.gates), strict=True):
        outcome = w.outcome(row)
        before = w.outcome(old).text
        if not model.is_scored:
            before = model.say("editor.not_yet")
            outcome = Mark("none", before)
        rows.append(
            {
                "gate": (w.requirement(row), Code(w.code(row))),
                "mean": _mean(model, row),
                "n": row["n"],
                "outcome": (
                    outcome,
                    *[model.say("editor.was", what=before)] * (outcome.text != before),
                ),
            }
        )
    return _table(model, sorted(rows, key=lambda row: -len(row["outcome"])), "gates")


def _mean(model: Weighing, row: Row) -> tuple[str, Small]:
    """Write an estimate, and its interval in smaller type."""
    w = model.now.write
    metric = row["metric"]
    return w.value(metric, row["value"]), Small(w.ends(metric, row))


def weights_table(model: Weighing) -> Safe:
    """The weights as a table: what the editor is where nothing can be moved."""
    rows = [
        {
            "metric": name,
            "weight": f"{weight:g}",
            "share": _percent(model.share(name)),
            "mean": _mean(model, row),
        }
        | {"n": row["n"]}
        | ({"flip": _flip(model, name)} if model.now.flips else {})
        for (name, weight), row in (
            (item, model.now.rows[item[0]]) for item in model.metric_weights.items()
        )
    ]
    docs = [
        {"document": name, "weight": f"{weight:g}"} for name, weight in model.doc_weights.items()
    ]
    return join([_table(model, rows), _table(model, docs)])


# What a key changes first on the screen, and what follows.
FIRST_CELLS = (_title, _total, _radar)
REST_CELLS = (_lead, _notes, _gates)
