"""What the editors have in common: fields, buttons, a view for each cell, sheets that save each step."""

from __future__ import annotations

import itertools
import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from ragnb import texts
from ragnb.errors import RagnbError
from ragnb.markup import Safe, element, join, rendering
from ragnb.markup.rendering import LANGUAGES, render
from ragnb.texts.errors import translated

# For class names that are unique on the page.
numbers = itertools.count(1)
_FILES = {
    kind: files(__package__).joinpath(f"widgets.{kind}").read_text("utf-8")
    for kind in ("css", "js")
}
# The style of a widget whose description is in the column of names.
NAMED = {"description_width": "170px"}


def make(kind: str, *children: Any, **look: Any) -> Any:
    """Make a widget of ipywidgets, which is imported with the first."""
    import ipywidgets

    return getattr(ipywidgets, kind)(*children, **look)


def button(
    say: Callable[..., str], key: str, action: Callable[[], object], *, name: str = "", **more: Any
) -> Any:
    """Return a button as wide as its words, the text of a key and its hint."""
    hint = say(f"{key}_hint", name=name)
    widget = make("Button", description=say(key), tooltip=hint, layout={"width": "auto"}, **more)
    widget.on_click(lambda _: action())
    return widget


def hear(owner: Any, widget: Any, act: Callable[[Any], object]) -> None:
    """Call `act` with the value of a widget when a person changes it, not its owner, who is busy then."""

    def changed(change: Any) -> None:
        # ipywidgets reports a value that the kernel sets like one that a person enters.
        if not owner.busy:
            act(change["new"])

    widget.observe(changed, "value")


def field(say: Callable[..., str], key: str, kind: str = "Text", **more: Any) -> Any:
    """Return a field for text, as wide as there is room, with the text of a key beside it."""
    look = {
        "style": {"description_width": "initial"},
        "layout": {"width": "auto", "flex": "1 1 auto"},
    }
    return make(kind, description=say(key), **look | more)


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
        self.lang = LANGUAGES[lang]
        self.widget = make("HTML", layout={"display": "none", "width": "auto"})
        # widgets.js gives the live ones aria-live, as ipywidgets has no trait for it.
        self.widget.add_class("rg-live" if live else "rg-html")
        self.show(html or Safe(""))

    def show(self, html: Safe) -> None:
        """Show HTML of ours."""
        if html:
            self.widget.value = element("div", html, class_="ragnb", lang=self.lang)
            self.widget.layout.display = "block"
        else:
            self.widget.value = ""
            self.widget.layout.display = "none"

    def warn(self, text: str, class_: str = "rg-said rg-bad", **more: str) -> None:
        """Show what is wrong, or nothing."""
        if text:
            self.show(element("p", text, class_=class_, **more))
        else:
            self.show(Safe(""))


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
        lang = self.model.lang
        self._name = f"rg-twin-{next(numbers)}"
        # The second sheet hides the twin: as part of the widget it does so only where that is rendered.
        sheet = element("style", rendering.style(notebook=True))
        sheet_of_twin = Safe(f"<style>{_FILES['css']}\n.{self._name} {{ display: none; }}</style>")
        style = Html(lang, join([sheet, sheet_of_twin]))
        # widgets.css hides it until the kernel is gone, or widgets.js sees that it does not take what is entered.
        alert = Html(lang)
        alert.warn(gone, "rg-bad", role="alert")
        alert.widget.add_class("rg-gone")
        return make("VBox", [style.widget, alert.widget, *children]).add_class("rg-editor")

    def _repr_html_(self) -> str:
        return rendering.fragment(self._static(), lang=self.model.lang)

    def _ipython_display_(self) -> None:
        """Show the widget and its twin in a notebook."""
        from IPython import display

        publish: Any = display.publish_display_data
        # Asking for the view also gives `_name` its value.
        publish({**self.view._repr_mimebundle_(), "text/plain": repr(self)})
        twin = element("div", Safe(self._repr_html_()), class_=self._name)
        publish({"text/html": twin, "text/plain": ""})
        publish({"application/javascript": _FILES["js"], "text/plain": ""})


class Items:
    """The items of a sheet: which one is shown, the next that is not done, and the comments on them.

    Who inherits says what is `done`, by the ``key`` of an item, how that is saved, and what each of its `keys`
    enters.

    Parameters
    ----------
    items : list
        Each with a ``key``.
    file : path
    lang : {"en", "zh"}
    """

    kind: str
    keys: Mapping[str, Any]
    shown_keys: str
    enter: Any
    _save: Any

    def __init__(self, items: list[Any], file: str | Path, lang: str) -> None:
        self.items = items
        self.file = Path(file).resolve()
        self.lang = lang
        self.say = texts.load(lang)
        self.done = dict[Any, Any]()
        self.comments = dict[Any, str]()
        self.at = -1  # before the first; `skip` turns to it

    def press(self, entry: str) -> None:
        """Take a key, in any width and case; what is none leaves a sentence in `problem`."""
        key = unicodedata.normalize("NFKC", entry).strip().casefold()
        if key in self.keys:
            self.enter(self.keys[key])
        elif key:
            self.problem = self.say(f"{self.kind}.not_a_key", entry=key[:20], keys=self.shown_keys)

    def note(self, comment: str) -> None:
        """Keep a comment on the item; it is saved with what is done of it, at once where that is complete."""
        if not self.item:
            return
        key = self.item.key
        self.comment = comment.strip()
        self.comments[key] = self.comment
        if key in self.done:
            self._save(self.item, self.done[key])

    def skip(self) -> None:
        """Turn to the next item that is not done; after the last one the skipped come again."""
        n = len(self.items)
        following = [*range(self.at + 1, n), *range(n)]
        still_open = [place for place in following if self.items[place].key not in self.done]
        self._turn_to(still_open[0] if still_open else n)

    def back(self) -> None:
        """Turn to the item before, where what was entered can be changed."""
        self._turn_to((self.at - 1) % max(len(self.items), 1))

    def _turn_to(self, at: int) -> None:
        self.at = at
        self.problem = ""
        self.item: Any = None  # when all is done
        self.comment = ""
        if at < len(self.items):
            self.item = self.items[at]
            self.comment = self.comments.get(self.item.key, "")


class Sheet(Twin):
    """One item at a time with what is entered beside it, by keys and buttons.

    Who inherits gives the fields: their widgets, how they are refreshed (`clear` for another item), with what the
    kernel holds of them.

    Parameters
    ----------
    model : Items
    **title
        Values of the title.
    """

    _fields: Any
    _refresh_fields: Any

    def __init__(self, model: Any, **title: str) -> None:
        self.model = model
        self._kind = model.kind
        self._title = model.say(f"{model.kind}.title", **title)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model.name!r}: {len(self.model.done)} of {len(self.model.items)})"

    def _head(self, *more: str) -> Safe:
        """Return the title, how much is done, and what more there is to say."""
        done = len(self.model.done)
        n = len(self.model.items)
        lines = [self.model.say(f"{self._kind}.progress", done=done, n=n), *more]
        notes = [element("p", line, class_="rg-note") for line in lines]
        return join([element("h3", self._title), *notes])

    def _static(self) -> Safe:
        return self._head(self.model.say(f"{self._kind}.static"))

    @cached_property
    def view(self) -> Any:
        """The widgets, made when they are first asked for."""
        model = self.model
        say = self.model.say
        lang = self.model.lang
        self._top = Html(lang, live=True)
        self._item = Html(lang)
        self._held = Html(lang)
        self._wrong = Html(lang, live=True)
        self.busy = False
        self._seen = ""  # what of the field of keys was taken
        self._cleared = ""  # what was taken of it before it was emptied for another item
        self._keys = field(lambda _: "", "", placeholder=model.shown_keys)
        self._keys.add_class("rg-row").add_class("rg-keys")
        hear(self, self._keys, self._press)
        hint = say(f"{self._kind}.comment_hint")
        self._comment = field(
            say, "rating.comment", "Textarea", placeholder=hint, continuous_update=False, rows=2
        )
        self._comment.add_class("rg-row")
        hear(self, self._comment, partial(self._do, model.note))
        tools = [
            button(say, "rating.back", partial(self._do, model.back)),
            button(say, "rating.skip", partial(self._do, model.skip)),
        ]
        entry = [
            self._keys,
            self._wrong.widget,
            *self._fields(),
            self._comment,
            make("HBox", tools),
        ]
        self._entry = make("VBox", entry, layout={"flex": "0 1 400px"})
        self._item.widget.add_class("rg-item")
        self._refresh()
        gone = say(f"{self._kind}.gone", file=model.file.name)
        flow = {"flex_flow": "row wrap", "grid_gap": "8px 32px"}
        both = make("HBox", [self._item.widget, self._entry], layout=flow)
        return self._box(gone, self._top.widget, both, self._held.widget)

    def _press(self, entry: str) -> None:
        # Keys may come faster than answers to them: only what is new in the field counts, also past a clearing.
        seen = self._seen
        if not seen and entry.startswith(self._cleared):
            # The browser had not emptied the field yet when this key was pressed.
            seen = self._cleared
        self._seen = entry
        # Where something was deleted or replaced in the field, no key is new.
        new_keys = entry[len(seen) :] if entry.startswith(seen) else ""

        def press_each() -> None:
            for key in new_keys:
                self.model.press(key)

        self._do(press_each)

    def _do(self, act: Callable[..., object], *values: object) -> None:
        """Act on the model and show what became of it; another item clears the fields."""
        item = self.model.item
        try:
            act(*values)
        except RagnbError as error:  # the file was changed by somebody else
            self.model.problem = translated(str(error), self.model.lang)
        self._refresh(clear=self.model.item is not item)

    def _refresh(self, *, clear: bool = True) -> None:
        model = self.model
        item = self.model.item
        say = self.model.say
        self.busy = True
        if clear:
            self._cleared = self._seen
            self._seen = ""
            self._keys.value = ""
            if item:
                self._item.show(render("item.html", kind=self._kind, say=say, item=item))
            else:
                self._item.show(Safe(""))
        if item:
            self._top.show(self._head())
        else:
            done = say(f"{self._kind}.done", n=len(model.items), file=model.file.name)
            self._top.show(self._head(done))
        self._comment.value = model.comment
        if item and clear:
            self._keys.focus()
        values = self._refresh_fields(clear)
        self.busy = False
        self._entry.layout.display = "flex" if item else "none"
        self._wrong.warn(model.problem)
        # In the order of the fields on the page, see `held`.
        self._held.show(held([self._seen, *values, model.comment] if item else []))
