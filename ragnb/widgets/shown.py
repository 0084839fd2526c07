"""What the editor and the rating sheet share: HTML widgets, styles, and a twin for where no widget runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from itertools import count
from typing import Any

from ragnb import markup
from ragnb.markup import Safe, element

numbers = count(1)
_LANG = {"en": "en", "zh": "zh-CN"}
# The style of a widget whose description stands in the column of names.
NAMED = {"description_width": "170px"}


@cache
def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def button(say: Callable[..., str], key: str, action: Callable[[], object], **more: Any) -> Any:
    """Return a button as wide as its words, the text of a key and its hint."""
    import ipywidgets as ipw

    made = ipw.Button(description=say(key), tooltip=say(f"{key}_hint"), layout={"width": "auto"}, **more)
    made.on_click(lambda _: action())
    return made


class Html:
    """An HTML widget of ours; it is hidden while it is empty.

    Parameters
    ----------
    lang : {"en", "zh"}
    live : bool
        Whether screen readers say what changes in it.
    """

    def __init__(self, lang: str, *, live: bool = False) -> None:
        import ipywidgets

        self.lang = _LANG[lang]
        self.widget: Any = ipywidgets.HTML(layout={"display": "none", "width": "auto"})
        if live:
            self.widget.add_class("rg-live")

    def show(self, html: Safe) -> None:
        """Show HTML of ours."""
        self.widget.value = element("div", html, class_="ragnb", lang=self.lang) if html else ""
        self.widget.layout.display = "block" if html else "none"

    def warn(self, text: str, class_: str = "rg-said rg-bad", **more: str) -> None:
        """Show what is wrong, or nothing."""
        self.show(element("p", text, class_=class_, **more) if text else Safe(""))


class Twin:
    """A widget beside a static twin: where the widget lives, a style of its own hides the twin.

    Who inherits gives the `view`, what stands in its place without a kernel, and the `model`, whose language both
    speak.
    """

    view: Any
    model: Any
    _static: Any

    def _box(self, *children: Any) -> Any:
        """Put widgets into a box with the styles of a live widget, which hide the twin."""
        import ipywidgets

        self._name, style = f"rg-twin-{next(numbers)}", Html(self.model.lang)
        own = Safe(f"<style>{_file('editor.css')}\n.{self._name} {{ display: none; }}</style>")
        style.show(markup.join([markup.style(notebook=True), own]))
        box = ipywidgets.VBox([style.widget, *children])
        box.add_class("rg-editor")
        return box

    def _repr_html_(self) -> str:
        return markup.fragment(self._static(), lang=self.model.lang)

    def _ipython_display_(self) -> None:
        """Show the widget and its twin in a notebook."""
        from IPython import display as ipython

        display: Any = ipython.display
        bundle = self.view._repr_mimebundle_()
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        display({**data, "text/plain": repr(self)}, raw=True)
        html = element("div", Safe(self._repr_html_()), class_=self._name)
        display({"text/html": html, "text/plain": ""}, raw=True)
        display({"application/javascript": _file("names.js"), "text/plain": ""}, raw=True)
