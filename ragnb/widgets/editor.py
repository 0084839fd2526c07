"""The weight editor as a notebook sees it: rows to type and to drag, the numbers beside them, and saving."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd

from ragnb import markup
from ragnb.errors import RagnbError
from ragnb.markup import Column, Safe, element, join, one_line
from ragnb.sheet.build import weighable
from ragnb.sheet.formatter import TOTAL, Formatter
from ragnb.texts.errors import translated
from ragnb.widgets.shown import NAMED, Html, Twin, button, numbers
from ragnb.widgets.weighing import DOC, GRID, METRIC, Weighing

_KINDS: Any = {"weight": "number", "share": "number", "mean": "number", "n": "count"}


class WeightEditor(Twin):
    """Turn the weights of metrics and documents, and see what follows while a slider moves.

    Shown as the last line of a cell. Without a running kernel it is a picture and tables. Of two systems, or one
    and its ``baseline=``, each slider shows where the leader changes by their common questions, as
    `ragnb.weight_map` finds it.

    Parameters
    ----------
    source : path, Scenario, frame or Moments
        A scenario, a folder of them, whatever `ragnb.assess` takes, or moments, from which everything shown
        follows whatever the number of rows.
    **overrides
        Fields of `Scenario` for this editor only, such as ``lang="zh"``, ``gates=``, ``baseline=`` or
        ``metric_weights=``.

    Attributes
    ----------
    model : Weighing
        The state; it can be driven without a browser.
    metric_weights, doc_weights : dict of str to float
        The weights as they stand, as `ragnb.weighted_means` takes them.
    means : DataFrame
        The means at these weights.

    Raises
    ------
    RagnbError
        As `ragnb.assess`; and for a folder without a scenario.

    Examples
    --------
    >>> scores = pd.DataFrame({"faithfulness": [0.9, 0.4], "context_recall": [0.2, 0.8], "doc_name": ["a", "b"]})
    >>> editor = WeightEditor(scores)
    >>> editor.model.set("metric_weights", "faithfulness", 3)
    >>> editor.metric_weights
    {'faithfulness': 3.0, 'context_recall': 1.0}
    >>> editor.means["value"].round(4).tolist()
    [0.65, 0.5, 0.6125]
    """

    def __init__(self, source: Any, **overrides: Any) -> None:
        self._overrides = overrides
        self._watchers: list[Callable[[WeightEditor], object]] = []
        self._choices, first = _choices(source)
        self._views: dict[str, EditorView] = {}
        self.model: Weighing = self._open(first)

    @property
    def metric_weights(self) -> dict[str, float]:
        """The weight of every metric that has a row."""
        return self.model.metric_weights

    @property
    def doc_weights(self) -> dict[str, float]:
        """The weight of every document that has a row."""
        return self.model.doc_weights

    @property
    def means(self) -> pd.DataFrame:
        """The weighted means at these weights, as `ragnb.weighted_means` gives them."""
        return self.model.now.means

    def observe(self, watcher: Callable[[WeightEditor], object]) -> Callable[[], None]:
        """Call `watcher` with this editor after every change; the function returned ends that.

        Examples
        --------
        >>> editor = WeightEditor(pd.DataFrame({"faithfulness": [0.9, 0.4]}))
        >>> stop = editor.observe(lambda e: print(e.metric_weights))
        >>> editor.model.set("metric_weights", "faithfulness", "0.5")
        {'faithfulness': 0.5}
        >>> stop()
        """
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def save(self, to: str | Path | None = None) -> list[str]:
        """Write the weights into the scenario's file, or into a new one, and return the fields that changed."""
        return self.model.save(to)

    def _open(self, source: Any) -> Weighing:
        model = Weighing(weighable(source, **self._overrides))
        model.observe(self._notify)
        return model

    def _notify(self, model: Weighing) -> None:
        for watcher in list(self._watchers) if model is self.model else ():
            watcher(self)

    # In a notebook

    def __repr__(self) -> str:
        name, total = self.model.scenario.name, self.means["value"].iloc[-1]
        return f"WeightEditor({name!r}: weighted_score={total:.3f}, {self.metric_weights})"

    def _static(self) -> Safe:
        """The editor as a picture and tables."""
        model, w = self.model, _writer(self.model)
        hint = element("p", model.say("editor.static"), class_="rg-note")
        parts = [part(model, w) for part in (_total, _radar, _weights, _lead, _systems, _gates)]
        return join([element("h3", _title(model)), hint, *parts])

    @cached_property
    def view(self) -> Any:
        """The widgets, made when they are first asked for."""
        import ipywidgets as ipw

        path, self._place = str(self.model.scenario.path), ipw.VBox()
        self._title, self._problem = Html(self.model.lang), Html(self.model.lang, live=True)
        names = {file.name: str(file) for file in self._choices}
        self._chooser = ipw.Dropdown(
            options=names, value=path if names else None, description=self.model.say("editor.scenario"),
            style={"description_width": "initial"}, layout={"width": "max-content"},
        )  # fmt: skip
        self._chooser.observe(lambda change: self._choose(change["new"]), "value")
        self._show(path, EditorView(self.model))
        head = [self._title.widget, *[self._chooser] * bool(names)]
        return self._box(*head, self._problem.widget, self._place)

    def _choose(self, path: str) -> None:
        """Turn to another scenario; what was changed in this one waits there."""
        try:
            view = self._views.get(path) or EditorView(self._open(path))
        except RagnbError as error:
            self._problem.warn(translated(str(error), self.model.lang), "rg-bad", role="alert")
            return
        self._problem.warn("")
        self._show(path, view)
        self._notify(self.model)

    def _show(self, path: str, view: EditorView) -> None:
        self.model, self._views[path], self._place.children = view.model, view, (view.box,)
        self._title.show(element("h3", _title(self.model)))


def _choices(source: Any) -> tuple[list[Path], Any]:
    """The scenarios to choose from, and the one to open first."""
    kinds = (".yaml", ".yml")
    if not isinstance(source, str | Path) or not (Path(source).suffix.lower() in kinds or Path(source).is_dir()):
        return [], source
    path = Path(source).resolve()
    folder = path if path.is_dir() else path.parent
    files = sorted(entry for entry in folder.glob("*") if entry.suffix.lower() in kinds)
    if path.is_dir() and not files:
        raise RagnbError(f"no scenario (.yaml) in {str(source)!r}; name a file, or another folder")
    return files, files[0] if path.is_dir() else path


class EditorView:
    """The widgets of one model: they show it and pass on what a person does, no more.

    Parameters
    ----------
    model : Weighing
    """

    def __init__(self, model: Weighing) -> None:
        import ipywidgets as ipw

        self.model, self._rows = model, dict[tuple[str, str], Row]()
        lang, say, flow = model.lang, model.say, {"flex_flow": "row wrap"}
        self.status, self.diff, self.note = Html(lang, live=True), Html(lang, live=True), Html(lang)
        self.parts = {part: Html(lang, live=part is _total) for part in (_total, _radar, _systems, _gates, _lead)}
        self.boxes = {METRIC: ipw.VBox(), DOC: ipw.VBox()}
        self.pick = ipw.Combobox(
            description=say("editor.document"), placeholder=say("editor.search"), style=NAMED,
            layout={"width": "auto", "flex": "1 1 auto"},
        )  # fmt: skip
        self.pick.observe(lambda change: self._search(change["new"]), "value")
        adding = ipw.HBox([self.pick, button(say, "editor.add", self._add)])
        self.save = button(say, "editor.save", self._ask, button_style="primary")
        self.name = ipw.Text(
            description=say("editor.save_as"), placeholder=say("editor.save_as_hint"), continuous_update=False,
            style={"description_width": "initial"}, layout={"width": "auto"},
        )  # fmt: skip
        self.again = button(say, "editor.reload", partial(self._ask, self._reload))
        write = button(say, "editor.write", partial(self._ask, self._write), button_style="primary")
        answers = ipw.HBox([write, self.again, button(say, "editor.cancel", self._hide)])
        self.question = ipw.VBox([self.diff.widget, self.name, answers], layout={"display": "none"})
        acts = {"reset": model.reset, "equal": model.equal, "normalise": model.normalise}
        tools, left = [button(say, f"editor.{name}", act) for name, act in acts.items()], []
        for key, field in (("metrics", METRIC), ("documents", DOC)):
            heading, hint = Html(lang), element("p", say(f"editor.{key}_hint"), class_="rg-note")
            heading.show(join([element("h4", say(f"editor.{key}")), hint]))
            left += [heading.widget, self.boxes[field]]
        left.insert(2, self.parts[_lead].widget)  # under the sliders of the metrics
        buttons = ipw.HBox([*tools, self.save], layout=flow)
        left += [adding, self.note.widget, buttons, self.question, self.status.widget]
        right = [part.widget for name, part in self.parts.items() if name is not _lead]
        self.box = ipw.HBox(
            [ipw.VBox(left, layout={"flex": "1 1 430px", "min_width": "0", "max_width": "520px"}),
             ipw.VBox(right, layout={"flex": "1 1 380px", "min_width": "0"})],
            layout={**flow, "grid_gap": "8px 32px", "align_items": "flex-start"},
        )  # fmt: skip
        self.refresh(model)
        model.observe(self.refresh)

    def refresh(self, model: Weighing) -> None:
        """Show what the model holds now, the numbers first."""
        w = _writer(model)
        for part, html in self.parts.items():
            html.show(part(model, w))
        places = [(METRIC, name) for name in model.metrics] + [(DOC, name) for name in model.doc_weights]
        # Rows that stay are not made anew.
        self._rows = {place: self._rows.get(place) or Row(model, *place) for place in places}
        for field, box in self.boxes.items():
            rows = tuple(row.box for (own, _), row in self._rows.items() if own == field)
            if box.children != rows:
                box.children = rows
        for row in self._rows.values():
            row.refresh()
        self.save.disabled = model.scenario.path is None or not model.is_changed()

    def _search(self, text: str) -> None:
        self.pick.options = tuple(self.model.find(text))

    def _add(self) -> None:
        problem = self.model.add(self.pick.value)
        self.note.warn(problem, role="alert")
        if not problem:
            self.pick.value = ""

    # Saving asks before it writes: the diff, another name, and what stands in the way.

    def _ask(self, act: Callable[[], None] | None = None) -> None:
        """Show what saving would change, or do what the answer says; or say why not, and offer to read again."""
        self.question.layout.display, self.again.layout.display = "flex", "none"
        try:
            (act or self._compare)()
        except RagnbError as error:
            self.diff.warn(translated(str(error), self.model.lang), "rg-bad", role="alert")
            self.again.layout.display = "inline-flex"

    def _hide(self) -> None:
        self.question.layout.display = "none"

    def _compare(self) -> None:
        patch, say = self.model.plan(), self.model.say
        if not patch.changed:
            return self._done(say("editor.same"))
        text = say("editor.will_change", file=patch.file.name, n=len(patch.changed))
        return self.diff.show(join([element("p", text), element("pre", patch.diff, class_="rg-diff", tabindex=0)]))

    def _write(self) -> None:
        name, home = self.name.value.strip(), self.model.scenario.path
        changed = self.model.save(home.parent / Path(name) if name and home else None)
        self.name.value, file = "", self.model.scenario.path
        self._done(self.model.say("editor.saved", file=file.name if file else "", fields=", ".join(changed)))

    def _reload(self) -> None:
        self.model.reload()
        self._compare()

    def _done(self, text: str) -> None:
        self._hide()
        self.status.show(element("p", text, class_="rg-said", role="status"))


class Row:
    """One weight as a row: a number to type, a slider to drag, its share, and what is wrong with it.

    Parameters
    ----------
    model : Weighing
    field, name : str
        Which weight it shows.
    """

    def __init__(self, model: Weighing, field: str, name: str) -> None:
        import ipywidgets as ipw

        self.model, self.place, self._busy = model, (field, name), False
        # The right end of the slider; it moves when a greater weight is typed.
        top = 4.0 if field == DOC else 1.0 if max(model.metric_weights.values()) < 1 else 2.0
        self.text = ipw.Text(
            description=name, tooltip=name, continuous_update=False, style=NAMED, layout={"width": "250px"}
        )
        self.slider = ipw.FloatSlider(
            min=0, max=top, step=GRID, readout=False, tooltip=name, layout={"width": "auto", "flex": "1 1 90px"}
        )
        self.last = ipw.Label(layout={"width": "46px", "display": "flex", "justify_content": "flex-end"})
        if field == DOC:
            hint = model.say("editor.remove", name=name)
            self.last = ipw.Button(description="×", tooltip=hint, layout={"width": "32px"})
            self.last.on_click(lambda _: model.remove(name))
        self.said, self.flip, self.mark = Html(model.lang, live=True), Html(model.lang), f"rg-flip-{next(numbers)}"
        line = ipw.HBox([self.text, self.slider, self.last], layout={"align_items": "center"})
        self.box = ipw.VBox([line, self.flip.widget, self.said.widget])
        self.box.add_class("rg-row").add_class(self.mark)
        self.text.observe(self._typed, "value")
        self.slider.observe(self._dragged, "value")

    def _typed(self, change: Any) -> None:
        if not self._busy:
            self.model.set(*self.place, change["new"])

    def _dragged(self, change: Any) -> None:
        # A slider snaps what it is given to its grid and sends that back; only a person moves it further.
        if not self._busy and abs(change["new"] - self.model.weight(*self.place)) > GRID / 2 + 1e-9:
            self.model.set(*self.place, round(change["new"], 2))

    def refresh(self) -> None:
        """Show what the model holds."""
        model, (field, name) = self.model, self.place
        weight, problem = model.weight(field, name), model.problems.get(self.place, "")
        self._busy = True
        self.text.placeholder = f"{weight:.12g}"
        if not problem:
            self.text.value = model.typed(field, name)
        self.slider.max = max(self.slider.max, math.ceil(weight))
        self.slider.value = weight
        self._busy = False
        if field == METRIC:
            self.last.value = _percent(model.share(name))
            self.flip.show(self._flip(_flip(model, name)))
        elif name not in model.documents:
            problem = problem or model.say("editor.absent")
        self.said.warn(problem)


    def _flip(self, words: str) -> Safe:
        """Mark on the slider where the leader changes, and say it below."""
        at = self.model.now.flips.get(self.place[1], math.inf) / self.slider.max
        rule = f".{self.mark} .noUi-base::after {{ display: block; left: {100 * at:.3f}%; }}" if at <= 1 else ""
        said = element("p", words, class_="rg-said rg-flip", id=self.mark)
        return join([Safe(f"<style>{rule}</style>"), said]) if words else Safe("")


# What the editor shows, as HTML


def _writer(model: Weighing) -> Formatter:
    """Return what writes the model's numbers, the same as on the report."""
    sheet: Any = SimpleNamespace(scenario=model.scenario, means=model.now.means)
    return Formatter(sheet)


def _title(model: Weighing) -> str:
    return model.say("editor.title", name=model.scenario.title or model.scenario.name)


def _total(model: Weighing, w: Formatter) -> Safe:
    """The weighted score with its interval, what the file's weights give, and the notes."""
    say, row = model.say, w.rows[TOTAL]
    tone = w.tone(TOTAL, row["value"])
    before = model.base.means.iloc[-1].to_dict()
    note = join([w.counted(row), element("br"), say("editor.before", value=w.interval(TOTAL, before))])
    missing = pd.isna(row["value"])
    card = markup.card(
        w.title(TOTAL),
        w.interval(TOTAL, row),
        mark=markup.badge(tone, lang=w.lang) if tone else "",
        picture="" if missing else _drawn(w, row),
        note=w.why_missing(TOTAL) if missing else note,
    )
    problems = [text for (_, name), text in model.problems.items() if not name]
    lines = [element("p", text, role="alert", class_="rg-bad") for text in problems]
    lines += [element("li", text) for text in model.now.notes["text"]]
    return join([card, element("ul", *lines, class_="rg-notes") if lines else Safe("")])


def _radar(model: Weighing, w: Formatter) -> Safe:
    """Means by metric, one outline a system; each axis says how much it counts."""
    axes = [name for name in model.metrics if w.span(name)]
    if not axes:
        return Safe("")
    parts: Any = [(model.say("editor.now"), model.now.means)]
    table, label = model.now.systems, model.say("editor.radar")
    if table is not None and table[table.columns[0]].nunique() <= len(markup.SYSTEM_COLOURS):
        parts = table.groupby(str(table.columns[0]), sort=False)
    values = {str(name): rows.set_index("metric")["value"][axes].tolist() for name, rows in parts}
    names = {name: f"{name} {_percent(model.share(name))}" for name in axes}
    about: Any = {"ranges": w.scales, "better": w.better}
    about = {key: {names[name]: held[name] for name in axes} for key, held in about.items()}
    picture = markup.radar_svg(list(names.values()), values, radius=105, lang=w.lang, label=label, **about)
    return markup.figure(picture, label)


def _percent(share: float) -> str:
    """Write a share of the total without decimals."""
    return markup.MISSING if math.isnan(share) else f"{100 * share:.0f} %"


def _table(w: Formatter, rows: list[dict[str, Any]]) -> Safe:
    """Write records under the sheet's own names of their columns; no table for no records."""
    if not rows:
        return Safe("")
    heads = {key: key if key == "#" else w.say(f"column.{key}", level=w.level) for key in rows[0]}
    return w.table(rows, {key: Column(head, _KINDS.get(key, "text")) for key, head in heads.items()})


def _flip(model: Weighing, name: str) -> str:
    """Say from which weight of a metric on, moved alone, the other system leads; nothing where none does."""
    if (found := model.now.found) is None or (at := model.now.flips.get(name)) is None:
        return ""
    side = "below" if at < model.weight(METRIC, name) else "above"
    return model.say(f"editor.flip_{side}", name=one_line(found.order[1], 40), weight=f"{at:.3g}")


def _lead(model: Weighing, w: Formatter) -> Safe:
    """Say which of two systems leads at these weights, and whether one weight alone changes that."""
    if (found := model.now.found) is None:
        return Safe("")
    ahead, behind = (one_line(name, 40) for name in found.order)
    value, low, high = found.at(found.today).iloc[0]
    ends = (value, low, high) if value >= 0 else (-value, -high, -low)
    leads = model.say("editor.leads", name=ahead, other=behind, value=markup.with_interval(*ends))
    flips = model.say("editor.flips" if model.now.flips else "editor.no_flip")
    return element("p", leads, element("br"), flips, class_="rg-note")


def _systems(model: Weighing, w: Formatter) -> Safe:
    """Systems by their weighted score, the best first, with the place that the file's weights give."""
    if model.now.systems is None or model.base.systems is None:
        return Safe("")
    now, base = (
        table[table["metric"] == TOTAL].sort_values("value", ascending=False, kind="stable").to_dict("records")
        for table in (model.now.systems, model.base.systems)
    )
    by = model.now.systems.columns[0]
    before = {row[by]: place for place, row in enumerate(base, 1)}
    rows = [
        {
            "#": join([str(place), _was(model, before[row[by]], before[row[by]] != place)]),
            "system": element("span", one_line(row[by], 60), class_="rg-name"),
            "mean": Safe(w.interval(TOTAL, row)),
            "n": row["n"],
        }
        for place, row in enumerate(now, 1)
    ]
    return _section(w, "systems", _table(w, rows))


def _gates(model: Weighing, w: Formatter) -> Safe:
    """Every gate with its outcome; one that these weights flip says what it was and comes first."""
    rows = []
    for row, old in zip(model.now.gates.to_dict("records"), model.base.gates.to_dict("records"), strict=True):
        flips = (row["outcome"], row["blocks"]) != (old["outcome"], old["blocks"])
        mark = w.outcome(row)
        shown = {
            "gate": w.requirement(row),
            "mean": Safe(w.interval(str(row["metric"]), row)),
            "n": row["n"],
            "outcome": join([markup.badge(mark.tone, mark.text), _was(model, w.outcome(old).text, flips)]),
        }
        rows.append((not flips, shown))
    return _section(w, "gates", _table(w, [shown for _, shown in sorted(rows, key=lambda row: row[0])]))


def _drawn(w: Formatter, row: Any) -> Safe:
    estimate = w.estimate(TOTAL, row, thresholds=w.thresholds(TOTAL))
    return Safe("") if estimate.span is None else markup.draw(estimate, w.lang, width=260)


def _section(w: Formatter, key: str, body: str) -> Safe:
    """Return a part under its heading; nothing for an empty one."""
    return join([element("h2", w.say(f"sheet.{key}")), body]) if body else Safe("")


def _was(model: Weighing, what: object, differs: bool) -> Safe:
    """Say what the file's weights give, where that differs."""
    return join([Safe("<br>"), element("strong", model.say("editor.was", what=what))]) if differs else Safe("")


def _weights(model: Weighing, w: Formatter) -> Safe:
    """The weights as a table: what the editor is where nothing can be moved."""
    rows = [
        {"metric": name, "weight": Safe(f"{weight:g}"), "share": Safe(_percent(model.share(name))),
         "mean": Safe(w.interval(name, w.rows[name])), "n": w.rows[name]["n"]}
        | ({"flip": _flip(model, name)} if model.now.flips else {})
        for name, weight in model.metric_weights.items()
    ]  # fmt: skip
    docs = [{"document": name, "weight": Safe(f"{weight:g}")} for name, weight in model.doc_weights.items()]
    return join([_table(w, rows), _table(w, docs)])
