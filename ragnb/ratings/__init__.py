"""Ratings: what people gave beside what a judge gave, read from any layout; items drawn for labels; a golden set.

Nothing here says whether to trust a judge; `ragnb.calibration` does.
"""

from ragnb.ratings.reading import RATING_ALIASES, read_judged, read_ratings

__all__ = ["RATING_ALIASES", "read_judged", "read_ratings"]
