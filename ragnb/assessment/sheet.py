"""One assessment as a sheet: the parts in the order in which a reader asks, as HTML and as Markdown."""

from __future__ import annotations

from ragnb import markup
from ragnb.assessment import front, judge, made, mending, questions, tables
from ragnb.assessment.markdown import to_markdown
from ragnb.assessment.parts import Writer
from ragnb.assessment.result import Assessment
from ragnb.markup import Safe, join

__all__ = ["sections", "to_html", "to_markdown"]

_PARTS = {
    "verdict": front.verdict, "cards": front.cards, "notes": front.notes, "means": tables.means,
    "gates": tables.gates, "diagnoses": mending.diagnoses, "outcomes": mending.outcomes,
    "where": tables.where, "judge": judge.judge, "systems": tables.systems,
    "questions": questions.questions, "made": made.made, "glossary": made.glossary,
}  # fmt: skip
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
