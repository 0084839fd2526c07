"""Hands on the numbers in a notebook: an editor of weights, and sheets to rate answers and to review questions."""

from ragnb.errors import need_package
from ragnb.widgets.rating import RatingSheet
from ragnb.widgets.review import ReviewSheet
from ragnb.widgets.weights import WeightEditor

need_package("ipywidgets", extra="notebook")

__all__ = ["RatingSheet", "ReviewSheet", "WeightEditor"]
