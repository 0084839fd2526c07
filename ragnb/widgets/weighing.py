"""Weights being edited, and what follows from them: the whole behaviour of the editor, without a widget.

No arithmetic of its own: the numbers are those of `Moments.means` and `check_gates`.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ragnb import texts
from ragnb.comparison import WeightMap
from ragnb.diagnostics import check_gates
from ragnb.errors import RagnbError
from ragnb.scenario import Patch, load_scenario, plan_patch
from ragnb.sheet.build import Weighable
from ragnb.weights import nfc, notes
from ragnb.weights.total import total_of

METRIC, DOC = "metric_weights", "doc_weights"
# The step of a slider: normalised weights are multiples of it.
GRID = 0.01
Place = tuple[str, str]
Entries = dict[str, dict[str, float | None]]


class Numbers(NamedTuple):
    """What follows from one set of weights: frames as `Moments.means`, `check_gates` and `notes` give them.

    Of two systems also their map, and for each metric the weight from which on, moved alone, the other one leads.
    """

    means: pd.DataFrame
    systems: pd.DataFrame | None
    gates: pd.DataFrame
    notes: pd.DataFrame
    found: WeightMap | None = None
    flips: Mapping[str, float] = {}


class Weighing:
    """The state of a weight editor.

    Parameters
    ----------
    run : Weighable
        What is weighed.

    Attributes
    ----------
    metrics : list of str
        The metrics that have a row: those of the total, and rates that the file names.
    problems : dict of (field, name) to str
        What is wrong with an entry, in words; the last good value counts meanwhile.
    """

    def __init__(self, run: Weighable) -> None:
        self.scenario, self.gates, self._pairs = run.scenario, run.gates, run.pairs
        grouped = run.moments.by is not None
        self._by = run.moments if grouped and len(run.moments.groups) > 1 else None
        self._pooled = run.moments.pooled() if grouped else run.moments
        self.lang, self.say = self.scenario.lang, texts.load(self.scenario.lang)
        self._watchers: list[Callable[[Weighing], object]] = []
        self._start()

    def _start(self) -> None:
        named, metrics = self.scenario.metric_weights, self._pooled.metrics
        self.metrics = [m.name for m in metrics if m.role == "quality" or m.name in named]
        self._file: dict[str, dict[str, float]] = {
            METRIC: {m.name: m.weight if m.role == "quality" else 0.0 for m in metrics} | named,
            DOC: {nfc(name): weight for name, weight in self.scenario.doc_weights.items()},
        }
        self.documents = tuple(self._pooled.docs)
        self._entries = self._blank()
        self.problems: dict[Place, str] = {}
        self._mapped: tuple[dict[str, float] | None, WeightMap | None] = None, None
        self.now = self.base = self._compute()

    def _blank(self) -> Entries:
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
        return self._file[field].get(name, 1.0) if value is None else value

    def share(self, name: str) -> float:
        """Return a metric's share of all metric weights; nan where they are all 0."""
        weights = self.metric_weights
        total = math.fsum(weights.values())
        return weights[name] / total if total > 0 else math.nan

    def typed(self, field: str, name: str) -> str:
        """Return an entry as a person would type it, blank where the file's value counts."""
        value = self._entries[field].get(name)
        return "" if value is None else f"{value:.12g}"

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
        elif value != self._entries[field].get(name):
            self._entries[field][name] = value
            return self._changed()
        return self._notify()

    def add(self, name: str) -> str:
        """Give a document a row, and return why it has none, or nothing."""
        name = nfc(name.strip())
        if name not in self.documents:
            near = ", ".join(self.find(name, 3))
            problem = self.say("editor.no_document", name=name[:80])
            return problem + (self.say("editor.near", names=near) if near else "")
        if name in self._entries[DOC]:
            return self.say("editor.has_row", name=name)
        self._put(self._entries | {DOC: self._entries[DOC] | {name: None}})
        return ""

    def remove(self, name: str) -> None:
        """Take a document's row away: it counts 1 again."""
        rest = {other: value for other, value in self._entries[DOC].items() if other != name}
        self.problems.pop((DOC, name), None)
        self._put(self._entries | {DOC: rest})

    def find(self, text: str, most: int = 20) -> list[str]:
        """Return documents without a row whose name holds every word of `text`, in any case and width."""
        words = _folded(text).split()
        free = (name for name in self.documents if name and name not in self._entries[DOC])
        return [name for name in free if all(word in _folded(name) for word in words)][:most]

    def normalise(self) -> None:
        """Make the metric weights add up to 1, on the slider's grid."""
        if max(self.metric_weights.values(), default=0.0) > 0:
            self._put(self._entries | {METRIC: dict(normalised(self.metric_weights))}, clean=True)

    def equal(self) -> None:
        """Let every metric count 1."""
        self._put(self._entries | {METRIC: dict.fromkeys(self.metrics, 1.0)}, clean=True)

    def reset(self) -> None:
        """Go back to the file's weights."""
        self._put(self._blank(), clean=True)

    def _put(self, entries: Entries, *, clean: bool = False) -> None:
        self._entries, self.problems = entries, {} if clean else self.problems
        self._changed()

    def observe(self, watcher: Callable[[Weighing], object]) -> None:
        """Call `watcher` with this after every change."""
        self._watchers.append(watcher)

    def _changed(self) -> None:
        self.now = self._compute()
        self._notify()

    def _notify(self) -> None:
        for watcher in self._watchers:
            watcher(self)

    def _compute(self) -> Numbers:
        """The numbers at these weights; weights that are all 0 leave the last ones, with a problem."""
        docs, metrics, file = self.doc_weights, self.metric_weights, self.scenario
        nameless = bool((self._pooled.cells.doc < 0).any())
        counts = nameless or not self.documents or any(docs.get(name, 1.0) for name in self.documents)
        for field, some in ((METRIC, not metrics or any(metrics.values())), (DOC, counts)):
            self.problems.pop((field, ""), None)
            if not some:
                self.problems[field, ""] = self.say(f"editor.all_zero_{field}")
        if problems := [text for (_, name), text in self.problems.items() if not name]:
            if not hasattr(self, "now"):
                raise RagnbError(problems[0])
            return self.now
        docs = {name: weight for name, weight in docs.items() if name in self.documents}
        how: dict[str, Any] = {"metric_weights": metrics, "doc_weights": docs, "strict": False}
        how |= {"level": file.level, "orient": file.orient, "rescale": file.rescale}
        means, systems = self._pooled.means(**how), self._by.means(**how) if self._by else None
        # Systems are never pooled into a decision.
        gates = check_gates(means if systems is None else systems, gates=self.gates, no_data=file.no_data)
        found = self._map(docs)
        total = math.fsum(metrics[name] for name in found.metrics) if found is not None else 0.0
        found = found.reweighed(metrics) if found is not None and total > 0 else None
        flips = {} if found is None else flips_of(found, total)
        return Numbers(means, systems, gates, notes(means, lang=file.lang), found, flips)

    def _map(self, docs: dict[str, float]) -> WeightMap | None:
        """Return the weight map of two systems over the metrics that have a row; it is made anew for documents."""
        if self._pairs is None or self._mapped[0] == docs:
            return self._mapped[1]
        labels, doc, found = self._pairs.labels, self.scenario.doc, None
        weights = self._pairs.weights
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
        if path is None:
            raise RagnbError(self.say("editor.no_file"))
        if self.problems:
            raise RagnbError(" ".join(self.problems.values()))
        gone = [name for name in self._file[DOC] if name not in self._entries[DOC]]
        return plan_patch(path, self._entries, drop={DOC: gone} if gone else None, since=self.scenario, to=to)

    def save(self, to: str | Path | None = None) -> list[str]:
        """Write the weights into the file, or into a new one, and return the fields that changed."""
        patch = self.plan(to)
        changed = patch.write()
        self.reload(patch.to)
        return changed

    def reload(self, path: Path | None = None) -> None:
        """Read the file's weights again; entries stay as they are seen."""
        seen = {METRIC: self.metric_weights, DOC: self.doc_weights}
        assert self.scenario.path is not None
        self.scenario = load_scenario(path or self.scenario.path).replace(lang=self.scenario.lang)
        self._start()
        for field, weights in seen.items():
            file = self._file[field]
            self._entries[field] = {name: None if file.get(name) == w else w for name, w in weights.items()}
        self._changed()


def flips_of(found: WeightMap, total: float) -> dict[str, float]:
    """Return the weight of each metric at which, all others kept, the leader changes, where one does."""
    table = found.flips
    table = table[(table["flip"] < 1) & (table["today"] < 1)]
    weight = total * (1 - table["today"]) * table["flip"] / (1 - table["flip"])
    return dict(zip(table["metric"], weight, strict=True))


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


def _folded(text: str) -> str:
    """Return text without the differences of case and width."""
    return unicodedata.normalize("NFKC", text).casefold()
