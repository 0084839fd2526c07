"""The widgets of the editor: they show a `Weighing` and pass on what a person does, no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ragnb.errors import RagnbError
from ragnb.markup import element, join
from ragnb.texts.errors import translated
from ragnb.widgets import pictures
from ragnb.widgets.rows import Row
from ragnb.widgets.shown import NAMED, Html, button
from ragnb.widgets.weighing import DOC, METRIC, Weighing


class EditorView:
    """The widgets of one model.

    Parameters
    ----------
    model : Weighing
    """

    def __init__(self, model: Weighing) -> None:
        import ipywidgets as ipw

        self.model, self._rows = model, dict[tuple[str, str], Row]()
        lang, say = model.scenario.lang, model.say
        self.total, self.status = Html(lang, live=True), Html(lang, live=True)
        self.radar, self.systems, self.gates, self.note = (Html(lang) for _ in range(4))
        self.metrics, self.documents = ipw.VBox(), ipw.VBox()
        self.pick = ipw.Combobox(
            description=say("editor.document"), placeholder=say("editor.search"), style=NAMED,
            layout={"width": "auto", "flex": "1 1 auto"},
        )  # fmt: skip
        self.pick.observe(lambda change: self._search(change["new"]), "value")
        adding = ipw.HBox([self.pick, button(say, "editor.add", self._add)])
        self.saver = Saver(self)
        acts = {"undo": model.undo, "reset": model.reset, "equal": model.equal, "normalise": model.normalise}
        tools = [button(say, f"editor.{name}", act) for name, act in acts.items()]
        self.undo, flow = tools[0], {"flex_flow": "row wrap"}
        left = [_head(model, "metrics"), self.metrics, _head(model, "documents"), self.documents, adding,
                self.note.widget, ipw.HBox([*tools, self.saver.open], layout=flow), self.saver.box,
                self.status.widget]  # fmt: skip
        right = [part.widget for part in (self.total, self.radar, self.systems, self.gates)]
        self.box = ipw.HBox(
            [ipw.VBox(left, layout={"flex": "1 1 430px", "min_width": "0", "max_width": "520px"}),
             ipw.VBox(right, layout={"flex": "1 1 380px", "min_width": "0"})],
            layout={**flow, "grid_gap": "8px 32px", "align_items": "flex-start"},
        )  # fmt: skip
        self.refresh(model)
        model.observe(self.refresh)

    def refresh(self, model: Weighing) -> None:
        """Show what the model holds now, the numbers first."""
        w = pictures.writer(model)
        self.total.show(pictures.total(model, w))
        self.radar.show(pictures.radar(model, w))
        self._arrange()
        for row in self._rows.values():
            row.refresh()
        self.systems.show(pictures.systems(model, w))
        self.gates.show(pictures.gates(model, w))
        self.undo.disabled = not model.can_undo
        self.saver.open.disabled = model.scenario.path is None or not model.is_changed()

    def _arrange(self) -> None:
        """One row a metric and a document; rows that stay are not made anew."""
        model = self.model
        wanted = [(METRIC, name) for name in model.metrics] + [(DOC, name) for name in model.doc_weights]
        self._rows = {place: self._rows.get(place) or self._row(*place) for place in wanted}
        for field, box in ((METRIC, self.metrics), (DOC, self.documents)):
            boxes = tuple(row.box for (own, _), row in self._rows.items() if own == field)
            if box.children != boxes:
                box.children = boxes

    def _row(self, field: str, name: str) -> Row:
        if field == DOC:
            return Row(self.model, field, name, 4.0, lambda: self.model.remove(name))
        return Row(self.model, field, name, 1.0 if max(self.model.metric_weights.values()) < 1 else 2.0)

    def _search(self, text: str) -> None:
        self.pick.options = tuple(self.model.find(text))

    def _add(self) -> None:
        why = self.model.add(self.pick.value)
        self.note.warn(why, role="alert")
        if not why:
            self.pick.value = ""

    def say(self, text: str) -> None:
        """Say in one line what happened."""
        self.status.show(element("p", text, class_="rg-said", role="status"))


def _head(model: Weighing, key: str) -> Any:
    made = Html(model.scenario.lang)
    hint = element("p", model.say(f"editor.{key}_hint"), class_="rg-note")
    made.show(join([element("h4", model.say(f"editor.{key}")), hint]))
    return made.widget


class Saver:
    """What asks before it writes: the diff, another name, and what stands in the way."""

    def __init__(self, view: EditorView) -> None:
        import ipywidgets as ipw

        self.view, self.model = view, view.model
        say = self.model.say
        self.open = button(say, "editor.save", self.ask, button_style="primary")
        self.diff = Html(self.model.scenario.lang, live=True)
        self.name = ipw.Text(
            description=say("editor.save_as"), placeholder=say("editor.save_as_hint"), continuous_update=False,
            style={"description_width": "initial"}, layout={"width": "auto"},
        )  # fmt: skip
        self.again = button(say, "editor.reload", self._reload)
        write = button(say, "editor.write", self._write, button_style="primary")
        tools = ipw.HBox([write, self.again, button(say, "editor.cancel", self.hide)])
        self.box = ipw.VBox([self.diff.widget, self.name, tools], layout={"display": "none"})

    def ask(self) -> None:
        """Show what saving would change."""
        self.box.layout.display = "flex"
        self.again.layout.display = "none"
        try:
            patch = self.model.plan()
        except RagnbError as error:
            return self._refuse(error)
        if not patch.changed:
            self.hide()
            return self.view.say(self.model.say("editor.same"))
        said = self.model.say("editor.will_change", file=patch.file.name, n=len(patch.changed))
        return self.diff.show(join([element("p", said), element("pre", patch.diff, class_="rg-diff", tabindex=0)]))

    def hide(self) -> None:
        """Close the question."""
        self.box.layout.display = "none"

    def _refuse(self, error: RagnbError) -> None:
        said = translated(str(error), self.model.scenario.lang)
        self.diff.warn(said, "rg-bad", role="alert")
        self.again.layout.display = "inline-flex"

    def _write(self) -> None:
        name, home = self.name.value.strip(), self.model.scenario.path
        try:
            changed = self.model.save(home.parent / Path(name) if name and home else None)
        except RagnbError as error:
            return self._refuse(error)
        self.hide()
        self.name.value, file = "", self.model.scenario.path
        said = self.model.say("editor.saved", file=file.name if file else "", fields=", ".join(changed))
        return self.view.say(said)

    def _reload(self) -> None:
        try:
            self.model.reload()
        except RagnbError as error:
            return self._refuse(error)
        return self.ask()
