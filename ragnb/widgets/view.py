"""What the editor of weights shows in one cell."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
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
        self.held = Html(lang)
        self.rest = Html(lang)
        self.diff = Html(lang, live=True)
        self.note = Html(lang, live=True)
        # Of the numbers only the overall score is read aloud after each change.
        self.first = {cell: Html(lang, live=cell is _total) for cell in FIRST_CELLS}
        self.boxes = {METRIC: make("VBox"), DOC: make("VBox")}
        self._make_search()
        self._make_question()
        self.box = self._arrange()
        self.refresh(model)
        model.watchers.append(self.refresh)

    def _make_search(self) -> None:
        """Make the field in which a document is named, and the buttons that offer its hits."""
        say = self.model.say
        self.pick = field(say, "editor.document", placeholder=say("editor.search"), style=NAMED)
        hear(self, self.pick, self._search)
        self.pick.on_msg(self._hear_submit)
        self.hits = make(
            "ToggleButtons", style={"button_width": "auto"}, layout={"display": "none"}
        )
        self.hits.add_class("rg-hits")
        hear(self, self.hits, self._add)

    def _hear_submit(self, _: Any, content: dict[str, Any], __: Any) -> None:
        # Enter, in place of `Text.on_submit`, which ipywidgets 8 warns of as deprecated.
        if content.get("event") == "submit":
            self._add(self.pick.value)

    def _make_question(self) -> None:
        """Make the button that saves, and the question that it asks before."""
        say = self.model.say
        self.save = button(say, "editor.save", self._ask, button_style="primary")
        self.name = field(
            say, "editor.save_as", placeholder=say("editor.save_as_hint"), continuous_update=False
        )
        read_again = partial(self._ask, self.model.reload, self._compare)
        self.again = button(say, "editor.reload", read_again)
        write = button(say, "editor.write", partial(self._ask, self._write), button_style="primary")
        answers = make("HBox", [write, self.again, button(say, "editor.cancel", self._hide)])
        self.question = make("VBox", [self.name, answers], layout={"display": "none"})

    def _arrange(self) -> Any:
        """Return the title, and below it the weights beside the numbers."""
        model = self.model
        say = model.say
        flow = {"flex_flow": "row wrap"}
        tools = [
            button(say, "editor.reset", model.reset),
            button(say, "editor.equal", model.equal),
            button(say, "editor.normalise", model.normalise),
        ]
        weights = []
        for key, box in zip(("metrics", "documents"), self.boxes.values(), strict=True):
            heading = element("h4", say(f"editor.{key}"))
            hint = element("p", say(f"editor.{key}_hint"), class_="rg-note")
            weights += [Html(model.lang, join([heading, hint])).widget, box]
        weights += [
            self.pick,
            self.hits,
            self.note.widget,
            make("HBox", [*tools, self.save], layout=flow),
            self.diff.widget,
            self.question,
            self.held.widget,
        ]
        title, *numbers = [html.widget for html in (*self.first.values(), self.rest)]
        sides = [
            make("VBox", side, layout={"flex": "1 1 400px", "min_width": "0"})
            for side in (weights, numbers)
        ]
        return make("VBox", [title, make("HBox", sides, layout={**flow, **_SPACED})])

    def refresh(self, model: Weighing) -> None:
        """Show what the model holds now, the numbers first."""
        for cell, html in self.first.items():
            html.show(cell(model))
        places = [(METRIC, name) for name in model.metrics]
        places += [(DOC, name) for name in model.doc_weights]
        # Rows that stay are not made again: their fields keep the focus, and the browser gets no new widgets.
        self._rows = {place: self._rows.get(place) or WeightRow(model, *place) for place in places}
        for kind, box in self.boxes.items():
            box.children = [row.box for place, row in self._rows.items() if place[0] == kind]
        for row in self._rows.values():
            row.refresh()
        self.rest.show(join(cell(model) for cell in REST_CELLS))
        # In the order of the fields on the page, see `held`.
        values: list[object] = []
        for row in self._rows.values():
            values += [row.text.value, row.slider.value]
        self.held.show(held(values))
        is_wrong = bool(model.problems)
        self.save.disabled = model.scenario.path is None or not model.is_changed() or is_wrong

    def _search(self, text: str) -> None:
        """Offer the documents whose names hold what is typed."""
        hits = self.model.find(text) if text.strip() else []
        self.busy = True  # options select their first one by themselves
        with self.hits.hold_sync():
            self.hits.options = hits[:_HITS]
            self.hits.value = None
        self.busy = False
        self.hits.layout.display = "flex" if hits else "none"
        more = ""
        if len(hits) > _HITS:
            more = self.model.say("editor.more", n=len(hits) - _HITS)
        self.note.warn(more, "rg-said")

    def _add(self, name: str) -> None:
        """Give a document a row, or say why there is none; what is typed stays to be corrected then."""
        problem = self.model.add(name)
        if not problem:
            self.pick.value = ""
        self.note.warn(problem)

    # Saving asks before it writes: the diff, another name, and what stands in the way.

    def _ask(self, *acts: Callable[[], None]) -> None:
        """Show what saving would change, or do what the answer says; or say why not, and offer to read again."""
        self.question.layout.display = "flex"
        self.again.layout.display = "none"
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
            self._hide(say("editor.same"))
            return
        text = say("editor.will_change", file=patch.file.name, n=len(patch.changed))
        # With a tab stop, so that a wide diff can be scrolled with the keyboard.
        diff = element("pre", patch.diff, class_="rg-diff", tabindex=0)
        self.diff.show(join([element("p", text), diff]))

    def _write(self) -> None:
        name = self.name.value.strip()
        path = self.model.scenario.path
        to = None  # the scenario's own file
        if name and path:
            to = path.parent / name
        changed = self.model.save(to)
        self.name.value = ""
        saved = self.model.scenario.path  # the new file, if another name was given
        file_name = saved.name if saved else ""
        self._hide(self.model.say("editor.saved", file=file_name, fields=", ".join(changed)))


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
        # The right end of the slider; it moves when a greater weight is typed. Metric weights that are all below 1
        # are taken for shares.
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
        # The class of this row, by which the style in weight.html finds the slider that it marks.
        self.mark = f"rg-flip-{next(numbers)}"
        self._line = make(
            "HBox", [self.text, self.slider, self.last], layout={"align_items": "center"}
        )
        self.box = make("VBox", [self._line, self.said.widget])
        self.box.add_class("rg-row").add_class(self.mark)
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
        largest_snap = GRID / 2 + 1e-9  # and what floating-point differences add to it
        if abs(weight - self.model.weight(*self.place)) > largest_snap:
            self.model.set(*self.place, round(weight, 2))

    def refresh(self) -> None:
        """Show what the model holds."""
        model = self.model
        kind, name = self.place
        weight = model.weight(kind, name)
        problem = model.problems.get(self.place, "")
        self.busy = True
        if not problem:  # else what was typed stays to be corrected
            self.text.value = f"{weight:.12g}"
        if weight > self.slider.max:
            self._widen(math.ceil(weight))
        self.slider.value = weight
        self.busy = False
        marks = {"weight": weight, "start": model.start(kind, name), "mark": self.mark}
        if kind == METRIC:
            self.last.value = _percent(model.share(name))
            marks["flip"] = _flip(model, name)
            # As a share of the slider; beyond its end the flip is only said.
            marks["at"] = model.now.flips.get(name, math.inf) / self.slider.max
        elif name not in model.documents:
            problem = problem or model.say("editor.absent")
        self.said.show(render("weight.html", say=model.say, problem=problem, **marks))


# What the editor shows, as HTML


def _title(model: Weighing) -> Safe:
    name = model.scenario.title or model.scenario.name
    return element("h3", model.say("editor.title", name=name))


def _total(model: Weighing) -> Safe:
    """The overall score with its interval, its place between the thresholds, and what it was; of each system."""
    if model.now.systems is not None:  # which are never pooled into one score
        return _systems(model)
    say = model.say
    writer = model.now.write
    row = model.now.rows[TOTAL]
    if is_missing(row["value"]) or writer.span(TOTAL) is None:
        if model.is_scored:
            why = why_no_total(model.now.means, lang=model.lang)
        else:
            why = say("editor.unscored")
        return render("score.html", say=say, why=why)
    gates = records(model.now.gates)
    is_failed = any(gate["outcome"] == "fail" for gate in gates)
    tone, words = _judgement(model, is_failed=is_failed)
    estimate = writer.estimate(TOTAL, row, thresholds=writer.thresholds(TOTAL))
    # The picture has the colour of the words beside it, which gates and the interval may have toned down.
    picture = draw(estimate._replace(tone=tone), width=260)
    return render(
        "score.html",
        say=say,
        mark=draw(Mark(tone, words)) if tone else "",
        gates=[draw(mark) for mark in by_outcome(writer, gates)],
        value=writer.value(TOTAL, row["value"]),
        ends=writer.ends(TOTAL, row),
        level=writer.level,
        n=writer.n(row),
        before=writer.value(TOTAL, model.base.rows[TOTAL]["value"]),
        picture=picture,
    )


def _judgement(model: Weighing, *, is_failed: bool) -> tuple[str, str]:
    """Return the tone of the overall score and its words.

    Nothing is good above a gate that failed, nor where the interval includes a threshold.
    """
    writer = model.now.write
    row = model.now.rows[TOTAL]
    tone = writer.tone(TOTAL, row["value"])
    if not tone:
        return "", ""
    words = model.say(f"mark.{tone}")
    if is_failed and tone == "good":
        return "watch", model.say("editor.but_failed", mark=words)
    limits = [row[name] for name in ("low", "high") if not is_missing(row[name])]
    tones_of_limits = {writer.tone(TOTAL, limit) for limit in limits}
    if tones_of_limits - {tone, ""}:
        words = model.say("editor.but_open", mark=words)
        if tone == "good":
            tone = "watch"
    return tone, words


def _notes(model: Weighing) -> Safe:
    """What is wrong with the weights as a whole, and what to know before believing the numbers."""
    # Those of one weight are in its row.
    problems = [text for (_, name), text in model.problems.items() if not name]
    alerts = [element("p", text, role="alert", class_="rg-bad") for text in problems]
    texts_of_notes = tuple(notes(model.now.means, lang=model.lang)["text"])
    return join([*alerts, draw(Text(texts_of_notes, "note"))])


def _radar(model: Weighing) -> Safe:
    """Means by metric, one outline a system; each axis says how much it counts."""
    if not model.is_scored:
        return Safe("")
    writer = model.now.write
    metrics = [name for name in model.metrics if writer.span(name)]
    if not metrics:
        return Safe("")
    axes = {f"{name} {_percent(model.share(name))}": name for name in metrics}
    # More than five systems cannot be told apart.
    shown = {name: model.now.by_system[name] for name in model.now.ranking[:5]}
    if not shown:
        shown = {model.say("editor.now"): model.now.rows}
    values = {name: [rows[metric]["value"] for metric in metrics] for name, rows in shown.items()}
    return draw(writer.radar(axes, values, model.say("editor.radar")))


def _percent(share: float) -> str:
    """Write a share of the total without decimals."""
    if math.isnan(share):
        return "—"
    return f"{100 * share:.0f} %"


def _table(model: Weighing, rows: list[dict[str, Any]], title: str = "") -> Safe:
    """Return records as a table, under a heading; nothing for no records."""
    if not rows:
        return Safe("")
    heads = []
    for key in rows[0]:
        head = model.say(f"editor.column.{key}")
        # A leading ">" aligns a column to the right.
        heads.append(f">{head}" if key in _NUMBERS else head)
    cells = [
        tuple(count(cell) if key == "n" else cell for key, cell in row.items()) for row in rows
    ]
    heading = element("h4", model.say(f"editor.{title}")) if title else ""
    return join([heading, draw(Table(tuple(heads), tuple(cells)), model.lang)])


def _flip(model: Weighing, name: str) -> str:
    """Say from which weight of a metric on, moved alone, the other system leads; nothing where none does."""
    weight_map = model.now.found
    flip = model.now.flips.get(name)
    if weight_map is None or flip is None:
        return ""
    side = "below" if flip < model.weight(METRIC, name) else "above"
    behind = one_line(weight_map.order[1], 40)
    return model.say(f"editor.flip_{side}", name=behind, weight=f"{flip:.3g}")


def _lead(model: Weighing) -> Safe:
    """Say which of two systems leads at these weights, and whether one weight alone changes that."""
    weight_map = model.now.found
    if weight_map is None:
        return Safe("")
    ahead, behind = (one_line(name, 40) for name in weight_map.order)
    value, low, high = weight_map.at(weight_map.today).iloc[0]
    if value < 0:
        # Turned round, as the sentence is about the one that is ahead.
        value, low, high = -value, -high, -low
    words = {"name": ahead, "other": behind, "value": number(value), "ends": ends(low, high)}
    lines = [model.say("editor.leads", **words)]
    row = model.now.by_people
    if row is not None:
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
    ahead = row["candidate"]
    behind = row["baseline"]
    if value < 0:
        value, low, high = -value, -high, -low
        ahead, behind = behind, ahead
    return model.say(
        "editor.leads_by_people",
        name=one_line(ahead, 40),
        other=one_line(behind, 40),
        value=number(value),
        ends=ends(low, high),
    )


def _systems(model: Weighing) -> Safe:
    """Systems by their weighted score, the best first, with the place that the weights of the start give."""
    base = model.base.ranking
    rows = []
    for rank, name in enumerate(model.now.ranking, 1):
        row = model.now.by_system[name][TOTAL]
        place = [str(rank)]
        if base[rank - 1] != name:
            place.append(model.say("editor.was", what=base.index(name) + 1))
        rows.append(
            {
                "place": tuple(place),
                "system": one_line(name, 60),
                "mean": _mean(model, row),
                "n": row["n"],
            }
        )
    return _table(model, rows, "systems")


def _gates(model: Weighing) -> Safe:
    """Every gate with its outcome; one that these weights flip says what it was and comes first."""
    flipped = []
    unchanged = []
    writer = model.now.write
    for row, row_at_start in zip(records(model.now.gates), records(model.base.gates), strict=True):
        if model.is_scored:
            outcome = writer.outcome(row)
            before = writer.outcome(row_at_start).text
        else:
            before = model.say("editor.not_yet")
            outcome = Mark("none", before)
        shown = {
            "gate": (writer.requirement(row), Code(writer.code(row))),
            "mean": _mean(model, row),
            "n": row["n"],
        }
        if outcome.text == before:
            unchanged.append(shown | {"outcome": (outcome,)})
        else:
            was = model.say("editor.was", what=before)
            flipped.append(shown | {"outcome": (outcome, was)})
    return _table(model, [*flipped, *unchanged], "gates")


def _mean(model: Weighing, row: Row) -> tuple[str, Small]:
    """Write an estimate, and its interval in smaller type."""
    writer = model.now.write
    metric = row["metric"]
    return writer.value(metric, row["value"]), Small(writer.ends(metric, row))


def weights_table(model: Weighing) -> Safe:
    """The weights as a table: what the editor is where nothing can be moved."""
    metrics = []
    for name, weight in model.metric_weights.items():
        row = model.now.rows[name]
        shown = {
            "metric": name,
            "weight": f"{weight:g}",
            "share": _percent(model.share(name)),
            "mean": _mean(model, row),
            "n": row["n"],
        }
        if model.now.flips:
            shown["flip"] = _flip(model, name)
        metrics.append(shown)
    documents = [
        {"document": name, "weight": f"{weight:g}"} for name, weight in model.doc_weights.items()
    ]
    return join([_table(model, metrics), _table(model, documents)])


# What a key changes first on the screen, and what follows.
FIRST_CELLS = (_title, _total, _radar)
REST_CELLS = (_lead, _notes, _gates)
