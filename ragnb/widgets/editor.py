"""The weight editor: what follows from weights, without a widget, and the rows and buttons that show it."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.comparison import WeightMap
from ragnb.comparison.differences import Pairs
from ragnb.diagnostics import check_gates
from ragnb.errors import RagnbError
from ragnb.markup import Safe, count, draw, element, is_missing, join, number, one_line, percent, radar_svg
from ragnb.markup.blocks import Estimate, Mark, Picture, Small, Table, Text
from ragnb.scenario import Patch, Scenario, load_scenario, plan_patch
from ragnb.schema import Gate, records, scale_of
from ragnb.sheet.build import weighable
from ragnb.texts.errors import translated
from ragnb.weights import Moments, nfc, notes, why_no_total
from ragnb.weights.total import total_of
from ragnb.widgets.shown import NAMED, Html, Twin, button, field, hear, held, numbers

TOTAL = "weighted_score"
_NUMBERS = ("weight", "share", "mean", "n")
_OUTCOMES = {"pass": "good", "fail": "bad", "undecided": "watch", "no_data": "none"}
_NARROW, _SPACED = {"width": "250px"}, {"grid_gap": "8px 32px", "align_items": "flex-start"}
# Documents that are offered while a name is typed.
_HITS = 8


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
        self._views, self.busy = dict[str, EditorView](), False
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
        model = Weighing(*weighable(source, **self._overrides))
        model.watchers.append(self._notify)
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
        hint = element("p", self.model.say("editor.static"), class_="rg-note")
        return join([*(part(self.model) for part in (*_FIRST, _weights, *_REST)), hint])

    @cached_property
    def view(self) -> Any:
        """The widgets, made when they are first asked for."""
        import ipywidgets as ipw

        path, names = str(self.model.scenario.path), {file.name: str(file) for file in self._choices}
        self._place, self._problem = ipw.VBox(), Html(self.model.lang, live=True)
        at = {"width": "max-content", "display": "flex" if names else "none"}
        options = {"options": names, "value": path if names else None, "layout": at}
        self._chooser = field(self.model.say, "editor.scenario", "Dropdown", **options)
        hear(self, self._chooser, self._choose)
        self._show(path, EditorView(self.model))
        return self._box(self.model.say("editor.gone"), self._chooser, self._problem.widget, self._place)

    def _choose(self, path: str) -> None:
        """Turn to another scenario; what was changed in this one waits there."""
        try:
            view = self._views.get(path) or EditorView(self._open(path))
        except RagnbError as error:
            return self._problem.warn(translated(str(error), self.model.lang))
        self._problem.warn("")
        self._show(path, view)
        return self._notify(self.model)

    def _show(self, path: str, view: EditorView) -> None:
        self.model, self._views[path], self._place.children = view.model, view, (view.box,)


def _choices(source: Any) -> tuple[list[Path], Any]:
    """The scenarios to choose from, and the one to open first."""
    path, kinds = Path(source) if isinstance(source, str | Path) else None, {".yaml", ".yml"}
    if path is None or not (path.suffix.lower() in kinds or path.is_dir()):
        return [], source
    path = path.resolve()
    beside = (path if path.is_dir() else path.parent).glob("*")
    files = sorted(file for file in beside if file.suffix.lower() in kinds)
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

        self.model, self._rows, self.busy = model, dict[tuple[str, str], WeightRow](), False
        lang, say, flow = model.lang, model.say, {"flex_flow": "row wrap"}
        self.held, self.rest, self.diff, self.note = (Html(lang, live=live) for live in (False, False, True, True))
        self.first = {part: Html(lang, live=part is _total) for part in _FIRST}
        self.boxes = {METRIC: ipw.VBox(), DOC: ipw.VBox()}
        self.pick = field(say, "editor.document", placeholder=say("editor.search"), style=NAMED)
        hear(self, self.pick, self._search)
        self.pick.on_msg(self._submit)
        self.hits = ipw.ToggleButtons(style={"button_width": "auto"}, layout={"display": "none"})
        hear(self, self.hits.add_class("rg-hits"), self._add)
        self.save = button(say, "editor.save", self._ask, button_style="primary")
        self.name = field(say, "editor.save_as", placeholder=say("editor.save_as_hint"), continuous_update=False)
        self.again = button(say, "editor.reload", partial(self._ask, model.reload, self._compare))
        write = button(say, "editor.write", partial(self._ask, self._write), button_style="primary")
        answers = ipw.HBox([write, self.again, button(say, "editor.cancel", self._hide)])
        self.question = ipw.VBox([self.name, answers], layout={"display": "none"})
        acts: list[Any] = [model.reset, model.equal, model.normalise]
        tools, left = [button(say, f"editor.{act.__name__}", act) for act in acts], []
        for key, box in zip(("metrics", "documents"), self.boxes.values(), strict=True):
            hint = element("p", say(f"editor.{key}_hint"), class_="rg-note")
            left += [Html(lang, join([element("h4", say(f"editor.{key}")), hint])).widget, box]
        left += [self.pick, self.hits, self.note.widget, ipw.HBox([*tools, self.save], layout=flow)]
        left += [self.diff.widget, self.question, self.held.widget]
        title, *right = (html.widget for html in (*self.first.values(), self.rest))
        both = [ipw.VBox(side, layout={"flex": "1 1 400px", "min_width": "0"}) for side in (left, right)]
        self.box = ipw.VBox([title, ipw.HBox(both, layout={**flow, **_SPACED})])
        self.refresh(model)
        model.watchers.append(self.refresh)

    def refresh(self, model: Weighing) -> None:
        """Show what the model holds now, the numbers first."""
        for part, html in self.first.items():
            html.show(part(model))
        places = [(METRIC, name) for name in model.metrics] + [(DOC, name) for name in model.doc_weights]
        # Rows that stay are not made anew.
        self._rows = {place: self._rows.get(place) or WeightRow(model, *place) for place in places}
        for kind, box in self.boxes.items():
            box.children = [row.box for (own, _), row in self._rows.items() if own == kind]
        for row in self._rows.values():
            row.refresh()
        self.rest.show(join(part(model) for part in _REST))
        self.held.show(held([one.value for row in self._rows.values() for one in (row.text, row.slider)]))
        self.save.disabled = model.scenario.path is None or not model.is_changed()

    def _search(self, text: str) -> None:
        """Offer the documents whose names hold what is typed."""
        hits = self.model.find(text) if text.strip() else []
        self.busy = True  # options select their first one by themselves
        with self.hits.hold_sync():
            self.hits.options, self.hits.value = hits[:_HITS], None
        self.busy, self.hits.layout.display = False, "flex" if hits else "none"
        more = self.model.say("editor.more", n=len(hits) - _HITS) if len(hits) > _HITS else ""
        self.note.warn(more, "rg-said")

    def _submit(self, _: Any, sent: Any, __: Any) -> None:
        if sent.get("event") == "submit":
            self._add(self.pick.value)

    def _add(self, name: str) -> None:
        problem = self.model.add(name)
        self.pick.value = self.pick.value if problem else ""
        self.note.warn(problem)

    # Saving asks before it writes: the diff, another name, and what stands in the way.

    def _ask(self, *acts: Callable[[], None]) -> None:
        """Show what saving would change, or do what the answer says; or say why not, and offer to read again."""
        self.question.layout.display, self.again.layout.display = "flex", "none"
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
        patch, say = self.model.plan(), self.model.say
        if not patch.changed:
            return self._hide(say("editor.same"))
        text = say("editor.will_change", file=patch.file.name, n=len(patch.changed))
        return self.diff.show(join([element("p", text), element("pre", patch.diff, class_="rg-diff", tabindex=0)]))

    def _write(self) -> None:
        name, home = self.name.value.strip(), self.model.scenario.path
        changed = self.model.save(home.parent / Path(name) if name and home else None)
        self.name.value, file = "", self.model.scenario.path
        self._hide(self.model.say("editor.saved", file=file.name if file else "", fields=", ".join(changed)))


class WeightRow:
    """One weight as a row: a number to type, a slider to drag, its share, and what is wrong with it.

    Parameters
    ----------
    model : Weighing
    kind, name : str
        Which weight it shows.
    """

    def __init__(self, model: Weighing, kind: str, name: str) -> None:
        import ipywidgets as ipw

        self.model, self.place, self.busy = model, (kind, name), False
        # The right end of the slider; it moves when a greater weight is typed.
        top = 4.0 if kind == DOC else 1.0 if max(model.metric_weights.values()) < 1 else 2.0
        self.text = field(lambda _: name, "", tooltip=name, continuous_update=False, style=NAMED, layout=_NARROW)
        self.slider = ipw.FloatSlider(max=top, step=GRID, readout=False, tooltip=name, layout={"flex": "1 1 90px"})
        self.last: Any = ipw.Label(layout={"width": "46px", "justify_content": "flex-end"})
        if kind == DOC:
            self.last = button(model.say, "editor.remove", lambda: model.remove(name), name=name)
        self.said, self.mark = Html(model.lang), f"rg-flip-{next(numbers)}"
        line = ipw.HBox([self.text, self.slider, self.last], layout={"align_items": "center"})
        self.box = ipw.VBox([line, self.said.widget])
        self.box.add_class("rg-row").add_class(self.mark)
        hear(self, self.text, partial(model.set, kind, name))
        hear(self, self.slider, self._drag)

    def _drag(self, weight: float) -> None:
        # A slider snaps what it is given to its grid and sends that back; only a person moves it further.
        if abs(weight - self.model.weight(*self.place)) > GRID / 2 + 1e-9:
            self.model.set(*self.place, round(weight, 2))

    def refresh(self) -> None:
        """Show what the model holds."""
        model, (kind, name) = self.model, self.place
        weight, problem = model.weight(kind, name), model.problems.get(self.place, "")
        self.busy = True
        self.text.value = self.text.value if problem else f"{weight:.12g}"
        self.slider.max = max(self.slider.max, math.ceil(weight))
        self.slider.value = weight
        self.busy = False
        if kind == METRIC:
            self.last.value = _percent(model.share(name))
        elif name not in model.documents:
            problem = problem or model.say("editor.absent")
        lines = [element("p", problem, class_="rg-said rg-bad", role="alert")] * bool(problem)
        if (start := model.start(kind, name)) != weight:
            lines.append(element("p", model.say("editor.was", what=f"{start:.12g}"), class_="rg-said"))
        if kind == METRIC and (words := _flip(model, name)):
            lines.append(element("p", words, class_="rg-said rg-flip", id=self.mark))
            if (at := model.now.flips[name] / self.slider.max) <= 1:  # a mark on the slider
                rule = f".{self.mark} .noUi-base::after {{ display: block; left: {100 * at:.3f}%; }}"
                lines.append(Safe(f"<style>{rule}</style>"))
        self.said.show(join(lines))


# What the editor shows, as HTML


def _title(model: Weighing) -> Safe:
    return element("h3", model.say("editor.title", name=model.scenario.title or model.scenario.name))


def _number(row: Row, key: str = "value") -> str:
    """Write a rate as a percentage, a score with three decimals."""
    return (percent if row["role"] in ("rate", "completeness") else number)(row[key])


def _ends(row: Row) -> str:
    """Write an interval; nothing where there is none."""
    low, dash = _number(row, "low").removesuffix(" %"), "–" if row["low"] >= 0 else " – "
    return "" if is_missing(row["low"]) else f"{low}{dash}{_number(row, 'high')}"


def _interval(row: Row) -> tuple[str, Small]:
    """Write an estimate, and its interval in smaller type."""
    return _number(row), Small(_ends(row))


def _total(model: Weighing) -> Safe:
    """The overall score with its interval and its place between the thresholds, and what it was."""
    say, row, name = model.say, model.now.rows[TOTAL], model.say("editor.overall")
    span = row["range_low"], row["range_high"]
    if is_missing(row["value"]) or not np.isfinite(span).all():
        why = why_no_total(model.now.means, lang=model.lang)
        return join([element("h4", name), element("p", why, class_="rg-note")])
    bands, size = model.scenario.bands, span[1] - span[0]
    bars = {say(f"mark.{key}"): span[0] + size * getattr(bands, key) for key in ("watch", "good")}
    tone = ("bad", "watch", "good")[sum(row["value"] >= at for at in bars.values())]
    # Systems are never pooled into a judgement.
    mark = draw(Mark(tone, say(f"mark.{tone}"))) if model.now.systems is None else ""
    value, low, high = (float(row[key]) for key in ("value", "low", "high"))
    drawn = Estimate(_number(row), "", value, low, high, span, tuple(bars.items()), text=name)
    found = say("editor.ci", level=f"{100 * model.scenario.level:g}", ends=_ends(row))
    return join([
        element("h4", name),
        element("p", _number(row), " ", mark, class_="rg-big"),
        element("p", f"{found} · n = {row['n']}", class_="rg-note"),
        draw(drawn, width=260),
        element("p", say("editor.before", value=_number(model.base.rows[TOTAL])), class_="rg-note"),
    ])  # fmt: skip


def _notes(model: Weighing) -> Safe:
    """What is wrong with the weights as a whole, and what to know before believing the numbers."""
    problems = [text for (_, name), text in model.problems.items() if not name]
    lines = [element("p", text, role="alert", class_="rg-bad") for text in problems]
    return join([*lines, draw(Text(tuple(notes(model.now.means, lang=model.lang)["text"]), "note"))])


def _radar(model: Weighing) -> Safe:
    """Means by metric, one outline a system; each axis says how much it counts."""
    own, label = model.now.rows, model.say("editor.radar")
    ends = {name: (own[name]["range_low"], own[name]["range_high"]) for name in model.metrics}
    axes = {f"{name} {_percent(model.share(name))}": name for name in ends if np.isfinite(ends[name]).all()}
    if not axes:
        return Safe("")
    best = {name: model.now.by_system[name] for name in model.now.ranking[:5]}  # more cannot be told apart
    shown = best or {model.say("editor.now"): own}
    picture = radar_svg(
        list(axes), {name: [rows[metric]["value"] for metric in axes.values()] for name, rows in shown.items()},
        ranges={axis: scale_of(name, *ends[name]) for axis, name in axes.items()},
        better={axis: own[name]["better"] for axis, name in axes.items()},
        radius=105, lang=model.lang, label=label,
    )  # fmt: skip
    return draw(Picture(picture, label))


def _percent(share: float) -> str:
    """Write a share of the total without decimals."""
    return "—" if math.isnan(share) else f"{100 * share:.0f} %"


def _table(model: Weighing, rows: list[dict[str, Any]], title: str = "") -> Safe:
    """Return records as a table, under a heading; nothing for no records."""
    if not rows:
        return Safe("")
    heads = tuple(">" * (key in _NUMBERS) + model.say(f"editor.column.{key}") for key in rows[0])
    cells = tuple(tuple(count(cell) if key == "n" else cell for key, cell in row.items()) for row in rows)
    heading = element("h4", model.say(f"editor.{title}")) if title else ""
    return join([heading, draw(Table(heads, cells), model.lang)])


def _flip(model: Weighing, name: str) -> str:
    """Say from which weight of a metric on, moved alone, the other system leads; nothing where none does."""
    if (found := model.now.found) is None or (at := model.now.flips.get(name)) is None:
        return ""
    side = "below" if at < model.weight(METRIC, name) else "above"
    return model.say(f"editor.flip_{side}", name=one_line(found.order[1], 40), weight=f"{at:.3g}")


def _lead(model: Weighing) -> Safe:
    """Say which of two systems leads at these weights, and whether one weight alone changes that."""
    if (found := model.now.found) is None:
        return Safe("")
    ahead, behind = (one_line(name, 40) for name in found.order)
    value, low, high = found.at(found.today).iloc[0]
    value, low, high = (value, low, high) if value >= 0 else (-value, -high, -low)
    row = {"value": value, "low": low, "high": high, "role": "total"}
    leads = model.say("editor.leads", name=ahead, other=behind, value=_number(row), ends=_ends(row))
    flips = model.say("editor.flips" if model.now.flips else "editor.no_flip")
    return element("p", leads, element("br"), flips, class_="rg-note")


def _systems(model: Weighing) -> Safe:
    """Systems by their weighted score, the best first, with the place that the weights of the start give."""
    base, rows = model.base.ranking, []
    for place, name in enumerate(model.now.ranking, 1):
        row, moved = model.now.by_system[name][TOTAL], base[place - 1] != name
        shown = {"place": (str(place), *_before(model, base.index(name) + 1, moved))}
        rows.append(shown | {"system": one_line(name, 60), "mean": _interval(row), "n": row["n"]})
    return _table(model, rows, "systems")


def _gates(model: Weighing) -> Safe:
    """Every gate with its outcome; one that these weights flip says what it was and comes first."""
    rows, say = [], model.say
    for row, old in zip(records(model.now.gates), records(model.base.gates), strict=True):
        words, was = (say(f"editor.{it['outcome']}") + say("editor.blocks") * it["blocks"] for it in (row, old))
        name = say("editor.overall") if row["metric"] == TOTAL else row["metric"]
        name = name if row["system"] is None else f"{row['system']}: {name}"
        outcome = Mark("bad" if row["blocks"] else _OUTCOMES[row["outcome"]], words)
        rows.append({
            "gate": f"{name} {'≥' if row['op'] == '>=' else '≤'} {_number(row, 'threshold')}",
            "mean": _interval(row), "n": row["n"],
            "outcome": (outcome, *_before(model, was, words != was)),
        })  # fmt: skip
    return _table(model, sorted(rows, key=lambda row: -len(row["outcome"])), "gates")


def _before(model: Weighing, what: object, differs: bool) -> list[str]:
    """Say what the weights of the start give, where that differs."""
    return [model.say("editor.was", what=what)] * differs


def _weights(model: Weighing) -> Safe:
    """The weights as a table: what the editor is where nothing can be moved."""
    rows = [
        {"metric": name, "weight": f"{weight:g}", "share": _percent(model.share(name)), "mean": _interval(row)}
        | {"n": row["n"]} | ({"flip": _flip(model, name)} if model.now.flips else {})
        for (name, weight), row in ((item, model.now.rows[item[0]]) for item in model.metric_weights.items())
    ]  # fmt: skip
    docs = [{"document": name, "weight": f"{weight:g}"} for name, weight in model.doc_weights.items()]
    return join([_table(model, rows), _table(model, docs)])


# What a key changes first on the screen, and what follows.
_FIRST = (_title, _total, _radar)
_REST = (_lead, _notes, _systems, _gates)


METRIC, DOC = "metric_weights", "doc_weights"
# The step of a slider: normalised weights are multiples of it.
GRID = 0.01
Row = Mapping[Any, Any]


class Numbers:
    """What follows from one set of weights: frames as `Moments.means` and `check_gates` give them.

    Gates and flips are computed when they are first asked for, so that the score is on the screen before them.
    """

    def __init__(self, model: Weighing, metrics: dict[str, float], docs: dict[str, float]) -> None:
        file, self._model, self._metrics = model.scenario, model, metrics
        self._docs = {name: weight for name, weight in docs.items() if name in model.documents}
        how: dict[str, Any] = {"metric_weights": metrics, "doc_weights": self._docs, "strict": False}
        how |= {"level": file.level, "orient": file.orient, "rescale": file.rescale}
        self.means: pd.DataFrame = model._pooled.means(**how)
        self.systems: pd.DataFrame | None = model._by.means(**how) if model._by else None
        self.rows: dict[str, Row] = {row["metric"]: row for row in records(self.means)}
        self.by_system: dict[str, dict[str, Row]] = {}
        for row in records(self.systems) if self.systems is not None else ():
            self.by_system.setdefault(str(next(iter(row.values()))), {})[row["metric"]] = row
        self.ranking = sorted(self.by_system, key=lambda name: -self.by_system[name]["weighted_score"]["value"])

    @cached_property
    def gates(self) -> pd.DataFrame:
        """The gates; systems are never pooled into a decision."""
        means = self.means if self.systems is None else self.systems
        return check_gates(means, gates=self._model.gates, no_data=self._model.scenario.no_data)

    @cached_property
    def found(self) -> WeightMap | None:
        """The weight map of two systems, at these weights."""
        found = self._model._map(self._docs)
        some = found is not None and any(self._metrics[name] for name in found.metrics)
        return found.reweighed(self._metrics) if found is not None and some else None

    @cached_property
    def flips(self) -> dict[str, float]:
        """The weight of each metric from which on, all others kept, the other of two systems leads."""
        if self.found is None:
            return {}
        table, total = self.found.flips, math.fsum(self._metrics[name] for name in self.found.metrics)
        table = table[(table["flip"] < 1) & (table["today"] < 1)]
        weight = total * (1 - table["today"]) * table["flip"] / (1 - table["flip"])
        return dict(zip(table["metric"], weight, strict=True))


class Weighing:
    """The state of a weight editor.

    Parameters
    ----------
    scenario, moments, gates, pairs
        What is weighed, as `ragnb.sheet.build.weighable` returns it.

    Attributes
    ----------
    metrics : list of str
        The metrics that have a row: those of the total, and rates that the file names.
    problems : dict of (field, name) to str
        What is wrong with an entry, in words; the last good value counts meanwhile.
    watchers : list of functions
        They are called with this after every change.
    """

    def __init__(self, scenario: Scenario, moments: Moments, gates: Sequence[Gate], pairs: Pairs | None) -> None:
        self.scenario, self.gates, self._pairs = scenario, gates, pairs
        self._by = moments if moments.by is not None and len(moments.groups) > 1 else None
        self._pooled = moments if moments.by is None else moments.pooled()
        self.lang, self.say = self.scenario.lang, texts.load(self.scenario.lang)
        self.watchers: list[Callable[[Weighing], object]] = []
        self._start()

    def _start(self) -> None:
        named, metrics = self.scenario.metric_weights, self._pooled.metrics
        self.metrics = [m.name for m in metrics if m.role == "quality" or m.name in named]
        usual = {m.name: m.weight if m.role == "quality" else 0.0 for m in metrics}
        docs = {nfc(name): weight for name, weight in self.scenario.doc_weights.items()}
        self._file: dict[str, dict[str, float]] = {METRIC: usual | named, DOC: docs}
        self.documents = tuple(self._pooled.docs)
        self._entries = self._blank()
        self.problems: dict[tuple[str, str], str] = {}
        self._mapped: tuple[dict[str, float] | None, WeightMap | None] = None, None
        self.now = self.base = self._compute()

    def _blank(self) -> dict[str, dict[str, float | None]]:
        return {METRIC: dict.fromkeys(self.metrics), DOC: dict.fromkeys(self._file[DOC])}

    @property
    def metric_weights(self) -> dict[str, float]:
        """The weight of every metric that has a row."""
        return {name: self.weight(METRIC, name) for name in self.metrics}

    @property
    def doc_weights(self) -> dict[str, float]:
        """The weight of every document that has a row."""
        return {name: self.weight(DOC, name) for name in self._entries[DOC]}

    def weight(self, field: str, name: str) -> float:
        """Return what an entry counts: its value, where blank the file's, else the usual one."""
        value = self._entries[field].get(name)
        return self.start(field, name) if value is None else value

    def start(self, field: str, name: str) -> float:
        """Return what an entry counts at the start: the file's value, else the usual one."""
        return self._file[field].get(name, 1.0)

    def share(self, name: str) -> float:
        """Return a metric's share of all metric weights; nan where they are all 0."""
        total = math.fsum(self.metric_weights.values())
        return self.weight(METRIC, name) / total if total > 0 else math.nan

    def is_changed(self) -> bool:
        """Whether there is something to save."""
        return self._entries != self._blank()

    def set(self, field: str, name: str, entry: str | float | None) -> None:
        """Set one weight: a number, text that is one, or blank for the file's value.

        What is no weight leaves the last good value and a sentence in `problems`.
        """
        value, problem = read_entry(entry)
        self.problems.pop((field, name), None)
        if problem:
            self.problems[field, name] = self.say(f"editor.{problem}", entry=str(entry).strip()[:40])
        else:
            self._entries[field][name] = value
        self._changed(anew=not problem)

    def add(self, text: str) -> str:
        """Give the one document that `text` names, whole or in part, a row; or return why there is none."""
        name = nfc(text.strip())
        hits = [name] if name in self.documents else self.find(name)
        if len(hits) > 1:
            return self.say("editor.several", n=len(hits), text=name[:80]) if name else ""
        if taken := [row for row in self._entries[DOC] if row == name or (not hits and _holds(row, name))]:
            return self.say("editor.has_row", name=taken[0])
        if not hits:
            return self.say("editor.no_document", text=name[:80])
        self._put({DOC: self._entries[DOC] | {hits[0]: None}})
        return ""

    def remove(self, name: str) -> None:
        """Take a document's row away: it counts 1 again."""
        rest = {other: value for other, value in self._entries[DOC].items() if other != name}
        self.problems.pop((DOC, name), None)
        self._put({DOC: rest})

    def find(self, text: str) -> list[str]:
        """Return documents without a row whose name holds every word of `text`, in any case and width."""
        return [name for name in self.documents if name and name not in self._entries[DOC] and _holds(name, text)]

    def normalise(self) -> None:
        """Make the metric weights add up to 1, on the slider's grid."""
        if max(self.metric_weights.values(), default=0.0) > 0:
            self._put({METRIC: dict(normalised(self.metric_weights))}, clean=True)

    def equal(self) -> None:
        """Let every metric count 1."""
        self._put({METRIC: dict.fromkeys(self.metrics, 1.0)}, clean=True)

    def reset(self) -> None:
        """Go back to the file's weights."""
        self._put(self._blank(), clean=True)

    def _put(self, entries: dict[str, dict[str, float | None]], *, clean: bool = False) -> None:
        self._entries, self.problems = self._entries | entries, {} if clean else self.problems
        self._changed()

    def _changed(self, *, anew: bool = True) -> None:
        self.now = self._compute() if anew else self.now
        for watcher in self.watchers:
            watcher(self)

    def _compute(self) -> Numbers:
        """The numbers at these weights; weights that are all 0 leave the last ones, with a problem."""
        docs, metrics = self.doc_weights, self.metric_weights
        nameless = bool((self._pooled.cells.doc < 0).any())
        counts = nameless or not self.documents or any(docs.get(name, 1.0) for name in self.documents)
        for kind, some in ((METRIC, not metrics or any(metrics.values())), (DOC, counts)):
            self.problems.pop((kind, ""), None)
            if not some:
                self.problems[kind, ""] = self.say(f"editor.all_zero_{kind}")
        if problems := [text for (_, name), text in self.problems.items() if not name]:
            if not hasattr(self, "now"):
                raise RagnbError(problems[0])
            return self.now
        return Numbers(self, metrics, docs)

    def _map(self, docs: dict[str, float]) -> WeightMap | None:
        """Return the weight map of two systems over the metrics that have a row; it is made anew for documents."""
        if self._pairs is None or self._mapped[0] == docs:
            return self._mapped[1]
        labels, doc, weights, found = self._pairs.labels, self.scenario.doc, self._pairs.weights, None
        if doc in labels:
            weights = labels[doc].map(lambda name: docs.get(name, 1.0)).to_numpy(float)
        how: dict[str, Any] = {"orient": self.scenario.orient, "rescale": self.scenario.rescale}
        equal = total_of(self._pairs.metrics, dict.fromkeys(self.metrics, 1.0), strict=False, known=False, **how)
        with suppress(RagnbError):  # metrics of different ranges
            found = WeightMap.of(replace(self._pairs, weights=weights), equal, self.scenario.level)
        self._mapped = docs, found
        return found

    def plan(self, to: str | Path | None = None) -> Patch:
        """Return what saving would change in the file.

        Raises
        ------
        RagnbError
            Without a file, with weights that are none, and when the file changed since it was read.
        """
        path = self.scenario.path
        problems = [self.say("editor.no_file")] if path is None else list(self.problems.values())
        if path is None or problems:
            raise RagnbError(" ".join(problems))
        gone = [name for name in self._file[DOC] if name not in self._entries[DOC]]
        return plan_patch(path, self._entries, drop={DOC: gone} if gone else None, since=self.scenario, to=to)

    def save(self, to: str | Path | None = None) -> list[str]:
        """Write the weights into the file, or into a new one, and return the fields that changed."""
        patch = self.plan(to)
        patch.write()
        self.reload(patch.to)
        return patch.changed

    def reload(self, path: Path | None = None) -> None:
        """Read the file's weights again; entries stay as they are seen."""
        seen = {METRIC: self.metric_weights, DOC: self.doc_weights}
        self.scenario = load_scenario(str(path or self.scenario.path)).replace(lang=self.scenario.lang)
        self._start()
        for kind, own in seen.items():
            file = self._file[kind]
            self._entries[kind] = {name: None if file.get(name) == w else w for name, w in own.items()}
        self._changed()


def normalised(weights: Mapping[str, float]) -> dict[str, float]:
    """Return weights in the same proportions, multiples of 0.01 that add up to 1 exactly.

    The largest remainders are rounded up; a weight above 0 keeps at least one hundredth where that is possible.

    Examples
    --------
    >>> normalised({"a": 1, "b": 1, "c": 1})
    {'a': 0.34, 'b': 0.33, 'c': 0.33}
    """
    units, top = round(1 / GRID), max(weights.values())
    shares = {name: weight / top for name, weight in weights.items()}  # else a sum could overflow
    total = math.fsum(shares.values())
    least = 1 if sum(weight > 0 for weight in weights.values()) <= units else 0
    exact = {name: units * share / total for name, share in shares.items()}
    whole = {name: max(math.floor(x), least * (weights[name] > 0)) for name, x in exact.items()}
    while (rest := units - sum(whole.values())) != 0:
        step = 1 if rest > 0 else -1
        free = [name for name, weight in weights.items() if weight > 0 and whole[name] + step >= least]
        whole[max(free, key=lambda name: step * (exact[name] - whole[name]))] += step
    return {name: count / units for name, count in whole.items()}


def read_entry(entry: str | float | None) -> tuple[float | None, str]:
    """Read a weight as a person types it, in any width: its value (None where blank), and what is wrong.

    Examples
    --------
    >>> read_entry(" ０．５ "), read_entry(""), read_entry("-1"), read_entry("nan")
    ((0.5, ''), (None, ''), (None, 'negative'), (None, 'not_number'))
    """
    text = "" if entry is None else unicodedata.normalize("NFKC", str(entry)).strip()
    if not text:
        return None, ""
    with suppress(ValueError):
        value = float(text.replace("_", "?"))
        if math.isfinite(value):
            return (value, "") if value >= 0 else (None, "negative")
    return None, "not_number"


def _holds(name: str, text: str) -> bool:
    """Whether a name holds every word of a text, whatever their case and width."""
    whole, *words = (unicodedata.normalize("NFKC", part).casefold() for part in (name, *text.split()))
    return all(word in whole for word in words)
