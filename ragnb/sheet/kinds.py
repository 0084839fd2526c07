"""The kind of a run, decided in one place from what is there, and the sections of its page in their order."""

from __future__ import annotations

from ragnb.sheet.account import blocking_words
from ragnb.sheet.formatter import Formatter, once
from ragnb.sheet.gates import deciding
from ragnb.sheet.since import since_of

FAILED = "failed"
SYSTEMS = "systems"
JUDGE = "judge"
TRACES = "traces"
LOG = "log"
SCORES = "scores"
_REST = ("documents", "turns", "noise", "judge", "questions", "run", "glossary")
_DECIDED = (
    "summary",
    "fix",
    "metrics",
    "judged",
    "gates",
    "outcomes",
    "retrieval",
    "comparison",
    *_REST,
)
_UNDECIDED = ("summary", "metrics", "judged", "fix", "comparison", *_REST)
# Beside an earlier run what broke comes first.
_SINCE = ("summary", "broken", "fix", "metrics", "judged", "gates", "fixed")
ORDER: dict[str, tuple[str, ...]] = {
    # No verdict is drawn from what is left: neither gates nor what to fix.
    FAILED: ("summary", "missing", "causes", "earlier", "metrics", "questions", "run", "glossary"),
    SYSTEMS: (
        "summary",
        "comparison",
        "losses",
        "weights",
        "gates",
        "fix",
        "metrics",
        "judged",
        "outcomes",
        "retrieval",
        *_REST,
    ),
    JUDGE: ("summary", "suggestions", "metrics", "gates", "fix", "comparison", *_REST),
    TRACES: _DECIDED,
    LOG: ("summary", "gates", "label", "wording", "metrics", "questions", "run", "glossary"),
    SCORES: _DECIDED,
}
"""The keys of the sections by kind; a section that has nothing to say is left out."""


@once
def kind_of(w: Formatter) -> str:
    """Return the kind of a run, the first that holds."""
    sheet = w.whole
    # First, as of an incomplete run of any kind no verdict is drawn.
    if blocking_words(w):
        return FAILED
    if sheet.systems is not None and sheet.scenario.candidate is None and sheet.comparison is None:
        return SYSTEMS
    if sheet.log is not None:
        return LOG
    if sheet.outcomes is not None:
        return TRACES
    # Dimensions beside metrics of another scale have a section of their own on a page of scores.
    if sheet.passing is not None and not w.dimensions:
        return JUDGE
    return SCORES


def order_of(w: Formatter) -> tuple[str, ...]:
    """Return the keys of the sections of a page in their order.

    Where nobody set a gate on scores the thresholds of the rules are beside the means, which come first.
    """
    kind = kind_of(w)
    order = ORDER[kind]
    if kind == SCORES and not deciding(w.whole.gates):
        order = _UNDECIDED
    if kind in (JUDGE, TRACES, SCORES) and since_of(w) is not None:
        return (*_SINCE, *(key for key in order if key not in _SINCE))
    return order
