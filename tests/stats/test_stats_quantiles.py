"""Quantiles of clustered values: the interval by a loop over all values, the difference by drawing rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from ragnb import stats
from ragnb.errors import RagnbError


def by_loop(values, q, clusters, level=0.95):
    """Ask of every value whether the interval of the share of values up to it holds the quantile."""
    low, high = math.inf, math.inf
    for x in sorted(set(values), reverse=True):
        share = stats.clustered_mean(
            (values <= x).astype(float), clusters, ends=(0, 1), level=level
        )
        if share.high >= q:
            low = x
        if share.low <= q:
            break
        high = x
    for x in sorted(set(values)):
        share = stats.clustered_mean(
            (values <= x).astype(float), clusters, ends=(0, 1), level=level
        )
        if share.high >= q:
            return x, high
    return low, high


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 30), min_size=6, max_size=80),
    st.sampled_from([0.1, 0.5, 0.9, 0.95]),
    st.integers(2, 12),
)
def test_the_interval_is_what_a_loop_over_all_values_finds(values, q, groups):
    x = np.array(values, dtype=float)
    clusters = np.arange(len(x)) % groups
    found = stats.quantile_interval(x, q, clusters)
    low, high = by_loop(x, q, clusters)
    assert found.value == pytest.approx(np.quantile(x, q))
    assert found.low == min(low, found.value)
    assert found.high == max(high, found.value)
    assert (found.n, found.n_clusters) == (len(x), min(groups, len(x)))


def test_independent_values_have_about_the_exact_limits_by_order_statistics():
    x = np.arange(1.0, 401.0)
    for q in (0.5, 0.9, 0.95):
        found = stats.quantile_interval(x, q)
        low, high = scipy.stats.binom.ppf([0.025, 0.975], 400, q)
        assert abs(found.low - low) <= 2
        assert abs(found.high - high) <= 3


@pytest.mark.parametrize(("n", "bounded"), [(71, False), (73, True)])
def test_the_slowest_answer_bounds_the_95th_percentile_from_72_questions_on(n, bounded):
    # 0.95 ** n < 0.025 from n = 72 on: Clopper and Pearson's for "all of them are faster".
    found = stats.quantile_interval(np.arange(float(n)), 0.95)
    assert math.isfinite(found.high) is bounded


def test_lost_values_may_lie_at_either_end():
    x = np.arange(200.0)
    lost = np.zeros(200, dtype=bool)
    lost[::20] = True
    seen = np.where(lost, np.nan, x)
    found = stats.quantile_interval(seen, 0.5, lost=lost)
    alone = stats.quantile_interval(seen, 0.5)
    assert found.value == alone.value
    assert found.low < alone.low
    assert found.high > alone.high
    slow = stats.quantile_interval(seen, 0.95, lost=lost)
    assert slow.high == math.inf  # a twentieth is lost: all of it may be the slowest


def test_one_cluster_has_no_interval_and_no_value_no_estimate():
    assert math.isnan(stats.quantile_interval([1.0, 2.0], 0.5, ["a", "a"]).low)
    assert math.isnan(stats.quantile_difference([1.0, 2.0], [2.0, 3.0], 0.5, ["a", "a"]).low)
    assert stats.quantile_interval([np.nan], 0.5).n == 0
    assert stats.quantile_difference([np.nan], [1.0], 0.5).n == 0


@pytest.mark.parametrize("q", [0.0, 1.0, 95])
def test_a_percentage_is_no_quantile(q):
    with pytest.raises(RagnbError, match=r"0\.95 is the 95th percentile"):
        stats.quantile_interval([1.0, 2.0], q)


def test_the_difference_is_what_drawing_rows_finds():
    rng = np.random.default_rng(3)
    clusters = np.repeat(np.arange(15), [1, 2, 3] * 5)
    old = rng.lognormal(size=30)
    new = old * 0.7 + rng.normal(0, 0.1, 30)
    found = stats.quantile_difference(new, old, 0.9, clusters, resamples=400, seed=11)
    again = np.random.default_rng(11)
    drawn = []
    for picked in again.integers(0, 15, (400, 15)):
        rows = np.concatenate([np.flatnonzero(clusters == one) for one in picked])
        drawn.append(np.quantile(new[rows], 0.9) - np.quantile(old[rows], 0.9))
    assert found.value == pytest.approx(np.quantile(new, 0.9) - np.quantile(old, 0.9))
    assert [found.low, found.high] == pytest.approx(list(np.quantile(drawn, [0.025, 0.975])))
    beyond = min(sum(one >= 0 for one in drawn), sum(one <= 0 for one in drawn))
    assert found.p == pytest.approx(2 * (beyond + 1) / 401)


def test_equal_systems_do_not_differ():
    x = np.random.default_rng(5).lognormal(size=80)
    found = stats.quantile_difference(x, x, 0.95)
    assert (found.value, found.low, found.high, found.p) == (0, 0, 0, 1)


def test_the_interval_covers_where_the_largest_value_would_not():
    rng = np.random.default_rng(8)
    truth = float(np.exp(scipy.stats.norm.ppf(0.95)))
    missed = [0, 0]
    for _ in range(150):
        documents = np.repeat(np.arange(20), 5)
        log = math.sqrt(0.2) * rng.normal(size=20)[documents] + math.sqrt(0.8) * rng.normal(
            size=100
        )
        found = stats.quantile_interval(np.exp(log), 0.95, documents)
        missed[0] += truth < found.low
        missed[1] += truth > found.high
    assert sum(missed) <= 0.08 * 150
    assert missed[1] <= 0.05 * 150


def test_slower_and_faster_are_equally_sure():
    slow = np.random.default_rng(6).lognormal(size=60)
    fast = 0.97 * slow
    slower = stats.quantile_difference(slow, fast, 0.5)
    faster = stats.quantile_difference(fast, slow, 0.5)
    assert slower.value == -faster.value > 0
    assert slower.p == faster.p
    assert (slower.low, slower.high) == (-faster.high, -faster.low)


def test_a_difference_of_nothing_has_no_number():
    nan = float("nan")
    found = stats.quantile_difference([nan, 1.0], [2.0, nan], 0.5)
    assert np.isnan([found.value, found.low, found.high, found.se, found.p]).all()
    assert (found.n, found.n_clusters) == (0, 0)
