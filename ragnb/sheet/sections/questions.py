"""Every question of a run, those that ended badly first, with its answer, passages and what its scores lack."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from ragnb import markup, texts
from ragnb.inputs.streams import BAD_FIRST, DIGITS
from ragnb.markup import Safe, is_missing, one_line
from ragnb.markup.blocks import Mark, Sample, Samples, Section
from ragnb.markup.html import anchor
from ragnb.markup.text import escape
from ragnb.schema import records
from ragnb.sheet.formatter import RIGHT, TOTAL, Formatter, Row, key_of
from ragnb.sheet.sections.outcomes import TONES
from ragnb.sheet.sections.summary import below

MOST_WHOLE, MOST_LISTED = 1000, 10_000
_TEXT_BYTES = 1_000_000  # of all texts of the page, each passage once, so that it opens at once
_MOST_PASSAGES, _MOST_FILTER, _MOST_SCORES = 10, 200, 3


def questions(w: Formatter) -> Section | None:
    """Return the questions; nothing where no row is known."""
    scores = worst_first(w)
    if not len(scores):
        return None
    whole, listed = scores.head(MOST_WHOLE), scores.iloc[MOST_WHOLE:MOST_LISTED]
    made = _Rows(w, whole)
    rows = tuple(made.sample(row, at) for row, at in zip(records(whole), whole.index, strict=True))
    rest = tuple((made.plain(row), made.filters(row, at))
                 for row, at in zip(records(listed), listed.index, strict=True))  # fmt: skip
    n, every = len(whole), w.sheet.rows
    known = texts.entry(w.lang, "questions")
    say = {key: known[key] for key in ("shown", "search", "any", "more", "filters", "passages", "link", "again")}
    key = "streamed" if w.sheet.streamed else "all" if n == every else "most"
    say["standing"] = w.say(f"questions.standing_{key}", n=markup.count(n), all=markup.count(every))
    wrong = sum(row.filters["w"] == "1" for row in rows) + sum(filters["w"] == "1" for _, filters in rest)
    block = Samples(made.heads, rows, made.chips([*(row.filters for row in rows), *(f for _, f in rest)]),
                    made.choices(), say, every, rest)  # fmt: skip
    labelled = "label" in scores and scores["label"].notna().any()
    count, name = markup.count(every), w.say("section.questions")
    finding = w.say("questions.wrong" if labelled else "questions.lowest", n=markup.count(wrong), all=count)
    return Section("questions", name, finding, w.say("questions.lead"), (block,), count, w.lang)


def worst_first(w: Formatter) -> pd.DataFrame:
    """Return the rows ordered by label, then by weighted score; those without either come last."""
    scores = w.sheet.scores
    label = scores.reindex(columns=["label"])["label"].map({name: i for i, name in enumerate(BAD_FIRST)})
    order = np.lexsort((scores[TOTAL].round(DIGITS).fillna(np.inf), label.fillna(9.0)))
    return pd.DataFrame(scores.iloc[order])


class _Rows:
    """Turn rows into samples; each passage is written once and numbered."""

    def __init__(self, w: Formatter, scores: pd.DataFrame) -> None:
        self.w, self.doc, self.scores = w, w.sheet.scenario.doc, scores
        self.metrics = [name for name in w.quality if name in scores]
        self.below = {name: below(w, name) for name in [*w.quality, *w.rates] if name in scores}
        self.texts = [name for name in ("answer", "ground_truth_answer") if name in scores]
        self.keys: dict[str, int] = {}
        self.numbers: dict[str, int] = {}
        no_change = pd.DataFrame(columns=["sample_id", "change", "before_label"])
        known = (no_change if w.sheet.changed is None else w.sheet.changed).set_index("sample_id")
        self.changed, self.before = known["change"].to_dict(), known["before_label"].to_dict()
        self.several = w.whole.systems is not None
        self.labelled = "label" in scores and bool(scores["label"].notna().any())
        self.documents = self.doc in scores
        self.shown = self.metrics[:_MOST_SCORES]
        heads = [w.say("column.sample_id"), w.say("column.question")]
        heads += [w.say("column.system")] * self.several + [w.say("column.document")] * self.documents
        heads += [w.say("column.label")] * self.labelled + [f">{w.title(name)}" for name in self.shown]
        self.heads = (*heads, *[f">{w.title(TOTAL)}"] * bool(w.total))
        passages = scores.get("retrieved_contexts", pd.Series(dtype=object)).dropna()
        every = [str(one) for name in self.texts for one in scores[name].dropna()]
        every += {str(one) for cell in passages for one in _list(cell)}
        self.most = longest([len(text.encode("utf-8", "replace")) for text in every], _TEXT_BYTES)

    def key(self, row: Row) -> str:
        """Return what a link to the row names: its id, counted where it comes again."""
        name = key = key_of(row.get("sample_id", row.get("question", "")))
        while anchor(key) in self.keys:  # ids that differ in white space alone would have one place
            self.keys[anchor(name)] += 1
            key = f"{name}~{self.keys[anchor(name)]}"
        self.keys[anchor(key)] = 1
        return key

    def cells(self, row: Row, name: str) -> tuple[Any, ...]:
        label = row.get("label")
        question = row.get("question")
        cells: list[Any] = [name, "" if is_missing(question) else one_line(question, 160)]
        cells += [one_line(row.get("system", ""), 40)] * self.several
        cells += ["" if is_missing(row.get(self.doc)) else one_line(row[self.doc], 60)] * self.documents
        if self.labelled:
            known = not is_missing(label)
            cells.append(Mark(TONES.get(str(label), "good"), self.w.say(f"label.{label}")) if known else "")
        names = [*self.shown, *self.w.total]
        return (*cells, *(self.w.value(one, row[one]) if not is_missing(row.get(one)) else "" for one in names))

    def plain(self, row: Row) -> tuple[str, ...]:
        """Return the cells of a row that only the script lists."""
        return tuple(cell.text if isinstance(cell, Mark) else cell or markup.MISSING
                     for cell in self.cells(row, self.key(row)))  # fmt: skip

    def filters(self, row: Row, at: Any) -> dict[str, str]:
        """Return what the filters look at."""
        label = "" if is_missing(row.get("label")) else str(row["label"])
        low = [name for name in self.below if bool(self.below[name].get(at, False))]
        known = str(row.get("sample_id", row.get("question", "")))
        wrong = label not in RIGHT if label else bool(low)
        doc = row.get(self.doc)
        named = "" if is_missing(doc) else str(doc)
        found = {"w": "1" if wrong else "0", "o": label, "d": named, "m": "\n".join(low)}
        return found | ({"c": self.changed[known]} if known in self.changed else {})

    def sample(self, row: Row, at: Any) -> Sample:
        """Return a row whole."""
        key = self.key(row)
        passages = [str(one) for one in _list(row.get("retrieved_contexts"))]
        ids = [str(one.get("id", "")) if isinstance(one, dict) else "" for one in _list(row.get("chunks"))]
        cited = {str(one) for one in _list(row.get("citations"))}
        parts = [(name, row[name]) for name in self.texts if not is_missing(row[name])]
        texts = [(self.w.say(f"column.{name}"), matched(cut(value, self.most), passages) if name == "answer"
                  else cut(value, self.most)) for name, value in parts]  # fmt: skip
        known, before = str(row.get("sample_id", row.get("question", ""))), None
        if known in self.before and not is_missing(before := self.before[known]):
            texts.append((self.w.say("questions.before"), self.w.say(f"label.{before}")))
        shown = []
        for place, text in enumerate(passages[:_MOST_PASSAGES]):
            name = ids[place] if place < len(ids) else ""
            name += f" · {self.w.say('questions.cited')}" if name and name in cited else ""
            short = cut(text, self.most)
            shown.append((self.numbers.setdefault(short, len(self.numbers) + 1), name, short))
        if not passages and ids:
            names = ", ".join(f"{one} ({self.w.say('questions.cited')})" if one in cited else one for one in ids)
            texts.append((self.w.say("questions.passages"), one_line(names, 600)))
        notes = tuple(self._reasons(row))
        return Sample(key, self.cells(row, key), self.filters(row, at), tuple(texts), tuple(shown), notes)

    def _reasons(self, row: Row) -> Iterator[str]:
        """Yield the scores that are not columns, then why scores are missing."""
        more = [f"{self.w.title(name)} {self.w.value(name, row[name])}" for name in self.metrics[_MOST_SCORES:]
                if not is_missing(row.get(name))]  # fmt: skip
        if more:
            yield " · ".join(more)
        by_reason: dict[str, list[str]] = {}
        for name in self.metrics:
            if is_missing(row.get(name)):
                by_reason.setdefault(_why(self.w, name, row), []).append(self.w.title(name))
        for reason, names in by_reason.items():
            yield f"{self.w.list(names, most=8)}: {reason}"
        if row.get("partial") is True:
            yield self.w.say("questions.partial")
        if not is_missing(row.get("miss")):
            yield f"{self.w.say('column.miss')}: {row['miss']}"

    def chips(self, every: Sequence[dict[str, str]]) -> tuple[tuple[str, str, int], ...]:
        """Return the buttons of the first filter with their counts; the first is pressed."""
        def n(key: str, value: str) -> int:
            return sum(one.get(key) == value for one in every)

        names = ("chip_wrong", "chip_right") if self.labelled else ("chip_low", "chip_fine")
        wrong, right = (self.w.say(f"questions.{name}") for name in names)
        found = [("wrong", wrong, n("w", "1"))]
        found += [(label, self.w.say(f"label.{label}"), n("o", label)) for label in TONES]
        found += [("right", right, n("w", "0"))]
        found += [(key, self.w.say(f"compared.{key}"), n("c", key)) for key in ("broken", "fixed")]
        every_chip = ("", self.w.say("questions.chip_all"), len(every))
        return (*(chip for chip in found if chip[2]), every_chip)

    def choices(self) -> dict[str, tuple[str, tuple[tuple[str, str], ...]]]:
        """Return the lists to choose from: documents, and metrics below their threshold."""
        docs = self.w.sheet.scores[self.doc].dropna().unique().tolist() if self.documents else []
        low = [name for name in self.below if self.below[name].any()]
        found = {
            "d": (self.w.say("column.document"), tuple((str(doc), one_line(doc, 60)) for doc in docs)),
            "m": (self.w.say("questions.below"), tuple((name, self.w.title(name)) for name in low)),
        }
        return {key: one for key, one in found.items() if 0 < len(one[1]) <= _MOST_FILTER}


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple | np.ndarray) else [value] * isinstance(value, str)


def _why(w: Formatter, name: str, row: Row) -> str:
    """Return why a cell holds no score, else the word for that kind of absence."""
    status, reason = (row.get(f"{name}__{what}") for what in ("status", "reason"))
    word = w.say(f"column.{status if status in ('failed', 'not_applicable') else 'missing'}")
    return word if is_missing(reason) or not str(reason).strip() else f"{word}: {one_line(reason, 120)}"


def longest(sizes: Sequence[int], budget: int) -> int:
    """Return at what length texts are cut so that all of them together fit: short ones stay whole.

    Examples
    --------
    >>> longest([10, 10, 500, 500], 1000), longest([10, 20], 1000)
    (490, 1000)
    """
    left = budget
    for place, size in enumerate(sorted(sizes)):
        if size * (len(sizes) - place) > left:
            return left // (len(sizes) - place)
        left -= size
    return budget


def cut(value: object, most: int) -> str:
    """Return a stranger's text of at most so many bytes, with an ellipsis where it goes on."""
    held = str(value).encode("utf-8", "replace")
    return str(value) if len(held) <= most else held[:most].decode("utf-8", "ignore") + " …"


_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|\w+")
_RUN = 4  # words or Chinese characters in a row that must be found for their wording to count as taken over


def _runs(text: str) -> list[tuple[str, ...]]:
    """Return the runs of tokens of a text in their order."""
    words = [token.casefold() for token in _TOKEN.findall(text)]
    return [tuple(words[i : i + _RUN]) for i in range(len(words) - _RUN + 1)]


@lru_cache(maxsize=4096)
def _known(passage: str) -> frozenset[tuple[str, ...]]:
    """Return the runs of a passage, which many questions may have retrieved."""
    return frozenset(_runs(passage))


def matched(answer: str, passages: Sequence[str]) -> Safe:
    """Return an answer as HTML with the wording marked that stands in its passages, four tokens or more at a time.

    Examples
    --------
    >>> matched("It costs at most 450 yuan a night.", ["Rooms cost at most 450 yuan a night in cities."])
    'It costs <mark>at most 450 yuan a night</mark>.'
    """
    places, known = [found.span() for found in _TOKEN.finditer(answer)], list(map(_known, passages))
    held = np.zeros(len(places) + 1, dtype=bool)
    for i, run in enumerate(_runs(answer)):
        held[i : i + _RUN] |= any(run in runs for runs in known)
    parts, last = [], 0
    edges = np.flatnonzero(np.diff(held.astype(int), prepend=0)).tolist()
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        first, stop = places[start][0], places[end - 1][1]
        parts += [escape(answer[last:first]), f"<mark>{escape(answer[first:stop])}</mark>"]
        last = stop
    return Safe("".join([*parts, escape(answer[last:])]))
