"""Weights as they are typed, and the means that follow from them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.comparison import WeightMap
from ragnb.comparison.differences import compared
from ragnb.comparison.pairs import Pairs
from ragnb.diagnostics import check_gates
from ragnb.errors import RagnbError
from ragnb.inputs.rubric import with_dimensions_apart
from ragnb.markup import is_missing
from ragnb.scenario import Patch, Scenario, load_scenario, plan_patch
from ragnb.schema import TOTAL, Gate, records
from ragnb.sheet.formatter import Formatter, Row
from ragnb.weights import Moments, nfc
from ragnb.weights.total import total_of

METRIC = "metric_weights"
DOC = "doc_weights"
# The step of a slider: normalised weights are multiples of it.
GRID = 0.01


class Numbers:
    """What follows from one set of weights: frames as `Moments.means` and `check_gates` give them.

    Gates and flips are computed when they are first asked for, so that the score is on the screen before them.
    """

    def __init__(self, model: Weighing, metrics: dict[str, float], docs: dict[str, float]) -> None:
        self._model = model
        self._metrics = metrics
        self.scenario = model.scenario
        self._docs = {name: weight for name, weight in docs.items() if name in model.documents}
        how: dict[str, Any] = {
            "metric_weights": metrics,
            "doc_weights": self._docs,
            "strict": False,
        }
        how |= {name: getattr(self.scenario, name) for name in ("level", "orient", "rescale")}
        self.means: pd.DataFrame = model._pooled.means(**how)
        self.systems: pd.DataFrame | None = model._by.means(**how) if model._by else None
        self.write = Formatter(self)
        self.rows = self.write.rows
        self.by_system: dict[str, dict[str, Row]] = {}
        if self.systems is not None:
            for row in records(self.systems):
                self.by_system.setdefault(str(next(iter(row.values()))), {})[row["metric"]] = row
        scores = {name: -rows[TOTAL]["value"] for name, rows in self.by_system.items()}
        self.ranking = sorted(scores, key=lambda name: (is_missing(scores[name]), scores[name]))

    @cached_property
    def gates(self) -> pd.DataFrame:
        """The gates; systems are never pooled into a decision."""
        means = self.means if self.systems is None else self.systems
        return check_gates(means, gates=self._model.gates, no_data=self.scenario.no_data)

    @cached_property
    def found(self) -> WeightMap | None:
        """The weight map of two systems, at these weights."""
        found = self._model._map(self._docs)
        some = found is not None and any(self._metrics[name] for name in found.metrics)
        if found is not None and some:
            return found.reweighed(self._metrics)
        return None

    @cached_property
    def by_people(self) -> Row | None:
        """The difference of the totals at these weights with the ratings of people; None without any of both."""
        pairs = self._model._pairs_weighed(self._docs)
        if pairs is None or pairs.human is None:
            return None
        with suppress(RagnbError):  # no metric with a weight, or metrics of different ranges
            table = compared([pairs], self.scenario.replace(metric_weights=self._metrics))
            return records(table[table["metric"] == TOTAL])[0]
        return None

    @cached_property
    def flips(self) -> dict[str, float]:
        """The weight of each metric from which on, all others kept, the other of two systems leads."""
        if self.found is None:
            return {}
        table = self.found.flips
        total = math.fsum(self._metrics[name] for name in self.found.metrics)
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

    def __init__(
        self, scenario: Scenario, moments: Moments, gates: Sequence[Gate], pairs: Pairs | None
    ) -> None:
        self.lang = scenario.lang
        self.say = texts.load(scenario.lang)
        self.watchers: list[Callable[[Weighing], object]] = []
        self._take(scenario, moments, gates, pairs)

    def renew(
        self, scenario: Scenario, moments: Moments, gates: Sequence[Gate], pairs: Pairs | None
    ) -> None:
        """Weigh what was read again, as after a run; what was entered stays, as far as it has a row.

        The views that watch this stay, too: a view made for each run would send the browser some hundred messages
        at once, of which a busy server drops some.
        """
        entered = self.entries()
        self._take(scenario, moments, gates, pairs)
        metrics = {name: entered[METRIC].get(name) for name in self.metrics}
        self._put({METRIC: metrics, DOC: entered[DOC]})

    def _take(
        self, scenario: Scenario, moments: Moments, gates: Sequence[Gate], pairs: Pairs | None
    ) -> None:
        self.scenario = scenario
        self.gates = gates
        self._pairs = pairs
        self._by = moments if moments.by is not None and len(moments.groups) > 1 else None
        self._pooled = moments if moments.by is None else moments.pooled()
        self._start()

    def _start(self) -> None:
        named = self.scenario.metric_weights
        metrics = self._pooled.metrics
        self.metrics = [m.name for m in metrics if m.role == "quality" or m.name in named]
        usual = {m.name: m.weight if m.role == "quality" else 0.0 for m in metrics}
        docs = {nfc(name): weight for name, weight in self.scenario.doc_weights.items()}
        self._file: dict[str, dict[str, float]] = {METRIC: usual | named, DOC: docs}
        self.documents = tuple(self._pooled.docs)
        self._entries = self._blank()
        self.problems: dict[tuple[str, str], str] = {}
        self._mapped: tuple[dict[str, float] | None, WeightMap | None] = None, None
        self.now = self.base = self._compute()

    @property
    def is_scored(self) -> bool:
        """Whether anything has a score; a scenario that has not run has none."""
        return bool(self.now.means["n"].any())

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
        if (value := self._entries[field].get(name)) is None:
            return self.start(field, name)
        return value

    def start(self, field: str, name: str) -> float:
        """Return what an entry counts at the start: the file's value, else the usual one."""
        return self._file[field].get(name, 1.0)

    def share(self, name: str) -> float:
        """Return a metric's share of all metric weights; nan where they are all 0."""
        total = math.fsum(self.metric_weights.values())
        if total > 0:
            return self.weight(METRIC, name) / total
        return math.nan

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
            self.problems[field, name] = self.say(
                f"editor.{problem}", entry=str(entry).strip()[:40]
            )
        else:
            self._entries[field][name] = value
        self._changed(anew=not problem)

    def entries(self) -> dict[str, dict[str, float | None]]:
        """Return what is entered, by field and name; None where an entry is left to the file."""
        return {field: dict(entered) for field, entered in self._entries.items()}

    def add(self, text: str) -> str:
        """Give the one document that `text` names, whole or in part, a row; or return why there is none."""
        name = nfc(text.strip())
        hits = [name] if name in self.documents else self.find(name)
        if len(hits) > 1:
            if name:
                return self.say("editor.several", n=len(hits), text=name[:80])
            return ""
        if taken := [
            row for row in self._entries[DOC] if row == name or (not hits and _holds(row, name))
        ]:
            return self.say("editor.has_row", name=taken[0])
        if not hits:
            return self.say("editor.no_document", text=name[:80])
        self._put({DOC: self._entries[DOC] | {hits[0]: None}})
        return ""

    def remove(self, name: str) -> None:
        """Take a document's row away: it counts 1 again."""
        self.problems.pop((DOC, name), None)
        self._put(
            {DOC: {other: value for other, value in self._entries[DOC].items() if other != name}}
        )

    def find(self, text: str) -> list[str]:
        """Return documents without a row whose name holds every word of `text`, in any case and width."""
        return [
            name
            for name in self.documents
            if name and name not in self._entries[DOC] and _holds(name, text)
        ]

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
        docs = self.doc_weights
        metrics = self.metric_weights
        nameless = bool((self._pooled.cells.doc < 0).any())
        counts = (
            nameless or not self.documents or any(docs.get(name, 1.0) for name in self.documents)
        )
        for kind, some in ((METRIC, not metrics or any(metrics.values())), (DOC, counts)):
            self.problems.pop((kind, ""), None)
            if not some:
                self.problems[kind, ""] = self.say(f"editor.all_zero_{kind}")
        if problems := [text for (_, name), text in self.problems.items() if not name]:
            if not hasattr(self, "now"):
                raise RagnbError(problems[0])
            return self.now
        return Numbers(self, metrics, docs)

    def _pairs_weighed(self, docs: dict[str, float]) -> Pairs | None:
        """Return the pairs of two systems with these weights of documents."""
        if self._pairs is None or (doc := self.scenario.doc) not in self._pairs.labels:
            return self._pairs
        weights = self._pairs.labels[doc].map(lambda name: docs.get(name, 1.0)).to_numpy(float)
        return replace(self._pairs, weights=weights)

    def _map(self, docs: dict[str, float]) -> WeightMap | None:
        """Return the weight map of two systems over the metrics that have a row; it is made anew for documents."""
        pairs = self._pairs_weighed(docs)
        found = None
        if pairs is None or self._mapped[0] == docs:
            return self._mapped[1]
        how: dict[str, Any] = {"orient": self.scenario.orient, "rescale": self.scenario.rescale}
        equal = total_of(
            pairs.metrics, dict.fromkeys(self.metrics, 1.0), strict=False, known=False, **how
        )
        with suppress(RagnbError):  # metrics of different ranges
            found = WeightMap.of(pairs, equal, self.scenario.level)
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
            problems = [self.say("editor.no_file")]
        else:
            problems = list(self.problems.values())
        if path is None or problems:
            raise RagnbError(" ".join(problems))
        gone = [name for name in self._file[DOC] if name not in self._entries[DOC]]
        return plan_patch(
            path, self._entries, drop={DOC: gone} if gone else None, since=self.scenario, to=to
        )

    def save(self, to: str | Path | None = None) -> list[str]:
        """Write the weights into the file, or into a new one, and return the fields that changed."""
        patch = self.plan(to)
        patch.write()
        self.reload(patch.to)
        return patch.changed

    def reload(self, path: Path | None = None) -> None:
        """Read the file's weights again; entries stay as they are seen."""
        seen = {METRIC: self.metric_weights, DOC: self.doc_weights}
        file = load_scenario(str(path or self.scenario.path))
        kept = file.replace(lang=self.scenario.lang, rubric=self.scenario.rubric)
        self.scenario = with_dimensions_apart(kept, self._pooled.metrics)
        self._start()
        for kind, own in seen.items():
            self._entries[kind] = {
                name: None if self._file[kind].get(name) == w else w for name, w in own.items()
            }
        self._changed()


def normalised(weights: Mapping[str, float]) -> dict[str, float]:
    """Return weights in the same proportions, multiples of 0.01 that add up to 1 exactly.

    The largest remainders are rounded up; a weight above 0 keeps at least one hundredth where that is possible.

    Examples
    --------
    >>> normalised({"a": 1, "b": 1, "c": 1})
    {'a': 0.34, 'b': 0.33, 'c': 0.33}
    """
    units = round(1 / GRID)
    given = np.array([*weights.values()], float)
    raw, counts = given / given.max(), given > 0  # else a sum could overflow
    least = int(counts.sum() <= units)
    exact = units * raw / raw.sum()
    whole = np.maximum(np.floor(exact), least * counts)
    while rest := units - whole.sum():
        step = np.sign(rest)
        free = counts & (whole + step >= least)
        whole[np.where(free, step * (exact - whole), -np.inf).argmax()] += step
    return dict(zip(weights, (whole / units).tolist(), strict=True))


def read_entry(entry: str | float | None) -> tuple[float | None, str]:
    """Read a weight as a person types it, in any width: its value (None where blank), and what is wrong.

    Examples
    --------
    >>> read_entry(" ０．５ "), read_entry(""), read_entry("-1"), read_entry("nan")
    ((0.5, ''), (None, ''), (None, 'negative'), (None, 'not_number'))
    """
    if entry is None:
        return None, ""
    text = unicodedata.normalize("NFKC", str(entry)).strip()
    if not text:
        return None, ""
    with suppress(ValueError):
        if math.isfinite(value := float(text.replace("_", "?"))):
            if value >= 0:
                return (value, "")
            return (None, "negative")
    return None, "not_number"


def _holds(name: str, text: str) -> bool:
    """Whether a name holds every word of a text, whatever their case and width."""
    whole, *words = (
        unicodedata.normalize("NFKC", part).casefold() for part in (name, *text.split())
    )
    return all(word in whole for word in words)
