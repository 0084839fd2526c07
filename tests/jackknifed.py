"""Ratings as hypothesis draws them, and the jackknife of any statistic by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st


@st.composite
def rated(draw, scores, least, most=40):
    """Judge, human and cluster columns with at least three clusters."""
    n = draw(st.integers(least, most))
    judge, human = (np.array(draw(st.lists(scores, min_size=n, max_size=n)), dtype=float) for _ in range(2))
    cluster = np.array([*draw(st.lists(st.integers(0, 5), min_size=n - 3, max_size=n - 3)), 0, 1, 2])
    return judge, human, cluster


def by_hand(statistic, judge, human, cluster):
    """The statistic and its standard error, leaving out one cluster at a time."""
    value = statistic(judge, human)
    keep = [cluster != g for g in np.unique(cluster)]
    without = np.array([statistic(judge[rows], human[rows]) for rows in keep])
    return value, np.sqrt((len(keep) - 1) / len(keep) * np.sum((without - value) ** 2))
