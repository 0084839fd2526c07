"""What the Markdown of a sheet has for scripts: headings and columns that stay, whatever the page says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ragnb.comparison.questions import RIGHT
from ragnb.markup import is_missing
from ragnb.markup.blocks import Block, Section, Table, Text
from ragnb.schema import records
from ragnb.sheet.formatter import LABELS, Formatter

MOST_QUESTIONS = 1000  # lines of Markdown, which no one reads to the end
# What a column of the scores is called in the table: scripts read these names, in either language of the page.
_COLUMNS = {
    "system": "system",
    "sample_id": "qid",
    "answered": "answered",
    "hit": "hit",
    "refused": "refusal",
    "label": "label",
}


def for_scripts(w: Formatter, sections: Iterable[Section]) -> list[Section]:
    """Return the sections of a page with the metrics under a heading that stays, and a row for each question."""
    kept = [_with_plain_heading(w, section) for section in sections]
    per_question = labels(w)
    if per_question is None:
        return kept
    return [*kept, per_question]


def _with_plain_heading(w: Formatter, section: Section) -> Section:
    """Return the section of the metrics under its name alone; what it found becomes a paragraph."""
    if section.key != "metrics":
        return section
    name = w.say("plain.metric_means")
    # The name of a section of one system among several ends with that system.
    _, _, system = section.name.partition(" · ")
    if system:
        name = f"{name} · {system}"
    blocks: tuple[Block, ...] = section.blocks
    if section.finding:
        blocks = (Text((section.finding,)), *blocks)
    return replace(section, name=name, finding="", blocks=blocks)


def labels(w: Formatter) -> Section | None:
    """Return a row for each question that has a label, with the codes; nothing where no answer has one.

    Of more than `MOST_QUESTIONS` those that went wrong come first, and a sentence says how many are left out.
    Rows that are streamed are no longer all there, so they have no such table.
    """
    scores = w.whole.scores
    if w.whole.streamed or "label" not in scores:
        return None
    rows = scores[scores["label"].isin(list(LABELS))]
    if rows.empty:
        return None
    left_out = max(len(rows) - MOST_QUESTIONS, 0)
    if left_out:
        # False sorts before True: what went wrong is first, and both parts keep their order.
        went_right = rows["label"].isin(list(RIGHT)).sort_values(kind="stable")
        rows = rows.loc[went_right.index[:MOST_QUESTIONS]]
    columns = [name for name in _COLUMNS if name in rows]
    if w.whole.systems is None:
        columns = [name for name in columns if name != "system"]
    heads = tuple(_COLUMNS[name] for name in columns)
    cells = [tuple(_code(value) for value in row.values()) for row in records(rows[columns])]
    blocks: list[Block | None] = [Table(heads, tuple(cells))]
    if left_out:
        blocks.append(Text((w.say("plain.left_out", n=left_out),)))
    return w.section("labels", "", w.say("plain.labels_lead"), blocks)


def _code(value: Any) -> str:
    """Write a fact as 1 or 0, a text as it is, and nothing for what does not apply."""
    if is_missing(value):
        return ""
    if isinstance(value, bool):
        return str(int(value))
    return str(value)
