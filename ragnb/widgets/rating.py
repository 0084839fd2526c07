"""The sheet in which people rate answers."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ragnb import texts
from ragnb.errors import RagnbError, listing, place
from ragnb.files import write_whole
from ragnb.markup import Safe, is_missing
from ragnb.markup.rendering import render
from ragnb.readers import read_cases
from ragnb.schema import Rubric
from ragnb.sheet.formatter import Row
from ragnb.widgets.base import Html, Items, Sheet, hear, make

_SHOWN = ["sample_id", "system", "cluster", "doc_name", "question", "answer", "ground_truth_answer"]
Key = tuple[str, str]


class Rating(Items):
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

    scores: dict[str, int]
    kind = "rating"
    shown_keys = "1 – 9, 0 = 10"
    keys: Mapping[str, int] = {**{str(score): score for score in range(1, 10)}, "0": 10}

    def __init__(
        self,
        items: Any,
        file: Any,
        *,
        rater: str,
        dimensions: Sequence[str],
        seed: int = 0,
        lang: str = "en",
    ) -> None:
        self.rater = self.name = rater.strip()
        self.dimensions = tuple(dict.fromkeys(dimensions))
        if not self.rater or not self.dimensions:
            raise RagnbError(f"rater={rater!r}, dimensions={dimensions!r}: name who rates and what")
        super().__init__(_items(items), file, lang)
        random.Random(f"{seed} {self.rater}").shuffle(self.items)
        given = defaultdict[Any, dict[str, int]](dict)
        for row in self._read():
            given[key := self._mine(row)][row["dimension"]] = row["score"]
            if key and row.get("comment"):
                self.comments |= {key: row["comment"]}
        # An item whose scores were cut off by a crash is rated again.
        whole = {
            key: scores
            for key, scores in given.items()
            if key and set(self.dimensions) <= set(scores)
        }
        self.done = {
            key: {name: scores[name] for name in self.dimensions} for key, scores in whole.items()
        }
        self.skip()

    @property
    def dimension(self) -> str:
        """What the next key scores: the first dimension without a score, else the one after the last scored."""
        missing = [name for name in self.dimensions if name not in self.scores]
        if missing:
            return missing[0]
        return self.dimensions[self._turn % len(self.dimensions)]

    def enter(self, score: int) -> None:
        """Score the current dimension."""
        self.score(self.dimension, score)

    def score(self, dimension: str, score: int) -> None:
        """Score one dimension; the last missing score saves the item and turns to the next."""
        self.problem = ""
        if (item := self.item) is None:
            return
        fresh = item.key not in self.done
        self._turn = self.dimensions.index(dimension) + 1
        self.scores = {**self.scores, dimension: score}
        if len(self.scores) == len(self.dimensions):
            self._save(item, self.scores)
            if fresh or self._turn == len(self.dimensions):
                self.skip()

    def _turn_to(self, at: int) -> None:
        super()._turn_to(at)
        self._turn = 0
        self.scores = self.done.get(self.item.key, {}) if self.item else {}

    # The file

    def _save(self, item: Any, scores: dict[str, int]) -> None:
        """Write the file anew, whole at any moment; what others wrote there stays."""
        rest = {
            "system": item.key[1],
            "cluster": item.cluster,
            "comment": self.comments.get(item.key, ""),
        }
        more = {name: text for name, text in rest.items() if text}
        rows = [row for row in self._read() if self._mine(row) != item.key]
        rated = {"rater": self.rater}
        for name in self.dimensions:
            rows += [
                {"item_id": item.key[0], "dimension": name, **rated, "score": scores[name], **more}
            ]
        write_whole(self.file, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        self.done[item.key] = scores

    def _mine(self, row: Row) -> Key | None:
        """Which item a row of this rater scores."""
        if row["rater"] == self.rater:
            return (row["item_id"], row.get("system", ""))
        return None

    def _read(self) -> Iterator[Row]:
        """Yield the ratings of the file; a last line that was cut off is none."""
        if self.file.exists():
            lines = self.file.read_bytes().split(b"\n")[:-1]
        else:
            lines = []
        for at, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                assert {"item_id", "dimension", "rater", "score"} <= set(row)
            except (ValueError, TypeError, AssertionError):
                where = place(self.file, at)
                raise RagnbError(
                    f"{where}this is no rating of a sheet; choose another file"
                ) from None
            yield row


def _items(source: Any) -> list[Any]:
    """Return what is rated: the answers of each system to each question."""
    frame = read_cases(source)
    if lacking := [name for name in ("question", "answer", "sample_id") if name not in frame]:
        raise RagnbError(f"the items lack {listing(lacking)}")
    shown = frame.reindex(columns=_SHOWN).map(
        lambda cell: "" if is_missing(cell) else str(cell).strip()
    )
    shown["cluster"] = shown["cluster"].where(shown["cluster"] != "", shown["doc_name"])
    shown["key"] = [*zip(shown["sample_id"], shown["system"], strict=True)]
    found = frame.get("retrieved_contexts", [()] * len(frame))
    shown["contexts"] = [
        tuple(map(str, one)) if isinstance(one, list | tuple) else () for one in found
    ]
    if (shown := shown[shown["answer"] != ""]).empty:
        raise RagnbError("no item has an answer; there is nothing to rate")
    if len(twice := shown.loc[shown["key"].duplicated(), "key"].unique()):
        raise RagnbError(
            f"two items have one id: {listing(map(' '.join, twice[:3]))}; keep one of each"
        )
    return list(shown.itertuples(index=False, name="Item"))


class RatingSheet(Sheet):
    """A sheet on which a person scores answers from 1 to 10, blind to judge and system, with the rubric in view.

    Keys 1 to 9 and 0 (for 10) score one dimension after the other; the last one saves the item and shows the
    next. Every item is on disk before the next appears, and the sheet resumes where it was left. When the kernel
    does not answer, the sheet says that nothing is recorded.

    Parameters
    ----------
    items : path, frame or records
        As `ragnb.read_cases` takes them: ``sample_id, question, answer`` and, where there are, contexts, a
        reference answer, ``system`` and ``doc_name``.
    file : path
        Where the ratings go, JSON Lines that `ragnb.read_ratings` reads; what is in it is taken up. A comment on
        an answer is in the column ``comment``.
    rater : str
        Who rates.
    dimensions : Rubric or sequence of str, optional
        What is scored; by default that of `Rubric`. A rubric is shown in its own words, on a scale from 1 to 10.
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
        For items without ids or answers, a rubric of another scale, and a file that holds something else.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     items = [{"sample_id": "a", "question": "Why?", "answer": "Because."}]
    ...     sheet = RatingSheet(items, f"{folder}/ratings.jsonl", rater="A", dimensions=["accuracy"])
    ...     sheet.model.note("too short")
    ...     _ = sheet.model.press("8")
    ...     print(Path(folder, "ratings.jsonl").read_text(), end="")
    {"item_id": "a", "dimension": "accuracy", "rater": "A", "score": 8, "comment": "too short"}
    """

    model: Rating

    def __init__(
        self,
        items: Any,
        file: str | Path,
        *,
        rater: str,
        dimensions: Rubric | Sequence[str] | None = None,
        seed: int = 0,
        lang: str = "en",
    ) -> None:
        if isinstance(dimensions, Rubric):
            rubric = dimensions
        else:
            rubric = Rubric()
        if (rubric.low, rubric.high) != (1, 10):
            raise RagnbError(
                f"the rubric's scale is {rubric.low:g} to {rubric.high:g}; a sheet takes 1 to 10"
            )
        self._rubric = {one.name: one for one in rubric.dimensions}
        names = list(
            self._rubric if dimensions is None or isinstance(dimensions, Rubric) else dimensions
        )
        model = Rating(items, file, rater=rater, dimensions=names, seed=seed, lang=lang)
        super().__init__(model, rater=model.rater)

    def _fields(self) -> list[Any]:
        self._scores = dict[str, Any]()
        made = list[Any]()
        for name in self.model.dimensions:
            look = {"button_width": "34px", "description_width": "initial"}
            scores = make(
                "ToggleButtons", options=range(1, 11), value=None, description=name, style=look
            )
            self._scores[name] = scores.add_class("rg-row").add_class("rg-scores")
            hear(self, scores, partial(self._do, self.model.score, name))
            made += [scores, Html(self.model.lang, self._bands(name)).widget]
        return made

    def _bands(self, name: str) -> Safe:
        """What a dimension looks at, and what its scores mean."""
        asked = self._rubric.get(name)
        known = texts.entry(self.model.lang, "judge.bands").get(name, {})
        bands = (asked.bands if asked else {}) or known
        return render("bands.html", about=asked.description if asked else "", bands=bands)

    def _refresh_fields(self, _: bool) -> list[str]:
        model = self.model
        self._keys.description = model.say("rating.keys", dimension=model.dimension)
        for name, row in self._scores.items():
            row.value = model.scores.get(name)
        return [str(model.scores.get(name, "")) for name in model.dimensions]
