"""Sheets that a person fills in, item by item: ratings of answers, and the review of a question set.

The judge's scores and the names of the systems stay hidden: whoever sees them rates them, not the answer.
"""

from __future__ import annotations

import json
import random
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbError, listing, place
from ragnb.files import write_whole
from ragnb.markup import Safe, element, is_missing, join
from ragnb.readers import read_cases, to_csv_text
from ragnb.schema import Rubric, records
from ragnb.scoring.generation import DECISIONS, WORDING, review_sheet, with_decisions
from ragnb.widgets.shown import Html, Items, Sheet, button, field, hear, prose

# What a key stands for, and how that is said.
KEYS = {**{str(score): score for score in range(1, 10)}, "0": 10}
_KEYS = "1 – 9, 0 = 10"
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

    def __init__(
        self, items: Any, file: Any, *, rater: str, dimensions: Sequence[str], seed: int = 0, lang: str = "en"
    ) -> None:  # fmt: skip
        self.rater = self.name = rater.strip()
        self.dimensions = tuple(dict.fromkeys(dimensions))
        if not self.rater or not self.dimensions:
            raise RagnbError(f"rater={rater!r}, dimensions={dimensions!r}: name who rates and what")
        super().__init__(_items(items), file, lang)
        random.Random(f"{seed} {self.rater}").shuffle(self.items)
        self.done, self.scores = self._resume(), dict[str, int]()
        self._turn_to(self._next(-1))

    @property
    def dimension(self) -> str:
        """What the next key scores: the first dimension without a score, else the one after the last scored."""
        missing = [name for name in self.dimensions if name not in self.scores]
        return missing[0] if missing else self.dimensions[self._turn % len(self.dimensions)]

    def press(self, entry: str) -> bool:
        """Take a key for the current dimension, in any width; what is none leaves a sentence in `problem`."""
        key = unicodedata.normalize("NFKC", entry).strip()
        if known := key in KEYS:
            self.score(self.dimension, KEYS[key])
        else:
            self.problem = self.say("rating.not_a_key", entry=key[:20], keys=_KEYS) if key else ""
        return known

    def score(self, dimension: str, score: int) -> None:
        """Score one dimension; the last missing score saves the item and turns to the next."""
        self.problem = ""
        if (item := self.item) is None:
            return
        fresh, self._turn = item.key not in self.done, self.dimensions.index(dimension) + 1
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

    def _save(self, item: Item, scores: dict[str, int]) -> None:
        """Write the file anew, whole at any moment; what others wrote there stays."""
        rest = {"system": item.key[1], "cluster": item.cluster, "comment": self.comments.get(item.key, "")}
        more = {name: text for name, text in rest.items() if text}
        rows = [
            {"item_id": item.key[0], "dimension": name, "rater": self.rater, "score": scores[name]} | more
            for name in self.dimensions
        ]
        _write(self.file, [*(row for row in _read(self.file)[0] if self._mine(row) != item.key), *rows])
        self.done[item.key] = scores

    def _mine(self, row: Row) -> Key | None:
        """Which item a row of this rater scores."""
        return (row["item_id"], row.get("system", "")) if row["rater"] == self.rater else None

    def _resume(self) -> dict[Key, dict[str, int]]:
        """What this rater has given; an item whose scores were cut off by a crash is rated again."""
        rows, torn = _read(self.file)
        scores: dict[Key | None, dict[str, int]] = {}
        for row in rows:
            key = self._mine(row)
            scores.setdefault(key, {})[row["dimension"]] = row["score"]
            self.comments |= {key: row["comment"]} if key and row.get("comment") else {}
        whole = {key: given for key, given in scores.items() if key and set(self.dimensions) <= set(given)}
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
        read = tuple(map(str, contexts)) if isinstance(contexts, list | tuple) else ()
        text = defaultdict(str, {key: str(value).strip() for key, value in row.items() if not is_missing(value)})
        if text["answer"]:
            key, cluster = (text["sample_id"], text["system"]), text["cluster"] or text["doc_name"]
            items.append(Item(key, cluster, text["question"], text["answer"], text["ground_truth_answer"], read))
    if not items:
        raise RagnbError("no item has an answer; there is nothing to rate")
    if twice := [key for key, n in Counter(item.key for item in items).items() if n > 1][:3]:
        raise RagnbError(f"two items have one id: {listing(' '.join(key) for key in twice)}; keep one of each")
    return items


def _read(file: Path) -> tuple[list[Row], bool]:
    """What a file of ratings holds, and whether its last line was cut off."""
    *lines, last = file.read_bytes().split(b"\n") if file.exists() else [b""]
    rows: list[Row] = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(json.loads(line))
            assert {"item_id", "dimension", "rater", "score"} <= set(rows[-1])
        except (ValueError, TypeError, AssertionError):
            raise RagnbError(f"{place(file, number)}this is no rating of a sheet; choose another file") from None
    return rows, bool(last)


def _write(file: Path, rows: list[Row]) -> None:
    write_whole(file, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


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
        self, items: Any, file: str | Path, *, rater: str, dimensions: Rubric | Sequence[str] | None = None,
        seed: int = 0, lang: str = "en",
    ) -> None:  # fmt: skip
        rubric = dimensions if isinstance(dimensions, Rubric) else Rubric()
        if (rubric.low, rubric.high) != (1, 10):
            raise RagnbError(f"the rubric's scale is {rubric.low:g} to {rubric.high:g}; a sheet takes 1 to 10")
        self._rubric = {one.name: one for one in rubric.dimensions}
        names = list(self._rubric) if dimensions is None or isinstance(dimensions, Rubric) else list(dimensions)
        model = Rating(items, file, rater=rater, dimensions=names, seed=seed, lang=lang)
        super().__init__(model, "rating", _KEYS, rater=model.rater)

    def _fields(self) -> list[Any]:
        import ipywidgets as ipw

        self._scores, made = dict[str, Any](), list[Any]()
        for name in self.model.dimensions:
            look = {"button_width": "34px", "description_width": "initial"}
            scores = ipw.ToggleButtons(options=range(1, 11), value=None, description=name, style=look)
            self._scores[name] = scores.add_class("rg-row").add_class("rg-scores")
            hear(self, scores, partial(self._do, self.model.score, name))
            made += [scores, Html(self.model.lang, self._bands(name)).widget]
        return made

    def _bands(self, name: str) -> Safe:
        """What a dimension looks at, and what its scores mean."""
        asked, known = self._rubric.get(name), texts.entry(self.model.lang, "judge.bands").get(name, {})
        bands = ((asked.bands if asked else {}) or known).items()
        terms = [join([element("dt", band.replace("-", "–")), element("dd", means)]) for band, means in bands]
        about = element("p", asked.description if asked else "", class_="rg-note")
        return join([about, element("dl", *terms, class_="rg-bands")])

    def _refresh_fields(self, _: bool) -> list[str]:
        model = self.model
        self._keys.description = model.say("rating.keys", dimension=model.dimension)
        for name, row in self._scores.items():
            row.value = model.scores.get(name)
        return [str(model.scores.get(name, "")) for name in model.dimensions]

    def _shown(self, item: Item) -> Safe:
        say = self.model.say
        question = element("p", item.question, class_="rg-question", dir="auto")
        parts = [element("h4", say("rating.question")), question]
        parts += [element("h4", say("rating.answer")), prose(item.answer)]
        if item.reference:
            parts.append(element("details", element("summary", say("rating.reference")), prose(item.reference)))
        passages = join(map(prose, item.contexts or [say("rating.no_contexts")]))
        return join([*parts, element("h4", say("rating.contexts", n=len(item.contexts))), passages])


DECISION_KEYS = {word[0]: word for word in DECISIONS}


class Review(Items):
    """The state of a review sheet.

    Parameters
    ----------
    cases : DataFrame
        As `ragnb.scoring.generation.review_sheet` takes them.
    file : path
        A ``.csv``: what is in it is taken up, also what was entered in a spreadsheet meanwhile.
    lang : {"en", "zh"}
    """

    def __init__(self, cases: pd.DataFrame, file: str | Path, *, lang: str) -> None:
        questions = review_sheet(cases).rename(columns={"sample_id": "key"})
        super().__init__(list(questions.itertuples(index=False, name="Question")), file, lang)
        self.cases, self.name = cases, self.file.name
        if self.file.suffix.lower() != ".csv":
            raise RagnbError(f"{place(file)}a review is a CSV file; choose a name that ends in .csv")
        self._take(self._read())
        self._turn_to(self._next(-1))

    def press(self, entry: str) -> None:
        """Take a key, in any width and case; while a question is edited, keys decide nothing."""
        key = unicodedata.normalize("NFKC", entry).strip().casefold()
        if key in DECISION_KEYS and not self.editing:
            self.decide(DECISION_KEYS[key])
        elif key:
            wrong = self.say("review.not_a_key", entry=key[:20], keys=", ".join(DECISION_KEYS))
            self.problem = self.say("review.editing") if self.editing else wrong

    def decide(self, decision: str, wording: Sequence[str] = ()) -> None:
        """Save a decision and turn to the next question; ``edit`` waits for another wording."""
        self.problem, self.editing = "", decision == "edit"
        if self.item is None or (self.editing and not wording):
            return
        old = [getattr(self.item, name) for name in WORDING]
        new = [text.strip() for text in wording] or old
        if self.editing and (new == old or not new[0]):
            self.problem = self.say("review.unchanged" if new == old else "review.no_question")
        else:
            self._save(self.item, {"decision": decision, **dict(zip(WORDING, new, strict=True))})
            self.skip()

    def _turn_to(self, at: int) -> None:
        super()._turn_to(at)
        known = self.done.get(self.item.key, {}) if self.item else {}
        self.wording = [known.get(name, getattr(self.item, name, "")) for name in WORDING]
        self.decision, self.editing = known.get("decision"), known.get("decision") == "edit"

    def _read(self) -> pd.DataFrame:
        return with_decisions(self.cases, self.file) if self.file.exists() else review_sheet(self.cases)

    def _take(self, sheet: pd.DataFrame) -> None:
        self.done = {row["sample_id"]: row for row in records(sheet) if row["decision"]}
        self.comments |= {row["sample_id"]: row["comment"] for row in records(sheet) if row["comment"]}

    def _save(self, item: Any, given: dict[str, str]) -> None:
        sheet = self._read()
        given = given | {"comment": self.comments[item.key]} if item.key in self.comments else given
        sheet.loc[sheet["sample_id"] == item.key, list(given)] = list(given.values())
        write_whole(self.file, "\ufeff" + to_csv_text(sheet))  # without the mark a spreadsheet garbles Chinese
        self._take(sheet)


class ReviewSheet(Sheet):
    """A sheet on which a person keeps, edits or drops each question of a generated set.

    One question at a time, with its reference answer, the quotes that support it and its document. Keys: k keep,
    e edit, d drop. Every decision is on disk before the next question appears, and the sheet resumes where it was
    left. When the kernel does not answer, the sheet says that nothing is recorded.

    Parameters
    ----------
    cases : DataFrame
        With ``sample_id, question, ground_truth_answer`` and, where there are, ``doc_name`` and
        ``generation_params`` (``kind`` and ``evidence``).
    file : path
        A ``.csv`` with the columns ``sample_id, decision, question, ground_truth_answer, comment, doc_name, kind,
        evidence``; it can be edited in a spreadsheet just as well. `ragnb.scoring.generation.reviewed` applies it.
    lang : {"en", "zh"}

    Attributes
    ----------
    model : Review
        The state; it can be driven without a browser.

    Raises
    ------
    RagnbError
        For cases without questions or of one id, a file that is no ``.csv`` or holds other decisions.

    Examples
    --------
    >>> import tempfile
    >>> cases = pd.DataFrame({"sample_id": ["a"], "question": ["Why?"], "ground_truth_answer": ["Because."]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sheet = ReviewSheet(cases, file=f"{folder}/review.csv")
    ...     sheet.model.press("k")
    ...     print(Path(folder, "review.csv").read_text("utf-8-sig").splitlines()[1])
    a,keep,Why?,Because.,,,,
    """

    model: Review

    def __init__(self, cases: pd.DataFrame, *, file: str | Path, lang: str = "en") -> None:
        super().__init__(Review(cases, file, lang=lang), "review", ", ".join(DECISION_KEYS))

    def _fields(self) -> list[Any]:
        import ipywidgets as ipw

        say, model = self.model.say, self.model
        self._keys.description = say("review.keys")
        self._labels = {word: say(f"review.{word}") for word in DECISIONS}
        look = {"button_width": "84px", "description_width": "initial"}
        options, name = [(label, word) for word, label in self._labels.items()], say("review.decision")
        self._choice = ipw.ToggleButtons(options=options, value=None, description=name, style=look)
        hear(self, self._choice.add_class("rg-row").add_class("rg-scores"), partial(self._do, model.decide))
        how: dict[str, Any] = {"kind": "Textarea", "rows": 4, "continuous_update": False}
        self._wording = [field(say, f"rating.{key}", **how) for key in ("question", "reference")]
        for text in self._wording:
            hear(self, text.add_class("rg-row"), lambda _: self._refresh(clear=False))
        save = button(say, "review.save", lambda: self._do(model.decide, "edit", [t.value for t in self._wording]))
        self._editor = ipw.VBox([*self._wording, ipw.HBox([save])], layout={"display": "none"})
        return [self._choice, self._editor]

    def _refresh_fields(self, clear: bool) -> list[str]:
        model, before = self.model, self._editor.layout.display
        chosen = "edit" if model.editing else model.decision
        self._choice.value, self._editor.layout.display = chosen, "flex" if model.editing else "none"
        for text, words in zip(self._wording, model.wording if clear else (), strict=clear):
            text.value = words
        if before == "none" and model.editing:
            self._wording[0].focus()
        return [self._labels.get(chosen or "", ""), *(text.value for text in self._wording)]

    def _shown(self, item: Any) -> Safe:
        say = self.model.say
        about = " · ".join(filter(None, [item.doc_name, item.kind]))
        return join([
            element("p", about, class_="rg-note"),
            element("h4", say("rating.question")), element("p", item.question, class_="rg-question", dir="auto"),
            element("h4", say("rating.reference")), prose(item.ground_truth_answer or say("review.no_answer")),
            element("h4", say("review.evidence")),
            *map(prose, (item.evidence or say("review.no_evidence")).split("\n\n")),
        ])  # fmt: skip
