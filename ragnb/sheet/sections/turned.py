"""The questions that broke since another run, and those that were fixed, each with both answers."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ragnb.markup import count, number, one_line
from ragnb.markup.blocks import Block, Mark, Section, Small, Table
from ragnb.schema import records
from ragnb.sheet.answers import differing
from ragnb.sheet.formatter import Formatter, Row, Write
from ragnb.sheet.labels import label_mark
from ragnb.sheet.since import since_of

_MOST = 10


def broken(w: Formatter) -> Section | None:
    """Return the questions that turned wrong, the most serious first; nothing where none did."""
    since = since_of(w)
    if since is None or since.broken.empty:
        return None
    rows = since.broken
    blocks: list[Block | None] = [_how(w, rows), _table(w, rows)]
    n = len(rows)
    finding = w.say("turned.broken", n=count(min(n, _MOST)), all=count(n))
    badge = Mark("bad", count(n))
    return w.section("broken", finding, w.say("turned.broken_lead"), blocks, badge)


def fixed(w: Formatter) -> Section | None:
    """Return the questions that turned right; nothing where none did."""
    since = since_of(w)
    if since is None or since.fixed.empty:
        return None
    n = len(since.fixed)
    finding = w.say("turned.fixed", n=count(min(n, _MOST)), all=count(n))
    table = _table(w, since.fixed)._replace(folded=w.say("turned.unfold"))
    return w.section("fixed", finding, "", [table], Mark("good", count(n)))


def _how(w: Formatter, rows: pd.DataFrame) -> Table | None:
    """Return from which label to which the questions turned; nothing without labels."""
    if rows["now_label"].isna().all():
        return None
    counts = rows.groupby(["before_label", "now_label"], sort=False).size()
    counts = counts.sort_values(ascending=False, kind="stable")

    def turned(pair: tuple[str, str]) -> tuple[Any, ...]:
        before, now = pair
        label_now = label_mark(w, now)
        return w.say(f"label.{before}"), label_now._replace(text=f"→ {label_now.text}")

    columns: dict[str, Write] = {
        "turned.how": turned,
        ">column.n": lambda pair: count(counts[pair]),
    }
    return w.table(counts.index.tolist(), columns)


def _questions(w: Formatter) -> dict[Any, Any]:
    """Return the text of each question by its id, where the rows have both."""
    scores = w.whole.scores
    if "question" not in scores or "sample_id" not in scores:
        return {}
    rows = scores.dropna(subset=["question"]).drop_duplicates("sample_id")
    return dict(zip(rows["sample_id"], rows["question"], strict=True))


def _table(w: Formatter, rows: pd.DataFrame) -> Table:
    """Return the first of some questions, each with its label or score and its answer in both runs."""
    question_of = _questions(w)
    shown = records(rows.head(_MOST))
    # Both answers at once, as each is marked where it differs from the other.
    for row in shown:
        if "now_answer" in row and "before_answer" in row:
            before, now = differing(row["before_answer"], row["now_answer"])
            row["before_marked"] = before
            row["now_marked"] = now

    def question(row: Row) -> tuple[Any, ...]:
        return one_line(question_of.get(row["sample_id"], ""), 160), w.link(row["sample_id"])

    def side(name: str) -> Write:
        def cell(row: Row) -> tuple[Any, ...]:
            label = row[f"{name}_label"]
            score = row[name]
            outcome: Any
            if not pd.isna(label):
                outcome = label_mark(w, label)
            elif pd.isna(score):
                outcome = Small("")
            else:
                outcome = Small(number(score))
            marked = row.get(f"{name}_marked")
            if marked is None:  # of rows that are not all held there are no answers
                return (outcome,)
            return (outcome, marked)

        return cell

    columns: dict[str, Write] = {
        "column.question": question,
        "turned.before": side("before"),
        "turned.now": side("now"),
    }
    return w.table(shown, columns, cards=True)
