"""The weight editor as a notebook sees it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from ragnb.assessment.weighable import weighable
from ragnb.errors import RagnbError
from ragnb.markup import element, fragment
from ragnb.texts.errors import translated
from ragnb.widgets import pictures
from ragnb.widgets.shown import Html, Twin
from ragnb.widgets.weighing import Weighing


class WeightEditor:
    """Turn the weights of metrics and documents, and see what follows while a slider moves.

    Shown as the last line of a cell. Without a running kernel it is a picture and tables.

    Parameters
    ----------
    source : path, Scenario, frame or Moments
        A scenario, a folder of them, whatever `ragnb.assess` takes, or moments, from which everything shown
        follows whatever the number of rows.
    **overrides
        Fields of `Scenario` for this editor only, such as ``lang="zh"``, ``gates=`` or ``metric_weights=``.

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
        self._overrides, self._twin = overrides, Twin()
        self._watchers: list[Callable[[WeightEditor], object]] = []
        self._choices, first = _choices(source)
        self._models: dict[str, Weighing] = {}
        self.model = self._open(first)

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
        model.observe(self._tell)
        return model

    def _tell(self, model: Weighing) -> None:
        for watcher in list(self._watchers) if model is self.model else ():
            watcher(self)

    # In a notebook

    def __repr__(self) -> str:
        name, total = self.model.scenario.name, self.means["value"].iloc[-1]
        return f"WeightEditor({name!r}: weighted_score={total:.3f}, {self.metric_weights})"

    def _repr_html_(self) -> str:
        return fragment(pictures.static(self.model), lang=self.model.scenario.lang)

    def _ipython_display_(self) -> None:
        model = self.model
        self._twin.display(self.view, repr(self), pictures.static(model), model.scenario.lang)

    @cached_property
    def view(self) -> Any:
        """The widgets, made when they are first asked for."""
        import ipywidgets as ipw

        lang, say = self.model.scenario.lang, self.model.say
        style, self._title, self._wrong = Html(lang), Html(lang), Html(lang, live=True)
        style.show(self._twin.style())
        self._place, self._views = ipw.VBox(), dict[int, Any]()
        head = [style.widget, self._title.widget]
        if self._choices:
            path = str(self.model.scenario.path)
            names = {file.name: str(file) for file in self._choices}
            self._chooser = ipw.Dropdown(
                options=names, value=path, description=say("editor.scenario"),
                style={"description_width": "initial"}, layout={"width": "max-content"},
            )  # fmt: skip
            self._chooser.observe(lambda change: self._choose(change["new"]), "value")
            head.append(self._chooser)
            self._models[path] = self.model
        self._show()
        box = ipw.VBox([*head, self._wrong.widget, self._place])
        box.add_class("rg-editor")
        return box

    def _choose(self, path: str) -> None:
        """Turn to another scenario; what was changed in this one waits there."""
        try:
            self.model = self._models[path] = self._models.get(path) or self._open(path)
        except RagnbError as error:
            said = translated(str(error), self.model.scenario.lang)
            self._wrong.warn(said, "rg-bad", role="alert")
            return
        self._wrong.warn("")
        self._show()
        self._tell(self.model)

    def _show(self) -> None:
        from ragnb.widgets.view import EditorView

        self._title.show(element("h3", pictures.title(self.model)))
        if id(self.model) not in self._views:
            self._views[id(self.model)] = EditorView(self.model)
        self._place.children = (self._views[id(self.model)].box,)


def _choices(source: Any) -> tuple[list[Path], Any]:
    """The scenarios to choose from, and the one to open first."""
    kinds = (".yaml", ".yml")
    if not isinstance(source, str | Path) or not (Path(source).suffix.lower() in kinds or Path(source).is_dir()):
        return [], source
    path = Path(source).resolve()
    folder = path if path.is_dir() else path.parent
    found = sorted(entry for entry in folder.glob("*") if entry.suffix.lower() in kinds)
    if path.is_dir() and not found:
        raise RagnbError(f"no scenario (.yaml) in {str(source)!r}; name a file, or another folder")
    return found, found[0] if path.is_dir() else path
