"""Scoring of cases: ragas metrics, ragnb's own, and lexical checks without a model; each score is stored.

`evaluate` plans a cell for each case and metric, makes the calls that are not in the store yet, and returns the
scores frame. `expected` says before what that would cost. `answer_cases` runs the system that is to be scored.
`support_lexical` and its kin say what of an answer's wording is found in the passages.
"""

from ragnb.scoring.answering import MEASURED, answer_cases, named_function
from ragnb.scoring.documents import passages_of
from ragnb.scoring.generation import endpoint, generate_cases, generation_cost
from ragnb.scoring.lexical import name_support, number_support, support_lexical
from ragnb.scoring.run import EMBEDDED, JUDGED, SCORERS, evaluate, expected
