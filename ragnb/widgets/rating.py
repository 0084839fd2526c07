"""Marks that a person gives to answers: which item is next, what was given, and a file that loses nothing.

The judge's scores and the names of the systems stay hidden: whoever sees them rates them, not the answer.
"""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ragnb import texts
from ragnb.errors import RagnbError, listing, place
from ragnb.files import write_whole
from ragnb.markup.cells import is_missing
from ragnb.readers import read_cases

KEYS = {**{str(mark): mark for mark in range(1, 10)}, "0": 10}
"""What a key stands for."""
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
        self.done, self.marks = self._taken_up(), dict[str, int]()
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
        more = {"system": item.key[1], "cluster": item.cluster}
        about = {name: text for name, text in more.items() if text}
        rows = [
            {"item_id": item.key[0], "dimension": name, "rater": self.rater, "score": self.marks[name]} | about
            for name in self.dimensions
        ]
        _write(self.file, [*(row for row in _rows(self.file)[0] if self._mine(row) != item.key), *rows])

    def _mine(self, row: Row) -> Key | None:
        """Which item a row of this rater marks."""
        return (row["item_id"], row.get("system", "")) if row["rater"] == self.rater else None

    def _taken_up(self) -> dict[Key, dict[str, int]]:
        """What this rater has given; an item whose marks were cut off by a crash is rated again."""
        rows, torn = _rows(self.file)
        found: dict[Key, dict[str, int]] = {}
        for row in rows:
            if key := self._mine(row):
                found.setdefault(key, {})[row["dimension"]] = row["score"]
        whole = {key: marks for key, marks in found.items() if set(self.dimensions) <= set(marks)}
        done = {key: {name: marks[name] for name in self.dimensions} for key, marks in whole.items()}
        kept = [row for row in rows if self._mine(row) in {None, *done}]
        if torn or len(kept) < len(rows):
            _write(self.file, kept)
        return done


def _items(source: Any) -> list[Item]:
    frame = read_cases(source)
    text = [name for name in ("question", "answer") if name not in frame]
    if text or "sample_id" not in frame:
        raise RagnbError(f"the items lack {listing([*text, *['sample_id'] * ('sample_id' not in frame)])}")
    items = []
    for row in frame.to_dict("records"):
        names = ("sample_id", "system", "cluster", "doc_name", "question", "answer", "ground_truth_answer")
        name, system, cluster, doc, question, answer, reference = (_text(row.get(key)) for key in names)
        contexts = row.get("retrieved_contexts")
        passages = tuple(map(str, contexts)) if isinstance(contexts, list | tuple) else ()
        if answer:
            items.append(Item((name, system), cluster or doc, question, answer, reference, passages))
    if not items:
        raise RagnbError("no item has an answer; there is nothing to rate")
    keys = [item.key for item in items]
    if twice := [key for key in dict.fromkeys(keys) if keys.count(key) > 1][:3]:
        raise RagnbError(f"two items have one id: {listing(' '.join(key) for key in twice)}; keep one of each")
    return items


def _text(value: Any) -> str:
    return "" if is_missing(value) else str(value).strip()


def _rows(file: Path) -> tuple[list[Row], bool]:
    """What a file of marks holds, and whether its last line was cut off."""
    lines = file.read_bytes().split(b"\n") if file.exists() else [b""]
    rows = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            row = json.loads(line)
            assert {"item_id", "dimension", "rater", "score"} <= set(row)
        except (ValueError, TypeError, AssertionError):
            raise RagnbError(
                f"{place(file, number)}this is no mark of a rating sheet; choose another file"
            ) from None
        rows.append(row)
    return rows, bool(lines[-1])


def _write(file: Path, rows: list[Row]) -> None:
    write_whole(file, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
