"""Calibration: can this judge be trusted? Human labels beside the judge's scores, as numbers and as a verdict.

A share within ±1 alone proves nothing: a judge that always gives one number often does as well. So every share
stands beside chance, the best constant judge and the humans' own ceiling, with intervals that respect clusters.
"""

from ragnb.calibration.card import CalibrationCard
from ragnb.calibration.corrected import corrected_difference, corrected_mean, corrected_ways
from ragnb.calibration.measures import agreement
from ragnb.calibration.verdict import calibrate

__all__ = ["CalibrationCard", "agreement", "calibrate", "corrected_difference", "corrected_mean", "corrected_ways"]
