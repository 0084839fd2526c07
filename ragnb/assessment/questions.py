"""Every question of a run: the worst ones to read at once, all of them to search, sort, filter and unfold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from ragnb import markup
from ragnb.assessment.parts import TOTAL, Row, Writer, gap
from ragnb.assessment.tables import metric_columns
from ragnb.inputs.streams import BAD_FIRST, DIGITS
from ragnb.markup import Column, Safe, is_missing, one_line

MOST_PLAIN, MOST_LIVE = 50, 10_000
BYTES_A_ROW, BYTES_OF_ALL = 2_000, 4_500_000
_TAGS = ("system", "refused", "label", "miss")
# Which share of a row's bytes a text may take: a fifth, a third and so on.
_UNFOLDED = {"question": 5, "answer": 3, "ground_truth_answer": 6, "retrieved_contexts": 4}


def questions(w: Writer) -> Safe:
    """Every question, the worst first: the first ones as a plain table, all of them as a live one."""
    scores = facts_said(w, worst_first(w))
    if not len(scores):
        return Safe("")
    doc, text = w.sheet.scenario.doc, _text_columns(w, scores)
    heads = {c: w.say(f"column.{'document' if c == doc else c}") for c in text}
    names = [*w.total, *w.quality]
    live = scores.head(MOST_LIVE)
    key = "questions_live" if len(live) == len(scores) else "questions_worst"
    key = "questions_streamed" if w.sheet.streamed else key
    said = w.say(f"sheet.{key}", n=markup.count(len(live)), all=markup.count(w.sheet.rows))
    special = dict.fromkeys((*_TAGS, doc), "tag") | {"question": "long"}
    kinds: dict[str, Any] = {heads[c]: special.get(c, "text") for c in text}
    kinds |= {w.name(name): "number" for name in names}
    records, most = live.to_dict("records"), min(BYTES_A_ROW, BYTES_OF_ALL // len(live))
    rows = [[*_texts(row, text, min(160, most // 6)).values(), *_numbers(w, row, names)] for row in records]
    parts = {c: most // share for c, share in _UNFOLDED.items() if c in scores}
    details = [w.say(f"column.{c}") for c in (*parts, "reasons")]
    unfolded = [[*(_unfolded(row[c], n) for c, n in parts.items()), _reasons(w, row, names)] for row in records]
    plain = _plain(w, live.head(MOST_PLAIN), heads, names, len(scores))
    table = markup.browse(kinds, rows, details=details, unfolded=unfolded, plain=plain, lang=w.lang)
    return w.section("questions", markup.element("p", said, class_="rg-note"), table)


def _text_columns(w: Writer, scores: pd.DataFrame) -> list[str]:
    """Return what stands before the numbers; what each answer did, where no numbers need the room."""
    several = ["system"] if w.sheet.systems is not None else []
    facts = [] if w.quality else ["answered", "hit", "refused"]
    names = ("sample_id", *several, "question", w.sheet.scenario.doc, *facts, "label", "miss")
    return [c for c in names if c in scores and (c != "miss" or scores[c].notna().any())]


def facts_said(w: Writer, scores: pd.DataFrame) -> pd.DataFrame:
    """Return rows with what an answer did in words: yes, no, or refused in part."""
    words = {True: w.say("column.yes"), False: w.say("column.no")}
    said = {c: scores[c].map(words).astype(object) for c in ("answered", "hit", "refused") if c in scores}
    part = scores.reindex(columns=["partial"])["partial"].eq(True)
    said |= {"refused": said["refused"].mask(part, w.say("column.in_part"))} if part.any() else {}
    return scores.assign(**said)


def worst_first(w: Writer) -> pd.DataFrame:
    """Return the rows ordered by weighted score, then by label; those without either come last."""
    scores = w.sheet.scores
    label = scores.reindex(columns=["label"])["label"].map({name: i for i, name in enumerate(BAD_FIRST)})
    return scores.iloc[np.lexsort((label.fillna(9.0), scores[TOTAL].round(DIGITS).fillna(np.inf)))]


def _plain(w: Writer, shown: pd.DataFrame, heads: dict[str, str], names: list[str], n: int) -> Safe:
    records = shown.to_dict("records")
    rows = [
        _texts(row, heads, 160)
        | {m: gap(*why(w, m, row)) if is_missing(row.get(m)) else Safe(w.value(m, row[m])) for m in names}
        for row in records
    ]
    columns = {c: Column(label) for c, label in heads.items()} | metric_columns(w, names)
    said = w.say("sheet.questions_plain", n=markup.count(len(rows)), all=markup.count(n))
    return w.table(rows, columns, said if len(rows) < n else None)


def _texts(row: Row, names: Iterable[str], most: int) -> dict[str, Any]:
    return {name: None if is_missing(row[name]) else one_line(row[name], most) for name in names}


def _numbers(w: Writer, row: Row, names: list[str]) -> Iterator[float | str]:
    """Yield values as they are written elsewhere, or the reason why there is none."""
    for name in names:
        yield why(w, name, row)[1] if is_missing(row.get(name)) else round(float(row[name]), 3)


def _reasons(w: Writer, row: Row, names: list[str]) -> str | None:
    """Return why scores are not there, a line a metric."""
    told = [(name, *why(w, name, row)) for name in names if is_missing(row.get(name))]
    return "\n".join(f"{w.name(name)}: {reason}" for name, reason, word in told if reason != word) or None


def _unfolded(value: Any, most: int) -> str | None:
    """Return a text, or texts under one another, of at most so many bytes; nothing for what is not there."""
    if is_missing(value):
        return None
    many = isinstance(value, list | tuple | np.ndarray)
    words = "\n\n".join(f"{i}. {item}" for i, item in enumerate(value, 1)) if many else str(value)
    held = words.encode("utf-8", "replace")
    return words if len(held) <= most else held[:most].decode("utf-8", "ignore") + " …"


def why(w: Writer, name: str, row: Row) -> tuple[str, str]:
    """Return why a cell holds no score, and the word for that kind of absence."""
    status, reason = (row.get(f"{name}__{what}") for what in ("status", "reason"))
    word = w.say(f"column.{status if status in ('failed', 'not_applicable') else 'missing'}")
    return (word if is_missing(reason) or not str(reason).strip() else one_line(reason, 80)), word
