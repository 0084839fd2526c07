"""Scores over cases: the metrics of ragas, ours beside them, and those that need no model; each cell kept.

`evaluate` plans a cell for each case and metric, pays what is not in the store yet, and returns the scores frame.
`expected` says before what that would cost. `answer_cases` runs the system that is to be scored.
"""

from ragnb.scoring.answers import answer_cases
from ragnb.scoring.run import evaluate, expected
from ragnb.scoring.table import EMBEDDED, JUDGED, SCORERS, Scorer

__all__ = ["EMBEDDED", "JUDGED", "SCORERS", "Scorer", "answer_cases", "evaluate", "expected"]
