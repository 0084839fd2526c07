"""The sections of a sheet, one function each: assessment -> section."""

from ragnb.sheet.sections.comparison import comparison
from ragnb.sheet.sections.details import details, glossary
from ragnb.sheet.sections.metrics import documents, metrics
from ragnb.sheet.sections.outcomes import outcomes
from ragnb.sheet.sections.questions import questions
from ragnb.sheet.sections.summary import fix_first, gates, judge, summary

SECTIONS = {
    "summary": summary, "fix": fix_first, "metrics": metrics, "gates": gates, "outcomes": outcomes,
    "comparison": comparison, "documents": documents, "judge": judge, "questions": questions, "run": details,
    "glossary": glossary,
}  # fmt: skip
"""Key of a section -> its function, in the order in which a reader asks."""
