"""The formulas, against published tables and other libraries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.proportion import proportion_confint

from ragnb import stats

# Newcombe (1998), Stat. Med. 17:857-872, Table I, method 3.
NEWCOMBE = {
    (81, 263): (0.2553, 0.3662),
    (15, 148): (0.0624, 0.1605),
    (0, 20): (0.0, 0.1611),
    (1, 29): (0.0061, 0.1718),
}


@pytest.mark.parametrize("case", NEWCOMBE)
def test_wilson_is_newcombes_table(case):
    k, n = case
    low, high = stats.wilson(np.array(k / n), np.array(float(n)), np.array(scipy_stats.norm.ppf(0.975)))
    assert (float(low), float(high)) == pytest.approx(NEWCOMBE[case], abs=6e-5)


@given(st.integers(1, 300), st.floats(0, 1), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_is_statsmodels(n, share, level):
    k = round(share * n)
    z = np.array(scipy_stats.norm.ppf(0.5 + level / 2))
    low, high = stats.wilson(np.array(k / n), np.array(float(n)), z)
    assert (float(low), float(high)) == pytest.approx(proportion_confint(k, n, 1 - level, "wilson"), abs=1e-12)


@given(st.floats(0.01, 0.999), st.floats(1, 1e4))
def test_t_quantile_is_scipys(level, df):
    assert float(stats.t_quantile(level, df)) == pytest.approx(scipy_stats.t.ppf(0.5 + level / 2, df), rel=1e-9)


@given(st.lists(st.floats(-5, 5), min_size=8, max_size=8), st.integers(2, 4))
def test_jackknife_is_the_familiar_form_when_clusters_are_alike(values, groups):
    size = 8 // groups
    x = np.array(values[: size * groups])
    codes = np.repeat(np.arange(groups), size)
    u = np.bincount(codes, weights=x - x.mean())
    inflated = np.sum((u / (1 - 1 / groups)) ** 2)
    got = stats.jackknife_se(np.array(float(len(x))), np.array(float(groups)), np.array(inflated))
    assert float(got) == pytest.approx(stats.familiar_cluster_se(x, codes), abs=1e-12)


def test_one_cluster_has_no_standard_error():
    assert np.isnan(stats.jackknife_se(np.array(5.0), np.array(1.0), np.array(0.0)))


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=20))
def test_kish_lies_between_one_and_the_count(weights):
    v = np.array(weights)
    assert 1 - 1e-9 <= float(stats.kish(v.sum(), (v**2).sum())) <= len(v) + 1e-9


@given(
    st.floats(0, 1),
    st.floats(0, 0.5),
    st.floats(1, 100),
    st.floats(1, 500),
    st.booleans(),
    st.sampled_from([0.8, 0.95]),
)
def test_an_interval_holds_its_mean_and_stays_in_range(value, se, g_eff, n_kish, binary, level):
    args = [np.array([x]) for x in (1 + 4 * value, 4 * se, g_eff, n_kish)]
    low, high = stats.mean_interval(*args, (np.array([1.0]), np.array([5.0])), binary=binary, level=level)
    assert 1 <= low[0] <= 1 + 4 * value + 1e-9
    assert 1 + 4 * value - 1e-9 <= high[0] <= 5
    assert high[0] > low[0]


def test_a_binary_interval_is_never_narrower_than_independent_rows():
    one = np.array([1.0])
    narrow = stats.mean_interval(0.5 * one, 0.001 * one, 50 * one, 40 * one, (0 * one, one), binary=True)
    rows = stats.mean_interval(0.5 * one, np.sqrt(0.25 / 40) * one, 50 * one, 40 * one, (0 * one, one))
    assert (narrow[0][0], narrow[1][0]) == pytest.approx((rows[0][0], rows[1][0]))
    free = stats.mean_interval(0.5 * one, 0.001 * one, 50 * one, 40 * one, (0 * one, one))
    assert free[1][0] - free[0][0] < 0.01
