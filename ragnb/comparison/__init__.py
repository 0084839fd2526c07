"""Which system is better: paired comparison, questions fixed and broken, and how weights decide."""

from ragnb.comparison.differences import compare
from ragnb.comparison.operations import compare_operations
from ragnb.comparison.planning import plan
from ragnb.comparison.questions import changed_questions
from ragnb.comparison.ranking import Standings, standings
from ragnb.comparison.simplex import WeightMap, weight_map
