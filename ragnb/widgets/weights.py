"""The editor of weights: what it reads, saves and tells."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

import pandas as pd

from ragnb.errors import RagnbError
from ragnb.markup import Safe, element, join
from ragnb.schema import TOTAL
from ragnb.sheet.weighable import weighable
from ragnb.texts.errors import translated
from ragnb.widgets.base import Html, Twin, field, hear, make
from ragnb.widgets.model import Weighing
from ragnb.widgets.view import FIRST_CELLS, REST_CELLS, EditorView, weights_table

_YAML = (".yaml", ".yml")


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
        self._choices, first = _choices(source)
        self._views = dict[str, EditorView]()
        self.busy = False  # for `hear`: only a person turns the chooser
        self.model: Weighing = self._first_readable(first)

    def _first_readable(self, sources: Sequence[Any]) -> Weighing:
        """Open the first source that can be read, so that one bad file of a folder does not close the others."""
        refusals: list[RagnbError] = []
        for source in sources:
            try:
                return Weighing(*weighable(source, **self._overrides))
            except RagnbError as error:
                refusals.append(error)
        raise refusals[0]

    metric_weights = property(
        attrgetter("model.metric_weights"), doc="The weight of every metric that has a row."
    )
    doc_weights = property(
        attrgetter("model.doc_weights"), doc="The weight of every document that has a row."
    )

    @property
    def means(self) -> pd.DataFrame:
        """The means, as `ragnb.weighted_means` gives them; of several systems each its own, by ``system``."""
        now = self.model.now
        if now.systems is None:
            return now.means
        return now.systems

    def save(self, to: str | Path | None = None) -> list[str]:
        """Write the weights into the scenario's file, or into a new one, and return the fields that changed."""
        return self.model.save(to)

    def refresh(self) -> None:
        """Read the scenario and its scores again, as after a run; weights stay as they are entered."""
        self.model.renew(*weighable(str(self.model.scenario.path), **self._overrides))

    # In a notebook

    def __repr__(self) -> str:
        now = self.model.now
        if not self.model.is_scored:
            totals = "not scored yet"
        elif now.by_system:
            totals = ", ".join(
                f"{name}: {TOTAL}={rows[TOTAL]['value']:.3f}"
                for name, rows in now.by_system.items()
            )
        else:
            totals = f"{TOTAL}={now.rows[TOTAL]['value']:.3f}"
        return f"WeightEditor({self.model.scenario.name!r}: {totals}, {self.metric_weights})"

    def _static(self) -> Safe:
        """The editor as a picture and tables."""
        # The table of weights is in the place that the rows to type in have in the widgets.
        cells = [cell(self.model) for cell in (*FIRST_CELLS, weights_table, *REST_CELLS)]
        hint = element("p", self.model.say("editor.static"), class_="rg-note")
        return join([*cells, hint])

    @cached_property
    def view(self) -> Any:
        """The widgets, made when they are first asked for."""
        say = self.model.say
        path = str(self.model.scenario.path)
        self._place = make("VBox")  # of the view of the chosen scenario
        self._problem = Html(self.model.lang, live=True)
        files = {file.name: str(file) for file in self._choices}
        # Scores that are not from a scenario's file leave nothing to choose from.
        self._chooser = field(
            say,
            "editor.scenario",
            "Dropdown",
            options=files,
            value=path if files else None,
            layout={"width": "max-content", "display": "flex" if files else "none"},
        )
        hear(self, self._chooser, self._choose)
        self._show(path, EditorView(self.model))
        return self._box(say("editor.gone"), self._chooser, self._problem.widget, self._place)

    def _choose(self, path: str) -> None:
        """Turn to another scenario; what was changed in this one waits there."""
        view = self._views.get(path)
        if view is None:
            try:
                view = EditorView(Weighing(*weighable(path, **self._overrides)))
            except RagnbError as error:
                self._problem.warn(translated(str(error), self.model.lang))
                return
        self._problem.warn("")
        self._show(path, view)

    def _show(self, path: str, view: EditorView) -> None:
        self.model = view.model
        self._views[path] = view
        self._place.children = (view.box,)


def _choices(source: Any) -> tuple[list[Path], list[Any]]:
    """The scenarios to choose from, and what to open, the first that can be read."""
    if not isinstance(source, str | Path):
        return [], [source]
    path = Path(source).resolve()
    is_folder = path.is_dir()
    if not is_folder and path.suffix.lower() not in _YAML:
        return [], [source]
    # A scenario is opened with those beside it to turn to.
    folder = path if is_folder else path.parent
    files = sorted(file for file in folder.glob("*") if file.suffix.lower() in _YAML)
    if not is_folder:
        return files, [path]
    if not files:
        raise RagnbError(f"no scenario (.yaml) in {str(source)!r}; name a file, or another folder")
    return files, list(files)
