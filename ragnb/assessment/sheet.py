"""One assessment as a sheet: the parts in the order in which a reader asks, as HTML and as Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

from ragnb import markup
from ragnb.assessment import front, judge, made, mending, questions, tables
from ragnb.assessment.parts import TOTAL, Row, Writer
from ragnb.assessment.questions import facts_said
from ragnb.assessment.result import Assessment
from ragnb.markup import Column, Safe, join, markdown_table, md_cell, one_line

_PARTS = {
    "verdict": front.verdict, "cards": front.cards, "notes": front.notes, "means": tables.means,
    "gates": tables.gates, "diagnoses": mending.diagnoses, "outcomes": mending.outcomes,
    "where": tables.where, "judge": judge.judge, "systems": tables.systems,
    "questions": questions.questions, "made": made.made, "glossary": made.glossary,
}  # fmt: skip
_HEADING = re.compile(r'<h2 id="([^"]*)"><a href="#[^"]*">(.*?)</a></h2>', re.DOTALL)
_DIGITS, _MOST_ROWS = 4, 1000
_GATES = "gate asks seen=mean n:count outcome p_flip:percent more"
_COMPACT = ("verdict", "cards", "notes", "means", "gates", "diagnoses", "where", "systems")


def sections(sheet: Assessment) -> dict[str, Safe]:
    """Return the parts of a sheet as HTML, in reading order.

    Parameters
    ----------
    sheet : Assessment

    Returns
    -------
    dict of str to Safe
        ``verdict, cards, notes, means, gates, diagnoses, outcomes, where, judge, systems, questions, made,
        glossary``; a part that has nothing to say is empty. Styled inside a `ragnb.markup.page`.

    Examples
    --------
    >>> import pandas as pd
    >>> from ragnb import assess
    >>> parts = sections(assess(pd.DataFrame({"faithfulness": [1.0, 0.8], "doc_name": ["a", "b"]})))
    >>> parts["systems"], parts["verdict"][:17]
    ('', '<h1 id="verdict">')
    """
    writer = Writer(sheet)
    return {key: part(writer) for key, part in _PARTS.items()}


def to_html(sheet: Assessment) -> Safe:
    """Return the sheet for the output of a notebook cell: no per-question table, no anchors.

    Examples
    --------
    >>> import pandas as pd
    >>> from ragnb import assess
    >>> to_html(assess(pd.DataFrame({"faithfulness": [1.0, 0.8], "doc_name": ["a", "b"]})))[:18]
    '<div class="ragnb"'
    """
    writer = Writer(sheet, linked=False)
    return markup.fragment(join(_PARTS[key](writer) for key in _COMPACT), lang=writer.lang)


def to_page(sheet: Assessment) -> Safe:
    """Return the sheet as a document of its own, which opens from a file and asks no host.

    Examples
    --------
    >>> import pandas as pd
    >>> from ragnb import assess
    >>> to_page(assess(pd.DataFrame({"faithfulness": [1.0, 0.8], "doc_name": ["a", "b"]})))[:31]
    '<!doctype html><html lang="en">'
    """
    body, scenario = join(sections(sheet).values()), sheet.scenario
    contents = [(anchor, html.unescape(text)) for anchor, text in _HEADING.findall(body)]
    return markup.page(scenario.title or scenario.name, body, lang=scenario.lang, contents=contents)


# As Markdown


def to_markdown(sheet: Assessment) -> str:
    """Return the sheet as Markdown: equal input gives equal text, without times and machine paths.

    Returns
    -------
    str
        Verdict, gates, notes, one line a metric (four decimals) and a rate (a percentage with one), diagnoses,
        the labels, the slices, the verdict on the judge, the systems, the questions of traces, and how it was
        made. A table shows at most 1,000 questions, or 8 groups.

    Examples
    --------
    >>> from ragnb import assess
    >>> sheet = assess(pd.DataFrame({"faithfulness": [1.0, 0.8, 0.9], "doc_name": ["a", "b", "c"]}), gates=[])
    >>> next(line for line in to_markdown(sheet).splitlines() if line.startswith("- faith"))[:28]
    '- faithfulness: 0.9000 (w=1)'
    """
    w = Writer(sheet, linked=False)
    parts = [
        f"# {md_cell(front.title(w))}",
        _sentence(sheet.verdict),
        _section(w, "gates", _table(w, tables.gate_rows(w), _GATES)),
        _section(w, "notes", _list(front.said(w))),
        _section(w, "means", "\n".join(_mean(w, name) for name in (*w.quality, *w.total))),
        _section(w, "rates", "\n".join(_mean(w, name) for name in w.rates)),
        _section(w, "diagnoses", *(_diagnosis(w, row) for row in mending.by_cost(w))),
        _section(w, "outcomes", _outcomes(w)),
        _section(w, "where", *_slices(w)),
        _section(w, "judge", *judge.markdown(w)),
        _section(w, "systems", *_groups(w, sheet.systems, w.say("column.system"))),
        _section(w, "common", *_groups(w, sheet.common, w.say("column.system"))),
        _section(w, "comparison", _table(w, tables.compared(w), tables.COMPARED)),
        _section(w, "questions", _questions(w)),
        _section(w, "made", *_made(w)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(w: Writer, key: str, *body: str) -> str:
    inside = "\n\n".join(part for part in body if part)
    return f"## {w.say(f'sheet.{key}')}\n\n{inside}" if inside else ""


def _sentence(text: str) -> str:
    """Write a sentence with the brackets of its intervals as they are; no other bracket opens a link."""
    return re.sub(r"\\\[([\d.,\s—-]+)\\\](?!\()", r"[\1]", md_cell(text))


def _list(items: list[str]) -> str:
    return "\n".join(f"- {md_cell(item)}" for item in items)


def _mean(w: Writer, name: str) -> str:
    """Return one mean as a line: its weight, interval, n and direction; why it is missing where it is."""
    row, total = w.rows[name], name == TOTAL
    head = f"**{name}**" if total else md_cell(name)
    weight = "" if total or pd.isna(row["weight"]) else f" (w={row['weight']:g})"
    if pd.isna(row["value"]):
        return f"- {head}: {markup.MISSING}{weight} ({md_cell(w.why_missing(name))})"
    said = markup.with_interval(row["value"], row["low"], row["high"], name in w.rates, _DIGITS)
    value, _, ends = said.partition(" [")
    lower = f" · {w.say('chart.lower')}" if w.better[name] == "lower" else ""
    return f"- {head}: {value}{weight} [{ends}, {w.counted(row)}{lower}"


def _table(w: Writer, rows: list[dict[Any, Any]], columns: str, **own: Column) -> str:
    """Return records as a table; the brackets in a header of ours open no link."""
    ours = {key: replace(column, label=Safe(column.label)) for key, column in w.columns(columns).items()}
    return markdown_table(pd.DataFrame(rows, dtype=object), columns=own | ours) if rows else ""


def _diagnosis(w: Writer, row: Row) -> str:
    severity = w.say(f"severity.{row['severity']}")
    actions = [f"{one['text']} ({one['setting']})" if one["setting"] else one["text"] for one in row["actions"]]
    samples = ([*w.score(row["metric"], one["score"]), *mending.sample_names(one)] for one in row["worst"])
    lists = _lists(w, causes=row["causes"], actions=actions, worst=[" · ".join(names) for names in samples])
    head = f"### {md_cell(mending.diagnosis_title(w, row))} ({severity})"
    return "\n\n".join([head, _sentence(mending.diagnosis_words(w, row)), *lists])


def _outcomes(w: Writer) -> str:
    """One line a label: how many answers, and which share of those with a label."""
    rows = [] if w.sheet.outcomes is None else w.sheet.outcomes.query("n > 0").to_dict("records")
    return _list([f"{r['label']}: {r['n']} ({markup.percent(r['share'])}) · {r['meaning']}" for r in rows])


def _slices(w: Writer) -> Iterator[str]:
    for name, table in () if w.sheet.slices is None else w.sheet.slices.groupby("slice", sort=False):
        yield from _groups(w, table, str(name))


def _groups(w: Writer, table: pd.DataFrame | None, head: str) -> Iterator[str]:
    """The means by group, as far as there are any; the groups left out are counted."""
    if table is None:
        return
    table = table.rename(columns={"system": "group"}).fillna({"group": markup.MISSING})
    groups = table["group"].unique()
    some = table[table["group"].isin(groups[: tables.MOST_GROUPS]) & table["value"].notna()].to_dict("records")
    rows = [row | {"metric": w.name(m), "seen": Safe(w.interval(m, row))} for row in some for m in [row["metric"]]]
    yield _table(w, rows, "metric seen=mean n:count", group=Column(head))
    yield tables.rest(w, "slice_rest", len(groups) - tables.MOST_GROUPS)


def _questions(w: Writer) -> str:
    """The table of labelled traces in their own order, one row an answer."""
    scores = w.sheet.scores
    if "label" not in scores:
        return ""
    keys = f"sample_id {'' if w.sheet.systems is None else 'system'} question answered hit refused label"
    frame = facts_said(w, scores.head(_MOST_ROWS)).reindex(columns=keys.split())
    frame["question"] = frame["question"].map(lambda text: one_line(text, 80), na_action="ignore")
    rows = frame.to_dict("records")
    table = _table(w, rows, keys)
    if w.sheet.rows <= _MOST_ROWS:
        return table
    key = "questions_streamed" if w.sheet.streamed else "questions_first"
    rest = w.say(f"sheet.{key}", n=markup.count(len(rows)), all=markup.count(w.sheet.rows))
    return f"{table}\n\n{rest}"


def _made(w: Writer) -> list[str]:
    pairs, documents = ([f"{k}: {v}" for k, v in some] for some in (made.settings(w), made.weight_rows(w, "doc")))
    files = [
        f"{w.say(key)}: {one['path']}, n = {markup.count(one['rows'])}, sha256 {one['sha256']}"
        for one in w.sheet.inputs
        for key in [f"role.{one['role']}"]
    ]
    steps = [f"{row['step']}: {markup.count(row['rows'])}" for row in w.sheet.ledger.to_dict("records")]
    return [_list(pairs), *_lists(w, document_weights=documents, inputs=files, ledger=steps)]


def _lists(w: Writer, **lists: list[str]) -> list[str]:
    return [f"{w.say(f'sheet.{key}')}\n\n{_list(items)}" for key, items in lists.items() if items]
