"""Marks that a person gives to answers: which item is next, a file that loses nothing, and the sheet of widgets.

The judge's scores and the names of the systems stay hidden: whoever sees them rates them, not the answer.
"""

from __future__ import annotations

import json
import random
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from ragnb import texts
from ragnb.errors import RagnbError, listing, place
from ragnb.files import write_whole
from ragnb.markup import Safe, details, element, is_missing, join
from ragnb.readers import read_cases
from ragnb.schema import Rubric
from ragnb.widgets.shown import NAMED, Html, Twin, button

# What a key stands for.
KEYS = {**{str(mark): mark for mark in range(1, 10)}, "0": 10}
Row = dict[str, Any]
Key = tuple[str, str]


class Item(NamedTuple):
    """What is rated: an answer of one system to one question."""

    key: Key
    cluster: str
    question: str
    answer: str
    reference: str
    contexts: tuple[str, ...]


class Rating:
    """The state of a rating sheet.

    Parameters
    ----------
    items : path, frame or records
        As `ragnb.read_cases` takes them; a row without an answer is left out.
    file : path
        JSON Lines in the long layout of `ragnb.read_ratings`. What stands there is taken up.
    rater : str
        Who rates. Several may share a file one after the other; at the same time each takes one of their own.
    dimensions : sequence of str
    seed : int
        Of the order, which differs from rater to rater.
    lang : {"en", "zh"}

    Raises
    ------
    RagnbError
        For items without ids or answers, two items of one id, and a file that holds something else.
    """

    def __init__(
        self, items: Any, file: str | Path, *, rater: str, dimensions: Sequence[str], seed: int = 0,
        lang: str = "en",
    ) -> None:  # fmt: skip
        self.rater, self.lang = rater.strip(), lang
        self.dimensions = tuple(dict.fromkeys(dimensions))
        if not self.rater or not self.dimensions:
            raise RagnbError(f"rater={rater!r}, dimensions={dimensions!r}: name who rates and what")
        self.say = texts.load(lang)
        self.file = Path(file).resolve()
        self.items = _items(items)
        random.Random(f"{seed} {self.rater}").shuffle(self.items)
        self.done, self.marks = self._resume(), dict[str, int]()
        self._turn_to(self._next(-1))

    @property
    def item(self) -> Item | None:
        """What is rated now; None when all is done."""
        return self.items[self.at] if self.at < len(self.items) else None

    @property
    def dimension(self) -> str:
        """The dimension that the next key marks: the first without a mark, else the one after the last marked."""
        missing = [name for name in self.dimensions if name not in self.marks]
        return missing[0] if missing else self.dimensions[self._turn % len(self.dimensions)]

    def press(self, entry: str) -> bool:
        """Take a key for the current dimension, in any width; what is none leaves a sentence in `problem`."""
        said = unicodedata.normalize("NFKC", entry).strip()
        if said not in KEYS:
            self.problem = self.say("rating.not_a_key", entry=said[:20]) if said else ""
            return False
        self.mark(self.dimension, KEYS[said])
        return True

    def mark(self, dimension: str, score: int) -> None:
        """Mark one dimension; the last missing mark saves the item and turns to the next."""
        item, self.problem = self.item, ""
        if item is None:
            return
        fresh = item.key not in self.done
        self.marks = {**self.marks, dimension: score}
        self._turn = self.dimensions.index(dimension) + 1
        if len(self.marks) < len(self.dimensions):
            return
        self._save(item)
        if fresh or self._turn == len(self.dimensions):
            self.skip()

    def skip(self) -> None:
        """Turn to the next item without all its marks; after the last one the skipped come again."""
        self._turn_to(self._next(self.at))

    def back(self) -> None:
        """Turn to the item before, whose marks can be changed."""
        self._turn_to((self.at - 1) % len(self.items))

    def _turn_to(self, at: int) -> None:
        self.at, self._turn, self.problem = at, 0, ""
        self.marks = self.done.get(self.item.key, {}) if self.item else {}

    def _next(self, at: int) -> int:
        """The next item that is not done, from the beginning again after the last."""
        places = [*range(at + 1, len(self.items)), *range(len(self.items))]
        return next((i for i in places if self.items[i].key not in self.done), len(self.items))

    # The file

    def _save(self, item: Item) -> None:
        """Write the file anew, whole at any moment; what others wrote there stays."""
        if self.done.get(item.key) == self.marks:
            return
        self.done[item.key] = self.marks
        rest = {name: text for name, text in (("system", item.key[1]), ("cluster", item.cluster)) if text}
        rows = [
            {"item_id": item.key[0], "dimension": name, "rater": self.rater, "score": self.marks[name]} | rest
            for name in self.dimensions
        ]
        _write(self.file, [*(row for row in _read(self.file)[0] if self._mine(row) != item.key), *rows])

    def _mine(self, row: Row) -> Key | None:
        """Which item a row of this rater marks."""
        return (row["item_id"], row.get("system", "")) if row["rater"] == self.rater else None

    def _resume(self) -> dict[Key, dict[str, int]]:
        """What this rater has given; an item whose marks were cut off by a crash is rated again."""
        rows, torn = _read(self.file)
        marks: dict[Key | None, dict[str, int]] = {}
        for row in rows:
            marks.setdefault(self._mine(row), {})[row["dimension"]] = row["score"]
        whole = {key: given for key, given in marks.items() if key and set(self.dimensions) <= set(given)}
        kept = [row for row in rows if self._mine(row) in {None, *whole}]
        if torn or len(kept) < len(rows):
            _write(self.file, kept)
        return {key: {name: given[name] for name in self.dimensions} for key, given in whole.items()}


def _items(source: Any) -> list[Item]:
    frame = read_cases(source)
    if lacking := [name for name in ("question", "answer", "sample_id") if name not in frame]:
        raise RagnbError(f"the items lack {listing(lacking)}")
    items = []
    for row in frame.to_dict("records"):
        contexts = row.pop("retrieved_contexts", None)
        passages = tuple(map(str, contexts)) if isinstance(contexts, list | tuple) else ()
        text = defaultdict(str, {key: str(value).strip() for key, value in row.items() if not is_missing(value)})
        if text["answer"]:
            key, cluster = (text["sample_id"], text["system"]), text["cluster"] or text["doc_name"]
            reference = text["ground_truth_answer"]
            items.append(Item(key, cluster, text["question"], text["answer"], reference, passages))
    if not items:
        raise RagnbError("no item has an answer; there is nothing to rate")
    keys = Counter(item.key for item in items)
    if twice := [key for key, n in keys.items() if n > 1][:3]:
        raise RagnbError(f"two items have one id: {listing(' '.join(key) for key in twice)}; keep one of each")
    return items


def _read(file: Path) -> tuple[list[Row], bool]:
    """What a file of marks holds, and whether its last line was cut off."""
    *lines, last = file.read_bytes().split(b"\n") if file.exists() else [b""]
    rows: list[Row] = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(json.loads(line))
            assert {"item_id", "dimension", "rater", "score"} <= set(rows[-1])
        except (ValueError, TypeError, AssertionError):
            where = place(file, number)
            raise RagnbError(f"{where}this is no mark of a rating sheet; choose another file") from None
    return rows, bool(last)


def _write(file: Path, rows: list[Row]) -> None:
    write_whole(file, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


class RatingSheet(Twin):
    """A sheet on which a person marks answers from 1 to 10, blind to judge and system.

    Keys 1 to 9 and 0 (for 10) mark one dimension after the other; the last one saves the item and shows the
    next. Every item is on disk before the next appears, and the sheet goes on where it was left.

    Parameters
    ----------
    items : path, frame or records
        As `ragnb.read_cases` takes them: ``sample_id, question, answer`` and, where there are, contexts, a
        reference answer, ``system`` and ``doc_name``.
    file : path
        Where the marks go, JSON Lines that `ragnb.read_ratings` reads; what stands there is taken up.
    rater : str
        Who rates.
    dimensions : sequence of str, optional
        By default those of `Rubric`.
    seed : int
        Of the order, which differs from rater to rater.
    lang : {"en", "zh"}

    Attributes
    ----------
    model : Rating
        The state; it can be driven without a browser.

    Raises
    ------
    RagnbError
        For items without ids or answers, and for a file that holds something else.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     items = [{"sample_id": "a", "question": "Why?", "answer": "Because."}]
    ...     sheet = RatingSheet(items, f"{folder}/marks.jsonl", rater="A", dimensions=["accuracy"])
    ...     _ = sheet.model.press("8")
    ...     print(Path(folder, "marks.jsonl").read_text(), end="")
    {"item_id": "a", "dimension": "accuracy", "rater": "A", "score": 8}
    """

    def __init__(
        self, items: Any, file: str | Path, *, rater: str, dimensions: Sequence[str] | None = None, seed: int = 0,
        lang: str = "en",
    ) -> None:  # fmt: skip
        names = [one.name for one in Rubric().dimensions] if dimensions is None else list(dimensions)
        self.model: Rating = Rating(items, file, rater=rater, dimensions=names, seed=seed, lang=lang)

    def __repr__(self) -> str:
        return f"RatingSheet({self.model.rater!r}: {len(self.model.done)} of {len(self.model.items)})"

    def _head(self) -> list[Safe]:
        say, done, n = self.model.say, len(self.model.done), len(self.model.items)
        progress = element("p", say("rating.progress", done=done, n=n), class_="rg-note")
        return [element("h3", say("rating.title", rater=self.model.rater)), progress]

    def _static(self) -> Safe:
        return join([*self._head(), element("p", self.model.say("rating.static"), class_="rg-note")])

    @cached_property
    def view(self) -> Any:
        """The widgets, made when they are first asked for."""
        import ipywidgets as ipw

        model, say = self.model, self.model.say
        self._item, self._said = Html(model.lang), Html(model.lang, live=True)
        self._keys = ipw.Text(placeholder=say("rating.keys_hint"), style=NAMED, layout={"width": "330px"})
        self._keys.observe(lambda change: self._press(change["new"]), "value")
        self._marks: dict[str, Any] = {}
        for name in model.dimensions:
            look = {"button_width": "44px"} | NAMED
            marks = ipw.ToggleButtons(options=range(1, 11), value=None, description=name, style=look)
            marks.observe(partial(self._click, name), "value")
            marks.add_class("rg-row")
            self._marks[name] = marks
        acts = {"rating.back": model.back, "rating.skip": model.skip}
        tools = ipw.HBox([button(say, key, partial(self._do, act)) for key, act in acts.items()])
        self._rows = ipw.VBox([self._keys, *self._marks.values(), tools])
        self._busy, self._seen, self._cleared = False, "", ""
        self._refresh()
        return self._box(self._item.widget, self._rows, self._said.widget)

    def _press(self, entry: str) -> None:
        if self._busy:
            return
        # Keys may come faster than answers to them: only what is new in the field counts, also past a clearing.
        seen = self._seen or (self._cleared if entry.startswith(self._cleared) else "")
        fresh = entry[len(seen) :] if entry.startswith(seen) else ""
        self._seen = entry
        item = self.model.item
        for key in fresh:
            self.model.press(key)
        self._refresh(clear=self.model.item is not item)

    def _click(self, name: str, change: Any) -> None:
        if not self._busy and change["new"] is not None:
            self._do(partial(self.model.mark, name, change["new"]))

    def _do(self, act: Callable[[], None]) -> None:
        act()
        self._refresh()

    def _refresh(self, *, clear: bool = True) -> None:
        model, say, item = self.model, self.model.say, self.model.item
        done = element("p", say("rating.done", n=len(model.items), file=model.file.name))
        self._item.show(self._shown(item) if item else done)
        self._busy = True
        if clear:
            self._cleared, self._seen, self._keys.value = self._seen, "", ""
        self._keys.description = say("rating.keys", dimension=model.dimension)
        for name, row in self._marks.items():
            row.value = model.marks.get(name)
        self._busy = False
        self._rows.layout.display = "flex" if item else "none"
        self._said.warn(model.problem, role="alert")
        if item:
            self._keys.focus()

    def _shown(self, item: Item) -> Safe:
        say, parts = self.model.say, self._head()
        for key, text in (("question", item.question), ("answer", item.answer)):
            parts += [element("h4", say(f"rating.{key}")), _prose(text)]
        if item.reference:
            parts.append(details(say("rating.reference"), _prose(item.reference)))
        passages = join(map(_prose, item.contexts or [say("rating.no_contexts")]))
        return join([*parts, details(say("rating.contexts", n=len(item.contexts)), passages, opened=True)])


def _prose(text: str) -> Safe:
    return element("blockquote", text, class_="rg-prose", dir="auto")
