"""Weights being edited, and what follows from them: the whole behaviour of the editor, without a widget.

No arithmetic of its own: the numbers are those of `Moments.means` and `check_gates`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

from ragnb import texts
from ragnb.assessment.weighable import Weighable
from ragnb.errors import RagnbError
from ragnb.scenario import Patch, load_scenario, plan_patch
from ragnb.weights import nfc
from ragnb.widgets.numbers import Numbers, folded, normalised, numbers, read_entry

METRIC, DOC = "metric_weights", "doc_weights"
_ONE_DRAG = 1.0
Place = tuple[str, str]
Entries = dict[str, float | None]


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
        self.scenario, self.gates, self._clock = run.scenario, run.gates, time.monotonic
        found = run.moments
        self._by = found if found.by is not None and len(found.groups) > 1 else None
        self._pooled = found if found.by is None else found.pooled()
        self.say = texts.load(self.scenario.lang)
        self._watchers: list[Callable[[Weighing], object]] = []
        self._start()

    def _start(self) -> None:
        file = self.scenario
        own = self._pooled.metrics
        self.metrics = [m.name for m in own if m.role == "quality" or m.name in file.metric_weights]
        self._usual = {m.name: m.weight if m.role == "quality" else 0.0 for m in own} | file.metric_weights
        self._file_docs = {nfc(name): weight for name, weight in file.doc_weights.items()}
        self.documents = tuple(self._pooled.docs)
        self._entries = self._blank()
        self._past: list[dict[str, Entries]] = []
        # Changes of one entry within a second of each other are one step of undo.
        self._last: tuple[Place | None, float] = None, 0.0
        self.problems: dict[Place, str] = {}
        self.now = self.base = self._compute()

    def _blank(self) -> dict[str, Entries]:
        return {METRIC: dict.fromkeys(self.metrics), DOC: dict.fromkeys(self._file_docs)}

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
        if value is not None:
            return value
        return self._usual[name] if field == METRIC else self._file_docs.get(name, 1.0)

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
        entries = self._entries
        typed = any(value is not None for field in entries.values() for value in field.values())
        return typed or entries[DOC].keys() != self._file_docs.keys()

    def set(self, field: str, name: str, entry: str | float | None) -> None:
        """Set one weight: a number, text that is one, or blank for the file's value.

        What is no weight leaves the last good value and a sentence in `problems`.
        """
        value, wrong = read_entry(entry)
        place = (field, name)
        if wrong:
            self.problems[place] = self.say(f"editor.{wrong}", entry=str(entry).strip()[:40])
            return self._tell()
        self.problems.pop(place, None)
        if value == self._entries[field].get(name):
            return self._tell()
        moment = self._clock()
        if self._last[0] != place or moment - self._last[1] > _ONE_DRAG:
            self._keep()
        self._last = place, moment
        self._entries[field][name] = value
        return self._changed()

    def add(self, name: str) -> str:
        """Give a document a row, and return why it has none, or nothing."""
        name = nfc(name.strip())
        if name not in self.documents:
            near = ", ".join(self.find(name, 3))
            said = self.say("editor.no_document", name=name[:80])
            return said + (self.say("editor.near", names=near) if near else "")
        if name in self._entries[DOC]:
            return self.say("editor.has_row", name=name)
        self._keep()
        self._entries[DOC][name] = None
        self._changed()
        return ""

    def remove(self, name: str) -> None:
        """Take a document's row away: it counts 1 again."""
        self._keep()
        del self._entries[DOC][name]
        self.problems.pop((DOC, name), None)
        self._changed()

    def find(self, text: str, most: int = 20) -> list[str]:
        """Return documents without a row whose name holds every word of `text`, in any case and width."""
        words = folded(text).split()
        free = (name for name in self.documents if name and name not in self._entries[DOC])
        return [name for name in free if all(word in folded(name) for word in words)][:most]

    def normalise(self) -> None:
        """Make the metric weights add up to 1, on the slider's grid."""
        if max(self.metric_weights.values(), default=0.0) > 0:
            self._put(self._entries | {METRIC: dict(normalised(self.metric_weights))})

    def equal(self) -> None:
        """Let every metric count 1."""
        self._put(self._entries | {METRIC: dict.fromkeys(self.metrics, 1.0)})

    def reset(self) -> None:
        """Go back to the file's weights."""
        self._put(self._blank())

    def undo(self) -> None:
        """Take the last change back."""
        if self._past:
            self._entries, self.problems, self._last = self._past.pop(), {}, (None, 0.0)
            self._changed()

    @property
    def can_undo(self) -> bool:
        """Whether there is a change to take back."""
        return bool(self._past)

    def _put(self, entries: dict[str, Entries]) -> None:
        self._keep()
        self._entries, self.problems = entries, {}
        self._changed()

    def _keep(self) -> None:
        self._past.append({field: dict(entries) for field, entries in self._entries.items()})
        self._last = None, 0.0

    def _changed(self) -> None:
        self.now = self._compute()
        self._tell()

    def observe(self, watcher: Callable[[Weighing], object]) -> None:
        """Call `watcher` with this after every change."""
        self._watchers.append(watcher)

    def _tell(self) -> None:
        for watcher in self._watchers:
            watcher(self)

    def _compute(self) -> Numbers:
        """The numbers at these weights; weights that are all 0 leave the last ones, with a problem."""
        docs, metrics = self.doc_weights, self.metric_weights
        nameless = bool((self._pooled.cells.doc < 0).any())
        left = nameless or not self.documents or any(docs.get(name, 1.0) for name in self.documents)
        for field, some in ((METRIC, not metrics or any(metrics.values())), (DOC, left)):
            self.problems.pop((field, ""), None)
            if not some:
                self.problems[field, ""] = self.say(f"editor.all_zero_{field}")
        if found := [text for (_, name), text in self.problems.items() if not name]:
            if not hasattr(self, "now"):
                raise RagnbError(found[0])
            return self.now
        docs = {name: weight for name, weight in docs.items() if name in self.documents}
        return numbers(self._pooled, self._by, metrics, docs, self.scenario, self.gates)

    def plan(self, to: str | Path | None = None) -> Patch:
        """Return what saving would change in the file.

        Raises
        ------
        RagnbError
            Without a file, with weights that are none, and when the file changed since it was read.
        """
        if self.scenario.path is None:
            raise RagnbError(self.say("editor.no_file"))
        if self.problems:
            raise RagnbError(" ".join(self.problems.values()))
        gone = [name for name in self._file_docs if name not in self._entries[DOC]]
        return plan_patch(
            self.scenario.path, self._entries, drop={DOC: gone} if gone else None, since=self.scenario, to=to
        )

    def save(self, to: str | Path | None = None) -> list[str]:
        """Write the weights into the file, or into a new one, and return the fields that changed."""
        patch = self.plan(to)
        changed = patch.write()
        self.reload(patch.to)
        return changed

    def reload(self, path: Path | None = None) -> None:
        """Read the file's weights again; entries stay as they are seen."""
        before = {METRIC: self.metric_weights, DOC: self.doc_weights}
        assert self.scenario.path is not None
        read = load_scenario(path or self.scenario.path)
        self.scenario = read.replace(lang=self.scenario.lang)
        self._start()
        for field, own in ((METRIC, self._usual), (DOC, self._file_docs)):
            self._entries[field] = {name: None if own.get(name) == w else w for name, w in before[field].items()}
        self._changed()
