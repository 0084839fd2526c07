"""P-values of differences and shares, against statsmodels and the intervals that they belong to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from ragnb import stats
from ragnb.stats import clustered_mean, holm, p_above


@given(st.lists(st.floats(0, 1) | st.just(float("nan")), max_size=12))
def test_holm_is_statsmodels_over_the_p_values_there_are(p):
    found = holm(p)
    known = ~np.isnan(np.asarray(p, dtype=float))
    assert np.isnan(found[~known]).all()
    if known.any():
        adjusted = multipletests(np.asarray(p)[known], method="holm")[1]
        assert found[known] == pytest.approx(adjusted)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("failures", [0, 1, 6])
def test_a_share_is_above_a_threshold_at_alpha_where_its_interval_is(alpha, failures):
    passed = np.r_[np.ones(60 - failures), np.zeros(failures)]
    documents = np.arange(60) % 20
    level = 1 - 2 * alpha
    share = clustered_mean(passed, documents, ends=(0, 1), level=level)
    for off, is_above in ((-1e-4, True), (1e-4, False)):
        assert (p_above(share, share.low + off, share=True) <= alpha) == is_above
    if failures:
        assert p_above(share, share.high, share=True) == pytest.approx(1 - alpha, abs=1e-6)


def test_the_mean_itself_is_exceeded_as_likely_as_not():
    scores = clustered_mean([0.2, 0.4, 0.9, 0.5, 0.6])
    assert p_above(scores, scores.value) == pytest.approx(0.5)
    margin = stats.t_quantile(0.9, scores.df) * scores.se
    assert p_above(scores, scores.value - margin) == pytest.approx(0.05)


def test_what_has_no_error_or_no_looks_left_has_no_p_value():
    share = clustered_mean([1, 1, 0, 1, 1, 1], ends=(0, 1))
    for field in ("se", "df"):
        assert np.isnan(p_above(replace(share, **{field: np.nan}), 0.5))
        assert np.isnan(p_above(replace(share, **{field: np.nan}), 0.5, share=True))
    assert 0 < p_above(share, 0.5, share=True, fraction=1.0) < 1
    assert np.isnan(p_above(share, 0.5, share=True, fraction=1.01))


def test_looks_at_95_percent_are_widened_unless_asked_otherwise():
    assert stats.widening(0.5, 12.0) == stats.widening(0.5, 12.0, level=0.95)
    t = scipy.stats.t.ppf
    assert stats.widening(0.5, 12.0) == pytest.approx(t(0.9875, 12) / t(0.975, 12) / 0.5**0.25)
