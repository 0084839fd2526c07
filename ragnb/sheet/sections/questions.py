"""Every question of a run, those that ended badly first, with its answer, passages and what its scores lack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    made = _Rows(w, worst_first(w))
    rows = records(made.scores)
    samples = tuple(map(made.sample, rows[:MOST_WHOLE]))
    rest = tuple((made.plain(row), made.filters(row)) for row in rows[MOST_WHOLE:])
    every = count(w.sheet.rows)
    filters = [*(sample.filters for sample in samples), *(held for _, held in rest)]
    if w.sheet.streamed:
        key = "streamed"
    elif len(samples) == w.sheet.rows:
        key = "all"
    else:
        key = "most"
    # The script fills what stands in their braces.
    say = {word: made.words[word] for word in _WORDS}
    say["standing"] = w.say(f"questions.standing_{key}", n=count(len(samples)), all=every)
    heads = (w.say("column.sample_id"), *(head for head, _ in made.columns))
    block = blocks.Samples(
        heads, samples, made.chips(filters), made.choices(), say, w.sheet.rows, rest
    )
    held_shown = [held for held in filters if w.shown is None or held["s"] == w.shown]
    wrong = sum(held["w"] == "1" for held in held_shown)
    finding = _questions_finding(w, wrong, is_labelled=made.labelled)
    if rows:
        return w.section("questions", finding, w.say("questions.lead"), [block], every)
    return None


def _questions_finding(w: Formatter, wrong: int, *, is_labelled: bool) -> str:
    """Return how many answers are wrong, do not pass their rubric, or are below a threshold."""
    every = count(w.sheet.rows if w.shown is None else w.answers)
    total = w.rows.get(TOTAL, {"n": 0})
    unscored = w.answers - int(total["n"])
    key = "questions.wrong" if is_labelled else "questions.lowest"
    if not is_labelled:
        scores = w.sheet.scores
        if "answer" in scores and not w.sheet.streamed and scores.loc[w.own, "answer"].isna().all():
            return w.say("questions.none_answered", all=every)
        if not any(row["n"] for row in w.rows.values()):
            return w.say("questions.none_scored", all=every)
        passing = passing_row(w)
        if passing is not None and not w.dimensions:
            return _not_passing(w, passing)
        if not any(w.thresholds(name) for name in (*w.quality, *w.rates)):
            return texts.counted(w.say, "questions.plain", every)
        if unscored > 0 and total["n"]:
            scored = count(int(total["n"]))
            return w.say(
                "questions.lowest_scored", n=count(wrong), scored=scored, missing=count(unscored)
            )
    if w.shown is None:
        return w.say(key, n=count(wrong), all=every)
    return w.say(f"{key}_of", n=count(wrong), all=every, system=one_line(w.shown, 40))


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
    low = pd.DataFrame(
        {name: below(w, name) for name in [*w.quality, *w.rates] if name in scores}, scores.index
    )
    label = scores.reindex(columns=["label"])["label"].map(str)
    label, place = (
        label.where(label.isin([*LABELS])),
        label.map({name: i for i, name in enumerate(BAD_FIRST)}),
    )
    order = np.lexsort((scores[TOTAL].round(DIGITS).fillna(np.inf), place.fillna(9.0)))[
        :MOST_LISTED
    ]
    names: Any = [low.columns[flags].tolist() for flags in low.iloc[order].to_numpy(bool)]
    return scores.assign(label=label).iloc[order].assign(**{_BELOW: names})


class _Rows:
    """Turn rows into samples; each passage is written once and numbered."""

    def __init__(self, w: Formatter, scores: pd.DataFrame) -> None:
        self.w = w
        self.scores = scores
        self.doc = w.sheet.scenario.doc
        self.words = texts.entry(w.lang, "questions")
        self.metrics = [name for name in (*w.quality, *w.dimensions) if name in scores]
        self.texts = [name for name in ("answer", "ground_truth_answer") if name in scores]
        self.keys = dict[str, int]()
        self.numbers = dict[str, int]()
        if w.sheet.changed is None:
            known = {}
        else:
            known = w.sheet.changed.set_index("sample_id").to_dict()
        self.changed = known.get("change", {})
        self.before = known.get("before_label", {})
        self.labelled = bool(scores["label"].notna().any())
        question = (w.say("column.question"), _line("question", 160))
        self.columns: list[tuple[str, Write]] = [question] * ("question" in scores)
        self.columns += [(w.say("column.system"), _line("system", 40))] * (
            w.whole.systems is not None
        )
        self.columns += [(w.say("column.document"), _line(self.doc, 60))] * (self.doc in scores)
        self.columns += [(w.say("column.label"), self.label)] * self.labelled
        shown = [*self.metrics[:_MOST_SCORES], *w.total]
        self.columns += [(f">{w.title(name)}", partial(self.score, name)) for name in shown]
        whole = scores.head(MOST_WHOLE)
        every = [str(one) for name in self.texts for one in whole[name].dropna()]
        every += {str(one) for cell in whole.get("retrieved_contexts", ()) for one in list_of(cell)}
        self.most = longest([len(text.encode("utf-8", "replace")) for text in every], _TEXT_BYTES)

    def key(self, row: Row) -> str:
        """Return what a link to the row names: its id, counted where it comes again."""
        name = key = key_of(id_of(row))
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
        cells = [self.key(row), *(write(row) for _, write in self.columns)]
        return tuple(cell.text if isinstance(cell, Mark) else cell or MISSING for cell in cells)

    def filters(self, row: Row) -> dict[str, str]:
        """Return what the filters look at."""
        label = text_of(row, "label")
        low = row[_BELOW]
        known = id_of(row)
        wrong = label not in RIGHT if label else bool(low)
        found = {
            "w": "1" if wrong else "0",
            "o": label,
            "d": text_of(row, self.doc),
            "m": "\n".join(low),
        }
        if self.w.whole.systems is not None:
            found["s"] = text_of(row, "system")
        return found | ({"c": self.changed[known]} if known in self.changed else {})

    def sample(self, row: Row) -> blocks.Sample:
        """Return a row whole."""
        key = self.key(row)
        passages = [str(one) for one in list_of(row.get("retrieved_contexts"))]
        ids = [
            str(one.get("id", "")) if isinstance(one, dict) else ""
            for one in list_of(row.get("chunks"))
        ]
        say = self.w.say
        words = self.words["cited"]
        cited = {str(one) for one in list_of(row.get("citations"))}
        lines: list[tuple[str, Any]] = []
        for name in (name for name in self.texts if not is_missing(row[name])):
            text = cut(row[name], self.most)
            # A refusal has no claims.
            refused = row.get("refused")
            is_refusal = not is_missing(refused) and bool(refused)
            is_claim = name == "answer" and bool(passages) and not is_refusal
            lines.append((say(f"column.{name}"), marked(text, passages, say) if is_claim else text))
        if before := text_of(self.before, id_of(row)):
            lines.append((say("questions.before"), say(f"label.{before}")))
        shown = []
        for name, passage in zip(
            [*ids, *[""] * len(passages)], passages[:_MOST_PASSAGES], strict=False
        ):
            text = cut(passage, self.most)
            title = f"{name} · {words}" if name and name in cited else name
            shown.append((self.numbers.setdefault(text, len(self.numbers) + 1), title, text))
        if not passages and ids:
            names = ", ".join(f"{one} ({words})" if one in cited else one for one in ids)
            lines.append((say("questions.passages"), one_line(names, 600)))
        cells = (key, *(write(row) for _, write in self.columns))
        return blocks.Sample(
            key, cells, self.filters(row), tuple(lines), tuple(shown), tuple(self.reasons(row))
        )

    def reasons(self, row: Row) -> Iterator[str]:
        """Yield the scores that are not columns, then why scores are missing."""
        w = self.w
        gone = dict[str, list[str]]()
        more = [name for name in self.metrics[_MOST_SCORES:] if not is_missing(row[name])]
        if more:
            yield " · ".join(f"{w.title(name)} {w.value(name, row[name])}" for name in more)
        for name in (name for name in self.metrics if is_missing(row[name])):
            gone.setdefault(_why(w, name, row), []).append(w.title(name))
        yield from (f"{w.list(names, most=8)}: {reason}" for reason, names in gone.items())
        if row.get("partial") is True:
            yield w.say("questions.partial")
        if miss := text_of(row, "miss"):
            yield f"{w.say('column.miss')}: {miss}"

    def chips(self, every: Sequence[Row]) -> tuple[tuple[str, str, int], ...]:
        """Return the buttons of the first filter with their counts; the first is pressed."""
        say = self.w.say
        if self.labelled:
            names = ("wrong", "right")
        else:
            names = ("low", "fine")
        wrong, right = (say(f"questions.chip_{name}") for name in names)
        chips = [
            ("wrong", wrong, "w", "1"),
            *((one, say(f"label.{one}"), "o", one) for one in BAD_FIRST),
        ]
        chips.append(("right", right, "w", "0"))
        chips += [(one, say(f"compared.{one}"), "c", one) for one in ("broken", "fixed")]
        counts = [
            (code, label, sum(one.get(key) == value for one in every))
            for code, label, key, value in chips
        ]
        return (*(chip for chip in counts if chip[2]), ("", say("questions.chip_all"), len(every)))

    def choices(self) -> dict[str, tuple[str, tuple[tuple[str, str], ...]]]:
        """Return the lists to choose from: documents, and metrics below their threshold."""
        w = self.w
        scores = self.w.sheet.scores
        if self.doc in scores:
            docs = scores[self.doc].dropna().unique().tolist()
        else:
            docs = []
        low = [
            name
            for name in [*w.quality, *w.rates]
            if any(name in names for names in self.scores[_BELOW])
        ]
        found = {
            "d": (w.say("column.document"), tuple((str(doc), one_line(doc, 60)) for doc in docs)),
            "m": (w.say("questions.below"), tuple((name, w.title(name)) for name in low)),
        }
        if w.whole.systems is not None:
            names = w.whole.systems["system"].unique().tolist()
            options = tuple((str(name), one_line(name, 60)) for name in names)
            found["s"] = (w.say("column.system"), options)
        return {key: one for key, one in found.items() if 0 < len(one[1]) <= _MOST_FILTER}


def _line(key: str, most: int) -> Write:
    return lambda row: one_line(text_of(row, key), most)


def _why(w: Formatter, name: str, row: Row) -> str:
    """Return why a cell holds no score, else the word for that kind of absence."""
    status, reason = (row.get(f"{name}__{what}") for what in ("status", "reason"))
    word = w.say(f"column.{status if status in ('failed', 'not_applicable') else 'missing'}")
    if is_missing(reason) or not str(reason).strip():
        return word
    return f"{word}: {one_line(reason, 120)}"
