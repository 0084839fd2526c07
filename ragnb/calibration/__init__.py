"""Judge calibration: agreement between a judge and human labels, with a verdict on whether to trust the judge.

A share within ±1 alone proves nothing: a judge that always gives one number often does as well. So every share
is compared with chance, the best constant score and the human ceiling, with intervals that respect clusters.
"""

from ragnb.calibration.card import CalibrationCard
from ragnb.calibration.corrected import corrected_mean, corrected_ways
from ragnb.calibration.golden import check_golden, golden_template, read_golden, write_golden
from ragnb.calibration.labels import (
    RATING_ALIASES,
    looks_like_ratings,
    read_judged,
    read_ratings,
    unrated,
)
from ragnb.calibration.measures import agreement
from ragnb.calibration.panels import Panel, panel
from ragnb.calibration.rating_table import judge_columns
from ragnb.calibration.sampling import draw_labels
from ragnb.calibration.sheets import (
    read_labels,
    reading_of_labels,
    reading_of_rated,
    write_labels,
)
from ragnb.calibration.study import calibrate
