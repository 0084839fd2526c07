"""Weights as they are typed, and the means that follow from them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

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
        # `Moments.means` warns of a weight whose document does not occur; in the editor the row itself says so.
        self._docs = {name: weight for name, weight in docs.items() if name in model.documents}
        settings: dict[str, Any] = {
            "metric_weights": metrics,
            "doc_weights": self._docs,
            "level": self.scenario.level,
            "orient": self.scenario.orient,
            "rescale": self.scenario.rescale,
            # Metrics of different ranges have no total; the editor shows the reason in its place.
            "strict": False,
        }
        self.means: pd.DataFrame = model._pooled.means(**settings)
        self.systems: pd.DataFrame | None = None
        if model._by:
            self.systems = model._by.means(**settings)
        self.write = Formatter(self)
        self.rows = self.write.rows
        self.by_system = self._rows_by_system()
        self.ranking = self._rank()

    def _rows_by_system(self) -> dict[str, dict[str, Row]]:
        """Return the means of each system by metric; empty where there are not several."""
        by_system: dict[str, dict[str, Row]] = {}
        if self.systems is None:
            return by_system
        for row in records(self.systems):
            # The first column has the systems; its name is that of the grouping.
            system = str(next(iter(row.values())))
            by_system.setdefault(system, {})[row["metric"]] = row
        return by_system

    def _rank(self) -> list[str]:
        """Return the systems by their total, the best first and those without one last."""
        totals = {name: rows[TOTAL]["value"] for name, rows in self.by_system.items()}
        # By the negative total and not by `reverse=True`, which would put the missing ones first.
        return sorted(totals, key=lambda name: (is_missing(totals[name]), -totals[name]))

    @cached_property
    def gates(self) -> pd.DataFrame:
        """The gates; systems are never pooled into a decision."""
        means = self.means if self.systems is None else self.systems
        return check_gates(means, gates=self._model.gates, no_data=self.scenario.no_data)

    @cached_property
    def found(self) -> WeightMap | None:
        """The weight map of two systems, at these weights."""
        weight_map = self._model._map(self._docs)
        if weight_map is None:
            return None
        # The map has only the metrics that both systems have: all of these may weigh 0 while others count.
        if not any(self._metrics[name] for name in weight_map.metrics):
            return None
        return weight_map.reweighed(self._metrics)

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
        total = math.fsum(self._metrics[name] for name in self.found.metrics)
        # `today` and `flip` are shares of the total weight. A share of 1 is reached by no weight beside others
        # that are kept, and is left by none where the others are 0.
        table = self.found.flips
        table = table[(table["flip"] < 1) & (table["today"] < 1)]
        # flip = weight / (weight + other_weights), solved for the weight.
        other_weights = total * (1 - table["today"])
        weight = other_weights * table["flip"] / (1 - table["flip"])
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
        # The new scores decide which metrics have a row; rows of documents stay as they were added and removed.
        metrics = {name: entered[METRIC].get(name) for name in self.metrics}
        self._put({METRIC: metrics, DOC: entered[DOC]})

    def _take(
        self, scenario: Scenario, moments: Moments, gates: Sequence[Gate], pairs: Pairs | None
    ) -> None:
        self.scenario = scenario
        self.gates = gates
        self._pairs = pairs
        self._by: Moments | None = None  # of several systems
        if moments.by is not None and len(moments.groups) > 1:
            self._by = moments
        self._pooled = moments
        if moments.by is not None:
            self._pooled = moments.pooled()
        self._start()

    def _start(self) -> None:
        """Begin with the weights of the scenario, and nothing entered."""
        named = self.scenario.metric_weights
        metrics = self._pooled.metrics
        self.metrics = [m.name for m in metrics if m.role == "quality" or m.name in named]
        # As in `total_of`: a rate counts only where a weight names it.
        usual = {m.name: m.weight if m.role == "quality" else 0.0 for m in metrics}
        # In Unicode form NFC, as moments have the names of their documents.
        docs = {nfc(name): weight for name, weight in self.scenario.doc_weights.items()}
        self._file: dict[str, dict[str, float]] = {METRIC: usual | named, DOC: docs}
        self.documents = tuple(self._pooled.docs)
        self._entries = self._blank()
        self.problems: dict[tuple[str, str], str] = {}
        self._mapped = _Mapped(None, None)
        self.now = self._compute()
        self.base = self.now

    @property
    def is_scored(self) -> bool:
        """Whether anything has a score; a scenario that has not run has none."""
        return bool(self.now.means["n"].any())

    def _blank(self) -> dict[str, dict[str, float | None]]:
        """Return the entries of an editor in which nobody typed: every row left to the file."""
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
        if value is None:  # and not 0, which is a weight
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
        """Give the one document that `text` names, whole or in part, a row; or return why there is none.

        Blank text, which is a part of every name, adds nothing, and nothing is said.
        """
        name = nfc(text.strip())
        if not name:
            return ""
        # A whole name is that document, also where it is a part of longer names.
        hits = [name] if name in self.documents else self.find(name)
        if len(hits) > 1:
            return self.say("editor.several", n=len(hits), text=name[:80])
        for row in self._entries[DOC]:
            # `find` leaves out what has a row, so a part may name that row where it names nothing else.
            is_part_of_row = not hits and _holds(row, name)
            if row == name or is_part_of_row:
                return self.say("editor.has_row", name=row)
        if not hits:
            return self.say("editor.no_document", text=name[:80])
        self._put({DOC: self._entries[DOC] | {hits[0]: None}})
        return ""

    def remove(self, name: str) -> None:
        """Take a document's row away: it counts 1 again."""
        self.problems.pop((DOC, name), None)
        kept = {other: value for other, value in self._entries[DOC].items() if other != name}
        self._put({DOC: kept})

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
        """Replace the entries of some fields; `clean` drops what was wrong with the old ones."""
        self._entries = self._entries | entries
        if clean:
            self.problems = {}
        self._changed()

    def _changed(self, *, anew: bool = True) -> None:
        """Compute the numbers, unless only a problem is new, and tell the watchers."""
        if anew:
            self.now = self._compute()
        for watcher in self.watchers:
            watcher(self)

    def _compute(self) -> Numbers:
        """The numbers at these weights; weights that are all 0 leave the last ones, with a problem."""
        docs = self.doc_weights
        metrics = self.metric_weights
        # Rows without a document always count 1; their cells have the document -1.
        has_nameless = bool((self._pooled.cells.doc < 0).any())
        is_counted = {
            METRIC: not metrics or any(metrics.values()),
            DOC: has_nameless
            or not self.documents
            or any(docs.get(name, 1.0) for name in self.documents),
        }
        # A problem under an empty name is one of the weights as a whole.
        for kind, is_any_counted in is_counted.items():
            self.problems.pop((kind, ""), None)
            if not is_any_counted:
                self.problems[kind, ""] = self.say(f"editor.all_zero_{kind}")
        of_the_whole = [text for (_, name), text in self.problems.items() if not name]
        if not of_the_whole:
            return Numbers(self, metrics, docs)
        # The weights of the file itself: there are no last good numbers to keep.
        if not hasattr(self, "now"):
            raise RagnbError(of_the_whole[0])
        return self.now

    def _pairs_weighed(self, docs: dict[str, float]) -> Pairs | None:
        """Return the pairs of two systems with these weights of documents."""
        doc = self.scenario.doc
        if self._pairs is None or doc not in self._pairs.labels:
            return self._pairs
        weights = self._pairs.labels[doc].map(lambda name: docs.get(name, 1.0)).to_numpy(float)
        return replace(self._pairs, weights=weights)

    def _map(self, docs: dict[str, float]) -> WeightMap | None:
        """Return the weight map of two systems over the metrics that have a row; it is made anew for documents."""
        pairs = self._pairs_weighed(docs)
        if pairs is None or self._mapped.docs == docs:
            return self._mapped.weight_map
        # With equal weights, as a map leaves out a rate whose weight is 0, and that may be turned up later.
        equal = total_of(
            pairs.metrics,
            dict.fromkeys(self.metrics, 1.0),
            orient=self.scenario.orient,
            rescale=self.scenario.rescale,
            strict=False,
            known=False,
        )
        weight_map = None
        # There is none for metrics of different ranges, fewer than two in common, and a complete corpus.
        with suppress(RagnbError):
            weight_map = WeightMap.of(pairs, equal, self.scenario.level)
        self._mapped = _Mapped(docs, weight_map)
        return weight_map

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
        drop = {DOC: gone} if gone else None
        return plan_patch(path, self._entries, drop=drop, since=self.scenario, to=to)

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
        for kind, weights in seen.items():
            in_file = self._file[kind]
            # What the file says by now is no change of it, so that saving has nothing to do.
            self._entries[kind] = {
                name: None if in_file.get(name) == weight else weight
                for name, weight in weights.items()
            }
        self._changed()


class _Mapped(NamedTuple):
    """The last weight map, and the weights of documents that it is of; both None before the first."""

    docs: dict[str, float] | None
    weight_map: WeightMap | None


def normalised(weights: Mapping[str, float]) -> dict[str, float]:
    """Return weights in the same proportions, multiples of 0.01 that add up to 1 exactly.

    The largest remainders are rounded up; a weight above 0 keeps at least one hundredth where that is possible.

    Examples
    --------
    >>> normalised({"a": 1, "b": 1, "c": 1})
    {'a': 0.34, 'b': 0.33, 'c': 0.33}
    """
    units = round(1 / GRID)  # hundredths to give away
    given = np.array([*weights.values()], float)
    is_counted = given > 0
    raw = given / given.max()  # else a sum could overflow
    exact = units * raw / raw.sum()
    # More than a hundred metrics cannot have a hundredth each.
    least = int(is_counted.sum() <= units)
    whole = np.maximum(np.floor(exact), least * is_counted)
    # Rounding down leaves some units; raising small weights to the least one may have taken too many.
    while missing := units - whole.sum():
        step = np.sign(missing)
        is_free = is_counted & (whole + step >= least)
        most_off = np.where(is_free, step * (exact - whole), -np.inf).argmax()
        whole[most_off] += step
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
    try:
        value = float(text.replace("_", "?"))  # float() reads "1_0" as 10
    except ValueError:
        return None, "not_number"
    if not math.isfinite(value):
        return None, "not_number"
    if value < 0:
        return None, "negative"
    return value, ""


def _holds(name: str, text: str) -> bool:
    """Whether a name holds every word of a text, whatever their case and width."""
    folded_name = unicodedata.normalize("NFKC", name).casefold()
    words = [unicodedata.normalize("NFKC", word).casefold() for word in text.split()]
    return all(word in folded_name for word in words)
