"""Judge calibration: agreement between a judge and human labels, with a verdict on whether to trust the judge.

A share within ±1 alone proves nothing: a judge that always gives one number often does as well. So every share
is compared with chance, the best constant score and the human ceiling, with intervals that respect clusters.
"""

from ragnb.calibration.card import CalibrationCard, calibrate
from ragnb.calibration.corrected import corrected_mean, corrected_ways
from ragnb.calibration.labels import (
    RATING_ALIASES,
    check_golden,
    draw_labels,
    golden_template,
    judge_columns,
    looks_like_ratings,
    read_golden,
    read_judged,
    read_labels,
    read_rated,
    read_ratings,
    unrated,
    write_golden,
    write_labels,
)
from ragnb.calibration.measures import agreement
from ragnb.calibration.panels import Panel, panel
