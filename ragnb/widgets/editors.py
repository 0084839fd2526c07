"""What a person edits in a notebook: sheets to rate answers and to review questions, and the weights of a run.

First what they share: HTML widgets, styles, a twin for where no widget runs. On sheets the judge's scores and the
names of the systems stay hidden: whoever sees them rates them, not the answer.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from importlib.resources import files
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.comparison import WeightMap
from ragnb.comparison.differences import compared
from ragnb.comparison.people import BY_PEOPLE
from ragnb.comparison.source import Pairs
from ragnb.diagnostics import check_gates
from ragnb.errors import RagnbError, listing, place
from ragnb.files import write_whole
from ragnb.markup import Safe, count, element, ends, is_missing, join, number, one_line, rendering
from ragnb.markup.blocks import Code, Mark, Small, Table, Text
from ragnb.markup.rendering import LANGUAGES, draw, render
from ragnb.readers import read_cases, to_csv_text
from ragnb.scenario import Patch, Scenario, load_scenario, plan_patch
from ragnb.schema import Gate, Rubric, records
from ragnb.scoring.generation import DECISIONS, WORDING, review_sheet, with_decisions
from ragnb.sheet.build import weighable
from ragnb.sheet.formatter import TOTAL, Formatter, Row
from ragnb.sheet.gates import by_outcome
from ragnb.texts.errors import translated
from ragnb.weights import Moments, nfc, notes, why_no_total
from ragnb.weights.total import total_of

numbers = itertools.count(1)
# The style of a widget whose description stands in the column of names.
_FILES = {
    kind: files(__package__).joinpath(f"widgets.{kind}").read_text("utf-8")
    for kind in ("css", "js")
}
NAMED = {"description_width": "170px"}


def make(kind: str, *children: Any, **look: Any) -> Any:
    """Make a widget of ipywidgets, which is imported with the first."""
    import ipywidgets

    return getattr(ipywidgets, kind)(*children, **look)


def button(
    say: Callable[..., str], key: str, action: Callable[[], object], *, name: str = "", **more: Any
) -> Any:
    """Return a button as wide as its words, the text of a key and its hint."""
    hint = say(f"{key}_hint", name=name)
    made = make("Button", description=say(key), tooltip=hint, layout={"width": "auto"}, **more)
    made.on_click(lambda _: action())
    return made


def hear(owner: Any, widget: Any, act: Callable[[Any], object]) -> None:
    """Call `act` with the value of a widget when a person changes it, not its owner, who is busy then."""
    widget.observe(lambda change: None if owner.busy else act(change["new"]), "value")


def field(say: Callable[..., str], key: str, kind: str = "Text", **more: Any) -> Any:
    """Return a field for text, as wide as there is room, with the text of a key beside it."""
    look = {
        "style": {"description_width": "initial"},
        "layout": {"width": "auto", "flex": "1 1 auto"},
    }
    return make(kind, description=say(key), **look | more)


class Html:
    """An HTML widget of ours; it is hidden while it is empty.

    Parameters
    ----------
    lang : {"en", "zh"}
    html : Safe, optional
    live : bool
        Whether screen readers say what changes in it.
    """

    def __init__(self, lang: str, html: Safe | None = None, *, live: bool = False) -> None:
        self.lang, self.widget = (
            LANGUAGES[lang],
            make("HTML", layout={"display": "none", "width": "auto"}),
        )
        self.widget.add_class("rg-live" if live else "rg-html")
        self.show(html or Safe(""))

    def show(self, html: Safe) -> None:
        """Show HTML of ours."""
        self.widget.value = element("div", html, class_="ragnb", lang=self.lang) if html else ""
        self.widget.layout.display = "block" if html else "none"

    def warn(self, text: str, class_: str = "rg-said rg-bad", **more: str) -> None:
        """Show what is wrong, or nothing."""
        self.show(element("p", text, class_=class_, **more) if text else Safe(""))


def held(values: Sequence[object]) -> Safe:
    """Tell the page what the kernel has of its fields, in their order; what differs there is not recorded."""
    return element("span", class_="rg-held", hidden="", data_held=json.dumps(values))


class Twin:
    """A widget beside a static twin: where the widget lives, a style of its own hides the twin.

    Who inherits gives the `view`, what stands in its place without a kernel, and the `model`, whose language both
    speak.
    """

    view: Any
    model: Any
    _static: Any

    def _box(self, gone: str, *children: Any) -> Any:
        """Put widgets into a box with its styles, and what appears when the kernel does not answer."""
        self._name, lang = f"rg-twin-{next(numbers)}", self.model.lang
        own = Safe(f"<style>{_FILES['css']}\n.{self._name} {{ display: none; }}</style>")
        style, alert = (
            Html(lang, join([element("style", rendering.style(notebook=True)), own])),
            Html(lang),
        )
        alert.warn(gone, "rg-bad", role="alert")
        alert.widget.add_class("rg-gone")
        return make("VBox", [style.widget, alert.widget, *children]).add_class("rg-editor")

    def _repr_html_(self) -> str:
        return rendering.fragment(self._static(), lang=self.model.lang)

    def _ipython_display_(self) -> None:
        """Show the widget and its twin in a notebook."""
        from IPython import display

        publish: Any = display.publish_display_data
        publish({**self.view._repr_mimebundle_(), "text/plain": repr(self)})
        publish(
            {
                "text/html": element("div", Safe(self._repr_html_()), class_=self._name),
                "text/plain": "",
            }
        )
        publish({"application/javascript": _FILES["js"], "text/plain": ""})


class Items:
    """The items of a sheet: which one is shown, the next that is not done, and the comments on them.

    Who inherits says what is `done`, by the ``key`` of an item, how that is saved, and what each of its `keys`
    enters.

    Parameters
    ----------
    items : list
        Each with a ``key``.
    file : path
    lang : {"en", "zh"}
    """

    kind: str
    keys: Mapping[str, Any]
    shown_keys: str
    enter: Any
    _save: Any

    def __init__(self, items: list[Any], file: str | Path, lang: str) -> None:
        self.items, self.file, self.lang, self.say = (
            items,
            Path(file).resolve(),
            lang,
            texts.load(lang),
        )
        self.done, self.comments, self.at = dict[Any, Any](), dict[Any, str](), -1

    def press(self, entry: str) -> None:
        """Take a key, in any width and case; what is none leaves a sentence in `problem`."""
        if (key := unicodedata.normalize("NFKC", entry).strip().casefold()) in self.keys:
            self.enter(self.keys[key])
        elif key:
            self.problem = self.say(f"{self.kind}.not_a_key", entry=key[:20], keys=self.shown_keys)

    def note(self, comment: str) -> None:
        """Keep a comment on the item; it is saved with what is done of it, at once where that is complete."""
        if self.item:
            self.comment = self.comments[self.item.key] = comment.strip()
            if self.item.key in self.done:
                self._save(self.item, self.done[self.item.key])

    def skip(self) -> None:
        """Turn to the next item that is not done; after the last one the skipped come again."""
        places = [*range(self.at + 1, len(self.items)), *range(len(self.items))]
        self._turn_to(
            next((i for i in places if self.items[i].key not in self.done), len(self.items))
        )

    def back(self) -> None:
        """Turn to the item before, where what was entered can be changed."""
        self._turn_to((self.at - 1) % max(len(self.items), 1))

    def _turn_to(self, at: int) -> None:
        self.at, self.problem = at, ""
        self.item: Any = self.items[at] if at < len(self.items) else None  # None when all is done
        self.comment = self.comments.get(self.item.key, "") if self.item else ""


class Sheet(Twin):
    """One item at a time with what is entered beside it, by keys and buttons.

    Who inherits gives the fields: their widgets, how they are refreshed (`clear` for another item), with what the
    kernel holds of them.

    Parameters
    ----------
    model : Items
    **title
        Values of the title.
    """

    _fields: Any
    _refresh_fields: Any

    def __init__(self, model: Any, **title: str) -> None:
        self.model, self._kind = model, model.kind
        self._title = model.say(f"{model.kind}.title", **title)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model.name!r}: {len(self.model.done)} of {len(self.model.items)})"

    def _head(self, *more: str) -> Safe:
        """Return the title, how much is done, and what more there is to say."""
        done, n = len(self.model.done), len(self.model.items)
        lines = [self.model.say(f"{self._kind}.progress", done=done, n=n), *more]
        return join(
            [element("h3", self._title), *(element("p", line, class_="rg-note") for line in lines)]
        )

    def _static(self) -> Safe:
        return self._head(self.model.say(f"{self._kind}.static"))

    @cached_property
    def view(self) -> Any:
        """The widgets, made when they are first asked for."""
        model, say, lang = self.model, self.model.say, self.model.lang
        self._top, self._item, self._held = Html(lang, live=True), Html(lang), Html(lang)
        self._wrong, self.busy, self._seen, self._cleared = Html(lang, live=True), False, "", ""
        self._keys = (
            field(lambda _: "", "", placeholder=model.shown_keys)
            .add_class("rg-row")
            .add_class("rg-keys")
        )
        hear(self, self._keys, self._press)
        hint = say(f"{self._kind}.comment_hint")
        self._comment = field(
            say, "rating.comment", "Textarea", placeholder=hint, continuous_update=False, rows=2
        )
        hear(self, self._comment.add_class("rg-row"), partial(self._do, model.note))
        tools = [
            button(say, f"rating.{act.__name__}", partial(self._do, act))
            for act in (model.back, model.skip)
        ]
        entry = [
            self._keys,
            self._wrong.widget,
            *self._fields(),
            self._comment,
            make("HBox", tools),
        ]
        self._entry = make("VBox", entry, layout={"flex": "0 1 400px"})
        self._item.widget.add_class("rg-item")
        self._refresh()
        gone = say(f"{self._kind}.gone", file=model.file.name)
        flow = {"flex_flow": "row wrap", "grid_gap": "8px 32px"}
        both = make("HBox", [self._item.widget, self._entry], layout=flow)
        return self._box(gone, self._top.widget, both, self._held.widget)

    def _press(self, entry: str) -> None:
        # Keys may come faster than answers to them: only what is new in the field counts, also past a clearing.
        seen = self._seen or (self._cleared if entry.startswith(self._cleared) else "")
        self._seen = entry
        self._do(
            lambda: list(
                map(self.model.press, entry[len(seen) :] if entry.startswith(seen) else "")
            )
        )

    def _do(self, act: Callable[..., object], *values: object) -> None:
        item = self.model.item
        try:
            act(*values)
        except RagnbError as error:  # the file was changed by somebody else
            self.model.problem = translated(str(error), self.model.lang)
        self._refresh(clear=self.model.item is not item)

    def _refresh(self, *, clear: bool = True) -> None:
        model, item, say = self.model, self.model.item, self.model.say
        self.busy = True
        if clear:
            self._cleared, self._seen, self._keys.value = self._seen, "", ""
            self._item.show(
                render("item.html", kind=self._kind, say=say, item=item) if item else Safe("")
            )
        done = say(f"{self._kind}.done", n=len(model.items), file=model.file.name)
        self._top.show(self._head(*[] if item else [done]))
        self._comment.value = model.comment
        if item and clear:
            self._keys.focus()
        values = self._refresh_fields(clear)
        self.busy = False
        self._entry.layout.display = "flex" if item else "none"
        self._wrong.warn(model.problem)
        self._held.show(held([self._seen, *values, model.comment] if item else []))


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
    kind, shown_keys = "rating", "1 – 9, 0 = 10"
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
            self.comments |= {key: row["comment"]} if key and row.get("comment") else {}
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
        return missing[0] if missing else self.dimensions[self._turn % len(self.dimensions)]

    def enter(self, score: int) -> None:
        """Score the current dimension."""
        self.score(self.dimension, score)

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

    def _save(self, item: Any, scores: dict[str, int]) -> None:
        """Write the file anew, whole at any moment; what others wrote there stays."""
        rest = {
            "system": item.key[1],
            "cluster": item.cluster,
            "comment": self.comments.get(item.key, ""),
        }
        more = {name: text for name, text in rest.items() if text}
        rows, rated = (
            [row for row in self._read() if self._mine(row) != item.key],
            {"rater": self.rater},
        )
        for name in self.dimensions:
            rows += [
                {"item_id": item.key[0], "dimension": name, **rated, "score": scores[name], **more}
            ]
        write_whole(self.file, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        self.done[item.key] = scores

    def _mine(self, row: Row) -> Key | None:
        """Which item a row of this rater scores."""
        return (row["item_id"], row.get("system", "")) if row["rater"] == self.rater else None

    def _read(self) -> Iterator[Row]:
        """Yield the ratings of the file; a last line that was cut off is none."""
        lines = self.file.read_bytes().split(b"\n")[:-1] if self.file.exists() else []
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
        rubric = dimensions if isinstance(dimensions, Rubric) else Rubric()
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
        self._scores, made = dict[str, Any](), list[Any]()
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
        asked, known = (
            self._rubric.get(name),
            texts.entry(self.model.lang, "judge.bands").get(name, {}),
        )
        bands = (asked.bands if asked else {}) or known
        return render("bands.html", about=asked.description if asked else "", bands=bands)

    def _refresh_fields(self, _: bool) -> list[str]:
        model = self.model
        self._keys.description = model.say("rating.keys", dimension=model.dimension)
        for name, row in self._scores.items():
            row.value = model.scores.get(name)
        return [str(model.scores.get(name, "")) for name in model.dimensions]


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

    kind, keys = "review", {word[0]: word for word in DECISIONS}
    shown_keys = ", ".join(keys)

    def __init__(self, cases: pd.DataFrame, file: str | Path, *, lang: str) -> None:
        questions = review_sheet(cases).rename(columns={"sample_id": "key"})
        super().__init__(list(questions.itertuples(index=False, name="Question")), file, lang)
        self.cases, self.name = cases, self.file.name
        if self.file.suffix.lower() != ".csv":
            raise RagnbError(
                f"{place(file)}a review is a CSV file; choose a name that ends in .csv"
            )
        self._take(self._read())
        self.skip()

    def press(self, entry: str) -> None:
        """Take a key, in any width and case; while a question is edited, keys decide nothing."""
        if not self.editing:
            super().press(entry)
        elif entry.strip():
            self.problem = self.say("review.editing")

    def enter(self, decision: str, wording: Sequence[str] = ()) -> None:
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
        return (
            with_decisions(self.cases, self.file)
            if self.file.exists()
            else review_sheet(self.cases)
        )

    def _take(self, sheet: pd.DataFrame) -> None:
        self.done = {row["sample_id"]: row for row in records(sheet) if row["decision"]}
        self.comments |= {
            row["sample_id"]: row["comment"] for row in records(sheet) if row["comment"]
        }

    def _save(self, item: Any, given: dict[str, str]) -> None:
        sheet = self._read()
        given = given | {"comment": self.comments[item.key]} if item.key in self.comments else given
        sheet.loc[sheet["sample_id"] == item.key, list(given)] = list(given.values())
        write_whole(
            self.file, "\ufeff" + to_csv_text(sheet)
        )  # without the mark a spreadsheet garbles Chinese
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
        super().__init__(Review(cases, file, lang=lang))

    def _fields(self) -> list[Any]:
        say, model = self.model.say, self.model
        self._keys.description = say("review.keys")
        self._labels = {word: say(f"review.{word}") for word in DECISIONS}
        look = {"button_width": "84px", "description_width": "initial"}
        options, name = (
            [(label, word) for word, label in self._labels.items()],
            say("review.decision"),
        )
        self._choice = make(
            "ToggleButtons", options=options, value=None, description=name, style=look
        )
        hear(
            self,
            self._choice.add_class("rg-row").add_class("rg-scores"),
            partial(self._do, model.enter),
        )
        how: dict[str, Any] = {"kind": "Textarea", "rows": 4, "continuous_update": False}
        self._wording = [field(say, f"rating.{key}", **how) for key in ("question", "reference")]
        for text in self._wording:
            hear(self, text.add_class("rg-row"), lambda _: self._refresh(clear=False))
        save = button(
            say,
            "review.save",
            lambda: self._do(model.enter, "edit", [t.value for t in self._wording]),
        )
        self._editor = make(
            "VBox", [*self._wording, make("HBox", [save])], layout={"display": "none"}
        )
        return [self._choice, self._editor]

    def _refresh_fields(self, clear: bool) -> list[str]:
        model, before = self.model, self._editor.layout.display
        chosen = "edit" if model.editing else model.decision
        self._choice.value, self._editor.layout.display = (
            chosen,
            "flex" if model.editing else "none",
        )
        for text, words in zip(self._wording, model.wording if clear else (), strict=clear):
            text.value = words
        if before == "none" and model.editing:
            self._wording[0].focus()
        return [self._labels.get(chosen or "", ""), *(text.value for text in self._wording)]


# The weight editor


_NUMBERS = ("weight", "share", "mean", "n")
_YAML = (".yaml", ".yml")
_NARROW, _SPACED = {"width": "250px"}, {"grid_gap": "8px 32px", "align_items": "flex-start"}
# Documents that are offered while a name is typed.
_HITS = 8


class WeightEditor(Twin):
    """Turn the weights of metrics and documents, and see what follows while a slider moves.

    Shown as the last line of a cell. Without a running kernel it is a picture and tables. Of two systems, or one
    and its ``baseline=``, each slider shows where the leader changes by their common questions, as
    `ragnb.weight_map` finds it.

    Parameters
    ----------
    source : path, Scenario, frame or Moments
        A scenario, a folder of them, whatever `ragnb.assess` takes, or moments, from which everything shown
        follows whatever the number of rows.
    **overrides
        Fields of `Scenario` for this editor only, such as ``lang="zh"``, ``gates=``, ``baseline=`` or
        ``metric_weights=``.

    Attributes
    ----------
    model : Weighing
        The state; it can be driven without a browser.
    metric_weights, doc_weights : dict of str to float
        The weights as they stand, as `ragnb.weighted_means` takes them.
    means : DataFrame
        The means at these weights.

    Raises
    ------
    RagnbError
        As `ragnb.assess`; and for a folder without a scenario.

    Examples
    --------
    >>> scores = pd.DataFrame({"faithfulness": [0.9, 0.4], "context_recall": [0.2, 0.8], "doc_name": ["a", "b"]})
    >>> editor = WeightEditor(scores)
    >>> editor.model.set("metric_weights", "faithfulness", 3)
    >>> editor.metric_weights
    {'faithfulness': 3.0, 'context_recall': 1.0}
    >>> editor.means["value"].round(4).tolist()
    [0.65, 0.5, 0.6125]
    """

    def __init__(self, source: Any, **overrides: Any) -> None:
        self._overrides = overrides
        self._choices, first = _choices(source)
        self._views, self.busy = dict[str, EditorView](), False
        self.model: Weighing = Weighing(*weighable(first, **overrides))

    metric_weights = property(
        attrgetter("model.metric_weights"), doc="The weight of every metric that has a row."
    )
    doc_weights = property(
        attrgetter("model.doc_weights"), doc="The weight of every document that has a row."
    )

    @property
    def means(self) -> pd.DataFrame:
        """The means, as `ragnb.weighted_means` gives them; of several systems each its own, by ``system``."""
        now = self.model.now
        return now.means if now.systems is None else now.systems

    def save(self, to: str | Path | None = None) -> list[str]:
        """Write the weights into the scenario's file, or into a new one, and return the fields that changed."""
        return self.model.save(to)

    # In a notebook

    def __repr__(self) -> str:
        now = self.model.now
        systems = {f"{name}: ": rows for name, rows in now.by_system.items()} or {"": now.rows}
        totals = ", ".join(
            f"{name}{TOTAL}={rows[TOTAL]['value']:.3f}" for name, rows in systems.items()
        )
        totals = totals if self.model.is_scored else "not scored yet"
        return f"WeightEditor({self.model.scenario.name!r}: {totals}, {self.metric_weights})"

    def _static(self) -> Safe:
        """The editor as a picture and tables."""
        hint = element("p", self.model.say("editor.static"), class_="rg-note")
        return join([*(part(self.model) for part in (*_FIRST, _weights, *_REST)), hint])

    @cached_property
    def view(self) -> Any:
        """The widgets, made when they are first asked for."""
        path, names = (
            str(self.model.scenario.path),
            {file.name: str(file) for file in self._choices},
        )
        self._place, self._problem = make("VBox"), Html(self.model.lang, live=True)
        at = {"width": "max-content", "display": "flex" if names else "none"}
        options = {"options": names, "value": path if names else None, "layout": at}
        self._chooser = field(self.model.say, "editor.scenario", "Dropdown", **options)
        hear(self, self._chooser, self._choose)
        self._show(path, EditorView(self.model))
        return self._box(
            self.model.say("editor.gone"), self._chooser, self._problem.widget, self._place
        )

    def _choose(self, path: str) -> None:
        """Turn to another scenario; what was changed in this one waits there."""
        try:
            view = self._views.get(path) or EditorView(
                Weighing(*weighable(path, **self._overrides))
            )
        except RagnbError as error:
            return self._problem.warn(translated(str(error), self.model.lang))
        self._problem.warn("")
        return self._show(path, view)

    def _show(self, path: str, view: EditorView) -> None:
        self.model, self._views[path], self._place.children = view.model, view, (view.box,)


def _choices(source: Any) -> tuple[list[Path], Any]:
    """The scenarios to choose from, and the one to open first."""
    path = Path(source).resolve() if isinstance(source, str | Path) else None
    if path is None or not (path.suffix.lower() in _YAML or path.is_dir()):
        return [], source
    beside = (path if path.is_dir() else path.parent).glob("*")
    files = sorted(file for file in beside if file.suffix.lower() in _YAML)
    if path.is_dir() and not files:
        raise RagnbError(f"no scenario (.yaml) in {str(source)!r}; name a file, or another folder")
    return files, files[0] if path.is_dir() else path


class EditorView:
    """The widgets of one model: they show it and pass on what a person does, no more.

    Parameters
    ----------
    model : Weighing
    """

    def __init__(self, model: Weighing) -> None:
        self.model, self._rows, self.busy = model, dict[tuple[str, str], WeightRow](), False
        lang, say, flow = model.lang, model.say, {"flex_flow": "row wrap"}
        self.held, self.rest, self.diff, self.note = (
            Html(lang, live=live) for live in (False, False, True, True)
        )
        self.first = {part: Html(lang, live=part is _total) for part in _FIRST}
        self.boxes = {METRIC: make("VBox"), DOC: make("VBox")}
        self.pick = field(say, "editor.document", placeholder=say("editor.search"), style=NAMED)
        hear(self, self.pick, self._search)
        self.pick.on_msg(
            lambda _, sent, __: (
                self._add(self.pick.value) if sent.get("event") == "submit" else None
            )
        )
        self.hits = make(
            "ToggleButtons", style={"button_width": "auto"}, layout={"display": "none"}
        )
        hear(self, self.hits.add_class("rg-hits"), self._add)
        self.save = button(say, "editor.save", self._ask, button_style="primary")
        self.name = field(
            say, "editor.save_as", placeholder=say("editor.save_as_hint"), continuous_update=False
        )
        self.again = button(say, "editor.reload", partial(self._ask, model.reload, self._compare))
        write = button(say, "editor.write", partial(self._ask, self._write), button_style="primary")
        answers = make("HBox", [write, self.again, button(say, "editor.cancel", self._hide)])
        self.question = make("VBox", [self.name, answers], layout={"display": "none"})
        acts: list[Any] = [model.reset, model.equal, model.normalise]
        tools, left = [button(say, f"editor.{act.__name__}", act) for act in acts], []
        for key, box in zip(("metrics", "documents"), self.boxes.values(), strict=True):
            hint = element("p", say(f"editor.{key}_hint"), class_="rg-note")
            left += [Html(lang, join([element("h4", say(f"editor.{key}")), hint])).widget, box]
        left += [
            self.pick,
            self.hits,
            self.note.widget,
            make("HBox", [*tools, self.save], layout=flow),
        ]
        left += [self.diff.widget, self.question, self.held.widget]
        title, *right = (html.widget for html in (*self.first.values(), self.rest))
        both = [
            make("VBox", side, layout={"flex": "1 1 400px", "min_width": "0"})
            for side in (left, right)
        ]
        self.box = make("VBox", [title, make("HBox", both, layout={**flow, **_SPACED})])
        self.refresh(model)
        model.watchers.append(self.refresh)

    def refresh(self, model: Weighing) -> None:
        """Show what the model holds now, the numbers first."""
        for part, html in self.first.items():
            html.show(part(model))
        places = [(METRIC, name) for name in model.metrics] + [
            (DOC, name) for name in model.doc_weights
        ]
        # Rows that stay are not made anew.
        self._rows = {place: self._rows.get(place) or WeightRow(model, *place) for place in places}
        for kind, box in self.boxes.items():
            box.children = [row.box for (own, _), row in self._rows.items() if own == kind]
        for row in self._rows.values():
            row.refresh()
        self.rest.show(join(part(model) for part in _REST))
        self.held.show(
            held([one.value for row in self._rows.values() for one in (row.text, row.slider)])
        )
        is_wrong = bool(model.problems)
        self.save.disabled = model.scenario.path is None or not model.is_changed() or is_wrong

    def _search(self, text: str) -> None:
        """Offer the documents whose names hold what is typed."""
        hits = self.model.find(text) if text.strip() else []
        self.busy = True  # options select their first one by themselves
        with self.hits.hold_sync():
            self.hits.options, self.hits.value = hits[:_HITS], None
        self.busy, self.hits.layout.display = False, "flex" if hits else "none"
        self.note.warn(
            self.model.say("editor.more", n=len(hits) - _HITS) if len(hits) > _HITS else "",
            "rg-said",
        )

    def _add(self, name: str) -> None:
        self.pick.value = self.pick.value if (problem := self.model.add(name)) else ""
        self.note.warn(problem)

    # Saving asks before it writes: the diff, another name, and what stands in the way.

    def _ask(self, *acts: Callable[[], None]) -> None:
        """Show what saving would change, or do what the answer says; or say why not, and offer to read again."""
        self.question.layout.display, self.again.layout.display = "flex", "none"
        try:
            for act in acts or (self._compare,):
                act()
        except RagnbError as error:
            self.diff.warn(translated(str(error), self.model.lang))
            self.again.layout.display = "inline-flex"

    def _hide(self, text: str = "") -> None:
        self.question.layout.display = "none"
        self.diff.warn(text, "rg-said", role="status")

    def _compare(self) -> None:
        patch, say = self.model.plan(), self.model.say
        if not patch.changed:
            return self._hide(say("editor.same"))
        text = say("editor.will_change", file=patch.file.name, n=len(patch.changed))
        return self.diff.show(
            join([element("p", text), element("pre", patch.diff, class_="rg-diff", tabindex=0)])
        )

    def _write(self) -> None:
        name, home = self.name.value.strip(), self.model.scenario.path
        changed = self.model.save(home.parent / Path(name) if name and home else None)
        self.name.value, file = "", self.model.scenario.path
        self._hide(
            self.model.say(
                "editor.saved", file=file.name if file else "", fields=", ".join(changed)
            )
        )


class WeightRow:
    """One weight as a row: a number to type, a slider to drag, its share, and what is wrong with it.

    Parameters
    ----------
    model : Weighing
    kind, name : str
        Which weight it shows.
    """

    def __init__(self, model: Weighing, kind: str, name: str) -> None:
        self.model, self.place, self.busy = model, (kind, name), False
        # The right end of the slider; it moves when a greater weight is typed.
        top = 4.0 if kind == DOC else 1.0 if max(model.metric_weights.values()) < 1 else 2.0
        self.text = field(
            lambda _: name, "", tooltip=name, continuous_update=False, style=NAMED, layout=_NARROW
        )
        look = {"tooltip": name, "layout": {"flex": "1 1 90px"}}
        self.slider = make("FloatSlider", max=top, step=GRID, readout=False, **look)
        self.last: Any = make("Label", layout={"width": "46px", "justify_content": "flex-end"})
        if kind == DOC:
            self.last = button(model.say, "editor.remove", lambda: model.remove(name), name=name)
        self.said, self.mark = Html(model.lang), f"rg-flip-{next(numbers)}"
        line = make("HBox", [self.text, self.slider, self.last], layout={"align_items": "center"})
        self.box = make("VBox", [line, self.said.widget]).add_class("rg-row").add_class(self.mark)
        hear(self, self.text, partial(model.set, kind, name))
        hear(self, self.slider, self._drag)

    def _drag(self, weight: float) -> None:
        # A slider snaps what it is given to its grid and sends that back; only a person moves it further.
        if abs(weight - self.model.weight(*self.place)) > GRID / 2 + 1e-9:
            self.model.set(*self.place, round(weight, 2))

    def refresh(self) -> None:
        """Show what the model holds."""
        model, (kind, name) = self.model, self.place
        weight, problem = model.weight(kind, name), model.problems.get(self.place, "")
        self.busy = True
        self.text.value = self.text.value if problem else f"{weight:.12g}"
        self.slider.max = max(self.slider.max, math.ceil(weight))
        self.slider.value = weight
        self.busy = False
        told = {"weight": weight, "start": model.start(kind, name), "mark": self.mark}
        if kind == METRIC:
            self.last.value = _percent(model.share(name))
            # Beyond the slider's end it is only said.
            told |= {
                "flip": _flip(model, name),
                "at": model.now.flips.get(name, math.inf) / self.slider.max,
            }
        elif name not in model.documents:
            problem = problem or model.say("editor.absent")
        self.said.show(render("weight.html", say=model.say, problem=problem, **told))


# What the editor shows, as HTML


def _title(model: Weighing) -> Safe:
    return element(
        "h3", model.say("editor.title", name=model.scenario.title or model.scenario.name)
    )


def _total(model: Weighing) -> Safe:
    """The overall score with its interval, its place between the thresholds, and what it was; of each system."""
    if model.now.systems is not None:  # which are never pooled into one score
        return _systems(model)
    say, w, row = model.say, model.now.write, model.now.rows[TOTAL]
    if is_missing(row["value"]) or w.span(TOTAL) is None:
        why = why_no_total(model.now.means, lang=model.lang)
        return render("score.html", say=say, why=why if model.is_scored else say("editor.unscored"))
    failed = [gate for gate in records(model.now.gates) if gate["outcome"] == "fail"]
    tone, words = _judgement(model, is_failed=bool(failed))
    drawn = w.estimate(TOTAL, row, thresholds=w.thresholds(TOTAL))._replace(tone=tone)
    numbers = {
        "value": w.value(TOTAL, row["value"]),
        "ends": w.ends(TOTAL, row),
        "level": w.level,
        "n": w.n(row),
    }
    numbers |= {
        "before": w.value(TOTAL, model.base.rows[TOTAL]["value"]),
        "picture": draw(drawn, width=260),
    }
    gates = [draw(mark) for mark in by_outcome(w, records(model.now.gates))]
    mark = draw(Mark(tone, words)) if tone else ""
    return render("score.html", say=say, mark=mark, gates=gates, **numbers)


def _judgement(model: Weighing, *, is_failed: bool) -> tuple[str, str]:
    """Return the tone of the overall score and its words.

    Nothing is good above a gate that failed, nor where the interval includes a threshold.
    """
    w, row = model.now.write, model.now.rows[TOTAL]
    tone = w.tone(TOTAL, row["value"])
    if not tone:
        return "", ""
    words = model.say(f"mark.{tone}")
    if is_failed and tone == "good":
        return "watch", model.say("editor.but_failed", mark=words)
    ends = {w.tone(TOTAL, row[name]) for name in ("low", "high") if not is_missing(row[name])}
    if ends - {tone, ""}:
        return "watch" if tone == "good" else tone, model.say("editor.but_open", mark=words)
    return tone, words


def _notes(model: Weighing) -> Safe:
    """What is wrong with the weights as a whole, and what to know before believing the numbers."""
    problems = [text for (_, name), text in model.problems.items() if not name]
    lines = [element("p", text, role="alert", class_="rg-bad") for text in problems]
    return join(
        [*lines, draw(Text(tuple(notes(model.now.means, lang=model.lang)["text"]), "note"))]
    )


def _radar(model: Weighing) -> Safe:
    """Means by metric, one outline a system; each axis says how much it counts."""
    if not model.is_scored:
        return Safe("")
    w, own = model.now.write, model.now.rows
    axes = {f"{name} {_percent(model.share(name))}": name for name in model.metrics if w.span(name)}
    # More than five systems cannot be told apart.
    shown = {name: model.now.by_system[name] for name in model.now.ranking[:5]} or {
        model.say("editor.now"): own
    }
    values = {
        name: [rows[metric]["value"] for metric in axes.values()] for name, rows in shown.items()
    }
    return draw(w.radar(axes, values, model.say("editor.radar"))) if axes else Safe("")


def _percent(share: float) -> str:
    """Write a share of the total without decimals."""
    return "—" if math.isnan(share) else f"{100 * share:.0f} %"


def _table(model: Weighing, rows: list[dict[str, Any]], title: str = "") -> Safe:
    """Return records as a table, under a heading; nothing for no records."""
    if not rows:
        return Safe("")
    heads = tuple(">" * (key in _NUMBERS) + model.say(f"editor.column.{key}") for key in rows[0])
    cells = tuple(
        tuple(count(cell) if key == "n" else cell for key, cell in row.items()) for row in rows
    )
    heading = element("h4", model.say(f"editor.{title}")) if title else ""
    return join([heading, draw(Table(heads, cells), model.lang)])


def _flip(model: Weighing, name: str) -> str:
    """Say from which weight of a metric on, moved alone, the other system leads; nothing where none does."""
    if (found := model.now.found) is None or (at := model.now.flips.get(name)) is None:
        return ""
    side = "below" if at < model.weight(METRIC, name) else "above"
    return model.say(f"editor.flip_{side}", name=one_line(found.order[1], 40), weight=f"{at:.3g}")


def _lead(model: Weighing) -> Safe:
    """Say which of two systems leads at these weights, and whether one weight alone changes that."""
    if (found := model.now.found) is None:
        return Safe("")
    ahead, behind = (one_line(name, 40) for name in found.order)
    value, low, high = found.at(found.today).iloc[0]
    value, low, high = (value, low, high) if value >= 0 else (-value, -high, -low)
    words = {"name": ahead, "other": behind, "value": number(value), "ends": ends(low, high)}
    lines = [model.say("editor.leads", **words)]
    if (row := model.now.by_people) is not None:
        lines.append(_lead_by_people(model, row))
    lines.append(model.say("editor.flips" if model.now.flips else "editor.no_flip"))
    return render("lead.html", lines=lines)


def _lead_by_people(model: Weighing, row: Row) -> str:
    """Say what the ratings of people make of the lead that the judge's scores give."""
    if row["people"] not in BY_PEOPLE:
        return model.say("editor.judge_alone")
    value, low, high = row["value"], row["low"], row["high"]
    names = row["candidate"], row["baseline"]
    if value < 0:
        value, low, high, names = -value, -high, -low, names[::-1]
    name, other = (one_line(one, 40) for one in names)
    words = {"name": name, "other": other, "value": number(value), "ends": ends(low, high)}
    return model.say("editor.leads_by_people", **words)


def _systems(model: Weighing) -> Safe:
    """Systems by their weighted score, the best first, with the place that the weights of the start give."""
    base, rows = model.base.ranking, []
    for rank, name in enumerate(model.now.ranking, 1):
        row, was = (
            model.now.by_system[name][TOTAL],
            model.say("editor.was", what=base.index(name) + 1),
        )
        shown = {"place": (str(rank), *[was] * (base[rank - 1] != name))}
        rows.append(
            shown | {"system": one_line(name, 60), "mean": _mean(model, row), "n": row["n"]}
        )
    return _table(model, rows, "systems")


def _gates(model: Weighing) -> Safe:
    """Every gate with its outcome; one that these weights flip says what it was and comes first."""
    rows, w = [], model.now.write
    for row, old in zip(records(model.now.gates), records(model.base.gates), strict=True):
        outcome, before = w.outcome(row), w.outcome(old).text
        if not model.is_scored:
            before = model.say("editor.not_yet")
            outcome = Mark("none", before)
        rows.append(
            {
                "gate": (w.requirement(row), Code(w.code(row))),
                "mean": _mean(model, row),
                "n": row["n"],
                "outcome": (
                    outcome,
                    *[model.say("editor.was", what=before)] * (outcome.text != before),
                ),
            }
        )
    return _table(model, sorted(rows, key=lambda row: -len(row["outcome"])), "gates")


def _mean(model: Weighing, row: Row) -> tuple[str, Small]:
    """Write an estimate, and its interval in smaller type."""
    w, metric = model.now.write, row["metric"]
    return w.value(metric, row["value"]), Small(w.ends(metric, row))


def _weights(model: Weighing) -> Safe:
    """The weights as a table: what the editor is where nothing can be moved."""
    rows = [
        {
            "metric": name,
            "weight": f"{weight:g}",
            "share": _percent(model.share(name)),
            "mean": _mean(model, row),
        }
        | {"n": row["n"]}
        | ({"flip": _flip(model, name)} if model.now.flips else {})
        for (name, weight), row in (
            (item, model.now.rows[item[0]]) for item in model.metric_weights.items()
        )
    ]
    docs = [
        {"document": name, "weight": f"{weight:g}"} for name, weight in model.doc_weights.items()
    ]
    return join([_table(model, rows), _table(model, docs)])


# What a key changes first on the screen, and what follows.
_FIRST = (_title, _total, _radar)
_REST = (_lead, _notes, _gates)


METRIC, DOC = "metric_weights", "doc_weights"
# The step of a slider: normalised weights are multiples of it.
GRID = 0.01


class Numbers:
    """What follows from one set of weights: frames as `Moments.means` and `check_gates` give them.

    Gates and flips are computed when they are first asked for, so that the score is on the screen before them.
    """

    def __init__(self, model: Weighing, metrics: dict[str, float], docs: dict[str, float]) -> None:
        self._model, self._metrics, self.scenario = model, metrics, model.scenario
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
        for row in records(self.systems) if self.systems is not None else ():
            self.by_system.setdefault(str(next(iter(row.values()))), {})[row["metric"]] = row
        scores = {name: -rows["weighted_score"]["value"] for name, rows in self.by_system.items()}
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
        return found.reweighed(self._metrics) if found is not None and some else None

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
        table, total = (
            self.found.flips,
            math.fsum(self._metrics[name] for name in self.found.metrics),
        )
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
        self.scenario, self.gates, self._pairs = scenario, gates, pairs
        self._by = moments if moments.by is not None and len(moments.groups) > 1 else None
        self._pooled = moments if moments.by is None else moments.pooled()
        self.lang, self.say = self.scenario.lang, texts.load(self.scenario.lang)
        self.watchers: list[Callable[[Weighing], object]] = []
        self._start()

    def _start(self) -> None:
        named, metrics = self.scenario.metric_weights, self._pooled.metrics
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
        return (
            self.start(field, name) if (value := self._entries[field].get(name)) is None else value
        )

    def start(self, field: str, name: str) -> float:
        """Return what an entry counts at the start: the file's value, else the usual one."""
        return self._file[field].get(name, 1.0)

    def share(self, name: str) -> float:
        """Return a metric's share of all metric weights; nan where they are all 0."""
        total = math.fsum(self.metric_weights.values())
        return self.weight(METRIC, name) / total if total > 0 else math.nan

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

    def add(self, text: str) -> str:
        """Give the one document that `text` names, whole or in part, a row; or return why there is none."""
        name = nfc(text.strip())
        if len(hits := [name] if name in self.documents else self.find(name)) > 1:
            return self.say("editor.several", n=len(hits), text=name[:80]) if name else ""
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
        docs, metrics = self.doc_weights, self.metric_weights
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
        pairs, found = self._pairs_weighed(docs), None
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
        problems = [self.say("editor.no_file")] if path is None else list(self.problems.values())
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
        self.scenario = load_scenario(str(path or self.scenario.path)).replace(
            lang=self.scenario.lang
        )
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
    units, given = round(1 / GRID), np.array([*weights.values()], float)
    raw, counts = given / given.max(), given > 0  # else a sum could overflow
    least, exact = int(counts.sum() <= units), units * raw / raw.sum()
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
    if not (text := "" if entry is None else unicodedata.normalize("NFKC", str(entry)).strip()):
        return None, ""
    with suppress(ValueError):
        if math.isfinite(value := float(text.replace("_", "?"))):
            return (value, "") if value >= 0 else (None, "negative")
    return None, "not_number"


def _holds(name: str, text: str) -> bool:
    """Whether a name holds every word of a text, whatever their case and width."""
    whole, *words = (
        unicodedata.normalize("NFKC", part).casefold() for part in (name, *text.split())
    )
    return all(word in whole for word in words)
