"""Which system is better: paired comparison, questions fixed and broken, and how weights decide."""

from ragnb.comparison.differences import compare

__all__ = ["compare"]
