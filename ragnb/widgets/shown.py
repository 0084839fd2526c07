"""What editor and sheets share: HTML widgets, styles, a twin for where no widget runs, items one at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any

from ragnb import markup, texts
from ragnb.errors import RagnbError
from ragnb.markup import Safe, element, join
from ragnb.markup.html import LANGUAGES
from ragnb.texts.errors import translated

numbers = count(1)
# The style of a widget whose description stands in the column of names.
_FILES = {kind: files(__package__).joinpath(f"widgets.{kind}").read_text("utf-8") for kind in ("css", "js")}
NAMED = {"description_width": "170px"}


def button(say: Callable[..., str], key: str, action: Callable[[], object], *, name: str = "", **more: Any) -> Any:
    """Return a button as wide as its words, the text of a key and its hint."""
    import ipywidgets as ipw

    hint = say(f"{key}_hint", name=name)
    made = ipw.Button(description=say(key), tooltip=hint, layout={"width": "auto"}, **more)
    made.on_click(lambda _: action())
    return made


def hear(owner: Any, widget: Any, act: Callable[[Any], object]) -> None:
    """Call `act` with the value of a widget when a person changes it, not its owner, who is busy then."""
    widget.observe(lambda change: None if owner.busy else act(change["new"]), "value")


def field(say: Callable[..., str], key: str, kind: str = "Text", **more: Any) -> Any:
    """Return a field for text, as wide as there is room, with the text of a key beside it."""
    import ipywidgets as ipw

    look = {"style": {"description_width": "initial"}, "layout": {"width": "auto", "flex": "1 1 auto"}}
    return getattr(ipw, kind)(description=say(key), **look | more)


class Html:
    """An HTML widget of ours; it is hidden while it is empty.

    Parameters
    ----------
    lang : {"en", "zh"}
    html : Safe, optional
    live : bool
        Whether screen readers say what changes in it.
    """

    def __init__(self, lang: str, html: Safe | None = None, *, live: bool = False) -> None:
        import ipywidgets

        self.lang, self.widget = LANGUAGES[lang], ipywidgets.HTML(layout={"display": "none", "width": "auto"})
        self.widget.add_class("rg-live" if live else "rg-html")
        self.show(html or Safe(""))

    def show(self, html: Safe) -> None:
        """Show HTML of ours."""
        self.widget.value = element("div", html, class_="ragnb", lang=self.lang) if html else ""
        self.widget.layout.display = "block" if html else "none"

    def warn(self, text: str, class_: str = "rg-said rg-bad", **more: str) -> None:
        """Show what is wrong, or nothing."""
        self.show(element("p", text, class_=class_, **more) if text else Safe(""))


def held(values: Sequence[object]) -> Safe:
    """Tell the page what the kernel has of its fields, in their order; what differs there is not recorded."""
    return element("span", class_="rg-held", hidden="", data_held=json.dumps(values))


class Twin:
    """A widget beside a static twin: where the widget lives, a style of its own hides the twin.

    Who inherits gives the `view`, what stands in its place without a kernel, and the `model`, whose language both
    speak.
    """

    view: Any
    model: Any
    _static: Any

    def _box(self, gone: str, *children: Any) -> Any:
        """Put widgets into a box with its styles, and what appears when the kernel does not answer."""
        import ipywidgets

        self._name, lang = f"rg-twin-{next(numbers)}", self.model.lang
        own = Safe(f"<style>{_FILES['css']}\n.{self._name} {{ display: none; }}</style>")
        style, alert = Html(lang, join([markup.style(notebook=True), own])), Html(lang)
        alert.warn(gone, "rg-bad", role="alert")
        alert.widget.add_class("rg-gone")
        box = ipywidgets.VBox([style.widget, alert.widget, *children])
        box.add_class("rg-editor")
        return box

    def _repr_html_(self) -> str:
        return markup.fragment(self._static(), lang=self.model.lang)

    def _ipython_display_(self) -> None:
        """Show the widget and its twin in a notebook."""
        from IPython import display

        publish: Any = display.publish_display_data
        publish({**self.view._repr_mimebundle_(), "text/plain": repr(self)})
        publish({"text/html": element("div", Safe(self._repr_html_()), class_=self._name), "text/plain": ""})
        publish({"application/javascript": _FILES["js"], "text/plain": ""})


class Items:
    """The items of a sheet: which one is shown, the next that is not done, and the comments on them.

    Who inherits says what is `done`, by the ``key`` of an item, and how that is saved.

    Parameters
    ----------
    items : list
        Each with a ``key``.
    file : path
    lang : {"en", "zh"}
    """

    _save: Any

    def __init__(self, items: list[Any], file: str | Path, lang: str) -> None:
        self.items, self.file, self.lang, self.say = items, Path(file).resolve(), lang, texts.load(lang)
        self.done, self.comments = dict[Any, Any](), dict[Any, str]()

    def note(self, comment: str) -> None:
        """Keep a comment on the item; it is saved with what is done of it, at once where that is complete."""
        if self.item:
            self.comment = self.comments[self.item.key] = comment.strip()
            if self.item.key in self.done:
                self._save(self.item, self.done[self.item.key])

    def skip(self) -> None:
        """Turn to the next item that is not done; after the last one the skipped come again."""
        self._turn_to(self._next(self.at))

    def back(self) -> None:
        """Turn to the item before, where what was entered can be changed."""
        self._turn_to((self.at - 1) % max(len(self.items), 1))

    def _turn_to(self, at: int) -> None:
        self.at, self.problem = at, ""
        self.item: Any = self.items[at] if at < len(self.items) else None  # None when all is done
        self.comment = self.comments.get(self.item.key, "") if self.item else ""

    def _next(self, at: int) -> int:
        """The next item that is not done, from the beginning again after the last."""
        places = [*range(at + 1, len(self.items)), *range(len(self.items))]
        return next((i for i in places if self.items[i].key not in self.done), len(self.items))


class Sheet(Twin):
    """One item at a time with what is entered beside it, by keys and buttons.

    Who inherits gives the fields: their widgets, how they are refreshed (`clear` for another item), with what the
    kernel holds of them; and how an item is shown.

    Parameters
    ----------
    model : Items
    kind : str
        The table of its texts.
    keys : str
        Which keys there are.
    **title
        Values of the title.
    """

    _fields: Any
    _refresh_fields: Any
    _shown: Any

    def __init__(self, model: Any, kind: str, keys: str, **title: str) -> None:
        self.model, self._kind, self._known_keys = model, kind, keys
        self._title = model.say(f"{kind}.title", **title)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model.name!r}: {len(self.model.done)} of {len(self.model.items)})"

    def _head(self) -> Safe:
        done, n = len(self.model.done), len(self.model.items)
        progress = self.model.say(f"{self._kind}.progress", done=done, n=n)
        return join([element("h3", self._title), element("p", progress, class_="rg-note")])

    def _static(self) -> Safe:
        return join([self._head(), element("p", self.model.say(f"{self._kind}.static"), class_="rg-note")])

    @cached_property
    def view(self) -> Any:
        """The widgets, made when they are first asked for."""
        import ipywidgets as ipw

        model, say, lang = self.model, self.model.say, self.model.lang
        self._top, self._item, self._held = Html(lang, live=True), Html(lang), Html(lang)
        self._wrong, self.busy, self._seen, self._cleared = Html(lang, live=True), False, "", ""
        self._keys = field(lambda _: "", "", placeholder=self._known_keys).add_class("rg-row").add_class("rg-keys")
        hear(self, self._keys, self._press)
        hint = say(f"{self._kind}.comment_hint")
        self._comment = field(say, "rating.comment", "Textarea", placeholder=hint, continuous_update=False, rows=2)
        hear(self, self._comment.add_class("rg-row"), partial(self._do, model.note))
        tools = [button(say, f"rating.{act.__name__}", partial(self._do, act)) for act in (model.back, model.skip)]
        entry = [self._keys, self._wrong.widget, *self._fields(), self._comment, ipw.HBox(tools)]
        self._entry = ipw.VBox(entry, layout={"flex": "0 1 400px"})
        self._item.widget.add_class("rg-item")
        both = ipw.HBox([self._item.widget, self._entry], layout={"flex_flow": "row wrap", "grid_gap": "8px 32px"})
        self._refresh()
        gone = say(f"{self._kind}.gone", file=model.file.name)
        return self._box(gone, self._top.widget, both, self._held.widget)

    def _press(self, entry: str) -> None:
        # Keys may come faster than answers to them: only what is new in the field counts, also past a clearing.
        seen = self._seen or (self._cleared if entry.startswith(self._cleared) else "")
        fresh = entry[len(seen) :] if entry.startswith(seen) else ""
        self._seen = entry
        self._do(lambda: list(map(self.model.press, fresh)))

    def _do(self, act: Callable[..., object], *values: object) -> None:
        item = self.model.item
        try:
            act(*values)
        except RagnbError as error:  # the file was changed by somebody else
            self.model.problem = translated(str(error), self.model.lang)
        self._refresh(clear=self.model.item is not item)

    def _refresh(self, *, clear: bool = True) -> None:
        model, item = self.model, self.model.item
        self.busy = True
        if clear:
            self._cleared, self._seen, self._keys.value = self._seen, "", ""
            self._item.show(self._shown(item) if item else Safe(""))
        done = element("p", model.say(f"{self._kind}.done", n=len(model.items), file=model.file.name))
        self._top.show(join([self._head(), "" if item else done]))
        self._comment.value = model.comment
        if item and clear:
            self._keys.focus()
        values = self._refresh_fields(clear)
        self.busy = False
        self._entry.layout.display = "flex" if item else "none"
        self._wrong.warn(model.problem)
        self._held.show(held([self._seen, *values, model.comment] if item else []))


def prose(text: str) -> Safe:
    """Return a text of several lines as it was written."""
    return element("blockquote", text, class_="rg-prose", dir="auto")
