"""Ratings: what people gave beside what a judge gave, read from any layout; items drawn for labels; a golden set.

Nothing here says whether to trust a judge; `ragnb.calibration` does.
"""

from ragnb.ratings.beside import unrated
from ragnb.ratings.golden import check_golden, golden_template
from ragnb.ratings.labels import read_labels, write_golden, write_labels
from ragnb.ratings.reading import RATING_ALIASES, read_golden, read_judged, read_ratings
from ragnb.ratings.sampling import draw_labels
from ragnb.ratings.tables import judge_columns, looks_like_ratings

__all__ = [
    "RATING_ALIASES", "check_golden", "draw_labels", "golden_template", "judge_columns", "looks_like_ratings",
    "read_golden", "read_judged", "read_labels", "read_ratings", "unrated", "write_golden", "write_labels",
]  # fmt: skip
