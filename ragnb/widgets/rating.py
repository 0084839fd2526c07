"""Marks that a person gives to answers: which item is next, what was given, and a file that loses nothing.

The judge's scores and the names of the systems stay hidden: whoever sees them rates them, not the answer.
"""

from __future__ import annotations

import json
import os
import random
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragnb import texts
from ragnb.errors import RagnbError, listing, place
from ragnb.files import write_whole
from ragnb.markup.cells import is_missing
from ragnb.readers import read_cases

KEYS = {**{str(mark): mark for mark in range(1, 10)}, "0": 10}
"""What a key stands for."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Item:
    """What is rated: an answer of one system to one question."""

    key: tuple[str, str]
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
        self,
        items: Any,
        file: str | Path,
        *,
        rater: str,
        dimensions: Sequence[str],
        seed: int = 0,
        lang: str = "en",
    ) -> None:
        self.rater, self.lang = rater.strip(), lang
        self.dimensions = tuple(dict.fromkeys(dimensions))
        if not self.rater or not self.dimensions:
            raise RagnbError(f"rater={rater!r}, dimensions={dimensions!r}: name who rates and what")
        self.say = texts.load(lang)
        self.file = Path(file).resolve()
        self.items = _items(items)
        random.Random(f"{seed} {self.rater}").shuffle(self.items)
        self.problem, self._turn = "", 0
        self.marks: dict[str, int] = {}
        self.done = self._taken_up()
        self.at = self._next(-1)
        self._load()

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
        self._save(item, fresh)
        if fresh or self._turn == len(self.dimensions):
            self.skip()

    def skip(self) -> None:
        """Turn to the next item without all its marks; after the last one the skipped come again."""
        self.at = self._next(self.at)
        self._load()

    def back(self) -> None:
        """Turn to the item before, whose marks can be changed."""
        self.at = (min(self.at, len(self.items)) - 1) % len(self.items)
        self._load()

    def _load(self) -> None:
        item, self._turn, self.problem = self.item, 0, ""
        self.marks = dict(self.done.get(item.key, {})) if item else {}

    def _next(self, at: int) -> int:
        """The next item that is not done, from the beginning again after the last."""
        places = [*range(at + 1, len(self.items)), *range(min(at + 1, len(self.items)))]
        return next((i for i in places if self.items[i].key not in self.done), len(self.items))

    # The file

    def _save(self, item: Item, fresh: bool) -> None:
        rows = [self._row(item, name) for name in self.dimensions]
        if fresh:
            _append(self.file, _written(rows).encode())
        elif self.done[item.key] != self.marks:
            kept = [row for row in _rows(self.file)[0] if not self._mine(row, item.key)]
            write_whole(self.file, _written([*kept, *rows]))
        self.done[item.key] = dict(self.marks)

    def _row(self, item: Item, dimension: str) -> Row:
        more = {"system": item.key[1], "cluster": item.cluster}
        row = {"item_id": item.key[0], "dimension": dimension, "rater": self.rater, "score": self.marks[dimension]}
        return row | {name: text for name, text in more.items() if text}

    def _mine(self, row: Row, key: tuple[str, str]) -> bool:
        return (row["item_id"], row.get("system", ""), row["rater"]) == (*key, self.rater)

    def _taken_up(self) -> dict[tuple[str, str], dict[str, int]]:
        """What this rater has given; an item whose marks were cut off by a crash is rated again."""
        rows, torn = _rows(self.file)
        found: dict[tuple[str, str], dict[str, int]] = {}
        for row in rows:
            if row["rater"] == self.rater:
                found.setdefault((row["item_id"], row.get("system", "")), {})[row["dimension"]] = row["score"]
        whole = {key for key, marks in found.items() if set(self.dimensions) <= set(marks)}
        kept = [r for r in rows if r["rater"] != self.rater or (r["item_id"], r.get("system", "")) in whole]
        if torn or len(kept) < len(rows):
            write_whole(self.file, _written(kept))
        return {key: {name: found[key][name] for name in self.dimensions} for key in whole}


def _items(source: Any) -> list[Item]:
    frame = read_cases(source)
    text = [name for name in ("question", "answer") if name not in frame]
    if text or "sample_id" not in frame:
        raise RagnbError(f"the items lack {listing([*text, *['sample_id'] * ('sample_id' not in frame)])}")
    items = [_item(row) for row in frame.to_dict("records") if _text(row["answer"])]
    if not items:
        raise RagnbError("no item has an answer; there is nothing to rate")
    keys = [item.key for item in items]
    if twice := [key for key in dict.fromkeys(keys) if keys.count(key) > 1][:3]:
        raise RagnbError(f"two items have one id: {listing(' '.join(key) for key in twice)}; keep one of each")
    return items


def _item(row: Mapping[Any, Any]) -> Item:
    contexts = row.get("retrieved_contexts")
    return Item(
        (_text(row["sample_id"]), _text(row.get("system"))),
        _text(row.get("cluster")) or _text(row.get("doc_name")),
        _text(row["question"]),
        _text(row["answer"]),
        _text(row.get("ground_truth_answer")),
        tuple(map(str, contexts)) if isinstance(contexts, list | tuple) else (),
    )


def _text(value: Any) -> str:
    return "" if is_missing(value) else str(value).strip()


def _rows(file: Path) -> tuple[list[Row], bool]:
    """What a file of marks holds, and whether its last line was cut off."""
    if not file.exists():
        return [], False
    raw = file.read_bytes()
    lines = raw.split(b"\n")
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


def _written(rows: list[Row]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _append(file: Path, data: bytes) -> None:
    """One write and one sync an item: a crash leaves all of it or a cut last line, which the next start mends."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, data)
        os.fsync(handle)
    finally:
        os.close(handle)
