"""Every question of a run, those that ended badly first, with its answer, passages and what its scores lack."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.comparison.questions import RIGHT
from ragnb.inputs.streams import BAD_FIRST, DIGITS
from ragnb.markup import MISSING, blocks, count, is_missing, one_line
from ragnb.markup.blocks import Mark, Section
from ragnb.markup.rendering import anchor
from ragnb.schema import TOTAL, records
from ragnb.sheet.formatter import (
    LABELS,
    Formatter,
    Row,
    Write,
    below,
    id_of,
    key_of,
    list_of,
    text_of,
)
from ragnb.sheet.labels import label_mark
from ragnb.sheet.passing_pictures import passing_row
from ragnb.sheet.wording import cut, longest, marked

MOST_WHOLE = 1000  # rows with their texts: a page of more is too large to open at once
MOST_LISTED = 10_000  # rows at all
_TEXT_BYTES = 1_000_000  # of all texts of the page, each passage once, so that it opens at once
_MOST_PASSAGES = 10
_MOST_FILTER = 200  # values of a filter: of more, a list is no help
_MOST_SCORES = 3  # in the row itself; the others are behind it
_BELOW = "__below"
# What the script of the page says.
_WORDS = ("shown", "search", "any", "more", "filters", "passages", "link", "again")


def questions(w: Formatter) -> Section | None:
    """Return the questions; nothing where no row is known."""
    writer = _Rows(w, worst_first(w))
    rows = records(writer.scores)
    samples = tuple(writer.sample(row) for row in rows[:MOST_WHOLE])
    rest = tuple((writer.plain(row), writer.filters(row)) for row in rows[MOST_WHOLE:])
    every = count(w.sheet.rows)
    filters = [sample.filters for sample in samples] + [held for _, held in rest]
    if w.sheet.streamed:
        key = "streamed"
    elif len(samples) == w.sheet.rows:
        key = "all"
    else:
        key = "most"
    # The script fills what stands in their braces.
    say = {word: writer.words[word] for word in _WORDS}
    say["standing"] = w.say(f"questions.standing_{key}", n=count(len(samples)), all=every)
    heads = (w.say("column.sample_id"), *(head for head, _ in writer.columns))
    block = blocks.Samples(
        heads, samples, writer.chips(filters), writer.choices(), say, w.sheet.rows, rest
    )
    of_shown = [held for held in filters if w.shown is None or held["s"] == w.shown]
    wrong = sum(held["w"] == "1" for held in of_shown)
    finding = _questions_finding(w, wrong, is_labelled=writer.labelled)
    if rows:
        return w.section("questions", finding, w.say("questions.lead"), [block], every)
    return None


def _questions_finding(w: Formatter, wrong: int, *, is_labelled: bool) -> str:
    """Return how many answers are wrong, do not pass their rubric, or are below a threshold."""
    every = count(w.sheet.rows if w.shown is None else w.answers)
    key = "questions.wrong"
    if not is_labelled:
        key = "questions.lowest"
        finding = _unlabelled_finding(w, wrong, every)
        if finding is not None:
            return finding
    if w.shown is None:
        return w.say(key, n=count(wrong), all=every)
    return w.say(f"{key}_of", n=count(wrong), all=every, system=one_line(w.shown, 40))


def _unlabelled_finding(w: Formatter, wrong: int, every: str) -> str | None:
    """Return what is said of rows without labels of which thresholds do not tell all; None where they do."""
    scores = w.sheet.scores
    # Streamed rows are only the worst ones: that none of them is answered says nothing of the others.
    if "answer" in scores and not w.sheet.streamed and scores.loc[w.own, "answer"].isna().all():
        return w.say("questions.none_answered", all=every)
    if not any(row["n"] for row in w.rows.values()):
        return w.say("questions.none_scored", all=every)
    passing = passing_row(w)
    if passing is not None and not w.dimensions:
        return _not_passing(w, passing)
    if not any(w.thresholds(name) for name in (*w.quality, *w.rates)):
        return texts.counted(w.say, "questions.plain", every)
    n_scored = int(w.rows.get(TOTAL, {"n": 0})["n"])
    n_unscored = w.answers - n_scored
    if n_unscored > 0 and n_scored:
        return w.say(
            "questions.lowest_scored",
            n=count(wrong),
            scored=count(n_scored),
            missing=count(n_unscored),
        )
    return None


def _not_passing(w: Formatter, row: Row) -> str:
    """Say how many answers do not pass the rubric, of how many that have its score."""
    failing = count(row["n"] - row["k"])
    words = {"metric": w.name(row["metric"]), "at": f"{row['threshold']:g}"}
    return w.say("questions.not_passing", n=failing, all=count(row["n"]), **words)


def worst_first(w: Formatter) -> pd.DataFrame:
    """Return the rows that the page lists, by label, then by weighted score; those without either come last.

    The column `_BELOW` holds the metrics that are beyond their threshold, `label` nothing but labels of ours.
    """
    scores: pd.DataFrame = w.sheet.scores
    metrics = [name for name in (*w.quality, *w.rates) if name in scores]
    is_below = pd.DataFrame({name: below(w, name) for name in metrics}, scores.index)
    label = scores.reindex(columns=["label"])["label"].map(str)
    place = label.map({name: i for i, name in enumerate(BAD_FIRST)})
    # Engines and machines differ in the last bit of a sum: scores that are equal to `DIGITS` keep their order.
    score = scores[TOTAL].round(DIGITS).fillna(np.inf)
    # The last key sorts first; 9 is behind all labels.
    order = np.lexsort((score, place.fillna(9.0)))[:MOST_LISTED]
    names: Any = [is_below.columns[flags].tolist() for flags in is_below.iloc[order].to_numpy(bool)]
    known_label = label.where(label.isin([*LABELS]))
    return scores.assign(label=known_label).iloc[order].assign(**{_BELOW: names})


class _Rows:
    """Turn rows into samples; each passage is written once and numbered."""

    def __init__(self, w: Formatter, scores: pd.DataFrame) -> None:
        self.w = w
        self.scores = scores
        self.doc = w.sheet.scenario.doc
        self.words = texts.entry(w.lang, "questions")
        self.metrics = [name for name in (*w.quality, *w.dimensions) if name in scores]
        self.texts = [name for name in ("answer", "ground_truth_answer") if name in scores]
        self.keys = dict[str, int]()  # by the place on the page, how many rows asked for it
        self.numbers = dict[str, int]()  # of passages, by their text
        changed = {}
        if w.sheet.changed is not None:
            changed = w.sheet.changed.set_index("sample_id").to_dict()
        self.changed = changed.get("change", {})
        self.before = changed.get("before_label", {})
        self.labelled = bool(scores["label"].notna().any())
        self.columns = self._columns()
        self.most = self._most_bytes()

    def _columns(self) -> list[tuple[str, Write]]:
        """Return the columns behind the id: their heads and what writes a cell of them."""
        w = self.w
        columns: list[tuple[str, Write]] = []
        if "question" in self.scores:
            columns.append((w.say("column.question"), _line("question", 160)))
        if w.whole.systems is not None:
            columns.append((w.say("column.system"), _line("system", 40)))
        if self.doc in self.scores:
            columns.append((w.say("column.document"), _line(self.doc, 60)))
        if self.labelled:
            columns.append((w.say("column.label"), self.label))
        shown = [*self.metrics[:_MOST_SCORES], *w.total]
        columns += [(f">{w.title(name)}", partial(self.score, name)) for name in shown]
        return columns

    def _most_bytes(self) -> int:
        """Return how many bytes of each text are shown, so that all of them together fit on the page."""
        whole = self.scores.head(MOST_WHOLE)
        every = [str(text) for name in self.texts for text in whole[name].dropna()]
        # A set: a passage that several questions retrieved is written once.
        every += {
            str(passage)
            for cell in whole.get("retrieved_contexts", ())
            for passage in list_of(cell)
        }
        return longest([len(text.encode("utf-8", "replace")) for text in every], _TEXT_BYTES)

    def key(self, row: Row) -> str:
        """Return what a link to the row names: its id, counted where it comes again."""
        name = key_of(id_of(row))
        key = name
        while anchor(key) in self.keys:  # ids that differ in white space alone would have one place
            self.keys[anchor(name)] += 1
            key = f"{name}~{self.keys[anchor(name)]}"
        self.keys[anchor(key)] = 1
        return key

    def label(self, row: Row) -> Mark | str:
        if text_of(row, "label"):
            return label_mark(self.w, row["label"])
        return ""

    def score(self, name: str, row: Row) -> str:
        if is_missing(row.get(name)):
            return ""
        return self.w.value(name, row[name])

    def plain(self, row: Row) -> tuple[str, ...]:
        """Return the cells of a row that only the script lists."""
        cells = [self.key(row)]
        for _, write in self.columns:
            cell = write(row)
            if isinstance(cell, Mark):  # the script writes texts, no marks
                cell = cell.text
            cells.append(cell or MISSING)
        return tuple(cells)

    def filters(self, row: Row) -> dict[str, str]:
        """Return what the filters look at, by the letters that the script of the page knows.

        ``w`` is whether the answer is wrong, ``o`` its label, ``d`` its document, ``m`` the metrics below their
        threshold, ``s`` its system, and ``c`` how it changed from the baseline.
        """
        label = text_of(row, "label")
        low = row[_BELOW]
        is_wrong = label not in RIGHT if label else bool(low)
        held = {
            "w": "1" if is_wrong else "0",
            "o": label,
            "d": text_of(row, self.doc),
            "m": "\n".join(low),
        }
        if self.w.whole.systems is not None:
            held["s"] = text_of(row, "system")
        sample_id = id_of(row)
        if sample_id in self.changed:
            held["c"] = self.changed[sample_id]
        return held

    def sample(self, row: Row) -> blocks.Sample:
        """Return a row whole."""
        key = self.key(row)
        passages = [str(passage) for passage in list_of(row.get("retrieved_contexts"))]
        ids = _passage_ids(row)
        cited = {str(cited_id) for cited_id in list_of(row.get("citations"))}
        lines = self._lines(row, passages)
        if ids and not passages:  # nothing to open, so the ids stand in a line of their own
            word = self.words["cited"]
            names = [f"{name} ({word})" if name in cited else name for name in ids]
            lines.append((self.w.say("questions.passages"), one_line(", ".join(names), 600)))
        cells = (key, *(write(row) for _, write in self.columns))
        shown = self._passages(passages, ids, cited)
        return blocks.Sample(
            key, cells, self.filters(row), tuple(lines), shown, tuple(self.reasons(row))
        )

    def _lines(self, row: Row, passages: Sequence[str]) -> list[tuple[str, Any]]:
        """Return the texts of a row, each under its name, and its label in the baseline."""
        say = self.w.say
        refused = row.get("refused")
        is_refusal = not is_missing(refused) and bool(refused)
        lines: list[tuple[str, Any]] = []
        for name in self.texts:
            if is_missing(row[name]):
                continue
            text = cut(row[name], self.most)
            # A refusal has no claims.
            if name == "answer" and passages and not is_refusal:
                text = marked(text, passages, say)
            lines.append((say(f"column.{name}"), text))
        before = text_of(self.before, id_of(row))
        if before:
            lines.append((say("questions.before"), say(f"label.{before}")))
        return lines

    def _passages(
        self, passages: Sequence[str], ids: Sequence[str], cited: Collection[str]
    ) -> tuple[tuple[int, str, str], ...]:
        """Return the first passages, each with its number on the page, its title and its text."""
        shown = []
        # Texts and ids come from two columns, which need not be equally long.
        padded_ids = [*ids, *[""] * len(passages)]
        for name, passage in zip(padded_ids, passages[:_MOST_PASSAGES], strict=False):
            text = cut(passage, self.most)
            title = f"{name} · {self.words['cited']}" if name and name in cited else name
            place = self.numbers.setdefault(text, len(self.numbers) + 1)
            shown.append((place, title, text))
        return tuple(shown)

    def reasons(self, row: Row) -> Iterator[str]:
        """Yield the scores that are not columns, then why scores are missing."""
        w = self.w
        more = [name for name in self.metrics[_MOST_SCORES:] if not is_missing(row[name])]
        if more:
            yield " · ".join(f"{w.title(name)} {w.value(name, row[name])}" for name in more)
        # Metrics that lack a score for the same reason share a line.
        by_reason = dict[str, list[str]]()
        for name in self.metrics:
            if is_missing(row[name]):
                by_reason.setdefault(_why(w, name, row), []).append(w.title(name))
        for reason, names in by_reason.items():
            yield f"{w.list(names, most=8)}: {reason}"
        if row.get("partial") is True:
            yield w.say("questions.partial")
        miss = text_of(row, "miss")
        if miss:
            yield f"{w.say('column.miss')}: {miss}"

    def chips(self, every: Sequence[Row]) -> tuple[tuple[str, str, int], ...]:
        """Return the buttons of the first filter with their counts; the first is pressed."""
        say = self.w.say
        wrong = "wrong" if self.labelled else "low"
        right = "right" if self.labelled else "fine"
        # The code of each button, its words, and the filter (see `filters`) with the value that it shows.
        chips = [("wrong", say(f"questions.chip_{wrong}"), "w", "1")]
        chips += [(label, say(f"label.{label}"), "o", label) for label in BAD_FIRST]
        chips.append(("right", say(f"questions.chip_{right}"), "w", "0"))
        chips += [
            (change, say(f"compared.{change}"), "c", change) for change in ("broken", "fixed")
        ]
        shown = []
        for code, words, key, value in chips:
            n = sum(held.get(key) == value for held in every)
            if n:
                shown.append((code, words, n))
        return (*shown, ("", say("questions.chip_all"), len(every)))

    def choices(self) -> dict[str, tuple[str, tuple[tuple[str, str], ...]]]:
        """Return the lists to choose from: documents, and metrics below their threshold."""
        w = self.w
        scores = w.sheet.scores
        docs = []
        if self.doc in scores:
            docs = scores[self.doc].dropna().unique().tolist()
        is_low = {name for names in self.scores[_BELOW] for name in names}
        low = [name for name in (*w.quality, *w.rates) if name in is_low]
        lists = {
            "d": (w.say("column.document"), tuple((str(doc), one_line(doc, 60)) for doc in docs)),
            "m": (w.say("questions.below"), tuple((name, w.title(name)) for name in low)),
        }
        if w.whole.systems is not None:
            names = w.whole.systems["system"].unique().tolist()
            options = tuple((str(name), one_line(name, 60)) for name in names)
            lists["s"] = (w.say("column.system"), options)
        return {
            key: (name, options)
            for key, (name, options) in lists.items()
            if 0 < len(options) <= _MOST_FILTER
        }


def _passage_ids(row: Row) -> list[str]:
    """Return the ids of the retrieved passages, empty for one without an id."""
    chunks = list_of(row.get("chunks"))
    return [str(chunk.get("id", "")) if isinstance(chunk, dict) else "" for chunk in chunks]


def _line(key: str, most: int) -> Write:
    """Return what writes a cell of a column on one line of at most so many characters."""
    return lambda row: one_line(text_of(row, key), most)


def _why(w: Formatter, name: str, row: Row) -> str:
    """Return why a cell holds no score, else the word for that kind of absence."""
    status = row.get(f"{name}__status")
    reason = row.get(f"{name}__reason")
    kind = status if status in ("failed", "not_applicable") else "missing"
    word = w.say(f"column.{kind}")
    if is_missing(reason) or not str(reason).strip():
        return word
    return f"{word}: {one_line(reason, 120)}"
