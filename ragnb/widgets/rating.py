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

# A judge's scores are left out: a person rates without them.
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
        self.rater = rater.strip()
        self.name = self.rater  # in the repr of the sheet
        self.dimensions = tuple(dict.fromkeys(dimensions))
        if not self.rater or not self.dimensions:
            raise RagnbError(f"rater={rater!r}, dimensions={dimensions!r}: name who rates and what")
        super().__init__(_items(items), file, lang)
        # Seeding by a text gives the same order in every process: a sheet that is opened again goes on in it.
        random.Random(f"{seed} {self.rater}").shuffle(self.items)
        self._resume()
        self.skip()

    def _resume(self) -> None:
        """Take up what this rater has in the file."""
        given = defaultdict[Key, dict[str, int]](dict)
        for row in self._read():
            key = self._mine(row)
            if key is None:
                continue
            given[key][row["dimension"]] = row["score"]
            if row.get("comment"):
                self.comments[key] = row["comment"]
        for key, scores in given.items():
            # An item whose scores were cut off by a crash is rated again.
            if set(self.dimensions) <= set(scores):
                self.done[key] = {name: scores[name] for name in self.dimensions}

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
        item = self.item
        if item is None:
            return
        is_new = item.key not in self.done
        self._turn = self.dimensions.index(dimension) + 1
        # A new dict: after `back` the old one is that of `done`, which counts as saved.
        self.scores = {**self.scores, dimension: score}
        if len(self.scores) == len(self.dimensions):
            self._save(item, self.scores)
            # Who came back to change one score may go on to the next ones.
            if is_new or self._turn == len(self.dimensions):
                self.skip()

    def _turn_to(self, at: int) -> None:
        super()._turn_to(at)
        self._turn = 0  # the place of the dimension after the last scored one, see `dimension`
        self.scores = {}
        if self.item:
            self.scores = self.done.get(self.item.key, {})

    # The file

    def _save(self, item: Any, scores: dict[str, int]) -> None:
        """Write the file anew, whole at any moment; what others wrote there stays."""
        item_id, system = item.key
        details = {
            "system": system,
            "cluster": item.cluster,
            "comment": self.comments.get(item.key, ""),
        }
        details = {name: text for name, text in details.items() if text}
        # Read again, as others may have written to the file since.
        rows = [row for row in self._read() if self._mine(row) != item.key]
        for name in self.dimensions:
            row = {"item_id": item_id, "dimension": name, "rater": self.rater}
            rows.append({**row, "score": scores[name], **details})
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        write_whole(self.file, "".join(lines))
        self.done[item.key] = scores

    def _mine(self, row: Row) -> Key | None:
        """Return which item a row scores; None for a row of another rater."""
        if row["rater"] == self.rater:
            return (row["item_id"], row.get("system", ""))
        return None

    def _read(self) -> Iterator[Row]:
        """Yield the ratings of the file; a last line that was cut off is none."""
        if not self.file.exists():
            return
        # Whole lines end with a line feed: what is behind the last one is empty, or was cut off.
        lines = self.file.read_bytes().split(b"\n")[:-1]
        for line_number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                # A line may be a number or null: `set` refuses it with a TypeError.
                assert {"item_id", "dimension", "rater", "score"} <= set(row)
            except (ValueError, TypeError, AssertionError):
                where = place(self.file, line_number)
                raise RagnbError(
                    f"{where}this is no rating of a sheet; choose another file"
                ) from None
            yield row


def _items(source: Any) -> list[Any]:
    """Return what is rated: the answers of each system to each question."""
    frame = read_cases(source)
    lacking = [name for name in ("question", "answer", "sample_id") if name not in frame]
    if lacking:
        raise RagnbError(f"the items lack {listing(lacking)}")
    shown = frame.reindex(columns=_SHOWN).map(_text)
    # Where no cluster is named, the questions of one document are one.
    shown["cluster"] = shown["cluster"].where(shown["cluster"] != "", shown["doc_name"])
    shown["key"] = list(zip(shown["sample_id"], shown["system"], strict=True))
    contexts = frame.get("retrieved_contexts", [()] * len(frame))
    shown["contexts"] = [
        tuple(map(str, passages)) if isinstance(passages, list | tuple) else ()
        for passages in contexts
    ]
    shown = shown[shown["answer"] != ""]
    if shown.empty:
        raise RagnbError("no item has an answer; there is nothing to rate")
    twice = shown.loc[shown["key"].duplicated(), "key"].unique()
    if len(twice):
        raise RagnbError(
            f"two items have one id: {listing(map(' '.join, twice[:3]))}; keep one of each"
        )
    return list(shown.itertuples(index=False, name="Item"))


def _text(cell: Any) -> str:
    """Return a cell as text without spaces around it; empty where it is missing."""
    if is_missing(cell):
        return ""
    return str(cell).strip()


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
        rubric = dimensions if isinstance(dimensions, Rubric) else Rubric()
        if (rubric.low, rubric.high) != (1, 10):
            raise RagnbError(
                f"the rubric's scale is {rubric.low:g} to {rubric.high:g}; a sheet takes 1 to 10"
            )
        self._rubric = {dimension.name: dimension for dimension in rubric.dimensions}
        if dimensions is None or isinstance(dimensions, Rubric):
            names = list(self._rubric)
        else:
            names = list(dimensions)
        model = Rating(items, file, rater=rater, dimensions=names, seed=seed, lang=lang)
        super().__init__(model, rater=model.rater)

    def _fields(self) -> list[Any]:
        self._scores = dict[str, Any]()
        widgets = list[Any]()
        for name in self.model.dimensions:
            look = {"button_width": "34px", "description_width": "initial"}
            scores = make(
                "ToggleButtons", options=range(1, 11), value=None, description=name, style=look
            )
            scores.add_class("rg-row").add_class("rg-scores")
            self._scores[name] = scores
            hear(self, scores, partial(self._do, self.model.score, name))
            widgets += [scores, Html(self.model.lang, self._bands(name)).widget]
        return widgets

    def _bands(self, name: str) -> Safe:
        """Return what a dimension looks at, and what its scores mean."""
        dimension = self._rubric.get(name)
        about = dimension.description if dimension else ""
        bands = dimension.bands if dimension else {}
        if not bands:
            # Those that the judge is shown for a dimension of this name.
            bands = texts.entry(self.model.lang, "judge.bands").get(name, {})
        return render("bands.html", about=about, bands=bands)

    def _refresh_fields(self, _: bool) -> list[str]:
        model = self.model
        self._keys.description = model.say("rating.keys", dimension=model.dimension)
        for name, row in self._scores.items():
            row.value = model.scores.get(name)
        return [str(model.scores.get(name, "")) for name in model.dimensions]
