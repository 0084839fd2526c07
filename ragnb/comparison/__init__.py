"""Which system is better: paired comparison, questions fixed and broken, and how weights decide."""

from ragnb.comparison.differences import changed_questions, compare
from ragnb.comparison.planning import plan
from ragnb.comparison.ranks import Standings, standings
from ragnb.comparison.simplex import WeightMap, weight_map
