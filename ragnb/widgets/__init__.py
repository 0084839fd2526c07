"""Hands on the numbers in a notebook: an editor of weights, and a sheet for people who rate answers."""

from ragnb.errors import need_package
from ragnb.widgets.editor import WeightEditor
from ragnb.widgets.rating import RatingSheet

need_package("ipywidgets", extra="notebook")

__all__ = ["RatingSheet", "WeightEditor"]
