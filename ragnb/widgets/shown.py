"""What the editor and the rating sheet share: HTML widgets, styles, and a twin for where no widget runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib.resources import files
from itertools import count
from typing import Any

from ragnb import markup
from ragnb.markup import Safe, element, join

numbers = count(1)
_LANG = {"en": "en", "zh": "zh-CN"}
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

        self.lang, self.widget = _LANG[lang], ipywidgets.HTML(layout={"display": "none", "width": "auto"})
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
