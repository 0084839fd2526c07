"""One weight as a row: a number to type, a slider to drag, its share, and what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ragnb.widgets.numbers import GRID
from ragnb.widgets.pictures import percent
from ragnb.widgets.shown import NAMED, Html
from ragnb.widgets.weighing import METRIC, Weighing


class Row:
    """A row of the editor.

    Parameters
    ----------
    model : Weighing
    field, name : str
        Which weight it shows.
    top : float
        The right end of the slider; it moves when a greater weight is typed.
    remove : callable, optional
        What takes the row away.
    """

    def __init__(
        self, model: Weighing, field: str, name: str, top: float, remove: Callable[[], object] | None = None
    ) -> None:
        import ipywidgets as ipw

        self.model, self.field, self.name, self._busy = model, field, name, False
        self.text = ipw.Text(
            description=name, tooltip=name, continuous_update=False, style=NAMED, layout={"width": "250px"}
        )
        self.slider = ipw.FloatSlider(
            min=0, max=top, step=GRID, readout=False, tooltip=name, layout={"width": "auto", "flex": "1 1 90px"}
        )
        self.share = ipw.Label(layout={"width": "46px", "display": "flex", "justify_content": "flex-end"})
        self.said = Html(model.scenario.lang, live=True)
        parts = [self.text, self.slider, self.share]
        if remove is not None:
            hint = model.say("editor.remove", name=name)
            parts[-1] = ipw.Button(description="×", tooltip=hint, layout={"width": "32px"})
            parts[-1].on_click(lambda _: remove())
        line = ipw.HBox(parts, layout={"align_items": "center"})
        self.box = ipw.VBox([line, self.said.widget])
        self.box.add_class("rg-row")
        self.text.observe(self._typed, "value")
        self.slider.observe(self._dragged, "value")

    def _typed(self, change: Any) -> None:
        if not self._busy:
            self.model.set(self.field, self.name, change["new"])

    def _dragged(self, change: Any) -> None:
        # A slider snaps what it is given to its grid and sends that back; only a person moves it further.
        if not self._busy and abs(change["new"] - self.model.weight(self.field, self.name)) > GRID / 2 + 1e-9:
            self.model.set(self.field, self.name, round(change["new"], 2))

    def refresh(self) -> None:
        """Show what the model holds."""
        model, place = self.model, (self.field, self.name)
        weight = model.weight(*place)
        wrong = model.problems.get(place, "")
        self._busy = True
        try:
            self.text.placeholder = f"{weight:.12g}"
            if not wrong:
                self.text.value = model.typed(*place)
            if weight > self.slider.max:
                self.slider.max = math.ceil(weight)
            self.slider.value = weight
        finally:
            self._busy = False
        if self.field == METRIC:
            self.share.value = percent(model.share(self.name))
        absent = self.field != METRIC and self.name not in model.documents
        self.said.warn(wrong or (model.say("editor.absent") if absent else ""))
