"""Which system is better: paired comparison, questions fixed and broken, and how weights decide."""

from ragnb.comparison.differences import compare
from ragnb.comparison.simplex import WeightMap, weight_map

__all__ = ["WeightMap", "compare", "weight_map"]
