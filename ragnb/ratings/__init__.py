"""Ratings: what people gave beside what a judge gave, read from any layout; items drawn for labels; a golden set.

Nothing here says whether to trust a judge; `ragnb.calibration` does.
"""

from ragnb.ratings.golden import check_golden, golden_template
from ragnb.ratings.labels import read_labels, write_labels
from ragnb.ratings.reading import RATING_ALIASES, read_judged, read_ratings
from ragnb.ratings.sampling import draw_labels

__all__ = [
    "RATING_ALIASES",
    "check_golden",
    "draw_labels",
    "golden_template",
    "read_judged",
    "read_labels",
    "read_ratings",
    "write_labels",
]
